/* SPDX-License-Identifier: BSD-2-Clause */
/* In which order the queue pairs of a session stop and are destroyed. They are names. */
#include "reddnd/session/queues.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { QUEUES = 3 };

static struct session session;
static struct rnic_device *const device = (struct rnic_device *)&session; /* there is one */
static char done[64];

static char name_of(const struct rnic_qp *qp)
{
	return qp == &session.recycler.qp ? 'r' : (char)('0' + (qp - session.queues.qp));
}

static void note(char what, const struct rnic_qp *qp)
{
	const size_t n = strlen(done);

	snprintf(done + n, sizeof(done) - n, "%c%c ", what, name_of(qp));
}

void __wrap_rnic_qp_stop(struct rnic_qp *qp);
int __wrap_rnic_qp_deinit(struct rnic_qp *qp);

void __wrap_rnic_qp_stop(struct rnic_qp *qp)
{
	if (qp->dev)
		note('S', qp);
}

int __wrap_rnic_qp_deinit(struct rnic_qp *qp)
{
	if (qp->dev)
		note('D', qp);
	*qp = (struct rnic_qp){0};
	return 0;
}

static void order(void **state)
{
	struct chain_image image = {.nqueues = QUEUES};
	const struct offload offload = {.img = &image};
	struct tenant_domain domain = {0};

	session = (struct session){.offload = &offload, .domain = &domain, .recycler.qp.dev = device};
	for (unsigned q = 0; q < QUEUES; q++)
		session.queues.qp[q].dev = device;
	session_queues_stop(&session);
	assert_string_equal(done, "Sr S0 S2 S1 ");
	session_destroy_qps(&session);
	assert_string_equal(done, "Sr S0 S2 S1 D0 D1 D2 Dr ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(order)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
