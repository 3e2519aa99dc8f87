/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wqe.h - layouts of what software and the NIC exchange through memory: send WQEs, receive WQEs, CQEs and
 * doorbell records of mlx5. Everything is big-endian. The layouts are those of infiniband/mlx5dv.h (test-hw.c
 * compares them); WAIT, SEND_EN and RECV_EN, which that header does not name, follow the cross-channel
 * segment of MLNX_OFED's libmlx5 (wqe.h, mlx5_wqe_wait_en_seg) and DPDK (mlx5_prm.h, mlx5_wqe_qseg).
 */
#ifndef SOFTCX_HW_WQE_H
#define SOFTCX_HW_WQE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum {
	HW_WQEBB = 64,           /* bytes of a send WQE building block */
	HW_DS = 16,              /* bytes of the unit that the DS field counts */
	HW_MAX_DS = 63,          /* the DS field has 6 bits */
	HW_MAX_WQE_BB = 16,      /* WQEBBs of the longest WQE */
	HW_INVALID_LKEY = 0x100, /* ends a short scatter list of a receive WQE */
	HW_MAX_MSG = 1u << 30,   /* longest message, bytes */
};

enum hw_opcode {
	HW_OP_NOP = 0x00,
	HW_OP_SEND_INVAL = 0x01,
	HW_OP_WRITE = 0x08,
	HW_OP_WRITE_IMM = 0x09,
	HW_OP_SEND = 0x0a,
	HW_OP_SEND_IMM = 0x0b,
	HW_OP_WAIT = 0x0f,
	HW_OP_READ = 0x10,
	HW_OP_CAS = 0x11,
	HW_OP_FAA = 0x12,
	HW_OP_MASKED_CAS = 0x14,
	HW_OP_MASKED_FAA = 0x15,
	HW_OP_RECV_EN = 0x16,
	HW_OP_SEND_EN = 0x17,
	HW_OP_LOCAL_INVAL = 0x1b,
	HW_OP_UMR = 0x25,
};

/* ctrl segment, byte offsets */
enum { HW_CTRL_OP = 0, HW_CTRL_QPN_DS = 4, HW_CTRL_FM_CE_SE = 11, HW_CTRL_IMM = 12 };
/* fm_ce_se */
enum { HW_SOLICITED = 0x02, HW_CE_SHIFT = 2, HW_CE_FIRST_ERROR = 1, HW_CE_ALWAYS = 2, HW_FM_SHIFT = 5 };
enum hw_fence { HW_FM_NONE, HW_FM_SMALL, HW_FM_FENCE, HW_FM_STRONG, HW_FM_SMALL_AND_FENCE };

/* Segments after ctrl, offsets from the start of the WQE */
enum {
	HW_RADDR_VA = 16,
	HW_RADDR_RKEY = 24,
	HW_ATOMIC = 32,     /* operands */
	HW_WAIT_INDEX = 24, /* WAIT, SEND_EN, RECV_EN */
	HW_WAIT_NUMBER = 28,
	HW_UD_KEY = 16, /* address vector of a datagram: qkey, DQPN, GID */
	HW_UD_DQPN = 24,
	HW_UD_TCLASS = 42,
	HW_UD_HOP_LIMIT = 43,
	HW_UD_GRH = 44,
	HW_UD_RGID = 48,
	HW_UD_DATA_DS = 4,
};

enum { HW_SEG_INLINE = 1u << 31 };

enum hw_cqe_opcode {
	HW_CQE_REQ = 0,
	HW_CQE_RESP_WRITE_IMM = 1,
	HW_CQE_RESP_SEND = 2,
	HW_CQE_RESP_SEND_IMM = 3,
	HW_CQE_RESP_SEND_INV = 4,
	HW_CQE_RESIZE = 5,
	HW_CQE_REQ_ERR = 13,
	HW_CQE_RESP_ERR = 14,
};

enum { HW_CQE_INLINE32 = 0x4, HW_CQE_INLINE64 = 0x8, HW_CQE_SOLICITED = 0x2 }; /* in op_own */

enum hw_syndrome {
	HW_SYND_LOCAL_LENGTH = 0x01,
	HW_SYND_LOCAL_QP_OP = 0x02,
	HW_SYND_LOCAL_PROT = 0x04,
	HW_SYND_FLUSH = 0x05,
	HW_SYND_MW_BIND = 0x06,
	HW_SYND_LOCAL_ACCESS = 0x11,
	HW_SYND_REMOTE_INVAL = 0x12,
	HW_SYND_REMOTE_ACCESS = 0x13,
	HW_SYND_REMOTE_OP = 0x14,
	HW_SYND_RETRY = 0x15,
	HW_SYND_RNR_RETRY = 0x16,
};

static inline uint16_t hw_be16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16toh(v);
}

static inline uint32_t hw_be32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static inline uint64_t hw_be64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

static inline uint32_t hw_raw32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Doorbell records are written by other threads. */
static inline uint32_t hw_db_read(const uint32_t *word)
{
	return be32toh(__atomic_load_n(word, __ATOMIC_ACQUIRE));
}

#endif
