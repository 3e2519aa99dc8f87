/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/tool/trace-text.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "softcx/tool/trace-event.h"
#include "softcx/tool/trace-json.h"
#include "softcx/tool/trace-wqe.h"

#include "softcx/hw/hw.h"
#include "util/array.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <time.h>

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
