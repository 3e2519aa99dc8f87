/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/region.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

enum { LOOK, CHANGE }; /* windows of a raw region */

#define REFUSED_BY_KERNEL                                                                                    \
	" (it has holes that cannot be filled, or is shorter now; before Linux 6.2 the daemon must be "      \
	"allowed "                                                                                           \
	"to write to it, outside of /dev/shm by ReadWritePaths= in its unit)"

struct region_keys {
	SLIST_ENTRY(region_keys) link;
	struct rnic_pd *pd;
	bool registered[REGION_WINDOWS];
	struct rnic_window window[REGION_WINDOWS];
};

/* What more than one thread uses */
struct region_state {
	pthread_mutex_t lock;
	pthread_mutex_t registering; /* held while a window is registered, which may take seconds */
	SLIST_HEAD(, region_keys) keys;
	char bad[REGION_WHY]; /* "": it can be served */
};

static void set_bad(struct region *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void set_bad(struct region *r, const char *format, ...)
{
	char why[REGION_WHY];
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, sizeof(why), format, ap);
	va_end(ap);
	pthread_mutex_lock(&r->state->lock);
	memcpy(r->state->bad, why, sizeof(why));
	pthread_mutex_unlock(&r->state->lock);
	if (r->store)
		held_store_end(r->store);
	log_error("%s: region %s cannot be served: %s", r->conf->where, r->conf->name, why);
}

static const char *words_of(int error)
{
	switch (error) {
	case -ENODATA:
		return "it is empty";
	case -EROFS:
		return "read-only file system; a service needs ReadWritePaths= in its unit to open it for "
		       "writing";
	default:
		return file_error(error);
	}
}

static void open_table(struct region *r)
{
	const struct table_geometry *g = &r->table.geometry;
	char why[200] = "";

	if (table_open(&r->table, r->file, why, sizeof(why)) < 0) {
		set_bad(r, "file %s: %s", r->conf->path, why);
	} else if (r->conf->store && !g->header) {
		set_bad(r, "file %s: it is a table, and no store; kind = \"table\" serves it", r->conf->path);
	} else if (!r->conf->store && g->header) {
		set_bad(r, "file %s: it is a store; kind = \"store\" serves it", r->conf->path);
	} else {
		r->retired_us = table_is_retired(r->file) ? clock_us() : 0;
		log_info("region %s: %" PRIu64 " buckets, heap of %" PRIu64
			 " bytes, keys to %u, values to %u bytes",
			r->conf->name, g->buckets, g->heap_size, g->max_key, g->max_value);
	}
}

/* On the thread of the cache, after region_open() */
static void on_cache_failed(void *arg, const char *why)
{
	struct region *r = arg;

	set_bad(r, "file %s: %s", r->conf->path, why);
}

static int open_cache(struct region *r)
{
	char why[PROOF_WHY] = "";
	int e = memcached_open(&r->memcached, r->conf, r->file, on_cache_failed, r, why);

	if (e == -ENOMEM)
		return e;
	if (e < 0)
		set_bad(r, "file %s: %s", r->conf->path, why);
	else
		log_info("region %s: a memcached with %" PRIu64 " bytes for items", r->conf->name,
			memcached_header(r->memcached)->pages_size);
	return 0;
}

/* Bytes that registering it pins, however often that is */
static uint64_t pinned_size(const struct region *r)
{
	return r->conf->raw ? region_size(r)
			    : region_part_size(r, CATALOG_BUCKETS) + region_part_size(r, CATALOG_HEAP);
}

/* Registering a hole allocates it, and the daemon pays for that: for an owner only in so far as he has paid
 * for as much. Which bytes he has allocated the kernel does not tell. */
static bool is_sparse(const struct rnic_region *file, uint64_t pinned)
{
	return rnic_region_allocated(file) < pinned;
}

#define SPARSE                                                                                               \
	"file %s has holes: %" PRIu64 " of the %" PRIu64                                                     \
	" bytes that the NIC reads are allocated; its owner must allocate all of them, as with "             \
	"fallocate(2), before he hands it over, and punch no holes into it"

static void check_allocation(struct region *r)
{
	uint64_t pinned = pinned_size(r), allocated = rnic_region_allocated(r->file);

	if (!is_sparse(r->file, pinned))
		return;
	if (r->conf->handover)
		set_bad(r, SPARSE, r->conf->path, allocated, pinned);
	else if (r->in_memory)
		log_notice("region %s: %" PRIu64 " of its %" PRIu64
			   " bytes have no memory yet; registering allocates them",
			r->conf->name, pinned - allocated, pinned);
}

/* Of the part of its file that a raw region is; at least one byte */
static uint64_t end_of(const struct catalog_region *conf)
{
	return conf->offset + (conf->length ? conf->length : 1);
}

static int open_file(struct region *r, int fd)
{
	const struct catalog_region *conf = r->conf;
	const bool changes = conf->writable || conf->store;
	int e = 0;

	if (!conf->handover)
		e = rnic_region_open(&r->file, conf->path, changes);
	else if (fd >= 0)
		e = rnic_region_open_fd(&r->file, fd, conf->writable);
	r->in_memory = r->file && rnic_region_in_memory(r->file);
	if (e < 0)
		set_bad(r, "file %s: %s", conf->path, words_of(e));
	else if (!r->file)
		set_bad(r, "user %u has not handed its file over yet", conf->owner);
	else if (conf->owned && rnic_region_owner(r->file) != conf->owner)
		set_bad(r, "file %s: it belongs to user %u, not to user %u, its \"owner\"", conf->path,
			rnic_region_owner(r->file), conf->owner);
	else if (conf->handover && rnic_region_size(r->file) > conf->size_max)
		set_bad(r,
			"file %s: it has %" PRIu64 " bytes, \"size_max\" of the region is %" PRIu64
			"; hand a smaller one over, or raise \"size_max\"",
			conf->path, rnic_region_size(r->file), conf->size_max);
	else if (changes && !r->in_memory)
		set_bad(r,
			"file %s: a NIC can change files on tmpfs and hugetlbfs only, such as those in "
			"/dev/shm",
			conf->path);
	else if (conf->memcached)
		return open_cache(r);
	else if (!conf->raw)
		open_table(r);
	else if (rnic_region_size(r->file) < end_of(conf))
		set_bad(r, "file %s: it has %" PRIu64 " bytes, and the part that is served ends at %" PRIu64,
			conf->path, rnic_region_size(r->file), end_of(conf));
	else
		log_info("region %s: %" PRIu64 " bytes%s", conf->name, region_size(r),
			conf->writable ? ", writable" : "");
	if (!region_is_bad(r, NULL))
		check_allocation(r);
	return 0;
}

int region_open(struct region **out, const struct catalog_region *conf, unsigned number, int fd)
{
	CLEANUP(cleanup_free) struct region *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->state = calloc(1, sizeof(*r->state));
	if (!r->state)
		return -ENOMEM;
	pthread_mutex_init(&r->state->lock, NULL);
	pthread_mutex_init(&r->state->registering, NULL);
	r->conf = conf;
	r->number = number;
	r->refs = 1;
	if (open_file(r, fd) < 0) {
		region_close(steal_ptr(&r));
		return -ENOMEM;
	}
	*out = steal_ptr(&r);
	return 0;
}

void region_open_store(struct region *r)
{
	char why[200] = "";

	if (!r->conf->store || r->store || region_is_bad(r, NULL))
		return;
	if (held_store_get(&r->store, &r->table, r->file, why, sizeof(why)) < 0)
		set_bad(r, "file %s: %s", r->conf->path, why);
	else if (*why)
		log_warning("region %s: file %s: %s", r->conf->name, r->conf->path, why);
}

void region_spare_stores(struct region *r)
{
	if (r->conf->writable && !region_is_bad(r, NULL) && held_store_has(r->file))
		set_bad(r, "file %s: it is that of a store, which no other region may change", r->conf->path);
}

struct region *region_ref(struct region *r)
{
	r->refs++;
	return r;
}

bool region_release(struct region *r)
{
	if (--r->refs > 0)
		return false;
	if (r->looked)
		*r->looked = NULL;
	return true;
}

void region_close(struct region *r)
{
	struct region_keys *k;

	if (r->memcached)
		memcached_close(r->memcached);
	if (r->store)
		held_store_unref(r->store);
	while ((k = SLIST_FIRST(&r->state->keys))) {
		SLIST_REMOVE_HEAD(&r->state->keys, link);
		for (unsigned w = 0; w < REGION_WINDOWS; w++)
			rnic_window_close(&k->window[w]);
		free(k);
	}
	if (r->file)
		rnic_region_close(r->file);
	pthread_mutex_destroy(&r->state->lock);
	pthread_mutex_destroy(&r->state->registering);
	free(r->state);
	free(r);
}

bool region_is_bad(const struct region *r, char why[REGION_WHY])
{
	bool bad;

	pthread_mutex_lock(&r->state->lock);
	bad = *r->state->bad;
	if (why)
		memcpy(why, r->state->bad, REGION_WHY);
	pthread_mutex_unlock(&r->state->lock);
	if (bad || !r->store || !held_store_is_bad(r->store))
		return bad;
	if (why)
		snprintf(why, REGION_WHY, "file %s has been cut off or overwritten", r->conf->path);
	return true;
}

bool region_is_file(const struct region *r, int fd)
{
	return r->file && rnic_region_is_file(r->file, fd);
}

static bool is_table(const struct region *r)
{
	return !r->conf->raw && !r->conf->memcached;
}

bool region_is_retired(const struct region *r)
{
	int cached;

	if (!r->file || !is_table(r) || region_is_bad(r, NULL))
		return false;
	if (r->in_memory)
		return table_is_retired(r->file);
	/* Another file system may let who reads wait; what the NIC reads of the file is in the page cache */
	cached = table_is_retired_cached(r->file);
	return cached < 0 ? r->retired_us != 0 : cached;
}

bool region_is_lost(const struct region *r)
{
	return r->store && r->moved && !region_is_retired(r);
}

bool region_live(const struct region *r, struct reddn_table_live *live)
{
	return r->file && is_table(r) && !region_is_bad(r, NULL) && table_live(r->file, r->in_memory, live);
}

int region_look_begin(struct region_look *look, const struct region *r)
{
	int e;

	*look = (struct region_look){.is_table = is_table(r), .table = r->table};
	if (!r->file || region_is_bad(r, NULL))
		return -ENOENT;
	if (r->conf->handover) {
		look->pinned = pinned_size(r);
	} else {
		look->path = strdup(r->conf->path);
		if (!look->path)
			return -ENOMEM;
	}
	e = rnic_region_copy(&look->file, r->file);
	if (e < 0)
		free(steal_ptr(&look->path));
	return e;
}

void region_look_end(struct region_look *look)
{
	rnic_region_close(steal_ptr(&look->file));
	free(steal_ptr(&look->path));
}

void region_look(struct region_look *look)
{
	look->is_cut = !rnic_region_is_whole(look->file);
	look->is_overwritten = look->is_table && table_is_overwritten(&look->table, look->file);
	look->is_sparse = is_sparse(look->file, look->pinned);
	look->moved = look->path ? rnic_region_at_path(look->file, look->path) : 0;
	look->is_retired = look->is_table && table_is_retired(look->file);
	look->is_unfinished = look->is_table && table_is_unfinished(look->file);
	region_look_end(look);
}

static unsigned is_new(struct region *r, int moved, bool unfinished)
{
	unsigned news = (moved && !r->moved ? REGION_MOVED : 0) |
			(unfinished && !r->unfinished ? REGION_UNFINISHED : 0);

	r->moved = moved;
	r->unfinished = unfinished;
	return news;
}

unsigned region_looked(struct region *r, const struct region_look *look)
{
	bool was_bad = region_is_bad(r, NULL); /* that of a memcached finds out by itself */

	r->replaced = false;
	if (!look->is_retired)
		r->retired_us = 0;
	else if (!r->retired_us)
		r->retired_us = clock_us();
	if (!was_bad && look->is_cut)
		set_bad(r, "file %s has been cut to less than the %" PRIu64 " bytes that it had",
			r->conf->path, rnic_region_size(r->file));
	else if (!was_bad && look->is_overwritten)
		set_bad(r,
			"file %s has been overwritten with another table, as by cp(1); write another file "
			"and rename it",
			r->conf->path);
	else if (!was_bad && look->is_sparse)
		set_bad(r, SPARSE, r->conf->path, rnic_region_allocated(r->file), look->pinned);
	if (was_bad || look->is_cut || look->is_overwritten || look->is_sparse)
		return is_new(r, 0, false);
	/* Who puts does not learn it from a store that is marked */
	r->replaced = look->is_table && look->moved == -ESTALE && (!look->is_retired || r->store);
	return is_new(r, r->conf->memcached && look->moved == -ESTALE ? 0 : look->moved, look->is_unfinished);
}

uint64_t region_size(const struct region *r)
{
	uint64_t file = r->file ? rnic_region_size(r->file) : 0;

	if (r->conf->length)
		return r->conf->length;
	return file > r->conf->offset ? file - r->conf->offset : 0;
}

/* Where a part is in the file, which of the windows of a PD it has, and what the NIC does there */
struct place {
	uint64_t off, size;
	enum rnic_access access;
	unsigned window;
};

static struct place place_of(const struct region *r, uint8_t part, bool writable)
{
	const struct reddn_cache_header *cache = r->memcached ? memcached_header(r->memcached) : NULL;
	const struct table_geometry *g = &r->table.geometry;

	switch (part) {
	case CATALOG_BUCKETS:
		return (struct place){g->buckets_off, g->buckets * sizeof(struct reddn_bucket),
			writable ? RNIC_REMOTE_ATOMIC : RNIC_REMOTE_READ, writable ? 3 : 0};
	case CATALOG_HEAP:
		return (struct place){g->heap_off, g->heap_size,
			writable ? RNIC_LOCAL_WRITE : RNIC_LOCAL_READ, writable ? 4 : 1};
	case CATALOG_LIVE:
		return (struct place){offsetof(struct reddn_table_header, live),
			sizeof(struct reddn_table_live), RNIC_LOCAL_READ, 2};
	case CATALOG_CACHE_TABLES:
		return (struct place){
			cache->tables_off, cache->pages_off - cache->tables_off, RNIC_REMOTE_READ, 0};
	case CATALOG_CACHE_ITEMS:
		return (struct place){0, cache->file_size, RNIC_REMOTE_READ, 1};
	case CATALOG_CACHE_LIVE:
		return (struct place){REDDN_CACHE_NULL + offsetof(struct reddn_cache_header, live),
			sizeof(struct reddn_cache_live) + sizeof(struct reddn_cache_served), RNIC_LOCAL_READ,
			2};
	default:
		return (struct place){r->conf->offset, region_size(r),
			writable ? RNIC_REMOTE_CHANGE : RNIC_REMOTE_READ, writable ? CHANGE : LOOK};
	}
}

uint64_t region_part_size(const struct region *r, uint8_t part)
{
	return place_of(r, part, false).size;
}

uint64_t region_part_off(const struct region *r, uint8_t part)
{
	return place_of(r, part, false).off;
}

/* With the lock held */
static struct region_keys *keys_of(struct region *r, const struct rnic_pd *pd)
{
	struct region_keys *k;

	SLIST_FOREACH (k, &r->state->keys, link)
		if (k->pd == pd)
			return k;
	return NULL;
}

/* False: the window is not registered; *@keys are those of the PD, NULL if there is no memory for them */
static bool find_window(struct region *r, struct rnic_pd *pd, unsigned w, struct region_keys **keys)
{
	bool registered;

	pthread_mutex_lock(&r->state->lock);
	*keys = keys_of(r, pd);
	if (!*keys) {
		*keys = calloc(1, sizeof(**keys));
		if (*keys) {
			(*keys)->pd = pd;
			SLIST_INSERT_HEAD(&r->state->keys, *keys, link);
		}
	}
	registered = *keys && (*keys)->registered[w];
	pthread_mutex_unlock(&r->state->lock);
	return registered;
}

bool region_has_window(struct region *r, struct rnic_pd *pd, uint8_t part, bool writable)
{
	struct region_keys *k;

	return find_window(r, pd, place_of(r, part, writable).window, &k);
}

/* One thread at a time: a reload and the first session of a tenant may want the same window */
static int register_window(
	struct region *r, struct rnic_pd *pd, const struct place *p, struct region_keys **keys)
{
	const unsigned w = p->window;
	int e = 0;

	pthread_mutex_lock(&r->state->registering);
	if (r->conf->handover && is_sparse(r->file, pinned_size(r))) {
		e = -ENODATA;
	} else if (!find_window(r, pd, w, keys)) {
		e = *keys ? rnic_region_window(r->file, pd, r->number + w, p->off, p->size, p->access,
				    &(*keys)->window[w])
			  : -ENOMEM;
		if (e == 0) {
			pthread_mutex_lock(&r->state->lock);
			(*keys)->registered[w] = true;
			pthread_mutex_unlock(&r->state->lock);
		}
	}
	pthread_mutex_unlock(&r->state->registering);
	return e;
}

int region_window(
	struct region *r, struct rnic_pd *pd, uint8_t part, bool writable, struct rnic_window *window)
{
	const struct place p = place_of(r, part, writable);
	struct region_keys *k;
	int e;

	assert(part != CATALOG_WHOLE || (r->conf->raw && (!writable || r->conf->writable)));
	if (!find_window(r, pd, p.window, &k)) {
		e = register_window(r, pd, &p, &k);
		if (e < 0)
			return log_errno(e, "%s: region file %s cannot be registered with %s%s",
				r->conf->where, r->conf->path, rnic_device_name(rnic_pd_device(pd)),
				e == -EFAULT    ? REFUSED_BY_KERNEL
				: e == -ENODATA ? " (its owner has punched holes into it)"
						: "");
	}
	*window = k->window[p.window];
	return 0;
}

uint8_t *region_memory(const struct region *r, uint8_t part)
{
	const struct place p = place_of(r, part, false);

	/* as rnic_region_window() does: clients would read what the daemon has behind it */
	assert(p.off <= rnic_region_size(r->file) && p.size <= rnic_region_size(r->file) - p.off);
	return rnic_region_at(r->file, p.off);
}
