/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/programs/random-offload.h"

#include "reddnd/chain/ring/arm.h"
#include "reddnd/program/front/front.h"
#include "tests/programs/generate.h"
#include "tests/programs/interpret.h"
#include "tests/programs/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REGION = 1024, TRIES = 30 };

struct random_counts random_counts;
static const struct ast_program *ast; /* of the program at hand; NULL: it cannot be interpreted */

/* Words: some small, some equal, in one byte order or the other */
static void fill_words(struct run *r, uint8_t *region)
{
	const bool be = run_random(r, 2);

	for (unsigned at = 0; at < REGION; at += 8) {
		const uint64_t v = run_random(r, 2) ? run_random(r, 5) : run_number(r, 8);

		if (be)
			run_put_be(region + at, 8, v);
		else
			run_put_le(region + at, 8, v);
	}
}

/* Where something is published are buckets, some in use, with records, and fingerprints that clients guess:
 * no key has the fingerprint 0 */
static void mark_buckets(struct run *r, uint8_t *region)
{
	for (unsigned at = 0; at < REGION; at += CHAIN_BUCKET) {
		if (run_random(r, 2))
			run_put_le(region + at, CHAIN_BUCKET / 2,
				chain_locator(run_random(r, REGION / 2), 1 + (uint32_t)run_random(r, 200)));
		if (run_random(r, 4))
			run_put_le(region + at + CHAIN_BUCKET / 2, 7,
				(uint64_t)CHAIN_TAG << 48 | (1 + run_random(r, 2)));
	}
}

static void setup(struct run *r)
{
	for (unsigned i = 0; i < r->p->nregions; i++) {
		if (run_random(r, 3) == 0)
			fill_words(r, r->region[i]);
		else
			for (unsigned at = 0; at < REGION; at++)
				r->region[i][at] =
					run_random(r, 3) ? 0
							 : (uint8_t)run_random(r, run_random(r, 3) ? 4 : 256);
		if (r->p->image->publish.there)
			mark_buckets(r, r->region[i]);
	}
}

/* All or some of the arguments are 0, from one on, so that all or a part of these need not be sent */
static void shorten(struct run *r)
{
	const bool all = run_random(r, 3) == 0;
	uint32_t bytes = 0;

	for (unsigned i = all ? 0 : (unsigned)run_random(r, r->p->npieces + 1); i < r->p->npieces; i++) {
		const struct program_piece *p = &r->p->pieces[i];

		memset(r->arg[p->arg] + p->first, 0, p->len);
		bytes += p->len;
	}
	r->lacks = all ? bytes : (uint32_t)run_random(r, bytes + 1);
}

static void random_args(struct run *r)
{
	for (unsigned a = 0; a < r->p->nargs; a++) {
		const struct program_arg *arg = &r->p->args[a];
		uint64_t v = arg->kind == PROGRAM_WINDOW ? 8 * run_random(r, 32) : run_number(r, 8);

		if (r->p->payload.max && strcmp(arg->name, "fp") == 0 && run_random(r, 2))
			v = 1 + run_random(r, 2);
		memset(r->arg[a], 0, sizeof(r->arg[a]));
		for (unsigned i = 0; i < arg->bytes && i < 8; i++)
			r->arg[a][arg->bytes - 1 - i] = (uint8_t)(v >> 8 * i);
	}
	r->lacks = 0;
	r->payload_bytes = 0;
	if (run_random(r, 4) == 0) {
		shorten(r);
		return;
	}
	r->payload_bytes = run_random(r, 3)   ? (uint32_t)run_random(r, r->p->payload.max + 1)
			   : run_random(r, 2) ? r->p->payload.max
					      : 0;
	run_fill(r, r->payload, r->payload_bytes);
}

/* What the RECV does */
static void receive(const struct run *r, struct interpret *in)
{
	if (!r->p->payload.max)
		return;
	in->extent = run_extent(r);
	in->request_bytes = r->c.img->arg_len - r->lacks + r->payload_bytes;
	memcpy(in->region[r->p->payload.region] + in->extent + r->c.img->arg_len, r->payload,
		r->payload_bytes);
}

static void count(const struct run *r, const struct interpret *in)
{
	const struct program *p = r->p;

	random_counts.all++;
	random_counts.lacking += r->lacks > 0;
	random_counts.empty += r->lacks > 0 && r->lacks == p->image->arg_len;
	random_counts.none += p->payload.max && !r->lacks && !r->payload_bytes;
	random_counts.most += p->payload.max && r->payload_bytes == p->payload.max;
	random_counts.published += in->published;
}

/* Requests that a program can answer: one that reaches beyond a region ends its client */
static void request(struct run *r, uint8_t *slot)
{
	uint8_t *copy[CHAIN_MAX_WINDOWS], slot_copy[RUN_SLOT], inbox_copy[RUN_SLOT];
	struct interpret in = {.p = ast,
		.slot = slot_copy,
		.slot_bytes = RUN_SLOT,
		.inbox = inbox_copy,
		.arg = r->arg,
		.number = (uint32_t)r->c.sent};
	int result = INTERPRET_BEYOND;

	if (!ast) {
		random_args(r);
		return;
	}
	for (unsigned i = 0; i < r->p->nregions; i++) {
		copy[i] = malloc(REGION);
		assert_non_null(copy[i]);
		in.region[i] = copy[i];
		in.bytes[i] = REGION;
	}
	for (unsigned try = 0; result && try < TRIES; try++) {
		random_args(r);
		for (unsigned i = 0; i < r->p->nregions; i++)
			memcpy(copy[i], r->model[i], REGION);
		receive(r, &in);
		memcpy(slot_copy, slot, RUN_SLOT);
		memcpy(inbox_copy, run_inbox(r), RUN_SLOT);
		result = interpret(&in);
	}
	if (!result && in.published && !in.request_bytes)
		run_wrong(r, "a message of no bytes publishes a length of 0");
	for (unsigned i = 0; i < r->p->nregions; i++) {
		if (!result)
			memcpy(r->model[i], copy[i], REGION);
		free(copy[i]);
	}
	r->enough = result;
	if (result)
		return;
	count(r, &in);
	memcpy(slot, slot_copy, RUN_SLOT);
	memcpy(run_inbox(r), inbox_copy, RUN_SLOT);
	*run_answer(r) = (struct run_answer){.sends = in.sends, .has_imm = !in.sends, .imm = in.imm};
}

static size_t read_file(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, size, f) : 0;

	if (f)
		fclose(f);
	return n;
}

void random_offload_make(struct random_offload *r, uint64_t seed, const char *path,
	const struct program_target *target, bool any)
{
	struct random random = {(seed + 1) * 0x9e3779b97f4a7c15u};
	struct generate_style style = {
		.statements = 1 + random_below(&random, random_below(&random, 4) ? 14 : 50),
		.endless = 25,
		.cut = seed % 8 == 5};
	struct program_source src = {.name = "random", .text = r->text};
	struct diag *d;
	bool can;

	r->p = NULL;
	r->messages = NULL;
	r->tree = NULL;
	r->o = (struct run_offload){
		.name = "random", .text = r->text, .depth = 1, .setup = setup, .request = request};
	src.len = path ? read_file(path, r->text, sizeof(r->text) - 1)
		       : generate(&random, &style, r->text, sizeof(r->text) - 1);
	r->text[src.len] = '\0';
	d = diag_new(src.name, src.text, src.len);
	can = front_parse(&src, NULL, 0, d, &r->tree) == 0 && (interpret_can(r->tree) || any);
	diag_free(d);
	if (!can || program_compile(&src, NULL, 0, target, &r->p, &r->messages))
		return;
	for (unsigned i = 0; i < r->p->nregions; i++)
		r->o.region_bytes[i] = REGION;
	/* only such a chain changes nothing that the next request reads */
	r->o.depth = chain_start_queue(r->p->image) > 0 ? 4 : 1;
	r->o.meets = r->o.depth > 1;
	r->o.no_masks = !target->masked_atomics;
	r->o.no_calc = !target->calc;
	r->o.direct = target->ignores_index;
	r->o.fenced = target->fenced_enables;
	r->o.swapped = target->swapped_old;
	ast = interpret_can(r->tree) ? r->tree : NULL;
	r->o.by_executor = !ast;
}

void random_offload_free(struct random_offload *r)
{
	free(r->messages);
	program_free(r->p);
	ast_free(r->tree);
	ast = NULL;
}
