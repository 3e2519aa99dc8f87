/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/test-app.h"

#include <sys/uio.h>
#include <unistd.h>

/* ---- a fake of the server: the "application" is this process --------------------------------- */

pid_t nic_call_pid(const struct nic_call *call)
{
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

	if (process_vm_writev(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)len)
		return -EFAULT;
	return 0;
}

struct ucma_net *net;
struct ucma_file *server, *client, *far;
struct hw_dev *devs[APP_DEVS];
uint64_t app_now;
unsigned app_wakes;

int nic_call_ucma_file(struct nic_call *call, int fd, struct ucma_file **file)
{
	struct ucma_file *const files[] = {server, client, far};

	if (fd < 0 || fd >= 3 || !files[fd])
		return -EBADF;
	*file = files[fd];
	return 0;
}

void nic_dev_gids(unsigned dev, struct hw_gid gids[HW_GIDS], unsigned *ngids)
{
	const struct hw_gid own[] = {{.raw = {0xfe, 0x80, [15] = (uint8_t)dev}, .roce_v1 = true},
		{.raw = {0xfe, 0x80, [15] = (uint8_t)dev}},
		{.raw = {[10] = 0xff, 0xff, 10, [15] = (uint8_t)(dev + 1)}, .roce_v1 = true},
		{.raw = {[10] = 0xff, 0xff, 10, [15] = (uint8_t)(dev + 1)}},
		{.raw = {[15] = 1}, .roce_v1 = true}, {.raw = {[15] = 1}}};
	memcpy(gids, own, sizeof(own));
	*ngids = dev % 2 ? 4 : 6; /* ::1 is that of the first device of a host */
}

uint64_t nic_now(void)
{
	return app_now;
}

uint64_t nic_dev_guid(unsigned dev)
{
	return 0x1234 + dev;
}

unsigned nic_dev_host(unsigned dev, unsigned *number)
{
	*number = dev % 2;
	return dev / 2;
}

static void wake(void *arg)
{
	app_wakes++;
}

/* ---- commands ---------------------------------------------------------------------------- */

ssize_t app_issue(struct ucma_file *file, uint32_t cmd, const void *body, size_t in, size_t out)
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

uint32_t app_create(struct ucma_file *file, uint16_t ps, uint64_t uid)
{
	struct rdma_ucm_create_id_resp resp = {0};
	struct rdma_ucm_create_id cmd = {
		.uid = uid, .response = (uintptr_t)&resp, .ps = ps, .qp_type = IBV_QPT_RC};

	assert_int_equal(ISSUE(file, CREATE_ID, cmd, sizeof(resp)), 0);
	return resp.id;
}

uint32_t app_destroy(struct ucma_file *file, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp = {.events_reported = 99};
	struct rdma_ucm_destroy_id cmd = {.response = (uintptr_t)&resp, .id = id};

	assert_int_equal(ISSUE(file, DESTROY_ID, cmd, sizeof(resp)), 0);
	return resp.events_reported;
}

struct sockaddr_in v4(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET, ip, &sin.sin_addr), 1);
	return sin;
}

ssize_t app_bind(struct ucma_file *file, uint32_t id, const void *addr, size_t len)
{
	struct rdma_ucm_bind cmd = {.id = id, .addr_size = (uint16_t)len};

	memcpy(&cmd.addr, addr, len);
	return ISSUE(file, BIND, cmd, 0);
}

ssize_t app_bind4(struct ucma_file *file, uint32_t id, const char *ip, uint16_t port)
{
	struct sockaddr_in sin = v4(ip, port);

	return app_bind(file, id, &sin, sizeof(sin));
}

ssize_t app_listen(struct ucma_file *file, uint32_t id, uint32_t backlog)
{
	struct rdma_ucm_listen cmd = {.id = id, .backlog = backlog};

	return ISSUE(file, LISTEN, cmd, 0);
}

ssize_t app_resolve(struct ucma_file *file, uint32_t id, const char *ip, uint16_t port, uint32_t ms)
{
	struct sockaddr_in sin = v4(ip, port);
	struct rdma_ucm_resolve_addr cmd = {.id = id, .timeout_ms = ms, .dst_size = sizeof(sin)};

	memcpy(&cmd.dst_addr, &sin, sizeof(sin));
	return ISSUE(file, RESOLVE_ADDR, cmd, 0);
}

ssize_t app_route(struct ucma_file *file, uint32_t id)
{
	struct rdma_ucm_resolve_route cmd = {.id = id, .timeout_ms = 1000};

	return ISSUE(file, RESOLVE_ROUTE, cmd, 0);
}

ssize_t app_set_option(struct ucma_file *file, uint32_t id, uint32_t name, const void *value, size_t len)
{
	struct rdma_ucm_set_option cmd = {.optval = (uintptr_t)value,
		.id = id,
		.level = RDMA_OPTION_ID,
		.optname = name,
		.optlen = (uint32_t)len};

	return ISSUE(file, SET_OPTION, cmd, 0);
}

struct rdma_ucm_query_addr_resp app_addresses(struct ucma_file *file, uint32_t id)
{
	struct rdma_ucm_query_addr_resp resp = {0};
	struct rdma_ucm_query cmd = {
		.response = (uintptr_t)&resp, .id = id, .option = RDMA_USER_CM_QUERY_ADDR};

	assert_int_equal(ISSUE(file, QUERY, cmd, sizeof(resp)), 0);
	return resp;
}

ssize_t app_get_event(struct ucma_file *file, struct rdma_ucm_event_resp *ev)
{
	struct rdma_ucm_get_event cmd = {.response = (uintptr_t)ev};

	ucma_net_timers(net);
	return ISSUE(file, GET_EVENT, cmd, sizeof(*ev));
}

struct rdma_ucm_event_resp app_expect(struct ucma_file *file, uint32_t event)
{
	struct rdma_ucm_event_resp ev = {0};

	assert_int_equal(app_get_event(file, &ev), 0);
	assert_int_equal(ev.event, event);
	return ev;
}

void app_expect_none(struct ucma_file *file)
{
	struct rdma_ucm_event_resp ev;

	assert_int_equal(app_get_event(file, &ev), -EAGAIN);
	assert_int_equal(ucma_pending(file), 0);
}

struct rdma_ucm_event_resp app_await(struct ucma_file *file, uint32_t event)
{
	struct rdma_ucm_event_resp ev = {0};

	while (app_get_event(file, &ev) == -EAGAIN) {
		uint64_t ns = ucma_net_timers(net);

		if (ucma_pending(file))
			continue;
		assert_true(ns != UINT64_MAX);
		app_now += ns;
	}
	assert_int_equal(ev.event, event);
	return ev;
}

struct rdma_ucm_connect app_connect_cmd(uint32_t id, const void *data, size_t len)
{
	struct rdma_ucm_connect cmd = {.id = id};

	cmd.conn_param.valid = 1;
	cmd.conn_param.qp_num = 0x100 + id;
	cmd.conn_param.responder_resources = 3;
	cmd.conn_param.initiator_depth = 5;
	cmd.conn_param.retry_count = 9;
	cmd.conn_param.rnr_retry_count = 6;
	cmd.conn_param.private_data_len = (uint8_t)len;
	memcpy(cmd.conn_param.private_data, data, len);
	cmd.ece.vendor_id = 0x15b3;
	return cmd;
}

ssize_t app_connect(struct ucma_file *file, uint32_t id)
{
	struct rdma_ucm_connect cmd = app_connect_cmd(id, "", 0);

	return ISSUE(file, CONNECT, cmd, 0);
}

ssize_t app_accept(struct ucma_file *file, uint32_t id, uint64_t uid, const void *data, size_t len)
{
	struct rdma_ucm_accept cmd = {.id = id, .uid = uid};

	cmd.conn_param.valid = 1;
	cmd.conn_param.qp_num = 0x200 + id;
	cmd.conn_param.responder_resources = 4;
	cmd.conn_param.initiator_depth = 2;
	cmd.conn_param.rnr_retry_count = 7;
	cmd.conn_param.private_data_len = (uint8_t)len;
	memcpy(cmd.conn_param.private_data, data, len);
	return ISSUE(file, ACCEPT, cmd, 0);
}

ssize_t app_establish(struct ucma_file *file, uint32_t id)
{
	struct rdma_ucm_accept cmd = {.id = id};

	return ISSUE(file, ACCEPT, cmd, 0);
}

ssize_t app_disconnect(struct ucma_file *file, uint32_t id)
{
	struct rdma_ucm_disconnect cmd = {.id = id};

	return ISSUE(file, DISCONNECT, cmd, 0);
}

ssize_t app_qp_attr(
	struct ucma_file *file, uint32_t id, enum ibv_qp_state state, struct ib_uverbs_qp_attr *attr)
{
	struct rdma_ucm_init_qp_attr cmd = {.response = (uintptr_t)attr, .id = id, .qp_state = state};

	return ISSUE(file, INIT_QP_ATTR, cmd, sizeof(*attr));
}

uint32_t app_route_to(struct ucma_file *file, uint16_t ps, const char *ip, uint16_t port)
{
	uint32_t id = app_create(file, ps, 0xc1);

	assert_int_equal(app_resolve(file, id, ip, port, 1000), 0);
	assert_int_equal(app_expect(file, ADDR_RESOLVED).id, id);
	assert_int_equal(app_route(file, id), 0);
	app_expect(file, ROUTE_RESOLVED);
	return id;
}

uint32_t app_routed(const char *ip, uint16_t port)
{
	return app_route_to(client, RDMA_PS_TCP, ip, port);
}

uint32_t app_listener(const char *ip, uint16_t port, uint32_t backlog)
{
	uint32_t id = app_create(server, RDMA_PS_TCP, 0x51);

	assert_int_equal(app_bind4(server, id, ip, port), 0);
	assert_int_equal(app_listen(server, id, backlog), 0);
	return id;
}

struct pair app_connected(void)
{
	struct pair p = {
		.listener = app_listener("0.0.0.0", 7471, 10), .active = app_routed("127.0.0.1", 7471)};
	struct rdma_ucm_connect cmd = app_connect_cmd(p.active, "hi", 2);

	assert_int_equal(ISSUE(client, CONNECT, cmd, 0), 0);
	p.passive = app_expect(server, CONNECT_REQUEST).id;
	assert_int_equal(app_accept(server, p.passive, 0x52, "yo", 2), 0);
	app_expect(client, CONNECT_RESPONSE);
	assert_int_equal(app_establish(client, p.active), 0);
	app_expect(server, ESTABLISHED);
	return p;
}

int app_setup(void **state)
{
	struct hw_gid gids[HW_GIDS];
	unsigned n;

	app_wakes = 0;
	app_now = 1;
	for (unsigned i = 0; i < APP_DEVS; i++) {
		nic_dev_gids(i, gids, &n);
		if (hw_dev_new(&devs[i], &(struct hw_config){.seed = 1}, gids, n))
			return -1;
	}
	if (ucma_net_new(&net, devs, APP_DEVS) || ucma_open(net, 0, wake, NULL, &server) ||
		ucma_open(net, 0, wake, NULL, &client) || ucma_open(net, 1, wake, NULL, &far))
		return -1;
	return 0;
}

int app_teardown(void **state)
{
	struct ucma_file **files[] = {&client, &server, &far};

	for (unsigned i = 0; i < 3; i++) {
		if (*files[i])
			ucma_close(*files[i]);
		*files[i] = NULL;
	}
	ucma_net_timers(net);
	ucma_net_free(net);
	for (unsigned i = 0; i < APP_DEVS; i++)
		hw_dev_free(devs[i]);
	return 0;
}
