/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/generation.h"

#include "reddnd/generation/layouts.h"
#include "reddnd/generation/wrong.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Numbers of windows continue over all generations. They repeat after 2^22, when the first windows are long
 * gone */
enum { WINDOW_NUMBERS = 1 << 22 };

static unsigned next_window;
static LIST_HEAD(, generation) generations = LIST_HEAD_INITIALIZER(generations);

/* ---- the end ----------------------------------------------------------------------------------- */

/* Regions that nobody uses any more, and the tenants whose PDs have windows on them */
struct closing {
	struct worker_job job;
	struct region **regions;
	unsigned nregions;
	struct tenant **tenants;
	struct catalog *catalog;
};

static void close_regions(struct worker_job *job)
{
	struct closing *c = (struct closing *)job;

	while (c->nregions > 0)
		region_close(c->regions[--c->nregions]);
}

static void on_closed(struct worker_job *job)
{
	struct closing *c = (struct closing *)job;

	if (job->canceled)
		close_regions(job);
	for (unsigned i = 0; c->tenants && i < c->catalog->ntenants; i++)
		tenant_unref(c->tenants[i]);
	free(c->tenants);
	free(c->regions);
	catalog_free(c->catalog);
}

static void on_closed_by_thread(struct worker_job *job)
{
	on_closed(job);
	free(job);
}

/* By a thread if there is one: memory that a NIC could access is given back page by page */
static void close_later(const struct closing *all, struct worker *w)
{
	struct closing *c = w && all->nregions ? malloc(sizeof(*c)) : NULL, now = *all;

	if (c) {
		*c = *all;
		c->job = (struct worker_job){.key = w, .run = close_regions, .done = on_closed_by_thread};
		if (worker_submit(w, &c->job) == 0)
			return;
		free(c);
	}
	close_regions(&now.job);
	on_closed(&now.job);
}

static void drop_handovers(struct generation *g)
{
	for (unsigned i = 0; g->handed && i < g->catalog->nregions; i++)
		if (g->handed[i] >= 0)
			close(g->handed[i]);
	free(steal_ptr(&g->handed));
}

/* Of all devices */
static unsigned count_offloads(const struct generation *g)
{
	return g->served->n * g->catalog->noffloads;
}

struct offload *generation_offloads(const struct generation *g, unsigned device)
{
	return g->offloads + (size_t)device * g->catalog->noffloads;
}

void generation_opened(struct generation *g)
{
	while (g->nliving > 0)
		generation_unref(g->living[--g->nliving]->generation);
	free(steal_ptr(&g->living));
}

static void generation_free(struct generation *g)
{
	struct closing all = {.regions = g->regions, .tenants = g->tenants, .catalog = g->catalog};

	for (unsigned i = 0; g->offloads && i < count_offloads(g); i++)
		offload_close(&g->offloads[i]);
	for (unsigned i = 0; g->regions && i < g->catalog->nregions; i++)
		if (g->regions[i] && region_release(g->regions[i]))
			all.regions[all.nregions++] = g->regions[i];
	free(g->offloads);
	drop_handovers(g);
	generation_opened(g);
	stored_free(&g->stored);
	free(g->found);
	free(g->users);
	LIST_REMOVE(g, link);
	close_later(&all, g->worker ? *g->worker : NULL);
	free(g);
}

DEFINE_CLEANUP(struct generation *, generation_free)

static int get_tenants(struct generation *g, const struct generation_parts *parts)
{
	const struct catalog *c = g->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->ntenants && r == 0; i++)
		r = tenant_get(&g->tenants[i], parts->tenants, c->tenants[i].name, g->served);
	return r;
}

/* True if no offload that has it can be used */
static bool is_useless(const struct generation *g, const struct region *r)
{
	bool used = false;

	for (unsigned i = 0; i < count_offloads(g); i++) {
		if (g->lost[i / g->catalog->noffloads] || !offload_uses(&g->offloads[i], r))
			continue;
		used = true;
		if (!offload_is_disabled(&g->offloads[i], NULL))
			return false;
	}
	return used;
}

/* Regions that serve stay as they are: it takes long to register them. Others are opened once more: perhaps
 * another file is there by now */
static void share_regions(struct generation *g, const struct generation *from)
{
	for (unsigned i = 0; from && from->catalog == g->catalog && i < g->catalog->nregions; i++)
		if (!region_is_bad(from->regions[i], NULL) && !region_is_retired(from->regions[i]) &&
			!is_useless(from, from->regions[i]) &&
			(g->handed[i] < 0 || region_is_file(from->regions[i], g->handed[i])))
			g->regions[i] = region_ref(from->regions[i]);
}

/* They are opened on another thread */
static int get_handovers(struct generation *g, const struct handovers *h)
{
	g->handed = malloc((g->catalog->nregions + 1) * sizeof(*g->handed));
	if (!g->handed)
		return -ENOMEM;
	for (unsigned i = 0; i < g->catalog->nregions; i++)
		g->handed[i] =
			g->catalog->regions[i].handover ? handovers_copy(h, &g->catalog->regions[i]) : -1;
	return 0;
}

static int get_stats(struct generation *g, struct offload_stats **stats)
{
	for (unsigned i = 0; i < count_offloads(g); i++) {
		const struct catalog_offload *conf = &g->catalog->offloads[i % g->catalog->noffloads];

		g->offloads[i].generation = g;
		g->offloads[i].found = &g->found[i % g->catalog->noffloads];
		g->offloads[i].stats = offload_stats_get(stats, conf->name);
		if (!g->offloads[i].stats)
			return -ENOMEM;
	}
	return 0;
}

/* An offload of @g that has sessions, on any device, or may get some before there is a @next; or NULL */
static const struct offload *living_of(const struct generation *g, unsigned i, bool in_force)
{
	for (unsigned k = 0; k < g->served->n; k++) {
		const struct offload *o = &generation_offloads(g, k)[i];

		if (o->program && (g->users[o - g->offloads] || (in_force && !offload_is_disabled(o, NULL))))
			return o;
	}
	return NULL;
}

static int find_living(struct generation *next, const struct generation *now)
{
	struct generation *g;
	size_t most = 0;

	LIST_FOREACH (g, &generations, link)
		most += g->catalog->noffloads;
	next->living = calloc(most + 1, sizeof(*next->living));
	if (!next->living)
		return -ENOMEM;
	LIST_FOREACH (g, &generations, link)
		for (unsigned i = 0; g != next && i < g->catalog->noffloads; i++) {
			const struct offload *o = living_of(g, i, g == now);

			if (!o)
				continue;
			next->living[next->nliving++] = o;
			generation_ref(g);
		}
	return 0;
}

int generation_new(struct generation **out, struct catalog *catalog, const struct generation *now,
	const struct generation_parts *parts)
{
	CLEANUP(generation_freep) struct generation *g = calloc(1, sizeof(*g));
	int r;

	if (!g) {
		catalog_free(catalog);
		return -ENOMEM;
	}
	g->catalog = catalog;
	g->served = parts->served;
	for (unsigned k = 0; k < g->served->n; k++)
		g->lost[k] = rnic_device_is_lost(g->served->device[k].dev);
	g->worker = parts->worker;
	g->left = parts->left;
	g->refs = 1;
	LIST_INSERT_HEAD(&generations, g, link);
	g->found = calloc(catalog->noffloads + 1, sizeof(*g->found));
	g->users = calloc(count_offloads(g) + 1, sizeof(*g->users));
	g->regions = calloc(catalog->nregions + 1, sizeof(struct region *));
	g->offloads = calloc(count_offloads(g) + 1, sizeof(*g->offloads));
	g->tenants = calloc(catalog->ntenants, sizeof(struct tenant *));
	if (!g->found || !g->users || !g->regions || !g->offloads || !g->tenants)
		return -ENOMEM;
	g->first_window = next_window;
	next_window = (next_window + REGION_WINDOWS * catalog->nregions) % WINDOW_NUMBERS;
	r = get_handovers(g, parts->handovers);
	if (r == 0)
		r = stored_copy(&g->stored, now ? &now->stored : parts->left);
	if (r == 0)
		r = find_living(g, now);
	if (r == 0)
		share_regions(g, now);
	if (r == 0)
		r = get_tenants(g, parts);
	if (r == 0)
		r = get_stats(g, parts->stats);
	if (r < 0)
		return r;
	*out = steal_ptr(&g);
	return 0;
}

/* The first tenant that may use the offload */
static struct tenant *user_of(const struct generation *g, unsigned offload)
{
	for (unsigned i = 0; i < g->catalog->ntenants; i++)
		if (catalog_allows(&g->catalog->tenants[i], offload))
			return g->tenants[i];
	return g->tenants[0];
}

static int open_own_region(struct generation *g, unsigned i)
{
	unsigned window = (g->first_window + REGION_WINDOWS * i) % WINDOW_NUMBERS;

	return region_open(&g->regions[i], &g->catalog->regions[i], window, g->handed[i]);
}

int generation_try_file(const struct generation *g, unsigned i, int fd, char why[REGION_WHY])
{
	struct region *tried;
	int r = region_open(&tried, &g->catalog->regions[i], 0, fd);

	if (r < 0)
		return r;
	r = region_is_bad(tried, why) ? -EINVAL : 0;
	region_close(tried);
	return r;
}

/* After the regions */
static int open_offloads(struct generation *g, unsigned device)
{
	struct offload *o = generation_offloads(g, device);
	const struct catalog *c = g->catalog;
	int r = 0;

	if (g->served->n > 1)
		log_info("%s: its %u offloads:", rnic_device_name(g->served->device[device].dev),
			c->noffloads);
	for (unsigned i = 0; i < c->noffloads && r == 0; i++) {
		if (g->lost[device])
			offload_leave_out(&o[i], &c->offloads[i], "the device is lost");
		else
			r = offload_open(
				&o[i], &c->offloads[i], c, g->regions, user_of(g, i)->domain[device].pd);
	}
	return r;
}

static void open_stores(struct generation *g)
{
	const struct catalog *c = g->catalog;
	char why[OFFLOAD_WHY];

	for (unsigned i = 0; i < c->nregions; i++)
		region_open_store(g->regions[i]);
	for (unsigned i = 0; i < c->nregions; i++)
		region_spare_stores(g->regions[i]);
	for (unsigned i = 0; i < count_offloads(g); i++)
		if (!*g->offloads[i].why && offload_is_disabled(&g->offloads[i], why))
			log_error("offload %s is disabled: %s", g->offloads[i].conf->name, why);
}

int generation_open(struct generation *g, void (*compiled)(void *arg, struct generation *g), void *arg)
{
	const struct catalog *c = g->catalog;
	int r = 0;

	for (unsigned i = 0; i < c->nregions && r == 0; i++)
		if (!g->regions[i])
			r = open_own_region(g, i);
	drop_handovers(g);
	if (r == 0)
		r = stored_settle(&g->stored, c, g->regions, g->living, g->nliving, g->found);
	for (unsigned k = 0; k < g->served->n && r == 0; k++)
		r = open_offloads(g, k);
	if (r == 0 && compiled)
		compiled(arg, g);
	if (r == 0)
		open_stores(g);
	return r;
}

/* Offload @i of the catalog is disabled on some device, @unfit: because of the device */
static bool is_disabled(const struct generation *g, unsigned i, bool unfit)
{
	for (unsigned k = 0; k < g->served->n; k++) {
		const struct offload *o = &generation_offloads(g, k)[i];

		if (!g->lost[k] && (!o->elsewhere || g->lost[0]) &&
			(unfit ? o->unfit : offload_is_disabled(o, NULL)))
			return true;
	}
	return false;
}

unsigned generation_disabled(const struct generation *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->catalog->noffloads; i++)
		n += is_disabled(g, i, false);
	return n;
}

unsigned generation_unfit(const struct generation *g)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->catalog->noffloads; i++)
		n += is_disabled(g, i, true);
	return n;
}

struct generation_regions generation_count_regions(const struct generation *g)
{
	struct generation_regions n = {0};

	for (unsigned i = 0; i < g->catalog->nregions; i++) {
		const struct region *r = g->regions[i];
		const bool retired = region_is_retired(r);

		n.bad += region_is_bad(r, NULL);
		n.retired += retired;
		n.succeeded += retired && r->moved == -ESTALE;
		n.moved += r->moved != 0;
		n.unfinished += r->unfinished;
	}
	return n;
}

/* A store whose path has none, or one that cannot be opened, goes on */
static bool replaces(const struct generation *g, const struct region *before)
{
	bool replaced = false;

	for (unsigned i = 0; before->store && i < g->catalog->nregions; i++)
		replaced |= g->regions[i]->store && g->regions[i]->store != before->store &&
			    strcmp(g->regions[i]->conf->path, before->conf->path) == 0;
	return replaced;
}

bool generation_replaces(const struct generation *g, const struct offload *o)
{
	bool replaced = false;

	for (unsigned i = 0; i < o->program->nregions; i++)
		replaced |= replaces(g, o->bound[i].region);
	return replaced;
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

void generation_use(const struct offload *o)
{
	generation_ref(o->generation)->users[o - o->generation->offloads]++;
}

void generation_leave(const struct offload *o)
{
	o->generation->users[o - o->generation->offloads]--;
	generation_unref(o->generation);
}

const struct offload *generation_offload(const struct generation *g, unsigned device, const char *name)
{
	for (unsigned i = 0; i < g->catalog->noffloads; i++)
		if (strcmp(g->catalog->offloads[i].name, name) == 0)
			return &generation_offloads(g, device)[i];
	return NULL;
}

void generation_limit(const struct generation *g, uint64_t now_us)
{
	for (unsigned i = 0; i < g->catalog->ntenants; i++)
		tenant_limit(g->tenants[i], &g->catalog->tenants[i].limits, now_us);
}

static uint64_t largest(const struct offload *o)
{
	return layouts_of_depth(o, o->conf->depth_max)->size;
}

void generation_check_room(struct generation *g, unsigned device, uint64_t room)
{
	struct offload *o = generation_offloads(g, device);

	for (unsigned i = 0; i < g->catalog->noffloads; i++) {
		if (offload_is_disabled(&o[i], NULL) || largest(&o[i]) <= room)
			continue;
		offload_unfit(&o[i],
			"the queues of one client take %" PRIu64 " bytes, the arena has room for %" PRIu64
			"; lower depth_max or instances, or raise \"arena\"",
			largest(&o[i]), room);
		log_error("%s: offload %s is disabled", rnic_device_name(g->served->device[device].dev),
			g->catalog->offloads[i].name);
	}
}
