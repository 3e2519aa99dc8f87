/* SPDX-License-Identifier: BSD-2-Clause */
/* When a further connection counts. The connection manager is the test's own. */
#include "reddnd/server/connect.c"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct ledger_slot slot;
static int outcome; /* of the accept */

void __wrap_session_describe(const struct session *s, struct reddn_wire_rep *rep);
int __wrap_rnic_conn_accept(
	struct rnic_conn *conn, uint64_t number, uint32_t qpn, const void *data, size_t size);

void __wrap_session_describe(const struct session *s, struct reddn_wire_rep *rep)
{
	(void)s;
	*rep = (struct reddn_wire_rep){0};
}

/* A daemon that is killed here has not accepted it: the next one refuses it, and the session goes on */
int __wrap_rnic_conn_accept(
	struct rnic_conn *conn, uint64_t number, uint32_t qpn, const void *data, size_t size)
{
	(void)conn;
	(void)number;
	(void)qpn;
	(void)data;
	(void)size;
	assert_int_equal(slot.session.further, 0);
	return outcome;
}

static void a_connection_counts_once_accepted(void **state)
{
	struct session first = {.connections = 2, .slot = &slot};
	struct tenant_domain domain = {0};
	struct session second = {.first = &first, .domain = &domain, .state = SESSION_ARMED};

	(void)state;
	first.first = &first;
	first.further = &second;
	outcome = -EIO;
	assert_int_equal(answer(&second), -EIO);
	assert_int_equal(slot.session.further, 0);
	outcome = 0;
	assert_int_equal(answer(&second), 0);
	assert_int_equal(slot.session.further, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_connection_counts_once_accepted)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
