/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"
#include "libclient/public.h"
#include "libclient/queues.h"
#include "libclient/short.h"
#include "protocol/table-format.h"
#include "protocol/wire.h"

#include <errno.h>
#include <string.h>

/* True if its next number has a free slot and a free WQE. */
static bool can_send(const struct reddn *c, const struct reddn_connection *k)
{
	const struct reddn_slot *s = k->sent_slot;

	return !s->request && !s->held && k->sent - k->reclaimed < c->wqes;
}

/* The next connection that can send, or NULL. One after the other, so that all of them are at work. */
static struct reddn_connection *find_connection(struct reddn *c)
{
	if (c->info.connections == 1)
		return can_send(c, c->connection) ? c->connection : NULL;
	for (unsigned i = 0; i < c->info.connections; i++) {
		struct reddn_connection *k = &c->connection[c->turn];

		c->turn = c->turn + 1 == c->info.connections ? 0 : c->turn + 1;
		if (can_send(c, k))
			return k;
	}
	return NULL;
}

static void encode_key(const struct reddn *c, struct reddn_request *q, uint8_t *encoded, uint8_t *record)
{
	reddn_request_build(&c->geo, q->key, q->len, encoded);
	memset(record, 0, 8);
	q->before = c->seen;
}

static NOINLINE void encode_raw(const struct reddn *c, const struct reddn_request *q, struct reddn_slot *s)
{
	memcpy(s->encoded, q->key, q->len);
	memset(s->mem, 0, c->info.reply_max);
}

static NOINLINE void encode_keys(const struct reddn *c, struct reddn_request *q, struct reddn_slot *s)
{
	const struct reddn_geometry *g = &c->geo;
	uint8_t *encoded = s->encoded, *record = s->mem + REDDN_SLOT_RECORD;
	unsigned k = 0;

	for (; q; q = q->next, k++) {
		encode_key(c, q, encoded, record);
		encoded += reddn_request_len(g);
		record += g->stride;
	}
	memset(encoded, 0, (g->keys - k) * reddn_request_len(g));
}

static void encode(const struct reddn *c, struct reddn_request *q, struct reddn_slot *s)
{
	if (q->raw)
		encode_raw(c, q, s);
	else if (c->geo.keys == 1)
		encode_key(c, q, s->encoded, s->mem + REDDN_SLOT_RECORD);
	else
		encode_keys(c, q, s);
}

/* Send @q and those that are linked to it, one for each key. */
static void send_request(struct reddn *c, struct reddn_connection *k, struct reddn_request *q)
{
	struct reddn_slot *s = k->sent_slot;
	bool signaled = k->until_signal == 1;
	int r;

	encode(c, q, s);
	r = reddn_post_request(c, k, s->encoded, k->send_id | (k->sent + 1), signaled);
	if (r < 0) {
		reddn_break(c, -EIO, "cannot post a request: %s", strerror(-r));
		return;
	}
	s->request = q;
	k->until_signal = signaled ? c->signal_every : k->until_signal - 1;
	k->sent_slot = s->next;
	k->sent++;
}

/* Take as many requests from the retry queue as one number has. Returns the first. */
static struct reddn_request *take_retries(struct reddn *c)
{
	struct reddn_request *first = c->retry, *last = first;

	for (unsigned n = 1; n < c->info.keys && last->next; n++)
		last = last->next;
	c->retry = last->next;
	last->next = NULL;
	return first;
}

void reddn_send_retries(struct reddn *c)
{
	struct reddn_connection *k;

	while (c->retry && !c->broken && (k = find_connection(c)))
		send_request(c, k, take_retries(c));
}

/* The connection that takes the next request; or NULL, with the reason in @r. */
static struct reddn_connection *begin(struct reddn *c, int *r)
{
	struct reddn_connection *k = NULL;

	*r = c->broken;
	if (c->broken)
		return NULL;
	/* Retries come first. */
	if (c->retry)
		reddn_send_retries(c);
	if (!c->retry)
		k = find_connection(c);
	*r = k ? 0 : -EAGAIN;
	return k;
}

/* The caller knows that there is a free one. */
static struct reddn_request *new_request(
	struct reddn *c, const void *bytes, size_t len, uint64_t cookie, bool raw)
{
	struct reddn_request *q = c->free_request;

	c->free_request = q->next;
	q->cookie = cookie;
	q->retries = 0;
	q->len = (uint32_t)len;
	q->raw = raw;
	q->busy = true;
	q->next = NULL;
	short_copy(q->key, bytes, len);
	c->busy++;
	return q;
}

static int submit(struct reddn *c, const void *bytes, size_t len, uint64_t cookie, bool raw)
{
	struct reddn_connection *k;
	int r;

	k = begin(c, &r);
	if (!k)
		return r;
	if (!c->free_request)
		return -EAGAIN;
	/* If this fails, reddn_poll reports the request with all others. */
	send_request(c, k, new_request(c, bytes, len, cookie, raw));
	return 0;
}

static int check_key(const struct reddn *c, size_t key_len)
{
	if (!key_len || c->info.shape != REDDN_TABLE)
		return -EINVAL;
	return key_len > c->geo.max_key ? -EMSGSIZE : 0;
}

/* The calls below it are as many instructions as what they do. */
PUBLIC INLINED int reddn_get_submit(struct reddn *c, const void *key, size_t key_len, uint64_t cookie)
{
	int r = check_key(c, key_len);

	return r < 0 ? r : submit(c, key, key_len, cookie, false);
}

/* False: there are fewer free requests. */
static bool has_free(const struct reddn *c, unsigned n)
{
	const struct reddn_request *q = c->free_request;

	for (; n && q; n--)
		q = q->next;
	return !n;
}

PUBLIC int reddn_mget_submit(struct reddn *c, const struct reddn_key *keys, unsigned n, uint64_t cookie)
{
	struct reddn_request *first = NULL, **end = &first;
	struct reddn_connection *k;
	int r = n && n <= c->info.keys ? 0 : -EINVAL;

	for (unsigned i = 0; i < n && r == 0; i++)
		r = check_key(c, keys[i].key_len);
	if (r < 0)
		return r;
	k = begin(c, &r);
	if (!k)
		return r;
	if (!has_free(c, n))
		return -EAGAIN;
	for (unsigned i = 0; i < n; i++) {
		*end = new_request(c, keys[i].key, keys[i].key_len, cookie + i, false);
		end = &(*end)->next;
	}
	send_request(c, k, first);
	return 0;
}

PUBLIC int reddn_call_submit(struct reddn *c, const struct reddn_arg *args, unsigned nargs, uint64_t cookie)
{
	uint8_t request[REDDN_REQUEST_MAX];
	int r = reddn_format_encode(&c->format, args, nargs, c->info.request_len, request);

	return r < 0 ? r : submit(c, request, c->info.request_len, cookie, true);
}

PUBLIC int reddn_submit(struct reddn *c, const void *request, size_t len, uint64_t cookie)
{
	if (len != c->info.request_len)
		return -EINVAL;
	return submit(c, request, len, cookie, true);
}
