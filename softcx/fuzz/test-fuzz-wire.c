/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults between the driver and the NIC that the fuzzer found, and similar ones, one by one: each time the
 * NIC lives, the bystander goes on, and nothing is left over when the misbehaving application has gone.
 */
#include "softcx/fuzz/harness.h"
#include "softcx/fuzz/wire.h"

#include <string.h>

#include "tests/lib/cmocka.h"

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <sys/stat.h>

enum { FDS = 253 };

static struct harness harness;
static struct wire_arena arena;
static struct wire_file file;

static int setup(void **state)
{
	return wire_open(&file, harness.dir, "uverbs0");
}

static int teardown(void **state)
{
	wire_close(&file);
	if (harness_check_clean(&harness))
		return 0;
	print_error("%s\n", harness.what);
	harness_print_log(&harness);
	return -1;
}

static int start(void **state)
{
	ssize_t n = readlink("/proc/self/exe", harness.tools, sizeof(harness.tools) - 1);

	if (n <= 0)
		return -1;
	*strrchr(harness.tools, '/') = '\0';
	if (harness_start(&harness, 1, 60))
		return wire_arena_init(&arena);
	print_error("%s\n", harness.what);
	return -1;
}

static int stop(void **state)
{
	bool ok = harness_stop(&harness);

	if (!ok) {
		print_error("%s\n", harness.what);
		harness_print_log(&harness);
	}
	wire_arena_deinit(&arena);
	harness_remove(&harness);
	return ok ? 0 : -1;
}

static void fill(int fds[static FDS], int fd)
{
	for (unsigned i = 0; i < FDS; i++)
		fds[i] = fd;
}

/* More descriptors than a packet may have fit where credentials would have been. */
static void test_greeting_with_many_descriptors(void **state)
{
	const struct softcx_hello hello = {.version = SOFTCX_VERSION};
	int fds[FDS];

	fill(fds, arena.fd);
	for (unsigned n = SOFTCX_MAX_FDS - 1; n < SOFTCX_MAX_FDS + 16; n++) {
		wire_hello(&file, &hello, sizeof(hello), fds, n);
		wire_close(&file);
		assert_int_equal(wire_open(&file, harness.dir, "uverbs0"), 0);
	}
}

/* The file's own connection as its command channel: then nothing would ever end it. */
static void test_file_as_its_own_channel(void **state)
{
	const struct softcx_hello hello = {.version = SOFTCX_VERSION};

	wire_hello(&file, &hello, sizeof(hello), &file.sock, 1);
}

static void test_empty_packet_with_descriptors(void **state)
{
	int fds[FDS];

	fill(fds, arena.fd);
	wire_send(&file, "", 0, fds, 8);
}

/** A REG_MR in a new context, up to the question about its memory, which is answered by @how. */
static bool register_memory(enum wire_answer how, int64_t *rc)
{
	struct {
		struct softcx_request req;
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context cmd;
		struct mlx5_ib_alloc_ucontext_req_v2 drv;
	} context = {.req = {.op = SOFTCX_WRITE},
		.hdr = {.command = IB_USER_VERBS_CMD_GET_CONTEXT, .out_words = 64},
		.drv = {.total_num_bfregs = 16,
			.num_low_latency_bfregs = 4,
			.max_cqe_version = 1,
			.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR}};
	struct {
		struct softcx_request req;
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_alloc_pd cmd;
	} pd = {.req = {.op = SOFTCX_WRITE}, .hdr = {.command = IB_USER_VERBS_CMD_ALLOC_PD, .out_words = 8}};
	struct {
		struct softcx_request req;
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_reg_mr cmd;
	} mr = {.req = {.op = SOFTCX_WRITE},
		.hdr = {.command = IB_USER_VERBS_CMD_REG_MR, .out_words = 8},
		.cmd = {.start = 0x10000, .length = 8192, .hca_va = 0x10000, .access_flags = 1}};

#define GIVE(command, answer)                                                                                \
	((command).req.len = sizeof(command) - sizeof((command).req),                                        \
		(command).hdr.in_words = (uint16_t)((command).req.len / 4),                                  \
		wire_send(&file, &(command), sizeof(command), NULL, 0) &&                                    \
			wire_finish(&file, &arena, answer, rc))
	if (!GIVE(context, WIRE_RIGHT) || *rc < 0 || !GIVE(pd, WIRE_RIGHT) || *rc < 0)
		return false;
	return GIVE(mr, how);
}

static void test_right_answer(void **state)
{
	int64_t rc;

	file.patience_ms = 60000;
	if (!register_memory(WIRE_RIGHT, &rc))
		fail_msg("%lld", (long long)rc);
	assert_true(rc > 0);
}

/* Whatever is answered, it is this application's loss. */
static void test_wrong_answers(void **state)
{
	for (unsigned how = WIRE_RIGHT + 1; how < WIRE_ANSWERS; how++) {
		int64_t rc = 0;

		assert_false(register_memory((enum wire_answer)how, &rc) && rc > 0 && how != WIRE_PRIVATE &&
			     how != WIRE_SMALL_FILE);
		wire_close(&file);
		if (!harness_check_clean(&harness))
			fail_msg("answer %u: %s", how, harness.what);
		assert_int_equal(wire_open(&file, harness.dir, "uverbs0"), 0);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_greeting_with_many_descriptors),
		T(test_file_as_its_own_channel),
		T(test_empty_packet_with_descriptors),
		T(test_right_answer),
		T(test_wrong_answers),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
