/* SPDX-License-Identifier: BSD-2-Clause */
/* The second opinion refuses images that have been tampered with: a byte, a relocation, a place of the
 * request */
#include "mlx5/wqe.h"
#include "tests/image/check.h"
#include "tests/image/values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct program_target target = {.masked_atomics = true, .calc = PROGRAM_CALC};
static char why[300];

static const char text[] = "program probe\n"
			   "region table\n"
			   "region log writable\n"
			   "struct entry { len : be24, at : be40, key : le56 }\n"
			   "arg place : offset(4) in table\n"
			   "arg key : u56\n"
			   "var n : le64\n"
			   "read table @ place as entry { len -> hit.length, at -> hit.addr, key -> seen }\n"
			   "if seen == key {\n"
			   "  hit: write table -> slot @ 64, 1 to 256\n"
			   "  add log @ 8 as le64 by 1, was -> n\n"
			   "}\n"
			   "write n -> log @ 16\n"
			   "write_imm n -> slot @ 0\n";

static struct program *compiled(const char *source)
{
	const struct program_source src = {"probe.rdn", source, strlen(source)};
	struct program *p = NULL;
	char *messages = NULL;

	if (program_compile(&src, NULL, 0, &target, &p, &messages))
		fail_msg("%s", messages);
	free(messages);
	return p;
}

/* The nth WQE of a queue that is, or may become, an @op; dormant ones by their relocated size */
static uint8_t *wqe_of(struct program *p, unsigned queue, uint8_t op, unsigned nth)
{
	struct chain_queue *q = &p->image->queue[queue];

	for (uint32_t w = 0; w < q->wqebbs; w++)
		if (q->starts[w] && q->wqes[w * 64 + WQE_OPCODE] == op && nth-- == 0)
			return q->wqes + w * 64;
	fail_msg("there is no such WQE");
	return NULL;
}

static struct chain_reloc *reloc_of(struct program *p, unsigned kind, unsigned sym, unsigned where)
{
	for (unsigned i = 0; i < p->image->nrelocs; i++) {
		struct chain_reloc *r = &p->image->relocs[i];

		if (r->kind == kind && r->sym == sym && r->where == where)
			return r;
	}
	fail_msg("there is no such relocation");
	return NULL;
}

static void opcode(struct program *p)
{
	wqe_of(p, 0, WQE_OP_NOP, 0)[WQE_OPCODE] = WQE_OP_READ;
}

static void opmod(struct program *p)
{
	wqe_of(p, 1, WQE_OP_CAS, 0)[WQE_OPMOD] = 8;
}

static void size(struct program *p)
{
	wqe_of(p, 1, WQE_OP_READ, 0)[WQE_DSCOUNT]--;
}

static void lane(struct program *p) /* what a match makes of the lane */
{
	uint8_t *cas = wqe_of(p, 1, WQE_OP_CAS, 0);

	for (unsigned i = 0; i < 8; i++)
		if (cas[WQE_ATOMIC + i] == WQE_OP_WRITE)
			cas[WQE_ATOMIC + i] = WQE_OP_SEND;
}

static void lane_of_client(struct program *p)
{
	for (unsigned i = 0; i < p->image->nrecv; i++)
		if (p->image->recv[i].len == 7) {
			p->image->recv[i].offset -= 8; /* from the comparand to the swap */
			return;
		}
	fail_msg("the key has another place");
}

static void request_to_key(struct program *p)
{
	for (unsigned i = 0; i < p->image->nrecv; i++)
		if (p->image->recv[i].len == 4)
			p->image->recv[i].offset += 4; /* from the address to the key behind it */
}

static void request_to_length(struct program *p)
{
	struct chain_recv_sge *r = &p->image->recv[0];

	r->sym = CHAIN_SYM_QUEUE;
	r->index = 0;
	r->len = 4;
	r->offset = (uint32_t)(wqe_of(p, 0, WQE_OP_NOP, 0) - p->image->queue[0].wqes) + WQE_RDMA_SGE;
}

static void request_too_far(struct program *p)
{
	p->image->recv[0].offset = p->image->queue[1].wqebbs * 64;
}

static void wrong_key(struct program *p)
{
	reloc_of(p, CHAIN_REL_RKEY32, CHAIN_SYM_REGION, 1)->index ^= 1;
}

static void own_key(struct program *p)
{
	struct chain_reloc *r = reloc_of(p, CHAIN_REL_RKEY32, CHAIN_SYM_REGION, 1);

	r->sym = CHAIN_SYM_SCRATCH;
	r->index = 0;
}

static void no_key(struct program *p)
{
	reloc_of(p, CHAIN_REL_LKEY32, CHAIN_SYM_QUEUE, 1)->kind = CHAIN_REL_SEQ32;
}

static void beyond_scratch(struct program *p)
{
	reloc_of(p, CHAIN_REL_ADDR64, CHAIN_SYM_SCRATCH, 1)->addend = p->image->scratch_size - 3;
}

static void below_scratch(struct program *p)
{
	reloc_of(p, CHAIN_REL_ADDR64, CHAIN_SYM_SCRATCH, 1)->addend = -8;
}

static void another_wqe(struct program *p)
{
	struct chain_reloc *r = reloc_of(p, CHAIN_REL_ADDR64, CHAIN_SYM_QUEUE, 1);

	r->addend = (r->addend & ~63ll) + WQE_FLAGS;
}

static void long_segment(struct program *p)
{
	wqe_put32(wqe_of(p, 0, WQE_OP_WRITE_IMM, 0) + WQE_RDMA_SGE, 0x10000);
}

static void empty_segment(struct program *p)
{
	wqe_put32(wqe_of(p, 0, WQE_OP_WRITE_IMM, 0) + WQE_RDMA_SGE, 0);
}

static void length_above(struct program *p) /* the three bytes that the region has */
{
	wqe_of(p, 0, WQE_OP_NOP, 0)[WQE_RDMA_SGE + WQE_SGE_LEN] = 1;
}

static void length_in_part(struct program *p) /* the lowest byte stays the program's */
{
	wqe_put32(wqe_of(p, 1, WQE_OP_READ, 0) + WQE_RDMA_SGE + WQE_SGE_LEN, 2);
}

static void beyond_region(struct program *p)
{
	for (unsigned i = 0; i < p->image->nrelocs; i++)
		if (p->image->relocs[i].kind == CHAIN_REL_ADDR64 &&
			p->image->relocs[i].sym == CHAIN_SYM_REGION)
			p->image->relocs[i].addend += 1 << 20;
}

static void beyond_slot(struct program *p)
{
	reloc_of(p, CHAIN_REL_ADDR64, CHAIN_SYM_SLOT, 0)->addend = p->reply_max + 1;
}

static void not_writable(struct program *p)
{
	p->regions[1].writable = false;
}

static void other_queue(struct program *p)
{
	reloc_of(p, CHAIN_REL_QPN24, 0, 1)->index = 0;
}

static void slot_of_another_queue(struct program *p)
{
	struct chain_reloc *r = reloc_of(p, CHAIN_REL_RKEY32, CHAIN_SYM_REGION, 1);

	r->sym = CHAIN_SYM_SLOT;
}

static void stuck(struct program *p)
{
	for (unsigned i = 0; i < p->image->nrelocs; i++)
		if (p->image->relocs[i].kind == CHAIN_REL_WAIT)
			p->image->relocs[i].addend = 100;
}

#define TAMPER(f)                                                                                            \
	{                                                                                                    \
#f, f                                                                                        \
	}
struct tamper {
	const char *name;
	void (*tamper)(struct program *p);
};
static const struct tamper wrongs[] = {
	TAMPER(opcode),
	TAMPER(opmod),
	TAMPER(size),
	TAMPER(lane),
	TAMPER(lane_of_client),
	TAMPER(request_to_key),
	TAMPER(request_to_length),
	TAMPER(request_too_far),
	TAMPER(wrong_key),
	TAMPER(own_key),
	TAMPER(no_key),
	TAMPER(beyond_scratch),
	TAMPER(below_scratch),
	TAMPER(another_wqe),
	TAMPER(long_segment),
	TAMPER(empty_segment),
	TAMPER(length_above),
	TAMPER(length_in_part),
	TAMPER(beyond_region),
	TAMPER(beyond_slot),
	TAMPER(not_writable),
	TAMPER(other_queue),
	TAMPER(slot_of_another_queue),
	TAMPER(stuck),
};

/* It sees nothing wrong in what @from becomes, until that is tampered with */
static void assert_refuses(const char *from, const struct tamper *t, size_t n)
{
	struct program *p = compiled(from);

	if (!image_check(p, &target, why, sizeof(why)))
		fail_msg("%s", why);
	program_free(p);
	for (; n--; t++) {
		p = compiled(from);
		t->tamper(p);
		if (image_check(p, &target, why, sizeof(why)))
			fail_msg("%s: it sees nothing wrong", t->name);
		print_message("%s: %s\n", t->name, why);
		program_free(p);
	}
	image_check_done();
}

static void refuses_what_is_wrong(void **state)
{
	(void)state;
	assert_refuses(text, wrongs, sizeof(wrongs) / sizeof(*wrongs));
}

/* In the ring of a loop, and in what it shares with its program */
static void refuses_a_wrong_loop(void **state)
{
	static const char loop[] =
		"program count\nendless\nregion data\nregion out writable\nvar n : le64\nvar v : be64\n"
		"loop {\n  read data @ 8 as be64 -> v\n  w: write v -> out @ 64\n  add n by 1\n"
		"  if n >= 2 {\n    break\n  }\n}\nwrite_imm n -> slot @ 0\n";
	struct program *p = compiled(loop);
	const struct ring_reloc *r;

	(void)state;
	if (!image_check(p, &target, why, sizeof(why)))
		fail_msg("%s", why);
	r = p->loop_image->relocs;
	while (r->field != RING_REMOTE || r->symbol != RING_REGION + 1)
		r++;
	wqe_put64(p->loop_image->ring + r->at, 4096);
	assert_false(image_check(p, &target, why, sizeof(why)));
	print_message("%s\n", why);
	program_free(p);
	p = compiled(loop);
	p->regions[1].writable = false;
	assert_false(image_check(p, &target, why, sizeof(why)));
	print_message("%s\n", why);
	program_free(p);
	image_check_done();
}

/* The source, which is constant, where the destination is */
static void overlap(struct program *p)
{
	struct chain_reloc *r = p->image->relocs;

	while (r->kind != CHAIN_REL_ADDR64 || r->sym != CHAIN_SYM_REGION || r->addend != 1024)
		r++;
	r->addend = 255;
}

/* Of the READ that copies an address the place: from the remote address, that in a region, to the other one
 */
static void own_address(struct program *p)
{
	struct chain_reloc *r = p->image->relocs;

	while (r->kind != CHAIN_REL_ADDR64 || r->sym != CHAIN_SYM_QUEUE || r->addend % 64 != WQE_RADDR)
		r++;
	r->addend += WQE_RDMA_SGE + WQE_SGE_ADDR - WQE_RADDR;
}

static void refuses_what_reads_addresses(void **state)
{
	static const struct tamper tampers[] = {TAMPER(own_address)};

	(void)state;
	assert_refuses("program copies\nregion log\nvar at : be64\nl: read log @ 8 as be64 -> seen\n"
		       "mov l.remote -> at\nwrite_imm seen, at -> slot\n",
		tampers, 1);
}

static void refuses_what_overlaps(void **state)
{
	static const char copies[] = "program copies\nregion log writable\n"
				     "write log @ 1024 -> log, %u bytes\nwrite_imm 1 as u8 -> slot\n";
	static const struct tamper tampers[] = {TAMPER(overlap)};
	char from[128];

	(void)state;
	snprintf(from, sizeof(from), copies, 256);
	assert_refuses(from, tampers, 0);
	snprintf(from, sizeof(from), copies, 257);
	assert_refuses(from, tampers, 1);
}

/* A length of the program's own, which is not as declared */
static void refuses_a_wrong_length(void **state)
{
	static const char lengths[] = "program lengths\nregion heap\narg x : u8\nmov 8 as be32 -> w.length\n"
				      "if x == 1 {\n  mov heap @ 0 as be24 -> w.length\n}\n"
				      "w: write heap -> slot @ 64, 8 to 64\nwrite_imm 1 as u8 -> slot\n";

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct program *p = compiled(lengths);
		struct chain_step *steps = (struct chain_step *)p->desc->steps;
		unsigned at = 0;

		while (steps[at].local[0].max == 0)
			at++;
		steps[at].local[0].least += i == 1;
		steps[at].local[0].max -= i == 2 ? 57 : 0;
		if (image_check(p, &target, why, sizeof(why)) != (i == 0))
			fail_msg("%u: %s", i, why);
		print_message("%s\n", why);
		program_free(p);
	}
	image_check_done();
}

/* The WQE of CALC */
static uint8_t *calc_of(struct program *p)
{
	unsigned nth = 0;
	uint8_t *w;

	do
		w = wqe_of(p, 1, WQE_OP_WRITE, nth++);
	while (!w[WQE_OPMOD]);
	return w;
}

static struct chain_reloc *reloc_at(struct program *p, const uint8_t *field)
{
	for (unsigned i = 0; i < p->image->nrelocs; i++)
		if (p->image->relocs[i].where == 1 &&
			p->image->relocs[i].offset == (uint32_t)(field - p->image->queue[1].wqes))
			return &p->image->relocs[i];
	fail_msg("there is no such relocation");
	return NULL;
}

static void no_calc(struct program *p)
{
	calc_of(p)[WQE_OPMOD] = WQE_CALC_ADD_F64;
}

static void part_of_an_operand(struct program *p)
{
	wqe_put32(calc_of(p) + WQE_RDMA_SGE + WQE_SGE_LEN, 24);
}

static void unaligned_operand(struct program *p)
{
	reloc_at(p, calc_of(p) + WQE_RDMA_SGE + WQE_SGE_ADDR)->addend += 8;
}

static void unaligned_result(struct program *p)
{
	reloc_at(p, calc_of(p) + WQE_RADDR)->addend += 4;
}

static void result_beyond_scratch(struct program *p)
{
	reloc_at(p, calc_of(p) + WQE_RADDR)->addend = p->image->scratch_size - 8;
}

static void refuses_a_wrong_calculation(void **state)
{
	static const char calculates[] = "program larger\nregion log writable\narg x : u64\nvar n : le64\n"
					 "var m : le64\nmov log @ 0 as le64 -> m\nmax x, m -> n\n"
					 "if n == 7 {\n  write n -> log @ 8\n}\nwrite_imm n -> slot @ 0\n";
	static const struct {
		const char *name;
		void (*tamper)(struct program *p);
	} tampers[] = {TAMPER(no_calc), TAMPER(part_of_an_operand), TAMPER(unaligned_operand),
		TAMPER(unaligned_result), TAMPER(result_beyond_scratch)};
	struct program *p = compiled(calculates);

	(void)state;
	if (!image_check(p, &target, why, sizeof(why)))
		fail_msg("%s", why);
	program_free(p);
	for (size_t i = 0; i < sizeof(tampers) / sizeof(*tampers); i++) {
		p = compiled(calculates);
		tampers[i].tamper(p);
		if (image_check(p, &target, why, sizeof(why)))
			fail_msg("%s: it sees nothing wrong", tampers[i].name);
		print_message("%s: %s\n", tampers[i].name, why);
		program_free(p);
	}
	image_check_done();
}

/* ---- a payload ----------------------------------------------------------------------------------- */

static const char put[] = "program put\nregion words writable steered\nregion other writable\nregion heap\n"
			  "arg at : offset(4) in words\narg key : u48\npayload record : max 4K in heap\n"
			  "struct bucket { loc : le64, mark : le56 }\nvar was : le64\n"
			  "read words @ at as bucket { loc -> pub.compare, mark -> mark }\n"
			  "if mark == key + (0xa5 << 48) {\n"
			  "  pub: cas words @ at as le64 : 0 -> record, was -> was\n}\n"
			  "write_imm was -> slot @ 0\n";

static uint8_t *publish_of(struct program *p)
{
	return p->image->queue[p->image->publish.queue].wqes + p->image->publish.offset;
}

/* The READ that scatters to the operand at @at of the publish */
static struct chain_reloc *bringer(struct program *p, unsigned at)
{
	const struct chain_publish *pub = &p->image->publish;

	for (unsigned i = 0; i < p->image->nrelocs; i++) {
		struct chain_reloc *r = &p->image->relocs[i];

		if (r->kind == CHAIN_REL_ADDR64 && r->sym == CHAIN_SYM_QUEUE && r->index == pub->queue &&
			r->addend == (int64_t)pub->offset + at)
			return r;
	}
	fail_msg("nothing brings that byte");
	return NULL;
}

static void publish_elsewhere(struct program *p)
{
	p->image->publish.offset -= CHAIN_WQEBB * 2;
}

static void another_region(struct program *p)
{
	p->image->publish.region = 1;
}

static void another_word(struct program *p)
{
	p->image->publish.was += 8;
}

static void armed_with_nothing(struct program *p)
{
	p->image->scratch_init[p->image->publish.was + 7] = 0;
}

static void a_constant(struct program *p)
{
	p->image->publish.extent = false;
}

static void not_named(struct program *p)
{
	p->image->publish.there = false;
}

static void length_elsewhere(struct program *p)
{
	bringer(p, WQE_ATOMIC + 7)->addend -= 7; /* over the offset */
}

static void seen_elsewhere(struct program *p)
{
	bringer(p, WQE_ATOMIC + 8)->addend = bringer(p, WQE_ATOMIC + 9)->addend;
}

static void seen_of_client(struct program *p)
{
	for (unsigned i = 0; i < p->image->nrecv; i++)
		if (p->image->recv[i].len == 6) {
			p->image->recv[i].sym = CHAIN_SYM_QUEUE;
			p->image->recv[i].index = p->image->publish.queue;
			p->image->recv[i].offset = p->image->publish.offset + WQE_ATOMIC + 8;
			bringer(p, WQE_ATOMIC + 8)->addend = bringer(p, WQE_ATOMIC + 9)->addend;
			return;
		}
	fail_msg("the key has another place");
}

static void length_of_client(struct program *p)
{
	for (unsigned i = 0; i < p->image->nrecv; i++)
		if (p->image->recv[i].len == 6) {
			p->image->recv[i].sym = CHAIN_SYM_QUEUE;
			p->image->recv[i].index = p->image->publish.queue;
			p->image->recv[i].offset = p->image->publish.offset + WQE_ATOMIC;
			return;
		}
	fail_msg("the key has another place");
}

static void another_verb(struct program *p)
{
	struct chain_queue *q = &p->image->queue[p->image->publish.queue];

	for (uint32_t i = 0; i < p->image->scratch_size; i++)
		if (p->image->scratch_init[i] == WQE_OP_CAS)
			p->image->scratch_init[i] = WQE_OP_FETCH_ADD;
	for (uint32_t w = 0; w < q->wqebbs; w++)
		for (unsigned i = 0; q->starts[w] && q->wqes[w * 64 + WQE_OPCODE] == WQE_OP_CAS && i < 8; i++)
			if (q->wqes[w * 64 + WQE_ATOMIC + i] == WQE_OP_CAS)
				q->wqes[w * 64 + WQE_ATOMIC + i] = WQE_OP_FETCH_ADD;
}

static void other_bytes_of_the_cqe(struct program *p)
{
	for (unsigned i = 0; i < p->image->nrelocs; i++)
		if (p->image->relocs[i].kind == CHAIN_REL_ADDR64 && p->image->relocs[i].sym == CHAIN_SYM_CQE)
			p->image->relocs[i].addend += 4;
}

static void locator_answered(struct program *p)
{
	for (unsigned i = 0; i < p->image->nrelocs; i++) {
		struct chain_reloc *r = &p->image->relocs[i];

		if (r->where != 0 || r->sym != CHAIN_SYM_SCRATCH)
			continue;
		r->sym = CHAIN_SYM_QUEUE;
		r->index = p->image->publish.queue;
		if (r->kind == CHAIN_REL_ADDR64)
			r->addend = p->image->publish.offset + WQE_ATOMIC;
	}
}

static void found_is_overwritten(struct program *p)
{
	const struct chain_publish *pub = &p->image->publish;

	for (unsigned i = 0; i < p->image->nrelocs; i++) {
		struct chain_reloc *r = &p->image->relocs[i];

		/* the READ of the mark */
		if (r->kind == CHAIN_REL_ADDR64 && r->sym == CHAIN_SYM_SCRATCH && r->where == pub->queue &&
			r->offset % CHAIN_WQEBB == WQE_RDMA_SGE + WQE_SGE_ADDR) {
			r->addend = pub->was;
			return;
		}
	}
	fail_msg("no READ goes to scratch memory");
}

static void payload_is_shorter(struct program *p)
{
	p->image->recv[p->image->nrecv - 1].len--;
}

static void payload_over_the_header(struct program *p)
{
	p->image->recv[p->image->nrecv - 1].offset--;
}

static void payload_is_writable(struct program *p)
{
	p->regions[2].writable = true;
}

static void refuses_a_wrong_publish(void **state)
{
	static const struct tamper tampers[] = {TAMPER(publish_elsewhere), TAMPER(another_region),
		TAMPER(another_word), TAMPER(armed_with_nothing), TAMPER(a_constant), TAMPER(not_named),
		TAMPER(length_elsewhere), TAMPER(seen_elsewhere), TAMPER(seen_of_client),
		TAMPER(length_of_client), TAMPER(another_verb), TAMPER(other_bytes_of_the_cqe),
		TAMPER(locator_answered), TAMPER(found_is_overwritten), TAMPER(payload_is_shorter),
		TAMPER(payload_over_the_header), TAMPER(payload_is_writable)};
	struct program *p = compiled(put);

	(void)state;
	assert_int_equal(publish_of(p)[WQE_OPCODE], WQE_OP_NOP);
	program_free(p);
	assert_refuses(put, tampers, sizeof(tampers) / sizeof(*tampers));
}

/* ---- what a queue leaves that fails ------------------------------------------------------------- */

/* A queue stores where it is awake in a case of a decision. One that knows the case may see what was there,
 * and the same queue does not; in another case nobody sees what it stores */
static void sees_what_was_there_in_the_same_case(void **state)
{
	static const uint8_t old[WORD_BYTES] = {1, 1, 1, 1, 1, 1, 1, 1};
	struct actor by = {.queue = 1, .guard = {7, 1}}, other = {.queue = 2, .guard = {7, 1}},
		     asleep = {.queue = 2, .guard = {7, 2}};
	struct pool_of_cases *p = cases_pool_new();
	struct word_case new = {0};
	struct word w;

	(void)state;
	cases_pool_reset(p);
	word_set(p, &w, old);
	for (unsigned k = 0; k < WORD_BYTES; k++)
		new.b[k] = bytes_one(2);
	word_store(p, &w, &by, &new, 1, 0);
	assert_true(bytes_only(word_byte(&w, &by, 0), 2));
	assert_true(bytes_have(word_byte(&w, &other, 0), 1));
	assert_true(bytes_have(word_byte(&w, &other, 0), 2));
	assert_true(bytes_only(word_byte(&w, &asleep, 0), 1));
	/* as does a third one of the second, and of the first */
	new.b[0] = bytes_one(3);
	word_store(p, &w, &other, &new, 1, 0);
	assert_true(bytes_only(word_byte(&w, &other, 0), 3));
	by.queue = 3;
	assert_int_equal(bytes_count(word_byte(&w, &by, 0)), 3);
	cases_pool_free(p);
}

/* What is decided, here in byte 7, keeps what it is decided for */
static void joins_the_cases_that_differ_least(void **state)
{
	static const uint8_t old[WORD_BYTES] = {0};
	const struct actor by = {.queue = 1, .sure = true};
	struct pool_of_cases *p = cases_pool_new();
	const struct word_case *seen[2 * CASES];
	struct word_case new[2 * CASES] = {0};
	struct word w;
	unsigned n;

	(void)state;
	cases_pool_reset(p);
	word_set(p, &w, old);
	for (unsigned i = 0; i < 2 * CASES; i++)
		for (unsigned k = 0; k < WORD_BYTES; k++)
			new[i].b[k] = bytes_one(k == 0 ? (uint8_t)i : k == 7 && i % 2);
	word_store(p, &w, &by, new, 2 * CASES, 0);
	n = word_seen(&w, &by, seen);
	assert_int_equal(n, CASES);
	for (uint8_t i = 0; i < 2 * CASES; i++) {
		bool there = false;

		for (unsigned c = 0; c < n; c++)
			if (bytes_have(seen[c]->b[0], i)) {
				assert_true(bytes_only(seen[c]->b[7], i % 2));
				there = true;
			}
		assert_true(there);
	}
	cases_pool_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sees_what_was_there_in_the_same_case),
		cmocka_unit_test(joins_the_cases_that_differ_least),
		cmocka_unit_test(refuses_what_is_wrong),
		cmocka_unit_test(refuses_a_wrong_loop),
		cmocka_unit_test(refuses_what_reads_addresses),
		cmocka_unit_test(refuses_what_overlaps),
		cmocka_unit_test(refuses_a_wrong_length),
		cmocka_unit_test(refuses_a_wrong_calculation),
		cmocka_unit_test(refuses_a_wrong_publish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
