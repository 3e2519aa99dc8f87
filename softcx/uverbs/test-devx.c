/* SPDX-License-Identifier: BSD-2-Clause */
/* DEVX on the real engine: queues, events, refusals. */
#include "mlx5/wqe.h"
#include "softcx/uverbs/prm.h"
#include "softcx/uverbs/test-app.h"
#include "softcx/uverbs/uverbs.h"
#include "util/array.h"

#include <sys/eventfd.h>

/* Connected to itself. */
static void open_devx_loop(struct devx_queues *p)
{
	uint8_t *out;

	app_open_devx_qp(p);
	memset(p->mem + CQ_OFF, 0xf0, 4096);
	assert_int_equal(app_devx_qp_to(p->qp, p->qpn, PRM_OP_RST2INIT_QP, 0, &out), 0);
	assert_int_equal(app_devx_qp_to(p->qp, p->qpn, PRM_OP_INIT2RTR_QP, 5, &out), 0);
	assert_int_equal(app_devx_qp_to(p->qp, p->qpn, PRM_OP_RTR2RTS_QP, 0, &out), 0);
}

/* Two WRITEs of data[0..8) to data[64..72), an armed CQ before each. */
static void write_twice(const struct devx_queues *p)
{
	uint8_t *data = app_arena_alloc(4096, 4096), seg[32] = {0};
	struct ib_uverbs_reg_mr_resp *mr;
	uint16_t pi = 0;

	assert_int_equal(app_reg_mr(p->pd, data, 4096, app_va(data),
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &mr),
		0);
	memcpy(data, "loopback", 8);
	prm_set(seg, 0, 64, app_va(data + 64));
	prm_set(seg, 64, 32, mr->rkey);
	prm_set(seg, 128, 32, 8);
	prm_set(seg, 160, 32, mr->lkey);
	prm_set(seg, 192, 64, app_va(data));
	for (uint32_t i = 0; i < 2; i++) {
		const struct cq arm = {.cqn = p->cq.cqn, .db = (uint32_t *)(p->mem + DB_OFF)};

		arm.db[0] = htobe32(i);
		app_arm_cq(&arm, i);
		app_run();
		app_post(p->mem + QP_OFF, (uint32_t *)(p->mem + DB_OFF + 64), p->qpn, &pi, 8, 3, seg);
		app_run();
	}
	assert_memory_equal(data + 64, "loopback", 8);
	assert_int_equal(p->mem[CQ_OFF + 63] >> 4, 0); /* a good requester CQE */
}

static void expect_events(const struct devx_queues *p, int fd, int omit)
{
	uint8_t event[256];

	for (unsigned i = 0; i < 2; i++) { /* one event per read, however large the buffer */
		uint64_t cookie;

		assert_int_equal(read(fd, event, sizeof(event)), 8 + 64);
		memcpy(&cookie, event, 8);
		assert_int_equal(cookie, 0x1234);
		assert_int_equal(prm_get(event + 8, 0x38 * 8 + 8, 24), p->cq.cqn);
	}
	assert_false(app_waiting(fd));
	assert_int_equal(read(omit, event, sizeof(event)), 8);
	assert_false(app_waiting(omit)); /* without data, two are one */
}

static void expect_qp_state(const struct devx_queues *p)
{
	uint8_t in[PRM_SIZE_query_qp_in] = {0}, *out;
	uint64_t qp = p->qp;

	prm_set(in, PRM_in_opcode, PRM_OP_QUERY_QP);
	prm_set(in, PRM_in_objn, p->qpn);
	assert_int_equal(
		app_devx(MLX5_IB_METHOD_DEVX_OBJ_QUERY, &qp, in, sizeof(in), PRM_SIZE_query_qp_out, &out), 0);
	out += PRM_query_qp_out_qpc_byte;
	assert_int_equal(prm_get(out, PRM_qpc_state), HW_RTS);
	assert_int_equal(prm_get(out, PRM_qpc_mtu), 5);
	assert_int_equal(prm_get(out, PRM_qpc_hw_sq_wqebb_counter), 2);
	assert_int_equal(prm_get(out, PRM_qpc_sw_sq_wqebb_counter), 2);
	prm_set(in, PRM_in_objn, p->qpn + 1); /* the kernel compares it with the handle */
	assert_int_equal(
		app_devx(MLX5_IB_METHOD_DEVX_OBJ_QUERY, &qp, in, sizeof(in), PRM_SIZE_query_qp_out, &out),
		-EINVAL);
}

static void test_devx(void **state)
{
	struct devx_queues p;
	int fd, omit;

	(void)state;
	open_devx_loop(&p);
	fd = app_event_channel(0);
	omit = app_event_channel(MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA);
	assert_int_equal(app_subscribe(fd, p.cq.handle, 0, 0x1234), 0);
	assert_int_equal(app_subscribe(omit, p.cq.handle, 0, 0x5678), 0);
	assert_int_equal(app_subscribe(fd, p.cq.handle, 0x42, 0), -EINVAL);
	assert_int_equal(app_subscribe(app.async_fd, p.cq.handle, 0, 0), -EBADF);
	write_twice(&p);
	expect_events(&p, fd, omit);
	expect_qp_state(&p);

	assert_int_equal(app_destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG,
				 MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, p.umem_handle),
		-EBUSY);
	assert_int_equal(app_destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				 MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, p.cq.handle),
		-EBUSY);
	close(fd);
	close(omit);
}

static int create(uint8_t *in, uint16_t len)
{
	uint64_t handle = 0;
	uint8_t *out;
	int r = app_devx(MLX5_IB_METHOD_DEVX_OBJ_CREATE, &handle, in, len, 16, &out);

	return r == -EREMOTEIO ? (int)app_syndrome(out) : r;
}

static int subscribe_eventfd(int channel, uint64_t obj, uint16_t event, int fd)
{
	struct ioc c;

	app_ioc_start(&c, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, 0, (uint64_t)channel);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, 0, obj);
	app_ioc_in(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, &event, 2);
	app_ioc_add(&c, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, 4, (uint32_t)fd);
	return app_ioc_run(&c);
}

static void test_eventfd(void **state)
{
	int channel, fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), full = eventfd(0, EFD_CLOEXEC);
	struct devx_queues p;
	uint64_t n = UINT64_MAX - 1;

	(void)state;
	open_devx_loop(&p);
	channel = app_event_channel(0);
	assert_int_equal(subscribe_eventfd(channel, p.cq.handle, 0, 1000), -EBADF);
	assert_int_equal(subscribe_eventfd(channel, p.cq.handle, 0, channel), -EINVAL);
	assert_int_equal(subscribe_eventfd(channel, p.cq.handle, 0, fd), 0);
	assert_int_equal(subscribe_eventfd(channel, p.cq.handle, 0, full), 0);
	assert_int_equal(write(full, &n, sizeof(n)), sizeof(n)); /* nobody waits for its reader */
	write_twice(&p);
	assert_false(app_waiting(channel));
	assert_int_equal(read(fd, &n, sizeof(n)), sizeof(n));
	assert_int_equal(n, 2);
	close(full);
	close(channel);
	close(fd);
}

/* A receive memory pool, which a queue pair uses in place of an RQ. */
static void test_rmp(void **state)
{
	enum { REFUSED_TYPE = 0x5c001a, REFUSED_SIZE = 0x5c0019, REFUSED_OFFSET = 0x5c0035 };
	uint8_t in[PRM_SIZE_create_rmp_in] = {0}, *wq = in + PRM_create_rmp_in_wq_byte, *out;
	uint8_t qp_in[PRM_SIZE_create_qp_in] = {0}, *qpc = qp_in + PRM_create_qp_in_qpc_byte;
	uint64_t handle, rmp = 0, qp = 0;
	uint32_t any_pages, rmpn;
	struct devx_queues q;

	(void)state;
	app_open_devx_cq(&q);
	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_RMP);
	prm_set(wq, PRM_wq_pd, q.pdn);
	prm_set(wq, PRM_wq_log_size, 4);
	prm_set(wq, PRM_wq_log_stride, 5);
	prm_set(wq, PRM_wq_umem_id, q.umem);
	prm_set(wq, PRM_wq_umem_offset, QP_OFF);
	prm_set(wq, PRM_wq_dbr_umem_id, q.umem);
	prm_set(wq, PRM_wq_dbr_addr, DB_OFF + 64);
	prm_set(wq, PRM_wq_type, 2); /* of several packets */
	assert_int_equal(create(in, sizeof(in)), REFUSED_TYPE);
	prm_set(wq, PRM_wq_type, 1);
	prm_set(wq, PRM_wq_log_stride, 4);
	assert_int_equal(create(in, sizeof(in)), REFUSED_SIZE);
	prm_set(wq, PRM_wq_log_stride, 5);
	assert_int_equal(app_umem_reg_pages(q.mem, UMEM, IBV_ACCESS_LOCAL_WRITE, 0, &any_pages, &handle), 0);
	prm_set(wq, PRM_wq_umem_id, any_pages);
	assert_int_equal(create(in, sizeof(in)), REFUSED_OFFSET);
	prm_set(wq, PRM_wq_umem_id, q.umem);
	assert_int_equal(
		app_devx(MLX5_IB_METHOD_DEVX_OBJ_CREATE, &rmp, in, sizeof(in), PRM_SIZE_create_rmp_out, &out),
		0);
	rmpn = (uint32_t)prm_get(out, PRM_create_rmp_out_rmpn);
	prm_set(qp_in, PRM_in_opcode, PRM_OP_CREATE_QP);
	prm_set(qpc, PRM_qpc_pd, q.pdn);
	prm_set(qpc, PRM_qpc_no_sq, 1);
	prm_set(qpc, PRM_qpc_rq_type, 1);
	prm_set(qpc, PRM_qpc_srqn_rmpn_xrqn, rmpn + 1);
	prm_set(qpc, PRM_qpc_uar_page, app.uar_page);
	prm_set(qpc, PRM_qpc_cqn_snd, q.cq.cqn);
	prm_set(qpc, PRM_qpc_cqn_rcv, q.cq.cqn);
	prm_set(qpc, PRM_qpc_dbr_umem_id, q.umem);
	prm_set(qpc, PRM_qpc_dbr_addr, DB_OFF + 128);
	assert_int_equal(create(qp_in, sizeof(qp_in)), 0x5c0018);
	prm_set(qpc, PRM_qpc_srqn_rmpn_xrqn, rmpn);
	assert_int_equal(app_devx(MLX5_IB_METHOD_DEVX_OBJ_CREATE, &qp, qp_in, sizeof(qp_in),
				 PRM_SIZE_create_qp_out, &out),
		0);
	assert_int_equal(app_destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				 MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, rmp),
		-EBUSY);
	assert_int_equal(app_destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				 MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, qp),
		0);
	assert_int_equal(app_destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				 MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, rmp),
		0);
}

/* A command that concerns no object, with an answer of 16 bytes. */
static int general(const uint8_t *in, size_t len, uint8_t **out)
{
	struct ioc c;

	app_ioc_start(&c, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
	app_ioc_in(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in, len);
	*out = app_ioc_out(&c, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, 16);
	return app_ioc_run(&c);
}

/* Commands that Linux passes on and this firmware lacks; what is no command that creates never gets there. */
static void test_absent_commands(void **state)
{
	static const uint16_t absent[] = {0x762 /* QUERY_HCA_VPORT_CONTEXT */, 0x750 /* QUERY_VPORT_STATE */,
		0xb00 /* the first of a range */};
	static const uint16_t creates[] = {
		0x939 /* ALLOC_FLOW_COUNTER */, 0x930 /* CREATE_FLOW_TABLE */, 0x900 /* CREATE_TIR */};
	uint8_t in[PRM_SIZE_query_hca_cap_in] = {0}, *out;

	(void)state;
	app_open_context();
	for (size_t i = 0; i < COUNT(absent); i++) {
		prm_set(in, PRM_in_opcode, absent[i]);
		assert_int_equal(create(in, sizeof(in)), -EINVAL);
		assert_int_equal(general(in, sizeof(in), &out), -EREMOTEIO);
		assert_int_equal(app_syndrome(out), 0x5c0001);
	}
	prm_set(in, PRM_in_opcode, PRM_OP_QUERY_LAG);
	assert_int_equal(general(in, sizeof(in), &out), 0);
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(out[i], 0);
	for (size_t i = 0; i < COUNT(creates); i++) {
		prm_set(in, PRM_in_opcode, creates[i]);
		assert_int_equal(create(in, sizeof(in)), 0x5c0001);
	}
}

/* The EQE of a CQ that has no room: struct mlx5_eqe_cq_err. */
static void test_cq_error(void **state)
{
	uint8_t in[PRM_SIZE_create_cq_in] = {0}, *cqc = in + PRM_create_cq_in_cq_context_byte, *out,
		event[256];
	uint64_t handle, cq = 0, qp;
	uint32_t umem, pdn, cqn, qpn;
	uint16_t pi = 0;
	uint8_t *mem;
	int fd;

	(void)state;
	app_open_context();
	app_new_pd(&pdn);
	mem = app_arena_alloc(UMEM, 4096);
	assert_int_equal(app_umem_reg(mem, UMEM, IBV_ACCESS_LOCAL_WRITE, &umem, &handle), 0);
	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_CQ);
	prm_set(in, PRM_create_cq_in_cq_umem_id, umem);
	prm_set(cqc, PRM_cqc_dbr_umem_id, umem);
	prm_set(cqc, PRM_cqc_dbr_addr, DB_OFF);
	prm_set(cqc, PRM_cqc_uar_page, app.uar_page);
	prm_set(cqc, PRM_cqc_c_eqn_or_apu_element, 8);
	assert_int_equal(
		app_devx(MLX5_IB_METHOD_DEVX_OBJ_CREATE, &cq, in, sizeof(in), PRM_SIZE_create_cq_out, &out),
		0);
	cqn = (uint32_t)prm_get(out, PRM_create_cq_out_cqn);
	assert_int_equal(app_devx_qp_new(&qp, &qpn, pdn, cqn, umem, QP_OFF, DB_OFF + 64, &out), 0);
	assert_int_equal(app_devx_qp_to(qp, qpn, PRM_OP_RST2INIT_QP, 0, &out), 0);
	assert_int_equal(app_devx_qp_to(qp, qpn, PRM_OP_INIT2RTR_QP, 5, &out), 0);
	assert_int_equal(app_devx_qp_to(qp, qpn, PRM_OP_RTR2RTS_QP, 0, &out), 0);
	fd = app_event_channel(0);
	assert_int_equal(app_subscribe(fd, cq, HW_EV_CQ_ERROR, 7), 0);
	for (unsigned i = 0; i < 2; i++) { /* NOPs; it has one entry */
		app_post(mem + QP_OFF, (uint32_t *)(mem + DB_OFF + 64), qpn, &pi, 0, 1, NULL);
		app_run();
	}
	assert_int_equal(read(fd, event, sizeof(event)), 8 + 64);
	assert_int_equal(event[8 + 1], HW_EV_CQ_ERROR);
	assert_int_equal(prm_get(event + 8, 0x20 * 8 + 8, 24), cqn);
	assert_int_equal(event[8 + 0x2b], 1);
	close(fd);
}

/* Queues and keys begin at offsets only if the pages of their umem are small; doorbell records anyhow. */
static void test_umem_offsets(void **state)
{
	enum { SYN_OFFSET = 0x5c0035, LEN = 4 * UMEM };
	static const struct {
		uint64_t pages, off;
		int result;
	} t[] = {
		{0, 0, 0},
		{0, 4096, SYN_OFFSET},
		{4096, 4096, 0},
		{4096, 8192, 0},
		{8192 | 4096, 4096, 0},
		{1 << 20 | 4096, 4096, 0}, /* no page is larger than the umem: 64 KiB */
		{~0ull, 4096, 0},
		{1 << 11, 0, -EINVAL},
		{1 << 20, 0, -EINVAL},
	};
	uint8_t *mem, *out;
	uint64_t handle;
	uint32_t umem;

	(void)state;
	app_open_context();
	mem = app_arena_alloc(LEN, 4096);
	for (size_t i = 0; i < COUNT(t); i++) {
		struct devx_cq cq;
		int r = app_umem_reg_pages(mem, LEN, IBV_ACCESS_LOCAL_WRITE, t[i].pages, &umem, &handle);

		if (r == 0) {
			r = app_devx_cq_new(&cq, umem, t[i].off, LEN - 64, &out);
			r = r == -EREMOTEIO ? (int)app_syndrome(out) : r;
		}
		assert_int_equal(r, t[i].result);
	}
}

static void test_devx_refusals(void **state)
{
	uint8_t *out, cap[PRM_SIZE_query_hca_cap_in] = {0};
	struct devx_queues q;
	struct devx_cq bad;
	uint64_t handle, qp;
	uint32_t readonly, qpn;

	(void)state;
	app_open_devx_cq(&q);
	assert_int_equal(app_umem_reg(q.mem, UMEM, 0, &readonly, &handle), 0);

	assert_int_equal(app_devx_cq_new(&bad, 4711, CQ_OFF, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0010);
	assert_int_equal(app_devx_cq_new(&bad, q.umem, UMEM - 512, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0012);
	assert_int_equal(app_devx_cq_new(&bad, q.umem, UMEM, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0011);
	assert_int_equal(app_devx_cq_new(&bad, q.umem, UINT64_MAX - 4095, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(app_devx_cq_new(&bad, readonly, CQ_OFF, DB_OFF, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0013);
	assert_int_equal(app_devx_qp_new(&qp, &qpn, q.pdn + 100, q.cq.cqn, q.umem, QP_OFF, DB_OFF + 64, &out),
		-EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0016);
	assert_int_equal(app_devx_qp_new(&qp, &qpn, q.pdn, q.cq.cqn + 100, q.umem, QP_OFF, DB_OFF + 64, &out),
		-EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0017);
	assert_int_equal(app_devx_qp_new(&qp, &qpn, q.pdn, q.cq.cqn, readonly, QP_OFF, DB_OFF + 64, &out), 0);
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

/* The device claims only what it has: other capability bits are 0, and their pages unknown. */
static void test_caps(void **state)
{
	enum { PAGE_ODP = 2 };
	static const unsigned empty[] = {1, 5, 6, 7, 8, 9, 0xd, 0xf, 0x20};
	static const uint8_t zeros[4096];
	static const unsigned has[] = {0x220 /* cq_oi */, 0x22c /* cd */, 0x21e /* atomic */,
		0x21d /* roce */, 0x122 /* qpc_extension */, 0x21b /* qos */};
	static const unsigned has_not[] = {0x099 /* wqe_index_ignore */, 0x0e8, 0x0e9 /* relaxed ordering */,
		0x23c /* xrc */, 0x68b, 0x68c /* wait on data, on time */, 0x22f /* vector_calc */};
	uint8_t *page;

	(void)state;
	app_open_context();
	assert_int_equal(app_query_caps(PRM_CAP_GENERAL, &page), 0);
	for (size_t i = 0; i < COUNT(has); i++)
		assert_int_equal(prm_get(page, has[i], 1), 1);
	for (size_t i = 0; i < COUNT(has_not); i++)
		assert_int_equal(prm_get(page, has_not[i], 1), 0);
	assert_int_equal(prm_get(page, PRM_cmd_hca_cap_log_max_msg), 30);
	for (size_t i = 0; i < COUNT(empty); i++) {
		assert_int_equal(app_query_caps(empty[i], &page), 0);
		assert_memory_equal(page, zeros, sizeof(zeros));
	}
	assert_int_equal(app_query_caps(PRM_CAP_ATOMIC, &page), 0);
	assert_int_equal(prm_get(page, PRM_atomic_caps_atomic_req_8B_endianness_mode), 1);
	assert_int_equal(prm_get(page, PRM_atomic_caps_atomic_operations), 0xf);
	assert_int_equal(prm_get(page, PRM_atomic_caps_atomic_size_qp), 4 | 8);
	assert_int_equal(app_query_caps(PRM_CAP_QOS, &page), 0);
	assert_int_equal(prm_get(page, PRM_qos_cap_nic_qp_scheduling), 1);
	assert_int_equal(prm_get(page, 0x09, 1), 0); /* nic_bw_share */
	assert_int_equal(app_query_caps(PAGE_ODP, &page), -EREMOTEIO);
}

/* Keys: whatever differs from a good one is refused, with the reason. */
static void test_mkey_refusals(void **state)
{
	enum { LEN = 8192 };
	uint8_t in[PRM_SIZE_create_mkey_in] = {0}, bad[PRM_SIZE_create_mkey_in];
	uint8_t *mkc = in + PRM_create_mkey_in_memory_key_mkey_entry_byte;
	uint8_t *b = bad + PRM_create_mkey_in_memory_key_mkey_entry_byte;
	uint32_t umem, readonly, any_pages, pdn;
	uint64_t handle;
	uint8_t *mem;

	(void)state;
	app_open_context();
	app_new_pd(&pdn);
	mem = app_arena_alloc(2 * LEN, 4096);
	assert_int_equal(app_umem_reg(mem, LEN, IBV_ACCESS_LOCAL_WRITE, &umem, &handle), 0);
	assert_int_equal(app_umem_reg(mem, LEN, 0, &readonly, &handle), 0);
	assert_int_equal(app_umem_reg_pages(mem, 2 * LEN, IBV_ACCESS_LOCAL_WRITE, 0, &any_pages, &handle), 0);
	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_MKEY);
	prm_set(in, PRM_create_mkey_in_mkey_umem_valid, 1);
	prm_set(in, PRM_create_mkey_in_mkey_umem_id, umem);
	prm_set(in, PRM_create_mkey_in_translations_octword_actual_size, 1);
	prm_set(mkc, PRM_mkc_access_mode_1_0, 1);
	prm_set(mkc, PRM_mkc_lw, 1);
	prm_set(mkc, PRM_mkc_qpn, 0xffffff);
	prm_set(mkc, PRM_mkc_pd, pdn);
	prm_set(mkc, PRM_mkc_len, LEN);
	prm_set(mkc, PRM_mkc_log_page_size, 12);
	assert_int_equal(create(in, sizeof(in)), 0);
#define REFUSED(where, field, value, why)                                                                    \
	do {                                                                                                 \
		memcpy(bad, in, sizeof(in));                                                                 \
		prm_set(where, field, value);                                                                \
		assert_int_equal(create(bad, sizeof(bad)), why);                                             \
	} while (0)
	REFUSED(bad, PRM_create_mkey_in_mkey_umem_valid, 0, 0x5c0010);
	REFUSED(bad, PRM_create_mkey_in_mkey_umem_id, 4711, 0x5c0010);
	REFUSED(bad, PRM_create_mkey_in_mkey_umem_id, readonly, 0x5c0013);
	REFUSED(bad, PRM_create_mkey_in_mkey_umem_offset, 1, 0x5c0011);
	REFUSED(bad, PRM_create_mkey_in_mkey_umem_id, any_pages, 0);
	prm_set(in, PRM_create_mkey_in_mkey_umem_offset, 4096);
	REFUSED(bad, PRM_create_mkey_in_mkey_umem_id, any_pages, 0x5c0035);
	prm_set(in, PRM_create_mkey_in_mkey_umem_offset, 0);
	REFUSED(bad, PRM_create_mkey_in_mkey_umem_offset, UINT64_MAX, 0x5c0011);
	REFUSED(bad, PRM_create_mkey_in_translations_octword_actual_size, 0, 0x5c0019);
	REFUSED(b, PRM_mkc_start_addr, 1, 0x5c0019); /* a third page */
	REFUSED(b, PRM_mkc_len, 0, 0x5c0019);
	REFUSED(b, PRM_mkc_log_page_size, 11, 0x5c0019);
	REFUSED(b, PRM_mkc_pd, pdn + 1, 0x5c0016);
	REFUSED(b, PRM_mkc_access_mode_1_0, 0, 0x5c001a); /* physical addresses */
	REFUSED(b, PRM_mkc_access_mode_1_0, 2, 0x5c0002); /* over other keys: their list is missing */
	REFUSED(b, PRM_mkc_bsf_en, 1, 0x5c001a);          /* signatures */
	REFUSED(b, PRM_mkc_free, 1, 0x5c001a);
	REFUSED(b, PRM_mkc_qpn, 0x90, 0x5c001a);
	memcpy(bad, in, sizeof(in));
	prm_set(b, PRM_mkc_lw, 0);
	prm_set(b, PRM_mkc_rw, 1); /* IB: needs local write */
	assert_int_equal(create(bad, sizeof(bad)), 0x5c0030);
	assert_int_equal(create(in, 64), 0x5c0002);
	/* over other keys */
	prm_set(mkc, PRM_mkc_access_mode_1_0, 3);
	prm_set(in, PRM_create_mkey_in_translations_octword_actual_size, 0);
	prm_set(mkc, PRM_mkc_translations_octword_size, 1);
	assert_int_equal(create(in, sizeof(in)), 0);
	REFUSED(b, PRM_mkc_log_page_size, 11, 0x5c0019);
	REFUSED(b, PRM_mkc_translations_octword_size, 0, 0x5c0019);
	REFUSED(b, PRM_mkc_translations_octword_size, 1 << 17, 0x5c0019);
}

/* The handles of one kind of object, as a process that imported the file finds them. @max: handles to ask
 * for. */
static int info_handles(uint64_t object, unsigned max, uint32_t *handles, uint32_t *total)
{
	struct ioc c;
	void *list, *n;
	int r;

	app_ioc_start(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	app_ioc_add(&c, UVERBS_ATTR_INFO_OBJECT_ID, 8, object);
	n = app_ioc_out(&c, UVERBS_ATTR_INFO_TOTAL_HANDLES, 4);
	list = app_ioc_out(&c, UVERBS_ATTR_INFO_HANDLES_LIST, (uint16_t)(max * 4));
	r = app_ioc_run(&c);
	memcpy(handles, list, max * 4);
	memcpy(total, n, 4);
	return r;
}

static void test_info_handles(void **state)
{
	uint32_t handles[8], n, umem;
	uint64_t second;
	struct devx_queues p;
	struct ioc c;

	(void)state;
	open_devx_loop(&p);
	assert_int_equal(info_handles(MLX5_IB_OBJECT_DEVX_OBJ, 8, handles, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(handles[0], p.qp); /* newest first */
	assert_int_equal(handles[1], p.cq.handle);
	assert_int_equal(info_handles(MLX5_IB_OBJECT_DEVX_OBJ, 1, handles, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(handles[0], p.qp);
	assert_int_equal(info_handles(UVERBS_OBJECT_PD, 8, handles, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(handles[0], p.pd);
	assert_int_equal(info_handles(UVERBS_OBJECT_MR, 8, handles, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(info_handles(MLX5_IB_OBJECT_UAR, 8, handles, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(info_handles(0xfff, 8, handles, &n), 0); /* there is no such object */
	assert_int_equal(n, 0);

	/* a handle that is used again is the newest once more */
	assert_int_equal(
		app_umem_reg(app_arena_alloc(UMEM, 4096), UMEM, IBV_ACCESS_LOCAL_WRITE, &umem, &second), 0);
	assert_int_equal(app_destroy_by_ioctl(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				 MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, p.qp),
		0);
	assert_int_equal(
		app_umem_reg(app_arena_alloc(UMEM, 4096), UMEM, IBV_ACCESS_LOCAL_WRITE, &umem, &p.qp), 0);
	assert_int_equal(info_handles(MLX5_IB_OBJECT_DEVX_UMEM, 8, handles, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(handles[0], p.qp);
	assert_int_equal(handles[1], second);
	assert_int_equal(handles[2], p.umem_handle);

	/* lengths that the kernel refuses */
	app_ioc_start(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	app_ioc_add(&c, UVERBS_ATTR_INFO_OBJECT_ID, 8, UVERBS_OBJECT_PD);
	assert_int_equal(app_ioc_run(&c), -EINVAL);
	app_ioc_out(&c, UVERBS_ATTR_INFO_HANDLES_LIST, 6);
	assert_int_equal(app_ioc_run(&c), -EINVAL);
	app_ioc_start(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	app_ioc_add(&c, UVERBS_ATTR_INFO_OBJECT_ID, 4, UVERBS_OBJECT_PD);
	app_ioc_out(&c, UVERBS_ATTR_INFO_HANDLES_LIST, 8);
	assert_int_equal(app_ioc_run(&c), -EINVAL);
	app_ioc_start(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	app_ioc_add(&c, UVERBS_ATTR_INFO_OBJECT_ID, 8, UVERBS_OBJECT_PD);
	app_ioc_out(&c, UVERBS_ATTR_INFO_HANDLES_LIST, 8);
	app_ioc_out(&c, UVERBS_ATTR_INFO_TOTAL_HANDLES, 8);
	assert_int_equal(app_ioc_run(&c), -EINVAL);
}

/* An event channel that nobody can read any more has no subscriptions. */
static void test_dead_event_channel(void **state)
{
	int channel, other, fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct devx_queues p;
	uint64_t n;

	(void)state;
	open_devx_loop(&p);
	channel = app_event_channel(0);
	other = app_event_channel(0);
	assert_int_equal(subscribe_eventfd(channel, p.cq.handle, 0, fd), 0);
	assert_int_equal(app_subscribe(channel, p.cq.handle, 0, 1), 0);
	assert_int_equal(app_subscribe(other, p.cq.handle, 0, 2), 0);
	assert_int_equal(uverbs_devx_subscriptions(app.file), 3);
	close(channel);
	assert_int_equal(uverbs_devx_subscriptions(app.file), 1);
	write_twice(&p);
	assert_int_equal(read(fd, &n, sizeof(n)), -1);
	assert_true(app_waiting(other));
	close(other);
	assert_int_equal(uverbs_devx_subscriptions(app.file), 0);
	close(fd);
}

/* CQEs are never compressed. */
static void test_compression_refused(void **state)
{
	uint8_t in[PRM_SIZE_create_cq_in] = {0}, *cqc = in + PRM_create_cq_in_cq_context_byte;

	(void)state;
	app_open_context();
	prm_set(in, PRM_in_opcode, PRM_OP_CREATE_CQ);
	prm_set(cqc, PRM_cqc_log_cq_size, 4);
	prm_set(cqc, PRM_cqc_cqe_comp_en, 1);
	assert_int_equal(create(in, sizeof(in)), 0x5c001a);
	prm_set(cqc, PRM_cqc_cqe_comp_en, 0);
	assert_int_equal(create(in, sizeof(in)), 0x5c0015); /* the next thing that is missing */
}

/* Queues that ask for more than one needs, and a process that dies with all of it open. */
static void test_close_with_everything(void **state)
{
	struct ib_uverbs_reg_mr_resp *mr;
	struct devx_queues q;
	uint64_t handle;
	struct cq plain;
	uint32_t qpn;
	struct qp qp;
	uint8_t *out;

	(void)state;
	app_open_devx_cq(&q);
	assert_int_equal(app_reg_mr(q.pd, q.mem, 4096, app_va(q.mem), IBV_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(app_new_cq(&plain, 15, -1), 0);
	assert_int_equal(app_new_qp(&qp, q.pd, &plain, IBV_QPT_UD), 0);
	assert_int_equal(
		app_devx_qp_new(&handle, &qpn, q.pdn, plain.cqn, q.umem, QP_OFF, DB_OFF + 64, &out), 0);
	/* teardown counts what is left */
}

/* ---- Transitions of queue pairs by DEVX: their address paths and rights */

/* A mailbox of a transition of @qpn with a good path to the GID with index 1 */
static void good_path(uint8_t in[static PRM_SIZE_modify_qp_in], uint16_t opcode, uint32_t qpn)
{
	uint8_t *qpc = in + PRM_modify_qp_in_qpc_byte, *ads = qpc + PRM_qpc_primary_address_path_byte;

	memset(in, 0, PRM_SIZE_modify_qp_in);
	prm_set(in, PRM_in_opcode, opcode);
	prm_set(in, PRM_in_objn, qpn);
	prm_set(qpc, PRM_qpc_mtu, 5);
	prm_set(qpc, PRM_qpc_remote_qpn, qpn);
	prm_set(ads, PRM_ads_vhca_port_num, 1);
	prm_set(ads, PRM_ads_src_addr_index, 1);
	prm_set(ads, PRM_ads_hop_limit, 64);
	prm_set(ads, PRM_ads_udp_sport, 0xc123);
	prm_set(ads, PRM_ads_dscp, 26);
	prm_set(ads, PRM_ads_tclass, 26 << 2);
	prm_set(ads, PRM_ads_eth_prio, 3);
	memcpy(ads + PRM_ads_rgid_rip_byte, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 16);
	memcpy(ads + PRM_ads_rmac_47_32_byte, "\2\0\x7f\0\0\1", 6);
}

static int step(uint64_t qp, const uint8_t in[static PRM_SIZE_modify_qp_in])
{
	uint8_t *out;
	int r = app_devx(
		MLX5_IB_METHOD_DEVX_OBJ_MODIFY, &qp, in, PRM_SIZE_modify_qp_in, PRM_SIZE_modify_qp_out, &out);

	return r == -EREMOTEIO ? (int)app_syndrome(out) : r;
}

/* What a path may not contain on Ethernet, and that a query shows what it does contain. */
static void test_paths(void **state)
{
	enum { SYN_PORT = 0x5c0024, SYN_GID = 0x5c0022, SYN_PATH = 0x5c0031, SYN_RATE, SYN_SPORT };
	static const struct {
		unsigned bit, width, value;
		int syndrome;
	} bad[] = {
		{PRM_ads_vhca_port_num, 0, SYN_PORT},
		{PRM_ads_vhca_port_num, 2, SYN_PORT},
		{PRM_ads_src_addr_index, 2, SYN_GID},
		{PRM_ads_src_addr_index, 0, SYN_PATH}, /* RoCE v1 has neither UDP port nor DSCP */
		{PRM_ads_grh, 1, SYN_PATH},
		{PRM_ads_rlid, 1, SYN_PATH},
		{PRM_ads_mlid, 1, SYN_PATH},
		{PRM_ads_stat_rate, 7, SYN_RATE},  /* 40 Gb/s of verbs, 2.5 Gb/s of the device */
		{PRM_ads_stat_rate, 12, SYN_RATE}, /* 40 Gb/s of the device */
		{PRM_ads_udp_sport, 0, SYN_SPORT},
		{PRM_ads_udp_sport, 0xbfff, SYN_SPORT},
	};
	const size_t ads_off = PRM_modify_qp_in_qpc_byte + PRM_qpc_primary_address_path_byte;
	uint8_t in[PRM_SIZE_modify_qp_in], query[PRM_SIZE_query_qp_in] = {0}, *out;
	struct devx_queues q;

	app_open_devx_qp(&q);
	good_path(in, PRM_OP_RST2INIT_QP, q.qpn);
	prm_set(in + ads_off, PRM_ads_vhca_port_num, 0);
	assert_int_equal(step(q.qp, in), SYN_PORT);
	prm_set(in + ads_off, PRM_ads_vhca_port_num, 1);
	assert_int_equal(step(q.qp, in), 0);
	for (size_t i = 0; i < COUNT(bad); i++) {
		good_path(in, PRM_OP_INIT2RTR_QP, q.qpn);
		prm_set(in + ads_off, bad[i].bit, bad[i].width, bad[i].value);
		assert_int_equal(step(q.qp, in), bad[i].syndrome);
	}
	good_path(in, PRM_OP_INIT2RTR_QP, q.qpn);
	assert_int_equal(step(q.qp, in), 0);
	prm_set(query, PRM_in_opcode, PRM_OP_QUERY_QP);
	prm_set(query, PRM_in_objn, q.qpn);
	assert_int_equal(app_devx(MLX5_IB_METHOD_DEVX_OBJ_QUERY, &q.qp, query, sizeof(query),
				 PRM_SIZE_query_qp_out, &out),
		0);
	out += PRM_query_qp_out_qpc_byte + PRM_qpc_primary_address_path_byte;
	assert_int_equal(prm_get(out, PRM_ads_dscp), 26);
	assert_int_equal(prm_get(out, PRM_ads_udp_sport), 0xc123);
	assert_int_equal(prm_get(out, PRM_ads_hop_limit), 64);
	assert_memory_equal(out + PRM_ads_rmac_47_32_byte, in + ads_off + PRM_ads_rmac_47_32_byte, 6);
}

enum { RRE = 1, RWE = 2, RAE = 4 };

/* rre, rwe, rae of the queue */
static unsigned rights(uint64_t qp, uint32_t qpn)
{
	uint8_t in[PRM_SIZE_query_qp_in] = {0}, *out;

	prm_set(in, PRM_in_opcode, PRM_OP_QUERY_QP);
	prm_set(in, PRM_in_objn, qpn);
	assert_int_equal(
		app_devx(MLX5_IB_METHOD_DEVX_OBJ_QUERY, &qp, in, sizeof(in), PRM_SIZE_query_qp_out, &out), 0);
	out += PRM_query_qp_out_qpc_byte;
	return (prm_get(out, PRM_qpc_rre) ? RRE : 0) | (prm_get(out, PRM_qpc_rwe) ? RWE : 0) |
	       (prm_get(out, PRM_qpc_rae) ? RAE : 0);
}

/* rae and atomic_mode count only where opt_param_mask names them, and never in RST2INIT. */
static void test_rights(void **state)
{
	enum { OPT_RRE = 2, OPT_RAE = 4, OPT_RWE = 8, SYN_FIELD = 0x5c0025 };
	static const struct {
		unsigned opt, mode, expect;
	} t[] = {
		{0, 3, RRE | RWE},
		{OPT_RAE, 3, RRE | RWE | RAE},
		{OPT_RAE, 0, RRE | RWE},
		{OPT_RRE | OPT_RWE, 3, RRE | RWE},
		{OPT_RRE | OPT_RAE | OPT_RWE, 3, RRE | RWE | RAE},
	};
	const size_t qpc_off = PRM_modify_qp_in_qpc_byte;
	uint8_t in[PRM_SIZE_modify_qp_in];
	struct devx_queues q;

	app_open_devx_qp(&q);
	for (size_t i = 0; i < COUNT(t); i++) {
		good_path(in, PRM_OP_RST2INIT_QP, q.qpn);
		prm_set(in + qpc_off, PRM_qpc_rre, 1);
		prm_set(in + qpc_off, PRM_qpc_rwe, 1);
		prm_set(in + qpc_off, PRM_qpc_rae, 1);
		prm_set(in + qpc_off, PRM_qpc_atomic_mode, 3);
		prm_set(in, PRM_modify_qp_in_opt_param_mask, OPT_RAE);
		assert_int_equal(step(q.qp, in), SYN_FIELD);
		prm_set(in, PRM_modify_qp_in_opt_param_mask, 0);
		assert_int_equal(step(q.qp, in), 0);
		assert_int_equal(rights(q.qp, q.qpn), RRE | RWE);
		prm_set(in, PRM_in_opcode, PRM_OP_INIT2RTR_QP);
		prm_set(in, PRM_modify_qp_in_opt_param_mask, t[i].opt);
		prm_set(in + qpc_off, PRM_qpc_atomic_mode, t[i].mode);
		assert_int_equal(step(q.qp, in), 0);
		assert_int_equal(rights(q.qp, q.qpn), t[i].expect);
		good_path(in, PRM_OP_2RST_QP, q.qpn);
		assert_int_equal(step(q.qp, in), 0);
		assert_int_equal(rights(q.qp, q.qpn), 0);
	}
	/* a bit of the mask also takes a right away */
	good_path(in, PRM_OP_RST2INIT_QP, q.qpn);
	prm_set(in + qpc_off, PRM_qpc_rre, 1);
	assert_int_equal(step(q.qp, in), 0);
	good_path(in, PRM_OP_INIT2RTR_QP, q.qpn);
	prm_set(in, PRM_modify_qp_in_opt_param_mask, OPT_RRE);
	assert_int_equal(step(q.qp, in), 0);
	assert_int_equal(rights(q.qp, q.qpn), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, app_setup, app_teardown)
	const struct CMUnitTest tests[] = {
		T(test_devx),
		T(test_eventfd),
		T(test_dead_event_channel),
		T(test_info_handles),
		T(test_cq_error),
		T(test_rmp),
		T(test_absent_commands),
		T(test_devx_refusals),
		T(test_umem_offsets),
		T(test_caps),
		T(test_mkey_refusals),
		T(test_compression_refused),
		T(test_close_with_everything),
		T(test_paths),
		T(test_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
