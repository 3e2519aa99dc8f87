/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/atomic.h"

/* opmod of masked atomics: 8 | log2(bytes) - 2 */
enum { OPMOD_4B = 0x08, OPMOD_8B = 0x09 };

struct operands {
	bool cas;
	uint64_t arg, compare;           /* swap or add */
	uint64_t arg_mask, compare_mask; /* FETCH_ADD: arg_mask has the top bit of each field */
};

unsigned hw_atomic_size(const struct hw_wqe *w, unsigned *data_ds)
{
	*data_ds = 3;
	switch (w->opcode) {
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
		return w->opmod == 0 ? 8 : 0;
	case WQE_OP_MASKED_CAS:
		if (w->opmod == OPMOD_8B)
			*data_ds = 4;
		break;
	case WQE_OP_MASKED_FETCH_ADD:
		break;
	default:
		return 0;
	}
	return w->opmod == OPMOD_8B ? 8 : w->opmod == OPMOD_4B ? 4 : 0;
}

static struct operands parse(const struct hw_wqe *w, unsigned size)
{
	const uint8_t *p = w->p + WQE_ATOMIC;
	struct operands o = {.cas = true, .arg_mask = UINT64_MAX, .compare_mask = UINT64_MAX};

	switch (w->opcode) {
	case WQE_OP_CAS:
		o.arg = wqe_get64(p);
		o.compare = wqe_get64(p + 8);
		break;
	case WQE_OP_FETCH_ADD:
		o.cas = false;
		o.arg = wqe_get64(p);
		o.arg_mask = 0;
		break;
	case WQE_OP_MASKED_CAS:
		o.arg = size == 8 ? wqe_get64(p) : wqe_get32(p);
		o.compare = size == 8 ? wqe_get64(p + 8) : wqe_get32(p + 4);
		o.arg_mask = size == 8 ? wqe_get64(p + 16) : wqe_get32(p + 8);
		o.compare_mask = size == 8 ? wqe_get64(p + 24) : wqe_get32(p + 12);
		break;
	default:
		o.cas = false;
		o.arg = size == 8 ? wqe_get64(p) : wqe_get32(p);
		o.arg_mask = size == 8 ? wqe_get64(p + 8) : wqe_get32(p + 4);
		break;
	}
	return o;
}

/* Adds field by field: no carry leaves a bit that @tops marks. */
static uint64_t add_fields(uint64_t a, uint64_t b, uint64_t tops)
{
	/* Without the top bits no carry can leave a field; their sum is the exclusive or with the carry into
	 * them */
	uint64_t low = (a & ~tops) + (b & ~tops);

	return low ^ ((a ^ b) & tops);
}

static uint64_t apply(const struct operands *o, uint64_t old)
{
	if (!o->cas)
		return add_fields(old, o->arg, o->arg_mask);
	if ((old ^ o->compare) & o->compare_mask)
		return old;
	return (old & ~o->arg_mask) | (o->arg & o->arg_mask);
}

static uint64_t on_word8(uint64_t *word, const struct operands *o)
{
	uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	if (!o->cas && !o->arg_mask)
		return __atomic_fetch_add(word, o->arg, __ATOMIC_SEQ_CST);
	while (!__atomic_compare_exchange_n(
		word, &old, apply(o, old), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return old;
}

static uint32_t on_word4(uint32_t *word, const struct operands *o)
{
	uint32_t old = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(
		word, &old, (uint32_t)apply(o, old), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return old;
}

/* As the old value arrives: in the order of the host by a mode for operands of 8 bytes alone (ifc
 * atomic_req_8B_endianness_mode) */
static void put_old(const struct hw_dev *dev, uint64_t word, unsigned size, uint8_t old[8])
{
	uint32_t be = htobe32((uint32_t)word);

	if (size == 4) {
		memcpy(old, &be, 4);
		return;
	}
	word = hw_fact(dev, PROFILE_HOST_ATOMICS) ? htole64(word) : htobe64(word);
	memcpy(old, &word, 8);
}

bool hw_atomic_exec(const struct hw_wqe *w, const struct hw_span *target, unsigned size, uint8_t old[8])
{
	struct operands o = parse(w, size);
	uint64_t word = 0;

	if (!target->host) {
		uint64_t value;

		if (!hw_gather(&word, target, 1, size))
			return false;
		value = apply(&o, word);
		if (!hw_scatter(target, 1, &value, size))
			return false;
	} else if (size == 8) {
		word = on_word8((uint64_t *)target->host, &o);
	} else {
		word = on_word4((uint32_t *)target->host, &o);
	}
	put_old(w->qp->dev, word, size, old);
	return true;
}
