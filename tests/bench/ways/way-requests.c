/* SPDX-License-Identifier: BSD-2-Clause */
#include "protocol/table-hash.h"
#include "tests/bench/ways/link.h"
#include "tests/bench/ways/many.h"
#include "tests/bench/ways/requests.h"
#include "tests/bench/ways/slots.h"
#include "tests/bench/ways/ways.h"
#include "tools/common/tool.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { POLL_BATCH = 16, RETRIES = 100 };

/* A slot has room for a request and for its answer. */
struct asking {
	uint64_t cookie;
	uint32_t len; /* bytes of the request */
	unsigned retries;
	unsigned keys; /* 0: one, not in a request of several */
	bool change;   /* the answer has no value */
};

struct asker {
	struct link link;
	bool records; /* answers are records, and may have been overtaken by a set */
	unsigned depth, keys, signal_every, posted_since_signal;
	size_t request_max, answer_max;
	struct slots slots;
	struct asking *asked; /* of each slot */
	unsigned unposted;    /* RECVs; an answer uses up one, and has no bytes in it */
	char why[128];
};

static struct request *request_of(const struct asker *c, uint32_t slot)
{
	return (struct request *)(c->link.mem + slot * (c->request_max + c->answer_max));
}

static const uint8_t *answer_of(const struct asker *c, uint32_t slot)
{
	return (const uint8_t *)request_of(c, slot) + c->request_max;
}

/* Posts all RECVs that answers have used up, with one doorbell. */
static int post_recvs(struct asker *c)
{
	struct ibv_recv_wr wr[POLL_BATCH], *bad;

	while (c->unposted) {
		unsigned n = c->unposted < POLL_BATCH ? c->unposted : POLL_BATCH;
		int r;

		for (unsigned i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr){.next = i + 1 < n ? &wr[i + 1] : NULL};
		r = ibv_post_recv(c->link.id->qp, wr, &bad);
		if (r) {
			snprintf(c->why, sizeof(c->why), "posting RECVs: %s", strerror(r));
			return -r;
		}
		c->unposted -= n;
	}
	return 0;
}

static int post(struct asker *c, uint32_t slot)
{
	struct ibv_sge sge = {(uintptr_t)request_of(c, slot), c->asked[slot].len, c->link.mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = UINT64_MAX, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	int r;

	if (sge.length <= REQUEST_INLINE)
		wr.send_flags |= IBV_SEND_INLINE;
	if (++c->posted_since_signal == c->signal_every) {
		wr.send_flags |= IBV_SEND_SIGNALED;
		c->posted_since_signal = 0;
	}
	r = ibv_post_send(c->link.id->qp, &wr, &bad);
	if (r)
		snprintf(c->why, sizeof(c->why), "posting a request: %s", strerror(r));
	return -r;
}

static struct request *begin(struct asker *c, uint32_t slot, size_t key_len, size_t val_len)
{
	struct request *q = request_of(c, slot);

	*q = (struct request){
		.key_len = (uint32_t)key_len,
		.val_len = (uint32_t)val_len,
		.to = (uintptr_t)answer_of(c, slot),
		.rkey = c->link.mr->rkey,
		.slot = slot,
	};
	return q;
}

static int submit(void *conn, const struct load_op *op, uint64_t cookie)
{
	struct asker *c = conn;
	struct request *q;
	uint32_t slot;
	const size_t sum = op->kind == LOAD_PUT_IF ? sizeof(op->version) : 0;
	const uint32_t what = op->kind == LOAD_GET      ? REQUEST_GET
			      : op->kind == LOAD_DELETE ? REQUEST_DELETE
							: (uint32_t)op->value_len | (sum ? REQUEST_IF : 0);
	size_t len = sizeof(*q) + op->key_len + sum + op->value_len;

	if (len > c->request_max)
		return -EMSGSIZE;
	if (!c->slots.nfree)
		return -EAGAIN;
	slot = slots_take(&c->slots);
	q = begin(c, slot, op->key_len, what);
	memcpy(q->bytes, op->key, op->key_len);
	memcpy(q->bytes + op->key_len, &op->version, sum);
	if (op->value_len)
		memcpy(q->bytes + op->key_len + sum, op->value, op->value_len);
	c->asked[slot] = (struct asking){.cookie = cookie, .len = (uint32_t)len, .change = op->kind};
	return post(c, slot);
}

static int submit_many(void *conn, const struct reddn_key *keys, unsigned n, uint64_t cookie)
{
	struct asker *c = conn;
	uint8_t *at, *end;
	uint32_t slot;

	if (!c->slots.nfree)
		return -EAGAIN;
	slot = slots_take(&c->slots);
	at = begin(c, slot, n, way_exists ? REQUEST_EXISTS : REQUEST_MGET)->bytes;
	end = (uint8_t *)request_of(c, slot) + c->request_max;
	for (unsigned i = 0; i < n; i++) {
		const uint16_t len = (uint16_t)keys[i].key_len;

		if ((size_t)(end - at) < sizeof(len) + len)
			return -EMSGSIZE;
		memcpy(at, &len, sizeof(len));
		memcpy(at + sizeof(len), keys[i].key, len);
		at += sizeof(len) + len;
	}
	c->asked[slot] = (struct asking){
		.cookie = cookie, .len = (uint32_t)(at - (uint8_t *)request_of(c, slot)), .keys = n};
	return post(c, slot);
}

static void release(void *conn)
{
	struct asker *c = conn;

	slots_release(&c->slots);
}

/* The result of a record that has @len bytes at most; false: it is not whole. */
static bool take_record(const struct reddn_record *rec, size_t len, struct reddn_result *res)
{
	if (len < sizeof(*rec) || reddn_record_size(rec->key_len, rec->val_len) > len ||
		reddn_record_sum(rec) != rec->sum)
		return false;
	res->value = rec->bytes + rec->key_len;
	res->length = rec->val_len;
	res->version = rec->sum;
	return true;
}

static int ask_again(struct asker *c, uint32_t slot)
{
	if (++c->asked[slot].retries < RETRIES)
		return post(c, slot);
	snprintf(c->why, sizeof(c->why), "a record of the table is damaged");
	return -EBADMSG;
}

/* Returns the number of results, 0 if the request is repeated. */
static int results_of_many(struct asker *c, const struct ibv_wc *wc, struct reddn_result *res)
{
	uint32_t imm = be32toh(wc->imm_data), slot = request_slot(imm);
	const uint8_t *at = answer_of(c, slot), *end = at + wc->byte_len;
	const unsigned n = c->asked[slot].keys;
	uint64_t found = (uint16_t)request_status(imm);

	if (way_exists)
		memcpy(&found, at, sizeof(found));
	for (unsigned i = 0; i < n; i++) {
		res[i] = (struct reddn_result){
			.cookie = c->asked[slot].cookie + i, .status = found >> i & 1 ? 0 : REDDN_MISS};
		if (res[i].status || way_exists)
			continue;
		if (!take_record((const void *)at, (size_t)(end - at), &res[i]))
			return ask_again(c, slot);
		at = (const uint8_t *)(res[i].value) + res[i].length;
		at = answer_of(c, slot) + reddn_record_padded((uint64_t)(at - answer_of(c, slot)));
	}
	slots_hold(&c->slots, slot);
	return (int)n;
}

/* Returns 1 with a result, 0 if the NIC was overtaken by a set while it sent the answer, so that the request
 * is repeated, as libreddn does. */
static int result_of(struct asker *c, const struct ibv_wc *wc, struct reddn_result *res)
{
	uint32_t imm = be32toh(wc->imm_data), slot = request_slot(imm);
	struct asking *a = &c->asked[slot];

	*res = (struct reddn_result){.cookie = a->cookie, .status = request_status(imm)};
	if (res->status == 0 && !a->change) {
		res->value = answer_of(c, slot);
		res->length = wc->byte_len;
	}
	if (res->value && c->records && !take_record(res->value, wc->byte_len, res))
		return ask_again(c, slot);
	slots_hold(&c->slots, slot);
	return 1;
}

static int poll_results(void *conn, struct reddn_result *res, int max)
{
	struct asker *c = conn;
	struct ibv_wc wc[POLL_BATCH];
	uint32_t slot;
	int k, n = 0, r;

	release(c);
	max /= (int)c->keys;
	k = ibv_poll_cq(c->link.cq, max < POLL_BATCH ? max : POLL_BATCH, wc);
	for (int i = 0; i < k; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			snprintf(c->why, sizeof(c->why), "the NIC reports: %s",
				ibv_wc_status_str(wc[i].status));
			return -EIO;
		}
		if (wc[i].wr_id == UINT64_MAX)
			continue;
		c->unposted++;
		slot = request_slot(be32toh(wc[i].imm_data));
		r = (c->asked[slot].keys ? results_of_many : result_of)(c, &wc[i], &res[n]);
		if (r < 0)
			return r;
		n += r;
	}
	/* before the next request: an answer without a RECV would wait for a retry */
	r = post_recvs(c);
	return r < 0 ? r : k < 0 ? -EIO : n;
}

static const char *errmsg(void *conn)
{
	return ((struct asker *)conn)->why;
}

static void close_asker(void *conn)
{
	struct asker *c = conn;

	link_close(&c->link);
	slots_deinit(&c->slots);
	free(c->asked);
	free(c);
}

static int open_asker(struct load_way *way, const struct reddn_options *opt, bool records)
{
	struct asker *c = calloc(1, sizeof(*c));
	const unsigned keys = records && way_keys ? way_keys : 1;
	struct link_wish wish = {LINK_REQUESTS, opt->depth, keys};
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
	c->records = records;
	c->keys = keys;
	c->depth = c->unposted = opt->depth;
	c->signal_every = c->depth > 1 ? c->depth / 2 : 1;
	if (keys > REQUEST_GATHER && !way_exists)
		return tool_complain("a server gets %d keys at most", REQUEST_GATHER);
	if (link_connect(&c->link, opt->host, opt->port, wish, cap) < 0)
		return 2;
	c->request_max = be32toh(c->link.offer.request_max);
	c->answer_max = ((size_t)be32toh(c->link.offer.reply_max) * keys + 63) & ~63ul;
	c->asked = calloc(c->depth, sizeof(*c->asked));
	if (!c->asked || slots_init(&c->slots, c->depth) < 0 ||
		link_memory(&c->link, c->depth * (c->request_max + c->answer_max)) < 0)
		return 2;
	if (post_recvs(c) < 0)
		return 2;
	return records && way_keys ? many_wrap(way, submit_many, keys) : 0;
}

int way_requests_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_asker(way, opt, true);
}

int way_list_requests_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_asker(way, opt, false);
}
