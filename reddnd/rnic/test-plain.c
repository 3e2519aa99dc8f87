/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of direct commands: what they take, and how those of a daemon before this one go on. Block, CQ and
 * QP are the test's own. */
#include "reddnd/rnic/plain.h"

#include "reddnd/rnic/plain-internal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE = 8192, RECVS = 16, SENDS = 32, CQES = 64 };

static _Alignas(4096) uint8_t memory[1 << 17];
static struct rnic_device device = {.direct = true};
static struct rnic_pd pd = {.dev = &device};
static struct rnic_plain_events events;
static struct ledger_slot slot;
static const struct rnic_plain_attr attr = {.size = SIZE,
	.recvs = {.n = RECVS, .stride = 64, .bytes = 64},
	.sends = SENDS,
	.events = &events,
	.slot = &slot};
static uint32_t record_of_cq;   /* CQEs that were given back */
static uint16_t record_of_qp;   /* WQEBBs that are posted */
static unsigned updates, rings; /* of the one, and of the other */
static enum rnic_block_access key;

int __wrap_rnic_block_init_in(struct ledger_slot *to, struct rnic_block *b, struct rnic_pd *of,
	struct rnic_arena *arena, uint64_t size, uint64_t code_off, uint64_t code_size,
	enum rnic_block_access access);
int __wrap_rnic_block_adopt(struct ledger_slot *from, struct rnic_block *b, struct rnic_pd *of,
	struct rnic_arena *arena, uint64_t size, uint64_t code_off, uint64_t code_size);
void __wrap_rnic_block_deinit(struct rnic_block *b);
int __wrap_rnic_cq_init(struct rnic_cq *cq, const struct rnic_block *b, const struct rnic_cq_attr *a);
int __wrap_rnic_qp_init(struct rnic_qp *qp, const struct rnic_block *b, const struct rnic_qp_attr *a);
void __wrap_rnic_cq_update(struct rnic_cq *cq);
void __wrap_rnic_qp_ring(struct rnic_qp *qp, uint16_t count);

int __wrap_rnic_block_init_in(struct ledger_slot *to, struct rnic_block *b, struct rnic_pd *of,
	struct rnic_arena *arena, uint64_t size, uint64_t code_off, uint64_t code_size,
	enum rnic_block_access access)
{
	key = access;
	return __wrap_rnic_block_adopt(to, b, of, arena, size, code_off, code_size);
}

int __wrap_rnic_block_adopt(struct ledger_slot *from, struct rnic_block *b, struct rnic_pd *of,
	struct rnic_arena *arena, uint64_t size, uint64_t code_off, uint64_t code_size)
{
	(void)arena;
	assert_ptr_equal(from, &slot);
	assert_true(size <= sizeof(memory));
	assert_int_equal(code_off, 0);
	assert_int_equal(code_size, SIZE);
	*b = (struct rnic_block){.pd = of, .mem = memory, .size = size};
	return 0;
}

void __wrap_rnic_block_deinit(struct rnic_block *b)
{
	(void)b;
}

int __wrap_rnic_cq_init(struct rnic_cq *cq, const struct rnic_block *b, const struct rnic_cq_attr *a)
{
	assert_int_equal(1 << a->log_size, CQES);
	*cq = (struct rnic_cq){.cqes = b->mem + a->cqes_off, .consumer = record_of_cq};
	return 0;
}

int __wrap_rnic_qp_init(struct rnic_qp *qp, const struct rnic_block *b, const struct rnic_qp_attr *a)
{
	assert_int_equal(a->sq_wqebbs, SENDS);
	*qp = (struct rnic_qp){.rq = b->mem + a->wq_off,
		.sq = b->mem + a->wq_off + (size_t)a->rq_entries * a->rq_stride,
		.sq_posted = record_of_qp};
	return 0;
}

void __wrap_rnic_cq_update(struct rnic_cq *cq)
{
	record_of_cq = cq->consumer;
	updates++;
}

void __wrap_rnic_qp_ring(struct rnic_qp *qp, uint16_t count)
{
	qp->sq_posted = record_of_qp = count;
	rings++;
}

static int setup(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	record_of_cq = 100;
	record_of_qp = 7;
	updates = rings = 0;
	return 0;
}

static struct rnic_plain *adopted(uint32_t completions, uint16_t sends)
{
	struct rnic_plain *q;

	assert_int_equal(rnic_plain_adopt(&q, &pd, NULL, &attr,
				 &(struct rnic_plain_position){.completions = completions, .sends = sends}),
		0);
	assert_int_equal(updates + rings, 0); /* till it goes on */
	return q;
}

static void refused(uint32_t completions, uint16_t sends)
{
	const struct rnic_plain_position at = {.completions = completions, .sends = sends};
	struct rnic_plain *q;

	assert_int_equal(rnic_plain_adopt(&q, &pd, NULL, &attr, &at), -EBADMSG);
	assert_int_equal(updates + rings, 0);
}

/* ---- tests ---- */

/* Verbs make theirs elsewhere */
static void bytes(void **state)
{
	static const struct rnic_device other;

	(void)state;
	assert_int_equal(rnic_plain_bytes(&other, &attr), SIZE);
	assert_true(rnic_plain_bytes(&device, &attr) >= SIZE + RECVS * 16 + SENDS * 64 + CQES * 64);
}

static void local_key(void **state)
{
	struct rnic_plain *q;

	(void)state;
	key = RNIC_BLOCK_LOOPBACK;
	assert_int_equal(rnic_plain_new(&q, &pd, NULL, &attr), 0);
	assert_int_equal(key, RNIC_BLOCK_LOCAL);
	rnic_plain_forget(q);
}

/* What was added before the doorbell record was written is posted, with a completion */
static void not_posted(void **state)
{
	struct rnic_plain *q = adopted(110, 9);

	(void)state;
	rnic_plain_go_on(q, 5);
	assert_int_equal(record_of_cq, 110);
	assert_int_equal(record_of_qp, 9);
	assert_int_equal(rings, 1);
	assert_int_equal(plain_direct_qp(q)->sq[8 * WQE_BB + WQE_FLAGS] & WQE_SIGNALLED, WQE_SIGNALLED);
	rnic_plain_forget(q);
}

/* The daemon may have died before it rang, whatever the low bits of the number are; but a queue in which
 * nothing was is not rung for */
static void posted(void **state)
{
	static const struct {
		uint64_t number;
		unsigned rings;
	} cases[] = {{5, 1}, {UINT64_C(1) << 32, 1}, {0, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rnic_plain *q;

		setup(NULL);
		q = adopted(100, 7);
		rnic_plain_go_on(q, cases[i].number);
		assert_int_equal(rings, cases[i].rings);
		assert_int_equal(record_of_qp, 7);
		rnic_plain_forget(q);
	}
}

static void impossible(void **state)
{
	(void)state;
	refused(100 + CQES + 1, 7); /* CQEs that had no room */
	refused(99, 7);             /* fewer than were given back */
	refused(100, 7 + SENDS + 1);
	refused(100, 6); /* posted before they were added */
	rnic_plain_forget(adopted(100 + CQES, 7 + SENDS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(bytes, setup),
		cmocka_unit_test_setup(local_key, setup),
		cmocka_unit_test_setup(not_posted, setup),
		cmocka_unit_test_setup(posted, setup),
		cmocka_unit_test_setup(impossible, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
