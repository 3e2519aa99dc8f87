/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wqe.c - "fuzz-wqe APP SEED": an application whose queues are full of nonsense. It writes into the memory of
 * SQs, RQs, an SRQ and CQs and into their doorbell records, behind the back of libibverbs, and rings. Half of
 * the WQEs make sense but for a bit; addresses and keys are its own, those of the other such application, and
 * those of the bystander. A queue that has failed is connected again. Runs until SIGTERM.
 */
#include "softcx/fuzz/random.h"
#include "softcx/fuzz/shared.h"
#include "softcx/fuzz/verbs.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { QUEUES = 6, CQS = 2, MEMORY = 65536, WQEBB = 64, PAUSE_US = 300 };

struct queue {
	struct ibv_qp *qp;
	struct mlx5dv_qp dv;
	uint32_t dest;
	uint16_t pi, rpi;
};

static struct {
	unsigned app;
	struct fuzz_shared *shared;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq[CQS];
	struct mlx5dv_cq dvcq[CQS];
	uint32_t ci[CQS];
	struct ibv_srq *srq;
	struct mlx5dv_srq dvsrq;
	uint16_t srq_pi;
	struct queue q[QUEUES];
	uint64_t rng;
} me;

static uint8_t memory[MEMORY] __attribute__((aligned(4096)));
static volatile sig_atomic_t stopped;

static void on_stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static uint32_t pick(uint32_t n)
{
	return fuzz_pick(&me.rng, n);
}

static void put32(uint8_t *p, uint64_t v)
{
	uint32_t be = htobe32((uint32_t)v);

	memcpy(p, &be, 4);
}

static void put64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, 8);
}

/** A place in somebody's memory: mostly our own. */
static void address(uint8_t *va, uint8_t *key)
{
	struct fuzz_place p = {(uintptr_t)memory, me.mr->rkey, 0};
	unsigned who = pick(12);

	if (who == 0)
		p = me.shared->bystander;
	else if (who == 1)
		p = me.shared->app[!me.app];
	else if (who == 2)
		p.key += (pick(9) - 4) << 8;
	if (va)
		put64(va, p.va + (pick(30) ? 8 * pick(MEMORY / 16) : fuzz_word(&me.rng)));
	put32(key, pick(60) ? p.key : fuzz_word(&me.rng));
}

static void data_segment(uint8_t *seg)
{
	put32(seg, pick(10) ? pick(200) : pick(2) ? 0x80000000 | pick(100) : fuzz_word(&me.rng));
	address(seg + 8, seg + 4);
}

static uint32_t queue_number(void)
{
	switch (pick(8)) {
	case 0:
		return me.shared->bystander.qpn;
	case 1:
		return me.shared->app[!me.app].qpn;
	case 2:
		return me.dvcq[pick(CQS)].cqn;
	case 3:
		return (uint32_t)fuzz_word(&me.rng);
	default:
		return me.q[pick(QUEUES)].qp->qp_num;
	}
}

static void segment(uint8_t *seg, uint8_t opcode, unsigned i)
{
	if ((opcode == 0xf || opcode == 0x16 || opcode == 0x17) && pick(6)) { /* WAIT, SEND_EN, RECV_EN */
		put32(seg + 8, pick(3) ? pick(40) : fuzz_word(&me.rng));
		put32(seg + 12, queue_number());
	} else if (i == 1 && opcode >= 0x8 && opcode != 0xa && opcode != 0xb &&
		   pick(10)) { /* remote address */
		address(seg, seg + 8);
	} else if (i == 2 && (opcode == 0x11 || opcode == 0x12) && pick(10)) { /* atomic operands */
		put64(seg, fuzz_word(&me.rng));
		put64(seg + 8, fuzz_word(&me.rng));
	} else if (pick(8)) {
		data_segment(seg);
	} else {
		for (unsigned k = 0; k < 16; k++)
			seg[k] = (uint8_t)fuzz_random(&me.rng);
	}
}

static void put_wqe(struct queue *q)
{
	static const uint8_t opcodes[] = {0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x0e, 0x0f, 0x10, 0x10, 0x11,
		0x12, 0x14, 0x15, 0x16, 0x17, 0x18, 0x1b, 0x1f, 0x25, 0x26, 0x2c};
	uint32_t ring = q->dv.sq.wqe_cnt * WQEBB, at = (uint32_t)q->pi * WQEBB;
	uint8_t op = pick(12) ? opcodes[pick(sizeof(opcodes))] : (uint8_t)pick(256);
	unsigned ds = pick(12) ? 1 + pick(4) : pick(64);
	uint8_t *base = q->dv.sq.buf, *ctrl = base + at % ring;

	put32(ctrl, (uint32_t)(pick(16) ? 0 : pick(256)) << 24 |
			    (uint32_t)(pick(40) ? q->pi : pick(65536)) << 8 | op);
	put32(ctrl + 4, (pick(40) ? q->qp->qp_num : queue_number()) << 8 | ds);
	put32(ctrl + 8, pick(256));
	put32(ctrl + 12, fuzz_word(&me.rng));
	for (unsigned i = 1; i < ds; i++)
		segment(base + (at + i * 16) % ring, op, i);
	if (pick(12) == 0)
		ctrl[pick(WQEBB)] ^= (uint8_t)(1u << pick(8));
	q->pi = (uint16_t)(q->pi + (ds + 3) / 4 + (ds == 0));
}

static void put_recv(struct queue *q)
{
	uint8_t *w = (uint8_t *)q->dv.rq.buf + (size_t)(q->rpi & (q->dv.rq.wqe_cnt - 1)) * q->dv.rq.stride;

	if (!q->dv.rq.wqe_cnt)
		return;
	for (unsigned i = 0; i + 16 <= q->dv.rq.stride; i += 16)
		data_segment(w + i);
	q->rpi++;
}

static void put_srq(void)
{
	uint32_t slots = me.dvsrq.tail + 1;
	uint8_t *w = (uint8_t *)me.dvsrq.buf + (size_t)pick(slots) * me.dvsrq.stride;

	for (unsigned i = 16; i + 16 <= me.dvsrq.stride; i += 16)
		data_segment(w + i);
	if (pick(3) == 0)
		put32(w, pick(2) ? pick(slots) : fuzz_word(&me.rng)); /* next_wqe_index */
	me.srq_pi = (uint16_t)(me.srq_pi + pick(3));
	put32((uint8_t *)me.dvsrq.dbrec, pick(30) ? me.srq_pi : fuzz_word(&me.rng));
}

/** Consumes the CQEs. Sometimes writes a wrong index, or nonsense over the CQEs. */
static void drain(unsigned i)
{
	const struct mlx5dv_cq *cq = &me.dvcq[i];
	uint8_t *base = cq->buf;

	for (unsigned n = 0; n < cq->cqe_cnt; n++) {
		uint8_t own = base[(size_t)(me.ci[i] & (cq->cqe_cnt - 1)) * cq->cqe_size + cq->cqe_size - 1];

		if (own >> 4 == 0xf || (own & 1) != !!(me.ci[i] & cq->cqe_cnt))
			break;
		me.ci[i]++;
	}
	put32((uint8_t *)cq->dbrec, pick(300) ? me.ci[i] & 0xffffff : fuzz_word(&me.rng));
	if (pick(20) == 0)
		put32((uint8_t *)cq->dbrec + 4, fuzz_word(&me.rng));
}

static void ring(struct queue *q)
{
	volatile uint64_t *bell =
		(volatile uint64_t *)((uint8_t *)q->dv.bf.reg + (pick(2) ? q->dv.bf.size : 0));
	uint8_t first[8];

	put32((uint8_t *)q->dv.dbrec, pick(40) ? q->rpi : fuzz_word(&me.rng));
	put32((uint8_t *)q->dv.dbrec + 4, pick(40) ? q->pi : fuzz_word(&me.rng));
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	put32(first, fuzz_word(&me.rng));
	put32(first + 4, (pick(20) ? q->qp->qp_num : queue_number()) << 8 | pick(64));
	*bell = *(uint64_t *)(void *)first;
}

static void reconnect(struct queue *q)
{
	uint32_t dest = pick(20) ? q->dest : queue_number();

	q->pi = q->rpi = 0;
	memset((void *)(uintptr_t)q->dv.dbrec, 0, 8);
	/* a refusal is an answer */
	(void)fuzz_connect(q->qp, dest);
}

static void one_case(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < QUEUES; i++) {
		struct queue *q = &me.q[i];
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;

		if (pick(8) == 0 && ibv_query_qp(q->qp, &attr, IBV_QP_STATE, &init) == 0 &&
			attr.qp_state != IBV_QPS_RTS)
			reconnect(q);
		for (unsigned k = pick(5); k; k--, n++)
			put_wqe(q);
		for (unsigned k = pick(4); k; k--)
			put_recv(q);
		ring(q);
	}
	put_srq();
	for (unsigned i = 0; i < CQS; i++)
		drain(i);
	__atomic_add_fetch(&me.shared->app_wqes[me.app], n, __ATOMIC_RELAXED);
}

static bool make_queue(unsigned i)
{
	static const enum ibv_qp_type types[QUEUES] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RC, IBV_QPT_RC};
	struct queue *q = &me.q[i];
	struct ibv_qp_init_attr init = {.qp_type = types[i],
		.send_cq = me.cq[i % CQS],
		.recv_cq = me.cq[!(i % CQS)],
		.srq = i == 4 ? me.srq : NULL,
		.cap = {.max_send_wr = 32, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 3}};
	struct mlx5dv_obj obj;

	q->qp = ibv_create_qp(me.pd, &init);
	obj.qp.in = q->qp;
	obj.qp.out = &q->dv;
	return q->qp && mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP) == 0;
}

static bool make_all(void)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			   IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 16, .max_sge = 3}};
	struct ibv_context *ctx = fuzz_device();
	struct mlx5dv_obj obj;

	me.pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	me.mr = me.pd ? ibv_reg_mr(me.pd, memory, MEMORY, access) : NULL;
	me.srq = me.mr ? ibv_create_srq(me.pd, &srq) : NULL;
	if (!me.srq)
		return false;
	obj.srq.in = me.srq;
	obj.srq.out = &me.dvsrq;
	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ) != 0)
		return false;
	for (unsigned i = 0; i < CQS; i++) {
		me.cq[i] = ibv_create_cq(ctx, 1023, NULL, NULL, 0);
		obj.cq.in = me.cq[i];
		obj.cq.out = &me.dvcq[i];
		if (!me.cq[i] || mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) != 0)
			return false;
	}
	for (unsigned i = 0; i < QUEUES; i++)
		if (!make_queue(i))
			return false;
	return true;
}

/** 0 with 1; the others with themselves, but for the last, which is connected to the other application's. */
static void connect_all(void)
{
	me.shared->app[me.app] =
		(struct fuzz_place){(uintptr_t)memory, me.mr->rkey, me.q[QUEUES - 1].qp->qp_num};
	for (int i = 0; i < 200 && !me.shared->app[!me.app].qpn; i++)
		usleep(10000);
	for (unsigned i = 0; i < QUEUES; i++) {
		me.q[i].dest = me.q[i < 2 ? !i : i].qp->qp_num;
		if (i == QUEUES - 1)
			me.q[i].dest = me.shared->app[!me.app].qpn;
		(void)fuzz_connect(me.q[i].qp, me.q[i].dest);
	}
}

int main(int argc, char **argv)
{
	const struct sigaction stop = {.sa_handler = on_stop};
	uint64_t seed;

	me.shared = fuzz_shared_map();
	if (argc != 3 || !me.shared)
		return 2;
	me.app = argv[1][0] == '1';
	seed = strtoull(argv[2], NULL, 0);
	sigaction(SIGTERM, &stop, NULL);
	if (!make_all()) {
		perror("fuzz-wqe: no queues");
		return 1;
	}
	connect_all();
	while (!stopped) {
		uint64_t number = __atomic_add_fetch(&me.shared->app_case[me.app], 1, __ATOMIC_RELAXED);

		me.rng = fuzz_start(seed, number, me.app);
		one_case();
		usleep(PAUSE_US);
	}
	return 0;
}
