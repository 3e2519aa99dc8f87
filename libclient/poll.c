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

#define SENDS_MASK ((UINT64_C(1) << REDDN_CONNECTION_SHIFT) - 1)

static void finish(struct reddn *c, struct reddn_request *q, struct reddn_result *res, int status,
	const void *value, size_t length)
{
	*res = (struct reddn_result){.cookie = q->cookie, .status = status, .value = value, .length = length};
	q->busy = false;
	q->next = c->free_request;
	c->free_request = q;
	c->busy--;
}

/* The caller gets a value in the slot and keeps it until it releases it. */
static void hold(struct reddn *c, struct reddn_slot *s)
{
	if (s->held)
		return;
	s->held = true;
	s->next_held = c->held;
	c->held = s;
}

/* Queue the request to be repeated. 0, or the status of its result if it was repeated long enough. */
static int retry(struct reddn *c, struct reddn_request *q, enum reddn_reply_state state)
{
	uint64_t now = clock_ns();

	if (!q->retries++)
		q->retried_since = now;
	else if (q->retries > RETRIES_MIN && now - q->retried_since > c->retry_ms * 1000000ull)
		return state == REDDN_REPLY_MOVED ? -EAGAIN : -EBADMSG;
	if (state == REDDN_REPLY_MOVED)
		c->info.retries_moved++;
	else
		c->info.retries_overtaken++;
	q->next = NULL;
	if (c->retry)
		c->retry_tail->next = q;
	else
		c->retry = q;
	c->retry_tail = q;
	return 0;
}

static int status_of(struct reddn *c, struct reddn_request *q, enum reddn_reply_state state)
{
	switch (state) {
	case REDDN_REPLY_HIT:
		break;
	case REDDN_REPLY_MISS:
		return REDDN_MISS;
	case REDDN_REPLY_STALE:
		return -ESTALE;
	case REDDN_REPLY_MOVED:
	case REDDN_REPLY_OVERTAKEN:
		return retry(c, q, state);
	}
	return 0;
}

/* Process a reply that has no value. Returns the number of results, 0 or 1. */
static NOINLINE int reply_without(
	struct reddn *c, struct reddn_request *q, enum reddn_reply_state state, struct reddn_result *res)
{
	int status = status_of(c, q, state);

	if (!status)
		return 0;
	finish(c, q, res, status, NULL, 0);
	return 1;
}

/* Process what @s has for one request, key @key of its number. Returns the number of results, 0 or 1. */
static int reply_to(struct reddn *c, struct reddn_slot *s, struct reddn_request *q, uint32_t key,
	struct reddn_result *res)
{
	struct reddn_reply got;
	enum reddn_reply_state state;

	if (q->raw) {
		finish(c, q, res, 0, s->mem, c->info.reply_max);
		hold(c, s);
		return 1;
	}
	reddn_reply_read(s->mem, s->mem + REDDN_SLOT_RECORD + key * c->geo.stride, &got);
	state = reddn_reply_check(&c->geo, q->key, q->len, &got, c->geo.stride, &q->before);
	c->seen.moves = got.moves;
	if (!c->seen.valid)
		c->seen.epoch = got.epoch;
	c->seen.valid = true;
	if (state != REDDN_REPLY_HIT)
		return reply_without(c, q, state, res);
	finish(c, q, res, 0, got.bytes + got.head.key_len, got.head.val_len);
	hold(c, s);
	return 1;
}

/*
 * Process the requests of @s from @q on, which has key @key of its number. What has no room in the @max
 * results is left for the next poll, and the slot takes no new request until then. Returns the number of
 * results.
 */
static NOINLINE int replies(struct reddn *c, struct reddn_slot *s, struct reddn_request *q, uint32_t key,
	struct reddn_result *res, int max)
{
	int n = 0;

	while (q && n < max) {
		struct reddn_request *next = q->next;

		n += reply_to(c, s, q, key++, &res[n]);
		q = next;
	}
	c->left = q;
	if (!q) {
		s->request = NULL;
	} else {
		c->left_slot = s;
		c->left_key = key;
	}
	return n;
}

/* Process the reply of number k->done, which is in its slot. */
static int reply(struct reddn *c, struct reddn_connection *k, struct reddn_result *res, int max)
{
	struct reddn_slot *s = k->done_slot;
	struct reddn_request *q = s->request;

	k->done_slot = s->next;
	k->done++;
	if (q->next)
		return replies(c, s, q, 0, res, max);
	s->request = NULL;
	return reply_to(c, s, q, 0, res);
}

/* False: it ends in another way than replies do. Receives are used in turn: this one is that of the slot */
static bool is_reply(
	const struct reddn *c, const struct reddn_connection *k, const struct ibv_wc *wc, uint32_t *number)
{
	if (!c->sends) {
		*number = ntohl(wc->imm_data);
		return wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM;
	}
	memcpy(number, c->numbers + (k->done_slot - c->slots) * REDDN_NUMBER_BYTES, sizeof(*number));
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
		c->connection[wc->wr_id >> REDDN_CONNECTION_SHIFT].reclaimed = wc->wr_id & SENDS_MASK;
		return 0;
	}
	k = (struct reddn_connection *)(uintptr_t)wc->wr_id;
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
			finish(c, &c->requests[i], &res[n++], c->broken, NULL, 0);
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

static void read_completion(struct ibv_cq_ex *cq, struct ibv_wc *wc)
{
	*wc = (struct ibv_wc){.wr_id = cq->wr_id, .status = cq->status};
	if (wc->status != IBV_WC_SUCCESS) {
		wc->vendor_err = ibv_wc_read_vendor_err(cq);
		return;
	}
	wc->opcode = ibv_wc_read_opcode(cq);
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		wc->imm_data = ibv_wc_read_imm_data(cq);
	else
		wc->byte_len = ibv_wc_read_byte_len(cq);
}

/* Process CQEs until there are no more, or @max results. */
static int take(struct reddn *c, struct reddn_result *res, int max)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_cq_ex *cq = c->cq_ex;
	int n = 0, r = ibv_start_poll(cq, &attr);

	if (r == 0) {
		do {
			struct ibv_wc wc;

			read_completion(cq, &wc);
			n += completion(c, &wc, &res[n], max - n);
			r = n < max ? ibv_next_poll(cq) : ENOENT;
		} while (r == 0);
		ibv_end_poll(cq);
	}
	if (r != ENOENT)
		reddn_break(c, -EIO, "cannot poll the completion queue");
	return n;
}

/* The same where the provider knows ibv_poll_cq() only. */
static NOINLINE int take_batches(struct reddn *c, struct reddn_result *res, int max)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = 0, wanted, k;

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

static int collect(struct reddn *c, struct reddn_result *res, int max)
{
	int n = 0;

	if (c->left)
		n = replies(c, c->left_slot, c->left, c->left_key, res, max);
	if (n == max)
		return n;
	return n + (c->cq_ex ? take(c, res + n, max - n) : take_batches(c, res + n, max - n));
}

static void release(struct reddn *c)
{
	for (; c->held; c->held = c->held->next_held)
		c->held->held = false;
}

PUBLIC void reddn_release(struct reddn *c)
{
	release(c);
}

PUBLIC INLINED int reddn_poll(struct reddn *c, struct reddn_result *res, int max)
{
	int n = 0;

	release(c);
	if (max <= 0)
		return max ? -EINVAL : 0;
	if (!c->broken) {
		if (c->retry)
			reddn_send_retries(c);
		n = collect(c, res, max);
		if (n == 0 && ++c->idle_polls % EVENTS_EVERY == 0)
			reddn_check_events(c);
		/* Replies that arrived before the disconnect still count. */
		if (c->hangup && n == 0) {
			n = collect(c, res, max);
			if (n == 0)
				reddn_break(c, -ECONNRESET, "the server closed the connection");
		}
		if (c->retry)
			reddn_send_retries(c);
	}
	if (c->broken && n < max)
		n += report_broken(c, res + n, max - n);
	return n == 0 && c->broken ? c->broken : n;
}
