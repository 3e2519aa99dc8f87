/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/region.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

enum { LOOK, CHANGE }; /* windows of a raw region */

struct region_keys {
	SLIST_ENTRY(region_keys) link;
	struct rnic_pd *pd;
	bool registered[REGION_WINDOWS];
	struct rnic_window window[REGION_WINDOWS];
};

int region_open(struct region *r, const struct catalog_region *conf, unsigned number)
{
	int e;

	*r = (struct region){.conf = conf, .number = number};
	e = rnic_region_open(&r->file, conf->path);
	if (e < 0) {
		log_errno(e, "%s: region file %s cannot be mapped", conf->where, conf->path);
	} else if (conf->raw) {
		log_info("region %s: %" PRIu64 " bytes%s", conf->name, region_size(r),
			conf->writable ? ", writable" : "");
	} else {
		e = table_open(&r->table, r->file, conf);
	}
	if (e < 0)
		region_close(r);
	return e;
}

void region_close(struct region *r)
{
	struct region_keys *k;

	while ((k = SLIST_FIRST(&r->keys))) {
		SLIST_REMOVE_HEAD(&r->keys, link);
		free(k);
	}
	if (r->file)
		rnic_region_close(r->file);
	*r = (struct region){0};
}

uint64_t region_size(const struct region *r)
{
	return rnic_region_size(r->file);
}

uint64_t region_part_size(const struct region *r, uint8_t part)
{
	switch (part) {
	case CATALOG_BUCKETS:
		return r->table.geometry.buckets * sizeof(struct reddn_bucket);
	case CATALOG_HEAP:
		return r->table.geometry.heap_size;
	case CATALOG_LIVE:
		return sizeof(struct reddn_table_live);
	default:
		return region_size(r);
	}
}

/* Returns which of the windows of a PD a part has; @off is where it begins, @access that of the NIC */
static unsigned place(
	const struct region *r, uint8_t part, bool writable, uint64_t *off, enum rnic_access *access)
{
	switch (part) {
	case CATALOG_BUCKETS:
		*off = r->table.geometry.buckets_off;
		*access = RNIC_REMOTE_READ;
		return 0;
	case CATALOG_HEAP:
		*off = r->table.geometry.heap_off;
		*access = RNIC_LOCAL_READ;
		return 1;
	case CATALOG_LIVE:
		*off = offsetof(struct reddn_table_header, live);
		*access = RNIC_LOCAL_READ;
		return 2;
	default:
		assert(r->conf->raw && (!writable || r->conf->writable));
		*off = 0;
		*access = writable ? RNIC_REMOTE_CHANGE : RNIC_REMOTE_READ;
		return writable ? CHANGE : LOOK;
	}
}

static struct region_keys *keys_of(struct region *r, struct rnic_pd *pd)
{
	struct region_keys *k;

	SLIST_FOREACH (k, &r->keys, link)
		if (k->pd == pd)
			return k;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->pd = pd;
	SLIST_INSERT_HEAD(&r->keys, k, link);
	return k;
}

int region_window(
	struct region *r, struct rnic_pd *pd, uint8_t part, bool writable, struct rnic_window *window)
{
	struct region_keys *k = keys_of(r, pd);
	enum rnic_access access;
	uint64_t off;
	unsigned w = place(r, part, writable, &off, &access);
	int e;

	if (!k)
		return -ENOMEM;
	if (!k->registered[w]) {
		e = rnic_region_window(
			r->file, pd, r->number + w, off, region_part_size(r, part), access, &k->window[w]);
		if (e < 0)
			return log_errno(e, "%s: region file %s cannot be registered with %s", r->conf->where,
				r->conf->path, rnic_device_name(rnic_pd_device(pd)));
		k->registered[w] = true;
	}
	*window = k->window[w];
	return 0;
}
