/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plain.h - RC queue pairs that send and receive, and nothing else: for sessions whose requests this process
 * executes. Each has a CQ of its own, and memory in the arena with a local key, where its messages are.
 *
 * Where the device takes direct commands (DEVX) queues and doorbell records are in the arena as well, which
 * outlives the process, and posting and polling are stores and loads. Elsewhere verbs make them, which every
 * RDMA NIC has.
 *
 * The client's SENDs arrive in RECVs of this memory; WRITEs and SENDs take their data from it.
 *
 * Thread rules: one thread; but RECVs may be posted by another than sends. Errors of functions that make
 * something have been logged.
 */
#ifndef RNIC_PLAIN_H
#define RNIC_PLAIN_H

#include "reddnd/rnic/arena.h"
#include "reddnd/rnic/device.h"

struct rnic_plain;
struct rnic_plain_events;

/** Where CQs report that there is something. */
int rnic_plain_events_new(struct rnic_plain_events **events, struct rnic_device *dev);
void rnic_plain_events_free(struct rnic_plain_events *events); /* after the queues; NULL is fine */
int rnic_plain_events_fd(const struct rnic_plain_events *events);
/** 1 and the @cookie of the queue; 0: there are none left; -errno. */
int rnic_plain_events_next(struct rnic_plain_events *events, uint64_t *cookie);

/** RECV number n has @bytes at n % @n * @stride of the memory. */
struct rnic_plain_recvs {
	uint32_t n; /* under way at a time, at most; a power of two */
	uint32_t stride, bytes;
};

struct rnic_plain_attr {
	uint64_t size; /* bytes of its memory */
	struct rnic_plain_recvs recvs;
	uint32_t sends; /* under way at a time, at most */
	uint64_t cookie;
	struct rnic_plain_events *events;
	struct ledger_slot *slot; /* where its objects are recorded; or NULL */
};

/** Bytes of the arena that it takes; with queues where @dev takes direct commands. */
uint64_t rnic_plain_bytes(const struct rnic_device *dev, const struct rnic_plain_attr *attr);
/** -ENOSPC when the arena is full, -ENOMEM, or the error of the device. */
int rnic_plain_new(struct rnic_plain **q, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr);
/** It executes nothing more, and what is posted is flushed. NULL is fine for this and the next. */
void rnic_plain_stop(struct rnic_plain *q);
void rnic_plain_free(struct rnic_plain *q);

uint32_t rnic_plain_qpn(const struct rnic_plain *q);
uint8_t *rnic_plain_memory(const struct rnic_plain *q);

enum { RNIC_PLAIN_BATCH = 32 };

/** Posts RECVs up to number @to. 0 or -errno. */
int rnic_plain_receive(struct rnic_plain *q, uint64_t to);

struct rnic_plain_send {
	uint8_t opcode; /* WQE_OP_WRITE, _WRITE_IMM, _SEND, _SEND_IMM */
	bool solicited;
	uint64_t off; /* of the data in the memory */
	uint32_t len;
	uint64_t more_off; /* of a second part of them */
	uint32_t more_len; /* 0: there is none */
	uint64_t remote;   /* of WRITE */
	uint32_t rkey, imm;
	uint32_t tag; /* comes back with its completion, if that is an error */
};

/** Adds to what rnic_plain_flush() posts; that may be posted before. 0 or -errno. */
int rnic_plain_send(struct rnic_plain *q, const struct rnic_plain_send *send);
/** Posts what was added. @number comes back with one completion when all of that is over. 0, also if nothing
 * was added, or -errno. */
int rnic_plain_flush(struct rnic_plain *q, uint32_t number);

struct rnic_plain_completion {
	bool receive;
	uint8_t syndrome; /* 0, or enum cqe_syndrome */
	uint8_t vendor;
	uint32_t tag;    /* of a send that failed */
	uint32_t number; /* of rnic_plain_flush() */
	uint32_t bytes;  /* received */
};

/** Takes up to RNIC_PLAIN_BATCH completions: their number, 0 when there are none; -errno. */
int rnic_plain_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH]);
/** One event at the next completion. One that came before raises none: poll once more. */
int rnic_plain_arm(struct rnic_plain *q);

#endif
