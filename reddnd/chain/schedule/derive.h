/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * derive.h - finds the fewest barriers under which a chain behaves as if its steps ran one after the other.
 *
 * The input lists steps in the order of the text. The meaning: for each request, each step is over before the
 * next one starts. A step names its queue; steps of one queue keep the order of the text, and queues run
 * beside each other where no step needs what another queue does. Queue 0 is the reply; its steps are enabled
 * at the end, all at once, but for those that a SEND_EN by hand enables, and those that are AHEAD of the
 * steps after them: with one code queue, and no SEND_EN by hand for the reply, these are enabled as soon as
 * all before them is known to be over. A queue without steps in the text is refused, unless it is the only
 * code queue: that one then starts the reply.
 *
 * Put in, each only where something needs it:
 *   - a fence, where a step needs the data of READs and atomics before it in its queue;
 *   - a WAIT for a step, where another queue needs its effect, or where its own queue needs the effect of a
 * WRITE; only steps that something waits for are signalled;
 *   - a WAIT and a SEND_EN, where a step is patched: one for a run of steps as long as can be. No WAIT, but a
 * fence of the SEND_EN, if it is only for READs and atomics of its own queue and the device heeds such a
 * fence;
 *   - the head, at the begin of queue 0: the WAIT for the request, and a SEND_EN for each queue whose first
 *     step needs nothing of another queue. The other queues are started by the queue that knows last what
 * they need;
 *   - the SEND_EN of the reply, in the queue whose failures reach it in no other way (see order.h);
 *   - NOPs, for a device that fetches WQEs in groups (derive.c).
 * Fences, WAITs and SEND_ENs of the input stay, and nothing is added where they are enough. The output's
 * `head`s, and the SIGNALLED flags of code queues, are derived; those of the input are ignored.
 *
 * Each added step has the line of the step that needs it, and a sentence that gives the reason.
 */
#ifndef CHAIN_SCHEDULE_DERIVE_H
#define CHAIN_SCHEDULE_DERIVE_H

#include "reddnd/chain/ir/build.h"

/**
 * Orders @d. 0 and a description that the caller frees with chain_derive_free(), and that refers to strings,
 * words, arguments and regions of @d; CHAIN_REFUSED and the reason in @err; -ENOMEM. The result passes
 * chain_check_order().
 */
int chain_derive(const struct chain_desc *d, struct chain_desc **out, struct chain_error *err);

void chain_derive_free(struct chain_desc *d); /* NULL is fine */

#endif
