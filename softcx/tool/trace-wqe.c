/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/trace-wqe.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"

#include "softcx/hw/hw.h"
#include "util/array.h"

#include <string.h>

static const struct {
	const char *name;
	enum trace_shape shape;
} opcodes[] = {
	[WQE_OP_NOP] = {"NOP", TRACE_NONE},
	[WQE_OP_SEND_INVAL] = {"SEND_INVAL", TRACE_SEND},
	[WQE_OP_WRITE] = {"WRITE", TRACE_WRITE},
	[WQE_OP_WRITE_IMM] = {"WRITE_IMM", TRACE_WRITE},
	[WQE_OP_SEND] = {"SEND", TRACE_SEND},
	[WQE_OP_SEND_IMM] = {"SEND_IMM", TRACE_SEND},
	[WQE_OP_WAIT] = {"WAIT", TRACE_WAIT},
	[WQE_OP_READ] = {"READ", TRACE_READ},
	[WQE_OP_CAS] = {"CAS", TRACE_ATOMIC},
	[WQE_OP_FETCH_ADD] = {"FAA", TRACE_ATOMIC},
	[WQE_OP_MASKED_CAS] = {"MASKED_CAS", TRACE_ATOMIC},
	[WQE_OP_MASKED_FETCH_ADD] = {"MASKED_FAA", TRACE_ATOMIC},
	[WQE_OP_RECV_EN] = {"RECV_EN", TRACE_ENABLE},
	[WQE_OP_SEND_EN] = {"SEND_EN", TRACE_ENABLE},
	[WQE_OP_LOCAL_INVAL] = {"LOCAL_INVAL", TRACE_NONE},
	[WQE_OP_UMR] = {"UMR", TRACE_NONE},
};

static void parse_pieces(struct trace_wqe *w, unsigned at)
{
	while (at + WQE_DS <= w->bytes && w->pieces < TRACE_PIECES) {
		const uint8_t *seg = w->wqe + at;
		struct trace_piece *p = &w->piece[w->pieces++];
		uint32_t n = wqe_get32(seg);

		p->is_inline = n & WQE_INLINE;
		p->len = n & ~WQE_INLINE;
		w->total += p->len;
		if (p->is_inline) {
			/* ends the list when it claims more than there is */
			if (p->len > w->bytes - at - 4)
				return;
			at += (p->len + 4 + WQE_DS - 1) / WQE_DS * WQE_DS;
		} else {
			p->lkey = wqe_get32(seg + 4);
			p->addr = wqe_get64(seg + 8);
			at += WQE_DS;
		}
	}
}

/* An initiator's WQE, without the address vector, is one of RC: hw/op.c. */
static void parse_target(struct trace_wqe *w)
{
	enum { ADDRESS = (WQE_UD_SGE_DS - 1) * WQE_DS };

	if (w->shape == TRACE_NONE || w->shape == TRACE_WAIT || w->shape == TRACE_ENABLE ||
		w->bytes < WQE_UD_SGE_DS * WQE_DS)
		return;
	w->dctn = wqe_get32(w->wqe + WQE_UD_DQPN) & 0xffffff;
	memcpy(w->rc, w->wqe, WQE_DS);
	memcpy(w->rc + WQE_DS, w->wqe + WQE_DS + ADDRESS, w->bytes - WQE_DS - ADDRESS);
	w->wqe = w->rc;
	w->bytes -= ADDRESS;
}

/* Operands as hw/op.c reads them. */
static void parse_atomic(struct trace_wqe *w, uint8_t opcode, uint8_t opmod)
{
	const uint8_t *p = w->wqe + WQE_ATOMIC;
	uint64_t v[4];
	bool wide;

	w->cas = opcode == WQE_OP_CAS || opcode == WQE_OP_MASKED_CAS;
	w->masked = opcode == WQE_OP_MASKED_CAS || opcode == WQE_OP_MASKED_FETCH_ADD;
	w->size = w->masked && opmod == 8 ? 4 : 8;
	wide = w->masked && w->cas && w->size == 8;
	for (unsigned i = 0; i < 4; i++)
		v[i] = w->size == 8 ? wqe_get64(p + 8 * i) : wqe_get32(p + 4 * i);
	w->arg = v[0];
	w->compare = v[1];
	w->arg_mask = w->cas ? v[2] : v[1];
	w->compare_mask = v[3];
	parse_pieces(w, WQE_ATOMIC + (wide ? 32 : 16));
}

static const char *calc_name(const struct softcx_trace *rec)
{
	static const char *const names[] = {
		[WQE_CALC_ADD] = "ADD",
		[WQE_CALC_ADD_F64] = "ADD of float64",
		[WQE_CALC_MAXLOC] = "MAX",
		[WQE_CALC_AND] = "AND",
		[WQE_CALC_OR] = "OR",
		[WQE_CALC_XOR] = "XOR",
	};

	if (rec->opcode != WQE_OP_SEND && rec->opcode != WQE_OP_WRITE && rec->opcode != WQE_OP_WRITE_IMM)
		return NULL;
	return rec->opmod < COUNT(names) ? names[rec->opmod] : NULL;
}

void trace_parse(struct trace_wqe *w, const struct softcx_trace *rec)
{
	*w = (struct trace_wqe){.wqe = rec->wqe, .bytes = rec->ds * WQE_DS};
	if (w->bytes > sizeof(rec->wqe)) {
		w->bytes = sizeof(rec->wqe);
		w->cut = true;
	}
	if (rec->opcode >= COUNT(opcodes) || !opcodes[rec->opcode].name)
		return;
	w->name = opcodes[rec->opcode].name;
	w->shape = opcodes[rec->opcode].shape;
	w->calc = calc_name(rec);
	if (rec->type == HW_DCI)
		parse_target(w);
	switch (w->shape) {
	case TRACE_NONE:
		break;
	case TRACE_SEND:
		w->datagram = rec->type == HW_UD && w->bytes >= WQE_UD_SGE_DS * WQE_DS;
		parse_pieces(w, w->datagram ? WQE_UD_SGE_DS * WQE_DS : WQE_DS);
		break;
	case TRACE_WRITE:
		parse_pieces(w, 2 * WQE_DS);
		break;
	case TRACE_READ:
		parse_pieces(w, 2 * WQE_DS);
		break;
	case TRACE_ATOMIC:
		parse_atomic(w, rec->opcode, rec->opmod);
		break;
	case TRACE_WAIT:
	case TRACE_ENABLE:
		break;
	}
	/* too short for what its opcode needs: its segments mean nothing */
	if (w->bytes < (w->shape == TRACE_NONE || w->shape == TRACE_SEND ? 1u : 2u) * WQE_DS ||
		(w->shape == TRACE_ATOMIC && w->bytes < 3 * WQE_DS)) {
		w->shape = TRACE_NONE;
		w->pieces = 0;
	}
}

const char *trace_opcode(uint8_t opcode)
{
	return opcode < COUNT(opcodes) ? opcodes[opcode].name : NULL;
}

uint64_t trace_bytes(const struct softcx_trace *rec)
{
	struct trace_wqe w;

	trace_parse(&w, rec);
	return w.total;
}

const char *trace_syndrome(uint8_t code)
{
	switch (code) {
	case CQE_SYND_LOCAL_LENGTH:
		return "local length error";
	case CQE_SYND_LOCAL_QP_OP:
		return "local QP operation error";
	case CQE_SYND_LOCAL_PROT:
		return "local protection error";
	case CQE_SYND_FLUSH:
		return "flushed";
	case CQE_SYND_MW_BIND:
		return "memory window bind error";
	case CQE_SYND_LOCAL_ACCESS:
		return "local access error";
	case CQE_SYND_REMOTE_INVAL:
		return "remote invalid request error";
	case CQE_SYND_REMOTE_ACCESS:
		return "remote access error";
	case CQE_SYND_REMOTE_OP:
		return "remote operation error";
	case CQE_SYND_RETRY:
		return "transport retries exhausted";
	case CQE_SYND_RNR_RETRY:
		return "RNR retries exhausted";
	default:
		return "unknown error";
	}
}
