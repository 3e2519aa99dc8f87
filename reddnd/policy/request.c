/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/request.h"

#include "util/text.h"

#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SLOT_ALIGN = 64 };

bool request_refuse(
	struct reddn_wire_rej *rej, enum reddn_wire_reason reason, uint32_t need, const char *format, ...)
{
	va_list ap;

	*rej = (struct reddn_wire_rej){
		.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.reason = (uint8_t)reason,
		.detail = htobe32(need),
	};
	va_start(ap, format);
	vsnprintf(rej->text, sizeof(rej->text), format, ap);
	va_end(ap);
	return false;
}

static void read_join(const struct reddn_wire_req *req, struct request *request)
{
	struct reddn_wire_join join;

	memcpy(&join, req->offload, sizeof(join));
	request->session = be64toh(join.session);
	request->secret = be64toh(join.secret);
}

static bool read_name(const struct reddn_wire_req *req, struct request *request, struct reddn_wire_rej *rej)
{
	char name[sizeof(request->offload)] = "";

	memcpy(name, req->offload, sizeof(req->offload));
	if (!text_is_name(name, sizeof(req->offload)))
		return request_refuse(rej, REDDN_REJ_MALFORMED, 0,
			"the name of the offload is empty or has characters that names do not have");
	memcpy(request->offload, name, sizeof(name));
	return true;
}

bool request_parse(const void *data, size_t size, struct request *request, struct reddn_wire_rej *rej)
{
	const unsigned flags = REDDN_REQ_SLOT_GUESS | REDDN_REQ_NO_IMMEDIATES | REDDN_REQ_JOIN;
	struct reddn_wire_req req;

	*request = (struct request){0};
	if (size < sizeof(req))
		return request_refuse(rej, REDDN_REJ_MALFORMED, sizeof(req),
			"the request has %zu bytes of private data; it takes %zu", size, sizeof(req));
	memcpy(&req, data, sizeof(req));
	if (be32toh(req.magic) != REDDN_WIRE_MAGIC)
		return request_refuse(rej, REDDN_REJ_MALFORMED, REDDN_WIRE_MAGIC,
			"the request begins with %#x, not with %#x: this is no reddnd client",
			be32toh(req.magic), REDDN_WIRE_MAGIC);
	if (req.version != REDDN_WIRE_VERSION)
		return request_refuse(rej, REDDN_REJ_VERSION, REDDN_WIRE_VERSION,
			"the client speaks version %u of the protocol, the server version %u: %s must be "
			"updated",
			req.version, REDDN_WIRE_VERSION,
			req.version < REDDN_WIRE_VERSION ? "the client's libreddn" : "the server");
	*request = (struct request){
		.depth = be16toh(req.depth),
		.slot_addr = be64toh(req.slot_addr),
		.slot_rkey = be32toh(req.slot_rkey),
		.slot_size = be32toh(req.slot_size),
		.guessed = req.flags & REDDN_REQ_SLOT_GUESS,
		.no_immediates = req.flags & REDDN_REQ_NO_IMMEDIATES,
		.joins = req.flags & REDDN_REQ_JOIN,
	};
	if (req.flags & ~flags)
		return request_refuse(rej, REDDN_REJ_MALFORMED, 0, "flags are %#x; they must be among %#x",
			req.flags, flags);
	if (request->joins)
		read_join(&req, request);
	else if (!read_name(&req, request, rej))
		return false;
	if (request->depth == 0)
		return request_refuse(rej, REDDN_REJ_DEPTH, 1, "depth is 0; it must be at least 1");
	if (request->slot_addr % SLOT_ALIGN)
		return request_refuse(rej, REDDN_REJ_SLOT, 0,
			"reply slots begin at %#llx; the address must be a multiple of %d",
			(unsigned long long)request->slot_addr, SLOT_ALIGN);
	if (request->slot_size == 0 || request->slot_size % SLOT_ALIGN)
		return request_refuse(rej, REDDN_REJ_SLOT, SLOT_ALIGN,
			"reply slots of %u bytes; the size must be a multiple of %d", request->slot_size,
			SLOT_ALIGN);
	if (request->slot_addr > UINT64_MAX - (uint64_t)request->depth * request->slot_size)
		return request_refuse(
			rej, REDDN_REJ_SLOT, 0, "the reply slots reach beyond the last address");
	return true;
}

bool request_check(
	const struct request *request, unsigned depth_max, uint32_t slot_need, struct reddn_wire_rej *rej)
{
	if (request->depth > depth_max)
		return request_refuse(rej, REDDN_REJ_DEPTH, depth_max, "depth is %u; offload %s allows %u",
			request->depth, request->offload, depth_max);
	if (request->slot_size < slot_need)
		return request_refuse(rej, REDDN_REJ_SLOT, slot_need,
			"reply slots of %u bytes; offload %s needs %u", request->slot_size, request->offload,
			slot_need);
	return true;
}

enum reddn_wire_end end_reason_of_verdict(enum verdict_kind kind)
{
	switch (kind) {
	case VERDICT_REQUEST:
		return REDDN_WIRE_END_PROTOCOL;
	case VERDICT_RNR:
	case VERDICT_UNREACHABLE:
		return REDDN_WIRE_END_UNREACHABLE;
	case VERDICT_TIME:
	case VERDICT_LOOP:
		return REDDN_WIRE_END_BUDGET;
	default:
		return REDDN_WIRE_END_FAILED;
	}
}

/* A free place; the oldest of that source if it has END_REASONS_EACH; else the oldest of all */
static struct end_reason *end_reason_place(struct end_reasons *all, const struct source *source)
{
	struct end_reason *oldest = &all->kept[0], *own = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < END_REASONS_MAX; i++) {
		struct end_reason *e = &all->kept[i];

		if (e->number < oldest->number)
			oldest = e;
		if (!e->number) /* those that are free come last */
			break;
		if (memcmp(&e->source, source, sizeof(*source)) != 0)
			continue;
		n++;
		if (!own || e->number < own->number)
			own = e;
	}
	return n >= END_REASONS_EACH ? own : oldest;
}

void end_reasons_add(struct end_reasons *all, const uint8_t address[16], unsigned source_bits,
	const struct end_reason_query *of, enum reddn_wire_end how, const char *why)
{
	const struct source source = source_of(address, source_bits);
	struct end_reason *e = end_reason_place(all, &source);

	*e = (struct end_reason){.number = ++all->count, .source = source, .of = *of, .how = (uint8_t)how};
	memcpy(e->address, address, sizeof(e->address));
	snprintf(e->why, sizeof(e->why), "%s", why);
}

void end_reasons_answer(const struct end_reasons *all, const uint8_t address[16],
	const struct end_reason_query *of, struct reddn_wire_rej *rej)
{
	for (unsigned i = 0; i < END_REASONS_MAX; i++) {
		const struct end_reason *e = &all->kept[i];

		if (e->number && e->of.session == of->session && e->of.slot_addr == of->slot_addr &&
			e->of.slot_rkey == of->slot_rkey &&
			memcmp(e->address, address, sizeof(e->address)) == 0) {
			request_refuse(rej, REDDN_REJ_ENDED, e->how, "%s", e->why);
			return;
		}
	}
	request_refuse(rej, REDDN_REJ_UNKNOWN, 0, "nothing is known of a session %" PRIu64 " of this client",
		of->session);
}

bool question_parse(const void *data, size_t size, struct question *question)
{
	struct reddn_wire_query q;

	if (size < sizeof(q))
		return false;
	memcpy(&q, data, sizeof(q));
	if (be32toh(q.magic) != REDDN_WIRE_MAGIC || q.version != REDDN_WIRE_VERSION ||
		(q.flags != REDDN_REQ_END_REASON && q.flags != REDDN_REQ_DESCRIBE))
		return false;
	*question = (struct question){
		.describe = q.flags == REDDN_REQ_DESCRIBE,
		.from = be32toh(q.from),
		.of = {.session = be64toh(q.session),
			.slot_addr = be64toh(q.slot_addr),
			.slot_rkey = be32toh(q.slot_rkey)},
	};
	return true;
}

void question_describe(const char *description, uint32_t from, struct reddn_wire_rej *rej)
{
	size_t len = strlen(description);

	request_refuse(rej, REDDN_REJ_DESCRIBED, (uint32_t)len, "%s", from < len ? description + from : "");
}
