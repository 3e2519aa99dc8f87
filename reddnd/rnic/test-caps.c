/* SPDX-License-Identifier: BSD-2-Clause */
#include "mlx5/prm.h"
#include "reddnd/rnic/caps.h"

#include <string.h>

#include "tests/lib/cmocka.h"

struct pages {
	uint8_t general[4096], roce[4096], atomic[4096];
};

static struct pages good(void)
{
	struct pages p = {0};

	prm_set(p.general, PRM_cmd_hca_cap_cd, 1);
	prm_set(p.general, PRM_cmd_hca_cap_cq_oi, 1);
	prm_set(p.general, PRM_cmd_hca_cap_port_type, 1);
	prm_set(p.general, PRM_cmd_hca_cap_log_max_qp_sz, 15);
	prm_set(p.general, PRM_cmd_hca_cap_log_max_cq_sz, 22);
	prm_set(p.general, PRM_cmd_hca_cap_max_wqe_sz_sq, 1024);
	prm_set(p.general, PRM_cmd_hca_cap_max_wqe_sz_rq, 512);
	prm_set(p.general, PRM_cmd_hca_cap_log_max_ra_req_qp, 4);
	prm_set(p.general, PRM_cmd_hca_cap_log_max_ra_res_qp, 4);
	prm_set(p.roce, PRM_roce_cap_fl_rc_qp_when_roce_enabled, 1);
	prm_set(p.atomic, PRM_atomic_caps_atomic_operations, 0xf);
	prm_set(p.atomic, PRM_atomic_caps_atomic_size_qp, 0x1fc);
	prm_set(p.atomic, PRM_atomic_caps_atomic_req_8B_endianness_mode, 1);
	return p;
}

static bool verdict(const struct pages *p, char *why)
{
	struct rnic_caps caps;

	rnic_caps_parse(&caps, p->general, p->roce, p->atomic);
	return rnic_caps_sufficient(&caps, why, 256);
}

static void test_good(void **state)
{
	struct pages p = good();
	struct rnic_caps caps;
	char why[256];

	assert_true(verdict(&p, why));
	assert_string_equal(why, "");
	rnic_caps_parse(&caps, p.general, p.roce, p.atomic);
	assert_true(caps.host_atomics);
	assert_int_equal(caps.log_rd_atomic, 4);
	assert_int_equal(rnic_caps_atomic_mode(&caps), 8);
}

static void test_missing(void **state)
{
	struct pages p = good();
	struct rnic_caps caps;
	char why[256];

	prm_set(p.general, PRM_cmd_hca_cap_cd, 0);
	assert_false(verdict(&p, why));
	assert_string_equal(why, "cross-channel work requests (WAIT, SEND_EN)");
	prm_set(p.atomic, PRM_atomic_caps_atomic_operations, 2);
	assert_false(verdict(&p, why));
	assert_string_equal(why, "cross-channel work requests (WAIT, SEND_EN); compare-and-swap");
	rnic_caps_parse(&caps, p.general, NULL, NULL);
	assert_false(caps.force_loopback);
	assert_int_equal(caps.atomic_ops, 0);
}

/* Which capability reports the formats of timestamps that a QP can have */
static void test_timestamps(void **state)
{
	struct pages p = good();
	struct rnic_caps caps;

	rnic_caps_parse(&caps, p.general, p.roce, p.atomic);
	assert_false(caps.ts_formats);
	for (unsigned formats = 1; formats <= 2; formats++) {
		p = good();
		prm_set(p.roce, PRM_roce_cap_qp_ts_format, formats);
		rnic_caps_parse(&caps, p.general, p.roce, p.atomic);
		assert_true(caps.ts_formats);
		prm_set(p.general, PRM_cmd_hca_cap_port_type, 0); /* InfiniBand */
		rnic_caps_parse(&caps, p.general, p.roce, p.atomic);
		assert_false(caps.ts_formats);
		prm_set(p.general, PRM_cmd_hca_cap_sq_ts_format, formats);
		rnic_caps_parse(&caps, p.general, p.roce, p.atomic);
		assert_true(caps.ts_formats);
	}
}

/* A device without it has an address (own-path.c). InfiniBand ports use their LID. */
static void test_forced_loopback_is_optional(void **state)
{
	struct pages p = good();
	struct rnic_caps caps;
	char why[256];

	rnic_caps_parse(&caps, p.general, p.roce, p.atomic);
	assert_true(caps.force_loopback);
	prm_set(p.general, PRM_cmd_hca_cap_port_type, 0);
	assert_true(verdict(&p, why));
	rnic_caps_parse(&caps, p.general, p.roce, p.atomic);
	assert_false(caps.force_loopback);
	prm_set(p.general, PRM_cmd_hca_cap_port_type, 1);
	prm_set(p.roce, PRM_roce_cap_fl_rc_qp_when_roce_enabled, 0);
	assert_true(verdict(&p, why));
	rnic_caps_parse(&caps, p.general, p.roce, p.atomic);
	assert_false(caps.force_loopback);
}

static void test_atomic_mode(void **state)
{
	struct rnic_caps caps = {.atomic_ops = RNIC_ATOMIC_CAS | RNIC_ATOMIC_ADD, .atomic_size = 8};

	assert_int_equal(rnic_caps_atomic_mode(&caps), 1);
	caps.atomic_ops |= RNIC_ATOMIC_MASKED_CAS;
	assert_int_equal(rnic_caps_atomic_mode(&caps), 3);
	assert_false(rnic_caps_masked_atomics(&caps));
	caps.atomic_ops |= RNIC_ATOMIC_MASKED_ADD;
	assert_true(rnic_caps_masked_atomics(&caps));
	caps.atomic_size = 4;
	assert_int_equal(rnic_caps_atomic_mode(&caps), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_forced_loopback_is_optional),
		cmocka_unit_test(test_timestamps),
		cmocka_unit_test(test_atomic_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
