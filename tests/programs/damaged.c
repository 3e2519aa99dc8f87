/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * damaged [PROGRAMS [FIRST]]: executes programs made at random (generate.h), as they are and after damage to
 * their images, at once and in parts (in-parts.h). The proofs refuse what such images do, so this reaches
 * the checks that are made once more at run time, and patches that no compiler makes. Both ways must do the
 * same, to the syndrome of a fault.
 */
#include "mlx5/wqe.h"
#include "reddnd/executor/executor.h"
#include "tests/lib/sanitized.h"
#include "tests/programs/generate.h"
#include "tests/programs/in-parts.h"
#include "util/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { PROGRAMS = SANITIZED ? 100 : 1000 };
enum { REGION = 1024, SLOT = 1024, IMAGES = 12, REQUESTS = 5, WQES = 20000, DAMAGES = 5 };

static struct {
	unsigned programs, executors, done, faults;
} counted;
static unsigned programs = PROGRAMS, first;

static void fill(struct random *r, uint8_t *to, size_t n)
{
	while (n--)
		*to++ = (uint8_t)(random_below(r, 3) ? 0 : random_below(r, random_below(r, 3) ? 4 : 256));
}

/* ---- damage ----------------------------------------------------------------------------------- */

static uint32_t any_wqe(struct random *r, const struct chain_queue *q)
{
	uint32_t w = random_below(r, q->wqebbs);

	while (!q->starts[w])
		w--;
	return w;
}

static void damage_bytes(struct random *r, struct chain_queue *q)
{
	static const uint8_t opcodes[] = {WQE_OP_NOP, WQE_OP_WRITE, WQE_OP_WRITE_IMM, WQE_OP_SEND,
		WQE_OP_READ, WQE_OP_CAS, WQE_OP_FETCH_ADD, WQE_OP_MASKED_CAS, WQE_OP_MASKED_FETCH_ADD,
		WQE_OP_UMR};
	uint8_t *wqe = q->wqes + (size_t)any_wqe(r, q) * WQE_BB;

	switch (random_below(r, 4)) {
	case 0:
		wqe[WQE_OPCODE] = opcodes[random_below(r, COUNT(opcodes))];
		break;
	case 1:
		wqe[WQE_RDMA_SGE + 3] = (uint8_t)random_below(r, 80);
		break;
	case 2:
		wqe[WQE_DSCOUNT] ^= (uint8_t)(1u << random_below(r, 3));
		break;
	default:
		wqe[random_below(r, WQE_BB)] = (uint8_t)random_below(r, 256);
	}
}

/* Another place than the compiler meant: behind an end, not aligned, or in code */
static void damage_address(struct random *r, struct chain_image *img)
{
	struct chain_reloc *rel = &img->relocs[random_below(r, img->nrelocs)];
	static const uint32_t fields[] = {WQE_OPCODE, WQE_RADDR, WQE_RKEY, WQE_RDMA_SGE,
		WQE_RDMA_SGE + WQE_SGE_ADDR, WQE_ATOMIC, WQE_ATOMIC + 8, WQE_ATOMIC + 16, WQE_ATOMIC + 24,
		WQE_ATOMIC + 32, WQE_ATOMIC + 40};
	static const int away[] = {-64, -8, -1, 1, 8, 16, 64, REGION - 8, REGION};

	if (rel->kind == CHAIN_REL_ADDR64 && random_below(r, 2)) {
		rel->addend += away[random_below(r, COUNT(away))];
	} else if (rel->kind == CHAIN_REL_ADDR64) {
		rel->sym = CHAIN_SYM_QUEUE;
		rel->index = (uint8_t)random_below(r, img->nqueues);
		rel->addend =
			any_wqe(r, &img->queue[rel->index]) * WQE_BB + fields[random_below(r, COUNT(fields))];
	} else if (rel->kind == CHAIN_REL_LKEY32 || rel->kind == CHAIN_REL_RKEY32) {
		rel->sym = (uint8_t)random_below(
			r, rel->kind == CHAIN_REL_RKEY32 ? CHAIN_SYM_SLOT + 1 : CHAIN_SYM_SLOT);
		rel->index = 0;
		if (rel->sym == CHAIN_SYM_REGION && img->nregions == 0)
			rel->sym = CHAIN_SYM_SCRATCH;
	}
}

static void damage(struct random *r, struct chain_image *img)
{
	for (unsigned n = random_below(r, DAMAGES); n > 0; n--)
		if (random_below(r, 2) && img->nrelocs)
			damage_address(r, img);
		else
			damage_bytes(r, &img->queue[random_below(r, img->nqueues)]);
}

/* What of an image is damaged */
struct whole {
	uint8_t *wqes[CHAIN_MAX_QUEUES];
	struct chain_reloc *relocs;
};

static void *copy_of(const void *p, size_t n)
{
	void *copy = malloc(n + 1);

	assert_non_null(copy);
	return memcpy(copy, p, n);
}

static void keep(struct whole *w, const struct chain_image *img)
{
	for (unsigned q = 0; q < img->nqueues; q++)
		w->wqes[q] = copy_of(img->queue[q].wqes, (size_t)img->queue[q].wqebbs * WQE_BB);
	w->relocs = copy_of(img->relocs, img->nrelocs * sizeof(*img->relocs));
}

static void mend(const struct whole *w, struct chain_image *img)
{
	for (unsigned q = 0; q < img->nqueues; q++)
		memcpy(img->queue[q].wqes, w->wqes[q], (size_t)img->queue[q].wqebbs * WQE_BB);
	memcpy(img->relocs, w->relocs, img->nrelocs * sizeof(*img->relocs));
}

static void drop(struct whole *w, const struct chain_image *img)
{
	for (unsigned q = 0; q < img->nqueues; q++)
		free(w->wqes[q]);
	free(w->relocs);
}

/* ---- running ---------------------------------------------------------------------------------- */

static const char *ask(struct random *r, const struct program *p, const struct executor_parts *parts,
	struct executor *x, struct in_parts *t, uint64_t number, uint8_t *data)
{
	const uint32_t args = p->image->arg_len,
		       more = p->payload.max ? random_below(r, p->payload.max + 1) : 0;
	const uint32_t bytes = random_below(r, 4) ? args + more : random_below(r, args + 1);
	const uint64_t extent = 64 * random_below(r, 8);
	uint8_t request[REGION];
	enum executor_result result;

	fill(r, request, sizeof(request));
	program_complete(p, request, bytes);
	executor_begin(x, number, request, data);
	if (p->payload.max)
		in_parts_receive(x, p, parts->region[p->payload.region].mem, extent, request, bytes);
	result = executor_run(x, WQES);
	counted.done += result == EXECUTOR_DONE;
	counted.faults += result == EXECUTOR_FAULT;
	return in_parts_differs(t, x, result, number, request, bytes, extent, WQES, data);
}

static const char *execute(struct random *r, struct program *p)
{
	uint8_t *mem = calloc(1, CHAIN_MAX_WINDOWS * (REGION + 8u)), *data;
	struct executor_parts parts = {.slot_size = 1 + random_below(r, SLOT), .data_size = 65536};
	const char *differs = NULL;
	struct in_parts *t;
	struct executor *x;

	if (random_below(r, 4))
		parts.slot_size = 1 << 24;
	else if (random_below(r, 2))
		parts.data_size = random_below(r, 128);
	data = malloc(parts.data_size + 1u);
	assert_non_null(mem);
	assert_non_null(data);
	for (unsigned i = 0; i < p->nregions; i++) {
		parts.region[i] =
			(struct executor_region){mem + i * (REGION + 8u), REGION, p->regions[i].writable};
		fill(r, parts.region[i].mem, REGION);
	}
	chain_writer_free(p->writer);
	assert_int_equal(chain_writer_new(&p->writer, p->image), 0); /* of the image as it is now */
	assert_int_equal(executor_new(&x, p, &parts), 0);
	t = in_parts_new(p, &parts);
	for (unsigned i = 0; i < REQUESTS && !differs; i++)
		differs = ask(r, p, &parts, x, t, i, data);
	counted.executors++;
	in_parts_free(t);
	executor_free(x);
	free(data);
	free(mem);
	return differs;
}

static void run_program(uint64_t seed)
{
	static char text[PROGRAM_MAX_SOURCE];
	struct random r = {(seed + 1) * 0x9e3779b97f4a7c15u};
	const struct generate_style style = {.statements = 1 + random_below(&r, 14), .endless = 10};
	const struct program_target target = {.masked_atomics = random_below(&r, 4) != 0,
		.calc = random_below(&r, 4) ? PROGRAM_CALC : 0,
		.swapped_old = random_below(&r, 8) == 0,
		.overlap = random_below(&r, 2)};
	struct program_source src = {.name = "random", .text = text};
	const char *differs = NULL;
	struct whole whole;
	struct program *p;
	char *messages;

	src.len = generate(&r, &style, text, sizeof(text) - 1);
	text[src.len] = '\0';
	if (program_compile(&src, NULL, 0, &target, &p, &messages)) {
		free(messages);
		return;
	}
	keep(&whole, p->image);
	for (unsigned i = 0; i < IMAGES && !differs; i++) {
		if (i)
			damage(&r, p->image);
		differs = execute(&r, p);
		mend(&whole, p->image);
		if (differs)
			fail_msg("program %lu, image %u: %s is another one\n%s", (unsigned long)seed, i,
				differs, text);
	}
	drop(&whole, p->image);
	program_free(p);
	counted.programs++;
}

static void do_the_same(void **state)
{
	for (unsigned i = 0; i < programs; i++)
		run_program(first + i);
	print_message("%u programs, %u executors: %u requests done, %u faults\n", counted.programs,
		counted.executors, counted.done, counted.faults);
	assert_true(counted.done > counted.programs && counted.faults > counted.programs);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(do_the_same)};

	if (argc > 1)
		programs = (unsigned)strtoul(argv[1], NULL, 0);
	if (argc > 2)
		first = (unsigned)strtoul(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
