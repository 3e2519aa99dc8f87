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

#endif
