/* SPDX-License-Identifier: BSD-2-Clause */
/* Which RECVs of a recycled session the daemon posts when a limit begins and ends. The NIC is two numbers. */
#include "mlx5/wqe.h"
#include "reddnd/session/count.h"
#include "reddnd/session/limits.h"
#include "reddnd/session/queues.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 64, SECTION = 16 };

static struct tenant tenant;
static struct tenant_domain domain;
static uint64_t progress; /* what the recycler has counted */
static uint8_t ring[4 * 64];
static uint16_t posted; /* to the NIC */
static struct session session;

static unsigned waits; /* for what was posted */

int __wrap_master_qp_post_recvs(struct master_qp *m, uint32_t qpn, uint16_t index);
int __wrap_master_qp_enable_recvs(struct master_qp *m, uint32_t qpn, uint16_t index);
int __wrap_master_qp_wait(struct master_qp *m);

int __wrap_master_qp_post_recvs(struct master_qp *m, uint32_t qpn, uint16_t index)
{
	(void)m;
	(void)qpn;
	posted = index;
	return 0;
}

int __wrap_master_qp_wait(struct master_qp *m)
{
	(void)m;
	waits++;
	return -ETIMEDOUT;
}

int __wrap_master_qp_enable_recvs(struct master_qp *m, uint32_t qpn, uint16_t index)
{
	waits++;
	return __wrap_master_qp_post_recvs(m, qpn, index);
}

static int setup(void **state)
{
	struct session *s = &session;

	(void)state;
	*s = (struct session){.state = SESSION_ACCEPTED,
		.engine = &engine_recycled,
		.tenant = &tenant,
		.domain = &domain,
		.first = s};
	s->queues.layout.slots = SLOTS;
	s->queues.env.lanes.mem = (uint8_t *)&progress;
	s->queues.env.recycler.ring = ring;
	for (unsigned g = 0; g < SLOTS / SECTION; g++) {
		s->queues.layout.recycling.recv_en[g] = (uint16_t)g;
		ring[g * 64 + WQE_OPCODE] = WQE_OP_RECV_EN;
	}
	posted = 0;
	waits = 0;
	domain = (struct tenant_domain){0};
	return 0;
}

static void recycled(uint64_t n)
{
	progress = htole64(n);
}

/* The client has used every RECV that was posted, in the middle of a section, and nobody has read how these
 * requests ended. The recycler waits for the end of that section. */
static void pacing_ends(void **state)
{
	struct session *s = &session;

	(void)state;
	s->progress.posted = 10 * SECTION + 9;
	s->counters.read = s->progress.posted - SLOTS + 1;
	s->pacing.state = PACING_ON;
	recycled(10 * SECTION);
	assert_int_equal(s->engine->postable(s), s->progress.posted);
	session_set_paced(s, false);
	assert_int_equal(ring[WQE_OPCODE], WQE_OP_RECV_EN);
	assert_int_equal(s->engine->post(s, s->engine->postable(s)), 0);
	assert_int_equal(posted, 10 * SECTION + SLOTS - 1);
}

/* The same after a daemon that died before it had posted what it wrote down */
static void unsettled_pacing_ends(void **state)
{
	struct session *s = &session;

	(void)state;
	recycled(10 * SECTION);
	s->progress.posted = 10 * SECTION + SLOTS - 1;
	s->pacing.state = PACING_ON;
	s->pacing.unsettled = true;
	session_set_paced(s, false);
	assert_false(s->pacing.unsettled);
	assert_int_equal(s->engine->post(s, s->engine->postable(s)), 0);
	assert_int_equal(posted, 10 * SECTION + SLOTS - 1);
}

/* The NIC may have posted those of the section that it was in: they are posted when that is over */
static void pacing_begins(void **state)
{
	struct session *s = &session;

	(void)state;
	recycled(10 * SECTION);
	s->progress.posted = 1;
	session_set_paced(s, true);
	assert_int_equal(ring[WQE_OPCODE], WQE_OP_NOP);
	assert_int_equal(s->progress.posted, 11 * SECTION + SLOTS - 1);
	assert_int_equal(s->engine->post(s, s->progress.posted), 0);
	assert_int_equal(posted, 0);
	recycled(11 * SECTION);
	assert_int_equal(s->engine->post(s, s->progress.posted), 0);
	assert_int_equal(posted, 11 * SECTION + SLOTS - 1);
}

/* A client is answered before the NIC has said that it began, and the error of that comes afterwards */
static void nobody_waits_at_the_start(void **state)
{
	struct session *s = &session;

	(void)state;
	domain.master.waits = 1;
	assert_int_equal(s->engine->post(s, 5), 0);
	assert_int_equal(posted, 5);
	assert_int_equal(waits, 0);
	assert_int_equal(session_queues_started(s), -ETIMEDOUT);
	assert_int_equal(waits, 1);
	domain.master.waits = 0;
	assert_int_equal(s->engine->post(s, 6), 0);
	assert_int_equal(waits, 2);
}

/* An instance enables the head of the next one, which is armed before its RECV is posted */
static void the_next_is_armed(void **state)
{
	struct session *s = &session;

	(void)state;
	recycled(10 * SECTION);
	assert_int_equal(s->engine->postable(s), 10 * SECTION + SLOTS - 1);
	s->engine = &engine_unrolled;
	s->progress.armed = 77;
	assert_int_equal(s->engine->postable(s), 76);
}

static uint64_t received(const struct session *s, uint64_t to)
{
	(void)s;
	return to;
}

/* Those that the NIC has posted count, which are far behind what the daemon has */
static void requests_that_came(void **state)
{
	static const struct session_engine silent = {.is_silent = true, .received = received},
					   other = {.received = received};
	struct session *s = &session;

	(void)state;
	s->progress.posted = SLOTS - 1;
	s->progress.done = 200;
	s->engine = &silent;
	assert_int_equal(session_received(s), 200 + SLOTS);
	s->engine = &other;
	assert_int_equal(session_received(s), SLOTS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(requests_that_came, setup),
		cmocka_unit_test_setup(pacing_ends, setup),
		cmocka_unit_test_setup(unsettled_pacing_ends, setup),
		cmocka_unit_test_setup(pacing_begins, setup),
		cmocka_unit_test_setup(the_next_is_armed, setup),
		cmocka_unit_test_setup(nobody_waits_at_the_start, setup)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
