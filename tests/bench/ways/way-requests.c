/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/ways/link.h"
#include "tests/bench/ways/requests.h"
#include "tests/bench/ways/slots.h"
#include "tests/bench/ways/ways.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { POLL_BATCH = 16 };

/* A slot has room for a request and for an answer. Answers land in any slot's, in the order in which the
 * RECVs were posted. */
struct asker {
	struct link link;
	unsigned depth, signal_every, posted_since_signal;
	size_t request_max, answer_max;
	struct slots recvs; /* RECV buffers; "free": not posted */
	uint64_t *cookies;  /* of request n at n % depth */
	uint64_t sent, done;
	int error; /* from posting RECVs: the connection is lost */
	char why[128];
};

static uint8_t *request_of(struct asker *c, uint64_t number)
{
	return c->link.mem + number % c->depth * c->request_max;
}

static uint8_t *answer_of(struct asker *c, uint64_t slot)
{
	return c->link.mem + c->depth * c->request_max + slot * c->answer_max;
}

/* Posts all free RECVs with one doorbell. */
static int post_recvs(struct asker *c)
{
	struct ibv_sge sge[POLL_BATCH];
	struct ibv_recv_wr wr[POLL_BATCH], *bad;

	while (c->recvs.nfree) {
		unsigned n = 0;
		int r;

		while (c->recvs.nfree && n < POLL_BATCH) {
			uint32_t slot = slots_take(&c->recvs);

			sge[n] = (struct ibv_sge){
				(uintptr_t)answer_of(c, slot), (uint32_t)c->answer_max, c->link.mr->lkey};
			wr[n] = (struct ibv_recv_wr){.wr_id = slot, .sg_list = &sge[n], .num_sge = 1};
			if (n)
				wr[n - 1].next = &wr[n];
			n++;
		}
		r = ibv_post_recv(c->link.id->qp, wr, &bad);
		if (r) {
			snprintf(c->why, sizeof(c->why), "posting RECVs: %s", strerror(r));
			return -r;
		}
	}
	return 0;
}

static int submit(void *conn, const struct load_op *op, uint64_t cookie)
{
	struct asker *c = conn;
	struct request *q = (struct request *)request_of(c, c->sent);
	uint32_t len = (uint32_t)(sizeof(*q) + op->key_len + op->value_len);
	struct ibv_sge sge = {(uintptr_t)q, len, c->link.mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = UINT64_MAX, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	int r;

	if (len > c->request_max)
		return -EMSGSIZE;
	/* Each request needs a RECV; the caller may hold some of the buffers */
	if (c->sent - c->done + c->recvs.nheld >= c->depth)
		return -EAGAIN;
	q->key_len = (uint32_t)op->key_len;
	q->val_len = op->value ? (uint32_t)op->value_len : REQUEST_GET;
	memcpy(q->bytes, op->key, op->key_len);
	if (op->value_len)
		memcpy(q->bytes + op->key_len, op->value, op->value_len);
	if (len <= REQUEST_INLINE)
		wr.send_flags |= IBV_SEND_INLINE;
	if (++c->posted_since_signal == c->signal_every) {
		wr.send_flags |= IBV_SEND_SIGNALED;
		c->posted_since_signal = 0;
	}
	r = ibv_post_send(c->link.id->qp, &wr, &bad);
	if (r) {
		snprintf(c->why, sizeof(c->why), "posting a request: %s", strerror(r));
		return -r;
	}
	c->cookies[c->sent++ % c->depth] = cookie;
	return 0;
}

/* RECVs are posted before new requests: an answer without a RECV would wait for a retry. */
static void release(void *conn)
{
	struct asker *c = conn;

	slots_release(&c->recvs);
	if (!c->error)
		c->error = post_recvs(c);
}

static int poll_results(void *conn, struct reddn_result *res, int max)
{
	struct asker *c = conn;
	struct ibv_wc wc[POLL_BATCH];
	int k, n = 0;

	release(c);
	if (c->error)
		return c->error;
	k = ibv_poll_cq(c->link.cq, max < POLL_BATCH ? max : POLL_BATCH, wc);
	for (int i = 0; i < k; i++) {
		const struct answer *a;

		if (wc[i].status != IBV_WC_SUCCESS) {
			snprintf(c->why, sizeof(c->why), "the NIC reports: %s",
				ibv_wc_status_str(wc[i].status));
			return -EIO;
		}
		if (wc[i].wr_id == UINT64_MAX)
			continue;
		a = (const struct answer *)answer_of(c, wc[i].wr_id);
		slots_hold(&c->recvs, (uint32_t)wc[i].wr_id);
		res[n++] = (struct reddn_result){.cookie = c->cookies[c->done++ % c->depth],
			.status = a->status,
			.value = a->value,
			.length = a->len};
	}
	return k < 0 ? -EIO : n;
}

static const char *errmsg(void *conn)
{
	return ((struct asker *)conn)->why;
}

static void close_asker(void *conn)
{
	struct asker *c = conn;

	link_close(&c->link);
	slots_deinit(&c->recvs);
	free(c->cookies);
	free(c);
}

int way_requests_open(struct load_way *way, const struct reddn_options *opt)
{
	struct asker *c = calloc(1, sizeof(*c));
	struct link_wish wish = {LINK_REQUESTS, opt->depth};
	struct ibv_qp_cap cap = {opt->depth * 2u, opt->depth, 1, 1, REQUEST_INLINE};

	if (!c)
		return 2;
	*way = (struct load_way){.conn = c,
		.depth = opt->depth,
		.submit = submit,
		.poll = poll_results,
		.release = release,
		.errmsg = errmsg,
		.close = close_asker};
	c->depth = opt->depth;
	c->signal_every = c->depth > 1 ? c->depth / 2 : 1;
	if (link_connect(&c->link, opt->host, opt->port, wish, cap) < 0)
		return 2;
	c->request_max = be32toh(c->link.offer.request_max);
	c->answer_max = be32toh(c->link.offer.reply_max);
	c->cookies = calloc(c->depth, sizeof(*c->cookies));
	if (!c->cookies || slots_init(&c->recvs, c->depth) < 0 ||
		link_memory(&c->link, c->depth * (c->request_max + c->answer_max)) < 0)
		return 2;
	return post_recvs(c) < 0 ? 2 : 0;
}
