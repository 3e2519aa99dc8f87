/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bed.h - private to the self-tests: two managed queues, each connected to itself, and memory for them.
 * The tests write WQEs into the rings directly, so that they depend only on the encoding.
 */
#ifndef PROBE_BED_H
#define PROBE_BED_H

#include "reddnd/rnic/master-qp.h"

#include <stddef.h>

enum { BED_WORK, BED_TARGET, BED_QUEUES };
enum { BED_MESSAGE = 4096 /* bytes: what the target may send at once */ };
enum { BED_WQEBBS = 128, BED_MEMORY = 40960 /* bytes */, BED_RECVS = 4 };

struct bed {
	struct master_qp *master;
	struct rnic_block block;
	struct rnic_cq cq[BED_QUEUES], recv_cq;
	struct rnic_qp qp[BED_QUEUES]; /* the target has RECVs of one segment on a managed RQ */
	unsigned posted[BED_QUEUES];   /* WQEBBs */
	uint8_t *memory;               /* BED_MEMORY bytes, zeroed */
};

/** 0 or a negative errno; bed_deinit() in either case. */
int bed_init(struct bed *bed, struct master_qp *master);
void bed_deinit(struct bed *bed);

/** Starts the next WQE of a queue with its control segment; @flags: enum wqe_flag. The WQE must not cross the
 * end of the ring. */
uint8_t *bed_wqe(struct bed *bed, unsigned q, uint8_t opcode, uint8_t ds, uint8_t flags);
/** Writes a WAIT, SEND_EN or RECV_EN into the working queue. */
void bed_sync(struct bed *bed, uint8_t opcode, uint8_t flags, uint32_t index, uint32_t object);
/** Fill in a data segment, or a remote address segment, that names memory of the testbed or a WQE in its
 * rings.
 */
void bed_sge(const struct bed *bed, uint8_t *at, const void *mem, uint32_t len);
void bed_remote(const struct bed *bed, uint8_t *wqe, const void *mem);
/** Address of the WQE with that index. */
uint8_t *bed_at(const struct bed *bed, unsigned q, unsigned index);

/** Enables all WQEs that were written into the working queue. */
int bed_start(struct bed *bed);
/** Waits up to a second for CQE number @n. True if it came. */
bool bed_has_cqe(const struct rnic_cq *cq, unsigned n);
/** -EIO and @why in words if a queue has an error CQE; else 0. */
int bed_errors(struct bed *bed, char *why, size_t size);
/** Copies @words to @why and returns -EIO. */
int bed_failed(char *why, size_t size, const char *words);
void bed_sleep(unsigned ms);

#endif
