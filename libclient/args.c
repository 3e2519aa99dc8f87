/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/args.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool arg_ok(const struct reddn_wire_arg *a)
{
	return a->kind <= REDDN_ARG_OFFSET && a->bytes && (a->kind == REDDN_ARG_BYTES || a->bytes <= 8);
}

static bool field_ok(const struct reddn_request_format *f, const struct reddn_wire_field *p)
{
	if (p->arg >= f->nargs || !p->len || p->first + p->len > f->arg[p->arg].bytes)
		return false;
	if (p->flags & ~(REDDN_FIELD_REVERSED | REDDN_FIELD_INVERTED))
		return false;
	return !(p->flags & REDDN_FIELD_INVERTED && f->arg[p->arg].kind == REDDN_ARG_BYTES);
}

const char *reddn_format_read(
	struct reddn_request_format *f, const struct reddn_wire_rep *rep, uint32_t request_len)
{
	uint32_t sum = 0;

	if (rep->nargs > REDDN_WIRE_ARGS || rep->nfields > REDDN_WIRE_FIELDS)
		return "a request has more arguments or fields than a reply can describe";
	f->nargs = rep->nargs;
	f->nfields = rep->nfields;
	f->keys = rep->table.keys ? rep->table.keys : 1;
	memcpy(f->arg, rep->arg, sizeof(f->arg));
	memcpy(f->field, rep->field, sizeof(f->field));
	for (unsigned i = 0; i < f->nargs; i++)
		if (!arg_ok(&f->arg[i]))
			return "this library does not know the kind or the length of an argument";
	for (unsigned i = 0; i < f->nfields; i++) {
		if (!field_ok(f, &f->field[i]))
			return "a field of a request does not fit its argument";
		sum += f->field[i].len;
	}
	return sum * f->keys == request_len || !f->nfields
		       ? NULL
		       : "the fields of a request do not add up to its length";
}

static void put_field(uint8_t *out, const struct reddn_wire_field *p, const struct reddn_wire_arg *a,
	const struct reddn_arg *value)
{
	const uint8_t *from = value->bytes;
	uint64_t be;

	if (a->kind != REDDN_ARG_BYTES) {
		be = htobe64(p->flags & REDDN_FIELD_INVERTED ? ~value->number : value->number);
		from = (const uint8_t *)&be + sizeof(be) - a->bytes;
	}
	from += p->first;
	if (!(p->flags & REDDN_FIELD_REVERSED)) {
		memcpy(out, from, p->len);
		return;
	}
	for (unsigned i = 0; i < p->len; i++)
		out[i] = from[p->len - 1 - i];
}

int reddn_format_encode(const struct reddn_request_format *f, const struct reddn_arg *args, unsigned nargs,
	uint32_t request_len, uint8_t *request)
{
	if (nargs != f->nargs * f->keys || !f->nfields != !request_len)
		return -EINVAL;
	for (unsigned i = 0; i < nargs; i++) {
		const struct reddn_wire_arg *a = &f->arg[i % f->nargs];

		if ((a->kind == REDDN_ARG_BYTES) != (args[i].bytes != NULL))
			return -ERANGE;
		if (a->kind != REDDN_ARG_BYTES && a->bytes < 8 && args[i].number >> 8 * a->bytes)
			return -ERANGE;
	}
	for (unsigned key = 0; key < nargs; key += f->nargs)
		for (unsigned i = 0; i < f->nfields; i++) {
			const struct reddn_wire_field *p = &f->field[i];

			put_field(request, p, &f->arg[p->arg], &args[key + p->arg]);
			request += p->len;
		}
	return 0;
}
