/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares prm.h with the kernel's description of the firmware interface, and checks prm_get and prm_set. */
#include "mlx5/prm.h"

#include <string.h>

#include "tests/lib/cmocka.h"

#ifdef MLX5_IFC_HEADER
typedef uint8_t u8;
#define BIT(n) (1u << (n))
#define BIT_ULL(n) (1ull << (n))
#include MLX5_IFC_HEADER
#define mlx5_ifc_calc_op_bits mlx5_ifc_calc_op /* the only one without the suffix */

static void check(const char *name, unsigned bit, unsigned width, size_t kernel_bit, size_t kernel_width)
{
	if (bit != kernel_bit || width != kernel_width)
		fail_msg("%s is at %#x, %u; the kernel has it at %#zx, %zu", name, bit, width, kernel_bit,
			kernel_width);
}

#define CHECK(name, position, offset, size) check(name, position, offset, size)
#define FIELD(s, f)                                                                                          \
	CHECK(#s "." #f, PRM_##s##_##f, offsetof(struct mlx5_ifc_##s##_bits, f),                             \
		sizeof(((struct mlx5_ifc_##s##_bits *)0)->f));
#define BYTE(s, f) check(#s "." #f, PRM_##s##_##f##_byte * 8u, 0, offsetof(struct mlx5_ifc_##s##_bits, f), 0);
#define SIZE(s) check("size of " #s, PRM_SIZE_##s * 8u, 0, sizeof(struct mlx5_ifc_##s##_bits), 0)

static void test_positions(void **state)
{
#include "prm-table.inc"
	SIZE(create_qp_in);
	SIZE(create_qp_out);
	SIZE(qpc);
	SIZE(ads);
	SIZE(query_qp_in);
	SIZE(create_cq_in);
	SIZE(query_cq_out);
	SIZE(create_cq_out);
	SIZE(cqc);
	SIZE(create_mkey_in);
	SIZE(mkc);
	SIZE(query_hca_cap_in);
}
#endif

static void test_get_set(void **state)
{
	uint8_t b[16];

	memset(b, 0xff, sizeof(b));
	prm_set(b, 0x1b, 10, 0x155);
	assert_int_equal(prm_get(b, 0x1b, 10), 0x155);
	assert_int_equal(prm_get(b, 0x0, 27), 0x7ffffff);
	assert_int_equal(prm_get(b, 0x25, 27), 0x7ffffff);
	memset(b, 0, sizeof(b));
	prm_set(b, 0x40, 64, 0x0123456789abcdefull);
	assert_int_equal(b[8], 0x01);
	assert_int_equal(b[15], 0xef);
	assert_int_equal(prm_get(b, 0x40, 64), 0x0123456789abcdefull);
	prm_set(b, 0x48, 24, 0xffffffff);
	assert_int_equal(b[8], 0x01);
	assert_int_equal(b[12], 0x89);
	assert_int_equal(prm_get(b, 0x48, 24), 0xffffff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get_set),
#ifdef MLX5_IFC_HEADER
		cmocka_unit_test(test_positions),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
