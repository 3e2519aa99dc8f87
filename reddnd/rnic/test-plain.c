/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of direct commands: what they take. Block, CQ and QP are the test's own. */
#include "reddnd/rnic/plain.h"

#include "reddnd/rnic/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

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
static enum rnic_block_access key;

int __wrap_rnic_block_init_in(struct ledger_slot *to, struct rnic_block *b, struct rnic_pd *of,
	struct rnic_arena *arena, uint64_t size, uint64_t code_off, uint64_t code_size,
	enum rnic_block_access access);
void __wrap_rnic_block_deinit(struct rnic_block *b);
int __wrap_rnic_cq_init(struct rnic_cq *cq, const struct rnic_block *b, const struct rnic_cq_attr *a);
int __wrap_rnic_qp_init(struct rnic_qp *qp, const struct rnic_block *b, const struct rnic_qp_attr *a);
int __wrap_rnic_qp_deinit(struct rnic_qp *qp);
void __wrap_rnic_cq_deinit(struct rnic_cq *cq);

int __wrap_rnic_block_init_in(struct ledger_slot *to, struct rnic_block *b, struct rnic_pd *of,
	struct rnic_arena *arena, uint64_t size, uint64_t code_off, uint64_t code_size,
	enum rnic_block_access access)
{
	key = access;
	assert_ptr_equal(to, &slot);
	assert_true(size <= sizeof(memory));
	assert_int_equal(code_off, 0);
	assert_int_equal(code_size, SIZE);
	*b = (struct rnic_block){.pd = of, .mem = memory, .size = size};
	return 0;
}

void __wrap_rnic_block_deinit(struct rnic_block *b)
{
}

int __wrap_rnic_cq_init(struct rnic_cq *cq, const struct rnic_block *b, const struct rnic_cq_attr *a)
{
	assert_int_equal(1 << a->log_size, CQES);
	*cq = (struct rnic_cq){.cqes = b->mem + a->cqes_off};
	return 0;
}

int __wrap_rnic_qp_init(struct rnic_qp *qp, const struct rnic_block *b, const struct rnic_qp_attr *a)
{
	assert_int_equal(a->sq_wqebbs, SENDS);
	*qp = (struct rnic_qp){
		.rq = b->mem + a->wq_off, .sq = b->mem + a->wq_off + (size_t)a->rq_entries * a->rq_stride};
	return 0;
}

int __wrap_rnic_qp_deinit(struct rnic_qp *qp)
{
	return 0;
}

void __wrap_rnic_cq_deinit(struct rnic_cq *cq)
{
}

/* ---- tests ---- */

/* Verbs make theirs elsewhere */
static void bytes(void **state)
{
	static const struct rnic_device other;

	assert_int_equal(rnic_plain_bytes(&other, &attr), SIZE);
	assert_true(rnic_plain_bytes(&device, &attr) >= SIZE + RECVS * 16 + SENDS * 64 + CQES * 64);
}

static void local_key(void **state)
{
	struct rnic_plain *q;

	key = RNIC_BLOCK_LOOPBACK;
	assert_int_equal(rnic_plain_new(&q, &pd, NULL, &attr), 0);
	assert_int_equal(key, RNIC_BLOCK_LOCAL);
	rnic_plain_free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes),
		cmocka_unit_test(local_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
