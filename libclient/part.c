/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/part.h"

#include "libclient/public.h"
#include "protocol/wire.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

/* IDLE_MS: after so long without a request, see first whether the session has ended */
enum { IDLE_MS = 100 };

DEFINE_CLEANUP(struct reddn *, reddn_close)

/* Until there is a session of puts: what is known of it from that of gets */
static struct reddn_session expected_of_puts(const struct reddn_session *gets)
{
	struct reddn_session s = {.host = gets->host, .info = gets->info, .geo = gets->geo};

	s.info.shape = REDDN_PUT;
	s.info.keys = s.geo.keys = 1;
	s.info.session = 0;
	s.geo.room = reddn_put_record_most(&s.geo);
	s.key_room = reddn_put_room(&s.geo);
	return s;
}

static int part_init(
	struct reddn *part, const struct reddn *whole, const struct reddn_session *expected, const char *name)
{
	/* The address of the session in use is that of the machine that has the store */
	struct sockaddr *known =
		whole->state == REDDN_UP ? rdma_get_peer_addr(whole->session.connection->id) : NULL;
	struct epoll_event ev = {.events = EPOLLIN};
	int r = reddn_connector_copy(&part->connector, &whole->connector, name, whole->session.host, known);

	if (r < 0)
		return r;
	part->is_part = true;
	part->state = REDDN_AWAY;
	part->exceptional = true;
	part->pause_until = UINT64_MAX;
	part->lost_at = clock_ms();
	part->session = *expected;
	if (epoll_ctl(whole->connector.epoll, EPOLL_CTL_ADD, part->connector.epoll, &ev) < 0)
		return -errno;
	return reddn_requests_grow(part, &part->session);
}

static int part_make_puts(struct reddn *whole)
{
	const struct reddn_session expected = expected_of_puts(&whole->session);
	CLEANUP(reddn_closep) struct reddn *part = calloc(1, sizeof(*part));
	char name[sizeof(((struct reddn_wire_req *)0)->offload)];
	int r;

	if (!part)
		return -ENOMEM;
	part->connector.epoll = part->connector.timer = -1;
	if (snprintf(name, sizeof(name), "%s" REDDN_WIRE_PUTS, whole->connector.opt.offload) >=
		(int)sizeof(name))
		return -ENOENT;
	r = part_init(part, whole, &expected, name);
	if (r == 0)
		whole->part = steal_ptr(&part);
	return r;
}

/* One that ended while nobody used it takes no request, of which nobody could tell what became. One that
 * rests is to be polled, also by a caller who sleeps on the descriptor next */
static void look_first(struct reddn *part)
{
	uint64_t now = clock_ms();

	if (part->state == REDDN_AWAY && !part->busy)
		reddn_connector_alarm(&part->connector, part->connect_at);
	if (part->state == REDDN_UP && !part->busy && now - part->used_at >= IDLE_MS) {
		reddn_check_events(part);
		if (part->session.hangup)
			reddn_break(part, -ECONNRESET, "the server closed the connection");
	}
	part->used_at = now;
}

int reddn_part_of_puts(struct reddn *c, struct reddn **puts)
{
	const bool is_store = c->session.info.shape == REDDN_TABLE && c->session.geo.header;
	int r = 0;

	if (!reddn_is_sent_once(c) || (!is_store && c->session.info.shape != REDDN_PUT))
		return -EINVAL;
	if (is_store && !c->part)
		r = part_make_puts(c);
	if (r < 0)
		return r;
	c->part_asked = is_store;
	*puts = is_store ? c->part : c;
	look_first(*puts);
	return 0;
}
