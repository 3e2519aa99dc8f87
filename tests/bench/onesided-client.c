/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * onesided-client - the baseline that needs no offload: a get is two round trips of plain RDMA READs, first of both
 * buckets, then of the record that the matching fingerprint points at.
 *
 * "onesided-client ADDRESS PORT DEPTH DATA PRESENT ABSENT SEED": keeps DEPTH gets of the workload in flight, checks each
 * answer against DATA (workload.h) and prints the results. Exits 0 when every answer was right. Nobody may write to the
 * table meanwhile: unlike libreddn it does not notice that an entry moved while it looked for it.
 */
#include "libclient/table-hash.h"
#include "tests/bench/onesided.h"
#include "tests/bench/workload.h"

#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRIES = 100, BATCH = 16 };

/* One get in flight. Its READs land at `mem`: two buckets, then the record. */
struct slot {
	size_t get;
	struct reddn_place place;
	unsigned probe; /* bucket whose record is asked for, or to be looked at next */
	unsigned retries;
	bool reading_record;
	uint8_t *mem;
};

struct client {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *mem;
	struct slot *slots;
	unsigned depth;
	size_t stride; /* bytes of a slot's memory */
	uint64_t table, table_size;
	uint32_t rkey;
	struct reddn_table_header hdr;
	struct workload *w;
	size_t next, answered;
};

static int complain(const char *what)
{
	int e = errno ? errno : EIO;

	fprintf(stderr, "%s: %s\n", what, strerror(e));
	return -e;
}

static int post_read(struct client *c, unsigned slot, uint8_t *to, uint64_t off, uint32_t len, bool signaled)
{
	struct ibv_sge sge = {(uintptr_t)to, len, c->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .wr_id = slot,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_READ,
					 .send_flags = signaled ? IBV_SEND_SIGNALED : 0,
					 .wr.rdma = {c->table + off, c->rkey},
				 };

	errno = ibv_post_send(c->id->qp, &wr, &bad);
	return errno ? complain("posting a READ") : 0;
}

/* The READ that completes last is signaled; READs of one queue complete in order. */
static int read_buckets(struct client *c, unsigned i)
{
	struct slot *s = &c->slots[i];
	int r;

	s->probe = 0;
	s->reading_record = false;
	r = post_read(c, i, s->mem, c->hdr.buckets_off + s->place.bucket[0] * 16, 16, false);
	return r ? r : post_read(c, i, s->mem + 16, c->hdr.buckets_off + s->place.bucket[1] * 16, 16, true);
}

static int start(struct client *c, unsigned i)
{
	struct slot *s = &c->slots[i];
	struct workload_get *g;

	if (c->next == c->w->ngets)
		return 0;
	s->get = c->next++;
	s->retries = 0;
	g = &c->w->gets[s->get];
	workload_start(c->w, s->get);
	s->place = reddn_hash_key(c->hdr.hash_seed, c->hdr.buckets, g->key, g->key_len);
	return read_buckets(c, i);
}

static int answer(struct client *c, unsigned i, const struct reddn_record *rec)
{
	workload_answer(
		c->w, c->slots[i].get, rec, rec ? rec->bytes + rec->key_len : NULL, rec ? rec->val_len : 0);
	c->answered++;
	return start(c, i);
}

/* Asks for the record of the next bucket with the right fingerprint; without one the key is absent. */
static int try_buckets(struct client *c, unsigned i)
{
	struct slot *s = &c->slots[i];

	for (; s->probe < 2; s->probe++) {
		uint64_t word[2], off;
		uint32_t len;

		memcpy(word, s->mem + 16 * s->probe, 16);
		off = reddn_locator_off(word[0]);
		len = reddn_locator_len(word[0]);
		if (word[1] != s->place.fp || len + 32 > c->stride || off + len > c->hdr.heap_size)
			continue;
		s->reading_record = true;
		return post_read(c, i, s->mem + 32, c->hdr.heap_off + off, len, true);
	}
	return answer(c, i, NULL);
}

static int completed(struct client *c, unsigned i)
{
	struct slot *s = &c->slots[i];
	const struct workload_get *g = &c->w->gets[s->get];
	const struct reddn_record *rec = (const void *)(s->mem + 32);

	if (!s->reading_record)
		return try_buckets(c, i);
	if (rec->key_len > c->hdr.max_key || rec->val_len > c->hdr.max_value ||
		reddn_record_sum(rec) != rec->sum) {
		/* the writer overtook this get: the record was reused */
		if (++s->retries < RETRIES)
			return read_buckets(c, i);
		errno = EBADMSG;
		return complain("a record of the table");
	}
	if (rec->key_len == g->key_len && !memcmp(rec->bytes, g->key, g->key_len))
		return answer(c, i, rec);
	s->probe++;
	s->reading_record = false;
	return try_buckets(c, i);
}

static int run(struct client *c)
{
	struct ibv_wc wc[BATCH];
	int n, r = 0;

	for (unsigned i = 0; i < c->depth && !r; i++)
		r = start(c, i);
	while (!r && c->answered < c->w->ngets) {
		n = ibv_poll_cq(c->cq, BATCH, wc);
		if (n < 0)
			return complain("polling");
		if (n == 0)
			sched_yield();
		for (int k = 0; k < n && !r; k++) {
			if (wc[k].status != IBV_WC_SUCCESS) {
				fprintf(stderr, "a READ failed: %s\n", ibv_wc_status_str(wc[k].status));
				return -EIO;
			}
			r = completed(c, (unsigned)wc[k].wr_id);
		}
	}
	return r;
}

static int connect_to(struct client *c, const char *address, const char *port)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *ai;
	struct rdma_conn_param param = {
		.initiator_depth = 16, .responder_resources = 16, .retry_count = 7, .rnr_retry_count = 7};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
	struct onesided_rep rep;
	int r = rdma_getaddrinfo(address, port, &hints, &ai);

	if (r) {
		fprintf(stderr, "%s port %s: %s\n", address, port, r > 0 ? gai_strerror(r) : strerror(errno));
		return -EINVAL;
	}
	if (rdma_create_id(NULL, &c->id, NULL, RDMA_PS_TCP) ||
		rdma_resolve_addr(c->id, NULL, ai->ai_dst_addr, 5000) || rdma_resolve_route(c->id, 5000))
		return complain("finding a way to the server");
	rdma_freeaddrinfo(ai);
	c->cq = ibv_create_cq(c->id->verbs, (int)c->depth * 2, NULL, NULL, 0);
	if (!c->cq)
		return complain("creating a CQ");
	attr.send_cq = attr.recv_cq = c->cq;
	attr.cap = (struct ibv_qp_cap){c->depth * 2, 1, 1, 1, 0};
	if (rdma_create_qp(c->id, NULL, &attr))
		return complain("creating a QP");
	if (rdma_connect(c->id, &param))
		return complain("connecting");
	if (c->id->event->param.conn.private_data_len < sizeof(rep)) {
		errno = EPROTO;
		return complain("the server's reply");
	}
	memcpy(&rep, c->id->event->param.conn.private_data, sizeof(rep));
	c->table = be64toh(rep.addr);
	c->table_size = be64toh(rep.size);
	c->rkey = be32toh(rep.rkey);
	return 0;
}

static int get_memory(struct client *c, size_t bytes)
{
	c->mem = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	if (!c->mem)
		return complain("memory");
	c->mr = ibv_reg_mr(c->id->qp->pd, c->mem, bytes, IBV_ACCESS_LOCAL_WRITE);
	return c->mr ? 0 : complain("registering memory");
}

/* The geometry is in the table's first page. */
static int read_header(struct client *c)
{
	struct ibv_wc wc;
	int n, r = get_memory(c, sizeof(c->hdr));

	if (!r)
		r = post_read(c, 0, c->mem, 0, sizeof(c->hdr), true);
	if (r)
		return r;
	while (!(n = ibv_poll_cq(c->cq, 1, &wc)))
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS) {
		errno = EIO;
		return complain("reading the table's header");
	}
	memcpy(&c->hdr, c->mem, sizeof(c->hdr));
	ibv_dereg_mr(c->mr);
	c->mr = NULL;
	free(c->mem);
	c->mem = NULL;
	if (c->hdr.magic != REDDN_TABLE_MAGIC || c->hdr.version != 1 || c->hdr.file_size > c->table_size) {
		errno = EPROTO;
		return complain("the server's table");
	}
	return 0;
}

static int make_slots(struct client *c)
{
	int r;

	c->stride = (32 + reddn_record_size(c->hdr.max_key, c->hdr.max_value) + 63) & ~(size_t)63;
	c->slots = calloc(c->depth, sizeof(*c->slots));
	if (!c->slots)
		return complain("memory");
	r = get_memory(c, c->stride * c->depth);
	for (unsigned i = 0; i < c->depth && !r; i++)
		c->slots[i].mem = c->mem + i * c->stride;
	return r;
}

static void end(struct client *c)
{
	if (c->id)
		rdma_disconnect(c->id);
	if (c->mr)
		ibv_dereg_mr(c->mr);
	if (c->id && c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->id)
		rdma_destroy_id(c->id);
	free(c->mem);
	free(c->slots);
	workload_free(c->w);
}

int main(int argc, char **argv)
{
	struct client c = {0};
	bool good;

	if (argc != 8) {
		fprintf(stderr, "usage: onesided-client ADDRESS PORT DEPTH DATA PRESENT ABSENT SEED\n");
		return 2;
	}
	c.depth = (unsigned)strtoul(argv[3], NULL, 10);
	if (c.depth < 1 || c.depth > 4096) {
		fprintf(stderr, "DEPTH %s: from 1 to 4096\n", argv[3]);
		return 2;
	}
	if (workload_load(&c.w, argv[4], strtoul(argv[5], NULL, 10), strtoul(argv[6], NULL, 10),
		    strtoull(argv[7], NULL, 10)))
		return 1;
	good = !connect_to(&c, argv[1], argv[2]) && !read_header(&c) && !make_slots(&c) && !run(&c);
	good = good && workload_report(c.w);
	end(&c);
	return good ? 0 : 1;
}
