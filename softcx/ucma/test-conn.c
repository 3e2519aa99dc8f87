/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/fault.h"
#include "softcx/ucma/test-app.h"

static void connection(void **state)
{
	uint32_t l = app_listener("0.0.0.0", 7471, 10), a = app_routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = app_connect_cmd(a, "question", 8);
	struct rdma_ucm_event_resp ev;
	uint32_t p;

	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	assert_int_equal(ucma_pending(server), 0); /* nothing happens inside the call */
	ev = app_expect(server, CONNECT_REQUEST);
	assert_int_equal(ev.uid, 0x51);
	p = ev.id;
	assert_int_not_equal(p, l);
	assert_int_equal(ev.param.conn.private_data_len, 56);
	assert_memory_equal(ev.param.conn.private_data, "question\0\0\0", 11);
	assert_int_equal(ev.param.conn.qp_num, 0x100 + a);
	assert_int_equal(ev.param.conn.responder_resources, 5);
	assert_int_equal(ev.param.conn.initiator_depth, 3);
	assert_int_equal(ev.param.conn.retry_count, 7);
	assert_int_equal(ev.param.conn.rnr_retry_count, 6);
	assert_int_equal(ev.ece.vendor_id, 0x15b3);
	app_expect_none(client);

	assert_int_equal(app_accept(server, p, 0x52, "answer", 6), 0);
	ev = app_expect(client, CONNECT_RESPONSE);
	assert_int_equal(ev.uid, 0xc1);
	assert_int_equal(ev.param.conn.private_data_len, 196);
	assert_memory_equal(ev.param.conn.private_data, "answer\0\0", 8);
	assert_int_equal(ev.param.conn.responder_resources, 2);
	assert_int_equal(ev.param.conn.initiator_depth, 4);
	assert_int_equal(ev.param.conn.qp_num, 0x200 + p);
	app_expect_none(server); /* not before the client is ready to use */

	assert_int_equal(app_establish(client, a), 0);
	ev = app_expect(server, ESTABLISHED);
	assert_int_equal(ev.uid, 0x52);
	assert_int_equal(ev.id, p);
	app_expect_none(client);
	assert_int_equal(app_wakes, 5);

	assert_int_equal(app_disconnect(client, a), 0);
	app_expect(server, DISCONNECTED);
	app_expect_none(client); /* not before the server has answered */
	assert_int_equal(app_disconnect(server, p), 0);
	assert_int_equal(app_expect(client, DISCONNECTED).status, 0);
	assert_int_equal(app_destroy(client, a), 4);
	assert_int_equal(app_destroy(server, p), 2);
	assert_int_equal(app_destroy(server, l), 1);
}

static void queue_attributes(void **state)
{
	struct pair p = app_connected();
	struct ib_uverbs_qp_attr a, b;
	uint32_t fresh = app_routed("10.0.0.2", 7471);
	struct ucma_counts counts;

	ucma_counts(net, &counts);
	assert_int_equal(counts.ids, 4);
	assert_int_equal(counts.listeners, 1);
	assert_int_equal(counts.connections, 2);
	assert_int_equal(app_qp_attr(client, fresh, IBV_QPS_INIT, &a), 0);
	assert_int_equal(
		a.qp_attr_mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	assert_int_equal(a.qp_access_flags, 0);
	assert_int_equal(a.port_num, 1);

	assert_int_equal(app_qp_attr(client, p.active, IBV_QPS_INIT, &a), 0);
	assert_int_equal(a.qp_access_flags,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

	assert_int_equal(app_qp_attr(client, p.active, IBV_QPS_RTR, &a), 0);
	assert_int_equal(app_qp_attr(server, p.passive, IBV_QPS_RTS, &b), 0);
	assert_int_equal(a.qp_attr_mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
						 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
						 IBV_QP_MIN_RNR_TIMER);
	assert_int_equal(a.dest_qp_num, 0x200 + p.passive);
	assert_int_equal(a.ah_attr.is_global, 1);
	assert_int_equal(a.ah_attr.grh.sgid_index, 3); /* of RoCE v2 */
	assert_int_equal(a.ah_attr.grh.dgid[12], 10);
	assert_int_equal(a.ah_attr.dlid, 0);
	assert_int_equal(a.min_rnr_timer, 0);
	assert_int_equal(a.max_dest_rd_atomic, 2);
	assert_int_equal(b.qp_attr_mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
						 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
	assert_int_equal(a.rq_psn, b.sq_psn);
	assert_int_equal(b.max_rd_atomic, 2);
	assert_int_equal(b.rnr_retry, 6);
	assert_int_equal(b.retry_cnt, 7);
	assert_int_equal(b.timeout, 18);

	assert_int_equal(app_qp_attr(server, p.passive, IBV_QPS_RTR, &a), 0);
	assert_int_equal(app_qp_attr(client, p.active, IBV_QPS_RTS, &b), 0);
	assert_int_equal(a.rq_psn, b.sq_psn);
	assert_int_equal(a.ah_attr.static_rate, IBV_RATE_40_GBPS); /* what the REQ said */
	assert_int_equal(a.dest_qp_num, 0x100 + p.active);
	assert_int_equal(a.max_dest_rd_atomic, 4);
	assert_int_equal(b.max_rd_atomic, 4);
	assert_int_equal(b.rnr_retry, 7); /* what the REP said */

	assert_int_equal(app_qp_attr(client, p.active, IBV_QPS_SQD, &a), -EINVAL);
	assert_int_equal(app_qp_attr(client, p.active, 77, &a), -EINVAL);
	assert_int_equal(app_qp_attr(server, p.listener, IBV_QPS_INIT, &a), -EINVAL); /* no device */
}

static void no_listener(void **state)
{
	uint32_t a = app_routed("127.0.0.1", 1234);
	struct rdma_ucm_connect cmd = app_connect_cmd(a, "", 0);
	struct rdma_ucm_event_resp ev;

	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	app_expect_none(client); /* a listener may still turn up */
	ev = app_await(client, REJECTED);
	assert_int_equal(ev.status, 8);
	assert_int_equal(ev.param.conn.private_data_len, 148);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), -EINVAL); /* an id connects once */
	assert_int_equal(app_destroy(client, a), 3);
}

static void late_listener(void **state)
{
	uint32_t a = app_routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = app_connect_cmd(a, "", 0);

	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	app_expect_none(client);
	app_listener("0.0.0.0", 7471, 1);
	app_await(server, CONNECT_REQUEST);
}

static void private_data_sizes(void **state)
{
	uint32_t l = app_listener("0.0.0.0", 7471, 10), a = app_routed("127.0.0.1", 7471), p;
	uint8_t data[256];
	struct rdma_ucm_connect cmd;

	(void)l;
	memset(data, 0xab, sizeof(data));
	cmd = app_connect_cmd(a, data, 57);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), -EINVAL);
	cmd = app_connect_cmd(a, data, 56);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	p = app_expect(server, CONNECT_REQUEST).id;
	/* an accept that cannot be sent rejects */
	assert_int_equal(app_accept(server, p, 1, data, 197), -EINVAL);
	assert_int_equal(app_expect(client, REJECTED).status, 28);

	a = app_routed("127.0.0.1", 7471);
	cmd = app_connect_cmd(a, data, 0);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	p = app_expect(server, CONNECT_REQUEST).id;
	assert_int_equal(app_accept(server, p, 1, data, 196), 0);
	assert_int_equal(app_expect(client, CONNECT_RESPONSE).param.conn.private_data[195], 0xab);
}

/* How often something happens by itself in so many ns */
static unsigned times_within(uint64_t ns)
{
	const uint64_t end = app_now + ns;
	unsigned n = 0;

	for (uint64_t next; (next = ucma_net_timers(net)) != UINT64_MAX && app_now + next < end; n++)
		app_now += next;
	app_now = end;
	return n;
}

static void full_backlog(void **state)
{
	uint32_t l = app_listener("0.0.0.0", 7471, 1), a = app_routed("127.0.0.1", 7471),
		 b = app_routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = app_connect_cmd(a, "a", 1);

	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	cmd = app_connect_cmd(b, "b", 1);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	assert_in_range(times_within(3000000000), 3, 20); /* the second asks again, less and less */
	assert_int_equal(app_expect(server, CONNECT_REQUEST).param.conn.private_data[0], 'a');
	app_expect_none(client); /* it is not turned away */
	assert_int_equal(app_await(server, CONNECT_REQUEST).param.conn.private_data[0], 'b');
	app_expect_none(server);
	assert_int_equal(app_destroy(server, l), 2);
}

static void unread_requests_end_with_listener(void **state)
{
	uint32_t l = app_listener("0.0.0.0", 7471, 5), a = app_routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = app_connect_cmd(a, "", 0);

	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	ucma_net_timers(net);
	assert_int_equal(ucma_pending(server), 1);
	assert_int_equal(app_destroy(server, l), 0);
	assert_int_equal(ucma_pending(server), 0);
	assert_int_equal(app_expect(client, REJECTED).status, 28);
}

static void establish_by_notify(void **state)
{
	uint32_t l = app_listener("0.0.0.0", 7471, 5), a = app_routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = app_connect_cmd(a, "", 0);
	struct rdma_ucm_notify note = {.event = IBV_EVENT_COMM_EST};

	(void)l;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	note.id = app_expect(server, CONNECT_REQUEST).id;
	assert_int_equal(ISSUE(server, NOTIFY, note, 0), -EINVAL);
	assert_int_equal(app_accept(server, note.id, 0x52, "", 0), 0);
	assert_int_equal(ISSUE(server, NOTIFY, note, 0), 0);
	app_expect(server, ESTABLISHED);
	assert_int_equal(ISSUE(server, NOTIFY, note, 0), -EISCONN);
	app_expect(client, CONNECT_RESPONSE);
	assert_int_equal(app_establish(client, a), 0);
	app_expect_none(server); /* not a second time */
}

static int move(struct ucma_file *to, int from, uint32_t id)
{
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id mig = {.response = (uintptr_t)&resp, .id = id, .fd = (uint32_t)from};
	int r = (int)ISSUE(to, MIGRATE_ID, mig, sizeof(resp));

	if (r == 0)
		assert_int_equal(resp.events_reported, 0);
	return r;
}

/* Unread events go with their id. The id of a request stays with the old file until it is moved itself. */
static void migrate(void **state)
{
	uint32_t l = app_listener("0.0.0.0", 7471, 5), a = app_routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = app_connect_cmd(a, "", 0);
	uint32_t p;

	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	ucma_net_timers(net);
	assert_int_equal(move(client, 3, l), -ENOENT);
	assert_int_equal(move(client, 1, l), -EINVAL); /* the id is not there */
	assert_int_equal(move(client, 0, l), 0);
	app_expect_none(server);
	p = app_expect(client, CONNECT_REQUEST).id;
	assert_int_equal(app_accept(client, p, 1, "", 0), -EINVAL);
	assert_int_equal(move(client, 0, p), 0);
	assert_int_equal(move(client, 0, p), -EINVAL); /* is here already */
	assert_int_equal(app_accept(client, p, 1, "", 0), 0);
	app_expect(client, CONNECT_RESPONSE);
	assert_int_equal(app_listen(server, l, 1), -EINVAL); /* not its any more */
}

/* A request that comes after the listener has moved is of the new file; one that was left behind is lost. */
static void migrate_late(void **state)
{
	uint32_t l = app_listener("0.0.0.0", 7471, 5), first = app_routed("127.0.0.1", 7471),
		 second = app_routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = app_connect_cmd(first, "", 0);
	uint32_t p;

	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	ucma_net_timers(net);
	assert_int_equal(move(far, 0, l), 0);
	cmd = app_connect_cmd(second, "", 0);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	ucma_net_timers(net);
	ucma_close(server);
	server = NULL;
	app_expect(client, REJECTED);
	p = app_expect(far, CONNECT_REQUEST).id;
	assert_int_equal(app_accept(far, p, 1, "", 0), -ENOENT);
	p = app_expect(far, CONNECT_REQUEST).id;
	assert_int_equal(app_accept(far, p, 1, "", 0), 0);
	app_expect(client, CONNECT_RESPONSE);
}

static void datagrams(void **state)
{
	uint32_t l = app_create(server, RDMA_PS_UDP, 0x51), a = app_create(client, RDMA_PS_UDP, 0xc1), p;
	struct rdma_ucm_connect cmd = app_connect_cmd(a, "ping", 4);
	struct rdma_ucm_event_resp ev;
	struct ib_uverbs_qp_attr attr;

	assert_int_equal(app_bind4(server, l, "0.0.0.0", 7471), 0);
	assert_int_equal(app_listen(server, l, 5), 0);
	assert_int_equal(app_resolve(client, a, "127.0.0.1", 7471, 1), 0);
	app_expect(client, ADDR_RESOLVED);
	assert_int_equal(app_route(client, a), 0);
	app_expect(client, ROUTE_RESOLVED);
	assert_int_equal(app_qp_attr(client, a, IBV_QPS_INIT, &attr), 0);
	assert_int_equal(attr.qkey, 0x01234567);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	ev = app_expect(server, CONNECT_REQUEST);
	p = ev.id;
	assert_int_equal(ev.param.ud.private_data_len, 180);
	assert_memory_equal(ev.param.ud.private_data, "ping", 5);
	assert_int_equal(app_accept(server, p, 0x52, "pong", 4), 0);
	ev = app_expect(client, ESTABLISHED);
	assert_int_equal(ev.param.ud.qp_num, 0x200 + p);
	assert_int_equal(ev.param.ud.qkey, 0x01234567);
	assert_int_equal(ev.param.ud.private_data_len, 136);
	assert_int_equal(ev.param.ud.ah_attr.is_global, 1);
	app_expect_none(server);

	/* nobody there */
	app_destroy(server, l);
	a = app_create(client, RDMA_PS_UDP, 0xc2);
	assert_int_equal(app_resolve(client, a, "127.0.0.1", 7471, 1), 0);
	app_expect(client, ADDR_RESOLVED);
	assert_int_equal(app_route(client, a), 0);
	app_expect(client, ROUTE_RESOLVED);
	cmd = app_connect_cmd(a, "", 0);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	assert_int_equal(app_await(client, UNREACHABLE).status, 1);
}

static void port_down(unsigned dev, bool down)
{
	struct hw_fault fault = {.kind = down ? HW_FAULT_PORT_DOWN : HW_FAULT_PORT_UP, .opcode = -1};

	assert_int_equal(hw_fault_add(devs[dev], &fault), 0);
}

/* A host that went away is asked 16 times, for 69 seconds. */
static void unreachable(void **state)
{
	uint32_t a = app_routed("10.0.0.3", 7471), b = app_route_to(client, RDMA_PS_UDP, "10.0.0.3", 7471);
	uint64_t began;

	port_down(2, true);
	began = app_now;
	assert_int_equal(app_connect(client, a), 0);
	assert_int_equal((int)app_await(client, UNREACHABLE).status, -ETIMEDOUT);
	assert_in_range(app_now - began, UINT64_C(68000000000), UINT64_C(69000000000));
	assert_int_equal(app_connect(client, b), 0);
	assert_int_equal((int)app_await(client, UNREACHABLE).status, -ETIMEDOUT);
}

/* Every message of a handshake may be lost. */
static void lost_messages(void **state)
{
	uint32_t l = app_create(far, RDMA_PS_TCP, 1), a = app_routed("10.0.0.3", 7471), p;
	struct rdma_ucm_event_resp ev;

	assert_int_equal(app_bind4(far, l, "0.0.0.0", 7471), 0);
	assert_int_equal(app_listen(far, l, 5), 0);
	port_down(2, true);
	assert_int_equal(app_connect(client, a), 0);
	app_expect_none(far);
	port_down(2, false);
	p = app_await(far, CONNECT_REQUEST).id;

	port_down(0, true);
	assert_int_equal(app_accept(far, p, 2, "", 0), 0);
	app_expect_none(client);
	port_down(0, false);
	app_await(client, CONNECT_RESPONSE);

	port_down(0, true);
	assert_int_equal(app_establish(client, a), 0);
	app_expect_none(far);
	port_down(0, false);
	app_await(far, ESTABLISHED);

	port_down(2, true);
	assert_int_equal(app_disconnect(client, a), 0);
	app_expect_none(far);
	port_down(2, false);
	app_await(far, DISCONNECTED);
	assert_int_equal(app_disconnect(far, p), 0);
	app_await(client, DISCONNECTED);

	/* a peer that is never heard of again */
	app_destroy(client, a);
	app_await(far, TIMEWAIT_EXIT);
	a = app_routed("10.0.0.3", 7471);
	assert_int_equal(app_connect(client, a), 0);
	p = app_expect(far, CONNECT_REQUEST).id;
	assert_int_equal(app_accept(far, p, 2, "", 0), 0);
	app_expect(client, CONNECT_RESPONSE);
	assert_int_equal(app_establish(client, a), 0);
	app_expect(far, ESTABLISHED);
	port_down(2, true);
	assert_int_equal(app_disconnect(client, a), 0);
	ev = app_await(client, DISCONNECTED);
	assert_int_equal((int)ev.status, -ETIMEDOUT);
	app_await(client, TIMEWAIT_EXIT);
}

/* Accepted, but the client is never ready to use. */
static void never_established(void **state)
{
	uint32_t l = app_listener("0.0.0.0", 7471, 5), a = app_routed("10.0.0.1", 7471), p;

	(void)l;
	assert_int_equal(app_connect(client, a), 0);
	p = app_expect(server, CONNECT_REQUEST).id;
	assert_int_equal(app_accept(server, p, 2, "", 0), 0);
	app_expect(client, CONNECT_RESPONSE);
	assert_int_equal((int)app_await(server, UNREACHABLE).status, -ETIMEDOUT);
	assert_int_equal(app_establish(client, a), 0); /* it does not know */
	app_expect_none(server);
}

/* A queue pair that the peer believes connected asks anew: its old connection is what ends. */
static void stale_connection(void **state)
{
	struct pair p = app_connected();
	uint32_t again = app_routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = app_connect_cmd(again, "", 0);

	cmd.conn_param.qp_num = 0x100 + p.active;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	ucma_net_timers(net);
	assert_int_equal(app_expect(client, REJECTED).status, 10); /* IB_CM_REJ_STALE_CONN */
	assert_int_equal(app_expect(client, DISCONNECTED).id, p.active);
	app_expect_none(server); /* it asked for that itself, and waits for the answer */
	assert_int_equal(app_disconnect(client, p.active), 0);
	assert_int_equal(app_expect(server, DISCONNECTED).id, p.passive);

	/* once that is over, the queue pair may connect again */
	app_await(server, TIMEWAIT_EXIT);
	app_await(client, TIMEWAIT_EXIT);
	again = app_routed("127.0.0.1", 7471);
	cmd.id = again;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	app_await(server, CONNECT_REQUEST);
}

static void datagrams_rejected(void **state)
{
	uint32_t l = app_create(server, RDMA_PS_UDP, 0x51),
		 a = app_route_to(client, RDMA_PS_UDP, "10.0.0.1", 7471);
	struct rdma_ucm_reject cmd = {.private_data_len = 3, .private_data = "no"};
	struct rdma_ucm_event_resp ev;
	uint8_t data[182] = {0};
	struct rdma_ucm_connect con;

	assert_int_equal(app_bind4(server, l, "0.0.0.0", 7471), 0);
	assert_int_equal(app_listen(server, l, 5), 0);
	con = app_connect_cmd(a, data, 181);
	assert_int_equal(ISSUE(client, CONNECT, con, 0), -EINVAL);
	con = app_connect_cmd(a, data, 180);
	assert_int_equal(ISSUE(client, CONNECT, con, 0), 0); /* a failed connect can be tried again */
	cmd.id = app_expect(server, CONNECT_REQUEST).id;
	assert_int_equal(ISSUE(server, REJECT, cmd, 0), 0);
	ev = app_expect(client, UNREACHABLE);
	assert_int_equal(ev.status, 2); /* IB_SIDR_REJECT */
	assert_int_equal(ev.param.ud.private_data_len, 136);
	assert_string_equal((char *)ev.param.ud.private_data, "no");
	assert_int_equal(ISSUE(server, REJECT, cmd, 0), -EINVAL); /* once */
}

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
		cmocka_unit_test_setup_teardown(connection, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(queue_attributes, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(no_listener, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(late_listener, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(private_data_sizes, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(full_backlog, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(unread_requests_end_with_listener, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(establish_by_notify, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(migrate, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(migrate_late, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(datagrams, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(unreachable, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(lost_messages, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(never_established, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(stale_connection, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(datagrams_rejected, app_setup, app_teardown),
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
