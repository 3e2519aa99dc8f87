/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * decode.h - WQEs in words, for traces, dumps and messages about errors.
 */
#ifndef CHAIN_RING_DECODE_H
#define CHAIN_RING_DECODE_H

#include "reddnd/chain/ir/image.h"

#include <stddef.h>

/**
 * One line about the WQE at @wqe, of which @avail bytes are at hand: index, verb, flags, places, operands;
 * always terminated, cut when @size is too small. Returns the WQEBBs the WQE takes (by its DS count, at least
 * 1).
 */
unsigned chain_decode(const uint8_t *wqe, size_t avail, char *line, size_t size);

/**
 * Name of the step that WQE index @index of queue @q belongs to, when its ring holds @slots instances. "pad"
 * for the pad. @slot (or NULL) becomes the slot, @slots for the pad.
 */
const char *chain_step_at(
	const struct chain_image *img, unsigned slots, unsigned q, uint16_t index, unsigned *slot);

#endif
