/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/offload.h"

#include "reddnd/generation/compile.h"
#include "reddnd/generation/fit.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/generation/table.h"
#include "reddnd/program/describe.h"
#include "reddnd/rnic/qp.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int vwrong(struct offload *o, int error, const char *format, va_list ap)
	__attribute__((format(printf, 3, 0)));

static int vwrong(struct offload *o, int error, const char *format, va_list ap)
{
	bool may_fall_back = error == -EOPNOTSUPP && !o->cpu && o->conf->engine == CATALOG_AUTO;

	vsnprintf(o->why, sizeof(o->why), format, ap);
	log_at(may_fall_back ? LOG_NOTICE : LOG_ERR, 0, "%s: offload %s: %s", o->conf->where, o->conf->name,
		o->why);
	return error;
}

int offload_wrong(struct offload *o, int error, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = vwrong(o, error, format, ap);
	va_end(ap);
	return r;
}

int offload_unfit(struct offload *o, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = vwrong(o, -EOPNOTSUPP, format, ap);
	va_end(ap);
	o->unfit = true;
	return r;
}

/* ---- its regions
 * --------------------------------------------------------------------------------------------- */

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

/* The order of a program relies on its regions being different memory */
static int check_apart(struct offload *o, unsigned i)
{
	const struct program_region *r = o->program->regions;

	for (unsigned k = 0; k < i; k++)
		if ((r[i].writable || r[k].writable) &&
			rnic_region_is(o->bound[i].region->file, o->bound[k].region->file))
			return offload_wrong(o, -EINVAL,
				"regions \"%s\" and \"%s\" of the program are one file, %s, and it writes "
				"to one of them; bind them to two",
				r[k].name, r[i].name, o->bound[i].region->conf->path);
	return 0;
}

static int bind_regions(struct offload *o, const struct catalog *catalog, struct region **regions)
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

static int check_regions(struct offload *o)
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

/* The catalog follows what clients influence with the program as the configuration sets it. A table, or what
 * the device lacks, may make another one of it, which must not store elsewhere: other offloads would not know
 */
static int check_stored(struct offload *o, const struct catalog *catalog)
{
	for (unsigned i = 0; i < o->program->nregions; i++) {
		struct chain_span theirs = o->program->regions[i].theirs;
		const struct catalog_region *conf = o->bound[i].region->conf;
		const struct catalog_stored *known = catalog_stored(catalog, conf->path);

		if (theirs.to == 0)
			continue;
		catalog_span_of_file(conf, &theirs.from, &theirs.to);
		if (!known || theirs.from < known->from || theirs.to > known->to)
			return offload_wrong(o, -EINVAL,
				"with the params that its table gives, its program stores what clients send "
				"or influence in other bytes of region \"%s\" than with their defaults; set "
				"\"width\" and \"record\"",
				conf->name);
	}
	return 0;
}

static int check_windows(struct offload *o, struct rnic_pd *pd)
{
	struct chain_env env;
	int r = offload_bind(o, pd, &env);

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

enum { FP = sizeof(((struct reddn_bucket *)0)->fp) };

/* Bytes of the request for a key: two candidates, each a fingerprint and an offset, in this order */
static unsigned bytes_of_key(const struct table_geometry *g)
{
	return 2u * (FP + g->offset_len);
}

/* Keys of a request */
unsigned offload_keys(const struct offload *o)
{
	return o->img->arg_len / bytes_of_key(&o->table->geometry);
}

/* What libreddn asks for, with one key or several */
static bool takes_keys(const struct offload *o)
{
	unsigned keys = offload_keys(o);

	return o->img->arg_len % bytes_of_key(&o->table->geometry) == 0 && keys && keys <= REDDN_WIRE_KEYS;
}

/* It fits the slot, which ends where that of the next request begins. libreddn looks for those of several
 * keys one after the other. */
static bool has_room(const struct offload *o, uint64_t record)
{
	unsigned keys = offload_keys(o);
	uint64_t need = REDDN_SLOT_RECORD + keys * record;

	return keys == 1 ? o->slot_need >= need : o->slot_need == need;
}

static int check_shape(struct offload *o)
{
	uint64_t record;

	if (o->program->shape != PROGRAM_TABLE)
		return 0;
	if (!o->table || !takes_keys(o))
		return offload_wrong(o, -EINVAL,
			"a program of shape table reads two buckets of a table for each key; its request "
			"must be two times a fingerprint of %d bytes and a bucket's offset, up to %d times",
			FP, REDDN_WIRE_KEYS);
	record = table_slot_need(&o->table->geometry) - REDDN_SLOT_RECORD;
	if (has_room(o, record))
		return 0;
	return offload_wrong(o, -EINVAL,
		"a program of shape table replies with records one after the other from byte %d of the slot; "
		"for %u of up to %" PRIu64 " bytes the slot must have %s%" PRIu64 " bytes, not %u: see its "
		"param \"record\"",
		REDDN_SLOT_RECORD, offload_keys(o), record, offload_keys(o) == 1 ? "at least " : "",
		REDDN_SLOT_RECORD + offload_keys(o) * record, o->slot_need);
}

/* Loops have bounds, in the program or in the catalog, so the WQEs of a request are known before it comes */
static int check_budget(struct offload *o)
{
	uint64_t wqes = o->outcome.wqes + loop_size_wqes(o->program, o->conf->loop_budget);

	if (!o->conf->wqe_budget)
		return 0;
	if (o->program->loop && !o->conf->loop_budget)
		return offload_wrong(
			o, -EINVAL, "its loop has no bound, so a \"wqe_budget\" needs a \"loop_budget\"");
	if (wqes <= o->conf->wqe_budget)
		return 0;
	return offload_wrong(o, -E2BIG, "a request takes %" PRIu64 " WQEs, \"wqe_budget\" is %u", wqes,
		o->conf->wqe_budget);
}

/* ---- the device
 * ---------------------------------------------------------------------------------------------- */

enum { OVERLAPS = 1 };

/* OVERLAPS: the device has no room for instances that overlap, which are longer, and whose replies need more
 * CQEs */
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
	if (o->program->loop && o->program->loop_ring > max_wqebbs)
		return offload_wrong(o, -E2BIG,
			"its loop takes a queue of %u WQEBBs, the device has queues of %u",
			o->program->loop_ring, max_wqebbs);
	r = layouts_make(o, max_wqebbs, &most);
	if (r < 0 && r != -E2BIG)
		return r;
	if (chain_start_queue(o->img) > 0 && (r < 0 || !layouts_share_cqs(o, slots)))
		return OVERLAPS;
	if (r < 0)
		return offload_wrong(o, -E2BIG,
			"%u instances do not fit a queue; at most %u do, for a depth_max of %u", slots, most,
			most / 2);
	return fit_check(o->program, o->conf->recycled, caps, why) < 0 ? offload_unfit(o, "%s", why) : 0;
}

static uint32_t longest_message(const struct chain_desc *d)
{
	uint64_t most = 1;

	for (unsigned s = 0; s < d->nsteps; s++) {
		const struct chain_step *st = &d->steps[s];
		uint64_t bytes = 0;

		for (unsigned i = 0;
			st->queue == 0 && i < CHAIN_MAX_SGE && st->local[i].kind != CHAIN_AT_NONE; i++)
			bytes += st->local[i].max ? st->local[i].max : st->local[i].len;
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
	r = check_budget(o);
	return r == 0 ? check_device(o, dev) : r;
}

static int compile_in_turn(struct offload *o, const struct rnic_caps *caps)
{
	int r;

	o->in_turn = true;
	r = compile_offload(o, NULL, 0, caps);
	return r == 0 && o->table ? compile_for_table(o, &o->table->geometry, caps) : r;
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

/* What depends on the files of the regions, which belong to others */
static int open_regions(struct offload *o, const struct catalog *catalog, struct rnic_pd *pd)
{
	const struct rnic_device *dev = rnic_pd_device(pd);
	int r = check_regions(o);

	if (r == 0 && o->table)
		r = compile_for_table(o, &o->table->geometry, rnic_device_caps(dev));
	if (r == 0)
		r = check_stored(o, catalog);
	if (r == 0)
		r = check_program(o, dev);
	if (r == 0)
		r = check_windows(o, pd);
	return r == 0 ? check_shape(o) : r;
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
	r = compile_offload(o, NULL, 0, caps);
	if (r == 0 && !o->cpu && *caps->no_chains)
		r = offload_unfit(o, "the device runs no chains: %s", caps->no_chains);
	if (r == 0 || o->unfit) { /* mistakes of the configuration in any case */
		int bound = bind_regions(o, catalog, regions);

		r = bound < 0 ? bound : r;
	}
	if (r == 0)
		r = check_program(o, dev);
	if (r < 0 && !o->unfit)
		return r;
	if (r == 0)
		r = open_regions(o, catalog, pd);
	return r == -ENOMEM ? r : 0;
}

/* The device cannot run it, so the CPU does: what was found is the reason */
static void turn_to_cpu(struct offload *o)
{
	char why[OFFLOAD_WHY];

	memcpy(why, o->why, sizeof(why));
	program_free(o->program);
	layouts_forget(o);
	*o = (struct offload){.generation = o->generation, .stats = o->stats, .conf = o->conf, .cpu = true};
	memcpy(o->why_cpu, why, sizeof(why));
}

int offload_open(struct offload *o, const struct catalog_offload *conf, const struct catalog *catalog,
	struct region **regions, struct rnic_pd *pd)
{
	int r;

	o->conf = conf;
	o->cpu = conf->engine == CATALOG_CPU;
	if (o->cpu)
		snprintf(o->why_cpu, sizeof(o->why_cpu), "the configuration asks for it");
	r = open_engine(o, catalog, regions, pd);
	if (o->unfit && conf->engine == CATALOG_AUTO) {
		turn_to_cpu(o);
		r = open_engine(o, catalog, regions, pd);
	}
	if (r < 0)
		return r;
	if (*o->why) {
		log_error("%s: offload %s is disabled", rnic_device_name(rnic_pd_device(pd)), conf->name);
		return 0;
	}
	o->description = program_describe(o->program);
	if (!o->description)
		return -ENOMEM;
	describe(o);
	if (o->cpu)
		log_at(conf->engine == CATALOG_CPU ? LOG_NOTICE : LOG_WARNING, 0,
			"offload %s: the CPU executes it: %s", conf->name, o->why_cpu);
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

bool offload_is_disabled(const struct offload *o, char why[OFFLOAD_WHY])
{
	char bad[REGION_WHY], words[OFFLOAD_WHY];

	snprintf(words, sizeof(words), "%s", o->why);
	for (unsigned i = 0; !*words && i < o->program->nregions; i++)
		if (region_is_bad(o->bound[i].region, bad))
			snprintf(words, sizeof(words), "region \"%s\" cannot be served: %s",
				o->bound[i].region->conf->name, bad);
	if (why)
		memcpy(why, words, sizeof(words));
	return *words;
}

bool offload_uses(const struct offload *o, const struct region *r)
{
	for (unsigned i = 0; i < o->program->nregions; i++)
		if (o->bound[i].region == r)
			return true;
	return false;
}

int offload_bind(const struct offload *o, struct rnic_pd *pd, struct chain_env *env)
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
	return r;
}

void offload_window_slots(
	const struct offload *o, struct rnic_pd *pd, const struct ledger_slot *slots[CHAIN_MAX_WINDOWS])
{
	struct rnic_window w;

	for (unsigned i = 0; i < CHAIN_MAX_WINDOWS; i++)
		slots[i] = !o->cpu && i < o->program->nregions &&
					   region_window(o->bound[i].region, pd, o->bound[i].part,
						   o->bound[i].writable, &w) == 0
				   ? w.slot
				   : NULL;
}

bool offload_is_bound(const struct offload *o, struct rnic_pd *pd)
{
	for (unsigned i = 0; !o->cpu && i < o->program->nregions; i++)
		if (!region_has_window(o->bound[i].region, pd, o->bound[i].part, o->bound[i].writable))
			return false;
	return true;
}
