/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * offer.h - what a client must know of an offload, for the private data of the accept (protocol/wire.h).
 *
 * Thread rules: any.
 */
#ifndef GENERATION_OFFER_H
#define GENERATION_OFFER_H

#include "reddnd/generation/offload.h"
#include "reddnd/generation/tenant.h"

/** Fills in shape, lengths, arguments and pieces of requests, the table, the parts of the offload that
 * @tenant may use, and the hash of the description. */
void offer_describe(const struct offload *o, const struct tenant *tenant, struct reddn_wire_rep *rep);

/** Fills in only the arguments and pieces: of one of @keys keys, whose are alike (shape.h). None if @rep has
 * no room for all: applications must compose such requests themselves. */
void offer_describe_request(const struct program *p, unsigned keys, struct reddn_wire_rep *rep);

/*
 * Programs with a shape: what libreddn sends to them for keys, and where it looks for records in their
 * replies.
 */

/** Keys that a request of a program of shape table or exists asks for. The offload is bound to the table. */
unsigned shape_keys(const struct offload *o);

/** enum reddn_wire_shape. The same. */
uint8_t shape_on_wire(const struct offload *o);

/** 0: the program has no shape, or libreddn can use it with the table. -EINVAL, logged. After it was compiled
 * for the table. */
int shape_check(struct offload *o);

#endif
