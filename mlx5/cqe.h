/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cqe.h - the layout of CQEs: byte offsets, opcodes and syndromes.
 *
 * The emulator writes CQEs with these names, the daemon reads them. Fields are big-endian; a CQE of 128 bytes
 * has these fields in its second half.
 *
 * Source: rdma-core providers/mlx5/mlx5dv.h (struct mlx5_cqe64, struct mlx5_err_cqe) and cq.c;
 * softcx/hw/test-hw.c compares with the installed mlx5dv.h.
 */
#ifndef MLX5_CQE_H
#define MLX5_CQE_H

enum { CQE_BYTES = 64 };

enum cqe_field {
	CQE_SLID = 22,       /* BE16: the sender's LID */
	CQE_RQPN = 24,       /* BE32: the sender's QPN in the low 24 bits */
	CQE_USER_INDEX = 32, /* BE32: user index of the QP, or SRQN */
	CQE_IMM = 36,        /* BE32: immediate data, or the key that was invalidated */
	CQE_LENGTH = 44,     /* BE32: bytes */
	CQE_TIMESTAMP = 48,  /* BE64; an error CQE has the next two in its place */
	CQE_VENDOR = 54,
	CQE_SYNDROME = 55, /* enum cqe_syndrome */
	CQE_QPN = 56,      /* BE32: opcode of the send WQE << 24 | QPN */
	CQE_INDEX = 60,    /* BE16: of the WQE or RQ entry */
	CQE_OP_OWN = 63,   /* enum cqe_opcode << 4 | enum cqe_flag */
};

enum cqe_opcode {
	CQE_OP_REQ = 0,
	CQE_OP_RESP_WRITE_IMM = 1,
	CQE_OP_RESP_SEND = 2,
	CQE_OP_RESP_SEND_IMM = 3,
	CQE_OP_RESP_SEND_INVAL = 4,
	CQE_OP_RESIZE = 5,
	CQE_OP_REQ_ERR = 13,
	CQE_OP_RESP_ERR = 14,
	CQE_OP_INVALID = 15, /* software's mark: not yet written */
};

enum cqe_flag {
	CQE_OWNER = 0x1, /* the parity of the lap */
	CQE_SOLICITED = 0x2,
	CQE_INLINE_32 = 0x4, /* up to 32 bytes of data at the start of the CQE */
	CQE_INLINE_64 = 0x8, /* up to 64 bytes of data in the first half of a CQE of 128 bytes */
};

enum cqe_syndrome {
	CQE_SYND_LOCAL_LENGTH = 0x01,
	CQE_SYND_LOCAL_QP_OP = 0x02,
	CQE_SYND_LOCAL_PROT = 0x04,
	CQE_SYND_FLUSH = 0x05,
	CQE_SYND_MW_BIND = 0x06,
	CQE_SYND_BAD_RESP = 0x10,
	CQE_SYND_LOCAL_ACCESS = 0x11,
	CQE_SYND_REMOTE_INVAL = 0x12, /* invalid request */
	CQE_SYND_REMOTE_ACCESS = 0x13,
	CQE_SYND_REMOTE_OP = 0x14,
	CQE_SYND_RETRY = 0x15,     /* transport retries exceeded */
	CQE_SYND_RNR_RETRY = 0x16, /* RNR retries exceeded */
	CQE_SYND_REMOTE_ABORT = 0x22,
};

#endif
