/* SPDX-License-Identifier: BSD-2-Clause */
/* What the language can say and no program of the library does: small programs, each beside what it means in
 * plain C */
#include "tests/programs/offloads.h"
#include "tests/programs/values.h"

#include <stdio.h>
#include <string.h>

enum { WORDS = 64 };

static void words_setup(struct run *r)
{
	for (unsigned i = 0; i < r->p->nregions; i++)
		for (unsigned w = 0; w < r->o->region_bytes[i] / 8; w++)
			run_put_le(r->region[i] + w * 8, 8, run_number(r, 8));
}

/* ---- branches --------------------------------------------------------------------------------- */

static const char else_text[] =
	"program p\n"
	"arg x : u56\n"
	"arg y : u56\n"
	"if x == y {\n  write 1 as u8 -> slot @ 0\n} else {\n  write 2 as u8 -> slot @ 0\n}\n"
	"write_imm 9 as u8 -> slot @ 1\n";

static void else_request(struct run *r, uint8_t *slot)
{
	uint64_t x = run_number(r, 7), y = run_number_near(r, x, 7);

	run_arg(r, "x", x);
	run_arg(r, "y", y);
	slot[0] = x == y ? 1 : 2;
	slot[1] = 9;
}

/* The answer itself is in a branch, and another one in the other */
static const char answers_text[] = "program p\n"
				   "arg x : u8\n"
				   "arg y : u32\n"
				   "var seen : u8\n"
				   "mov x -> seen\n"
				   "if seen == 1 {\n  write_imm 1 as u8 -> slot @ 0\n"
				   "} else if y == 7 {\n  write_imm 2 as u8 -> slot @ 1\n"
				   "} else {\n  write_imm 3 as u8 -> slot @ 2\n}\n";

static void answers_request(struct run *r, uint8_t *slot)
{
	uint64_t x = run_random(r, 2), y = run_number_near(r, 7, 4);
	unsigned which = x == 1 ? 0 : y == 7 ? 1 : 2;

	run_arg(r, "x", x);
	run_arg(r, "y", y);
	slot[which] = (uint8_t)(which + 1);
}

/* Answers under conditions within conditions, on both sides */
static const char deep_text[] = "program p\n"
				"arg a : u8\n"
				"arg b : u8\n"
				"arg c : u8\n"
				"if a == 1 {\n"
				"  if b == 1 {\n    write_imm 1 as u8 -> slot @ 0\n"
				"  } else if c == 1 {\n    write_imm 2 as u8 -> slot @ 1\n"
				"  } else {\n    write_imm 3 as u8 -> slot @ 2\n  }\n"
				"} else {\n"
				"  if c != 1 {\n"
				"    if b == 1 {\n      write_imm 4 as u8 -> slot @ 3\n    } else {\n"
				"      write_imm 5 as u8 -> slot @ 4\n    }\n"
				"  } else {\n    write_imm 6 as u8 -> slot @ 5\n  }\n"
				"}\n";

static void deep_request(struct run *r, uint8_t *slot)
{
	uint64_t a = run_random(r, 2), b = run_random(r, 2), c = run_random(r, 2);
	unsigned which = a ? (b ? 0 : c ? 1 : 2) : c ? 5 : b ? 3 : 4;

	run_arg(r, "a", a);
	run_arg(r, "b", b);
	run_arg(r, "c", c);
	slot[which] = (uint8_t)(which + 1);
}

/* One side has them, the other answers at once */
static const char one_side_text[] = "program p\n"
				    "arg a : u8\n"
				    "arg b : u8\n"
				    "if a == 1 {\n"
				    "  if b == 1 {\n    write_imm 1 as u8 -> slot @ 0\n  } else {\n    "
				    "write_imm 2 as u8 -> slot @ 0\n  }\n"
				    "} else {\n  write_imm 3 as u8 -> slot @ 0\n}\n";

static void one_side_request(struct run *r, uint8_t *slot)
{
	uint64_t a = run_random(r, 2), b = run_random(r, 2);

	run_arg(r, "a", a);
	run_arg(r, "b", b);
	slot[0] = a ? (b ? 1 : 2) : 3;
}

/* The author enables a part of the reply, before the rest of it is known */
static const char part_text[] = "program p\n"
				"region data size 512\n"
				"arg x : u64\n"
				"var a : le64\n"
				"read data -> a\n"
				"one: write a -> slot @ 8\n"
				"enable one\n"
				"if a == x {\n  write 7 as u8 -> slot @ 16\n}\n"
				"write_imm 9 as u8 -> slot @ 0\n";

static void part_request(struct run *r, uint8_t *slot)
{
	uint64_t a = run_get_le(r->region[0], 8), x = run_number_near(r, a, 8);

	run_arg(r, "x", x);
	slot[0] = 9;
	run_put_le(slot + 8, 8, a);
	if (x == a)
		slot[16] = 7;
}

static const char parts_text[] = "program p\n"
				 "region data size 512\n"
				 "var a : le64\n"
				 "var b : le64\n"
				 "read data -> a\n"
				 "one: write a -> slot @ 8\n"
				 "enable one\n"
				 "read data @ 8 -> b\n"
				 "two: write b -> slot @ 16\n"
				 "enable two\n"
				 "write_imm 9 as u8 -> slot @ 0\n";

static void parts_request(struct run *r, uint8_t *slot)
{
	slot[0] = 9;
	run_put_le(slot + 8, 8, run_get_le(r->region[0], 8));
	run_put_le(slot + 16, 8, run_get_le(r->region[0] + 8, 8));
}

/* More in a branch than lanes in a word: both sides, ten writes each */
static const char long_text[] = "program p\n"
				"arg x : u32\n"
				"arg y : u32\n"
				"if x != y {\n"
				"  for i in 0..10 {\n    write i + 1 as u8 -> slot @ i\n  }\n"
				"} else {\n"
				"  for i in 0..12 {\n    write i + 101 as u8 -> slot @ i + 10\n  }\n"
				"}\n"
				"write_imm 9 as u8 -> slot @ 100\n";

static void long_request(struct run *r, uint8_t *slot)
{
	uint64_t x = run_number(r, 4), y = run_number_near(r, x, 4);

	run_arg(r, "x", x);
	run_arg(r, "y", y);
	for (uint8_t i = 0; x != y && i < 10; i++)
		slot[i] = i + 1;
	for (uint8_t i = 0; x == y && i < 12; i++)
		slot[10 + i] = i + 101;
	slot[100] = 9;
}

static const char nested_text[] =
	"program p\n"
	"region data\n"
	"arg at : offset(2) in data\n"
	"arg a : u48\n"
	"arg b : u64\n"
	"var out : u8\n"
	"var x : le48\n"
	"var y : le64\n"
	"read data @ at -> x, y\n"
	"if x == a {\n"
	"  if y < b {\n    mov 1 -> out\n  } else {\n    mov 2 -> out\n    if x > 5 {\n      mov 3 -> out\n  "
	"  }\n  }\n"
	"} else {\n"
	"  if y >= b {\n    mov 4 -> out\n  } else if x <= 1000 {\n    mov 5 -> out\n  }\n"
	"}\n"
	"write_imm out -> slot @ 0\n";

static void nested_request(struct run *r, uint8_t *slot)
{
	uint64_t at = 8 * run_random(r, WORDS - 2), x = run_get_le(r->region[0] + at, 6),
		 y = run_get_le(r->region[0] + at + 6, 8), a = run_number_near(r, x, 6),
		 b = run_number_near(r, y, 8);

	run_arg(r, "at", at);
	run_arg(r, "a", a);
	run_arg(r, "b", b);
	if (x == a)
		slot[0] = y < b ? 1 : x > 5 ? 3 : 2;
	else
		slot[0] = y >= b ? 4 : x <= 1000 ? 5 : 0;
}

/* Variables with variables, in both orders of bytes, and a byte against constants */
static const char variables_text[] =
	"program p\n"
	"region data\n"
	"arg at : offset(2) in data\n"
	"var x : le64\n"
	"var y : le64\n"
	"var u : be40\n"
	"var v : be40\n"
	"var b : u8\n"
	"read data @ at -> x, y, u, v, b\n"
	"if x == y {\n  write 1 as u8 -> slot @ 0\n} else {\n  write 2 as u8 -> slot @ 0\n}\n"
	"if x < y {\n  write 1 as u8 -> slot @ 1\n} else {\n  write 2 as u8 -> slot @ 1\n}\n"
	"if x >= y {\n  write 1 as u8 -> slot @ 2\n} else {\n  write 2 as u8 -> slot @ 2\n}\n"
	"if u != v {\n  write 1 as u8 -> slot @ 3\n} else {\n  write 2 as u8 -> slot @ 3\n}\n"
	"if b > 0 {\n  write 1 as u8 -> slot @ 4\n}\n"
	"if b >= 0 {\n  write 1 as u8 -> slot @ 5\n}\n"
	"if b < 255 {\n  write 1 as u8 -> slot @ 6\n}\n"
	"if b <= 254 {\n  write 1 as u8 -> slot @ 7\n}\n"
	"if u == 0x102030405 {\n  write 1 as u8 -> slot @ 8\n}\n"
	"write_imm x, y -> slot @ 16\n";

static void variables_setup(struct run *r)
{
	for (unsigned i = 0; i < 8; i++) {
		uint8_t *p = r->region[0] + i * 32;
		uint64_t x = run_number(r, 8), u = run_random(r, 3) ? run_number(r, 5) : 0x102030405;

		run_put_le(p, 8, x);
		run_put_le(p + 8, 8, run_number_near(r, x, 8));
		run_put_be(p + 16, 5, u);
		run_put_be(p + 21, 5, run_number_near(r, u, 5));
		p[26] = (uint8_t)run_number(r, 1);
	}
}

static void variables_request(struct run *r, uint8_t *slot)
{
	uint64_t at = 32 * run_random(r, 8);
	const uint8_t *p = r->region[0] + at;
	uint64_t x = run_get_le(p, 8), y = run_get_le(p + 8, 8), u = run_get_be(p + 16, 5),
		 v = run_get_be(p + 21, 5);
	bool wrote[] = {p[26] > 0, true, p[26] < 255, p[26] <= 254, u == 0x102030405};

	run_arg(r, "at", at);
	slot[0] = x == y ? 1 : 2;
	slot[1] = x < y ? 1 : 2;
	slot[2] = x >= y ? 1 : 2;
	slot[3] = u != v ? 1 : 2;
	for (unsigned i = 0; i < 5; i++)
		if (wrote[i])
			slot[4 + i] = 1;
	memcpy(slot + 16, p, 16);
}

/* Conditions of one step each: in its control segment, where the NIC ignores index and QPN */
static const char direct_text[] =
	"program p\n"
	"region data\n"
	"arg at : offset(2) in data\n"
	"arg a : u24\n"
	"arg b : u48\n"
	"arg c : u8\n"
	"var x : le24\n"
	"var y : be48\n"
	"var z : u8\n"
	"var w : le40\n"
	"read data @ at -> x, y, z, w\n"
	"if x == a {\n  write 1 as u8 -> slot @ 0\n}\n"
	"if y == b {\n  write 1 as u8 -> slot @ 1\n  write 1 as u8 -> slot @ 5\n}\n"
	"if z == c {\n  if w == 0x102030405 {\n    write 1 as u8 -> slot @ 2\n  }\n}\n"
	"if y == 77 {\n  write 1 as u8 -> slot @ 3\n}\n"
	"write_imm 1 as u8 -> slot @ 4\n";

static void direct_setup(struct run *r)
{
	for (unsigned i = 0; i < 8; i++) {
		uint8_t *p = r->region[0] + i * 16;

		run_put_le(p, 3, run_number(r, 3));
		run_put_be(p + 3, 6, run_random(r, 3) ? run_number(r, 6) : 77);
		p[9] = (uint8_t)run_random(r, 2);
		run_put_le(p + 10, 5, run_random(r, 2) ? run_number(r, 5) : 0x102030405);
	}
}

static void direct_request(struct run *r, uint8_t *slot)
{
	uint64_t at = 16 * run_random(r, 8);
	const uint8_t *p = r->region[0] + at;
	uint64_t x = run_get_le(p, 3), y = run_get_be(p + 3, 6), a = run_number_near(r, x, 3),
		 b = run_number_near(r, y, 6), c = run_random(r, 2);

	run_arg(r, "at", at);
	run_arg(r, "a", a);
	run_arg(r, "b", b);
	run_arg(r, "c", c);
	if (x == a)
		slot[0] = 1;
	if (y == b)
		slot[1] = slot[5] = 1;
	if (p[9] == c && run_get_le(p + 10, 5) == 0x102030405)
		slot[2] = 1;
	if (y == 77)
		slot[3] = 1;
	slot[4] = 1;
}

/* ---- loops ------------------------------------------------------------------------------------ */

/* Steps along links until a node marked as the last, or four times */
static const char while_text[] = "program p\n"
				 "region data\n"
				 "struct node { more : u8, next : be16, _ : bytes 5 }\n"
				 "arg head : offset(2) in data\n"
				 "var cur : be16\n"
				 "var more : u8 = 1\n"
				 "var steps : le64\n"
				 "mov head -> cur\n"
				 "while more == 1 max 4 {\n"
				 "  read data @ cur as node { more -> more, next -> cur }\n"
				 "  add steps by 1\n"
				 "}\n"
				 "write_imm steps, cur -> slot @ 0\n";

static void nodes_setup(struct run *r)
{
	run_fill(r, r->region[0], WORDS * 8);
	for (unsigned i = 0; i < WORDS; i++) {
		r->region[0][i * 8] = run_random(r, 4) > 0;
		run_put_be(r->region[0] + i * 8 + 1, 2, 8 * run_random(r, WORDS));
	}
}

static void while_request(struct run *r, uint8_t *slot)
{
	uint64_t cur = 8 * run_random(r, WORDS), steps = 0;
	bool more = true;

	run_arg(r, "head", cur);
	for (; more && steps < 4; steps++) {
		more = r->region[0][cur];
		cur = run_get_be(r->region[0] + cur + 1, 2);
	}
	run_put_le(slot, 8, steps);
	run_put_be(slot + 8, 2, cur);
}

/* Breaks within branches, with more to do after them, and a loop within a loop */
static const char breaks_text[] =
	"program p\n"
	"region data\n"
	"arg a : u8\n"
	"var sum : le64\n"
	"var rounds : le64\n"
	"var x : u8\n"
	"var y : u8\n"
	"for i in 0..4 {\n"
	"  for k in 0..3 {\n"
	"    read data @ i * 24 + k * 8 -> x, y\n"
	"    add sum by 1\n"
	"    if x < 100 {\n"
	"      if y == a {\n        add sum by 1000\n        break\n      }\n"
	"      add sum by 10\n"
	"    } else if x > 200 {\n"
	"      break\n"
	"    }\n"
	"    add sum by 100\n"
	"  }\n"
	"  add rounds by 1\n"
	"  if x == 7 {\n    if y != a {\n      break\n    }\n    add rounds by 10\n  }\n"
	"  add rounds by 100\n"
	"}\n"
	"write_imm sum, rounds -> slot @ 0\n";

static void breaks_setup(struct run *r)
{
	for (unsigned i = 0; i < 12; i++) {
		r->region[0][i * 8] = (uint8_t)(run_random(r, 3) ? 7 : run_random(r, 256));
		r->region[0][i * 8 + 1] = (uint8_t)run_random(r, 4);
	}
}

static void breaks_request(struct run *r, uint8_t *slot)
{
	uint64_t a = run_random(r, 4), sum = 0, rounds = 0;

	run_arg(r, "a", a);
	for (unsigned i = 0; i < 4; i++) {
		uint8_t x = 0, y = 0;

		for (unsigned k = 0; k < 3; k++) {
			x = r->region[0][i * 24 + k * 8];
			y = r->region[0][i * 24 + k * 8 + 1];
			sum++;
			if (x < 100) {
				if (y == a) {
					sum += 1000;
					break;
				}
				sum += 10;
			} else if (x > 200) {
				break;
			}
			sum += 100;
		}
		rounds++;
		if (x == 7) {
			if (y != a)
				break;
			rounds += 10;
		}
		rounds += 100;
	}
	run_put_le(slot, 8, sum);
	run_put_le(slot + 8, 8, rounds);
}

/* ---- atomics ---------------------------------------------------------------------------------- */

static const char atomics_text[] = "program p\n"
				   "region data writable steered\n"
				   "arg old : u64\n"
				   "arg new : u56\n"
				   "arg by : u32\n"
				   "var was : le64\n"
				   "var then : le64\n"
				   "var sum : le64 = 40\n"
				   "cas data @ 8 as le64 : old -> new, was -> was\n"
				   "add data @ 16 as le64 by was\n"
				   "add data @ 24 as le64 by by, was -> then\n"
				   "add sum by 2\n"
				   "add sum by then\n"
				   "cas data @ 32 as le64 : 0x11 -> 0x22, mask 0xff\n"
				   "add data @ 40 as le64 by 0x100000001, fields 0x8000000080000000\n"
				   "cas sum : 42 -> 7\n"
				   "write_imm was, then, sum -> slot @ 0\n";

static void atomics_request(struct run *r, uint8_t *slot)
{
	uint8_t *m = r->model[0];
	uint64_t was = run_get_le(m + 8, 8), old = run_number_near(r, was, 8), to = run_number(r, 7),
		 by = run_number(r, 4), then = run_get_le(m + 24, 8), sum = 42 + then, v;

	run_arg(r, "old", old);
	run_arg(r, "new", to);
	run_arg(r, "by", by);
	if (was == old)
		run_put_le(m + 8, 8, to);
	run_put_le(m + 16, 8, run_get_le(m + 16, 8) + was);
	run_put_le(m + 24, 8, then + by);
	if (m[32] == 0x11)
		m[32] = 0x22;
	v = run_get_le(m + 40, 8);
	run_put_le(m + 40, 4, v + 1);
	run_put_le(m + 44, 4, (v >> 32) + 1);
	run_put_le(slot, 8, was);
	run_put_le(slot + 8, 8, then);
	run_put_le(slot + 16, 8, sum == 42 ? 7 : sum);
}

/* ---- moving ----------------------------------------------------------------------------------- */

static const char moves_text[] = "program p\n"
				 "region data writable steered\n"
				 "arg x : be32\n"
				 "arg at : offset(1) in data\n"
				 "var a : be32\n"
				 "var b : le32\n"
				 "var c : le32\n"
				 "var i : le16\n"
				 "mov x -> a\n"
				 "mov swab(a) -> b\n"
				 "mov data @ 0 as le16 -> i\n"
				 "mov data @ 256 + i as le32 -> c\n"
				 "mov c -> data @ at + 128 as le32\n"
				 "mov swab(data @ 4 as be32) -> data @ 8 as le32\n"
				 "write a, b, c -> slot @ 0\n"
				 "write_imm a, 5 as be16 -> slot @ 16\n";

static void moves_setup(struct run *r)
{
	run_fill(r, r->region[0], 1024);
	run_put_le(r->region[0], 2, run_random(r, 512));
}

static void moves_request(struct run *r, uint8_t *slot)
{
	uint8_t *m = r->model[0];
	uint64_t x = run_number(r, 4), at = run_random(r, 100), c = run_get_le(m + 256 + run_get_le(m, 2), 4);

	run_arg(r, "x", x);
	run_arg(r, "at", at);
	run_put_le(m + at + 128, 4, c);
	run_put_le(m + 8, 4, run_get_be(m + 4, 4));
	run_put_be(slot, 4, x);
	run_put_le(slot + 4, 4, x);
	run_put_le(slot + 8, 4, c);
	run_put_be(slot + 16, 4, x);
	run_put_be(slot + 20, 2, 5);
}

/* Offsets that are wider than any of their parts */
static const char far_text[] = "program p\n"
			       "region data\n"
			       "arg at : offset(1) in data\n"
			       "var x : le64\n"
			       "var y : le64\n"
			       "mov data @ at + 70000 as le64 -> x\n"
			       "mov data @ at + 65300 as le64 -> y\n"
			       "write_imm x, y -> slot @ 0\n";

static void far_setup(struct run *r)
{
	run_fill(r, r->region[0] + 65300, r->o->region_bytes[0] - 65300);
}

static void far_request(struct run *r, uint8_t *slot)
{
	uint64_t at = run_random(r, 256);

	run_arg(r, "at", at);
	memcpy(slot, r->region[0] + 70000 + at, 8);
	memcpy(slot + 8, r->region[0] + 65300 + at, 8);
}

/* An address of an argument and of what was looked up by it: a client must not choose the one apart from the
 * other */
static const char perms_text[] = "program p\n"
				 "region perms, data size 65536\n"
				 "arg at : offset(1) in perms\n"
				 "read perms @ at as u8 -> w.remote[6]\n"
				 "mov at -> w.remote[7]\n"
				 "w: read data as u8 -> value\n"
				 "write_imm value -> slot @ 0\n";

static const char perms_sum_text[] = "program p\n"
				     "region data size 66048\n"
				     "arg at : offset(1) in data\n"
				     "var page : le16\n"
				     "read data @ at as le16 -> page\n"
				     "write_imm data @ page + at as u8 -> slot @ 0\n";

static const char perms_joined_text[] = "program p\n"
					"region perms, data size 65536\n"
					"arg at : offset(1) in perms\n"
					"var place : be16\n"
					"write perms @ at as u8, at -> place\n"
					"write_imm data @ place as u8 -> slot @ 0\n";

static void perms_setup(struct run *r)
{
	for (unsigned i = 0; r->o->region_bytes[i]; i++)
		run_fill(r, r->region[i], r->o->region_bytes[i]);
}

/* What is at @place of the last region; the request has the argument once */
static void perms_at(struct run *r, uint8_t *slot, uint64_t at, uint64_t place)
{
	run_arg(r, "at", at);
	assert_int_equal(r->c.img->arg_len, 1);
	slot[0] = r->region[r->o->region_bytes[1] ? 1 : 0][place];
}

static void perms_request(struct run *r, uint8_t *slot)
{
	const uint64_t at = run_random(r, 256);

	perms_at(r, slot, at, r->region[0][at] << 8 | at);
}

static void perms_sum_request(struct run *r, uint8_t *slot)
{
	const uint64_t at = run_random(r, 256);

	perms_at(r, slot, at, run_get_le(r->region[0] + at, 2) + at);
}

#define perms_joined_request perms_request

/* More copies of arguments, of several kinds, than a request has room for */
static const char uses_text[] = "program p\n"
				"region data\n"
				"arg key : u48\n"
				"arg wide : bytes 24\n"
				"var n : le64\n"
				"for i in 0..12 {\n"
				"  var x : le48\n"
				"  var w : bytes 24\n"
				"  read data @ i * 30 -> x, w\n"
				"  if x < key {\n    add n by 1\n  }\n"
				"  if x == key {\n    add n by 100\n  }\n"
				"  if w == wide {\n    add n by 10000\n  }\n"
				"}\n"
				"write_imm n -> slot @ 0\n";

static void uses_setup(struct run *r)
{
	for (unsigned i = 0; i < 12; i++) {
		run_put_le(r->region[0] + i * 30, 6, run_random(r, 5));
		memset(r->region[0] + i * 30 + 6, (int)run_random(r, 3), 24);
	}
}

static void uses_request(struct run *r, uint8_t *slot)
{
	uint64_t key = run_random(r, 5), n = 0;
	uint8_t wide[24];

	memset(wide, (int)run_random(r, 3), sizeof(wide));
	wide[run_random(r, sizeof(wide))] ^= (uint8_t)(run_random(r, 3) == 0);
	run_arg(r, "key", key);
	run_arg_bytes(r, "wide", wide);
	for (unsigned i = 0; i < 12; i++) {
		const uint8_t *p = r->region[0] + i * 30;

		n += run_get_le(p, 6) < key ? 1 : run_get_le(p, 6) == key ? 100 : 0;
		n += memcmp(p + 6, wide, 24) == 0 ? 10000 : 0;
	}
	run_put_le(slot, 8, n);
}

/* More arguments than a request has places for: in operands, in addresses, of one use and of several */
static const char many_text[] = "program p\n"
				"region data\n"
				"arg k[13] : u32\n"
				"arg at[6] : offset(2) in data\n"
				"arg key : u48\n"
				"arg wide : bytes 24\n"
				"arg last : le64\n"
				"var n : le64\n"
				"for i in 0..13 {\n"
				"  var x : le32\n"
				"  read data @ 4 * i -> x\n"
				"  if x == k[i] {\n    add n by 1\n  }\n"
				"}\n"
				"for i in 0..6 {\n"
				"  var x : le48\n"
				"  var w : bytes 24\n"
				"  read data @ at[i] -> x, w\n"
				"  if x < key {\n    add n by 100\n  }\n"
				"  if x == key {\n    add n by 10000\n  }\n"
				"  if w == wide {\n    add n by 1000000\n  }\n"
				"}\n"
				"write_imm n, last -> slot @ 0\n";

enum { MANY_ROWS = 8 };

static void many_setup(struct run *r)
{
	for (unsigned i = 0; i < 13; i++)
		run_put_le(r->region[0] + i * 4, 4, run_random(r, 2));
	for (unsigned i = 0; i < MANY_ROWS; i++) {
		run_put_le(r->region[0] + 64 + i * 30, 6, run_random(r, 5));
		memset(r->region[0] + 64 + i * 30 + 6, (int)run_random(r, 3), 24);
	}
}

static void many_request(struct run *r, uint8_t *slot)
{
	uint64_t key = run_random(r, 5), n = 0, last = run_number(r, 8);
	uint8_t wide[24];
	char name[16];

	memset(wide, (int)run_random(r, 3), sizeof(wide));
	wide[run_random(r, sizeof(wide))] ^= (uint8_t)(run_random(r, 3) == 0);
	run_arg(r, "key", key);
	run_arg_bytes(r, "wide", wide);
	run_arg(r, "last", last);
	for (unsigned i = 0; i < 13; i++) {
		const uint64_t k = run_random(r, 2);

		snprintf(name, sizeof(name), "k[%u]", i);
		run_arg(r, name, k);
		n += run_get_le(r->region[0] + i * 4, 4) == k;
	}
	for (unsigned i = 0; i < 6; i++) {
		const uint64_t at = 64 + run_random(r, MANY_ROWS) * 30;
		const uint8_t *row = r->region[0] + at;

		snprintf(name, sizeof(name), "at[%u]", i);
		run_arg(r, name, at);
		n += run_get_le(row, 6) < key ? 100 : run_get_le(row, 6) == key ? 10000 : 0;
		n += memcmp(row + 6, wide, 24) == 0 ? 1000000 : 0;
	}
	run_put_le(slot, 8, n);
	run_put_le(slot + 8, 8, last);
}

/* Such that go to nothing but the reply, whose words are one data segment */
static const char parts_of_reply_text[] =
	"program p\n"
	"region data\n"
	"arg at[40] : offset(2) in data\n"
	"arg tag[20] : u8\n"
	"var seen[40] : bytes 3\n"
	"for i in 0..40 {\n"
	"  read data @ at[i] -> seen[i]\n"
	"}\n"
	"write seen[0], seen[1], seen[2], seen[3], tag[19], seen[3] -> slot @ 200\n"
	"write_imm seen[0], seen[39], seen[1], data @ 7 as u8, tag[0], tag[7] -> slot @ 0\n";

static void parts_of_reply_request(struct run *r, uint8_t *slot)
{
	const uint8_t *seen[40], tags[3] = {(uint8_t)run_random(r, 256), (uint8_t)run_random(r, 256),
					 (uint8_t)run_random(r, 256)};
	char name[16];

	for (unsigned i = 0; i < 40; i++) {
		const uint64_t at = run_random(r, WORDS * 8 - 3);

		snprintf(name, sizeof(name), "at[%u]", i);
		run_arg(r, name, at);
		seen[i] = r->region[0] + at;
	}
	run_arg(r, "tag[0]", tags[0]);
	run_arg(r, "tag[7]", tags[1]);
	run_arg(r, "tag[19]", tags[2]);
	memcpy(slot, seen[0], 3);
	memcpy(slot + 3, seen[39], 3);
	memcpy(slot + 6, seen[1], 3);
	slot[9] = r->region[0][7];
	slot[10] = tags[0];
	slot[11] = tags[1];
	for (unsigned i = 0; i < 4; i++)
		memcpy(slot + 200 + 3ul * i, seen[i], 3);
	slot[212] = tags[2];
	memcpy(slot + 213, seen[3], 3);
}

/* ---- loops that answer ------------------------------------------------------------------------ */

/* An answer of two WRs in each iteration, reads before it is known whether they are needed, and another
 * answer if none was it */
static const char early_text[] = "program p\n"
				 "region data\n"
				 "arg at[5] : offset(2) in data\n"
				 "arg key : be32\n"
				 "for p in 0..5 {\n"
				 "  var seen : le32\n"
				 "  var more : be16\n"
				 "  ahead read data @ at[p] -> seen, more\n"
				 "  if seen == key {\n"
				 "    write more -> slot @ 2 * p\n"
				 "    ahead write_imm p + 1 as u8 -> slot @ 32\n"
				 "    break\n"
				 "  }\n"
				 "} else {\n"
				 "  write_imm key -> slot @ 36\n"
				 "}\n";

static void early_request(struct run *r, uint8_t *slot)
{
	uint64_t key = run_random(r, 12);
	unsigned at[5], p;

	for (p = 0; p < 5; p++) {
		char name[8];

		at[p] = 8 * (unsigned)run_random(r, WORDS);
		snprintf(name, sizeof(name), "at[%u]", p);
		run_arg(r, name, at[p]);
	}
	run_arg(r, "key", key);
	for (p = 0; p < 5 && run_get_le(r->region[0] + at[p], 4) != key; p++)
		;
	if (p == 5) {
		run_put_be(slot + 36, 4, key);
		return;
	}
	memcpy(slot + 2 * p, r->region[0] + at[p] + 4, 2);
	slot[32] = (uint8_t)(p + 1);
}

static void few_setup(struct run *r)
{
	for (unsigned w = 0; w < WORDS; w++)
		run_put_le(r->region[0] + w * 8, 8, run_random(r, 12) | run_random(r, 65536) << 32);
}

/* What comes after an answer is done as well, whatever it was */
static const char after_text[] = "program p\n"
				 "region data writable size 64\n"
				 "arg a : u16\n"
				 "var seen : le16\n"
				 "for i in 0..4 {\n"
				 "  mov data @ 8 * i as le16 -> seen\n"
				 "  if seen == a {\n"
				 "    ahead write_imm i as u8 -> slot @ 0\n"
				 "    break\n"
				 "  }\n"
				 "  add data @ 8 * i as le64 by 1\n"
				 "} else {\n"
				 "  write_imm 9 as u8 -> slot @ 0\n"
				 "}\n"
				 "add data @ 32 as le64 by 1\n"
				 "mov data @ 32 as le64 -> data @ 40 as le64\n";

static void after_request(struct run *r, uint8_t *slot)
{
	uint8_t *m = r->model[0];
	uint64_t a = run_get_le(m + 8 * run_random(r, 4), 2) + run_random(r, 2);
	unsigned i;

	a &= 0xffff;
	run_arg(r, "a", a);
	for (i = 0; i < 4 && run_get_le(m + 8 * i, 2) != a; i++)
		run_put_le(m + 8 * i, 8, run_get_le(m + 8 * i, 8) + 1);
	slot[0] = i < 4 ? (uint8_t)i : 9;
	run_put_le(m + 32, 8, run_get_le(m + 32, 8) + 1);
	memcpy(m + 40, m + 32, 8);
}

/* The else of a loop in a loop, which it leaves: how many pairs in a row have the key */
static const char pairs_text[] = "program p\n"
				 "region data\n"
				 "arg key : u32\n"
				 "var n : le64\n"
				 "for i in 0..4 {\n"
				 "  for j in 0..2 {\n"
				 "    if data @ 16 * i + 8 * j as le32 == key {\n      break\n    }\n"
				 "  } else {\n"
				 "    break\n"
				 "  }\n"
				 "  add n by 1\n"
				 "} else {\n"
				 "  add n by 100\n"
				 "}\n"
				 "write_imm n -> slot @ 0\n";

static void pairs_setup(struct run *r)
{
	for (unsigned w = 0; w < 8; w++)
		run_put_le(r->region[0] + w * 8, 8, run_random(r, 2));
}

static void pairs_request(struct run *r, uint8_t *slot)
{
	uint64_t key = run_random(r, 2), n = 0;

	run_arg(r, "key", key);
	while (n < 4 && (run_get_le(r->region[0] + 16 * n, 4) == key ||
				run_get_le(r->region[0] + 16 * n + 8, 4) == key))
		n++;
	run_put_le(slot, 8, n == 4 ? 104 : n);
}

/* ---- calculating ------------------------------------------------------------------------------ */

/* Operands of both orders and of several widths, results that go to variables, a region and an address */
static const char calc_text[] = "program p\n"
				"region data writable steered size 128\n"
				"arg x : u64\n"
				"arg y : u16\n"
				"var l : le64\n"
				"var b : be64\n"
				"var low : le32\n"
				"var high : be64\n"
				"var sum : be16\n"
				"var bits : le64\n"
				"var at : be56\n"
				"mov x -> l\n"
				"mov data @ 0 as be64 -> b\n"
				"max l, b -> high\n"
				"min l, b -> l\n"
				"xor l, high -> bits\n"
				"and data @ 8 as le64, bits -> data @ 16 as be64\n"
				"sub y, data @ 24 as le16 -> low\n"
				"add y, 65535 -> sum\n"
				"and y, 56 -> at\n"
				"max data @ 64 + at as be64, x -> data @ 64 + at as be64\n"
				"min x, y -> data @ 32 as le64\n"
				"write_imm l, high, bits, low, sum -> slot @ 0\n";

static void calc_request(struct run *r, uint8_t *slot)
{
	uint8_t *m = r->model[0];
	uint64_t b = run_get_be(m, 8), x = run_number_near(r, b, 8), y = run_number(r, 2), low, high, was;
	unsigned at = 64 + (y & 56);

	run_arg(r, "x", x);
	run_arg(r, "y", y);
	low = x < b ? x : b;
	high = x < b ? b : x;
	run_put_le(slot, 8, low);
	run_put_be(slot + 8, 8, high);
	run_put_le(slot + 16, 8, low ^ high);
	run_put_le(slot + 24, 4, (y - run_get_le(m + 24, 2)) & UINT32_MAX);
	run_put_be(slot + 28, 2, y - 1);
	run_put_be(m + 16, 8, run_get_le(m + 8, 8) & (low ^ high));
	was = run_get_be(m + at, 8);
	run_put_be(m + at, 8, was > x ? was : x);
	run_put_le(m + 32, 8, x < y ? x : y);
}

/* What is calculated decides, under a condition and in a loop, and is what a WQE gets */
static const char calc_if_text[] = "program p\n"
				   "region data\n"
				   "arg x : u32\n"
				   "arg mask : u32\n"
				   "var v : le32\n"
				   "var m : le32\n"
				   "var best : be32\n"
				   "for i in 0..4 {\n"
				   "  mov data @ 8 * i as le32 -> v\n"
				   "  and v, mask -> m\n"
				   "  if m == x {\n"
				   "    max v, best -> best\n"
				   "  }\n"
				   "}\n"
				   "or best, x -> done.imm\n"
				   "done: write_imm best -> slot @ 0, imm 0\n";

static void calc_if_request(struct run *r, uint8_t *slot)
{
	uint64_t x = run_random(r, 4), mask = run_random(r, 4), best = 0;

	run_arg(r, "x", x);
	run_arg(r, "mask", mask);
	for (unsigned i = 0; i < 4; i++) {
		uint64_t v = run_get_le(r->region[0] + 8 * i, 4);

		if ((v & mask) == x && v > best)
			best = v;
	}
	run_put_be(slot, 4, best);
	run_answer(r)->has_imm = true;
	run_answer(r)->imm = (uint32_t)(best | x);
}

/* ---- all of them ------------------------------------------------------------------------------ */

#define FEATURE(n, t) .name = n, .text = t##_text, .request = t##_request

const struct run_offload features[] = {
	{FEATURE("if and else, 56 bits", else), .depth = 2, .setup = run_no_setup},
	{FEATURE("if and else, 56 bits, no masks", else), .no_masks = true, .depth = 2,
		.setup = run_no_setup},
	{FEATURE("if and else, 56 bits, fenced enables", else), .fenced = true, .depth = 2,
		.setup = run_no_setup},
	{FEATURE("if and else, 56 bits, direct", else), .direct = true, .depth = 2, .setup = run_no_setup},
	{FEATURE("one of three answers", answers), .depth = 2, .setup = run_no_setup},
	{FEATURE("one of three answers, no masks", answers), .no_masks = true, .depth = 2,
		.setup = run_no_setup},
	{FEATURE("answers in branches of branches", deep), .depth = 2, .setup = run_no_setup},
	{FEATURE("answers in branches of branches, no masks", deep), .no_masks = true, .depth = 2,
		.setup = run_no_setup},
	{FEATURE("answers in branches of one side", one_side), .depth = 2, .setup = run_no_setup},
	{FEATURE("answers in branches of one side, direct", one_side), .direct = true, .depth = 2,
		.setup = run_no_setup},
	{FEATURE("a part of the reply by hand", part), .depth = 2, .region_bytes = {WORDS * 8},
		.setup = words_setup},
	{FEATURE("a part of the reply by hand, direct", part), .direct = true, .depth = 2,
		.region_bytes = {WORDS * 8}, .setup = words_setup},
	{FEATURE("parts of the reply by hand", parts), .depth = 2, .region_bytes = {WORDS * 8},
		.setup = words_setup},
	{FEATURE("long branches", long), .depth = 2, .setup = run_no_setup},
	{FEATURE("long branches, no masks", long), .no_masks = true, .depth = 2, .setup = run_no_setup},
	{FEATURE("branches in branches", nested), .depth = 2, .region_bytes = {WORDS * 8},
		.setup = words_setup},
	{FEATURE("branches in branches, no masks", nested), .no_masks = true, .depth = 2,
		.region_bytes = {WORDS * 8}, .setup = words_setup},
	{FEATURE("branches in branches, direct", nested), .direct = true, .depth = 2,
		.region_bytes = {WORDS * 8}, .setup = words_setup},
	{FEATURE("variables", variables), .depth = 2, .region_bytes = {256}, .setup = variables_setup},
	{FEATURE("while", while), .depth = 1, .region_bytes = {WORDS * 8}, .setup = nodes_setup},
	{FEATURE("while, no masks", while), .no_masks = true, .depth = 1, .region_bytes = {WORDS * 8},
		.setup = nodes_setup},
	{FEATURE("one step", direct), .depth = 2, .region_bytes = {128}, .setup = direct_setup},
	{FEATURE("one step, direct", direct), .direct = true, .unrolled = true, .depth = 2,
		.region_bytes = {128}, .setup = direct_setup},
	{FEATURE("breaks", breaks), .depth = 2, .region_bytes = {96}, .setup = breaks_setup},
	{FEATURE("breaks, direct", breaks), .direct = true, .unrolled = true, .depth = 2,
		.region_bytes = {96}, .setup = breaks_setup},
	{FEATURE("atomics", atomics), .depth = 1, .region_bytes = {64}, .setup = words_setup},
	{FEATURE("far", far), .depth = 2, .region_bytes = {71000}, .setup = far_setup},
	{FEATURE("an address by the argument it was looked up by", perms), .depth = 2,
		.region_bytes = {256, 65536}, .setup = perms_setup},
	{FEATURE("the same as a sum", perms_sum), .depth = 2, .region_bytes = {66048}, .setup = perms_setup},
	{FEATURE("the same in a variable", perms_joined), .depth = 2, .region_bytes = {256, 65536},
		.setup = perms_setup},
	{FEATURE("uses", uses), .depth = 2, .region_bytes = {360}, .setup = uses_setup},
	{FEATURE("more arguments than places", many), .depth = 2, .region_bytes = {320}, .setup = many_setup},
	{FEATURE("more arguments than places, direct", many), .direct = true, .unrolled = true, .depth = 2,
		.region_bytes = {320}, .setup = many_setup},
	{FEATURE("many arguments, and a reply of many parts", parts_of_reply), .depth = 4,
		.region_bytes = {WORDS * 8}, .setup = words_setup},
	{FEATURE("many arguments, and a reply of many parts, no masks", parts_of_reply), .no_masks = true,
		.depth = 4, .region_bytes = {WORDS * 8}, .setup = words_setup},
	{FEATURE("answers in a loop", early), .depth = 1, .region_bytes = {WORDS * 8}, .setup = few_setup},
	{FEATURE("answers in a loop, no masks", early), .no_masks = true, .depth = 4,
		.region_bytes = {WORDS * 8}, .setup = few_setup},
	{FEATURE("answers in a loop, direct, fenced", early), .direct = true, .fenced = true, .depth = 4,
		.region_bytes = {WORDS * 8}, .setup = few_setup},
	{FEATURE("after an answer", after), .depth = 1, .region_bytes = {64}, .setup = words_setup},
	{FEATURE("else of a loop in a loop", pairs), .depth = 2, .region_bytes = {64}, .setup = pairs_setup},
	{FEATURE("else of a loop in a loop, direct", pairs), .direct = true, .depth = 2, .region_bytes = {64},
		.setup = pairs_setup},
	{FEATURE("calculations", calc), .depth = 1, .region_bytes = {128}, .setup = words_setup},
	{FEATURE("calculations, no masks", calc), .no_masks = true, .depth = 1, .region_bytes = {128},
		.setup = words_setup},
	{FEATURE("calculations, no CALC", calc), .no_calc = true, .depth = 1, .region_bytes = {128},
		.setup = words_setup},
	{FEATURE("calculations and branches", calc_if), .depth = 2, .region_bytes = {64}, .setup = few_setup},
	{FEATURE("calculations and branches, no CALC", calc_if), .no_calc = true, .depth = 2,
		.region_bytes = {64}, .setup = few_setup},
	{FEATURE("calculations and branches, direct", calc_if), .direct = true, .unrolled = true, .depth = 2,
		.region_bytes = {64}, .setup = few_setup},
	{FEATURE("moves", moves), .depth = 1, .region_bytes = {1024}, .setup = moves_setup},
};

const unsigned nfeatures = sizeof(features) / sizeof(features[0]);
