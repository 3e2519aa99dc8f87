/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace-json.h - members of the JSON object of a trace record.
 */
#ifndef SOFTCX_TOOL_TRACE_JSON_H
#define SOFTCX_TOOL_TRACE_JSON_H

#include <json-c/json.h>
#include <stdint.h>

void trace_add_number(struct json_object *o, const char *name, uint64_t value);
/** A string "0x...". */
void trace_add_hex(struct json_object *o, const char *name, uint64_t value);
void trace_add_text(struct json_object *o, const char *name, const char *value);

#endif
