/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/posting.h"

#include "mlx5/wqe.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/queues.h"

#include <assert.h>

bool session_is_limited(const struct session *s)
{
	const struct session_limits *l = &s->first->limits;

	return l->rate.per_second || s->tenant->rate.per_second || l->bytes.per_second ||
	       s->tenant->bytes.per_second;
}

uint64_t session_price(const struct session *s)
{
	return s->offload->slot_need;
}

/* RECVs that the recycler alone would have enabled at most by now, but for the section that it is in */
static uint64_t recycled_to(const struct session *s)
{
	return session_recycled(s) + s->queues.layout.slots - 1;
}

/* The recycler logs an outcome again when a lap more is over: it must have been read before that. Without
 * limits nobody reads outcomes, and the recycler itself goes on. */
uint64_t session_postable(const struct session *s)
{
	uint64_t read_to = s->counters.read + s->queues.layout.slots - 1;

	if (!s->queues.layout.recycled)
		return s->progress.armed - 1;
	if (!session_is_paced(s))
		return recycled_to(s);
	return recycled_to(s) < read_to ? recycled_to(s) : read_to;
}

/* The ledger has it before it is done: doing it again does no harm */
static int enable_recvs(struct session *s, uint64_t to)
{
	if (s->slot)
		__atomic_store_n(&s->slot->session.counters.posted, to, __ATOMIC_RELEASE);
	return session_queues_are_starting(s)
		       ? master_qp_post_recvs(&s->domain->master, s->queues.qp[0].qpn, (uint16_t)to)
		       : master_qp_enable_recvs(&s->domain->master, s->queues.qp[0].qpn, (uint16_t)to);
}

int session_post(struct session *s, uint64_t to)
{
	int r = 0;

	if (s->cpu)
		return session_cpu_post(s, to);
	if (s->pacing.unsettled && recycled_to(s) >= s->progress.posted) {
		s->pacing.unsettled = false;
		r = enable_recvs(s, s->progress.posted);
	}
	if (r < 0 || s->pacing.unsettled || to <= s->progress.posted)
		return r;
	if (s->queues.layout.recycled)
		r = enable_recvs(s, to);
	else
		rnic_qp_post_recvs(&s->queues.qp[0], (uint32_t)to);
	if (r == 0)
		s->progress.posted = to;
	return r;
}

uint8_t *session_recv_en(const struct session *s, unsigned section)
{
	return s->queues.env.recycler.ring + s->queues.layout.recycling.recv_en[section] * RNIC_WQEBB_BYTES +
	       WQE_OPCODE;
}

/*
 * Turns each RECV_EN of the recycler into a NOP, or back: one byte, which the NIC reads before or after. The
 * NIC may have read the old opcode for the section that it is in. So when pacing begins that section counts
 * as posted, and session_post() posts it as soon as it can. When pacing ends, one RECV_EN may be missing; the
 * one of the next section makes up for it. The recycler comes to that when the instances of the section that
 * it waits for are over, so their RECVs must be posted: pacer_post() does, and what is unsettled is posted
 * here.
 */
void session_set_paced(struct session *s, bool paced)
{
	const struct queue_layout *l = &s->queues.layout;
	uint8_t opcode = paced ? WQE_OP_NOP : WQE_OP_RECV_EN;
	bool begins = paced && !session_is_paced(s), ends = !paced && session_is_paced(s);

	if (l->recycled && (begins || ends))
		for (unsigned g = 0; g < chain_recycle_sections(l->slots); g++)
			__atomic_store_n(session_recv_en(s, g), opcode, __ATOMIC_RELEASE);
	assert(!ends || s->pacing.state == PACING_ON);
	if (begins || ends)
		s->pacing.state = begins ? PACING_ON : PACING_NONE;
	session_cpu_set_paced(s, paced);
	if (l->recycled && !paced && s->pacing.unsettled)
		session_post(s, s->progress.posted);
	s->pacing.unsettled &= paced;
	if (!l->recycled || !begins || !s->progress.posted)
		return;
	s->pacing.unsettled = true;
	s->progress.posted = recycled_to(s) + chain_recycle_together(l->slots);
}

void session_arm_replies(struct session *s)
{
	rnic_cq_seek(&s->recycler.reply_cq, s->progress.done);
	rnic_cq_arm(&s->recycler.reply_cq, false);
}

/* ---- limits ---- */

void session_init_limits(struct session *s, uint64_t now)
{
	const struct catalog_limits *l = &s->tenant->limits;

	s->limits.configured.rate = l->session_rate;
	s->limits.configured.burst = l->session_burst;
	rate_init(&s->limits.rate, l->session_rate, l->session_burst, now);
	rate_init(&s->limits.bytes, l->session_bytes_rate,
		rate_burst(l->session_bytes_rate, session_price(s)), now);
	tenant_expect_replies(s->tenant, session_price(s), now);
}

static void apply(struct session *s, uint64_t now)
{
	struct session_limits *l = &s->limits;
	bool throttled =
		l->throttle.until > now && (!l->configured.rate || l->throttle.rate < l->configured.rate);

	if (throttled)
		rate_set(&l->rate, l->throttle.rate, 0, now);
	else
		rate_set(&l->rate, l->configured.rate, l->configured.burst, now);
}

void session_limit_requests(struct session *s, uint64_t rate, uint64_t burst, uint64_t now)
{
	s->limits.configured.rate = rate;
	s->limits.configured.burst = burst;
	apply(s, now);
}

void session_limit_bytes(struct session *s, uint64_t bytes_rate, uint64_t now)
{
	rate_set(&s->limits.bytes, bytes_rate, rate_burst(bytes_rate, session_price(s)), now);
}

void session_throttle(struct session *s, uint64_t rate, uint64_t until, uint64_t now)
{
	s->limits.throttle.rate = rate;
	s->limits.throttle.until = until;
	apply(s, now);
}
