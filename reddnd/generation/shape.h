/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shape.h - programs with a shape: what libreddn sends to them for keys, and where it looks for records in
 * their replies.
 *
 * Thread rules: any.
 */
#ifndef GENERATION_SHAPE_H
#define GENERATION_SHAPE_H

#include "reddnd/generation/offload.h"

/** Keys that a request of a program of shape table or exists asks for. The offload is bound to the table. */
unsigned shape_keys(const struct offload *o);

/** enum reddn_wire_shape. The same. */
uint8_t shape_on_wire(const struct offload *o);

/** 0: the program has no shape, or libreddn can use it with the table. -EINVAL, logged. After it was compiled
 * for the table. */
int shape_check(struct offload *o);

#endif
