/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn-store.h - reddn put and delete: keys of a store. They return an exit status, after an error on
 * stderr.
 */
#ifndef TOOLS_REDDN_STORE_H
#define TOOLS_REDDN_STORE_H

#include "libclient/reddn.h"

#include <stdbool.h>

/**
 * @texts: key, value. Without a value, or with "-", standard input is the value. @version: that which the key
 * must have, or NULL. @ttl_ms: after so long it expires; 0: never. 1: it has another version.
 */
int store_put(struct reddn *c, bool json, const uint64_t *version, uint64_t ttl_ms, char **texts);

/** @texts: keys; with @version one. 1: one of them was absent, or has another version. */
int store_delete(struct reddn *c, bool json, const uint64_t *version, char **texts);

#endif
