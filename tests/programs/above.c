/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparisons with an argument and a constant above it, in one word. */
#include "tests/programs/offloads.h"
#include "tests/programs/values.h"

#include "util/array.h"

#include <string.h>

enum { PLACES = 8, PLACE = 32 };

/* A number that is, or nearly is, @low and above it @high */
static uint64_t near_sum(struct run *r, uint64_t low, unsigned low_bytes, uint64_t high, unsigned bytes)
{
	uint64_t v = low + high, unit = 1ull << 8 * low_bytes;

	switch (run_random(r, 5)) {
	case 0:
		return low;
	case 1: /* the same above, another below */
		return run_number(r, low_bytes) + high;
	case 2: /* another above */
		return (v + unit) & (bytes < 8 ? (1ull << 8 * bytes) - 1 : UINT64_MAX);
	case 3:
		return run_number_near(r, v, bytes);
	default:
		return v;
	}
}

/* ---- == and != --------------------------------------------------------------------------------- */

static const char equal_text[] = "program p\n"
				 "const tag = 0xa5 << 48\n"
				 "region data\n"
				 "arg at : offset(1) in data\n"
				 "arg x : u48\n"
				 "arg y : u32\n"
				 "arg z : u8\n"
				 "var a : le56\n"
				 "var c : be56\n"
				 "var d : le48\n"
				 "var e : le64\n"
				 "read data @ at -> a\n"
				 "mov data @ at + 8 as be56 -> c\n"
				 "mov data @ at + 16 as le48 -> d\n"
				 "mov data @ at + 24 as le64 -> e\n"
				 "if a == x + tag {\n  write 1 as u8 -> slot @ 0\n}\n"
				 "if tag + x != c {\n  write 1 as u8 -> slot @ 1\n}\n"
				 "if d == 0x700000000 + y + (1 << 40) {\n  write 1 as u8 -> slot @ 2\n}\n"
				 "if e == z + 0x1122334455667700 {\n  write 1 as u8 -> slot @ 3\n"
				 "} else {\n  write 2 as u8 -> slot @ 3\n}\n"
				 "write_imm 9 as u8 -> slot @ 4\n";

static const uint64_t TAG = 0xa5ull << 48, MIDDLE = 0x10700000000, WIDE = 0x1122334455667700;

static void equal_request(struct run *r, uint8_t *slot)
{
	uint8_t *p = r->region[0] + PLACE * run_random(r, PLACES);
	uint64_t x = run_random(r, 2) ? run_get_le(p, 6) : run_get_be(p + 9, 6);
	uint64_t y = run_random(r, 2) ? run_get_le(p + 16, 4) : run_number(r, 4);
	uint64_t z = run_random(r, 2) ? p[24] : run_number(r, 1);

	run_arg(r, "at", (uint64_t)(p - r->region[0]));
	run_arg(r, "x", x);
	run_arg(r, "y", y);
	run_arg(r, "z", z);
	if (run_get_le(p, 7) == x + TAG)
		slot[0] = 1;
	if (run_get_be(p + 8, 7) != x + TAG)
		slot[1] = 1;
	if (run_get_le(p + 16, 6) == y + MIDDLE)
		slot[2] = 1;
	slot[3] = run_get_le(p + 24, 8) == z + WIDE ? 1 : 2;
	slot[4] = 9;
}

static void above_setup(struct run *r)
{
	for (unsigned i = 0; i < PLACES; i++) {
		uint8_t *p = r->region[0] + (size_t)i * PLACE;

		run_put_le(p, 7, near_sum(r, run_number(r, 6), 6, TAG, 7));
		run_put_be(p + 8, 7, near_sum(r, run_number(r, 6), 6, TAG, 7));
		run_put_le(p + 16, 6, near_sum(r, run_number(r, 4), 4, MIDDLE, 6));
		run_put_le(p + 24, 8, near_sum(r, run_number(r, 1), 1, WIDE, 8));
	}
}

/* ---- the other relations ----------------------------------------------------------------------- */

static const char order_text[] = "program p\n"
				 "const tag = 0xa5 << 48\n"
				 "region data\n"
				 "arg at : offset(1) in data\n"
				 "arg x : u48\n"
				 "arg z : u8\n"
				 "var a : le56\n"
				 "var e : le64\n"
				 "mov data @ at as le56 -> a\n"
				 "mov data @ at + 24 as le64 -> e\n"
				 "if a < x + tag {\n  write 1 as u8 -> slot @ 0\n}\n"
				 "if a >= x + tag {\n  write 1 as u8 -> slot @ 1\n}\n"
				 "if a <= tag + x {\n  write 1 as u8 -> slot @ 2\n}\n"
				 "if z + 0x1122334455667700 < e {\n  write 1 as u8 -> slot @ 3\n}\n"
				 "write_imm 9 as u8 -> slot @ 4\n";

static void order_request(struct run *r, uint8_t *slot)
{
	uint8_t *p = r->region[0] + PLACE * run_random(r, PLACES);
	uint64_t x = run_number_near(r, run_get_le(p, 6), 6), z = run_number_near(r, p[24], 1);

	run_arg(r, "at", (uint64_t)(p - r->region[0]));
	run_arg(r, "x", x);
	run_arg(r, "z", z);
	slot[0] = run_get_le(p, 7) < x + TAG ? 1 : slot[0];
	slot[1] = run_get_le(p, 7) >= x + TAG ? 1 : slot[1];
	slot[2] = run_get_le(p, 7) <= x + TAG ? 1 : slot[2];
	slot[3] = z + WIDE < run_get_le(p + 24, 8) ? 1 : slot[3];
	slot[4] = 9;
}

/* ---- between arguments ------------------------------------------------------------------------- */

static const char arguments_text[] = "program p\n"
				     "arg w : u56\n"
				     "arg x : u48\n"
				     "arg v : u16\n"
				     "if w == x + (0xa5 << 48) {\n  write 1 as u8 -> slot @ 0\n"
				     "} else {\n  write 2 as u8 -> slot @ 0\n}\n"
				     "if v + 0x10000 != x {\n  write 1 as u8 -> slot @ 1\n"
				     "} else {\n  write 2 as u8 -> slot @ 1\n}\n"
				     "write_imm 9 as u8 -> slot @ 2\n";

static void arguments_request(struct run *r, uint8_t *slot)
{
	uint64_t v = run_number(r, 2), x = near_sum(r, v, 2, 0x10000, 6), w = near_sum(r, x, 6, TAG, 7);

	run_arg(r, "w", w);
	run_arg(r, "x", x);
	run_arg(r, "v", v);
	slot[0] = w == x + TAG ? 1 : 2;
	slot[1] = v + 0x10000 != x ? 1 : 2;
	slot[2] = 9;
}

/* ---- all of them ------------------------------------------------------------------------------- */

#define ABOVE(n, t) .name = n, .text = t##_text, .request = t##_request, .depth = 2

const struct run_offload above[] = {
	{ABOVE("a constant above an argument", equal), .region_bytes = {PLACES * PLACE},
		.setup = above_setup},
	{ABOVE("a constant above an argument, no masks", equal), .no_masks = true,
		.region_bytes = {PLACES * PLACE}, .setup = above_setup},
	{ABOVE("a constant above an argument, direct", equal), .direct = true,
		.region_bytes = {PLACES * PLACE}, .setup = above_setup},
	{ABOVE("a constant above an argument, fenced enables", equal), .fenced = true,
		.region_bytes = {PLACES * PLACE}, .setup = above_setup},
	{ABOVE("order with a constant above", order), .region_bytes = {PLACES * PLACE}, .setup = above_setup},
	{ABOVE("order with a constant above, no masks", order), .no_masks = true,
		.region_bytes = {PLACES * PLACE}, .setup = above_setup},
	{ABOVE("a constant above one of two arguments", arguments), .setup = run_no_setup},
	{ABOVE("a constant above one of two arguments, no masks", arguments), .no_masks = true,
		.setup = run_no_setup},
};

const unsigned nabove = COUNT(above);
