/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/net.h"
#include "util/array.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define PORT_NUM 1
#define PKEY 0xffff
#define HOP_LIMIT 64
#define PATH_MTU IBV_MTU_4096 /* active_mtu of the port: Ethernet with jumbo frames */
/*
 * Of a link of 40 Gb/s or more (rdma/ib_addr.h: iboe_get_rate()), as Linux puts it into the REQ before 6.4
 * ("RDMA/cma: Always set static rate to 0 for RoCE"); the other side takes it from there (cm.c:
 * cm_format_paths_from_req()). The emulated clients have such a kernel.
 */
#define PATH_RATE IBV_RATE_40_GBPS

/* IBTA annex A11; cma.c: rdma_get_service_id() */
static __be64 service_id(const struct ucma_id *id, const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_IB)
		return ((const struct ucma_sockaddr_ib *)addr)->sid;
	return htobe64((uint64_t)id->ps << 16 | ucma_addr_port(addr));
}

/* ---- addresses of ports ----------------------------------------------------------------- */

static const struct hw_dev *port_of(const struct ucma_id *id, const struct ucma_where *where)
{
	return id->net->devs[where->dev].hw;
}

static bool on_infiniband(const struct ucma_id *id)
{
	return hw_is_infiniband(port_of(id, &id->local));
}

static bool on_iwarp(const struct ucma_id *id)
{
	return !hw_fact(port_of(id, &id->local), PROFILE_PATHS);
}

/* On RoCE, GIDs are made of IP addresses. IPoIB addresses lead to the port's own GID. */
static void gid_of(const struct ucma_id *id, const struct ucma_where *where, uint8_t gid[16])
{
	if (!hw_is_infiniband(port_of(id, where)) || !hw_gid(port_of(id, where), 0, gid))
		memcpy(gid, where->gid, sizeof(where->gid));
}

/* 0 on RoCE */
static uint16_t lid_of(const struct ucma_id *id, const struct ucma_where *where)
{
	return hw_is_infiniband(port_of(id, where)) ? hw_lid(port_of(id, where)) : 0;
}

static bool has_route(const struct ucma_id *id)
{
	return id->state >= UCMA_ROUTE_RESOLVED && id->state != UCMA_LISTEN;
}

/** The number of its device among those of its host: that of mlx5_N, as over RDMA netlink. */
static uint32_t index_of(const struct ucma_id *id)
{
	return id->local.dev - ucma_addr_first_dev(id->net->ndevs, id->host);
}

static bool has_remote(const struct ucma_id *id)
{
	return id->state >= UCMA_ADDR_RESOLVED && id->state != UCMA_LISTEN;
}

static int store(struct nic_call *call, uint64_t va, const void *bytes, size_t len, size_t out)
{
	return nic_call_store(call, va, bytes, len < out ? len : out);
}

static int query_route(struct ucma_id *id, struct nic_call *call, uint64_t response, size_t out)
{
	struct rdma_ucm_query_route_resp resp = {0};
	struct ib_user_path_rec *path = &resp.ib_route[0];

	if (out < offsetof(struct rdma_ucm_query_route_resp, ibdev_index))
		return -ENOSPC;
	memcpy(&resp.src_addr, &id->src, sizeof(resp.src_addr));
	memcpy(&resp.dst_addr, &id->dst, sizeof(resp.dst_addr));
	if (id->has_dev) {
		resp.node_guid = nic_dev_guid(id->local.dev);
		resp.ibdev_index = index_of(id);
		resp.port_num = PORT_NUM;
		gid_of(id, &id->local, path->sgid);
		if (has_remote(id))
			gid_of(id, &id->remote, path->dgid);
		path->pkey = htobe16(PKEY);
	}
	if (has_route(id) && !on_iwarp(id)) {
		resp.num_paths = 1;
		path->reversible = 1;
		path->numb_path = 1;
		path->hop_limit = on_infiniband(id) ? 0 : HOP_LIMIT;
		path->slid = htobe16(lid_of(id, &id->local));
		path->dlid = htobe16(lid_of(id, &id->remote));
		path->traffic_class = id->tos;
		path->mtu_selector = path->rate_selector = path->packet_life_time_selector = 2; /* exactly */
		path->mtu = PATH_MTU;
		path->rate = PATH_RATE;
		path->packet_life_time = (uint8_t)(ucma_id_timeout(id) - 1);
	}
	return store(call, response, &resp, sizeof(resp), out);
}

static void device_of(const struct ucma_id *id, struct rdma_ucm_query_addr_resp *resp)
{
	if (!id->has_dev)
		return;
	resp->node_guid = nic_dev_guid(id->local.dev);
	resp->ibdev_index = index_of(id);
	resp->port_num = PORT_NUM;
	resp->pkey = htobe16(PKEY);
}

static int query_addr(struct ucma_id *id, struct nic_call *call, uint64_t response, size_t out)
{
	struct rdma_ucm_query_addr_resp resp = {0};

	if (out < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	resp.src_size = (uint16_t)ucma_addr_size(&id->src);
	memcpy(&resp.src_addr, &id->src, resp.src_size);
	resp.dst_size = (uint16_t)ucma_addr_size(&id->dst);
	memcpy(&resp.dst_addr, &id->dst, resp.dst_size);
	device_of(id, &resp);
	return store(call, response, &resp, sizeof(resp), out);
}

static void fill_gid(const struct ucma_id *id, struct __kernel_sockaddr_storage *to,
	const struct sockaddr_storage *addr, const struct ucma_where *where, __be16 pkey)
{
	struct ucma_sockaddr_ib sib = {.family = AF_IB, .pkey = pkey};

	if (addr->ss_family == AF_IB) {
		memcpy(&sib, addr, sizeof(sib));
	} else {
		if (where)
			gid_of(id, where, sib.addr);
		sib.sid = service_id(id, addr);
	}
	memcpy(to, &sib, sizeof(sib));
}

static int query_gid(struct ucma_id *id, struct nic_call *call, uint64_t response, size_t out)
{
	struct rdma_ucm_query_addr_resp resp = {0};

	if (out < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	device_of(id, &resp);
	resp.src_size = resp.dst_size = sizeof(struct ucma_sockaddr_ib);
	fill_gid(id, &resp.src_addr, &id->src, id->has_dev ? &id->local : NULL, resp.pkey);
	fill_gid(id, &resp.dst_addr, &id->dst, has_remote(id) ? &id->remote : NULL, resp.pkey);
	return store(call, response, &resp, sizeof(resp), out);
}

static int query_path(struct ucma_id *id, struct nic_call *call, uint64_t response, size_t out)
{
	struct { /* struct rdma_ucm_query_path_resp with one path, in the form of <infiniband/sa.h> */
		uint32_t num_paths, reserved;
		struct ibv_path_data path;
	} resp;
	struct ibv_path_record *rec = &resp.path.path;
	size_t len = sizeof(struct rdma_ucm_query_path_resp);

	memset(&resp, 0, sizeof(resp));
	if (out < len)
		return -ENOSPC;
	resp.num_paths = has_route(id) ? 1 : 0;
	if (resp.num_paths && out >= sizeof(resp)) {
		resp.path.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
		rec->service_id = service_id(id, &id->dst);
		gid_of(id, &id->remote, rec->dgid.raw);
		gid_of(id, &id->local, rec->sgid.raw);
		rec->flowlabel_hoplimit = htobe32(on_infiniband(id) ? 0 : HOP_LIMIT);
		rec->slid = htobe16(lid_of(id, &id->local));
		rec->dlid = htobe16(lid_of(id, &id->remote));
		rec->tclass = id->tos;
		rec->reversible_numpath = 0x80 | 1;
		rec->pkey = htobe16(PKEY);
		rec->mtu = 2 << 6 | PATH_MTU;
		rec->rate = 2 << 6 | PATH_RATE;
		rec->packetlifetime = (uint8_t)(2 << 6 | ((ucma_id_timeout(id) - 1) & 0x1f));
		len = sizeof(resp);
	}
	return nic_call_store(call, response, &resp, len);
}

static int ucma_query(
	struct ucma_id *id, struct nic_call *call, uint64_t response, uint32_t option, size_t out)
{
	switch (option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return query_addr(id, call, response, out);
	case RDMA_USER_CM_QUERY_PATH:
		return query_path(id, call, response, out);
	case RDMA_USER_CM_QUERY_GID:
		return query_gid(id, call, response, out);
	default:
		return -ENOSYS;
	}
}

void ucma_ah_attr(const struct ucma_id *id, struct ib_uverbs_ah_attr *ah)
{
	memset(ah, 0, sizeof(*ah));
	ah->port_num = PORT_NUM;
	if (on_infiniband(id)) { /* sa_query.c, ib_init_ah_attr_from_path(): no GRH within a subnet */
		ah->dlid = lid_of(id, &id->remote);
		return;
	}
	memcpy(ah->grh.dgid, id->remote.gid, sizeof(ah->grh.dgid));
	ah->grh.sgid_index = id->local.gid_index;
	ah->grh.hop_limit = HOP_LIMIT;
	ah->grh.traffic_class = id->tos;
	ah->static_rate = PATH_RATE;
	ah->is_global = 1;
}

/* iwcm.c: iwcm_init_qp_rtr_attr(), iwcm_init_qp_rts_attr() */
static int iwarp_attr(struct ib_uverbs_qp_attr *attr)
{
	if (attr->qp_state != IBV_QPS_RTR && attr->qp_state != IBV_QPS_RTS)
		return -EINVAL;
	if (attr->qp_state == IBV_QPS_RTR) {
		attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	}
	return 0;
}

/* cm.c: cm_init_qp_init_attr(), cm_init_qp_rtr_attr(), cm_init_qp_rts_attr() */
static int connected_attr(const struct ucma_id *id, struct ib_uverbs_qp_attr *attr)
{
	bool rc = id->qp_type != IBV_QPT_UC;
	bool answered = id->cm == UCMA_CM_REQ_RCVD || id->cm == UCMA_CM_REP_SENT ||
			id->cm == UCMA_CM_REP_RCVD || id->cm == UCMA_CM_ESTABLISHED;

	if (on_iwarp(id) && attr->qp_state != IBV_QPS_INIT)
		return answered ? iwarp_attr(attr) : -EINVAL;
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		if (!answered && id->cm != UCMA_CM_REQ_SENT)
			return -EINVAL;
		attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		if (id->responder_resources)
			attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
		attr->port_num = PORT_NUM;
		return 0;
	case IBV_QPS_RTR:
		if (!answered)
			return -EINVAL;
		attr->qp_attr_mask =
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
		ucma_ah_attr(id, &attr->ah_attr);
		attr->path_mtu = PATH_MTU;
		attr->dest_qp_num = id->remote_qpn;
		attr->rq_psn = id->rq_psn;
		if (rc) {
			attr->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
			attr->max_dest_rd_atomic = id->responder_resources;
		}
		return 0;
	case IBV_QPS_RTS:
		if (!answered)
			return -EINVAL;
		attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
		attr->sq_psn = id->sq_psn;
		if (rc) {
			attr->qp_attr_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					      IBV_QP_MAX_QP_RD_ATOMIC;
			attr->timeout = ucma_id_timeout(id);
			attr->retry_cnt = id->retry_count;
			attr->rnr_retry = id->rnr_retry_count;
			attr->max_rd_atomic = id->initiator_depth;
		}
		return 0;
	default:
		return -EINVAL;
	}
}

static int ucma_init_qp_attr(struct ucma_id *id, struct nic_call *call, uint64_t response, uint32_t qp_state)
{
	struct ib_uverbs_qp_attr attr = {.qp_state = qp_state};
	int err;

	if (id->has_cm && id->qp_type != IBV_QPT_UD) {
		err = connected_attr(id, &attr);
		if (err)
			return err;
	} else { /* cma.c: cma_ib_init_qp_attr() */
		attr.qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
		attr.port_num = PORT_NUM;
		if (id->qp_type == IBV_QPT_UD) {
			attr.qkey = id->qkey ? id->qkey : UCMA_UDP_QKEY;
			attr.qp_attr_mask |= IBV_QP_QKEY;
		} else {
			attr.qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
		}
		if (qp_state == IBV_QPS_RTR)
			attr.rq_psn = id->rq_psn;
	}
	return nic_call_store(call, response, &attr, sizeof(attr));
}

/*
 * The commands of <rdma/rdma_user_cm.h>. Behaviour and error codes follow
 * drivers/infiniband/core/ucma.c of Linux 6.1.
 */

#define MAX_BACKLOG 1024     /* sysctl net.rdma_ucm.max_backlog */
#define FIRST_FREE_PORT 1024 /* PROT_SOCK of Linux */
#define REJ_CONSUMER_DEFINED 28
#define REJ_VENDOR_OPTION_NOT_SUPPORTED 35

/* As of Linux 6.17; the header of Debian 12 ends before it (struct rdma_ucm_write_cm_event). */
enum { WRITE_CM_EVENT = 24 };
struct write_event {
	uint32_t id, reserved, event, status;
	uint64_t arg; /* of a union, the longer members of which are not used */
};

/* A command as it arrived. Bytes that an older library did not send are 0. */
struct cmd {
	struct ucma_file *file;
	struct nic_call *call;
	struct ucma_id *id; /* that it names, or NULL */
	size_t out_len;
	union {
		struct rdma_ucm_create_id create_id;
		struct rdma_ucm_destroy_id destroy_id;
		struct rdma_ucm_bind_ip bind_ip;
		struct rdma_ucm_bind bind;
		struct rdma_ucm_resolve_ip resolve_ip;
		struct rdma_ucm_resolve_addr resolve_addr;
		struct rdma_ucm_resolve_route resolve_route;
		struct rdma_ucm_query query;
		struct rdma_ucm_connect connect;
		struct rdma_ucm_listen listen;
		struct rdma_ucm_accept accept;
		struct rdma_ucm_reject reject;
		struct rdma_ucm_init_qp_attr init_qp_attr;
		struct rdma_ucm_get_event get_event;
		struct rdma_ucm_set_option set_option;
		struct rdma_ucm_notify notify;
		struct rdma_ucm_join_ip_mcast join_ip;
		struct rdma_ucm_join_mcast join;
		struct rdma_ucm_migrate_id migrate;
		struct write_event write_event;
	} in;
};

/* ---- ids --------------------------------------------------------------------------------- */

static int find_id(struct ucma_file *file, uint32_t handle, struct ucma_id **id)
{
	HASH_FIND(hh, file->net->ids, &handle, sizeof(handle), *id);
	if (!*id)
		return -ENOENT;
	return (*id)->file == file ? 0 : -EINVAL;
}

static int do_create_id(struct cmd *c)
{
	struct rdma_ucm_create_id_resp resp;
	struct ucma_id *id;
	uint8_t qp_type;
	int err;

	switch (c->in.create_id.ps) {
	case RDMA_PS_TCP:
		qp_type = IBV_QPT_RC;
		break;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		qp_type = IBV_QPT_UD;
		break;
	case RDMA_PS_IB:
		qp_type = c->in.create_id.qp_type;
		break;
	default:
		return -EINVAL;
	}
	id = ucma_id_new(c->file, c->in.create_id.ps, qp_type);
	if (!id)
		return -ENOMEM;
	id->uid = c->in.create_id.uid;
	resp.id = id->handle;
	err = nic_call_store(c->call, c->in.create_id.response, &resp, sizeof(resp));
	if (err)
		ucma_id_destroy(id);
	return err;
}

static int do_destroy_id(struct cmd *c)
{
	struct rdma_ucm_destroy_id_resp resp;

	resp.events_reported = ucma_id_destroy(c->id);
	return nic_call_store(c->call, c->in.destroy_id.response, &resp, sizeof(resp));
}

static int do_migrate_id(struct cmd *c)
{
	const struct rdma_ucm_migrate_id *cmd = &c->in.migrate;
	struct rdma_ucm_migrate_resp resp;
	struct ucma_file *from;
	struct ucma_id *id;
	int err;

	err = nic_call_ucma_file(c->call, (int)cmd->fd, &from);
	if (err)
		return err == -EBADF ? -ENOENT : err;
	err = find_id(from, cmd->id, &id);
	if (err)
		return err;
	resp.events_reported = id->events_reported;
	err = nic_call_store(c->call, cmd->response, &resp, sizeof(resp));
	if (!err && from != c->file)
		ucma_id_migrate(id, c->file);
	return err;
}

/* ---- addresses --------------------------------------------------------------------------- */

/* cma.c: cma_use_port(): ports below 1024 are for CAP_NET_BIND_SERVICE, whatever the limit of TCP is. */
static bool may_use_port(struct cmd *c, const struct sockaddr_storage *addr)
{
	uint16_t port = ucma_addr_port(addr);
	uint64_t caps = 0;
	char path[32], line[128];
	FILE *f;

	if (!port || port >= FIRST_FREE_PORT)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)nic_call_pid(c->call));
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %" SCNx64, &caps) == 1)
			break;
	fclose(f);
	return caps >> CAP_NET_BIND_SERVICE & 1;
}

static int bind_to(struct cmd *c, const struct sockaddr_storage *addr)
{
	return may_use_port(c, addr) ? ucma_id_bind(c->id, addr) : -EACCES;
}

static int resolve(struct cmd *c, const struct sockaddr_storage *src, const struct sockaddr_storage *dst,
	uint32_t timeout_ms)
{
	return may_use_port(c, src) ? ucma_id_resolve_addr(c->id, src, dst, timeout_ms) : -EACCES;
}

/* Addresses in the old commands are a sockaddr_in6 of which a sockaddr_in uses the beginning. */
static bool addr_in6(struct sockaddr_storage *addr, const struct sockaddr_in6 *in)
{
	struct sockaddr_storage any = {.ss_family = in->sin6_family};

	if (in->sin6_family != AF_INET && in->sin6_family != AF_INET6)
		return false;
	return ucma_addr_set(addr, in, ucma_addr_size(&any));
}

static int do_bind_ip(struct cmd *c)
{
	struct sockaddr_storage addr;

	return addr_in6(&addr, &c->in.bind_ip.addr) ? bind_to(c, &addr) : -EINVAL;
}

static int do_bind(struct cmd *c)
{
	struct sockaddr_storage addr;

	if (c->in.bind.reserved || !ucma_addr_set(&addr, &c->in.bind.addr, c->in.bind.addr_size))
		return -EINVAL;
	return bind_to(c, &addr);
}

static int do_resolve_ip(struct cmd *c)
{
	const struct rdma_ucm_resolve_ip *cmd = &c->in.resolve_ip;
	struct sockaddr_storage src = {0}, dst;

	if ((cmd->src_addr.sin6_family && !addr_in6(&src, &cmd->src_addr)) || !addr_in6(&dst, &cmd->dst_addr))
		return -EINVAL;
	return resolve(c, &src, &dst, cmd->timeout_ms);
}

static int do_resolve_addr(struct cmd *c)
{
	const struct rdma_ucm_resolve_addr *cmd = &c->in.resolve_addr;
	struct sockaddr_storage src = {0}, dst;

	if (cmd->reserved || (cmd->src_size && !ucma_addr_set(&src, &cmd->src_addr, cmd->src_size)) ||
		!ucma_addr_set(&dst, &cmd->dst_addr, cmd->dst_size))
		return -EINVAL;
	return resolve(c, &src, &dst, cmd->timeout_ms);
}

static int do_resolve_route(struct cmd *c)
{
	return c->in.resolve_route.timeout_ms ? ucma_id_resolve_route(c->id) : -EINVAL;
}

static int do_query_route(struct cmd *c)
{
	return query_route(c->id, c->call, c->in.query.response, c->out_len);
}

static int do_query(struct cmd *c)
{
	return ucma_query(c->id, c->call, c->in.query.response, c->in.query.option, c->out_len);
}

/* ---- connections ------------------------------------------------------------------------- */

static int do_listen(struct cmd *c)
{
	uint32_t backlog = c->in.listen.backlog;

	return ucma_id_listen(c->id, backlog && backlog <= MAX_BACKLOG ? backlog : MAX_BACKLOG);
}

static int do_connect(struct cmd *c)
{
	if (!c->in.connect.conn_param.valid)
		return -EINVAL;
	return ucma_cm_connect(c->id, &c->in.connect.conn_param, &c->in.connect.ece);
}

static int do_accept(struct cmd *c)
{
	const struct rdma_ucm_accept *cmd = &c->in.accept;
	int err = ucma_cm_accept(c->id, cmd->conn_param.valid ? &cmd->conn_param : NULL, &cmd->ece);

	if (!err && cmd->conn_param.valid)
		c->id->uid = cmd->uid;
	return err;
}

static int do_reject(struct cmd *c)
{
	const struct rdma_ucm_reject *cmd = &c->in.reject;
	uint8_t reason = cmd->reason ? cmd->reason : REJ_CONSUMER_DEFINED;

	if (reason != REJ_CONSUMER_DEFINED && reason != REJ_VENDOR_OPTION_NOT_SUPPORTED)
		return -EINVAL;
	return ucma_cm_reject(c->id, cmd->private_data, cmd->private_data_len, reason);
}

static int do_disconnect(struct cmd *c)
{
	return ucma_cm_disconnect(c->id);
}

/* An event that the program sends itself: rdma_resolve_addrinfo() ends with one. */
static int do_write_event(struct cmd *c)
{
	const struct write_event *in = &c->in.write_event;
	struct rdma_ucm_event_resp resp = {.event = in->event, .status = in->status};

	if (in->event != UCMA_EV_USER && in->event != UCMA_EV_INTERNAL)
		return -EINVAL;
	memcpy(&resp.param, &in->arg, sizeof(in->arg));
	ucma_event_resp(c->id, &resp);
	return 0;
}

static int do_notify(struct cmd *c)
{
	return ucma_cm_notify(c->id, c->in.notify.event);
}

static int do_init_qp_attr(struct cmd *c)
{
	if (c->in.init_qp_attr.qp_state > IBV_QPS_ERR)
		return -EINVAL;
	return ucma_init_qp_attr(c->id, c->call, c->in.init_qp_attr.response, c->in.init_qp_attr.qp_state);
}

static int do_get_event(struct cmd *c)
{
	struct ucma_event *event = TAILQ_FIRST(&c->file->events);
	size_t len = sizeof(event->resp);
	int err;

	if (!event)
		return -EAGAIN;
	err = nic_call_store(
		c->call, c->in.get_event.response, &event->resp, c->out_len < len ? c->out_len : len);
	if (err)
		return err;
	ucma_event_take(c->file, event);
	event->id->events_reported++;
	if (event->resp.event == UCMA_EV_CONNECT_REQUEST)
		event->id->backlog++;
	if (event->conn)
		event->conn->request = NULL;
	free(event);
	return 0;
}

/* ---- options ----------------------------------------------------------------------------- */

static int set_option_id(struct ucma_id *id, uint32_t name, const void *value, size_t len)
{
	uint8_t byte;
	int number;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (len != sizeof(byte))
			return -EINVAL;
		memcpy(&byte, value, sizeof(byte));
		if (name == RDMA_OPTION_ID_TOS) {
			id->tos = byte;
			return 0;
		}
		/* cma.c: rdma_set_ack_timeout() */
		if (id->qp_type != IBV_QPT_RC && id->qp_type != IBV_QPT_XRC_SEND)
			return -EINVAL;
		id->timeout = byte & 0x1f;
		id->timeout_set = true;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
	case RDMA_OPTION_ID_AFONLY:
		if (len != sizeof(number))
			return -EINVAL;
		memcpy(&number, value, sizeof(number));
		return name == RDMA_OPTION_ID_REUSEADDR ? ucma_id_set_reuseaddr(id, number)
							: ucma_id_set_afonly(id, number);
	default:
		return -ENOSYS;
	}
}

/* There is one path; an application that names one gets it, as after RESOLVE_ROUTE. */
static int set_option_path(struct ucma_id *id, const struct ib_path_rec_data *paths, size_t len)
{
	size_t i;

	if (!len || len % sizeof(*paths))
		return -EINVAL;
	for (i = 0; i < len / sizeof(*paths); i++)
		if (paths[i].flags == (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL))
			break;
	if (i == len / sizeof(*paths) || !id->has_dev || id->state != UCMA_ADDR_RESOLVED)
		return -EINVAL;
	id->state = UCMA_ROUTE_RESOLVED;
	ucma_event(id, UCMA_EV_ROUTE_RESOLVED, 0);
	return 0;
}

static int do_set_option(struct cmd *c)
{
	const struct rdma_ucm_set_option *cmd = &c->in.set_option;
	struct ib_path_rec_data value[6]; /* as many as librdmacm ever has */
	struct iovec local = {.iov_base = value, .iov_len = cmd->optlen};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)cmd->optval, .iov_len = cmd->optlen};

	if (cmd->optlen > sizeof(value))
		return -EINVAL;
	if (cmd->optlen &&
		process_vm_readv(nic_call_pid(c->call), &local, 1, &remote, 1, 0) != (ssize_t)cmd->optlen)
		return -EFAULT;
	if (cmd->level == RDMA_OPTION_ID)
		return set_option_id(c->id, cmd->optname, value, cmd->optlen);
	if (cmd->level == RDMA_OPTION_IB && cmd->optname == RDMA_OPTION_IB_PATH)
		return set_option_path(c->id, value, cmd->optlen);
	return -ENOSYS;
}

/* ---- multicast ---------------------------------------------------------------------------- */

/*
 * Requests that could never join fail as on Linux; all others get the error of cma.c (rdma_join_multicast)
 * for a port without multicast: the emulated network has no groups.
 */
static int join(const struct ucma_id *id)
{
	if (id->state != UCMA_ADDR_BOUND && id->state != UCMA_ADDR_RESOLVED)
		return -EINVAL;
	return id->qp_type == IBV_QPT_UD ? -ENOSYS : -EINVAL;
}

static int do_join_ip_mcast(struct cmd *c)
{
	struct sockaddr_storage addr;

	return addr_in6(&addr, &c->in.join_ip.addr) ? join(c->id) : -EINVAL;
}

static int do_join_mcast(struct cmd *c)
{
	struct sockaddr_storage addr;

	if (!ucma_addr_set(&addr, &c->in.join.addr, c->in.join.addr_size) ||
		(c->in.join.join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER &&
			c->in.join.join_flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER))
		return -EINVAL;
	return join(c->id);
}

static int do_leave_mcast(struct cmd *c)
{
	(void)c;
	return -ENOENT;
}

/* ---- dispatch ----------------------------------------------------------------------------- */

enum names { NO_ID, AN_ID, GOING_ID /* even one whose device has gone */, DEV_ID /* tied to a device */ };

/* @in and @out: bytes at least; those that came later, such as ECE with Linux 5.10, may be missing. */
static const struct {
	int (*handler)(struct cmd *c);
	enum names names;
	size_t in, id, out;
} commands[] = {
#define CMD(name, handler, names, type, out)                                                                 \
	[RDMA_USER_CM_CMD_##name] = {                                                                        \
		handler, names, sizeof(struct rdma_ucm_##type), offsetof(struct rdma_ucm_##type, id), out}
#define UPTO(member, type) offsetof(struct rdma_ucm_##type, member)
	[RDMA_USER_CM_CMD_CREATE_ID] = {do_create_id, NO_ID, sizeof(struct rdma_ucm_create_id), 0,
		sizeof(struct rdma_ucm_create_id_resp)},
	CMD(DESTROY_ID, do_destroy_id, GOING_ID, destroy_id, sizeof(struct rdma_ucm_destroy_id_resp)),
	CMD(BIND_IP, do_bind_ip, AN_ID, bind_ip, 0),
	CMD(RESOLVE_IP, do_resolve_ip, AN_ID, resolve_ip, 0),
	CMD(RESOLVE_ROUTE, do_resolve_route, DEV_ID, resolve_route, 0),
	CMD(QUERY_ROUTE, do_query_route, AN_ID, query, UPTO(ibdev_index, query_route_resp)),
	[RDMA_USER_CM_CMD_CONNECT] = {do_connect, DEV_ID, UPTO(ece, connect), UPTO(id, connect), 0},
	CMD(LISTEN, do_listen, AN_ID, listen, 0),
	[RDMA_USER_CM_CMD_ACCEPT] = {do_accept, DEV_ID, UPTO(ece, accept), UPTO(id, accept), 0},
	CMD(REJECT, do_reject, DEV_ID, reject, 0),
	CMD(DISCONNECT, do_disconnect, DEV_ID, disconnect, 0),
	CMD(INIT_QP_ATTR, do_init_qp_attr, DEV_ID, init_qp_attr, sizeof(struct ib_uverbs_qp_attr)),
	[RDMA_USER_CM_CMD_GET_EVENT] = {do_get_event, NO_ID, sizeof(struct rdma_ucm_get_event), 0,
		UPTO(reserved, event_resp)},
	CMD(SET_OPTION, do_set_option, AN_ID, set_option, 0),
	CMD(NOTIFY, do_notify, DEV_ID, notify, 0),
	CMD(JOIN_IP_MCAST, do_join_ip_mcast, DEV_ID, join_ip_mcast, sizeof(struct rdma_ucm_create_id_resp)),
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = {do_leave_mcast, NO_ID, sizeof(struct rdma_ucm_destroy_id), 0,
		sizeof(struct rdma_ucm_destroy_id_resp)},
	[RDMA_USER_CM_CMD_MIGRATE_ID] = {do_migrate_id, NO_ID, sizeof(struct rdma_ucm_migrate_id), 0,
		sizeof(struct rdma_ucm_migrate_resp)},
	CMD(QUERY, do_query, AN_ID, query, 0),
	CMD(BIND, do_bind, AN_ID, bind, 0),
	CMD(RESOLVE_ADDR, do_resolve_addr, AN_ID, resolve_addr, 0),
	CMD(JOIN_MCAST, do_join_mcast, DEV_ID, join_mcast, sizeof(struct rdma_ucm_create_id_resp)),
	[WRITE_CM_EVENT] = {do_write_event, AN_ID, sizeof(struct write_event), 0, 0},
#undef CMD
#undef UPTO
};

/* Finds the id that the command names. */
static int find_named(struct cmd *c, enum names names, uint32_t handle)
{
	int err = find_id(c->file, handle, &c->id);

	if (err || names == GOING_ID)
		return err;
	if (c->id->removed)
		return -EIO;
	return names == DEV_ID && !c->id->has_dev ? -EINVAL : 0;
}

ssize_t ucma_write(struct ucma_file *file, struct nic_call *call)
{
	struct cmd c = {.file = file, .call = call};
	struct rdma_ucm_cmd_hdr hdr;
	const uint8_t *bytes;
	uint32_t handle;
	size_t len;
	int err = 0;

	bytes = nic_call_bytes(call, &len);
	if (len < sizeof(hdr))
		return -EINVAL;
	memcpy(&hdr, bytes, sizeof(hdr));
	if (hdr.cmd >= COUNT(commands) || hdr.in + sizeof(hdr) > len)
		return -EINVAL;
	if (!commands[hdr.cmd].handler) /* GET_OPTION: not in Linux either */
		return -ENOSYS;
	if (hdr.in < commands[hdr.cmd].in)
		return -EINVAL;
	if (hdr.out < commands[hdr.cmd].out)
		return -ENOSPC;
	c.out_len = hdr.out;
	memcpy(&c.in, bytes + sizeof(hdr), hdr.in < sizeof(c.in) ? hdr.in : sizeof(c.in));
	if (commands[hdr.cmd].names != NO_ID) {
		memcpy(&handle, bytes + sizeof(hdr) + commands[hdr.cmd].id, sizeof(handle));
		err = find_named(&c, commands[hdr.cmd].names, handle);
	}
	if (!err)
		err = commands[hdr.cmd].handler(&c);
	return err ? err : (ssize_t)len;
}
