/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/fault.h"
#include "softcx/ucma/addr.h"
#include "softcx/ucma/test-app.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

static void ports(void **state)
{
	struct sockaddr_in6 any6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(7471), .sin6_addr = in6addr_any};
	uint32_t a = app_create(server, RDMA_PS_TCP, 1), b = app_create(server, RDMA_PS_TCP, 2);
	uint32_t c = app_create(server, RDMA_PS_UDP, 3), d = app_create(server, RDMA_PS_TCP, 4);
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_query q = {.response = (uintptr_t)&resp, .id = d};

	assert_int_equal(app_bind4(server, a, "10.0.0.1", 7471), 0);
	assert_int_equal(app_bind4(server, a, "10.0.0.1", 7472), -EINVAL); /* bound already */
	assert_int_equal(app_bind4(server, b, "10.0.0.1", 7471), -EADDRINUSE);
	assert_int_equal(app_bind4(server, b, "0.0.0.0", 7471), -EADDRNOTAVAIL);
	assert_int_equal(app_bind4(server, c, "10.0.0.1", 7471), 0); /* another port space */
	assert_int_equal(app_bind4(server, b, "10.0.0.2", 7471), 0);
	assert_int_equal(app_bind(server, d, &any6, sizeof(any6)), -EADDRNOTAVAIL);
	assert_int_equal(app_bind4(server, d, "8.8.8.8", 0), -EADDRNOTAVAIL); /* not here */
	assert_int_equal(app_bind4(server, d, "127.0.0.1", 0), 0);
	assert_int_equal(ISSUE(server, QUERY, q, sizeof(resp)), 0);
	assert_in_range(ntohs(((struct sockaddr_in *)&resp.src_addr)->sin_port), 32768, 60999);
	assert_int_equal(resp.node_guid, 0x1234);
	assert_int_equal(resp.pkey, 0xffff);
	app_destroy(server, a);
	a = app_create(server, RDMA_PS_TCP, 1);
	assert_int_equal(app_bind4(server, a, "10.0.0.1", 7471), 0); /* free again */
}

static void reuse_address(void **state)
{
	uint32_t a = app_create(server, RDMA_PS_TCP, 1), b = app_create(server, RDMA_PS_TCP, 2);
	int one = 1;
	struct rdma_ucm_set_option opt = {.optval = (uintptr_t)&one,
		.id = a,
		.level = RDMA_OPTION_ID,
		.optname = RDMA_OPTION_ID_REUSEADDR,
		.optlen = sizeof(one)};

	assert_int_equal(ISSUE(server, SET_OPTION, opt, 0), 0);
	opt.id = b;
	assert_int_equal(ISSUE(server, SET_OPTION, opt, 0), 0);
	assert_int_equal(app_bind4(server, a, "0.0.0.0", 7471), 0);
	assert_int_equal(app_bind4(server, b, "0.0.0.0", 7471), 0);
	assert_int_equal(app_listen(server, a, 1), -EADDRNOTAVAIL); /* a listener is alone */
	app_destroy(server, b);
	assert_int_equal(app_listen(server, a, 1), 0);
	assert_int_equal(app_listen(server, a, 1), -EINVAL);
}

static void unresolvable(void **state)
{
	uint32_t a = app_create(client, RDMA_PS_TCP, 7);
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	struct rdma_ucm_resolve_addr cmd = {.id = a, .timeout_ms = 1, .dst_size = sizeof(six)};

	assert_int_equal(app_route(client, a), -EINVAL);
	assert_int_equal(app_resolve(client, a, "192.0.2.1", 1, 1), 0);
	assert_int_equal((int)app_await(client, ADDR_ERROR).status, -ETIMEDOUT);
	/* the id is bound and may try again, but not with another family */
	memcpy(&cmd.dst_addr, &six, sizeof(six));
	assert_int_equal(ISSUE(client, RESOLVE_ADDR, cmd, 0), -EINVAL);
	assert_int_equal(app_resolve(client, a, "10.0.0.2", 1, 1), 0);
	app_expect(client, ADDR_RESOLVED);

	cmd.id = app_create(client, RDMA_PS_TCP, 8);
	assert_int_equal(ISSUE(client, RESOLVE_ADDR, cmd, 0), 0);
	app_expect(client, ADDR_RESOLVED);
}

static void queries(void **state)
{
	uint32_t a = app_routed("10.0.0.2", 80);
	uint8_t path[8 + 6 * sizeof(struct ib_path_rec_data)] = {0};
	struct rdma_ucm_query_addr_resp gid, addr;
	struct rdma_ucm_query_route_resp old;
	struct rdma_ucm_query q = {.response = (uintptr_t)path, .id = a, .option = RDMA_USER_CM_QUERY_PATH};

	assert_int_equal(ISSUE(client, QUERY, q, sizeof(path)), 0);
	assert_int_equal(path[0], 1);
	assert_int_equal(path[8 + 8 + 8 + 15], 2); /* destination GID of the first */

	q.option = RDMA_USER_CM_QUERY_GID;
	q.response = (uintptr_t)&gid;
	assert_int_equal(ISSUE(client, QUERY, q, sizeof(gid)), 0);
	assert_int_equal(((uint8_t *)&gid.dst_addr)[8 + 15], 2);
	assert_int_equal(gid.ibdev_index, 1);
	assert_int_equal(gid.node_guid, 0x1235);

	q.option = RDMA_USER_CM_QUERY_ADDR;
	q.response = (uintptr_t)&addr;
	assert_int_equal(ISSUE(client, QUERY, q, sizeof(addr)), 0);
	assert_int_equal(addr.src_size, sizeof(struct sockaddr_in));
	assert_int_equal(
		((struct sockaddr_in *)&addr.src_addr)->sin_addr.s_addr, v4("10.0.0.2", 0).sin_addr.s_addr);
	assert_int_equal(((struct sockaddr_in *)&addr.dst_addr)->sin_port, htons(80));
	assert_int_equal(ISSUE(client, QUERY, q, 8), -ENOSPC);
	q.option = 9;
	assert_int_equal(ISSUE(client, QUERY, q, sizeof(addr)), -ENOSYS);

	q.response = (uintptr_t)&old;
	assert_int_equal(ISSUE(client, QUERY_ROUTE, q, sizeof(old)), 0);
	assert_int_equal(old.num_paths, 1);
	assert_int_equal(old.ib_route[0].dgid[15], 2);
	q.response = 0;
	assert_int_equal(ISSUE(client, QUERY_ROUTE, q, sizeof(old)), -EFAULT);
}

static void ib_wildcard(void **state)
{
	/* how librdmacm finds out whether the kernel knows AF_IB */
	struct {
		uint16_t family, pkey;
		uint32_t flow;
		uint8_t addr[16];
		uint64_t sid, mask, scope;
	} sib = {.family = 27};
	uint32_t a = app_create(client, RDMA_PS_IB, 1), b = app_create(client, RDMA_PS_IB, 2);

	sib.sid = htobe64(UINT64_C(0x0000000001060000));
	sib.mask = htobe64(UINT64_C(0xFFFFFFFFFFFF0000));
	assert_int_equal(app_bind(client, a, &sib, sizeof(sib)), 0);
	sib.addr[0] = 0xfe;
	assert_int_equal(app_bind(client, b, &sib, sizeof(sib)), -ENODEV);
}

static in_addr_t source(struct ucma_file *file, uint32_t id)
{
	struct rdma_ucm_query_addr_resp resp = app_addresses(file, id);

	return ((struct sockaddr_in *)&resp.src_addr)->sin_addr.s_addr;
}

/* Each host has addresses and ports of its own. */
static void hosts(void **state)
{
	uint32_t a = app_create(server, RDMA_PS_TCP, 1), b = app_create(far, RDMA_PS_TCP, 2);
	struct rdma_ucm_event_resp ev;
	uint32_t c, d;

	assert_int_equal(app_bind4(server, a, "10.0.0.3", 7471), -EADDRNOTAVAIL); /* of the other host */
	assert_int_equal(app_bind4(far, b, "10.0.0.1", 7471), -EADDRNOTAVAIL);
	assert_int_equal(app_bind4(server, a, "0.0.0.0", 7471), 0);
	assert_int_equal(app_bind4(far, b, "0.0.0.0", 7471), 0); /* the same port there */
	assert_int_equal(app_listen(server, a, 5), 0);
	assert_int_equal(app_listen(far, b, 5), 0);

	/* to the other host, from the address of the first device; within the host, from the address itself
	 */
	c = app_route_to(client, RDMA_PS_TCP, "10.0.0.3", 7471);
	assert_int_equal(source(client, c), v4("10.0.0.1", 0).sin_addr.s_addr);
	assert_int_equal(app_connect(client, c), 0);
	ev = app_expect(far, CONNECT_REQUEST);
	app_expect_none(server);
	assert_int_equal(source(far, ev.id), v4("10.0.0.3", 0).sin_addr.s_addr);
	assert_int_equal(app_addresses(far, ev.id).ibdev_index, 0); /* the first of its host */
	assert_int_equal(app_accept(far, ev.id, 1, "", 0), 0);
	app_expect(client, CONNECT_RESPONSE);

	d = app_route_to(client, RDMA_PS_TCP, "10.0.0.2", 7471);
	assert_int_equal(source(client, d), v4("10.0.0.2", 0).sin_addr.s_addr);
	assert_int_equal(app_connect(client, d), 0);
	app_expect(server, CONNECT_REQUEST);

	/* the wildcard as a destination is the asking host */
	d = app_route_to(far, RDMA_PS_TCP, "0.0.0.0", 7471);
	assert_int_equal(source(far, d), v4("10.0.0.3", 0).sin_addr.s_addr);
	assert_int_equal(app_connect(far, d), 0);
	app_expect(far, CONNECT_REQUEST);
}

static void options(void **state)
{
	uint32_t rc = app_create(client, RDMA_PS_TCP, 1), ud = app_create(client, RDMA_PS_UDP, 2);
	struct ib_uverbs_qp_attr attr;
	uint8_t tos = 0x68, timeout = 9;
	int one = 1;
	struct pair p;

	assert_int_equal(app_set_option(client, rc, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)), 0);
	assert_int_equal(app_set_option(client, rc, RDMA_OPTION_ID_TOS, &one, sizeof(one)), -EINVAL);
	assert_int_equal(
		app_set_option(client, rc, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)), 0);
	assert_int_equal(
		app_set_option(client, ud, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout)), -EINVAL);
	assert_int_equal(app_set_option(client, rc, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)), 0);
	assert_int_equal(app_resolve(client, rc, "10.0.0.2", 7471, 10), 0);
	app_expect(client, ADDR_RESOLVED);
	assert_int_equal(app_set_option(client, rc, RDMA_OPTION_ID_AFONLY, &one, sizeof(one)), -EINVAL);
	assert_int_equal(app_route(client, rc), 0);
	app_expect(client, ROUTE_RESOLVED);

	/* what they are good for */
	p.listener = app_listener("0.0.0.0", 7471, 5);
	assert_int_equal(app_connect(client, rc), 0);
	p.passive = app_expect(server, CONNECT_REQUEST).id;
	assert_int_equal(app_accept(server, p.passive, 1, "", 0), 0);
	app_expect(client, CONNECT_RESPONSE);
	assert_int_equal(app_qp_attr(client, rc, IBV_QPS_RTR, &attr), 0);
	assert_int_equal(attr.ah_attr.grh.traffic_class, 0x68);
	assert_int_equal(app_qp_attr(client, rc, IBV_QPS_RTS, &attr), 0);
	assert_int_equal(attr.timeout, 9);
	/* the other side waits for as long as this one asks it to, the delay of its own ACKs included */
	assert_int_equal(app_qp_attr(server, p.passive, IBV_QPS_RTS, &attr), 0);
	assert_int_equal(attr.timeout, 16);
	/* and its packets have the same class */
	assert_int_equal(app_qp_attr(server, p.passive, IBV_QPS_RTR, &attr), 0);
	assert_int_equal(attr.ah_attr.grh.traffic_class, 0x68);
}

/* CAP_NET_BIND_SERVICE in the effective set of this thread. */
static void set_cap(bool on)
{
	struct __user_cap_header_struct hdr = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	assert_int_equal(syscall(SYS_capget, &hdr, data), 0);
	data[0].effective &= ~(1u << CAP_NET_BIND_SERVICE);
	if (on)
		data[0].effective |= data[0].permitted & 1u << CAP_NET_BIND_SERVICE;
	assert_int_equal(syscall(SYS_capset, &hdr, data), 0);
}

static void low_ports(void **state)
{
	uint32_t a = app_create(client, RDMA_PS_TCP, 1);
	struct sockaddr_in src = v4("10.0.0.1", 1023), dst = v4("10.0.0.2", 80);
	struct rdma_ucm_resolve_addr cmd = {
		.id = a, .timeout_ms = 1, .src_size = sizeof(src), .dst_size = sizeof(dst)};

	memcpy(&cmd.src_addr, &src, sizeof(src));
	memcpy(&cmd.dst_addr, &dst, sizeof(dst));
	set_cap(false);
	assert_int_equal(app_bind4(client, a, "10.0.0.1", 1023), -EACCES);
	assert_int_equal(ISSUE(client, RESOLVE_ADDR, cmd, 0), -EACCES);
	assert_int_equal(app_bind4(client, a, "10.0.0.1", 1024), 0);
	assert_int_equal(
		app_resolve(client, a, "10.0.0.2", 80, 1), 0); /* a low port of the peer is no matter */
	set_cap(true);
}

static void link_local(void **state)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	uint32_t a = app_create(client, RDMA_PS_TCP, 1);

	six.sin6_addr.s6_addr[0] = 0xfe;
	six.sin6_addr.s6_addr[1] = 0x80;
	six.sin6_addr.s6_addr[15] = 1; /* of device 1 */
	assert_int_equal(app_bind(client, a, &six, sizeof(six)), -EINVAL);
	six.sin6_scope_id = 1;
	assert_int_equal(app_bind(client, a, &six, sizeof(six)), 0);
	assert_int_equal(app_addresses(client, a).node_guid, 0x1235);
}

/* ::1 is a GID of the first device of each host, and means that of the own host. */
static void loopback6(void **state)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	struct sockaddr_storage addr = {0};
	struct ucma_where where;

	memcpy(&addr, &six, sizeof(six));
	for (unsigned host = 0; host < 2; host++) {
		assert_int_equal(ucma_addr_find(APP_DEVS, host, &addr, &where), 0);
		assert_int_equal(where.dev, 2 * host);
		assert_int_equal(where.gid_index, 5);
		assert_memory_equal(where.gid, &six.sin6_addr, 16);
	}
}

static void ephemeral_ports_are_shared(void **state)
{
	enum { PORTS = 60999 - 32768 + 1 };
	uint32_t id = 0;

	for (unsigned i = 0; i < PORTS; i++) {
		id = app_create(client, RDMA_PS_TCP, 1);
		assert_int_equal(app_resolve(client, id, "10.0.0.2", 7471, 1), 0);
	}
	id = app_create(client, RDMA_PS_TCP, 1);
	assert_int_equal(app_resolve(client, id, "10.0.0.2", 7471, 1), -EADDRNOTAVAIL); /* to the same peer */
	assert_int_equal(app_resolve(client, id, "10.0.0.2", 7472, 1), 0);
}

static void port_down(unsigned dev, bool down)
{
	struct hw_fault fault = {.kind = down ? HW_FAULT_PORT_DOWN : HW_FAULT_PORT_UP, .opcode = -1};

	assert_int_equal(hw_fault_add(devs[dev], &fault), 0);
}

/* Nobody answers behind a port that is down; when it comes up in time, somebody does. */
static void resolving_through_a_port_that_is_down(void **state)
{
	uint32_t a = app_create(client, RDMA_PS_TCP, 1);
	struct rdma_ucm_resolve_route cmd = {.id = a};

	port_down(1, true);
	assert_int_equal(app_resolve(client, a, "10.0.0.2", 1, 2000), 0);
	app_expect_none(client);
	assert_int_equal((int)app_await(client, ADDR_ERROR).status, -ETIMEDOUT);
	assert_int_equal(app_resolve(client, a, "10.0.0.2", 1, 2000), 0);
	app_expect_none(client);
	port_down(1, false);
	assert_int_equal(app_await(client, ADDR_RESOLVED).status, 0);
	assert_int_equal(ISSUE(client, RESOLVE_ROUTE, cmd, 0), -EINVAL); /* in no time */
}

/* Of many that wait, the one whose time is over first ends first, and one that was destroyed never. */
static void waiting_in_any_order(void **state)
{
	enum { IDS = 500 };
	uint32_t id[IDS], last = 0;

	port_down(1, true);
	for (uint32_t i = 0; i < IDS; i++) {
		id[i] = app_create(client, RDMA_PS_TCP, i);
		assert_int_equal(app_resolve(client, id[i], "10.0.0.2", 1, 1 + i * 197 % IDS), 0);
	}
	app_expect_none(client);
	for (uint32_t i = 0; i < IDS; i += 3)
		app_destroy(client, id[i]);
	for (uint32_t i = 0; i < IDS - (IDS + 2) / 3; i++) {
		struct rdma_ucm_event_resp ev = app_await(client, ADDR_ERROR);
		uint32_t ms = 1 + (uint32_t)ev.uid * 197 % IDS;

		assert_true(ev.uid % 3 && ms > last);
		last = ms;
	}
	app_expect_none(client);
}

/* A group has an address, and ids that could join it; what there is not is the group. */
static void multicast(void **state)
{
	uint32_t ud = app_create(client, RDMA_PS_UDP, 1), rc = app_create(client, RDMA_PS_TCP, 2);
	struct sockaddr_in group = v4("239.1.1.1", 0);
	struct rdma_ucm_create_id_resp resp;
	struct rdma_ucm_join_mcast join = {
		.response = (uintptr_t)&resp, .id = ud, .addr_size = sizeof(group)};
	struct rdma_ucm_join_ip_mcast old = {.response = (uintptr_t)&resp, .id = ud};

	memcpy(&join.addr, &group, sizeof(group));
	memcpy(&old.addr, &group, sizeof(group));
	assert_int_equal(ISSUE(client, JOIN_MCAST, join, sizeof(resp)), -EINVAL); /* not on a device */
	assert_int_equal(app_resolve(client, ud, "239.1.1.1", 0, 1), 0);
	app_expect(client, ADDR_RESOLVED);
	assert_int_equal(app_addresses(client, ud).node_guid, 0x1234);
	assert_int_equal(ISSUE(client, JOIN_MCAST, join, sizeof(resp)), -ENOSYS);
	assert_int_equal(ISSUE(client, JOIN_IP_MCAST, old, sizeof(resp)), -ENOSYS);
	assert_int_equal(ISSUE(client, JOIN_MCAST, join, 0), -ENOSPC);
	join.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	assert_int_equal(ISSUE(client, JOIN_MCAST, join, sizeof(resp)), -EINVAL);
	join.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	assert_int_equal(ISSUE(client, JOIN_MCAST, join, sizeof(resp)), -ENOSYS);
	join.addr_size = 3;
	assert_int_equal(ISSUE(client, JOIN_MCAST, join, sizeof(resp)), -EINVAL);

	assert_int_equal(app_resolve(client, rc, "239.1.1.1", 0, 1), 0);
	app_expect(client, ADDR_RESOLVED);
	old.id = rc;
	assert_int_equal(ISSUE(client, JOIN_IP_MCAST, old, sizeof(resp)), -EINVAL);
}

/* An event that the program sends itself; for any other one there is no such way. */
static void own_events(void **state)
{
	enum { WRITE_CM_EVENT = 24, USER = 18 };
	struct {
		uint32_t id, reserved, event, status;
		uint64_t arg;
	} cmd = {.id = app_create(client, RDMA_PS_TCP, 7),
		.event = USER,
		.status = 5,
		.arg = 0x1122334455667788};
	struct rdma_ucm_event_resp event;
	uint64_t arg;

	assert_int_equal(app_issue(client, WRITE_CM_EVENT, &cmd, sizeof(cmd), 0), 0);
	event = app_expect(client, USER);
	assert_int_equal(event.uid, 7);
	assert_int_equal(event.status, 5);
	memcpy(&arg, &event.param, sizeof(arg));
	assert_int_equal(arg, cmd.arg);
	cmd.event = ESTABLISHED;
	assert_int_equal(app_issue(client, WRITE_CM_EVENT, &cmd, sizeof(cmd), 0), -EINVAL);
	cmd.event = USER;
	assert_int_equal(app_issue(server, WRITE_CM_EVENT, &cmd, sizeof(cmd), 0), -EINVAL);
	app_expect_none(client);
	assert_int_equal(app_destroy(client, cmd.id), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ports, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(reuse_address, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(unresolvable, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(queries, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(ib_wildcard, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(hosts, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(options, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(low_ports, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(link_local, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(loopback6, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(ephemeral_ports_are_shared, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(
			resolving_through_a_port_that_is_down, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(waiting_in_any_order, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(multicast, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(own_events, app_setup, app_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
