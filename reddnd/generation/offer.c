/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/offer.h"

#include "reddnd/generation/generation.h"
#include "reddnd/generation/table.h"

#include <endian.h>
#include <string.h>
#include <xxhash.h>

void offer_describe_request(const struct program *p, unsigned keys, struct reddn_wire_rep *rep)
{
	const unsigned nargs = p->nargs / keys, nfields = p->npieces / keys;

	if (nargs > REDDN_WIRE_ARGS || nfields > REDDN_WIRE_FIELDS)
		return;
	for (unsigned i = 0; i < nargs; i++)
		if (p->args[i].bytes > UINT8_MAX)
			return;
	rep->nargs = (uint8_t)nargs;
	rep->nfields = (uint8_t)nfields;
	for (unsigned i = 0; i < nargs; i++)
		rep->arg[i] = (struct reddn_wire_arg){
			.kind = p->args[i].kind == PROGRAM_STRING   ? REDDN_ARG_BYTES
				: p->args[i].kind == PROGRAM_WINDOW ? REDDN_ARG_OFFSET
								    : REDDN_ARG_NUMBER,
			.bytes = (uint8_t)p->args[i].bytes,
		};
	for (unsigned i = 0; i < nfields; i++)
		rep->field[i] = (struct reddn_wire_field){
			.arg = (uint8_t)p->pieces[i].arg,
			.flags = (uint8_t)((p->pieces[i].reversed ? REDDN_FIELD_REVERSED : 0) |
					   (p->pieces[i].inverted ? REDDN_FIELD_INVERTED : 0)),
			.first = (uint8_t)p->pieces[i].first,
			.len = (uint8_t)p->pieces[i].len,
		};
}

static bool may_use(const struct generation *g, const struct tenant *tenant, const struct catalog_offload *o)
{
	for (unsigned i = 0; i < g->catalog->ntenants; i++)
		if (g->tenants[i] == tenant)
			return catalog_allows(&g->catalog->tenants[i], (unsigned)(o - g->catalog->offloads));
	return false;
}

/* They follow the offload in the catalog */
static void offer_parts(
	const struct offload *whole, const struct tenant *tenant, struct reddn_wire_table *wire)
{
	const struct catalog *c = whole->generation->catalog;
	unsigned n = 0;

	for (const struct catalog_offload *o = whole->conf + 1;
		o < c->offloads + c->noffloads && o->entry == whole->conf->entry; o++)
		if (reddn_wire_part_keys(o->part) && may_use(whole->generation, tenant, o))
			wire->part[n++] = o->part;
}

void offer_describe(const struct offload *o, const struct tenant *tenant, struct reddn_wire_rep *rep)
{
	const uint8_t shape = shape_on_wire(o);
	const bool several = shape == REDDN_SHAPE_MGET || shape == REDDN_SHAPE_EXISTS;

	*rep = (struct reddn_wire_rep){
		.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.shape = shape,
		.request_len = htobe32(o->img->arg_len),
		.reply_max = htobe32(o->slot_need),
		.flags = offload_writes(o) ? 0 : REDDN_REP_READS,
	};
	if (shape != REDDN_SHAPE_OPAQUE)
		table_describe(
			&o->table->geometry, several ? shape_keys(o) : 0, o->img->payload.max, &rep->table);
	if (shape == REDDN_SHAPE_TABLE)
		offer_parts(o, tenant, &rep->table);
	if (o->description)
		rep->program = htobe64(XXH3_64bits(o->description, strlen(o->description)));
	offer_describe_request(o->program, rep->table.keys ? rep->table.keys : 1, rep);
}
