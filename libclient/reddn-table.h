/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn-table.h - tables that NICs read: a hash table of byte strings in a file (tmpfs, hugetlbfs, pmem, any
 * file that can be mapped) or a memfd. One process writes; reddnd's NIC and any number of read-only handles
 * read at the same time, without locks: a get never returns a wrong or torn value and never misses a key that
 * was present throughout. See reddn-table(1) and libreddn(3).
 *
 * Errors: 0 is success, negative is -errno, positive is an outcome that the function documents. Where a
 * function has `err`, it puts the reason there in words (`err` may be NULL). A handle is used by one thread
 * at a time.
 *
 * A writer that is killed leaves a table that can be read and opened again; the operation it was in the
 * middle of has happened or has not. Nothing is promised about a machine that loses power.
 */
#ifndef REDDN_TABLE_H
#define REDDN_TABLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct reddn_table;

enum {
	REDDN_TABLE_MISS = 1, /* the key is not in the table */
	REDDN_TABLE_END = 1,  /* no more entries */
};

/** How to make a table. All 0 is a table for some 10,000 small entries. */
struct reddn_table_options {
	uint64_t capacity;  /* entries to expect; gives `buckets` when that is 0. 0: 10,000 */
	uint64_t buckets;   /* a power of two >= 2. A table takes entries up to about 48 % of it */
	uint64_t heap_size; /* bytes for records, each rounded up to 64. 0: 512 per expected entry */
	uint64_t seed;      /* of the hash. 0: a random one */
	uint32_t max_key;   /* bytes, up to 65536. 0: 65536 */
	uint32_t max_value; /* bytes. 0: 65536. 16 + max_key + max_value < 16 MiB */
	int replace;        /* an existing file of that name is replaced; who has it open keeps the old one */
};

/**
 * Make a table in a new file and open it for writing. The file is complete before it appears under `path`.
 * -EEXIST: there is a file and `replace` is 0. -ENOSPC: its file system is full. -EINVAL: an option is out of
 * range.
 */
int reddn_table_create(struct reddn_table **out, const char *path, const struct reddn_table_options *opt,
	char *err, size_t errlen);

/** The same in an open file or memfd, whose contents are lost. `fd` is duplicated. */
int reddn_table_create_fd(
	struct reddn_table **out, int fd, const struct reddn_table_options *opt, char *err, size_t errlen);

/** Open for writing: exclusive. Without it, the handle reads. */
enum { REDDN_TABLE_WRITE = 1 };

/**
 * Open a table. Everything that readers rely on is checked: -EBADMSG says what is damaged. -EBUSY: there is a
 * writer and REDDN_TABLE_WRITE was asked for. Opening for writing repairs what a killed writer left.
 * The writer's lock belongs to the open file description of `fd` (fcntl(2), open file description locks).
 */
int reddn_table_open(struct reddn_table **out, const char *path, int flags, char *err, size_t errlen);
int reddn_table_open_fd(struct reddn_table **out, int fd, int flags, char *err, size_t errlen);

/** NULL is allowed. */
void reddn_table_close(struct reddn_table *t);

/**
 * Insert the key or replace its value. Old or new, nothing else, is what readers see.
 * -ENOSPC: no room among the buckets or in the heap; the table is as before.
 * -ENOTUNIQ: another key has the same 56-bit fingerprint in the same buckets; make the table anew with
 * another seed. -EMSGSIZE: longer than max_key or max_value. -EINVAL: an empty key. -EROFS: not opened for
 * writing.
 */
int reddn_table_put(struct reddn_table *t, const void *key, size_t key_len, const void *val, size_t val_len);

/** REDDN_TABLE_MISS: it was not there. Errors as for put. */
int reddn_table_delete(struct reddn_table *t, const void *key, size_t key_len);

/**
 * Find a value. `*val` belongs to the handle and is valid until its next call. REDDN_TABLE_MISS: not there.
 * -EAGAIN: a writer moved entries all the time (or died while it moved one), so that "not there" could not be
 * said. -EBADMSG: the record is damaged.
 */
int reddn_table_get(
	struct reddn_table *t, const void *key, size_t key_len, const void **val, size_t *val_len);

struct reddn_table_entry {
	const void *key;
	size_t key_len;
	const void *val;
	size_t val_len;
};

/**
 * The next entry at or after bucket `*pos` (start with 0), which is advanced. Order is that of the buckets:
 * the same for as long as nobody writes. An entry that moves meanwhile may come twice or not at all. The
 * pointers are valid until the handle's next call. REDDN_TABLE_END: no more. -EBADMSG: a damaged record; the
 * next call goes on behind it.
 */
int reddn_table_next(struct reddn_table *t, uint64_t *pos, struct reddn_table_entry *e);

struct reddn_table_stat {
	uint64_t entries;
	uint64_t buckets;
	uint64_t buckets_off; /* of the bucket array (16 bytes each) in the file */
	uint64_t heap_off;    /* of the heap in the file */
	uint64_t heap_size;   /* bytes */
	uint64_t heap_used;   /* bytes; a reading handle knows it as of when it was opened */
	uint64_t live_off;    /* of the line that every reply carries to the client (64 bytes) */
	uint64_t file_size;
	uint64_t hash_seed;
	uint64_t moves; /* twice the entries moved so far; odd while one moves */
	uint64_t epoch; /* differs between a table and the one that replaces it */
	uint32_t max_key;
	uint32_t max_value;
	uint32_t max_record; /* bytes of the largest record there can be */
};

void reddn_table_stat(struct reddn_table *t, struct reddn_table_stat *st);

#ifdef __cplusplus
}
#endif

#endif
