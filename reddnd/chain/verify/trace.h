/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h - private to the bounds proof: where each byte of a publish has come from, exactly.
 *
 * The abstract machine (machine.h) knows which values a byte can have and whose they are, not whether two
 * bytes are the same one. A publish needs that: what it replaces has to be what the chain has read at that
 * place, or a client that sends two places has one checked and the other one changed. So the steps are taken
 * once, in the order of the description, and each byte is followed from where it was read, or arrived,
 * through every copy. What a step may or may not do, an atomic, a calculation, a WRITE from a region, and a
 * length that is replaced leave bytes that are not known. That a copy succeeded is not asked: a publish that
 * uses what another step should have brought is not executed if that step failed (order.h).
 *
 * Refused:
 *   - a publish whose compare operand is not one whole word that one READ of a region has brought;
 *   - one at another place than that READ's, or at one that is the same only if the client wants it so;
 *   - a locator that is not the extent's with the length from the CQE, or not the constant of the
 * description;
 *   - one that does not depend on the tag of its bucket, for which the compiler vouches (build.h);
 *   - another use of these bytes, and another writer of the word that the publish has found.
 */
#ifndef CHAIN_VERIFY_TRACE_H
#define CHAIN_VERIFY_TRACE_H

#include "reddnd/chain/ir/layout.h"

/** Checks the publish of @l, which layout_make() has filled and whose bounds are proved. 0, CHAIN_REFUSED
 * with the reason in l->err; -ENOMEM. */
int trace_check(struct layout *l);

#endif
