/* SPDX-License-Identifier: BSD-2-Clause */
/* options.h - what a caller passes to reddn_connect(): checked, with the defaults in place of zeroes. */
#ifndef LIBCLIENT_OPTIONS_H
#define LIBCLIENT_OPTIONS_H

#include "libclient/reddn.h"
#include "protocol/token.h"

/**
 * Check @opt, replace its zeroes by the defaults, except that of slot_size, and shorten timeout_ms to what an
 * int can hold. Read the key of the access tokens; its len is 0 if there is none. The caller wipes it in any
 * case. 0, or -EINVAL and the reason in @err.
 */
int reddn_options_read(struct reddn_options *opt, struct token_key *key, char *err, size_t errlen);

#endif
