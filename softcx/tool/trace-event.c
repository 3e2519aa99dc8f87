/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/trace-event.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "softcx/hw/hw.h"
#include "softcx/tool/trace-json.h"
#include "softcx/tool/trace-wqe.h"
#include "util/array.h"

#include <inttypes.h>

static const char *const kinds[] = {
	[HW_TRACE_WQE] = "wqe",
	[HW_TRACE_RECV] = "recv",
	[HW_TRACE_CQE] = "cqe",
	[HW_TRACE_BLOCKED] = "wait",
	[HW_TRACE_RELEASED] = "wait",
};

enum { KINDS = COUNT(kinds) };

const char *trace_event_kind(uint32_t kind)
{
	return kind < KINDS ? kinds[kind] : "unknown";
}

uint32_t trace_event_kinds(const char *list)
{
	uint32_t set = 0;

	if (strcmp(list, "all") == 0)
		return (1u << KINDS) - 1;
	for (;;) {
		size_t len = strcspn(list, ",");
		uint32_t found = 0;

		for (unsigned i = 0; i < KINDS; i++)
			if (strlen(kinds[i]) == len && memcmp(kinds[i], list, len) == 0)
				found |= 1u << i;
		if (!found)
			return 0;
		set |= found;
		if (!list[len])
			return set;
		list += len + 1;
	}
}

/* ---- RECVs ------------------------------------------------------------------------------ */

struct target {
	uint64_t addr;
	uint32_t lkey, len; /* that the message fills */
};

/* The next piece of the scatter list that a message of rec->number bytes fills; @at: position, 0 at first. */
static bool next_target(const struct softcx_trace *rec, unsigned *at, uint32_t *left, struct target *t)
{
	while (*left && *at < rec->ds && (*at + 1) * WQE_DS <= sizeof(rec->wqe)) {
		const uint8_t *seg = rec->wqe + (*at)++ * WQE_DS;
		uint32_t room = wqe_get32(seg) & ~WQE_INLINE;

		if (!room && wqe_get32(seg + 4) == WQE_LKEY_NONE)
			return false;
		if (!room)
			continue;
		t->len = room < *left ? room : *left;
		t->lkey = wqe_get32(seg + 4);
		t->addr = wqe_get64(seg + 8);
		*left -= t->len;
		return true;
	}
	return false;
}

static void recv_text(FILE *out, const struct softcx_trace *rec)
{
	uint32_t left = rec->number;
	const char *between = " to ";
	unsigned at = 0;
	struct target t;

	fprintf(out, "QP 0x%06x RECV [%u] takes %u bytes", rec->qpn, rec->index, rec->number);
	for (; next_target(rec, &at, &left, &t); between = " + ")
		fprintf(out, "%s0x%" PRIx64 " lkey 0x%x (%u)", between, t.addr, t.lkey, t.len);
	if (rec->syndrome)
		fprintf(out, " -> %s (syndrome 0x%02x)\n", trace_syndrome(rec->syndrome), rec->syndrome);
	else
		fprintf(out, " -> done\n");
}

static void recv_json(struct json_object *o, const struct softcx_trace *rec)
{
	struct json_object *list = json_object_new_array();
	uint32_t left = rec->number;
	unsigned at = 0;
	struct target t;

	trace_add_number(o, "length", rec->number);
	trace_add_number(o, "cqn", rec->cqn);
	while (next_target(rec, &at, &left, &t)) {
		struct json_object *seg = json_object_new_object();

		trace_add_number(seg, "length", t.len);
		trace_add_hex(seg, "address", t.addr);
		trace_add_hex(seg, "lkey", t.lkey);
		json_object_array_add(list, seg);
	}
	json_object_object_add(o, "local", list);
	trace_add_number(o, "syndrome", rec->syndrome);
	trace_add_text(o, "outcome", rec->syndrome ? trace_syndrome(rec->syndrome) : "done");
}

/* ---- CQEs ------------------------------------------------------------------------------- */

static unsigned cqe_opcode(const struct softcx_trace *rec)
{
	return rec->wqe[63] >> 4;
}

static bool is_receive(unsigned opcode)
{
	return (opcode >= CQE_OP_RESP_WRITE_IMM && opcode <= CQE_OP_RESP_SEND_INVAL) ||
	       opcode == CQE_OP_RESP_ERR;
}

static bool has_immediate(unsigned opcode)
{
	return opcode == CQE_OP_RESP_WRITE_IMM || opcode == CQE_OP_RESP_SEND_IMM;
}

/* The request that completed. */
static const char *cqe_of(const struct softcx_trace *rec)
{
	const char *name;

	switch (cqe_opcode(rec)) {
	case CQE_OP_RESP_WRITE_IMM:
		return "WRITE_IMM received";
	case CQE_OP_RESP_SEND:
		return "SEND received";
	case CQE_OP_RESP_SEND_IMM:
		return "SEND_IMM received";
	case CQE_OP_RESP_SEND_INVAL:
		return "SEND_INVAL received";
	case CQE_OP_RESIZE:
		return "resized";
	case CQE_OP_RESP_ERR:
		return "RECV";
	default:
		name = trace_opcode(rec->opcode);
		return name ? name : "unknown opcode";
	}
}

static bool in_cqe(const struct softcx_trace *rec)
{
	return rec->wqe[63] & (CQE_INLINE_32 | CQE_INLINE_64);
}

static void cqe_text(FILE *out, const struct softcx_trace *rec)
{
	unsigned opcode = cqe_opcode(rec);

	fprintf(out, "CQ %u CQE %u", rec->cqn, rec->number);
	if (opcode == CQE_OP_RESIZE) {
		fprintf(out, ": goes on in another ring\n");
		return;
	}
	fprintf(out, " of QP 0x%06x [%u]: %s", rec->qpn, rec->index, cqe_of(rec));
	if (rec->syndrome) {
		fprintf(out, " -> %s (syndrome 0x%02x, vendor 0x%02x)\n", trace_syndrome(rec->syndrome),
			rec->syndrome, rec->wqe[54]);
		return;
	}
	if (is_receive(opcode))
		fprintf(out, ", %u bytes", wqe_get32(rec->wqe + CQE_LENGTH));
	if (has_immediate(opcode))
		fprintf(out, ", immediate 0x%x", wqe_get32(rec->wqe + CQE_IMM));
	else if (opcode == CQE_OP_RESP_SEND_INVAL)
		fprintf(out, ", invalidated key 0x%x", wqe_get32(rec->wqe + CQE_IMM));
	if (rec->wqe[63] & CQE_SOLICITED)
		fprintf(out, ", solicited");
	if (in_cqe(rec))
		fprintf(out, ", the data are in the CQE");
	fprintf(out, "\n");
}

static void cqe_json(struct json_object *o, const struct softcx_trace *rec)
{
	unsigned opcode = cqe_opcode(rec);

	trace_add_number(o, "cqn", rec->cqn);
	trace_add_number(o, "number", rec->number);
	trace_add_number(o, "cqe_opcode", opcode);
	trace_add_text(o, "name", cqe_of(rec));
	if (is_receive(opcode))
		trace_add_number(o, "length", wqe_get32(rec->wqe + CQE_LENGTH));
	if (has_immediate(opcode))
		trace_add_hex(o, "immediate", wqe_get32(rec->wqe + CQE_IMM));
	else if (opcode == CQE_OP_RESP_SEND_INVAL)
		trace_add_hex(o, "invalidates", wqe_get32(rec->wqe + CQE_IMM));
	json_object_object_add(o, "solicited", json_object_new_boolean(rec->wqe[63] & CQE_SOLICITED));
	json_object_object_add(o, "data_in_cqe", json_object_new_boolean(in_cqe(rec)));
	trace_add_number(o, "syndrome", rec->syndrome);
	if (rec->syndrome)
		trace_add_number(o, "vendor_syndrome", rec->wqe[54]);
	trace_add_text(o, "outcome", rec->syndrome ? trace_syndrome(rec->syndrome) : "done");
}

/* ---- all -------------------------------------------------------------------------------- */

void trace_event_text(FILE *out, const struct softcx_trace *rec)
{
	switch (rec->kind) {
	case HW_TRACE_RECV:
		recv_text(out, rec);
		break;
	case HW_TRACE_CQE:
		cqe_text(out, rec);
		break;
	case HW_TRACE_BLOCKED:
	case HW_TRACE_RELEASED:
		fprintf(out, "QP 0x%06x [%u] WAIT for CQ %u to reach %u: %s\n", rec->qpn, rec->index,
			rec->cqn, rec->number, rec->kind == HW_TRACE_BLOCKED ? "blocked" : "released");
		break;
	default:
		fprintf(out, "QP 0x%06x [%u] record of unknown kind %u\n", rec->qpn, rec->index, rec->kind);
		break;
	}
}

void trace_event_json(struct json_object *o, const struct softcx_trace *rec)
{
	switch (rec->kind) {
	case HW_TRACE_RECV:
		recv_json(o, rec);
		break;
	case HW_TRACE_CQE:
		cqe_json(o, rec);
		break;
	case HW_TRACE_BLOCKED:
	case HW_TRACE_RELEASED:
		trace_add_number(o, "cqn", rec->cqn);
		trace_add_number(o, "until", rec->number);
		trace_add_text(o, "state", rec->kind == HW_TRACE_BLOCKED ? "blocked" : "released");
		break;
	default:
		break;
	}
}
