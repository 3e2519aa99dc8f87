/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check.h - a second opinion on what the compiler has made and the verifier has accepted, from its bytes.
 *
 * It knows nothing of the description but the lengths that it declares, nothing of labels, of verbs and of
 * the proofs in reddnd/chain/verify, and shares no code with them. It takes the image and its relocations
 * (for a loop without a bound: the ring as it is laid out), puts an instance together, and runs it in the
 * abstract, as a NIC reads it (nic.h): which values each byte of a WQE can have, whoever writes it. Then, at
 * every moment:
 *
 *   - a WQE is a NOP or one other thing, with the opmod and the size of that, whichever values are combined;
 *     so what the verifier takes on trust (CHAIN_LANES) is shown here;
 *   - keys, flags, objects of WAITs and enables are as posted, as are index and QPN where a device looks;
 *   - each access by a key of the chain's own is to bytes of this instance, at a constant place; at a
 *     constant place in a region within the size that the program asks for; in the reply slot within
 *     reply_max;
 *   - only the reply queue reaches the client, nothing reads a key, regions are written if they are
 *     writable, at a place that the client's bytes choose if they are steered; and no length is the client's;
 *   - a length that is declared as m to n is one of these, if it is the program's, or else a region's as a
 * whole;
 *   - no copy of more than a packet between constant places of a region that overlap.
 *
 * Not looked at: when a patch lands (verify/order.h), whether a WQE whose length is declared as at most n
 * sleeps when it is more, and whether anybody stores where a region has a length.
 */
#ifndef TESTS_IMAGE_CHECK_H
#define TESTS_IMAGE_CHECK_H

#include "reddnd/program/program.h"

/** True, or false and what is wrong in @why. */
bool image_check(const struct program *p, const struct program_target *target, char *why, size_t size);

/** Frees what image_check() keeps for the next call. */
void image_check_done(void);

#endif
