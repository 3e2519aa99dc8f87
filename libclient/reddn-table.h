/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn-table.h - tables that NICs read: a hash table of byte strings in a file (tmpfs, hugetlbfs, pmem, any
 * file that can be mapped) or a memfd. See reddn-table(1) and libreddn(3).
 *
 * One process writes. The NIC of reddnd and any number of read-only handles read at the same time, without
 * locks. A get never returns a wrong or torn value, and never misses a key that was present throughout.
 *
 * Functions return 0, a positive outcome that they document, or -errno. A function with `err` puts the reason
 * of a failure there, in words; `err` may be NULL. One thread at a time uses a handle.
 *
 * A writer that is killed leaves a table that can be read and opened again; its last operation happened
 * completely or not at all. There is no such promise for a loss of power.
 */
#ifndef REDDN_TABLE_H
#define REDDN_TABLE_H

#include "reddn-as-of.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An open table. */
struct reddn_table;

enum {
	REDDN_TABLE_MISS = 1, /* the key is not in the table */
	REDDN_TABLE_END = 1,  /* no more entries; the table does not grow, or no longer */
};

/** How to make a table. All 0: a table for about 10,000 small entries. */
struct reddn_table_options {
	uint64_t capacity;  /* expected entries; determines `buckets` if that is 0. 0: 10,000 */
	uint64_t buckets;   /* a power of two >= 2. Entries can fill up to about 48 % of them */
	uint64_t heap_size; /* bytes for records, each rounded up to 64. 0: 512 per expected entry */
	uint64_t seed;      /* of the hash. 0: a random one */
	uint32_t max_key;   /* bytes, up to 65536. 0: 65536 */
	uint32_t max_value; /* bytes. 0: 65536. 16 + max_key + max_value < 16 MiB - 7 */
	int replace;        /* replace an existing table of that name; see reddn_table_create */
	int grow;           /* puts make it larger when it is nearly full; see reddn_table_grow */
	/* A store, which reddnd writes for its clients: the handle only reads. max_key 0: 256, max_value 0:
	 * 1024, heap_size 0: room for the longest record of each expected entry */
	int store;
	int evict; /* of a store: where there is no room for a key, entries go that were put long ago */
	/* Of a store: a table that is open for writing, whose entries, buckets and seed it gets; else NULL.
	 * -ENOSPC: the heap is too small for them. -EMSGSIZE: one is too long. -EBADMSG: one is damaged */
	struct reddn_table *from;
};

/**
 * Make a table in a new file and open it for writing; reddn_table_close frees the handle. The file is
 * complete before it appears under `path`. -EEXIST: there is a file and `replace` is 0, or the file is
 * neither a table nor empty. -ENOSPC: its file system is full. -EFBIG: the process may not make a file that
 * large (RLIMIT_FSIZE). -EINVAL: an option is out of range.
 *
 * A table that is replaced is marked before: clients of reddnd get -ESTALE, and its writer does. Handles that
 * read it keep it. The caller needs write access to its file: -EACCES. -ELOOP: `path` is a symbolic link.
 * -EBUSY: another process, which may write the file, has its name locked for more than 5 seconds
 * (reddn-table-format(5)); replacing takes two system calls; or it is a store, and reddnd serves it. The new
 * file has the rights that any new file of the caller's has there.
 */
int reddn_table_create(struct reddn_table **out, const char *path, const struct reddn_table_options *opt,
	char *err, size_t errlen);

/** Make a table in an open file or memfd, whose contents are lost. Duplicates `fd`. Otherwise as
 * reddn_table_create. */
int reddn_table_create_fd(
	struct reddn_table **out, int fd, const struct reddn_table_options *opt, char *err, size_t errlen);

/** Flag of reddn_table_open: open for writing, exclusively. Without it the handle is read-only. */
enum { REDDN_TABLE_WRITE = 1 };

/**
 * Open a table; reddn_table_close frees the handle. Checks everything that readers rely on. Opening for
 * writing repairs what a killed writer left. -EBADMSG: the table is damaged; `err` names the place. -EBUSY:
 * REDDN_TABLE_WRITE, and another writer has the table open. -EROFS: REDDN_TABLE_WRITE, and it is a store,
 * which reddnd writes. The writer's lock belongs to the open file description of `fd` (fcntl(2), open file
 * description locks). -ESTALE: reddn_table_open_fd with REDDN_TABLE_WRITE, and the table is marked as
 * replaced. reddn_table_open finds the one that has the name; if that is marked, who replaced it has died
 * before it was, and it is used again.
 */
int reddn_table_open(struct reddn_table **out, const char *path, int flags, char *err, size_t errlen);
int reddn_table_open_fd(struct reddn_table **out, int fd, int flags, char *err, size_t errlen);

/** What opening a table for writing has repaired. */
struct reddn_table_repair {
	uint32_t moves;        /* unfinished moves of an entry, completed or undone: 0 or 1 */
	uint32_t replacements; /* the table was marked as replaced, and was not: 0 or 1 */
	uint64_t entries;      /* incomplete entries removed, of which no reader saw anything */
};

/** What opening the table repaired, of a handle that writes; otherwise zero. */
void reddn_table_repaired(const struct reddn_table *t, struct reddn_table_repair *repair);

/** Free the handle; the table stays. NULL is allowed. */
void reddn_table_close(struct reddn_table *t);

/**
 * Insert the key or replace its value. Readers see the old value or the new one, nothing else.
 * -ENOSPC: no room in the buckets or in the heap; the table is unchanged. -ENOTUNIQ: another key has the same
 * 48-bit fingerprint in the same buckets; make the table again with another seed. -EMSGSIZE: longer than
 * max_key or max_value. -EINVAL: an empty key. -EROFS: not opened for writing. -ESTALE: another table has
 * replaced it. -EBADMSG: the key's bucket is damaged.
 */
int reddn_table_put(struct reddn_table *t, const void *key, size_t key_len, const void *val, size_t val_len);

/** Remove the key. REDDN_TABLE_MISS: it was absent. Errors as for reddn_table_put. */
int reddn_table_delete(struct reddn_table *t, const void *key, size_t key_len);

/**
 * Begin to make the table larger while its readers and its writer go on. `opt` is about the larger one; 0:
 * twice the buckets and heap, and the same limits and seed; `replace` and `grow` are ignored. It is made
 * beside the table, in a file of its own with the same owner, mode and ACL, so there is memory for both
 * meanwhile. To reserve it may take a second per gigabyte.
 *
 * From then on each put and delete goes to both, and copies the entries of 32 buckets;
 * reddn_table_grow_step copies more. When all are there, the larger table takes the name, the old one is
 * marked as one that was replaced (reddn_table_create), and the handle has the larger one. A writer that is
 * killed before leaves the table as it is, and a file TABLE.N.new (N: 16 hexadecimal digits), which the next
 * that grows or replaces the table removes. reddn_table_close ends the growth, too.
 *
 * A table that was made with `grow` begins that by itself when 5/12 of its buckets or 3/4 of its heap are in
 * use; then each put and delete reserves a part of the memory first. A put that finds no room does the rest
 * at once. If the table cannot grow, it tries again with 1/8 more entries, or when a put finds no room.
 *
 * -EROFS: not opened for writing. -EINVAL: an option is out of range, or the table was opened by a
 * descriptor. -EALREADY: it grows already. -ESTALE: another table has replaced it. Otherwise as
 * reddn_table_create.
 */
int reddn_table_grow(struct reddn_table *t, const struct reddn_table_options *opt, char *err, size_t errlen);

/**
 * Copy the entries of up to `buckets` buckets of a table that grows. 0: call again. REDDN_TABLE_END: done, or
 * it does not grow. -errno: the growth has failed, now or in an earlier put or delete, and the table is as it
 * was: -ENOSPC or -EMSGSIZE: the larger one is too small for the entries; -ENOTUNIQ: choose another seed;
 * -EBADMSG: a record is damaged; -ESTALE: another table has taken the name. -EBUSY: all entries are there,
 * but another process has the name locked; the growth goes on, and the next put, delete or step tries again.
 */
int reddn_table_grow_step(struct reddn_table *t, uint64_t buckets, char *err, size_t errlen);

/**
 * Find a value. `*val` belongs to the handle and is valid until the next call on it. REDDN_TABLE_MISS:
 * absent. -EAGAIN: a writer moved entries all the time, or died during a move, so that a miss is not certain.
 * -EBADMSG: the record is damaged. -EINVAL: an empty key. -EMSGSIZE: longer than max_key.
 */
int reddn_table_get(
	struct reddn_table *t, const void *key, size_t key_len, const void **val, size_t *val_len);

/** One entry; the pointers belong to the handle. */
struct reddn_table_entry {
	const void *key;
	size_t key_len;
	const void *val;
	size_t val_len;
	uint64_t expires; /* of a store: ms, CLOCK_REALTIME; 0: never */
};

/**
 * The next entry at or after bucket `*pos` (start with 0), which it advances. Entries come in the order of
 * the buckets, which is the same as long as nobody writes. An entry that moves meanwhile may come twice or
 * not at all. The pointers are valid until the next call on the handle. REDDN_TABLE_END: no more. -EBADMSG: a
 * damaged record; the next call continues behind it.
 */
int reddn_table_next(struct reddn_table *t, uint64_t *pos, struct reddn_table_entry *e);

struct reddn_table_stat {
	uint64_t entries;
	uint64_t buckets;
	uint64_t buckets_off; /* offset of the bucket array (16 bytes each) in the file */
	uint64_t heap_off;    /* offset of the heap in the file */
	uint64_t heap_size;   /* bytes */
	uint64_t heap_used;   /* bytes; for a read-only handle, when it was opened */
	uint64_t live_off;  /* offset of the live line (64 bytes), which every reply carries to the client */
	uint64_t file_size; /* bytes */
	uint64_t hash_seed;
	uint64_t moves;      /* twice the number of moves so far; odd during a move */
	uint64_t epoch;      /* differs between a table and its replacement; 0: it was replaced */
	uint32_t max_key;    /* bytes */
	uint32_t max_value;  /* bytes */
	uint32_t max_record; /* bytes of the largest possible record */
	int grow;            /* of the options it was made with */
	uint32_t header;     /* a store: bytes before each record; 0: a table */
	uint64_t idle;       /* of a store: buckets whose key has no record, when it was opened */
	int evict;           /* of the options it was made with */
	uint32_t slot;       /* the first slot whose keys it has, see reddn_table_set_slots */
	uint32_t slots;      /* how many; 0: it does not state that */
	struct reddn_as_of as_of;
};

/**
 * State how new the table is, for readers and for clients of reddnd; it stays so until it is stated again. A
 * larger table has it as well (reddn_table_grow). To be called when all changes until then are in the table,
 * and before a change after which it is not complete any more. When `epoch` changes, readers see no as-of for
 * a moment. -EINVAL: unknown flags, without REDDN_FOLLOWS anything that is not 0, or another `origin` with
 * the same `epoch`. -EROFS: not opened for writing. -ESTALE: another table has replaced it.
 */
int reddn_table_set_as_of(struct reddn_table *t, const struct reddn_as_of *as_of);

/**
 * State which slots of a cluster of Redis the table has: all keys of `n` slots from `first` on; 0: none, or
 * it is not known. Clients with REDDN_SHARDS_REDIS (reddn.h) go by that. A table of other slots has another
 * epoch in reddn_as_of: state 0 slots, that epoch, and then the slots when their keys are there. A larger
 * table has them as well (reddn_table_grow). -EINVAL: there are 16384 slots, or the table follows no source.
 * -EROFS: not opened for writing. -ESTALE: another table has replaced it.
 */
int reddn_table_set_slots(struct reddn_table *t, unsigned first, unsigned n);

/** Properties and counters of the table. */
void reddn_table_stat(struct reddn_table *t, struct reddn_table_stat *st);

#ifdef __cplusplus
}
#endif

#endif
