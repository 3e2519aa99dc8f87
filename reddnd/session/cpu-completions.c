/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/cpu-completions.h"

#include "reddnd/session/cpu-counters.h"
#include "reddnd/session/cpu-replies.h"
#include "reddnd/session/cpu-state.h"
#include "util/clock.h"

#include <inttypes.h>

enum { TURN_COMPLETIONS = 256 }; /* of a client that floods */

/* What a request lacks is zero, and it is answered like that, as by a NIC; then the session ends. A longer
 * one has failed */
static void take_request(struct session *s, const struct rnic_plain_completion *c, uint64_t number)
{
	uint32_t len = s->offload->img->arg_len;

	if (c->bytes == len)
		return;
	memset(rnic_plain_memory(s->cpu->queue) + cpu_request_at(s, number) + c->bytes, 0, len - c->bytes);
	cpu_counters_spoil(s->cpu->kept);
	if (s->cpu->is_short || s->cpu->faulted)
		return;
	s->cpu->is_short = true;
	s->cpu->short_one = number;
	verdict_set(&s->cpu->verdict, VERDICT_REQUEST, true, "request %" PRIu64 " had %u bytes, not %u",
		number, c->bytes, len);
}

/* The same words as for a NIC (queues.c). A request that was wrong before has the last word; a short one is
 * still executed, so what fails may be before it, unless that is only flushed */
static void judge(const struct session *s, const struct rnic_plain_completion *c)
{
	struct verdict *v = &s->cpu->verdict;
	const struct rnic_cqe cqe = {.syndrome = c->syndrome, .vendor = c->vendor};
	const struct offload *o = s->offload;
	const char *syndrome = rnic_syndrome_text(c->syndrome);

	if (s->cpu->faulted || (s->cpu->is_short && c->syndrome == CQE_SYND_FLUSH))
		return;
	if (c->syndrome == CQE_SYND_FLUSH)
		verdict_set(v, VERDICT_QUEUE, true,
			"a queue failed, though no step of it did: the NIC ended it, or the client broke a "
			"rule (%s, %#x)",
			syndrome, c->vendor);
	else if (c->receive && c->syndrome == CQE_SYND_LOCAL_LENGTH)
		verdict_set(v, VERDICT_REQUEST, true, "a request was longer than %u bytes (%s, %#x)",
			o->img->arg_len, syndrome, c->vendor);
	else if (c->receive)
		verdict_set(v, VERDICT_REQUEST, true, "receiving a request failed: %s (%#x)", syndrome,
			c->vendor);
	else
		verdict_of_step(
			v, o->program, o->conf->path, 0, cpu_replies_failed(c->tag, c->syndrome), &cqe);
	v->syndrome = c->syndrome;
	v->vendor = c->vendor;
}

/* What flushed the queue may be behind what is flushed */
static struct rnic_plain_completion find_cause(
	struct session_cpu *c, const struct rnic_plain_completion *some, int n)
{
	struct rnic_plain_completion cause = {.syndrome = CQE_SYND_FLUSH}, more[RNIC_PLAIN_BATCH];

	for (; n > 0; some = more, n = rnic_plain_poll(c->queue, more))
		for (int i = 0; i < n; i++)
			if (some[i].syndrome && cause.syndrome == CQE_SYND_FLUSH)
				cause = some[i];
	return cause;
}

/* Numbers have 32 bits. Those of a daemon before this one are not to be relied on. Returns what is done then
 */
static uint64_t count_done(struct session *s, uint64_t received, uint64_t n, uint32_t number, uint64_t now_ns)
{
	uint64_t end = n + (uint32_t)(number - (uint32_t)n);

	for (; n < end && n < received; n++)
		s->cpu->times[cpu_slot(s, n)] = now_ns - s->cpu->times[cpu_slot(s, n)];
	return n;
}

/* The ledger has it before the event loop sees it, and before the device may write other CQEs there. If the
 * session has a verdict, the next daemon could not find the CQE that it comes from */
static void publish(struct session_cpu *c, uint64_t received, uint64_t done, bool good)
{
	if (good)
		cpu_counters_taken(c->kept, received, done, rnic_plain_taken(c->queue));
	else
		cpu_counters_spoil(c->kept);
	if (received != c->received)
		c->received = received;
	if (done != c->done)
		c->done = done;
	rnic_plain_release(c->queue);
}

/* False: a verdict */
static bool take_some(struct session *s, struct rnic_plain_completion *some, int n)
{
	uint64_t received = s->cpu->received, done = s->cpu->done, now_ns = clock_ns();
	bool good = true;

	for (int i = 0; i < n && good; i++) {
		if (some[i].syndrome) {
			struct rnic_plain_completion cause = find_cause(s->cpu, some + i, n - i);

			judge(s, &cause);
			good = false;
		} else if (some[i].receive && some[i].bytes > s->offload->img->arg_len) {
			/* The RECV has no more room, so a device that keeps to verbs has reported an error */
			const struct rnic_plain_completion cause = {
				.receive = true, .syndrome = CQE_SYND_LOCAL_LENGTH};

			judge(s, &cause);
			good = false;
		} else if (!some[i].receive) {
			done = count_done(s, received, done, some[i].number, now_ns);
		} else {
			take_request(s, &some[i], received);
			s->cpu->times[cpu_slot(s, received++)] = now_ns;
		}
	}
	publish(s->cpu, received, done, good);
	return good;
}

int cpu_completions_take(struct session *s)
{
	struct rnic_plain_completion some[RNIC_PLAIN_BATCH];

	for (unsigned taken = 0; taken < TURN_COMPLETIONS;) {
		int n = rnic_plain_poll(s->cpu->queue, some);

		if (n == 0)
			return taken > 0;
		if (n < 0)
			some[0] = (struct rnic_plain_completion){.syndrome = CQE_SYND_FLUSH};
		if (!take_some(s, some, n < 0 ? 1 : n))
			return -1;
		if (n < RNIC_PLAIN_BATCH)
			return 1;
		taken += (unsigned)n;
	}
	return 1;
}
