/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/arm.h"
#include "reddnd/generation/queue-layout.h"
#include "reddnd/program/program.h"
#include "tests/chain/by-hand.h"

#include <errno.h>
#include <stdlib.h>

#include "tests/lib/cmocka.h"

struct range {
	uint64_t begin, end;
};

static int by_begin(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void test_slots(void **state)
{
	assert_int_equal(queue_layout_slots(1, false), 32);
	assert_int_equal(queue_layout_slots(16, false), 32);
	assert_int_equal(queue_layout_slots(17, false), 64);
	assert_int_equal(queue_layout_slots(4096, false), 8192);
	assert_int_equal(queue_layout_slots(1, true), 64);
	assert_int_equal(queue_layout_slots(33, true), 128);
}

/* All parts are inside the block, aligned, and do not overlap */
static void check_layout(
	const struct chain_image *img, const struct loop_size *loop, bool recycled, unsigned slots)
{
	struct range ranges[5 * CHAIN_MAX_QUEUES + 14];
	struct queue_layout l;
	unsigned n = 0;

	assert_int_equal(queue_layout_make(img, loop, recycled, slots, 32768, &l), 0);
	assert_int_equal(l.code_off % 64, 0);
	assert_int_equal(l.size % 4096, 0);
	assert_true(l.code_off + l.code_size <= l.size);
	for (unsigned q = 0; q < img->nqueues; q++) {
		uint64_t rq = q == 0 ? (uint64_t)slots * l.rq_stride : 0;

		ranges[n++] = (struct range){l.queue[q].cq_db_off, l.queue[q].cq_db_off + 64};
		ranges[n++] = (struct range){l.queue[q].qp_db_off, l.queue[q].qp_db_off + 64};
		/* out of reach of the chain's key */
		assert_true(
			l.queue[q].cq_db_off + 64 <= l.code_off && l.queue[q].qp_db_off + 64 <= l.code_off);
		ranges[n++] = (struct range){
			l.queue[q].cqes_off, l.queue[q].cqes_off + (64ull << l.queue[q].cq_log_size)};
		assert_int_equal(l.queue[q].ring_off, l.queue[q].wq_off + rq);
		assert_true(l.queue[q].ring_wqebbs >= chain_pad_at(img, q, slots));
		assert_int_equal(l.queue[q].cqes_off % 4096 + l.queue[q].wq_off % 4096, 0);
		if (img->payload.max && q == 0)
			assert_true(l.queue[q].cqes_off >= l.code_off);
		else
			assert_true(l.queue[q].cqes_off + (64ull << l.queue[q].cq_log_size) <= l.code_off);
		assert_true(l.queue[q].wq_off >= l.code_off);
		ranges[n++] = (struct range){
			l.queue[q].wq_off, l.queue[q].ring_off + l.queue[q].ring_wqebbs * 64ull};
	}
	/* The daemon reads the RECV CQE of every instance */
	assert_true(1u << l.queue[0].cq_log_size >= slots);
	if (img->payload.max)
		assert_int_equal(1u << l.queue[0].cq_log_size, slots);
	assert_int_equal(l.scratch_off, l.code_off);
	ranges[n++] = (struct range){l.scratch_off, l.scratch_off + (uint64_t)slots * img->scratch_size};
	if (recycled) {
		ranges[n++] = (struct range){l.recycler.cq_db_off, l.recycler.qp_db_off + 64};
		ranges[n++] = (struct range){l.replies.cq_db_off, l.replies.cq_db_off + 64};
		ranges[n++] = (struct range){
			l.recycler.cqes_off, l.recycler.cqes_off + (64ull << l.recycler.cq_log_size)};
		ranges[n++] = (struct range){
			l.replies.cqes_off, l.replies.cqes_off + (64ull << l.replies.cq_log_size)};
		ranges[n++] = (struct range){
			l.recycler.wq_off, l.recycler.ring_off + l.recycler.ring_wqebbs * 64ull};
		ranges[n++] = (struct range){l.lanes_off, l.lanes_off + l.recycling.lanes};
		assert_true(1u << l.replies.cq_log_size >= 2 * slots);
		assert_true(l.recycler.wq_off >= l.code_off && l.lanes_off % 64 == 0);
		assert_true(
			l.recycler.qp_db_off + 64 <= l.code_off && l.replies.cq_db_off + 64 <= l.code_off);
	}
	if (loop) {
		const struct queue_layout_qp *q = &l.loop.queue;

		ranges[n++] = (struct range){q->cq_db_off, q->qp_db_off + 64};
		ranges[n++] = (struct range){q->cqes_off, q->cqes_off + (64ull << q->cq_log_size)};
		ranges[n++] = (struct range){q->wq_off, q->ring_off + q->ring_wqebbs * 64ull};
		ranges[n++] = (struct range){l.loop.lanes_off, l.loop.lanes_off + loop->lanes};
		ranges[n++] = (struct range){l.loop.scratch_off, l.loop.scratch_off + loop->scratch};
		ranges[n++] = (struct range){l.loop.shared_off, l.loop.shared_off + loop->shared};
		assert_true(q->ring_wqebbs == loop->ring_wqebbs && 1u << q->cq_log_size >= loop->cqes);
		assert_true(q->wq_off >= l.code_off && q->wq_off % 4096 == 0);
		assert_true(q->qp_db_off + 64 <= l.code_off && l.loop.credits.qp_db_off + 64 <= l.code_off);
		assert_int_equal((l.loop.lanes_off | l.loop.scratch_off | l.loop.shared_off) % 64, 0);
	}
	qsort(ranges, n, sizeof(*ranges), by_begin);
	for (unsigned i = 1; i < n; i++)
		assert_true(ranges[i - 1].end <= ranges[i].begin);
	assert_int_equal(ranges[n - 1].end, l.code_off + l.code_size);
}

static void test_layouts(void **state)
{
	const struct loop_size loop = {
		.ring_wqebbs = 512, .cqes = 100, .lanes = 1000, .scratch = 40, .shared = 3, .credits = 64};

	for (unsigned parallel = 0; parallel < 2; parallel++) {
		const struct chain_hash_get p = {.parallel = parallel, .offset_len = 4};
		struct chain_image *img;

		assert_int_equal(chain_hash_get(&p, &img), 0);
		for (unsigned slots = 2; slots <= 2048; slots *= 2)
			for (unsigned l = 0; l < 2; l++)
				check_layout(img, l ? &loop : NULL, false, slots);
		for (unsigned slots = CHAIN_RECYCLE_MIN_SLOTS; slots <= 1024; slots *= 2)
			for (unsigned l = 0; l < 2; l++)
				check_layout(img, l ? &loop : NULL, true, slots);
		img->payload.max = 100;
		for (unsigned slots = 2; slots <= 2048; slots *= 2)
			check_layout(img, NULL, false, slots);
		for (unsigned slots = CHAIN_RECYCLE_MIN_SLOTS; slots <= 1024; slots *= 2)
			check_layout(img, NULL, true, slots);
		chain_free(img);
	}
}

/* So that the CQE of an error stays, while what is left of the lap is flushed */
static void test_cqes_of_a_lap(void **state)
{
	const struct chain_hash_get p = {.offset_len = 4};
	struct chain_image *img;
	struct queue_layout in_turn, overlapping;
	uint32_t head, flushed;

	assert_int_equal(chain_hash_get(&p, &img), 0);
	assert_int_equal(queue_layout_make(img, NULL, true, 64, 32768, &in_turn), 0);
	head = img->queue[0].head_wqebbs;
	assert_true(head > 0);
	img->queue[0].head_wqebbs = 0;
	img->queue[1].head_wqebbs = head;
	assert_int_equal(queue_layout_make(img, NULL, true, 64, 32768, &overlapping), 0);
	assert_int_equal(1u << in_turn.queue[0].cq_log_size, 64);
	assert_int_equal(1u << overlapping.queue[0].cq_log_size, 128);
	assert_true(1u << overlapping.replies.cq_log_size >= 2 * 64 + chain_ring_wqes(&img->queue[0], 64));
	/* of few slots a ring has the least size, and a long pad, which is flushed as well */
	img->queue[1].overlaps = true;
	assert_int_equal(queue_layout_make(img, NULL, true, CHAIN_RECYCLE_MIN_SLOTS, 32768, &overlapping), 0);
	assert_true(overlapping.queue[1].ring_wqebbs >
		    chain_ring_wqebbs(&img->queue[1], CHAIN_RECYCLE_MIN_SLOTS));
	flushed =
		chain_ring_flushed(&img->queue[1], CHAIN_RECYCLE_MIN_SLOTS, overlapping.queue[1].ring_wqebbs);
	assert_true(1u << overlapping.queue[1].cq_log_size >= flushed);
	/* a recycler that the daemon rings for may have been given most of its lap */
	img->payload.max = 100;
	assert_int_equal(queue_layout_make(img, NULL, true, 64, 32768, &in_turn), 0);
	assert_true(1u << in_turn.recycler.cq_log_size >= in_turn.recycling.lap.wqes);
	chain_free(img);
}

static void test_too_big(void **state)
{
	const struct chain_hash_get p = {.offset_len = 4};
	struct queue_layout l;
	struct chain_image *img;

	assert_int_equal(chain_hash_get(&p, &img), 0);
	assert_int_equal(queue_layout_make(img, NULL, false, 32768, 32768, &l), -E2BIG);
	assert_int_equal(queue_layout_make(img, NULL, false, 64, 256, &l), -E2BIG);
	assert_int_equal(
		queue_layout_make(img, &(struct loop_size){.ring_wqebbs = 4096}, false, 64, 2048, &l),
		-E2BIG);
	assert_int_equal(
		queue_layout_make(img, &(struct loop_size){.ring_wqebbs = 2048}, false, 64, 2048, &l), 0);
	chain_free(img);
}

/* ---- loop-size ---- */

enum { MOST_WQES = CHAIN_MAX_RING };

static struct program *program;
static struct chain_desc *loop;

static int make(void **state)
{
	program = calloc(1, sizeof(*program));
	loop = calloc(1, sizeof(*loop));
	if (!program || !loop)
		return -1;
	program->loop = loop;
	loop->nsteps = 7;
	program->loop_info.iterations = 2;
	return 0;
}

static int drop(void **state)
{
	free(loop);
	free(program);
	return 0;
}

/* @wqes of a lap, half of which a credit starts */
static void check_pace(uint32_t wqes, uint64_t rate)
{
	struct loop_pace pace;
	struct loop_size size;

	program->loop_info.lap.wqes = wqes;
	pace = loop_pace_of(program, rate);
	assert_true(loop_size_of(program, rate, &size));

	/* not above the rate, unless that is less than a credit per second, and hardly below it */
	assert_true(pace.per_second >= 1);
	assert_true(pace.per_second == 1 || pace.per_second * wqes <= 2 * rate);
	assert_true((pace.per_second + 1) * wqes > 2 * rate);
	/* what it has ahead is used up in a twenty-fifth of a second, apart from the two that it needs to go
	 * on */
	assert_true(pace.ahead == 2 || pace.ahead * 25ull <= pace.per_second);
	/* there is room for all that are not used up, and those that replace them */
	assert_true(size.credits >= 2 * pace.ahead && (size.credits & (size.credits - 1)) == 0);
	assert_true(size.credits <= CHAIN_MAX_RING);
}

static void all_paces(void **state)
{
	for (uint32_t wqes = 1; wqes <= MOST_WQES; wqes += wqes < 300 ? 1 : 97)
		for (uint64_t rate = 1; rate <= 1ull << 40; rate = rate * 3 / 2 + 1)
			check_pace(wqes, rate);
}

static void shared_by_connections(void **state)
{
	const struct loop_pace pace = {.per_second = 1000, .ahead = 40};

	assert_int_equal(loop_pace_credits(&pace, 0, 1, 100), 40);
	assert_int_equal(loop_pace_credits(&pace, 30, 1, 100), 10);
	assert_int_equal(loop_pace_credits(&pace, 0, 4, 100), 10);
	assert_int_equal(loop_pace_credits(&pace, 40, 4, 100), 0); /* it had more when it was alone */
	assert_int_equal(loop_pace_credits(&pace, 0, 4, 3), 3);
	assert_int_equal(loop_pace_credits(&pace, 0, 16, 100), 2);
	assert_int_equal(loop_pace_credits(&pace, 0, 40, 100), 2); /* it needs two to go on */
}

static void wqes_of_iterations(void **state)
{
	program->loop_info.lap.wqes = 26;
	assert_int_equal(program_loop_wqes(program, 0), 0);
	assert_int_equal(program_loop_wqes(program, 1), 13);
	assert_int_equal(program_loop_wqes(program, 1000), 13000);
}

static void no_loop(void **state)
{
	struct program none = {0};
	struct loop_size size;

	assert_false(loop_size_of(&none, 1000, &size));
	assert_int_equal(program_loop_wqes(&none, 5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_cqes_of_a_lap),
		cmocka_unit_test(test_too_big),
		cmocka_unit_test(all_paces),
		cmocka_unit_test(shared_by_connections),
		cmocka_unit_test(wqes_of_iterations),
		cmocka_unit_test(no_loop),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
