/* SPDX-License-Identifier: BSD-2-Clause */
/* In which order the queue pairs of a session stop, and when they can serve another. They are names. */
#include "reddnd/session/queues.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { QUEUES = 3 };

static struct session session;
static struct rnic_device *const device = (struct rnic_device *)&session; /* there is one */
static char done[64];
static char refused; /* what the device does not do */

static char name_of(const struct rnic_qp *qp)
{
	return qp == &session.recycler.qp ? 'r' : (char)('0' + (qp - session.queues.qp));
}

static int note(char what, const struct rnic_qp *qp)
{
	const size_t n = strlen(done);

	snprintf(done + n, sizeof(done) - n, "%c%c ", what, name_of(qp));
	return what == refused ? -EIO : 0;
}

int __wrap_rnic_qp_reset(struct rnic_qp *qp);
void __wrap_rnic_qp_stop(struct rnic_qp *qp);
int __wrap_rnic_qp_deinit(struct rnic_qp *qp);

int __wrap_rnic_qp_reset(struct rnic_qp *qp)
{
	return note('R', qp);
}

void __wrap_rnic_qp_stop(struct rnic_qp *qp)
{
	if (qp->dev)
		note('S', qp);
}

int __wrap_rnic_qp_deinit(struct rnic_qp *qp)
{
	int r = qp->dev ? note('D', qp) : 0;

	*qp = (struct rnic_qp){0};
	return r;
}

static int setup(void **state)
{
	(void)state;
	session = (struct session){.intact = true};
	session.recycler.qp.dev = device;
	for (unsigned q = 0; q < QUEUES; q++)
		session.queues.qp[q].dev = device;
	done[0] = refused = 0;
	return 0;
}

/* The client's is destroyed when all that may enable it have been reset, and the others stay */
static void intact(void **state)
{
	(void)state;
	session_queues_stop(&session);
	assert_string_equal(done, "Rr R1 R2 D0 ");
	assert_true(session.intact);
	session_destroy_qps(&session);
	assert_string_equal(done, "Rr R1 R2 D0 ");
}

static void not_intact(void **state)
{
	(void)state;
	session.intact = false;
	session_queues_stop(&session);
	assert_string_equal(done, "Sr S0 S2 S1 ");
	session_destroy_qps(&session);
	assert_string_equal(done, "Sr S0 S2 S1 D0 D1 D2 Dr ");
}

static void no_reset(void **state)
{
	(void)state;
	refused = 'R';
	session_queues_stop(&session);
	assert_string_equal(done, "Rr Sr S0 S2 S1 ");
	assert_false(session.intact);
}

/* It may go on, and enable the code queues */
static void client_queue_stays(void **state)
{
	(void)state;
	refused = 'D';
	session_queues_stop(&session);
	assert_string_equal(done, "Rr R1 R2 D0 Sr S2 S1 ");
	assert_false(session.intact);
	session_destroy_qps(&session);
	assert_string_equal(done, "Rr R1 R2 D0 Sr S2 S1 D1 D2 Dr ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup(intact, setup),
		cmocka_unit_test_setup(not_intact, setup), cmocka_unit_test_setup(no_reset, setup),
		cmocka_unit_test_setup(client_queue_stays, setup)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
