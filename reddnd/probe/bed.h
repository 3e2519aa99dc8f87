/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bed.h - private to probe: what checks share. Most have a bed: two managed queues, each connected to itself,
 * and memory for them. They write WQEs into the rings directly, so that they depend only on the encoding.
 */
#ifndef PROBE_BED_H
#define PROBE_BED_H

#include "reddnd/probe/probe.h"
#include "reddnd/rnic/qp.h"

enum { BED_WORK, BED_TARGET, BED_QUEUES };
enum {
	BED_MESSAGE = 4096,     /* bytes: what the target may send at once, if it is limited */
	BED_WQEBBS = 512,       /* of each queue */
	BED_CQES = 256,         /* of each CQ, which ignores overrun */
	BED_RECVS = 64,         /* of each queue */
	BED_RECV_SGES = 4,      /* of each of them */
	BED_GROUP = 16,         /* WQEBBs, 1 KiB: more than any device is supposed to fetch together */
	BED_MEMORY = 40960,     /* bytes */
	BED_PATIENCE_MS = 6000, /* after which it counts as not happening */
	BED_SETTLE_MS = 10,     /* after which nothing is expected to happen any more */
};

struct bed_attr {
	bool managed_recvs; /* the RQ of the target runs only as far as RECV_EN allows */
	bool limited;       /* the target may send BED_MESSAGE bytes at once */
	bool by_address;    /* the queues are connected by the address of the port */
};

struct bed {
	const struct probe *probe;
	void *arg; /* of bed_use() */
	struct master_qp *master;
	struct rnic_block block;
	struct rnic_cq cq[BED_QUEUES], recv_cq[BED_QUEUES];
	struct rnic_qp qp[BED_QUEUES];
	unsigned posted[BED_QUEUES]; /* WQEBBs */
	unsigned recvs[BED_QUEUES];
	uint8_t *memory; /* BED_MEMORY bytes, zeroed */
};

/**
 * Calls @run with a bed that it makes and destroys, and returns what it returns, or the error of making the
 * bed. @attr NULL: all false.
 */
int bed_use(const struct probe *probe, const struct bed_attr *attr, struct probe_result *result,
	int (*run)(struct bed *bed, struct probe_result *result), void *arg);

/** Starts the next WQE of a queue with its control segment; @flags: enum wqe_flag. The WQE must not cross the
 * end of the ring. */
uint8_t *bed_wqe(struct bed *bed, unsigned q, uint8_t opcode, uint8_t ds, uint8_t flags);
/**
 * Fills the queue up to a multiple of BED_GROUP with NOPs, of which the last has a CQE if @signalled. What is
 * written behind them is not fetched with what is before them, even by a device that fetches too far.
 */
void bed_pad(struct bed *bed, unsigned q, bool signalled);
/** Writes a WAIT, SEND_EN or RECV_EN into the working queue. */
void bed_sync(struct bed *bed, uint8_t opcode, uint8_t flags, uint32_t index, uint32_t object);
/** Writes a WQE of one data segment: READ, WRITE or NOP with a remote address. Returns it. */
uint8_t *bed_copy(struct bed *bed, unsigned q, uint8_t opcode, uint8_t flags, const void *remote, void *local,
	uint32_t len);
/** Writes a FETCH_ADD of @add to @word, with the old value to @old. */
void bed_add(struct bed *bed, unsigned q, uint8_t flags, uint64_t *word, uint64_t add, uint64_t *old);
/** Writes a CAS of @word. */
void bed_cas(struct bed *bed, unsigned q, uint8_t flags, uint64_t *word, uint64_t compare, uint64_t swap,
	uint64_t *old);
/** Starts the next RECV of a queue: returns its first data segment, all of which are unused. */
uint8_t *bed_recv(struct bed *bed, unsigned q);
/** Fill in a data segment, or a remote address segment, that names memory of the bed or a WQE in its
 * rings.
 */
void bed_sge(const struct bed *bed, uint8_t *at, const void *mem, uint32_t len);
void bed_remote(const struct bed *bed, uint8_t *wqe, const void *mem);
uint64_t bed_iova(const struct bed *bed, const void *mem);
/** Address of the WQE with that index. */
uint8_t *bed_at(const struct bed *bed, unsigned q, unsigned index);

/** Enables all WQEs that were written into the working queue; of queue @q, the first @index. */
int bed_start(struct bed *bed);
int bed_enable(struct bed *bed, unsigned q, unsigned index);
/** Waits up to BED_PATIENCE_MS for CQE number @n. True if it came. */
bool bed_has_cqe(const struct rnic_cq *cq, unsigned n);
/**
 * Waits for CQE number @n of @cq. 1: it came, and no queue has an error. 0: not so, with the words: @missing
 * if nothing but the CQE is missing.
 */
int bed_expect(const struct bed *bed, const struct rnic_cq *cq, unsigned n, const char *missing,
	struct probe_result *result);
/** 1: no queue has an error CQE. 0: one has, with the words. */
int bed_fine(const struct bed *bed, struct probe_result *result);
void bed_sleep(unsigned ms);

/* ---- the checks; each returns as probe_check.run does ---- */

struct probe {
	struct master_qp *master;
	struct load *load; /* NULL: none */
	const struct probe_visitors *visitors;
	bool thorough;
};

/** Trials of a check that wants @n: @n, or 100 times as many. */
static inline unsigned probe_trials(const struct probe *probe, unsigned n)
{
	return probe->thorough ? 100 * n : n;
}

/** Writes the words, and returns 0: the assumption does not hold. */
int probe_denies(struct probe_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Writes the words, and returns @error, a negative errno: it cannot be tried. */
int probe_cannot(struct probe_result *result, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/** Writes what was measured, and returns 1. */
int probe_measured(struct probe_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* With a bed */
int check_atomics(struct bed *bed, struct probe_result *result);
int check_chain(struct bed *bed, struct probe_result *result);
int check_smaller_enable(struct bed *bed, struct probe_result *result);
int check_doorbell(struct bed *bed, struct probe_result *result);
int check_flush(struct bed *bed, struct probe_result *result);
int check_fenced_write(struct bed *bed, struct probe_result *result);
int check_wqe_wrap(struct bed *bed, struct probe_result *result);
int check_cqe_wrap(struct bed *bed, struct probe_result *result);

/* Others */
int check_long_wqes(struct probe *probe, struct probe_result *result);
int check_timestamps(struct probe *probe, struct probe_result *result);
int check_waits(struct probe *probe, struct probe_result *result);
int check_flushed_recv(struct probe *probe, struct probe_result *result);
int check_recv_enable(struct probe *probe, struct probe_result *result);
int check_smaller_recv_enable(struct probe *probe, struct probe_result *result);
int check_fetch(struct probe *probe, struct probe_result *result);
int check_recv_fetch(struct probe *probe, struct probe_result *result);
int check_read_patch(struct probe *probe, struct probe_result *result);
int check_recv_patch(struct probe *probe, struct probe_result *result);
int check_awaited_read(struct probe *probe, struct probe_result *result);
int check_fenced_enable(struct probe *probe, struct probe_result *result);
int check_wqe_checks(struct probe *probe, struct probe_result *result);
int check_failing_read(struct probe *probe, struct probe_result *result);
int check_message_limit(struct probe *probe, struct probe_result *result);
int check_masked_atomics(struct probe *probe, struct probe_result *result);
int check_calc(struct probe *probe, struct probe_result *result);
int check_events(struct probe *probe, struct probe_result *result);
int check_forced_loopback(struct probe *probe, struct probe_result *result);
int check_own_address(struct probe *probe, struct probe_result *result);
int check_accepted(struct probe *probe, struct probe_result *result);
int check_memory_file(struct probe *probe, struct probe_result *result);
int check_huge_file(struct probe *probe, struct probe_result *result);
int check_disk_file(struct probe *probe, struct probe_result *result);

/* ---- work for the device beside a check: queue pairs that READ and WRITE through it, so that its units have
 * other queues to turn to and data arrive late (load.c) ---- */

enum { LOAD_QUEUES = 4 };

struct load {
	struct rnic_block block;
	struct rnic_cq cq[LOAD_QUEUES];
	struct rnic_qp qp[LOAD_QUEUES];
	unsigned batches[LOAD_QUEUES]; /* posted; each has a CQE at its begin and at its end */
};

/** 0 or a negative errno; load_deinit() in either case. */
int load_init(struct load *load, struct rnic_pd *pd, struct rnic_arena *arena);
void load_deinit(struct load *load);

/** Posts work on the queues that have none left. */
void load_feed(struct load *load);
/** The CQE, of load->cq[0], with which the work of the next load_feed() begins; if there is work left, one
 * that has been. */
uint32_t load_begin(const struct load *load);
/** True if a queue was still at work at the time of that CQE. */
bool load_covers(const struct load *load, const struct rnic_cqe *cqe);

#endif
