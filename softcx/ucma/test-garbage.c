/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/test-app.h"

static void refusals(void **state)
{
	uint32_t a = app_routed("127.0.0.1", 1), big[64] = {0};
	struct rdma_ucm_join_ip_mcast join = {.id = a};
	struct rdma_ucm_destroy_id leave = {0};
	struct rdma_ucm_set_option opt = {
		.id = a, .level = RDMA_OPTION_ID, .optname = 77, .optval = (uintptr_t)big};

	assert_int_equal(ISSUE(client, JOIN_IP_MCAST, join, 4), -EINVAL);
	assert_int_equal(ISSUE(client, LEAVE_MCAST, leave, 4), -ENOENT);
	assert_int_equal(ISSUE(client, GET_OPTION, opt, 4), -ENOSYS);
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), -ENOSYS);
	opt.optname = RDMA_OPTION_ID_TOS;
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), -EINVAL);
	opt.optlen = 1;
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), 0);
	opt.optlen = UINT32_MAX;
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), -EINVAL);
	opt.optlen = 1;
	opt.optval = 8;
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), -EFAULT);
	opt.id = 4711;
	assert_int_equal(ISSUE(client, SET_OPTION, opt, 4), -ENOENT);
	opt.id = a;
	assert_int_equal(ISSUE(server, SET_OPTION, opt, 4), -EINVAL); /* another's id */
}

/* Whatever is written, the network survives; under a sanitizer so do its bounds. */
static void garbage(void **state)
{
	uint8_t body[512], sink[65536];
	unsigned i, j;

	srand(1);
	for (i = 0; i < 200000; i++) {
		struct rdma_ucm_cmd_hdr hdr = {.cmd = (uint32_t)rand() % 24, .out = (uint16_t)rand()};
		uint64_t va = (uintptr_t)sink;
		struct nic_call call;
		size_t len = (size_t)rand() % 400;

		for (j = 0; j < sizeof(body); j++)
			body[j] = rand() % 3 ? 0 : (uint8_t)rand();
		/* plausible ids and, wherever a command may have it, an address to answer to */
		body[8 + (size_t)(rand() % 4) * 8] = (uint8_t)(rand() % 32);
		memcpy(body + 8, &va, sizeof(va));
		if (rand() % 2)
			memcpy(body + 16, &va, sizeof(va));
		hdr.in = (uint16_t)(rand() % 50 ? len : (unsigned)rand());
		memcpy(body, &hdr, sizeof(hdr));
		call = (struct nic_call){.bytes = body, .len = (size_t)rand() % 50 ? 8 + len : len % 9};
		(void)ucma_write(rand() % 2 ? server : client, &call);
		if (rand() % 8 == 0)
			ucma_net_timers(net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refusals, app_setup, app_teardown),
		cmocka_unit_test_setup_teardown(garbage, app_setup, app_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
