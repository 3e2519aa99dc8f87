/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues, RECVs and doorbells full of nonsense, mixed with enough sense to get past the first check. The
 * device must survive it and touch nothing that no key covers; the sanitizers see to the rest.
 */
#include "softcx/hw/test-rig.h"

#include <string.h>

enum { QUEUES = 4, ROUNDS = 60, SEEDS = 60, GUARD = 4096 };

static uint64_t state;

static uint32_t rnd(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % n);
}

struct zoo {
	struct rig rig;
	struct rig_cq cq[2];
	struct rig_qp q[QUEUES];
	uint8_t *data; /* under a key of its own, between guards */
	uint32_t key;
};

static uint64_t address(struct zoo *z)
{
	return (uintptr_t)z->data + rnd(256) - (rnd(8) ? 0 : 200);
}

static uint32_t number(struct zoo *z)
{
	switch (rnd(6)) {
	case 0:
		return hw_cqn(z->cq[rnd(2)].cq);
	case 1:
		return rnd(1 << 24);
	default:
		return hw_qpn(z->q[rnd(QUEUES)].qp);
	}
}

static void segment(struct zoo *z, uint8_t *seg)
{
	put32(seg, rnd(8) ? rnd(64) : rnd(2) ? WQE_INLINE | rnd(90) : rnd(UINT32_MAX));
	put32(seg + 4, rnd(40) ? z->key : rnd(UINT32_MAX));
	put64(seg + 8, address(z));
}

static void wild_wqe(struct zoo *z, struct rig_qp *q)
{
	static const uint8_t ops[] = {
		0, 1, 8, 9, 0xa, 0xb, 0xf, 0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x1b, 0x25};
	uint8_t ds = rnd(8) ? (uint8_t)(1 + rnd(6)) : (uint8_t)rnd(64), op = ops[rnd(sizeof(ops))];
	uint16_t at = q->pi;

	wqe_raw(q, op, rnd(4) ? 0 : (uint8_t)(8 + rnd(2)), ds, (uint8_t)rnd(256), rnd(UINT32_MAX));
	if (!ds)
		q->pi++;
	for (unsigned i = 1; i < ds; i++) {
		uint8_t *seg = q->sq + ((at * 64u + i * 16) & (q->wqebbs * 64 - 1));

		switch (rnd(op == 0xf || op > 0x15 ? 8 : 3)) {
		case 0:
			put64(seg, address(z));
			put32(seg + 8, rnd(8) ? z->key : rnd(UINT32_MAX));
			put32(seg + 12, 0);
			break;
		case 1:
		case 2:
			segment(z, seg);
			break;
		default:
			put32(seg + 8, rnd(3) ? (uint32_t)q->pi + rnd(20) : rnd(UINT32_MAX));
			put32(seg + 12, number(z));
		}
	}
}

static uint8_t *inside(struct zoo *z)
{
	return z->data + 8 * rnd(48);
}

/* A WQE that makes sense, but for one byte now and then. */
static void wqe(struct zoo *z, struct rig_qp *q)
{
	static const uint8_t sends[] = {WQE_OP_SEND, WQE_OP_SEND_IMM, WQE_OP_SEND_INVAL};
	static const uint8_t rdmas[] = {WQE_OP_WRITE, WQE_OP_WRITE_IMM, WQE_OP_READ, WQE_OP_READ};
	uint8_t f = (uint8_t)rnd(256), *w;
	struct rig_cq *cq = &z->cq[rnd(2)];
	uint32_t whole = z->rig.key;

	z->rig.key = z->key; /* the narrow one */
	switch (rnd(8)) {
	case 0:
		w = wqe_send(q, sends[rnd(20) ? rnd(2) : 2], inside(z), rnd(100), f, rnd(UINT32_MAX));
		break;
	case 1:
	case 2:
		w = wqe_rdma(q, rdmas[rnd(4)], inside(z), rnd(100), inside(z), f, rnd(UINT32_MAX));
		break;
	case 3:
		w = wqe_atomic(
			q, rnd(2) ? WQE_OP_CAS : WQE_OP_FETCH_ADD, inside(z), inside(z), rnd(9), rnd(9), f);
		break;
	case 4:
		w = wqe_masked_cas8(q, inside(z), inside(z), rnd(9), rnd(9), rnd(UINT32_MAX), rnd(2), f);
		break;
	case 5:
		w = wqe_wait(q, hw_cqn(cq->cq), hw_cq_producer(cq->cq) - 2 + rnd(3), f);
		break;
	case 6:
		w = wqe_enable(
			q, rnd(2) ? WQE_OP_SEND_EN : WQE_OP_RECV_EN, hw_qpn(z->q[3].qp), z->q[3].pi, f);
		break;
	default:
		w = wqe_nop(q, (uint8_t)(1 + rnd(8)), f);
	}
	z->rig.key = whole;
	if (rnd(10) == 0)
		w[rnd(64)] ^= (uint8_t)(1 << rnd(8));
}

static void recv_wqe(struct zoo *z, struct rig_qp *q)
{
	uint8_t *w = q->rq + (size_t)(q->rpi & (q->rq_wqes - 1)) * 64;

	for (unsigned i = 0; i < 4; i++)
		segment(z, w + 16 * i);
	q->rpi++;
	q->db[0] = htobe32(rnd(50) ? q->rpi : rnd(UINT32_MAX));
}

static void reconnect(struct zoo *z, unsigned i)
{
	struct rig_qp *q = &z->q[i];

	rig_qp_to(q, HW_RST);
	q->pi = q->rpi = 0;
	q->db[0] = q->db[1] = 0;
	rig_qp_connect_to(
		q, hw_qpn(z->q[i < 2 ? !i : i].qp), NULL); /* 0 with 1, the others with themselves */
}

static void open_zoo(struct zoo *z, uint64_t seed)
{
	struct hw_config cfg = {.seed = seed, .lenient = seed % 4 == 3};
	struct hw_cq_attr attr = {.log_size = 5, .oi = seed % 3 != 0};
	struct hw_mkey_attr key = {.len = 512, .access = 15};

	state = seed;
	rig_open(&z->rig, &cfg);
	z->data = (uint8_t *)rig_alloc(&z->rig, 2 * GUARD + 512) + GUARD;
	memset(z->data - GUARD, 0xee, 2 * GUARD + 512);
	key.pdn = z->rig.pdn;
	key.mem = &z->rig.mem;
	key.iova = (uintptr_t)z->data;
	key.mem_off = rig_off(&z->rig, z->data);
	assert_int_equal(hw_mkey_create(z->rig.dev, &key, &z->key), 0);
	for (int i = 0; i < 2; i++)
		rig_cq_new_attr(&z->rig, &z->cq[i], attr);
	for (unsigned i = 0; i < QUEUES; i++) {
		struct rig_opt o = {.managed = i == 3,
			.managed_recv = i == 3,
			.wqebbs = i == 1 ? 16 : 0,
			.cs_req = 0x11,
			.cs_res = 1};

		rig_qp_new_with(&z->rig, &z->q[i], &z->cq[i & 1], &z->cq[!(i & 1)], o);
	}
	for (unsigned i = 0; i < QUEUES; i++)
		reconnect(z, i);
}

static void nonsense(void **unused)
{
	uint64_t done = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct zoo z;
		struct hw_counts c;

		open_zoo(&z, seed);
		for (unsigned round = 0; round < ROUNDS; round++) {
			for (unsigned i = 0; i < QUEUES; i++) {
				struct rig_qp *q = &z.q[i];

				if (hw_qp_state(q->qp) != HW_RTS)
					reconnect(&z, i);
				for (unsigned n = rnd(6); n; n--)
					rnd(20) ? wqe(&z, q) : wild_wqe(&z, q);
				for (unsigned n = rnd(4); n; n--)
					recv_wqe(&z, q);
				rig_ring(q);
				if (rnd(100) == 0)
					q->db[1] = htobe32(rnd(UINT32_MAX));
			}
			for (unsigned n = 0; n < 20 && hw_poll(z.rig.dev); n++)
				;
		}
		for (unsigned i = 0; i < GUARD; i++) {
			assert_int_equal(z.data[-1 - (int)i], 0xee);
			assert_int_equal(z.data[512 + i], 0xee);
		}
		hw_counts(z.rig.dev, &c);
		done += c.wqes;
		for (unsigned i = 0; i < QUEUES; i++)
			rig_destroy(&z.q[i]);
		for (int i = 0; i < 2; i++)
			assert_int_equal(hw_cq_destroy(z.rig.dev, z.cq[i].cq), 0);
		assert_int_equal(hw_mkey_destroy(z.rig.dev, z.key), 0);
		rig_close(&z.rig);
	}
	print_message("%llu WQEs were good\n", (unsigned long long)done);
	assert_true(done > SEEDS * ROUNDS / 2); /* enough of them are executed, not refused */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
