/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/count.h"

#include "reddnd/generation/generation.h"
#include "reddnd/policy/offload-stats.h"
#include "reddnd/rnic/device.h"
#include "reddnd/session/limits.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* ---- how long requests took ---- */

void session_took(struct session *s, uint64_t ns, uint64_t n)
{
	service_times_add(&s->counters.service, ns, n);
	service_times_add(&s->offload->stats->service, ns, n);
	service_times_add(&s->tenant->service, ns, n);
}

void session_served(struct session *s, uint64_t n, const struct rnic_cqe *reply)
{
	struct rnic_device *dev = rnic_pd_device(s->domain->pd);
	struct rnic_cqe request;
	uint64_t ns;

	if (!reply->error && rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &request) && !request.error &&
		rnic_stamps_between(dev, request.timestamp, reply->timestamp, &ns))
		session_took(s, ns, 1);
}

/* ---- requests that are over ---- */

static bool had_its_length(const struct session *s, uint64_t n, struct verdict *v)
{
	uint32_t len = s->offload->img->arg_len;
	struct rnic_cqe cqe;

	if (!rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &cqe) || cqe.error || cqe.length >= len)
		return true;
	verdict_set(v, VERDICT_REQUEST, true, "request %" PRIu64 " had %u bytes, not %u", n, cqe.length, len);
	return false;
}

uint64_t session_may_arm(const struct session *s, bool *broken, struct verdict *v)
{
	const uint64_t slots = s->queues.layout.slots, all = s->progress.done + slots;
	uint64_t to = s->progress.armed;

	while (to < all && had_its_length(s, to - slots, v))
		to++;
	*broken = to < all;
	return to;
}

uint64_t session_count(struct session *s)
{
	uint64_t before = s->progress.done;

	s->engine->count(s);
	return s->progress.done - before;
}

uint64_t session_count_loop(struct session *s)
{
	uint64_t before = s->counters.iterations;

	s->counters.iterations = s->engine->iterations(s);
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

static void count_outcome(struct session *s, uint64_t n, const struct outcome *out)
{
	const struct offload *o = s->offload;
	bool miss = o->outcome.conditional && !out->hit && !out->conflict;

	s->counters.hits += out->hit;
	s->counters.misses += miss;
	s->counters.conflicts += out->conflict;
	s->counters.bytes_out += out->bytes;
	o->stats->hits += out->hit;
	o->stats->misses += miss;
	o->stats->conflicts += out->conflict;
	o->stats->bytes_out += out->bytes;
	settle(s, n, out->bytes);
}

static void count_unseen(struct session *s, uint64_t n)
{
	s->counters.unseen += n;
	s->counters.read += n;
	s->offload->stats->unseen += n;
}

/* Of some foreign sessions nobody knows what is in the log. It has the last lap of any */
static void skip_unseen(struct session *s)
{
	const bool is_readable = !s->foreign || s->offload->outcome.nmessages;
	const uint64_t n = s->progress.done - s->counters.read,
		       most = is_readable ? s->queues.layout.slots : 0;

	if (s->engine->is_silent && n > most)
		count_unseen(s, n - most);
}

void session_count_outcomes(struct session *s)
{
	struct outcome out;

	skip_unseen(s);
	while (s->counters.read < s->progress.done) {
		switch (s->engine->outcome(s, s->counters.read, &out)) {
		case SESSION_KNOWN:
			count_outcome(s, s->counters.read++, &out);
			break;
		case SESSION_UNKNOWN:
			count_unseen(s, 1);
			break;
		case SESSION_NOT_YET:
			return;
		}
	}
}

void session_count_rest(struct session *s)
{
	session_count_outcomes(s);
	if (s->counters.read < s->progress.done)
		count_unseen(s, s->progress.done - s->counters.read);
}

int session_rearm(struct session *s, struct verdict *v)
{
	session_count_outcomes(s);
	session_note(s);
	if (s->engine->rearm)
		return s->engine->rearm(s, v);
	s->progress.armed = s->progress.done + s->queues.layout.slots;
	return 0;
}

/* ---- in the ledger ---- */

_Static_assert(offsetof(struct ledger_counters, read) + sizeof(uint64_t) == sizeof(struct ledger_counters),
	"what was read is stored behind what was found in it");

/* The daemon may be killed in the middle: each number is the old one or the new one, and those in front are
 * written first. Outcomes that it had counted since the last time are counted again if it is killed before it
 * writes how many those were: at most as many as there are slots */
static void ledger_keep(void *to, const void *from, size_t bytes)
{
	const uint64_t *new = from;
	uint64_t *old = to;

	for (size_t i = 0; i < bytes / sizeof(*old); i++)
		__atomic_store_n(&old[i], new[i], __ATOMIC_RELEASE);
}

void session_note(struct session *s)
{
	struct ledger_session *l = s->slot ? &s->slot->session : NULL;
	const struct session_counters *c = &s->counters;
	const struct ledger_limits limits = {.rate = s->limits.configured.rate,
		.burst = s->limits.configured.burst,
		.bytes_rate = s->limits.bytes.per_second,
		.throttle_rate = s->limits.throttle.rate,
		.throttle_until = s->limits.throttle.until};
	struct ledger_counters counters = {.done = s->progress.done,
		.posted = s->progress.posted,
		.read = c->read,
		.hits = c->hits,
		.misses = c->misses,
		.bytes_out = c->bytes_out,
		.unseen = c->unseen,
		.iterations = c->iterations};

	if (!l || !l->recycled)
		return;
	memcpy(counters.verdicts, c->verdicts, sizeof(c->verdicts));
	ledger_keep(&l->limits, &limits, sizeof(limits));
	l->false_alarms = c->false_alarms;
	ledger_keep(&l->counters, &counters, sizeof(counters));
}

/* ---- silence ---- */

/* True if an accepted request is still unanswered, as far as completions have been counted. */
static bool session_busy(const struct session *s)
{
	return s->engine->received(s, s->progress.done + 1) > s->progress.done;
}

/* The NIC posts RECVs of a silent session, and nobody counts them: there are no more than slots */
uint64_t session_received(const struct session *s)
{
	uint64_t to = s->engine->is_silent ? s->progress.done + s->queues.layout.slots : s->progress.posted;

	return s->engine->received(s, to);
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
