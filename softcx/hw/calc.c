/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/calc.h"

#include "softcx/hw/copy.h"
#include "softcx/hw/dev.h"

#include <string.h>

enum { OPERANDS = 32768 /* bytes at most: assumed */ };

static uint64_t sum_of_doubles(uint64_t a, uint64_t b)
{
	double x, y;
	uint64_t raw;

	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	x += y;
	memcpy(&raw, &x, sizeof(raw));
	return raw;
}

static uint64_t combine(enum wqe_calc op, uint64_t a, uint64_t b)
{
	switch (op) {
	case WQE_CALC_ADD:
		return a + b;
	case WQE_CALC_ADD_F64:
		return sum_of_doubles(a, b);
	case WQE_CALC_MAXLOC:
		return a < b ? b : a;
	case WQE_CALC_AND:
		return a & b;
	case WQE_CALC_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

bool hw_calc_is_allowed(const struct hw_wqe *w)
{
	const struct hw_dev *dev = w->qp->dev;

	return w->qp->type == HW_RC && (w->qp->cd_master || dev->cfg.lenient) &&
	       hw_fact(dev, PROFILE_CALC) != PROFILE_CALC_NONE && w->opmod <= WQE_CALC_XOR &&
	       (w->opcode == WQE_OP_SEND || w->opcode == WQE_OP_WRITE || w->opcode == WQE_OP_WRITE_IMM);
}

int hw_calc_check(struct hw_wqe *w, unsigned ds, const struct hw_sgl *sgl)
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

int hw_calc_exec(const struct hw_wqe *w, struct hw_sgl *sgl, uint8_t result[static WQE_CALC_OPERAND])
{
	struct hw_dev *dev = w->qp->dev;
	uint8_t operands[OPERANDS];
	const uint8_t *id = operands + 8;
	uint64_t v;

	if (!hw_gather(operands, sgl->span, sgl->n, sgl->len))
		return HW_FAULT(CQE_SYND_LOCAL_PROT, HW_VENDOR_PROT);
	v = wqe_get64(operands);
	for (uint32_t at = WQE_CALC_OPERAND; at < sgl->len; at += WQE_CALC_OPERAND) {
		uint64_t next = wqe_get64(operands + at);

		if (w->opmod == WQE_CALC_MAXLOC && v < next)
			id = operands + at + 8;
		v = combine(w->opmod, v, next);
	}
	wqe_put64(result, v);
	memcpy(result + 8, id, 8);
	for (unsigned i = 8; i < WQE_CALC_OPERAND && !dev->cfg.lenient; i++)
		result[i] = (uint8_t)hw_random(dev);
	sgl->span[0] = (struct hw_span){.host = result, .len = w->bytes};
	sgl->n = 1;
	sgl->len = w->bytes;
	return 0;
}
