/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/trace-json.h"

#include <inttypes.h>
#include <stdio.h>

void trace_add_number(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_uint64(value));
}

void trace_add_hex(struct json_object *o, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	json_object_object_add(o, name, json_object_new_string(text));
}

void trace_add_text(struct json_object *o, const char *name, const char *value)
{
	json_object_object_add(o, name, json_object_new_string(value));
}
