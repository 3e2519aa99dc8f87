/* SPDX-License-Identifier: BSD-2-Clause */
/* What the ledger keeps stays as it is; everything else in the device file goes, whatever depends on what. */
#include "reddnd/rnic/devx.h"
#include "reddnd/rnic/qp.h"
#include "reddnd/rnic/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/cmocka.h"

enum { PAGE = 4096, LOG_CQES = 4, WQEBBS = 64, ARENA = 4 << 20, SLOTS = 1024 };

struct queues {
	struct ledger_slot *slot;
	struct rnic_block block;
	struct rnic_cq cq;
	struct rnic_qp qp;
};

static struct rnic_device *dev;
static struct rnic_arena *arena;
static struct ledger *ledger;

static void make(struct queues *q, uint64_t number)
{
	const struct rnic_cq_attr cq = {.cqes_off = PAGE, .log_size = LOG_CQES};
	const struct rnic_qp_attr qp = {
		.wq_off = 2 * PAGE, .sq_wqebbs = WQEBBS, .db_off = RNIC_DB_BYTES, .send_cq = &q->cq};

	assert_int_equal(rnic_device_take_slot(dev, LEDGER_SESSION, &q->slot), 0);
	q->slot->session = (struct ledger_session){.number = number,
		.cm_id = (uint32_t)number,
		.recycled = 1,
		.depth = 16,
		.slots = 64,
		.slot_size = 64,
		.tenant = "t",
		.offload = "o"};
	ledger_set_last_session(ledger, number);
	assert_int_equal(rnic_block_init_in(q->slot, &q->block, rnic_device_pd(dev), arena,
				 2 * PAGE + WQEBBS * RNIC_WQEBB_BYTES, PAGE, PAGE, RNIC_BLOCK_LOOPBACK),
		0);
	assert_int_equal(rnic_cq_init(&q->cq, &q->block, &cq), 0);
	assert_int_equal(rnic_qp_init(&q->qp, &q->block, &qp), 0);
}

static struct ledger_view *load(void)
{
	struct ledger_view *v = NULL;
	const char *why = "";

	if (ledger_load(ledger_fd(ledger), &v, &why) != 0)
		fail_msg("%s", why);
	return v;
}

static unsigned strangers(const struct ledger_view *v)
{
	static uint32_t handles[RNIC_DEVX_LIST_MAX];
	unsigned n = 0;

	for (unsigned type = 0; type < RNIC_DEVX_TYPES; type++) {
		int found = rnic_devx_list(rnic_device_fd(dev), (enum rnic_devx_type)type, handles);

		assert_true(found >= 0);
		for (int i = 0; i < found; i++)
			n += !ledger_keeps(v, handles[i]);
	}
	return n;
}

static void sweeps(void **state)
{
	struct queues kept, ending, building, unrolled;
	struct rnic_pd *pd; /* in no slot, like an object that was made in the last moment */
	struct ledger_view *v;

	make(&kept, 1);
	ledger_live(kept.slot);
	make(&ending, 2);
	ledger_live(ending.slot);
	ledger_ending(ending.slot);
	make(&building, 3);
	make(&unrolled, 4);
	unrolled.slot->session.recycled = 0;
	ledger_live(unrolled.slot);
	assert_int_equal(rnic_pd_new(&pd, dev, NULL), 0);
	v = load();
	/* a QP, a CQ, a MR and a umem of each of three, and the PD */
	assert_true(strangers(v) >= 13);
	assert_true(rnic_sweep(rnic_device_fd(dev), v) >= 13);
	assert_int_equal(strangers(v), 0);
	assert_int_equal(rnic_sweep(rnic_device_fd(dev), v), 0);
	assert_int_equal(rnic_devx_destroy(rnic_device_fd(dev), RNIC_DEVX_OBJ, building.qp.handle), -ENOENT);
	assert_int_equal(rnic_devx_destroy(rnic_device_fd(dev), RNIC_DEVX_OBJ, unrolled.qp.handle), -ENOENT);
	assert_int_equal(rnic_qp_connect_self(&kept.qp, 1), 0);
	ledger_view_free(v);
}

/* Lists have the newest objects only. An older one is in a slot that was ending */
static void beyond_the_lists(void **state)
{
	struct ledger_slot *old = ledger_take(ledger, LEDGER_TENANT), *slot = NULL;
	struct ledger_view *v;
	struct rnic_pd *pd;
	uint32_t handle;

	assert_int_equal(rnic_pd_new(&pd, dev, old), 0);
	handle = old->object[0].handle;
	ledger_ending(old);
	for (unsigned i = 0; i < RNIC_DEVX_LIST_MAX; i++) {
		if (i % LEDGER_OBJECTS == 0) {
			slot = ledger_take(ledger, LEDGER_TENANT);
			assert_non_null(slot);
			ledger_set_name(slot->tenant.name, "many");
			ledger_live(slot);
		}
		assert_int_equal(rnic_pd_new(&pd, dev, slot), 0);
	}
	v = load();
	assert_int_equal(rnic_sweep(rnic_device_fd(dev), v), 1);
	assert_int_equal(rnic_devx_destroy(rnic_device_fd(dev), RNIC_DEVX_PD, handle), -ENOENT);
	ledger_view_free(v);
}

static void closed(void **state)
{
	struct ledger_view *v = load();

	assert_int_equal(rnic_sweep(-1, v), -EBADF);
	ledger_view_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sweeps), cmocka_unit_test(beyond_the_lists), cmocka_unit_test(closed)};

	if (ledger_new(&ledger, SLOTS, ARENA) < 0 || rnic_device_open_for_chains(&dev, "", ledger) < 0 ||
		rnic_arena_new(&arena, ARENA) < 0)
		return EXIT_FAILURE;
	/* The library still has objects that are gone: nothing is closed */
	_exit(cmocka_run_group_tests(tests, NULL, NULL));
}
