/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * resp.h - the responder: finds the peer of a QP, checks what a request may touch, consumes RECVs. Internal
 * to softcx/hw.
 */
#ifndef SOFTCX_HW_RESP_H
#define SOFTCX_HW_RESP_H

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

#endif
