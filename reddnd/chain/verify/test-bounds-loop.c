/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains with a loop beside them */
#include "reddnd/chain/verify/test-bounds.h"

/* The good chain with memory that it shares with a loop of two steps */
static struct {
	struct chain_step s[CHAIN_MAX_STEPS];
	struct chain_region r[REGIONS + 1];
	struct chain_step chain[STEPS + 1];
	struct chain_word w;
	struct chain_desc d;
} u;

enum { SHARED = REGIONS, SHARED_BYTES = 64 };

static void fresh_loop(void)
{
	static const uint8_t init[SHARED_BYTES] = {1, 2};

	fresh();
	memcpy(u.r, regions, sizeof(regions));
	u.r[SHARED] = (struct chain_region){.name = "shared", .flags = CHAIN_WRITABLE, .size = SHARED_BYTES};
	memcpy(u.chain, good, sizeof(good));
	u.chain[STEPS] = STEP(.label = "put", .queue = 1, .verb = CHAIN_WRITE,
		.remote = REGION(SHARED, 16, 0), .local = {WORD(0, 8)});
	memset(u.s, 0, sizeof(u.s));
	u.s[0] = STEP(.label = "in", .verb = CHAIN_READ, .remote = REGION(SHARED, 0, 0),
		.local = {WORD(0, 8)});
	u.s[1] = STEP(.label = "up", .verb = CHAIN_FETCH_ADD, .add = 256, .remote = REGION(SHARED, 8, 0),
		.local = {WORD(8, 8)});
	u.s[2] = STEP(.verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END);
	u.w = (struct chain_word){"w", 48, NULL};
	u.d = (struct chain_desc){.name = "loop",
		.queues = queues,
		.nqueues = 1,
		.words = &u.w,
		.nwords = 1,
		.nregions = REGIONS + 1,
		.regions = u.r,
		.steps = u.s,
		.nsteps = 3};
	t.d.regions = u.r;
	t.d.nregions = REGIONS + 1;
	t.d.steps = u.chain;
	t.d.nsteps = STEPS + 1;
	t.d.loop = &u.d;
	t.d.shared = SHARED;
	t.d.shared_init = init;
}

static void assert_wrong_loop(struct fault why)
{
	assert_wrong(why);
	fresh_loop();
}

static void loops(void **state)
{
	(void)state;
	fresh_loop();
	assert_fine();
	fresh_loop();
	u.chain[DONE].local[0] = PLACE(REGION(SHARED, 0, 8));
	assert_wrong_loop(WRONG(ANSWER_SHARED, DONE, NO_STEP, LINES(11), LABELS("done")));
	u.chain[DONE].queue = 9;
	assert_wrong_loop(WRONG(NO_QUEUE, DONE, NO_STEP, LINES(11), NUMBERS(9, 2)));
	u.d.nsteps = CHAIN_MAX_STEPS - 1;
	assert_wrong_loop(WRONG(STEPS, NO_STEP, NO_STEP, NUMBERS(CHAIN_MAX_STEPS + 1, CHAIN_MAX_STEPS)));
	u.s[1].remote.from = SHARED_BYTES - 8;
	u.s[0].remote.from = SHARED_BYTES - 4;
	assert_wrong_loop(
		WRONG(REGION_END, 0, NO_STEP, LABELS("in"), LINES(0), NUMBERS(60, 67, 64), .name = "shared"));
	/* a byte that moves by one place in each iteration, for longer than anybody waits */
	u.d.nsteps = CHAIN_MAX_STEPS - 2;
	u.w.size = CHAIN_MAX_STEPS;
	for (unsigned i = 0; i < u.d.nsteps; i++)
		u.s[i] = STEP(.verb = CHAIN_READ, .remote = WORD(u.d.nsteps - 1 - i, 0),
			.local = {WORD(u.d.nsteps - i, 1)});
	u.s[0].remote = PLACE(REGION(SHARED, 0, 0));
	u.s[0].local[0] = PLACE(WORD(0, 1));
	assert_wrong_loop(WRONG(LOOP_UNCLEAR, NO_STEP, NO_STEP));
	/* a length, of either side of what is shared; between regions it may be replaced */
	u.s[0] = STEP(.label = "in", .verb = CHAIN_READ, .remote = REGION(TABLE, 0, 0),
		.local = {FIELD("copy", CHAIN_F_LOCAL_LEN, 0, 4)});
	u.s[1] = STEP(.label = "copy", .verb = CHAIN_READ, .remote = REGION(HEAP, 0, 0),
		.local = {REGION(SHARED, 8, 8)});
	assert_wrong_loop(WRONG(LENGTH_BEYOND, 1, 0, LABELS("copy", "in"), LINES(0, 0)));
	u.s[0] = STEP(.label = "in", .verb = CHAIN_READ, .remote = REGION(TABLE, 0, 0),
		.local = {FIELD("copy", CHAIN_F_LOCAL_LEN, 0, 4)});
	u.s[1] = STEP(.label = "copy", .verb = CHAIN_WRITE, .remote = REGION(SHARED, 8, 0),
		.local = {REGION(HEAP, 0, 8)});
	assert_wrong_loop(WRONG(LENGTH_BEYOND, 1, 0, LABELS("copy", "in"), LINES(0, 0)));
	u.s[0] = STEP(.label = "in", .verb = CHAIN_READ, .remote = REGION(TABLE, 0, 0),
		.local = {FIELD("copy", CHAIN_F_LOCAL_LEN, 0, 4)});
	u.s[1] = STEP(.label = "copy", .verb = CHAIN_WRITE, .remote = REGION(COUNTS, 8, 0),
		.local = {REGION(SHARED, 0, 8)});
	assert_wrong_loop(WRONG(LENGTH_BEYOND, 1, 0, LABELS("copy", "in"), LINES(0, 0)));
	u.s[0] = STEP(.label = "in", .verb = CHAIN_READ, .remote = REGION(TABLE, 0, 0),
		.local = {FIELD("copy", CHAIN_F_LOCAL_LEN, 1, 3)});
	u.s[1] = STEP(.label = "copy", .verb = CHAIN_WRITE, .remote = REGION(COUNTS, 8, 0),
		.local = {REGION(HEAP, 0, 8)});
	assert_fine();
	/* also by the chain that calls the loop */
	fresh_loop();
	u.chain[LOOK].local[0] = PLACE(FIELD("put", CHAIN_F_LOCAL_LEN, 1, 3));
	u.chain[STEPS].local[0] = PLACE(REGION(HEAP, 0, 8));
	assert_wrong_loop(WRONG(LENGTH_BEYOND, STEPS, LOOK, LABELS("put", "look"), LINES(0, 3)));
	/* the opmod of a NOP: in the chain there is an order, in an iteration there is none */
	t.d.ignores_index = true;
	u.chain[MATCH].remote = PLACE(FIELD("hit", CHAIN_F_CTRL, 0, 0));
	u.chain[MATCH].swap = (uint64_t)3 << 56 | (uint64_t)WQE_OP_WRITE << 24;
	u.chain[DECIDE].local[0] = PLACE(WORD(7, 1));
	u.chain[LOOK].local[2] = PLACE(FIELD("hit", CHAIN_F_CTRL, 0, 1));
	assert_fine();
	fresh_loop();
	u.d.ignores_index = true;
	u.s[0] = STEP(.label = "in", .verb = CHAIN_READ, .remote = REGION(TABLE, 0, 0),
		.local = {FIELD("up", CHAIN_F_CTRL, 0, 1)});
	u.s[1].flags = CHAIN_DORMANT;
	u.s[1].verb = CHAIN_WRITE;
	u.s[2] = STEP(.label = "wake", .verb = CHAIN_CAS, .remote = FIELD("up", CHAIN_F_CTRL, 0, 0),
		.swap = (uint64_t)3 << 56 | (uint64_t)WQE_OP_WRITE << 24);
	assert_wrong_loop(WRONG(FOREIGN_REGION, 1, 0, LABELS("up", "in"), LINES(0, 0), .name = "opmod"));
	/* a client's bytes, by way of what is shared */
	u.s[0].remote.from = 16;
	u.s[0].local[0] = PLACE(FIELD("up", CHAIN_F_REMOTE_ADDR, 0, 8));
	assert_wrong_loop(WRONG(ADDRESS_SHARED, 1, 0, LABELS("up", "in"), LINES(0, 0)));
	u.s[1].remote = PLACE(WORD(16, 0));
	u.s[0].remote.from = 16;
	u.s[0].local[0] = PLACE(FIELD("up", CHAIN_F_REMOTE_ADDR, 0, 8));
	assert_wrong_loop(WRONG(ADDRESS_OWN, 1, 0, LABELS("up", "in"), LINES(0, 0)));
	t.a[0] = PLACE(WORD(0, 7));
	u.s[0].remote.from = 16;
	u.s[0].local[0] = PLACE(FIELD("up", CHAIN_F_OPCODE, 0, 1));
	assert_wrong_loop(WRONG(FOREIGN_REQUEST, 1, 0, LABELS("up", "in"), LINES(0, 0), .name = "opcode"));
}

static void no_memory_for_a_loop(void **state)
{
	struct chain_error err;

	(void)state;
	fresh_loop();
	NOMEM_TRY(-ENOMEM, chain_check_bounds(&t.d, NULL, &err));
	assert_int_equal(nomem_result, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops),
		cmocka_unit_test(no_memory_for_a_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
