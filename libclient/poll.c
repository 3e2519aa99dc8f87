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
	q->next_free = c->free_request;
	c->free_request = q;
	c->busy--;
}

/* The caller gets a value in the slot and keeps it until it releases it. */
static void hold(struct reddn *c, struct reddn_slot *s)
{
	s->next_held = c->held;
	c->held = s;
}

/* Nothing is due in the slot any more. @held: the caller has a value in it. */
static void end_slot(struct reddn *c, struct reddn_slot *s, bool held)
{
	if (held)
		hold(c, s);
	else
		s->request = NULL;
}

/* Queue the request to be repeated. 0, or the status of its result if it was repeated long enough. */
static int retry(struct reddn *c, struct reddn_request *q, enum reddn_reply_state state)
{
	uint64_t now = clock_ns();

	if (!q->retries)
		q->retried_since = now;
	if (q->retries < RETRIES_MIN)
		q->retries++;
	else if (now - q->retried_since > c->retry_ms * 1000000ull)
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
	c->exceptional = true;
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

/* The line that comes with each reply */
static void see(struct reddn *c, const struct reddn_reply *got)
{
	c->seen.moves = got->moves;
	if (c->seen.valid)
		return;
	c->seen.epoch = got->epoch;
	c->seen.valid = true;
}

/* Process a reply that is no hit, as it is now. Returns the number of results, 0 or 1. */
static NOINLINE int reply_without(struct reddn *c, const struct reddn_slot *s, struct reddn_request *q,
	const uint8_t *record, struct reddn_result *res)
{
	const struct reddn_seen before = {
		.valid = c->seen.valid, .moves = q->moves_before, .epoch = c->seen.epoch};
	struct reddn_reply got;
	int status;

	reddn_reply_read(s->mem, record, &got);
	status = status_of(
		c, q, reddn_reply_check_rest(&c->geo, q->key, q->len, &got, c->geo.stride, &before));
	see(c, &got);
	if (!status)
		return 0;
	finish(c, q, res, status, NULL, 0);
	return 1;
}

/* Process what @s has for the key of @q, whose record is at @record. Returns the number of results, 0 or 1.
 */
static int reply_to_key(struct reddn *c, const struct reddn_slot *s, struct reddn_request *q,
	const uint8_t *record, struct reddn_result *res)
{
	struct reddn_reply got;

	reddn_reply_read(s->mem, record, &got);
	if (!LIKELY(reddn_reply_is_hit(&c->geo, q->key, q->len, &got, c->geo.stride)))
		return reply_without(c, s, q, record, res);
	see(c, &got);
	finish(c, q, res, 0, got.bytes + q->len, got.head.val_len);
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
	bool held = false;
	int n = 0;

	while (q && n < max) {
		const uint8_t *record = s->mem + REDDN_SLOT_RECORD + key++ * c->geo.stride;
		struct reddn_request *next = q->next;

		q->next = NULL;
		if (reply_to_key(c, s, q, record, &res[n])) {
			held = held || res[n].value;
			n++;
		}
		q = next;
	}
	c->left = q;
	if (!q) {
		end_slot(c, s, held);
		return n;
	}
	c->exceptional = true;
	c->left_slot = s;
	c->left_key = key;
	if (held)
		hold(c, s);
	return n;
}

static NOINLINE int reply_raw(
	struct reddn *c, struct reddn_slot *s, struct reddn_request *q, struct reddn_result *res)
{
	finish(c, q, res, 0, s->mem, c->info.reply_max);
	hold(c, s);
	return 1;
}

/* Process the reply of number k->done, which is in its slot. */
static int reply(struct reddn *c, struct reddn_connection *k, struct reddn_result *res, int max)
{
	struct reddn_slot *s = k->done_slot;
	struct reddn_request *q = s->request;
	int n;

	k->done_slot = s->next;
	k->done++;
	if (q->kind == REDDN_SOME_KEY)
		return replies(c, s, q, 0, res, max);
	if (q->kind == REDDN_RAW)
		return reply_raw(c, s, q, res);
	n = reply_to_key(c, s, q, s->mem + REDDN_SLOT_RECORD, res);
	end_slot(c, s, n && res->value);
	return n;
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

static NOINLINE void post_receives(struct reddn *c, struct reddn_connection *k)
{
	int r = c->broken ? 0 : reddn_post_receives(k);

	k->recvs_left = c->depth;
	if (r < 0)
		reddn_break(c, -EIO, "cannot post receives: %s", strerror(-r));
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
	if (--k->recvs_left == 0)
		post_receives(c, k);
	return reply(c, k, res, max);
}

/* The connection is lost: the reason becomes the result of every request. */
static int report_broken(struct reddn *c, struct reddn_result *res, int max)
{
	int n = 0;

	for (uint32_t i = 0; i < c->nrequests; i++)
		c->requests[i].is_free = false;
	for (struct reddn_request *q = c->free_request; q; q = q->next_free)
		q->is_free = true;
	for (uint32_t i = 0; i < c->nrequests && n < max; i++)
		if (!c->requests[i].is_free)
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
	int left = max, r = ibv_start_poll(cq, &attr);

	if (r == 0) {
		do {
			struct ibv_wc wc;
			int n;

			read_completion(cq, &wc);
			n = completion(c, &wc, res, left);
			res += n;
			left -= n;
			r = left ? ibv_next_poll(cq) : ENOENT;
		} while (r == 0);
		ibv_end_poll(cq);
	}
	if (r != ENOENT)
		reddn_break(c, -EIO, "cannot poll the completion queue");
	return max - left;
}

/* The same where the provider knows ibv_poll_cq() only. */
static int take_batches(struct reddn *c, struct reddn_result *res, int max)
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

static void release_held(struct reddn *c)
{
	for (struct reddn_slot *s = c->held; s; s = s->next_held)
		s->request = NULL;
	c->held = NULL;
}

static void release(struct reddn *c)
{
	release_held(c);
	if (c->left)
		c->left_slot->request = c->left;
}

PUBLIC void reddn_release(struct reddn *c)
{
	release(c);
}

static bool is_exceptional(const struct reddn *c)
{
	return c->retry || c->left || c->hangup || c->broken || !c->cq_ex;
}

/* What reddn_poll() does besides. @n results are there already. */
static NOINLINE int poll_rest(struct reddn *c, struct reddn_result *res, int max, int n)
{
	/* Replies that arrived before the disconnect still count. */
	if (!c->broken && c->hangup && n == 0) {
		n = collect(c, res, max);
		if (n == 0)
			reddn_break(c, -ECONNRESET, "the server closed the connection");
	}
	if (!c->broken && c->retry)
		reddn_send_retries(c);
	if (c->broken && n < max)
		n += report_broken(c, res + n, max - n);
	c->exceptional = is_exceptional(c);
	return n == 0 && c->broken ? c->broken : n;
}

static void check_events_sometimes(struct reddn *c)
{
	if (++c->idle_polls % EVENTS_EVERY == 0)
		reddn_check_events(c);
}

static NOINLINE int poll_all(struct reddn *c, struct reddn_result *res, int max)
{
	int n = 0;

	release(c);
	if (max <= 0)
		return max ? -EINVAL : 0;
	if (!c->broken) {
		if (c->retry)
			reddn_send_retries(c);
		n = collect(c, res, max);
		if (n == 0)
			check_events_sometimes(c);
	}
	return poll_rest(c, res, max, n);
}

PUBLIC INLINED int reddn_poll(struct reddn *c, struct reddn_result *res, int max)
{
	int n;

	if (c->exceptional || max <= 0)
		return poll_all(c, res, max);
	release_held(c);
	n = take(c, res, max);
	if (n == 0)
		check_events_sometimes(c);
	return c->exceptional ? poll_rest(c, res, max, n) : n;
}
