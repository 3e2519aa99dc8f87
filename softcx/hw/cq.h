/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cq.h - writing CQEs and raising completion events. Internal to softcx/hw.
 *
 * Events (rdma-core, providers/mlx5/cq.c, mlx5_arm_cq): software stores an arm word {sn, solicited only,
 * consumer index} in the doorbell record. A stored word that differs from the last one seen arms the CQ; it
 * fires when a CQE exists that neither the consumer index in the word nor an earlier event covers. One arm,
 * one event.
 */
#ifndef SOFTCX_HW_CQ_H
#define SOFTCX_HW_CQ_H

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "softcx/hw/dev.h"

struct hw_cq {
	struct hw_dev *dev;
	uint32_t cqn;
	uint8_t *ring;
	uint32_t size; /* CQEs */
	uint32_t cqe_bytes;
	uint32_t *db;
	uint64_t producer; /* CQEs ever written; WAIT sees 24 bits of it */
	bool oi, cc, failed;

	uint32_t arm_word; /* last one seen in the doorbell record */
	bool armed, sol_only;
	bool listed;       /* on uar->cqs: producer is not event_at */
	uint64_t event_at; /* producer at the last event */
	uint64_t sol_at;   /* producer after the last CQE that a solicited-only arm wants */
	uint16_t period_us, max_count;
	uint64_t due; /* of a moderated event, while on dev->moderated */
	bool moderated;

	struct hw_software *software; /* or NULL */
	TAILQ_ENTRY(hw_cq) of_software;
	struct hw_cq_clock *clock; /* or NULL, as that of the device */
	struct hw_uar *time;       /* or NULL */
	unsigned refs;             /* by QPs */
	struct hw_qp_list waiters; /* SQs stopped at a WAIT for this CQ */
	struct hw_mem *buf_mem, *db_mem;
	struct hw_uar *uar;
	void (*on_comp)(void *arg);
	void (*on_error)(void *arg, int event);
	void *arg;
	TAILQ_ENTRY(hw_cq) of_uar;
	TAILQ_ENTRY(hw_cq) timer;
};

/** Software's and the device's fields of one CQE, host order unless noted. */
struct hw_cqe {
	const uint8_t *inl; /* data to deliver in the CQE, or NULL */
	uint32_t inl_len;   /* <= 32, or <= 64 when the CQE has 128 bytes */
	uint32_t rqpn;      /* flags_rqpn */
	uint16_t slid;      /* of a datagram on InfiniBand */
	uint32_t user_index;
	uint32_t imm_be; /* as it goes into the CQE */
	uint32_t byte_cnt;
	uint32_t sop_qpn; /* opcode of the send WQE << 24 | local QPN */
	uint16_t wqe_counter;
	uint8_t opcode; /* enum cqe_opcode */
	bool solicited, real_time;
	uint64_t at;              /* modelled clock: when it is complete in the NIC; 0: now */
	uint8_t syndrome, vendor; /* of an error CQE */
};

/** True if CQE number @index was written: 24 bits, compared in a cyclic half window. */
static inline bool hw_cq_reached(const struct hw_cq *cq, uint32_t index)
{
	return (((uint32_t)cq->producer - index - 1) & 0xffffff) < 0x800000;
}

/** Appends a CQE. False: overrun; the CQ has failed and on_error was called. */
bool hw_cq_push(struct hw_cq *cq, const struct hw_cqe *cqe);
bool hw_cq_holds_one(struct hw_cq *cq); /* that software has not consumed */

void hw_cq_check_arm(struct hw_cq *cq); /* re-reads the arm word, fires if it must */
bool hw_cq_timers(struct hw_dev *dev);  /* fires moderated events that are due */

#endif
