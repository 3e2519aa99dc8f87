/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/public.h"
#include "libclient/reddn-table.h"
#include "libclient/table/impl.h"
#include "protocol/table-hash.h"
#include "util/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OLD_VERSION = 1, OLD_RECORD_LIMIT = 0xffffff, PROGRESS_EVERY = 4096 };

DEFINE_CLEANUP(struct reddn_table *, reddn_table_close)

struct upgrade {
	char *path; /* without links */
	int fd;
	struct stat st;
	struct reddn_table_header geo;
	const uint8_t *map;
	uint64_t heap_need;
	int (*progress)(void *arg, uint64_t buckets, uint64_t total);
	void *arg;
	struct reddn_table_upgrade *done;
	char *err;
	size_t errlen;
};

#define FAIL(u, code, ...) reddn_fail(code, (u)->err, (u)->errlen, __VA_ARGS__)

static void upgrade_deinit(struct upgrade *u)
{
	if (u->map)
		munmap((void *)(uintptr_t)u->map, u->geo.file_size);
	if (u->fd >= 0)
		close(u->fd);
	free(u->path);
}

/* Open and lock the old table and check its header. REDDN_TABLE_CURRENT: it is none. */
static int open_old(struct upgrade *u, const char *path)
{
	bool current;
	void *map;
	int r;

	u->path = realpath(path, NULL);
	u->fd = u->path ? open(u->path, O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;
	if (u->fd < 0)
		return FAIL(u, -errno, "%m");
	if (fstat(u->fd, &u->st) < 0)
		return FAIL(u, -errno, "stat: %m");
	if (!S_ISREG(u->st.st_mode))
		return FAIL(u, -EBADMSG, "not a regular file");
	r = reddn_table_lock(u->fd, u->err, u->errlen);
	if (r < 0)
		return r;
	if (u->st.st_size < REDDN_TABLE_PAGE ||
		pread(u->fd, &u->geo, sizeof(u->geo), 0) != (ssize_t)sizeof(u->geo) ||
		(u->geo.magic != REDDN_TABLE_MAGIC && u->geo.magic != REDDN_TABLE_MAGIC_1))
		return FAIL(u, -EBADMSG, "not a reddn table");
	current = u->geo.magic == REDDN_TABLE_MAGIC;
	if (u->geo.version != (current ? REDDN_TABLE_VERSION : OLD_VERSION))
		return FAIL(u, -EBADMSG, "damaged: version %u", u->geo.version);
	r = reddn_table_check_geometry(&u->geo, (uint64_t)u->st.st_size,
		current ? REDDN_RECORD_LIMIT : OLD_RECORD_LIMIT, u->err, u->errlen);
	if (r < 0 || current)
		return r < 0 ? r : REDDN_TABLE_CURRENT;
	map = mmap(NULL, u->geo.file_size, PROT_READ, MAP_SHARED, u->fd, 0);
	if (map == MAP_FAILED)
		return FAIL(u, -errno, "cannot map %" PRIu64 " bytes: %m", u->geo.file_size);
	u->map = map;
	return 0;
}

/* The record of bucket @b, or NULL if that is empty. -EBADMSG: it is damaged. */
static int old_record(struct upgrade *u, uint64_t b, const struct reddn_record **record)
{
	const uint64_t *word = (const uint64_t *)(u->map + u->geo.buckets_off) + 2 * b;
	uint64_t off = reddn_locator_off(word[0]), len = reddn_locator_len(word[0]);
	const struct reddn_record *r;

	*record = NULL;
	if (!word[1])
		return 0;
	r = (const struct reddn_record *)(u->map + u->geo.heap_off + off);
	if (off % REDDN_HEAP_GRANULE || off > u->geo.heap_size || len > u->geo.heap_size - off ||
		len < sizeof(*r) || !r->key_len || r->key_len > u->geo.max_key ||
		r->val_len > u->geo.max_value || reddn_record_size(r->key_len, r->val_len) != len ||
		reddn_record_sum(r) != r->sum)
		return FAIL(u, -EBADMSG, "damaged: the record of bucket %" PRIu64, b);
	if (len > REDDN_RECORD_LIMIT)
		return FAIL(u, -EMSGSIZE,
			"the record of bucket %" PRIu64 " has %" PRIu64 " bytes; this format allows %d", b,
			len, REDDN_RECORD_LIMIT);
	*record = r;
	return 0;
}

/* How much of a heap the records take that are put one after the other */
static int measure(struct upgrade *u)
{
	uint64_t end = REDDN_HEAP_GRANULE; /* the null record */

	for (uint64_t b = 0; b < u->geo.buckets; b++) {
		const struct reddn_record *rec;
		int r = old_record(u, b, &rec);

		if (r < 0)
			return r;
		if (rec)
			end = reddn_untagged(end) +
			      (reddn_record_padded(reddn_record_size(rec->key_len, rec->val_len)) +
				      REDDN_HEAP_GRANULE - 1) /
				      REDDN_HEAP_GRANULE * REDDN_HEAP_GRANULE;
	}
	u->heap_need = end;
	return 0;
}

static int copy(struct upgrade *u, struct reddn_table *t)
{
	for (uint64_t b = 0; b < u->geo.buckets; b++) {
		const struct reddn_record *rec;
		int r = old_record(u, b, &rec);

		if (r < 0)
			return r;
		if (rec)
			r = reddn_table_put(
				t, rec->bytes, rec->key_len, rec->bytes + rec->key_len, rec->val_len);
		if (r < 0)
			return FAIL(u, r, "the record of bucket %" PRIu64 ": %s", b, strerror(-r));
		if (u->progress && b % PROGRESS_EVERY == 0 && u->progress(u->arg, b, u->geo.buckets))
			return FAIL(u, -EINTR, "stopped");
	}
	if (u->progress)
		u->progress(u->arg, u->geo.buckets, u->geo.buckets);
	return 0;
}

/*
 * Fill the new file. Fingerprints are others than in the old format, and so are the moves that make room:
 * more buckets if a key finds no place, another seed in the improbable case that two keys have the
 * same fingerprint and buckets.
 */
static int fill(struct upgrade *u, int fd, struct reddn_table **out)
{
	uint64_t over = reddn_record_size(u->geo.max_key, u->geo.max_value);
	struct reddn_table_options opt = {.buckets = u->geo.buckets,
		.seed = u->geo.hash_seed,
		.max_key = u->geo.max_key,
		.max_value = u->geo.max_value,
		.heap_size = u->geo.heap_size - REDDN_HEAP_GRANULE};

	if (over > REDDN_RECORD_LIMIT)
		opt.max_value -= (uint32_t)(over - REDDN_RECORD_LIMIT);
	if (opt.heap_size < u->heap_need)
		opt.heap_size = u->heap_need;
	for (;;) {
		CLEANUP(reddn_table_closep) struct reddn_table *t = NULL;
		int r = reddn_table_create_fd(&t, fd, &opt, u->err, u->errlen);

		if (r < 0)
			return r;
		r = copy(u, t);
		if (r == 0) {
			*out = steal_ptr(&t);
			return 0;
		}
		if (r == -ENOSPC)
			opt.buckets *= 2;
		else if (r == -ENOTUNIQ)
			opt.seed = 0;
		else
			return r;
	}
}

/* Give the new file the mode, the owner and the name of the old one */
static int replace(struct upgrade *u, int fd, const char *name)
{
	if (fchmod(fd, u->st.st_mode & 07777) < 0)
		return FAIL(u, -errno, "cannot set the mode of %s: %m", name);
	if (fchown(fd, u->st.st_uid, u->st.st_gid) < 0)
		return FAIL(u, -errno, "cannot give %s the owner of the table: %m", name);
	if (fsync(fd) < 0 && errno != EINVAL) /* hugetlbfs has nothing to sync */
		return FAIL(u, -errno, "cannot write %s: %m", name);
	if (rename(name, u->path) < 0)
		return FAIL(u, -errno, "cannot rename %s: %m", name);
	return 0;
}

static int convert(struct upgrade *u)
{
	CLEANUP(reddn_table_closep) struct reddn_table *t = NULL;
	CLEANUP(cleanup_close) int fd = -1;
	char name[4096];
	int r = measure(u);

	if (r < 0)
		return r;
	if ((size_t)snprintf(name, sizeof(name), "%s.%d.new", u->path, (int)getpid()) >= sizeof(name))
		return FAIL(u, -ENAMETOOLONG, "name too long");
	fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return FAIL(u, -errno, "%s: %m", name);
	r = fill(u, fd, &t);
	if (r == 0)
		r = replace(u, fd, name);
	if (r < 0) {
		unlink(name);
		return r;
	}
	reddn_table_stat(t, &u->done->after);
	return 0;
}

PUBLIC int reddn_table_upgrade(const char *path, struct reddn_table_upgrade *done,
	int (*progress)(void *arg, uint64_t buckets, uint64_t total), void *arg, char *err, size_t errlen)
{
	CLEANUP(upgrade_deinit)
	struct upgrade u = {.fd = -1, .progress = progress, .arg = arg, .done = done};
	char why[200] = "";
	int r;

	u.err = why;
	u.errlen = sizeof(why);
	*done = (struct reddn_table_upgrade){.from = REDDN_TABLE_VERSION, .to = REDDN_TABLE_VERSION};
	r = open_old(&u, path);
	if (r >= 0)
		done->before = done->after = (struct reddn_table_stat){.entries = u.geo.live.entries,
			.buckets = u.geo.buckets,
			.buckets_off = u.geo.buckets_off,
			.heap_off = u.geo.heap_off,
			.heap_size = u.geo.heap_size,
			.file_size = u.geo.file_size,
			.hash_seed = u.geo.hash_seed,
			.max_key = u.geo.max_key,
			.max_value = u.geo.max_value};
	if (r == 0) {
		done->from = OLD_VERSION;
		r = convert(&u);
	}
	return r < 0 ? reddn_fail(r, err, errlen, "%s: %s", path, why) : r;
}
