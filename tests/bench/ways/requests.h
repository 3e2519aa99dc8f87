/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * requests.h - messages between client and server of two-sided requests. Both run on one machine: host byte
 * order. Answers come in the order of their requests.
 */
#ifndef TESTS_BENCH_WAYS_REQUESTS_H
#define TESTS_BENCH_WAYS_REQUESTS_H

#include <stdint.h>

enum { REQUEST_GET = UINT32_MAX, REQUEST_INLINE = 64 }; /* bytes of inline data in a WQE */

struct request {
	uint32_t key_len;
	uint32_t val_len; /* REQUEST_GET: none */
	uint8_t bytes[];  /* key, value */
};

struct answer {
	int32_t status; /* as of struct reddn_result */
	uint32_t len;
	uint8_t value[];
};

#endif
