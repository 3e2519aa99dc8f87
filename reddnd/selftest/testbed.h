/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * testbed.h - private to the self-tests: two managed queues, each connected to itself, and memory that they
 * work on. The tests write WQEs into the rings by hand, so that they rely on nothing but the encoding.
 */
#ifndef SELFTEST_TESTBED_H
#define SELFTEST_TESTBED_H

#include "reddnd/rnic/master-qp.h"

#include <stddef.h>

enum { TESTBED_WORK, TESTBED_TARGET, TESTBED_QUEUES };
enum { TESTBED_WQEBBS = 128, TESTBED_MEMORY = 40960 /* bytes */, TESTBED_RECVS = 4 };

struct testbed {
	struct master_qp *master;
	struct rnic_block block;
	struct rnic_cq cq[TESTBED_QUEUES], recv_cq;
	struct rnic_qp qp[TESTBED_QUEUES]; /* the target has RECVs, of one segment, on a managed RQ */
	unsigned posted[TESTBED_QUEUES];   /* WQEBBs */
	uint8_t *memory;                   /* TESTBED_MEMORY bytes, zeroed */
};

/** 0 or a negative errno; testbed_deinit() in either case. */
int testbed_init(struct testbed *bed, struct master_qp *master);
void testbed_deinit(struct testbed *bed);

/** The next WQE of a queue, with its control segment; @flags: enum wqe_flag. It must not lie across the end
 * of the ring. */
uint8_t *testbed_wqe(struct testbed *bed, unsigned q, uint8_t opcode, uint8_t ds, uint8_t flags);
/** A WAIT, SEND_EN or RECV_EN in the working queue. */
void testbed_sync(struct testbed *bed, uint8_t opcode, uint8_t flags, uint32_t index, uint32_t object);
/** Fills in a data segment, and a remote address segment: of the testbed's memory or of a WQE in its rings.
 */
void testbed_sge(const struct testbed *bed, uint8_t *at, const void *mem, uint32_t len);
void testbed_remote(const struct testbed *bed, uint8_t *wqe, const void *mem);
/** Where the WQE with that index is. */
uint8_t *testbed_at(const struct testbed *bed, unsigned q, unsigned index);

/** Lets the working queue run up to what has been written. */
int testbed_start(struct testbed *bed);
/** Waits a while for CQE number @n; whether it came. */
bool testbed_has_cqe(const struct rnic_cq *cq, unsigned n);
/** -EIO, and the first error of a queue in @why, if there is one; else 0. */
int testbed_errors(struct testbed *bed, char *why, size_t size);
/** -EIO, and @words in @why. */
int testbed_failed(char *why, size_t size, const char *words);
void testbed_sleep(unsigned ms);

#endif
