/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"

#include "libclient/public.h"
#include "libclient/queues.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

DEFINE_CLEANUP(struct reddn *, reddn_close)

int reddn_requests_init(struct reddn *c)
{
	c->nrequests = reddn_session_requests(&c->session);
	c->key_room = c->session.key_room;
	c->keys = malloc(c->key_room * c->nrequests);
	c->requests = calloc(c->nrequests, sizeof(*c->requests));
	if (!c->keys || !c->requests)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->nrequests; i++) {
		c->requests[i].key = c->keys + i * c->key_room;
		c->requests[i].next_free = i + 1 < c->nrequests ? &c->requests[i + 1] : NULL;
	}
	c->free_request = c->requests;
	return 0;
}

void reddn_requests_deinit(struct reddn *c)
{
	free(c->keys);
	free(c->requests);
}

PUBLIC int reddn_connect(struct reddn **out, const struct reddn_options *options, char *err, size_t errlen)
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
	reddn_connector_begin(a);
	reddn_connector_wait(a);
	if (a->state == REDDN_CONNECT_FAILED)
		return reddn_fail(a->error, err, errlen, "%s", a->words);
	c->session = reddn_connector_take(a);
	token_key_wipe(&a->key);
	if (reddn_requests_init(c) < 0)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory: %u keys of %zu bytes", c->nrequests,
			c->key_room);
	*out = steal_ptr(&c);
	/* An attempt that failed, with slots too small or at another address, has left its reason. */
	return reddn_fail(0, err, errlen, "%s", "");
}

PUBLIC void reddn_close(struct reddn *c)
{
	if (!c)
		return;
	reddn_queues_deinit(&c->session);
	reddn_session_deinit(&c->session);
	reddn_connector_deinit(&c->connector);
	reddn_description_deinit(&c->description);
	reddn_requests_deinit(c);
	free(c);
}

void reddn_break(struct reddn *c, int error, const char *fmt, ...)
{
	va_list ap;

	if (c->broken)
		return;
	c->broken = error;
	c->exceptional = true;
	va_start(ap, fmt);
	vsnprintf(c->errmsg, sizeof(c->errmsg), fmt, ap);
	va_end(ap);
}

int reddn_time_left(uint64_t deadline)
{
	uint64_t now = clock_ms();

	return now < deadline ? (int)(deadline - now) : 0;
}

int reddn_next_event(struct rdma_event_channel *events, uint64_t deadline, struct rdma_cm_event **out)
{
	struct pollfd p = {.fd = events->fd, .events = POLLIN};
	int r;

	do {
		r = poll(&p, 1, reddn_time_left(deadline));
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	return rdma_get_cm_event(events, out) < 0 ? -errno : 0;
}

void reddn_check_events(struct reddn *c)
{
	struct pollfd p = {.fd = c->session.events->fd, .events = POLLIN};
	struct rdma_cm_event *ev;

	while (poll(&p, 1, 0) > 0 && rdma_get_cm_event(c->session.events, &ev) == 0) {
		enum rdma_cm_event_type type = ev->event;

		rdma_ack_cm_event(ev);
		if (type == RDMA_CM_EVENT_DISCONNECTED)
			c->session.hangup = c->exceptional = true;
		else if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			reddn_break(c, -ENODEV, "the RDMA device was removed");
	}
}

PUBLIC int reddn_get_arg(const struct reddn *c, unsigned i, enum reddn_arg_kind *kind, uint32_t *bytes)
{
	if (i >= c->session.format.nargs)
		return -EINVAL;
	*kind = (enum reddn_arg_kind)c->session.format.arg[i].kind;
	*bytes = c->session.format.arg[i].bytes;
	return 0;
}

PUBLIC void reddn_get_info(const struct reddn *c, struct reddn_info *info)
{
	*info = c->session.info;
	info->retries_moved = c->retries_moved;
	info->retries_overtaken = c->retries_overtaken;
	for (unsigned i = 0; i < info->connections; i++)
		info->sent += c->session.connection[i].sent;
}

PUBLIC const char *reddn_errmsg(const struct reddn *c)
{
	return c->errmsg;
}
