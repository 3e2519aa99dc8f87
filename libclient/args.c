/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/args.h"

#include <errno.h>
#include <string.h>

const char *reddn_form_take(struct reddn_form *f, const struct reddn_wire_rep *rep, uint32_t arg_len)
{
	uint32_t sum = 0;

	if (rep->nargs > REDDN_WIRE_ARGS || rep->npieces > REDDN_WIRE_PIECES)
		return "a request has more parts than there is room to tell";
	f->nargs = rep->nargs;
	f->npieces = rep->npieces;
	memcpy(f->arg, rep->arg, sizeof(f->arg));
	memcpy(f->piece, rep->piece, sizeof(f->piece));
	for (unsigned i = 0; i < f->nargs; i++) {
		const struct reddn_wire_arg *a = &f->arg[i];

		if (a->kind > REDDN_ARG_OFFSET || !a->bytes || (a->kind != REDDN_ARG_BYTES && a->bytes > 8))
			return "an argument is of a kind or a length unknown to this library";
	}
	for (unsigned i = 0; i < f->npieces; i++) {
		const struct reddn_wire_piece *p = &f->piece[i];

		if (p->arg >= f->nargs || !p->len || p->first + p->len > f->arg[p->arg].bytes ||
			p->flags & ~(REDDN_PIECE_REVERSED | REDDN_PIECE_INVERTED) ||
			(p->flags & REDDN_PIECE_INVERTED && f->arg[p->arg].kind == REDDN_ARG_BYTES))
			return "a part of a request is none of its argument";
		sum += p->len;
	}
	return sum == arg_len || !f->npieces ? NULL : "the parts of a request do not make up its length";
}

static void put_number(uint8_t be[8], uint64_t number)
{
	for (int i = 7; i >= 0; i--, number >>= 8)
		be[i] = (uint8_t)number;
}

static void put_piece(uint8_t *out, const struct reddn_wire_piece *p, const struct reddn_wire_arg *a,
	const struct reddn_arg *value)
{
	const uint8_t *from = value->bytes;
	uint8_t be[8];

	if (a->kind != REDDN_ARG_BYTES) {
		put_number(be, p->flags & REDDN_PIECE_INVERTED ? ~value->number : value->number);
		from = be + 8 - a->bytes;
	}
	for (unsigned i = 0; i < p->len; i++)
		out[i] = from[p->first + (p->flags & REDDN_PIECE_REVERSED ? p->len - 1 - i : i)];
}

int reddn_form_build(const struct reddn_form *f, const struct reddn_arg *args, unsigned nargs,
	uint32_t request_len, uint8_t *request)
{
	if (nargs != f->nargs || !f->npieces != !request_len)
		return -EINVAL;
	for (unsigned i = 0; i < nargs; i++) {
		const struct reddn_wire_arg *a = &f->arg[i];

		if ((a->kind == REDDN_ARG_BYTES) != (args[i].bytes != NULL))
			return -ERANGE;
		if (a->kind != REDDN_ARG_BYTES && a->bytes < 8 && args[i].number >> 8 * a->bytes)
			return -ERANGE;
	}
	for (unsigned i = 0; i < f->npieces; i++) {
		put_piece(request, &f->piece[i], &f->arg[f->piece[i].arg], &args[f->piece[i].arg]);
		request += f->piece[i].len;
	}
	return 0;
}
