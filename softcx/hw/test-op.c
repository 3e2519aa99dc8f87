/* SPDX-License-Identifier: BSD-2-Clause */
/* CALC: results, what is sent besides, and what is refused. */
#include "softcx/hw/fault.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/test-rig.h"
#include "softcx/hw/turns.h"
#include "util/array.h"

#include <string.h>

/* ---- Operands of atomics, and where their old values go */

struct memory {
	struct rig_one o;
	uint8_t *bytes;
};

static void open_memory(struct memory *m, struct rig_opt opt)
{
	rig_one_open(&m->o, (struct hw_config){.seed = 3}, (struct hw_cq_attr){.log_size = 6}, opt);
	m->bytes = rig_alloc(&m->o.rig, 4096);
}

/* Which byte of memory an operand's byte stands for: k and 7 - k, on a little-endian host. */
static void operand_bytes(void **state)
{
	struct memory m;

	open_memory(&m, (struct rig_opt){0});
	for (unsigned k = 0; k < 8; k++) {
		uint8_t *w;

		memset(m.bytes, 0, 8);
		m.bytes[k] = 0x5a;
		w = wqe_atomic(&m.o.q, WQE_OP_CAS, m.bytes + 64, m.bytes, 0, 0, SIG);
		w[40 + 7 - k] = 0x5a; /* compare */
		w[32 + 7 - k] = 0xa5; /* swap */
		rig_one_go(&m.o);
		rig_expect(&m.o.scq, CQE_OP_REQ);
		assert_int_equal(m.bytes[k], 0xa5);
		assert_int_equal(m.bytes[64 + k], 0x5a); /* mode 1: the old value as it was in memory */
	}
	rig_one_close(&m.o);
}

/* An add on the index field of a ctrl segment carries from byte 1 into byte 2; a field boundary stops it. */
static void carries(void **state)
{
	struct memory m;

	open_memory(&m, (struct rig_opt){0});
	memcpy(m.bytes, "\x00\xff\x00\x08\x00\x00\x90\x03", 8);
	memcpy(m.bytes + 8, m.bytes, 8);
	wqe_atomic(&m.o.q, WQE_OP_FETCH_ADD, m.bytes + 64, m.bytes, 0x100, 0, SIG);
	wqe_masked4(&m.o.q, WQE_OP_MASKED_FETCH_ADD, m.bytes + 72, m.bytes + 8,
		(uint32_t[4]){0x100, 0x80808080, 0, 0}, SIG);
	rig_one_go(&m.o);
	rig_expect(&m.o.scq, CQE_OP_REQ);
	rig_expect(&m.o.scq, CQE_OP_REQ);
	assert_memory_equal(m.bytes, "\x00\x00\x01\x08\x00\x00\x90\x03", 8);
	assert_memory_equal(m.bytes + 8, "\x00\x00\x00\x08\x00\x00\x90\x03", 8);
	rig_one_close(&m.o);
}

/* Masked CAS of 8 bytes takes two WQEBBs: its data segment may lie at the start of the ring. */
static void masked_cas_wraps(void **state)
{
	struct memory m;

	open_memory(&m, (struct rig_opt){.wqebbs = 4});
	wqe_nop(&m.o.q, 1, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t old, word = i << 8 | 0x42;

		memcpy(m.bytes, &word, 8);
		wqe_masked_cas8(&m.o.q, m.bytes + 8, m.bytes, 0x43, 0x42, 0xff, 0xff, SIG);
		rig_one_go(&m.o);
		rig_expect(&m.o.scq, CQE_OP_REQ);
		memcpy(&word, m.bytes, 8);
		memcpy(&old, m.bytes + 8, 8);
		assert_int_equal(word, i << 8 | 0x43);
		assert_int_equal(old, i << 8 | 0x42);
	}
	rig_one_close(&m.o);
}

/* The old value may go to several places; it must fit. */
static void atomic_results(void **state)
{
	for (int fits = 0; fits < 2; fits++) {
		uint64_t word = 0x0807060504030201;
		struct memory m;
		uint8_t *w;

		open_memory(&m, (struct rig_opt){0});
		memcpy(m.bytes, &word, 8);
		w = wqe_raw(&m.o.q, WQE_OP_FETCH_ADD, 0, 5, SIG, 0);
		put64(w + 16, (uintptr_t)m.bytes);
		put32(w + 24, m.o.rig.key);
		put64(w + 32, 1);
		put_seg(w + 48, m.bytes + 64, 3, m.o.rig.key);
		put_seg(w + 64, m.bytes + 80, fits ? 5 : 4, m.o.rig.key);
		rig_one_go(&m.o);
		if (fits) {
			rig_expect(&m.o.scq, CQE_OP_REQ);
			assert_memory_equal(m.bytes + 64, &word, 3);
			assert_memory_equal(m.bytes + 80, (uint8_t *)&word + 3, 5);
		} else {
			rig_expect_error(&m.o.scq, CQE_SYND_LOCAL_LENGTH);
			assert_memory_equal(m.bytes, &word, 8); /* nothing was added */
		}
		rig_one_close(&m.o);
	}
}

enum { SPACE = 16384, UNTOUCHED = 0xee };

struct bench {
	struct rig_one o;
	uint8_t *in, *out; /* SPACE bytes each */
};

static struct profile profile;

/* A device with scalars as @calc, and a queue. */
static void open_bench(struct bench *b, struct hw_config cfg, enum profile_calc calc, struct rig_opt opt)
{
	profile = *profile_default();
	profile.value[PROFILE_CALC] = calc;
	if (!cfg.profile)
		cfg.profile = &profile;
	rig_one_open(&b->o, cfg, (struct hw_cq_attr){.log_size = 6}, opt);
	b->in = rig_alloc(&b->o.rig, SPACE);
	b->out = rig_alloc(&b->o.rig, SPACE);
	memset(b->out, UNTOUCHED, SPACE);
}

static void operand(uint8_t *p, uint64_t v, uint64_t id)
{
	put64(p, v);
	put64(p + 8, id);
}

/* A message of @len bytes at b->in, with this opmod, that arrives at b->out */
static uint8_t *post(struct bench *b, uint8_t opcode, uint8_t opmod, uint32_t len)
{
	uint8_t *w;

	if (opcode != WQE_OP_WRITE)
		rig_recv(&b->o.q, 1, b->out, SPACE);
	w = opcode == WQE_OP_SEND ? wqe_send(&b->o.q, opcode, b->in, len, SIG, 0)
				  : wqe_rdma(&b->o.q, opcode, b->in, len, b->out, SIG, 0);
	w[WQE_OPMOD] = opmod;
	return w;
}

static const uint8_t carriers[] = {WQE_OP_SEND, WQE_OP_WRITE, WQE_OP_WRITE_IMM};

/* Of three operands; of the largest, the second, none is the largest as a signed number. */
static void scalars(void **state)
{
	static const struct {
		uint8_t opmod;
		uint64_t in[3], out;
	} t[] = {
		{WQE_CALC_ADD, {3, UINT64_MAX, 0x100000000}, 0x100000002},
		{WQE_CALC_ADD_F64, {0x3ff8000000000000, 0xc010000000000000, 0x3fd0000000000000},
			0xc002000000000000}, /* 1.5, -4, 0.25, -2.25 */
		{WQE_CALC_MAXLOC, {7, 0x8000000000000001, 0x7fffffffffffffff}, 0x8000000000000001},
		{WQE_CALC_AND, {0xff00ff00ff00ff0f, 0x0ff00ff00ff00fff, ~0ull << 4}, 0x0f000f000f000f00},
		{WQE_CALC_OR, {1, 0x8000000000000000, 0x10}, 0x8000000000000011},
		{WQE_CALC_XOR, {0xff, 0xf0, 0x8000000000000000}, 0x800000000000000f},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(t); i++)
		for (size_t c = 0; c < COUNT(carriers); c++)
			for (unsigned seed = 0; seed < 8; seed++) {
				bool wide = seed % 2;
				const uint8_t *cqe;
				struct bench b;

				open_bench(&b, (struct hw_config){.seed = seed},
					wide ? PROFILE_CALC_16 : PROFILE_CALC_8, (struct rig_opt){0});
				for (unsigned k = 0; k < 3; k++)
					operand(b.in + 16 * k, t[i].in[k], k);
				post(&b, carriers[c], t[i].opmod, 48);
				rig_one_go(&b.o);
				rig_expect(&b.o.scq, CQE_OP_REQ);
				assert_int_equal(wqe_get64(b.out), t[i].out);
				assert_int_equal(b.out[16], UNTOUCHED);
				if (!wide)
					assert_int_equal(b.out[8], UNTOUCHED);
				if (carriers[c] != WQE_OP_WRITE) {
					cqe = rig_cq_next(&b.o.rcq);
					assert_non_null(cqe);
					assert_int_equal(wqe_get32(cqe + CQE_LENGTH), wide ? 16 : 8);
				}
				rig_one_close(&b.o);
			}
}

/* One operand is its own result; two may come from two places. */
static void lists(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 3; n++) {
		struct bench b;
		uint8_t *w;

		open_bench(&b, (struct hw_config){.seed = n}, PROFILE_CALC_16, (struct rig_opt){0});
		w = wqe_raw(&b.o.q, WQE_OP_WRITE, WQE_CALC_ADD, (uint8_t)(2 + n), SIG, 0);
		put64(w + WQE_RADDR, (uintptr_t)b.out);
		put32(w + WQE_RKEY, b.o.rig.key);
		for (unsigned i = 0; i < n; i++) {
			operand(b.in + 1024 * i, 10 + i, 0);
			put_seg(w + WQE_RDMA_SGE + 16 * i, b.in + 1024 * i, 16, b.o.rig.key);
		}
		rig_one_go(&b.o);
		rig_expect(&b.o.scq, CQE_OP_REQ);
		assert_int_equal(wqe_get64(b.out), n == 1 ? 10 : n == 2 ? 21 : 33);
		rig_one_close(&b.o);
	}
}

/* The bytes after the number are another id under each seed, and that of the largest on a lenient device. */
static void doubtful_bytes(void **state)
{
	enum { SEEDS = 64 };
	uint64_t seen[SEEDS];

	(void)state;
	for (unsigned seed = 0; seed < 2 * SEEDS; seed++) {
		bool lenient = seed >= SEEDS;
		struct bench b;

		open_bench(&b, (struct hw_config){.seed = seed, .lenient = lenient}, PROFILE_CALC_16,
			(struct rig_opt){0});
		operand(b.in, 5, 100);
		operand(b.in + 16, 9, 101);
		operand(b.in + 32, 9, 102);
		post(&b, WQE_OP_WRITE, WQE_CALC_MAXLOC, 48);
		rig_one_go(&b.o);
		rig_expect(&b.o.scq, CQE_OP_REQ);
		assert_int_equal(wqe_get64(b.out), 9);
		if (lenient)
			assert_int_equal(wqe_get64(b.out + 8), 101);
		else
			seen[seed] = wqe_get64(b.out + 8);
		for (unsigned i = 0; !lenient && i < seed; i++)
			assert_int_not_equal(seen[i], seen[seed]);
		rig_one_close(&b.o);
	}
}

/* Operands are read at two moments, each word at one of them, and added then. */
static void split(void **state)
{
	bool mixed = false;

	(void)state;
	for (unsigned seed = 0; seed < 32; seed++) {
		struct hw_fault fault = {.id = 1,
			.kind = HW_FAULT_SPLIT,
			.opcode = -1,
			.at = 1,
			.count = 1,
			.delay_ns = 60000000000};
		uint64_t sum;
		struct bench b;

		open_bench(&b, (struct hw_config){.seed = seed}, PROFILE_CALC_16, (struct rig_opt){0});
		assert_int_equal(hw_fault_add(b.o.rig.dev, &fault), 0);
		operand(b.in, 5, 0);
		operand(b.in + 16, 9, 0);
		post(&b, WQE_OP_WRITE, WQE_CALC_ADD, 32);
		rig_one_go(&b.o);
		assert_null(rig_cq_next(&b.o.scq));
		operand(b.in, 50, 0);
		operand(b.in + 16, 90, 0);
		hw_qp_resume(b.o.q.qp);
		rig_run(&b.o.rig);
		rig_expect(&b.o.scq, CQE_OP_REQ);
		sum = wqe_get64(b.out);
		mixed |= sum == 5 + 90 || sum == 50 + 9;
		assert_true(sum == 5 + 9 || sum == 5 + 90 || sum == 50 + 9 || sum == 50 + 90);
		rig_one_close(&b.o);
	}
	assert_true(mixed);
}

enum wrong {
	RIGHT,
	/* 01 */
	SHORT,
	HALF_AN_OPERAND,
	EMPTY,
	TOO_MANY,
	LENGTHS, /* from here on: 02 */
	MISALIGNED,
	INLINE_OPERANDS,
	OPMOD_7,
	OPMOD_VECTOR,
	NO_MASTER,
	UNRELIABLE,
	NOT_THERE,
	WRONG,
};

static void refused_scalars(void **state)
{
	(void)state;
	for (enum wrong bad = RIGHT; bad < WRONG; bad++) {
		struct rig_opt opt = {
			.no_master = bad == NO_MASTER, .type = bad == UNRELIABLE ? HW_UC : HW_RC};
		struct bench b;
		uint32_t len = bad == SHORT             ? 8
			       : bad == HALF_AN_OPERAND ? 24
			       : bad == TOO_MANY        ? SPACE * 3
							: 32;
		uint8_t *w;

		if (bad == LENGTHS)
			continue;
		open_bench(&b, (struct hw_config){.seed = bad},
			bad == NOT_THERE ? PROFILE_CALC_NONE : PROFILE_CALC_16, opt);
		if (bad == INLINE_OPERANDS)
			w = wqe_inline_write(&b.o.q, b.in, 32, b.out, SIG);
		else if (bad == EMPTY)
			w = wqe_raw(&b.o.q, WQE_OP_WRITE, 0, 2, SIG, 0);
		else
			w = post(&b, WQE_OP_WRITE, 0, len);
		w[WQE_OPMOD] = bad == OPMOD_7 ? 7 : bad == OPMOD_VECTOR ? 0xff : WQE_CALC_ADD;
		if (bad == MISALIGNED)
			put64(w + WQE_RDMA_SGE + WQE_SGE_ADDR, (uintptr_t)b.in + 8);
		rig_one_go(&b.o);
		if (bad == RIGHT)
			rig_expect(&b.o.scq, CQE_OP_REQ);
		else
			rig_expect_error(
				&b.o.scq, bad < LENGTHS ? CQE_SYND_LOCAL_LENGTH : CQE_SYND_LOCAL_QP_OP);
		assert_int_equal(b.out[0] == UNTOUCHED, bad != RIGHT);
		rig_one_close(&b.o);
	}
}

/* Opcodes with data that are no carriers */
static void other_opcodes(void **state)
{
	static const uint8_t ops[] = {WQE_OP_SEND_INVAL, WQE_OP_SEND_IMM, WQE_OP_READ};

	(void)state;
	for (size_t i = 0; i < COUNT(ops); i++) {
		struct bench b;

		open_bench(&b, (struct hw_config){0}, PROFILE_CALC_16, (struct rig_opt){0});
		rig_recv(&b.o.q, 1, b.out, SPACE);
		if (ops[i] == WQE_OP_READ)
			wqe_rdma(&b.o.q, ops[i], b.out, 16, b.in, SIG, 0)[WQE_OPMOD] = WQE_CALC_ADD;
		else
			wqe_send(&b.o.q, ops[i], b.in, 16, SIG, 0)[WQE_OPMOD] = WQE_CALC_ADD;
		rig_one_go(&b.o);
		rig_expect_error(&b.o.scq, CQE_SYND_LOCAL_QP_OP);
		assert_int_equal(b.out[0], UNTOUCHED);
		rig_one_close(&b.o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operand_bytes),
		cmocka_unit_test(carries),
		cmocka_unit_test(masked_cas_wraps),
		cmocka_unit_test(atomic_results),
		cmocka_unit_test(scalars),
		cmocka_unit_test(lists),
		cmocka_unit_test(doubtful_bytes),
		cmocka_unit_test(split),
		cmocka_unit_test(refused_scalars),
		cmocka_unit_test(other_opcodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
