/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace-step.h - what the steps of a trace do. Private to trace.c.
 */
#ifndef EXECUTOR_TRACE_STEP_H
#define EXECUTOR_TRACE_STEP_H

#include "reddnd/executor/trace.h"

/** Words that a small READ touches, at most: one more than it fills, if it is not aligned. */
enum { TRACE_WORDS = OP_WHOLE / sizeof(uint64_t) + 1 };

/** The end of the trace. */
trace_run trace_step_end;
/** Any work request, by op.h. */
trace_run trace_step_any;
/** .then, if .control is that of the WQE; nothing, if it is a NOP. */
trace_run trace_step_if;
/** One byte of own memory: an opcode, mostly. */
trace_run trace_step_byte;
/** Up to .end from .part on, of the .nwords words at .from, in own memory. */
trace_run trace_step_own_words;
/** The same of words at .from in a region. */
trace_run trace_step_words;
/** The same at .address. */
trace_run trace_step_found_words;
/** .len bytes from .from to .to. */
trace_run trace_step_copy;
/** Compare-and-swap of .to; the old value goes to .mem. */
trace_run trace_step_swap;
/** .message with the .len bytes at .from. */
trace_run trace_step_send;
/** The same with what the only data segment has, which is at .address and the field before it. */
trace_run trace_step_found_send;

#endif
