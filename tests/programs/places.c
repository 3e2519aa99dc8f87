/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that read and write at places which other work requests computed. */
#include "tests/programs/offloads.h"
#include "tests/programs/values.h"

#include "util/array.h"

#include <string.h>

/* Places in regions, read for the reply, at offsets that only the request or the run knows */
static const char sent_text[] = "program p\n"
				"region data\n"
				"arg at : offset(2) in data\n"
				"arg also : offset(1) in data\n"
				"arg x : u8\n"
				"var off : be40\n"
				"var low : le16\n"
				"var two : le16\n"
				"read data @ at -> low, two\n"
				"mov data @ at + 4 as be40 -> off\n"
				"write data @ off -> slot @ 8, 8 bytes\n"
				"write data @ at + 4 -> slot @ 16, 5 bytes\n"
				"write data @ at + also, data @ low + 2 as be16 -> slot @ 24, 4 bytes\n"
				"if x == 1 {\n  write data @ low + two -> slot @ 32, 8 bytes\n"
				"} else {\n  write data @ two -> slot @ 40, 3 bytes\n}\n"
				"write_imm data @ off + 8 as be64 -> slot @ 0\n";

static void sent_setup(struct run *r)
{
	run_fill(r, r->region[0], r->o->region_bytes[0]);
	for (unsigned i = 0; i < 8; i++) {
		run_put_le(r->region[0] + i * 16, 2, run_random(r, 200));
		run_put_le(r->region[0] + i * 16 + 2, 2, run_random(r, 200));
		run_put_be(r->region[0] + i * 16 + 4, 5, run_random(r, 400));
	}
}

static void sent_request(struct run *r, uint8_t *slot)
{
	const uint8_t *data = r->region[0];
	uint64_t at = 16 * run_random(r, 8), also = run_random(r, 256), x = run_random(r, 2),
		 low = run_get_le(data + at, 2), two = run_get_le(data + at + 2, 2),
		 off = run_get_be(data + at + 4, 5);

	run_arg(r, "at", at);
	run_arg(r, "also", also);
	run_arg(r, "x", x);
	memcpy(slot, data + off + 8, 8);
	memcpy(slot + 8, data + off, 8);
	memcpy(slot + 16, data + at + 4, 5);
	memcpy(slot + 24, data + at + also, 4);
	memcpy(slot + 28, data + low + 2, 2);
	if (x == 1)
		memcpy(slot + 32, data + low + two, 8);
	else
		memcpy(slot + 40, data + two, 3);
}

/* An address is patched with an offset; of a wider variable the lowest five bytes count */
static const char patched_text[] =
	"program p\n"
	"region data\n"
	"struct pair { wide : be64, off : be40, low : u8 }\n"
	"arg at : offset(2) in data\n"
	"var x : be64\n"
	"var y : be64\n"
	"read data @ at as pair { wide -> wide, off -> look.remote, low -> hit.addr[7] }\n"
	"mov 0x102 as be40 -> third.remote\n"
	"cas third.remote : 0x02 -> 0x04, mask 0xff\n"
	"look: read data as be64 -> x\n"
	"third: read data as be64 -> y\n"
	"hit: write data -> slot @ 8, 8 bytes\n"
	"write data @ wide -> slot @ 24, 8 bytes\n"
	"write y -> slot @ 16\n"
	"write data @ wide + 1 -> slot @ 32, 1 bytes\n"
	"write_imm x -> slot @ 0\n";

static void patched_setup(struct run *r)
{
	run_fill(r, r->region[0], r->o->region_bytes[0]);
	for (unsigned i = 0; i < 8; i++) {
		run_put_be(r->region[0] + i * 16 + 3, 5, run_random(r, 400));
		run_put_be(r->region[0] + i * 16 + 8, 5, run_random(r, 400));
	}
}

static void patched_request(struct run *r, uint8_t *slot)
{
	const uint8_t *data = r->region[0];
	uint64_t at = 16 * run_random(r, 8), wide = run_get_be(data + at + 3, 5),
		 off = run_get_be(data + at + 8, 5);

	run_arg(r, "at", at);
	memcpy(slot, data + off, 8);
	slot[32] = data[wide + 1];
	memcpy(slot + 8, data + data[at + 13], 8);
	memcpy(slot + 16, data + 0x104, 8);
	memcpy(slot + 24, data + wide, 8);
}

/* A patched address is that of a structure, also if its first fields are not wanted */
static const char lead_text[] = "program p\n"
				"region data\n"
				"struct node { _ : be24, key : le40, next : u8, last : u8 }\n"
				"struct head { _ : u8, at : be40 }\n"
				"arg at : offset(2) in data\n"
				"read data @ at as head { at -> first.remote }\n"
				"first: read data as node { key -> key, next -> second.remote[7] }\n"
				"second: read data @ 256 as node { last -> last, next -> third.remote[7] }\n"
				"third: read data as head { at -> found.addr }\n"
				"found: write data -> slot @ 16, 8 bytes\n"
				"write_imm key, last -> slot @ 0\n";

static void lead_setup(struct run *r)
{
	run_fill(r, r->region[0], r->o->region_bytes[0]);
	for (unsigned i = 0; i < 64; i++)
		run_put_be(r->region[0] + i * 8 + 1, 5, 8 * run_random(r, 60));
	for (unsigned i = 0; i < 1024; i += 8)
		r->region[0][i] = (uint8_t)(8 * run_random(r, 32));
}

static void lead_request(struct run *r, uint8_t *slot)
{
	const uint8_t *data = r->region[0], *first, *second, *third;
	uint64_t at = 8 * run_random(r, 8);

	run_arg(r, "at", at);
	first = data + run_get_be(data + at + 1, 5);
	second = data + 256 + first[8];
	third = data + second[8];
	memcpy(slot, first + 3, 5);
	slot[5] = second[9];
	memcpy(slot + 16, data + run_get_be(third + 1, 5), 8);
}

/* ---- all of them ---- */

#define PLACES(n, t) .name = n, .text = t##_text, .request = t##_request

const struct run_offload places[] = {
	{PLACES("sent from computed places", sent), .depth = 2, .region_bytes = {512}, .setup = sent_setup},
	{PLACES("sent from computed places, no masks", sent), .no_masks = true, .depth = 2,
		.region_bytes = {512}, .setup = sent_setup},
	{PLACES("sent from computed places, direct", sent), .direct = true, .depth = 2, .region_bytes = {512},
		.setup = sent_setup},
	{PLACES("patched addresses", patched), .depth = 2, .region_bytes = {512}, .setup = patched_setup},
	{PLACES("structures at patched addresses", lead), .depth = 2, .region_bytes = {1024},
		.setup = lead_setup},
};

const unsigned nplaces = COUNT(places);
