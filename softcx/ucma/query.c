/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/net.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <string.h>

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

int ucma_query_route(struct ucma_id *id, struct nic_call *call, uint64_t response, size_t out)
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

int ucma_query(struct ucma_id *id, struct nic_call *call, uint64_t response, uint32_t option, size_t out)
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

int ucma_init_qp_attr(struct ucma_id *id, struct nic_call *call, uint64_t response, uint32_t qp_state)
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
