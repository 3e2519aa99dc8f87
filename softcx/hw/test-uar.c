/* SPDX-License-Identifier: BSD-2-Clause */
/* Doorbell pages: rings that overwrite each other, and the sleep of pages that nobody rings. */
#include "softcx/hw/test-rig.h"
#include "softcx/hw/uar.h"

#include <endian.h>
#include <unistd.h>

enum { MANY = 300 };

struct crowd {
	struct rig rig;
	struct rig_cq cq[MANY];
	struct rig_qp q[MANY];
	uint64_t *word;
};

static struct crowd crowd;

static void open_crowd(void)
{
	rig_open(&crowd.rig, &(struct hw_config){.seed = 1});
	crowd.word = rig_alloc(&crowd.rig, 64);
	for (int i = 0; i < MANY; i++) {
		rig_cq_new(&crowd.rig, &crowd.cq[i], 2);
		rig_qp_new_with(&crowd.rig, &crowd.q[i], &crowd.cq[i], &crowd.cq[i],
			(struct rig_opt){.wqebbs = 4, .rq_wqes = 1});
		rig_connect(&crowd.q[i], &crowd.q[i]);
	}
}

static void close_crowd(void)
{
	for (int i = 0; i < MANY; i++) {
		rig_destroy(&crowd.q[i]);
		assert_int_equal(hw_cq_destroy(crowd.rig.dev, crowd.cq[i].cq), 0);
	}
	rig_close(&crowd.rig);
}

/* A ring in two steps: others may come between them and store to the same word. */
static void record(struct rig_qp *q)
{
	__atomic_store_n(&q->db[1], htobe32(q->pi), __ATOMIC_RELEASE);
}

static void word_of(const struct rig_qp *q)
{
	uint8_t ctrl[8] = {0};
	uint64_t word;

	put32(ctrl + 4, hw_qpn(q->qp) << 8 | 3);
	memcpy(&word, ctrl, sizeof(word));
	__atomic_store_n(&crowd.rig.page[0x800 / 8], word, __ATOMIC_RELEASE);
}

static void rings_over_each_other(void **state)
{
	open_crowd();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++) {
			wqe_rdma(&crowd.q[i], WQE_OP_WRITE, crowd.word, 8, crowd.word + 1, SIG, 0);
			record(&crowd.q[i]);
		}
		word_of(&crowd.q[round]);
		rig_run(&crowd.rig);
		for (int i = 0; i < MANY; i++)
			rig_expect(&crowd.cq[i], CQE_OP_REQ);
	}
	close_crowd();
}

/* A word that names no queue of the page still counts as a ring. */
static void garbage_in_the_word(void **state)
{
	uint64_t before;

	open_crowd();
	wqe_rdma(&crowd.q[7], WQE_OP_WRITE, crowd.word, 8, crowd.word + 1, SIG, 0);
	record(&crowd.q[7]);
	crowd.rig.page[0xb00 / 8] = UINT64_MAX;
	before = hw_rings(crowd.rig.dev);
	rig_run(&crowd.rig);
	rig_expect(&crowd.cq[7], CQE_OP_REQ);
	/* one, however long it takes to look for the queue */
	assert_int_equal(hw_rings(crowd.rig.dev) - before, 1);
	rig_run(&crowd.rig);
	assert_int_equal(hw_rings(crowd.rig.dev) - before, 1);
	close_crowd();
}

static void arms_over_each_other(void **state)
{
	open_crowd();
	for (int i = 0; i < MANY; i++)
		rig_cq_arm(&crowd.cq[i], 1, false);
	rig_run(&crowd.rig);
	for (int i = 0; i < MANY; i++) {
		wqe_rdma(&crowd.q[i], WQE_OP_WRITE, crowd.word, 8, crowd.word + 1, SIG, 0);
		rig_ring(&crowd.q[i]);
	}
	rig_run(&crowd.rig);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(crowd.cq[i].events, 1);
	close_crowd();
}

/* As a server that looks at CQEs before it arms, with @n CQs */
static void late_arms(int n)
{
	open_crowd();
	for (int i = 0; i < n; i++) {
		wqe_rdma(&crowd.q[i], WQE_OP_WRITE, crowd.word, 8, crowd.word + 1, SIG, 0);
		rig_ring(&crowd.q[i]);
	}
	rig_run(&crowd.rig);
	for (uint32_t sn = 1; sn < 3; sn++) {
		for (int i = 0; i < n; i++)
			rig_cq_arm(&crowd.cq[i], sn, false);
		rig_run(&crowd.rig);
		/* the second arming is for the same CQE, whose event came */
		for (int i = 0; i < n; i++)
			assert_int_equal(crowd.cq[i].events, 1);
	}
	close_crowd();
}

/* CQs leave the list when their event comes: none may be passed over, however many there are */
static void late_arms_over_each_other(void **state)
{
	for (int n = 1; n < 20; n++)
		late_arms(n);
	late_arms(MANY);
}

/* A CQ comes into the list in the middle of a round, at whichever place that is */
static void a_cq_joins_a_round(void **state)
{
	enum { N = 10 };

	for (int armed = 0; armed < N; armed++) {
		open_crowd();
		for (int i = 0; i < N; i++) {
			wqe_rdma(&crowd.q[i], WQE_OP_WRITE, crowd.word, 8, crowd.word + 1, SIG, 0);
			rig_ring(&crowd.q[i]);
			rig_run(&crowd.rig);
		}
		crowd.rig.page[4] = UINT64_MAX;
		hw_poll(crowd.rig.dev);
		hw_poll(crowd.rig.dev);
		rig_cq_arm(&crowd.cq[armed], 1, false);
		crowd.rig.page[4] = UINT64_MAX; /* over it */
		wqe_rdma(&crowd.q[N], WQE_OP_WRITE, crowd.word, 8, crowd.word + 1, SIG, 0);
		rig_ring(&crowd.q[N]);
		rig_run(&crowd.rig);
		assert_int_equal(crowd.cq[armed].events, 1);
		close_crowd();
	}
}

/* Sessions that do nothing: a ring of another queue on their page is no reason to look at them */
static void idle_queues_cost_nothing(void **state)
{
	static struct rig_cq cq[MANY];
	static struct rig_qp q[MANY];
	struct rig *r = &crowd.rig;

	rig_open(r, &(struct hw_config){.seed = 1});
	crowd.word = rig_alloc(r, 64);
	for (int i = 0; i < MANY; i++) {
		rig_cq_new(r, &cq[i], 2);
		rig_qp_new_with(r, &q[i], &cq[i], &cq[i],
			(struct rig_opt){.wqebbs = 4, .rq_wqes = 1, .managed = i > 0});
		rig_connect(&q[i], &q[i]);
		rig_cq_arm(&cq[i], 1, true);
	}
	rig_run(r);
	rig_cq_arm(&cq[1], 2, false);
	wqe_rdma(&q[0], WQE_OP_WRITE, crowd.word, 8, crowd.word + 1, SIG, 0);
	rig_ring(&q[0]);
	assert_int_equal(hw_poll(r->dev), HW_PASS_WORKED);
	assert_int_equal(hw_poll(r->dev), HW_PASS_NOTHING);
	rig_expect(&cq[0], CQE_OP_REQ);
	for (int i = 0; i < MANY; i++) {
		rig_destroy(&q[i]);
		assert_int_equal(hw_cq_destroy(r->dev, cq[i].cq), 0);
	}
	rig_close(r);
}

/* ---- sleep ------------------------------------------------------------------------------ */

static bool page_is_there(void)
{
	return lseek(hw_uar_fd(crowd.rig.uar), 0, SEEK_DATA) == 0;
}

static void gone(void *arg)
{
	++*(unsigned *)arg;
}

/* However long that is. */
static void wait_for_sleep(void)
{
	for (int i = 0; i < 2000 && hw_must_poll(crowd.rig.dev); i++) {
		usleep(5000);
		rig_run(&crowd.rig);
	}
	assert_false(hw_must_poll(crowd.rig.dev));
	assert_false(page_is_there());
	assert_true(hw_uar_check_asleep(crowd.rig.dev));
}

static void sleep_and_wake(void **state)
{
	unsigned ended = 0;
	struct hw_uar_guard guard = {.gone = gone, .arg = &ended}, second = guard;

	open_crowd();
	hw_uar_mapped(crowd.rig.uar);
	hw_uar_guard(crowd.rig.uar, &guard);
	wait_for_sleep();

	/* as a guard does: the page first, then the store */
	hw_uar_wake(crowd.rig.uar);
	assert_true(page_is_there());
	wqe_rdma(&crowd.q[1], WQE_OP_WRITE, crowd.word, 8, crowd.word + 1, SIG, 0);
	record(&crowd.q[1]);
	word_of(&crowd.q[1]);
	rig_run(&crowd.rig);
	rig_expect(&crowd.cq[1], CQE_OP_REQ);

	/* the record is stored, and before the word is the page falls asleep: that is too early, but not lost
	 */
	wqe_rdma(&crowd.q[2], WQE_OP_WRITE, crowd.word, 8, crowd.word + 1, SIG, 0);
	record(&crowd.q[2]);
	wait_for_sleep();
	rig_expect(&crowd.cq[2], CQE_OP_REQ);

	/* a store that no guard reports */
	wqe_rdma(&crowd.q[3], WQE_OP_WRITE, crowd.word, 8, crowd.word + 1, SIG, 0);
	record(&crowd.q[3]);
	word_of(&crowd.q[3]);
	hw_uar_check_asleep(crowd.rig.dev);
	rig_run(&crowd.rig);
	rig_expect(&crowd.cq[3], CQE_OP_REQ);

	/* a mapping without a guard keeps it awake, from the moment it is there */
	wait_for_sleep();
	hw_uar_mapped(crowd.rig.uar);
	assert_true(hw_must_poll(crowd.rig.dev));
	usleep(50000);
	rig_run(&crowd.rig);
	assert_true(hw_must_poll(crowd.rig.dev));
	hw_uar_guard(crowd.rig.uar, &second);
	wait_for_sleep();
	hw_uar_unguard(crowd.rig.uar, &second);
	assert_true(hw_must_poll(crowd.rig.dev));

	assert_int_equal(ended, 0);
	close_crowd();
	assert_int_equal(ended, 1);
}

/* Thousands of pages sleep, and a check looks at a few of them; a store without a guard is found in the end.
 */
static void many_asleep(void **state)
{
	enum { PAGES = 5 * HW_UAR_LOOKS };
	struct hw_uar *uar[PAGES];
	struct hw_uar_guard guard[PAGES];
	unsigned ended = 0, checks = 0;
	struct hw_counts c;
	struct rig r;

	rig_open(&r, &(struct hw_config){.lenient = true});
	for (unsigned i = 0; i < PAGES; i++) {
		guard[i] = (struct hw_uar_guard){.gone = gone, .arg = &ended};
		assert_int_equal(hw_uar_alloc(r.dev, &uar[i]), 0);
		hw_uar_mapped(uar[i]);
		hw_uar_guard(uar[i], &guard[i]);
	}
	do {
		usleep(5000);
		rig_run(&r);
		hw_counts(r.dev, &c);
	} while (c.uars_asleep < PAGES);
	/* the worst places, whatever the order */
	for (unsigned i = 0; i < PAGES; i += PAGES - 1)
		assert_int_equal(pwrite(hw_uar_fd(uar[i]), &(uint64_t){0}, 8, 0), 8);
	do {
		hw_uar_check_asleep(r.dev);
		hw_counts(r.dev, &c);
		checks++;
	} while (c.uars_asleep > PAGES - 2);
	assert_int_equal(checks, PAGES / HW_UAR_LOOKS);
	for (unsigned i = 0; i < PAGES; i++)
		assert_int_equal(hw_uar_free(r.dev, uar[i]), 0);
	assert_int_equal(ended, PAGES);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_over_each_other),
		cmocka_unit_test(garbage_in_the_word),
		cmocka_unit_test(arms_over_each_other),
		cmocka_unit_test(late_arms_over_each_other),
		cmocka_unit_test(a_cq_joins_a_round),
		cmocka_unit_test(idle_queues_cost_nothing),
		cmocka_unit_test(sleep_and_wake),
		cmocka_unit_test(many_asleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
