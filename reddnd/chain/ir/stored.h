/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stored.h - what programs store in a region or a file, as far as that matters to who reads it. It only
 * grows.
 */
#ifndef CHAIN_IR_STORED_H
#define CHAIN_IR_STORED_H

#include <stdint.h>

/** Bytes from..to - 1 of a region; to is 0 if there are none. */
struct chain_span {
	uint64_t from, to;
};

/** What programs store in a region. */
struct chain_stored {
	struct chain_span any;    /* whatever it is: nobody vouches for a length there */
	struct chain_span theirs; /* that of clients, or which clients influence */
	/* Locators that are published: their lengths are those of messages, their offsets a server's */
	struct chain_span located;
	uint32_t longest; /* of them, bytes; the shortest has 1 */
};

/** All of @s, all of @more, and what is between them, in @s. */
void chain_span_add(struct chain_span *s, const struct chain_span *more);
/** The same of all. */
void chain_stored_add(struct chain_stored *s, const struct chain_stored *more);
/** What has grown since @was, in which there was some of it, is all of the region: for what grows again and
 * again, which it may do byte by byte. */
void chain_stored_widen(struct chain_stored *s, const struct chain_stored *was);

#endif
