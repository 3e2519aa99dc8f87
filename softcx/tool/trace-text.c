/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/trace-text.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "softcx/hw/hw.h"
#include "util/array.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

/*
 * Members of the JSON object of a trace record.
 */

static void trace_add_number(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_uint64(value));
}

/* A string "0x...". */
static void trace_add_hex(struct json_object *o, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	json_object_object_add(o, name, json_object_new_string(text));
}

static void trace_add_text(struct json_object *o, const char *name, const char *value)
{
	json_object_object_add(o, name, json_object_new_string(value));
}

enum { TRACE_PIECES = 16 }; /* data segments of what a record holds */

struct trace_piece {
	bool is_inline;
	uint32_t len, lkey;
	uint64_t addr;
};

enum trace_shape { TRACE_NONE, TRACE_SEND, TRACE_WRITE, TRACE_READ, TRACE_ATOMIC, TRACE_WAIT, TRACE_ENABLE };

struct trace_wqe {
	const char *name; /* NULL: no such opcode */
	enum trace_shape shape;
	bool cas, masked;
	const char *calc; /* the operation of a CALC, "vector" of those; NULL: none */
	const uint8_t *wqe;
	unsigned bytes;                                      /* of the WQE, that the record holds */
	bool cut;                                            /* there were more */
	bool datagram;                                       /* with an address vector */
	uint32_t dctn;                                       /* which an initiator addresses; 0: none */
	uint8_t rc[sizeof(((struct softcx_trace *)0)->wqe)]; /* what it has without the address */
	struct trace_piece piece[TRACE_PIECES];
	unsigned pieces;
	uint64_t total;
	/* of an atomic */
	unsigned size;
	uint64_t arg, compare, arg_mask, compare_mask;
};

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

/* @w points into @rec. */
static void trace_parse(struct trace_wqe *w, const struct softcx_trace *rec)
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

/* NULL: no such */
static const char *trace_opcode(uint8_t opcode)
{
	return opcode < COUNT(opcodes) ? opcodes[opcode].name : NULL;
}

uint64_t trace_bytes(const struct softcx_trace *rec)
{
	struct trace_wqe w;

	trace_parse(&w, rec);
	return w.total;
}

static const char *trace_syndrome(uint8_t code)
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

static const char *const kinds[] = {
	[HW_TRACE_WQE] = "wqe",
	[HW_TRACE_RECV] = "recv",
	[HW_TRACE_CQE] = "cqe",
	[HW_TRACE_BLOCKED] = "wait",
	[HW_TRACE_RELEASED] = "wait",
};

enum { KINDS = COUNT(kinds) };

/* "wqe", "recv", "cqe" or "wait". */
static const char *trace_event_kind(uint32_t kind)
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

/* Writes the rest of the line. */
static void trace_event_text(FILE *out, const struct softcx_trace *rec)
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

static void trace_event_json(struct json_object *o, const struct softcx_trace *rec)
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

static const char *fence(const struct trace_wqe *w)
{
	static const char *const names[] = {
		NULL, "small fence", "fence", "strong fence", "small fence and fence"};
	unsigned fm = w->wqe[WQE_FLAGS] >> WQE_FM_SHIFT;

	return fm < COUNT(names) ? names[fm] : "unknown fence mode";
}

static bool signaled(const struct trace_wqe *w)
{
	return (w->wqe[WQE_FLAGS] >> WQE_CE_SHIFT & 3) >= WQE_CE_ALWAYS;
}

static bool has_imm(const struct softcx_trace *rec)
{
	return rec->opcode == WQE_OP_SEND_IMM || rec->opcode == WQE_OP_WRITE_IMM;
}

static bool invalidates(const struct softcx_trace *rec)
{
	return rec->opcode == WQE_OP_SEND_INVAL || rec->opcode == WQE_OP_LOCAL_INVAL;
}

/* Why nobody answered, if the address vector shows it; or NULL. */
static const char *lost(const struct softcx_trace *rec)
{
	static const char *const words[] = {
		[HW_LOST_GID] = "no port has this GID",
		[HW_LOST_MAC] = "the port with this GID has another MAC address",
		[HW_LOST_HOPS] = "the hop limit is 0",
		[HW_LOST_LID] = "no port has this LID",
		[HW_LOST_GRH] = "the port with this LID has another GID",
	};

	return rec->syndrome == CQE_SYND_RETRY && rec->number < COUNT(words) ? words[rec->number] : NULL;
}

/* ---- text ------------------------------------------------------------------------------- */

static void print_time(FILE *out, uint64_t ns)
{
	time_t sec = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[16];

	localtime_r(&sec, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	fprintf(out, "%s.%09u", text, (unsigned)(ns % 1000000000));
}

static void print_pieces(FILE *out, const struct trace_wqe *w, const char *preposition)
{
	for (unsigned i = 0; i < w->pieces; i++) {
		const struct trace_piece *p = &w->piece[i];

		fprintf(out, "%s", i ? " + " : preposition);
		if (p->is_inline)
			fprintf(out, "inline");
		else
			fprintf(out, "0x%" PRIx64 " lkey 0x%x", p->addr, p->lkey);
		if (w->pieces > 1)
			fprintf(out, " (%u)", p->len);
	}
	if (w->cut)
		fprintf(out, " + more");
}

static void print_atomic(FILE *out, const struct trace_wqe *w)
{
	if (w->cas)
		fprintf(out, " compare 0x%" PRIx64 " swap 0x%" PRIx64, w->compare, w->arg);
	else
		fprintf(out, " add 0x%" PRIx64, w->arg);
	if (w->masked && w->cas)
		fprintf(out, " masks 0x%" PRIx64 " 0x%" PRIx64, w->compare_mask, w->arg_mask);
	else if (w->masked)
		fprintf(out, " field boundaries 0x%" PRIx64, w->arg_mask);
}

static void print_action(FILE *out, const struct trace_wqe *w)
{
	const uint8_t *p = w->wqe;
	char gid[INET6_ADDRSTRLEN];
	uint32_t number;

	switch (w->shape) {
	case TRACE_NONE:
		break;
	case TRACE_SEND:
		fprintf(out, " %" PRIu64 " bytes", w->total);
		print_pieces(out, w, " from ");
		if (w->datagram)
			fprintf(out, " to QP 0x%06x at %s qkey 0x%x", wqe_get32(p + WQE_UD_DQPN) & 0xffffff,
				inet_ntop(AF_INET6, p + WQE_UD_RGID, gid, sizeof(gid)),
				wqe_get32(p + WQE_UD_QKEY));
		break;
	case TRACE_WRITE:
		fprintf(out, " %" PRIu64 " bytes", w->total);
		print_pieces(out, w, " from ");
		fprintf(out, " to 0x%" PRIx64 " rkey 0x%x", wqe_get64(p + WQE_RADDR),
			wqe_get32(p + WQE_RKEY));
		break;
	case TRACE_READ:
		fprintf(out, " %" PRIu64 " bytes from 0x%" PRIx64 " rkey 0x%x", w->total,
			wqe_get64(p + WQE_RADDR), wqe_get32(p + WQE_RKEY));
		print_pieces(out, w, " to ");
		break;
	case TRACE_ATOMIC:
		fprintf(out, " %u bytes at 0x%" PRIx64 " rkey 0x%x:", w->size, wqe_get64(p + WQE_RADDR),
			wqe_get32(p + WQE_RKEY));
		print_atomic(out, w);
		print_pieces(out, w, ", old value to ");
		break;
	case TRACE_WAIT:
		fprintf(out, " for CQ %u to reach %u", wqe_get32(p + WQE_SYNC_OBJECT) & 0xffffff,
			wqe_get32(p + WQE_SYNC_INDEX));
		break;
	case TRACE_ENABLE:
		number = wqe_get32(p + WQE_SYNC_OBJECT) & 0xffffff;
		fprintf(out, " QP 0x%06x up to %u", number, wqe_get32(p + WQE_SYNC_INDEX) & 0xffff);
		break;
	}
}

void trace_text(FILE *out, const struct softcx_trace *rec)
{
	struct trace_wqe w;

	print_time(out, rec->ns);
	if (rec->lost) {
		fprintf(out, " %u records are missing here: the reader was too slow\n", rec->lost);
		return;
	}
	fprintf(out, " %.*s ", (int)sizeof(rec->device), rec->device);
	if (rec->kind != HW_TRACE_WQE) {
		trace_event_text(out, rec);
		return;
	}
	trace_parse(&w, rec);
	fprintf(out, "QP 0x%06x [%u] ", rec->qpn, rec->index);
	if (w.name)
		fprintf(out, "%s", w.name);
	else
		fprintf(out, "opcode 0x%02x", rec->opcode);
	print_action(out, &w);
	if (w.calc)
		fprintf(out, ", CALC %s", w.calc);
	if (w.dctn)
		fprintf(out, ", DC target 0x%06x", w.dctn);
	if (has_imm(rec))
		fprintf(out, ", immediate 0x%x", wqe_get32(rec->wqe + WQE_IMM));
	if (invalidates(rec))
		fprintf(out, ", invalidates key 0x%x", wqe_get32(rec->wqe + WQE_IMM));
	if (fence(&w))
		fprintf(out, ", %s", fence(&w));
	if (rec->wqe[WQE_FLAGS] & WQE_SOLICITED)
		fprintf(out, ", solicited");
	if (rec->syndrome)
		fprintf(out, " -> %s (syndrome 0x%02x)%s%s\n", trace_syndrome(rec->syndrome), rec->syndrome,
			lost(rec) ? ": " : "", lost(rec) ? lost(rec) : "");
	else
		fprintf(out, " -> done, %s\n", signaled(&w) ? "CQE" : "no CQE");
}

/* ---- JSON ------------------------------------------------------------------------------- */

static struct json_object *pieces_json(const struct trace_wqe *w)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < w->pieces; i++) {
		struct json_object *o = json_object_new_object();

		trace_add_number(o, "length", w->piece[i].len);
		if (w->piece[i].is_inline) {
			json_object_object_add(o, "inline", json_object_new_boolean(true));
		} else {
			trace_add_hex(o, "address", w->piece[i].addr);
			trace_add_hex(o, "lkey", w->piece[i].lkey);
		}
		json_object_array_add(list, o);
	}
	return list;
}

static void add_atomic(struct json_object *o, const struct trace_wqe *w)
{
	trace_add_number(o, "size", w->size);
	if (w->cas) {
		trace_add_hex(o, "compare", w->compare);
		trace_add_hex(o, "swap", w->arg);
		if (w->masked) {
			trace_add_hex(o, "compare_mask", w->compare_mask);
			trace_add_hex(o, "swap_mask", w->arg_mask);
		}
	} else {
		trace_add_hex(o, "add", w->arg);
		if (w->masked)
			trace_add_hex(o, "boundaries", w->arg_mask);
	}
}

static void add_action(struct json_object *o, const struct trace_wqe *w)
{
	const uint8_t *p = w->wqe;
	char gid[INET6_ADDRSTRLEN];

	switch (w->shape) {
	case TRACE_NONE:
		return;
	case TRACE_WAIT:
		trace_add_number(o, "cqn", wqe_get32(p + WQE_SYNC_OBJECT) & 0xffffff);
		trace_add_number(o, "until", wqe_get32(p + WQE_SYNC_INDEX));
		return;
	case TRACE_ENABLE:
		trace_add_hex(o, "target_qpn", wqe_get32(p + WQE_SYNC_OBJECT) & 0xffffff);
		trace_add_number(o, "until", wqe_get32(p + WQE_SYNC_INDEX) & 0xffff);
		return;
	case TRACE_SEND:
		if (w->datagram) {
			trace_add_hex(o, "dest_qpn", wqe_get32(p + WQE_UD_DQPN) & 0xffffff);
			trace_add_text(o, "dest_gid", inet_ntop(AF_INET6, p + WQE_UD_RGID, gid, sizeof(gid)));
			trace_add_hex(o, "qkey", wqe_get32(p + WQE_UD_QKEY));
		}
		break;
	case TRACE_WRITE:
	case TRACE_READ:
	case TRACE_ATOMIC:
		trace_add_hex(o, "remote_address", wqe_get64(p + WQE_RADDR));
		trace_add_hex(o, "rkey", wqe_get32(p + WQE_RKEY));
		break;
	}
	if (w->shape == TRACE_ATOMIC)
		add_atomic(o, w);
	trace_add_number(o, "length", w->total);
	json_object_object_add(o, "local", pieces_json(w));
	if (w->cut)
		json_object_object_add(o, "cut", json_object_new_boolean(true));
}

struct json_object *trace_json(const struct softcx_trace *rec)
{
	struct json_object *o = json_object_new_object();
	struct trace_wqe w;

	trace_add_number(o, "time_ns", rec->ns);
	if (rec->lost) {
		trace_add_number(o, "lost", rec->lost);
		return o;
	}
	trace_add_text(o, "kind", trace_event_kind(rec->kind));
	json_object_object_add(o, "device",
		json_object_new_string_len(rec->device, (int)strnlen(rec->device, sizeof(rec->device))));
	if (rec->pid)
		trace_add_number(o, "pid", rec->pid);
	trace_add_hex(o, "qpn", rec->qpn);
	trace_add_number(o, "index", rec->index);
	if (rec->kind != HW_TRACE_WQE) {
		trace_event_json(o, rec);
		return o;
	}
	trace_parse(&w, rec);
	trace_add_number(o, "opcode", rec->opcode);
	if (w.name)
		trace_add_text(o, "name", w.name);
	add_action(o, &w);
	if (w.calc)
		trace_add_text(o, "calc", w.calc);
	if (w.dctn)
		trace_add_hex(o, "dc_target", w.dctn);
	if (has_imm(rec))
		trace_add_hex(o, "immediate", wqe_get32(rec->wqe + WQE_IMM));
	if (invalidates(rec))
		trace_add_hex(o, "invalidates", wqe_get32(rec->wqe + WQE_IMM));
	if (fence(&w))
		trace_add_text(o, "fence", fence(&w));
	json_object_object_add(o, "solicited", json_object_new_boolean(rec->wqe[WQE_FLAGS] & WQE_SOLICITED));
	json_object_object_add(o, "cqe", json_object_new_boolean(signaled(&w) || rec->syndrome));
	trace_add_number(o, "syndrome", rec->syndrome);
	trace_add_text(o, "outcome", rec->syndrome ? trace_syndrome(rec->syndrome) : "done");
	if (lost(rec))
		trace_add_text(o, "reason", lost(rec));
	return o;
}
