/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn.h"

#include "tools/common/records.h"
#include "tools/common/tool.h"
#include "util/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a store answers, in words that the errno does not have; and -EINVAL is what another offload returns */
static int store_failed(struct reddn *c, const char *key, int error)
{
	switch (error) {
	case -EINVAL:
		return tool_complain(
			"%s", *key ? "it takes the address of one host, and an offload of a store"
				   : "the key is empty; a key has at least one byte");
	case -EMSGSIZE:
		return tool_complain("%s: the key or the record is too long for the store", key);
	case -ENOSPC:
		return tool_complain("%s: the store is full", key);
	case -EAGAIN:
		return tool_complain(
			"%s: nothing was done: other clients were first, or the server made no entry", key);
	case -EINPROGRESS:
		return tool_complain(
			"%s: it is not known whether that was done: %s", key, call_error(c, error));
	default:
		return tool_complain("%s: %s", key, call_error(c, error));
	}
}

/* All of standard input. NULL: it cannot be read, or has more than @most bytes. */
static char *store_read(size_t most, size_t *len)
{
	char *value = malloc(most + 1);

	if (!value)
		return NULL;
	*len = fread(value, 1, most + 1, stdin);
	if (!ferror(stdin) && *len <= most)
		return value;
	free(value);
	return NULL;
}

/* It has that version, and not the one that was named. The exit status */
static int store_conflict(bool json, const char *key, uint64_t version)
{
	if (json) {
		fputs("{", stdout);
		records_write_member(stdout, "key", (const uint8_t *)key, strlen(key));
		printf(", \"conflict\": true, \"version\": %" PRIu64 "}\n", version);
	}
	if (version)
		fprintf(stderr, "reddn: %s: nothing was done: its version is %" PRIu64 "\n", key, version);
	else
		fprintf(stderr, "reddn: %s: nothing was done: it is absent\n", key);
	return 1;
}

static int store_put_so(
	struct reddn *c, const char *key, const char *value, size_t len, uint64_t *version, uint64_t ttl_ms)
{
	if (version)
		return reddn_put_if(c, key, strlen(key), value, len, version);
	if (ttl_ms)
		return reddn_put_ttl(c, key, strlen(key), value, len, ttl_ms);
	return reddn_put(c, key, strlen(key), value, len);
}

int store_put(struct reddn *c, bool json, const uint64_t *version, uint64_t ttl_ms, char **texts)
{
	CLEANUP(cleanup_free) char *input = NULL;
	const char *key = texts[0], *value = texts[1];
	uint64_t now = version ? *version : 0;
	struct reddn_info info;
	size_t len;
	int r;

	if (version && ttl_ms)
		return tool_complain("a put with --if-version takes no --ttl");
	reddn_get_info(c, &info);
	if (value && strcmp(value, "-") != 0) {
		len = strlen(value);
	} else {
		value = input = store_read(info.max_value, &len);
		if (!value)
			return tool_complain(
				"standard input cannot be read, or has more than %u bytes", info.max_value);
	}
	r = store_put_so(c, key, value, len, version ? &now : NULL, ttl_ms);
	if (r < 0)
		return store_failed(c, key, r);
	if (r == REDDN_CONFLICT)
		return store_conflict(json, key, now);
	if (json)
		records_write(stdout, RECORDS_JSON,
			&(struct record_text){
				(const uint8_t *)key, strlen(key), (const uint8_t *)value, len});
	return 0;
}

int store_delete(struct reddn *c, bool json, const uint64_t *version, char **texts)
{
	int ret = 0;

	if (version && (texts[1] || !*version))
		return tool_complain("%s", texts[1] ? "--if-version is for one key"
						    : "--if-version 0 is an absent key, for put");
	for (; *texts; texts++) {
		uint64_t now = version ? *version : 0;
		int r = version ? reddn_delete_if(c, *texts, strlen(*texts), &now)
				: reddn_delete(c, *texts, strlen(*texts));

		if (r < 0)
			return store_failed(c, *texts, r);
		if (r == REDDN_CONFLICT)
			return store_conflict(json, *texts, now);
		if (json) {
			fputs("{", stdout);
			records_write_member(stdout, "key", (const uint8_t *)*texts, strlen(*texts));
			printf(", \"deleted\": %s}\n", r == 0 ? "true" : "false");
		}
		if (r != REDDN_MISS)
			continue;
		ret = 1;
		fprintf(stderr, "reddn: %s: not found\n", *texts);
	}
	return ret;
}
