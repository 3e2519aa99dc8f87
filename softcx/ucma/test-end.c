/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/fault.h"
#include "softcx/ucma/test-app.h"

static void reject(void **state)
{
	uint32_t l = app_listener("10.0.0.1", 7471, 10), a = app_routed("10.0.0.1", 7471);
	struct rdma_ucm_connect con = app_connect_cmd(a, "", 0);
	struct rdma_ucm_reject cmd = {.private_data_len = 149, .private_data = "no"};
	struct rdma_ucm_event_resp ev;

	(void)l;
	assert_int_equal(ISSUE(client, CONNECT, con, 0), 0);
	cmd.id = app_expect(server, CONNECT_REQUEST).id;
	assert_int_equal(ISSUE(server, REJECT, cmd, 0), -EINVAL);
	cmd.private_data_len = 2;
	cmd.reason = 3;
	assert_int_equal(ISSUE(server, REJECT, cmd, 0), -EINVAL);
	cmd.reason = 0;
	assert_int_equal(ISSUE(server, REJECT, cmd, 0), 0);
	ev = app_expect(client, REJECTED);
	assert_int_equal(ev.status, 28);
	assert_int_equal(ev.param.conn.private_data_len, 148);
	assert_memory_equal(ev.param.conn.private_data, "no\0", 3);
	assert_int_equal(app_accept(server, cmd.id, 1, "", 0), -EINVAL);
	assert_int_equal(app_destroy(server, cmd.id), 0);
	app_expect_none(server);
}

static void death_of_a_peer(void **state)
{
	struct pair p = app_connected();

	ucma_close(client); /* what kill -9 comes to */
	client = NULL;
	assert_int_equal(app_expect(server, DISCONNECTED).id, p.passive);
	assert_int_equal(app_disconnect(server, p.passive), 0);
	app_expect_none(server);
	assert_int_equal(app_await(server, TIMEWAIT_EXIT).id, p.passive);
	app_destroy(server, p.passive);
}

static void death_while_connecting(void **state)
{
	uint32_t l = app_listener("0.0.0.0", 7471, 5), a = app_routed("127.0.0.1", 7471), p;
	struct rdma_ucm_connect cmd = app_connect_cmd(a, "", 0);

	(void)l;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	p = app_expect(server, CONNECT_REQUEST).id;
	assert_int_equal(app_accept(server, p, 0x52, "", 0), 0);
	ucma_close(client);
	client = NULL;
	assert_int_equal(app_expect(server, REJECTED).id, p);
	app_expect_none(server);
}

static void both_disconnect(void **state)
{
	struct pair p = app_connected();

	assert_int_equal(app_disconnect(client, p.active), 0);
	assert_int_equal(app_disconnect(server, p.passive), 0);
	app_expect(client, DISCONNECTED);
	app_expect(server, DISCONNECTED);
	assert_int_equal(app_disconnect(client, p.active), 0);
	app_expect_none(client);
	app_expect_none(server);
}

/* Where a connection stands when rdma_disconnect() or the end of the id comes. */
enum stage { BOUND, ROUTED, ASKED, ANSWERED, ESTAB, CLOSING };

static struct pair at(enum stage stage)
{
	struct pair p = {.listener = app_listener("10.0.0.1", 7471, 5)};

	p.active = app_create(client, RDMA_PS_TCP, 0xc1);
	assert_int_equal(app_bind4(client, p.active, "10.0.0.2", 0), 0);
	if (stage == BOUND)
		return p;
	assert_int_equal(app_resolve(client, p.active, "10.0.0.1", 7471, 1), 0);
	app_expect(client, ADDR_RESOLVED);
	assert_int_equal(app_route(client, p.active), 0);
	app_expect(client, ROUTE_RESOLVED);
	if (stage == ROUTED)
		return p;
	assert_int_equal(app_connect(client, p.active), 0);
	p.passive = app_expect(server, CONNECT_REQUEST).id;
	if (stage == ASKED)
		return p;
	assert_int_equal(app_accept(server, p.passive, 0x52, "", 0), 0);
	app_expect(client, CONNECT_RESPONSE);
	if (stage == ANSWERED)
		return p;
	assert_int_equal(app_establish(client, p.active), 0);
	app_expect(server, ESTABLISHED);
	if (stage == CLOSING) {
		assert_int_equal(app_disconnect(client, p.active), 0);
		app_expect(server, DISCONNECTED);
	}
	return p;
}

static void leave(struct pair p)
{
	app_destroy(client, p.active);
	if (p.passive)
		app_destroy(server, p.passive);
	app_destroy(server, p.listener);
	app_expect_none(client);
	app_expect_none(server);
}

static void disconnect_in_each_state(void **state)
{
	struct pair p;

	for (enum stage s = BOUND; s <= ROUTED; s++) { /* nothing has begun */
		p = at(s);
		assert_int_equal(app_disconnect(client, p.active), -EINVAL);
		assert_int_equal(app_disconnect(server, p.listener), -EINVAL);
		leave(p);
	}
	for (enum stage s = ASKED; s <= ANSWERED; s++) { /* not connected yet: nothing to end */
		p = at(s);
		assert_int_equal(app_disconnect(client, p.active), 0);
		assert_int_equal(app_disconnect(server, p.passive), 0);
		app_expect_none(client);
		app_expect_none(server);
		app_destroy(client, p.active);
		p.active = app_create(client, RDMA_PS_TCP, 1);
		if (s == ANSWERED) /* accepted, so somebody hears of it; not before */
			app_expect(server, REJECTED);
		leave(p);
	}
	p = at(CLOSING);
	assert_int_equal(app_disconnect(server, p.passive), 0);
	app_expect(client, DISCONNECTED);
	assert_int_equal(app_disconnect(client, p.active), 0);
	assert_int_equal(app_disconnect(server, p.passive), 0);
	app_await(client, TIMEWAIT_EXIT);
	app_expect(server, TIMEWAIT_EXIT);
	assert_int_equal(app_disconnect(client, p.active), 0);
	leave(p);
}

static void destroy_in_each_state(void **state)
{
	struct ucma_counts counts;
	struct pair p;

	for (enum stage s = BOUND; s <= CLOSING; s++) {
		p = at(s);
		app_destroy(client, p.active);
		if (s >= ANSWERED && s < CLOSING)
			app_expect(server, s == ANSWERED ? REJECTED : DISCONNECTED);
		app_expect_none(server);
		if (p.passive)
			app_destroy(server, p.passive);
		app_destroy(server, p.listener);
		app_expect_none(server);
	}
	for (enum stage s = ASKED; s <= CLOSING; s++) { /* the other way round */
		p = at(s);
		app_destroy(server, p.passive);
		app_expect(client, s < ESTAB ? REJECTED : DISCONNECTED);
		app_expect_none(client);
		app_destroy(server, p.listener);
		app_destroy(client, p.active);
	}
	ucma_counts(net, &counts);
	assert_int_equal(counts.ids, 0);
}

/* A device fails and comes back: what was on it is gone. */
static void device_removal(void **state)
{
	struct hw_fault fatal = {.kind = HW_FAULT_DEVICE_FATAL, .opcode = -1};
	struct pair p = at(ESTAB);
	uint32_t waiting = app_routed("10.0.0.1", 7471), wildcard = app_create(server, RDMA_PS_TCP, 3);
	struct ib_uverbs_qp_attr attr;

	assert_int_equal(app_bind4(server, wildcard, "0.0.0.0", 7472), 0);
	assert_int_equal(app_connect(client, waiting), 0);
	ucma_net_timers(net);
	assert_int_equal(hw_fault_add(devs[0], &fatal), 0);

	/* the listener's request is still there, but its id is gone like all others of the device */
	assert_int_equal(app_expect(server, CONNECT_REQUEST).uid, 0x51);
	assert_int_equal(app_expect(server, DEVICE_REMOVAL).id, p.listener);
	assert_int_equal(app_expect(server, DEVICE_REMOVAL).id, p.passive);
	app_expect_none(server);
	assert_int_equal(app_expect(client, DEVICE_REMOVAL).id, waiting);
	app_expect_none(client); /* device 1 has not failed: its queue will find out */
	assert_int_equal(app_disconnect(server, p.passive), -EIO);
	assert_int_equal(app_qp_attr(server, p.passive, IBV_QPS_RTS, &attr), -EIO);
	assert_int_equal(app_listen(server, p.listener, 1), -EIO);
	assert_int_equal(
		app_bind4(server, app_create(server, RDMA_PS_TCP, 4), "10.0.0.1", 7471), 0); /* free */
	assert_int_equal(app_destroy(server, p.passive), 2);
	assert_int_equal(app_destroy(server, p.listener), 3);
	assert_int_equal(app_listen(server, wildcard, 5), 0);

	/* its addresses can be used again */
	app_listener("10.0.0.1", 7473, 5);
	assert_int_equal(app_disconnect(client, p.active), 0);
	app_expect(client, DISCONNECTED); /* nobody knows that connection any more */
	app_destroy(client, waiting);
	waiting = app_routed("10.0.0.1", 7473);
	assert_int_equal(app_connect(client, waiting), 0);
	app_expect(server, CONNECT_REQUEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reject, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(death_of_a_peer, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(death_while_connecting, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(both_disconnect, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(disconnect_in_each_state, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(destroy_in_each_state, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(device_removal, app_setup, app_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
