/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/ucm.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_cm.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICE "/dev/infiniband/rdma_cm"
#define ABI_VERSION "/sys/class/misc/rdma_cm/abi_version"

enum {
	RNR_RETRY_FOREVER = 7, /* the client tries again without end */
	UNKNOWN_INDEX = -1,
};

/* One version for all kernels since 2.6.20; later ones made structures longer, and take shorter ones. */
static int check_version(void)
{
	char text[16] = "";
	ssize_t n;
	int fd = open(ABI_VERSION, O_RDONLY | O_CLOEXEC);

	if (fd < 0) /* a container may not show it */
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n > 0 && atoi(text) == RDMA_USER_CM_ABI_VERSION ? 0 : -EPROTONOSUPPORT;
}

int rnic_ucm_open(int *fd)
{
	int r = check_version();

	if (r < 0)
		return r;
	*fd = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0)
		return errno == ENOENT ? -ENODEV : -errno;
	return 0;
}

/* @in: the command's structure, @out: the bytes at the address that is its member "response" */
static int command(int fd, uint32_t number, const void *in, size_t in_size, size_t out_size)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t in[512];
	} message = {{.cmd = number, .in = (uint16_t)in_size, .out = (uint16_t)out_size}, {0}};
	size_t size = sizeof(message.hdr) + in_size;
	ssize_t n;

	assert(in_size <= sizeof(message.in));
	memcpy(message.in, in, in_size);
	do {
		n = write(fd, &message, size);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno ? -errno : -EIO;
	return (size_t)n == size ? 0 : -EIO;
}

#define COMMAND(fd, name, in, out_size) command(fd, RDMA_USER_CM_CMD_##name, &(in), sizeof(in), out_size)

int rnic_ucm_create_id(int fd, uint64_t uid, uint32_t *id)
{
	struct rdma_ucm_create_id_resp resp;
	const struct rdma_ucm_create_id cmd = {
		.uid = uid, .response = (uintptr_t)&resp, .ps = RDMA_PS_TCP, .qp_type = IBV_QPT_RC};
	int r = COMMAND(fd, CREATE_ID, cmd, sizeof(resp));

	if (r == 0)
		*id = resp.id;
	return r;
}

int rnic_ucm_set_afonly(int fd, uint32_t id)
{
	const int on = 1;
	const struct rdma_ucm_set_option cmd = {.optval = (uintptr_t)&on,
		.id = id,
		.level = RDMA_OPTION_ID,
		.optname = RDMA_OPTION_ID_AFONLY,
		.optlen = sizeof(on)};

	return COMMAND(fd, SET_OPTION, cmd, 0);
}

int rnic_ucm_bind(int fd, uint32_t id, const struct sockaddr *address, size_t size)
{
	struct rdma_ucm_bind cmd = {.id = id, .addr_size = (uint16_t)size};

	assert(size <= sizeof(cmd.addr));
	memcpy(&cmd.addr, address, size);
	return COMMAND(fd, BIND, cmd, 0);
}

int rnic_ucm_listen(int fd, uint32_t id, unsigned backlog)
{
	const struct rdma_ucm_listen cmd = {.id = id, .backlog = backlog};

	return COMMAND(fd, LISTEN, cmd, 0);
}

int rnic_ucm_destroy_id(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp;
	const struct rdma_ucm_destroy_id cmd = {.response = (uintptr_t)&resp, .id = id};

	return COMMAND(fd, DESTROY_ID, cmd, sizeof(resp));
}

int rnic_ucm_migrate_id(int fd, int from, uint32_t id)
{
	struct rdma_ucm_migrate_resp resp;
	const struct rdma_ucm_migrate_id cmd = {.response = (uintptr_t)&resp, .id = id, .fd = (uint32_t)from};

	return COMMAND(fd, MIGRATE_ID, cmd, sizeof(resp));
}

_Static_assert(sizeof(struct rdma_ucm_event_resp) <= RNIC_UCM_ROOM, "an event has room");

/* In room that the ledger keeps, numbers may be anything */
static void decode_event(const struct rdma_ucm_event_resp *resp, struct rnic_ucm_event *event)
{
	*event = (struct rnic_ucm_event){.type = resp->event, .uid = resp->uid, .id = resp->id};
	if (resp->event == RNIC_UCM_CONNECT_REQUEST) {
		event->size = resp->param.conn.private_data_len;
		memcpy(event->data, resp->param.conn.private_data, event->size);
	}
}

int rnic_ucm_next_event(int fd, void *room, struct rnic_ucm_event *event)
{
	struct rdma_ucm_event_resp own, *resp = room ? room : &own;
	const struct rdma_ucm_get_event cmd = {.response = (uintptr_t)resp};
	int r;

	/* As of Linux 5.10; older ones take any longer answer, too */
	r = COMMAND(fd, GET_EVENT, cmd, sizeof(*resp));
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	decode_event(resp, event);
	return 1;
}

bool rnic_ucm_last_event(const void *room, struct rnic_ucm_event *event)
{
	const struct rdma_ucm_event_resp *resp = room;

	/* 0, too: room that was never used. It is the event of an address that was resolved: a server has
	 * none */
	if (resp->event == 0 || resp->event == UINT32_MAX)
		return false;
	decode_event(resp, event);
	return true;
}

void rnic_ucm_forget_event(void *room)
{
	struct rdma_ucm_event_resp *resp = room;

	__atomic_store_n(&resp->event, UINT32_MAX, __ATOMIC_RELEASE);
}

int rnic_ucm_query_route(int fd, uint32_t id, struct rnic_ucm_route *route)
{
	struct rdma_ucm_query_route_resp resp = {.ibdev_index = (uint32_t)UNKNOWN_INDEX};
	const struct rdma_ucm_query cmd = {.response = (uintptr_t)&resp, .id = id};
	int r = COMMAND(fd, QUERY_ROUTE, cmd, sizeof(resp));

	if (r < 0)
		return r;
	*route = (struct rnic_ucm_route){
		.node_guid = resp.node_guid,
		.device_index = (int)resp.ibdev_index,
		.paths = resp.num_paths,
	};
	memcpy(&route->local, &resp.src_addr, sizeof(route->local));
	memcpy(&route->peer, &resp.dst_addr, sizeof(route->peer));
	memcpy(route->dgid, resp.ib_route[0].dgid, sizeof(route->dgid));
	return 0;
}

static struct ibv_ah_attr ah_attr_of(const struct ib_uverbs_ah_attr *from)
{
	struct ibv_ah_attr to = {
		.grh = {.flow_label = from->grh.flow_label,
			.sgid_index = from->grh.sgid_index,
			.hop_limit = from->grh.hop_limit,
			.traffic_class = from->grh.traffic_class},
		.dlid = from->dlid,
		.sl = from->sl,
		.src_path_bits = from->src_path_bits,
		.static_rate = from->static_rate,
		.is_global = from->is_global,
		.port_num = from->port_num,
	};

	memcpy(to.grh.dgid.raw, from->grh.dgid, sizeof(to.grh.dgid.raw));
	return to;
}

int rnic_ucm_qp_attr(int fd, uint32_t id, enum ibv_qp_state state, struct ibv_qp_attr *attr)
{
	struct ib_uverbs_qp_attr resp = {0};
	const struct rdma_ucm_init_qp_attr cmd = {
		.response = (uintptr_t)&resp, .id = id, .qp_state = (uint32_t)state};
	int r = COMMAND(fd, INIT_QP_ATTR, cmd, sizeof(resp));

	if (r < 0)
		return r;
	*attr = (struct ibv_qp_attr){
		.qp_state = state,
		.path_mtu = (enum ibv_mtu)resp.path_mtu,
		.rq_psn = resp.rq_psn,
		.sq_psn = resp.sq_psn,
		.dest_qp_num = resp.dest_qp_num,
		.ah_attr = ah_attr_of(&resp.ah_attr),
		.pkey_index = resp.pkey_index,
		.port_num = resp.port_num,
		.timeout = resp.timeout,
		.retry_cnt = resp.retry_cnt,
	};
	return 0;
}

int rnic_ucm_accept(int fd, uint32_t id, uint64_t uid, uint32_t qpn, const void *data, size_t size)
{
	struct rdma_ucm_accept cmd = {
		.uid = uid,
		.conn_param = {.qp_num = qpn,
			.private_data_len = (uint8_t)size,
			.flow_control = 1,
			.rnr_retry_count = RNR_RETRY_FOREVER,
			.valid = 1},
		.id = id,
	};

	assert(size <= 196);
	memcpy(cmd.conn_param.private_data, data, size);
	return COMMAND(fd, ACCEPT, cmd, 0);
}

int rnic_ucm_reject(int fd, uint32_t id, const void *data, size_t size)
{
	/* A reason of 0 is that of the consumer (ucma.c, ucma_reject) */
	struct rdma_ucm_reject cmd = {.id = id, .private_data_len = (uint8_t)size};

	assert(size <= 148);
	if (size)
		memcpy(cmd.private_data, data, size);
	return COMMAND(fd, REJECT, cmd, 0);
}
