/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * description.h - the arguments and the reply of an offload, as its server describes them (REDDN_REQ_DESCRIBE
 * of wire.h), understood. Pure functions.
 */
#ifndef LIBCLIENT_DESCRIPTION_H
#define LIBCLIENT_DESCRIPTION_H

#include "libclient/reddn.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** All zero: none. */
struct reddn_description {
	char *text; /* the names are in it */
	/* of the session that it is about */
	uint64_t program;
	uint32_t reply_max;
	const char **arg;
	struct reddn_reply_field *field;
	unsigned nargs, nfields;
};

/**
 * Puts @part, which came with the length @whole of all, behind the *len bytes of @text, which has room for
 * REDDN_WIRE_DESCRIPTION_MAX and a zero byte. Both come from outside. False: they cannot be true.
 */
bool reddn_description_add(char *text, size_t *len, size_t whole, const char *part);

/**
 * Takes over @text, which was allocated. It comes from outside: a field that does not lie within @reply_max
 * bytes, or has a name that no program can have, is wrong. @program: of the session. 0; or -EPROTO or
 * -ENOMEM, and *d is empty then.
 */
int reddn_description_read(struct reddn_description *d, char *text, uint64_t program, uint32_t reply_max);
/** True: it is about a session of @program with replies of @reply_max bytes. Servers may name the same
 * program, and have replies of another length: fields would lie behind them. */
bool reddn_description_is_of(const struct reddn_description *d, uint64_t program, uint32_t reply_max);
void reddn_description_deinit(struct reddn_description *d);

#endif
