/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace-text.h - records of a trace in words.
 *
 * A line of text is
 *   TIME DEVICE QP NUMBER [INDEX] OPCODE operands, flags -> outcome
 * In JSON the same facts have members of their own. Addresses, keys and queue pair numbers are hexadecimal
 * (in JSON strings "0x..."); CQ numbers, lengths and indices are decimal. A WQE that was refused is described
 * as far as its bytes make sense (trace-wqe.h). A record that stands for lost ones has their number.
 * trace-event.h prints the records that are not send WQEs.
 */
#ifndef SOFTCX_TOOL_TRACE_TEXT_H
#define SOFTCX_TOOL_TRACE_TEXT_H

#include "softcx/proto/proto.h"

#include <json-c/json.h>
#include <stdio.h>

/** Writes one line, newline included. */
void trace_text(FILE *out, const struct softcx_trace *rec);
/** The caller puts it. */
struct json_object *trace_json(const struct softcx_trace *rec);

#endif
