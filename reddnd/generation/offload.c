/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/offload.h"

#include "reddnd/executor/executor.h"
#include "reddnd/generation/fit.h"
#include "reddnd/generation/loop-size.h"
#include "reddnd/program/describe.h"
#include "reddnd/rnic/cq-pool.h"
#include "reddnd/rnic/queue.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
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

/* Logs what is wrong, and keeps it as the reason why the offload cannot be used. Returns @error. */
static int wrong(struct offload *o, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int wrong(struct offload *o, int error, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = vwrong(o, error, format, ap);
	va_end(ap);
	return r;
}

/* The same for what the device lacks. Returns -EOPNOTSUPP */
static int unfit(struct offload *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int unfit(struct offload *o, const char *format, ...)
{
	va_list ap;
	int r;

	va_start(ap, format);
	r = vwrong(o, -EOPNOTSUPP, format, ap);
	va_end(ap);
	o->unfit = true;
	return r;
}

/* ---- the program
 * --------------------------------------------------------------------------------------------- */

static void log_lines(char *text)
{
	for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		log_error("%s", line);
}

/* 0: o->program is that for @target; 1 and what is wrong with it; a negative errno, which has been logged */
static int compile_for(struct offload *o, const struct program_setting *more, unsigned nmore,
	const struct program_target *target, char **messages)
{
	struct program *program = NULL;
	int r = catalog_compile(o->conf, more, nmore, target, &program, messages);

	if (r < 0)
		return wrong(o, r, "it cannot be compiled: %s", strerror(-r));
	if (r > 0)
		return r;
	program_free(o->program);
	o->program = program;
	o->img = program->image;
	return 0;
}

/* The program has mistakes for @target, the device. If it has none for a device that has more, it is the
 * device that lacks something, and o->program is the one for the other device: it has a name and regions */
static int find_lack(struct offload *o, const struct program_setting *more, unsigned nmore,
	const struct program_target *target)
{
	CLEANUP(cleanup_free) char *masked = NULL, *both = NULL, *all = NULL;
	struct program_target t = *target;
	int r;

	t.masked_atomics = true;
	r = compile_for(o, more, nmore, &t, &masked);
	if (r <= 0)
		return r < 0 ? r : unfit(o, "its program needs masked atomics, which the device has not");
	t.max_sge = 0;
	r = compile_for(o, more, nmore, &t, &both);
	if (r <= 0)
		return r < 0 ? r
			     : unfit(o,
				       "its program needs WQEs with more than %u data segments, which the "
				       "device has not",
				       target->max_sge);
	t.fetch_group = 0;
	r = compile_for(o, more, nmore, &t, &all);
	if (r <= 0)
		return r < 0 ? r
			     : unfit(o,
				       "its program is too long for NOPs that fill the groups of %u bytes "
				       "that the device fetches together",
				       target->fetch_group * RNIC_WQEBB_BYTES);
	return -EINVAL;
}

static int compile(
	struct offload *o, const struct program_setting *more, unsigned nmore, const struct rnic_caps *caps)
{
	const struct program_target target =
		o->cpu || *caps->no_chains ? fit_cpu_target() : fit_target(caps, o->conf->recycled);
	CLEANUP(cleanup_free) char *messages = NULL;
	int r = compile_for(o, more, nmore, &target, &messages);

	if (r <= 0)
		return r;
	r = find_lack(o, more, nmore, &target);
	if (r != -EINVAL)
		return r;
	wrong(o, -EINVAL, "its program has mistakes");
	if (messages)
		log_lines(messages);
	return -EINVAL;
}

static bool has_param(const struct program *p, const char *name)
{
	for (unsigned i = 0; i < p->nparams; i++)
		if (strcmp(p->params[i].name, name) == 0)
			return true;
	return false;
}

/* Compiles once more if the program has params that depend on the table */
static int compile_for_table(struct offload *o, const struct table_geometry *g, const struct rnic_caps *caps)
{
	const struct program_setting all[] = {
		{"width", g->offset_len},
		{"record", table_slot_need(g) - REDDN_SLOT_RECORD},
	};
	struct program_setting more[2];
	unsigned n = 0;

	for (unsigned i = 0; i < 2; i++)
		if (has_param(o->program, all[i].name))
			more[n++] = all[i];
	return n ? compile(o, more, n, caps) : 0;
}

/* ---- its regions
 * --------------------------------------------------------------------------------------------- */

static int bind_region(struct offload *o, unsigned i, const struct catalog *catalog, struct region **regions)
{
	const struct program_region *want = &o->program->regions[i];
	struct catalog_binding bound;
	char why[200];

	if (catalog_bind(catalog, o->conf, want->name, want->writable, &bound, why, sizeof(why)) < 0)
		return wrong(o, -EINVAL, "%s", why);
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
			return wrong(o, -EINVAL,
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
	return wrong(o, -EINVAL, "region \"%s\" of the program needs %" PRIu64 " bytes, \"%s\" has %" PRIu64,
		want->name, want->size, o->bound[i].region->conf->name, size);
}

static int check_regions(struct offload *o)
{
	char why[REGION_WHY];
	int r = 0;

	for (unsigned i = 0; i < o->program->nregions; i++)
		if (region_is_bad(o->bound[i].region, why))
			return wrong(o, -ENODATA, "region \"%s\" cannot be served: %s",
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
			return wrong(o, -EINVAL,
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
		return wrong(o, r, "its regions cannot be registered with the device: %s", strerror(-r));
	for (unsigned i = 0; i < o->program->nregions; i++)
		if (env.region[i].iova & ((1ull << o->img->region_bits[i]) - 1))
			return wrong(o, -EINVAL,
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
static unsigned count_keys(const struct offload *o)
{
	return o->img->arg_len / bytes_of_key(&o->table->geometry);
}

/* What libreddn asks for, with one key or several, and where it looks for each record */
static bool is_for_tables(const struct offload *o)
{
	const struct table_geometry *g = &o->table->geometry;
	unsigned keys = count_keys(o);
	uint64_t record = table_slot_need(g) - REDDN_SLOT_RECORD;

	if (o->img->arg_len % bytes_of_key(g) || !keys || keys > REDDN_WIRE_KEYS)
		return false;
	return keys == 1 || o->slot_need == REDDN_SLOT_RECORD + keys * record;
}

static int check_shape(struct offload *o)
{
	if (o->program->shape != PROGRAM_TABLE || (o->table && is_for_tables(o)))
		return 0;
	return wrong(o, -EINVAL,
		"a program of shape table reads two buckets of a table for each key; its request must be "
		"two times a fingerprint of %d bytes and a bucket's offset, up to %d times, and replies "
		"to several keys one record after the other",
		FP, REDDN_WIRE_KEYS);
}

/* Loops have bounds, in the program or in the catalog, so the WQEs of a request are known before it comes */
static int check_budget(struct offload *o)
{
	uint64_t wqes = o->outcome.wqes + loop_size_wqes(o->program, o->conf->loop_budget);

	if (!o->conf->wqe_budget)
		return 0;
	if (o->program->loop && !o->conf->loop_budget)
		return wrong(
			o, -EINVAL, "its loop has no bound, so a \"wqe_budget\" needs a \"loop_budget\"");
	if (wqes <= o->conf->wqe_budget)
		return 0;
	return wrong(o, -E2BIG, "a request takes %" PRIu64 " WQEs, \"wqe_budget\" is %u", wqes,
		o->conf->wqe_budget);
}

/* ---- the device
 * ---------------------------------------------------------------------------------------------- */

enum { LAYOUTS = 17 };

static unsigned log_slots(const struct offload *o, unsigned depth)
{
	return (unsigned)__builtin_ctz(offload_slots(o, depth));
}

static void forget_layouts(struct offload *o)
{
	for (unsigned i = 0; o->templates && i < LAYOUTS; i++)
		chain_template_free(o->templates[i]);
	free(o->templates);
	free(o->layouts);
	chain_again_free(o->again);
	o->again = NULL;
	o->templates = NULL;
	o->layouts = NULL;
}

/* Makes the layouts for all depths that a client may ask for. -E2BIG: the device has no queues that deep;
 * @most is the number of instances that it has room for */
static int make_layouts(struct offload *o, uint32_t max_wqebbs, unsigned *most)
{
	unsigned last = log_slots(o, o->conf->depth_max);
	struct loop_size size, *loop = loop_size_of(o->program, o->conf->loop_rate, &size) ? &size : NULL;
	int r = 0;

	forget_layouts(o);
	o->layouts = calloc(LAYOUTS, sizeof(*o->layouts));
	o->templates = calloc(LAYOUTS, sizeof(*o->templates));
	if (!o->layouts || !o->templates)
		return -ENOMEM;
	for (unsigned i = log_slots(o, 1); i <= last && r == 0; i++) {
		*most = 1u << i;
		r = queue_layout_make(o->img, loop, o->conf->recycled, *most, max_wqebbs, &o->layouts[i]);
	}
	for (struct queue_layout l; r == -E2BIG && *most > 2;) {
		*most /= 2;
		if (queue_layout_make(o->img, loop, o->conf->recycled, *most, max_wqebbs, &l) == 0)
			break;
	}
	return r == 0 && !o->conf->recycled ? chain_again_new(&o->again, o->img) : r;
}

struct offload_cpu offload_cpu_layout(const struct offload *o, unsigned slots)
{
	enum { LINE = 64, REPLIES_MIN = 2, REPLIES_BYTES = 1 << 20 };
	uint64_t data = (executor_bytes(o->program) + 3) / 4 * 4;
	uint64_t reply = (data + 4ull * executor_max_messages(o->program) + LINE - 1) / LINE * LINE;
	uint64_t replies = REPLIES_BYTES / reply;

	if (replies < REPLIES_MIN)
		replies = REPLIES_MIN;
	return (struct offload_cpu){
		.recv_bytes = (o->img->arg_len + LINE - 1) / LINE * LINE,
		.data_size = (uint32_t)data,
		.reply_bytes = (uint32_t)reply,
		.replies = replies < slots ? (unsigned)replies : slots,
	};
}

static int make_cpu_layouts(struct offload *o)
{
	unsigned last = log_slots(o, o->conf->depth_max);

	if (executor_bytes(o->program) > UINT32_MAX / 2)
		return wrong(o, -E2BIG, "the replies to a request may have %" PRIu64 " bytes",
			executor_bytes(o->program));
	forget_layouts(o);
	o->layouts = calloc(LAYOUTS, sizeof(*o->layouts));
	if (!o->layouts)
		return -ENOMEM;
	for (unsigned i = log_slots(o, 1); i <= last; i++) {
		struct offload_cpu l = offload_cpu_layout(o, 1u << i);

		o->layouts[i].slots = 1u << i;
		o->layouts[i].size = ((uint64_t)l.recv_bytes << i) + (uint64_t)l.replies * l.reply_bytes;
	}
	return 0;
}

static int check_device(struct offload *o, const struct rnic_caps *caps)
{
	unsigned slots = offload_slots(o, o->conf->depth_max);
	uint32_t max_wqebbs = 1u << caps->log_max_qp_wqebbs;
	char why[FIT_WHY];
	unsigned most = 0;
	int r;

	if (o->cpu)
		return make_cpu_layouts(o);
	if (o->program->loop && o->program->loop_ring > max_wqebbs)
		return wrong(o, -E2BIG, "its loop takes a queue of %u WQEBBs, the device has queues of %u",
			o->program->loop_ring, max_wqebbs);
	r = make_layouts(o, max_wqebbs, &most);
	if (r < 0 && r != -E2BIG)
		return r;
	if (r < 0)
		return wrong(o, -E2BIG,
			"%u instances do not fit a queue; at most %u do, for a depth_max of %u", slots, most,
			most / 2);
	return fit_check(o->program, o->conf->recycled, caps, why) < 0 ? unfit(o, "%s", why) : 0;
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

/* What follows from the program as it is compiled now */
static int check_program(struct offload *o, const struct rnic_caps *caps)
{
	int r;

	o->slot_need = (o->program->reply_max + 63) / 64 * 64;
	o->max_message = longest_message(o->program->desc);
	outcome_plan(&o->outcome, o->program);
	r = check_budget(o);
	return r == 0 ? check_device(o, caps) : r;
}

/* What depends on the files of the regions, which belong to others */
static int open_regions(
	struct offload *o, const struct catalog *catalog, struct rnic_pd *pd, const struct rnic_caps *caps)
{
	int r = check_regions(o);

	if (r == 0 && o->table)
		r = compile_for_table(o, &o->table->geometry, caps);
	if (r == 0)
		r = check_stored(o, catalog);
	if (r == 0)
		r = check_program(o, caps);
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
	const struct rnic_caps *caps = rnic_device_caps(rnic_pd_device(pd));
	int r;

	o->cq_alone = !o->cpu && !caps->observed.flushes_enabled_only;
	r = compile(o, NULL, 0, caps);
	if (r == 0 && !o->cpu && *caps->no_chains)
		r = unfit(o, "the device runs no chains: %s", caps->no_chains);
	if (r == 0 || o->unfit) { /* mistakes of the configuration in any case */
		int bound = bind_regions(o, catalog, regions);

		r = bound < 0 ? bound : r;
	}
	if (r == 0)
		r = check_program(o, caps);
	if (r < 0 && !o->unfit)
		return r;
	if (r == 0)
		r = open_regions(o, catalog, pd, caps);
	return r == -ENOMEM ? r : 0;
}

/* The device cannot run it, so the CPU does: what was found is the reason */
static void turn_to_cpu(struct offload *o)
{
	char why[OFFLOAD_WHY];

	memcpy(why, o->why, sizeof(why));
	program_free(o->program);
	forget_layouts(o);
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
		log_error("offload %s is disabled", conf->name);
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

void offload_close(struct offload *o)
{
	program_free(o->program);
	free(o->description);
	forget_layouts(o);
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

unsigned offload_slots(const struct offload *o, unsigned depth)
{
	return o->conf->instances ? o->conf->instances : queue_layout_slots(depth, o->conf->recycled);
}

const struct queue_layout *offload_layout(const struct offload *o, unsigned depth)
{
	assert(depth <= o->conf->depth_max);
	return &o->layouts[log_slots(o, depth)];
}

const struct queue_layout *offload_layout_of(const struct offload *o, unsigned slots)
{
	for (unsigned i = 0; o->layouts && slots && i < LAYOUTS; i++)
		if (o->layouts[i].slots == slots)
			return &o->layouts[i];
	return NULL;
}

int offload_template(const struct offload *o, const struct queue_layout *l, const struct chain_template **out)
{
	struct chain_template **t = &o->templates[__builtin_ctz(l->slots)];
	struct chain_env sizes = {.slots = l->slots};
	int r = 0;

	for (unsigned q = 0; q < o->img->nqueues; q++)
		sizes.queue[q].ring_wqebbs = l->queue[q].ring_wqebbs;
	if (!*t)
		r = chain_template_new(t, o->img, &sizes, &l->recycling);
	*out = *t;
	return r;
}

uint32_t offload_reply_cqes(const struct offload *o, unsigned slots)
{
	if (o->conf->recycled || o->cpu)
		return 0;
	return (o->cq_alone ? chain_ring_wqes : chain_ring_cqes)(&o->img->queue[0], slots);
}

uint64_t offload_queue_bytes(const struct offload *o, unsigned depth)
{
	return offload_bytes_of(o, offload_layout(o, depth));
}

uint64_t offload_bytes_of(const struct offload *o, const struct queue_layout *l)
{
	uint32_t cqes = offload_reply_cqes(o, l->slots);

	return l->size + (o->cq_alone && cqes ? cq_pool_bytes_alone(cqes) : 0);
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

void offload_describe_request(const struct program *p, struct reddn_wire_rep *rep)
{
	if (p->nargs > REDDN_WIRE_ARGS || p->npieces > REDDN_WIRE_FIELDS)
		return;
	for (unsigned i = 0; i < p->nargs; i++)
		if (p->args[i].bytes > UINT8_MAX)
			return;
	rep->nargs = (uint8_t)p->nargs;
	rep->nfields = (uint8_t)p->npieces;
	for (unsigned i = 0; i < p->nargs; i++)
		rep->arg[i] = (struct reddn_wire_arg){
			.kind = p->args[i].kind == PROGRAM_STRING   ? REDDN_ARG_BYTES
				: p->args[i].kind == PROGRAM_WINDOW ? REDDN_ARG_OFFSET
								    : REDDN_ARG_NUMBER,
			.bytes = (uint8_t)p->args[i].bytes,
		};
	for (unsigned i = 0; i < p->npieces; i++)
		rep->field[i] = (struct reddn_wire_field){
			.arg = (uint8_t)p->pieces[i].arg,
			.flags = (uint8_t)((p->pieces[i].reversed ? REDDN_FIELD_REVERSED : 0) |
					   (p->pieces[i].inverted ? REDDN_FIELD_INVERTED : 0)),
			.first = (uint8_t)p->pieces[i].first,
			.len = (uint8_t)p->pieces[i].len,
		};
}

void offload_describe(const struct offload *o, struct reddn_wire_rep *rep)
{
	*rep = (struct reddn_wire_rep){
		.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.shape = o->program->shape == PROGRAM_TABLE ? REDDN_SHAPE_TABLE : REDDN_SHAPE_OPAQUE,
		.request_len = htobe32(o->img->arg_len),
		.reply_max = htobe32(o->slot_need),
	};
	if (o->program->shape == PROGRAM_TABLE) {
		unsigned keys = count_keys(o);

		rep->shape = keys > 1 ? REDDN_SHAPE_MGET : REDDN_SHAPE_TABLE;
		table_describe(&o->table->geometry, keys > 1 ? keys : 0, &rep->table);
	}
	offload_describe_request(o->program, rep);
}
