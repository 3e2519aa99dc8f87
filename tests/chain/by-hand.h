/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * by-hand.h - a chain ordered by hand, for tests: what the compiler makes of conf/programs/hash-get.rdn is
 * compared with it.
 *
 * It answers a get on a table (protocol/table-format.h): it reads the two buckets the client names, compares
 * fingerprints, and writes the records of those that match, then the live line, into the reply slot
 * (protocol/wire.h: request and reply of a TABLE offload).
 *
 * A match is decided by a CAS on a scratch word that holds 7 bytes of a bucket, its mark, and one *lane*. The
 * lane is 0, and becomes the opcode WRITE if the mark is the table's tag and the client's fingerprint; a READ
 * copies it into the opcode byte of the reply WQE. The word is ours, so control segments stay valid at all
 * times, and no byte of the table or of a client ever becomes an opcode.
 *
 * An error in any step (a bucket outside the window, say) means no answer, never a miss.
 */
#ifndef TESTS_CHAIN_BY_HAND_H
#define TESTS_CHAIN_BY_HAND_H

#include "reddnd/chain/ir/image.h"

#include <stdbool.h>

enum chain_hash_get_region {
	CHAIN_HASH_GET_WINDOW, /* the bucket array */
	CHAIN_HASH_GET_HEAP,
	CHAIN_HASH_GET_LIVE, /* struct reddn_table_live */
};

struct chain_hash_get {
	bool parallel;      /* look into both buckets at the same time, with a queue each: 3 queues, not 2 */
	uint8_t offset_len; /* 1..7: bytes of a bucket offset in the request */
};

/** 0 and an image to be freed with chain_free(); -EINVAL for an offset_len out of range; -ENOMEM. */
int chain_hash_get(const struct chain_hash_get *p, struct chain_image **out);

#endif
