/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"

#include "libclient/memory.h"
#include "libclient/public.h"
#include "libclient/queues.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* IDLE_MS: after so long without a request, see first whether the session has ended */
enum { IDLE_MS = 100 };

DEFINE_CLEANUP(struct reddn *, reddn_close)

void reddn_set_state(struct reddn *c, enum reddn_state state)
{
	static const unsigned from[] = {[REDDN_UP] = 1 << REDDN_AWAY,
		[REDDN_LOST] = 1 << REDDN_UP,
		[REDDN_AWAY] = 1 << REDDN_LOST,
		[REDDN_OVER] = 1 << REDDN_LOST};

	assert(from[state] & 1u << c->state);
	c->state = state;
	c->exceptional = true;
	/* A caller who sleeps on the descriptor has to poll, until there is nothing more to come */
	if (state == REDDN_LOST)
		reddn_connector_alarm(&c->connector, 0);
	if (state == REDDN_OVER)
		reddn_connector_alarm(&c->connector, UINT64_MAX);
}

/* Of the old memory, the requests of a queue become the next ones of the new */
static void move_queue(struct reddn_queue *queue, struct reddn_request *to, unsigned *n)
{
	struct reddn_queue old = *queue;
	struct reddn_request *q;

	*queue = (struct reddn_queue){0};
	while ((q = reddn_queue_take(&old))) {
		struct reddn_request *new = &to[(*n)++];

		reddn_request_copy(new, q);
		reddn_queue_add(queue, new);
	}
}

static int requests_move(struct reddn *c, uint32_t n, size_t room)
{
	CLEANUP(cleanup_free) struct reddn_request *requests = NULL;
	CLEANUP(cleanup_free) uint8_t *keys = NULL;
	uint32_t used = 0;

	keys = malloc(n * room);
	requests = calloc(n, sizeof(*requests));
	if (!keys || !requests)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		requests[i].key = keys + i * room;
	move_queue(&c->retry, requests, &used);
	move_queue(&c->ended, requests, &used);
	move_queue(&c->elsewhere, requests, &used);
	assert(used == c->busy);
	reddn_requests_deinit(c);
	c->free_request = NULL;
	for (uint32_t i = n; i-- > used;) {
		requests[i].next_free = c->free_request;
		c->free_request = &requests[i];
	}
	c->requests = steal_ptr(&requests);
	c->keys = steal_ptr(&keys);
	c->nrequests = n;
	c->key_room = room;
	return 0;
}

static unsigned larger(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* What is for a part may be sent in several requests of another session: there is memory for its keys */
int reddn_requests_grow(struct reddn *c, struct reddn_session *s)
{
	unsigned gets = larger(s->info.keys, reddn_wire_part_keys(reddn_session_part(s, 0, UINT_MAX)));
	unsigned exists = reddn_wire_part_keys(reddn_session_part(s, REDDN_WIRE_PART_EXISTS, UINT_MAX));
	uint32_t n =
		larger(reddn_session_requests(s), s->info.shape == REDDN_EXISTS ? REDDN_WIRE_KEYS : gets);
	size_t room = s->key_room > c->key_room ? s->key_room : c->key_room;
	int r;

	n = larger(n, c->nrequests);
	r = n > c->nrequests || room > c->key_room ? requests_move(c, n, room) : 0;
	if (r == 0) {
		c->most_keys = larger(c->most_keys, gets);
		c->most_exists = larger(c->most_exists, exists);
		r = reddn_memory_begin(c, s);
	}
	if (r < 0 || !reddn_session_puts(s) || !s->connection)
		return r;
	return reddn_queues_register(s, c->keys, c->nrequests * c->key_room, &s->puts);
}

void reddn_requests_deinit(struct reddn *c)
{
	free(c->keys);
	free(c->requests);
}

int reddn_expect(struct reddn *c, const struct reddn_session *like)
{
	/* as after the last host: the first one is tried next */
	c->session = (struct reddn_session){.info = like->info,
		.geo = like->geo,
		.key_room = like->key_room,
		.host = c->connector.hosts.n - 1};
	c->session.info.session = 0;
	memcpy(c->session.part, like->part, sizeof(like->part));
	c->standby.credit = like->info.depth;
	return reddn_requests_grow(c, &c->session);
}

void reddn_request_send_later(struct reddn *c, struct reddn_request *q)
{
	q->kind = (uint8_t)reddn_kind_of_keys(&c->session.geo);
	q->dated = false;
	reddn_queue_add(&c->retry, q);
	c->exceptional = true;
	if (c->standby.unwatched)
		reddn_standby_watch(c);
}

void reddn_request_hand_over(struct reddn *from, struct reddn_request *q, struct reddn *to)
{
	struct reddn_request *new = to->free_request;

	to->free_request = new->next_free;
	reddn_request_copy(new, q);
	to->busy++;
	reddn_request_send_later(to, new);
	q->next_free = from->free_request;
	from->free_request = q;
	from->busy--;
}

/* No host has answered, and one may come back. */
static bool is_away(const struct reddn_connector *a)
{
	switch (a->error) {
	case -EHOSTUNREACH:
	case -ETIMEDOUT:
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -ESHUTDOWN:
		return !(a->opt.flags & REDDN_NO_RECONNECT);
	default:
		return false;
	}
}

static void begin_away(struct reddn *c)
{
	c->state = REDDN_AWAY;
	c->exceptional = true;
	c->lost_at = clock_ms();
	c->connect_at = c->lost_at + REDDN_PAUSE_LEAST_MS;
	snprintf(c->errmsg, sizeof(c->errmsg), "%s", c->connector.words);
	reddn_connector_rest(&c->connector);
	reddn_connector_alarm(&c->connector, c->connect_at);
}

int reddn_open(struct reddn **out, const struct reddn_options *options, bool waits, char *err, size_t errlen)
{
	CLEANUP(reddn_closep) struct reddn *c = calloc(1, sizeof(*c));
	struct reddn_connector *a;
	int r;

	if (!c)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	a = &c->connector;
	r = reddn_connector_init(a, options);
	if (r < 0)
		return reddn_fail(r, err, errlen, "%s", a->words);
	reddn_connector_begin(a, REDDN_ANY_HOST, 0);
	reddn_connector_wait(a);
	c->pause_until = UINT64_MAX;
	c->standby.wanted = a->hosts.n > 1 && !(a->opt.flags & REDDN_NO_RECONNECT);
	if (a->state == REDDN_CONNECT_FAILED && waits && is_away(a)) {
		begin_away(c);
		*out = steal_ptr(&c);
		return 1;
	}
	if (a->state == REDDN_CONNECT_FAILED)
		return reddn_fail(a->error, err, errlen, "%s", a->words);
	c->session = reddn_connector_take(a);
	c->up_since = clock_ms();
	c->standby.credit = c->session.info.depth;
	r = reddn_requests_grow(c, &c->session);
	if (r < 0)
		return reddn_fail(r, err, errlen, "no memory for %u requests of %zu bytes: %s",
			reddn_session_requests(&c->session), c->session.key_room, strerror(-r));
	/* A part is connected later */
	if ((a->opt.flags & REDDN_NO_RECONNECT) && !c->session.geo.header && !c->most_exists &&
		c->most_keys == c->session.info.keys)
		token_key_wipe(&a->key);
	*out = steal_ptr(&c);
	/* An attempt that failed, with slots too small or at another address, has left its reason. */
	return reddn_fail(0, err, errlen, "%s", "");
}

PUBLIC void reddn_close(struct reddn *c)
{
	if (!c)
		return;
	for (struct reddn *part = c->parts, *next; part; part = next) {
		next = part->next_part;
		reddn_close(part);
	}
	reddn_standby_drop(c);
	reddn_queues_free(&c->before);
	reddn_queues_free(&c->session);
	reddn_connector_deinit(&c->connector);
	reddn_description_deinit(&c->description);
	reddn_requests_deinit(c);
	reddn_memory_deinit(c);
	free(c);
}

void reddn_break(struct reddn *c, int error, const char *fmt, ...)
{
	va_list ap;

	if (c->state != REDDN_UP)
		return;
	reddn_set_state(c, REDDN_LOST);
	c->loss = error;
	c->lost_at = clock_ms();
	c->broken = c->connector.opt.flags & REDDN_NO_RECONNECT ? error : 0;
	c->lost = reddn_subject_of(&c->session);
	c->end_asked = false;
	va_start(ap, fmt);
	vsnprintf(c->errmsg, sizeof(c->errmsg) / 2, fmt, ap);
	va_end(ap);
	c->loss_len = strlen(c->errmsg);
}

void reddn_check_events(struct reddn *c)
{
	if (reddn_queues_events(&c->session) < 0)
		reddn_break(c, -ENODEV, "the RDMA device was removed");
	c->exceptional |= c->session.hangup;
}

void reddn_look_first(struct reddn *c)
{
	uint64_t now = clock_ms();

	if (c->state == REDDN_UP && !c->busy && now - c->used_at >= IDLE_MS) {
		reddn_check_events(c);
		if (c->session.hangup)
			reddn_break(c, -ECONNRESET, "the server closed the connection");
	}
	c->used_at = now;
}

PUBLIC int reddn_get_arg(const struct reddn *c, unsigned i, enum reddn_arg_kind *kind, uint32_t *bytes)
{
	const struct reddn_request_format *f = &c->session.format;

	if (i >= f->nargs * f->keys)
		return -EINVAL;
	*kind = (enum reddn_arg_kind)f->arg[i % f->nargs].kind;
	*bytes = f->arg[i % f->nargs].bytes;
	return 0;
}

/* What is counted, of one of those that a handle consists of */
static void count(const struct reddn *c, struct reddn_info *info)
{
	info->retries_moved += c->retries_moved;
	info->retries_overtaken += c->retries_overtaken;
	info->retries_old += c->retries_old;
	info->retries_conflict += c->retries_conflict;
	info->retries_absent += c->retries_absent;
	info->reconnects += c->reconnects;
	info->sent += reddn_sent(c);
}

static void describe_puts(const struct reddn *puts, struct reddn_info *info)
{
	info->record_max = puts->session.geo.room;
	if (puts->state == REDDN_UP)
		info->put_session = puts->session.info.session;
	info->put_depth = puts->session.info.depth;
}

PUBLIC void reddn_get_info(const struct reddn *c, struct reddn_info *info)
{
	const struct reddn *one = c->is_whole ? c->parts : c;
	const struct reddn_session *s = &one->session;
	const struct reddn *puts = reddn_part_find(one, REDDN_WIRE_PART_PUT);

	*info = s->info;
	info->keys = larger(info->keys, reddn_wire_part_keys(reddn_part_for(one, 0, UINT_MAX)));
	info->exists_keys =
		info->shape == REDDN_EXISTS
			? info->keys
			: reddn_wire_part_keys(reddn_part_for(one, REDDN_WIRE_PART_EXISTS, UINT_MAX));
	info->as_of = reddn_seen_as_of(&s->seen, &s->seen);
	for (const struct reddn *p = c; p; p = reddn_next_of(c, p))
		count(p, info);
	if (info->shape == REDDN_TABLE && s->geo.header)
		info->record_max = reddn_put_record_most(&s->geo);
	if (puts)
		describe_puts(puts, info);
}

/* As count(), of a host */
static void count_host(const struct reddn *c, unsigned i, struct reddn_host_info *info)
{
	const struct reddn_host *host = &c->connector.hosts.host[i];

	info->sessions += host->sessions;
	info->late += host->late;
	info->sent += host->sent;
	info->sent += c->session.host == i ? reddn_session_sent(&c->session) : 0;
	info->sent += c->standby.session.host == i ? reddn_session_sent(&c->standby.session) : 0;
}

PUBLIC int reddn_get_host(const struct reddn *c, unsigned i, struct reddn_host_info *info)
{
	const struct reddn_host *host;
	bool ready;

	for (c = c->is_whole ? c->parts : c; c->next_part && i >= c->connector.hosts.n; c = c->next_part)
		i -= c->connector.hosts.n;
	if (i >= c->connector.hosts.n)
		return -EINVAL;
	host = &c->connector.hosts.host[i];
	ready = c->standby.state == REDDN_STANDBY_WARM || c->standby.state == REDDN_STANDBY_LATE;
	*info = (struct reddn_host_info){.name = host->name,
		.port = host->port,
		.state = ready && c->standby.session.host == i ? REDDN_HOST_STANDBY : REDDN_HOST_NONE};
	for (const struct reddn *p = c; p; p = reddn_next_of(c, p))
		count_host(p, i, info);
	if (c->session.host == i && c->state == REDDN_UP)
		info->state = REDDN_HOST_IN_USE;
	return 0;
}

PUBLIC const char *reddn_errmsg(const struct reddn *c)
{
	return *c->errmsg || !c->asked ? c->errmsg : reddn_errmsg(c->asked);
}
