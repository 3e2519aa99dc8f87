/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * many.h - requests of several keys for the loop, which submits them one by one.
 */
#ifndef TESTS_BENCH_WAYS_MANY_H
#define TESTS_BENCH_WAYS_MANY_H

#include "tools/load/load.h"

enum { REQUEST_KEYS = 64 }; /* of one request, at most */

/** Submits one request. Key i has a result with the cookie @cookie + i; one poll reports those of a reply. */
typedef int many_submit_fn(void *conn, const struct reddn_key *keys, unsigned n, uint64_t cookie);

/** Makes @way one that gathers @keys keys for a request, and has as many requests outstanding as it had. 0,
 * or 2 after an error on stderr. */
int many_wrap(struct load_way *way, many_submit_fn *submit, unsigned keys);

#endif
