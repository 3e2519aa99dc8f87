/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/verify/test-bounds.h"

static void needs(void **state)
{
	struct chain_bounds b;
	struct chain_error err;

	(void)state;
	fresh();
	t.s[DONE].local[1] = PLACE(REGION(TABLE, 0, 8));
	if (chain_check_bounds(&t.d, &b, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
	fresh();
	assert_int_equal(b.reply, 1064);
	assert_int_equal(b.region[TABLE], 192);
	assert_int_equal(b.region[HEAP], 0);
	assert_int_equal(b.region[COUNTS], 16);
	assert_int_equal(b.region[LOG], 0);
	/* the place as posted counts if what replaces it may not be executed */
	t.s[LOOK].flags |= CHAIN_DORMANT;
	t.s[HIT].local[0].from = 100;
	assert_int_equal(chain_check_bounds(&t.d, &b, &err), 0);
	fresh();
	assert_int_equal(b.region[HEAP], 101);
	assert_int_equal(b.region[LOG], 0);
	/* as it does if what replaces it may have become something else */
	t.s[COUNT] = t.s[LOOK];
	t.s[LOOK] = STEP(.queue = 1, .verb = CHAIN_NOP);
	t.s[DECIDE].remote = PLACE(WORD(40, 0));
	t.s[DECIDE].local[0] = PLACE(FIELD("look", CHAIN_F_OPCODE, 0, 1));
	t.w.init = (const uint8_t[48]){[40] = WQE_OP_READ};
	t.s[HIT].local[0].from = 100;
	if (chain_check_bounds(&t.d, &b, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
	fresh();
	assert_int_equal(b.region[HEAP], 101);
	t.d.nregions = 2;
	assert_int_equal(chain_check_bounds(&t.d, &b, &err), CHAIN_REFUSED);
	assert_fault(&err, WRONG(NO_REGION, COUNT, NO_STEP, LINES(6), NUMBERS(2, 2)));
}

static void opcodes(void **state)
{
	(void)state;
	fresh();
	t.s[LOOK].local[2] = PLACE(WORD(0, 8));
	assert_wrong(WRONG(FOREIGN_REGION, HIT, DECIDE, LINES(10, 5), .name = "opcode"));
	t.a[0] = PLACE(WORD(7, 1));
	assert_wrong(WRONG(FOREIGN_REQUEST, HIT, DECIDE, LINES(10, 5), .name = "opcode"));
	/* through a swap, an old value, a WRITE */
	t.a[0] = PLACE(FIELD("match", CHAIN_F_SWAP, 0, 1));
	assert_wrong(WRONG(FOREIGN_REQUEST, HIT, DECIDE, LINES(10, 5), .name = "opcode"));
	t.s[MATCH] = good[COUNT];
	t.s[MATCH].local[0] = PLACE(WORD(0, 8));
	t.s[COUNT] = STEP(.queue = 1, .verb = CHAIN_NOP);
	t.a[0] = PLACE(WORD(40, 1));
	assert_wrong(WRONG(FOREIGN_REGION, HIT, DECIDE, LINES(10, 5), .name = "opcode"));
	t.s[MATCH] = good[NOTE];
	t.s[MATCH].remote = PLACE(WORD(7, 0));
	t.s[MATCH].local[0] = PLACE(REGION(HEAP, 0, 1));
	t.s[NOTE] = STEP(.queue = 1, .verb = CHAIN_NOP);
	t.a[0] = t.a[1];
	t.d.nargs = 1;
	assert_wrong(WRONG(FOREIGN_REGION, HIT, DECIDE, LINES(10, 5), .name = "opcode"));
	t.s[MATCH].swap = (uint64_t)WQE_OP_READ << 56;
	assert_wrong(WRONG(OPCODE, HIT, DECIDE, LINES(10, 5), NUMBERS(0x10), .what = "write"));
	t.w.init = (const uint8_t[48]){[7] = WQE_OP_WRITE};
	assert_fine();
	t.w.init = (const uint8_t[48]){[7] = WQE_OP_SEND};
	assert_wrong(WRONG(OPCODE, HIT, DECIDE, LINES(10, 5), NUMBERS(0xa), .what = "write"));
}

/* Of which byte the old value of an atomic has the opcode depends on the device */
static void old_values(void **state)
{
	(void)state;
	for (unsigned swapped = 0; swapped < 2; swapped++) {
		const uint8_t right[48] = {[24] = swapped ? WQE_OP_WRITE : WQE_OP_SEND,
			[31] = swapped ? WQE_OP_SEND : WQE_OP_WRITE};
		const uint8_t wrong[48] = {[24] = right[31], [31] = right[24]};

		for (unsigned w = 0; w < 2; w++) {
			fresh();
			t.d.swapped_old = swapped;
			t.w.init = w ? wrong : right;
			t.a[0] = PLACE(WORD(40, 1));
			t.s[MATCH] = STEP(.label = "match", .queue = 1, .verb = CHAIN_FETCH_ADD,
				.remote = WORD(24, 0), .local = {WORD(0, 8)}, .line = 4);
			if (w)
				assert_wrong(WRONG(
					OPCODE, HIT, DECIDE, LINES(10, 5), NUMBERS(0xa), .what = "write"));
			else
				assert_fine();
		}
	}
}

/* An opcode that CALC makes is one of those that its operands allow */
static void calculations(void **state)
{
	static const struct {
		enum chain_verb verb;
		uint8_t x, y; /* lowest bytes of two numbers */
		int other;    /* what else the opcode can be; 0: nothing, -1: anything */
	} cases[] = {
		{CHAIN_CALC_MAX, WQE_OP_WRITE, 0, 0},
		{CHAIN_CALC_MAX, WQE_OP_WRITE, WQE_OP_SEND, WQE_OP_SEND},
		{CHAIN_CALC_AND, WQE_OP_WRITE, WQE_OP_SEND, 0},
		{CHAIN_CALC_OR, WQE_OP_WRITE, 0, 0},
		{CHAIN_CALC_OR, WQE_OP_WRITE, WQE_OP_SEND, WQE_OP_SEND},
		{CHAIN_CALC_XOR, WQE_OP_WRITE, 0, 0},
		{CHAIN_CALC_XOR, WQE_OP_WRITE, WQE_OP_SEND, WQE_OP_WRITE ^ WQE_OP_SEND},
		{CHAIN_CALC_ADD, WQE_OP_WRITE, 0, -1},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const uint8_t init[48] = {[16 + 7] = cases[i].x, [32 + 7] = cases[i].y};

		fresh();
		t.w.init = init;
		t.d.args++;
		t.d.nargs--;
		t.s[MATCH] = STEP(.label = "match", .queue = 1, .verb = cases[i].verb, .remote = WORD(0, 0),
			.local = {WORD(16, 32)}, .line = 4);
		if (cases[i].other)
			assert_wrong(WRONG(OPCODE, HIT, DECIDE, LINES(10, 5),
				NUMBERS(cases[i].other < 0 ? 1 : (unsigned)cases[i].other), .what = "write"));
		else
			assert_fine();
	}
}

/* What is behind the number is anything; what a client has a part in is the client's */
static void calculated_from_others(void **state)
{
	static const uint8_t init[48] = {[16 + 7] = WQE_OP_WRITE};
	const struct chain_step max = STEP(.label = "match", .queue = 1, .verb = CHAIN_CALC_MAX,
		.remote = WORD(0, 0), .local = {WORD(16, 16), WORD(32, 16)}, .line = 4);

	(void)state;
	for (unsigned what = 0; what < 6; what++) {
		fresh();
		t.w.init = init;
		t.s[MATCH] = max;
		t.a[0] = what == 1 ? PLACE(WORD(32 + 7, 1)) : PLACE(WORD(32, 1));
		if (what >= 4) {
			t.s[MATCH].verb = CHAIN_CALC_XOR;
			t.a[0] = what == 4 ? PLACE(WORD(16 + 7, 1)) : PLACE(WORD(16, 32));
		}
		if (what == 2)
			t.s[DECIDE].remote = PLACE(WORD(8, 0));
		if (what == 3) {
			t.s[LOOK].local[0] = PLACE(WORD(16 + 5, 3));
			t.s[DECIDE].remote = PLACE(WORD(5, 0));
			t.s[DECIDE].local[0] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 1, 3));
		}
		if (what == 0)
			assert_fine();
		else if (what == 1 || what >= 4)
			assert_wrong(WRONG(FOREIGN_REQUEST, HIT, DECIDE, LINES(10, 5), .name = "opcode"));
		else if (what == 2)
			assert_wrong(WRONG(OPCODE, HIT, DECIDE, LINES(10, 5), NUMBERS(1), .what = "write"));
		else
			assert_wrong(WRONG(LENGTH_REQUEST, HIT, DECIDE, LINES(10, 5)));
	}
}

/* A masked CAS changes the bytes of its mask, a masked add those of its fields */
static void masks(void **state)
{
	(void)state;
	fresh();
	t.s[MATCH].verb = CHAIN_MASKED_CAS;
	t.s[MATCH].swap = (uint64_t)WQE_OP_WRITE << 56 | 0x5566;
	t.s[MATCH].swap_mask = 0xff00000000000000;
	assert_fine();
	t.s[MATCH].verb = CHAIN_MASKED_CAS;
	t.s[MATCH].swap_mask = 0xffff;
	assert_fine();
	t.s[MATCH] = STEP(.label = "match", .queue = 1, .verb = CHAIN_FETCH_ADD, .remote = WORD(0, 0),
		.add = 1, .line = 4);
	t.d.args++;
	t.d.nargs--;
	assert_wrong(WRONG(OPCODE, HIT, DECIDE, LINES(10, 5), NUMBERS(0x1), .what = "write"));
	t.s[MATCH] = STEP(.label = "match", .queue = 1, .verb = CHAIN_MASKED_FETCH_ADD, .remote = WORD(0, 0),
		.add = 1, .boundary = 1ull << 55, .line = 4);
	t.d.args++;
	t.d.nargs--;
	assert_fine();
	t.s[MATCH] = STEP(.label = "match", .queue = 1, .verb = CHAIN_MASKED_FETCH_ADD, .remote = WORD(0, 0),
		.add = 1ull << 56, .boundary = 1ull << 63, .line = 4);
	t.d.args++;
	t.d.nargs--;
	assert_wrong(WRONG(OPCODE, HIT, DECIDE, LINES(10, 5), NUMBERS(0x1), .what = "write"));
	/* a boundary inside of a byte stops what comes from below, not what comes from above */
	t.s[MATCH] = STEP(.label = "match", .queue = 1, .verb = CHAIN_MASKED_FETCH_ADD, .remote = WORD(0, 0),
		.add = 1, .boundary = 0x40ull << 48, .line = 4);
	t.d.args++;
	t.d.nargs--;
	assert_fine();
	t.s[MATCH] = STEP(.label = "match", .queue = 1, .verb = CHAIN_MASKED_FETCH_ADD, .remote = WORD(0, 0),
		.add = 0x80ull << 48, .boundary = 0x40ull << 48, .line = 4);
	t.d.args++;
	t.d.nargs--;
	assert_wrong(WRONG(OPCODE, HIT, DECIDE, LINES(10, 5), NUMBERS(0x1), .what = "write"));
	/* a sum that cannot carry, and data that is added to the lane itself */
	t.s[MATCH] =
		STEP(.label = "match", .queue = 1, .verb = CHAIN_FETCH_ADD, .remote = WORD(0, 0), .line = 4);
	t.d.args++;
	t.d.nargs--;
	assert_fine();
	t.s[MATCH] =
		STEP(.label = "match", .queue = 1, .verb = CHAIN_FETCH_ADD, .remote = WORD(0, 0), .line = 4);
	t.a[0] = PLACE(FIELD("match", CHAIN_F_ADD, 0, 1));
	assert_wrong(WRONG(FOREIGN_REQUEST, HIT, DECIDE, LINES(10, 5), .name = "opcode"));
	/* an atomic of the values of a region leaves nothing here */
	t.s[COUNT] = STEP(.label = "count", .queue = 1, .verb = CHAIN_CAS, .remote = REGION(COUNTS, 8, 0),
		.line = 6);
	assert_fine();
}

/* Of an opcode in which bits are replaced or added, every value that comes of it, and no other */
static void bits(void **state)
{
	static const struct {
		uint8_t init, swap, mask; /* or */
		uint8_t add, boundary;
		unsigned opcode; /* which it can have then, 0: none but its own and a NOP's */
	} cases[] = {
		{WQE_OP_WRITE, .swap = 0x10, .mask = 0x18, .opcode = WQE_OP_READ},
		{WQE_OP_WRITE, .swap = 0x11, .mask = 0x10, .opcode = 0x18},
		{WQE_OP_WRITE, .swap = 0xff, .mask = 0x01, .opcode = WQE_OP_WRITE_IMM},
		{WQE_OP_WRITE, .swap = 0xf7, .mask = 0x08},
		{0, .swap = 0xff, .mask = 0x08},
		{0, .swap = 0xff, .mask = 0x18, .opcode = 0x18},
		{WQE_OP_WRITE, .add = 0x18, .boundary = 0x08, .opcode = WQE_OP_READ},
		{WQE_OP_WRITE, .add = 0x08, .boundary = 0x08},
		{WQE_OP_WRITE, .add = 0x08, .boundary = 0x88, .opcode = 0},
		{WQE_OP_WRITE, .add = 0x08, .boundary = 0x80, .opcode = WQE_OP_READ},
		{WQE_OP_WRITE, .add = 0xf8, .boundary = 0xff, .opcode = 0xf0},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint8_t init[48] = {[7] = cases[i].init};

		fresh();
		t.w.init = init;
		t.a[0] = PLACE(WORD(40, 1));
		t.s[MATCH] = STEP(.label = "match", .queue = 1, .remote = WORD(0, 0),
			.verb = cases[i].mask ? CHAIN_MASKED_CAS : CHAIN_MASKED_FETCH_ADD,
			.swap = (uint64_t)cases[i].swap << 56, .swap_mask = (uint64_t)cases[i].mask << 56,
			.add = (uint64_t)cases[i].add << 56, .boundary = (uint64_t)cases[i].boundary << 56,
			.line = 4);
		if (cases[i].opcode)
			assert_wrong(WRONG(OPCODE, HIT, DECIDE, LINES(10, 5), NUMBERS(cases[i].opcode),
				.what = "write"));
		else
			assert_fine();
	}
	/* a mask that nobody knows */
	t.a[0] = PLACE(FIELD("match", CHAIN_F_SWAP_MASK, 0, 1));
	t.s[MATCH] =
		STEP(.label = "match", .queue = 1, .verb = CHAIN_MASKED_CAS, .remote = WORD(0, 0), .line = 4);
	assert_wrong(WRONG(FOREIGN_REQUEST, HIT, DECIDE, LINES(10, 5), .name = "opcode"));
	t.a[0] = PLACE(FIELD("match", CHAIN_F_BOUNDARY, 0, 1));
	t.s[MATCH] = STEP(.label = "match", .queue = 1, .verb = CHAIN_MASKED_FETCH_ADD, .remote = WORD(0, 0),
		.line = 4);
	t.w.init = (const uint8_t[48]){[7] = WQE_OP_WRITE};
	assert_wrong(WRONG(FOREIGN_REQUEST, HIT, DECIDE, LINES(10, 5), .name = "opcode"));
}

/* Two queues look for a value one after the other: what the first leaves if it fails, others may find */
static void sought_twice(void **state)
{
	static const struct chain_queue_desc three[] = {{"reply", 2}, {"code", 0}, {"other", 0}};
	const struct chain_step seek = {.queue = 1,
		.verb = CHAIN_MASKED_CAS,
		.remote = WORD(0, 0),
		.compare_mask = 0xffull << 56,
		.swap = (uint64_t)WQE_OP_WRITE << 56,
		.swap_mask = 0xffull << 56,
		.line = 4};

	(void)state;
	for (unsigned wrong = 0; wrong < 4; wrong++) {
		fresh();
		t.w.init = (const uint8_t[48]){[7] = 2};
		t.a[0] = PLACE(WORD(40, 1));
		t.s[MATCH] = t.s[COUNT] = seek;
		t.s[MATCH].compare = 2ull << 56;
		t.s[COUNT].compare = 3ull << 56;
		t.s[NOTE] = good[DECIDE];
		t.s[DECIDE] = t.s[COUNT];
		t.s[COUNT] = STEP(.queue = 1, .verb = CHAIN_NOP);
		t.d.args++;
		t.d.nargs = 1;
		t.d.queues = three;
		t.d.nqueues = 3;
		t.s[COUNT].queue = 2;
		if (wrong & 1)
			t.s[DECIDE].queue = 2;
		if (wrong & 2)
			t.s[NOTE].queue = 2;
		if (wrong)
			assert_wrong(WRONG(OPCODE, HIT, NOTE, LINES(10, 5), NUMBERS(2), .what = "write"));
		else
			assert_fine();
	}
}

/* A CAS that looks for the carry in the lane leaves none behind */
static void lanes_that_carry(void **state)
{
	static const struct chain_queue_desc three[] = {{"reply", 2}, {"code", 0}, {"other", 0}};
	const struct chain_step test = {.label = "test",
		.queue = 1,
		.verb = CHAIN_MASKED_CAS,
		.remote = WORD(0, 0),
		.compare = 1ull << 56,
		.compare_mask = 0xffull << 56,
		.swap = (uint64_t)WQE_OP_WRITE << 56,
		.swap_mask = 0xffull << 56,
		.line = 20};
	static const uint8_t ones[48] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

	(void)state;
	for (unsigned wrong = 0; wrong < 9; wrong++) {
		fresh();
		t.s[MATCH] = STEP(.label = "match", .queue = 1, .verb = CHAIN_FETCH_ADD, .remote = WORD(0, 0),
			.add = 1);
		t.s[COUNT] = good[DECIDE];
		t.s[DECIDE] = test;
		t.d.args++;
		t.d.nargs--;
		switch (wrong) {
		case 1: /* two bytes */
			t.s[DECIDE].compare_mask |= 0xff;
			break;
		case 2: /* some bits */
			t.s[DECIDE].compare_mask = 0xfull << 56;
			break;
		case 3: /* nothing at all: the swap is certain, which is not made use of */
			t.s[DECIDE].compare_mask = 0;
			break;
		case 4:
			t.s[DECIDE].swap_mask = 0xfull << 56;
			break;
		case 5: /* a comparand from the client */
			t.a[1] = PLACE(FIELD("test", CHAIN_F_COMPARE, 0, 1));
			t.a[2] = PLACE(WORD(40, 1));
			break;
		case 6:
			t.s[DECIDE].flags = CHAIN_DORMANT;
			break;
		case 7: /* a word with a NOP becomes its opcode */
			t.s[LOOK].local[2] = PLACE(FIELD("test", CHAIN_F_OPCODE, 0, 1));
			t.s[LOOK].remote = PLACE(WORD(24, 0));
			t.s[LOOK].local[0] = PLACE(WORD(32, 3));
			t.s[LOOK].local[1] = PLACE(WORD(35, 5));
			t.a[1] = PLACE(WORD(40, 1));
			t.w.init = ones;
			break;
		case 8: /* the one who copies the lane would not be stopped */
			t.s[COUNT].queue = 2;
			t.d.queues = three;
			t.d.nqueues = 3;
			break;
		}
		if (wrong)
			assert_wrong(WRONG(OPCODE, HIT, COUNT, LINES(10, 5), NUMBERS(0x1), .what = "write"));
		else
			assert_fine();
	}
}

/* Lanes are taken on trust where a step is marked; nothing but opcodes is */
static void lanes_on_trust(void **state)
{
	(void)state;
	fresh();
	t.s[LOOK].local[2] = PLACE(WORD(0, 8));
	t.s[DECIDE].flags |= CHAIN_LANES;
	assert_fine();
	t.s[DECIDE].flags |= CHAIN_LANES;
	t.s[DECIDE].local[0] = PLACE(FIELD("count", CHAIN_F_LOCAL_ADDR, 7, 1));
	assert_wrong(WRONG(ADDRESS_OWN, COUNT, DECIDE, LINES(6, 5)));
	t.s[DECIDE].flags |= CHAIN_LANES;
	t.s[DECIDE].local[0] = PLACE(REGION(TABLE, 0, 1));
	assert_wrong(WRONG(NOT_WRITABLE, DECIDE, NO_STEP, LINES(5), .name = "table"));
}

static void control_segments(void **state)
{
	(void)state;
	fresh();
	t.s[MATCH].remote = PLACE(FIELD("hit", CHAIN_F_CTRL, 0, 0));
	t.s[MATCH].swap = (uint64_t)3 << 56 | (uint64_t)WQE_OP_WRITE << 24;
	assert_wrong(WRONG(CONTROL, HIT, MATCH, LINES(10, 4)));
	t.s[MATCH].remote = PLACE(FIELD("hit", CHAIN_F_CTRL, 0, 0));
	t.s[MATCH].swap = (uint64_t)3 << 56 | (uint64_t)WQE_OP_WRITE << 24;
	t.d.ignores_index = true;
	assert_fine();
	t.s[MATCH].remote = PLACE(FIELD("hit", CHAIN_F_CTRL, 0, 0));
	t.s[MATCH].swap = (uint64_t)4 << 56 | (uint64_t)WQE_OP_WRITE << 24;
	t.d.ignores_index = true;
	assert_wrong(WRONG(WQE_SIZE, HIT, MATCH, LINES(10, 4)));
	t.s[LOOK].local[2] = PLACE(FIELD("answer", CHAIN_F_INDEX, 0, 4));
	assert_wrong(WRONG(FOREIGN_REGION, ANSWER, LOOK, LINES(9, 3), .name = "index"));
	t.s[LOOK].remote = PLACE(WORD(24, 0));
	t.s[LOOK].local[2] = PLACE(FIELD("answer", CHAIN_F_INDEX, 0, 4));
	t.d.args = args + 2;
	t.d.nargs = 1;
	assert_fine();
}

/* On a device that ignores index and QPN all of a control segment can be written. A NOP may have any opmod */
static void opmods(void **state)
{
	const uint64_t whole = (uint64_t)3 << 56 | (uint64_t)WQE_OP_WRITE << 24;
	const struct chain_place mod = FIELD("hit", CHAIN_F_CTRL, 0, 1);

	(void)state;
	for (unsigned wrong = 0; wrong < 12; wrong++) {
		struct fault why = WRONG(FOREIGN_REGION, HIT, LOOK, LINES(10, 3), .name = "opmod");

		fresh();
		t.d.ignores_index = true;
		t.s[MATCH].remote = PLACE(FIELD("hit", CHAIN_F_CTRL, 0, 0));
		t.s[MATCH].swap = whole;
		t.s[DECIDE].local[0] = PLACE(WORD(7, 1));
		t.s[LOOK].local[2] = mod;
		switch (wrong) {
		case 1: /* the opmod after the CAS */
			t.s[DECIDE].remote = PLACE(REGION(TABLE, 0, 0));
			t.s[DECIDE].local[0] = mod;
			break;
		case 2: /* by a WRITE */
			t.s[NOTE].remote = mod;
			t.s[NOTE].local[0] = PLACE(REGION(TABLE, 0, 1));
			t.d.nargs = 2;
			break;
		case 3: /* the opcode by something else */
			t.s[DECIDE].local[0] = PLACE(FIELD("hit", CHAIN_F_OPCODE, 0, 1));
			break;
		case 4: /* a CAS that leaves another opmod */
			t.s[MATCH].swap |= 9;
			break;
		case 5: /* or one that replaces only bytes of its mask */
			t.s[MATCH].verb = CHAIN_MASKED_CAS;
			t.s[MATCH].swap_mask = 0xff000000;
			break;
		case 6: /* the control segment of another step, of the same queue, of another one, and scratch
			 */
			t.s[MATCH].remote = PLACE(FIELD("done", CHAIN_F_CTRL, 0, 0));
			t.s[MATCH].swap = (uint64_t)3 << 56 | (uint64_t)WQE_OP_WRITE_IMM << 24;
			t.s[DECIDE].local[0] = PLACE(FIELD("hit", CHAIN_F_OPCODE, 0, 1));
			break;
		case 7:
			t.s[MATCH].remote = PLACE(FIELD("note", CHAIN_F_CTRL, 0, 0));
			t.s[DECIDE].local[0] = PLACE(FIELD("hit", CHAIN_F_OPCODE, 0, 1));
			break;
		case 8:
			t.s[MATCH].remote = PLACE(WORD(24, 0));
			t.s[DECIDE].local[0] = PLACE(FIELD("hit", CHAIN_F_OPCODE, 0, 1));
			break;
		case 9: /* a step that always runs */
			t.s[HIT].flags = 0;
			break;
		case 10: /* values of the program */
			t.s[LOOK].local[2] = PLACE(WORD(24, 1));
			t.s[MATCH].swap |= 9;
			why = WRONG(OPMOD, HIT, MATCH, LINES(10, 4), NUMBERS(9, 0), .what = "write");
			break;
		case 11: /* other than 0, for a verb that has one */
			t.s[LOOK].local[2] = PLACE(FIELD("match", CHAIN_F_CTRL, 0, 1));
			t.s[LOOK].remote = PLACE(WORD(24, 0));
			t.s[LOOK].local[0] = PLACE(WORD(32, 3));
			t.s[LOOK].local[1] = PLACE(WORD(35, 5));
			t.s[MATCH] = good[MATCH];
			t.s[MATCH].verb = CHAIN_MASKED_CAS;
			t.d.args += 3;
			t.d.nargs = 0;
			why = WRONG(OPMOD, MATCH, LOOK, LINES(4, 3), NUMBERS(0, 9), .what = "masked_cas");
			break;
		}
		if (wrong == 1)
			why.other = LOOK;
		if (wrong)
			assert_wrong(why);
		else
			assert_fine();
	}
}

static void addresses(void **state)
{
	(void)state;
	fresh();
	t.s[LOOK].local[2] = PLACE(FIELD("match", CHAIN_F_REMOTE_ADDR, 7, 1));
	assert_wrong(WRONG(ADDRESS_OWN, MATCH, LOOK, LINES(4, 3)));
	t.s[LOOK].local[2] = PLACE(FIELD("count", CHAIN_F_LOCAL_ADDR, 7, 1));
	assert_wrong(WRONG(ADDRESS_OWN, COUNT, LOOK, LINES(6, 3)));
	t.s[LOOK].local[2] = PLACE(FIELD("done", CHAIN_F_REMOTE_ADDR, 7, 1));
	assert_wrong(WRONG(ADDRESS_SLOT, DONE, LOOK, LINES(11, 3)));
	t.s[DONE].local[0] = PLACE(REGION(TABLE, 4033, 64));
	assert_wrong(WRONG(REGION_END, DONE, NO_STEP, LINES(11), NUMBERS(4033, 4096, 4096), .name = "table"));
	t.s[DONE].local[0] = PLACE(REGION(TABLE, 4032, 64));
	assert_fine();
	t.s[DONE].local[0] = PLACE(FIELD("match", CHAIN_F_REMOTE_KEY, 0, 4));
	assert_wrong(WRONG(READS_KEY, DONE, NO_STEP, LINES(11)));
	t.s[DONE].local[0] = PLACE(FIELD("hit", CHAIN_F_LOCAL_KEY, 0, 4));
	assert_wrong(WRONG(READS_KEY, DONE, NO_STEP, LINES(11)));
	t.s[DONE].local[0] = PLACE(FIELD("match", CHAIN_F_REMOTE_ADDR, 7, 1));
	assert_wrong(WRONG(READS_ADDRESS, DONE, NO_STEP, LINES(11)));
	t.s[DONE].local[0] = PLACE(FIELD("done", CHAIN_F_REMOTE_ADDR, 0, 8));
	assert_wrong(WRONG(READS_ADDRESS, DONE, NO_STEP, LINES(11)));
	t.s[COUNT].verb = CHAIN_MASKED_CAS; /* of no bit */
	t.s[COUNT].remote = PLACE(FIELD("done", CHAIN_F_REMOTE_ADDR, 0, 0));
	assert_wrong(WRONG(READS_ADDRESS, COUNT, NO_STEP, LINES(6)));
	t.s[DONE].local[0] = PLACE(FIELD("hit", CHAIN_F_LOCAL_ADDR, 0, 8));
	assert_fine();
	t.s[DONE].local[0] = PLACE(FIELD("match", CHAIN_F_SWAP, 0, 8));
	assert_fine();
}

static void lengths(void **state)
{
	(void)state;
	fresh();
	t.s[HIT].local[0].max = 0;
	assert_wrong(WRONG(LENGTH_UNKNOWN, HIT, NO_STEP, LINES(10)));
	t.s[HIT].local[0].max = 1937;
	assert_wrong(WRONG(SLOT_END, HIT, NO_STEP, LINES(10), NUMBERS(2001, 2000)));
	t.s[HIT].local[0].max = 1936;
	assert_fine();
	t.s[HIT].local[0].max = UINT32_MAX;
	t.d.slot_size = 0;
	assert_wrong(WRONG(REPLY_BYTES, HIT, NO_STEP, LINES(10), NUMBERS(4294967359)));
	t.s[HIT].local[0] = PLACE(WORD(0, 8));
	assert_wrong(WRONG(LENGTH_BEYOND, HIT, LOOK, LINES(10, 3)));
	t.s[LOOK].local[0] = PLACE(FIELD("note", CHAIN_F_LOCAL_LEN, 1, 3));
	t.s[NOTE].local[0] = PLACE(REGION(HEAP, 0, 1));
	t.s[NOTE].remote = PLACE(WORD(16, 0));
	t.d.nargs = 2;
	assert_wrong(WRONG(LENGTH_BEYOND, NOTE, LOOK, LINES(7, 3)));
	t.s[LOOK].local[0] = PLACE(FIELD("note", CHAIN_F_LOCAL_LEN, 1, 3));
	t.s[NOTE].local[0] = PLACE(REGION(HEAP, 0, 1));
	assert_fine();
	t.s[LOOK].remote = PLACE(WORD(24, 0));
	t.a[1] = PLACE(WORD(24, 3));
	assert_wrong(WRONG(LENGTH_REQUEST, HIT, LOOK, LINES(10, 3)));
	t.s[NOTE] = STEP(.label = "note", .queue = 1, .verb = CHAIN_READ, .remote = REGION(HEAP, 0, 0),
		.local = {REGION(LOG, 0, 8)}, .line = 7);
	t.s[LOOK].remote = PLACE(WORD(24, 0));
	t.s[LOOK].local[0] = PLACE(FIELD("note", CHAIN_F_LOCAL_LEN, 1, 3));
	t.a[1] = PLACE(WORD(24, 3));
	t.d.nargs = 2;
	assert_wrong(WRONG(LENGTH_REQUEST, NOTE, LOOK, LINES(7, 3)));
	t.s[HIT].verb = CHAIN_SEND;
	t.s[HIT].remote = PLACE({0});
	t.s[MATCH].swap = (uint64_t)WQE_OP_SEND << 56;
	assert_fine();
}

/* A length that is published is one of 1 to .longest bytes, where all of it is read, in its order, from the
 * beginning of a bucket. What else is there is a client's */
static void lengths_that_are_published(void **state)
{
	static const struct {
		uint32_t least, max, from, longest;
		struct chain_span located;
		int why;
		bool picked, in_bucket;
	} cases[] = {
		{1, 60, 0, 60, {0, UINT64_MAX}, .why = 0},
		{1, 60, 0, 60, {16, 32}, .why = 0},
		{1, 60, 0, 61, {16, 32}, .why = 0}, /* of others, */
		{2, 60, 0, 61, {16, 32}, .why = 0},
		{1, 60, 16, 60, {16, 32}, .why = 0}, /* of these, */
		{1, 60, 0, 61, {0, UINT64_MAX}, .why = CHAIN_E_LENGTH_PUBLISHED},
		{1, 60, 16, 61, {16, 32}, .why = CHAIN_E_LENGTH_PUBLISHED},
		{2, 60, 16, 60, {16, 32}, .why = CHAIN_E_LENGTH_PUBLISHED},
		{0, 60, 16, 61, {16, 32}, .why = 0},                      /* at which the NIC looks, */
		{1, 60, 17, 60, {16, 32}, .why = CHAIN_E_LENGTH_REQUEST}, /* a part of one, */
		{1, 60, 15, 60, {16, 32}, .why = CHAIN_E_LENGTH_REQUEST},
		{1, 60, 18, 60, {16, 32}, .why = CHAIN_E_LENGTH_REQUEST},
		{1, 60, 19, 60, {16, 32}, .why = CHAIN_E_LENGTH_REQUEST}, /* the offset, */
		{0, 60, 20, 60, {16, 32}, .why = CHAIN_E_LENGTH_REQUEST},
		{1, 60, 24, 60, {16, 32}, .why = CHAIN_E_LENGTH_REQUEST}, /* the mark, */
		{1, 60, 28, 60, {16, 32}, .why = CHAIN_E_LENGTH_REQUEST},
		/* and where a client has it read, any of these, unless it is a bucket's */
		{1, 60, 0, 60, {16, 32}, CHAIN_E_LENGTH_REQUEST, .picked = true},
		{1, 60, 0, 60, {16, 32}, 0, .picked = true, .in_bucket = true},
		{1, 60, 0, 61, {16, 32}, CHAIN_E_LENGTH_PUBLISHED, .picked = true, .in_bucket = true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct chain_error err;
		int r;

		fresh();
		t.r[TABLE].stored.located = cases[i].located;
		t.r[TABLE].stored.longest = cases[i].longest;
		t.s[LOOK].remote.from = cases[i].from;
		t.s[HIT].local[0].least = cases[i].least;
		t.s[HIT].local[0].max = cases[i].max;
		t.s[LOOK].local[0].in_bucket = cases[i].in_bucket;
		if (!cases[i].picked)
			t.a[1] = PLACE(WORD(24, 5)); /* LOOK reads where the program has it */
		r = chain_check_bounds(&t.d, NULL, &err);
		if (r != (cases[i].why ? CHAIN_REFUSED : 0) || (r && (int)err.code != cases[i].why))
			fail_msg("case %zu: %s", i, r ? chain_error_name(err.code) : "accepted");
		if (r && cases[i].why == CHAIN_E_LENGTH_PUBLISHED) {
			assert_int_equal(err.number[0], cases[i].longest);
			assert_int_equal(err.number[1], cases[i].least);
			assert_int_equal(err.number[2], cases[i].max);
		}
	}
	fresh(); /* that of a bucket is one for its own step, and a copy of it is a client's */
	t.r[TABLE].stored.located = (struct chain_span){16, 32};
	t.r[TABLE].stored.longest = 60;
	t.s[HIT].local[0].least = 1;
	t.s[HIT].local[0].max = 60;
	t.s[LOOK].local[0].in_bucket = true;
	t.s[NOTE] = STEP(.label = "note", .queue = 1, .verb = CHAIN_READ,
		.remote = FIELD("hit", CHAIN_F_LOCAL_LEN, 0, 0),
		.local = {FIELD("done", CHAIN_F_LOCAL_LEN, 0, 4)}, .line = 7);
	t.s[DONE].local[0] = PLACE(REGION(TABLE, 0, 1));
	t.s[DONE].local[0].least = 1;
	t.s[DONE].local[0].max = 60;
	t.d.nargs = 2;
	assert_wrong(WRONG(LENGTH_REQUEST, DONE, NOTE, LINES(11, 7)));
	fresh(); /* the lowest byte alone may be 0 */
	t.r[TABLE].stored.located = (struct chain_span){16, 32};
	t.r[TABLE].stored.longest = 60;
	t.a[1] = PLACE(WORD(24, 5));
	t.s[LOOK].remote.from = 18;
	t.s[LOOK].local[0].from += 2;
	t.s[LOOK].local[0].len = 1;
	t.s[HIT].local[0].least = 1;
	t.s[HIT].local[0].max = 60;
	assert_wrong(WRONG(LENGTH_REQUEST, HIT, LOOK, LINES(10, 3)));
}

static void writes(void **state)
{
	(void)state;
	fresh();
	t.r[COUNTS].flags = 0;
	assert_wrong(WRONG(NOT_WRITABLE, COUNT, NO_STEP, LINES(6), .name = "counts"));
	t.r[LOG].flags = CHAIN_WRITABLE;
	assert_wrong(WRONG(NOT_STEERED, NOTE, NO_STEP, LINES(7), .name = "log"));
	/* a place that the region itself names is its owner's choice; but not where the client has it looked
	 * up */
	t.r[LOG].flags = CHAIN_WRITABLE;
	t.a[1] = PLACE(WORD(32, 5));
	t.a[2] = PLACE(WORD(40, 2));
	t.s[LOOK].local[2] = PLACE(FIELD("note", CHAIN_F_REMOTE_ADDR, 1, 7));
	assert_fine();
	t.r[LOG].flags = CHAIN_WRITABLE;
	t.a[2] = PLACE(WORD(40, 2));
	t.s[LOOK].local[2] = PLACE(FIELD("note", CHAIN_F_REMOTE_ADDR, 1, 7));
	assert_wrong(WRONG(NOT_STEERED, NOTE, NO_STEP, LINES(7), .name = "log"));
	/* nor where a carry of what it has looked up decides */
	t.r[LOG].flags = CHAIN_WRITABLE;
	t.a[2] = PLACE(WORD(40, 2));
	t.s[MATCH] = STEP(.queue = 1, .verb = CHAIN_FETCH_ADD, .add = 1, .remote = WORD(0, 0));
	t.s[DECIDE].local[0] = PLACE(FIELD("note", CHAIN_F_REMOTE_ADDR, 7, 1));
	t.d.args++;
	t.d.nargs--;
	assert_wrong(WRONG(NOT_STEERED, NOTE, NO_STEP, LINES(7), .name = "log"));
	t.s[LOOK].local[2] = PLACE(REGION(TABLE, 0, 7));
	assert_wrong(WRONG(NOT_WRITABLE, LOOK, NO_STEP, LINES(3), .name = "table"));
	t.d.regions = NULL;
	assert_wrong(WRONG(NOT_WRITABLE, COUNT, NO_STEP, LINES(6), .name = ""));
	t.s[COUNT] = STEP(.queue = 1, .verb = CHAIN_NOP);
	t.s[NOTE] = STEP(.queue = 1, .verb = CHAIN_NOP);
	t.d.nargs = 2;
	t.d.regions = NULL;
	t.d.slot_size = 0;
	assert_fine();
}

/* A step that runs if the fingerprint is the client's: @st takes the place of NOTE */
static void decide(struct chain_step st)
{
	fresh();
	t.a[1] = PLACE(WORD(32, 5)); /* LOOK reads where the program has it */
	t.d.nargs = 2;
	t.s[LOOK].local[0] = PLACE(WORD(24, 3));
	t.s[LOOK].local[1] = PLACE(WORD(40, 5));
	t.s[MATCH].swap = (uint64_t)chain_verb_info(st.verb)->opcode << 56;
	t.s[DECIDE].local[0] = PLACE(FIELD("note", CHAIN_F_OPCODE, 0, 1));
	t.s[NOTE] = st;
	t.s[NOTE].label = "note";
	t.s[NOTE].queue = 1;
	t.s[NOTE].flags |= CHAIN_DORMANT;
	t.s[NOTE].line = 7;
}

/* The declared maximum holds for what the program itself makes of a length */
static void lengths_that_are_known(void **state)
{
	static const uint8_t fits[48] = {[18] = 3, [19] = 232}, beyond[48] = {[18] = 3, [19] = 233},
			     top[48] = {[16] = 0x7f}, inline_[48] = {[16] = 0x80};

	static const uint64_t most[] = {0, 1001, 0x7f000000, 0x80000000}; /* or more by what was there */

	(void)state;
	for (unsigned mixed = 0; mixed < 2; mixed++) {
		const struct chain_place length = FIELD("hit", CHAIN_F_LOCAL_LEN, 0, 4 - mixed);
		const struct chain_step bring = STEP(.label = "note", .queue = 1, .verb = CHAIN_READ,
			.remote = WORD(16, 0), .local = {length}, .line = 7);

		for (unsigned i = 0; i < 4; i++) {
			fresh();
			t.d.nargs = 2;
			t.a[1] = PLACE(WORD(32, 5)); /* LOOK reads where the program has it */
			t.s[COUNT].local[0] = PLACE(WORD(8, 8));
			t.s[LOOK].local[0] =
				mixed ? PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 3, 1)) : PLACE(WORD(40, 1));
			t.s[LOOK].local[1] = PLACE(WORD(41, 7));
			t.s[NOTE] = bring;
			t.w.init = (const uint8_t *const[]){fits, beyond, top, inline_}[i];
			if (i == 0 || (i == 1 && mixed))
				assert_fine();
			else
				assert_wrong(WRONG(LENGTH_MAX, HIT, NOTE, LINES(10, 7),
					NUMBERS(most[i] + (i > 1), 1000)));
		}
	}
}

/* A region's writer vouches for a length that comes from there by one store, if no program stores there */
static void lengths_that_are_vouched(void **state)
{
	static const uint8_t init[48] = {[18] = 1}, above[48] = {[17] = 1, [18] = 1};
	const struct chain_place length = FIELD("hit", CHAIN_F_LOCAL_LEN, 1, 3);
	const struct chain_step bring = STEP(.label = "note", .queue = 1, .verb = CHAIN_READ,
		.remote = WORD(17, 0), .local = {length}, .line = 7);

	(void)state;
	for (unsigned i = 0; i < 26; i++) {
		bool fine = false;
		struct chain_error err;

		fresh();
		t.d.nargs = 2;
		t.a[1] = PLACE(WORD(32, 5)); /* LOOK reads where the program has it */
		t.s[LOOK].local[0] = PLACE(WORD(17, 3));
		t.s[LOOK].local[1] = PLACE(WORD(41, 5));
		t.s[COUNT] = STEP(.label = "count", .queue = 1, .verb = CHAIN_NOP);
		t.s[NOTE] = bring;
		t.w.init = init;
		t.s[HIT].local[0].least = 256;
		t.s[HIT].local[0].len = 256;
		t.s[HIT].local[0].max = 0xffffff;
		t.d.slot_size = 0;
		switch (i) {
		case 0:
			fine = true;
			break;
		case 1: /* two of three bytes, over what was there before, */
			t.s[LOOK].local[0] = PLACE(WORD(18, 2));
			t.s[LOOK].local[2] = PLACE({0});
			fine = true;
			break;
		case 2: /* and with the other one above them */
			t.s[LOOK].local[0] = PLACE(WORD(18, 2));
			t.w.init = above;
			break;
		case 3: /* two above what the program has */
			t.s[LOOK].local[0] = PLACE(WORD(17, 2));
			break;
		case 4: /* each by a piece, in this order, */
			t.s[NOTE].local[0] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 1, 1));
			t.s[NOTE].local[1] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 2, 2));
			fine = true;
			break;
		case 5: /* and the other way round, */
			t.s[NOTE].local[0] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 3, 1));
			t.s[NOTE].local[1] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 2, 1));
			t.s[NOTE].local[2] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 1, 1));
			fine = true;
			break;
		case 6: /* but not by two steps, */
			t.s[NOTE].local[0] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 1, 1));
			t.s[COUNT] = bring;
			t.s[COUNT].label = "count";
			t.s[COUNT].remote = PLACE(WORD(18, 0));
			t.s[COUNT].local[0] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 2, 2));
			break;
		case 7: /* or of two pieces that two steps have brought */
			t.s[LOOK].local[0] = PLACE(WORD(17, 1));
			t.s[COUNT] = t.s[LOOK];
			t.s[COUNT].label = "count";
			t.s[COUNT].local[0] = PLACE(WORD(18, 2));
			t.s[COUNT].local[1] = PLACE(WORD(41, 6));
			t.s[NOTE].local[0] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 1, 1));
			t.s[NOTE].local[1] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 2, 2));
			break;
		case 8: /* what others store there */
			t.r[TABLE].stored.any = (struct chain_span){0, 1};
			t.s[LOOK].remote.from = 0;
			t.s[LOOK].local[0] = PLACE(WORD(17, 3));
			break;
		case 9:
			t.r[TABLE].stored.any = (struct chain_span){2, 3};
			t.a[1] = PLACE(FIELD("look", CHAIN_F_REMOTE_ADDR, 3, 5));
			break;
		case 10: /* what the program stores there, at a place that is computed */
			t.s[LOOK].remote = PLACE(REGION(LOG, 0, 0));
			t.s[COUNT] = STEP(.label = "count", .queue = 1, .verb = CHAIN_WRITE,
				.remote = REGION(LOG, 64, 0), .local = {WORD(0, 1)});
			t.a[1] = PLACE(FIELD("count", CHAIN_F_REMOTE_ADDR, 6, 2));
			break;
		case 11: /* and elsewhere */
			t.s[LOOK].remote = PLACE(REGION(LOG, 0, 0));
			t.s[COUNT] = STEP(.label = "count", .queue = 1, .verb = CHAIN_WRITE,
				.remote = REGION(LOG, 64, 0), .local = {WORD(0, 1)});
			fine = true;
			break;
		case 12: /* by an atomic, whose bytes are those that it can change */
		case 13:
		case 14:
		case 15:
			t.s[LOOK].remote = PLACE(REGION(COUNTS, 0, 0));
			t.s[COUNT] = STEP(.label = "count", .queue = 1,
				.verb = i == 12   ? CHAIN_FETCH_ADD
					: i == 15 ? CHAIN_CAS
						  : CHAIN_MASKED_FETCH_ADD,
				.remote = REGION(COUNTS, 0, 0), .add = i == 14 ? 1ull << 32 : 1ull,
				.boundary = i == 13 ? 1ull << 15 : 1ull << 39 | 1ull << 7);
			fine = i == 14;
			break;
		case 16:
		case 17:
			t.s[LOOK].remote = PLACE(REGION(COUNTS, 0, 0));
			t.s[COUNT] = STEP(.label = "count", .queue = 1, .verb = CHAIN_MASKED_CAS,
				.remote = REGION(COUNTS, 0, 0), .swap_mask = i == 16 ? 0xff : 0xff000000,
				.compare_mask = 0xff);
			fine = i == 17;
			break;
		case 18: /* what is added to it in a word */
		case 19:
		case 20:
			t.s[COUNT] = STEP(.label = "count", .queue = 1,
				.verb = i == 18 ? CHAIN_FETCH_ADD : CHAIN_MASKED_FETCH_ADD,
				.remote = WORD(16, 0), .add = i == 20 ? 1ull << 32 : 1 << 8,
				.boundary = i == 19 ? 1ull << 31 : 1ull << 39);
			fine = i == 20;
			break;
		case 21: /* or swapped in */
		case 22:
		case 23:
			t.s[COUNT] = STEP(.label = "count", .queue = 1, .verb = CHAIN_MASKED_CAS,
				.remote = WORD(16, 0), .compare_mask = 0xff,
				.swap_mask = i == 21   ? 0xffull << 24
					     : i == 22 ? 0x0full << 24
						       : 0xffull << 32);
			fine = i == 23;
			break;
		case 24: /* by a WRITE of one piece, and of two */
		case 25:
			t.s[NOTE] = STEP(.label = "note", .queue = 1, .verb = CHAIN_WRITE, .remote = length,
				.local = {WORD(17, 3)}, .line = 7);
			if (i == 25) {
				t.s[NOTE].local[0] = PLACE(WORD(17, 1));
				t.s[NOTE].local[1] = PLACE(WORD(18, 2));
			}
			fine = i == 24;
			break;
		}
		if (fine && chain_check_bounds(&t.d, NULL, &err))
			fail_msg("%u is refused: %s", i, chain_error_name(err.code));
		if (fine)
			continue;
		assert_int_equal(chain_check_bounds(&t.d, NULL, &err), CHAIN_REFUSED);
		/* of a place that the client chose */
		assert_int_equal(
			err.code, i == 9 || i == 10 ? CHAIN_E_LENGTH_REQUEST : CHAIN_E_LENGTH_UNVOUCHED);
	}
}

/* What the program makes of a length counts beside what a region makes of the same bytes */
static void lengths_of_both(void **state)
{
	static const uint8_t init[48] = {[17] = 0x20, [18] = 0x00, [19] = 0xc8};
	const struct chain_step bring = STEP(.label = "note", .queue = 1, .verb = CHAIN_READ,
		.remote = WORD(17, 0), .local = {FIELD("hit", CHAIN_F_LOCAL_LEN, 1, 3)}, .line = 7);
	const struct chain_step region = STEP(.label = "count", .queue = 1, .verb = CHAIN_READ,
		.remote = REGION(HEAP, 8, 0), .local = {WORD(17, 3)}, .line = 6);
	const struct chain_step swap = STEP(.label = "count", .queue = 1, .verb = CHAIN_MASKED_CAS,
		.remote = WORD(16, 0), .compare = 1ull << 24, .compare_mask = 0xffffff00,
		.swap = 200ull << 24, .swap_mask = 0xffffff00, .line = 6);

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		fresh();
		t.d.nargs = 2;
		t.a[1] = PLACE(WORD(32, 5));
		t.s[LOOK].local[0] = PLACE(WORD(17, 3));
		t.s[LOOK].local[1] = PLACE(WORD(41, 7));
		t.s[COUNT] = region;
		t.s[NOTE] = bring;
		t.s[HIT].local[0].max = 0xff;
		switch (i) {
		case 0: /* a region's alone, for certain */
			t.s[HIT].local[0].least = 1;
			assert_fine();
			continue;
		case 1: /* what was there before, if the region's does not come */
			t.w.init = init;
			break;
		case 2: /* the program replaces what the region has */
			t.s[COUNT] = swap;
			t.s[HIT].local[0].max = 199;
			break;
		case 3:
			t.s[COUNT] = swap;
			t.s[HIT].local[0].max = 200;
			break;
		case 4: /* 0, if neither LOOK nor COUNT brings anything */
			t.s[LOOK].local[0] = PLACE(WORD(24, 3));
			t.s[COUNT].flags |= CHAIN_DORMANT;
			t.s[HIT].local[0].least = 1;
			break;
		case 5: /* when the step is executed, whatever comes afterwards */
			t.s[LOOK].local[0] = PLACE(WORD(24, 3));
			t.s[COUNT] = bring;
			t.s[COUNT].label = "count";
			t.s[COUNT].line = 6;
			t.s[NOTE] = STEP(.queue = 1, .verb = CHAIN_NOP);
			t.s[HIT].local[0].least = 1;
			break;
		}
		if (i == 3)
			assert_fine();
		else
			assert_wrong(i >= 4 ? WRONG(LENGTH_LEAST, HIT, i == 4 ? NOTE : COUNT,
						      LINES(10, i == 4 ? 7 : 6), NUMBERS(0, 1))
					    : WRONG(LENGTH_MAX, HIT, NOTE, LINES(10, 7),
						      NUMBERS(i == 1 ? 0x2000c8 : 200, i == 1 ? 0xff : 199)));
	}
}

/* Nor may a region set the bit by which a segment is inline: the reply would have the key that follows it */
static void lengths_are_no_inline_data(void **state)
{
	(void)state;
	fresh();
	t.s[LOOK].local[0] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 0, 4));
	t.s[LOOK].local[2] = PLACE(WORD(0, 6));
	assert_wrong(WRONG(LENGTH_INLINE, HIT, LOOK, LINES(10, 3)));
	t.s[LOOK].local[0] = PLACE(FIELD("note", CHAIN_F_LOCAL_LEN, 0, 4));
	t.s[NOTE].local[0] = PLACE(REGION(HEAP, 0, 1));
	assert_wrong(WRONG(LENGTH_INLINE, NOTE, LOOK, LINES(7, 3)));
}

/* A client that decides whether another length is used, or how much is added, has chosen it */
static void lengths_that_are_decided(void **state)
{
	const struct chain_step bring = STEP(.verb = CHAIN_READ, .remote = WORD(17, 0),
		.local = {FIELD("hit", CHAIN_F_LOCAL_LEN, 1, 3)});

	(void)state;
	decide(bring);
	t.s[COUNT].local[0] = PLACE(WORD(8, 8));
	t.w.init = (const uint8_t[48]){[18] = 2}; /* 512, or with a part of what was there 513 */
	assert_fine();
	decide(bring);
	t.s[COUNT].local[0] = PLACE(WORD(8, 8));
	t.w.init = (const uint8_t[48]){[18] = 4};
	assert_wrong(WRONG(LENGTH_MAX, HIT, NOTE, LINES(10, 7), NUMBERS(1025, 1000)));
	decide(bring);
	t.s[COUNT].local[0] = PLACE(WORD(8, 8));
	t.w.init = (const uint8_t[48]){[18] = 2};
	t.s[HIT].local[0].max = 0;
	assert_wrong(WRONG(LENGTH_REQUEST, HIT, NOTE, LINES(10, 7)));
	/* a length of a region is taken at its word, */
	decide(bring);
	t.s[COUNT] = STEP(.label = "count", .queue = 1, .verb = CHAIN_READ, .remote = REGION(HEAP, 8, 0),
		.local = {WORD(16, 8)}, .line = 6);
	assert_fine();
	/* unless the chain itself adds to it there, */
	decide(bring);
	assert_wrong(WRONG(LENGTH_REQUEST, HIT, NOTE, LINES(10, 7)));
	/* but not what the client adds to it, or has the chain add to it */
	decide(STEP(.verb = CHAIN_FETCH_ADD, .remote = WORD(24, 0), .add = 1));
	t.s[DECIDED] = bring;
	t.s[DECIDED].remote.from = 25;
	t.s[DECIDED].queue = 1;
	t.s[DECIDED].label = "bring";
	t.s[DECIDED].line = 8;
	assert_wrong(WRONG(LENGTH_REQUEST, HIT, DECIDED, LINES(10, 8)));
}

/* Checks @t, and what clients influence in region @i afterwards */
static void assert_theirs(unsigned i, uint64_t from, uint64_t to)
{
	struct chain_bounds b;
	struct chain_error err;

	if (chain_check_bounds(&t.d, &b, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
	assert_int_equal(b.stored[i].theirs.from, from);
	assert_int_equal(b.stored[i].theirs.to, to);
}

static void what_is_theirs(void **state)
{
	const struct chain_step store =
		STEP(.verb = CHAIN_WRITE, .remote = REGION(COUNTS, 24, 0), .local = {WORD(32, 8)});
	static struct chain_region many[CHAIN_MAX_WINDOWS + 1];

	(void)state;
	fresh();
	assert_theirs(LOG, 0, UINT64_MAX); /* stored where the client wants it */
	assert_theirs(COUNTS, 0, 0);
	decide(STEP(.verb = CHAIN_FETCH_ADD, .remote = REGION(COUNTS, 16, 0), .add = 1));
	assert_theirs(COUNTS, 16, 24);
	decide(STEP(.verb = CHAIN_NOP));
	t.s[COUNT] =
		STEP(.label = "count", .queue = 1, .verb = CHAIN_FETCH_ADD, .remote = REGION(COUNTS, 8, 0));
	t.a[0] = PLACE(FIELD("count", CHAIN_F_ADD, 0, 8));
	assert_theirs(COUNTS, 8, 16);
	/* a place above and one below */
	decide(store);
	t.s[DECIDED] = store;
	t.s[DECIDED].queue = 1;
	t.s[DECIDED].remote.from = 40;
	assert_theirs(COUNTS, 24, 45); /* five bytes of the client */
	t.s[DECIDED].remote.from = 8;
	assert_theirs(COUNTS, 8, 32);
	/* what a carry and a comparison pass on in a word of the region, whose lowest byte is the client's */
	for (unsigned i = 0; i < 8; i++) {
		static const enum chain_verb verbs[] = {CHAIN_FETCH_ADD, CHAIN_MASKED_FETCH_ADD,
			CHAIN_MASKED_FETCH_ADD, CHAIN_MASKED_CAS, CHAIN_MASKED_CAS, CHAIN_CAS, CHAIN_CAS,
			CHAIN_FETCH_ADD};

		fresh();
		t.d.nargs = 2;
		t.a[0] = PLACE(WORD(40, 1));
		t.a[1] = PLACE(WORD(32, 5));
		t.s[LOOK].local[2] =
			i == 2 ? PLACE(FIELD("pass", CHAIN_F_BOUNDARY, 7, 1)) : PLACE(WORD(0, 7));
		t.s[NOTE] = STEP(.label = "note", .queue = 1, .verb = CHAIN_WRITE,
			.remote = REGION(COUNTS, i == 6 ? 16 : 24, 0), .local = {WORD(40, 1)});
		t.s[DECIDED] = STEP(.label = "pass", .queue = 1, .verb = verbs[i],
			.remote = REGION(COUNTS, 24, 0), .add = 1, .boundary = 1 << 7,
			.compare_mask = i == 3 ? 0xff : 0xff00, .swap_mask = 0xffull << 56);
		if (i == 7) /* with an old value that goes to a region */
			t.s[DECIDED].local[0] = PLACE(REGION(LOG, 8, 8));
		assert_theirs(COUNTS, i == 6 ? 16 : 24, i == 1 || i == 4 ? 25 : i == 6 ? 17 : 32);
	}
	/* what others store, and what is read beside it */
	for (unsigned from = 0; from < 24; from += 8) {
		decide(STEP(.verb = CHAIN_NOP));
		t.r[TABLE].stored.theirs = t.r[TABLE].stored.any = (struct chain_span){8, 16};
		t.s[LOOK].remote.from = from;
		t.s[LOOK].local[0] = PLACE(FIELD("hit", CHAIN_F_LOCAL_LEN, 1, 3));
		t.s[LOOK].local[1] = PLACE(WORD(40, 5));
		t.s[LOOK].local[2] = PLACE({0});
		if (from == 8)
			assert_wrong(WRONG(LENGTH_REQUEST, HIT, LOOK, LINES(10, 3)));
		else
			assert_fine();
	}
	/* whatever runs only if a WAIT or SEND_EN does */
	decide(STEP(.verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END));
	t.s[DECIDED] = store;
	t.s[DECIDED].queue = 1;
	assert_theirs(COUNTS, 24, 32);
	/* a CAS that is decided, and what it leaves */
	decide(STEP(.verb = CHAIN_CAS, .remote = WORD(32, 0)));
	t.a[1] = PLACE(WORD(16, 1));
	t.s[COUNT] = STEP(.queue = 1, .verb = CHAIN_NOP);
	t.s[DECIDED] = store;
	t.s[DECIDED].queue = 1;
	assert_theirs(COUNTS, 24, 32);
	/* lanes that the region decides alone, and lanes that are copied because the client wants it so */
	for (unsigned clients = 0; clients < 2; clients++) {
		decide(STEP(.verb = CHAIN_READ, .remote = WORD(47, 0), .flags = CHAIN_LANES,
			.local = {FIELD("second", CHAIN_F_OPCODE, 0, 1)}));
		t.s[DECIDED] = store;
		t.s[DECIDED].flags = CHAIN_DORMANT;
		t.s[DECIDED].label = "second";
		t.s[DECIDED].queue = 1;
		t.s[DECIDED].local[0] = PLACE(WORD(8, 8));
		t.a[1] = PLACE(WORD(16, 1));
		if (!clients)
			t.a[0] = PLACE(WORD(17, 7));
		assert_theirs(COUNTS, clients ? 24 : 0, clients ? 32 : 0);
	}
	fresh();
	t.d.regions = many;
	t.d.nregions = CHAIN_MAX_WINDOWS + 1;
	assert_wrong(WRONG(REGIONS, NO_STEP, NO_STEP, NUMBERS(9, 8)));
}

/* The next case of what a long copy from region to region brings along. TABLE has something of clients */
static void copies(struct chain_step copy)
{
	decide(STEP(.verb = CHAIN_NOP));
	t.r[TABLE].size = t.r[COUNTS].size = 0;
	t.r[TABLE].stored.theirs = (struct chain_span){1 << 20, (1 << 20) + 8};
	t.r[TABLE].stored.any = (struct chain_span){0, 1 << 24};
	t.s[DECIDED] = copy;
	t.s[DECIDED].queue = 1;
}

static void what_is_copied_between_regions(void **state)
{
	enum { LONG = 1 << 30, THEIRS = 1 << 20 };
	const struct chain_step to = STEP(.verb = CHAIN_WRITE, .remote = REGION(COUNTS, 64, 0),
					.local = {REGION(TABLE, 0, LONG)}),
				from = STEP(.verb = CHAIN_READ, .remote = REGION(TABLE, 0, 0),
					.local = {REGION(COUNTS, 64, LONG)});

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		copies(i ? to : from); /* of more than a packet: a byte of clients may get anywhere */
		assert_theirs(COUNTS, 64, 64 + LONG);
		/* what ends among them, what is not there at all */
		copies(i ? to : from);
		*(i ? &t.s[DECIDED].local[0] : &t.s[DECIDED].remote) =
			PLACE(REGION(TABLE, THEIRS + 7, i ? 100 : 0));
		assert_theirs(COUNTS, 64, i ? 65 : 64 + LONG);
		copies(i ? to : from);
		t.s[DECIDED].local[0].len = THEIRS;
		assert_theirs(COUNTS, 0, 0);
		/* what is behind the destination */
		copies(i ? to : from);
		t.s[DECIDED].local[0].len = THEIRS;
		t.r[COUNTS].stored.theirs = t.r[COUNTS].stored.any =
			(struct chain_span){64 + THEIRS, 72 + THEIRS};
		assert_theirs(COUNTS, 64 + THEIRS, 72 + THEIRS);
		copies(i ? to : from);
		*(i ? &t.s[DECIDED].local[0] : &t.s[DECIDED].remote) =
			PLACE(REGION(TABLE, THEIRS + 8, i ? LONG : 0));
		assert_theirs(COUNTS, 0, 0);
	}
	/* several, one behind the other */
	copies(to);
	t.s[DECIDED].local[0].len = 16;
	t.s[DECIDED].local[1] = PLACE(REGION(TABLE, THEIRS - 8, 32));
	assert_theirs(COUNTS, 64 + 16 + 8, 64 + 16 + 16);
	t.s[DECIDED].local[1].len = CHAIN_PACKET - 16;
	assert_theirs(COUNTS, 64 + 16 + 8, 64 + 16 + 16);
	t.s[DECIDED].local[1].len++;
	assert_theirs(COUNTS, 64, 64 + CHAIN_PACKET + 1);
	copies(from);
	t.s[DECIDED].remote = PLACE(REGION(TABLE, THEIRS + 7, 0));
	t.s[DECIDED].local[0] = PLACE(REGION(COUNTS, 64, 8));
	t.s[DECIDED].local[1] = PLACE(REGION(COUNTS, 1024, CHAIN_PACKET - 7));
	assert_theirs(COUNTS, 64, 1024 + CHAIN_PACKET - 7);
	copies(from);
	t.s[DECIDED].remote.from = THEIRS - 8;
	t.s[DECIDED].local[0].len = 12;
	t.s[DECIDED].local[1] = PLACE(REGION(COUNTS, 128, 12));
	assert_theirs(COUNTS, 64 + 8, 128 + 4);
	/* a mark beside what is published, and that */
	copies(to);
	t.r[TABLE].stored.theirs = (struct chain_span){0};
	t.r[TABLE].stored.located = (struct chain_span){16, 32};
	t.r[TABLE].stored.longest = 60;
	t.s[DECIDED].local[0].len = CHAIN_PACKET;
	assert_theirs(COUNTS, 64 + 16, 64 + 32);
	/* from where the client wants it */
	fresh();
	t.r[COUNTS].size = 0;
	t.d.nargs = 2;
	t.s[LOOK].local[2] = PLACE(REGION(COUNTS, 64, LONG));
	assert_theirs(COUNTS, 64, 64 + LONG);
	/* over itself, and there and back: by one byte for each time, but for so many times nobody waits */
	for (unsigned i = 0; i < 2; i++) {
		copies(STEP(.verb = CHAIN_WRITE, .remote = REGION(COUNTS, 1, 0),
			.local = {REGION(i ? LOG : COUNTS, 0, CHAIN_PACKET)}));
		t.s[COUNT] = i ? STEP(.queue = 1, .verb = CHAIN_READ, .remote = REGION(COUNTS, 0, 0),
					 .local = {REGION(LOG, 0, CHAIN_PACKET)})
			       : STEP(.queue = 1, .verb = CHAIN_NOP);
		t.r[COUNTS].stored.theirs = t.r[COUNTS].stored.any = (struct chain_span){0, 1};
		assert_theirs(COUNTS, 0, i ? UINT64_MAX : CHAIN_PACKET + 1);
	}
}

/* A copy that begins at byte @from of a region, or of two places in it, and is written at its byte @to */
static void copies_within(uint64_t from, uint32_t first, uint32_t second, uint64_t to)
{
	copies(STEP(.verb = CHAIN_WRITE, .remote = REGION(COUNTS, to, 0),
		.local = {REGION(COUNTS, from, first)}));
	t.s[DECIDED].label = "copy";
	if (second)
		t.s[DECIDED].local[1] = PLACE(REGION(COUNTS, 4096, second));
}

static void what_overlaps(void **state)
{
	(void)state;
	copies_within(0, CHAIN_PACKET, 0, 8);
	assert_fine();
	copies_within(0, CHAIN_PACKET + 1, 0, 8);
	assert_wrong(WRONG(COPY_OVERLAPS, DECIDED, NO_STEP, NUMBERS(CHAIN_PACKET + 1, 0, 8)));
	copies_within(8, CHAIN_PACKET + 1, 0, 0);
	assert_wrong(WRONG(COPY_OVERLAPS, DECIDED, NO_STEP, NUMBERS(CHAIN_PACKET + 1, 8, 0)));
	copies_within(0, CHAIN_PACKET + 1, 0, CHAIN_PACKET);
	assert_wrong(WRONG(COPY_OVERLAPS, DECIDED, NO_STEP, NUMBERS(CHAIN_PACKET + 1, 0, CHAIN_PACKET)));
	copies_within(0, CHAIN_PACKET + 1, 0, CHAIN_PACKET + 1);
	assert_fine();
	copies_within(CHAIN_PACKET + 1, CHAIN_PACKET + 1, 0, 0);
	assert_fine();
	copies_within(0, CHAIN_PACKET + 1, 0, 8);
	t.s[DECIDED].local[0].index = TABLE; /* another region */
	assert_fine();
	/* one of several sources; which of them it is does not count, but that all are more than a packet */
	copies_within(0, 8, CHAIN_PACKET - 8, 0);
	assert_fine();
	copies_within(0, 8, CHAIN_PACKET - 7, 0);
	assert_wrong(WRONG(COPY_OVERLAPS, DECIDED, NO_STEP, NUMBERS(CHAIN_PACKET + 1, 0, 0)));
	copies_within(0, 8, CHAIN_PACKET, 4096 + CHAIN_PACKET - 1);
	assert_wrong(WRONG(
		COPY_OVERLAPS, DECIDED, NO_STEP, NUMBERS(CHAIN_PACKET + 8, 4096, 4096 + CHAIN_PACKET - 1)));
	copies_within(0, 8, CHAIN_PACKET, 4096 + CHAIN_PACKET);
	assert_fine();
	/* a place that is computed */
	copies_within(0, CHAIN_PACKET + 1, 0, 8);
	t.s[LOOK].local[2] = PLACE(FIELD("copy", CHAIN_F_REMOTE_ADDR, 3, 5));
	assert_fine();
	copies_within(0, CHAIN_PACKET + 1, 0, 8);
	t.s[LOOK].local[2] = PLACE(FIELD("copy", CHAIN_F_LOCAL_ADDR, 3, 5));
	assert_fine();
}

static void no_memory(void **state)
{
	struct chain_error err;

	(void)state;
	fresh();
	NOMEM_TRY(-ENOMEM, chain_check_bounds(&t.d, NULL, &err));
	assert_int_equal(nomem_result, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(needs),
		cmocka_unit_test(opcodes),
		cmocka_unit_test(old_values),
		cmocka_unit_test(calculations),
		cmocka_unit_test(calculated_from_others),
		cmocka_unit_test(masks),
		cmocka_unit_test(bits),
		cmocka_unit_test(sought_twice),
		cmocka_unit_test(lanes_that_carry),
		cmocka_unit_test(lanes_on_trust),
		cmocka_unit_test(control_segments),
		cmocka_unit_test(opmods),
		cmocka_unit_test(addresses),
		cmocka_unit_test(lengths),
		cmocka_unit_test(lengths_that_are_published),
		cmocka_unit_test(writes),
		cmocka_unit_test(lengths_that_are_known),
		cmocka_unit_test(lengths_that_are_vouched),
		cmocka_unit_test(lengths_of_both),
		cmocka_unit_test(lengths_are_no_inline_data),
		cmocka_unit_test(lengths_that_are_decided),
		cmocka_unit_test(what_is_theirs),
		cmocka_unit_test(what_is_copied_between_regions),
		cmocka_unit_test(what_overlaps),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
