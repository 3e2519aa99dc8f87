/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve.h - the part of the baseline server that answers two-sided requests with its CPU.
 * Errors: 0 or a negative errno.
 */
#ifndef TESTS_BENCH_WAYS_SERVE_H
#define TESTS_BENCH_WAYS_SERVE_H

#include "libclient/reddn-table.h"

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

struct serve;
struct serve_conn;

/** @table: answers come out of it; sets fail if it was not opened for writing. @events: the CQ tells by its
 * channel. */
int serve_new(struct serve **s, struct ibv_pd *pd, struct reddn_table *table, bool events);
void serve_free(struct serve *s); /* with its connections; NULL is fine */

uint32_t serve_request_max(const struct serve *s); /* bytes */
uint32_t serve_reply_max(const struct serve *s);

/** Makes the queue pair of @id and posts its RECVs. */
int serve_add(struct serve *s, struct rdma_cm_id *id, uint32_t depth, struct serve_conn **conn);
void serve_remove(struct serve_conn *conn);

/** Answers what has come. How many there were. */
int serve_poll(struct serve *s);

/** With events: a descriptor that is readable after serve_arm() when there is something to poll for. Poll
 * once more after arming. */
int serve_fd(const struct serve *s);
int serve_arm(struct serve *s);

#endif
