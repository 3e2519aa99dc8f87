/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/call.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_user_cm.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* enum rdma_cm_event_type */
enum {
	ADDR_RESOLVED,
	ADDR_ERROR,
	ROUTE_RESOLVED,
	CONNECT_REQUEST = 4,
	CONNECT_RESPONSE,
	UNREACHABLE = 7,
	REJECTED,
	ESTABLISHED,
	DISCONNECTED,
	TIMEWAIT_EXIT = 15,
};

/* ---- a fake of the server: the "application" is this process --------------------------------- */

struct nic_call {
	const void *bytes;
	size_t len;
};

pid_t nic_call_pid(const struct nic_call *call)
{
	(void)call;
	return getpid();
}

const void *nic_call_bytes(const struct nic_call *call, size_t *len)
{
	*len = call->len;
	return call->bytes;
}

int nic_call_store(struct nic_call *call, uint64_t va, const void *bytes, size_t len)
{
	struct iovec local = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)va, .iov_len = len};

	(void)call;
	if (process_vm_writev(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)len)
		return -EFAULT;
	return 0;
}

static struct ucma_file *fds[4];

int nic_call_ucma_file(struct nic_call *call, int fd, struct ucma_file **file)
{
	(void)call;
	if (fd < 0 || fd >= 4 || !fds[fd])
		return -EBADF;
	*file = fds[fd];
	return 0;
}

void nic_dev_gids(unsigned dev, uint8_t gids[16][16], unsigned *ngids)
{
	memset(gids, 0, 256);
	gids[0][0] = 0xfe;
	gids[0][1] = 0x80;
	gids[0][15] = (uint8_t)dev;
	gids[1][10] = gids[1][11] = 0xff;
	gids[1][12] = 10;
	gids[1][15] = (uint8_t)(dev + 1); /* 10.0.0.1, 10.0.0.2 */
	*ngids = 2;
}

uint64_t nic_dev_guid(unsigned dev)
{
	return 0x1234 + dev;
}

static unsigned wakes;

static void wake(void *arg)
{
	(void)arg;
	wakes++;
}

/* ---- commands ---------------------------------------------------------------------------- */

static struct ucma_net *net;
static struct ucma_file *server, *client;

static ssize_t issue(struct ucma_file *file, uint32_t cmd, const void *body, size_t in, size_t out)
{
	struct rdma_ucm_cmd_hdr hdr = {.cmd = cmd, .in = (uint16_t)in, .out = (uint16_t)out};
	/* exactly as long as the command, so that a sanitizer sees reads beyond it */
	uint8_t *bytes = malloc(sizeof(hdr) + in);
	struct nic_call call = {.bytes = bytes, .len = sizeof(hdr) + in};
	ssize_t ret;

	assert_non_null(bytes);
	memcpy(bytes, &hdr, sizeof(hdr));
	memcpy(bytes + sizeof(hdr), body, in);
	ret = ucma_write(file, &call);
	free(bytes);
	return ret < 0 ? ret : (assert_int_equal(ret, sizeof(hdr) + in), 0);
}

#define ISSUE(file, cmd, body, out) issue(file, RDMA_USER_CM_CMD_##cmd, &(body), sizeof(body), out)

static uint32_t create(struct ucma_file *file, uint16_t ps, uint64_t uid)
{
	struct rdma_ucm_create_id_resp resp = {0};
	struct rdma_ucm_create_id cmd = {
		.uid = uid, .response = (uintptr_t)&resp, .ps = ps, .qp_type = IBV_QPT_RC};

	assert_int_equal(ISSUE(file, CREATE_ID, cmd, sizeof(resp)), 0);
	return resp.id;
}

static uint32_t destroy(struct ucma_file *file, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp = {.events_reported = 99};
	struct rdma_ucm_destroy_id cmd = {.response = (uintptr_t)&resp, .id = id};

	assert_int_equal(ISSUE(file, DESTROY_ID, cmd, sizeof(resp)), 0);
	return resp.events_reported;
}

static struct sockaddr_in v4(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET, ip, &sin.sin_addr), 1);
	return sin;
}

static ssize_t bind_to(struct ucma_file *file, uint32_t id, const void *addr, size_t len)
{
	struct rdma_ucm_bind cmd = {.id = id, .addr_size = (uint16_t)len};

	memcpy(&cmd.addr, addr, len);
	return ISSUE(file, BIND, cmd, 0);
}

static ssize_t bind4(struct ucma_file *file, uint32_t id, const char *ip, uint16_t port)
{
	struct sockaddr_in sin = v4(ip, port);

	return bind_to(file, id, &sin, sizeof(sin));
}

static ssize_t listen_on(struct ucma_file *file, uint32_t id, uint32_t backlog)
{
	struct rdma_ucm_listen cmd = {.id = id, .backlog = backlog};

	return ISSUE(file, LISTEN, cmd, 0);
}

static ssize_t resolve(struct ucma_file *file, uint32_t id, const char *ip, uint16_t port, uint32_t ms)
{
	struct sockaddr_in sin = v4(ip, port);
	struct rdma_ucm_resolve_addr cmd = {.id = id, .timeout_ms = ms, .dst_size = sizeof(sin)};

	memcpy(&cmd.dst_addr, &sin, sizeof(sin));
	return ISSUE(file, RESOLVE_ADDR, cmd, 0);
}

static ssize_t route(struct ucma_file *file, uint32_t id)
{
	struct rdma_ucm_resolve_route cmd = {.id = id, .timeout_ms = 1000};

	return ISSUE(file, RESOLVE_ROUTE, cmd, 0);
}

static ssize_t get_event(struct ucma_file *file, struct rdma_ucm_event_resp *ev)
{
	struct rdma_ucm_get_event cmd = {.response = (uintptr_t)ev};

	ucma_net_timers(net);
	return ISSUE(file, GET_EVENT, cmd, sizeof(*ev));
}

static struct rdma_ucm_event_resp expect(struct ucma_file *file, uint32_t event)
{
	struct rdma_ucm_event_resp ev = {0};

	assert_int_equal(get_event(file, &ev), 0);
	assert_int_equal(ev.event, event);
	return ev;
}

static void expect_none(struct ucma_file *file)
{
	struct rdma_ucm_event_resp ev;

	assert_int_equal(get_event(file, &ev), -EAGAIN);
	assert_int_equal(ucma_pending(file), 0);
}

/* However long it takes: time is the emulation's own. */
static struct rdma_ucm_event_resp await(struct ucma_file *file, uint32_t event)
{
	struct rdma_ucm_event_resp ev = {0};

	while (get_event(file, &ev) == -EAGAIN) {
		uint64_t ns = ucma_net_timers(net);
		struct timespec ts = {
			.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

		if (ucma_pending(file))
			continue;
		assert_true(ns != UINT64_MAX);
		nanosleep(&ts, NULL);
	}
	assert_int_equal(ev.event, event);
	return ev;
}

static struct rdma_ucm_connect connect_cmd(uint32_t id, const void *data, size_t len)
{
	struct rdma_ucm_connect cmd = {.id = id};

	cmd.conn_param.valid = 1;
	cmd.conn_param.qp_num = 0x11;
	cmd.conn_param.responder_resources = 3;
	cmd.conn_param.initiator_depth = 5;
	cmd.conn_param.retry_count = 9;
	cmd.conn_param.rnr_retry_count = 6;
	cmd.conn_param.private_data_len = (uint8_t)len;
	memcpy(cmd.conn_param.private_data, data, len);
	cmd.ece.vendor_id = 0x15b3;
	return cmd;
}

static ssize_t accept_id(struct ucma_file *file, uint32_t id, uint64_t uid, const void *data, size_t len)
{
	struct rdma_ucm_accept cmd = {.id = id, .uid = uid};

	cmd.conn_param.valid = 1;
	cmd.conn_param.qp_num = 0x22;
	cmd.conn_param.responder_resources = 4;
	cmd.conn_param.initiator_depth = 2;
	cmd.conn_param.rnr_retry_count = 7;
	cmd.conn_param.private_data_len = (uint8_t)len;
	memcpy(cmd.conn_param.private_data, data, len);
	return ISSUE(file, ACCEPT, cmd, 0);
}

static ssize_t establish(struct ucma_file *file, uint32_t id)
{
	struct rdma_ucm_accept cmd = {.id = id};

	return ISSUE(file, ACCEPT, cmd, 0);
}

static ssize_t disconnect(struct ucma_file *file, uint32_t id)
{
	struct rdma_ucm_disconnect cmd = {.id = id};

	return ISSUE(file, DISCONNECT, cmd, 0);
}

static ssize_t qp_attr(
	struct ucma_file *file, uint32_t id, enum ibv_qp_state state, struct ib_uverbs_qp_attr *attr)
{
	struct rdma_ucm_init_qp_attr cmd = {.response = (uintptr_t)attr, .id = id, .qp_state = state};

	return ISSUE(file, INIT_QP_ATTR, cmd, sizeof(*attr));
}

/* An id of the client that could connect now. */
static uint32_t routed(const char *ip, uint16_t port)
{
	uint32_t id = create(client, RDMA_PS_TCP, 0xc1);

	assert_int_equal(resolve(client, id, ip, port, 1000), 0);
	assert_int_equal(expect(client, ADDR_RESOLVED).id, id);
	assert_int_equal(route(client, id), 0);
	expect(client, ROUTE_RESOLVED);
	return id;
}

static uint32_t listener(const char *ip, uint16_t port, uint32_t backlog)
{
	uint32_t id = create(server, RDMA_PS_TCP, 0x51);

	assert_int_equal(bind4(server, id, ip, port), 0);
	assert_int_equal(listen_on(server, id, backlog), 0);
	return id;
}

struct pair {
	uint32_t listener, active, passive;
};

static struct pair connected(void)
{
	struct pair p = {.listener = listener("0.0.0.0", 7471, 10), .active = routed("127.0.0.1", 7471)};
	struct rdma_ucm_connect cmd = connect_cmd(p.active, "hi", 2);

	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	p.passive = expect(server, CONNECT_REQUEST).id;
	assert_int_equal(accept_id(server, p.passive, 0x52, "yo", 2), 0);
	expect(client, CONNECT_RESPONSE);
	assert_int_equal(establish(client, p.active), 0);
	expect(server, ESTABLISHED);
	return p;
}

static int setup(void **state)
{
	struct hw_dev *devs[2] = {NULL, NULL};

	(void)state;
	wakes = 0;
	if (ucma_net_new(&net, devs, 2) || ucma_open(net, wake, NULL, &server) ||
		ucma_open(net, wake, NULL, &client))
		return -1;
	fds[0] = server;
	fds[1] = client;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	if (client)
		ucma_close(client);
	if (server)
		ucma_close(server);
	ucma_net_timers(net);
	ucma_net_free(net);
	client = server = NULL;
	memset(fds, 0, sizeof(fds));
	return 0;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void connection(void **state)
{
	uint32_t l = listener("0.0.0.0", 7471, 10), a = routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = connect_cmd(a, "question", 8);
	struct rdma_ucm_event_resp ev;
	uint32_t p;

	(void)state;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	assert_int_equal(ucma_pending(server), 0); /* nothing happens inside the call */
	ev = expect(server, CONNECT_REQUEST);
	assert_int_equal(ev.uid, 0x51);
	p = ev.id;
	assert_int_not_equal(p, l);
	assert_int_equal(ev.param.conn.private_data_len, 56);
	assert_memory_equal(ev.param.conn.private_data, "question\0\0\0", 11);
	assert_int_equal(ev.param.conn.qp_num, 0x11);
	assert_int_equal(ev.param.conn.responder_resources, 5);
	assert_int_equal(ev.param.conn.initiator_depth, 3);
	assert_int_equal(ev.param.conn.retry_count, 7);
	assert_int_equal(ev.param.conn.rnr_retry_count, 6);
	assert_int_equal(ev.ece.vendor_id, 0x15b3);
	expect_none(client);

	assert_int_equal(accept_id(server, p, 0x52, "answer", 6), 0);
	ev = expect(client, CONNECT_RESPONSE);
	assert_int_equal(ev.uid, 0xc1);
	assert_int_equal(ev.param.conn.private_data_len, 196);
	assert_memory_equal(ev.param.conn.private_data, "answer\0\0", 8);
	assert_int_equal(ev.param.conn.responder_resources, 2);
	assert_int_equal(ev.param.conn.initiator_depth, 4);
	assert_int_equal(ev.param.conn.qp_num, 0x22);
	expect_none(server); /* not before the client is ready to use */

	assert_int_equal(establish(client, a), 0);
	ev = expect(server, ESTABLISHED);
	assert_int_equal(ev.uid, 0x52);
	assert_int_equal(ev.id, p);
	expect_none(client);
	assert_int_equal(wakes, 5);

	assert_int_equal(disconnect(client, a), 0);
	expect(server, DISCONNECTED);
	expect_none(client); /* not before the server has answered */
	assert_int_equal(disconnect(server, p), 0);
	assert_int_equal(expect(client, DISCONNECTED).status, 0);
	assert_int_equal(destroy(client, a), 4);
	assert_int_equal(destroy(server, p), 2);
	assert_int_equal(destroy(server, l), 1);
}

static void queue_attributes(void **state)
{
	struct pair p = connected();
	struct ib_uverbs_qp_attr a, b;
	uint32_t fresh = routed("10.0.0.2", 7471);
	struct ucma_counts counts;

	(void)state;
	ucma_counts(net, &counts);
	assert_int_equal(counts.ids, 4);
	assert_int_equal(counts.listeners, 1);
	assert_int_equal(counts.connections, 2);
	assert_int_equal(qp_attr(client, fresh, IBV_QPS_INIT, &a), 0);
	assert_int_equal(
		a.qp_attr_mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	assert_int_equal(a.qp_access_flags, 0);
	assert_int_equal(a.port_num, 1);

	assert_int_equal(qp_attr(client, p.active, IBV_QPS_INIT, &a), 0);
	assert_int_equal(a.qp_access_flags,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

	assert_int_equal(qp_attr(client, p.active, IBV_QPS_RTR, &a), 0);
	assert_int_equal(qp_attr(server, p.passive, IBV_QPS_RTS, &b), 0);
	assert_int_equal(a.qp_attr_mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
						 IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
						 IBV_QP_MIN_RNR_TIMER);
	assert_int_equal(a.dest_qp_num, 0x22);
	assert_int_equal(a.ah_attr.is_global, 1);
	assert_int_equal(a.ah_attr.grh.sgid_index, 1);
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

	assert_int_equal(qp_attr(server, p.passive, IBV_QPS_RTR, &a), 0);
	assert_int_equal(qp_attr(client, p.active, IBV_QPS_RTS, &b), 0);
	assert_int_equal(a.rq_psn, b.sq_psn);
	assert_int_equal(a.dest_qp_num, 0x11);
	assert_int_equal(a.max_dest_rd_atomic, 4);
	assert_int_equal(b.max_rd_atomic, 4);
	assert_int_equal(b.rnr_retry, 7); /* what the REP said */

	assert_int_equal(qp_attr(client, p.active, IBV_QPS_SQD, &a), -EINVAL);
	assert_int_equal(qp_attr(client, p.active, 77, &a), -EINVAL);
	assert_int_equal(qp_attr(server, p.listener, IBV_QPS_INIT, &a), -EINVAL); /* no device */
}

static void no_listener(void **state)
{
	uint32_t a = routed("127.0.0.1", 1234);
	struct rdma_ucm_connect cmd = connect_cmd(a, "", 0);
	struct rdma_ucm_event_resp ev;

	(void)state;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	expect_none(client); /* a listener may still turn up */
	ev = await(client, REJECTED);
	assert_int_equal(ev.status, 8);
	assert_int_equal(ev.param.conn.private_data_len, 148);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), -EINVAL); /* an id connects once */
	assert_int_equal(destroy(client, a), 3);
}

static void late_listener(void **state)
{
	uint32_t a = routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = connect_cmd(a, "", 0);

	(void)state;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	expect_none(client);
	listener("0.0.0.0", 7471, 1);
	await(server, CONNECT_REQUEST);
}

static void reject(void **state)
{
	uint32_t l = listener("10.0.0.1", 7471, 10), a = routed("10.0.0.1", 7471);
	struct rdma_ucm_connect con = connect_cmd(a, "", 0);
	struct rdma_ucm_reject cmd = {.private_data_len = 149, .private_data = "no"};
	struct rdma_ucm_event_resp ev;

	(void)state;
	(void)l;
	assert_int_equal(ISSUE(client, CONNECT, con, 0), 0);
	cmd.id = expect(server, CONNECT_REQUEST).id;
	assert_int_equal(ISSUE(server, REJECT, cmd, 0), -EINVAL);
	cmd.private_data_len = 2;
	cmd.reason = 3;
	assert_int_equal(ISSUE(server, REJECT, cmd, 0), -EINVAL);
	cmd.reason = 0;
	assert_int_equal(ISSUE(server, REJECT, cmd, 0), 0);
	ev = expect(client, REJECTED);
	assert_int_equal(ev.status, 28);
	assert_int_equal(ev.param.conn.private_data_len, 148);
	assert_memory_equal(ev.param.conn.private_data, "no\0", 3);
	assert_int_equal(accept_id(server, cmd.id, 1, "", 0), -EINVAL);
	assert_int_equal(destroy(server, cmd.id), 0);
	expect_none(server);
}

static void private_data_sizes(void **state)
{
	uint32_t l = listener("0.0.0.0", 7471, 10), a = routed("127.0.0.1", 7471), p;
	uint8_t data[256];
	struct rdma_ucm_connect cmd;

	(void)state;
	(void)l;
	memset(data, 0xab, sizeof(data));
	cmd = connect_cmd(a, data, 57);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), -EINVAL);
	cmd = connect_cmd(a, data, 56);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	p = expect(server, CONNECT_REQUEST).id;
	/* an accept that cannot be sent rejects */
	assert_int_equal(accept_id(server, p, 1, data, 197), -EINVAL);
	assert_int_equal(expect(client, REJECTED).status, 28);

	a = routed("127.0.0.1", 7471);
	cmd = connect_cmd(a, data, 0);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	p = expect(server, CONNECT_REQUEST).id;
	assert_int_equal(accept_id(server, p, 1, data, 196), 0);
	assert_int_equal(expect(client, CONNECT_RESPONSE).param.conn.private_data[195], 0xab);
}

static void ports(void **state)
{
	struct sockaddr_in6 any6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(7471), .sin6_addr = in6addr_any};
	uint32_t a = create(server, RDMA_PS_TCP, 1), b = create(server, RDMA_PS_TCP, 2);
	uint32_t c = create(server, RDMA_PS_UDP, 3), d = create(server, RDMA_PS_TCP, 4);
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_query q = {.response = (uintptr_t)&resp, .id = d};

	(void)state;
	assert_int_equal(bind4(server, a, "10.0.0.1", 7471), 0);
	assert_int_equal(bind4(server, a, "10.0.0.1", 7472), -EINVAL); /* bound already */
	assert_int_equal(bind4(server, b, "10.0.0.1", 7471), -EADDRINUSE);
	assert_int_equal(bind4(server, b, "0.0.0.0", 7471), -EADDRNOTAVAIL);
	assert_int_equal(bind4(server, c, "10.0.0.1", 7471), 0); /* another port space */
	assert_int_equal(bind4(server, b, "10.0.0.2", 7471), 0);
	assert_int_equal(bind_to(server, d, &any6, sizeof(any6)), -EADDRNOTAVAIL);
	assert_int_equal(bind4(server, d, "8.8.8.8", 0), -EADDRNOTAVAIL); /* not here */
	assert_int_equal(bind4(server, d, "127.0.0.1", 0), 0);
	assert_int_equal(ISSUE(server, QUERY, q, sizeof(resp)), 0);
	assert_in_range(ntohs(((struct sockaddr_in *)&resp.src_addr)->sin_port), 32768, 60999);
	assert_int_equal(resp.node_guid, 0x1234);
	assert_int_equal(resp.pkey, 0xffff);
	destroy(server, a);
	a = create(server, RDMA_PS_TCP, 1);
	assert_int_equal(bind4(server, a, "10.0.0.1", 7471), 0); /* free again */
}

static void reuse_address(void **state)
{
	uint32_t a = create(server, RDMA_PS_TCP, 1), b = create(server, RDMA_PS_TCP, 2);
	int one = 1;
	struct rdma_ucm_set_option opt = {.optval = (uintptr_t)&one,
		.id = a,
		.level = RDMA_OPTION_ID,
		.optname = RDMA_OPTION_ID_REUSEADDR,
		.optlen = sizeof(one)};

	(void)state;
	assert_int_equal(ISSUE(server, SET_OPTION, opt, 0), 0);
	opt.id = b;
	assert_int_equal(ISSUE(server, SET_OPTION, opt, 0), 0);
	assert_int_equal(bind4(server, a, "0.0.0.0", 7471), 0);
	assert_int_equal(bind4(server, b, "0.0.0.0", 7471), 0);
	assert_int_equal(listen_on(server, a, 1), -EADDRNOTAVAIL); /* a listener is alone */
	destroy(server, b);
	assert_int_equal(listen_on(server, a, 1), 0);
	assert_int_equal(listen_on(server, a, 1), -EINVAL);
}

static void unresolvable(void **state)
{
	uint32_t a = create(client, RDMA_PS_TCP, 7);
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	struct rdma_ucm_resolve_addr cmd = {.id = a, .timeout_ms = 1, .dst_size = sizeof(six)};

	(void)state;
	assert_int_equal(route(client, a), -EINVAL);
	assert_int_equal(resolve(client, a, "192.0.2.1", 1, 1), 0);
	assert_int_equal((int)await(client, ADDR_ERROR).status, -ETIMEDOUT);
	/* the id is bound and may try again, but not with another family */
	memcpy(&cmd.dst_addr, &six, sizeof(six));
	assert_int_equal(ISSUE(client, RESOLVE_ADDR, cmd, 0), -EINVAL);
	assert_int_equal(resolve(client, a, "10.0.0.2", 1, 1), 0);
	expect(client, ADDR_RESOLVED);

	cmd.id = create(client, RDMA_PS_TCP, 8);
	assert_int_equal(ISSUE(client, RESOLVE_ADDR, cmd, 0), 0);
	expect(client, ADDR_RESOLVED);
}

static void queries(void **state)
{
	uint32_t a = routed("10.0.0.2", 80);
	uint8_t path[8 + 6 * sizeof(struct ib_path_rec_data)] = {0};
	struct rdma_ucm_query_addr_resp gid, addr;
	struct rdma_ucm_query_route_resp old;
	struct rdma_ucm_query q = {.response = (uintptr_t)path, .id = a, .option = RDMA_USER_CM_QUERY_PATH};

	(void)state;
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
	uint32_t a = create(client, RDMA_PS_IB, 1), b = create(client, RDMA_PS_IB, 2);

	(void)state;
	sib.sid = htobe64(UINT64_C(0x0000000001060000));
	sib.mask = htobe64(UINT64_C(0xFFFFFFFFFFFF0000));
	assert_int_equal(bind_to(client, a, &sib, sizeof(sib)), 0);
	sib.addr[0] = 0xfe;
	assert_int_equal(bind_to(client, b, &sib, sizeof(sib)), -ENODEV);
}

static void full_backlog(void **state)
{
	uint32_t l = listener("0.0.0.0", 7471, 1), a = routed("127.0.0.1", 7471),
		 b = routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = connect_cmd(a, "a", 1);

	(void)state;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	cmd = connect_cmd(b, "b", 1);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	assert_int_equal(expect(server, CONNECT_REQUEST).param.conn.private_data[0], 'a');
	expect_none(client); /* the second is not turned away, it asks again */
	assert_int_equal(await(server, CONNECT_REQUEST).param.conn.private_data[0], 'b');
	expect_none(server);
	assert_int_equal(destroy(server, l), 2);
}

static void unread_requests_end_with_listener(void **state)
{
	uint32_t l = listener("0.0.0.0", 7471, 5), a = routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = connect_cmd(a, "", 0);

	(void)state;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	ucma_net_timers(net);
	assert_int_equal(ucma_pending(server), 1);
	assert_int_equal(destroy(server, l), 0);
	assert_int_equal(ucma_pending(server), 0);
	assert_int_equal(expect(client, REJECTED).status, 28);
}

static void death_of_a_peer(void **state)
{
	struct pair p = connected();

	(void)state;
	ucma_close(client); /* what kill -9 comes to */
	client = NULL;
	assert_int_equal(expect(server, DISCONNECTED).id, p.passive);
	assert_int_equal(disconnect(server, p.passive), 0);
	expect_none(server);
	assert_int_equal(await(server, TIMEWAIT_EXIT).id, p.passive);
	destroy(server, p.passive);
}

static void death_while_connecting(void **state)
{
	uint32_t l = listener("0.0.0.0", 7471, 5), a = routed("127.0.0.1", 7471), p;
	struct rdma_ucm_connect cmd = connect_cmd(a, "", 0);

	(void)state;
	(void)l;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	p = expect(server, CONNECT_REQUEST).id;
	assert_int_equal(accept_id(server, p, 0x52, "", 0), 0);
	ucma_close(client);
	client = NULL;
	assert_int_equal(expect(server, REJECTED).id, p);
	expect_none(server);
}

static void both_disconnect(void **state)
{
	struct pair p = connected();

	(void)state;
	assert_int_equal(disconnect(client, p.active), 0);
	assert_int_equal(disconnect(server, p.passive), 0);
	expect(client, DISCONNECTED);
	expect(server, DISCONNECTED);
	assert_int_equal(disconnect(client, p.active), 0);
	expect_none(client);
	expect_none(server);
}

static void establish_by_notify(void **state)
{
	uint32_t l = listener("0.0.0.0", 7471, 5), a = routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = connect_cmd(a, "", 0);
	struct rdma_ucm_notify note = {.event = IBV_EVENT_COMM_EST};

	(void)state;
	(void)l;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	note.id = expect(server, CONNECT_REQUEST).id;
	assert_int_equal(ISSUE(server, NOTIFY, note, 0), -EINVAL);
	assert_int_equal(accept_id(server, note.id, 0x52, "", 0), 0);
	assert_int_equal(ISSUE(server, NOTIFY, note, 0), 0);
	expect(server, ESTABLISHED);
	assert_int_equal(ISSUE(server, NOTIFY, note, 0), -EISCONN);
	expect(client, CONNECT_RESPONSE);
	assert_int_equal(establish(client, a), 0);
	expect_none(server); /* not a second time */
}

static void migrate(void **state)
{
	uint32_t l = listener("0.0.0.0", 7471, 5), a = routed("127.0.0.1", 7471);
	struct rdma_ucm_connect cmd = connect_cmd(a, "", 0);
	struct rdma_ucm_migrate_resp resp;
	struct rdma_ucm_migrate_id mig = {.response = (uintptr_t)&resp, .id = l, .fd = 0};
	uint32_t p;

	(void)state;
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	ucma_net_timers(net);
	mig.fd = 3;
	assert_int_equal(ISSUE(client, MIGRATE_ID, mig, sizeof(resp)), -ENOENT);
	mig.fd = 1; /* the id is not there */
	assert_int_equal(ISSUE(client, MIGRATE_ID, mig, sizeof(resp)), -EINVAL);
	mig.fd = 0;
	assert_int_equal(ISSUE(client, MIGRATE_ID, mig, sizeof(resp)), 0);
	assert_int_equal(resp.events_reported, 0);
	expect_none(server);
	p = expect(client, CONNECT_REQUEST).id;
	assert_int_equal(accept_id(client, p, 1, "", 0), 0);
	expect(client, CONNECT_RESPONSE);
	assert_int_equal(listen_on(server, l, 1), -EINVAL); /* not its any more */
}

static void datagrams(void **state)
{
	uint32_t l = create(server, RDMA_PS_UDP, 0x51), a = create(client, RDMA_PS_UDP, 0xc1), p;
	struct rdma_ucm_connect cmd = connect_cmd(a, "ping", 4);
	struct rdma_ucm_event_resp ev;
	struct ib_uverbs_qp_attr attr;

	(void)state;
	assert_int_equal(bind4(server, l, "0.0.0.0", 7471), 0);
	assert_int_equal(listen_on(server, l, 5), 0);
	assert_int_equal(resolve(client, a, "127.0.0.1", 7471, 1), 0);
	expect(client, ADDR_RESOLVED);
	assert_int_equal(route(client, a), 0);
	expect(client, ROUTE_RESOLVED);
	assert_int_equal(qp_attr(client, a, IBV_QPS_INIT, &attr), 0);
	assert_int_equal(attr.qkey, 0x01234567);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	ev = expect(server, CONNECT_REQUEST);
	p = ev.id;
	assert_int_equal(ev.param.ud.private_data_len, 180);
	assert_memory_equal(ev.param.ud.private_data, "ping", 5);
	assert_int_equal(accept_id(server, p, 0x52, "pong", 4), 0);
	ev = expect(client, ESTABLISHED);
	assert_int_equal(ev.param.ud.qp_num, 0x22);
	assert_int_equal(ev.param.ud.qkey, 0x01234567);
	assert_int_equal(ev.param.ud.private_data_len, 136);
	assert_int_equal(ev.param.ud.ah_attr.is_global, 1);
	expect_none(server);

	/* nobody there */
	destroy(server, l);
	a = create(client, RDMA_PS_UDP, 0xc2);
	assert_int_equal(resolve(client, a, "127.0.0.1", 7471, 1), 0);
	expect(client, ADDR_RESOLVED);
	assert_int_equal(route(client, a), 0);
	expect(client, ROUTE_RESOLVED);
	cmd = connect_cmd(a, "", 0);
	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	assert_int_equal(await(client, UNREACHABLE).status, 1);
}

static void refusals(void **state)
{
	uint32_t a = routed("127.0.0.1", 1), big[64] = {0};
	struct rdma_ucm_join_ip_mcast join = {.id = a};
	struct rdma_ucm_destroy_id leave = {0};
	struct rdma_ucm_set_option opt = {
		.id = a, .level = RDMA_OPTION_ID, .optname = 77, .optval = (uintptr_t)big};

	(void)state;
	assert_int_equal(ISSUE(client, JOIN_IP_MCAST, join, 4), -EINVAL);
	assert_int_equal(ISSUE(client, LEAVE_MCAST, leave, 4), -ENOENT);
	assert_int_equal(ISSUE(client, GET_OPTION, opt, 4), -ENOSYS);
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), -ENOSYS);
	opt.optname = RDMA_OPTION_ID_TOS;
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), -EINVAL);
	opt.optlen = 1;
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), 0);
	opt.optlen = UINT32_MAX;
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), -EINVAL);
	opt.optlen = 1;
	opt.optval = 8;
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), -EFAULT);
	opt.id = 4711;
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), -ENOENT);
	opt.id = a;
	assert_int_equal(ISSUE(server, SET_OPTION, opt, 4), -EINVAL); /* another's id */
}

/* Whatever is written, the network survives; under a sanitizer so do its bounds. */
static void garbage(void **state)
{
	uint8_t body[512], sink[65536];
	unsigned i, j;

	(void)state;
	srand(1);
	for (i = 0; i < 200000; i++) {
		struct rdma_ucm_cmd_hdr hdr = {.cmd = (uint32_t)rand() % 24, .out = (uint16_t)rand()};
		uint64_t va = (uintptr_t)sink;
		struct nic_call call;
		size_t len = (size_t)rand() % 400;

		for (j = 0; j < sizeof(body); j++)
			body[j] = rand() % 3 ? 0 : (uint8_t)rand();
		/* plausible ids and, wherever a command may have it, an address to answer to */
		body[8 + (size_t)(rand() % 4) * 8] = (uint8_t)(rand() % 32);
		memcpy(body + 8, &va, sizeof(va));
		if (rand() % 2)
			memcpy(body + 16, &va, sizeof(va));
		hdr.in = (uint16_t)(rand() % 50 ? len : (unsigned)rand());
		memcpy(body, &hdr, sizeof(hdr));
		call = (struct nic_call){.bytes = body, .len = (size_t)rand() % 50 ? 8 + len : len % 9};
		(void)ucma_write(rand() % 2 ? server : client, &call);
		if (rand() % 8 == 0)
			ucma_net_timers(net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(connection, setup, teardown),
		cmocka_unit_test_setup_teardown(queue_attributes, setup, teardown),
		cmocka_unit_test_setup_teardown(no_listener, setup, teardown),
		cmocka_unit_test_setup_teardown(late_listener, setup, teardown),
		cmocka_unit_test_setup_teardown(reject, setup, teardown),
		cmocka_unit_test_setup_teardown(private_data_sizes, setup, teardown),
		cmocka_unit_test_setup_teardown(ports, setup, teardown),
		cmocka_unit_test_setup_teardown(reuse_address, setup, teardown),
		cmocka_unit_test_setup_teardown(unresolvable, setup, teardown),
		cmocka_unit_test_setup_teardown(queries, setup, teardown),
		cmocka_unit_test_setup_teardown(ib_wildcard, setup, teardown),
		cmocka_unit_test_setup_teardown(full_backlog, setup, teardown),
		cmocka_unit_test_setup_teardown(unread_requests_end_with_listener, setup, teardown),
		cmocka_unit_test_setup_teardown(death_of_a_peer, setup, teardown),
		cmocka_unit_test_setup_teardown(death_while_connecting, setup, teardown),
		cmocka_unit_test_setup_teardown(both_disconnect, setup, teardown),
		cmocka_unit_test_setup_teardown(establish_by_notify, setup, teardown),
		cmocka_unit_test_setup_teardown(migrate, setup, teardown),
		cmocka_unit_test_setup_teardown(datagrams, setup, teardown),
		cmocka_unit_test_setup_teardown(refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(garbage, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
