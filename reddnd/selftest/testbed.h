/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * testbed.h - private to the self-tests: two managed queues, each connected to itself, and memory for them.
 * The tests write WQEs into the rings directly, so that they depend only on the encoding.
 */
#ifndef SELFTEST_TESTBED_H
#define SELFTEST_TESTBED_H

#include "reddnd/rnic/master-qp.h"

#include <stddef.h>

enum { TESTBED_WORK, TESTBED_TARGET, TESTBED_QUEUES };
enum { TESTBED_MESSAGE = 4096 /* bytes: what the target may send at once */ };
enum { TESTBED_WQEBBS = 128, TESTBED_MEMORY = 40960 /* bytes */, TESTBED_RECVS = 4 };

struct testbed {
	struct master_qp *master;
	struct rnic_block block;
	struct rnic_cq cq[TESTBED_QUEUES], recv_cq;
	struct rnic_qp qp[TESTBED_QUEUES]; /* the target has RECVs of one segment on a managed RQ */
	unsigned posted[TESTBED_QUEUES];   /* WQEBBs */
	uint8_t *memory;                   /* TESTBED_MEMORY bytes, zeroed */
};

/** 0 or a negative errno; testbed_deinit() in either case. */
int testbed_init(struct testbed *bed, struct master_qp *master);
void testbed_deinit(struct testbed *bed);

/** Starts the next WQE of a queue with its control segment; @flags: enum wqe_flag. The WQE must not cross the
 * end of the ring. */
uint8_t *testbed_wqe(struct testbed *bed, unsigned q, uint8_t opcode, uint8_t ds, uint8_t flags);
/** Writes a WAIT, SEND_EN or RECV_EN into the working queue. */
void testbed_sync(struct testbed *bed, uint8_t opcode, uint8_t flags, uint32_t index, uint32_t object);
/** Fill in a data segment, or a remote address segment, that names memory of the testbed or a WQE in its
 * rings.
 */
void testbed_sge(const struct testbed *bed, uint8_t *at, const void *mem, uint32_t len);
void testbed_remote(const struct testbed *bed, uint8_t *wqe, const void *mem);
/** Address of the WQE with that index. */
uint8_t *testbed_at(const struct testbed *bed, unsigned q, unsigned index);

/** Enables all WQEs that were written into the working queue. */
int testbed_start(struct testbed *bed);
/** Waits up to a second for CQE number @n. True if it came. */
bool testbed_has_cqe(const struct rnic_cq *cq, unsigned n);
/** -EIO and @why in words if a queue has an error CQE; else 0. */
int testbed_errors(struct testbed *bed, char *why, size_t size);
/** Copies @words to @why and returns -EIO. */
int testbed_failed(char *why, size_t size, const char *words);
void testbed_sleep(unsigned ms);

#endif
