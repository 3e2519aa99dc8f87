/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/generation.h"

#include "reddnd/util/cleanup.h"
#include "reddnd/util/log.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Windows are numbered on and on, over all services: numbers come again after 2^22, when the first are long gone */
enum { WINDOW_NUMBERS = 1 << 22 };

static unsigned next_window;

static void service_free(struct service *sv)
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

DEFINE_CLEANUP(struct service *, service_free)

static int get_tenants(struct service *sv, const struct service_parts *parts)
{
	const struct catalog *c = sv->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->ntenants && r == 0; i++)
		r = tenant_get(&sv->tenants[i], parts->tenants, c->tenants[i].name, parts->dev, parts->arena);
	return r;
}

static int open_regions(struct service *sv)
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
static struct tenant *user_of(const struct service *sv, unsigned offload)
{
	for (unsigned i = 0; i < sv->catalog->ntenants; i++)
		if (catalog_allows(&sv->catalog->tenants[i], offload))
			return sv->tenants[i];
	return sv->tenants[0];
}

static int open_offloads(struct service *sv, struct totals **totals)
{
	const struct catalog *c = sv->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->noffloads && r == 0; i++) {
		r = offload_open(&sv->offloads[i], &c->offloads[i], c, sv->regions, user_of(sv, i)->pd);
		sv->offloads[i].service = sv;
		sv->offloads[i].totals = totals_get(totals, c->offloads[i].name);
		if (r == 0 && !sv->offloads[i].totals)
			r = -ENOMEM;
	}
	return r;
}

int service_new(struct service **out, struct catalog *catalog, const struct service_parts *parts)
{
	CLEANUP(service_freep) struct service *sv = calloc(1, sizeof *sv);
	int r;

	if (!sv) {
		catalog_free(catalog);
		return -ENOMEM;
	}
	sv->catalog = catalog;
	sv->refs = 1;
	sv->regions = calloc(catalog->nregions + 1, sizeof *sv->regions);
	sv->offloads = calloc(catalog->noffloads + 1, sizeof *sv->offloads);
	sv->tenants = calloc(catalog->ntenants, sizeof(struct tenant *));
	if (!sv->regions || !sv->offloads || !sv->tenants)
		return -ENOMEM;
	r = get_tenants(sv, parts);
	if (r == 0)
		r = open_regions(sv);
	if (r == 0)
		r = open_offloads(sv, parts->totals);
	if (r < 0)
		return r;
	*out = steal_ptr(&sv);
	return 0;
}

struct service *service_ref(struct service *sv)
{
	sv->refs++;
	return sv;
}

void service_unref(struct service *sv)
{
	assert(sv->refs > 0);
	if (--sv->refs == 0)
		service_free(sv);
}

const struct offload *service_offload(const struct service *sv, const char *name)
{
	for (unsigned i = 0; i < sv->catalog->noffloads; i++)
		if (strcmp(sv->catalog->offloads[i].name, name) == 0)
			return &sv->offloads[i];
	return NULL;
}

void service_limit(const struct service *sv, uint64_t now_us)
{
	for (unsigned i = 0; i < sv->catalog->ntenants; i++)
		tenant_limit(sv->tenants[i], &sv->catalog->tenants[i].limits, now_us);
}

static uint64_t largest(const struct offload *o)
{
	return offload_layout(o, o->conf->depth_max)->size;
}

int service_check_room(const struct service *sv, uint64_t room)
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
