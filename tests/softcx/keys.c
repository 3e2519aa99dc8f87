/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keys.c - indirect memory keys by libmlx5: lists and strides by UMR, as local and as remote keys, and a key
 * of equal pieces made by DEVX, as UCX makes them. To be run under `softcx run`. Exits 0 when everything went
 * as promised, else 1 after a line about the failure.
 */
#include "mlx5/prm.h"
#include "tests/lib/rc.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define CHECK(cond)                                                                                          \
	do {                                                                                                 \
		if (!(cond))                                                                                 \
			rc_die("line %d: %s", __LINE__, #cond);                                              \
	} while (0)

enum {
	BYTES = 65536,
	TARGET = 32768, /* the half of the memory that keys show */
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	PAGE = 4096,
};

static struct rc rc;
static struct ibv_qp *qp;
static struct ibv_qp_ex *qpx;
static struct mlx5dv_qp_ex *mqp;

static void open_queue(void)
{
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED};
	struct ibv_qp_init_attr_ex init = {
		.send_cq = rc.cq,
		.recv_cq = rc.cq,
		.qp_type = IBV_QPT_RC,
		.pd = rc.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_LOCAL_INV,
		.cap = {.max_send_wr = 64,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = 256},
	};

	qp = mlx5dv_create_qp(rc.ctx, &init, &dv);
	CHECK(qp);
	qpx = ibv_qp_to_qp_ex(qp);
	mqp = mlx5dv_qp_ex_from_ibv_qp_ex(qpx);
}

static void connect_to_itself(void)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	const struct rc_peer self = rc_self(&rc, qp);

	CHECK(ibv_modify_qp(qp, &reset, IBV_QP_STATE) == 0);
	rc_connect(qp, &self);
}

static struct mlx5dv_mkey *new_key(uint16_t entries)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = rc.pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = entries};
	struct mlx5dv_mkey *key = mlx5dv_create_mkey(&attr);

	CHECK(key && attr.max_entries >= entries);
	return key;
}

static void begin(unsigned flags)
{
	ibv_wr_start(qpx);
	qpx->wr_flags = IBV_SEND_SIGNALED | flags;
}

static void end(enum ibv_wc_status status)
{
	CHECK(ibv_wr_complete(qpx) == 0);
	rc_expect(&rc, status);
}

/* Moves @len bytes between @off of the memory and @at of @rkey. */
static enum ibv_wc_status move(bool write, size_t off, uint32_t len, uint32_t rkey, uint64_t at)
{
	begin(0);
	if (write)
		ibv_wr_rdma_write(qpx, rkey, at);
	else
		ibv_wr_rdma_read(qpx, rkey, at);
	ibv_wr_set_sge(qpx, rc.mr->lkey, (uintptr_t)rc.mem + off, len);
	CHECK(ibv_wr_complete(qpx) == 0);
	return rc_await(&rc);
}

static void by_list(void)
{
	uint8_t *const target = rc.mem + TARGET;
	struct ibv_sge pieces[] = {{(uintptr_t)target + 100, 30, rc.mr->lkey},
		{(uintptr_t)target, 7, rc.mr->lkey}, {(uintptr_t)target + 5000, 91, rc.mr->lkey}};
	struct mlx5dv_mkey *key = new_key(3);

	CHECK(move(true, 0, 8, key->rkey, 0) == IBV_WC_REM_ACCESS_ERR); /* no pieces yet */
	connect_to_itself();
	begin(IBV_SEND_INLINE);
	mlx5dv_wr_mr_list(mqp, key, ACCESS, 3, pieces);
	end(IBV_WC_SUCCESS);
	memset(target, 0, BYTES - TARGET);
	CHECK(move(true, 0, 128, key->rkey, 0) == IBV_WC_SUCCESS);
	CHECK(memcmp(target + 100, rc.mem, 30) == 0 && memcmp(target, rc.mem + 30, 7) == 0 &&
		memcmp(target + 5000, rc.mem + 37, 91) == 0);
	CHECK(move(false, 1024, 128, key->rkey, 0) == IBV_WC_SUCCESS);
	CHECK(memcmp(rc.mem + 1024, rc.mem, 128) == 0);
	/* as the source of a WRITE */
	begin(0);
	ibv_wr_rdma_write(qpx, rc.mr->rkey, (uintptr_t)target + 9000);
	ibv_wr_set_sge(qpx, key->lkey, 20, 50);
	end(IBV_WC_SUCCESS);
	CHECK(memcmp(target + 9000, rc.mem + 20, 50) == 0);
	CHECK(move(true, 0, 2, key->rkey, 127) == IBV_WC_REM_ACCESS_ERR);
	connect_to_itself();
	begin(0);
	ibv_wr_local_inv(qpx, key->rkey);
	end(IBV_WC_SUCCESS);
	CHECK(move(true, 0, 8, key->rkey, 0) == IBV_WC_REM_ACCESS_ERR);
	connect_to_itself();
	CHECK(mlx5dv_destroy_mkey(key) == 0);
}

/* The columns of a table, one after the other, and the rights of the key. */
static void by_stride(void)
{
	enum { ROWS = 50, ROW = 64, FIRST = 8, SECOND = 4 };
	uint8_t *const table = rc.mem + TARGET;
	struct mlx5dv_mr_interleaved columns[] = {{(uintptr_t)table, FIRST, ROW - FIRST, rc.mr->lkey},
		{(uintptr_t)table + 32, SECOND, ROW - SECOND, rc.mr->lkey}};
	struct mlx5dv_mkey *key = new_key(4);

	begin(IBV_SEND_INLINE);
	mlx5dv_wr_mr_interleaved(mqp, key, IBV_ACCESS_REMOTE_READ, ROWS, 2, columns);
	end(IBV_WC_SUCCESS);
	for (unsigned i = 0; i < ROWS * ROW; i++)
		table[i] = (uint8_t)(i * 13 + i / 64);
	CHECK(move(false, 0, ROWS * (FIRST + SECOND), key->rkey, 0) == IBV_WC_SUCCESS);
	for (unsigned row = 0; row < ROWS; row++)
		CHECK(memcmp(rc.mem + row * (FIRST + SECOND), table + row * ROW, FIRST) == 0 &&
			memcmp(rc.mem + row * (FIRST + SECOND) + FIRST, table + row * ROW + 32, SECOND) == 0);
	CHECK(move(true, 0, 8, key->rkey, 0) == IBV_WC_REM_ACCESS_ERR);
	connect_to_itself();
	CHECK(mlx5dv_destroy_mkey(key) == 0);
}

/* Pieces in the command, all of one size: the layout is that of struct mlx5_wqe_umr_klm_seg. */
static void by_command(void)
{
	enum { KSM = 3, N = 4, NO_QPN = 0xffffff, HEAD = 272, ENTRY = 16, TAG = 0x5a };
	uint8_t in[HEAD + N * ENTRY] = {0}, out[16] = {0},
			      *mkc = in + PRM_create_mkey_in_memory_key_mkey_entry_byte;
	static const unsigned page[N] = {2, 0, 3, 1};
	struct mlx5dv_pd pd;
	struct mlx5dv_obj obj = {.pd = {rc.pd, &pd}};
	struct mlx5dv_devx_obj *key;
	uint32_t rkey;

	CHECK(mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD) == 0);
	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_MKEY);
	prm_set(mkc, PRM_mkc_access_mode_1_0, KSM);
	prm_set(mkc, PRM_mkc_lr, 1);
	prm_set(mkc, PRM_mkc_lw, 1);
	prm_set(mkc, PRM_mkc_rr, 1);
	prm_set(mkc, PRM_mkc_rw, 1);
	prm_set(mkc, PRM_mkc_pd, pd.pdn);
	prm_set(mkc, PRM_mkc_qpn, NO_QPN);
	prm_set(mkc, PRM_mkc_mkey_7_0, TAG);
	prm_set(mkc, PRM_mkc_start_addr, 1 << 20);
	prm_set(mkc, PRM_mkc_len, N * PAGE);
	prm_set(mkc, PRM_mkc_log_page_size, 12);
	prm_set(mkc, PRM_mkc_translations_octword_size, N);
	prm_set(in, PRM_create_mkey_in_translations_octword_actual_size, N);
	for (unsigned i = 0; i < N; i++) {
		prm_set(in + HEAD + i * ENTRY, 0x20, 32, rc.mr->lkey);
		prm_set(in + HEAD + i * ENTRY, 0x40, 64, (uintptr_t)rc.mem + TARGET + page[i] * PAGE);
	}
	CHECK(!mlx5dv_devx_obj_create(rc.ctx, in, sizeof(in) - ENTRY, out, sizeof(out))); /* a piece less */
	key = mlx5dv_devx_obj_create(rc.ctx, in, sizeof(in), out, sizeof(out));
	CHECK(key);
	rkey = (uint32_t)prm_get(out, PRM_create_mkey_out_mkey_index) << 8 | TAG;
	memset(rc.mem + TARGET, 0, N * PAGE);
	CHECK(move(true, 0, N * PAGE - 8, rkey, (1 << 20) + 8) == IBV_WC_SUCCESS);
	for (unsigned i = 0; i < N; i++)
		CHECK(memcmp(rc.mem + TARGET + page[i] * PAGE + (i ? 0 : 8), rc.mem + i * PAGE - (i ? 8 : 0),
			      PAGE - (i ? 0 : 8)) == 0);
	CHECK(mlx5dv_devx_obj_destroy(key) == 0);
}

int main(void)
{
	rc_open(&rc, 0, BYTES, MAP_PRIVATE, 64);
	for (unsigned i = 0; i < TARGET; i++)
		rc.mem[i] = (uint8_t)(i * 7 + i / 256 + 1);
	open_queue();
	connect_to_itself();
	by_list();
	by_command();
	by_stride();
	CHECK(ibv_destroy_qp(qp) == 0);
	rc_close(&rc);
	return 0;
}
