/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/part.h"

#include "libclient/public.h"
#include "protocol/wire.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

DEFINE_CLEANUP(struct reddn *, reddn_close)

/* Until there is a session of a part that puts: what is known of it from that of gets */
static struct reddn_session expected_of_puts(const struct reddn_session *gets, uint8_t part)
{
	struct reddn_session s = {.host = gets->host, .info = gets->info, .geo = gets->geo};

	s.info.shape = part == REDDN_WIRE_PART_PUT_IF ? REDDN_PUT_IF : REDDN_PUT;
	s.info.keys = s.geo.keys = 1;
	s.info.session = 0;
	s.geo.room = reddn_put_record_most(&s.geo);
	s.key_room = reddn_put_room(&s.geo);
	return s;
}

/* The same of a part with a number of keys */
static struct reddn_session expected_of_keys(const struct reddn_session *gets, uint8_t part)
{
	struct reddn_session s = {
		.host = gets->host, .info = gets->info, .geo = gets->geo, .key_room = gets->key_room};

	s.info.session = 0;
	s.info.keys = reddn_wire_part_keys(part);
	s.geo.keys = (uint8_t)s.info.keys;
	if (part & REDDN_WIRE_PART_EXISTS) {
		s.info.shape = REDDN_EXISTS;
		s.geo.part = (uint8_t)reddn_wire_part(s.geo.header);
		s.geo.room = 0;
	}
	return s;
}

static int part_init(
	struct reddn *part, struct reddn *whole, const struct reddn_session *expected, const char *name)
{
	/* The address of the session in use is that of the machine that has the store */
	struct sockaddr *known =
		whole->state == REDDN_UP ? rdma_get_peer_addr(whole->session.connection->id) : NULL;
	struct epoll_event ev = {.events = EPOLLIN};
	int r = reddn_connector_copy(&part->connector, &whole->connector, name, whole->session.host, known);

	if (r < 0)
		return r;
	part->is_part = true;
	part->owner = whole;
	part->shard = whole->shard;
	part->state = REDDN_AWAY;
	part->exceptional = true;
	part->pause_until = UINT64_MAX;
	part->standby.wanted = whole->standby.wanted;
	part->standby.credit = expected->info.depth;
	part->lost_at = clock_ms();
	part->session = *expected;
	/* of several hosts the one that the whole has its session with is asked first */
	part->go_back = whole->connector.hosts.n > 1;
	if (epoll_ctl(whole->connector.epoll, EPOLL_CTL_ADD, part->connector.epoll, &ev) < 0)
		return -errno;
	return reddn_requests_grow(part, &part->session);
}

/* @which as in wire.h */
static int part_make(struct reddn *whole, uint8_t which, struct reddn **out)
{
	const struct reddn_session expected = reddn_wire_part_keys(which)
						      ? expected_of_keys(&whole->session, which)
						      : expected_of_puts(&whole->session, which);
	CLEANUP(reddn_closep) struct reddn *part = calloc(1, sizeof(*part));
	char name[sizeof(((struct reddn_wire_req *)0)->offload)];
	int r;

	if (!part)
		return -ENOMEM;
	part->connector.epoll = part->connector.timer = -1;
	if (reddn_wire_part_name(name, sizeof(name), whole->connector.opt.offload, which) >=
		(int)sizeof(name))
		return -ENOENT;
	part->part = which;
	r = part_init(part, whole, &expected, name);
	if (r < 0)
		return r;
	if (!whole->parts)
		whole->polled = whole;
	part->next_part = whole->parts;
	*out = whole->parts = steal_ptr(&part);
	return 0;
}

static void part_drop(struct reddn *whole, struct reddn *part)
{
	struct reddn **at = &whole->parts, *polled = whole->owner ? whole->owner : whole;

	while (*at != part)
		at = &(*at)->next_part;
	*at = part->next_part;
	polled->polled = polled;
	whole->several = NULL;
	reddn_close(part);
}

/* Its table was replaced by one with longer keys. An answer would tell it so, but it takes none of these */
static bool part_is_outdated(const struct reddn *whole, const struct reddn *part)
{
	return whole->state == REDDN_UP && part->session.geo.max_key < whole->session.geo.max_key;
}

/* A new one would go where the handle is, which need not be a host that has the part. */
static bool part_can_be_replaced(const struct reddn *whole, const struct reddn *part)
{
	const unsigned keys = reddn_wire_part_keys(part->part);

	return !part->busy && !part->held &&
	       (!keys || reddn_session_part(&whole->session, part->part & REDDN_WIRE_PART_EXISTS, keys) ==
				 part->part);
}

static int part_get(struct reddn *whole, uint8_t which, struct reddn **out)
{
	*out = reddn_part_find(whole, which);
	if (*out && part_is_outdated(whole, *out) && part_can_be_replaced(whole, *out)) {
		part_drop(whole, *out);
		*out = NULL;
	}
	return *out ? 0 : part_make(whole, which, out);
}

/* One that rests is to be polled, also by a caller who sleeps on the descriptor next */
static void wake_up(struct reddn *part)
{
	if (part->state == REDDN_AWAY && part->connector.state == REDDN_CONNECT_IDLE)
		reddn_connector_alarm(&part->connector, part->connect_at);
}

int reddn_part_of_puts(struct reddn *c, enum reddn_shape shape, struct reddn **puts)
{
	const bool is_store = reddn_session_is_store(&c->session);
	int r = 0;

	*puts = c;
	if (!reddn_is_sent_once(c) || (!is_store && c->session.info.shape != shape))
		return -EINVAL;
	if (is_store)
		r = part_get(c, shape == REDDN_PUT_IF ? REDDN_WIRE_PART_PUT_IF : REDDN_WIRE_PART_PUT, puts);
	if (r < 0)
		return r;
	c->asked = is_store ? *puts : NULL;
	wake_up(*puts);
	reddn_look_first(*puts);
	return 0;
}

static unsigned part_most(const struct reddn *c, enum reddn_shape shape)
{
	const uint8_t kind = shape == REDDN_EXISTS ? REDDN_WIRE_PART_EXISTS : 0;
	const unsigned own = c->session.info.shape == shape ? c->session.info.keys : 0;
	const unsigned most = reddn_wire_part_keys(reddn_part_for(c, kind, UINT_MAX));

	return own > most ? own : most;
}

unsigned reddn_part_most(const struct reddn *c, enum reddn_shape shape)
{
	unsigned most = UINT_MAX;

	if (!c->is_whole)
		return part_most(c, shape);
	for (const struct reddn *s = c->parts; s; s = s->next_part)
		most = part_most(s, shape) < most ? part_most(s, shape) : most;
	return most;
}

/* For the next submissions of as many keys */
static void keep_several(struct reddn *whole, struct reddn *part)
{
	const uint8_t kind = part->part & REDDN_WIRE_PART_EXISTS;

	whole->several = part;
	whole->several_least = reddn_wire_part_keys(part->part);
	while (whole->several_least > 1 &&
		reddn_part_for(whole, kind, whole->several_least - 1) == part->part)
		whole->several_least--;
}

/* The part for gets of @n keys, or @whole as long as it has no session */
static struct reddn *part_of_gets(struct reddn *whole, unsigned n)
{
	const uint8_t which = reddn_part_for(whole, 0, n);
	struct reddn *part;

	if (reddn_wire_part_keys(which) < n || part_get(whole, which, &part) < 0)
		return whole;
	if (part_is_outdated(whole, part))
		return whole;
	if (part->state == REDDN_UP) {
		keep_several(whole, part);
		return part;
	}
	wake_up(part);
	part->wanted = true;
	return whole;
}

int reddn_part_of_keys(struct reddn *c, enum reddn_shape shape, unsigned n, struct reddn **to)
{
	uint8_t which;
	int r;

	*to = c;
	c->asked = NULL;
	if (c->session.info.shape == shape) {
		if (n > c->session.info.keys)
			*to = part_of_gets(c, n);
		return n && n <= c->most_keys ? 0 : -EINVAL;
	}
	which = reddn_part_for(c, REDDN_WIRE_PART_EXISTS, n);
	if (shape != REDDN_EXISTS || !which || !n || n > c->most_exists)
		return -EINVAL;
	r = part_get(c, which, to);
	if (r < 0)
		return r;
	c->asked = *to;
	wake_up(*to);
	keep_several(c, *to);
	return 0;
}

bool reddn_part_give_back(struct reddn *whole, struct reddn *part)
{
	bool any = false;

	if (part->session.info.shape != whole->session.info.shape || whole->broken)
		return false;
	for (struct reddn_request *q;
		(q = part->retry.first) && whole->free_request && q->len <= whole->session.geo.max_key;
		any = true) {
		q->retries = 0;
		reddn_request_hand_over(part, reddn_queue_take(&part->retry), whole);
	}
	return any;
}
