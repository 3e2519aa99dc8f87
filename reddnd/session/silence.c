/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/silence.h"

#include "reddnd/generation/generation.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/group.h"

#include <inttypes.h>

bool session_has_budgets(const struct session *s)
{
	/* the thread that executes checks those of the CPU */
	return !s->cpu && (s->offload->conf->time_budget || s->offload->conf->loop_budget);
}

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
