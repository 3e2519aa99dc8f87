/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/generation.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Windows are numbered on and on, over all services: numbers come again after 2^22, when the first are long
 * gone */
enum { WINDOW_NUMBERS = 1 << 22 };

static unsigned next_window;

static void service_free(struct generation *sv)
{
	for (unsigned i = 0; sv->offloads && i < sv->catalog->noffloads; i++)
		offload_close(&sv->offloads[i]);
	for (unsigned i = 0; sv->regions && i < sv->catalog->nregions; i++)
		region_close(&sv->regions[i]);
	for (unsigned i = 0; sv->tenants && i < sv->catalog->ntenants; i++)
		tenant_unref(sv->tenants[i]);
	free(sv->tenants);
	free(sv->offloads);
	free(sv->regions);
	catalog_free(sv->catalog);
	free(sv);
}

DEFINE_CLEANUP(struct generation *, service_free)

static int get_tenants(struct generation *sv, const struct generation_parts *parts)
{
	const struct catalog *c = sv->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->ntenants && r == 0; i++)
		r = tenant_get(&sv->tenants[i], parts->tenants, c->tenants[i].name, parts->dev, parts->arena);
	return r;
}

static int open_regions(struct generation *sv)
{
	const struct catalog *c = sv->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->nregions && r == 0; i++) {
		r = region_open(&sv->regions[i], &c->regions[i], next_window);
		next_window = (next_window + REGION_WINDOWS) % WINDOW_NUMBERS;
	}
	return r;
}

/* The first that may use it */
static struct tenant *user_of(const struct generation *sv, unsigned offload)
{
	for (unsigned i = 0; i < sv->catalog->ntenants; i++)
		if (catalog_allows(&sv->catalog->tenants[i], offload))
			return sv->tenants[i];
	return sv->tenants[0];
}

static int open_offloads(struct generation *sv, struct offload_stats **stats)
{
	const struct catalog *c = sv->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->noffloads && r == 0; i++) {
		r = offload_open(&sv->offloads[i], &c->offloads[i], c, sv->regions, user_of(sv, i)->pd);
		sv->offloads[i].generation = sv;
		sv->offloads[i].stats = offload_stats_get(stats, c->offloads[i].name);
		if (r == 0 && !sv->offloads[i].stats)
			r = -ENOMEM;
	}
	return r;
}

int generation_new(struct generation **out, struct catalog *catalog, const struct generation_parts *parts)
{
	CLEANUP(service_freep) struct generation *sv = calloc(1, sizeof(*sv));
	int r;

	if (!sv) {
		catalog_free(catalog);
		return -ENOMEM;
	}
	sv->catalog = catalog;
	sv->refs = 1;
	sv->regions = calloc(catalog->nregions + 1, sizeof(*sv->regions));
	sv->offloads = calloc(catalog->noffloads + 1, sizeof(*sv->offloads));
	sv->tenants = calloc(catalog->ntenants, sizeof(struct tenant *));
	if (!sv->regions || !sv->offloads || !sv->tenants)
		return -ENOMEM;
	r = get_tenants(sv, parts);
	if (r == 0)
		r = open_regions(sv);
	if (r == 0)
		r = open_offloads(sv, parts->stats);
	if (r < 0)
		return r;
	*out = steal_ptr(&sv);
	return 0;
}

struct generation *generation_ref(struct generation *sv)
{
	sv->refs++;
	return sv;
}

void generation_unref(struct generation *sv)
{
	assert(sv->refs > 0);
	if (--sv->refs == 0)
		service_free(sv);
}

const struct offload *generation_offload(const struct generation *sv, const char *name)
{
	for (unsigned i = 0; i < sv->catalog->noffloads; i++)
		if (strcmp(sv->catalog->offloads[i].name, name) == 0)
			return &sv->offloads[i];
	return NULL;
}

void generation_limit(const struct generation *sv, uint64_t now_us)
{
	for (unsigned i = 0; i < sv->catalog->ntenants; i++)
		tenant_limit(sv->tenants[i], &sv->catalog->tenants[i].limits, now_us);
}

static uint64_t largest(const struct offload *o)
{
	return offload_layout(o, o->conf->depth_max)->size;
}

int generation_check_room(const struct generation *sv, uint64_t room)
{
	for (unsigned i = 0; i < sv->catalog->noffloads; i++)
		if (largest(&sv->offloads[i]) > room) {
			log_error("%s: offload %s: the queues of one client take %" PRIu64
				  " bytes, the arena has room for %" PRIu64
				  "; lower depth_max or instances, or raise \"arena\"",
				sv->catalog->offloads[i].where, sv->catalog->offloads[i].name,
				largest(&sv->offloads[i]), room);
			return -ENOSPC;
		}
	return 0;
}
