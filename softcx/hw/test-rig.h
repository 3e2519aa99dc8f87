/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-rig.h - a device for tests of the emulated silicon, memory under one key, and queues that the test
 * writes by hand. Addresses of the "application" are those of the test itself.
 */
#ifndef SOFTCX_HW_TEST_RIG_H
#define SOFTCX_HW_TEST_RIG_H

#include "mlx5/wqe.h"
#include "tests/lib/cmocka.h"

#include "mlx5/cqe.h"
#include "softcx/hw/hw.h"

enum { RIG_MEM_BYTES = 32 << 20 };

struct rig {
	struct hw_dev *dev;
	struct hw_uar *uar;
	uint64_t *page;    /* of the UAR */
	uint32_t pdn, key; /* @key covers @mem with every right */
	struct hw_mem mem;
	size_t used;
};

struct rig_cq {
	struct rig *rig;
	struct hw_cq *cq;
	uint8_t *ring;
	uint32_t *db;
	uint32_t size, cqe_bytes, ci;
	unsigned events, errors;
};

struct rig_qp {
	struct rig *rig;
	struct hw_qp *qp;
	uint8_t *sq, *rq;
	uint32_t *db;
	uint32_t wqebbs, rq_wqes, rq_stride;
	uint16_t pi, rpi; /* WQEBBs written, RECVs posted */
	unsigned last_event, events;
};

/** Options of rig_qp_new_with; 0 everywhere is an RC QP with a 64-WQEBB SQ and 16 RECVs of 4 SGEs. */
struct rig_opt {
	enum hw_qp_type type;
	bool managed, managed_recv, no_master, real_time;
	uint32_t wqebbs, rq_wqes;
	uint32_t rq_stride; /* bytes of a RECV, 0: 64, 4 SGEs */
	uint8_t cs_req, cs_res;
	struct hw_srq *srq;
};

/* Everything below fails the test when it cannot do its work. */
void rig_open(struct rig *r, const struct hw_config *cfg);
/** Its GIDs: link-local and IPv4 ones that end with @gid_byte, and the first again for RoCE v1. */
enum { RIG_GID_V1 = 2 };
void rig_open_gid(struct rig *r, const struct hw_config *cfg, uint8_t gid_byte);
void rig_close(struct rig *r); /* and checks that nothing is left once all objects are destroyed */
void *rig_alloc(struct rig *r, size_t bytes); /* zeroed, 64-byte aligned, below r->key */
uint64_t rig_off(const struct rig *r, const void *p);
void rig_run(struct rig *r);    /* until the device is quiet */
void rig_settle(struct rig *r); /* sleeps and runs until no timer is left either */

void rig_cq_new(struct rig *r, struct rig_cq *cq, uint8_t log_size);
void rig_cq_new_attr(
	struct rig *r, struct rig_cq *cq, struct hw_cq_attr attr); /* buf, db, uar are filled in */
/** The next CQE (its 64 bytes), NULL when there is none. */
const uint8_t *rig_cq_next(struct rig_cq *cq);
void rig_cq_arm(struct rig_cq *cq, uint32_t sn, bool solicited);
unsigned rig_cq_count(struct rig_cq *cq); /* consumes all */

void rig_qp_new(struct rig *r, struct rig_qp *q, struct rig_cq *scq, struct rig_cq *rcq);
void rig_qp_new_with(
	struct rig *r, struct rig_qp *q, struct rig_cq *scq, struct rig_cq *rcq, struct rig_opt o);
void rig_connect(struct rig_qp *a, struct rig_qp *b); /* both to RTS; a may be b */
void rig_qp_to(struct rig_qp *q, enum hw_qp_state to);
void rig_qp_connect_to(
	struct rig_qp *q, uint32_t dest_qpn, const uint8_t *dgid); /* RST to RTS; NULL: loopback */
void rig_av(struct hw_av *av, const uint8_t *dgid);                /* a good address vector */
void rig_default_mod(struct hw_qp_mod *mod);                       /* the attributes rig_qp_connect_to uses */
void rig_destroy(struct rig_qp *q);

/** The smallest thing to test with: one queue connected to itself, a CQ for either direction. */
struct rig_one {
	struct rig rig;
	struct rig_cq scq, rcq;
	struct rig_qp q;
};
void rig_one_open(struct rig_one *o, struct hw_config cfg, struct hw_cq_attr cqs, struct rig_opt opt);
/** The same with CQs of 64 CQEs, and nothing special. */
void rig_one_start(struct rig_one *o, uint64_t seed);
void rig_one_close(struct rig_one *o);
void rig_one_go(struct rig_one *o); /* ring, run */

/** Two queues, each with a CQ for either direction, and memory; they are not connected yet. */
struct rig_pair {
	struct rig rig;
	struct rig_cq scq[2], rcq[2];
	struct rig_qp q[2];
	uint8_t *src, *dst; /* 4096 bytes each */
};
void rig_pair_open(struct rig_pair *p, struct hw_config cfg, struct rig_opt opt);
void rig_pair_close(struct rig_pair *p);

/* CQE fields */
uint8_t rig_cqe_op(const uint8_t *cqe);
uint8_t rig_cqe_synd(const uint8_t *cqe);
uint16_t rig_cqe_idx(const uint8_t *cqe);
/** Asserts that the next CQE is a good one of this opcode. */
const uint8_t *rig_expect(struct rig_cq *cq, enum cqe_opcode op);
/** Asserts that the next CQE reports this syndrome. */
const uint8_t *rig_expect_error(struct rig_cq *cq, uint8_t syndrome);

/* WQEs: each writes at the queue's end and returns its address; rig_ring makes them visible. */
enum { SIG = 0x08, FENCE = 0x80, SOL = 0x02 };
uint8_t *wqe_raw(
	struct rig_qp *q, uint8_t opcode, uint8_t opmod, uint8_t ds, uint8_t fm_ce_se, uint32_t imm_be);
uint8_t *wqe_nop(struct rig_qp *q, uint8_t ds, uint8_t f);
uint8_t *wqe_send(struct rig_qp *q, uint8_t opcode, const void *p, uint32_t len, uint8_t f, uint32_t imm_be);
uint8_t *wqe_rdma(struct rig_qp *q, uint8_t opcode, const void *local, uint32_t len, const void *remote,
	uint8_t f, uint32_t imm_be);
uint8_t *wqe_inline_write(struct rig_qp *q, const void *data, uint32_t len, const void *remote, uint8_t f);
uint8_t *wqe_atomic(struct rig_qp *q, uint8_t opcode, void *old, const void *target, uint64_t swap_add,
	uint64_t compare, uint8_t f);
uint8_t *wqe_masked_cas8(struct rig_qp *q, void *old, const void *target, uint64_t swap, uint64_t compare,
	uint64_t swap_mask, uint64_t compare_mask, uint8_t f);
uint8_t *wqe_masked4(
	struct rig_qp *q, uint8_t opcode, void *old, const void *target, const uint32_t ops[4], uint8_t f);
uint8_t *wqe_masked_faa8(
	struct rig_qp *q, void *old, const void *target, uint64_t add, uint64_t tops, uint8_t f);
uint8_t *wqe_wait(struct rig_qp *q, uint32_t cqn, uint32_t index, uint8_t f);
uint8_t *wqe_enable(struct rig_qp *q, uint8_t opcode, uint32_t qpn, uint32_t index, uint8_t f);
void put_seg(uint8_t *seg, const void *p, uint32_t len, uint32_t key);
void put32(uint8_t *p, uint32_t v);
void put64(uint8_t *p, uint64_t v);

void rig_ring(struct rig_qp *q); /* SQ doorbell record and UAR */
/** Posts a RECV of up to 4 segments; pairs of (address, length). */
void rig_recv(struct rig_qp *q, unsigned n, ...);

#endif
