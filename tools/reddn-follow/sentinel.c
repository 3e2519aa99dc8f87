/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/sentinel.h"

#include "util/clock.h"
#include "util/number.h"
#include "util/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* From an answer to the next question */
enum { ASK_MS = 200 };

/* ---- the master -------------------------------------------------------------------------------- */

static void sentinel_leave(struct sentinel *s)
{
	if (!s->server.deinit)
		return;
	s->left += s->redis.loads;
	s->server.deinit(&s->redis);
	s->server.deinit = NULL;
}

static void sentinel_follow(struct sentinel *s, const char *host, uint16_t port)
{
	if (s->server.deinit && s->url.port == port && strcmp(s->url.host, host) == 0)
		return;
	sentinel_leave(s);
	s->url = s->given->master;
	s->url.port = port;
	snprintf(s->url.host, sizeof(s->url.host), "%s", host);
	redis_init(&s->redis, &s->url, &s->whole);
	s->server = redis_as_source(&s->redis);
}

/* ---- sentinels --------------------------------------------------------------------------------- */

static void sentinel_close(struct sentinel *s)
{
	if (s->context)
		redisFree(s->context);
	s->context = NULL;
	s->unsent = false;
	s->since = 0;
}

/* The next one is asked. The trouble is shown as long as no master is known: that with the last of them. */
static void sentinel_lose(struct sentinel *s, const char *why)
{
	char address[URL_ADDRESS];

	if (s->next + 1 == s->given->n) {
		snprintf(s->why, sizeof(s->why), "%s: %s", url_address(&s->given->sentinel[s->next], address),
			why);
		text_clean(s->why);
		s->apart = true;
	}
	sentinel_close(s);
	s->next = (s->next + 1) % s->given->n;
	s->ask_at = clock_ms() + ASK_MS;
}

static void sentinel_ask(struct sentinel *s, uint64_t now)
{
	const struct url *to = &s->given->sentinel[s->next];
	const char *why = NULL;
	int found = s->context ? 0 : address_find(&s->address, to, &why);

	if (found == -EAGAIN)
		return;
	if (found < 0)
		return sentinel_lose(s, why);
	if (!s->context)
		s->context = redisConnectNonBlock(s->address.text, to->port);
	if (!s->context || s->context->err)
		return sentinel_lose(s, s->context ? s->context->errstr : "no memory");
	redisAppendCommand(s->context, "SENTINEL GET-MASTER-ADDR-BY-NAME %s", s->given->name);
	s->since = now;
	s->ask_at = UINT64_MAX;
	s->unsent = true;
}

static void sentinel_answer(struct sentinel *s, const redisReply *reply)
{
	uint64_t port;

	if (reply->type == REDIS_REPLY_ERROR)
		return sentinel_lose(s, reply->str);
	if (reply->type == REDIS_REPLY_NIL)
		return sentinel_lose(s, "it knows no master of that name");
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
		reply->element[0]->type != REDIS_REPLY_STRING ||
		reply->element[1]->type != REDIS_REPLY_STRING ||
		number_parse_decimal(reply->element[1]->str, 1, UINT16_MAX, &port) < 0)
		return sentinel_lose(s, "its answer is no address");
	s->since = 0;
	s->apart = false;
	s->ask_at = clock_ms() + ASK_MS;
	sentinel_follow(s, reply->element[0]->str, (uint16_t)port);
}

static void sentinel_read(struct sentinel *s)
{
	void *reply = NULL;

	if (redisBufferRead(s->context) != REDIS_OK ||
		redisGetReplyFromReader(s->context, &reply) != REDIS_OK)
		return sentinel_lose(s, s->context->errstr);
	if (reply)
		sentinel_answer(s, reply);
	freeReplyObject(reply);
}

static void sentinel_write(struct sentinel *s)
{
	int all = 1;

	if (redisBufferWrite(s->context, &all) != REDIS_OK)
		return sentinel_lose(s, s->context->errstr);
	s->unsent = !all;
}

static void sentinel_turn_own(struct sentinel *s, const struct pollfd *fd)
{
	uint64_t now = clock_ms();

	if (s->context && fd->revents)
		sentinel_read(s);
	if (s->since && now - s->since > REDIS_PATIENCE_MS)
		sentinel_lose(s, "no answer for two seconds");
	if (now >= s->ask_at)
		sentinel_ask(s, now);
	if (s->context && s->unsent)
		sentinel_write(s);
}

/* ---- the source -------------------------------------------------------------------------------- */

static void sentinel_turn(void *of, const struct pollfd *fds)
{
	struct sentinel *s = of;

	if (s->server.deinit)
		s->server.turn(&s->redis, fds + 1);
	sentinel_turn_own(s, fds);
}

static int sentinel_prepare(void *of, struct pollfd fds[SOURCE_FDS], nfds_t *n)
{
	struct sentinel *s = of;
	nfds_t more = 0;
	int pause = ASK_MS, its;

	fds[0] = (struct pollfd){.fd = s->context ? s->context->fd : address_fd(&s->address),
		.events = (short)(POLLIN | (s->unsent ? POLLOUT : 0))};
	if (s->server.deinit) {
		its = s->server.prepare(&s->redis, fds + 1, &more);
		pause = its < pause ? its : pause;
	}
	*n = 1 + more;
	return pause;
}

static void sentinel_report(const void *of, struct source_report *report)
{
	const struct sentinel *s = of;

	*report = (struct source_report){.stage = s->apart ? SOURCE_APART : SOURCE_LOADING,
		.state = s->apart ? "apart" : "seeking",
		.why = s->why};
	if (s->server.deinit)
		s->server.report(&s->redis, report);
	report->loads += s->left;
}

static void sentinel_deinit(void *of)
{
	struct sentinel *s = of;

	sentinel_leave(s);
	sentinel_close(s);
	address_deinit(&s->address);
}

void sentinel_init(struct sentinel *s, const struct sentinel_url *given, const struct prefixes *prefixes,
	struct mirror *m)
{
	char address[URL_ADDRESS];

	*s = (struct sentinel){.given = given};
	redis_whole_init(&s->whole, prefixes, m);
	s->whole.is_master = true;
	snprintf(s->name, sizeof(s->name), "redis+sentinel://%s/%s",
		url_address(&given->sentinel[0], address), given->name);
}

struct source sentinel_as_source(struct sentinel *s)
{
	return (struct source){.of = s,
		.name = s->name,
		.prepare = sentinel_prepare,
		.turn = sentinel_turn,
		.report = sentinel_report,
		.deinit = sentinel_deinit};
}
