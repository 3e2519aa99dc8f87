/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of recycled sessions, whose reply queues' CQEs the test writes as a NIC does. */
#include "reddnd/server/late.h"

#include "reddnd/session/count.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 4, LOG = 3, CQES = 1 << LOG, MANY = 2 * LATE_SOME + 1, WQEBBS = 2 };

struct one {
	struct session s;
	uint8_t replies[CQES][CQE_BYTES], requests[SLOTS][CQE_BYTES];
	uint64_t progress; /* of its recycler */
	uint64_t answered;
};

static struct one ones[MANY];
static struct accounting accounting;
static struct late late;
static unsigned looks; /* sessions that were counted, with or without a new request */
static uint64_t clock_of_nic;
static struct one *busy; /* one that answers once more whenever it has been counted */

/* ---- in place of accounting and of the NIC ---- */

static void answer(struct one *o)
{
	uint8_t *cqe = o->replies[o->answered % CQES];
	uint16_t index = (uint16_t)(o->answered * WQEBBS);

	wqe_put64(cqe + CQE_TIMESTAMP, ++clock_of_nic);
	wqe_put16(cqe + CQE_INDEX, index);
	cqe[CQE_OP_OWN] = (uint8_t)(CQE_OP_REQ << 4 | (o->answered >> LOG & 1));
	o->answered++;
	o->progress = htole64(o->answered / (SLOTS / 2) * (SLOTS / 2));
}

uint64_t accounting_count(struct accounting *a, struct session *s)
{
	uint64_t n = session_count(s);

	looks++;
	a->requests += n;
	if (busy && s == &busy->s)
		answer(busy);
	return n;
}

/* ---- */

static void begin(struct one *o)
{
	*o = (struct one){.s = {.queues = {.layout = {.recycled = true, .slots = SLOTS}}}};
	o->s.recycler.reply_cq = (struct rnic_cq){.log_size = LOG, .cqes = o->replies[0]};
	o->s.queues.cq[0] = (struct rnic_cq){.log_size = LOG - 1, .cqes = o->requests[0]};
	o->s.queues.env.lanes.mem = (uint8_t *)&o->progress;
	for (unsigned i = 0; i < CQES; i++)
		o->replies[i][CQE_OP_OWN] = CQE_OP_INVALID << 4 | 1;
	for (unsigned i = 0; i < SLOTS; i++)
		o->requests[i][CQE_OP_OWN] = CQE_OP_INVALID << 4 | 1;
	assert_int_equal(late_add(&late, &o->s), 0);
}

static int setup(void **state)
{
	(void)state;
	accounting = (struct accounting){0};
	busy = NULL;
	for (unsigned i = 0; i < MANY; i++)
		begin(&ones[i]);
	late_count(&late, &accounting);
	assert_int_equal(accounting.requests, 0);
	looks = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	late_deinit(&late);
	return 0;
}

static void those_that_rest_are_not_counted(void **state)
{
	(void)state;
	late_count(&late, &accounting);
	assert_int_equal(looks, 0);
	answer(&ones[1]);
	late_count(&late, &accounting);
	assert_int_equal(accounting.requests, 1);
	late_count(&late, &accounting);
	assert_int_equal(looks, 2);
	late_count(&late, &accounting);
	assert_int_equal(looks, 2);
}

static void expect_after(unsigned n, uint64_t requests)
{
	for (unsigned i = 0; i < n; i++)
		answer(&ones[2]);
	late_count(&late, &accounting);
	assert_int_equal(accounting.requests, requests);
	assert_int_equal(ones[2].s.progress.done, requests);
}

/* Whole laps leave owner bits as they were, and this many of them the index of the WQE, too */
static void each_request_counts_once(void **state)
{
	enum { ALIKE = 65536 / WQEBBS };
	unsigned expected = 0;

	(void)state;
	for (unsigned n = 0; n <= 4 * CQES; n++)
		expect_after(n, expected += n);
	expect_after(ALIKE, expected + ALIKE);
	expect_after(ALIKE, expected + 2 * ALIKE);
}

static void those_that_come_while_others_are_counted(void **state)
{
	(void)state;
	answer(&ones[3]);
	busy = &ones[3];
	for (unsigned n = 1; n <= 3 * CQES; n++) {
		late_count(&late, &accounting);
		assert_int_equal(accounting.requests, n);
	}
	busy = NULL;
	late_count(&late, &accounting);
	late_count(&late, &accounting);
	assert_int_equal(accounting.requests, ones[3].answered);
}

/* Something else may count a session at any time */
static void one_that_was_counted_elsewhere(void **state)
{
	(void)state;
	answer(&ones[4]);
	assert_int_equal(session_count(&ones[4].s), 1);
	answer(&ones[4]);
	late_count(&late, &accounting);
	assert_int_equal(accounting.requests, 1);
	assert_int_equal(ones[4].s.progress.done, 2);
}

static void those_that_end(void **state)
{
	struct session never = {0};

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		answer(&ones[i]);
	late_remove(&late, &ones[MANY - 1].s);
	late_remove(&late, &ones[0].s);
	late_remove(&late, &ones[0].s);
	late_remove(&late, &never);
	assert_int_equal(late.n, MANY - 2);
	late_count(&late, &accounting);
	assert_int_equal(accounting.requests, MANY - 2);
	assert_int_equal(ones[0].s.progress.done, 0);
	for (unsigned i = 1; i < MANY - 1; i++)
		late_remove(&late, &ones[i].s);
	assert_int_equal(late.n, 0);
	late_count_some(&late, &accounting);
	assert_int_equal(late_rounds(&late), 1);
	assert_int_equal(accounting.requests, MANY - 2);
}

static void some_at_a_time(void **state)
{
	(void)state;
	assert_int_equal(late_rounds(&late), 3);
	for (unsigned i = 0; i < MANY; i++)
		answer(&ones[i]);
	late_count_some(&late, &accounting);
	assert_int_equal(accounting.requests, LATE_SOME);
	late_count_some(&late, &accounting);
	late_count_some(&late, &accounting);
	assert_int_equal(accounting.requests, MANY);
	answer(&ones[MANY - 1]);
	late_count_some(&late, &accounting);
	assert_int_equal(accounting.requests, MANY + 1);
}

/* Whoever ends meanwhile, the others have their turn */
static void some_while_others_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		answer(&ones[i]);
	for (unsigned n = 0; n < 3; n++) {
		late_count_some(&late, &accounting);
		late_remove(&late, &ones[n].s);
		late_remove(&late, &ones[MANY / 2 + n].s);
	}
	for (unsigned i = 3; i < MANY; i++)
		assert_true(ones[i].s.progress.done == 1 || !ones[i].s.late_at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(those_that_rest_are_not_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(each_request_counts_once, setup, teardown),
		cmocka_unit_test_setup_teardown(those_that_come_while_others_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(one_that_was_counted_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(those_that_end, setup, teardown),
		cmocka_unit_test_setup_teardown(some_at_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(some_while_others_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
