/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/instances.h"

#include "reddnd/session/faults.h"
#include "reddnd/session/posting.h"

#include <endian.h>
#include <inttypes.h>

int session_completed(struct session *s, const struct rnic_cqe *cqe, struct verdict *v)
{
	const struct chain_image *img = s->offload->img;
	uint16_t last;

	if (cqe->error) {
		session_fault(s, 0, cqe, v);
		return 1;
	}
	last = (uint16_t)(chain_enable_index(img, &s->queues.env, 0, s->progress.done, img->queue[0].wqebbs) -
			  s->queues.tail);
	if (cqe->index != last) {
		verdict_set(
			v, VERDICT_QUEUE, true, "completion of WQE %u where %u was next", cqe->index, last);
		return 1;
	}
	s->progress.done++;
	return 0;
}

uint64_t session_recycled(const struct session *s)
{
	if (!s->queues.layout.recycled)
		return 0;
	return le64toh(
		__atomic_load_n((uint64_t *)(s->queues.env.lanes.mem + s->queues.layout.recycling.progress),
			__ATOMIC_ACQUIRE));
}

/* The recycler counts quarters of the slots; CQEs of replies show the rest. Their ring holds twice as many
 * CQEs as there are slots: none is mistaken for one of the round before. */
uint64_t session_count(struct session *s)
{
	uint64_t before = s->progress.done, kept = session_recycled(s);
	struct rnic_cqe cqe;

	if (!s->queues.layout.recycled)
		return 0;
	/* a reply queue that fails is flushed, and the recycler takes that for replies */
	if (kept > s->progress.done &&
		!(rnic_cq_peek(&s->queues.cq[0], (uint32_t)kept - 1, &cqe) && cqe.error))
		s->progress.done = kept;
	while (rnic_cq_peek(&s->recycler.reply_cq, (uint32_t)s->progress.done, &cqe) && !cqe.error)
		s->progress.done++;
	return s->progress.done - before;
}

uint64_t session_count_loop(struct session *s)
{
	uint64_t before = s->counters.iterations;

	s->counters.iterations = session_loop_iterations(s->queues.loop);
	return s->counters.iterations - before;
}

unsigned session_used(const struct session *s)
{
	const struct session_progress *p = &s->progress;
	unsigned slots = s->queues.layout.slots;

	return (unsigned)((p->done + slots - p->armed) * 8 / slots);
}

/* The session paid for the longest reply. A client that is not built on libreddn can get more of a table
 * than that (reddnd-security(7)). */
static void settle(struct rate *r, uint64_t paid, uint64_t bytes)
{
	if (!r->per_second)
		return;
	if (bytes <= paid)
		rate_give(r, paid - bytes);
	else
		rate_take(r, bytes - paid < r->tokens ? bytes - paid : r->tokens);
}

void session_count_outcomes(struct session *s)
{
	const struct offload *o = s->offload;

	for (; !s->queues.layout.recycled && s->counters.read < s->progress.done; s->counters.read++) {
		struct outcome out = outcome_read(&o->outcome, o->img, &s->queues.env, s->counters.read);
		bool miss = o->outcome.conditional && !out.hit;

		s->counters.hits += out.hit;
		s->counters.misses += miss;
		s->counters.bytes_out += out.bytes;
		o->stats->hits += out.hit;
		o->stats->misses += miss;
		o->stats->bytes_out += out.bytes;
		settle(&s->limits.bytes, session_price(s), out.bytes);
		settle(&s->tenant->bytes, session_price(s), out.bytes);
	}
}

int session_rearm(struct session *s, struct verdict *v)
{
	const struct chain_image *img = s->offload->img;
	struct rnic_cqe cqe;

	session_count_outcomes(s);
	while (s->progress.armed < s->progress.done + s->queues.layout.slots) {
		uint64_t finished = s->progress.armed - s->queues.layout.slots;

		if (rnic_cq_peek(&s->queues.cq[0], (uint32_t)finished, &cqe) && !cqe.error &&
			cqe.length != img->arg_len) {
			verdict_set(v, VERDICT_REQUEST, true, "request %" PRIu64 " had %u bytes, not %u",
				finished, cqe.length, img->arg_len);
			return 1;
		}
		chain_arm(img, &s->queues.env, s->progress.armed++);
	}
	return 0;
}
