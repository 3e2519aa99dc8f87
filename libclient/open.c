/* SPDX-License-Identifier: BSD-2-Clause */
/* reddn_connect(): a handle, or one for each shard. */
#include "libclient/connection.h"
#include "libclient/options.h"
#include "libclient/public.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

DEFINE_CLEANUP(struct reddn *, reddn_close)

/* Of the time until @deadline, as much for it as for each of those behind it. */
static uint32_t share_of(uint64_t deadline, unsigned left)
{
	uint32_t ms = (uint32_t)reddn_time_left(deadline) / left;

	return ms ? ms : 1;
}

static unsigned count_shards(const char *host)
{
	unsigned n = 1;

	for (; *host; host++)
		n += *host == ';';
	return n;
}

/* One that cannot be reached is connected later, as one that is lost. */
static int shard_open(
	struct reddn *whole, struct reddn **at, struct reddn_options *opt, char *err, size_t errlen)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int r = reddn_open(at, opt, true, err, errlen);

	if (r < 0)
		return r;
	(*at)->owner = whole;
	(*at)->connector.opt.timeout_ms = whole->connector.opt.timeout_ms;
	if (epoll_ctl(whole->connector.epoll, EPOLL_CTL_ADD, (*at)->connector.epoll, &ev) < 0)
		return reddn_fail(-errno, err, errlen, "epoll: %m");
	return 0;
}

static int shards_open(
	struct reddn *whole, const struct reddn_options *opt, uint64_t deadline, char *err, size_t errlen)
{
	struct reddn **at = &whole->parts;
	unsigned left = count_shards(opt->host);
	struct reddn_options one = *opt;
	int r;

	for (const char *host = opt->host; left; left--, at = &(*at)->next_part) {
		CLEANUP(cleanup_free) char *hosts = strndup(host, strcspn(host, ";"));

		if (!hosts)
			return reddn_fail(-ENOMEM, err, errlen, "out of memory");
		one.host = hosts;
		one.timeout_ms = share_of(deadline, left);
		r = shard_open(whole, at, &one, err, errlen);
		if (r < 0)
			return r;
		host += strlen(hosts) + 1;
	}
	return 0;
}

/* The answer does not matter: the line that comes with it has the slots. One that does not come within @ms
 * does neither, unless that is the end of the handle. */
static int shard_learn(struct reddn *shard, uint32_t ms)
{
	const uint32_t later = shard->connector.opt.timeout_ms;
	size_t len;

	shard->connector.opt.timeout_ms = ms;
	if (shard->state == REDDN_UP)
		reddn_get(shard, "0", 1, NULL, 0, &len);
	shard->connector.opt.timeout_ms = later;
	shard->shard = shard;
	shard->slots = shard->session.seen.slots;
	shard->session.plain = UINT64_MAX;
	return shard->broken;
}

static int shards_begin(struct reddn *whole, uint64_t deadline, char *err, size_t errlen)
{
	const struct reddn *up = whole->parts;
	unsigned left = 0;

	while (up && up->state != REDDN_UP)
		up = up->next_part;
	if (!up)
		return reddn_fail(
			whole->parts->connector.error, err, errlen, "%s", reddn_errmsg(whole->parts));
	for (struct reddn *s = whole->parts; s; s = s->next_part, left++) {
		int r = s->state == REDDN_UP ? 0 : reddn_expect(s, &up->session);

		if (r < 0)
			return reddn_fail(r, err, errlen, "out of memory");
		if (s->session.info.shape != REDDN_TABLE || s->session.geo.header)
			return reddn_fail(-EOPNOTSUPP, err, errlen, "the offload of a shard is no table");
	}
	for (struct reddn *s = whole->parts; s; s = s->next_part) {
		int r = shard_learn(s, share_of(deadline, left--));

		if (r < 0)
			return reddn_fail(r, err, errlen, "%s", reddn_errmsg(s));
	}
	return reddn_fail(0, err, errlen, "%s", "");
}

static int connect_shards(struct reddn **out, const struct reddn_options *opt, char *err, size_t errlen)
{
	CLEANUP(reddn_closep) struct reddn *whole = calloc(1, sizeof(*whole));
	const uint64_t deadline = clock_ms() + opt->timeout_ms;
	int r;

	if (!whole)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	whole->is_whole = true;
	whole->state = REDDN_AWAY;
	whole->exceptional = true;
	whole->pause_until = UINT64_MAX;
	whole->polled = whole;
	r = reddn_connector_init_bare(&whole->connector, opt);
	if (r < 0)
		return reddn_fail(r, err, errlen, "%s", whole->connector.words);
	r = shards_open(whole, opt, deadline, err, errlen);
	if (r == 0)
		r = shards_begin(whole, deadline, err, errlen);
	if (r == 0)
		*out = steal_ptr(&whole);
	return r;
}

PUBLIC int reddn_connect(struct reddn **out, const struct reddn_options *options, char *err, size_t errlen)
{
	struct reddn_options opt = *options;
	struct token_key key = {0};
	int r;

	if (!opt.shards)
		return reddn_open(out, options, false, err, errlen);
	r = reddn_options_read(&opt, &key, err, errlen);
	token_key_wipe(&key);
	return r < 0 ? r : connect_shards(out, &opt, err, errlen);
}
