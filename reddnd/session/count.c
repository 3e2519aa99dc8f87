/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/count.h"

#include "mlx5/barrier.h"
#include "reddnd/generation/generation.h"
#include "reddnd/policy/offload-stats.h"
#include "reddnd/rnic/stamps.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/posting.h"
#include "reddnd/session/queues.h"

#include <assert.h>
#include <inttypes.h>

/* ---- how long requests took ---- */

static void times_add(struct session *s, uint64_t ns, uint64_t n)
{
	service_times_add(&s->counters.service, ns, n);
	service_times_add(&s->offload->stats->service, ns, n);
	service_times_add(&s->tenant->service, ns, n);
}

static void served(struct session *s, uint64_t n, const struct rnic_cqe *reply)
{
	struct rnic_device *dev = rnic_pd_device(s->domain->pd);
	struct rnic_cqe request;
	uint64_t ns;

	if (!reply->error && rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &request) && !request.error &&
		rnic_stamps_between(dev, request.timestamp, reply->timestamp, &ns))
		times_add(s, ns, 1);
}

/* The NIC goes on meanwhile. The ring of RECVs is not the larger one: if its CQE is still there after that of
 * the reply was read, both are of instance @n. */
static void times_sample(struct session *s, uint64_t n)
{
	struct rnic_cqe reply, before, after;

	if (rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &before) &&
		rnic_cq_peek(&s->recycler.reply_cq, (uint32_t)n, &reply) &&
		rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &after) && after.timestamp == before.timestamp)
		served(s, n, &reply);
}

static void served_since(struct session *s, uint64_t from)
{
	uint64_t done = s->progress.done, slots = s->queues.layout.slots;

	for (uint64_t n = done > from + slots ? done - slots : from; n < done; n++)
		times_sample(s, n);
}

/* Those that were taken together, and completed together, are counted together */
static void served_by_cpu(struct session *s, uint64_t from)
{
	uint64_t n, timed = session_cpu_timed(s);

	from = from < timed ? timed : from;
	for (; from < s->progress.done; from += n) {
		uint64_t ns = session_cpu_took(s, from);

		for (n = 1; from + n < s->progress.done && session_cpu_took(s, from + n) == ns;)
			n++;
		times_add(s, ns, n);
	}
}

/* ---- requests that are over ---- */

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
	served(s, s->progress.done, cqe);
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
		served_by_cpu(s, before);
		return s->progress.done - before;
	}
	if (!s->queues.layout.recycled)
		return 0;
	count_replies(s);
	served_since(s, before);
	return s->progress.done - before;
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

/* ---- silence ---- */

bool session_busy(const struct session *s)
{
	struct rnic_cqe cqe;

	if (s->cpu)
		return session_cpu_received(s) > s->progress.done;
	return rnic_cq_peek(&s->queues.cq[0], (uint32_t)s->progress.done, &cqe) && !cqe.error;
}

uint64_t session_received(const struct session *s)
{
	uint64_t n = s->progress.done;
	struct rnic_cqe cqe;

	if (s->cpu)
		return session_cpu_received(s);
	while (n < s->progress.posted && rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &cqe) && !cqe.error)
		n++;
	return n;
}

bool session_rest(struct session *s)
{
	if (session_busy(s))
		return false;
	s->budgets.resting = true;
	rnic_cq_seek(&s->queues.cq[0], s->progress.done);
	rnic_cq_arm(&s->queues.cq[0], false);
	return !session_busy(s);
}

bool session_is_idle(struct session *s, uint64_t now_us, uint64_t limit_us)
{
	const struct session *c;
	bool busy = false;

	SESSION_CONNECTIONS(c, s)
	busy |= session_busy(c);
	return verdict_is_idle(&s->timer.idle, session_done(s), busy, now_us, limit_us);
}

bool session_exceeds_budget(struct session *s, uint64_t now_us, struct verdict *v)
{
	const struct catalog_offload *conf = s->offload->conf;
	uint64_t silent = 0, iterations = 0;
	bool busy = session_busy(s);

	if (conf->loop_budget)
		iterations = verdict_silent(&s->budgets.loop, s->progress.done, busy,
			session_loop_iterations(s->queues.loop), conf->loop_budget);
	if (conf->time_budget)
		silent = verdict_silent(&s->budgets.time, s->progress.done, busy, now_us, conf->time_budget);
	if (iterations)
		verdict_set(v, VERDICT_LOOP, false,
			"request %" PRIu64 " was %" PRIu64
			" times in the loop and is not answered; the loop budget is "
			"%" PRIu64 " iterations",
			s->progress.done, iterations, conf->loop_budget);
	else if (silent)
		verdict_set(v, VERDICT_TIME, false,
			"request %" PRIu64 " was taken more than %" PRIu64
			" ms ago and is not answered; the time budget is "
			"%" PRIu64 " ms",
			s->progress.done, silent / 1000, conf->time_budget / 1000);
	return iterations || silent;
}
