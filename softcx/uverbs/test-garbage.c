/* SPDX-License-Identifier: BSD-2-Clause */
/* Whatever an application may send: nothing crashes, nothing is left behind. */
#include "softcx/uverbs/test-app.h"

/* Every command number with random words, small handles and addresses that often exist. */
static void test_garbage_write(void **state)
{
	uint64_t s = 0x9e3779b97f4a7c15;
	size_t mark;

	app_open_context();
	app_new_pd(NULL);
	mark = app.used;
	for (unsigned i = 0; i < 60000; i++) {
		uint8_t *p;
		size_t len = app_rnd(&s) % 40 * 4;
		struct nic_call call = {.len = len};
		ssize_t r;

		app.used = mark;
		p = app_arena_alloc(256, 8);
		call.bytes = p;
		for (size_t w = 0; w + 4 <= len; w += 4) {
			uint32_t v = (uint32_t)app_rnd(&s);
			uint64_t a = app_va(app.arena) + app_rnd(&s) % (ARENA / 2) / 4096 * 4096;

			v = v & 3 ? v >> 24 & 7 : v;
			memcpy(p + w, &v, 4);
			if (w % 8 == 0 && w + 8 <= len && app_rnd(&s) % 3 == 0)
				memcpy(p + w, &a, 8), w += 4;
		}
		if (len >= 8) {
			const struct ib_uverbs_cmd_hdr hdr = {
				.command = (uint32_t)(app_rnd(&s) % 60) |
					   (app_rnd(&s) % 4 ? 0 : IB_USER_VERBS_CMD_FLAG_EXTENDED),
				.in_words = (uint16_t)(app_rnd(&s) % 8 ? len / 4 : app_rnd(&s)),
				.out_words = (uint16_t)(app_rnd(&s) % 8 ? 64 : app_rnd(&s)),
			};

			memcpy(p, &hdr, 8);
		}
		if (len >= 16 && app_rnd(&s) % 4) {
			uint64_t out = app_va(app.arena + ARENA / 2);

			memcpy(p + 8, &out, 8);
		}
		for (unsigned again = 0; (r = uverbs_write(app.file, &call)) == NIC_AGAIN; again++)
			assert_true(again < 16);
		assert_true(r < 0 || r == (ssize_t)len);
		if (i % 64 == 0)
			app_run();
	}
}

/* Good commands with up to three bytes changed, on objects that exist: many succeed, none may crash. */
static void test_damaged_commands(void **state)
{
	static const uint8_t types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	static const uint16_t steps[] = {PRM_OP_RST2INIT_QP, PRM_OP_INIT2INIT_QP, PRM_OP_INIT2RTR_QP,
		PRM_OP_RTR2RTS_QP, PRM_OP_RTS2RTS_QP, PRM_OP_2ERR_QP, PRM_OP_2RST_QP, PRM_OP_QUERY_QP};
	uint32_t umem, pdn, pd, qpn, ok[6] = {0};
	uint64_t umem_handle, handle;
	struct devx_cq dcq;
	struct cq base, cq;
	uint8_t *mem, *out;
	struct qp qp;
	size_t mark;

	app_open_context();
	pd = app_new_pd(&pdn);
	assert_int_equal(app_new_cq(&base, 63, -1), 0);
	mem = app_arena_alloc(UMEM, 4096);
	assert_int_equal(app_umem_reg(mem, UMEM, IBV_ACCESS_LOCAL_WRITE, &umem, &umem_handle), 0);
	mark = app.used;
	app.fuzz = 0x2545f4914f6cdd1d;
	for (unsigned i = 0; i < 3000; i++) {
		struct ib_uverbs_reg_mr_resp *mr;

		app.used = mark;
		ok[0] += app_new_cq(&cq, 63, -1) == 0;
		ok[1] += app_reg_mr(pd, mem, UMEM, app_va(mem), IBV_ACCESS_LOCAL_WRITE, &mr) == 0;
		if (app_new_qp(&qp, pd, &base, types[i % 3]) == 0) {
			struct ib_uverbs_destroy_qp destroy = {.qp_handle = qp.handle};
			struct ib_uverbs_destroy_qp_resp *done;
			bool init = app_modify(&qp, TO_INIT, IBV_QPS_INIT) == 0;

			ok[2]++;
			if (init && app_modify(&qp, TO_RTR, IBV_QPS_RTR) == 0 &&
				app_modify(&qp, TO_RTS, IBV_QPS_RTS) == 0)
				ok[3]++;
			app_post(qp.buf + RQ_BYTES, qp.db, qp.qpn, &qp.pi, (uint8_t)app_rnd(&app.fuzz), 1,
				NULL);
			app_run();
			CMD_OUT(IB_USER_VERBS_CMD_DESTROY_QP, destroy, done);
		}
		if (app_devx_cq_new(&dcq, umem, CQ_OFF, DB_OFF, &out) == 0) {
			ok[4]++;
			app_destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, dcq.handle);
		}
		if (app_devx_qp_new(&handle, &qpn, pdn, base.cqn, umem, QP_OFF, DB_OFF + 64, &out) == 0) {
			ok[5]++;
			for (unsigned n = 0; n < 6; n++)
				app_devx_qp_to(handle, qpn,
					steps[n < 4 && i % 2 ? n : app_rnd(&app.fuzz) % 8], 3, &out);
			app_destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, handle);
		}
	}
	for (unsigned i = 0; i < 6; i++)
		assert_true(ok[i] > 100); /* else nothing was tried */
}

/* Attribute arrays of any shape to every method there is. */
static void test_garbage_ioctl(void **state)
{
	uint64_t s = 0x6a09e667f3bcc909;
	size_t mark;

	app_open_context();
	app_new_pd(NULL);
	mark = app.used;
	for (unsigned i = 0; i < 60000; i++) {
		struct ioc c;

		app.used = mark;
		app_ioc_start(&c,
			(uint16_t)(app_rnd(&s) % 2 ? app_rnd(&s) % 20 : (1u << 12) + app_rnd(&s) % 12),
			(uint16_t)(app_rnd(&s) % 2 ? app_rnd(&s) % 8 : (1u << 12) + app_rnd(&s) % 6));
		for (unsigned a = app_rnd(&s) % 8, first = app_rnd(&s) % 2; a; a--)
			app_ioc_add(&c,
				(uint16_t)((first ? 0 : 1u << 12) +
					   (app_rnd(&s) % 4 ? a - 1 : app_rnd(&s) % 16)),
				(uint16_t)(app_rnd(&s) % 3 ? app_rnd(&s) % 3 * 4 : app_rnd(&s) % 300),
				app_rnd(&s) % 2 ? app_rnd(&s) % 16 : app_va(app.arena + ARENA / 2));
		assert_true(app_ioc_run(&c) <= 0);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, app_setup, app_teardown)
	const struct CMUnitTest tests[] = {
		T(test_garbage_write),
		T(test_damaged_commands),
		T(test_garbage_ioctl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
