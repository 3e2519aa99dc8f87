/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * onesided.h - what server and client of the one-sided baseline agree on. The server registers the file of a table
 * for remote reading and hands out the key when a client connects; after that its CPU does nothing.
 */
#ifndef BENCH_ONESIDED_H
#define BENCH_ONESIDED_H

#include <stdint.h>

/** Private data of the server's reply to a connection request. Big-endian. */
struct onesided_rep {
	uint64_t addr; /* of the first byte of the table file */
	uint64_t size; /* of the file, bytes */
	uint32_t rkey;
} __attribute__((packed));

#endif
