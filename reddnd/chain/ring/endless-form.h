/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * endless-form.h - private to endless.c: whether a description is an endless loop as endless.h wants it, and
 * what its steps name.
 */
#ifndef CHAIN_RING_ENDLESS_FORM_H
#define CHAIN_RING_ENDLESS_FORM_H

#include "reddnd/chain/ir/build.h"

#include <stdbool.h>

enum { LOOP_FORM_NONE = 0xffff };

struct loop_form {
	const struct chain_desc *d;
	unsigned queue;
	unsigned renew; /* step before which the ring is renewed in the last iteration of a section */
	/* the step that a WAIT is for, and that a SEND_EN enables through; or LOOP_FORM_NONE */
	uint16_t until[CHAIN_MAX_STEPS], through[CHAIN_MAX_STEPS];
	uint32_t word_at[CHAIN_MAX_WORDS], scratch;
	bool discards; /* the last 8 bytes of the scratch take old values that nobody wants */
	struct chain_error *err;
};

/** 0; CHAIN_REFUSED and the reason in @err. @d and @err outlive the form. */
int loop_form_read(struct loop_form *f, const struct chain_desc *d, struct chain_error *err);

/** The step with this label, or LOOP_FORM_NONE. */
unsigned loop_form_step(const struct loop_form *f, const char *label);
/** Data segments of its WQE. */
unsigned loop_form_segments(const struct chain_step *st);
/** One of the two steps by which a loop is called: the WAIT that starts it, and the SEND_EN that wakes the
 * caller. */
bool loop_form_is_outward(const struct loop_form *f, const struct chain_step *st);

#endif
