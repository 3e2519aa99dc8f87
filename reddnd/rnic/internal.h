/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h - private to rnic: the verbs objects that its files share.
 */
#ifndef RNIC_INTERNAL_H
#define RNIC_INTERNAL_H

#include "reddnd/rnic/conn.h"
#include "reddnd/rnic/devx.h"
#include "reddnd/rnic/plain.h"
#include "reddnd/rnic/qp.h"
#include "reddnd/rnic/ucm.h"

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
	struct rnic_path own; /* of its queues to each other */
	/* Of its GIDs the one that a connection came to lately (conn.h) */
	struct {
		uint8_t gid[16], port, index;
		uint64_t until; /* us */
	} asked;
	struct {
		bool known; /* false: nobody has asked (rnic_stamps_between()) */
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

/*
 * How queues of the device reach each other.
 *
 * Where a RoCE port has forced loopback (QPC address path `fl`), they need no address. Where it has not,
 * their packets go to the port's own GID and MAC address, and on InfiniBand to its own LID, as rdma-core's
 * dr_prepare_qp_to_rts() does it: a port sends such packets back to itself.
 */

/* What RoCE packets to an address need: the MAC address behind its GID, and a UDP source port. */

/**
 * The kernel resolves a GID only for address handles, and waits for the answer of the network, up to a second
 * (Linux drivers/infiniband/core/addr.c: rdma_addr_find_l2_eth_by_grh). *@udp_sport: as it chose it, perhaps
 * below RNIC_UDP_SPORT_MIN. May be called on any thread. -EHOSTUNREACH and others, which have not been
 * logged.
 */
int rnic_neighbour_resolve(
	struct rnic_device *dev, struct ibv_ah_attr *address, uint8_t mac[6], uint16_t *udp_sport);

/** Sets dev->own, after dev->caps and dev->pd. Errors have been logged. */
int rnic_own_path_find(struct rnic_device *dev);
/** The path by GID or LID to the port of @to, which may be @dev itself, forced loopback or not. Errors have
 * been logged. */
int rnic_path_to(struct rnic_device *dev, struct rnic_device *to, struct rnic_path *path);

/* What cm.c and conn.c share. */

/* What listeners have as uid, so that no session has it */
#define CM_LISTENER (UINT64_C(1) << 63)

struct rnic_conn {
	int fd;                /* the connection manager's */
	struct ledger *ledger; /* the same, or NULL */
	uint32_t id;
	bool accepted;
	bool over;     /* there is no such id any more */
	bool recorded; /* in the ledger, as one that waits for an answer */
	char peer[80];
	const char *device;
	struct rnic_ucm_route route;
	struct ibv_qp_attr rtr; /* the path to the client, and its queue pair; fixed by its request */
	bool resolved;          /* the members that follow */
	uint8_t mac[6];
	uint16_t udp_sport;
};

/** What the kernel would bring a queue pair of @conn into @state with. -ECONNABORTED: the client took its
 * request back. Errors have been logged. */
int conn_get_attr(const struct rnic_conn *conn, enum ibv_qp_state state, struct ibv_qp_attr *attr);

/*
 * The two kinds of queues of plain.h: those that verbs make (plain-verbs.c), and those of a device that takes
 * direct commands (plain-direct.c).
 *
 * What the functions mean is in plain.h, where each has its name without "verbs" or "direct".
 */

enum { PLAIN_PARTS = 2 }; /* of the data of a message */

struct rnic_plain_events {
	struct ibv_comp_channel *channel; /* of queues that verbs make; else NULL */
	int fd;                           /* else: of the events of direct commands */
};

/** What both kinds begin with. */
struct rnic_plain {
	bool direct;
	uint32_t qpn;
	uint8_t *mem;
};

int plain_verbs_new(struct rnic_plain **q, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr);
void plain_verbs_stop(struct rnic_plain *q);
void plain_verbs_free(struct rnic_plain *q);
int plain_verbs_receive(struct rnic_plain *q, uint64_t to);
int plain_verbs_send(struct rnic_plain *q, const struct rnic_plain_send *send);
int plain_verbs_flush(struct rnic_plain *q, uint32_t number);
int plain_verbs_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH]);
int plain_verbs_arm(struct rnic_plain *q);

uint64_t plain_direct_bytes(const struct rnic_plain_attr *attr);
int plain_direct_new(struct rnic_plain **q, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr);
void plain_direct_stop(struct rnic_plain *q);
void plain_direct_free(struct rnic_plain *q);
void plain_direct_receive(struct rnic_plain *q, uint64_t to);
void plain_direct_send(struct rnic_plain *q, const struct rnic_plain_send *send);
void plain_direct_flush(struct rnic_plain *q, uint32_t number);
int plain_direct_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH]);
void plain_direct_arm(struct rnic_plain *q);
struct rnic_qp *plain_direct_qp(struct rnic_plain *q);

#endif
