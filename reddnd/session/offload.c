/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/offload.h"

#include "reddnd/chain/hashget.h"
#include "reddnd/session/layout.h"
#include "reddnd/util/log.h"

#include <assert.h>
#include <errno.h>

/* The most instances whose queues this device can have */
static unsigned most_slots(const struct chain_image *img, uint32_t max_wqebbs)
{
	struct session_layout l;
	unsigned slots = 2;

	while (session_layout(img, 2 * slots, max_wqebbs, &l) == 0)
		slots *= 2;
	return slots;
}

static int check(struct offload *o, const struct rnic_caps *caps)
{
	unsigned slots = offload_slots(o, o->conf->depth_max);
	uint32_t max_wqebbs = 1u << caps->log_max_qp_wqebbs;
	struct session_layout l;

	if (session_layout(o->img, slots, max_wqebbs, &l) < 0) {
		unsigned most = most_slots(o->img, max_wqebbs);

		log_error(
			"%s: offload %s: %u instances do not fit a queue; at most %u do, for a depth_max of "
			"%u",
			o->conf->where, o->conf->name, slots, most, most / 2);
		return -E2BIG;
	}
	o->session_max = l.size;
	if (o->img->nrecv * 16 > caps->max_rq_wqe) {
		log_error("%s: offload %s: a request is scattered to %u places, more than the device can",
			o->conf->where, o->conf->name, o->img->nrecv);
		return -EOPNOTSUPP;
	}
	return 0;
}

int offload_open(struct offload *o, const struct catalog_offload *conf, const struct table *table,
	const struct rnic_caps *caps)
{
	const struct chain_hash_get program = {
		.parallel = conf->parallel,
		.offset_len = table->geometry.offset_len,
	};
	int r;

	*o = (struct offload){
		.conf = conf, .table = table, .slot_need = (uint32_t)table_slot_need(&table->geometry)};
	r = chain_hash_get(&program, &o->img);
	if (r < 0)
		return log_errno(r, "%s: offload %s cannot be built", conf->where, conf->name);
	r = check(o, caps);
	if (r < 0) {
		offload_close(o);
		return r;
	}
	log_info("offload %s: %s, %u copies, %u atomics, %u waits and enables per request", conf->name,
		o->img->name, o->img->n_copy, o->img->n_atomic, o->img->n_sync);
	return 0;
}

void offload_close(struct offload *o)
{
	chain_free(o->img);
	*o = (struct offload){0};
}

unsigned offload_slots(const struct offload *o, unsigned depth)
{
	return o->conf->instances ? o->conf->instances : session_slots(depth);
}

static void bind(struct chain_env *env, unsigned i, const struct rnic_window *w)
{
	env->region[i].iova = w->iova;
	env->region[i].lkey = w->lkey;
	env->region[i].rkey = w->rkey;
}

void offload_bind(const struct offload *o, struct chain_env *env)
{
	assert(o->img->nregions == TABLE_WINDOWS);
	bind(env, CHAIN_HASH_GET_WINDOW, &o->table->buckets);
	bind(env, CHAIN_HASH_GET_HEAP, &o->table->heap);
	bind(env, CHAIN_HASH_GET_LIVE, &o->table->live);
}
