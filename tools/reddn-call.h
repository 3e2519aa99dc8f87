/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn-call.h - reddn call: arguments of any program as text, by name or by place, and the fields of its
 * reply.
 */
#ifndef TOOLS_REDDN_CALL_H
#define TOOLS_REDDN_CALL_H

#include "libclient/reddn.h"

#include <stdbool.h>

enum call_output { CALL_FIELDS, CALL_HEX, CALL_RAW, CALL_JSON };

/**
 * Calls @offload once on @c, with @texts, which end with NULL: NAME=VALUE each, or values in the order of the
 * program. Prints the reply. Returns an exit status, after an error on stderr.
 */
int call_run(struct reddn *c, const char *offload, enum call_output output, char **texts);

/** Why the request failed, in words. */
const char *call_error(struct reddn *c, int error);

#endif
