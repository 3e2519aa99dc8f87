/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * image-hash.h - whether two daemons write the same instances. Pure.
 */
#ifndef GENERATION_IMAGE_HASH_H
#define GENERATION_IMAGE_HASH_H

#include "reddnd/generation/queue-layout.h"
#include "reddnd/program/program.h"

/** Of all that instances of @p, in queues laid out as @l, are written and read by. A session goes on under
 * another daemon only if both have the same. Not 0. */
uint64_t image_hash(const struct program *p, const struct queue_layout *l);

#endif
