/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens where a program leaves what it may use. The proofs refuse such programs, so these are images
 * that were changed after them. What programs mean is tested in tests/programs.
 */
#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "reddnd/executor/executor.h"
#include "reddnd/executor/internal.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { REGION = 64, SLOT = 128, DATA = 64 };

static const char text[] = "program copy\n"
			   "region data, log writable\n"
			   "arg at : offset(1) in data\n"
			   "var word : le64\n"
			   "read data @ at as le64 -> word\n"
			   "add log @ 8 as le64 by 1\n"
			   "write_imm word -> slot @ 0\n";

static const char endless[] = "program waits\n"
			      "endless\n"
			      "region data\n"
			      "arg at : be56\n"
			      "var word : le64 = 1\n"
			      "var cur : be56\n"
			      "mov at -> cur\n"
			      "while word != 0 {\n"
			      "  read data @ cur as le64 -> word\n"
			      "}\n"
			      "write_imm word -> slot @ 0\n";

static const char follows[] = "program follows\n"
			      "region data, log\n"
			      "struct entry { len : be24, off : be40 }\n"
			      "arg first : offset(4) in data\n"
			      "arg at : offset(4) in data\n"
			      "var word : le64\n"
			      "read data @ first as le64 -> word\n"
			      "read data @ at as entry { len -> hit.length, off -> hit.addr }\n"
			      "hit: write log -> slot @ 64, max 16\n"
			      "write_imm word -> slot @ 0\n";

static const char joins[] = "program joins\n"
			    "region data, log writable\n"
			    "var first : bytes 16\n"
			    "var second : bytes 16\n"
			    "read data @ 0 as bytes 16 -> first\n"
			    "read data @ 16 as bytes 16 -> second\n"
			    "write first, second -> log @ 16\n"
			    "write_imm first -> slot @ 0\n";

struct rig {
	struct program *p;
	struct executor *x;
	_Alignas(8) uint8_t data[REGION], log[REGION], messages[DATA];
};

static void compile(struct rig *r, const char *program)
{
	const struct program_source src = {.name = "test", .text = program, .len = strlen(program)};
	const struct program_target target = {.masked_atomics = true, .calc = PROGRAM_CALC};
	char *messages = NULL;

	*r = (struct rig){0};
	if (program_compile(&src, NULL, 0, &target, &r->p, &messages))
		fail_msg("%s", messages);
}

static void begin(struct rig *r)
{
	const struct executor_parts parts = {
		.region = {{r->data, REGION, false}, {r->log, REGION, true}},
		.slot_size = SLOT,
		.data_size = DATA,
	};

	chain_writer_free(r->p->writer);
	assert_int_equal(chain_writer_new(&r->p->writer, r->p->image), 0); /* of the image as it is now */
	assert_int_equal(executor_new(&r->x, r->p, &parts), 0);
}

static void end(struct rig *r)
{
	executor_free(r->x);
	program_free(r->p);
}

static enum executor_result ask(struct rig *r, uint64_t number, uint64_t at)
{
	uint8_t request[CHAIN_MAX_ARG] = {0};
	uint32_t len = r->p->image->arg_len;

	for (unsigned i = 0; i < len && i < 8; i++)
		request[len - 1 - i] = (uint8_t)(at >> 8 * i);
	executor_begin(r->x, number, request, r->messages);
	return executor_run(r->x, 10000);
}

/* The first WQE with that opcode in the image, in any queue */
static uint8_t *find(struct rig *r, uint8_t opcode, unsigned *queue)
{
	for (unsigned q = 0; q < r->p->image->nqueues; q++) {
		struct chain_queue *c = &r->p->image->queue[q];

		for (unsigned w = 0; w < c->wqebbs; w++)
			if (c->starts[w] && c->wqes[w * WQE_BB + WQE_OPCODE] == opcode) {
				*queue = q;
				return c->wqes + (size_t)w * WQE_BB;
			}
	}
	fail_msg("no WQE with opcode %#x", opcode);
	return NULL;
}

static void fails_with(struct rig *r, unsigned queue, uint8_t syndrome)
{
	begin(r);
	assert_int_equal(ask(r, 0, 0), EXECUTOR_FAULT);
	assert_int_equal(executor_fault(r->x)->queue, queue);
	assert_int_equal(executor_fault(r->x)->syndrome, syndrome);
	end(r);
}

static void answers(void **state)
{
	const struct executor_message *m;
	struct rig r;
	unsigned n;

	compile(&r, text);
	r.data[16] = 42;
	begin(&r);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ask(&r, 0x100000000 + 7 + i, 16), EXECUTOR_DONE);
		m = executor_messages(r.x, &n);
		assert_int_equal(n, 1);
		assert_int_equal(m->opcode, WQE_OP_WRITE_IMM);
		assert_int_equal(m->slot_at, 0);
		assert_int_equal(m->imm, 7 + i);
		assert_int_equal(m->len, 8);
		assert_int_equal(r.messages[m->from], 42);
		assert_int_equal(r.log[8], 1 + i);
		assert_true(executor_wqes(r.x) >= 4);
	}
	end(&r);
}

/* An offset from a client that leads out of the region: a NIC would report it as well */
static void stays_in_regions(void **state)
{
	struct rig r;

	compile(&r, text);
	begin(&r);
	assert_int_equal(ask(&r, 0, REGION - 8), EXECUTOR_DONE);
	assert_int_equal(ask(&r, 0, REGION - 7), EXECUTOR_FAULT);
	assert_int_equal(executor_fault(r.x)->syndrome, CQE_SYND_REMOTE_ACCESS);
	/* the next request is none the worse for it */
	assert_int_equal(ask(&r, 0, 0), EXECUTOR_DONE);
	end(&r);
}

static void stays_in_the_slot(void **state)
{
	unsigned queue;
	struct rig r;

	compile(&r, text);
	for (unsigned i = 0; i < r.p->image->nrelocs; i++)
		if (r.p->image->relocs[i].sym == CHAIN_SYM_SLOT)
			r.p->image->relocs[i].addend = SLOT - 7;
	find(&r, WQE_OP_WRITE_IMM, &queue);
	fails_with(&r, queue, CQE_SYND_REMOTE_ACCESS);
}

static void writes_nothing_that_is_not_writable(void **state)
{
	const struct executor_parts parts = {.slot_size = SLOT, .data_size = DATA};
	struct executor_parts both = parts;
	struct rig r;

	compile(&r, text);
	both.region[0] = (struct executor_region){r.data, REGION, false};
	both.region[1] = (struct executor_region){r.log, REGION, false};
	assert_int_equal(executor_new(&r.x, r.p, &both), 0);
	assert_int_equal(ask(&r, 0, 0), EXECUTOR_FAULT);
	assert_int_equal(executor_fault(r.x)->syndrome, CQE_SYND_REMOTE_ACCESS);
	assert_int_equal(r.log[8], 0);
	end(&r);
}

static void aligns_atomics(void **state)
{
	unsigned queue;
	struct rig r;

	compile(&r, text);
	find(&r, WQE_OP_FETCH_ADD, &queue);
	for (unsigned i = 0; i < r.p->image->nrelocs; i++) {
		struct chain_reloc *rel = &r.p->image->relocs[i];

		if (rel->kind == CHAIN_REL_ADDR64 && rel->sym == CHAIN_SYM_REGION && rel->index == 1)
			rel->addend += 1;
	}
	fails_with(&r, queue, CQE_SYND_REMOTE_INVAL);
}

static void knows_its_opcodes(void **state)
{
	unsigned queue;
	struct rig r;

	compile(&r, text);
	find(&r, WQE_OP_FETCH_ADD, &queue)[WQE_OPCODE] = WQE_OP_UMR;
	fails_with(&r, queue, CQE_SYND_LOCAL_QP_OP);
}

/* One that is longer than its place, of either kind of queue */
static void stays_in_its_queue(void **state)
{
	static const uint8_t opcodes[] = {WQE_OP_WRITE_IMM, WQE_OP_READ, WQE_OP_FETCH_ADD};
	unsigned queue;
	struct rig r;

	for (unsigned i = 0; i < 3; i++) {
		compile(&r, text);
		find(&r, opcodes[i], &queue)[WQE_DSCOUNT] |= WQE_MAX_DS;
		fails_with(&r, queue, CQE_SYND_LOCAL_QP_OP);
	}
}

/* A WRITE that has become one of CALC: of the result the number, and nothing behind it */
static void calculates(void **state)
{
	static const uint64_t a = 0x8000000000000f0f, b = 0xff;
	static const struct {
		uint8_t opmod;
		uint64_t result;
	} cases[] = {{WQE_CALC_ADD, 0x800000000000100e}, {WQE_CALC_MAXLOC, 0x8000000000000f0f},
		{WQE_CALC_AND, 0xf}, {WQE_CALC_OR, 0x8000000000000fff}, {WQE_CALC_XOR, 0x8000000000000ff0}};
	unsigned queue;
	struct rig r;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		compile(&r, joins);
		wqe_put64(r.data, a);
		wqe_put64(r.data + 16, b);
		memset(r.log, 0xee, sizeof(r.log));
		find(&r, WQE_OP_WRITE, &queue)[WQE_OPMOD] = cases[i].opmod;
		begin(&r);
		assert_int_equal(ask(&r, 0, 0), EXECUTOR_DONE);
		assert_int_equal(wqe_get64(r.log + 16), cases[i].result);
		assert_int_equal(r.log[24], 0xee);
		end(&r);
	}
}

static void calculates_nothing_else(void **state)
{
	static const uint8_t opmods[] = {WQE_CALC_ADD_F64, WQE_CALC_XOR + 1, 0xff};
	unsigned queue;
	uint8_t *w;
	struct rig r;

	for (unsigned i = 0; i < sizeof(opmods); i++) {
		compile(&r, joins);
		find(&r, WQE_OP_WRITE, &queue)[WQE_OPMOD] = opmods[i];
		fails_with(&r, queue, CQE_SYND_LOCAL_QP_OP);
	}
	compile(&r, joins);
	w = find(&r, WQE_OP_WRITE, &queue);
	w[WQE_OPMOD] = WQE_CALC_MAXLOC;
	wqe_put32(w + WQE_RDMA_SGE, 8);
	fails_with(&r, queue, CQE_SYND_LOCAL_LENGTH);
}

static void sends_from_the_reply_queue_only(void **state)
{
	unsigned queue;
	struct rig r;

	compile(&r, text);
	find(&r, WQE_OP_READ, &queue)[WQE_OPCODE] = WQE_OP_SEND;
	fails_with(&r, queue, CQE_SYND_LOCAL_QP_OP);
}

/* What waits for ever on a NIC */
static void notices_that_nothing_runs(void **state)
{
	unsigned queue;
	struct rig r;

	compile(&r, text);
	find(&r, WQE_OP_SEND_EN, &queue)[WQE_OPCODE] = WQE_OP_NOP;
	fails_with(&r, 0, 0);
}

static void has_room_for_messages(void **state)
{
	struct executor_parts parts = {.slot_size = SLOT, .data_size = 7};
	struct rig r;

	compile(&r, text);
	assert_int_equal(executor_bytes(r.p), 8);
	parts.region[0] = (struct executor_region){r.data, REGION, false};
	parts.region[1] = (struct executor_region){r.log, REGION, true};
	assert_int_equal(executor_new(&r.x, r.p, &parts), 0);
	assert_int_equal(ask(&r, 0, 0), EXECUTOR_FAULT);
	assert_int_equal(executor_fault(r.x)->syndrome, CQE_SYND_LOCAL_LENGTH);
	end(&r);
}

/* A work request at a time, the result is the same; and what the order of a request is, it is for the next */
static void pauses_anywhere(void **state)
{
	const struct executor_message *m;
	enum executor_result result;
	struct rig r;
	unsigned n;

	compile(&r, text);
	r.data[16] = 42;
	begin(&r);
	assert_int_equal(ask(&r, 0, 16), EXECUTOR_DONE);
	for (unsigned i = 1; i < 3; i++) {
		uint64_t all = executor_wqes(r.x);
		unsigned parts = 0;

		executor_begin(r.x, i, (const uint8_t[]){16}, r.messages);
		while ((result = executor_run(r.x, 1)) == EXECUTOR_MORE)
			parts++;
		assert_int_equal(result, EXECUTOR_DONE);
		assert_true(parts >= 2);
		assert_int_equal(executor_wqes(r.x), all);
		m = executor_messages(r.x, &n);
		assert_int_equal(n, 1);
		assert_int_equal(m->imm, i);
		assert_int_equal(r.messages[m->from], 42);
		assert_int_equal(r.log[8], 1 + i);
	}
	end(&r);
}

/* The READ takes eight bytes of data for the word; now it takes @len for that place of the WRITE_IMM */
static void patch_message(struct rig *r, uint32_t at, uint32_t len)
{
	unsigned queue;
	uint8_t *read = find(r, WQE_OP_READ, &queue), *write = find(r, WQE_OP_WRITE_IMM, &queue);

	for (unsigned i = 0; i < r->p->image->nrelocs; i++) {
		struct chain_reloc *rel = &r->p->image->relocs[i];

		if (rel->kind != CHAIN_REL_ADDR64 || rel->sym != CHAIN_SYM_SCRATCH)
			continue;
		if (r->p->image->queue[rel->where].wqes + rel->offset == read + WQE_RDMA_SGE + WQE_SGE_ADDR) {
			rel->sym = CHAIN_SYM_QUEUE;
			rel->index = (uint8_t)queue;
			rel->addend = write - r->p->image->queue[queue].wqes + at;
		}
	}
	wqe_put32(read + WQE_RDMA_SGE, len);
}

/* The length of a message that a READ fills in: each request has its own */
static void forgets_what_is_patched(void **state)
{
	const struct executor_message *m;
	struct rig r;
	unsigned n;

	compile(&r, text);
	patch_message(&r, WQE_RDMA_SGE, 4);
	r.data[3] = 8;
	r.data[11] = 4;
	begin(&r);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(ask(&r, i, i % 2 ? 8 : 0), EXECUTOR_DONE);
		m = executor_messages(r.x, &n);
		assert_int_equal(n, 1);
		assert_int_equal(m->len, i % 2 ? 4 : 8);
	}
	end(&r);
}

/* Length or address of a message, big-endian */
static void fails_patched(uint32_t at, unsigned bytes, uint64_t value, uint8_t syndrome)
{
	struct rig r;

	compile(&r, text);
	patch_message(&r, at, bytes);
	for (unsigned i = 0; i < bytes; i++)
		r.data[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
	fails_with(&r, 0, syndrome);
}

static void checks_what_is_patched(void **state)
{
	const uint32_t len = WQE_RDMA_SGE + WQE_SGE_LEN, addr = WQE_RDMA_SGE + WQE_SGE_ADDR;

	fails_patched(len, 4, 0, CQE_SYND_LOCAL_PROT);
	fails_patched(len, 4, SLOT + 1, CQE_SYND_REMOTE_ACCESS);
	fails_patched(len, 4, SLOT, CQE_SYND_LOCAL_LENGTH);
	fails_patched(len, 4, UINT32_MAX, CQE_SYND_REMOTE_ACCESS);
	fails_patched(addr, 8, 0, CQE_SYND_LOCAL_PROT);
	fails_patched(addr, 8, memory_address(MEMORY_OWN) - 1, CQE_SYND_LOCAL_PROT);
	fails_patched(addr, 8, memory_address(MEMORY_SLOT) - 8, CQE_SYND_LOCAL_PROT);
}

/* A program whose second READ of @bytes writes to its message, @at bytes from the start of that WQE, which
 * only a READ before it shows */
static uint8_t *patch_by_address(struct rig *r, uint32_t at, uint32_t bytes)
{
	static const char two[] = "program two\n"
				  "region data\n"
				  "arg at : offset(1) in data\n"
				  "var word : le64\n"
				  "var other : le64\n"
				  "read data @ at as le64 -> word\n"
				  "read data @ 8 as le64 -> other\n"
				  "write_imm word -> slot @ 0\n";
	uint8_t *first, *second, *write;
	unsigned queue;

	compile(r, two);
	write = find(r, WQE_OP_WRITE_IMM, &queue);
	wqe_put64(r->data, memory_address(MEMORY_OWN) + (uint64_t)(write - r->p->image->queue[0].wqes) + at);
	first = find(r, WQE_OP_READ, &queue);
	second = first + WQE_BB;
	assert_int_equal(second[WQE_OPCODE], WQE_OP_READ);
	wqe_put32(second + WQE_RDMA_SGE + WQE_SGE_LEN, bytes);
	for (unsigned i = 0; i < r->p->image->nrelocs; i++) {
		struct chain_reloc *rel = &r->p->image->relocs[i];

		if (rel->kind == CHAIN_REL_ADDR64 && rel->where == queue &&
			r->p->image->queue[queue].wqes + rel->offset == first + WQE_RDMA_SGE + WQE_SGE_ADDR) {
			rel->sym = CHAIN_SYM_QUEUE;
			rel->index = (uint8_t)queue;
			rel->addend = second + WQE_RDMA_SGE + WQE_SGE_ADDR - r->p->image->queue[queue].wqes;
		}
	}
	return write;
}

/* Where a READ writes is patched, to the length of a message that nobody has written before: it counts at
 * once, in the first request as well */
static void learns_in_the_middle(void **state)
{
	struct rig r;
	unsigned n;

	patch_by_address(&r, WQE_RDMA_SGE + WQE_SGE_LEN, 4);
	wqe_put32(r.data + 8, 4);
	begin(&r);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ask(&r, i, 0), EXECUTOR_DONE);
		assert_int_equal(executor_messages(r.x, &n)->len, 4);
	}
	end(&r);
}

/* The same of a NOP, which has been left out of the order: it is not skipped in silence */
static void notices_a_nop_that_is_patched(void **state)
{
	struct rig r;

	patch_by_address(&r, WQE_OPCODE, 1)[WQE_OPCODE] = WQE_OP_NOP;
	r.data[8] = WQE_OP_WRITE_IMM;
	begin(&r);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ask(&r, i, 0), EXECUTOR_FAULT);
	end(&r);
}

/* A WRITE_IMM that a READ makes another work request: none that was prepared */
static void executes_what_is_patched(void **state)
{
	unsigned n;
	struct rig r;

	compile(&r, text);
	patch_message(&r, WQE_OPCODE, 1);
	r.data[0] = WQE_OP_WRITE_IMM;
	r.data[1] = WQE_OP_NOP;
	r.data[2] = WQE_OP_WRITE;
	r.data[3] = WQE_OP_UMR;
	begin(&r);
	for (unsigned i = 0; i < 12; i++) {
		unsigned what = i * 7 % 4;

		assert_int_equal(ask(&r, i, what), what == 3 ? EXECUTOR_FAULT : EXECUTOR_DONE);
		assert_true(what != 3 || executor_fault(r.x)->syndrome == CQE_SYND_LOCAL_QP_OP);
		executor_messages(r.x, &n);
		assert_int_equal(n, what == 0 || what == 2);
		assert_true(n == 0 || executor_messages(r.x, &n)->opcode == r.data[what]);
	}
	end(&r);
}

/* Flags that a READ fills in decide about the order of CQEs, so there is none for all requests */
static void has_no_order(void **state)
{
	const struct executor_message *m;
	unsigned n, queue;
	struct rig r;

	compile(&r, text);
	patch_message(&r, WQE_FLAGS, 1);
	r.data[0] = find(&r, WQE_OP_WRITE_IMM, &queue)[WQE_FLAGS] | WQE_SOLICITED;
	r.data[8] = r.data[0] & (uint8_t)~WQE_SOLICITED;
	begin(&r);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(ask(&r, i, i % 2 ? 8 : 0), EXECUTOR_DONE);
		m = executor_messages(r.x, &n);
		assert_int_equal(n, 1);
		assert_int_equal(m->imm, i);
		assert_int_equal(m->solicited, i % 2 == 0);
	}
	end(&r);
}

/* A write that meets what must not be written leaves everything as it was */
static void learns_all_or_nothing(void **state)
{
	uint8_t marks[2 * WQE_BB] = {[WQE_BB + WQE_DSCOUNT] = OP_FIXED};
	struct op ops[2] = {{.control = 1}, {.control = 1}};
	struct op_state s = {.code = sizeof(marks), .marks = marks, .ops = ops};

	assert_false(op_learn(&s, WQE_BB, WQE_DS));
	assert_false(s.learned);
	for (unsigned i = 0; i < sizeof(marks); i++)
		assert_false(marks[i] & OP_WRITTEN);
	assert_int_equal(ops[1].control, 1);
	assert_true(op_learn(&s, 0, WQE_DS));
	assert_true(s.learned && marks[0] == OP_WRITTEN && ops[1].control == 0);
}

/* What a request names, and what that leads to by then, if these are in their regions. There are no eight
 * bytes that end with the first place */
static void knows_what_it_will_read(void **state)
{
	const uint8_t request[8] = {[7] = 16}, beyond[8] = {[7] = REGION - 7}, *at[EXECUTOR_READS];
	struct rig r;

	compile(&r, follows);
	assert_int_equal(r.p->image->arg_len, sizeof(request));
	r.data[16 + 2] = 8;
	r.data[16 + 7] = 24;
	begin(&r);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(executor_reads(r.x, request, at), 1);
		assert_ptr_equal(at[0], r.data + 16);
		assert_int_equal(executor_reads_then(r.x, request, at), 1);
		assert_ptr_equal(at[0], r.log + 24);
		assert_int_equal(executor_reads(r.x, beyond, at), 0);
		assert_int_equal(executor_reads_then(r.x, beyond, at), 0);
		assert_int_equal(ask(&r, i, 16), EXECUTOR_DONE);
	}
	r.data[16 + 6] = 1;
	assert_int_equal(executor_reads_then(r.x, request, at), 0);
	end(&r);
	compile(&r, endless);
	begin(&r);
	assert_int_equal(executor_reads(r.x, r.data, at), 0);
	end(&r);
}

static void pauses(void **state)
{
	struct rig r;
	uint64_t seen = 0;

	compile(&r, endless);
	r.data[0] = 1;
	begin(&r);
	assert_int_equal(ask(&r, 0, 0), EXECUTOR_MORE);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(executor_run(r.x, 10000), EXECUTOR_MORE);
		assert_true(executor_iterations(r.x) > seen);
		seen = executor_iterations(r.x);
		assert_int_equal(executor_wqes(r.x), 10000 * (i + 2));
	}
	r.data[0] = 0;
	assert_int_equal(executor_run(r.x, 10000), EXECUTOR_DONE);
	/* the loop begins anew with each request */
	r.data[8] = 1;
	assert_int_equal(ask(&r, 1, 8), EXECUTOR_MORE);
	assert_int_equal(ask(&r, 2, 0), EXECUTOR_DONE);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),
		cmocka_unit_test(stays_in_regions),
		cmocka_unit_test(stays_in_the_slot),
		cmocka_unit_test(writes_nothing_that_is_not_writable),
		cmocka_unit_test(aligns_atomics),
		cmocka_unit_test(knows_its_opcodes),
		cmocka_unit_test(stays_in_its_queue),
		cmocka_unit_test(calculates),
		cmocka_unit_test(calculates_nothing_else),
		cmocka_unit_test(sends_from_the_reply_queue_only),
		cmocka_unit_test(notices_that_nothing_runs),
		cmocka_unit_test(has_room_for_messages),
		cmocka_unit_test(pauses_anywhere),
		cmocka_unit_test(forgets_what_is_patched),
		cmocka_unit_test(checks_what_is_patched),
		cmocka_unit_test(learns_in_the_middle),
		cmocka_unit_test(notices_a_nop_that_is_patched),
		cmocka_unit_test(executes_what_is_patched),
		cmocka_unit_test(has_no_order),
		cmocka_unit_test(learns_all_or_nothing),
		cmocka_unit_test(knows_what_it_will_read),
		cmocka_unit_test(pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
