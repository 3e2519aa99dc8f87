/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.h - short forms for members of json-c objects. Users link json-c and util.
 */
#ifndef UTIL_JSON_H
#define UTIL_JSON_H

#include "util/cleanup.h"
#include "util/text.h"

#include <json-c/json.h>
#include <stdint.h>

/** A copy of @text. A path, say, may have bytes that are not UTF-8, as JSON must be: U+FFFD stands for them.
 * NULL becomes null. */
static inline struct json_object *json_text(const char *text)
{
	CLEANUP(cleanup_free) char *copy = text ? text_as_utf8(text) : NULL;

	return copy ? json_object_new_string(copy) : NULL;
}

static inline void json_add_text(struct json_object *o, const char *name, const char *text)
{
	json_object_object_add(o, name, json_text(text));
}

static inline void json_add_count(struct json_object *o, const char *name, uint64_t n)
{
	json_object_object_add(o, name, json_object_new_uint64(n));
}

#endif
