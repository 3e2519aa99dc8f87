/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rc.h - plain verbs for test programs: a device, memory under one key, and RC queue pairs that are connected
 * by hand.
 *
 * Whatever fails ends the program with exit status 1 and a line on standard error.
 */
#ifndef TESTS_LIB_RC_H
#define TESTS_LIB_RC_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

struct rc {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr; /* all of @mem, with every right */
	uint8_t *mem;
	size_t len;
	union ibv_gid gid; /* index 1 of port 1 */
};

/** What a peer must know of a queue pair and of the memory behind it. */
struct rc_peer {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
};

__attribute__((noreturn, format(printf, 1, 2))) void rc_die(const char *fmt, ...); /* adds errno in words */

/**
 * Opens device @index and registers @len bytes of zeroed memory. @sharing: MAP_SHARED or MAP_PRIVATE. @cqes:
 * of one CQ for everything.
 */
void rc_open(struct rc *rc, unsigned index, size_t len, int sharing, int cqes);
void rc_close(struct rc *rc); /* its queue pairs are gone */
struct ibv_qp *rc_qp(struct rc *rc, uint32_t depth);
struct rc_peer rc_self(const struct rc *rc, const struct ibv_qp *qp);
/** RESET to RTS. Retries: 7 times after 67 ms each; RNR for ever. */
void rc_connect(struct ibv_qp *qp, const struct rc_peer *to);

/** Posts one signalled WRITE or READ of @len bytes between @off of @rc and @to->addr + @remote_off. */
void rc_post(struct rc *rc, struct ibv_qp *qp, enum ibv_wr_opcode op, size_t off, const struct rc_peer *to,
	uint64_t remote_off, uint32_t len);
/** Polls until a CQE comes (a minute at most) and returns its status. */
enum ibv_wc_status rc_await(struct rc *rc);
void rc_expect(struct rc *rc, enum ibv_wc_status status);

#endif
