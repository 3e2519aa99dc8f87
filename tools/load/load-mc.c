/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/load-mc.h"

#include "tools/common/tool.h"

#include <errno.h>
#include <stdlib.h>

enum { RESULTS = 64 };

struct reddn_mc_options load_mc_options;

static int submit(void *conn, const struct load_op *op, uint64_t cookie)
{
	return op->kind ? -EINVAL : reddn_mc_submit(conn, op->key, op->key_len, cookie);
}

static int poll_results(void *conn, struct reddn_result *res, int max)
{
	struct reddn_mc_result got[RESULTS];
	int n = reddn_mc_poll(conn, got, max < RESULTS ? max : RESULTS);

	for (int i = 0; i < n; i++)
		res[i] = (struct reddn_result){.cookie = got[i].cookie,
			.status = got[i].status,
			.value = got[i].value,
			.length = got[i].length};
	return n;
}

static void release(void *conn)
{
	reddn_mc_release(conn);
}

static const char *errmsg(void *conn)
{
	return reddn_mc_errmsg(conn);
}

static void close_pool(void *conn)
{
	reddn_mc_close(conn);
}

static uint64_t over_tcp(void *conn)
{
	struct reddn_mc_stats s;

	reddn_mc_get_stats(conn, &s);
	return s.tcp_hits + s.tcp_misses + s.errors;
}

int load_mc_open(struct load_way *way, const struct reddn_options *opt)
{
	struct reddn_mc_options o = load_mc_options;
	struct reddn_mc *mc;
	char err[512];

	o.offload = opt->offload;
	o.port = opt->port;
	o.depth = opt->depth;
	o.token_file = opt->token_file;
	if (reddn_mc_connect(&mc, opt->host, &o, err, sizeof(err)) < 0)
		return tool_complain("%s", err);
	*way = (struct load_way){.conn = mc,
		.depth = opt->depth ? opt->depth : 16,
		.submit = submit,
		.poll = poll_results,
		.release = release,
		.errmsg = errmsg,
		.close = close_pool,
		.over_tcp = over_tcp};
	return 0;
}
