/* SPDX-License-Identifier: BSD-2-Clause */
/* What the device reports of itself, and what its firmware refuses, is by its profile. */
#include "softcx/uverbs/test-app.h"

#include "softcx/uverbs/prm.h"
#include "util/array.h"

static struct profile profile;

/* Sets up a ConnectX-5 that differs in one fact, or in nothing (PROFILE_FACTS). */
static void open_with(enum profile_fact fact, uint64_t value)
{
	profile = *profile_default();
	if (fact < PROFILE_FACTS)
		profile.value[fact] = value;
	assert_int_equal(app_setup_profile(&profile), 0);
}

static uint64_t cap(uint16_t type, unsigned offset, unsigned bits)
{
	uint8_t *page;

	assert_int_equal(app_query_caps(type, &page), 0);
	return prm_get(page, offset, bits);
}

static void test_profile_caps(void **state)
{
	static const struct {
		enum profile_fact fact;
		uint64_t value;
		uint16_t page;
		unsigned offset, bits;
		uint64_t reported;
	} t[] = {
		{PROFILE_LOG_QPS, 12, PRM_CAP_GENERAL, PRM_cmd_hca_cap_log_max_qp, 12},
		{PROFILE_LOG_READS, 2, PRM_CAP_GENERAL, PRM_cmd_hca_cap_log_max_ra_req_qp, 2},
		{PROFILE_LOG_READS, 3, PRM_CAP_GENERAL, PRM_cmd_hca_cap_log_max_ra_res_qp, 3},
		{PROFILE_SEND_WQE, 256, PRM_CAP_GENERAL, PRM_cmd_hca_cap_max_wqe_sz_sq, 256},
		{PROFILE_RECV_WQE, 128, PRM_CAP_GENERAL, PRM_cmd_hca_cap_max_wqe_sz_rq, 128},
		{PROFILE_SCHEDULING, 0, PRM_CAP_GENERAL, PRM_cmd_hca_cap_qos, 0},
		{PROFILE_SCHEDULING, 0, PRM_CAP_GENERAL, PRM_cmd_hca_cap_general_obj_types, 0},
		{PROFILE_FORCED_LOOPBACK, 0, PRM_CAP_ROCE, PRM_roce_cap_fl_rc_qp_when_roce_enabled, 0},
		{PROFILE_CLOCKS, PROFILE_REAL_TIME, PRM_CAP_ROCE, PRM_roce_cap_qp_ts_format, 1},
		{PROFILE_CLOCKS, PROFILE_BOTH_CLOCKS, PRM_CAP_GENERAL, PRM_cmd_hca_cap_sq_ts_format, 2},
		{PROFILE_CLOCKS, PROFILE_BOTH_CLOCKS, PRM_CAP_GENERAL, PRM_cmd_hca_cap_rq_ts_format, 2},
		{PROFILE_CROSS_CHANNEL, 0, PRM_CAP_GENERAL, PRM_cmd_hca_cap_cd, 0},
		{PROFILE_ATOMICS, 0, PRM_CAP_GENERAL, PRM_cmd_hca_cap_atomic, 0},
		{PROFILE_MASKED_ATOMICS, 0, PRM_CAP_ATOMIC, PRM_atomic_caps_atomic_operations, 3},
		{PROFILE_HOST_ATOMICS, 0, PRM_CAP_ATOMIC, PRM_atomic_caps_atomic_req_8B_endianness_mode, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		open_with(PROFILE_FACTS, 0);
		app_open_context();
		assert_int_not_equal(cap(t[i].page, t[i].offset, t[i].bits), t[i].reported);
		app_teardown(NULL);
		open_with(t[i].fact, t[i].value);
		app_open_context();
		assert_int_equal(cap(t[i].page, t[i].offset, t[i].bits), t[i].reported);
		app_teardown(NULL);
	}
}

/* The page of a capability that is absent is unknown. */
static void test_no_page(void **state)
{
	uint8_t *page;

	(void)state;
	open_with(PROFILE_SCHEDULING, 0);
	app_open_context();
	assert_int_equal(app_query_caps(PRM_CAP_QOS, &page), -EREMOTEIO);
	app_teardown(NULL);
}

static void test_device_attributes(void **state)
{
	struct ib_uverbs_query_device req = {0};
	struct ib_uverbs_query_device_resp *resp;

	(void)state;
	open_with(PROFILE_PART, 4123);
	profile.value[PROFILE_FIRMWARE] = 20ull << 32 | 42ull << 16 | 1000;
	profile.value[PROFILE_SEND_WQE] = 256;
	profile.value[PROFILE_LOG_READS] = 2;
	app_open_context();
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_DEVICE, req, resp), 0);
	assert_int_equal(resp->vendor_part_id, 4123);
	assert_int_equal(resp->fw_ver, profile.value[PROFILE_FIRMWARE]);
	assert_int_equal(resp->max_sge, (256 - 32) / 16);
	assert_int_equal(resp->max_qp_rd_atom, 4);
	assert_int_equal(resp->atomic_cap, IBV_ATOMIC_HCA);
	app_teardown(NULL);
	open_with(PROFILE_ATOMICS, 0);
	app_open_context();
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_DEVICE, req, resp), 0);
	assert_int_equal(resp->atomic_cap, IBV_ATOMIC_NONE);
	app_teardown(NULL);
}

/* Firmware that has no user contexts: a context for commands is refused, others work. */
static void test_no_devx(void **state)
{
	(void)state;
	open_with(PROFILE_DEVX, 0);
	assert_int_equal(app_get_context(), -EINVAL);
	app_teardown(NULL);
}

/* A transition of a DEVX queue with `fl`: app_devx_qp_to() sets it. */
static void test_no_forced_loopback(void **state)
{
	struct devx_queues q;
	uint8_t *out;

	(void)state;
	open_with(PROFILE_FORCED_LOOPBACK, 0);
	app_open_devx_qp(&q);
	assert_int_equal(app_devx_qp_to(q.qp, q.qpn, PRM_OP_RST2INIT_QP, 0, &out), 0);
	assert_int_equal(app_devx_qp_to(q.qp, q.qpn, PRM_OP_INIT2RTR_QP, 5, &out), -EREMOTEIO);
	assert_int_equal(app_syndrome(out), 0x5c0028);
	app_teardown(NULL);
}

/* A queue must have timestamps that the device has. */
static void test_clocks(void **state)
{
	enum { SYN_TS_FORMAT = 0x5c0034 };
	static const bool allowed[][4] = {
		[PROFILE_FREE_RUNNING] = {true, true, false, false},
		[PROFILE_REAL_TIME] = {false, true, true, false},
		[PROFILE_BOTH_CLOCKS] = {true, true, true, false},
	};

	(void)state;
	for (unsigned clocks = 0; clocks < COUNT(allowed); clocks++)
		for (unsigned format = 0; format < 4; format++) {
			uint8_t in[PRM_SIZE_create_qp_in] = {0}, *qpc = in + PRM_create_qp_in_qpc_byte, *out;
			uint64_t qp = 0;
			struct devx_queues q;

			open_with(PROFILE_CLOCKS, clocks);
			app_open_devx_cq(&q);
			prm_set(in, PRM_in_opcode, PRM_OP_CREATE_QP);
			prm_set(in, PRM_create_qp_in_wq_umem_id, q.umem);
			prm_set(in, PRM_create_qp_in_wq_umem_offset, QP_OFF);
			prm_set(qpc, PRM_qpc_ts_format, format);
			prm_set(qpc, PRM_qpc_pd, q.pdn);
			prm_set(qpc, PRM_qpc_log_sq_size, 6);
			prm_set(qpc, PRM_qpc_rq_type, 3);
			prm_set(qpc, PRM_qpc_uar_page, app.uar_page);
			prm_set(qpc, PRM_qpc_cqn_snd, q.cq.cqn);
			prm_set(qpc, PRM_qpc_cqn_rcv, q.cq.cqn);
			prm_set(qpc, PRM_qpc_dbr_umem_id, q.umem);
			prm_set(qpc, PRM_qpc_dbr_addr, DB_OFF + 64);
			if (allowed[clocks][format]) {
				assert_int_equal(app_devx(MLX5_IB_METHOD_DEVX_OBJ_CREATE, &qp, in, sizeof(in),
							 PRM_SIZE_create_qp_out, &out),
					0);
			} else {
				assert_int_equal(app_devx(MLX5_IB_METHOD_DEVX_OBJ_CREATE, &qp, in, sizeof(in),
							 PRM_SIZE_create_qp_out, &out),
					-EREMOTEIO);
				assert_int_equal(app_syndrome(out), SYN_TS_FORMAT);
			}
			app_teardown(NULL);
		}
}

/* Queues of verbs have what their device has: the kernel sees to it. */
static void test_clocks_of_verbs(void **state)
{
	(void)state;
	for (unsigned clocks = 0; clocks < 3; clocks++) {
		struct cq cq;
		struct qp qp;

		open_with(PROFILE_CLOCKS, clocks);
		app_open_context();
		assert_int_equal(app_new_cq(&cq, 15, -1), 0);
		assert_int_equal(app_new_qp(&qp, app_new_pd(NULL), &cq, IBV_QPT_RC), 0);
		app_teardown(NULL);
	}
}

static void test_infiniband_port(void **state)
{
	struct ib_uverbs_query_port req = {.port_num = 1};
	struct ib_uverbs_query_port_resp *port;
	uint8_t *page;

	(void)state;
	open_with(PROFILE_LINK, PROFILE_INFINIBAND);
	app_open_context();
	assert_int_equal(CMD_OUT(IB_USER_VERBS_CMD_QUERY_PORT, req, port), 0);
	assert_int_equal(port->link_layer, IBV_LINK_LAYER_INFINIBAND);
	assert_int_equal(port->lid, hw_lid(app.dev));
	assert_int_equal(port->sm_lid, 1);
	assert_int_equal(port->port_cap_flags & IB_UVERBS_PCF_IP_BASED_GIDS, 0);
	assert_int_equal(cap(PRM_CAP_GENERAL, PRM_cmd_hca_cap_port_type), 0);
	assert_int_equal(cap(PRM_CAP_GENERAL, PRM_cmd_hca_cap_roce), 0);
	assert_int_equal(app_query_caps(PRM_CAP_ROCE, &page), -EREMOTEIO);
	app_teardown(NULL);
}

/* The fields of either link layer are reserved on the other. */
static void test_infiniband_paths(void **state)
{
	static const struct {
		unsigned bit, width, value;
		int syndrome;
	} t[] = {
		{PRM_ads_dscp, 1, 0x5c0031},
		{PRM_ads_udp_sport, 0xc000, 0x5c0031},
		{PRM_ads_eth_prio, 1, 0x5c0031},
		{PRM_ads_rmac_47_32_byte * 8 + 16, 32, 1, 0x5c0031},
		{PRM_ads_src_addr_index, 16, 0x5c0022},
		{PRM_ads_grh, 1, 0},
	};
	const size_t ads_off = PRM_modify_qp_in_qpc_byte + PRM_qpc_primary_address_path_byte;

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		uint8_t in[PRM_SIZE_modify_qp_in] = {0}, *out;
		struct devx_queues q;
		int r;

		open_with(PROFILE_LINK, PROFILE_INFINIBAND);
		app_open_devx_qp(&q);
		assert_int_equal(app_devx_qp_to(q.qp, q.qpn, PRM_OP_RST2INIT_QP, 0, &out), 0);
		prm_set(in, PRM_in_opcode, PRM_OP_INIT2RTR_QP);
		prm_set(in, PRM_in_objn, q.qpn);
		prm_set(in + PRM_modify_qp_in_qpc_byte, PRM_qpc_mtu, 5);
		prm_set(in + PRM_modify_qp_in_qpc_byte, PRM_qpc_remote_qpn, q.qpn);
		prm_set(in + ads_off, PRM_ads_vhca_port_num, 1);
		prm_set(in + ads_off, PRM_ads_rlid, 2);
		prm_set(in + ads_off, t[i].bit, t[i].width, t[i].value);
		r = app_devx(
			MLX5_IB_METHOD_DEVX_OBJ_MODIFY, &q.qp, in, sizeof(in), PRM_SIZE_modify_qp_out, &out);
		assert_int_equal(r == -EREMOTEIO ? (int)app_syndrome(out) : r, t[i].syndrome);
		app_teardown(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_profile_caps),
		cmocka_unit_test(test_no_page),
		cmocka_unit_test(test_no_devx),
		cmocka_unit_test(test_device_attributes),
		cmocka_unit_test(test_no_forced_loopback),
		cmocka_unit_test(test_infiniband_port),
		cmocka_unit_test(test_infiniband_paths),
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_clocks_of_verbs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
