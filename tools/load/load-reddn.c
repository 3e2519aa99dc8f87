/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/load.h"

#include "tools/common/tool.h"

#include <errno.h>
#include <string.h>

static int submit(void *conn, const struct load_op *op, uint64_t cookie)
{
	switch (op->kind) {
	case LOAD_PUT:
		return reddn_put_submit(conn, op->key, op->key_len, op->value, op->value_len, cookie);
	case LOAD_PUT_IF:
		return reddn_put_if_submit(
			conn, op->key, op->key_len, op->value, op->value_len, op->version, cookie);
	case LOAD_DELETE:
		return reddn_delete_submit(conn, op->key, op->key_len, cookie);
	default:
		return reddn_get_submit(conn, op->key, op->key_len, cookie);
	}
}

static int poll_results(void *conn, struct reddn_result *res, int max)
{
	return reddn_poll(conn, res, max);
}

static void release(void *conn)
{
	reddn_release(conn);
}

static const char *errmsg(void *conn)
{
	reddn_end_reason(conn);
	return reddn_errmsg(conn);
}

static void close_connection(void *conn)
{
	reddn_close(conn);
}

static void get_info(void *conn, struct reddn_info *info)
{
	reddn_get_info(conn, info);
}

static int get_host(void *conn, unsigned i, struct reddn_host_info *info)
{
	return reddn_get_host(conn, i, info);
}

int load_reddn_connect(struct load_way *way, const struct reddn_options *opt)
{
	struct reddn_info info;
	struct reddn *c;
	char err[256];

	if (reddn_connect(&c, opt, err, sizeof(err)) < 0)
		return tool_complain("%s", err);
	reddn_get_info(c, &info);
	*way = (struct load_way){.conn = c,
		.depth = info.depth,
		.submit = submit,
		.poll = poll_results,
		.release = release,
		.errmsg = errmsg,
		.close = close_connection,
		.info = get_info,
		.host = strpbrk(opt->host, ",;") ? get_host : NULL};
	return 0;
}

int load_reddn_open(struct load_way *way, const struct reddn_options *opt)
{
	struct reddn_info info;
	int r = load_reddn_connect(way, opt);

	if (r)
		return r;
	reddn_get_info(way->conn, &info);
	return info.shape == REDDN_TABLE ? 0 : tool_complain("%s: not a table", opt->offload);
}

int load_reddn_open_put(struct load_way *way, const struct reddn_options *opt)
{
	struct reddn_info info;
	int r = load_reddn_connect(way, opt);

	if (r)
		return r;
	reddn_get_info(way->conn, &info);
	return info.record_max ? 0 : tool_complain("%s: not a store", opt->offload);
}
