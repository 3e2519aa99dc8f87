/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace-event.h - the records of a trace that are no send WQEs: RECVs that messages took, CQEs, and queues
 * that stop at a WAIT and go on. The rest of their line and of their JSON object; trace-text.h has what all
 * records begin with.
 */
#ifndef SOFTCX_TOOL_TRACE_EVENT_H
#define SOFTCX_TOOL_TRACE_EVENT_H

#include "softcx/proto/proto.h"

#include <json-c/json.h>
#include <stdio.h>

/** "wqe", "recv", "cqe" or "wait". */
const char *trace_event_kind(uint32_t kind);
/** The kinds of a list like "wqe,recv", or "all", as a set of 1 << enum hw_trace_kind; 0: no such list. */
uint32_t trace_event_kinds(const char *list);
/** Writes from what the record is about to the end of the line. */
void trace_event_text(FILE *out, const struct softcx_trace *rec);
void trace_event_json(struct json_object *o, const struct softcx_trace *rec);

#endif
