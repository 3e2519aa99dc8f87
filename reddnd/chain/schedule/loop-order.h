/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop-order.h - finds the order that one iteration of an endless loop needs; derive.h does that for chains.
 *
 * The input lists the steps of an iteration in the order of the text, in one queue, as endless.h wants them
 * but without WAITs, SEND_ENs and fences, except for the two by which the loop is called and left, its first
 * and its last step. Each step behaves as if the one before it were over, and so does each iteration.
 *
 * Adds, only where something needs it, and as late as possible, because one barrier can then serve many
 * steps:
 *   - a fence, where a step needs what READs and atomics before it bring;
 *   - a WAIT, where it needs what a WRITE has taken;
 *   - a WAIT and a SEND_EN in front of a step that has been patched;
 *   - in the end the WAIT for all of the iteration, and the SEND_EN of the next.
 */
#ifndef CHAIN_SCHEDULE_LOOP_ORDER_H
#define CHAIN_SCHEDULE_LOOP_ORDER_H

#include "reddnd/chain/ir/build.h"

/**
 * Orders @d: 0 and a description that the caller frees with chain_loop_order_free(), and that refers to
 * strings, words and regions of @d; CHAIN_REFUSED and the reason in @err; -ENOMEM. chain_loop_size() takes
 * the result and proves the order from the ring.
 */
int chain_loop_order(const struct chain_desc *d, struct chain_desc **out, struct chain_error *err);

void chain_loop_order_free(struct chain_desc *d); /* NULL is fine */

#endif
