/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recycler arms instances again and posts RECVs, a section's slots at a time. What is over is in memory
 * of the session, for whoever asks: a number, CQEs of replies, a log of their WQEs.
 */
#include "mlx5/barrier.h"
#include "mlx5/wqe.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/session/count.h"
#include "reddnd/session/extents.h"
#include "reddnd/session/queues.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum { RECYCLER_READS = 16 /* under way at a time */ };

uint64_t session_recycled(const struct session *s)
{
	const uint8_t *at = s->queues.env.lanes.mem + s->queues.layout.recycling.progress;
	uint64_t n = __atomic_load_n((const uint64_t *)at, __ATOMIC_RELAXED);

	barrier_from_device();
	return le64toh(n);
}

uint8_t *session_recv_en(const struct session *s, unsigned section)
{
	return s->queues.env.recycler.ring + s->queues.layout.recycling.recv_en[section] * RNIC_WQEBB_BYTES +
	       WQE_OPCODE;
}

/* ---- RECVs ---- */

/* RECVs that the recycler alone would have enabled at most by now, but for the section that it is in */
static uint64_t recycled_to(const struct session *s)
{
	return session_recycled(s) + s->queues.layout.slots - 1;
}

/* The recycler logs an outcome again when a lap more is over: it must have been read before that. Without
 * limits nobody reads outcomes, and the recycler itself goes on. */
static uint64_t recycled_postable(const struct session *s)
{
	uint64_t read_to = s->counters.read + s->queues.layout.slots - 1;

	if (!session_is_paced(s))
		return recycled_to(s);
	return recycled_to(s) < read_to ? recycled_to(s) : read_to;
}

/* The ledger has it when it is done: the next daemon may do it again, which does no harm, but must not take
 * for done what is not */
static int enable_recvs(struct session *s, uint64_t to)
{
	struct master_qp *m = &s->domain->master;
	int r = session_queues_are_starting(s) ? master_qp_post_recvs(m, s->queues.qp[0].qpn, (uint16_t)to)
					       : master_qp_enable_recvs(m, s->queues.qp[0].qpn, (uint16_t)to);

	if (r == 0 && s->slot)
		__atomic_store_n(&s->slot->session.counters.posted, to, __ATOMIC_RELEASE);
	return r;
}

/* What is unsettled is posted as far as its slots are armed: without the RECVs of those that are, their
 * section would never be over, and the rest never armed */
static int recycled_post(struct session *s, uint64_t to)
{
	const uint64_t most = recycled_to(s);
	int r = 0;

	if (s->pacing.unsettled) {
		r = enable_recvs(s, most < s->progress.posted ? most : s->progress.posted);
		s->pacing.unsettled = r < 0 || most < s->progress.posted;
	}
	if (r < 0 || s->pacing.unsettled || to <= s->progress.posted)
		return r;
	r = enable_recvs(s, to);
	if (r == 0)
		s->progress.posted = to;
	return r;
}

/*
 * Turns each RECV_EN of the recycler into a NOP, or back: one byte, which the NIC reads before or after. The
 * NIC may have read the old opcode for the section that it is in, or for all that it was given. So when
 * pacing begins these sections count as posted, and recycled_post() posts them as soon as it can. When pacing
 * ends, their RECV_ENs may be missing; the one of the next section makes up for it. The recycler comes to
 * that when the instances of that section are over, so their RECVs must be posted. They are if no more than
 * half of the sections are missing: those that the recycler has not counted. pacer_post() posts the others,
 * and what is unsettled is posted here as far as it can be.
 */
static void recycled_pace(struct session *s, bool paced)
{
	const unsigned slots = s->queues.layout.slots;

	for (unsigned g = 0; g < chain_recycle_sections(slots); g++)
		__atomic_store_n(
			session_recv_en(s, g), paced ? WQE_OP_NOP : WQE_OP_RECV_EN, __ATOMIC_RELEASE);
	if (!paced && s->pacing.unsettled)
		recycled_post(s, s->progress.posted);
	s->pacing.unsettled = paced && s->progress.posted;
	if (s->pacing.unsettled)
		s->progress.posted = s->extents.at ? s->progress.armed - 1
						   : recycled_to(s) + chain_recycle_together(slots);
}

static void recycled_listen(struct session *s)
{
	rnic_cq_seek(&s->recycler.reply_cq, s->progress.done);
	rnic_cq_arm(&s->recycler.reply_cq, false);
}

/* Nobody else asks for events of one that gets extents */
static int recycled_serve(struct session *s)
{
	if (s->extents.at)
		recycled_listen(s);
	return 0;
}

/* ---- beginning ---- */

static void record_messages(struct ledger_recycler *r, const struct outcome_plan *plan)
{
	if (plan->nmessages > LEDGER_MESSAGES || plan->reply_wqebbs > UINT16_MAX)
		return;
	r->reply_wqebbs = (uint16_t)plan->reply_wqebbs;
	for (unsigned i = 0; i < plan->nmessages; i++) {
		r->messages[i] = (struct ledger_message){.wqebb = (uint16_t)plan->messages[i].wqebb,
			.segments = plan->messages[i].nsge,
			.conditional = plan->messages[i].conditional};
		r->sends |= (uint16_t)(plan->messages[i].sends << i);
	}
	r->nmessages = (uint16_t)plan->nmessages;
}

/* For a daemon that does not have the program any more */
static void record(struct session *s)
{
	const struct queue_layout *l = &s->queues.layout;
	struct ledger_recycler *r;

	if (!s->slot)
		return;
	s->slot->session.recycled = true;
	s->slot->session.publishes = !!s->extents.at;
	r = &s->slot->session.recycler;
	*r = (struct ledger_recycler){.progress = l->lanes_off + l->recycling.progress,
		.log = l->lanes_off + l->recycling.log,
		.request_bytes = s->offload->img->arg_len,
		.reply_bytes = s->offload->outcome.longest,
		.wqes = (uint16_t)s->offload->outcome.wqes};
	_Static_assert(sizeof(r->recv_en) == sizeof(l->recycling.recv_en), "the ledger has each section");
	memcpy(r->recv_en, l->recycling.recv_en, sizeof(r->recv_en));
	record_messages(r, &s->offload->outcome);
}

/* The RECVs of the first lap are enabled before a section is given */
static int take_extents(struct session *s)
{
	const unsigned slots = s->queues.layout.slots;
	int r = session_extents_begin(s);

	if (r < 0 || !s->extents.at)
		return r;
	if (!session_extents_have_room(s) || session_extents_take(s, 0, slots) < slots)
		return -EAGAIN;
	s->progress.armed = slots;
	return 0;
}

static int recycled_begin(struct session *s, const struct session_parts *parts, const struct request *request)
{
	struct queue_layout *l = &s->queues.layout;
	const struct ring_image *recycler;
	int r = session_queues_make(s, parts->arena, request);

	if (r == 0)
		r = take_extents(s);
	if (r == 0)
		r = layouts_recycler(s->offload, l, &recycler);
	if (r < 0)
		return r;
	chain_recycle_write(recycler, s->offload->img, s->offload->program->writer, &s->queues.env);
	if (session_is_paced(s))
		recycled_pace(s, true);
	record(s);
	r = rnic_qp_connect_self(&s->recycler.qp, RECYCLER_READS);
	if (r == 0)
		r = session_queues_start(s);
	if (r < 0 || s->extents.at)
		return r;
	return master_qp_post(&s->domain->master, s->recycler.qp.qpn, l->recycling.end[0]);
}

/* ---- requests that are over ---- */

/* The NIC goes on meanwhile. The ring of RECVs is not the larger one: if its CQE is still there after that of
 * the reply was read, both are of instance @n. */
static void times_sample(struct session *s, uint64_t n)
{
	struct rnic_cqe reply, before, after;

	if (rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &before) &&
		rnic_cq_peek(&s->recycler.reply_cq, (uint32_t)n, &reply) &&
		rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &after) && after.timestamp == before.timestamp)
		session_served(s, n, &reply);
}

/*
 * The recycler counts the slots of a section at once; CQEs of replies, of which each instance has one, show
 * the rest. When queue 0 fails it is flushed, and the recycler takes that for replies, to the end of the lap
 * at most. Then the CQ still has the CQEs of the lap before (generation/queue-layout.c), and all from the
 * first error on are errors.
 */
static uint64_t count_replies(const struct session *s)
{
	const uint64_t kept = session_recycled(s), two_laps = 2 * s->queues.layout.slots;
	uint64_t done = s->progress.done;
	struct rnic_cqe cqe;

	if (kept > done && !(rnic_cq_peek(&s->recycler.reply_cq, (uint32_t)kept - 1, &cqe) && cqe.error))
		done = kept;
	else if (kept > done + two_laps)
		done = kept - two_laps;
	while (rnic_cq_peek(&s->recycler.reply_cq, (uint32_t)done, &cqe) && !cqe.error)
		done++;
	return done;
}

static void recycled_count(struct session *s)
{
	uint64_t n = s->progress.done, slots = s->queues.layout.slots, done = count_replies(s);

	s->progress.done = done;
	for (n = done > n + slots ? done - slots : n; n < done; n++)
		times_sample(s, n);
}

/* Those of a section get extents together, and then the recycler gets the section */
static void arm_extents(struct session *s, uint64_t to)
{
	const unsigned slots = s->queues.layout.slots, together = chain_recycle_together(slots);
	const uint64_t sections = (to - s->progress.armed) / together;
	uint64_t n = s->progress.armed;

	if (!sections)
		return;
	s->progress.armed += sections * together;
	for (; n < s->progress.armed; n++)
		chain_arm_extent(s->offload->img, &s->queues.env, (unsigned)(n % slots));
	rnic_qp_ring(&s->recycler.qp, chain_recycle_index(&s->queues.layout.recycling, slots,
					      (s->progress.armed - slots) / together));
}

/* Not before the recycler has renewed its own WQEs for that. It does so in a moment, and no event reports it:
 * whoever looks after the session looks again. */
static int rearm_extents(struct session *s, struct verdict *v)
{
	const unsigned slots = s->queues.layout.slots, together = chain_recycle_together(slots);
	const uint64_t most = slots + chain_recycle_may_give(slots, session_recycled(s)) * together;
	bool broken;

	arm_extents(s, session_extents_next(s, most, &broken, v));
	s->recycler.is_behind =
		s->progress.armed == most && s->progress.done + slots >= s->progress.armed + together;
	return broken;
}

static int recycled_rearm(struct session *s, struct verdict *v)
{
	if (s->extents.at)
		return rearm_extents(s, v);
	s->progress.armed = s->progress.done + s->queues.layout.slots;
	return 0;
}

/*
 * From the log of the recycler once its section is armed again, or from the ring until then. Either is
 * written again when a section is over: by the recycler, which waits for the CQE of its last instance, and
 * the NIC goes on meanwhile. The CQ has room for two laps: that CQE is another one only if more is recycled.
 */
static enum session_known recycled_outcome(const struct session *s, uint64_t n, struct outcome *out)
{
	const struct queue_layout *l = &s->queues.layout;
	const unsigned together = chain_recycle_together(l->slots);
	const bool is_logged = n < session_recycled(s);
	uint64_t until = n / together * together + (is_logged ? l->slots : 0);
	struct rnic_cqe cqe;

	/* Nothing changes in a slot before its section is given */
	if (s->extents.at && n + l->slots >= s->progress.armed) {
		*out = session_outcome_at(s, n, s->queues.env.queue[0].ring);
		session_extents_outcome(s, n, out);
		return SESSION_KNOWN;
	}
	*out = session_outcome_at(
		s, n, is_logged ? s->queues.env.lanes.mem + l->recycling.log : s->queues.env.queue[0].ring);
	barrier_from_device();
	if (session_recycled(s) <= until &&
		!rnic_cq_peek(&s->recycler.reply_cq, (uint32_t)(until + together - 1), &cqe))
		return SESSION_KNOWN;
	return is_logged ? SESSION_UNKNOWN : SESSION_NOT_YET;
}

const struct session_engine engine_recycled = {
	.is_silent = true,
	.begin = recycled_begin,
	.serve = recycled_serve,
	.postable = recycled_postable,
	.post = recycled_post,
	.pace = recycled_pace,
	.listen = recycled_listen,
	.count = recycled_count,
	.iterations = session_queues_iterations,
	.received = session_queues_received,
	.outcome = recycled_outcome,
	.rearm = recycled_rearm,
	.settle = session_queues_settle,
	.stop = session_queues_stop,
	.free = session_queues_destroy,
};
