/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/instances.h"

#include "mlx5/barrier.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/faults.h"
#include "reddnd/session/note.h"
#include "reddnd/session/posting.h"
#include "reddnd/session/queues.h"
#include "reddnd/session/service.h"
#include "reddnd/session/silence.h"

#include <assert.h>
#include <inttypes.h>

/* The index of the last WQE of the reply of instance @n */
static uint16_t last_index(const struct session *s, uint64_t n)
{
	const struct chain_image *img = s->offload->img;

	return (uint16_t)(chain_end_index(img, &s->queues.env, 0, n) - s->queues.tail);
}

/* Two laps of a ring have different indices, so the last one is not mistaken for the next */
static bool was_counted(const struct session *s, uint16_t index)
{
	for (uint64_t n = s->progress.done; n > 0 && n + s->queues.layout.slots > s->progress.done;)
		if (last_index(s, --n) == index)
			return true;
	return false;
}

/* The ledger has it before the room of the CQE is given back to the device: the next daemon finds each CQE
 * that is not counted there */
static void count_one(struct session *s)
{
	s->progress.done++;
	if (s->slot)
		__atomic_store_n(&s->slot->session.counters.done, s->progress.done, __ATOMIC_RELEASE);
}

int session_completed(struct session *s, const struct rnic_cqe *cqe, struct verdict *v)
{
	uint16_t last = last_index(s, s->progress.done);

	if (cqe->error) {
		session_fault(s, 0, cqe, v);
		return 1;
	}
	if (s->resuming && was_counted(s, cqe->index))
		return 0;
	if (cqe->index != last) {
		verdict_set(
			v, VERDICT_QUEUE, true, "completion of WQE %u where %u was next", cqe->index, last);
		return 1;
	}
	session_served(s, s->progress.done, cqe);
	count_one(s);
	return 0;
}

/*
 * The recycler counts the slots of a section at once; CQEs of replies, of which each instance has one, show
 * the rest. When queue 0 fails it is flushed, and the recycler takes that for replies, to the end of the lap
 * at most. Then the CQ still has the CQEs of the lap before (generation/queue-layout.c), and all from the
 * first error on are errors.
 */
static void count_replies(struct session *s)
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
	s->progress.done = done;
}

uint64_t session_count(struct session *s)
{
	uint64_t before = s->progress.done;

	if (s->cpu) {
		s->progress.done = session_cpu_done(s);
		session_served_by_cpu(s, before);
		return s->progress.done - before;
	}
	if (!s->queues.layout.recycled)
		return 0;
	count_replies(s);
	session_served_since(s, before);
	return s->progress.done - before;
}

/* Those of the next CQE: whatever is done after it, that one comes first */
const uint64_t *session_words(const struct session *s)
{
	return s->cpu ? session_cpu_words(s)
		      : rnic_cq_words(&s->recycler.reply_cq, (uint32_t)s->progress.done);
}

uint64_t session_count_loop(struct session *s)
{
	uint64_t before = s->counters.iterations;

	s->counters.iterations = s->cpu ? session_cpu_iterations(s) : session_loop_iterations(s->queues.loop);
	return s->counters.iterations - before;
}

unsigned session_used(const struct session *s)
{
	const struct session_progress *p = &s->progress;
	unsigned slots = s->queues.layout.slots;

	return (unsigned)((p->done + slots - p->armed) * 8 / slots);
}

/* ---- outcomes ---- */

/* Instance @n paid for the longest reply, unless its RECV was posted before there was a limit. Memory whose
 * writer is wrong about lengths can make a reply longer than that. */
static void settle_limit(struct session *s, enum session_limit i, struct rate *r, uint64_t n, uint64_t bytes)
{
	uint64_t paid;

	if (n < s->pacing.paid_from[i])
		return;
	paid = session_price(s);
	if (bytes <= paid)
		rate_give(r, paid - bytes);
	else
		rate_charge(r, bytes - paid);
}

static void settle(struct session *s, uint64_t n, uint64_t bytes)
{
	settle_limit(s, SESSION_BYTES, &s->first->limits.bytes, n, bytes);
	settle_limit(s, TENANT_BYTES, &s->tenant->bytes, n, bytes);
}

static struct outcome read_at(const struct session *s, uint64_t n, const uint8_t *replies)
{
	return outcome_read(&s->offload->outcome, replies, (unsigned)(n % s->queues.layout.slots));
}

/*
 * The outcome of instance @n of a recycled session: from the log of the recycler once its section is armed
 * again, or from the ring as long as the recycler cannot have begun with that section, because an instance of
 * it is not over. False: it is between the two, look again.
 */
static bool read_recycled(const struct session *s, uint64_t n, struct outcome *out)
{
	const struct queue_layout *l = &s->queues.layout;
	unsigned together = chain_recycle_together(l->slots);
	uint64_t last = n / together * together + together - 1;
	struct rnic_cqe cqe;

	if (n < session_recycled(s)) {
		*out = read_at(s, n, s->queues.env.lanes.mem + l->recycling.log);
		return true;
	}
	*out = read_at(s, n, s->queues.env.queue[0].ring);
	barrier_from_device();
	return !rnic_cq_peek(&s->recycler.reply_cq, (uint32_t)last, &cqe);
}

static bool read_outcome(const struct session *s, uint64_t n, struct outcome *out)
{
	if (s->queues.layout.recycled)
		return read_recycled(s, n, out);
	if (s->cpu) {
		*out = session_cpu_outcome(s, n);
		return true;
	}
	*out = read_at(s, n, s->queues.env.queue[0].ring);
	return true;
}

static void count_outcome(struct session *s, uint64_t n, const struct outcome *out)
{
	const struct offload *o = s->offload;
	bool miss = o->outcome.conditional && !out->hit;

	s->counters.hits += out->hit;
	s->counters.misses += miss;
	s->counters.bytes_out += out->bytes;
	o->stats->hits += out->hit;
	o->stats->misses += miss;
	o->stats->bytes_out += out->bytes;
	settle(s, n, out->bytes);
}

/* A recycled session without limits does not wait for anybody to look: the log may be a lap ahead. Of some
 * foreign ones nobody knows what is in the log. */
void session_count_outcomes(struct session *s)
{
	struct outcome out;

	if ((s->foreign && !s->offload->outcome.nwrites) ||
		(s->queues.layout.recycled && !session_is_paced(s))) {
		s->counters.unseen += s->progress.done - s->counters.read;
		s->counters.read = s->progress.done;
	}
	for (; s->counters.read < s->progress.done; s->counters.read++) {
		if (!read_outcome(s, s->counters.read, &out))
			return;
		count_outcome(s, s->counters.read, &out);
	}
}

/* Arms the instances before number @to */
static void arm(struct session *s, uint64_t to)
{
	struct session_progress *p = &s->progress;

	while (p->armed < to && p->armed < p->again)
		chain_arm(s->offload->img, &s->queues.env, p->armed++);
	if (p->armed < to)
		chain_arm_again(s->offload->again, &s->queues.env, p->armed, to);
	p->armed = to;
}

/* Whether the request of instance @n was as long as it must be */
static bool had_its_length(const struct session *s, uint64_t n, struct verdict *v)
{
	uint32_t len = s->offload->img->arg_len;
	struct rnic_cqe cqe;

	if (!rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &cqe) || cqe.error || cqe.length == len)
		return true;
	verdict_set(v, VERDICT_REQUEST, true, "request %" PRIu64 " had %u bytes, not %u", n, cqe.length, len);
	return false;
}

int session_rearm(struct session *s, struct verdict *v)
{
	uint64_t to = s->progress.armed;
	bool good = true;

	session_count_outcomes(s);
	session_note(s); /* arming destroys the outcomes that were counted */
	if (s->cpu) {
		s->progress.armed = s->progress.done + s->queues.layout.slots;
		return 0;
	}
	for (; to < s->progress.done + s->queues.layout.slots; to++) {
		good = had_its_length(s, to - s->queues.layout.slots, v);
		if (!good)
			break;
	}
	arm(s, to);
	return good ? 0 : 1;
}
