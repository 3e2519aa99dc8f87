/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h - private to rnic: the verbs objects that its files share.
 */
#ifndef RNIC_INTERNAL_H
#define RNIC_INTERNAL_H

#include "reddnd/rnic/devx.h"
#include "reddnd/rnic/qp.h"

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

struct rnic_pd {
	struct rnic_device *dev;
	struct ibv_pd *pd;
	uint32_t pdn;
	struct ledger_slot *slot; /* or NULL */
};

/** Address of a QP's peer and its retry parameters, for the state transitions. */
struct rnic_path {
	bool loopback; /* to the device itself; the address fields are ignored then */
	bool grh;      /* on InfiniBand; every RoCE packet has one */
	uint8_t port, sgid_index, hop_limit, traffic_class, sl, src_path_bits;
	uint8_t dgid[16];
	uint8_t dmac[6]; /* of RoCE, as the next */
	uint16_t udp_sport, dlid, pkey_index;
	uint32_t flow_label;
	uint8_t mtu; /* enum ibv_mtu */
	uint32_t dest_qpn, rq_psn, sq_psn;
	bool remote_access; /* READ, WRITE and atomics of the peer */
	uint8_t log_rd_atomic, log_rd_dest;
	uint8_t min_rnr_timer, timeout, retry_cnt, rnr_retry;
	uint8_t log_ack_req_freq; /* an acknowledgement is asked for with every 2^x packets */
};

struct rnic_device {
	struct ibv_context *ctx;
	bool direct; /* it takes direct commands (DEVX); without them there are only queues that verbs make */
	struct ledger *ledger; /* or NULL */
	struct ledger_slot *slot;
	struct rnic_pd *pd;
	struct rnic_devx_uar uar;
	uint8_t *uar_page; /* mapped; NULL: there is none yet */
	int events;        /* descriptor; -1: there is none yet */
	int watches;       /* the same, of files (file-watch.h) */
	uint32_t eqn;
	uint32_t psn_secret; /* first PSN of loopback queues */
	bool lost;
	struct rnic_caps caps;
	struct rnic_path own; /* of its queues to each other (own-path.h) */
	/* Of its GIDs the one that a connection came to lately (conn.h) */
	struct {
		uint8_t gid[16], port, index;
		uint64_t until; /* us */
	} asked;
	struct {
		bool known; /* false: nobody has asked (stamps.h) */
		bool real_time;
		uint64_t khz; /* else; 0: the device does not report it */
	} clock;
};

static inline const char *rnic_name(const struct rnic_device *dev)
{
	return ibv_get_device_name(dev->ctx->device);
}

/** The object of @slot that is at @offset of its block, or NULL. */
static inline const struct ledger_object *rnic_find_object(
	const struct ledger_slot *slot, enum ledger_type type, uint64_t offset)
{
	for (const struct ledger_object *o = slot->object; o < slot->object + LEDGER_OBJECTS; o++)
		if (o->type == type && o->offset == offset)
			return o;
	return NULL;
}

enum {
	RNIC_PORT = 1,               /* an mlx5 device has one per port */
	RNIC_UDP_SPORT_MIN = 0xc000, /* RoCE v2: IBTA annex A17 */
};

/** fe80::/10: it is there for as long as the port is, and nobody is reached by it through a router. */
static inline bool rnic_gid_is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/** RESET to RTS. Errors have been logged. */
int rnic_qp_connect(struct rnic_qp *qp, const struct rnic_path *path);

struct rnic_plain;
/** The queue pair that direct commands made; NULL: verbs made it. */
struct rnic_qp *rnic_plain_qp(struct rnic_plain *q);
/** RESET to RTS of one that verbs made; @ah: the address, of which @path has no more than they need. */
int rnic_plain_connect(struct rnic_plain *q, const struct rnic_path *path, const struct ibv_ah_attr *ah);

/** The ACK timeout (4.096 us * 2^x, 0 for ever) of a connection whose client asked for @asked. */
uint8_t rnic_ack_timeout(uint8_t asked);

#endif
