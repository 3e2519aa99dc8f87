/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * publish.h - what came of a publish (image.h).
 *
 * What whoever arms a chain with a payload keeps to:
 *   - A RECV is posted only with an extent that nothing names: no word of a region, no other RECV, and no
 *     chain that may still read what it held before.
 *   - When the last CQE of an instance's reply has been seen, and before its slot is armed again,
 *     chain_outcome() finds what became of the extent. Published: it belongs to whoever reads the region, and
 *     the extent that .old names, if it names one, has been replaced. That may be used again when every
 *     chain, of a reader too, that began before this one was over is over as well: such a chain may have read
 *     .old. Not published: the extent is the caller's again at once, because only the publish names it.
 *   - Of an instance that is not over, and never will be, since its queue pairs have failed and are stopped,
 *     only the word at .place shows whether it has published: if that names the extent, .old has been
 *     replaced.
 *   - A client chooses the place, any multiple of 8 in the region, for the device refuses an atomic at
 *     another one. So it may name a word that is no locator, such as the mark of a bucket, and what the chain
 *     takes for the mark is then the locator that follows. That must never match: no offset that is published
 *     has the byte by which the chain knows a mark (of a store the tag, protocol/table-format.h). A chain
 * that does not look at that byte is refused (verify/trace.h).
 *   - All words that are published are changed by atomics of one device and by nothing else, or not at all
 *     while a chain may run: atomics of a CPU or of another device do not exclude those of a NIC.
 *   - A message may be shorter than the arguments. What it lacks of them is zero, and the length that is
 *     published is that of the message; so no key may match what a message of no bytes asks for. A chain that
 *     reads published lengths is proved for 1 to arg_len + payload.max bytes (verify/bounds.h). A length is
 *     the client's, with any value in these bounds, also that of the tag in a byte.
 *
 * Pure. Thread rules: any.
 */
#ifndef CHAIN_RING_PUBLISH_H
#define CHAIN_RING_PUBLISH_H

#include "reddnd/chain/ir/image.h"

struct chain_outcome {
	bool tried;        /* the chain has come to it */
	bool published;    /* and it took place, if the instance is over; one that never ran has found no word
			      that there can be (verify/trace.c) */
	uint64_t place;    /* IOVA of the word */
	uint64_t old, now; /* locators: of what it was to replace, and of what it put there */
};

/** Of an instance of @img, which publishes: @wqes, its part of the queue of the publish; @scratch. */
struct chain_outcome chain_outcome(
	const struct chain_image *img, const uint8_t *wqes, const uint8_t *scratch);

#endif
