/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bounds.h - proves where the data of a chain can go, for every request and every content of the regions.
 *
 * The proof computes, for every byte of an instance (its WQEs and its scratch memory), all values it can have
 * and where they can come from: the description itself, a region, or a client. Values begin in the
 * description, move by READ, WRITE, the request and the old values of atomics, and are combined by atomics. A
 * region holds anything at any time. A decision (a CAS that swaps, a sum that carries) does not count as a
 * source, but as an *influence* of the client if the client has a part in it; so does a place that the client
 * picks. Steps are taken in the order of the description, in which they touch the same bytes (order.h); each
 * may also have no effect, because it is dormant, or it or a step before it failed.
 *
 * A region gives back what programs store there: bytes of clients, or such that clients influence, are those
 * of clients when they are read, by any program. What others store the caller declares (chain_region.stored).
 * The request may have a payload, which makes all of its region the client's. A publish (image.h) brings a
 * word of another region, at a place that the client chooses, and it stays one that a region's writer vouches
 * for: that is shown byte by byte (trace.h), and the length is that of the message. For that nothing but
 * publishes stores in its region.
 *
 * A region's writer is believed as to the least and the most of a length only where no program stores in
 * these bytes, and the whole length comes from there by one store: not what an atomic makes of it, nor one of
 * which a part comes from elsewhere. What a condition puts in its place stays the program's. Of what
 * programs publish it is the length of a message, which a declared least and most have to allow, if it is the
 * length in a bucket. All else where programs publish is a client's.
 *
 * Two things are assumed. What is marked .in_bucket belongs to a step that is executed only if the READ that
 * brings it has found the tag of a bucket (program/front/bucket.c); copies of it are a client's. And a step
 * marked CHAIN_LANES copies only opcodes of their steps, or 0. Bytes that masked atomics leave depend on the
 * bytes beside them, which this proof does not follow; tests/image does.
 *
 * Refused, with the step and its line:
 *   - an opcode that is not always the step's own or a NOP, or that bytes of a region or request can reach;
 * an opmod other than the verb's, unless the step is a NOP until that is replaced; the same for the rest of
 *     a control segment, of which only what a device that ignores index and QPN ignores may hold operands;
 *   - a step that replaces an address in scratch memory, in what a loop shares, in a WQE, or in the reply
 * slot. Addresses in a region may be replaced by anything: the region's key, which no step can change, spans
 * the region and nothing else;
 *   - a step that reads a key, or an address in scratch memory, in what a loop shares, in a WQE, or in the
 * reply slot;
 *   - a step that replaces the length of what it scatters, or of anything but a region; a length that comes
 *     from a request, that a client adds up, or that the program makes larger than the declared maximum or
 *     smaller than the declared least; one with a declared least for which a region's writer does not vouch;
 * one of the reply that has no declared maximum; and one whose highest bit may be set, which would make the
 * segment inline;
 *   - an index of a WAIT or SEND_EN that a region or a request can reach;
 *   - a constant place, or one that a constant locator names, beyond the end of its region, if its size is
 *     declared;
 *   - a copy of more than 256 bytes between constant places of a region that overlap;
 *   - a write to a region that is not declared writable, or, at a place or of a length that a client
 *     influences, one that is not declared steered;
 *   - a reply larger than the slot.
 */
#ifndef CHAIN_VERIFY_BOUNDS_H
#define CHAIN_VERIFY_BOUNDS_H

#include "reddnd/chain/ir/build.h"

/** What a session must provide for the chain. */
struct chain_bounds {
	uint32_t reply;                     /* bytes of the slot that the chain writes, from its beginning */
	uint64_t region[CHAIN_MAX_WINDOWS]; /* bytes that a region has at least, for constant places */
	/* In regions: what was declared, and what the chain stores itself */
	struct chain_stored stored[CHAIN_MAX_WINDOWS];
};

/**
 * Checks @d, which has passed chain_check_order(). 0 and the needs in @bounds (or NULL); CHAIN_REFUSED with
 * the reason in @err, also when chain_build() would refuse a single step of @d; -ENOMEM.
 */
int chain_check_bounds(const struct chain_desc *d, struct chain_bounds *bounds, struct chain_error *err);

#endif
