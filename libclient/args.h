/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * args.h - encode arguments as a request, in the format that the server reported (wire.h). Pure functions.
 */
#ifndef LIBCLIENT_ARGS_H
#define LIBCLIENT_ARGS_H

#include "libclient/reddn.h"
#include "protocol/wire.h"

/** Request format of an offload: its arguments, and the fields of a request, which are there once for each
 * key. */
struct reddn_request_format {
	unsigned nargs, nfields; /* of one key */
	unsigned keys;           /* 1: also of a request for none */
	struct reddn_wire_arg arg[REDDN_WIRE_ARGS];
	struct reddn_wire_field field[REDDN_WIRE_FIELDS];
};

/** Read the format of requests of @request_len bytes from @rep. NULL, or what is wrong with it. */
const char *reddn_format_read(
	struct reddn_request_format *f, const struct reddn_wire_rep *rep, uint32_t request_len);

/**
 * Write the request, @request_len bytes, to @request. -EINVAL, -ERANGE: as reddn_call_submit. Without fields,
 * only the application can compose requests: -EINVAL unless they are empty.
 */
int reddn_format_encode(const struct reddn_request_format *f, const struct reddn_arg *args, unsigned nargs,
	uint32_t request_len, uint8_t *request);

#endif
