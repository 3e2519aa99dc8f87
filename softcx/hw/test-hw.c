/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs on connected queues: every opcode, completion modes, rings that wrap, layouts. */
#include "softcx/hw/test-rig.h"

#include <infiniband/mlx5dv.h>
#include <string.h>

enum { SEEDS = 40 };

/* mlx5/wqe.h and mlx5/cqe.h, which the daemon uses too, against the header of rdma-core */
static void wqe_layout(void **state)
{
	assert_int_equal(sizeof(struct mlx5_wqe_ctrl_seg), WQE_RADDR);
	assert_int_equal(offsetof(struct mlx5_wqe_ctrl_seg, opmod_idx_opcode), WQE_OPMOD);
	assert_int_equal(offsetof(struct mlx5_wqe_ctrl_seg, qpn_ds), WQE_QPN_DS);
	assert_int_equal(offsetof(struct mlx5_wqe_ctrl_seg, fm_ce_se), WQE_FLAGS);
	assert_int_equal(offsetof(struct mlx5_wqe_ctrl_seg, imm), WQE_IMM);
	assert_int_equal(16 + offsetof(struct mlx5_wqe_raddr_seg, raddr), WQE_RADDR);
	assert_int_equal(16 + offsetof(struct mlx5_wqe_raddr_seg, rkey), WQE_RKEY);
	assert_int_equal(16 + sizeof(struct mlx5_wqe_raddr_seg), WQE_RDMA_SGE);
	assert_int_equal(16 + sizeof(struct mlx5_wqe_raddr_seg), WQE_ATOMIC);
	assert_int_equal(sizeof(struct mlx5_wqe_data_seg), WQE_DS);
	assert_int_equal(offsetof(struct mlx5_wqe_data_seg, byte_count), WQE_SGE_LEN);
	assert_int_equal(offsetof(struct mlx5_wqe_data_seg, lkey), WQE_SGE_LKEY);
	assert_int_equal(offsetof(struct mlx5_wqe_data_seg, addr), WQE_SGE_ADDR);
	assert_int_equal(16 + offsetof(struct mlx5_wqe_av, key), WQE_UD_QKEY);
	assert_int_equal(16 + offsetof(struct mlx5_wqe_av, dqp_dct), WQE_UD_DQPN);
	assert_int_equal(16 + offsetof(struct mlx5_wqe_av, rlid), WQE_UD_SPORT);
	assert_int_equal(16 + offsetof(struct mlx5_wqe_av, rmac), WQE_UD_RMAC);
	assert_int_equal(16 + offsetof(struct mlx5_wqe_av, tclass), WQE_UD_TCLASS);
	assert_int_equal(16 + offsetof(struct mlx5_wqe_av, hop_limit), WQE_UD_HOP_LIMIT);
	assert_int_equal(16 + offsetof(struct mlx5_wqe_av, grh_gid_fl), WQE_UD_GRH);
	assert_int_equal(16 + offsetof(struct mlx5_wqe_av, rgid), WQE_UD_RGID);
	assert_int_equal(sizeof(struct mlx5_wqe_datagram_seg) / 16 + 1, WQE_UD_SGE_DS);
	assert_int_equal(MLX5_SEND_WQE_BB, WQE_BB);
	assert_int_equal(MLX5_INVALID_LKEY, WQE_LKEY_NONE);
	assert_true((uint32_t)MLX5_INLINE_SEG == (uint32_t)WQE_INLINE);
	assert_int_equal(MLX5_WQE_CTRL_CQ_UPDATE, SIG);
	assert_int_equal(MLX5_WQE_CTRL_SOLICITED, SOL);
	assert_int_equal(MLX5_WQE_CTRL_FENCE, FENCE);
	assert_int_equal(MLX5_WQE_CTRL_CQ_UPDATE, WQE_SIGNALLED);
	assert_int_equal(MLX5_WQE_CTRL_SOLICITED, WQE_SOLICITED);
	assert_int_equal(MLX5_WQE_CTRL_FENCE, WQE_FENCE);
}

static void wqe_opcodes(void **state)
{
	assert_int_equal(MLX5_OPCODE_NOP, WQE_OP_NOP);
	assert_int_equal(MLX5_OPCODE_SEND_INVAL, WQE_OP_SEND_INVAL);
	assert_int_equal(MLX5_OPCODE_RDMA_WRITE, WQE_OP_WRITE);
	assert_int_equal(MLX5_OPCODE_RDMA_WRITE_IMM, WQE_OP_WRITE_IMM);
	assert_int_equal(MLX5_OPCODE_SEND, WQE_OP_SEND);
	assert_int_equal(MLX5_OPCODE_SEND_IMM, WQE_OP_SEND_IMM);
	assert_int_equal(MLX5_OPCODE_RDMA_READ, WQE_OP_READ);
	assert_int_equal(MLX5_OPCODE_ATOMIC_CS, WQE_OP_CAS);
	assert_int_equal(MLX5_OPCODE_ATOMIC_FA, WQE_OP_FETCH_ADD);
	assert_int_equal(MLX5_OPCODE_ATOMIC_MASKED_CS, WQE_OP_MASKED_CAS);
	assert_int_equal(MLX5_OPCODE_ATOMIC_MASKED_FA, WQE_OP_MASKED_FETCH_ADD);
	assert_int_equal(MLX5_OPCODE_LOCAL_INVAL, WQE_OP_LOCAL_INVAL);
	assert_int_equal(MLX5_OPCODE_UMR, WQE_OP_UMR);
}

static void cqe_layout(void **state)
{
	assert_int_equal(sizeof(struct mlx5_cqe64), CQE_BYTES);
	assert_int_equal(offsetof(struct mlx5_cqe64, flags_rqpn), CQE_RQPN);
	assert_int_equal(offsetof(struct mlx5_cqe64, srqn_uidx), CQE_USER_INDEX);
	assert_int_equal(offsetof(struct mlx5_cqe64, imm_inval_pkey), CQE_IMM);
	assert_int_equal(offsetof(struct mlx5_cqe64, byte_cnt), CQE_LENGTH);
	assert_int_equal(offsetof(struct mlx5_cqe64, timestamp), CQE_TIMESTAMP);
	assert_int_equal(offsetof(struct mlx5_err_cqe, vendor_err_synd), CQE_VENDOR);
	assert_int_equal(offsetof(struct mlx5_err_cqe, syndrome), CQE_SYNDROME);
	assert_int_equal(offsetof(struct mlx5_cqe64, sop_drop_qpn), CQE_QPN);
	assert_int_equal(offsetof(struct mlx5_cqe64, wqe_counter), CQE_INDEX);
	assert_int_equal(offsetof(struct mlx5_cqe64, op_own), CQE_OP_OWN);
	assert_int_equal(MLX5_CQE_OWNER_MASK, CQE_OWNER);
	assert_int_equal(MLX5_INLINE_SCATTER_32, CQE_INLINE_32);
	assert_int_equal(MLX5_INLINE_SCATTER_64, CQE_INLINE_64);
	assert_int_equal(MLX5_CQE_REQ, CQE_OP_REQ);
	assert_int_equal(MLX5_CQE_RESP_WR_IMM, CQE_OP_RESP_WRITE_IMM);
	assert_int_equal(MLX5_CQE_RESP_SEND, CQE_OP_RESP_SEND);
	assert_int_equal(MLX5_CQE_RESP_SEND_IMM, CQE_OP_RESP_SEND_IMM);
	assert_int_equal(MLX5_CQE_RESP_SEND_INV, CQE_OP_RESP_SEND_INVAL);
	assert_int_equal(MLX5_CQE_RESIZE_CQ, CQE_OP_RESIZE);
	assert_int_equal(MLX5_CQE_REQ_ERR, CQE_OP_REQ_ERR);
	assert_int_equal(MLX5_CQE_RESP_ERR, CQE_OP_RESP_ERR);
	assert_int_equal(MLX5_CQE_INVALID, CQE_OP_INVALID);
}

static void cqe_syndromes(void **state)
{
	assert_int_equal(MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR, CQE_SYND_LOCAL_LENGTH);
	assert_int_equal(MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR, CQE_SYND_LOCAL_QP_OP);
	assert_int_equal(MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, CQE_SYND_LOCAL_PROT);
	assert_int_equal(MLX5_CQE_SYNDROME_WR_FLUSH_ERR, CQE_SYND_FLUSH);
	assert_int_equal(MLX5_CQE_SYNDROME_MW_BIND_ERR, CQE_SYND_MW_BIND);
	assert_int_equal(MLX5_CQE_SYNDROME_BAD_RESP_ERR, CQE_SYND_BAD_RESP);
	assert_int_equal(MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR, CQE_SYND_LOCAL_ACCESS);
	assert_int_equal(MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR, CQE_SYND_REMOTE_INVAL);
	assert_int_equal(MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR, CQE_SYND_REMOTE_ACCESS);
	assert_int_equal(MLX5_CQE_SYNDROME_REMOTE_OP_ERR, CQE_SYND_REMOTE_OP);
	assert_int_equal(MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, CQE_SYND_RETRY);
	assert_int_equal(MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR, CQE_SYND_RNR_RETRY);
	assert_int_equal(MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR, CQE_SYND_REMOTE_ABORT);
}

/* Two connected queues with a send and a receive CQ each. */
static void open_pair(struct rig_pair *p, uint64_t seed, bool lenient, struct rig_opt o)
{
	rig_pair_open(p, (struct hw_config){.seed = seed, .lenient = lenient}, o);
	rig_connect(&p->q[0], &p->q[1]);
}

static void close_pair(struct rig_pair *p)
{
	for (int i = 0; i < 2; i++)
		assert_int_equal(hw_cq_destroy(p->rig.dev, p->scq[i].cq), -16 /* EBUSY */);
	rig_pair_close(p);
}

static void send_recv(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rig_opt o = {0};
		struct rig_pair p;
		uint8_t *src, *dst;
		const uint8_t *cqe;
		const struct mlx5_cqe64 *c;

		open_pair(&p, seed, false, o);
		src = rig_alloc(&p.rig, 256);
		dst = rig_alloc(&p.rig, 256);
		for (int i = 0; i < 256; i++)
			src[i] = (uint8_t)(i + seed);
		rig_recv(&p.q[1], 3, dst + 1, 3, dst + 8, 8, dst + 100, 150);
		wqe_send(&p.q[0], WQE_OP_SEND_IMM, src, 111, SIG | SOL, 0xaabbccdd);
		rig_ring(&p.q[0]);
		rig_run(&p.rig);
		cqe = rig_expect(&p.scq[0], CQE_OP_REQ);
		c = (const struct mlx5_cqe64 *)cqe;
		assert_int_equal(be32toh(c->sop_drop_qpn) >> 24, MLX5_OPCODE_SEND_IMM);
		assert_int_equal(be32toh(c->sop_drop_qpn) & 0xffffff, hw_qpn(p.q[0].qp));
		assert_int_equal(be32toh(c->srqn_uidx), 0x123456);
		assert_int_equal(be16toh(c->wqe_counter), 0);
		cqe = rig_expect(&p.rcq[1], CQE_OP_RESP_SEND_IMM);
		c = (const struct mlx5_cqe64 *)cqe;
		assert_int_equal(be32toh(c->byte_cnt), 111);
		assert_int_equal(c->imm_inval_pkey, 0xaabbccdd);
		assert_int_equal(be32toh(c->flags_rqpn) & 0xffffff, hw_qpn(p.q[0].qp));
		assert_int_equal(be32toh(c->sop_drop_qpn) & 0xffffff, hw_qpn(p.q[1].qp));
		assert_true(c->op_own & 2);
		assert_int_equal(c->op_own & 0xc, 0);
		assert_memory_equal(dst + 1, src, 3);
		assert_memory_equal(dst + 8, src + 3, 8);
		assert_memory_equal(dst + 100, src + 11, 100);
		assert_int_equal(dst[0] | dst[4] | dst[200], 0);
		close_pair(&p);
	}
}

static void write_read_atomic(void **state)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct rig_opt o = {0};
		struct rig_pair p;
		struct rig_qp *q = &p.q[0];
		uint64_t *a, *b, *old;

		open_pair(&p, seed, seed & 1, o);
		a = rig_alloc(&p.rig, 256);
		b = rig_alloc(&p.rig, 256);
		old = rig_alloc(&p.rig, 256);
		a[0] = 0x1122334455667788;
		wqe_rdma(q, WQE_OP_WRITE, a, 8, b, 0, 0);
		wqe_inline_write(q, "hello, world, this is inline", 28, b + 1, 0);
		wqe_rdma(q, WQE_OP_READ, old + 8, 16, b, 0, 0);
		wqe_atomic(q, WQE_OP_CAS, old, b, 5, 0x1122334455667788, 0);
		wqe_atomic(q, WQE_OP_CAS, old + 1, b, 6, 7, 0); /* fails: 5 != 7 */
		wqe_atomic(q, WQE_OP_FETCH_ADD, old + 2, b, 10, 0, SIG);
		rig_ring(q);
		rig_run(&p.rig);
		rig_expect(&p.scq[0], CQE_OP_REQ);
		assert_null(rig_cq_next(&p.scq[0]));
		assert_int_equal(b[0], 15);
		assert_string_equal((char *)(b + 1), "hello, world, this is inline");
		assert_int_equal(old[8], 0x1122334455667788);
		assert_memory_equal(&old[9], "hello, w", 8);
		assert_int_equal(old[0], 0x1122334455667788);
		assert_int_equal(old[1], 5);
		assert_int_equal(old[2], 5);
		close_pair(&p);
	}
}

static void masked_atomics(void **state)
{
	struct rig_opt o = {0};
	struct rig_pair p;
	struct rig_qp *q = &p.q[0];
	uint64_t *b, *old;
	uint32_t *w;

	open_pair(&p, 3, false, o);
	b = rig_alloc(&p.rig, 64);
	old = rig_alloc(&p.rig, 64);
	w = (uint32_t *)(b + 2);
	b[0] = 0xaa00000000000042;
	b[1] = 0x00ff00ff00ff00ff;
	w[0] = 0x11223344;
	w[1] = 0x00ffffff;
	wqe_masked_cas8(q, old, b, 0x77 << 8, 0x42, 0xff00, 0xff, SIG);
	wqe_masked_cas8(q, old + 1, b, 0, 0x43, UINT64_MAX, 0xff, SIG);
	wqe_masked_faa8(q, old + 2, b + 1, 0x0001000100010001, 0x0080008000800080, SIG);
	wqe_masked4(q, WQE_OP_MASKED_CAS, old + 3, w, (uint32_t[4]){0xab000000, 0x44, 0xff000000, 0xff}, SIG);
	wqe_masked4(q, WQE_OP_MASKED_FETCH_ADD, old + 4, w + 1, (uint32_t[4]){1, 0, 0, 0}, SIG);
	rig_ring(q);
	rig_run(&p.rig);
	assert_int_equal(rig_cqe_idx(rig_expect(&p.scq[0], CQE_OP_REQ)), 0);
	assert_int_equal(rig_cqe_idx(rig_expect(&p.scq[0], CQE_OP_REQ)), 2);
	for (int i = 0; i < 3; i++)
		rig_expect(&p.scq[0], CQE_OP_REQ);
	assert_int_equal(b[0], 0xaa00000000007742);
	assert_int_equal(old[0], 0xaa00000000000042);
	assert_int_equal(old[1], 0xaa00000000007742);
	assert_int_equal(b[1], 0); /* every 16-bit field: 0xff + 1 loses its carry at bit 7 */
	assert_int_equal(old[2], 0x00ff00ff00ff00ff);
	assert_int_equal(w[0], 0xab223344);
	assert_int_equal(be32toh(*(uint32_t *)(old + 3)), 0x11223344);
	assert_int_equal(w[1], 0x01000000);
	assert_int_equal(be32toh(*(uint32_t *)(old + 4)), 0x00ffffff);
	close_pair(&p);
}

static void ring_wraps(void **state)
{
	struct rig_opt o = {.wqebbs = 4};
	struct rig_pair p;
	uint8_t data[120], *dst;

	open_pair(&p, 1, false, o);
	dst = rig_alloc(&p.rig, 128);
	/* WQEs of 3 WQEBBs in a ring of 4, past the wrap of the 16-bit index */
	for (unsigned i = 0; i < 30000; i++) {
		memset(data, (int)i, sizeof(data));
		wqe_inline_write(&p.q[0], data, sizeof(data), dst, SIG);
		rig_ring(&p.q[0]);
		rig_run(&p.rig);
		assert_int_equal(rig_cqe_idx(rig_expect(&p.scq[0], CQE_OP_REQ)), (uint16_t)(3 * i));
		assert_memory_equal(dst, data, sizeof(data));
	}
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wqe_layout),
		cmocka_unit_test(wqe_opcodes),
		cmocka_unit_test(cqe_layout),
		cmocka_unit_test(cqe_syndromes),
		cmocka_unit_test(send_recv),
		cmocka_unit_test(write_read_atomic),
		cmocka_unit_test(masked_atomics),
		cmocka_unit_test(ring_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
