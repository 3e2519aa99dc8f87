/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rc.h - plain verbs for test programs: a device, memory with one key, and RC queue pairs without a
 * connection manager.
 *
 * Each failure ends the program with exit status 1 and a line on standard error.
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
	struct ibv_mr *mr; /* all of @mem, with all access rights */
	uint8_t *mem;
	size_t len;
	struct ibv_port_attr port; /* port 1 */
	union ibv_gid gid;         /* of port 1: index 1; on InfiniBand, where there is one, 0 */
};

/** A queue pair and its memory, as its peer needs them. */
struct rc_peer {
	union ibv_gid gid;
	uint8_t gid_index;
	uint16_t lid; /* of an InfiniBand port; else 0 */
	uint32_t qpn, rkey;
	uint64_t addr;
};

__attribute__((noreturn, format(printf, 1, 2))) void rc_die(
	const char *fmt, ...); /* appends strerror(errno) */

/**
 * Opens device @index and registers @len bytes of zeroed memory. @sharing: MAP_SHARED or MAP_PRIVATE. @cqes:
 * size of the one CQ.
 */
void rc_open(struct rc *rc, unsigned index, size_t len, int sharing, int cqes);
/** Fills in rc->port and rc->gid from rc->ctx; rc_open() does it. */
void rc_query_port(struct rc *rc);
void rc_close(struct rc *rc); /* after its queue pairs are destroyed */
struct ibv_qp *rc_qp(struct rc *rc, uint32_t depth);
struct rc_peer rc_self(const struct rc *rc, const struct ibv_qp *qp);
/** From RESET to RTS. Retries 7 times after 67 ms each; RNR without limit. */
void rc_connect(struct ibv_qp *qp, const struct rc_peer *to);

/** Posts one signalled WRITE or READ of @len bytes between @off of @rc and @to->addr + @remote_off. */
void rc_post(struct rc *rc, struct ibv_qp *qp, enum ibv_wr_opcode op, size_t off, const struct rc_peer *to,
	uint64_t remote_off, uint32_t len);
/** Polls for a CQE, at most a minute, and returns its status. */
enum ibv_wc_status rc_await(struct rc *rc);
void rc_expect(struct rc *rc, enum ibv_wc_status status);

#endif
