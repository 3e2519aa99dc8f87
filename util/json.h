/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.h - short forms for members of json-c objects. Users link json-c.
 */
#ifndef UTIL_JSON_H
#define UTIL_JSON_H

#include <json-c/json.h>
#include <stdint.h>

/** Copies @text; NULL becomes null. */
static inline void json_add_text(struct json_object *o, const char *name, const char *text)
{
	json_object_object_add(o, name, text ? json_object_new_string(text) : NULL);
}

static inline void json_add_count(struct json_object *o, const char *name, uint64_t n)
{
	json_object_object_add(o, name, json_object_new_uint64(n));
}

#endif
