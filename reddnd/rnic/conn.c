/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/conn.h"

#include "reddnd/rnic/internal.h"
#include "reddnd/util/log.h"
#include "util/address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	RNR_TIMER_10_US = 1,   /* after which a client that is ahead of the armed instances tries again */
	RNR_TIMER_640_US = 12, /* and a client that is throttled (IBTA 9.7.5.2.8) */
	RNR_RETRY_REPLY = 6,   /* a client without a receive for its reply breaks the protocol */
	ACK_TIMEOUT_4_S = 20,
	KNOWN_US = 1000000,
	/* As Linux (hw/mlx5/qp.c: MLX5_IB_ACK_REQ_FREQ) and UCX. With 0 each packet of a long reply would ask
	 * the client's NIC for an acknowledgement */
	LOG_ACK_REQ_FREQ = 8,
};

int conn_get_attr(const struct rnic_conn *conn, enum ibv_qp_state state, struct ibv_qp_attr *attr)
{
	int r = rnic_ucm_qp_attr(conn->fd, conn->id, state, attr);

	/* What is neither connected nor asks for it has no attributes of any state (Linux core/cm.c,
	 * cm_init_qp_init_attr, cm_init_qp_rtr_attr, cm_init_qp_rts_attr): a client may go after it was
	 * described, while its address is resolved, so RTS needs this too */
	if (r == -EINVAL) {
		log_debug("client %s has gone before it was answered", conn->peer);
		return -ECONNABORTED;
	}
	return r < 0 ? log_errno(r, "cannot get the path to client %s", conn->peer) : 0;
}

uint32_t rnic_conn_id(const struct rnic_conn *conn)
{
	return conn->id;
}

const char *rnic_conn_peer(const struct rnic_conn *conn)
{
	return conn->peer;
}

void rnic_conn_address(const struct rnic_conn *conn, uint8_t address[16])
{
	address_read((const struct sockaddr *)&conn->route.peer, address);
}

void rnic_conn_server(const struct rnic_conn *conn, uint8_t address[16], uint16_t *port)
{
	address_read((const struct sockaddr *)&conn->route.local, address);
	*port = ntohs(conn->route.local.sin6_port);
}

static bool ask_gid(struct rnic_device *dev, const struct ibv_ah_attr *ah, uint64_t now)
{
	union ibv_gid gid;

	if (ibv_query_gid(dev->ctx, ah->port_num, ah->grh.sgid_index, &gid))
		return false;
	dev->asked.port = ah->port_num;
	dev->asked.index = ah->grh.sgid_index;
	dev->asked.until = now + KNOWN_US;
	memcpy(dev->asked.gid, gid.raw, sizeof(gid.raw));
	return true;
}

static bool is_asked(const struct rnic_device *dev, const struct ibv_ah_attr *ah, uint64_t now)
{
	return now < dev->asked.until && dev->asked.port == ah->port_num &&
	       dev->asked.index == ah->grh.sgid_index;
}

bool rnic_conn_came_to(
	const struct rnic_conn *conn, struct rnic_device *dev, const uint8_t address[16], uint64_t now)
{
	const struct ibv_ah_attr *ah = &conn->rtr.ah_attr;
	const uint8_t *gid = dev->asked.gid;

	if (!ah->is_global)
		return false;
	if (is_asked(dev, ah, now) && memcmp(gid, address, sizeof(dev->asked.gid)) == 0)
		return true;
	/* another address may have the index since then */
	return ask_gid(dev, ah, now) && memcmp(gid, address, sizeof(dev->asked.gid)) == 0;
}

uint32_t rnic_conn_client_qpn(const struct rnic_conn *conn)
{
	return conn->rtr.dest_qp_num;
}

void rnic_conn_gid(const struct rnic_conn *conn, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (conn->rtr.ah_attr.is_global)
		memcpy(gid, conn->rtr.ah_attr.grh.dgid.raw, 16);
	else if (conn->route.paths)
		memcpy(gid, conn->route.dgid, 16);
}

const char *rnic_conn_device(const struct rnic_conn *conn)
{
	return conn->device;
}

int rnic_conn_resolve(struct rnic_conn *conn, struct rnic_device *dev)
{
	int r;

	if (dev->caps.infiniband)
		return 0;
	r = rnic_neighbour_resolve(dev, &conn->rtr.ah_attr, conn->mac, &conn->udp_sport);
	conn->resolved = r == 0;
	return r;
}

/* ---- what was resolved lately ---- */

static bool is_of(const struct rnic_conn_known *k, const struct ibv_ah_attr *ah)
{
	return memcmp(k->gid, ah->grh.dgid.raw, sizeof(k->gid)) == 0 && k->sgid_index == ah->grh.sgid_index &&
	       k->port == ah->port_num;
}

/* As the kernel makes it for an address handle (Linux rdma/ib_verbs.h, rdma_flow_label_to_udp_sport) */
static uint16_t udp_sport_of(uint32_t flow_label)
{
	return flow_label ? (uint16_t)(RNIC_UDP_SPORT_MIN | ((flow_label ^ flow_label >> 14) & 0x3fff)) : 0;
}

bool rnic_conn_recall(struct rnic_conn *conn, const struct rnic_conn_memory *m, uint64_t now)
{
	const struct ibv_ah_attr *ah = &conn->rtr.ah_attr;
	const struct rnic_conn_known *k = m->known, *end = k + RNIC_CONN_KNOWN;

	while (k < end && (k->until <= now || !is_of(k, ah)))
		k++;
	if (k == end)
		return false;
	memcpy(conn->mac, k->mac, sizeof(conn->mac));
	conn->udp_sport = udp_sport_of(ah->grh.flow_label);
	conn->resolved = true;
	return true;
}

void rnic_conn_remember(const struct rnic_conn *conn, struct rnic_conn_memory *m, uint64_t now)
{
	const struct ibv_ah_attr *ah = &conn->rtr.ah_attr;
	struct rnic_conn_known *k = &m->known[m->next++ % RNIC_CONN_KNOWN];

	*k = (struct rnic_conn_known){
		.port = ah->port_num, .sgid_index = ah->grh.sgid_index, .until = now + KNOWN_US};
	memcpy(k->gid, ah->grh.dgid.raw, sizeof(k->gid));
	memcpy(k->mac, conn->mac, sizeof(k->mac));
}

/* ---- queue pairs ---- */

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

/* On RoCE there is one P_Key (Linux hw/mlx5/main.c, mlx5_query_port_roce; rxe_param.h). A path of InfiniBand
 * has a LID */
static int find_pkey(const struct rnic_conn *conn, uint16_t *index)
{
	struct ibv_qp_attr init;
	int r;

	*index = 0;
	if (!conn->rtr.ah_attr.dlid)
		return 0;
	r = conn_get_attr(conn, IBV_QPS_INIT, &init);
	*index = init.pkey_index;
	return r;
}

/* All but the MAC address */
static int find_path(struct rnic_conn *conn, bool slow, struct rnic_path *path, struct ibv_ah_attr *ah)
{
	const struct ibv_qp_attr *rtr = &conn->rtr;
	struct ibv_qp_attr rts;
	uint16_t pkey_index;
	int r;

	r = find_pkey(conn, &pkey_index);
	if (r == 0)
		r = conn_get_attr(conn, IBV_QPS_RTS, &rts);
	if (r < 0)
		return r;
	*ah = rtr->ah_attr;
	*path = (struct rnic_path){
		.grh = rtr->ah_attr.is_global,
		.port = rtr->ah_attr.port_num,
		.pkey_index = pkey_index,
		.sgid_index = rtr->ah_attr.grh.sgid_index,
		.hop_limit = rtr->ah_attr.grh.hop_limit,
		.traffic_class = rtr->ah_attr.grh.traffic_class,
		.flow_label = rtr->ah_attr.grh.flow_label,
		.sl = rtr->ah_attr.sl,
		.src_path_bits = rtr->ah_attr.src_path_bits,
		.dlid = rtr->ah_attr.dlid,
		.mtu = (uint8_t)rtr->path_mtu,
		.dest_qpn = rtr->dest_qp_num,
		.rq_psn = rtr->rq_psn,
		.sq_psn = rts.sq_psn,
		.min_rnr_timer = slow ? RNR_TIMER_640_US : RNR_TIMER_10_US,
		.timeout = rnic_ack_timeout(rts.timeout),
		.retry_cnt = rts.retry_cnt,
		.rnr_retry = RNR_RETRY_REPLY,
		.log_ack_req_freq = LOG_ACK_REQ_FREQ,
	};
	memcpy(path->dgid, rtr->ah_attr.grh.dgid.raw, sizeof(path->dgid));
	return 0;
}

int rnic_conn_connect(struct rnic_conn *conn, struct rnic_qp *qp, bool slow)
{
	struct rnic_path path;
	struct ibv_ah_attr ah;
	int r = find_path(conn, slow, &path, &ah);

	if (r < 0)
		return r;
	if (!qp->dev->caps.infiniband)
		set_mac(conn, &path);
	return rnic_qp_connect(qp, &path);
}

int rnic_conn_connect_plain(struct rnic_conn *conn, struct rnic_plain *q, bool slow)
{
	struct rnic_qp *qp = rnic_plain_qp(q);
	struct rnic_path path;
	struct ibv_ah_attr ah;
	int r;

	if (qp)
		return rnic_conn_connect(conn, qp, slow);
	r = find_path(conn, slow, &path, &ah);
	return r < 0 ? r : rnic_plain_connect(q, &path, &ah);
}

static void answered(struct rnic_conn *conn)
{
	if (conn->recorded)
		ledger_remove_request(conn->ledger, conn->id);
	conn->recorded = false;
}

int rnic_conn_accept(struct rnic_conn *conn, uint64_t number, uint32_t qpn, const void *data, size_t size)
{
	int r;

	assert(number && !(number & CM_LISTENER) && !conn->accepted);
	r = rnic_ucm_accept(conn->fd, conn->id, number, qpn, data, size);
	conn->accepted = r == 0;
	if (conn->accepted)
		answered(conn);
	return r;
}

int rnic_conn_reject(struct rnic_conn *conn, const void *data, size_t size)
{
	return rnic_ucm_reject(conn->fd, conn->id, data, size);
}

/* One call for both: to destroy the id sends what a disconnect would send (Linux core/cm.c, cm_destroy_id) */
void rnic_conn_disconnect(struct rnic_conn *conn)
{
	answered(conn);
	if (!conn->over)
		rnic_ucm_destroy_id(conn->fd, conn->id);
	conn->over = true;
}

/* The kernel refuses to reject what is connected (cm.c, cm_send_rej_locked) */
bool rnic_conn_refuse_inherited(struct rnic_conn *conn, const void *data, size_t size)
{
	bool refused = conn->recorded && rnic_ucm_reject(conn->fd, conn->id, data, size) == 0;

	answered(conn);
	return refused;
}

void rnic_conn_free(struct rnic_conn *conn)
{
	rnic_conn_disconnect(conn);
	free(conn);
}
