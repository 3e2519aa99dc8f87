/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args.h - a request made of arguments, without the network (wire.h says how). Pure functions.
 */
#ifndef LIBCLIENT_ARGS_H
#define LIBCLIENT_ARGS_H

#include "libclient/reddn.h"
#include "protocol/wire.h"

/** What a server told of its requests, in host order. */
struct reddn_form {
	unsigned nargs, npieces;
	struct reddn_wire_arg arg[REDDN_WIRE_ARGS];
	struct reddn_wire_piece piece[REDDN_WIRE_PIECES];
};

/** Takes it from @rep. Why it makes no sense, with requests of @arg_len bytes; NULL if it does. */
const char *reddn_form_take(struct reddn_form *f, const struct reddn_wire_rep *rep, uint32_t arg_len);

/**
 * Writes the request, @request_len bytes, to @request. -EINVAL, -ERANGE: as reddn_call_submit. A server that
 * tells no pieces has requests that only the application can compose: -EINVAL, if they are not empty.
 */
int reddn_form_build(const struct reddn_form *f, const struct reddn_arg *args, unsigned nargs,
	uint32_t request_len, uint8_t *request);

#endif
