/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/ways/ways.h"
#include "tools/common/tool.h"
#include "tools/load/load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 32, LEASE_MS = 3600 * 1000 };

/* One lock at a time. */
struct locker {
	struct load_way in; /* its conn is the handle */
	struct reddn_lock lock;
	enum reddn_lock_step step;
	bool busy; /* a request is outstanding */
	uint64_t cookie;
};

static int submit(void *conn, const struct load_op *op, uint64_t cookie)
{
	struct locker *l = conn;
	char text[TEXT] = "";
	int r;

	if (op->kind || op->key_len >= TEXT)
		return -EINVAL;
	if (l->busy)
		return -EAGAIN;
	memcpy(text, op->key, op->key_len);
	l->lock = (struct reddn_lock){.word = strtoull(text, NULL, 10), .lease_ms = LEASE_MS};
	l->step = REDDN_LOCK;
	l->cookie = cookie;
	r = reddn_lock_submit(l->in.conn, &l->lock, l->step, 0);
	l->busy = r == 0;
	return r;
}

static int poll_results(void *conn, struct reddn_result *res, int max)
{
	struct locker *l = conn;
	struct reddn_result got;
	int n = reddn_poll(l->in.conn, &got, max ? 1 : 0), r;

	if (n <= 0)
		return n;
	r = reddn_lock_result(&l->lock, &got);
	reddn_release(l->in.conn);
	if (r == REDDN_AGAIN)
		return reddn_lock_submit(l->in.conn, &l->lock, l->step, 0);
	if (r || l->step == REDDN_UNLOCK) {
		l->busy = false;
		if (l->step == REDDN_UNLOCK)
			return r;
	} else {
		l->step = REDDN_UNLOCK;
		n = reddn_lock_submit(l->in.conn, &l->lock, l->step, 0);
		if (n < 0)
			return n;
	}
	*res = (struct reddn_result){.cookie = l->cookie, .status = r};
	return 1;
}

static void release(void *conn)
{
	(void)conn;
}

static const char *errmsg(void *conn)
{
	return reddn_errmsg(((struct locker *)conn)->in.conn);
}

static void close_locker(void *conn)
{
	struct locker *l = conn;

	l->in.close(l->in.conn);
	free(l);
}

int way_lock_open(struct load_way *way, const struct reddn_options *opt)
{
	struct locker *l = calloc(1, sizeof(*l));
	int r = l ? load_reddn_connect(&l->in, opt) : tool_complain("%s", strerror(ENOMEM));

	if (r) {
		free(l);
		return r;
	}
	*way = (struct load_way){.conn = l,
		.depth = 1,
		.submit = submit,
		.poll = poll_results,
		.release = release,
		.errmsg = errmsg,
		.close = close_locker};
	return 0;
}
