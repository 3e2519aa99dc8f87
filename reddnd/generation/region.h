/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * region.h - an open region of the catalog: a table, a store or a memcached with its parts, or raw bytes.
 * Programs get windows on it; each PD has windows with keys of its own.
 *
 * The file belongs to an application, and may be of any kind and content at any time. A region whose file
 * cannot be served is *bad*, now or from the moment when that is seen, and stays so.
 *
 * Thread rules: region_open(), region_window(), region_has_window(), region_is_bad() and region_close() may
 * be called on any thread. A thread that wants a window of a region waits while another one registers one.
 */
#ifndef GENERATION_REGION_H
#define GENERATION_REGION_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/generation/held-store.h"
#include "reddnd/generation/memcached.h"
#include "reddnd/generation/table.h"

enum { REGION_WINDOWS = 5, REGION_WHY = 240 }; /* windows of one PD; bytes of a reason */

struct region {
	const struct catalog_region *conf;
	struct rnic_region *file;    /* NULL: it could not be opened */
	struct table table;          /* of kinds "table" and "store" */
	struct held_store *store;    /* of kind "store"; NULL: it could not be opened */
	struct memcached *memcached; /* of kind "memcached"; NULL: it could not be opened */
	/* When its file was last looked at (struct region_look), and 0 if it is bad */
	int moved; /* and 0 of a memcached, which replaces its own file (memcached.h) */
	bool replaced, unfinished;
	uint64_t retired_us; /* when it was first found that another table has replaced it; 0: it was not */
	bool in_memory;      /* the file: reading it does not wait */
	struct region **looked; /* points at this region while its file is being looked at; or NULL */
	unsigned number;
	unsigned refs;
	struct region_state *state;
};

/**
 * Makes a region with the window numbers @number to @number + REGION_WINDOWS - 1, and one reference to it.
 * @conf must outlive it. @fd: the file of a region that is handed over, which stays the caller's, or -1 if it
 * has not been yet. It may be bad, which has been logged. -ENOMEM.
 */
int region_open(struct region **region, const struct catalog_region *conf, unsigned number, int fd);
/** If it is a store: this process is its writer from now on, or the region is bad. */
void region_open_store(struct region *r);
/** When all stores are open: it is bad if chains would change the file of one by it. */
void region_spare_stores(struct region *r);
/* One thread */
struct region *region_ref(struct region *r);
/** True: that was the last reference, and region_close() is the caller's to do. What @r->looked is points at
 * nothing from then on. */
bool region_release(struct region *r);

/** Closes its windows and the file. To give back gigabytes may take a second; any thread. */
void region_close(struct region *r);

/** True if its file cannot be served; @why, if not NULL, gets the reason, a clause with the path. */
bool region_is_bad(const struct region *r, char why[REGION_WHY]);
/** True: @fd is a descriptor of the file that it has open. */
bool region_is_file(const struct region *r, int fd);
/** True if another table has replaced it, and marked it: its readers learn that. When it was last looked at
 * if the file system cannot tell it without waiting (rnic_region_read_cached()). */
bool region_is_retired(const struct region *r);
/** True if it is a store whose file has no name any more, or another file has it: what is put there is lost
 * with the next reload or restart. Not one that is retired, because that is soon opened again. */
bool region_is_lost(const struct region *r);
/** The live line of its table. False: it has none, or to read it one would have to wait. */
bool region_live(const struct region *r, struct reddn_table_live *live);

/** A look at the file of a region. It has a descriptor of its own, because it may not come back: the file
 * system of a file may be one whose server does not answer, as of FUSE or NFS. */
struct region_look {
	struct rnic_region *file;
	struct table table;
	bool is_table;
	uint64_t pinned; /* bytes that its owner must have allocated */
	char *path;      /* NULL: the file has none */
	/* What it finds */
	bool is_cut;         /* it is shorter than it was */
	bool is_overwritten; /* another table is in it */
	bool is_sparse;      /* its owner has given some of it back */
	int moved;           /* rnic_region_at_path() */
	bool is_retired;     /* readers learn from the table that another one has replaced it */
	bool is_unfinished;  /* the writer of the table died in a move */
};

/** Begins one. -ENOENT: there is nothing to look at, @r is bad or has no file; -ENOMEM, -EMFILE. */
int region_look_begin(struct region_look *look, const struct region *r);
/** Looks, and gives back what the look has. Any thread; it may wait for ever. */
void region_look(struct region_look *look);
/** Gives back what a look has that began and is not done. */
void region_look_end(struct region_look *look);

enum { REGION_MOVED = 1, REGION_UNFINISHED = 2 };

/** Takes what @look found: the region may be bad from now on. Returns what is new. */
unsigned region_looked(struct region *r, const struct region_look *look);

/** Bytes of the file, or of the part that it is; 0 if it is not open. */
uint64_t region_size(const struct region *r);
/** Bytes of a part (enum catalog_part), and where it begins in the file. */
uint64_t region_part_size(const struct region *r, uint8_t part);
uint64_t region_part_off(const struct region *r, uint8_t part);

/**
 * The window on a part for queues of @pd; the first call registers it, which may take seconds. Errors have
 * been logged. They do not make the region bad: this may be a matter of the PD.
 */
int region_window(
	struct region *r, struct rnic_pd *pd, uint8_t part, bool writable, struct rnic_window *window);
/** The memory of a part, for the CPU (rnic_region_at()). */
uint8_t *region_memory(const struct region *r, uint8_t part);
/** True if region_window() would find it registered. */
bool region_has_window(struct region *r, struct rnic_pd *pd, uint8_t part, bool writable);

#endif
