/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lap-end.h - where the laps of a recycled chain end whose instances overlap (image.h): nothing of a lap
 * begins before queue 0, the queue of the client, has come to the last reply of the lap before.
 *
 * The head of such a chain is in a code queue, and a RECV that is flushed ends its WAIT, too. When the
 * client's queue pair has failed, instances go on with RECVs that are flushed, and the recycler would arm
 * them and enable RECVs for ever. So the last instance of a lap enables the queue with the heads to the end
 * of its ring, and not through the head of the first slot. A SEND_EN does that, with which the pad of queue 0
 * begins, and a queue that has failed executes nothing. So the chain comes to rest with the lap that it is in
 * when queue 0 fails.
 *
 * When the SEND_EN starts, the first slot is armed: the RECV of the last instance of a lap is enabled when
 * the instance after it is. And no other SEND_EN for that queue comes later: chain_check_order() proves that
 * all steps of code queues are over when the last step of the reply starts (ordering-proof.md).
 *
 * Memory writes only. Thread rules: any.
 */
#ifndef CHAIN_RING_LAP_END_H
#define CHAIN_RING_LAP_END_H

#include "reddnd/chain/ring/arm.h"

#include <stdbool.h>

/** Whether a recycled @img has such an end. */
bool chain_has_lap_end(const struct chain_image *img);

/** WQEBB of the ring of queue 0 where the SEND_EN is; the pad has that one at least. */
uint32_t chain_lap_end_at(const struct chain_image *img, const struct chain_env *env);

/** The producer index of the SEND_EN at the end of lap @lap. */
uint16_t chain_lap_end_index(const struct chain_image *img, const struct chain_env *env, uint64_t lap);

/** The producer index that @r, of kind ENABLE, has in instance @seq of a recycled chain. */
uint16_t chain_recycled_index(const struct chain_image *img, const struct chain_env *env,
	const struct chain_reloc *r, uint64_t seq);

/** Writes the end of lap @lap over what arm.h has written: the pad of queue 0, and the last instance. */
void chain_write_lap_end(const struct chain_image *img, const struct chain_env *env, uint64_t lap);

#endif
