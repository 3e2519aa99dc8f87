/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/accounting.h"

#include "reddnd/policy/offload-stats.h"
#include "reddnd/program/program.h"
#include "reddnd/session/count.h"
#include "reddnd/session/session.h"

void accounting_began(struct session *s)
{
	s->tenant->accepted++;
	s->offload->stats->sessions++;
}

void accounting_adopted(struct session *s)
{
	s->offload->stats->sessions++;
}

void accounting_ended(struct accounting *a, struct session *s, bool failed)
{
	s->offload->stats->sessions--;
	if (!failed)
		return;
	a->failed++;
	s->offload->stats->failed++;
	s->tenant->failed++;
}

void accounting_refused(struct accounting *a, struct tenant *tenant)
{
	a->refused++;
	if (tenant)
		tenant->refused++;
}

void accounting_verdict(struct session *s, enum verdict_kind kind)
{
	s->counters.verdicts[kind]++;
	s->offload->stats->verdicts[kind]++;
	session_note(s);
}

void accounting_answered(struct accounting *a, struct session *s, uint64_t n)
{
	struct offload_stats *t = s->offload->stats;

	a->requests += n;
	t->requests += n;
	s->tenant->requests += n;
	t->wqes += n * s->offload->outcome.wqes;
	t->bytes_in += n * s->offload->img->arg_len;
}

static void count_loop(struct session *s)
{
	uint64_t before = program_loop_wqes(s->offload->program, s->counters.iterations);
	struct offload_stats *t = s->offload->stats;

	t->iterations += session_count_loop(s);
	t->wqes += program_loop_wqes(s->offload->program, s->counters.iterations) - before;
}

void accounting_update(struct accounting *a, struct session *s)
{
	accounting_answered(a, s, session_count(s));
	count_loop(s);
	session_count_outcomes(s);
	session_note(s);
}
