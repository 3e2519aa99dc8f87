/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Laps at random, run by the simplest NIC there can be: one WQE after the other, the index of each checked.
 * What the order within a real NIC may do to them is the business of the tests on the emulated silicon.
 */
#include "reddnd/chain/ring/lap.h"

#include "mlx5/wqe.h"
#include "util/xorshift.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	RING = 1024,
	LANES = 8192,
	OUTSIDE = 4096,
	OUTSIDE_SYMBOL = RING_SCRATCH,
	RING_KEY = 1,
	LANES_KEY,
	OUTSIDE_KEY,
	QPN = 0x1234,
	CQN = 0x77
};
enum { MAX_NUMBERS = 300 };

struct number {
	uint32_t at; /* in ring (of a WQE) or outside */
	unsigned id; /* WQE */
	uint8_t bytes, section;
	uint64_t value, step;
};

struct world {
	uint8_t ring[RING * 64], lanes[LANES], outside[OUTSIDE];
	struct number outer[MAX_NUMBERS], inner[MAX_NUMBERS];
	unsigned nouter, ninner, sections;
	struct {
		uint32_t at;
		unsigned len;
		uint8_t bytes[16];
	} fixed[16];
	unsigned nfixed;
	uint64_t rng, cqes;
	struct lap *lap;
	struct lap_size size;
};

static uint64_t rnd(struct world *w, uint64_t below)
{
	return (xorshift(&w->rng) >> 11) % below;
}

static uint8_t *host(struct world *w, uint32_t key, uint64_t addr, uint32_t len)
{
	uint64_t off = addr & 0xffffffff, size = key == RING_KEY    ? sizeof(w->ring)
						 : key == LANES_KEY ? LANES
								    : OUTSIDE;

	assert_int_equal(addr >> 32, key);
	assert_true(len > 0 && off + len <= size);
	return (key == RING_KEY ? w->ring : key == LANES_KEY ? w->lanes : w->outside) + off;
}

/* ---- a lap at random -------------------------------------------------------------------------- */

static uint64_t any_step(struct world *w)
{
	static const uint32_t steps[] = {0, 1, 3, 60, 256, 512, 1000, 0x10000, 0x1234567};

	return steps[rnd(w, sizeof(steps) / sizeof(*steps))];
}

static void add_outside(struct world *w, unsigned section)
{
	uint64_t value = rnd(w, 3) ? rnd(w, 4) * 0x10101 : rnd(w, 1ull << 32), step = any_step(w);
	unsigned n = 1 + (unsigned)rnd(w, 12);

	for (; n-- > 0 && w->nouter < MAX_NUMBERS; w->nouter++) {
		struct number *o = &w->outer[w->nouter];
		unsigned bytes = 1 + (unsigned)rnd(w, 4);

		*o = (struct number){
			.at = w->nouter * 4, .bytes = (uint8_t)bytes, .section = (uint8_t)section};
		o->value = value & ((1ull << 8 * bytes) - 1);
		o->step = step;
		lap_refresh(w->lap, ring_at(OUTSIDE_SYMBOL, o->at), bytes, o->value, step);
		/* Bytes that never change are not refreshed: they are right from the start */
		for (unsigned i = 0; i < bytes; i++)
			w->outside[o->at + i] = (uint8_t)(o->value >> 8 * (bytes - 1 - i));
	}
}

static void add_fixed(struct world *w)
{
	static const uint8_t unknown[8] = {0xdd, 0xdd, 0xdd, 0xdd, 0xdd, 0xdd, 0xdd, 0xdd};
	unsigned f = w->nfixed++;

	w->fixed[f].at = 2048 + f * 16;
	w->fixed[f].len = 1 + (unsigned)rnd(w, 16);
	for (unsigned i = 0; i < 16; i++)
		w->fixed[f].bytes[i] = (uint8_t)rnd(w, rnd(w, 2) ? 2 : 256);
	memcpy(w->outside + w->fixed[f].at, w->fixed[f].bytes, w->fixed[f].len);
	for (unsigned at = 0; at < w->fixed[f].len; at += 8) {
		bool known = rnd(w, 2);

		lap_restore(w->lap, ring_at(OUTSIDE_SYMBOL, w->fixed[f].at + at),
			known ? w->fixed[f].bytes + at : unknown,
			w->fixed[f].len - at < 8 ? w->fixed[f].len - at : 8, known ? 0 : 1 + 2 * f + at / 8);
	}
}

static void add_wqes(struct world *w, unsigned section)
{
	unsigned n = 1 + (unsigned)rnd(w, 25), mark = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned id;

		switch (rnd(w, 4)) {
		case 0:
			mark = id = lap_add(w->lap, CHAIN_NOP, 0, WQE_SIGNALLED);
			break;
		case 1:
			id = lap_add(w->lap, CHAIN_WAIT, 0, 0);
			if (mark)
				lap_await(w->lap, id, mark);
			break;
		case 2:
			if (w->ninner == MAX_NUMBERS)
				break;
			id = lap_add(w->lap, CHAIN_RECV_EN, 0, 0);
			w->inner[w->ninner] = (struct number){.id = id,
				.bytes = 4,
				.section = (uint8_t)section,
				.value = rnd(w, 1 << 20),
				.step = any_step(w)};
			lap_number(w->lap, id, WQE_SYNC_INDEX, 4, w->inner[w->ninner].value,
				w->inner[w->ninner].step);
			w->ninner++;
			break;
		default:
			lap_add(w->lap, CHAIN_MASKED_CAS, 1, 0); /* of two WQEBBs; never run here */
			break;
		}
	}
}

static void give(struct ring_values *v, unsigned symbol, uint32_t key, uint8_t *mem)
{
	v->of[symbol].iova = (uint64_t)key << 32;
	v->of[symbol].lkey = v->of[symbol].rkey = key;
	v->of[symbol].mem = mem;
}

static void fill(struct world *w, struct ring_image *image)
{
	struct ring_values v = {0};

	assert_true(image->lanes_at + image->lanes_bytes <= LANES);
	give(&v, RING_SELF, RING_KEY, w->ring);
	give(&v, RING_LANES, LANES_KEY, w->lanes);
	give(&v, OUTSIDE_SYMBOL, OUTSIDE_KEY, w->outside);
	v.of[RING_SELF].qpn = QPN;
	v.of[RING_SELF].cqn = CQN;
	ring_fill(image, &v);
	ring_free(image);
}

static int make(struct world *w, uint64_t seed)
{
	const struct lap_env env = {.wqebbs = RING, .lanes_at = LAP_HEAD};
	struct ring_image *image;
	int r;

	w->rng = (seed + 1) * 0x9e3779b97f4a7c15;
	w->sections = 2 + 2 * (unsigned)rnd(w, 3);
	assert_int_equal(lap_new(&w->lap, &env, w->sections), 0);
	for (unsigned s = 0; s < w->sections; s++) {
		add_wqes(w, s);
		for (unsigned n = (unsigned)rnd(w, 6); n-- > 0;)
			add_outside(w, s);
		if (rnd(w, 2))
			add_fixed(w);
		lap_renew(w->lap);
		if (s == w->sections - 1)
			lap_advance(w->lap);
		else
			lap_next_section(w->lap);
	}
	r = lap_finish(w->lap, &w->size, &image);
	if (r == 0)
		fill(w, image);
	return r;
}

/* ---- running it ------------------------------------------------------------------------------------ */

static void read_lanes(struct world *w, const uint8_t *wqe)
{
	uint64_t from = wqe_get(wqe + WQE_RADDR, 8);

	for (unsigned d = 2; d < wqe[WQE_DSCOUNT]; d++) {
		const uint8_t *sge = wqe + d * WQE_DS;
		uint32_t len = (uint32_t)wqe_get(sge, 4);

		memcpy(host(w, (uint32_t)wqe_get(sge + 4, 4), wqe_get(sge + 8, 8), len),
			host(w, LANES_KEY, from, len), len);
		from += len;
	}
}

static void copy_lanes(struct world *w, const uint8_t *wqe)
{
	uint64_t to = wqe_get(wqe + WQE_RADDR, 8);

	for (unsigned d = 2; d < wqe[WQE_DSCOUNT]; d++) {
		const uint8_t *sge = wqe + d * WQE_DS;
		uint32_t len = (uint32_t)wqe_get(sge, 4);

		memcpy(host(w, LANES_KEY, to, len),
			host(w, (uint32_t)wqe_get(sge + 4, 4), wqe_get(sge + 8, 8), len), len);
		to += len;
	}
}

static void add_lanes(struct world *w, const uint8_t *wqe)
{
	uint8_t *at = host(w, LANES_KEY, wqe_get(wqe + WQE_RADDR, 8), 8);
	uint64_t v, add = wqe_get(wqe + WQE_ATOMIC, 8), top = wqe_get(wqe + WQE_ATOMIC + 8, 8);

	memcpy(&v, at, 8);
	v = ((v & ~top) + (add & ~top)) ^ ((v ^ add) & top);
	memcpy(at, &v, 8);
}

static void check_inner(struct world *w, const uint8_t *wqe, uint16_t at, uint64_t lap)
{
	for (unsigned i = 0; i < w->ninner; i++)
		if (lap_index_of(w->lap, w->inner[i].id) == at)
			assert_int_equal(wqe_get(wqe + WQE_SYNC_INDEX, 4),
				(w->inner[i].value + lap * w->inner[i].step) & 0xffffffff);
}

static void run_lap(struct world *w, uint64_t lap)
{
	uint64_t cqes = w->cqes;
	unsigned wqes = 0;

	for (uint32_t at = 0; at < RING; wqes++) {
		const uint8_t *wqe = w->ring + (size_t)at * 64;
		uint16_t index = (uint16_t)(lap * RING + at);

		assert_int_equal(wqe_get(wqe + WQE_INDEX, 2), index);
		assert_int_equal(wqe_get(wqe + WQE_QPN_DS, 3), QPN);
		if (wqe[WQE_OPCODE] == WQE_OP_READ)
			read_lanes(w, wqe);
		else if (wqe[WQE_OPCODE] == WQE_OP_WRITE)
			copy_lanes(w, wqe);
		else if (wqe[WQE_OPCODE] == WQE_OP_MASKED_FETCH_ADD)
			add_lanes(w, wqe);
		else if (wqe[WQE_OPCODE] == WQE_OP_WAIT && wqe_get(wqe + WQE_SYNC_OBJECT, 4) == CQN)
			/* for a CQE of this lap, that is there */
			assert_true(((w->cqes - 1 - wqe_get(wqe + WQE_SYNC_INDEX, 4)) & 0xffffff) < RING);
		check_inner(w, wqe, (uint16_t)at, lap);
		w->cqes += !!(wqe[WQE_FLAGS] & WQE_SIGNALLED);
		at += (wqe[WQE_DSCOUNT] + 3u) / 4;
		assert_true(at <= RING);
	}
	assert_int_equal(wqes, w->size.wqes);
	assert_int_equal(w->cqes - cqes, w->size.cqes);
}

static void any_lap_renews_itself(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct world *w = calloc(1, sizeof(*w));

		assert_non_null(w);
		assert_int_equal(make(w, seed), 0);
		for (uint64_t lap = 0; lap < 70 + (seed % 20 ? 0 : 600); lap++) {
			for (unsigned f = 0; f < w->nfixed; f++)
				memset(w->outside + w->fixed[f].at, 0xee, w->fixed[f].len);
			run_lap(w, lap);
			for (unsigned o = 0; o < w->nouter; o++)
				assert_int_equal(wqe_get(w->outside + w->outer[o].at, w->outer[o].bytes),
					(w->outer[o].value + lap * w->outer[o].step) &
						((1ull << 8 * w->outer[o].bytes) - 1));
			for (unsigned f = 0; f < w->nfixed; f++)
				assert_memory_equal(
					w->outside + w->fixed[f].at, w->fixed[f].bytes, w->fixed[f].len);
		}
		lap_free(w->lap);
		free(w);
	}
}

static void what_does_not_fit(void **state)
{
	const struct lap_env env = {.wqebbs = LAP_MIN_RING, .lanes_at = LAP_HEAD};
	struct lap_size size;
	struct lap *l;

	(void)state;
	assert_int_equal(lap_new(&l, &env, 2), 0);
	for (unsigned i = 0; i < LAP_MIN_RING; i++)
		lap_add(l, CHAIN_NOP, 0, 0);
	lap_renew(l);
	lap_next_section(l);
	lap_renew(l);
	lap_advance(l);
	assert_int_equal(lap_finish(l, &size, NULL), -E2BIG);
	assert_true(size.wqebbs > LAP_MIN_RING);
	lap_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_lap_renews_itself),
		cmocka_unit_test(what_does_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
