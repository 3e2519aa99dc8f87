/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop-size.h - what the endless loop of a program (chain/ring/loop.h) needs beside its chain. Pure.
 */
#ifndef GENERATION_LOOP_SIZE_H
#define GENERATION_LOOP_SIZE_H

#include "reddnd/generation/queue-layout.h"
#include "reddnd/program/program.h"

/** False if @p has no endless loop. */
bool session_loop_size(const struct program *p, struct session_loop_size *size);

/** WQEs that @iterations of the loop execute; 0 without one. */
uint64_t session_loop_wqes(const struct program *p, uint64_t iterations);

#endif
