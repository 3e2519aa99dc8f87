/* SPDX-License-Identifier: BSD-2-Clause */
/* DEVX on the real engine: queues, events, refusals. */
#include "softcx/uverbs/test-uverbs-app.h"

static void test_devx(void **state)
{
	uint8_t *mem, *data, *out, event[256], seg[32] = {0};
	struct ib_uverbs_reg_mr_resp *mr;
	struct devx_cq cq;
	uint64_t umem_handle, qp;
	uint32_t umem, pdn, pd, qpn;
	uint16_t pi = 0;
	int fd, omit;

	(void)state;
	app_open_context();
	pd = app_new_pd(&pdn);
	mem = app_arena_alloc(UMEM, 4096);
	data = app_arena_alloc(4096, 4096);
	memset(mem + CQ_OFF, 0xf0, 4096);
	assert_int_equal(app_umem_reg(mem, UMEM, IBV_ACCESS_LOCAL_WRITE, &umem, &umem_handle), 0);
	assert_int_equal(app_devx_cq_new(&cq, umem, CQ_OFF, DB_OFF, &out), 0);
	assert_int_equal(app_devx_qp_new(&qp, &qpn, pdn, cq.cqn, umem, QP_OFF, DB_OFF + 64, &out), 0);
	assert_int_equal(app_reg_mr(pd, data, 4096, app_va(data),
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr),
		0);
	assert_int_equal(app_devx_qp_to(qp, qpn, PRM_OP_RST2INIT_QP, 0, &out), 0);
	assert_int_equal(app_devx_qp_to(qp, qpn, PRM_OP_INIT2RTR_QP, 5, &out), 0);
	assert_int_equal(app_devx_qp_to(qp, qpn, PRM_OP_RTR2RTS_QP, 0, &out), 0);

	fd = app_event_channel(0);
	omit = app_event_channel(MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA);
	assert_int_equal(app_subscribe(fd, cq.handle, 0, 0x1234), 0);
	assert_int_equal(app_subscribe(omit, cq.handle, 0, 0x5678), 0);
	assert_int_equal(app_subscribe(fd, cq.handle, 0x42, 0), -EINVAL);
	assert_int_equal(app_subscribe(app.async_fd, cq.handle, 0, 0), -EBADF);

	/* WRITE data[0..8) to data[64..72) */
	memcpy(data, "loopback", 8);
	prm_set(seg, 0, 64, app_va(data + 64));
	prm_set(seg, 64, 32, mr->rkey);
	prm_set(seg, 128, 32, 8);
	prm_set(seg, 160, 32, mr->lkey);
	prm_set(seg, 192, 64, app_va(data));
	for (uint32_t i = 0; i < 2; i++) {
		const struct cq arm = {.cqn = cq.cqn, .db = (uint32_t *)(mem + DB_OFF)};

		arm.db[0] = htobe32(i);
		app_arm_cq(&arm, i);
		app_run();
		app_post(mem + QP_OFF, (uint32_t *)(mem + DB_OFF + 64), qpn, &pi, 8, 3, seg);
		app_run();
	}
	assert_memory_equal(data + 64, "loopback", 8);
	assert_int_equal(mem[CQ_OFF + 63] >> 4, 0); /* a good requester CQE */
	for (unsigned i = 0; i < 2; i++) {          /* one event per read, however large the buffer */
		uint64_t cookie;

		assert_int_equal(read(fd, event, sizeof(event)), 8 + 64);
		memcpy(&cookie, event, 8);
		assert_int_equal(cookie, 0x1234);
		assert_int_equal(prm_get(event + 8, 0x38 * 8 + 8, 24), cq.cqn);
	}
	assert_false(app_waiting(fd));
	assert_int_equal(read(omit, event, sizeof(event)), 8);
	assert_false(app_waiting(omit)); /* without data, two are one */

	uint8_t in[PRM_SIZE_query_qp_in] = {0};
	prm_set(in, PRM_in_opcode, PRM_OP_QUERY_QP);
	prm_set(in, PRM_in_objn, qpn);
	assert_int_equal(
		app_devx(MLX5_IB_METHOD_DEVX_OBJ_QUERY, &qp, in, sizeof(in), PRM_SIZE_query_qp_out, &out), 0);
	out += PRM_query_qp_out_qpc_byte;
	assert_int_equal(prm_get(out, PRM_qpc_state), HW_RTS);
	assert_int_equal(prm_get(out, PRM_qpc_mtu), 5);
	assert_int_equal(prm_get(out, PRM_qpc_hw_sq_wqebb_counter), 2);
	assert_int_equal(prm_get(out, PRM_qpc_sw_sq_wqebb_counter), 2);
	prm_set(in, PRM_in_objn, qpn + 1); /* the kernel compares it with the handle */
	assert_int_equal(
		app_devx(MLX5_IB_METHOD_DEVX_OBJ_QUERY, &qp, in, sizeof(in), PRM_SIZE_query_qp_out, &out),
		-EINVAL);

	assert_int_equal(app_destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG,
				 MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, umem_handle),
		-EBUSY);
	assert_int_equal(app_destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				 MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, cq.handle),
		-EBUSY);
	close(fd);
	close(omit);
}

static void test_devx_refusals(void **state)
{
	uint8_t *mem, *out, cap[PRM_SIZE_query_hca_cap_in] = {0};
	struct devx_cq cq, bad;
	uint64_t handle, qp;
	uint32_t umem, readonly, pdn, qpn;

	(void)state;
	app_open_context();
	app_new_pd(&pdn);
	mem = app_arena_alloc(UMEM, 4096);
	assert_int_equal(app_umem_reg(mem, UMEM, IBV_ACCESS_LOCAL_WRITE, &umem, &handle), 0);
	assert_int_equal(app_umem_reg(mem, UMEM, 0, &readonly, &handle), 0);
	assert_int_equal(app_devx_cq_new(&cq, umem, CQ_OFF, DB_OFF, &out), 0);

	assert_int_equal(app_devx_cq_new(&bad, 4711, CQ_OFF, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0010);
	assert_int_equal(app_devx_cq_new(&bad, umem, UMEM - 512, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0012);
	assert_int_equal(app_devx_cq_new(&bad, umem, UMEM, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0011);
	assert_int_equal(app_devx_cq_new(&bad, umem, UINT64_MAX - 4095, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(app_devx_cq_new(&bad, readonly, CQ_OFF, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0013);
	assert_int_equal(
		app_devx_qp_new(&qp, &qpn, pdn + 100, cq.cqn, umem, QP_OFF, DB_OFF + 64, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0016);
	assert_int_equal(
		app_devx_qp_new(&qp, &qpn, pdn, cq.cqn + 100, umem, QP_OFF, DB_OFF + 64, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0017);
	assert_int_equal(app_devx_qp_new(&qp, &qpn, pdn, cq.cqn, readonly, QP_OFF, DB_OFF + 64, &out), 0);
	assert_int_equal(app_devx_qp_to(qp, qpn, PRM_OP_INIT2RTR_QP, 3, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0020);
	assert_int_equal(app_devx_qp_to(qp, qpn, PRM_OP_RST2INIT_QP, 0, &out), 0);
	assert_int_equal(app_devx_qp_to(qp, qpn, PRM_OP_INIT2RTR_QP, 0, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0021);
	assert_int_equal(app_devx_qp_to(qp, qpn, PRM_OP_CREATE_QP, 0, &out), -EINVAL);
	handle = 0;
	assert_int_equal(app_devx(MLX5_IB_METHOD_DEVX_OBJ_CREATE, &handle, cap, 16, 16, &out), -EINVAL);

	struct ioc c;
	app_ioc_start(&c, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
	prm_set(cap, PRM_in_opcode, PRM_OP_QUERY_HCA_CAP);
	prm_set(cap, PRM_in_op_mod, PRM_CAP_ROCE << 1 | 1);
	app_ioc_in(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, cap, sizeof(cap));
	out = app_ioc_out(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, PRM_SIZE_query_hca_cap_out);
	assert_int_equal(app_ioc_run(&c), 0);
	assert_int_equal(
		prm_get(out + PRM_query_hca_cap_out_capability_byte, PRM_roce_cap_fl_rc_qp_when_roce_enabled),
		1);
	prm_set((uint8_t *)(uintptr_t)c.attrs[0].data, PRM_in_op_mod, 0x7f);
	assert_int_equal(app_ioc_run(&c), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0003);
}

/* Queues that ask for more than one needs, and a process that dies with all of it open. */
static void test_close_with_everything(void **state)
{
	struct ib_uverbs_reg_mr_resp *mr;
	uint8_t *mem, *out;
	uint64_t handle;
	struct devx_cq cq;
	struct cq plain;
	struct qp qp;
	uint32_t pd, pdn, umem, qpn;

	(void)state;
	app_open_context();
	mem = app_arena_alloc(UMEM, 4096);
	assert_int_equal(app_umem_reg(mem, UMEM, IBV_ACCESS_LOCAL_WRITE, &umem, &handle), 0);
	pd = app_new_pd(&pdn);
	assert_int_equal(app_reg_mr(pd, mem, 4096, app_va(mem), IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(app_new_cq(&plain, 15, -1), 0);
	assert_int_equal(app_new_qp(&qp, pd, &plain, IBV_QPT_UD), 0);
	assert_int_equal(app_devx_cq_new(&cq, umem, CQ_OFF, DB_OFF, &out), 0);
	assert_int_equal(app_devx_qp_new(&handle, &qpn, pdn, plain.cqn, umem, QP_OFF, DB_OFF + 64, &out), 0);
	/* teardown counts what is left */
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, app_setup, app_teardown)
	const struct CMUnitTest tests[] = {
		T(test_devx),
		T(test_devx_refusals),
		T(test_close_with_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
