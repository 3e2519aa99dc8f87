/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum verdict_kind verdict_kind_of(uint8_t syndrome, bool reply)
{
	if (reply && syndrome == CQE_SYND_RNR_RETRY)
		return VERDICT_RNR;
	return reply && syndrome == CQE_SYND_RETRY ? VERDICT_UNREACHABLE : VERDICT_STEP;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* @st: NULL for a work request that no step of the program made; @other names it then */
static void say_step(struct verdict *v, const struct chain_step *st, const char *other, const char *where,
	const char *path, const struct rnic_cqe *cqe)
{
	const unsigned line = st ? st->line : 0;
	char at[sizeof(v->path) + 16] = "";

	*v = (struct verdict){
		.kind = verdict_kind_of(cqe->syndrome, st && st->remote.kind == CHAIN_AT_SLOT),
		.fatal = true,
		.line = line,
		.syndrome = cqe->syndrome,
		.vendor = cqe->vendor,
	};
	snprintf(v->step, sizeof(v->step), "%s",
		!st         ? other
		: st->label ? st->label
			    : chain_verb_info(st->verb)->name);
	snprintf(v->path, sizeof(v->path), "%s", path);
	if (line)
		snprintf(at, sizeof(at), ", %s:%u", base_name(v->path), line);
	snprintf(v->text, sizeof(v->text), "step %s%s failed: %s (%#x)%s", v->step, where,
		rnic_syndrome_text(cqe->syndrome), cqe->vendor, at);
}

void verdict_of_step(struct verdict *v, const struct program *p, const char *path, unsigned queue,
	uint32_t wqebb, const struct rnic_cqe *cqe)
{
	unsigned s = program_step_at(p, queue, wqebb);
	bool known = s < p->desc->nsteps;

	say_step(v, known ? &p->desc->steps[s] : NULL, "pad", "", path, cqe);
}

void verdict_of_loop(struct verdict *v, const struct program *p, const char *path, const struct rnic_cqe *cqe)
{
	unsigned s = chain_loop_step(p->loop, &p->loop_info, p->loop_ring, cqe->index);
	const struct chain_step *st = s < p->loop->nsteps ? &p->loop->steps[s] : NULL;

	say_step(v, st, "renewal", " of the loop", path, cqe);
}

void verdict_set(struct verdict *v, enum verdict_kind kind, bool fatal, const char *format, ...)
{
	va_list ap;

	*v = (struct verdict){.kind = kind, .fatal = fatal};
	va_start(ap, format);
	vsnprintf(v->text, sizeof(v->text), format, ap);
	va_end(ap);
}

uint64_t verdict_silent(
	struct verdict_silence *s, uint64_t done, bool taken, uint64_t now_us, uint64_t budget_us)
{
	if (!taken) {
		s->seen = false;
		return 0;
	}
	if (!s->seen || s->request != done) {
		*s = (struct verdict_silence){.request = done, .since = now_us, .seen = true};
		return 0;
	}
	if (s->reported || now_us - s->since <= budget_us)
		return 0;
	s->reported = true;
	return now_us - s->since;
}

bool verdict_is_idle(struct verdict_idle *i, uint64_t done, bool taken, uint64_t now_us, uint64_t limit_us)
{
	if (taken || i->done != done) {
		*i = (struct verdict_idle){.done = done, .since = now_us};
		return false;
	}
	return now_us >= i->since + limit_us;
}
