/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/extents.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/publish.h"
#include "reddnd/generation/held-store.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/policy/offload-stats.h"
#include "reddnd/session/count.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static const uint64_t none = UINT64_MAX;

static unsigned slot_of(const struct session *s, uint64_t n)
{
	return (unsigned)(n % s->queues.layout.slots);
}

int session_extents_begin(struct session *s)
{
	const unsigned slots = s->queues.layout.slots;
	const struct chain_payload *p = &s->offload->img->payload;

	if (!p->max)
		return 0;
	s->extents.at = malloc(slots * sizeof(*s->extents.at));
	if (!s->extents.at)
		return -ENOMEM;
	for (unsigned i = 0; i < slots; i++)
		s->extents.at[i] = none;
	s->extents.store = s->offload->bound[p->region].region->store;
	held_store_join(s->extents.store);
	s->queues.env.extents.at = s->extents.at;
	return 0;
}

int session_extents_left(const struct ledger_session *l, const struct offload *o, const uint8_t *block,
	struct extents_left *left)
{
	const struct queue_layout *layout = layouts_of_slots(o, l->slots);
	const unsigned slots = layout->slots;
	const uint8_t *progress = block + layout->lanes_off + layout->recycling.progress;
	const uint64_t recycled = le64toh(__atomic_load_n((const uint64_t *)progress, __ATOMIC_ACQUIRE));
	uint64_t given;

	left->settled = l->settled;
	if (chain_recycle_given(&layout->recycling, slots, recycled,
		    rnic_qp_posted_at(block + layout->recycler.qp_db_off), &given) < 0)
		return -EBADMSG;
	left->armed = slots + given * chain_recycle_together(slots);
	return left->settled + slots < left->armed || left->settled > left->armed ? -EBADMSG : 0;
}

uint64_t session_extents_at(
	const struct offload *o, const struct queue_layout *l, const uint8_t *rq, uint64_t iova, uint64_t n)
{
	const unsigned last = o->img->nrecv - 1;
	const uint8_t *sge = rq + n % l->slots * l->rq_stride + last * WQE_DS;

	return wqe_get64(sge + WQE_SGE_ADDR) - iova - o->img->recv[last].offset;
}

int session_extents_adopt(struct session *s)
{
	const struct queue_layout *l = &s->queues.layout;
	const struct chain_env *env = &s->queues.env;
	struct extents_left left;
	int r = session_extents_left(&s->slot->session, s->offload, s->queues.block.mem, &left);

	/* What was reported to the store is over */
	s->engine->count(s);
	if (r == 0 && s->progress.done < left.settled)
		r = -EBADMSG;
	if (r == 0)
		r = session_extents_begin(s);
	if (r < 0)
		return r;
	/* The last section may be given without the doorbell: ringing again does no harm */
	if (left.armed > l->slots)
		rnic_qp_ring(&s->recycler.qp, s->recycler.qp.sq_posted);
	for (uint64_t n = left.settled; n < left.armed; n++)
		s->extents.at[slot_of(s, n)] =
			session_extents_at(s->offload, l, env->rq, env->extents.iova, n);
	s->extents.settled = left.settled;
	s->progress.armed = left.armed;
	return 0;
}

bool session_extents_have_room(const struct session *s)
{
	const struct chain_image *img = s->offload->img;

	return !s->extents.at ||
	       held_store_may_hold(s->extents.store, img->arg_len + img->payload.max, s->queues.layout.slots);
}

/* In a slot that is armed again later than that of @from: an extent that was not published. Without it,
 * requests that publish nothing would use up what a session has where the store has no more. */
static bool take_left(struct session *s, uint64_t from, uint64_t *at)
{
	struct session_extents *e = &s->extents;

	for (uint64_t n = from + 1; n < e->settled + s->queues.layout.slots; n++) {
		uint64_t *left = &e->at[slot_of(s, n)];

		if (*left == none)
			continue;
		*at = *left;
		*left = none;
		held_store_renew(e->store, *at);
		return true;
	}
	return false;
}

/* An extent that was not published goes on with the next instance */
uint64_t session_extents_take(struct session *s, uint64_t from, uint64_t to)
{
	const struct chain_image *img = s->offload->img;
	struct session_extents *e = &s->extents;

	for (; from < to; from++) {
		uint64_t *at = &e->at[slot_of(s, from)];

		if (*at != none)
			held_store_renew(e->store, *at);
		else if (held_store_take(e->store, img->arg_len + img->payload.max, at) < 0 &&
			 !take_left(s, from, at))
			break;
	}
	e->waits = from < to;
	return from;
}

/* ---- what became of them ---- */

/* @ring: of the queue of the publish */
static struct chain_outcome outcome_in(
	const struct chain_image *img, const uint8_t *ring, const uint8_t *scratch, unsigned slot)
{
	return chain_outcome(img, ring + (size_t)slot * img->queue[img->publish.queue].wqebbs * CHAIN_WQEBB,
		scratch + (size_t)slot * img->scratch_size);
}

static struct chain_outcome outcome_of(const struct session *s, uint64_t n)
{
	const struct chain_image *img = s->offload->img;
	const struct chain_env *env = &s->queues.env;

	return outcome_in(img, env->queue[img->publish.queue].ring, env->scratch.mem, slot_of(s, n));
}

void session_extents_outcome(const struct session *s, uint64_t n, struct outcome *out)
{
	const struct chain_outcome o = outcome_of(s, n);

	out->hit = o.published;
	out->conflict = o.tried && !o.published;
}

/* In the region */
static uint64_t place_of(const struct session *s, const struct chain_outcome *o)
{
	return o->place - s->queues.env.region[s->offload->img->publish.region].iova;
}

/* Bytes behind the arguments of request @n, which is over */
static uint32_t payload_of(const struct session *s, uint64_t n)
{
	const uint32_t args = s->offload->img->arg_len;
	struct rnic_cqe cqe;

	if (!rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &cqe) || cqe.error || cqe.length < args)
		return 0;
	return cqe.length - args;
}

/* Without a payload nothing is to be put, so no entry is missing */
static void settle(struct session *s, uint64_t n)
{
	const struct chain_outcome o = outcome_of(s, n);
	const uint32_t payload = payload_of(s, n);
	struct session_extents *e = &s->extents;
	uint64_t *at = &e->at[slot_of(s, n)];
	bool good = true;

	s->counters.payload += payload;
	s->offload->stats->bytes_in += payload;
	if (o.published) {
		good = held_store_published(e->store, place_of(s, &o), o.old, o.now);
		*at = none;
	} else if (!o.tried && payload) {
		good = held_store_unplaced(e->store, *at, s->offload->img->arg_len + payload);
	}
	if (!good && !e->broken) {
		e->broken = true;
		e->broken_by = n;
	}
}

void session_extents_settle(struct session *s)
{
	struct session_extents *e = &s->extents;

	while (e->settled < s->progress.done)
		settle(s, e->settled++);
	/* Before what was replaced is free: the next daemon reports none of these again */
	if (s->slot)
		__atomic_store_n(&s->slot->session.settled, e->settled, __ATOMIC_RELEASE);
}

uint64_t session_extents_next(struct session *s, uint64_t most, bool *broken, struct verdict *v)
{
	const uint64_t to = session_may_arm(s, broken, v);

	session_extents_settle(s);
	if (s->extents.broken && !*broken)
		verdict_set(v, VERDICT_REQUEST, true,
			"request %" PRIu64 " had %u bytes of arguments and a payload that is no record",
			s->extents.broken_by, s->offload->img->arg_len);
	*broken |= s->extents.broken;
	return session_extents_take(s, s->progress.armed, to < most ? to : most);
}

/* Of instance @n, in which the queues were stopped */
static void leave(struct session *s, uint64_t n)
{
	const struct chain_outcome o = outcome_of(s, n);
	struct session_extents *e = &s->extents;
	uint64_t *at = &e->at[slot_of(s, n)];

	if (!o.tried)
		return;
	held_store_unfinished(e->store, place_of(s, &o), o.old, o.now);
	*at = none;
}

void session_extents_abandon(const struct offload *o, const struct queue_layout *l, const uint8_t *block,
	const struct extents_left *left, uint64_t buckets, uint64_t heap)
{
	const struct chain_image *img = o->img;
	struct held_store *store = o->bound[img->payload.region].region->store;

	for (uint64_t n = left->settled; n < left->armed; n++) {
		const struct chain_outcome out =
			outcome_in(img, block + l->queue[img->publish.queue].ring_off, block + l->scratch_off,
				(unsigned)(n % l->slots));

		if (out.tried)
			held_store_unfinished(store, out.place - buckets, out.old, out.now);
		else
			held_store_give(store, session_extents_at(o, l, block + l->queue[0].wq_off, heap, n));
	}
}

void session_extents_forget(struct session *s)
{
	if (s->extents.at)
		held_store_leave(s->extents.store);
	free(s->extents.at);
	s->extents = (struct session_extents){0};
}

void session_extents_end(struct session *s)
{
	struct session_extents *e = &s->extents;

	if (!e->at)
		return;
	session_extents_settle(s);
	for (uint64_t n = s->progress.done; n < s->progress.armed; n++)
		leave(s, n);
	for (unsigned i = 0; i < s->queues.layout.slots; i++)
		if (e->at[i] != none)
			held_store_give(e->store, e->at[i]);
	session_extents_forget(s);
}
