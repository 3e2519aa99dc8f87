/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/generation.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Numbers of windows continue over all generations. They repeat after 2^22, when the first windows are long
 * gone */
enum { WINDOW_NUMBERS = 1 << 22 };

static unsigned next_window;

static void generation_free(struct generation *g)
{
	for (unsigned i = 0; g->offloads && i < g->catalog->noffloads; i++)
		offload_close(&g->offloads[i]);
	for (unsigned i = 0; g->regions && i < g->catalog->nregions; i++)
		region_close(&g->regions[i]);
	for (unsigned i = 0; g->tenants && i < g->catalog->ntenants; i++)
		tenant_unref(g->tenants[i]);
	free(g->tenants);
	free(g->offloads);
	free(g->regions);
	catalog_free(g->catalog);
	free(g);
}

DEFINE_CLEANUP(struct generation *, generation_free)

static int get_tenants(struct generation *g, const struct generation_parts *parts)
{
	const struct catalog *c = g->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->ntenants && r == 0; i++)
		r = tenant_get(&g->tenants[i], parts->tenants, c->tenants[i].name, parts->dev, parts->arena);
	return r;
}

static int open_regions(struct generation *g)
{
	const struct catalog *c = g->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->nregions && r == 0; i++) {
		r = region_open(&g->regions[i], &c->regions[i], next_window);
		next_window = (next_window + REGION_WINDOWS) % WINDOW_NUMBERS;
	}
	return r;
}

/* The first tenant that may use the offload */
static struct tenant *user_of(const struct generation *g, unsigned offload)
{
	for (unsigned i = 0; i < g->catalog->ntenants; i++)
		if (catalog_allows(&g->catalog->tenants[i], offload))
			return g->tenants[i];
	return g->tenants[0];
}

static int open_offloads(struct generation *g, struct offload_stats **stats)
{
	const struct catalog *c = g->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->noffloads && r == 0; i++) {
		r = offload_open(&g->offloads[i], &c->offloads[i], c, g->regions, user_of(g, i)->pd);
		g->offloads[i].generation = g;
		g->offloads[i].stats = offload_stats_get(stats, c->offloads[i].name);
		if (r == 0 && !g->offloads[i].stats)
			r = -ENOMEM;
	}
	return r;
}

int generation_new(struct generation **out, struct catalog *catalog, const struct generation_parts *parts)
{
	CLEANUP(generation_freep) struct generation *g = calloc(1, sizeof(*g));
	int r;

	if (!g) {
		catalog_free(catalog);
		return -ENOMEM;
	}
	g->catalog = catalog;
	g->refs = 1;
	g->regions = calloc(catalog->nregions + 1, sizeof(*g->regions));
	g->offloads = calloc(catalog->noffloads + 1, sizeof(*g->offloads));
	g->tenants = calloc(catalog->ntenants, sizeof(struct tenant *));
	if (!g->regions || !g->offloads || !g->tenants)
		return -ENOMEM;
	r = get_tenants(g, parts);
	if (r == 0)
		r = open_regions(g);
	if (r == 0)
		r = open_offloads(g, parts->stats);
	if (r < 0)
		return r;
	*out = steal_ptr(&g);
	return 0;
}

struct generation *generation_ref(struct generation *g)
{
	g->refs++;
	return g;
}

void generation_unref(struct generation *g)
{
	assert(g->refs > 0);
	if (--g->refs == 0)
		generation_free(g);
}

const struct offload *generation_offload(const struct generation *g, const char *name)
{
	for (unsigned i = 0; i < g->catalog->noffloads; i++)
		if (strcmp(g->catalog->offloads[i].name, name) == 0)
			return &g->offloads[i];
	return NULL;
}

void generation_limit(const struct generation *g, uint64_t now_us)
{
	for (unsigned i = 0; i < g->catalog->ntenants; i++)
		tenant_limit(g->tenants[i], &g->catalog->tenants[i].limits, now_us);
}

static uint64_t largest(const struct offload *o)
{
	return offload_layout(o, o->conf->depth_max)->size;
}

int generation_check_room(const struct generation *g, uint64_t room)
{
	for (unsigned i = 0; i < g->catalog->noffloads; i++)
		if (largest(&g->offloads[i]) > room) {
			log_error("%s: offload %s: the queues of one client take %" PRIu64
				  " bytes, the arena has room for %" PRIu64
				  "; lower depth_max or instances, or raise \"arena\"",
				g->catalog->offloads[i].where, g->catalog->offloads[i].name,
				largest(&g->offloads[i]), room);
			return -ENOSPC;
		}
	return 0;
}
