/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wqe.h - the layout of send and receive WQEs: byte offsets, opcodes, flags, and big-endian stores.
 *
 * Source: Linux include/linux/mlx5/qp.h and device.h, rdma-core providers/mlx5/mlx5dv.h; for WAIT and
 * SEND_EN, which upstream names nowhere, the MLNX_OFED libmlx5 and DPDK drivers/common/mlx5/mlx5_prm.h.
 */
#ifndef MLX5_WQE_H
#define MLX5_WQE_H

#include <stdint.h>

enum wqe_size {
	WQE_DS = 16, /* the unit of the DS count, of every segment, and of an RQ entry's SGEs */
	WQE_MAX_DS = 63,
};

enum wqe_ctrl { /* control segment, the first 16 bytes */
	WQE_OPMOD = 0,
	WQE_INDEX = 1, /* BE16 */
	WQE_OPCODE = 3,
	WQE_QPN_DS = 4, /* BE32: QPN << 8 | DS */
	WQE_DSCOUNT = 7,
	WQE_FLAGS = 11, /* enum wqe_flag */
	WQE_IMM = 12,   /* BE32 */
};

enum wqe_opcode {
	WQE_OP_NOP = 0x00,
	WQE_OP_WRITE = 0x08,
	WQE_OP_WRITE_IMM = 0x09,
	WQE_OP_SEND = 0x0a,
	WQE_OP_WAIT = 0x0f,
	WQE_OP_READ = 0x10,
	WQE_OP_CAS = 0x11,
	WQE_OP_FETCH_ADD = 0x12,
	WQE_OP_MASKED_CAS = 0x14,
	WQE_OP_MASKED_FETCH_ADD = 0x15,
	WQE_OP_RECV_EN = 0x16,
	WQE_OP_SEND_EN = 0x17,
};

/* Masked atomics carry log2(operand bytes) - 2 in the low bits of the opmod */
#define WQE_OPMOD_MASKED_8B 0x09

enum wqe_flag {
	WQE_SOLICITED = 0x02,
	WQE_SIGNALLED = 0x08, /* a CQE always; without it only on error */
	WQE_FENCE = 0x80,     /* start after the READs and atomics before it in this SQ have completed */
};

enum {                        /* segments after the control segment */
	WQE_RADDR = 16,       /* remote address, BE64; READ, WRITE and atomics */
	WQE_RKEY = 24,        /* BE32 */
	WQE_RDMA_SGE = 32,    /* first data segment of READ and WRITE */
	WQE_SEND_SGE = 16,    /* first data segment of SEND */
	WQE_SYNC_INDEX = 24,  /* BE32, of WAIT, SEND_EN, RECV_EN */
	WQE_SYNC_OBJECT = 28, /* BE32: CQN or QPN */
	WQE_ATOMIC = 32,      /* BE64 operands: swap or add, then compare, then swap mask, compare mask */
};

enum {                         /* data segment; also the form of an RQ entry's SGEs */
	WQE_SGE_LEN = 0,       /* BE32; 0 would mean 2^31 */
	WQE_SGE_LKEY = 4,      /* BE32 */
	WQE_SGE_ADDR = 8,      /* BE64 */
	WQE_LKEY_NONE = 0x100, /* ends a short scatter list, with length 0 */
};

static inline void wqe_put16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void wqe_put32(uint8_t *p, uint32_t v)
{
	wqe_put16(p, (uint16_t)(v >> 16));
	wqe_put16(p + 2, (uint16_t)v);
}

static inline void wqe_put64(uint8_t *p, uint64_t v)
{
	wqe_put32(p, (uint32_t)(v >> 32));
	wqe_put32(p + 4, (uint32_t)v);
}

static inline uint64_t wqe_get(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *p++;
	return v;
}

#endif
