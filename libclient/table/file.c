/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/public.h"
#include "libclient/reddn-table.h"
#include "libclient/table/impl.h"
#include "protocol/table-hash.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file-limit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { JOURNAL_OFF = 128 + sizeof(struct reddn_table_live) };
_Static_assert(JOURNAL_OFF + sizeof(struct reddn_table_journal) <= REDDN_TABLE_PAGE, "fits the header page");

/* Each record of a store has the room of the largest one. */
enum { STORE_KEY = 256, STORE_VALUE = 1024 };

static const uint64_t HUGE_PAGE = 2ull << 20;
static const uint64_t MAX_BUCKETS = 1ull << 40;
static const uint64_t MAX_HEAP = 1ull << 40; /* the locator has 5 bytes for the offset */

static uint64_t round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

void reddn_table_growth_free(struct reddn_table_growth *g)
{
	if (!g)
		return;
	/* Unless it was renamed */
	if (g->pid == getpid())
		unlink(g->tmp);
	reddn_table_close(g->next);
	free(g);
}

PUBLIC void reddn_table_close(struct reddn_table *t)
{
	if (!t)
		return;
	reddn_table_growth_free(t->growth);
	if (t->map)
		munmap(t->map, t->map_len);
	if (t->fd >= 0)
		close(t->fd);
	reddn_heap_deinit(&t->space);
	free(t->chains);
	free(t->path);
	free(t->scratch);
	free(t->before);
	free(t);
}

int reddn_table_lock(int fd, short type, off_t byte)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno == EACCES ? -EAGAIN : -errno;
}

/* -EBUSY: another writer has it */
static int lock_file(int fd, char *err, size_t errlen)
{
	int r = reddn_table_lock(fd, F_WRLCK, REDDN_TABLE_LOCK_WRITER);

	if (r == -EAGAIN)
		return reddn_fail(-EBUSY, err, errlen, "another process has the table open for writing");
	return r < 0 ? reddn_fail(r, err, errlen, "cannot lock: %s", strerror(-r)) : 0;
}

/* Make a handle on a duplicate of `fd`, locked if it writes. */
static int handle_new(struct reddn_table **out, int fd, bool writer, char *err, size_t errlen)
{
	CLEANUP(reddn_table_closep) struct reddn_table *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	t->writer = writer;
	t->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (t->fd < 0)
		return reddn_fail(-errno, err, errlen, "dup: %m");
	r = writer ? lock_file(t->fd, err, errlen) : 0;
	if (r < 0)
		return r;
	*out = steal_ptr(&t);
	return 0;
}

static int handle_map(struct reddn_table *t, char *err, size_t errlen)
{
	t->map_len = t->geo.file_size;
	t->map = mmap(NULL, t->map_len, t->writer ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, t->fd, 0);
	if (t->map == MAP_FAILED) {
		t->map = NULL;
		return reddn_fail(-errno, err, errlen, "cannot map %" PRIu64 " bytes: %m", t->geo.file_size);
	}
	t->live = &((struct reddn_table_header *)t->map)->live;
	t->journal = (struct reddn_table_journal *)(t->map + JOURNAL_OFF);
	t->store_journal = (struct reddn_store_journal *)(t->map + REDDN_STORE_JOURNAL);
	t->words = (_Atomic uint64_t *)(t->map + t->geo.buckets_off);
	t->heap = t->map + t->geo.heap_off;
	t->null_locator =
		reddn_locator(t->geo.null_off, t->geo.header ? t->geo.header : sizeof(struct reddn_record));
	t->scratch = calloc(1, reddn_table_longest(&t->geo));
	if (!t->scratch)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	if (t->writer) {
		t->chains = calloc(2 * REDDN_TABLE_MAX_PATH, sizeof(*t->chains));
		if (!t->chains || reddn_heap_init(&t->space, t->geo.heap_size) < 0)
			return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	}
	return 0;
}

static int check_version(const struct reddn_table_header *h, char *err, size_t errlen)
{
	if (h->magic != REDDN_TABLE_MAGIC)
		return reddn_fail(-EBADMSG, err, errlen, "not a reddn table (wrong magic)");
	if (h->version != REDDN_TABLE_VERSION)
		return reddn_fail(-EBADMSG, err, errlen, "table version %u, this library knows %d",
			h->version, REDDN_TABLE_VERSION);
	return 0;
}

/* The numbers of a header against each other and the size of the file */
static int check_geometry(const struct reddn_table_header *h, uint64_t size, char *err, size_t errlen)
{
	uint64_t room;

	if (h->header_size != sizeof(*h))
		return reddn_fail(-EBADMSG, err, errlen, "damaged: header of %u bytes, must be %zu",
			h->header_size, sizeof(*h));
	if (h->file_size > size)
		return reddn_fail(-EBADMSG, err, errlen,
			"truncated: %" PRIu64 " bytes, %" PRIu64 " according to the header", size,
			h->file_size);
	if (h->buckets < 2 || h->buckets > MAX_BUCKETS || (h->buckets & (h->buckets - 1)))
		return reddn_fail(-EBADMSG, err, errlen, "damaged: %" PRIu64 " buckets, not a power of two",
			h->buckets);
	if (!h->max_key || h->max_key > REDDN_KEY_LIMIT ||
		reddn_record_size(h->max_key, h->max_value) > REDDN_RECORD_LIMIT)
		return reddn_fail(-EBADMSG, err, errlen, "damaged: max_key %u, max_value %u out of range",
			h->max_key, h->max_value);
	if (h->buckets_off < REDDN_TABLE_PAGE || h->buckets_off % REDDN_TABLE_PAGE ||
		h->buckets_off > h->file_size)
		return reddn_fail(
			-EBADMSG, err, errlen, "damaged: buckets at offset %" PRIu64, h->buckets_off);
	room = h->file_size - h->buckets_off;
	if (h->heap_off < h->buckets_off || h->heap_off % REDDN_TABLE_PAGE || h->heap_off > h->file_size ||
		h->buckets * sizeof(struct reddn_bucket) > room ||
		h->heap_off - h->buckets_off < h->buckets * sizeof(struct reddn_bucket))
		return reddn_fail(-EBADMSG, err, errlen,
			"damaged: %" PRIu64 " buckets and heap at offset %" PRIu64, h->buckets, h->heap_off);
	if (h->heap_size > h->file_size - h->heap_off || h->heap_size > MAX_HEAP ||
		h->heap_size % REDDN_HEAP_GRANULE)
		return reddn_fail(-EBADMSG, err, errlen, "damaged: heap of %" PRIu64 " bytes", h->heap_size);
	if (h->header)
		return reddn_store_check(h, err, errlen);
	if (h->null_off % REDDN_HEAP_GRANULE || h->null_off >= h->heap_size ||
		h->null_off != reddn_untagged(h->null_off))
		return reddn_fail(-EBADMSG, err, errlen, "damaged: null record at %" PRIu64, h->null_off);
	return 0;
}

/* If a writer died during a move, undo the move if the old bucket still has the entry, else complete it. */
static int repair_move(struct reddn_table *t, char *err, size_t errlen)
{
	_Atomic uint64_t *moves = reddn_live_word(&t->live->moves);
	struct reddn_table_journal j = *t->journal;
	uint64_t mark, to_mark, clear;

	if (!(reddn_word_get(moves) & 1))
		return 0;
	if (j.from >= t->geo.buckets || j.to >= t->geo.buckets)
		return reddn_fail(-EBADMSG, err, errlen,
			"damaged: an unfinished move from bucket %" PRIu64 " to %" PRIu64, j.from, j.to);
	mark = reddn_word_get(reddn_table_mark(t, j.from));
	to_mark = reddn_word_get(reddn_table_mark(t, j.to));
	clear = mark ? j.to : j.from;
	if (mark && (reddn_hash_other(j.from, reddn_mark_fp(mark), t->geo.buckets) != j.to ||
			    (to_mark && to_mark != mark)))
		return reddn_fail(-EBADMSG, err, errlen,
			"damaged: an impossible move from bucket %" PRIu64 " to %" PRIu64, j.from, j.to);
	reddn_word_set(reddn_table_mark(t, clear), 0);
	reddn_word_set(reddn_table_locator(t, clear), t->null_locator);
	reddn_word_set(moves, *moves + 1);
	t->repaired.moves++;
	return 0;
}

static int check_mark(uint64_t bucket, uint64_t mark, char *err, size_t errlen)
{
	if (mark && mark != reddn_mark(reddn_hash_fp(mark)))
		return reddn_fail(-EBADMSG, err, errlen,
			"damaged: bucket %" PRIu64 " has the impossible mark 0x%" PRIx64, bucket, mark);
	return 0;
}

static int wild(const struct reddn_table *t, uint64_t bucket, uint64_t locator, char *err, size_t errlen)
{
	return reddn_fail(-EBADMSG, err, errlen,
		"damaged: bucket %" PRIu64 " points at %u bytes at %" PRIu64 " of a heap of %" PRIu64, bucket,
		reddn_locator_len(locator), reddn_locator_off(locator), t->geo.heap_size);
}

/* Check every bucket of a store, which may change meanwhile, its extents too. */
static int scan_store(struct reddn_table *t, char *err, size_t errlen)
{
	for (uint64_t b = 0; b < t->geo.buckets; b++) {
		uint64_t mark = reddn_store_mark(t, b), loc = reddn_word_get(reddn_table_locator(t, b));
		uint64_t extent = reddn_store_extent_of(t, loc);

		if (loc != t->null_locator && !extent) {
			if (reddn_word_get(reddn_table_locator(t, b)) == loc)
				return wild(t, b, loc, err, errlen);
			b--;
			continue;
		}
		t->heap_used += mark ? extent : 0;
		t->idle += mark && !reddn_store_has_record(t, loc);
	}
	return 0;
}

/* Check every bucket. A writer also reserves the heap of each record, and clears incomplete entries. */
static int scan(struct reddn_table *t, char *err, size_t errlen)
{
	const struct reddn_record *null = (const struct reddn_record *)(t->heap + t->geo.null_off);
	uint64_t entries = 0;

	if (t->geo.header)
		return scan_store(t, err, errlen);
	if (null->key_len != UINT32_MAX || null->val_len)
		return reddn_fail(-EBADMSG, err, errlen, "damaged: the null record has been overwritten");
	if (t->writer && reddn_heap_reserve(&t->space, t->geo.null_off, sizeof(*null)) < 0)
		return reddn_fail(-EBADMSG, err, errlen, "damaged: null record at %" PRIu64, t->geo.null_off);
	for (uint64_t b = 0; b < t->geo.buckets; b++) {
		uint64_t mark = reddn_word_get(reddn_table_mark(t, b));
		uint64_t loc = reddn_word_get(reddn_table_locator(t, b));
		int r;

		if (!mark && loc == t->null_locator) /* as most are */
			continue;
		r = check_mark(b, mark, err, errlen);
		if (r < 0)
			return r;
		if (!reddn_table_locator_ok(t, loc))
			return wild(t, b, loc, err, errlen);
		if (!mark) {
			if (t->writer) {
				reddn_word_set(reddn_table_locator(t, b), t->null_locator);
				t->repaired.entries++;
			}
			continue;
		}
		entries++;
		t->heap_used += round_up(reddn_locator_len(loc), REDDN_HEAP_GRANULE);
		if (t->writer &&
			reddn_heap_reserve(&t->space, reddn_locator_off(loc), reddn_locator_len(loc)) < 0)
			return reddn_fail(-EBADMSG, err, errlen,
				"damaged: the record of bucket %" PRIu64 " overlaps another", b);
	}
	if (t->writer)
		reddn_word_set(reddn_live_word(&t->live->entries), entries);
	return 0;
}

bool reddn_table_is_store(int fd)
{
	struct reddn_table_header h;

	return pread(fd, &h, sizeof(h), 0) == sizeof(h) && h.magic == REDDN_TABLE_MAGIC && h.header;
}

PUBLIC int reddn_table_open_fd(struct reddn_table **out, int fd, int flags, char *err, size_t errlen)
{
	CLEANUP(reddn_table_closep) struct reddn_table *t = NULL;
	struct stat st;
	int r;

	if (flags & ~REDDN_TABLE_WRITE)
		return reddn_fail(-EINVAL, err, errlen, "unknown flags 0x%x", (unsigned)flags);
	if (flags & REDDN_TABLE_WRITE && reddn_table_is_store(fd))
		return reddn_fail(-EROFS, err, errlen,
			"it is a store, whose writer is reddnd: put and delete keys through that (reddn "
			"put)");
	r = handle_new(&t, fd, flags & REDDN_TABLE_WRITE, err, errlen);
	if (r < 0)
		return r;
	if (fstat(t->fd, &st) < 0)
		return reddn_fail(-errno, err, errlen, "stat: %m");
	if (!S_ISREG(st.st_mode))
		return reddn_fail(-EBADMSG, err, errlen, "not a regular file");
	if (st.st_size < REDDN_TABLE_PAGE)
		return reddn_fail(
			-EBADMSG, err, errlen, "not a reddn table (%lld bytes)", (long long)st.st_size);
	if (pread(t->fd, &t->geo, sizeof(t->geo), 0) != sizeof(t->geo))
		return reddn_fail(-EIO, err, errlen, "cannot read the header: %m");
	r = check_version(&t->geo, err, errlen);
	if (r == 0)
		r = check_geometry(&t->geo, (uint64_t)st.st_size, err, errlen);
	if (r < 0)
		return r;
	r = handle_map(t, err, errlen);
	if (r < 0)
		return r;
	if (t->writer && !reddn_word_get(reddn_live_word(&t->live->epoch)))
		return reddn_fail(-ESTALE, err, errlen, "retired: another table has replaced it");
	if (t->writer) {
		r = repair_move(t, err, errlen);
		if (r < 0)
			return r;
	}
	r = scan(t, err, errlen);
	if (r < 0)
		return r;
	*out = steal_ptr(&t);
	return 0;
}

/*
 * Number of buckets that hold `capacity` entries with any seed. With one entry per bucket and two choices, n
 * keys find no place in m buckets with a probability that falls as 1/n below n = m/2 but rises steeply
 * towards it (Devroye and Morin, "Cuckoo hashing: further analysis", 2003). Measured: 1.6 % for 100 keys in
 * 256 buckets; below 0.01 % for every n with these numbers.
 */
static uint64_t buckets_for(uint64_t capacity)
{
	uint64_t n = 4;

	while (n < 3 * capacity + 4096)
		n *= 2;
	return n;
}

/*
 * Where a part of @size bytes begins, from @off on. A large one begins with a huge page: a NIC that reads it
 * on hugetlbfs then needs an entry of its page table for each of those, not for each 4 KiB.
 */
static uint64_t part_off(uint64_t off, uint64_t size)
{
	return round_up(off, size >= HUGE_PAGE ? HUGE_PAGE : REDDN_TABLE_PAGE);
}

/* False: fallocate(2) would take what there is, from everybody for a time, and fail. tmpfs without a limit
 * has 0 blocks. */
static bool has_room(int fd, uint64_t bytes)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) < 0 || fs.f_blocks == 0 || fs.f_bavail >= bytes / fs.f_frsize;
}

/* Parts of the file; what lies between them is never touched */
enum { HEADER, BUCKETS, HEAP, PARTS };

struct span {
	uint64_t begin, end;
};

static struct span part_of(const struct reddn_table_header *h, unsigned part)
{
	switch (part) {
	case HEADER:
		return (struct span){0, REDDN_TABLE_PAGE};
	case BUCKETS:
		return (struct span){
			h->buckets_off, h->buckets_off + h->buckets * sizeof(struct reddn_bucket)};
	default:
		return (struct span){h->heap_off, h->file_size};
	}
}

/* Give the file its size. */
static int set_size(int fd, const struct reddn_table_header *h)
{
	const struct span buckets = part_of(h, BUCKETS), heap = part_of(h, HEAP);

	if (h->file_size > file_limit())
		return -EFBIG;
	if (ftruncate(fd, 0) < 0)
		return -errno;
	if (!has_room(fd, buckets.end - buckets.begin + heap.end - heap.begin))
		return -ENOSPC;
	return ftruncate(fd, (off_t)h->file_size) < 0 ? -errno : 0;
}

/* Reserve the space of a part of the file now: a lack of it would be a SIGBUS later. */
static int reserve(int fd, const struct span *of)
{
	if (of->begin < of->end && fallocate(fd, 0, (off_t)of->begin, (off_t)(of->end - of->begin)) < 0 &&
		errno != EOPNOTSUPP)
		return -errno;
	return 0;
}

static struct span overlap(const struct span *a, const struct span *b)
{
	return (struct span){a->begin > b->begin ? a->begin : b->begin, a->end < b->end ? a->end : b->end};
}

/* A store from a table has its entries where they are there. */
static struct reddn_table_options as_from(const struct reddn_table_options *opt)
{
	struct reddn_table_options o = *opt;

	if (!o.from)
		return o;
	o.buckets = o.from->geo.buckets;
	o.seed = o.from->geo.hash_seed;
	if (!o.capacity)
		o.capacity = o.from->live->entries;
	if (!o.max_key)
		o.max_key = o.from->geo.max_key;
	if (!o.max_value)
		o.max_value = o.from->geo.max_value;
	return o;
}

/* Derive the header from the options, for a file system with pages of `page` bytes. */
static int plan(struct reddn_table_header *h, const struct reddn_table_options *opt, uint64_t page, char *err,
	size_t errlen)
{
	uint64_t capacity = opt->capacity ? opt->capacity : opt->buckets ? opt->buckets * 9 / 20 : 10000;
	uint64_t heap = opt->heap_size;

	*h = (struct reddn_table_header){.magic = REDDN_TABLE_MAGIC,
		.version = REDDN_TABLE_VERSION,
		.header_size = sizeof(*h),
		.hash_seed = opt->seed,
		.buckets = opt->buckets,
		.max_key = opt->max_key ? opt->max_key
			   : opt->store ? STORE_KEY
					: REDDN_KEY_LIMIT,
		.max_value = opt->max_value ? opt->max_value
			     : opt->store   ? STORE_VALUE
					    : 65536,
		.grow = opt->grow ? 1 : 0};
	if (h->max_key > REDDN_KEY_LIMIT || reddn_record_size(h->max_key, h->max_value) > REDDN_RECORD_LIMIT)
		return reddn_fail(-EINVAL, err, errlen,
			"max_key %u (up to %u), max_value %u: together up to %u", h->max_key, REDDN_KEY_LIMIT,
			h->max_value, REDDN_RECORD_LIMIT - 16);
	if (capacity > MAX_BUCKETS / 4)
		return reddn_fail(-EINVAL, err, errlen, "a capacity of %" PRIu64 " is too large", capacity);
	if (!h->buckets)
		h->buckets = buckets_for(capacity);
	if (h->buckets < 2 || h->buckets > MAX_BUCKETS || (h->buckets & (h->buckets - 1)))
		return reddn_fail(-EINVAL, err, errlen,
			"%" PRIu64 " buckets: must be a power of two, 2 or more", h->buckets);
	if ((opt->evict || opt->from) && !opt->store)
		return reddn_fail(-EINVAL, err, errlen, "only stores evict, and are made from tables");
	if (opt->store) {
		int r = opt->grow ? reddn_fail(-EINVAL, err, errlen, "a store does not grow")
				  : reddn_store_plan(h, opt, capacity, &heap, err, errlen);

		if (r < 0)
			return r;
	}
	if (!heap) {
		uint64_t floor =
			4 * round_up(reddn_record_padded(reddn_record_size(h->max_key, h->max_value)),
				    REDDN_HEAP_GRANULE);

		heap = capacity * 512 > floor ? capacity * 512 : floor;
	}
	if (heap > MAX_HEAP)
		return reddn_fail(
			-EINVAL, err, errlen, "a heap of %" PRIu64 " bytes: up to %" PRIu64, heap, MAX_HEAP);
	h->buckets_off = part_off(REDDN_TABLE_PAGE, h->buckets * sizeof(struct reddn_bucket));
	h->heap_off = part_off(h->buckets_off + h->buckets * sizeof(struct reddn_bucket), heap);
	/* One more granule, for the null record; a store has its null extent elsewhere. */
	h->file_size = round_up(h->heap_off + heap + (opt->store ? 0 : REDDN_HEAP_GRANULE), page);
	h->heap_size = opt->store ? heap : h->file_size - h->heap_off;
	if (h->heap_size > MAX_HEAP)
		h->heap_size = MAX_HEAP;
	if (!h->hash_seed && getrandom(&h->hash_seed, sizeof(h->hash_seed), 0) != sizeof(h->hash_seed))
		return reddn_fail(-errno, err, errlen, "no random seed: %m");
	return 0;
}

static void make_null(struct reddn_table *t)
{
	struct reddn_record *null = (struct reddn_record *)(t->heap + t->geo.null_off);

	*null = (struct reddn_record){.key_len = UINT32_MAX};
	null->sum = XXH3_64bits_withSeed("", 0, (uint64_t)UINT32_MAX << 32);
}

static int cannot_allocate(const struct reddn_table *t, int r, char *err, size_t errlen)
{
	return reddn_fail(r, err, errlen, "cannot allocate %" PRIu64 " bytes: %s%s", t->geo.file_size,
		strerror(-r), r == -EFBIG ? ": the process has a limit, RLIMIT_FSIZE" : "");
}

int reddn_table_make_begin(
	struct reddn_table **out, int fd, const struct reddn_table_options *opt, char *err, size_t errlen)
{
	CLEANUP(reddn_table_closep) struct reddn_table *t = NULL;
	const struct reddn_table_options all = as_from(opt);
	struct statfs fs;
	int r;

	r = handle_new(&t, fd, true, err, errlen);
	if (r < 0)
		return r;
	if (fstatfs(t->fd, &fs) < 0)
		return reddn_fail(-errno, err, errlen, "statfs: %m");
	r = plan(&t->geo, &all, fs.f_type == HUGETLBFS_MAGIC ? (uint64_t)fs.f_bsize : REDDN_TABLE_PAGE, err,
		errlen);
	if (r < 0)
		return r;
	r = set_size(t->fd, &t->geo);
	if (r < 0)
		return cannot_allocate(t, r, err, errlen);
	r = handle_map(t, err, errlen);
	if (r < 0)
		return r;
	*out = steal_ptr(&t);
	return 0;
}

int reddn_table_make_step(struct reddn_table *t, uint64_t bytes)
{
	const uint64_t size = t->geo.file_size, most = size - t->made;
	const struct span step = {t->made, bytes < most ? round_up(t->made + bytes, REDDN_TABLE_PAGE) : size};

	for (unsigned i = 0; i < PARTS; i++) {
		const struct span part = part_of(&t->geo, i), of = overlap(&part, &step);
		int r = reserve(t->fd, &of);

		if (r < 0)
			return r;
		for (uint64_t at = of.begin; i == BUCKETS && at < of.end; at += sizeof(struct reddn_bucket))
			reddn_word_set(
				reddn_table_locator(t, (at - part.begin) / sizeof(struct reddn_bucket)),
				t->null_locator);
	}
	t->made = step.end;
	return t->made == size;
}

/* What is in it. A table has nothing yet, and a store perhaps what it was made from. */
static int take_stock(struct reddn_table *t, char *err, size_t errlen)
{
	int r = t->geo.header ? scan_store(t, err, errlen)
			      : reddn_heap_reserve(&t->space, t->geo.null_off, sizeof(struct reddn_record));

	/* From here on it has another writer. */
	if (r == 0 && t->geo.header)
		t->writer = false;
	return r;
}

int reddn_table_make_end(
	struct reddn_table *t, const struct reddn_table_options *opt, char *err, size_t errlen)
{
	int r;

	t->geo.live.epoch = clock_read_ns(CLOCK_REALTIME);
	if (t->geo.header)
		reddn_store_begin(t);
	else
		make_null(t);
	r = opt->from ? reddn_store_fill(t, opt->from, err, errlen) : 0;
	if (r < 0)
		return r;
	/* The magic comes last, so that an unfinished file is no table. */
	memcpy(t->map + sizeof(t->geo.magic), (uint8_t *)&t->geo + sizeof(t->geo.magic),
		sizeof(t->geo) - sizeof(t->geo.magic));
	reddn_word_set((_Atomic uint64_t *)t->map, t->geo.magic);
	return take_stock(t, err, errlen);
}

int reddn_table_make_rest(
	struct reddn_table *t, const struct reddn_table_options *opt, char *err, size_t errlen)
{
	int r = reddn_table_make_step(t, UINT64_MAX);

	return r < 0 ? cannot_allocate(t, r, err, errlen) : reddn_table_make_end(t, opt, err, errlen);
}

PUBLIC int reddn_table_create_fd(
	struct reddn_table **out, int fd, const struct reddn_table_options *opt, char *err, size_t errlen)
{
	CLEANUP(reddn_table_closep) struct reddn_table *t = NULL;
	int r = reddn_table_make_begin(&t, fd, opt, err, errlen);

	if (r == 0)
		r = reddn_table_make_rest(t, opt, err, errlen);
	if (r == 0)
		*out = steal_ptr(&t);
	return r;
}
