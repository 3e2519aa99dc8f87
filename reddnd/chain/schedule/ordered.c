/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/schedule/ordered.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

const char *ordered_label(struct ordered *o, unsigned i)
{
	struct chain_step *st = &o->steps[i];

	assert(i < CHAIN_MAX_STEPS);
	if (!st->label) {
		snprintf(o->label[i], sizeof(o->label[i]), "#%u", i);
		st->label = o->label[i];
	}
	return st->label;
}

void ordered_explain(struct ordered *o, struct chain_step *st, const char *fmt, ...)
{
	char *why = o->why[st - o->steps];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(o->why[0]), fmt, ap);
	va_end(ap);
	st->why = why;
}

const char *ordered_name(const struct chain_step *st)
{
	return st->label ? st->label : chain_verb_info(st->verb)->name;
}
