/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operands of atomics, and where their old values go.
 */
#include "softcx/hw/test-rig.h"

#include <string.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operand_bytes),
		cmocka_unit_test(carries),
		cmocka_unit_test(masked_cas_wraps),
		cmocka_unit_test(atomic_results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
