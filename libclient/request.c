/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"
#include "libclient/public.h"
#include "libclient/queues.h"
#include "protocol/table-format.h"
#include "protocol/wire.h"
#include "util/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/*
 * EVENTS_EVERY: empty polls between two checks for a disconnect, which take a system call. RETRIES_MIN: a get
 * is repeated at least so often, even if the machine stands still for retry_ms.
 */
enum { EVENTS_EVERY = 256, POLL_BATCH = 16, RETRIES_MIN = 16 };

/* wr_id of a SEND: the connection, and how many its completion frees; that of a RECV has the connection only
 */
enum { CONNECTION_SHIFT = 56 };
#define SENDS_MASK ((UINT64_C(1) << CONNECTION_SHIFT) - 1)

static uint64_t send_id(const struct reddn *c, const struct reddn_connection *k)
{
	return (uint64_t)(k - c->connection) << CONNECTION_SHIFT | (k->sent + 1);
}

static uint8_t *key_of(const struct reddn *c, uint32_t request)
{
	return c->keys + request * c->key_room;
}

/* True if its next number has a free slot and a free WQE. */
static bool can_send(const struct reddn *c, const struct reddn_connection *k)
{
	const struct reddn_slot *s = &c->slots[k->sent_slot];

	return s->request == REDDN_NONE && !s->held && k->sent - k->reclaimed < 2u * c->depth;
}

/* The next connection that can send, or NULL. One after the other, so that all of them are at work. */
static struct reddn_connection *find_connection(struct reddn *c)
{
	for (unsigned i = 0; i < c->info.connections; i++) {
		struct reddn_connection *k = &c->connection[c->turn];

		c->turn = c->turn + 1 == c->info.connections ? 0 : c->turn + 1;
		if (can_send(c, k))
			return k;
	}
	return NULL;
}

static void encode(struct reddn *c, uint32_t request, uint8_t *encoded, uint8_t *mem)
{
	const struct reddn_geometry *g = &c->geo;
	struct reddn_request *q = &c->requests[request];
	unsigned k = 0;

	if (q->raw) {
		memcpy(encoded, key_of(c, request), q->len);
		memset(mem, 0, c->info.reply_max);
		return;
	}
	for (;; k++) {
		reddn_request_build(g, key_of(c, request), q->len, encoded + k * reddn_request_len(g));
		memset(mem + REDDN_SLOT_RECORD + k * g->stride, 0, 8);
		q->before = c->seen;
		if (q->next == REDDN_NONE)
			break;
		request = q->next;
		q = &c->requests[request];
	}
	if (++k < g->keys)
		memset(encoded + k * reddn_request_len(g), 0, (g->keys - k) * reddn_request_len(g));
}

/* Send @request and those that are linked to it, one for each key. */
static void send_request(struct reddn *c, struct reddn_connection *k, uint32_t request)
{
	uint32_t slot = k->sent_slot;
	uint8_t *encoded = c->encoded + slot * REDDN_REQUEST_MAX;
	bool signaled = k->unsignaled + 1 == c->signal_every;
	int r;

	encode(c, request, encoded, reddn_slot_mem(c, slot));
	r = reddn_post_request(c, k, encoded, send_id(c, k), signaled);
	if (r < 0) {
		reddn_break(c, -EIO, "cannot post a request: %s", strerror(-r));
		return;
	}
	c->slots[slot].request = request;
	k->unsignaled = signaled ? 0 : k->unsignaled + 1;
	k->sent_slot = reddn_next_slot(c, k, slot);
	k->sent++;
}

/* Take as many requests from the retry queue as one number has. Returns the first. */
static uint32_t take_retries(struct reddn *c)
{
	uint32_t first = c->retry, last = first;

	for (unsigned n = 1; n < c->info.keys && c->requests[last].next != REDDN_NONE; n++)
		last = c->requests[last].next;
	c->retry = c->requests[last].next;
	c->requests[last].next = REDDN_NONE;
	return first;
}

/* Send the requests of the retry queue that can be sent. */
static __attribute__((noinline, cold)) void send_retries(struct reddn *c)
{
	struct reddn_connection *k;

	while (c->retry != REDDN_NONE && !c->broken && (k = find_connection(c)))
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
	if (c->retry != REDDN_NONE)
		send_retries(c);
	if (c->retry == REDDN_NONE)
		k = find_connection(c);
	*r = k ? 0 : -EAGAIN;
	return k;
}

/* The caller knows that there is a free one. */
static uint32_t new_request(struct reddn *c, const void *bytes, size_t len, uint64_t cookie, bool raw)
{
	uint32_t request = c->free_request;
	struct reddn_request *q = &c->requests[request];

	c->free_request = q->next;
	q->cookie = cookie;
	q->retries = 0;
	q->len = (uint32_t)len;
	q->raw = raw;
	q->busy = true;
	q->next = REDDN_NONE;
	memcpy(key_of(c, request), bytes, len);
	c->busy++;
	return request;
}

static int submit(struct reddn *c, const void *bytes, size_t len, uint64_t cookie, bool raw)
{
	struct reddn_connection *k;
	int r;

	k = begin(c, &r);
	if (!k)
		return r;
	if (c->free_request == REDDN_NONE)
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
	uint32_t request = c->free_request;

	for (; n && request != REDDN_NONE; n--)
		request = c->requests[request].next;
	return !n;
}

PUBLIC int reddn_mget_submit(struct reddn *c, const struct reddn_key *keys, unsigned n, uint64_t cookie)
{
	uint32_t first = REDDN_NONE, last = REDDN_NONE;
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
		uint32_t request = new_request(c, keys[i].key, keys[i].key_len, cookie + i, false);

		if (i)
			c->requests[last].next = request;
		else
			first = request;
		last = request;
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

static void finish(struct reddn *c, uint32_t request, struct reddn_result *res, int status)
{
	struct reddn_request *q = &c->requests[request];

	*res = (struct reddn_result){.cookie = q->cookie, .status = status};
	q->busy = false;
	q->next = c->free_request;
	c->free_request = request;
	c->busy--;
}

/* The caller gets the value in the slot and keeps it until it releases it. */
static void hold(struct reddn *c, uint32_t slot, struct reddn_result *res, const void *value, size_t length)
{
	res->value = value;
	res->length = length;
	if (!c->slots[slot].held)
		c->held[c->nheld++] = slot;
	c->slots[slot].held = true;
}

/* Queue the request to be repeated. 0, or the status of its result if it was repeated long enough. */
static int retry(struct reddn *c, uint32_t request, enum reddn_reply_state state)
{
	struct reddn_request *q = &c->requests[request];
	uint64_t now = clock_ns();

	if (!q->retries++)
		q->retried_since = now;
	else if (q->retries > RETRIES_MIN && now - q->retried_since > c->retry_ms * 1000000ull)
		return state == REDDN_REPLY_MOVED ? -EAGAIN : -EBADMSG;
	if (state == REDDN_REPLY_MOVED)
		c->info.retries_moved++;
	else
		c->info.retries_overtaken++;
	q->next = REDDN_NONE;
	if (c->retry == REDDN_NONE)
		c->retry = request;
	else
		c->requests[c->retry_tail].next = request;
	c->retry_tail = request;
	return 0;
}

/* Process what @slot has for one request, key @key of its number. Returns the number of results, 0 or 1. */
static int reply_to(struct reddn *c, uint32_t slot, uint32_t request, uint32_t key, struct reddn_result *res)
{
	struct reddn_request *q = &c->requests[request];
	const uint8_t *mem = reddn_slot_mem(c, slot);
	struct reddn_reply got;
	enum reddn_reply_state state;
	int status = 0;

	if (q->raw) {
		finish(c, request, res, 0);
		hold(c, slot, res, mem, c->info.reply_max);
		return 1;
	}
	reddn_reply_read(mem, mem + REDDN_SLOT_RECORD + key * c->geo.stride, &got);
	state = reddn_reply_check(&c->geo, key_of(c, request), q->len, &got, c->geo.stride, &q->before);
	c->seen = (struct reddn_seen){.valid = true,
		.moves = got.live.moves,
		.epoch = c->seen.valid ? c->seen.epoch : got.live.epoch};
	switch (state) {
	case REDDN_REPLY_HIT:
		finish(c, request, res, 0);
		hold(c, slot, res, got.bytes + got.head.key_len, got.head.val_len);
		return 1;
	case REDDN_REPLY_MISS:
		status = REDDN_MISS;
		break;
	case REDDN_REPLY_STALE:
		status = -ESTALE;
		break;
	case REDDN_REPLY_MOVED:
	case REDDN_REPLY_OVERTAKEN:
		status = retry(c, request, state);
		break;
	}
	if (!status)
		return 0;
	finish(c, request, res, status);
	return 1;
}

/*
 * Process the requests of @slot from @request on, which has key @key of its number. What has no room in the
 * @max results is left for the next poll, and the slot takes no new request until then. Returns the number of
 * results.
 */
static int replies(
	struct reddn *c, uint32_t slot, uint32_t request, uint32_t key, struct reddn_result *res, int max)
{
	int n = 0;

	while (request != REDDN_NONE && n < max) {
		uint32_t next = c->requests[request].next;

		n += reply_to(c, slot, request, key++, &res[n]);
		request = next;
	}
	c->left = request;
	if (request == REDDN_NONE) {
		c->slots[slot].request = REDDN_NONE;
	} else {
		c->left_slot = slot;
		c->left_key = key;
	}
	return n;
}

/* Process the reply of number k->done, which is in its slot. */
static int reply(struct reddn *c, struct reddn_connection *k, struct reddn_result *res, int max)
{
	uint32_t slot = k->done_slot;

	k->done_slot = reddn_next_slot(c, k, slot);
	k->done++;
	return replies(c, slot, c->slots[slot].request, 0, res, max);
}

/* False: it ends in another way than replies do. Receives are used in turn: this one is that of the slot */
static bool is_reply(
	const struct reddn *c, const struct reddn_connection *k, const struct ibv_wc *wc, uint32_t *number)
{
	if (!c->sends) {
		*number = ntohl(wc->imm_data);
		return wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	}
	memcpy(number, c->numbers + (size_t)k->done_slot * REDDN_NUMBER_BYTES, sizeof(*number));
	*number = ntohl(*number);
	return wc->opcode == IBV_WC_RECV && wc->byte_len == REDDN_NUMBER_BYTES;
}

/* Process one CQE. Returns the number of results, at most @max, which is more than 0. */
static int completion(struct reddn *c, const struct ibv_wc *wc, struct reddn_result *res, int max)
{
	uint32_t number;
	struct reddn_connection *k;

	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		reddn_check_events(c);
		reddn_break(c, -ECONNRESET, "%s",
			c->hangup ? "the server closed the connection" : "the connection was lost");
		return 0;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		reddn_break(c, -EIO, "the NIC reports: %s (vendor syndrome 0x%x)",
			ibv_wc_status_str(wc->status), wc->vendor_err);
		return 0;
	}
	if (wc->opcode == IBV_WC_SEND) {
		c->connection[wc->wr_id >> CONNECTION_SHIFT].reclaimed = wc->wr_id & SENDS_MASK;
		return 0;
	}
	k = &c->connection[wc->wr_id];
	if (!is_reply(c, k, wc, &number) || k->done == k->sent || number != (uint32_t)k->done) {
		reddn_break(
			c, -EPROTO, "protocol violated: reply %u when %u was due", number, (uint32_t)k->done);
		return 0;
	}
	if (++k->recvs_used == c->depth && !c->broken) {
		int r = reddn_post_receives(k);

		if (r < 0)
			reddn_break(c, -EIO, "cannot post receives: %s", strerror(-r));
	}
	return reply(c, k, res, max);
}

/* The connection is lost: the reason becomes the result of every request. */
static int report_broken(struct reddn *c, struct reddn_result *res, int max)
{
	int n = 0;

	for (uint32_t i = 0; i < c->nrequests && c->busy && n < max; i++)
		if (c->requests[i].busy)
			finish(c, i, &res[n++], c->broken);
	return n;
}

/* CQEs that are taken at once: as many as have room for all of their results, or one. */
static int batch(const struct reddn *c, int room)
{
	int n = c->info.keys > 1 ? room / (int)c->info.keys : room;

	if (n < 1)
		return 1;
	return n < POLL_BATCH ? n : POLL_BATCH;
}

static int collect(struct reddn *c, struct reddn_result *res, int max)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = 0, wanted, k;

	if (c->left != REDDN_NONE)
		n = replies(c, c->left_slot, c->left, c->left_key, res, max);
	if (n == max)
		return n;
	/* Fewer CQEs than were asked for: there are no more */
	do {
		wanted = batch(c, max - n);
		k = ibv_poll_cq(c->cq, wanted, wc);
		if (k < 0)
			reddn_break(c, -EIO, "cannot poll the completion queue");
		for (int i = 0; i < k; i++)
			n += completion(c, &wc[i], &res[n], max - n);
	} while (k == wanted && n < max);
	return n;
}

PUBLIC void reddn_release(struct reddn *c)
{
	while (c->nheld)
		c->slots[c->held[--c->nheld]].held = false;
}

PUBLIC INLINED int reddn_poll(struct reddn *c, struct reddn_result *res, int max)
{
	int n = 0;

	reddn_release(c);
	if (max <= 0)
		return max ? -EINVAL : 0;
	if (!c->broken) {
		if (c->retry != REDDN_NONE)
			send_retries(c);
		n = collect(c, res, max);
		if (n == 0 && ++c->idle_polls % EVENTS_EVERY == 0)
			reddn_check_events(c);
		/* Replies that arrived before the disconnect still count. */
		if (c->hangup && n == 0) {
			n = collect(c, res, max);
			if (n == 0)
				reddn_break(c, -ECONNRESET, "the server closed the connection");
		}
		if (c->retry != REDDN_NONE)
			send_retries(c);
	}
	if (c->broken && n < max)
		n += report_broken(c, res + n, max - n);
	return n == 0 && c->broken ? c->broken : n;
}
