/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * decode.h - WQEs as text, for traces, dumps and error messages.
 */
#ifndef CHAIN_RING_DECODE_H
#define CHAIN_RING_DECODE_H

#include "reddnd/chain/ir/image.h"

#include <stddef.h>

/**
 * Describes the WQE at @wqe, of which @avail bytes are readable, in one line: index, verb, flags, places,
 * operands. The line is always terminated, and cut if @size is too small. Returns the WQEBBs of the WQE (by
 * its DS count, at least 1).
 */
unsigned chain_decode(const uint8_t *wqe, size_t avail, char *line, size_t size);

/**
 * Name of the step that WQE index @index of queue @q belongs to, when its ring holds @slots instances. "pad"
 * for the pad. @slot (or NULL) becomes the slot, @slots for the pad.
 */
const char *chain_step_at(
	const struct chain_image *img, unsigned slots, unsigned q, uint16_t index, unsigned *slot);

#endif
