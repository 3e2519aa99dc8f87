/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A chain whose code queues come in two sets: what is refused, where its instances are, and that arming them
 * again leaves what arming them does.
 */
#include "reddnd/chain/ir/sets.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/again.h"
#include "reddnd/chain/ring/lap-end.h"
#include "reddnd/chain/ring/recycle.h"
#include "reddnd/chain/schedule/derive.h"
#include "reddnd/chain/verify/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SLOTS = 8, RINGS = 3, LAPS = 3, QPN = 0x100, CQN = 0x200, RECV_CQN = 0x300 };

/* The answer gets its opcode from the last step of the code */
static const uint8_t opcode[] = {WQE_OP_WRITE_IMM};
static const struct chain_word words[] = {{"w", 8, NULL}, {"opcode", sizeof(opcode), opcode}};
static const struct chain_queue_desc queues[] = {{"reply", 0}, {"code", 0}};
static const struct chain_step text[] = {
	{.label = "look",
		.queue = 1,
		.verb = CHAIN_READ,
		.remote = {.kind = CHAIN_AT_REGION},
		.local = {{.kind = CHAIN_AT_SCRATCH, .name = "w", .len = 8}}},
	{.label = "tell",
		.queue = 1,
		.verb = CHAIN_READ,
		.flags = CHAIN_FENCE,
		.remote = {.kind = CHAIN_AT_SCRATCH, .name = "opcode"},
		.local = {{.kind = CHAIN_AT_FIELD, .name = "done", .field = CHAIN_F_OPCODE, .len = 1}}},
	{.label = "done",
		.verb = CHAIN_WRITE_IMM,
		.flags = CHAIN_DORMANT | CHAIN_IMM_SEQ,
		.remote = {.kind = CHAIN_AT_SLOT},
		.local = {{.kind = CHAIN_AT_SCRATCH, .name = "w", .len = 8}}},
};

static const struct chain_desc desc = {.name = "sets",
	.queues = queues,
	.nqueues = 2,
	.words = words,
	.nwords = 2,
	.nregions = 1,
	.overlap = true,
	.sets = 2,
	.steps = text,
	.nsteps = 3};

static struct chain_desc *derive(void)
{
	struct chain_desc *out = NULL;
	struct chain_error err;

	if (chain_derive(&desc, &out, &err))
		fail_msg("refused: %s", chain_error_name(err.code));
	return out;
}

/* ---- what is refused ---- */

static unsigned find(const struct chain_desc *d, const struct chain_step *like)
{
	for (unsigned s = 0; s < d->nsteps; s++)
		if (d->steps[s].queue == like->queue && d->steps[s].verb == like->verb &&
			d->steps[s].target == like->target && d->steps[s].turn == like->turn &&
			!d->steps[s].until)
			return s;
	fail_msg("no such step");
	return 0;
}

static void assert_refused(
	struct chain_desc d, unsigned s, struct chain_step instead, enum chain_error_code why)
{
	struct chain_step steps[CHAIN_MAX_STEPS];
	struct chain_error err;

	memcpy(steps, d.steps, d.nsteps * sizeof(*steps));
	if (instead.verb != CHAIN_VERBS)
		steps[s] = instead;
	d.steps = steps;
	assert_int_equal(chain_check_order(&d, &err), CHAIN_REFUSED);
	assert_string_equal(chain_error_name(err.code), chain_error_name(why));
}

static void nothing_can_be_left_out(void **state)
{
	struct chain_desc *d = derive(), other;
	const struct chain_step keep = {.verb = CHAIN_VERBS};
	const unsigned turn = find(d, &(struct chain_step){.queue = 1, .verb = CHAIN_WAIT, .turn = true});
	const unsigned enable = find(d, &(struct chain_step){.queue = 1, .verb = CHAIN_SEND_EN});
	const unsigned done = find(d, &(struct chain_step){.verb = CHAIN_WRITE_IMM});
	unsigned tell = 0;
	struct chain_step st;

	(void)state;
	while (!d->steps[tell].label || strcmp(d->steps[tell].label, "tell") != 0)
		tell++;
	assert_true(turn < enable && d->steps[enable].flags & CHAIN_SIGNALLED);
	assert_refused(*d, turn, (struct chain_step){.queue = 1, .verb = CHAIN_NOP}, CHAIN_E_TURN_MISSING);
	assert_refused(*d, turn, (struct chain_step){.queue = 0, .verb = CHAIN_WAIT, .turn = true},
		CHAIN_E_TURN_ELSEWHERE);
	st = d->steps[enable];
	st.flags = 0;
	assert_refused(*d, enable, st, CHAIN_E_WAIT_UNSIGNALLED);
	/* as if it had succeeded, when the other set enables it */
	st = d->steps[done];
	st.flags &= (uint8_t)~CHAIN_DORMANT;
	assert_refused(*d, done, st, CHAIN_E_FAILURE_HIDDEN);
	/* nothing wakes it */
	st = d->steps[tell];
	st.local[0] = text[0].local[0];
	assert_refused(*d, tell, st, CHAIN_E_FAILURE_HIDDEN);
	st = d->steps[done];
	st.flags &= (uint8_t)~CHAIN_IMM_SEQ;
	assert_refused(*d, done, st, CHAIN_E_ANSWER_NUMBER);
	other = *d;
	other.sets = 3;
	assert_refused(other, 0, keep, CHAIN_E_SETS);
	other.sets = 1;
	assert_refused(other, 0, keep, CHAIN_E_TURN_ALONE);
	chain_derive_free(d);
}

/*
 * Of two code queues, "first" wakes the answer, when "second" has woken that. If the one that enables the
 * reply is the other one, and fails before it does, the other set may enable the reply while the answer is
 * woken, and not yet what stands before it.
 */
static void woken_where_the_reply_is_enabled(void **state)
{
	static const struct chain_queue_desc three[] = {{"reply", 0}, {"first", 0}, {"second", 0}};
	static const uint8_t read[] = {WQE_OP_READ}, both[] = {WQE_OP_WRITE_IMM, WQE_OP_WRITE};
	static const struct chain_word three_words[] = {{"w", 8, NULL}, {"read", 1, read}, {"both", 2, both}};
	struct chain_step steps[] = {text[0],
		{.label = "second",
			.queue = 2,
			.verb = CHAIN_READ,
			.flags = CHAIN_FENCE,
			.remote = {.kind = CHAIN_AT_SCRATCH, .name = "read"},
			.local = {{.kind = CHAIN_AT_FIELD,
				.name = "first",
				.field = CHAIN_F_OPCODE,
				.len = 1}}},
		{.label = "first",
			.queue = 1,
			.verb = CHAIN_READ,
			.flags = CHAIN_DORMANT | CHAIN_FENCE,
			.remote = {.kind = CHAIN_AT_SCRATCH, .name = "both"},
			.local = {{.kind = CHAIN_AT_FIELD, .name = "done", .field = CHAIN_F_OPCODE, .len = 1},
				{.kind = CHAIN_AT_FIELD,
					.name = "value",
					.field = CHAIN_F_OPCODE,
					.len = 1}}},
		{.label = "value",
			.verb = CHAIN_WRITE,
			.flags = CHAIN_DORMANT,
			.remote = {.kind = CHAIN_AT_SLOT, .from = 8},
			.local = {{.kind = CHAIN_AT_SCRATCH, .name = "w", .len = 8}}},
		text[2], {.verb = CHAIN_SEND_EN, .upto = CHAIN_UPTO_END}};
	const struct chain_desc d = {.name = "three",
		.queues = three,
		.nqueues = 3,
		.words = three_words,
		.nwords = 3,
		.nregions = 1,
		.overlap = true,
		.sets = 2,
		.steps = steps,
		.nsteps = 6};
	struct chain_desc *out;
	struct chain_error err;

	(void)state;
	steps[0].queue = 2;
	steps[5].queue = 1;
	assert_int_equal(chain_derive(&d, &out, &err), 0);
	chain_derive_free(out);
	steps[5].queue = 2;
	assert_int_equal(chain_derive(&d, &out, &err), CHAIN_REFUSED);
	assert_string_equal(chain_error_name(err.code), "WOKEN_ELSEWHERE");
}

static void only_where_instances_overlap(void **state)
{
	struct chain_desc d = desc;
	struct chain_step steps[] = {text[0], text[1],
		{.label = "change",
			.queue = 1,
			.verb = CHAIN_WRITE,
			.remote = {.kind = CHAIN_AT_REGION},
			.local = {{.kind = CHAIN_AT_SCRATCH, .name = "w", .len = 8}}},
		text[2]};
	struct chain_desc *out;
	struct chain_error err;

	(void)state;
	d.steps = steps;
	d.nsteps = 4;
	assert_int_equal(chain_derive(&d, &out, &err), CHAIN_REFUSED);
	assert_string_equal(chain_error_name(err.code), chain_error_name(CHAIN_E_HEAD_CHANGES));
	d = desc;
	d.overlap = false;
	assert_int_equal(chain_derive(&d, &out, &err), CHAIN_REFUSED);
	assert_string_equal(chain_error_name(err.code), chain_error_name(CHAIN_E_SETS_OVERLAP));
}

/* ---- where instances are ---- */

struct memory {
	struct chain_env env;
	uint8_t *ring[RINGS], *scratch;
};

static void open_memory(struct memory *m, const struct chain_image *img)
{
	*m = (struct memory){.env = {.slots = SLOTS, .recv_cqn = RECV_CQN, .slot_size = 64, .slot_count = 3}};
	for (unsigned i = 0; i < RINGS; i++) {
		const unsigned q = chain_queue_of(img, i);
		const uint32_t wqebbs = chain_recycle_ring(img, q, SLOTS);

		m->ring[i] = calloc(wqebbs, CHAIN_WQEBB);
		assert_non_null(m->ring[i]);
		m->env.queue[i].qpn = QPN + i;
		m->env.queue[i].cqn = CQN + i;
		m->env.queue[i].before = 100 * i;
		m->env.queue[i].iova = (uint64_t)(i + 1) << 32;
		m->env.queue[i].lkey = m->env.queue[i].rkey = 7 + i;
		m->env.queue[i].ring = m->ring[i];
		m->env.queue[i].ring_wqebbs = wqebbs;
	}
	m->scratch = calloc(SLOTS, img->scratch_size);
	assert_non_null(m->scratch);
	m->env.scratch.mem = m->scratch;
}

static void close_memory(struct memory *m)
{
	for (unsigned i = 0; i < RINGS; i++)
		free(m->ring[i]);
	free(m->scratch);
}

static struct chain_image *build(struct chain_desc *d)
{
	struct chain_image *img = NULL;
	struct chain_error err;

	assert_int_equal(chain_build(d, &img, &err), 0);
	return img;
}

/* The WQE of instance @seq in the code that is step @s */
static const uint8_t *wqe_of(const struct chain_image *img, const struct chain_desc *d,
	const struct memory *m, unsigned seq, unsigned s)
{
	uint32_t at = seq % SLOTS / 2 * img->queue[1].wqebbs;

	for (unsigned k = 0; k < s; k++) /* each has a WQEBB */
		at += d->steps[k].queue == 1;
	return m->ring[1 + seq % 2] + (size_t)at * CHAIN_WQEBB;
}

static void sets_take_turns(void **state)
{
	struct chain_desc *d = derive();
	struct chain_image *img = build(d);
	const unsigned turn = find(d, &(struct chain_step){.queue = 1, .verb = CHAIN_WAIT, .turn = true});
	const unsigned answer = find(d, &(struct chain_step){.queue = 1, .verb = CHAIN_SEND_EN});
	const uint32_t ring = chain_recycle_ring(img, 1, SLOTS);
	struct memory m;
	const uint8_t *w;

	(void)state;
	open_memory(&m, img);
	assert_int_equal(img->queue[1].cqes, 2); /* of "tell" and of the SEND_EN, the last one */
	for (unsigned seq = 0; seq < SLOTS; seq++)
		chain_arm(img, &m.env, seq);
	for (unsigned seq = 0; seq < SLOTS; seq++) {
		w = wqe_of(img, d, &m, seq, turn);
		assert_int_equal(w[WQE_OPCODE], seq ? WQE_OP_WAIT : WQE_OP_NOP);
		assert_int_equal(wqe_get(w + WQE_QPN_DS, 3), QPN + 1 + seq % 2);
		assert_int_equal(wqe_get(w + WQE_INDEX, 2), (w - m.ring[1 + seq % 2]) / CHAIN_WQEBB);
		assert_int_equal(wqe_get(w + WQE_SYNC_OBJECT, 4), CQN + 2 - seq % 2);
		if (seq)
			assert_int_equal(
				wqe_get(w + WQE_SYNC_INDEX, 4), 100 * (2 - seq % 2) + (seq - 1) / 2 * 2 + 1);
		w = wqe_of(img, d, &m, seq, answer);
		assert_int_equal(wqe_get(w + WQE_SYNC_OBJECT, 4), QPN);
		assert_int_equal(wqe_get(w + WQE_SYNC_INDEX, 4),
			(seq + 1) * img->queue[0].wqebbs +
				(seq == SLOTS - 1 ? m.env.queue[0].ring_wqebbs - SLOTS * img->queue[0].wqebbs
						  : 0));
	}
	/* a lap later */
	chain_arm(img, &m.env, SLOTS);
	w = wqe_of(img, d, &m, SLOTS, turn);
	assert_int_equal(w[WQE_OPCODE], WQE_OP_WAIT);
	assert_int_equal(wqe_get(w + WQE_SYNC_INDEX, 4), 200 + SLOTS / 2 * 2 - 1);
	assert_int_equal(chain_lap_end_wqebbs(img), 2);
	assert_int_equal(chain_lap_end_index(img, &m.env, 0, 0), ring + chain_start_index(img));
	assert_int_equal(chain_lap_end_index(img, &m.env, 0, 1), ring + chain_start_index(img));
	close_memory(&m);
	chain_free(img);
	chain_derive_free(d);
}

static void armed_again(void **state)
{
	struct chain_desc *d = derive();
	struct chain_image *img = build(d);
	struct chain_again *again;
	struct memory whole, some;

	(void)state;
	assert_int_equal(chain_again_new(&again, img), 0);
	for (unsigned together = 1; together <= SLOTS; together++) {
		open_memory(&whole, img);
		open_memory(&some, img);
		for (unsigned seq = 0; seq < SLOTS; seq++)
			chain_arm(img, &some.env, seq);
		for (unsigned seq = 0; seq < SLOTS; seq++)
			chain_arm(img, &whole.env, seq);
		for (unsigned seq = SLOTS; seq + together <= (1 + LAPS) * SLOTS; seq += together) {
			chain_arm_again(again, &some.env, seq, seq + together);
			for (unsigned k = 0; k < together; k++)
				chain_arm(img, &whole.env, seq + k);
			for (unsigned i = 0; i < RINGS; i++)
				assert_memory_equal(some.ring[i], whole.ring[i],
					(size_t)whole.env.queue[i].ring_wqebbs * CHAIN_WQEBB);
			assert_memory_equal(some.scratch, whole.scratch, (size_t)SLOTS * img->scratch_size);
		}
		close_memory(&whole);
		close_memory(&some);
	}
	chain_again_free(again);
	chain_free(img);
	chain_derive_free(d);
}

static void counted_by_ring(void **state)
{
	const struct chain_image img = {.nqueues = 3, .sets = 2};
	const unsigned ring[][2] = {{0, 0}, {1, 0}, {2, 0}, {1, 1}, {2, 1}}; /* queue, set */

	(void)state;
	assert_int_equal(chain_rings(&img), 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(chain_queue_of(&img, i), ring[i][0]);
		assert_int_equal(chain_set_of(&img, i), ring[i][1]);
		assert_int_equal(chain_ring_of(&img, ring[i][0], 6 + ring[i][1]), i);
	}
	assert_int_equal(chain_instances_in(&img, 0, 7), 7);
	assert_int_equal(chain_instances_in(&img, 2, 7), 4);
	assert_int_equal(chain_instances_in(&img, 4, 7), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_can_be_left_out),
		cmocka_unit_test(woken_where_the_reply_is_enabled),
		cmocka_unit_test(only_where_instances_overlap),
		cmocka_unit_test(sets_take_turns),
		cmocka_unit_test(armed_again),
		cmocka_unit_test(counted_by_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
