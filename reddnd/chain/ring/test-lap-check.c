/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A loop of two READs, each of which gives the other its address, is laid out and proven; then each thing
 * that keeps it in order is taken away once.
 */
#include "mlx5/wqe.h"
#include "reddnd/chain/ring/endless.h"
#include "reddnd/chain/ring/lap-check.h"
#include "tests/chain/assert-error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { RING = 256, LANES = 4096, QPN = 0x111, CQN = 0x222 };

/* clang-format off */
#define FIELD(step, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = CHAIN_F_REMOTE_ADDR, .from = (at), .len = (n)}
#define LENGTH(step, at, n) {.kind = CHAIN_AT_FIELD, .name = (step), .field = CHAIN_F_LOCAL_LEN, .from = (at), .len = (n)}
#define BEHIND(at, n) {.kind = CHAIN_AT_REGION, .from = (at), .len = (n)}
#define REGION(n) {.kind = CHAIN_AT_REGION, .len = (n)}
#define ENABLE(name, f, through_) \
	{.label = (name), .verb = CHAIN_SEND_EN, .flags = (f), .upto = CHAIN_UPTO_STEP, .through = (through_)}

static const struct chain_step waiting[] = {
	{.label = "ping", .verb = CHAIN_READ, .flags = CHAIN_SIGNALLED, .remote = REGION(0), .local = {REGION(1), FIELD("pong", 7, 1)}},
	{.verb = CHAIN_WAIT, .until = "ping"},
	ENABLE("to-pong", 0, "to-ping"),
	{.label = "pong", .verb = CHAIN_READ, .flags = CHAIN_SIGNALLED, .remote = REGION(0), .local = {FIELD("ping", 6, 2)}},
	{.verb = CHAIN_WAIT, .until = "pong"},
	ENABLE("to-ping", 0, "to-pong"),
};
static const struct chain_step fencing[] = {
	{.label = "ping", .verb = CHAIN_READ, .remote = REGION(0), .local = {REGION(1), FIELD("pong", 7, 1)}},
	ENABLE("to-pong", CHAIN_FENCE, "to-ping"),
	{.label = "pong", .verb = CHAIN_READ, .remote = REGION(0), .local = {FIELD("ping", 6, 2)}},
	ENABLE("to-ping", CHAIN_FENCE, "to-pong"),
};
/* What "word" reads and brings is behind what "sent" has when its length is what was posted */
static const struct chain_step stretching[] = {
	{.label = "length", .verb = CHAIN_READ, .flags = CHAIN_SIGNALLED, .remote = REGION(0), .local = {LENGTH("sent", 1, 3)}},
	{.label = "word", .verb = CHAIN_READ, .remote = BEHIND(64, 0), .local = {BEHIND(512, 8)}},
	{.verb = CHAIN_WAIT, .until = "length"},
	ENABLE("to-sent", 0, "to-length"),
	{.label = "sent", .verb = CHAIN_WRITE, .flags = CHAIN_FENCE | CHAIN_SIGNALLED, .remote = BEHIND(16, 0), .local = {BEHIND(256, 8)}},
	{.verb = CHAIN_WAIT, .until = "sent"},
	ENABLE("to-length", 0, "to-sent"),
};
/* clang-format on */

struct fixture {
	uint8_t ring[RING * 64], lanes[LANES];
	struct lap_made lap;
	struct chain_loop_info info;
};

static struct lap_made made(const struct fixture *f, uint64_t lanes_iova, uint32_t lanes_size)
{
	return (struct lap_made){.qpn = QPN,
		.cqn = CQN,
		.wqebbs = RING,
		.lkey = 1,
		.lanes_key = 2,
		.ring = f->ring,
		.iova = 0x100000,
		.lanes_iova = lanes_iova,
		.lanes_size = lanes_size};
}

static void make(struct fixture *f, const struct chain_step *steps, unsigned n, uint16_t group)
{
	static const struct chain_queue_desc queue = {"loop", 0};
	const struct chain_desc d = {.name = "loop",
		.queues = &queue,
		.nqueues = 1,
		.nregions = 1,
		.fetch_group = group,
		.steps = steps,
		.nsteps = n};
	struct ring_values v = {0};
	struct ring_image *image;
	struct chain_error err;
	uint32_t ring;

	memset(f, 0, sizeof(*f));
	v.of[RING_SELF].qpn = QPN;
	v.of[RING_SELF].cqn = CQN;
	v.of[RING_SELF].mem = f->ring;
	v.of[RING_LANES].mem = f->lanes;
	for (unsigned key = 1; key <= 3; key++) {
		const unsigned symbol = key == 1 ? RING_SELF : key == 2 ? RING_LANES : RING_REGION;

		v.of[symbol].iova = key * 0x100000;
		v.of[symbol].lkey = v.of[symbol].rkey = key;
	}
	assert_int_equal(chain_loop_size(&d, RING, &ring, &f->info, &err), 0);
	assert_int_equal(ring, RING);
	assert_int_equal(chain_loop_new(&image, &d, RING, d.nregions, &f->info, &err), 0);
	assert_true(f->info.lanes <= LANES);
	chain_loop_write(image, &d, &f->info, &v);
	ring_free(image);
	f->lap = made(f, 0x200040, f->info.lap.lanes);
	f->lap.group = group;
}

/* The @nth WQE (from 0) of @opcode */
static uint8_t *find(struct fixture *f, uint8_t opcode, unsigned nth)
{
	for (uint32_t at = 0; at < RING; at += (f->ring[at * 64 + WQE_DSCOUNT] + 3u) / 4)
		if (f->ring[at * 64 + WQE_OPCODE] == opcode && nth-- == 0)
			return f->ring + (size_t)at * 64;
	fail_msg("no such WQE");
	return NULL;
}

/* The first WQE of @opcode that is fenced, from the @nth on */
static uint8_t *find_fenced(struct fixture *f, uint8_t opcode)
{
	for (unsigned nth = 0;; nth++) {
		uint8_t *w = find(f, opcode, nth);

		if (w[WQE_FLAGS] & WQE_FENCE)
			return w;
	}
}

static void nothing(struct fixture *f)
{
	(void)f;
}

static void no_wait(struct fixture *f)
{
	find(f, WQE_OP_WAIT, 6)[WQE_OPCODE] = WQE_OP_NOP;
}

static void last_wait_of_the_half(struct fixture *f)
{
	find(f, WQE_OP_WAIT, f->info.iterations)[WQE_OPCODE] = WQE_OP_NOP; /* one is for a credit */
}

static void no_cqe(struct fixture *f)
{
	find(f, WQE_OP_READ, 4)[WQE_FLAGS] = 0;
}

static void enable_by(uint8_t *w, int more)
{
	wqe_put32(w + WQE_SYNC_INDEX, (uint32_t)((int)wqe_get(w + WQE_SYNC_INDEX, 4) + more));
}

static void enables_too_much(struct fixture *f)
{
	enable_by(find(f, WQE_OP_SEND_EN, 4), 1);
}

static void enables_too_little(struct fixture *f)
{
	enable_by(find(f, WQE_OP_SEND_EN, 4), -1);
}

static void enables_a_lap(struct fixture *f)
{
	enable_by(find(f, WQE_OP_SEND_EN, 4), RING);
}

static void enables_backwards(struct fixture *f)
{
	enable_by(find(f, WQE_OP_SEND_EN, 4), 20);
}

static void copies_without_fence(struct fixture *f)
{
	find_fenced(f, WQE_OP_WRITE)[WQE_FLAGS] &= (uint8_t)~WQE_FENCE;
}

static void reads_without_fence(struct fixture *f)
{
	find_fenced(f, WQE_OP_READ)[WQE_FLAGS] &= (uint8_t)~WQE_FENCE;
}

static void enable_without_fence(struct fixture *f)
{
	find(f, WQE_OP_SEND_EN, 5)[WQE_FLAGS] &= (uint8_t)~WQE_FENCE;
}

static void sends_without_fence(struct fixture *f)
{
	find(f, WQE_OP_WRITE, 4)[WQE_FLAGS] &= (uint8_t)~WQE_FENCE;
}

static void wrong_index(struct fixture *f)
{
	f->ring[7 * 64 + 2]++;
	find(f, WQE_OP_SEND_EN, 2)[WQE_INDEX + 1]++;
}

static void no_wqe(struct fixture *f)
{
	find(f, WQE_OP_SEND_EN, 2)[WQE_OPCODE] = 0x7f;
}

static void what_is_taken_away_is_missed(void **state)
{
	static const struct {
		void (*damage)(struct fixture *f);
		struct fault why;
		const struct chain_step *steps;
	} cases[] = {
		{nothing, FINE, waiting},
		{nothing, FINE, fencing},
		{no_wait, WRONG(LAP_FETCHED_EARLY, NO_STEP, NO_STEP, NUMBERS(18, 21)), waiting},
		{last_wait_of_the_half, WRONG(LAP_FETCHED_EARLY, NO_STEP, NO_STEP, NUMBERS(53, 98)), waiting},
		{no_cqe, WRONG(LAP_WAIT, NO_STEP, NO_STEP, NUMBERS(13, 4)), waiting},
		{enables_too_much, WRONG(LAP_FETCHED_EARLY, NO_STEP, NO_STEP, NUMBERS(15, 18)), waiting},
		{enables_too_little, WRONG(LAP_NEVER_ENABLED, NO_STEP, NO_STEP, NUMBERS(17)), waiting},
		{enables_a_lap, WRONG(LAP_ENABLE_FAR, NO_STEP, NO_STEP, NUMBERS(14, 274)), waiting},
		{enables_backwards, WRONG(LAP_ENABLE_BACK, NO_STEP, NO_STEP, NUMBERS(17)), waiting},
		{enable_without_fence, WRONG(LAP_FETCHED_EARLY, NO_STEP, NO_STEP, NUMBERS(10, 12)), fencing},
		{copies_without_fence, WRONG(LAP_UNORDERED, NO_STEP, NO_STEP, NUMBERS(227, 237)), fencing},
		{reads_without_fence, FINE,
			fencing}, /* the fences and WAITs of iterations in between are enough */
		{nothing, FINE, stretching},
		{sends_without_fence, WRONG(LAP_UNORDERED, NO_STEP, NO_STEP), stretching},
		{wrong_index, WRONG(LAP_FOREIGN_WQE, NO_STEP, NO_STEP, NUMBERS(7)), waiting},
		{no_wqe, WRONG(LAP_NO_WQE, NO_STEP, NO_STEP, NUMBERS(8)), waiting},
	};
	static struct fixture f;
	struct chain_error err;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct chain_step *steps = cases[i].steps;

		make(&f, steps, steps == waiting ? 6 : steps == fencing ? 4 : 7, 0);
		cases[i].damage(&f);
		if (lap_check(&f.lap, f.info.start, &err) != (cases[i].why.code ? CHAIN_REFUSED : 0))
			fail_msg("case %u: %s", i, chain_error_name(err.code));
		assert_fault(&err, cases[i].why);
	}
}

/* ---- a ring that software rings for --------------------------------------------------------------- */

enum { SECTIONS = 4, COUNT = 7 };

struct rung {
	struct fixture f;
	struct lap_doorbell doorbell;
};

/* Each section renews another one, waits for that, and is counted; a RECV_EN comes last */
static void make_rung(struct rung *g)
{
	const struct lap_env env = {.wqebbs = RING, .lanes_at = LAP_HEAD};
	struct fixture *f = &g->f;
	struct ring_values v = {0};
	struct ring_image *image;
	struct lap_size size;
	unsigned last[SECTIONS];
	struct lap *l;

	memset(g, 0, sizeof(*g));
	assert_int_equal(lap_new(&l, &env, SECTIONS), 0);
	for (unsigned s = 0; s < SECTIONS; s++) {
		unsigned mark, wait;

		lap_renew(l);
		if (s == SECTIONS - 1)
			lap_advance(l);
		mark = lap_add(l, CHAIN_NOP, 0, WQE_SIGNALLED);
		wait = lap_add(l, CHAIN_WAIT, 0, 0);
		lap_await(l, wait, mark);
		lap_count(l, COUNT);
		last[s] = lap_add(l, CHAIN_RECV_EN, 0, 0);
		lap_number(l, last[s], WQE_SYNC_INDEX + 2, 2, s, 64);
		if (s < SECTIONS - 1)
			lap_next_section(l);
	}
	assert_int_equal(lap_finish(l, &size, &image), 0);
	g->doorbell = (struct lap_doorbell){.sections = SECTIONS, .count = COUNT};
	for (unsigned s = 0; s < SECTIONS; s++)
		g->doorbell.end[s] = lap_index_after(l, last[s]);
	lap_free(l);
	v.of[RING_SELF].qpn = QPN;
	v.of[RING_SELF].cqn = CQN;
	v.of[RING_SELF].mem = f->ring;
	v.of[RING_SELF].iova = 0x100000;
	v.of[RING_SELF].lkey = v.of[RING_SELF].rkey = 1;
	v.of[RING_LANES].mem = f->lanes;
	v.of[RING_LANES].iova = 0x200000;
	v.of[RING_LANES].lkey = v.of[RING_LANES].rkey = 2;
	assert_true(LAP_HEAD + size.lanes <= LANES);
	ring_fill(image, &v);
	ring_free(image);
	f->lap = made(f, 0x200000 + LAP_HEAD, size.lanes);
	f->lap.doorbell = &g->doorbell;
	f->lap.count_iova = 0x200000;
}

static void as_it_is(struct rung *g)
{
	(void)g;
}

static void counted_before_it_has_landed(struct rung *g)
{
	find(&g->f, WQE_OP_WAIT, 1)[WQE_OPCODE] = WQE_OP_NOP;
}

static void counted_too_early(struct rung *g)
{
	uint8_t *count = find(&g->f, WQE_OP_FETCH_ADD, 2), *wait = count - 64, wqe[64];

	memcpy(wqe, count, 64);
	memcpy(count, wait, 64);
	memcpy(wait, wqe, 64);
	count[WQE_INDEX + 1]++;
	wait[WQE_INDEX + 1]--;
}

static void not_counted(struct rung *g)
{
	find(&g->f, WQE_OP_FETCH_ADD, SECTIONS - 1)[WQE_OPCODE] = WQE_OP_NOP;
}

static void counted_twice(struct rung *g)
{
	uint8_t *count = find(&g->f, WQE_OP_FETCH_ADD, 1), *recv_en = count + 64;

	memcpy(recv_en, count, 64);
	recv_en[WQE_INDEX + 1]++;
}

static void counted_by_more(struct rung *g)
{
	wqe_put64(find(&g->f, WQE_OP_FETCH_ADD, 1) + WQE_ATOMIC, COUNT + 1);
}

static void the_count_is_patched(struct rung *g)
{
	uint8_t *count = find(&g->f, WQE_OP_FETCH_ADD, SECTIONS - 1), *read = find(&g->f, WQE_OP_READ, 0);

	wqe_put64(read + WQE_RDMA_SGE + WQE_SGE_ADDR,
		0x100000 + (uint64_t)(count - g->f.ring) + WQE_ATOMIC + 7);
}

static void the_count_is_written(struct rung *g)
{
	wqe_put64(find(&g->f, WQE_OP_WRITE, 0) + WQE_RADDR, 0x200004);
}

static void the_ring_enables_itself(struct rung *g)
{
	uint8_t *w = find(&g->f, WQE_OP_RECV_EN, 1);

	w[WQE_OPCODE] = WQE_OP_SEND_EN;
	wqe_put32(w + WQE_SYNC_OBJECT, QPN);
}

/* Through the section behind that which may be given */
static void rung_for_one_more(struct rung *g)
{
	const uint16_t first = g->doorbell.end[0];

	for (unsigned s = 0; s < SECTIONS - 1; s++)
		g->doorbell.end[s] = g->doorbell.end[s + 1];
	g->doorbell.end[SECTIONS - 1] = (uint16_t)(RING + first);
}

static void rung_for_a_wqe_more(struct rung *g)
{
	for (unsigned s = 0; s < SECTIONS; s++)
		g->doorbell.end[s]++;
}

static void rung_for_too_little(struct rung *g)
{
	g->doorbell.end[2] = (uint16_t)(g->doorbell.end[1] - 1);
}

static void rung_for_a_lap_more(struct rung *g)
{
	g->doorbell.end[2] = (uint16_t)(g->doorbell.end[2] + RING);
}

static void what_software_may_ring_for(void **state)
{
	static const struct {
		void (*damage)(struct rung *g);
		enum chain_error_code why;
	} cases[] = {
		{as_it_is, CHAIN_E_NONE},
		{counted_before_it_has_landed, CHAIN_E_LAP_FETCHED_EARLY},
		{counted_too_early, CHAIN_E_LAP_FETCHED_EARLY},
		{not_counted, CHAIN_E_LAP_COUNT},
		{counted_twice, CHAIN_E_LAP_COUNT},
		{counted_by_more, CHAIN_E_LAP_COUNT},
		{the_count_is_patched, CHAIN_E_LAP_COUNT},
		{the_count_is_written, CHAIN_E_LAP_COUNT},
		{the_ring_enables_itself, CHAIN_E_LAP_ENABLE_FAR},
		{rung_for_one_more, CHAIN_E_LAP_COUNT},
		{rung_for_a_wqe_more, CHAIN_E_LAP_FETCHED_EARLY},
		{rung_for_too_little, CHAIN_E_LAP_COUNT},
		{rung_for_a_lap_more, CHAIN_E_LAP_ENABLE_FAR},
	};
	static struct rung g;
	struct chain_error err;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make_rung(&g);
		cases[i].damage(&g);
		if (lap_check(&g.f.lap, 0, &err) != (cases[i].why ? CHAIN_REFUSED : 0) ||
			err.code != cases[i].why)
			fail_msg("case %u: %s", i, chain_error_name(err.code));
	}
}

/* ---- what is no loop --------------------------------------------------------------------- */

static void no_loops(void **state)
{
	static const struct {
		struct chain_step steps[3];
		struct fault why;
	} cases[] = {
		{{{.label = "a", .verb = CHAIN_NOP}}, WRONG(LOOP_RENEWAL, NO_STEP, NO_STEP)},
		{{{.label = "a", .verb = CHAIN_NOP}, ENABLE("b", 0, "a")},
			WRONG(LOOP_RENEWAL, NO_STEP, NO_STEP)},
		{{{.label = "a", .verb = CHAIN_NOP}, ENABLE("b", CHAIN_FENCE, "c")},
			WRONG(ENABLES_NO_STEP, 1, NO_STEP, LABELS("b"))},
		{{{.label = "a", .verb = CHAIN_NOP},
			 {.label = "b", .verb = CHAIN_SEND_EN, .upto = CHAIN_UPTO_END}},
			WRONG(LOOP_ENABLE, 1, NO_STEP, LABELS("b"))},
		{{{.label = "a", .verb = CHAIN_WAIT, .flags = CHAIN_SIGNALLED, .until = "a"}},
			WRONG(LOOP_WAIT, 0, NO_STEP, LABELS("a"))},
		{{{.label = "a", .verb = CHAIN_WRITE_IMM, .remote = REGION(0), .local = {REGION(1)}}},
			WRONG(NO_RECEIVER, 0, NO_STEP, LABELS("a"))},
		{{{.label = "a", .verb = CHAIN_READ, .remote = REGION(0), .local = {FIELD("a", 7, 2)}}},
			WRONG(FIELD_END, 0, 0, LABELS("a", "a"))},
		{{{.label = "a",
			 .verb = CHAIN_READ,
			 .remote = {.kind = CHAIN_AT_SLOT},
			 .local = {REGION(1)}}},
			WRONG(SLOT_QUEUE, 0, NO_STEP, LABELS("a"))},
		{{{.label = "a", .verb = CHAIN_READ, .remote = REGION(0)}},
			WRONG(READ_NOTHING, 0, NO_STEP, LABELS("a"))},
		{{{.label = "a", .verb = CHAIN_READ, .queue = 0, .remote = REGION(0), .local = {REGION(0)}}},
			WRONG(SEGMENT_EMPTY, 0, NO_STEP, LABELS("a"), NUMBERS(0))},
	};
	static const struct chain_queue_desc queue = {"loop", 0};
	struct chain_loop_info info;
	struct chain_error err;
	uint32_t ring;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct chain_desc d = {.name = "loop",
			.queues = &queue,
			.nqueues = 1,
			.nregions = 1,
			.steps = cases[i].steps};

		while (d.nsteps < 3 && cases[i].steps[d.nsteps].label)
			d.nsteps++;
		assert_int_equal(chain_loop_size(&d, RING, &ring, &info, &err), CHAIN_REFUSED);
		assert_fault(&err, cases[i].why);
	}
}

/* ---- what is where --------------------------------------------------------------------------------- */

/* Step by step, lap around, with what renews the ring in between */
static void steps_are_found(void **state)
{
	static struct fixture f;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		static const uint16_t groups[] = {0, 4, 8};
		unsigned fences = i % 2;
		const struct chain_desc d = {.steps = fences ? fencing : waiting,
			.nsteps = fences ? 4 : 6,
			.fetch_group = groups[i / 2]};
		unsigned seen = 0;

		make(&f, d.steps, d.nsteps, d.fetch_group);
		for (uint32_t at = 0; at < RING; at += (f.ring[at * 64 + WQE_DSCOUNT] + 3u) / 4) {
			unsigned s = chain_loop_step(&d, &f.info, RING, (uint16_t)(7 * RING + at));

			if (s == d.nsteps)
				continue;
			assert_int_equal(s, seen++ % d.nsteps);
			assert_int_equal(
				f.ring[at * 64 + WQE_OPCODE], chain_verb_info(d.steps[s].verb)->opcode);
		}
		assert_int_equal(seen, f.info.iterations * d.nsteps);
	}
}

/* For a device that fetches groups, nothing that is enabled later may be in one with what is enabled before
 */
static void groups_are_filled(void **state)
{
	static struct fixture f;
	struct chain_error err;

	(void)state;
	for (unsigned fences = 0; fences < 2; fences++) {
		const struct chain_step *steps = fences ? fencing : waiting;
		unsigned n = fences ? 4 : 6;

		make(&f, steps, n, 0);
		f.lap.group = 4;
		assert_int_equal(lap_check(&f.lap, f.info.start, &err), CHAIN_REFUSED);
		assert_int_equal(err.code, CHAIN_E_LAP_FETCHED_EARLY);
		make(&f, steps, n, 4);
		assert_int_equal(lap_check(&f.lap, f.info.start, &err), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken_away_is_missed),
		cmocka_unit_test(what_software_may_ring_for),
		cmocka_unit_test(no_loops),
		cmocka_unit_test(steps_are_found),
		cmocka_unit_test(groups_are_filled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
