/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/offload.h"

#include "reddnd/generation/bindings.h"
#include "reddnd/generation/fit.h"
#include "reddnd/generation/generation.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/generation/offer.h"
#include "reddnd/generation/stored.h"
#include "reddnd/generation/table.h"
#include "reddnd/generation/wrong.h"
#include "reddnd/program/describe.h"
#include "reddnd/rnic/qp.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- compiling: for the device, or for the CPU if that executes it ---- */

/* What a program is compiled with besides */
struct with {
	const struct catalog_stored *in; /* what is stored in its regions, or NULL */
	struct program_setting params[INFLUENCE_PARAMS];
	unsigned n;
};

/* 0: o->program is that for @target; 1 and what is wrong with it; a negative errno, which has been logged */
static int compile_for(
	struct offload *o, const struct with *with, const struct program_target *target, char **messages)
{
	struct program *program = NULL;
	int r = catalog_compile(o->conf, with->in, with->params, with->n, target, &program, messages);

	if (r < 0)
		return offload_wrong(o, r, "it cannot be compiled: %s", strerror(-r));
	if (r > 0)
		return r;
	program_free(o->program);
	o->program = program;
	o->img = program->image;
	return 0;
}

/* The program has mistakes for @target, the device. If it has none for a device that has more, it is the
 * device that lacks something, and o->program is the one for the other device: it has a name and regions */
static int find_lack(struct offload *o, const struct with *with, const struct program_target *target)
{
	CLEANUP(cleanup_free) char *calc = NULL, *masked = NULL, *both = NULL, *all = NULL;
	struct program_target t = *target;
	int r;

	t.calc = PROGRAM_CALC;
	r = compile_for(o, with, &t, &calc);
	if (r <= 0)
		return r < 0 ? r
			     : offload_unfit(o, "its program calculates, and the device has neither CALC nor "
						"masked atomics");
	t.masked_atomics = true;
	r = compile_for(o, with, &t, &masked);
	if (r <= 0)
		return r < 0 ? r
			     : offload_unfit(o, "its program needs masked atomics, which the device has not");
	t.max_sge = 0;
	r = compile_for(o, with, &t, &both);
	if (r <= 0)
		return r < 0 ? r
			     : offload_unfit(o,
				       "its program needs WQEs with more than %u data segments, which the "
				       "device has not",
				       target->max_sge);
	t.fetch_group = 0;
	r = compile_for(o, with, &t, &all);
	if (r <= 0)
		return r < 0 ? r
			     : offload_unfit(o,
				       "its program is too long for NOPs that fill the groups of %u bytes "
				       "that the device fetches together",
				       target->fetch_group * RNIC_WQEBB_BYTES);
	return -EINVAL;
}

/* Sets o->program and o->img. -EOPNOTSUPP: the device lacks something (offload_unfit()), and o->program is
 * for another one. Errors have been logged. */
static int compile_offload(struct offload *o, const struct with *with, const struct rnic_caps *caps)
{
	struct program_target target =
		o->cpu || *caps->no_chains ? fit_cpu_target() : fit_target(caps, o->recycled);
	CLEANUP(cleanup_free) char *messages = NULL;
	int r;

	target.overlap = target.overlap && !o->in_turn;
	r = compile_for(o, with, &target, &messages);
	if (r <= 0)
		return r;
	r = find_lack(o, with, &target);
	if (r != -EINVAL)
		return r;
	offload_wrong(o, -EINVAL, "its program has mistakes");
	if (messages)
		offload_log_lines(messages);
	return -EINVAL;
}

/* Compiles once more with what depends on the regions. Without that a program may have mistakes: its params
 * have to fit what others store there */
static int compile_for_regions(struct offload *o, const struct rnic_caps *caps)
{
	struct with with = {.in = o->found && !o->found->wrong && o->found->in.n ? &o->found->in : NULL};

	for (unsigned i = 0; i < o->program->nregions; i++)
		if (o->bound[i].part == CATALOG_BUCKETS)
			with.n = table_params(&o->bound[i].region->table.geometry, o->program, with.params);
	return with.in || with.n ? compile_offload(o, &with, caps) : 0;
}

/* Which only the NIC does, and only one: atomics of two devices do not exclude each other */
static bool publishes(const struct offload *o)
{
	return o->program && o->img->publish.there;
}

static int check_publish(struct offload *o, const struct rnic_device *dev)
{
	const struct rnic_device *home = o->generation->served->device[0].dev;
	char why[OFFLOAD_WHY];
	int r = catalog_check_publish(o->generation->catalog, o->conf, o->program, why, sizeof(why));

	if (r < 0)
		return offload_wrong(o, r, "%s", why);
	if (!publishes(o) || dev == home)
		return 0;
	snprintf(o->why, sizeof(o->why), "it publishes, which is done on the first device alone, %s",
		rnic_device_name(home));
	o->unfit = o->elsewhere = true;
	return -EOPNOTSUPP;
}

static int check_budget(struct offload *o)
{
	char why[OFFLOAD_WHY];
	int r = catalog_check_budget(o->conf, o->program, why, sizeof(why));

	if (r == -E2BIG && offload_may_be_unrolled(o))
		return offload_unfit(o, "%s", why);
	return r < 0 ? offload_wrong(o, r, "%s", why) : 0;
}

/* ---- the device
 * ---------------------------------------------------------------------------------------------- */

enum { OVERLAPS = 1 };

/* OVERLAPS: the device has no room for instances that overlap, which are longer, and whose replies need more
 * CQEs; or they cannot be recycled */
static int check_device(struct offload *o, const struct rnic_device *dev)
{
	const struct rnic_caps *caps = rnic_device_caps(dev);
	unsigned slots = layouts_slots(o, o->conf->depth_max);
	uint32_t max_wqebbs = 1u << caps->log_max_qp_wqebbs;
	char why[FIT_WHY];
	unsigned most = 0;
	int r;

	if (o->cpu)
		return layouts_make_cpu(o, dev);
	if (offload_may_be_unrolled(o) && (o->conf->depth_max & (o->conf->depth_max - 1)))
		return offload_unfit(o,
			"its depth_max is %u, and a recycled session has a depth that is a power of two",
			o->conf->depth_max);
	if (o->program->loop && o->program->loop_ring > max_wqebbs)
		return offload_unfit(o, "its loop takes a queue of %u WQEBBs, the device has queues of %u",
			o->program->loop_ring, max_wqebbs);
	r = layouts_make(o, max_wqebbs, &most);
	if (r < 0 && r != -E2BIG && r != -EOPNOTSUPP)
		return r;
	if (chain_start_queue(o->img) > 0 && (r < 0 || !layouts_share_cqs(o, slots)))
		return OVERLAPS;
	if (r == -E2BIG)
		return offload_unfit(o,
			"%u instances do not fit a queue; at most %u do, for a depth_max of %u", slots, most,
			most / 2);
	if (r < 0)
		return r;
	return fit_check(o->program, o->recycled, caps, why) < 0 ? offload_unfit(o, "%s", why) : 0;
}

static uint32_t longest_message(const struct chain_desc *d)
{
	uint64_t most = 1;

	for (unsigned s = 0; s < d->nsteps; s++) {
		const struct chain_step *st = &d->steps[s];
		uint64_t bytes = st->queue == 0 ? chain_step_most(st) : 0;

		most = bytes > most ? bytes : most;
	}
	return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

/* ---- life
 * ---------------------------------------------------------------------------------------------------- */

/* What follows from the program as it is compiled now. OVERLAPS, as check_device() */
static int check_compiled(struct offload *o, const struct rnic_device *dev)
{
	int r;

	o->slot_need = (o->program->reply_max + 63) / 64 * 64;
	o->max_message = longest_message(o->program->desc);
	outcome_plan(&o->outcome, o->program);
	r = check_publish(o, dev);
	if (r == 0)
		r = check_budget(o);
	return r == 0 ? check_device(o, dev) : r;
}

static int compile_in_turn(struct offload *o, const struct rnic_caps *caps)
{
	int r;

	o->in_turn = true;
	r = compile_offload(o, &(struct with){0}, caps);
	return r == 0 ? compile_for_regions(o, caps) : r;
}

/* Compiles it again, with instances in turn, where those that overlap find no room */
static int check_program(struct offload *o, const struct rnic_device *dev)
{
	int r = check_compiled(o, dev);

	if (r != OVERLAPS)
		return r;
	r = compile_in_turn(o, rnic_device_caps(dev));
	return r == 0 ? check_compiled(o, dev) : r;
}

/* A recycled session begins with an extent for each slot, of which it has more than an unrolled one. Which of
 * both a client gets must not depend on how many others there are */
static int check_extents(struct offload *o)
{
	enum { PART = 32 };
	const unsigned slots = layouts_slots(o, o->conf->depth_max);
	const uint64_t bytes = (uint64_t)slots * (o->img->arg_len + o->img->payload.max);
	const struct region *store;

	if (!o->recycled || !o->img->payload.max)
		return 0;
	store = o->bound[o->img->payload.region].region;
	if (bytes <= region_part_size(store, CATALOG_HEAP) / PART)
		return 0;
	return offload_unfit(o,
		"the extents of %u instances take %" PRIu64 " bytes, more than one part in %d of the heap of "
		"its store",
		slots, bytes, PART);
}

/* What depends on the files of the regions, which belong to others */
static int open_regions(struct offload *o, struct rnic_pd *pd)
{
	const struct rnic_device *dev = rnic_pd_device(pd);
	int r = bindings_check_files(o);

	if (r == 0)
		r = compile_for_regions(o, rnic_device_caps(dev));
	if (r == 0)
		r = bindings_check_stored(o);
	if (r == 0)
		r = check_program(o, dev);
	if (r == 0)
		r = check_extents(o);
	if (r == 0)
		r = bindings_check_windows(o, pd);
	return r == 0 ? shape_check(o) : r;
}

static void describe(const struct offload *o)
{
	const struct program_loop_size in = program_loop_size(o->program);

	log_info("offload %s: %s, %u copies, %u atomics, %u waits and enables per request", o->conf->name,
		o->program->name, o->img->n_copy, o->img->n_atomic, o->img->n_sync);
	if (o->img->n_pad)
		log_info("offload %s: and %u NOPs per request, which fill groups of %u bytes that the device "
			 "fetches together",
			o->conf->name, o->img->n_pad, o->img->fetch_group * RNIC_WQEBB_BYTES);
	if (o->program->loop)
		log_info("offload %s: %u copies, %u atomics, %u waits and enables per iteration of its loop, "
			 "a ring of %u WQEBBs",
			o->conf->name, in.copy, in.atomic, in.sync, o->program->loop_ring);
}

/* For the engine of o->cpu */
static int open_engine(
	struct offload *o, const struct catalog *catalog, struct region **regions, struct rnic_pd *pd)
{
	const struct rnic_device *dev = rnic_pd_device(pd);
	const struct rnic_caps *caps = rnic_device_caps(dev);
	int r;

	o->cq_alone = !o->cpu && !caps->observed.flushes_enabled_only;
	r = compile_offload(o, &(struct with){0}, caps);
	if (r == 0 && !o->cpu && *caps->no_chains)
		r = offload_unfit(o, "the device runs no chains: %s", caps->no_chains);
	if (r == 0 || o->unfit) { /* mistakes of the configuration in any case */
		int bound = bindings_make(o, catalog, regions);

		r = bound < 0 ? bound : r;
	}
	if (r == 0)
		r = check_program(o, dev);
	if (r < 0 && !o->unfit)
		return r;
	if (r == 0)
		r = open_regions(o, pd);
	return r == -ENOMEM ? r : 0;
}

/* The device cannot do it as it was tried: what was found is the reason. Unrolled then, or by the CPU */
static void fall_back(struct offload *o, bool cpu)
{
	char why[OFFLOAD_WHY];

	memcpy(why, o->why, sizeof(why));
	program_free(o->program);
	layouts_forget(o);
	*o = (struct offload){.generation = o->generation,
		.found = o->found,
		.stats = o->stats,
		.conf = o->conf,
		.cpu = cpu};
	memcpy(o->reason, why, sizeof(why));
}

/* As the configuration asks for, before anything is known of the device */
static void choose(struct offload *o)
{
	o->cpu = o->conf->engine == CATALOG_CPU;
	o->recycled = !o->cpu && o->conf->mode != CATALOG_UNROLLED;
	if (o->cpu && o->conf->cpu_above)
		snprintf(o->reason, sizeof(o->reason),
			"its requests have %u keys, and the configuration asks for it above %u",
			reddn_wire_part_keys(o->conf->part), o->conf->cpu_above);
	else if (!o->recycled)
		snprintf(o->reason, sizeof(o->reason), "the configuration asks for it");
}

int offload_open(struct offload *o, const struct catalog_offload *conf, const struct catalog *catalog,
	struct region **regions, struct rnic_pd *pd)
{
	int r;

	o->conf = conf;
	choose(o);
	r = open_engine(o, catalog, regions, pd);
	if (o->unfit && offload_may_be_unrolled(o)) {
		fall_back(o, false);
		r = open_engine(o, catalog, regions, pd);
	}
	if (o->unfit && conf->engine == CATALOG_AUTO && !publishes(o)) {
		fall_back(o, true);
		r = open_engine(o, catalog, regions, pd);
	}
	if (r < 0)
		return r;
	if (*o->why) {
		log_at(o->elsewhere ? LOG_INFO : LOG_ERR, 0, "%s: offload %s is disabled%s%s",
			rnic_device_name(rnic_pd_device(pd)), conf->name, o->elsewhere ? ": " : "",
			o->elsewhere ? o->why : "");
		return 0;
	}
	o->description = program_describe(o->program);
	if (!o->description)
		return -ENOMEM;
	describe(o);
	if (o->cpu)
		log_at(conf->engine == CATALOG_CPU ? LOG_NOTICE : LOG_WARNING, 0,
			"offload %s: the CPU executes it: %s", conf->name, o->reason);
	else if (!o->recycled)
		log_notice("offload %s: it is unrolled: %s", conf->name, o->reason);
	return 0;
}

void offload_leave_out(struct offload *o, const struct catalog_offload *conf, const char *why)
{
	o->conf = conf;
	snprintf(o->why, sizeof(o->why), "%s", why);
}

void offload_close(struct offload *o)
{
	program_free(o->program);
	free(o->description);
	layouts_forget(o);
	*o = (struct offload){0};
}

bool offload_loses(const struct offload *o)
{
	for (unsigned i = 0; i < o->program->nregions; i++)
		if (o->bound[i].writable && region_is_lost(o->bound[i].region))
			return true;
	return false;
}

bool offload_is_disabled(const struct offload *o, char why[OFFLOAD_WHY])
{
	char bad[REGION_WHY], words[OFFLOAD_WHY];

	snprintf(words, sizeof(words), "%s", o->why);
	for (unsigned i = 0; !*words && i < o->program->nregions; i++)
		if (region_is_bad(o->bound[i].region, bad))
			snprintf(words, sizeof(words), "region \"%s\" cannot be served: %s",
				o->bound[i].region->conf->name, bad);
	if (!*words && offload_loses(o))
		snprintf(words, sizeof(words),
			"the file of its store was removed or replaced; put it back, or reload");
	if (why)
		memcpy(why, words, sizeof(words));
	return *words;
}

bool offload_is_retired(const struct offload *o)
{
	for (unsigned i = 0; i < o->program->nregions; i++)
		if (region_is_retired(o->bound[i].region))
			return true;
	return false;
}

bool offload_writes(const struct offload *o)
{
	for (unsigned i = 0; i < o->program->nregions; i++)
		if (o->bound[i].writable)
			return true;
	return false;
}

bool offload_uses(const struct offload *o, const struct region *r)
{
	for (unsigned i = 0; i < o->program->nregions; i++)
		if (o->bound[i].region == r)
			return true;
	return false;
}
