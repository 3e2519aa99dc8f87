/* SPDX-License-Identifier: BSD-2-Clause */
/* Isolation of tenants: a queue of one PD cannot use a memory key of another, neither as lkey nor as rkey.
 */
#include "reddnd/rnic/qp.h"

#include <endian.h>
#include <poll.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum {
	PAGE = 4096,
	LOG_CQES = 4,
	WQEBBS = 64,
	DATA = 2 * PAGE, /* where the part with a key begins */
	OP_WRITE = 0x08,
	OP_READ = 0x10,
	DSCOUNT = 3,
	SIGNALLED = 0x08,
	LOCAL_PROTECTION = 0x04,
	REMOTE_ACCESS = 0x13,
};

struct party {
	struct rnic_pd *pd;
	struct rnic_block block;
	struct rnic_cq cq;
	struct rnic_qp qp;
};

static struct rnic_device *dev;
static struct rnic_arena *arena;

static void begin(struct party *p)
{
	const struct rnic_cq_attr cq = {.cqes_off = PAGE, .log_size = LOG_CQES};
	const struct rnic_qp_attr qp = {
		.wq_off = DATA + PAGE, .sq_wqebbs = WQEBBS, .db_off = RNIC_DB_BYTES, .send_cq = &p->cq};

	*p = (struct party){0};
	assert_int_equal(rnic_pd_new(&p->pd, dev, NULL), 0);
	assert_int_equal(
		rnic_block_init(&p->block, p->pd, arena, DATA + PAGE + WQEBBS * RNIC_WQEBB_BYTES, DATA, PAGE),
		0);
	assert_int_equal(rnic_cq_init(&p->cq, &p->block, &cq), 0);
	assert_int_equal(rnic_qp_init(&p->qp, &p->block, &qp), 0);
	assert_int_equal(rnic_qp_connect_self(&p->qp, 1), 0);
}

static void end(struct party *p)
{
	rnic_qp_deinit(&p->qp);
	rnic_cq_deinit(&p->cq);
	rnic_block_deinit(&p->block);
	rnic_pd_free(p->pd);
}

static void put(uint8_t *at, uint64_t v, unsigned bytes)
{
	for (unsigned i = bytes; i-- > 0; v >>= 8)
		at[i] = (uint8_t)v;
}

/* 8 bytes between the first of @local's memory and the second of @remote's: the syndrome, 0 when it was done
 */
static uint8_t copy(struct party *p, uint8_t opcode, const struct party *local, const struct party *remote)
{
	uint8_t wqe[RNIC_WQEBB_BYTES] = {[3] = opcode, [7] = DSCOUNT, [11] = SIGNALLED};
	struct rnic_cqe cqe;

	put(wqe + 16, remote->block.iova + 8, 8);
	put(wqe + 24, remote->block.rkey, 4);
	put(wqe + 32, 8, 4);
	put(wqe + 36, local->block.lkey, 4);
	put(wqe + 40, local->block.iova, 8);
	rnic_qp_post(&p->qp, wqe);
	while (!rnic_cq_poll(&p->cq, &cqe))
		poll(NULL, 0, 1);
	rnic_cq_update(&p->cq);
	return cqe.error ? cqe.syndrome : 0;
}

/* With its own keys a queue reaches its memory. With a local key (@foreign_local) or a remote key of another
 * PD it fails, and no byte has moved */
static void expect_refused(uint8_t opcode, bool foreign_local, uint8_t syndrome)
{
	struct party a, b;
	uint8_t *mine, *theirs, before[PAGE];

	begin(&a);
	begin(&b);
	mine = a.block.mem + DATA;
	theirs = b.block.mem + DATA;
	memset(mine, 'a', 16);
	memset(theirs, 'b', 16);
	memcpy(before, theirs, PAGE);
	assert_int_equal(copy(&a, opcode, &a, &a), 0);
	assert_int_equal(copy(&a, opcode, foreign_local ? &b : &a, foreign_local ? &a : &b), syndrome);
	assert_memory_equal(theirs, before, PAGE);
	assert_null(memchr(mine, 'b', PAGE));
	end(&a);
	end(&b);
}

static void test_keys(void **state)
{
	expect_refused(OP_WRITE, true, LOCAL_PROTECTION);
	expect_refused(OP_READ, true, LOCAL_PROTECTION);
	expect_refused(OP_WRITE, false, REMOTE_ACCESS);
	expect_refused(OP_READ, false, REMOTE_ACCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys)};
	int r;

	if (rnic_device_open_for_chains(&dev, "", NULL) < 0 || rnic_arena_new(&arena, 4 << 20) < 0)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	rnic_arena_free(arena);
	rnic_device_close(dev);
	return r;
}
