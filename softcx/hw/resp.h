/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resp.h - the responder: finds the peer of a QP, checks what a request may touch, consumes RECVs. Internal
 * to softcx/hw.
 */
#ifndef SOFTCX_HW_RESP_H
#define SOFTCX_HW_RESP_H

#include "softcx/hw/dev.h"
#include "softcx/hw/exec.h"

/** Where @qp is connected to. NULL: nowhere. */
struct hw_dev *hw_resp_dev(struct hw_qp *qp);

/**
 * The QP that @qp's packets reach: named by its address and destination QPN, ready to receive and connected
 * back to @qp (strict, RC: and expecting the packet sequence number that comes next). NULL: packets are lost.
 */
struct hw_qp *hw_resp_peer(struct hw_qp *qp);
/** For a datagram: any UD QP with this number behind that address that knows @qkey. */
struct hw_qp *hw_resp_datagram_peer(struct hw_qp *qp, const struct hw_av *av, uint32_t qpn, uint32_t qkey);

/** The target behind that address that @key opens. With another key nobody answers; assumed. */
struct hw_qp *hw_resp_target(struct hw_qp *qp, const struct hw_av *av, uint32_t dctn, uint64_t key);

/** Resolves remote memory; one right of HW_REMOTE_*. 0 or a fault. */
int hw_resp_span(
	struct hw_qp *peer, uint32_t rkey, uint64_t va, uint32_t len, unsigned right, struct hw_span *out);

/** A message that consumes a RECV. */
struct hw_msg {
	uint8_t cqe_opcode;
	bool solicited;
	bool datagram; /* a 40-byte GRH is delivered first */
	uint32_t imm_be;
	struct hw_qp *src;         /* who sends it */
	uint8_t packet_type;       /* of a datagram: enum hw_packet_type */
	uint32_t len;              /* bytes to report */
	uint64_t at;               /* modelled clock: when it is placed */
	const struct hw_sgl *data; /* NULL: nothing to scatter (WRITE_IMM) */
	bool has_grh;              /* of a datagram: the 40 bytes mean something */
	uint16_t slid;             /* on InfiniBand */
	uint8_t grh[40];
};
/** Consumes a RECV of @peer, writes its CQE. 0, HW_EXEC_RNR, or the fault the requester sees. */
int hw_resp_recv(struct hw_qp *peer, const struct hw_msg *msg);

uint64_t hw_resp_rnr_ns(uint8_t min_rnr_timer);

/*
 * The network between ports: which device the packets of an address vector reach.
 *
 * It is one Ethernet segment. A frame is taken by the port that has its MAC address, and a RoCE v2 packet by
 * the port that has its GID; both have to be the same port. Source: IBTA annex A17; Linux
 * drivers/infiniband/core/addr.c, which looks up the MAC address of a GID as that of any IP address.
 *
 * Ports of InfiniBand are one subnet: switches look at the LID alone, and the port that gets a packet with a
 * GRH checks that the GID is its own (IB 9.6.1.2.3).
 */

/** The device that packets of @from with this address reach. NULL: none, for the reason in @why, which may be
 * NULL. */
struct hw_dev *hw_route(struct hw_dev *from, const struct hw_av *av, enum hw_lost *why);

/*
 * Shared receive queues: WQEs linked by the index in their first segment
 * (mlx5dv.h, struct mlx5_wqe_srq_next_seg), posted by a counter in the doorbell record.
 */

struct hw_srq {
	struct hw_dev *dev;
	uint32_t srqn, pdn;
	uint8_t *ring;
	uint32_t wqes, stride;
	uint32_t *db;
	bool cyclic;       /* one WQE after the other: their next-segments have no meaning */
	uint16_t head;     /* index of the next WQE to consume; not wrapped if cyclic */
	uint16_t consumed; /* WQEs */
	uint16_t limit;    /* 0: no event armed */
	unsigned refs;     /* by QPs */
	struct hw_mem *buf_mem, *db_mem;
	void (*on_event)(void *arg, int event);
	void *arg;
};

uint16_t hw_srq_posted(const struct hw_srq *srq); /* WQEs that can be consumed */

#endif
