/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"
#include "libclient/public.h"
#include "libclient/question.h"
#include "util/clock.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* The client's NIC may notice the end before the server does. So the client repeats the query for a while. */
enum { PATIENCE_MS = 1000, PAUSE_MS = 10 };

_Static_assert((int)REDDN_END_FAILED == (int)REDDN_WIRE_END_FAILED, "as on the wire");
_Static_assert((int)REDDN_END_CLIENT == (int)REDDN_WIRE_END_CLIENT, "as on the wire");
_Static_assert((int)REDDN_END_IDLE == (int)REDDN_WIRE_END_IDLE, "as on the wire");

/* Returns the reason that the answer gives, and adds its text to errmsg. */
static int answer(struct reddn *c, const struct reddn_wire_rej *rej)
{
	uint32_t end = be32toh(rej->detail);

	if (rej->reason != REDDN_REJ_ENDED || end > INT32_MAX)
		return REDDN_END_UNKNOWN;
	if (end != REDDN_END_CLIENT) {
		snprintf(c->errmsg + c->loss_len, sizeof(c->errmsg) - c->loss_len,
			"%sthe server ended session %" PRIu64 ": %s", c->loss_len ? "; " : "",
			c->lost.session, rej->text);
		c->loss_len = strlen(c->errmsg);
	}
	return (int)end;
}

static int ask(struct reddn *c)
{
	uint64_t now = clock_ms(), patience = now + PATIENCE_MS, deadline = now + c->connector.opt.timeout_ms;
	struct reddn_wire_rej rej;
	int r;

	if (!c->loss)
		return -EINVAL;
	if (c->loss == -ESTALE) /* the server has not ended it */
		return REDDN_END_UNKNOWN;
	if (c->end_asked)
		return c->end_outcome;
	for (;;) {
		r = reddn_ask(&c->lost, REDDN_REQ_END_REASON, 0, deadline, &rej);
		if (r < 0 || rej.reason != REDDN_REJ_NOT_ENDED || clock_ms() > patience ||
			!reddn_time_left(deadline))
			break;
		poll(NULL, 0, PAUSE_MS);
	}
	c->end_asked = true;
	c->end_outcome = r < 0 ? r : answer(c, &rej);
	return c->end_outcome;
}

PUBLIC int reddn_end_reason(struct reddn *c)
{
	struct reddn *last = c;

	for (struct reddn *p = c; p; p = reddn_next_of(c, p))
		if (p->loss && (!last->loss || p->lost_at > last->lost_at))
			last = p;
	return ask(last);
}
