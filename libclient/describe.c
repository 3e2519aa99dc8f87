/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"
#include "libclient/public.h"
#include "libclient/question.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_MS = 50 };

/* One part of the text behind the @len bytes that are there. 1: the server wants to be asked again later */
static int ask_part(struct reddn *c, uint64_t deadline, char *text, size_t *len, size_t *whole)
{
	const struct reddn_subject of = reddn_subject_of(&c->session);
	struct reddn_wire_rej rej;
	int r = reddn_ask(&of, REDDN_REQ_DESCRIBE, (uint32_t)*len, deadline, &rej);

	if (r < 0)
		return r;
	if (rej.reason == REDDN_REJ_RESOURCES)
		return 1;
	if (rej.reason != REDDN_REJ_DESCRIBED)
		return -EOPNOTSUPP;
	*whole = be32toh(rej.detail);
	return reddn_description_add(text, len, *whole, rej.text) ? 0 : -EPROTO;
}

/* Of the program of the session in use, or of the last one: that of a table may have changed */
static bool is_described(const struct reddn *c)
{
	return reddn_description_is_of(&c->description, c->session.program, c->session.info.reply_max);
}

PUBLIC int reddn_describe(struct reddn *c)
{
	CLEANUP(cleanup_free) char *text = NULL;
	uint64_t deadline = clock_ms() + c->connector.opt.timeout_ms;
	size_t len = 0, whole = 0;
	int r;

	if (c->state != REDDN_UP)
		return -EINVAL;
	if (is_described(c))
		return 0;
	reddn_description_deinit(&c->description);
	text = calloc(1, REDDN_WIRE_DESCRIPTION_MAX + 1);
	if (!text)
		return -ENOMEM;
	do {
		r = ask_part(c, deadline, text, &len, &whole);
		if (r == 1 && reddn_time_left(deadline))
			poll(NULL, 0, PAUSE_MS);
		else if (r)
			return r == 1 ? -EBUSY : r;
	} while (r || len < whole);
	r = reddn_description_read(
		&c->description, steal_ptr(&text), c->session.program, c->session.info.reply_max);
	if (r < 0)
		return r;
	if (c->description.nargs == c->session.info.nargs || !c->session.info.nargs)
		return 0;
	reddn_description_deinit(&c->description);
	return -EPROTO;
}

PUBLIC const char *reddn_arg_name(const struct reddn *c, unsigned i)
{
	return is_described(c) && i < c->description.nargs ? c->description.arg[i] : NULL;
}

PUBLIC int reddn_get_reply_field(const struct reddn *c, unsigned i, struct reddn_reply_field *field)
{
	if (!is_described(c) || i >= c->description.nfields)
		return -EINVAL;
	*field = c->description.field[i];
	return 0;
}

PUBLIC uint64_t reddn_reply_number(const struct reddn_reply_field *field, const void *reply)
{
	const uint8_t *from = (const uint8_t *)reply + field->offset;
	uint64_t number = 0;

	if (field->kind > REDDN_REPLY_LE || field->bytes > sizeof(number))
		return 0;
	for (uint32_t i = 0; i < field->bytes; i++)
		number = number << 8 | from[field->kind == REDDN_REPLY_BE ? i : field->bytes - 1 - i];
	return number;
}

/* The client's NIC may notice the end before the server does. So the client repeats the query for a while. */
enum { PATIENCE_MS = 1000, END_PAUSE_MS = 10 };

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

static int ask_end(struct reddn *c)
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
		poll(NULL, 0, END_PAUSE_MS);
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
	return ask_end(last);
}
