/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs with a loop that has no bound, and what they mean in plain C; the Turing machine, and such a
 * machine in plain C */
#include "tests/programs/offloads.h"
#include "tests/programs/turing.h"
#include "tests/programs/values.h"

#include <string.h>

/* ---- while-recycled --------------------------------------------------------------------------- */

enum { ELEMENTS = 60 };

static void while_setup(struct run *r)
{
	for (unsigned i = 0; i < ELEMENTS; i++)
		run_put_le(r->region[0] + i * 8, 6, i * 1000 + 7);
}

static void while_request(struct run *r, uint8_t *slot)
{
	unsigned from = (unsigned)run_random(r, ELEMENTS),
		 at = from + (unsigned)run_random(r, ELEMENTS - from);

	run_arg(r, "x", at * 1000 + 7);
	run_arg(r, "from", from * 8);
	run_put_le(slot, 8, (at + 1) * 8);
}

/* ---- list-endless ------------------------------------------------------------------------------- */

enum { NODES = 24, NODE = 19, HEAP = 4096 };

static uint8_t *node(struct run *r, unsigned i)
{
	return r->region[0] + NODE * i;
}

/* Node 0 is the end of every list, and on none */
static void list_setup(struct run *r)
{
	run_fill(r, r->region[1], HEAP);
	for (unsigned i = 1; i < NODES; i++) {
		run_put_be(node(r, i), 5, i + 1 < NODES && run_random(r, 8) ? (i + 1) * NODE : 0);
		run_put_le(node(r, i) + 5, 6, i * 0x10001);
		run_put_be(node(r, i) + 11, 3, 1 + run_random(r, 100));
		run_put_be(node(r, i) + 14, 5, run_random(r, HEAP - 200));
	}
}

static void list_request(struct run *r, uint8_t *slot)
{
	unsigned head = 1 + (unsigned)run_random(r, NODES - 1), i = head;
	uint64_t key = (head + run_random(r, 8)) * 0x10001;

	run_arg(r, "head", head * NODE);
	run_arg(r, "key", key);
	memset(slot, 0, 1);
	do {
		if (run_get_le(node(r, i) + 5, 6) == key) {
			memcpy(slot + 64, r->region[1] + run_get_be(node(r, i) + 14, 5),
				run_get_be(node(r, i) + 11, 3));
			slot[0] = 1;
			return;
		}
		i = (unsigned)(run_get_be(node(r, i), 5) / NODE);
	} while (i);
}

/* ---- the ways out of a loop, and what lives how long ---------------------------------------------- */

static const char ways[] = "program ways\n"
			   "endless\n"
			   "struct item { kind : u8, value : u8, next : be16 }\n"
			   "region items of item\n"
			   "arg head : offset(2) in items\n"
			   "arg stop : u8\n"
			   "var cur : be16\n"
			   "var last : u8\n"
			   "var end : u8\n"
			   "var sum : le64\n"
			   "var why : u8\n"
			   "mov head -> cur\n"
			   "mov stop -> end\n"
			   "while cur != 0 {\n"
			   "  var twice : u8 = 5\n"
			   "  read items @ cur as item { kind -> kind, value -> value, next -> cur }\n"
			   "  add sum by 1\n"
			   "  if kind == 1 {\n"
			   "    mov value -> twice\n"
			   "    if value == end {\n"
			   "      mov 1 -> why\n"
			   "      break\n"
			   "    }\n"
			   "  } else if kind == 2 {\n"
			   "    mov 2 -> why\n"
			   "    break\n"
			   "  }\n"
			   "  mov twice -> last\n"
			   "}\n"
			   "if why == 0 {\n"
			   "  write 9 as u8 -> slot @ 3\n"
			   "}\n"
			   "write_imm sum, last, why -> slot @ 8\n";

static void ways_setup(struct run *r)
{
	for (unsigned i = 1; i < NODES; i++) {
		uint8_t *item = r->region[0] + i * 4;

		item[0] = (uint8_t)(run_random(r, 8) ? run_random(r, 2) : 2);
		item[1] = (uint8_t)run_random(r, 6);
		run_put_be(item + 2, 2, i + 1 < NODES && run_random(r, 9) ? (i + 1) * 4 : 0);
	}
}

static void ways_request(struct run *r, uint8_t *slot)
{
	unsigned cur = (unsigned)run_random(r, NODES) * 4, sum = 0;
	uint8_t end = (uint8_t)run_random(r, 6), last = 0, why = 0;

	run_arg(r, "head", cur);
	run_arg(r, "stop", end);
	while (cur) {
		const uint8_t *item = r->region[0] + cur;
		uint8_t twice = 5;

		cur = (unsigned)run_get_be(item + 2, 2);
		sum++;
		if (item[0] == 1) {
			twice = item[1];
			if (item[1] == end) {
				why = 1;
				break;
			}
		} else if (item[0] == 2) {
			why = 2;
			break;
		}
		last = twice;
	}
	if (why == 0)
		slot[3] = 9;
	run_put_le(slot + 8, 8, sum);
	slot[16] = last;
	slot[17] = why;
}

/* ---- one region, in the loop and around it -------------------------------------------------------- */

static const char around[] = "program around\n"
			     "endless\n"
			     "region data writable\n"
			     "arg x : le64\n"
			     "var n : le64\n"
			     "var seen : le64\n"
			     "mov x -> data @ 0 as le64\n"
			     "loop {\n"
			     "  mov data @ 0 as le64 -> seen\n"
			     "  mov seen -> data @ 8 as le64\n"
			     "  add n by 1\n"
			     "  if n >= 3 {\n"
			     "    break\n"
			     "  }\n"
			     "}\n"
			     "mov 9 -> data @ 8 as le64\n"
			     "write_imm seen -> slot @ 0\n";

static void around_request(struct run *r, uint8_t *slot)
{
	uint64_t x = run_number(r, 8);

	run_arg(r, "x", x);
	run_put_le(r->model[0], 8, x);
	run_put_le(r->model[0] + 8, 8, 9);
	run_put_le(slot, 8, x);
}

/* ---- turing --------------------------------------------------------------------------------------- */

enum { CELLS = 1024 };

static void machine_setup(struct run *r)
{
	turing_rules(r->region[0], "1RB1LB_1LA0LC_1RH1LD_1RD0RA");
	turing_links(r->region[2], CELLS);
}

/* Each begins where those before it have left the tape clean */
static void machine_request(struct run *r, uint8_t *slot)
{
	static struct turing_reference ref;
	unsigned start = 24 + (unsigned)r->c.sent * 24;

	turing_refer(&ref, "1RB1LB_1LA0LC_1RH1LD_1RD0RA", start, 1000);
	assert_int_equal(ref.steps, 107);
	assert_int_equal(ref.ones, 13);
	for (unsigned x = 0; x < TURING_CELLS; x++)
		if (ref.tape[x])
			r->model[1][x] = TURING_ONE;
	run_arg(r, "from", turing_from(start));
	run_put_le(slot, 8, ref.steps);
}

/* ----------------------------------------------------------------------------------------------------- */

const struct run_offload loops[] = {
	{.name = "while-recycled",
		.file = "while-recycled.rdn",
		.depth = 4,
		.region_bytes = {ELEMENTS * 8},
		.setup = while_setup,
		.request = while_request},
	{.name = "while-recycled, direct",
		.file = "while-recycled.rdn",
		.direct = true,
		.depth = 4,
		.region_bytes = {ELEMENTS * 8},
		.setup = while_setup,
		.request = while_request},
	{.name = "list-endless",
		.file = "list-endless.rdn",
		.depth = 4,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "list-endless, direct",
		.file = "list-endless.rdn",
		.direct = true,
		.depth = 4,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "list-endless, without masks",
		.file = "list-endless.rdn",
		.no_masks = true,
		.depth = 1,
		.region_bytes = {NODES * NODE, HEAP},
		.setup = list_setup,
		.request = list_request},
	{.name = "ways",
		.text = ways,
		.depth = 4,
		.region_bytes = {NODES * 4},
		.setup = ways_setup,
		.request = ways_request},
	{.name = "around",
		.text = around,
		.depth = 1,
		.region_bytes = {64},
		.setup = run_no_setup,
		.request = around_request},
	{.name = "turing",
		.file = "turing.rdn",
		.depth = 1,
		.region_bytes = {TURING_RULES, TURING_RULES, CELLS *TURING_LINKS},
		.setup = machine_setup,
		.request = machine_request},
	{.name = "turing, direct",
		.file = "turing.rdn",
		.direct = true,
		.depth = 1,
		.region_bytes = {TURING_RULES, TURING_RULES, CELLS *TURING_LINKS},
		.setup = machine_setup,
		.request = machine_request},
};

const unsigned nloops = sizeof(loops) / sizeof(loops[0]);
