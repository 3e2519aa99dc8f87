/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test-offload.h - an offload in memory, in place of a session and a server: what calls of libreddn report of
 * it, and what executes its requests. For tests of what is built on calls.
 */
#ifndef LIBCLIENT_TEST_OFFLOAD_H
#define LIBCLIENT_TEST_OFFLOAD_H

#include "libclient/connection.h"

struct test_offload {
	struct {
		enum reddn_arg_kind kind;
		uint32_t bytes;
	} arg[3];
	unsigned nargs;
	uint32_t reply_max;
	/* Returns 0, or the error of reddn_call */
	int (*execute)(const struct reddn_arg *args, uint8_t *reply);
	unsigned calls;     /* of reddn_call */
	uint8_t reply[512]; /* to the last request */
};

extern struct test_offload test_offload;

/** A handle of it, with one host and a timeout of a second. */
extern struct reddn client;

/** Both begin anew. */
void test_offload_begin(const struct test_offload *like);

/** The result of the last request that was submitted. */
struct reddn_result test_offload_result(void);

#endif
