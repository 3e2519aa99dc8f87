/* SPDX-License-Identifier: BSD-2-Clause */
/* A put, and what is wrong with it: each rule of a publish is broken by a chain that is right otherwise */
#include "reddnd/chain/verify/bounds.h"

#include "mlx5/wqe.h"
#include "tests/chain/assert-error.h"
#include "tests/lib/nomem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/cmocka.h"

/* clang-format off */
#define WORD(at, n) {.kind = CHAIN_AT_SCRATCH, .name = "w", .from = (at), .len = (n)}
#define REGION(i, at, n) {.kind = CHAIN_AT_REGION, .index = (i), .from = (at), .len = (n)}
#define FIELD(step, f, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = (f), .from = (at), .len = (n)}
#define LENGTH(at, n) {.kind = CHAIN_AT_LENGTH, .from = (at), .len = (n)}
#define SLOT(at) {.kind = CHAIN_AT_SLOT, .from = (at)}
#define PLACE(...) ((struct chain_place)__VA_ARGS__)
#define TURNED(f, to) FIELD("pub", f, (to), 1)

enum { BUCKETS, HEAP, LOG, REGIONS };
enum { MATCHED = 0, WAS = 8, SPARE = 16, SCRATCH = 64 };

static const struct chain_region regions[REGIONS] = {
	[BUCKETS] = {.name = "buckets", .flags = CHAIN_WRITABLE | CHAIN_STEERED, .size = 4096}, [HEAP] = {.name = "heap"},
	[LOG] = {.name = "log", .flags = CHAIN_WRITABLE},
};

enum { HEAD, NEXT, COPY, LOOK, COUNT, MATCH, DECIDE, PUB, OTHER, ANSWER, DONE, STEPS };
static const struct chain_step good[STEPS] = {
	[HEAD] = {.queue = 0, .verb = CHAIN_WAIT},
	[NEXT] = {.queue = 0, .verb = CHAIN_SEND_EN, .target = 1, .upto = CHAIN_UPTO_END},
	[COPY] = {.label = "copy", .queue = 1, .verb = CHAIN_READ, .remote = FIELD("look", CHAIN_F_REMOTE_ADDR, 5, 0),
		  .local = {FIELD("pub", CHAIN_F_REMOTE_ADDR, 5, 3)}},
	[LOOK] = {.label = "look", .queue = 1, .verb = CHAIN_READ, .remote = REGION(BUCKETS, 0, 0),
		  .local = {TURNED(CHAIN_F_COMPARE, 7), TURNED(CHAIN_F_COMPARE, 6), TURNED(CHAIN_F_COMPARE, 5),
			    TURNED(CHAIN_F_COMPARE, 4), TURNED(CHAIN_F_COMPARE, 3), TURNED(CHAIN_F_COMPARE, 2),
			    TURNED(CHAIN_F_COMPARE, 1), TURNED(CHAIN_F_COMPARE, 0), WORD(MATCHED, 7)}},
	[COUNT] = {.label = "count", .queue = 1, .verb = CHAIN_READ, .remote = LENGTH(1, 0),
		   .local = {TURNED(CHAIN_F_SWAP, 7), TURNED(CHAIN_F_SWAP, 6), TURNED(CHAIN_F_SWAP, 5)}},
	[MATCH] = {.label = "match", .queue = 1, .verb = CHAIN_CAS, .remote = WORD(MATCHED, 0),
		   .swap = (uint64_t)WQE_OP_CAS << 56},
	[DECIDE] = {.label = "decide", .queue = 1, .verb = CHAIN_READ, .flags = CHAIN_SIGNALLED, .remote = WORD(7, 0),
		    .local = {FIELD("pub", CHAIN_F_OPCODE, 0, 1)}},
	[PUB] = {.label = "pub", .queue = 1, .verb = CHAIN_CAS, .flags = CHAIN_DORMANT, .remote = REGION(BUCKETS, 0, 0),
		 .local = {WORD(WAS, 8)}, .publishes = true, .extent = true, .in_bucket = true},
	[OTHER] = {.label = "other", .queue = 1, .verb = CHAIN_NOP},
	[ANSWER] = {.label = "answer", .queue = 1, .verb = CHAIN_SEND_EN, .upto = CHAIN_UPTO_NEXT_HEAD},
	[DONE] = {.label = "done", .verb = CHAIN_WRITE_IMM, .flags = CHAIN_SIGNALLED, .remote = SLOT(0),
		  .local = {WORD(WAS, 8)}},
};
static const struct chain_place args[] = {
	FIELD("match", CHAIN_F_COMPARE, 2, 6),
	FIELD("look", CHAIN_F_REMOTE_ADDR, 5, 3),
};
/* clang-format on */

static const uint8_t armed[SCRATCH] = {[WAS] = 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
static const struct chain_queue_desc queues[] = {{"reply", 2}, {"code", 0}};

static struct {
	struct chain_step s[STEPS];
	struct chain_region r[REGIONS];
	struct chain_place a[4];
	struct chain_word w;
	struct chain_desc d;
} t;

static void fresh(void)
{
	memcpy(t.s, good, sizeof(t.s));
	memcpy(t.r, regions, sizeof(t.r));
	memset(t.a, 0, sizeof(t.a));
	memcpy(t.a, args, sizeof(args));
	t.w = (struct chain_word){"w", SCRATCH, armed};
	t.d = (struct chain_desc){.name = "put",
		.queues = queues,
		.nqueues = 2,
		.words = &t.w,
		.nwords = 1,
		.nregions = REGIONS,
		.regions = t.r,
		.slot_size = 64,
		.steps = t.s,
		.nsteps = STEPS,
		.args = t.a,
		.nargs = 2,
		.payload = {.max = 4096, .region = HEAP}};
}

static int setup(void **state)
{
	fresh();
	return 0;
}

static struct chain_bounds got;

/* Checks @t, and starts it afresh */
static void assert_fine(void)
{
	struct chain_bounds needs;
	struct chain_error err;

	if (chain_check_bounds(&t.d, &needs, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
	/* what is published is a region's own word, and what is sent is the client's */
	assert_int_equal(needs.stored[BUCKETS].any.to, 0);
	assert_int_equal(needs.stored[BUCKETS].theirs.to, 0);
	assert_true(!t.d.payload.max || needs.stored[HEAP].theirs.to);
	got = needs;
	fresh();
}

static void assert_wrong(struct fault why)
{
	struct chain_error err;

	assert_int_equal(chain_check_bounds(&t.d, NULL, &err), CHAIN_REFUSED);
	assert_fault(&err, why);
	fresh();
}

static void no_copy(void)
{
	t.s[COPY].verb = CHAIN_NOP;
	t.s[COPY].remote = t.s[COPY].local[0] = PLACE({0});
}

static void a_constant_place(void)
{
	no_copy();
	t.d.nargs = 1;
}

/* LOOK brings another word before the one that it brings to the publish */
static void the_second_word(void)
{
	for (unsigned k = 8; k > 0; k--)
		t.s[LOOK].local[k] = t.s[LOOK].local[k - 1];
	t.s[LOOK].local[0] = PLACE(WORD(SPARE, 8));
}

/* Copies the place of LOOK to the publish, with one byte in segment @one and two in @two */
static struct chain_step write_place(unsigned one, unsigned two)
{
	struct chain_step st = {.label = "copy",
		.queue = 1,
		.verb = CHAIN_WRITE,
		.remote = FIELD("pub", CHAIN_F_REMOTE_ADDR, 5, 0)};

	st.local[one] = PLACE(FIELD("look", CHAIN_F_REMOTE_ADDR, 5, 1));
	st.local[two] = PLACE(FIELD("look", CHAIN_F_REMOTE_ADDR, 6, 2));
	return st;
}

static void a_tombstone(void)
{
	t.s[COUNT].verb = CHAIN_NOP;
	t.s[COUNT].remote = t.s[COUNT].local[0] = (struct chain_place){0};
	t.s[PUB].extent = false;
	t.s[PUB].swap = 0x080000;
	t.s[PUB].located = HEAP;
	t.d.payload.max = 0;
}

/* What whoever reads the words of the publish has to expect */
static void assert_located(uint64_t from, uint64_t to, uint32_t longest)
{
	assert_int_equal(got.stored[BUCKETS].located.from, from);
	assert_int_equal(got.stored[BUCKETS].located.to, to);
	assert_int_equal(got.stored[BUCKETS].longest, longest);
	assert_int_equal(got.stored[HEAP].located.to, 0);
}

static void puts_and_deletes(void **state)
{
	assert_fine();
	assert_located(0, UINT64_MAX, 9 + 4096);
	a_constant_place();
	t.s[LOOK].remote.from = 16;
	t.s[PUB].remote.from = 16;
	assert_fine();
	assert_located(16, 32, 6 + 4096);
	a_tombstone();
	assert_fine();
	assert_located(0, UINT64_MAX, 8);
	assert_int_equal(got.region[HEAP], 8);
	a_tombstone(); /* 16 bytes at 256 */
	t.s[PUB].swap = chain_locator(256, 16);
	assert_fine();
	assert_int_equal(got.region[HEAP], 272);
	/* the place arrives where it is changed, and is copied to where it is read */
	t.a[1] = PLACE(FIELD("pub", CHAIN_F_REMOTE_ADDR, 5, 3));
	t.s[COPY].remote = PLACE(FIELD("pub", CHAIN_F_REMOTE_ADDR, 5, 0));
	t.s[COPY].local[0] = PLACE(FIELD("look", CHAIN_F_REMOTE_ADDR, 5, 3));
	assert_fine();
	/* more of the address is copied than the client chooses */
	t.s[COPY].remote.from = 3;
	t.s[COPY].local[0] = PLACE(FIELD("pub", CHAIN_F_REMOTE_ADDR, 3, 5));
	assert_fine();
	/* a WRITE copies it, in two pieces */
	t.s[COPY] = write_place(0, 1);
	assert_fine();
	/* the word that is replaced is not the first that is read */
	a_constant_place();
	the_second_word();
	t.s[PUB].remote.from = 8;
	assert_fine();
	/* or both come from a word of their own */
	t.a[1] = PLACE(WORD(SPARE, 3));
	t.s[COPY].remote = PLACE(WORD(SPARE, 0));
	t.s[COPY].local[0] = PLACE(FIELD("pub", CHAIN_F_REMOTE_ADDR, 5, 3));
	t.s[OTHER] = t.s[LOOK];
	t.s[LOOK] = t.s[COPY];
	t.s[LOOK].label = "again";
	t.s[LOOK].local[0] = PLACE(FIELD("look", CHAIN_F_REMOTE_ADDR, 5, 3));
	t.s[DECIDE] = t.s[OTHER];
	t.s[OTHER] = good[OTHER];
	t.s[PUB].flags = 0;
	assert_fine();
}

/* P2, P6: a word that was read there, and is not one that a client has, or has kept */
static void what_is_replaced(void **state)
{
	const struct fault why = WRONG(PUBLISH_SEEN, PUB, NO_STEP);

	t.s[LOOK].local[0] = PLACE(WORD(SPARE, 8)); /* a constant */
	t.s[LOOK].local[1] = PLACE({0});
	a_constant_place();
	assert_wrong(why);
	for (unsigned k = 0; k < 8; k++) { /* in the order of memory */
		t.s[LOOK].local[k] = PLACE(TURNED(CHAIN_F_COMPARE, k));
	}
	assert_wrong(why);
	t.s[LOOK].local[0] = PLACE(WORD(SPARE, 1)); /* a byte of the client */
	t.a[2] = PLACE(FIELD("pub", CHAIN_F_COMPARE, 7, 1));
	t.d.nargs = 3;
	assert_wrong(why);
	t.s[LOOK].local[7] = PLACE(WORD(SPARE, 1)); /* a byte of another READ */
	t.s[MATCH] = (struct chain_step){.label = "match",
		.queue = 1,
		.verb = CHAIN_READ,
		.remote = REGION(BUCKETS, 7, 0),
		.local = {TURNED(CHAIN_F_COMPARE, 0)}};
	t.a[0] = PLACE(WORD(SPARE, 6));
	assert_wrong(why);
	t.s[LOOK].flags = CHAIN_DORMANT; /* it may have brought nothing */
	assert_wrong(why);
	t.s[MATCH] = (struct chain_step){.label = "match", /* changed since */
		.queue = 1,
		.verb = CHAIN_FETCH_ADD,
		.add = 1,
		.remote = FIELD("pub", CHAIN_F_COMPARE, 0, 0)};
	no_copy();
	t.d.nargs = 0;
	assert_wrong(why);
	t.s[MATCH] = (struct chain_step){.label = "match", /* replaced since, by no READ */
		.queue = 1,
		.verb = CHAIN_WRITE,
		.remote = FIELD("pub", CHAIN_F_COMPARE, 0, 0),
		.local = {REGION(BUCKETS, 0, 8)}};
	t.a[0] = t.a[1];
	t.d.nargs = 1;
	assert_wrong(why);
	a_constant_place(); /* the READ becomes a NOP */
	t.s[COPY].verb = CHAIN_READ;
	t.s[COPY].remote = PLACE(WORD(SPARE, 0));
	t.s[COPY].local[0] = PLACE(FIELD("look", CHAIN_F_OPCODE, 0, 1));
	assert_wrong(why);
	a_constant_place(); /* more or fewer bytes are read before it */
	the_second_word();
	t.s[LOOK].local[0] = PLACE(REGION(LOG, 64, 8));
	t.s[PUB].remote.from = 8;
	t.s[COPY].verb = CHAIN_READ;
	t.s[COPY].remote = PLACE(REGION(BUCKETS, 16, 0));
	t.s[COPY].local[0] = PLACE(FIELD("look", CHAIN_F_LOCAL_LEN, 3, 1));
	assert_wrong(why);
}

/* P13: what is checked is what is changed */
static void where_it_is_replaced(void **state)
{
	const struct fault why = WRONG(PUBLISH_PLACE, PUB, LOOK);

	t.a[2] = PLACE(FIELD("pub", CHAIN_F_REMOTE_ADDR, 5, 3)); /* a client sends two places */
	t.d.nargs = 3;
	no_copy();
	assert_wrong(why);
	t.a[2] = PLACE(WORD(SPARE, 3)); /* by way of a word */
	t.d.nargs = 3;
	t.s[COPY].remote = PLACE(WORD(SPARE, 0));
	assert_wrong(why);
	no_copy(); /* one of them is constant */
	assert_wrong(why);
	t.s[PUB].remote.from = 8; /* beside it */
	assert_wrong(why);
	t.s[COPY].local[0].len = 2; /* not all of it */
	assert_wrong(why);
	t.s[COPY].remote.from = 4; /* other bytes of it */
	assert_wrong(why);
	t.s[LOOK].remote.index = HEAP; /* in another region */
	assert_wrong(why);
	t.d.nargs = 1; /* another byte of a constant address */
	t.s[COPY].remote.from = 4;
	t.s[COPY].local[0] = PLACE(FIELD("pub", CHAIN_F_REMOTE_ADDR, 5, 1));
	assert_wrong(why);
	t.s[COPY] = write_place(1, 0); /* its bytes in another order */
	assert_wrong(why);
	the_second_word(); /* the first word is replaced, the second was compared */
	assert_wrong(why);
	the_second_word(); /* the client's place is that of the first */
	t.s[PUB].remote.from = 8;
	assert_wrong(why);
}

/* Both places are the same sum, of which nobody knows where its bytes come from */
static void where_a_sum_is(void **state)
{
	enum { SUM = SPARE, ADDENDS = SPARE + 16 };
	const struct chain_step steps[] = {
		{.label = "sum",
			.queue = 1,
			.verb = CHAIN_CALC_ADD,
			.remote = WORD(SUM, 0),
			.local = {WORD(ADDENDS, 32)}},
		{.label = "bring",
			.queue = 1,
			.verb = CHAIN_READ,
			.remote = WORD(SUM + 5, 0),
			.local = {FIELD("look", CHAIN_F_REMOTE_ADDR, 5, 3)}},
		good[COPY],
		good[LOOK],
		good[COUNT],
	};

	memcpy(&t.s[COPY], steps, sizeof(steps));
	t.s[PUB].flags = 0;
	t.a[0] = PLACE(WORD(ADDENDS + 5, 3));
	t.d.nargs = 1;
	assert_wrong(WRONG(PUBLISH_PLACE, PUB, COPY + 3));
}

/* P12: the length is that of the message, and the extent is the server's choice */
static void what_it_brings(void **state)
{
	const struct fault why = WRONG(PUBLISH_LOCATOR, PUB, NO_STEP);

	t.s[COUNT].remote = PLACE(REGION(BUCKETS, 0, 0)); /* from a region */
	assert_wrong(why);
	t.s[COUNT].remote = PLACE(LENGTH(0, 0)); /* 256 times less */
	assert_wrong(why);
	t.s[COUNT].local[0] = PLACE(TURNED(CHAIN_F_SWAP, 5)); /* in another order */
	t.s[COUNT].local[2] = PLACE(TURNED(CHAIN_F_SWAP, 7));
	assert_wrong(why);
	t.s[COUNT].flags = CHAIN_DORMANT;
	assert_wrong(why);
	t.s[COUNT].verb = CHAIN_NOP; /* of nothing */
	t.s[COUNT].remote = t.s[COUNT].local[0] = t.s[COUNT].local[1] = t.s[COUNT].local[2] = PLACE({0});
	assert_wrong(why);
	t.a[2] = PLACE(FIELD("pub", CHAIN_F_SWAP, 5, 3)); /* from a client */
	t.d.nargs = 3;
	assert_wrong(why);
	t.a[2] = PLACE(FIELD("pub", CHAIN_F_SWAP, 0, 5));
	t.d.nargs = 3;
	assert_wrong(why);
	t.s[MATCH] = (struct chain_step){.label = "match", /* another place */
		.queue = 1,
		.verb = CHAIN_READ,
		.remote = WORD(SPARE, 0),
		.local = {TURNED(CHAIN_F_SWAP, 0)}};
	t.a[0] = PLACE(WORD(SPARE, 6));
	assert_wrong(why);
}

/* An extent leaves by the publish alone: no store, no answer has it */
static void it_leaves_by_nothing_else(void **state)
{
	const struct fault why = WRONG(EXTENT_LEAVES, OTHER, PUB);

	t.s[OTHER] = (struct chain_step){.label = "other",
		.queue = 1,
		.verb = CHAIN_WRITE,
		.remote = REGION(LOG, 8, 0),
		.local = {FIELD("pub", CHAIN_F_SWAP, 0, 8)}};
	assert_wrong(why);
	t.s[OTHER] = (struct chain_step){.label = "other",
		.queue = 1,
		.verb = CHAIN_READ,
		.remote = FIELD("pub", CHAIN_F_SWAP, 4, 0),
		.local = {WORD(SPARE, 1)}};
	assert_wrong(why);
	t.s[OTHER] = (struct chain_step){.label = "other",
		.queue = 1,
		.verb = CHAIN_FETCH_ADD,
		.remote = FIELD("pub", CHAIN_F_SWAP, 0, 0),
		.local = {WORD(SPARE, 8)}};
	assert_wrong(why);
	t.s[DONE].local[0] = PLACE(FIELD("pub", CHAIN_F_SWAP, 0, 8));
	assert_wrong(WRONG(EXTENT_LEAVES, DONE, PUB));
}

/* What it puts there lies in its region, and has bytes */
static void what_a_constant_names(void **state)
{
	a_tombstone();
	t.s[PUB].swap = chain_locator(8, 0);
	assert_wrong(WRONG(PUBLISH_NOTHING, PUB, NO_STEP));
	a_tombstone();
	t.r[HEAP].size = 64;
	t.s[PUB].swap = chain_locator(56, 8);
	assert_fine();
	a_tombstone();
	t.r[HEAP].size = 64;
	t.s[PUB].swap = chain_locator(56, 9);
	assert_wrong(WRONG(REGION_END, PUB, NO_STEP, .name = "heap", NUMBERS(56, 64, 64)));
	a_tombstone();
	t.s[PUB].located = REGIONS;
	assert_wrong(WRONG(NO_REGION, PUB, NO_STEP, NUMBERS(REGIONS, REGIONS)));
}

/* A word that was read there is one that a publish has put there, or the server: nobody else stores in that
 * region, neither this program nor another one */
static void nothing_else_is_stored(void **state)
{
	const struct fault why = WRONG(PUBLISH_SHARED, PUB, NO_STEP, .name = "buckets");

	t.s[OTHER] = (struct chain_step){.label = "other",
		.queue = 1,
		.verb = CHAIN_WRITE,
		.remote = REGION(BUCKETS, 4088, 0),
		.local = {WORD(SPARE, 8)}};
	assert_wrong(why);
	t.s[OTHER] = (struct chain_step){.label = "other",
		.queue = 1,
		.verb = CHAIN_FETCH_ADD,
		.add = 1,
		.remote = REGION(BUCKETS, 4088, 0)};
	assert_wrong(why);
	t.s[OTHER] = (struct chain_step){
		.label = "other", .queue = 1, .verb = CHAIN_FETCH_ADD, .add = 1, .remote = REGION(LOG, 0, 0)};
	assert_fine();
	t.r[BUCKETS].stored.any = (struct chain_span){4095, 4096};
	assert_wrong(why);
	t.r[BUCKETS].stored.located = (struct chain_span){0, 4096};
	t.r[BUCKETS].stored.longest = 65536;
	assert_fine();
	assert_located(0, UINT64_MAX, 65536);
}

/* Where no bucket was found it would replace a mark */
static void only_in_buckets(void **state)
{
	const struct fault why = WRONG(PUBLISH_BLIND, PUB, NO_STEP);

	t.s[PUB].in_bucket = false;
	assert_wrong(why);
	a_constant_place();
	t.s[PUB].in_bucket = false;
	assert_wrong(why);
}

/* P4: what came of it is to be seen when it is over */
static void what_it_found_stays(void **state)
{
	t.s[OTHER] = (struct chain_step){.label = "other",
		.queue = 1,
		.verb = CHAIN_READ,
		.remote = REGION(BUCKETS, 0, 0),
		.local = {WORD(WAS + 7, 1)}};
	assert_wrong(WRONG(PUBLISH_KEPT, OTHER, PUB));
	t.s[OTHER] = (struct chain_step){
		.label = "other", .queue = 1, .verb = CHAIN_FETCH_ADD, .remote = WORD(WAS, 0)};
	assert_wrong(WRONG(PUBLISH_KEPT, OTHER, PUB));
	t.a[2] = PLACE(WORD(WAS, 1));
	t.d.nargs = 3;
	assert_wrong(WRONG(PUBLISH_KEPT, ARGUMENT(2), PUB));
	t.s[PUB].local[0] = PLACE({0});
	assert_wrong(WRONG(PUBLISH_WAS, PUB, NO_STEP));
	t.d.words = (const struct chain_word[]){{"front", 8, armed}, t.w, {"behind", 8, armed}};
	t.d.nwords = 3;
	assert_fine();
	t.w.init = NULL; /* and to differ from what it was armed with */
	assert_wrong(WRONG(PUBLISH_ARMED, PUB, NO_STEP));
	for (unsigned i = 0; i < 8; i++) {
		uint8_t init[SCRATCH];

		memcpy(init, armed, sizeof(init));
		init[WAS + i] = 0x7f;
		t.w.init = init;
		assert_wrong(WRONG(PUBLISH_ARMED, PUB, NO_STEP));
	}
}

/* What a message is counted as is the client's, and no length; where it goes nobody writes */
static void the_count_and_the_region(void **state)
{
	t.s[OTHER] = (struct chain_step){.label = "other",
		.queue = 1,
		.verb = CHAIN_READ,
		.remote = LENGTH(0, 0),
		.local = {FIELD("done", CHAIN_F_LOCAL_LEN, 0, 4)}};
	t.s[DONE].local[0] = PLACE({.kind = CHAIN_AT_REGION, .index = HEAP, .len = 1, .max = 60});
	assert_wrong(WRONG(LENGTH_REQUEST, DONE, OTHER));
	t.s[OTHER].verb = CHAIN_WRITE;
	t.s[OTHER].remote = PLACE(REGION(HEAP, 0, 0));
	t.s[OTHER].local[0] = PLACE(WORD(SPARE, 1));
	assert_wrong(WRONG(NOT_WRITABLE, OTHER, NO_STEP));
	t.r[HEAP].flags = CHAIN_WRITABLE;
	assert_wrong(WRONG(PAYLOAD_WRITABLE, NO_STEP, NO_STEP));
}

static void without_memory(void **state)
{
	struct chain_error err;

	NOMEM_TRY(-ENOMEM, chain_check_bounds(&t.d, NULL, &err));
	assert_int_equal(nomem_result, 0);
}

#define T(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {T(puts_and_deletes), T(what_is_replaced), T(where_it_is_replaced),
		T(where_a_sum_is), T(what_it_brings), T(it_leaves_by_nothing_else), T(only_in_buckets),
		T(what_it_found_stays), T(what_a_constant_names), T(nothing_else_is_stored),
		T(the_count_and_the_region), T(without_memory)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
