/* SPDX-License-Identifier: BSD-2-Clause */
/* Transitions of queue pairs by DEVX: their address paths and rights. */
#include "softcx/uverbs/test-app.h"

#include "softcx/uverbs/prm.h"
#include "util/array.h"

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
		T(test_paths),
		T(test_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
