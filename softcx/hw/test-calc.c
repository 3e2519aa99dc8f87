/* SPDX-License-Identifier: BSD-2-Clause */
/* CALC: results of scalars and vectors, what is sent besides, and what is refused. */
#include "softcx/hw/fault.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/test-rig.h"
#include "util/array.h"

#include <string.h>

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

/* ---- scalars ---------------------------------------------------------------------------- */

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
		w[WQE_OPMOD] = bad == OPMOD_7 ? 7 : bad == OPMOD_VECTOR ? WQE_CALC_VECTOR : WQE_CALC_ADD;
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

/* ---- vectors ---------------------------------------------------------------------------- */

/* A SEND of @len bytes at b->in as @n vectors; the calc segment, to be changed. */
static uint8_t *post_vectors(
	struct bench *b, uint8_t op, uint8_t type, uint8_t options, uint16_t n, uint32_t len)
{
	uint8_t *w;

	rig_recv(&b->o.q, 1, b->out, SPACE);
	w = wqe_raw(&b->o.q, WQE_OP_SEND, WQE_CALC_VECTOR, 4, SIG, 0);
	memset(w + 16, 0, WQE_VCALC_BYTES);
	w[16 + WQE_VCALC_OPS] = op;
	w[16 + WQE_VCALC_TYPE] = type;
	w[16 + WQE_VCALC_OPTIONS] = options;
	wqe_put16(w + 16 + WQE_VCALC_COUNT, n);
	put_seg(w + 48, b->in, len, b->o.rig.key);
	return w;
}

static void put_element(uint8_t *p, bool wide, bool little, uint64_t v)
{
	if (little)
		memcpy(p, &v, wide ? 8 : 4);
	else if (wide)
		put64(p, v);
	else
		put32(p, (uint32_t)v);
}

/* Two vectors of one chunk: every operation and type, in either byte order. */
static void vectors(void **state)
{
	static const struct {
		uint8_t op, type;
		uint64_t a, b, out;
	} t[] = {
		{WQE_VCALC_ADD, WQE_VCALC_S32, 0xffffffff, 3, 2},
		{WQE_VCALC_ADD, WQE_VCALC_F32, 0x3fc00000, 0x40100000, 0x40700000}, /* 1.5, 2.25, 3.75 */
		{WQE_VCALC_ADD, WQE_VCALC_U64, UINT64_MAX, 3, 2},
		{WQE_VCALC_ADD, WQE_VCALC_F64, 0x3ff8000000000000, 0xc000000000000000,
			0xbfe0000000000000}, /* 1.5, -2, -0.5 */
		{WQE_VCALC_MAXLOC, WQE_VCALC_S32, 0x80000000, 1, 1},
		{WQE_VCALC_MAXLOC, WQE_VCALC_U32, 0x80000000, 1, 0x80000000},
		{WQE_VCALC_MAXLOC, WQE_VCALC_S64, 0x8000000000000000, 1, 1},
		{WQE_VCALC_MAXLOC, WQE_VCALC_U64, 0x8000000000000000, 1, 0x8000000000000000},
		{WQE_VCALC_MAXLOC, WQE_VCALC_F32, 0xc0400000, 0xc0000000, 0xc0000000}, /* -3, -2, -2 */
		{WQE_VCALC_MIN, WQE_VCALC_S32, 0x80000000, 1, 0x80000000},
		{WQE_VCALC_MIN, WQE_VCALC_U32, 0x80000000, 1, 1},
		{WQE_VCALC_MIN, WQE_VCALC_S64, 0x8000000000000000, 1, 0x8000000000000000},
		{WQE_VCALC_MIN, WQE_VCALC_U64, 0x8000000000000000, 1, 1},
		{WQE_VCALC_MIN, WQE_VCALC_F64, 0xc008000000000000, 0xc000000000000000,
			0xc008000000000000}, /* -3, -2, -3 */
		{WQE_VCALC_AND, WQE_VCALC_U64, 0xf0f0f0f0f0f0f0f0, 0xff, 0xf0},
		{WQE_VCALC_OR, WQE_VCALC_U32, 0xf0000000, 0xff, 0xf00000ff},
		{WQE_VCALC_XOR, WQE_VCALC_U64, 0xf0f0f0f0f0f0f0f0, 0xff, 0xf0f0f0f0f0f0f00f},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(t); i++)
		for (unsigned little = 0; little < 2; little++) {
			bool wide = t[i].type > WQE_VCALC_F32;
			struct bench b;
			uint8_t want[8];

			open_bench(&b, (struct hw_config){.seed = i}, PROFILE_CALC_16, (struct rig_opt){0});
			put_element(b.in + 56, wide, little, t[i].a);
			put_element(b.in + 64 + 56, wide, little, t[i].b);
			post_vectors(&b, t[i].op, t[i].type, little ? WQE_VCALC_LITTLE_ENDIAN : 0, 2, 128);
			rig_one_go(&b.o);
			rig_expect(&b.o.scq, CQE_OP_REQ);
			put_element(want, wide, little, t[i].out);
			assert_memory_equal(b.out + 56, want, wide ? 8 : 4);
			assert_int_equal(b.out[0], 0);
			assert_int_equal(b.out[64], UNTOUCHED);
			rig_one_close(&b.o);
		}
}

/* Three vectors of four chunks of 128 bytes: chunk c of vector v is the (3 c + v)-th; by WRITE_IMM too. */
static void chunks(void **state)
{
	enum { N = 3, CHUNK = 128, CHUNKS = 4 };

	(void)state;
	for (unsigned imm = 0; imm < 2; imm++) {
		struct bench b;
		uint8_t *w;

		open_bench(&b, (struct hw_config){0}, PROFILE_CALC_NONE, (struct rig_opt){0});
		for (unsigned at = 0; at < N * CHUNK * CHUNKS; at += 8)
			put64(b.in + at,
				(at / CHUNK % N == 1 ? 1000 : 0) + at / CHUNK / N * 100 + at % CHUNK);
		if (imm) {
			rig_recv(&b.o.q, 1, b.in, 8);
			w = wqe_raw(&b.o.q, WQE_OP_WRITE_IMM, WQE_CALC_VECTOR, 5, SIG, 0);
			put64(w + WQE_RADDR, (uintptr_t)b.out);
			put32(w + WQE_RKEY, b.o.rig.key);
			memset(w + 32, 0, WQE_VCALC_BYTES);
			w[32 + WQE_VCALC_OPS] = WQE_VCALC_MAXLOC;
			w[32 + WQE_VCALC_TYPE] = WQE_VCALC_U64;
			w[32 + WQE_VCALC_OPTIONS] = 1;
			w[32 + WQE_VCALC_COUNT + 1] = N;
			put_seg(w + 64, b.in, N * CHUNK * CHUNKS, b.o.rig.key);
		} else {
			post_vectors(&b, WQE_VCALC_MAXLOC, WQE_VCALC_U64, 1, N, N * CHUNK * CHUNKS);
		}
		rig_one_go(&b.o);
		rig_expect(&b.o.scq, CQE_OP_REQ);
		for (unsigned at = 0; at < CHUNK * CHUNKS; at += 8)
			assert_int_equal(wqe_get64(b.out + at), 1000 + at / CHUNK * 100 + at % CHUNK);
		assert_int_equal(b.out[CHUNK * CHUNKS], UNTOUCHED);
		rig_one_close(&b.o);
	}
}

/* A byte of the calc segment that makes it wrong, or one of another segment. */
static void refused_vectors(void **state)
{
	static const struct {
		unsigned at; /* in the WQE */
		uint8_t byte, syndrome;
	} t[] = {
		{16 + WQE_VCALC_OPS, WQE_VCALC_NOP, CQE_SYND_LOCAL_QP_OP},
		{16 + WQE_VCALC_OPS, WQE_VCALC_MIN + 1, CQE_SYND_LOCAL_QP_OP},
		{16 + 1, WQE_VCALC_ADD, CQE_SYND_LOCAL_QP_OP}, /* a second output */
		{16 + 4, 1, CQE_SYND_LOCAL_QP_OP}, {16 + 11, 1, CQE_SYND_LOCAL_QP_OP},
		{16 + WQE_VCALC_TYPE, 3, CQE_SYND_LOCAL_QP_OP},
		{16 + WQE_VCALC_TYPE, 7, CQE_SYND_LOCAL_QP_OP},
		{16 + WQE_VCALC_OPTIONS, 0x80, CQE_SYND_LOCAL_QP_OP}, /* a matrix */
		{16 + WQE_VCALC_OPTIONS, 0x10, CQE_SYND_LOCAL_QP_OP},
		{16 + WQE_VCALC_OPTIONS, 7, CQE_SYND_LOCAL_QP_OP},  /* a larger chunk than there is, */
		{16 + WQE_VCALC_OPTIONS, 1, CQE_SYND_LOCAL_LENGTH}, /* or than is sent */
		{16 + WQE_VCALC_COUNT, 1, CQE_SYND_LOCAL_QP_OP},
		{16 + WQE_VCALC_COUNT + 1, 0, CQE_SYND_LOCAL_QP_OP},
		{16 + WQE_VCALC_COUNT + 1, HW_CALC_VECTORS + 1, CQE_SYND_LOCAL_QP_OP},
		{16 + WQE_VCALC_COUNT + 1, 3, CQE_SYND_LOCAL_LENGTH}, {16 + 16, 1, CQE_SYND_LOCAL_QP_OP},
		{16 + 23, 1, CQE_SYND_LOCAL_QP_OP}, /* the matrix's key */
		{48 + 3, 64, CQE_SYND_LOCAL_LENGTH},
		{48 + 2, 0x21, CQE_SYND_LOCAL_LENGTH}, /* a result of 4288 bytes */
		{48 + WQE_SGE_ADDR + 7, 16, CQE_SYND_LOCAL_QP_OP},
		{WQE_OPCODE, WQE_OP_SEND_IMM, CQE_SYND_LOCAL_QP_OP},
		{WQE_DSCOUNT, 3, CQE_SYND_LOCAL_QP_OP}, /* no data */
	};

	(void)state;
	for (size_t i = 0; i <= COUNT(t); i++) {
		struct bench b;
		uint8_t *w;

		open_bench(&b, (struct hw_config){0}, PROFILE_CALC_16, (struct rig_opt){0});
		w = post_vectors(&b, WQE_VCALC_MIN, WQE_VCALC_U64, 0, 2, 128);
		if (i < COUNT(t))
			w[t[i].at] = t[i].byte;
		rig_one_go(&b.o);
		if (i == COUNT(t))
			rig_expect(&b.o.scq, CQE_OP_REQ);
		else if (t[i].syndrome != rig_cqe_synd(rig_cq_next(&b.o.scq)))
			fail_msg("byte %u, %#x: another syndrome", t[i].at, t[i].byte);
		assert_int_equal(b.out[0] == UNTOUCHED, i < COUNT(t));
		rig_one_close(&b.o);
	}
}

/* A device without vectors, a queue without cd_master, and WRITE, for which nobody has used them. */
static void no_vectors(void **state)
{
	struct profile without = *profile_default();

	(void)state;
	without.value[PROFILE_VECTOR_CALC] = 0;
	for (unsigned how = 0; how < 3; how++) {
		struct bench b;

		open_bench(&b, (struct hw_config){.profile = how == 0 ? &without : NULL}, PROFILE_CALC_16,
			(struct rig_opt){.no_master = how == 1});
		if (how < 2) {
			post_vectors(&b, WQE_VCALC_MIN, WQE_VCALC_U64, 0, 2, 128);
		} else {
			uint8_t *w = wqe_raw(&b.o.q, WQE_OP_WRITE, WQE_CALC_VECTOR, 5, SIG, 0);

			memset(w + 32, 0, WQE_VCALC_BYTES);
			put64(w + WQE_RADDR, (uintptr_t)b.out);
			put32(w + WQE_RKEY, b.o.rig.key);
			w[32 + WQE_VCALC_OPS] = WQE_VCALC_MIN;
			w[32 + WQE_VCALC_COUNT + 1] = 2;
			put_seg(w + 64, b.in, 128, b.o.rig.key);
		}
		rig_one_go(&b.o);
		rig_expect_error(&b.o.scq, CQE_SYND_LOCAL_QP_OP);
		rig_one_close(&b.o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalars),
		cmocka_unit_test(lists),
		cmocka_unit_test(doubtful_bytes),
		cmocka_unit_test(split),
		cmocka_unit_test(refused_scalars),
		cmocka_unit_test(other_opcodes),
		cmocka_unit_test(vectors),
		cmocka_unit_test(chunks),
		cmocka_unit_test(refused_vectors),
		cmocka_unit_test(no_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
