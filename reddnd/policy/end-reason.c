/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/end-reason.h"

#include "reddnd/policy/request.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
static struct end_reason *place_for(struct end_reasons *all, const struct source *source)
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
	struct end_reason *e = place_for(all, &source);

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
