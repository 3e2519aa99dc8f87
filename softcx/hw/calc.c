/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/calc.h"

#include "softcx/hw/copy.h"
#include "softcx/hw/dev.h"
#include "util/array.h"

#include <string.h>

enum { OPERANDS = HW_CALC_VECTORS * HW_CALC_RESULT };

/* What the vectors of a WQE are; scalar operands are vectors of one element and an id. */
struct form {
	enum wqe_vcalc_op op;
	enum wqe_vcalc_type type;
	bool little_endian;
	uint32_t n;     /* vectors, */
	uint32_t chunk; /* interleaved in pieces of so many bytes */
};

/* ---- arithmetic ------------------------------------------------------------------------- */

static double f64(uint64_t raw)
{
	double v;

	memcpy(&v, &raw, sizeof(v));
	return v;
}

static float f32(uint64_t raw)
{
	uint32_t low = (uint32_t)raw;
	float v;

	memcpy(&v, &low, sizeof(v));
	return v;
}

static bool is_less(enum wqe_vcalc_type type, uint64_t a, uint64_t b)
{
	switch (type) {
	case WQE_VCALC_S32:
		return (int32_t)a < (int32_t)b;
	case WQE_VCALC_S64:
		return (int64_t)a < (int64_t)b;
	case WQE_VCALC_F32:
		return f32(a) < f32(b);
	case WQE_VCALC_F64:
		return f64(a) < f64(b);
	default:
		return a < b;
	}
}

static uint64_t sum(enum wqe_vcalc_type type, uint64_t a, uint64_t b)
{
	uint64_t raw = 0;

	if (type == WQE_VCALC_F32) {
		float v = f32(a) + f32(b);

		memcpy(&raw, &v, sizeof(v)); /* low half: the host is little-endian (copy.c) */
	} else if (type == WQE_VCALC_F64) {
		double v = f64(a) + f64(b);

		memcpy(&raw, &v, sizeof(v));
	} else {
		raw = a + b;
	}
	return raw;
}

static uint64_t combine(const struct form *f, uint64_t a, uint64_t b)
{
	switch (f->op) {
	case WQE_VCALC_ADD:
		return sum(f->type, a, b);
	case WQE_VCALC_MAXLOC:
		return is_less(f->type, a, b) ? b : a;
	case WQE_VCALC_MIN:
		return is_less(f->type, b, a) ? b : a;
	case WQE_VCALC_AND:
		return a & b;
	case WQE_VCALC_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

static unsigned size_of(enum wqe_vcalc_type type)
{
	return type <= WQE_VCALC_F32 ? 4 : 8;
}

static uint64_t load(const struct form *f, const uint8_t *p)
{
	uint64_t v = 0;

	if (!f->little_endian)
		return wqe_get(p, size_of(f->type));
	memcpy(&v, p, size_of(f->type));
	return v;
}

static void store(const struct form *f, uint8_t *p, uint64_t v)
{
	if (f->little_endian)
		memcpy(p, &v, size_of(f->type));
	else if (size_of(f->type) == 4)
		wqe_put32(p, (uint32_t)v);
	else
		wqe_put64(p, v);
}

/* ---- scalar ----------------------------------------------------------------------------- */

/* The numbers that the opmod has for it */
static const struct form scalars[] = {
	[WQE_CALC_ADD] = {.op = WQE_VCALC_ADD, .type = WQE_VCALC_U64},
	[WQE_CALC_ADD_F64] = {.op = WQE_VCALC_ADD, .type = WQE_VCALC_F64},
	[WQE_CALC_MAXLOC] = {.op = WQE_VCALC_MAXLOC, .type = WQE_VCALC_U64},
	[WQE_CALC_AND] = {.op = WQE_VCALC_AND, .type = WQE_VCALC_U64},
	[WQE_CALC_OR] = {.op = WQE_VCALC_OR, .type = WQE_VCALC_U64},
	[WQE_CALC_XOR] = {.op = WQE_VCALC_XOR, .type = WQE_VCALC_U64},
};

static int check_scalar(struct hw_wqe *w, unsigned ds, const struct hw_sgl *sgl)
{
	if (!sgl->len || sgl->len > OPERANDS)
		return HW_FAULT(CQE_SYND_LOCAL_LENGTH, HW_VENDOR_LENGTH);
	if (sgl->gathered != sgl->len)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	for (; ds < w->ds; ds++) {
		const uint8_t *seg = w->p + ds * WQE_DS;

		if (wqe_get32(seg) % WQE_CALC_OPERAND)
			return HW_FAULT(CQE_SYND_LOCAL_LENGTH, HW_VENDOR_LENGTH);
		if (wqe_get64(seg + 8) % WQE_CALC_OPERAND)
			return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	}
	w->bytes = hw_fact(w->qp->dev, PROFILE_CALC) == PROFILE_CALC_8 ? 8 : WQE_CALC_OPERAND;
	return 0;
}

static void scalar(const struct hw_wqe *w, const uint8_t *operands, uint32_t len, uint8_t *result)
{
	const struct form *f = &scalars[w->opmod];
	struct hw_dev *dev = w->qp->dev;
	uint64_t v = load(f, operands);
	const uint8_t *id = operands + 8;

	for (uint32_t at = WQE_CALC_OPERAND; at < len; at += WQE_CALC_OPERAND) {
		uint64_t next = load(f, operands + at);

		if (f->op == WQE_VCALC_MAXLOC && is_less(f->type, v, next))
			id = operands + at + 8;
		v = combine(f, v, next);
	}
	store(f, result, v);
	memcpy(result + 8, id, 8);
	for (unsigned i = 8; i < WQE_CALC_OPERAND && !dev->cfg.lenient; i++)
		result[i] = (uint8_t)hw_random(dev);
}

/* ---- vector ----------------------------------------------------------------------------- */

/* False: no such operation, or one that the device has not. */
static bool parse_vector(const uint8_t *seg, struct form *f)
{
	static const uint8_t zeros[WQE_VCALC_BYTES];
	uint8_t options = seg[WQE_VCALC_OPTIONS];

	*f = (struct form){
		.op = seg[WQE_VCALC_OPS],
		.type = seg[WQE_VCALC_TYPE],
		.little_endian = options & WQE_VCALC_LITTLE_ENDIAN,
		.n = wqe_get16(seg + WQE_VCALC_COUNT),
		.chunk = 64u << (options & WQE_VCALC_CHUNK),
	};
	return f->op >= WQE_VCALC_ADD && f->op <= WQE_VCALC_MIN && f->type <= WQE_VCALC_F64 &&
	       f->type != WQE_VCALC_F32 + 1 && !(options & ~(WQE_VCALC_LITTLE_ENDIAN | WQE_VCALC_CHUNK)) &&
	       f->n && f->n <= HW_CALC_VECTORS && f->chunk <= HW_CALC_RESULT &&
	       memcmp(seg + 1, zeros, WQE_VCALC_TYPE - 1) == 0 &&
	       memcmp(seg + WQE_VCALC_COUNT + 2, zeros, WQE_VCALC_BYTES - WQE_VCALC_COUNT - 2) == 0;
}

static int check_vector(struct hw_wqe *w, unsigned ds, const struct hw_sgl *sgl)
{
	const unsigned data = ds + WQE_VCALC_BYTES / WQE_DS;
	struct form f;

	if (w->ds != data + 1 || sgl->gathered != sgl->len || !parse_vector(w->p + ds * WQE_DS, &f) ||
		wqe_get64(w->p + data * WQE_DS + 8) % 64)
		return HW_FAULT(CQE_SYND_LOCAL_QP_OP, HW_VENDOR_WQE);
	if (!sgl->len || sgl->len % (f.n * f.chunk) || sgl->len / f.n > HW_CALC_RESULT)
		return HW_FAULT(CQE_SYND_LOCAL_LENGTH, HW_VENDOR_LENGTH);
	w->bytes = sgl->len / f.n;
	return 0;
}

static void vector(const struct hw_wqe *w, const uint8_t *operands, uint8_t *result)
{
	unsigned ds = w->ds - 1u - WQE_VCALC_BYTES / WQE_DS;
	struct form f;

	parse_vector(w->p + ds * WQE_DS, &f);
	for (uint32_t at = 0; at < w->bytes; at += size_of(f.type)) {
		const uint8_t *p = operands + at / f.chunk * f.n * f.chunk + at % f.chunk;
		uint64_t v = load(&f, p);

		for (uint32_t i = 1; i < f.n; i++)
			v = combine(&f, v, load(&f, p + i * f.chunk));
		store(&f, result + at, v);
	}
}

/* ---- both ------------------------------------------------------------------------------- */

/* MLNX_OFED has a vector for SEND, pcx for WRITE_IMM, and nobody for WRITE. */
bool hw_calc_is_allowed(const struct hw_wqe *w)
{
	const struct hw_dev *dev = w->qp->dev;

	if (w->qp->type != HW_RC || !(w->qp->cd_master || dev->cfg.lenient))
		return false;
	if (w->opmod == WQE_CALC_VECTOR)
		return hw_fact(dev, PROFILE_VECTOR_CALC) &&
		       (w->opcode == WQE_OP_SEND || w->opcode == WQE_OP_WRITE_IMM);
	return hw_fact(dev, PROFILE_CALC) != PROFILE_CALC_NONE && w->opmod < COUNT(scalars) &&
	       (w->opcode == WQE_OP_SEND || w->opcode == WQE_OP_WRITE || w->opcode == WQE_OP_WRITE_IMM);
}

unsigned hw_calc_data_ds(const struct hw_wqe *w, unsigned ds)
{
	return w->opmod == WQE_CALC_VECTOR ? ds + WQE_VCALC_BYTES / WQE_DS : ds;
}

int hw_calc_check(struct hw_wqe *w, unsigned ds, const struct hw_sgl *sgl)
{
	return w->opmod == WQE_CALC_VECTOR ? check_vector(w, ds, sgl) : check_scalar(w, ds, sgl);
}

int hw_calc_exec(const struct hw_wqe *w, struct hw_sgl *sgl, uint8_t result[static HW_CALC_RESULT])
{
	uint8_t operands[OPERANDS];

	if (!hw_gather(operands, sgl->span, sgl->n, sgl->len))
		return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
	if (w->opmod == WQE_CALC_VECTOR)
		vector(w, operands, result);
	else
		scalar(w, operands, sgl->len, result);
	sgl->span[0] = (struct hw_span){.host = result, .len = w->bytes};
	sgl->n = 1;
	sgl->len = w->bytes;
	return 0;
}
