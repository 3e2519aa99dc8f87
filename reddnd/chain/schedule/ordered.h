/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ordered.h - private to derive*.c and loop-order.c: the steps of an order, with labels and reasons of their
 * own.
 */
#ifndef CHAIN_SCHEDULE_ORDERED_H
#define CHAIN_SCHEDULE_ORDERED_H

#include "reddnd/chain/ir/build.h"

struct ordered {
	struct chain_step steps[CHAIN_MAX_STEPS];
	char label[CHAIN_MAX_STEPS][12], why[CHAIN_MAX_STEPS][128];
};

/** The label of step @i, which gets one. */
const char *ordered_label(struct ordered *o, unsigned i);
/** Gives the reason for @st, one of the steps. */
void __attribute__((format(printf, 3, 4)))
ordered_explain(struct ordered *o, struct chain_step *st, const char *fmt, ...);
/** The name of any step, for reasons. */
const char *ordered_name(const struct chain_step *st);

#endif
