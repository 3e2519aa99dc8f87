/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dc.c - the dynamically connected transport by libmlx5: one initiator and two targets, whose numbers and
 * keys each work request names. To be run under `softcx run`. Exits 0 when everything went as promised, else
 * 1 after a line about the failure.
 */
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

enum { BYTES = 65536, HALF = BYTES / 2, PORT = 1, TARGETS = 2 };

static struct rc rc;
static struct ibv_ah *ah;
static struct ibv_qp *initiator;
static struct ibv_qp_ex *qpx;
static struct mlx5dv_qp_ex *dci;
static bool atomics; /* that verbs have */
static struct target {
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	uint64_t key;
} target[TARGETS];

static struct ibv_ah_attr self(void)
{
	return (struct ibv_ah_attr){.is_global = 1,
		.port_num = PORT,
		.dlid = rc.port.lid,
		.grh = {.dgid = rc.gid,
			.sgid_index = rc.port.link_layer == IBV_LINK_LAYER_ETHERNET,
			.hop_limit = 64}};
}

static void new_target(struct target *t, uint64_t key)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT, .dct_access_key = key}};
	struct ibv_qp_init_attr_ex init = {.send_cq = rc.cq,
		.recv_cq = rc.cq,
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = rc.pd};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_qp_init_attr ignored;

	CHECK(!mlx5dv_create_qp(rc.ctx, &init, &dv)); /* without a shared receive queue */
	CHECK((t->srq = init.srq = ibv_create_srq(rc.pd, &srq)));
	CHECK((t->qp = mlx5dv_create_qp(rc.ctx, &init, &dv)));
	t->key = key;
	CHECK(ibv_query_qp(t->qp, &attr, IBV_QP_STATE, &ignored) != 0); /* it is not there yet */
	attr.qp_state = IBV_QPS_RTR;
	CHECK(ibv_modify_qp(t->qp, &attr, IBV_QP_STATE) != 0);
	attr.qp_state = IBV_QPS_INIT;
	CHECK(ibv_modify_qp(t->qp, &attr,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .min_rnr_timer = 12, .ah_attr = self()};
	CHECK(ibv_modify_qp(
		      t->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER) == 0);
	CHECK(t->qp->qp_num != 0);
	CHECK(ibv_query_qp(t->qp, &attr, IBV_QP_STATE, &ignored) == 0 && attr.qp_state == IBV_QPS_RTR);
}

static void post_recv(struct target *t, size_t off, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)rc.mem + off, len, rc.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	CHECK(ibv_post_srq_recv(t->srq, &wr, &bad) == 0);
}

static void initiator_to_rts(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	CHECK(ibv_modify_qp(initiator, &attr, IBV_QP_STATE) == 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = PORT};
	CHECK(ibv_modify_qp(initiator, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX) !=
		0); /* the port is missing */
	CHECK(ibv_modify_qp(initiator, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT) == 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = self()};
	CHECK(ibv_modify_qp(initiator, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV) == 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 1, .retry_cnt = 1, .rnr_retry = 1, .max_rd_atomic = 16};
	CHECK(ibv_modify_qp(initiator, &attr,
		      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			      IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void new_initiator(void)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC, .dc_init_attr.dc_type = MLX5DV_DCTYPE_DCI};
	struct ibv_qp_init_attr_ex init = {
		.send_cq = rc.cq,
		.recv_cq = rc.cq,
		.qp_type = IBV_QPT_DRIVER,
		.pd = rc.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_SEND_WITH_IMM |
				  (atomics ? IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD : 0),
		.cap = {.max_send_wr = 64, .max_send_sge = 1, .max_inline_data = 64},
	};

	CHECK((initiator = mlx5dv_create_qp(rc.ctx, &init, &dv)));
	qpx = ibv_qp_to_qp_ex(initiator);
	dci = mlx5dv_qp_ex_from_ibv_qp_ex(qpx);
	initiator_to_rts();
}

static void begin(void)
{
	ibv_wr_start(qpx);
	qpx->wr_flags = IBV_SEND_SIGNALED;
}

static enum ibv_wc_status end(const struct target *t, uint64_t key, size_t off, uint32_t len)
{
	mlx5dv_wr_set_dc_addr(dci, ah, t->qp->qp_num, key);
	ibv_wr_set_sge(qpx, rc.mr->lkey, (uintptr_t)rc.mem + off, len);
	CHECK(ibv_wr_complete(qpx) == 0);
	return rc_await(&rc);
}

static void each_operation(struct target *t, uint8_t mark)
{
	uint64_t *word = (uint64_t *)(void *)(rc.mem + HALF + 4096);

	memset(rc.mem, mark, 4096);
	memset(rc.mem + HALF, 0, HALF);
	begin();
	ibv_wr_rdma_write(qpx, rc.mr->rkey, (uintptr_t)rc.mem + HALF);
	CHECK(end(t, t->key, 0, 4096) == IBV_WC_SUCCESS);
	CHECK(memcmp(rc.mem, rc.mem + HALF, 4096) == 0);
	begin();
	ibv_wr_rdma_read(qpx, rc.mr->rkey, (uintptr_t)rc.mem + HALF + 100);
	CHECK(end(t, t->key, 8192, 200) == IBV_WC_SUCCESS);
	CHECK(memcmp(rc.mem, rc.mem + 8192, 200) == 0);
	if (atomics) {
		*word = 41;
		begin();
		ibv_wr_atomic_fetch_add(qpx, rc.mr->rkey, (uintptr_t)word, 1);
		CHECK(end(t, t->key, 8192, 8) == IBV_WC_SUCCESS);
		CHECK(*word == 42 && *(uint64_t *)(void *)(rc.mem + 8192) == 41);
	}
	post_recv(t, HALF + 8192, 64);
	begin();
	ibv_wr_send_imm(qpx, htobe32(mark));
	/* the CQE of the RECV, then that of the SEND */
	CHECK(end(t, t->key, 0, 64) == IBV_WC_SUCCESS);
	rc_expect(&rc, IBV_WC_SUCCESS);
	CHECK(memcmp(rc.mem, rc.mem + HALF + 8192, 64) == 0);
}

/* What ends the initiator, and leaves the target as it was. */
static void refusals(struct target *t)
{
	begin();
	ibv_wr_rdma_write(qpx, rc.mr->rkey, (uintptr_t)rc.mem + HALF);
	CHECK(end(t, t->key ^ 1, 0, 8) == IBV_WC_RETRY_EXC_ERR); /* another key */
	initiator_to_rts();
	begin();
	ibv_wr_rdma_write(qpx, rc.mr->rkey + 256, (uintptr_t)rc.mem);
	CHECK(end(t, t->key, 0, 8) == IBV_WC_REM_ACCESS_ERR);
	initiator_to_rts();
	begin();
	ibv_wr_send(qpx);
	CHECK(end(t, t->key, 0, 8) == IBV_WC_RNR_RETRY_EXC_ERR); /* no RECV */
	initiator_to_rts();
	each_operation(t, 0x77);
}

int main(void)
{
	struct ibv_device_attr device;
	struct ibv_ah_attr attr;

	rc_open(&rc, 0, BYTES, MAP_PRIVATE, 64);
	CHECK(ibv_query_device(rc.ctx, &device) == 0);
	atomics = device.atomic_cap != IBV_ATOMIC_NONE;
	if (!atomics)
		printf("left out: atomics: the device reports none to verbs\n");
	attr = self();
	CHECK((ah = ibv_create_ah(rc.pd, &attr)));
	new_target(&target[0], 0x1122334455667788);
	new_target(&target[1], 0);
	new_initiator();
	for (unsigned i = 0; i < 4; i++)
		each_operation(&target[i % TARGETS], (uint8_t)(i + 1));
	refusals(&target[0]);
	CHECK(ibv_destroy_qp(initiator) == 0);
	for (unsigned i = 0; i < TARGETS; i++)
		CHECK(ibv_destroy_qp(target[i].qp) == 0 && ibv_destroy_srq(target[i].srq) == 0);
	CHECK(ibv_destroy_ah(ah) == 0);
	rc_close(&rc);
	return 0;
}
