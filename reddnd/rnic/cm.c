/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/cm.h"

#include "reddnd/rnic/internal.h"
#include "reddnd/rnic/neighbour.h"
#include "reddnd/util/log.h"
#include "util/address.h"
#include "util/cleanup.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

enum {
	MAX_LISTENERS = 16,
	BACKLOG = 128,
	RNR_TIMER_10_US = 1,   /* after which a client that is ahead of the armed instances tries again */
	RNR_TIMER_640_US = 12, /* and a client that is throttled (IBTA 9.7.5.2.8) */
	RNR_RETRY_FOREVER = 7, /* the client tries again without end */
	RNR_RETRY_REPLY = 6,   /* a client without a receive for its reply breaks the protocol */
	ACK_TIMEOUT_4_S = 20,
	/* As Linux (hw/mlx5/qp.c: MLX5_IB_ACK_REQ_FREQ) and UCX. With 0 each packet of a long reply would ask
	 * the client's NIC for an acknowledgement */
	LOG_ACK_REQ_FREQ = 8,
};

struct rnic_cm {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listeners[MAX_LISTENERS];
	unsigned nlisteners;
	const struct rnic_cm_ops *ops;
	void *arg;
};

struct rnic_conn {
	struct rdma_cm_id *id;
	void *user;
	bool accepted, gone;
	char peer[80];
	uint32_t qpn;          /* of the client */
	struct ibv_ah_attr ah; /* the path to the client */
	bool resolved;         /* the members that follow */
	uint8_t mac[6];
	uint16_t udp_sport;
};

DEFINE_CLEANUP(struct rnic_cm *, rnic_cm_free)

int rnic_cm_new(struct rnic_cm **out, const struct rnic_cm_ops *ops, void *arg)
{
	CLEANUP(rnic_cm_freep) struct rnic_cm *cm = calloc(1, sizeof(*cm));
	int flags;

	if (!cm)
		return -ENOMEM;
	cm->ops = ops;
	cm->arg = arg;
	cm->channel = rdma_create_event_channel();
	if (!cm->channel)
		return log_errno(errno ? -errno : -ENODEV, "cannot open the RDMA connection manager; check "
							   "for an RDMA device and the module rdma_ucm");
	flags = fcntl(cm->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(cm->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	*out = steal_ptr(&cm);
	return 0;
}

void rnic_cm_free(struct rnic_cm *cm)
{
	for (unsigned i = 0; i < cm->nlisteners; i++)
		rdma_destroy_id(cm->listeners[i]);
	if (cm->channel)
		rdma_destroy_event_channel(cm->channel);
	free(cm);
}

DEFINE_CLEANUP(struct addrinfo *, freeaddrinfo)

int rnic_cm_bind(struct rnic_cm *cm, const char *address, uint16_t port)
{
	const struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	CLEANUP(freeaddrinfop) struct addrinfo *ai = NULL;
	struct rdma_cm_id *id;
	char service[8];
	int r;

	if (cm->nlisteners == MAX_LISTENERS) {
		log_error("cannot listen on %s port %u: at most %d addresses", address, port, MAX_LISTENERS);
		return -ENOSPC;
	}
	snprintf(service, sizeof(service), "%u", port);
	r = getaddrinfo(address, service, &hints, &ai);
	if (r) {
		log_error("cannot listen on %s port %u: %s", address, port, gai_strerror(r));
		return -EINVAL;
	}
	if (rdma_create_id(cm->channel, &id, NULL, RDMA_PS_TCP) < 0)
		return log_errno(-errno, "cannot listen on %s port %u", address, port);
	if (rdma_bind_addr(id, ai->ai_addr) < 0) {
		r = -errno;
		rdma_destroy_id(id);
		return log_errno(r, "cannot listen on %s port %u", address, port);
	}
	cm->listeners[cm->nlisteners++] = id;
	return 0;
}

int rnic_cm_listen(struct rnic_cm *cm)
{
	char address[INET6_ADDRSTRLEN] = "";

	for (unsigned i = 0; i < cm->nlisteners; i++) {
		struct rdma_cm_id *id = cm->listeners[i];
		int r = rdma_listen(id, BACKLOG) < 0 ? -errno : 0;

		getnameinfo(rdma_get_local_addr(id), sizeof(struct sockaddr_storage), address,
			sizeof(address), NULL, 0, NI_NUMERICHOST);
		if (r < 0)
			return log_errno(
				r, "cannot listen on %s port %u", address, ntohs(rdma_get_src_port(id)));
		log_info("listening on %s port %u", address, ntohs(rdma_get_src_port(id)));
	}
	return 0;
}

const char *rnic_cm_device(const struct rnic_cm *cm)
{
	for (unsigned i = 0; i < cm->nlisteners; i++)
		if (cm->listeners[i]->verbs)
			return ibv_get_device_name(cm->listeners[i]->verbs->device);
	return NULL;
}

int rnic_cm_fd(const struct rnic_cm *cm)
{
	return cm->channel->fd;
}

static void describe_peer(struct rnic_conn *conn)
{
	struct sockaddr *sa = rdma_get_peer_addr(conn->id);
	char address[INET6_ADDRSTRLEN] = "?";
	uint16_t port = ntohs(rdma_get_dst_port(conn->id));

	if (sa->sa_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)sa)->sin_addr, address, sizeof(address));
	else if (sa->sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)sa)->sin6_addr, address, sizeof(address));
	snprintf(conn->peer, sizeof(conn->peer), "%s port %u", address, port);
}

static int get_attr(struct rnic_conn *conn, enum ibv_qp_state state, struct ibv_qp_attr *attr)
{
	int mask;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = state;
	return rdma_init_qp_attr(conn->id, attr, &mask) < 0
		       ? log_errno(-errno, "cannot get the path to client %s", conn->peer)
		       : 0;
}

static void new_request(struct rnic_cm *cm, struct rdma_cm_id *id, const void *data, size_t size)
{
	CLEANUP(cleanup_free) struct rnic_conn *conn = calloc(1, sizeof(*conn));
	struct ibv_qp_attr rtr;
	int r = -ENOMEM;

	if (conn) {
		conn->id = id;
		describe_peer(conn);
		r = get_attr(conn, IBV_QPS_RTR, &rtr);
	}
	if (r < 0) {
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
		return;
	}
	conn->qpn = rtr.dest_qp_num;
	conn->ah = rtr.ah_attr;
	id->context = conn;
	cm->ops->request(cm->arg, steal_ptr(&conn), data, size);
}

int rnic_cm_dispatch(struct rnic_cm *cm)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	struct rnic_conn *conn;
	uint8_t data[256];
	size_t size = 0;

	if (rdma_get_cm_event(cm->channel, &event) < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	type = event->event;
	id = event->id;
	conn = id->context;
	/* The event owns the private data, so copy them. An id cannot be destroyed before its events are
	 * acknowledged, and a callback may destroy it */
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST && event->param.conn.private_data) {
		size = event->param.conn.private_data_len;
		memcpy(data, event->param.conn.private_data, size);
	}
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		new_request(cm, id, data, size);
	} else if (!conn) { /* a listener */
		log_warning("connection manager: %s", rdma_event_str(type));
	} else if (type == RDMA_CM_EVENT_ESTABLISHED) {
		cm->ops->established(cm->arg, conn);
	} else if (type != RDMA_CM_EVENT_TIMEWAIT_EXIT && !conn->gone) {
		conn->gone = true;
		cm->ops->gone(cm->arg, conn,
			type == RDMA_CM_EVENT_DISCONNECTED ? "the client disconnected"
							   : rdma_event_str(type));
	}
	return 0;
}

void rnic_conn_set_user(struct rnic_conn *conn, void *user)
{
	conn->user = user;
}

void *rnic_conn_user(const struct rnic_conn *conn)
{
	return conn->user;
}

const char *rnic_conn_peer(const struct rnic_conn *conn)
{
	return conn->peer;
}

void rnic_conn_address(const struct rnic_conn *conn, uint8_t address[16])
{
	address_read(rdma_get_peer_addr(conn->id), address);
}

void rnic_conn_server(const struct rnic_conn *conn, uint8_t address[16], uint16_t *port)
{
	address_read(rdma_get_local_addr(conn->id), address);
	*port = ntohs(rdma_get_src_port(conn->id));
}

int rnic_conn_server_gid(const struct rnic_conn *conn, uint8_t gid[16])
{
	union ibv_gid g;

	if (!conn->ah.is_global)
		return -ENODATA;
	if (ibv_query_gid(conn->id->verbs, conn->ah.port_num, conn->ah.grh.sgid_index, &g))
		return errno ? -errno : -EIO;
	memcpy(gid, g.raw, sizeof(g.raw));
	return 0;
}

uint32_t rnic_conn_client_qpn(const struct rnic_conn *conn)
{
	return conn->qpn;
}

void rnic_conn_gid(const struct rnic_conn *conn, uint8_t gid[16])
{
	const struct rdma_route *route = &conn->id->route;

	memset(gid, 0, 16);
	if (conn->ah.is_global)
		memcpy(gid, conn->ah.grh.dgid.raw, 16);
	else if (route->num_paths)
		memcpy(gid, route->path_rec[0].dgid.raw, 16);
}

const char *rnic_conn_device(const struct rnic_conn *conn)
{
	return ibv_get_device_name(conn->id->verbs->device);
}

int rnic_conn_resolve(struct rnic_conn *conn, struct rnic_device *dev)
{
	int r;

	if (dev->caps.infiniband)
		return 0;
	r = rnic_neighbour_resolve(dev, &conn->ah, conn->mac, &conn->udp_sport);
	conn->resolved = r == 0;
	return r;
}

static void set_mac(const struct rnic_conn *conn, struct rnic_path *path)
{
	assert(conn->resolved);
	memcpy(path->dmac, conn->mac, sizeof(path->dmac));
	path->udp_sport = conn->udp_sport;
	if (path->udp_sport < RNIC_UDP_SPORT_MIN)
		path->udp_sport = (uint16_t)(RNIC_UDP_SPORT_MIN | (path->dest_qpn & 0x3fff));
}

/*
 * The client's REQ has the timeout (IBTA 12.7.34; Linux's cm.c takes it over), up to hours, or for ever. A
 * reply without an acknowledgement would keep a session, and the quotas that it is charged for, for that
 * long.
 */
uint8_t rnic_ack_timeout(uint8_t asked)
{
	return asked && asked < ACK_TIMEOUT_4_S ? asked : ACK_TIMEOUT_4_S;
}

int rnic_conn_connect(struct rnic_conn *conn, struct rnic_qp *qp, bool slow)
{
	struct ibv_qp_attr init, rtr, rts;
	struct rnic_path path;
	int r;

	r = get_attr(conn, IBV_QPS_INIT, &init);
	if (r == 0)
		r = get_attr(conn, IBV_QPS_RTR, &rtr);
	if (r == 0)
		r = get_attr(conn, IBV_QPS_RTS, &rts);
	if (r < 0)
		return r;
	path = (struct rnic_path){
		.grh = rtr.ah_attr.is_global,
		.port = init.port_num,
		.pkey_index = init.pkey_index,
		.sgid_index = rtr.ah_attr.grh.sgid_index,
		.hop_limit = rtr.ah_attr.grh.hop_limit,
		.traffic_class = rtr.ah_attr.grh.traffic_class,
		.flow_label = rtr.ah_attr.grh.flow_label,
		.sl = rtr.ah_attr.sl,
		.src_path_bits = rtr.ah_attr.src_path_bits,
		.dlid = rtr.ah_attr.dlid,
		.mtu = (uint8_t)rtr.path_mtu,
		.dest_qpn = rtr.dest_qp_num,
		.rq_psn = rtr.rq_psn,
		.sq_psn = rts.sq_psn,
		.min_rnr_timer = slow ? RNR_TIMER_640_US : RNR_TIMER_10_US,
		.timeout = rnic_ack_timeout(rts.timeout),
		.retry_cnt = rts.retry_cnt,
		.rnr_retry = RNR_RETRY_REPLY,
		.log_ack_req_freq = LOG_ACK_REQ_FREQ,
	};
	memcpy(path.dgid, rtr.ah_attr.grh.dgid.raw, sizeof(path.dgid));
	if (!qp->dev->caps.infiniband)
		set_mac(conn, &path);
	return rnic_qp_connect(qp, &path);
}

int rnic_conn_accept(struct rnic_conn *conn, const struct rnic_qp *qp, const void *data, size_t size)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = (uint8_t)size,
		.flow_control = 1,
		.rnr_retry_count = RNR_RETRY_FOREVER,
		.qp_num = qp->qpn,
	};

	assert(size <= 196);
	if (rdma_accept(conn->id, &param) < 0)
		return -errno;
	conn->accepted = true;
	return 0;
}

int rnic_conn_reject(struct rnic_conn *conn, const void *data, size_t size)
{
	assert(size <= 148);
	return rdma_reject(conn->id, data, (uint8_t)size) < 0 ? -errno : 0;
}

void rnic_conn_disconnect(struct rnic_conn *conn)
{
	if (conn->accepted && rdma_disconnect(conn->id) < 0 && !conn->gone)
		log_debug("disconnecting %s: %s", conn->peer, strerror(errno));
	conn->accepted = false;
}

void rnic_conn_free(struct rnic_conn *conn)
{
	rdma_destroy_id(conn->id);
	free(conn);
}
