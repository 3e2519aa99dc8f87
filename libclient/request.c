/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/client-impl.h"
#include "libclient/public.h"
#include "protocol/table-format.h"
#include "protocol/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>

/* Empty polls between two looks for a disconnect, and of one that waits, before others may run: these cost a
 * system call. */
enum { EVENTS_EVERY = 256, YIELD_EVERY = 4, POLL_BATCH = 16 };

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void reddn_break(struct reddn *c, int error, const char *fmt, ...)
{
	va_list ap;

	if (c->broken)
		return;
	c->broken = error;
	va_start(ap, fmt);
	vsnprintf(c->errmsg, sizeof(c->errmsg), fmt, ap);
	va_end(ap);
}

static void *map_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int reddn_requests_init(struct reddn *c)
{
	uint32_t depth = c->info.depth;

	c->area_len = (size_t)depth * (c->info.slot_size + REDDN_ARG_MAX);
	c->area = map_pages(c->area_len);
	c->requests = calloc(depth, sizeof(*c->requests));
	c->slots = calloc(depth, sizeof(*c->slots));
	c->held = calloc(depth, sizeof(*c->held));
	c->recvs = calloc(depth, sizeof(*c->recvs));
	if (!c->area || !c->requests || !c->slots || !c->held || !c->recvs)
		return -ENOMEM;
	c->args = c->area + (size_t)depth * c->info.slot_size;
	for (uint32_t i = 0; i < depth; i++) {
		c->requests[i].next = i + 1 < depth ? i + 1 : REDDN_NONE;
		c->slots[i].request = REDDN_NONE;
		c->recvs[i].next = i + 1 < depth ? &c->recvs[i + 1] : NULL;
	}
	c->again = REDDN_NONE;
	c->signal_every = depth > 1 ? depth / 2 : 1;
	return 0;
}

int reddn_keys_init(struct reddn *c)
{
	c->keys_len = c->key_room * c->info.depth;
	c->keys = map_pages(c->keys_len);
	return c->keys ? 0 : -ENOMEM;
}

void reddn_requests_deinit(struct reddn *c)
{
	if (c->area)
		munmap(c->area, c->area_len);
	if (c->keys)
		munmap(c->keys, c->keys_len);
	free(c->requests);
	free(c->slots);
	free(c->held);
	free(c->recvs);
}

int reddn_post_receives(struct reddn *c)
{
	struct ibv_recv_wr *bad;

	c->recvs_used = 0;
	return -ibv_post_recv(c->id->qp, c->recvs, &bad);
}

static uint8_t *key_of(const struct reddn *c, uint32_t request)
{
	return c->keys + request * c->key_room;
}

/* The next number can be sent: its slot is free, and so is a WQE. */
static bool can_send(const struct reddn *c)
{
	const struct reddn_slot *s = &c->slots[c->sent % c->info.depth];

	return s->request == REDDN_NONE && !s->held && c->sent - c->reclaimed < 2u * c->info.depth;
}

static void send_request(struct reddn *c, uint32_t request)
{
	uint64_t slot = c->sent % c->info.depth;
	struct reddn_request *q = &c->requests[request];
	uint8_t *arg = c->args + slot * REDDN_ARG_MAX, *mem = reddn_slot_mem(c, slot);
	struct ibv_sge sge = {.addr = (uintptr_t)arg, .length = c->info.arg_len, .lkey = c->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = c->sent + 1,
					 .sg_list = &sge,
					 .num_sge = c->info.arg_len ? 1 : 0,
					 .opcode = IBV_WR_SEND};
	int r;

	if (q->raw) {
		memcpy(arg, key_of(c, request), q->len);
		memset(mem, 0, c->info.reply_max);
	} else {
		reddn_request_build(&c->geo, key_of(c, request), q->len, arg);
		memset(mem + REDDN_SLOT_RECORD, 0, 8);
	}
	q->before = c->seen;
	if (c->info.arg_len <= c->inline_max)
		wr.send_flags |= IBV_SEND_INLINE;
	if (wr.wr_id % c->signal_every == 0)
		wr.send_flags |= IBV_SEND_SIGNALED;
	r = ibv_post_send(c->id->qp, &wr, &bad);
	if (r) {
		reddn_break(c, -EIO, "cannot post a request: %s", strerror(r));
		return;
	}
	c->slots[slot].request = request;
	c->sent++;
}

static void send_again(struct reddn *c)
{
	while (c->again != REDDN_NONE && !c->broken && can_send(c)) {
		uint32_t request = c->again;

		c->again = c->requests[request].next;
		send_request(c, request);
	}
}

static int submit(struct reddn *c, const void *bytes, size_t len, uint64_t cookie, bool raw)
{
	uint32_t request = c->free_request;
	struct reddn_request *q;

	if (c->broken)
		return c->broken;
	/* Those that wait to be sent again come first. */
	send_again(c);
	if (request == REDDN_NONE || c->again != REDDN_NONE || !can_send(c))
		return -EAGAIN;
	q = &c->requests[request];
	c->free_request = q->next;
	*q = (struct reddn_request){.cookie = cookie, .len = (uint32_t)len, .raw = raw, .busy = true};
	memcpy(key_of(c, request), bytes, len);
	c->busy++;
	/* Should it fail, the request gets its result with all others. */
	send_request(c, request);
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
	uint8_t request[REDDN_ARG_MAX];
	int r = reddn_form_build(&c->form, args, nargs, c->info.arg_len, request);

	return r < 0 ? r : submit(c, request, c->info.arg_len, cookie, true);
}

PUBLIC int reddn_submit(struct reddn *c, const void *arg, size_t len, uint64_t cookie)
{
	if (len != c->info.arg_len)
		return -EINVAL;
	return submit(c, arg, len, cookie, true);
}

static void result(struct reddn *c, uint32_t request, struct reddn_result *res, int status)
{
	struct reddn_request *q = &c->requests[request];

	*res = (struct reddn_result){.cookie = q->cookie, .status = status};
	q->busy = false;
	q->next = c->free_request;
	c->free_request = request;
	c->busy--;
}

static void hold(struct reddn *c, uint32_t slot, struct reddn_result *res, const void *value, size_t length)
{
	res->value = value;
	res->length = length;
	c->slots[slot].held = true;
	c->held[c->nheld++] = slot;
}

/* Queue it to be sent again, or give up: returns the status to give up with, or 0. */
static int again(struct reddn *c, uint32_t request, enum reddn_verdict verdict)
{
	struct reddn_request *q = &c->requests[request];
	uint64_t now = now_ns();

	if (!q->again++)
		q->again_since = now;
	else if (q->again > REDDN_AGAIN_MIN && now - q->again_since > c->retry_ms * 1000000ull)
		return verdict == REDDN_REPLY_MOVED ? -EAGAIN : -EBADMSG;
	if (verdict == REDDN_REPLY_MOVED)
		c->info.again_moved++;
	else
		c->info.again_overtaken++;
	q->next = REDDN_NONE;
	if (c->again == REDDN_NONE)
		c->again = request;
	else
		c->requests[c->again_tail].next = request;
	c->again_tail = request;
	return 0;
}

/* The reply of number c->done is in its slot. 1: it gave a result. */
static int reply(struct reddn *c, struct reddn_result *res)
{
	uint32_t slot = (uint32_t)(c->done % c->info.depth), request = c->slots[slot].request;
	struct reddn_request *q = &c->requests[request];
	const uint8_t *mem = reddn_slot_mem(c, slot);
	const struct reddn_record *r = (const struct reddn_record *)(mem + REDDN_SLOT_RECORD);
	const struct reddn_table_live *live = (const struct reddn_table_live *)(mem + REDDN_SLOT_LIVE);
	enum reddn_verdict verdict;
	int status = 0;

	c->slots[slot].request = REDDN_NONE;
	c->done++;
	if (q->raw) {
		result(c, request, res, 0);
		hold(c, slot, res, mem, c->info.reply_max);
		return 1;
	}
	verdict = reddn_reply_judge(&c->geo, key_of(c, request), q->len, mem, c->info.slot_size, &q->before);
	c->seen = (struct reddn_seen){
		.valid = true, .moves = live->moves, .epoch = c->seen.valid ? c->seen.epoch : live->epoch};
	switch (verdict) {
	case REDDN_REPLY_HIT:
		result(c, request, res, 0);
		hold(c, slot, res, r->bytes + r->key_len, r->val_len);
		return 1;
	case REDDN_REPLY_MISS:
		status = REDDN_MISS;
		break;
	case REDDN_REPLY_STALE:
		status = -ESTALE;
		break;
	case REDDN_REPLY_MOVED:
	case REDDN_REPLY_OVERTAKEN:
		status = again(c, request, verdict);
		break;
	}
	if (!status)
		return 0;
	result(c, request, res, status);
	return 1;
}

/* 1: it gave a result. */
static int completion(struct reddn *c, const struct ibv_wc *wc, struct reddn_result *res)
{
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
		c->reclaimed = wc->wr_id;
		return 0;
	}
	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM || c->done == c->sent ||
		ntohl(wc->imm_data) != (uint32_t)c->done) {
		reddn_break(c, -EPROTO, "protocol violated: reply %u when %u was due", ntohl(wc->imm_data),
			(uint32_t)c->done);
		return 0;
	}
	if (++c->recvs_used == c->info.depth && !c->broken) {
		int r = reddn_post_receives(c);

		if (r < 0)
			reddn_break(c, -EIO, "cannot post receives: %s", strerror(-r));
	}
	return reply(c, res);
}

/* The connection is lost: every request gets the reason. */
static int report_broken(struct reddn *c, struct reddn_result *res, int max)
{
	int n = 0;

	for (uint32_t i = 0; i < c->info.depth && c->busy && n < max; i++)
		if (c->requests[i].busy)
			result(c, i, &res[n++], c->broken);
	return n;
}

static int collect(struct reddn *c, struct reddn_result *res, int max)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = 0;

	while (n < max) {
		int k = ibv_poll_cq(c->cq, max - n < POLL_BATCH ? max - n : POLL_BATCH, wc);

		if (k < 0)
			reddn_break(c, -EIO, "the completion queue cannot be read");
		if (k <= 0)
			break;
		for (int i = 0; i < k; i++)
			n += completion(c, &wc[i], &res[n]);
	}
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
		send_again(c);
		n = collect(c, res, max);
		if (n == 0 && ++c->idle_polls % EVENTS_EVERY == 0)
			reddn_check_events(c);
		/* Replies that arrived before the end still count. */
		if (c->hangup && n == 0) {
			n = collect(c, res, max);
			if (n == 0)
				reddn_break(c, -ECONNRESET, "the server closed the connection");
		}
		send_again(c);
	}
	if (c->broken && n < max)
		n += report_broken(c, res + n, max - n);
	return n == 0 && c->broken ? c->broken : n;
}

PUBLIC int reddn_fd(struct reddn *c)
{
	return c->epoll;
}

PUBLIC int reddn_arm(struct reddn *c)
{
	struct ibv_cq *cq;
	void *context;
	unsigned events = 0;

	if (c->broken)
		return 0;
	reddn_check_events(c);
	/* The channel does not block. */
	while (ibv_get_cq_event(c->channel, &cq, &context) == 0)
		events++;
	if (events)
		ibv_ack_cq_events(c->cq, events);
	if (c->armed && !events)
		return 0;
	c->armed = true;
	return -ibv_req_notify_cq(c->cq, 0);
}

PUBLIC int reddn_wait(struct reddn *c, struct reddn_result *res, int max, int timeout_ms)
{
	uint64_t start = now_ns(), now = start;

	for (unsigned polls = 1;; polls++) {
		struct epoll_event ev;
		int64_t left = -1;
		int n = reddn_poll(c, res, max);

		if (n || !c->busy)
			return n;
		if (now - start < c->spin_us * 1000ull) {
			if (polls % YIELD_EVERY == 0)
				sched_yield();
			now = now_ns();
			continue;
		}
		n = reddn_arm(c);
		if (n < 0)
			return n;
		n = reddn_poll(c, res, max);
		if (n)
			return n;
		if (timeout_ms >= 0) {
			left = timeout_ms - (int64_t)((now_ns() - start) / 1000000);
			if (left <= 0)
				return 0;
		}
		if (epoll_wait(c->epoll, &ev, 1, (int)left) < 0 && errno != EINTR)
			return -errno;
		reddn_check_events(c);
	}
}

/* Nothing is outstanding, and results that the caller still has are given up. */
static int begin(struct reddn *c)
{
	struct reddn_result res;

	return c->busy ? -EBUSY : reddn_poll(c, &res, 1);
}

/* Whoever waits for an answer can wait for the reason why there is none. */
static int ended(struct reddn *c, int r)
{
	if (r < 0 && c->broken && c->broken != -ETIMEDOUT)
		reddn_end_reason(c);
	return r;
}

/* The result of the one request that is outstanding, in time: its status. */
static int finish(struct reddn *c, struct reddn_result *res)
{
	int r = reddn_wait(c, res, 1, (int)c->timeout_ms);

	if (r == 0) {
		reddn_break(c, -ETIMEDOUT, "no reply in %u ms", c->timeout_ms);
		r = reddn_poll(c, res, 1);
	}
	return r < 0 ? r : res->status;
}

PUBLIC int reddn_get(struct reddn *c, const void *key, size_t key_len, void *buf, size_t buf_len, size_t *len)
{
	struct reddn_result res;
	int r = begin(c);

	*len = 0;
	if (r == 0)
		r = reddn_get_submit(c, key, key_len, 0);
	if (r == 0)
		r = finish(c, &res);
	if (r)
		return ended(c, r);
	*len = res.length;
	if (res.length > buf_len)
		return -EMSGSIZE;
	if (res.length)
		memcpy(buf, res.value, res.length);
	return 0;
}

PUBLIC int reddn_call(
	struct reddn *c, const struct reddn_arg *args, unsigned nargs, void *buf, size_t buf_len)
{
	struct reddn_result res;
	int r = begin(c);

	if (r == 0)
		r = reddn_call_submit(c, args, nargs, 0);
	if (r == 0)
		r = finish(c, &res);
	if (r == 0)
		memcpy(buf, res.value, res.length < buf_len ? res.length : buf_len);
	return ended(c, r);
}

PUBLIC int reddn_get_arg(const struct reddn *c, unsigned i, enum reddn_arg_kind *kind, uint32_t *bytes)
{
	if (i >= c->form.nargs)
		return -EINVAL;
	*kind = (enum reddn_arg_kind)c->form.arg[i].kind;
	*bytes = c->form.arg[i].bytes;
	return 0;
}

PUBLIC void reddn_get_info(const struct reddn *c, struct reddn_info *info)
{
	*info = c->info;
	info->sent = c->sent;
}

PUBLIC const char *reddn_errmsg(const struct reddn *c)
{
	return c->errmsg;
}
