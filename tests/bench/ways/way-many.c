/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/ways/many.h"
#include "tests/bench/ways/ways.h"
#include "tools/common/tool.h"
#include "tools/load/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KEYS = REQUEST_KEYS };

unsigned way_keys;
bool way_exists;

/** A request that is on its way. */
struct request {
	unsigned left; /* keys without a result; 0: free */
	uint64_t cookies[MOST_KEYS];
};

struct several {
	struct load_way in;
	many_submit_fn *submit;
	unsigned keys; /* of a request */
	unsigned depth, flying;
	struct request *requests;
	/* of the next one */
	struct reddn_key next[MOST_KEYS];
	uint64_t cookies[MOST_KEYS];
	unsigned n;
};

static int send_request(struct several *s)
{
	struct request *q = s->requests;
	int r;

	while (q < s->requests + s->depth && q->left)
		q++;
	if (q == s->requests + s->depth)
		return -EAGAIN;
	r = s->submit(s->in.conn, s->next, s->n, (uint64_t)(q - s->requests) * MOST_KEYS);
	if (r < 0)
		return r;
	memcpy(q->cookies, s->cookies, sizeof(q->cookies));
	q->left = s->n;
	s->n = 0;
	s->flying++;
	return 0;
}

static int submit(void *conn, const struct load_op *op, uint64_t cookie)
{
	struct several *s = conn;
	int r = s->n == s->keys ? send_request(s) : 0;

	if (op->kind)
		return -EINVAL;
	if (r < 0)
		return r;
	s->next[s->n] = (struct reddn_key){op->key, op->key_len};
	s->cookies[s->n++] = cookie;
	r = s->n == s->keys ? send_request(s) : 0;
	return r == -EAGAIN ? 0 : r;
}

static int poll_results(void *conn, struct reddn_result *res, int max)
{
	struct several *s = conn;
	int n;

	/* the last one may have fewer keys */
	if (s->n && (s->n == s->keys || !s->flying)) {
		int r = send_request(s);

		if (r < 0 && r != -EAGAIN)
			return r;
	}
	n = s->in.poll(s->in.conn, res, max);
	for (int i = 0; i < n; i++) {
		struct request *q = &s->requests[res[i].cookie / MOST_KEYS];

		res[i].cookie = q->cookies[res[i].cookie % MOST_KEYS];
		if (!--q->left)
			s->flying--;
	}
	return n;
}

static void release(void *conn)
{
	struct several *s = conn;

	s->in.release(s->in.conn);
}

static const char *errmsg(void *conn)
{
	struct several *s = conn;

	return s->in.errmsg(s->in.conn);
}

static void get_info(void *conn, struct reddn_info *info)
{
	struct several *s = conn;

	s->in.info(s->in.conn, info);
}

static void close_several(void *conn)
{
	struct several *s = conn;

	s->in.close(s->in.conn);
	free(s->requests);
	free(s);
}

int many_wrap(struct load_way *way, many_submit_fn *submit_request, unsigned keys)
{
	struct several *s = calloc(1, sizeof(*s));

	if (!s)
		return tool_complain("%s", strerror(ENOMEM));
	s->in = *way;
	s->submit = submit_request;
	s->keys = keys;
	s->depth = way->depth;
	s->requests = calloc(s->depth, sizeof(*s->requests));
	*way = (struct load_way){.conn = s,
		.depth = s->depth * s->keys,
		.submit = submit,
		.poll = poll_results,
		.release = release,
		.errmsg = errmsg,
		.close = close_several,
		.info = s->in.info ? get_info : NULL};
	return s->requests ? 0 : tool_complain("%s", strerror(ENOMEM));
}

static int mget_submit(void *conn, const struct reddn_key *keys, unsigned n, uint64_t cookie)
{
	return reddn_mget_submit(conn, keys, n, cookie);
}

static int exists_submit(void *conn, const struct reddn_key *keys, unsigned n, uint64_t cookie)
{
	return reddn_exists_submit(conn, keys, n, cookie);
}

static int open_reddn(struct load_way *way, const struct reddn_options *opt, many_submit_fn *submit_request)
{
	struct reddn_info info;
	int r = load_reddn_connect(way, opt);

	if (r)
		return r;
	reddn_get_info(way->conn, &info);
	return many_wrap(way, submit_request, way_keys && way_keys < info.keys ? way_keys : info.keys);
}

int way_mget_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_reddn(way, opt, mget_submit);
}

int way_exists_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_reddn(way, opt, exists_submit);
}
