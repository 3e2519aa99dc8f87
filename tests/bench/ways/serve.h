/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve.h - the part of the baseline server that answers two-sided requests with its CPU: a WRITE from where
 * the data are, into the slot of the request.
 * Errors: 0 or a negative errno.
 */
#ifndef TESTS_BENCH_WAYS_SERVE_H
#define TESTS_BENCH_WAYS_SERVE_H

#include "tests/bench/ways/source.h"

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

struct serve;
struct serve_conn;

/** @source: of the answers. @events: the CQ has an event channel. */
int serve_new(struct serve **s, struct ibv_pd *pd, struct source *source, bool events);
void serve_free(struct serve *s); /* with its connections; NULL is allowed */

/** Makes the queue pair of @id and posts its RECVs, for requests of up to @keys keys. */
int serve_add(
	struct serve *s, struct rdma_cm_id *id, uint32_t depth, uint32_t keys, struct serve_conn **conn);
void serve_remove(struct serve_conn *conn);

uint32_t serve_request_max(const struct serve_conn *conn); /* bytes */

/** Answers all requests that have arrived. Returns their number. */
int serve_poll(struct serve *s);

/** With events: a descriptor that becomes readable, after serve_arm(), when a request arrives. Poll once more
 * after arming. */
int serve_fd(const struct serve *s);
int serve_arm(struct serve *s);

#endif
