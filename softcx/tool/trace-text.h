/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace-text.h - records of a trace in words.
 *
 * A line of text is
 *   TIME DEVICE QP NUMBER [INDEX] OPCODE operands, flags -> outcome
 * In JSON the same facts have members of their own. Addresses, keys and queue pair numbers are hexadecimal
 * (in JSON strings "0x..."); CQ numbers, lengths and indices are decimal. A WQE that was refused is described
 * as far as its bytes make sense. A record that stands for lost ones has their number.
 */
#ifndef SOFTCX_TOOL_TRACE_TEXT_H
#define SOFTCX_TOOL_TRACE_TEXT_H

#include "softcx/proto/proto.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** Writes one line, newline included. */
void trace_text(FILE *out, const struct softcx_trace *rec);
/** The caller puts it. */
struct json_object *trace_json(const struct softcx_trace *rec);

/** Length of the message: the sum of its data segments. */
uint64_t trace_bytes(const struct softcx_trace *rec);

/** The kinds in a list like "wqe,recv", or "all", as a set of 1 << enum hw_trace_kind; 0: a wrong list. */
uint32_t trace_event_kinds(const char *list);

#endif
