/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/stored.h"

void chain_span_add(struct chain_span *s, const struct chain_span *more)
{
	if (more->to == 0)
		return;
	if (s->to == 0 || more->from < s->from)
		s->from = more->from;
	if (more->to > s->to)
		s->to = more->to;
}

void chain_stored_add(struct chain_stored *s, const struct chain_stored *more)
{
	chain_span_add(&s->any, &more->any);
	chain_span_add(&s->theirs, &more->theirs);
	chain_span_add(&s->located, &more->located);
	if (more->longest > s->longest)
		s->longest = more->longest;
}

static void widen(struct chain_span *s, const struct chain_span *was)
{
	if (was->to && (s->from != was->from || s->to != was->to))
		*s = (struct chain_span){0, UINT64_MAX};
}

void chain_stored_widen(struct chain_stored *s, const struct chain_stored *was)
{
	widen(&s->any, &was->any);
	widen(&s->theirs, &was->theirs);
	widen(&s->located, &was->located);
}
