/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * recycle-template.h - the recycler of an image and a number of slots, made and proven once, and written for
 * each session from there.
 *
 * What chain_recycle() lays out depends on the image and on the number of slots alone. Sessions differ in
 * addresses, keys and numbers of queues, and in the bytes that the recycler puts back, which are those of the
 * armed rings. So a template is a recycler for parts at addresses that tell them apart, with a list of the
 * fields to fill in.
 *
 * Thread rules: a template is only read by chain_template_write(), on any thread.
 */
#ifndef CHAIN_RING_RECYCLE_TEMPLATE_H
#define CHAIN_RING_RECYCLE_TEMPLATE_H

#include "reddnd/chain/ring/recycle.h"

struct chain_template;

/**
 * For @env->slots and the sizes of @env's rings; nothing else of @env is looked at. @made: as
 * chain_recycle_size() gave it. -ENOMEM.
 */
int chain_template_new(struct chain_template **t, const struct chain_image *img, const struct chain_env *env,
	const struct chain_recycle *made);
void chain_template_free(struct chain_template *t); /* NULL is fine */

/** Does what chain_recycle() does, and has its conditions, for instances that begin with number 0.
 * @img, and the sizes in @env: those of the template. */
void chain_template_write(const struct chain_template *t, const struct chain_image *img,
	const struct chain_env *env, struct chain_recycle *made);

#endif
