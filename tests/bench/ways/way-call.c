/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/ways/ways.h"
#include "tools/common/tool.h"
#include "tools/load/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS = 20, TEXT = 256, ENTRY = 200 };

int way_get_open(struct load_way *way, const struct reddn_options *opt)
{
	return load_reddn_open(way, opt);
}

static int submit(void *conn, const struct load_op *op, uint64_t cookie)
{
	struct reddn_arg args[ARGS] = {0};
	unsigned n = 0;
	char text[TEXT], *at = text;

	if (op->kind || op->key_len >= TEXT)
		return -EINVAL;
	memcpy(text, op->key, op->key_len);
	text[op->key_len] = '\0';
	while (n < ARGS) {
		char *end;

		args[n++].number = strtoull(at, &end, 10);
		if (end == at || (*end && *end != ','))
			return -EINVAL;
		if (!*end)
			return reddn_call_submit(conn, args, n, cookie);
		at = end + 1;
	}
	return -EINVAL;
}

int way_call_open(struct load_way *way, const struct reddn_options *opt)
{
	int r = load_reddn_connect(way, opt);

	way->submit = submit;
	return r;
}

static int submit_append(void *conn, const struct load_op *op, uint64_t cookie)
{
	char entry[ENTRY] = {0};

	if (op->kind || op->key_len > ENTRY)
		return -EINVAL;
	memcpy(entry, op->key, op->key_len);
	return reddn_append_submit(conn, entry, sizeof(entry), cookie);
}

int way_append_open(struct load_way *way, const struct reddn_options *opt)
{
	int r = load_reddn_connect(way, opt);

	way->submit = submit_append;
	return r;
}
