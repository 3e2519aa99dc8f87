/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/ways/ways.h"
#include "tools/common/tool.h"
#include "tools/load/load-reddn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KEYS = 64 };

typedef int submit_fn(struct reddn *c, const struct reddn_key *keys, unsigned n, uint64_t cookie);

/** A request that is on its way. */
struct request {
	unsigned left; /* keys without a result; 0: free */
	uint64_t cookies[MOST_KEYS];
};

struct several {
	struct reddn *c;
	void (*close)(void *conn);
	submit_fn *submit;
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
	r = s->submit(s->c, s->next, s->n, (uint64_t)(q - s->requests) * MOST_KEYS);
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

	if (op->value)
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
	n = reddn_poll(s->c, res, max);
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
	reddn_release(((struct several *)conn)->c);
}

static const char *errmsg(void *conn)
{
	return reddn_errmsg(((struct several *)conn)->c);
}

static void get_info(void *conn, struct reddn_info *info)
{
	reddn_get_info(((struct several *)conn)->c, info);
}

static void close_several(void *conn)
{
	struct several *s = conn;

	s->close(s->c);
	free(s->requests);
	free(s);
}

static int open_several(struct load_way *way, const struct reddn_options *opt, submit_fn *submit_request)
{
	struct several *s = calloc(1, sizeof(*s));
	struct reddn_info info;
	int r;

	if (!s)
		return tool_complain("%s", strerror(ENOMEM));
	r = load_reddn_connect(way, opt);
	if (r) {
		free(s);
		return r;
	}
	reddn_get_info(way->conn, &info);
	s->c = way->conn;
	s->close = way->close;
	s->submit = submit_request;
	s->keys = info.keys < MOST_KEYS ? info.keys : MOST_KEYS;
	s->depth = info.depth;
	s->requests = calloc(s->depth, sizeof(*s->requests));
	*way = (struct load_way){.conn = s,
		.depth = s->depth * s->keys,
		.submit = submit,
		.poll = poll_results,
		.release = release,
		.errmsg = errmsg,
		.close = close_several,
		.info = get_info};
	return s->requests ? 0 : tool_complain("%s", strerror(ENOMEM));
}

int way_mget_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_several(way, opt, reddn_mget_submit);
}

int way_exists_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_several(way, opt, reddn_exists_submit);
}
