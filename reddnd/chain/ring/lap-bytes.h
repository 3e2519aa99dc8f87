/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lap-bytes.h - private to lap*.c: the bytes of a lap that is laid out.
 */
#ifndef CHAIN_RING_LAP_BYTES_H
#define CHAIN_RING_LAP_BYTES_H

#include "reddnd/chain/ring/lap-parts.h"

/** Writes ring and lanes, as @lanes have been planned. Spare places for READs and FETCH_ADDs are NOPs. */
void lap_emit(const struct lap *l, const struct lanes *lanes);

#endif
