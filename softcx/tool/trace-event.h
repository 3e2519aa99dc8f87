/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace-event.h - the records of a trace that are not send WQEs: RECVs that messages took, CQEs, and queues
 * that stop at a WAIT and go on. These functions print the rest of a line or JSON object; trace-text.h prints
 * how all records begin.
 */
#ifndef SOFTCX_TOOL_TRACE_EVENT_H
#define SOFTCX_TOOL_TRACE_EVENT_H

#include "softcx/proto/proto.h"

#include <json-c/json.h>
#include <stdio.h>

/** "wqe", "recv", "cqe" or "wait". */
const char *trace_event_kind(uint32_t kind);
/** The kinds in a list like "wqe,recv", or "all", as a set of 1 << enum hw_trace_kind; 0: a wrong list. */
uint32_t trace_event_kinds(const char *list);
/** Writes the rest of the line. */
void trace_event_text(FILE *out, const struct softcx_trace *rec);
void trace_event_json(struct json_object *o, const struct softcx_trace *rec);

#endif
