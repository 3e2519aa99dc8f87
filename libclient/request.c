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

static void send_request(struct reddn *c, struct reddn_connection *k, uint32_t request)
{
	uint32_t slot = k->sent_slot;
	struct reddn_request *q = &c->requests[request];
	uint8_t *encoded = c->encoded + slot * REDDN_REQUEST_MAX, *mem = reddn_slot_mem(c, slot);
	bool signaled = k->unsignaled + 1 == c->signal_every;
	int r;

	if (q->raw) {
		memcpy(encoded, key_of(c, request), q->len);
		memset(mem, 0, c->info.reply_max);
	} else {
		reddn_request_build(&c->geo, key_of(c, request), q->len, encoded);
		memset(mem + REDDN_SLOT_RECORD, 0, 8);
	}
	q->before = c->seen;
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

/* Send the requests of the retry queue that can be sent. */
static void send_retries(struct reddn *c)
{
	struct reddn_connection *k;

	while (c->retry != REDDN_NONE && !c->broken && (k = find_connection(c))) {
		uint32_t request = c->retry;

		c->retry = c->requests[request].next;
		send_request(c, k, request);
	}
}

static int submit(struct reddn *c, const void *bytes, size_t len, uint64_t cookie, bool raw)
{
	uint32_t request = c->free_request;
	struct reddn_connection *k;
	struct reddn_request *q;

	if (c->broken)
		return c->broken;
	/* Retries come first. */
	send_retries(c);
	if (request == REDDN_NONE || c->retry != REDDN_NONE || !(k = find_connection(c)))
		return -EAGAIN;
	q = &c->requests[request];
	c->free_request = q->next;
	*q = (struct reddn_request){.cookie = cookie, .len = (uint32_t)len, .raw = raw, .busy = true};
	memcpy(key_of(c, request), bytes, len);
	c->busy++;
	/* If this fails, reddn_poll reports the request with all others. */
	send_request(c, k, request);
	return 0;
}

PUBLIC int reddn_get_submit(struct reddn *c, const void *key, size_t key_len, uint64_t cookie)
{
	if (!key_len || c->info.shape != REDDN_TABLE)
		return -EINVAL;
	if (key_len > c->geo.max_key)
		return -EMSGSIZE;
	return submit(c, key, key_len, cookie, false);
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
	c->slots[slot].held = true;
	c->held[c->nheld++] = slot;
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

/* Process the reply of number k->done, which is in its slot. Returns the number of results, 0 or 1. */
static int reply(struct reddn *c, struct reddn_connection *k, struct reddn_result *res)
{
	uint32_t slot = k->done_slot, request = c->slots[slot].request;
	struct reddn_request *q = &c->requests[request];
	const uint8_t *mem = reddn_slot_mem(c, slot);
	struct reddn_reply got;
	enum reddn_reply_state state;
	int status = 0;

	c->slots[slot].request = REDDN_NONE;
	k->done_slot = reddn_next_slot(c, k, slot);
	k->done++;
	if (q->raw) {
		finish(c, request, res, 0);
		hold(c, slot, res, mem, c->info.reply_max);
		return 1;
	}
	reddn_reply_read(mem, &got);
	state = reddn_reply_check(&c->geo, key_of(c, request), q->len, &got, c->info.slot_size, &q->before);
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

/* Process one CQE. Returns the number of results, 0 or 1. */
static int completion(struct reddn *c, const struct ibv_wc *wc, struct reddn_result *res)
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
	return reply(c, k, res);
}

/* The connection is lost: the reason becomes the result of every request. */
static int report_broken(struct reddn *c, struct reddn_result *res, int max)
{
	int n = 0;

	for (uint32_t i = 0; i < c->info.depth && c->busy && n < max; i++)
		if (c->requests[i].busy)
			finish(c, i, &res[n++], c->broken);
	return n;
}

static int collect(struct reddn *c, struct reddn_result *res, int max)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = 0, wanted, k;

	/* Fewer CQEs than were asked for: there are no more */
	do {
		wanted = max - n < POLL_BATCH ? max - n : POLL_BATCH;
		k = ibv_poll_cq(c->cq, wanted, wc);
		if (k < 0)
			reddn_break(c, -EIO, "cannot poll the completion queue");
		for (int i = 0; i < k; i++)
			n += completion(c, &wc[i], &res[n]);
	} while (k == wanted && n < max);
	return n;
}

PUBLIC void reddn_release(struct reddn *c)
{
	while (c->nheld)
		c->slots[c->held[--c->nheld]].held = false;
}

PUBLIC int reddn_poll(struct reddn *c, struct reddn_result *res, int max)
{
	int n = 0;

	reddn_release(c);
	if (max <= 0)
		return max ? -EINVAL : 0;
	if (!c->broken) {
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
		send_retries(c);
	}
	if (c->broken && n < max)
		n += report_broken(c, res + n, max - n);
	return n == 0 && c->broken ? c->broken : n;
}
