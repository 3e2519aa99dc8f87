/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * impl.h - a table handle. file.c makes, opens, checks and repairs tables; name.c gives them names, and opens
 * them by name; read.c reads them, table.c writes them and lets them grow; store.c has what differs in
 * stores, fill.c makes one from a table.
 */
#ifndef LIBCLIENT_TABLE_IMPL_H
#define LIBCLIENT_TABLE_IMPL_H

#include "libclient/reddn-table.h"
#include "protocol/table-format.h"
#include "protocol/table-hash.h"
#include "util/cleanup.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Allocator of a table's heap. Its state is in the writer's private memory. Opening a table rebuilds it from
 * the buckets, so a crash cannot damage it.
 *
 * It allocates granules of 64 bytes, from offsets without the tag (table-format.h), next-fit: the search goes
 * round the heap, and freed space waits in a queue before it is free again. Both keep the time between free
 * and reuse as long as the heap allows, because a NIC may still read the old record. Not thread-safe.
 */

enum { REDDN_HEAP_GRANULE = 64, REDDN_HEAP_QUEUE = 1024 };

struct reddn_heap {
	uint64_t granules;
	uint64_t taken;  /* granules that are not free, waiting ones included */
	uint64_t queued; /* waiting granules */
	uint64_t cursor;
	uint64_t *bitmap; /* 1: taken */
	struct reddn_heap_extent {
		uint64_t first;
		uint64_t count;
	} * queue; /* ring of REDDN_HEAP_QUEUE */
	uint32_t head, tail;
};

/** A heap of `size` bytes (a multiple of the granule), all free. -ENOMEM. */
int reddn_heap_init(struct reddn_heap *h, uint64_t size);
void reddn_heap_deinit(struct reddn_heap *h);

/** Mark [off, off + len) as taken. -EINVAL: outside the heap or not on a granule. -EEXIST: already taken. */
int reddn_heap_reserve(struct reddn_heap *h, uint64_t off, uint64_t len);

/** Allocate `len` bytes, > 0. -ENOSPC: no run of free granules is long enough. */
int reddn_heap_alloc(struct reddn_heap *h, uint64_t len, uint64_t *off);

/** Free what reserve or alloc took, with the same length. */
void reddn_heap_free(struct reddn_heap *h, uint64_t off, uint64_t len);

/** Bytes in use; waiting ones are not counted. */
uint64_t reddn_heap_used(const struct reddn_heap *h);

/** Longest chain of moves that makes room for one entry. At 48 % load, chains of a few hundred occur. */
enum { REDDN_TABLE_MAX_PATH = 1024 };

/** The current move, in the writer's part of the header page. Valid while live.moves is odd. */
struct reddn_table_journal {
	uint64_t from;
	uint64_t to;
};

/** A larger table, which gets all entries. What is put and deleted meanwhile is in both. */
struct reddn_table_growth {
	struct reddn_table *next;
	bool made;       /* @next has all of its memory */
	uint64_t copied; /* buckets whose entries @next has */
	pid_t pid;       /* of the writer: a child that closes its handle leaves the file */
	char tmp[PATH_MAX];
};

struct reddn_table {
	int fd;
	bool writer;
	uint8_t *map;
	size_t map_len;
	/* The header as it was checked: later changes of the file by others have no effect. */
	struct reddn_table_header geo;
	struct reddn_table_live *live;
	struct reddn_table_journal *journal;
	struct reddn_store_journal *store_journal; /* in its place, of a store */
	_Atomic uint64_t *words;                   /* two per bucket: locator, mark */
	uint8_t *heap;
	uint64_t null_locator;
	uint64_t made;                /* bytes of a new file that have memory, if they need it */
	uint64_t heap_used;           /* read-only handle: when it was opened */
	uint64_t idle;                /* of a store: buckets in use without a record, when it was opened */
	struct reddn_heap space;      /* writer */
	uint64_t *chains;             /* writer: two of REDDN_TABLE_MAX_PATH */
	struct reddn_record *scratch; /* a copy of the record that get and next return */
	uint64_t expires;             /* the same of a store: ms, CLOCK_REALTIME; 0: never */
	struct reddn_record *before;  /* that of the table before it grew, which the caller may have */
	struct reddn_table_repair repaired; /* writer: when it was opened */
	char *path;                         /* writer: absolute; NULL: it was opened by a descriptor */
	struct reddn_table_growth *growth;  /* writer: NULL: it does not grow */
	int growth_error;                   /* of the last growth; reddn_table_grow_step() takes it */
	uint64_t grow_from;                 /* entries: with less, it need not try again to grow by itself */
};

DEFINE_CLEANUP(struct reddn_table *, reddn_table_close)

static inline _Atomic uint64_t *reddn_table_locator(const struct reddn_table *t, uint64_t bucket)
{
	return &t->words[2 * bucket];
}

static inline _Atomic uint64_t *reddn_table_mark(const struct reddn_table *t, uint64_t bucket)
{
	return &t->words[2 * bucket + 1];
}

/** Bytes of the longest record, with its padding, and with the header of a store before it. */
static inline uint64_t reddn_table_longest(const struct reddn_table_header *h)
{
	return reddn_record_padded(h->header + reddn_record_size(h->max_key, h->max_value));
}

static inline struct reddn_place reddn_table_place(const struct reddn_table *t, const void *key, size_t len)
{
	return reddn_hash_key(t->geo.hash_seed, t->geo.buckets, key, len);
}

static inline uint64_t reddn_word_get(const _Atomic uint64_t *w)
{
	return atomic_load_explicit((_Atomic uint64_t *)w, memory_order_acquire);
}

/* Every store that readers see is a whole word, ordered after all earlier stores. */
static inline void reddn_word_set(_Atomic uint64_t *w, uint64_t v)
{
	atomic_store_explicit(w, v, memory_order_release);
}

static inline _Atomic uint64_t *reddn_live_word(uint64_t *field)
{
	return (_Atomic uint64_t *)field;
}

/** Lock or unlock (@type: F_WRLCK, F_UNLCK) the REDDN_TABLE_LOCK_* @byte, without waiting. -EAGAIN: another
 * has it, who may write the file. -errno */
int reddn_table_lock(int fd, short type, off_t byte);

/** True if the file is a store. What else may be wrong with it is looked at later. */
bool reddn_table_is_store(int fd);

/** Gives up a growth that was not published, and its file. NULL is allowed. */
void reddn_table_growth_free(struct reddn_table_growth *g);
/** Begins to make a table in @fd: the handle of a file that has no memory yet, and is no table. */
int reddn_table_make_begin(
	struct reddn_table **out, int fd, const struct reddn_table_options *opt, char *err, size_t errlen);
/** Gives @bytes more of the file its memory, in whole pages. 0: there is more to do; 1: all has; -errno */
int reddn_table_make_step(struct reddn_table *t, uint64_t bytes);
/** Makes the file a table, with the entries of opt->from, when all has its memory. */
int reddn_table_make_end(
	struct reddn_table *t, const struct reddn_table_options *opt, char *err, size_t errlen);
/** The steps and the end of them. */
int reddn_table_make_rest(
	struct reddn_table *t, const struct reddn_table_options *opt, char *err, size_t errlen);
/** Begins to make a table in a new file beside @path, whose name, the caller's to unlink, is @tmp then.
 * @like, unless NULL, is a table whose permissions it gets. */
int reddn_table_create_beside(struct reddn_table **out, const char *path, const struct reddn_table *like,
	const struct reddn_table_options *opt, char tmp[PATH_MAX], char *err, size_t errlen);
/** Marks @old as replaced and gives its name @path to the file @from. -ESTALE: it does not have that name. */
int reddn_table_succeed(const char *from, const char *path, const struct reddn_table *old);

/** True if the lengths of @r are possible, @len is that of its locator, and its checksum is right. @len has
 * the padding, and the header of a store. */
bool reddn_table_record_is_whole(const struct reddn_table *t, const struct reddn_record *r, uint32_t len);
/** True if the locator points into the heap, has the size of a possible record, and has no tag. */
bool reddn_table_locator_ok(const struct reddn_table *t, uint64_t locator);

/** Bytes of an extent of the store that has room for any record. */
uint64_t reddn_store_extent(const struct reddn_table_header *h);
/** Makes the header of a table that of a store; *@heap: bytes of its heap. -EINVAL. */
int reddn_store_plan(struct reddn_table_header *h, const struct reddn_table_options *opt, uint64_t capacity,
	uint64_t *heap, char *err, size_t errlen);
/** The same as of a table's header is right already. -EBADMSG */
int reddn_store_check(const struct reddn_table_header *h, char *err, size_t errlen);
/** The versions of the new store @t begin: with its epoch, so that none comes back that a store before it
 * had.
 */
void reddn_store_begin(struct reddn_table *t);
/** Fills the new store @t with the entries of the table @from, which has as many buckets and the same seed.
 * -ENOSPC, -EMSGSIZE, -EBADMSG */
int reddn_store_fill(struct reddn_table *t, struct reddn_table *from, char *err, size_t errlen);
/** Bytes of the extent that the locator names; 0: it names none. The null extent is none. */
uint64_t reddn_store_extent_of(const struct reddn_table *t, uint64_t locator);
/** True if there is a record in what the locator names, of a length that a client may publish. */
bool reddn_store_has_record(const struct reddn_table *t, uint64_t locator);
/** The mark of the bucket, or, if its entry is about to move or to leave, that which the entry has; 0: the
 * bucket is empty. */
uint64_t reddn_store_mark(const struct reddn_table *t, uint64_t bucket);

#endif
