/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which queue has the next turn: shares, rest, passes that end for software; and that short turns do not hide
 * a missing fence.
 */
#include "softcx/hw/dev.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/test-rig.h"
#include "softcx/hw/turns.h"

#include <string.h>

enum { SEEDS = 200, RING = 1024 };
enum { WRITE = 3 }; /* segments */

/* Queues connected to themselves. The CQ of the first one is its own. */
enum { QUEUES = 3, MEM = 1 << 18 };
struct crowd {
	struct rig rig;
	struct rig_cq one, others;
	struct rig_qp q[QUEUES];
	uint8_t *mem;
};

static void open_crowd(struct crowd *c, struct hw_config cfg)
{
	rig_open(&c->rig, &cfg);
	rig_cq_new(&c->rig, &c->one, 6);
	rig_cq_new(&c->rig, &c->others, 6);
	for (int i = 0; i < QUEUES; i++) {
		struct rig_cq *cq = i ? &c->others : &c->one;

		rig_qp_new_with(&c->rig, &c->q[i], cq, cq, (struct rig_opt){.wqebbs = RING});
		rig_connect(&c->q[i], &c->q[i]);
	}
	c->mem = rig_alloc(&c->rig, MEM);
}

static void close_crowd(struct crowd *c)
{
	rig_run(&c->rig);
	for (int i = 0; i < QUEUES; i++)
		rig_destroy(&c->q[i]);
	assert_int_equal(hw_cq_destroy(c->rig.dev, c->one.cq), 0);
	assert_int_equal(hw_cq_destroy(c->rig.dev, c->others.cq), 0);
	rig_close(&c->rig);
}

/* Posts @n WRITEs of @len bytes. */
static void post(struct crowd *c, int i, unsigned n, uint32_t len)
{
	while (n--)
		wqe_rdma(&c->q[i], WQE_OP_WRITE, c->mem, len, c->mem + MEM / 2, 0, 0);
	rig_ring(&c->q[i]);
}

/* One WRITE and its CQE. Returns the cost of what others execute from the ring to the CQE. */
static uint64_t ask(struct crowd *c)
{
	const uint64_t from = c->rig.dev->cost;

	wqe_rdma(&c->q[0], WQE_OP_WRITE, c->mem, 8, c->mem + 8, SIG, 0);
	rig_ring(&c->q[0]);
	while (!rig_cq_next(&c->one))
		assert_true(hw_poll(c->rig.dev));
	return c->rig.dev->cost - from - WRITE;
}

static void rested_queues_are_first(void **state)
{
	struct crowd c;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		open_crowd(&c, (struct hw_config){.seed = seed, .pass = 1});
		post(&c, 1, 200, 8);
		post(&c, 2, 200, 8);
		for (int i = 0; i < 20; i++)
			hw_poll(c.rig.dev);
		assert_in_range(ask(&c), 0, HW_SHARE / 2);
		assert_int_not_equal(c.q[1].qp->sq_ci, 200);
		close_crowd(&c);
	}
}

/* Of queues that always go on each has the same cost executed, whether by many WQEs or by much data. */
static void shares_are_equal(void **state)
{
	struct crowd c;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint64_t low = UINT64_MAX, high = 0;

		open_crowd(&c, (struct hw_config){.seed = seed, .lenient = seed % 2, .pass = 32});
		post(&c, 0, 500, 8);
		post(&c, 1, 500, 1024);
		post(&c, 2, 60, 8192);
		while (c.rig.dev->cost < 3000)
			hw_poll(c.rig.dev);
		for (int i = 0; i < QUEUES; i++) {
			const uint64_t account = c.q[i].qp->account;

			low = account < low ? account : low;
			high = account > high ? account : high;
		}
		assert_in_range(high - low, 0, 3 * HW_SHARE);
		close_crowd(&c);
	}
}

/* What queue @i has executed, of WRITEs of @len bytes. Its account is no less when it has got less */
static uint64_t executed(const struct crowd *c, int i, uint32_t len)
{
	const struct hw_qp *qp = c->q[i].qp;

	return qp->sq_ci * (uint64_t)(WRITE + len / HW_DATA_UNIT) + qp->moved / HW_DATA_UNIT;
}

/* Not beyond one segment for each queue, and what the seed serves out of turn */
static void long_messages_have_no_larger_share(void **state)
{
	struct crowd c;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		const uint32_t len = seed % 4 < 2 ? 1 << 16 : 20000;
		uint64_t small, large, from;

		open_crowd(&c, (struct hw_config){.seed = seed, .lenient = seed % 2, .pass = 32});
		post(&c, 0, 1000, 8);
		while (!c.q[0].qp->sq_pi)
			hw_poll(c.rig.dev);
		post(&c, 1, 60, len);
		while (!c.q[1].qp->sq_pi)
			hw_poll(c.rig.dev);
		small = executed(&c, 0, 8);
		large = executed(&c, 1, len);
		from = c.rig.dev->cost;
		while (c.rig.dev->cost < from + 4000)
			hw_poll(c.rig.dev);
		small = executed(&c, 0, 8) - small;
		large = executed(&c, 1, len) - large;
		assert_in_range(large * 100 / small, 95, 105);
		close_crowd(&c);
	}
}

/* A queue that was idle has no more than the others from then on. */
static void rest_is_not_saved(void **state)
{
	struct crowd c;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint16_t before;

		open_crowd(&c, (struct hw_config){.seed = seed, .pass = 32});
		post(&c, 1, 800, 8);
		while (c.rig.dev->cost < 1600)
			hw_poll(c.rig.dev);
		before = c.q[1].qp->sq_ci;
		post(&c, 2, 800, 8);
		while (c.q[2].qp->sq_ci < 200)
			hw_poll(c.rig.dev);
		assert_in_range(c.q[1].qp->sq_ci - before, 150, 250);
		close_crowd(&c);
	}
}

/* A queue with much to do is not kept waiting by one that asks for little, again and again. */
static void nobody_starves(void **state)
{
	struct crowd c;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint64_t before;

		open_crowd(&c, (struct hw_config){.seed = seed, .pass = 1});
		post(&c, 1, 800, 8);
		hw_poll(c.rig.dev);
		before = c.q[1].qp->account;
		for (int i = 0; i < 100; i++)
			ask(&c);
		assert_true(c.q[1].qp->account - before >= 100 * WRITE - 2 * HW_SHARE);
		close_crowd(&c);
	}
}

/* ---- passes that end for software ------------------------------------------------------------ */

/* Whether a pass ends before a long queue is through, when the first queue executes what is posted there. */
static bool ends_early(struct crowd *c)
{
	bool ended;

	post(c, 1, 200, 8);
	rig_ring(&c->q[0]);
	ended = hw_poll(c->rig.dev) == HW_PASS_ANSWERED;
	assert_int_equal(ended, c->q[1].qp->sq_ci != c->q[1].qp->sq_pi);
	rig_run(&c->rig);
	return ended;
}

static void passes_end_for_who_waits(void **state)
{
	struct crowd c;

	open_crowd(&c, (struct hw_config){.lenient = true});
	for (int i = 0; i < 3; i++) {
		wqe_rdma(&c.q[0], WQE_OP_WRITE, c.mem, 8, c.mem + 8, SIG, 0);
		assert_true(ends_early(&c));
		assert_int_equal(rig_cq_count(&c.one), 1);
	}
	/* There is more to come: the CQE is that of the first */
	wqe_rdma(&c.q[0], WQE_OP_WRITE, c.mem, 8, c.mem + 8, SIG, 0);
	wqe_rdma(&c.q[0], WQE_OP_WRITE, c.mem, 8, c.mem + 8, 0, 0);
	assert_false(ends_early(&c));
	/* Software has not taken that CQE: it is busy */
	wqe_rdma(&c.q[0], WQE_OP_WRITE, c.mem, 8, c.mem + 8, SIG, 0);
	assert_false(ends_early(&c));
	assert_int_equal(rig_cq_count(&c.one), 2);
	wqe_rdma(&c.q[0], WQE_OP_WRITE, c.mem, 8, c.mem + 8, SIG, 0);
	assert_true(ends_early(&c));
	close_crowd(&c);
}

/* A client sends two requests; the first reply is no reason to end a pass, the second is. */
static void passes_end_for_the_last_reply(void **state)
{
	struct rig_qp *client, *server;
	struct crowd c;

	open_crowd(&c, (struct hw_config){.lenient = true});
	client = &c.q[0];
	server = &c.q[2];
	rig_qp_to(client, HW_RST);
	rig_qp_to(server, HW_RST);
	client->pi = server->pi = 0;
	rig_connect(client, server);
	for (int i = 0; i < 2; i++) {
		rig_recv(client, 1, c.mem, 8);
		rig_recv(server, 1, c.mem, 8);
		wqe_send(client, WQE_OP_SEND, c.mem, 8, 0, 0);
	}
	rig_ring(client);
	rig_run(&c.rig);
	assert_int_equal(rig_cq_count(&c.others), 2);
	for (int i = 0; i < 2; i++) {
		post(&c, 1, 200, 8);
		wqe_send(server, WQE_OP_SEND, c.mem, 8, 0, 0);
		rig_ring(server);
		assert_int_equal(hw_poll(c.rig.dev), i ? HW_PASS_ANSWERED : HW_PASS_WORKED);
		rig_run(&c.rig);
		assert_int_equal(rig_cq_count(&c.one), 1);
	}
	close_crowd(&c);
}

/* ---- effects under way ------------------------------------------------------------------------ */

/*
 * A queue reads words and writes them on, without the fence that it needs. Returns how many it wrote on
 * before they had come, beside @busy others that always go on.
 */
static unsigned stale(uint64_t seed, int busy)
{
	enum { WORDS = 100 };
	struct crowd c;
	uint64_t *src, *mid, *dst;
	unsigned n = 0;

	open_crowd(&c, (struct hw_config){.seed = seed});
	src = rig_alloc(&c.rig, WORDS * 8);
	mid = rig_alloc(&c.rig, WORDS * 8);
	dst = rig_alloc(&c.rig, WORDS * 8);
	for (int i = 1; i <= busy; i++)
		post(&c, i, 500, 8);
	for (unsigned i = 0; i < WORDS; i++) {
		src[i] = 1;
		wqe_rdma(&c.q[0], WQE_OP_READ, mid + i, 8, src + i, 0, 0);
		wqe_rdma(&c.q[0], WQE_OP_WRITE, mid + i, 8, dst + i, 0, 0);
	}
	rig_ring(&c.q[0]);
	rig_run(&c.rig);
	for (unsigned i = 0; i < WORDS; i++)
		n += !dst[i];
	close_crowd(&c);
	return n;
}

static void a_missing_fence_shows_beside_others(void **state)
{
	unsigned alone = 0, beside = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		alone += stale(seed, 0);
		beside += stale(seed, 2);
	}
	print_message("%u stale words alone, %u beside others\n", alone, beside);
	assert_true(beside * 20 > alone * 19);
}

/*
 * A queue reads a word and enables another one, which writes it on behind @before other WQEs, without the
 * WAIT that it needs. Returns in how many runs it wrote before the word had come.
 */
static unsigned stale_words(unsigned before)
{
	unsigned n = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rig_qp managed;
		struct crowd c;
		uint64_t *word;

		open_crowd(&c, (struct hw_config){.seed = seed});
		rig_qp_new_with(&c.rig, &managed, &c.others, &c.others,
			(struct rig_opt){.wqebbs = RING, .managed = true});
		rig_connect(&managed, &managed);
		word = rig_alloc(&c.rig, 3 * 64);
		word[0] = 1;
		for (unsigned i = 0; i < before; i++)
			wqe_rdma(&managed, WQE_OP_WRITE, c.mem, 8, c.mem + 8, 0, 0);
		wqe_rdma(&managed, WQE_OP_WRITE, word + 8, 8, word + 16, 0, 0);
		wqe_rdma(&c.q[0], WQE_OP_READ, word + 8, 8, word, SIG, 0);
		wqe_enable(&c.q[0], WQE_OP_SEND_EN, hw_qpn(managed.qp), managed.pi, 0);
		rig_ring(&c.q[0]);
		rig_run(&c.rig);
		n += !word[16];
		rig_destroy(&managed);
		close_crowd(&c);
	}
	return n;
}

/* Nobody waits for the READ, so that nothing brings it on while the other queue has one share after another.
 */
static void a_missing_wait_shows_many_shares_later(void **state)
{
	const unsigned at_once = stale_words(0), later = stale_words(4 * HW_SHARE / WRITE);

	print_message("%u stale words at once, %u after four shares\n", at_once, later);
	assert_true(later * 4 > at_once);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rested_queues_are_first),
		cmocka_unit_test(shares_are_equal),
		cmocka_unit_test(long_messages_have_no_larger_share),
		cmocka_unit_test(rest_is_not_saved),
		cmocka_unit_test(nobody_starves),
		cmocka_unit_test(passes_end_for_who_waits),
		cmocka_unit_test(passes_end_for_the_last_reply),
		cmocka_unit_test(a_missing_fence_shows_beside_others),
		cmocka_unit_test(a_missing_wait_shows_many_shares_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
