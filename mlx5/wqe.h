/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wqe.h - the layout of send and receive WQEs: byte offsets, opcodes, flags, big-endian loads and stores.
 *
 * The daemon writes WQEs with these names, the emulator reads them. Fields are big-endian.
 *
 * Source: Linux include/linux/mlx5/qp.h and device.h, rdma-core providers/mlx5/mlx5dv.h. WAIT, SEND_EN and
 * RECV_EN, which upstream names nowhere: MLNX_OFED's libmlx5 (wqe.h, mlx5_wqe_wait_en_seg) and DPDK
 * drivers/common/mlx5/mlx5_prm.h (mlx5_wqe_qseg). softcx/hw/test-hw.c compares with the installed mlx5dv.h.
 */
#ifndef MLX5_WQE_H
#define MLX5_WQE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum wqe_size {
	WQE_BB = 64, /* bytes of a WQE building block (WQEBB), in which an SQ is counted */
	WQE_DS = 16, /* the unit of the DS count, of every segment, and of an RQ entry's SGEs */
	WQE_MAX_DS = 63,
	WQE_MAX_BBS = 16, /* WQEBBs of the longest WQE */
};

enum wqe_ctrl {        /* control segment, the first 16 bytes */
	WQE_OPMOD = 0, /* BE32 with the next two: opmod << 24 | index << 8 | opcode */
	WQE_INDEX = 1, /* BE16 */
	WQE_OPCODE = 3,
	WQE_QPN_DS = 4, /* BE32: QPN << 8 | DS */
	WQE_DSCOUNT = 7,
	WQE_FLAGS = 11, /* enum wqe_flag */
	WQE_IMM = 12,   /* BE32: immediate data, or the key to invalidate */
};

enum wqe_opcode {
	WQE_OP_NOP = 0x00,
	WQE_OP_SEND_INVAL = 0x01,
	WQE_OP_WRITE = 0x08,
	WQE_OP_WRITE_IMM = 0x09,
	WQE_OP_SEND = 0x0a,
	WQE_OP_SEND_IMM = 0x0b,
	WQE_OP_WAIT = 0x0f,
	WQE_OP_READ = 0x10,
	WQE_OP_CAS = 0x11,
	WQE_OP_FETCH_ADD = 0x12,
	WQE_OP_MASKED_CAS = 0x14,
	WQE_OP_MASKED_FETCH_ADD = 0x15,
	WQE_OP_RECV_EN = 0x16,
	WQE_OP_SEND_EN = 0x17,
	WQE_OP_LOCAL_INVAL = 0x1b,
	WQE_OP_UMR = 0x25,
};

/* Masked atomics carry log2(operand bytes) - 2 in the low bits of the opmod */
#define WQE_OPMOD_MASKED_8B 0x09

/* CALC: the opmod of a SEND, WRITE or WRITE_IMM on a queue that is cd_master. Source: libmlx5 of
 * MLNX_OFED 4.1 (qp.c, table of opcodes). */
enum wqe_calc {
	WQE_CALC_ADD = 1,
	WQE_CALC_ADD_F64 = 2,
	WQE_CALC_MAXLOC = 3, /* of unsigned numbers */
	WQE_CALC_AND = 4,
	WQE_CALC_OR = 5,
	WQE_CALC_XOR = 6,
	/* bytes of an operand, and its alignment: a BE64 number, and an id, of which only MAXLOC makes use */
	WQE_CALC_OPERAND = 16,
};

/* When a WQE writes a CQE: the values below the last ask for one on errors only */
enum wqe_completion { WQE_CE_FIRST_ERROR = 1, WQE_CE_ALWAYS = 2 };
/* Which earlier WQEs of the SQ must have completed before a WQE starts */
enum wqe_fence {
	WQE_FM_NONE,
	WQE_FM_SMALL,
	WQE_FM_FENCE,
	WQE_FM_STRONG,
	WQE_FM_SMALL_AND_FENCE,
};

enum wqe_flag {
	WQE_SOLICITED = 0x02,
	WQE_CE_SHIFT = 2,
	WQE_SIGNALLED = WQE_CE_ALWAYS << WQE_CE_SHIFT, /* a CQE always; without it only on error */
	WQE_FM_SHIFT = 5,
	/* start after the READs and atomics before it in this SQ have completed */
	WQE_FENCE = WQE_FM_SMALL_AND_FENCE << WQE_FM_SHIFT,
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

enum {                         /* address vector of a datagram */
	WQE_UD_QKEY = 16,      /* BE32 */
	WQE_DC_KEY = 16,       /* BE64, in its place */
	WQE_UD_DQPN = 24,      /* BE32, the QPN in its low 24 bits, and WQE_UD_EXTENDED */
	WQE_UD_SPORT = 30,     /* BE16: source port of the UDP header on RoCE, LID on InfiniBand */
	WQE_UD_RMAC = 36,      /* 6 bytes */
	WQE_UD_TCLASS = 42,    /* one byte */
	WQE_UD_HOP_LIMIT = 43, /* one byte */
	WQE_UD_GRH = 44,       /* BE32: index of the source GID << 20 | flow label */
	WQE_UD_RGID = 48,      /* 16 bytes */
	WQE_UD_SGE_DS = 4,     /* first data segment, in units of WQE_DS */
};

enum {                         /* data segment; also the form of an RQ entry's SGEs */
	WQE_SGE_LEN = 0,       /* BE32; 0 would mean 2^31 */
	WQE_SGE_LKEY = 4,      /* BE32 */
	WQE_SGE_ADDR = 8,      /* BE64 */
	WQE_LKEY_NONE = 0x100, /* ends a short scatter list, with length 0 */
};
/* In a BE32 length: the data follow it, in place of key and address */
enum { WQE_INLINE = 1u << 31 };
enum { WQE_UD_EXTENDED = 1u << 31 }; /* the address has all its 48 bytes: rdma-core MLX5_EXTENDED_UD_AV */

static inline void wqe_put16(uint8_t *p, uint16_t v)
{
	uint16_t be = htobe16(v);

	memcpy(p, &be, sizeof(be));
}

static inline void wqe_put32(uint8_t *p, uint32_t v)
{
	uint32_t be = htobe32(v);

	memcpy(p, &be, sizeof(be));
}

static inline void wqe_put64(uint8_t *p, uint64_t v)
{
	uint64_t be = htobe64(v);

	memcpy(p, &be, sizeof(be));
}

/** Writes a data segment. */
static inline void wqe_put_sge(uint8_t *sge, uint32_t len, uint32_t lkey, uint64_t addr)
{
	wqe_put32(sge + WQE_SGE_LEN, len);
	wqe_put32(sge + WQE_SGE_LKEY, lkey);
	wqe_put64(sge + WQE_SGE_ADDR, addr);
}

static inline uint64_t wqe_get(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *p++;
	return v;
}

static inline uint16_t wqe_get16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16toh(v);
}

static inline uint32_t wqe_get32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static inline uint64_t wqe_get64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

#endif
