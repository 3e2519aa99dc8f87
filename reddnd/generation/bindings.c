/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/bindings.h"

#include "reddnd/generation/generation.h"
#include "reddnd/generation/wrong.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int bind_region(struct offload *o, unsigned i, const struct catalog *catalog, struct region **regions)
{
	const struct program_region *want = &o->program->regions[i];
	struct catalog_binding bound;
	char why[200];

	if (catalog_bind(catalog, o->conf, want->name, want->writable, &bound, why, sizeof(why)) < 0)
		return offload_wrong(o, -EINVAL, "%s", why);
	o->bound[i].region = regions[bound.region];
	o->bound[i].part = bound.part;
	o->bound[i].writable = want->writable;
	if (bound.part == CATALOG_BUCKETS)
		o->table = &regions[bound.region]->table;
	return 0;
}

/* The order of a program relies on its regions being different memory, as parts of one are */
static int check_apart(struct offload *o, unsigned i)
{
	const struct program_region *r = o->program->regions;

	for (unsigned k = 0; k < i; k++)
		if ((r[i].writable || r[k].writable) &&
			!(o->bound[i].region == o->bound[k].region && o->bound[i].part != o->bound[k].part) &&
			rnic_region_is(o->bound[i].region->file, o->bound[k].region->file))
			return offload_wrong(o, -EINVAL,
				"regions \"%s\" and \"%s\" of the program are one file, %s, and it writes "
				"to one of them; bind them to two",
				r[k].name, r[i].name, o->bound[i].region->conf->path);
	return 0;
}

int bindings_make(struct offload *o, const struct catalog *catalog, struct region **regions)
{
	int r = 0;

	for (unsigned i = 0; i < o->program->nregions && r == 0; i++)
		r = bind_region(o, i, catalog, regions);
	return r;
}

static int check_size(struct offload *o, unsigned i)
{
	const struct program_region *want = &o->program->regions[i];
	uint64_t size = region_part_size(o->bound[i].region, o->bound[i].part);

	if (size >= want->size)
		return 0;
	return offload_wrong(o, -EINVAL,
		"region \"%s\" of the program needs %" PRIu64 " bytes, \"%s\" has %" PRIu64, want->name,
		want->size, o->bound[i].region->conf->name, size);
}

int bindings_check_files(struct offload *o)
{
	char why[REGION_WHY];
	int r = 0;

	for (unsigned i = 0; i < o->program->nregions; i++)
		if (region_is_bad(o->bound[i].region, why))
			return offload_wrong(o, -ENODATA, "region \"%s\" cannot be served: %s",
				o->bound[i].region->conf->name, why);
	for (unsigned i = 0; i < o->program->nregions && r == 0; i++) {
		r = check_size(o, i);
		if (r == 0)
			r = check_apart(o, i);
	}
	return r;
}

/* What clients influence is followed with the program as the configuration sets it. A table, or what the
 * device lacks, may make another one of it, which must not store elsewhere: other offloads would not know */
int bindings_check_stored(struct offload *o)
{
	if (o->found && o->found->wrong)
		return offload_wrong(o, -EINVAL,
			"its program has mistakes, with regions into which programs store something, or have "
			"stored it");
	if (o->found && o->found->relied_upon)
		return offload_wrong(o, -EINVAL,
			"offload \"%s\", as it was before, relies on what it would store in; it is "
			"tried again until no session has that one",
			o->found->relied_upon);
	for (unsigned i = 0; i < o->program->nregions; i++) {
		if (!stored_has(&o->generation->stored, o->bound[i].region, o->bound[i].part,
			    &o->program->regions[i].stored))
			return offload_wrong(o, -EINVAL,
				"with the params that its table gives, its program stores in other "
				"bytes of region \"%s\" than with their defaults; set "
				"\"width\", \"record\" and, of a store, \"most\"",
				o->bound[i].region->conf->name);
	}
	return 0;
}

int bindings_check_windows(struct offload *o, struct rnic_pd *pd)
{
	struct chain_env env;
	int r = bindings_register(o, pd, &env);

	if (o->cpu)
		return 0;
	if (r < 0)
		return offload_wrong(
			o, r, "its regions cannot be registered with the device: %s", strerror(-r));
	for (unsigned i = 0; i < o->program->nregions; i++)
		if (env.region[i].iova & ((1ull << o->img->region_bits[i]) - 1))
			return offload_wrong(o, -EINVAL,
				"offsets into region \"%s\" have %u bits, more than its address allows",
				o->program->regions[i].name, o->img->region_bits[i]);
	return 0;
}

/* The region that requests bring their payload to, or NULL */
static struct region *payload_of(const struct offload *o)
{
	const struct chain_payload *p = &o->img->payload;

	return p->max && !o->cpu ? o->bound[p->region].region : NULL;
}

static int register_extents(const struct offload *o, struct rnic_pd *pd, struct chain_env *env)
{
	struct rnic_window w;
	int r = region_window(payload_of(o), pd, o->bound[o->img->payload.region].part, true, &w);

	if (r < 0)
		return r;
	env->extents.iova = w.iova;
	env->extents.lkey = w.lkey;
	return 0;
}

int bindings_register(const struct offload *o, struct rnic_pd *pd, struct chain_env *env)
{
	struct rnic_window w;
	int r = 0;

	for (unsigned i = 0; !o->cpu && i < o->program->nregions && r == 0; i++) {
		r = region_window(o->bound[i].region, pd, o->bound[i].part, o->bound[i].writable, &w);
		if (r < 0)
			break;
		env->region[i].iova = w.iova;
		env->region[i].lkey = w.lkey;
		env->region[i].rkey = w.rkey;
	}
	return r == 0 && payload_of(o) ? register_extents(o, pd, env) : r;
}

void bindings_slots(
	const struct offload *o, struct rnic_pd *pd, const struct ledger_slot *slots[CHAIN_MAX_WINDOWS])
{
	struct rnic_window w;

	for (unsigned i = 0; i < CHAIN_MAX_WINDOWS; i++)
		slots[i] = !o->cpu && i < o->program->nregions &&
					   region_window(o->bound[i].region, pd, o->bound[i].part,
						   o->bound[i].writable, &w) == 0
				   ? w.slot
				   : NULL;
	if (payload_of(o) && o->program->nregions < CHAIN_MAX_WINDOWS &&
		region_window(payload_of(o), pd, o->bound[o->img->payload.region].part, true, &w) == 0)
		slots[o->program->nregions] = w.slot;
}

bool bindings_are_registered(const struct offload *o, struct rnic_pd *pd)
{
	for (unsigned i = 0; !o->cpu && i < o->program->nregions; i++)
		if (!region_has_window(o->bound[i].region, pd, o->bound[i].part, o->bound[i].writable))
			return false;
	return !payload_of(o) ||
	       region_has_window(payload_of(o), pd, o->bound[o->img->payload.region].part, true);
}
