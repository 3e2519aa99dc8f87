/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * executor.h - runs a program on memory, by the CPU: one request at a time, and no device.
 *
 * It executes the same image that a NIC runs, work request by work request, patches of the chain to itself
 * included. So there is one meaning of a program, and what verifies it for the NIC verifies it here. Each
 * request begins with a fresh copy of the image (and of the ring of an endless loop), with instance number 0
 * in it.
 *
 * What the proofs promise is checked once more: every access is within the chain's own memory, a region, or
 * the reply slot; only a writable region is written; only the reply queue reaches the slot. What fails, fails
 * with the syndrome that a NIC would report.
 *
 * Aligned words of regions are read whole. Atomics on regions are atomics of the CPU, for other CPUs and for
 * devices whose atomics are coherent with them.
 *
 * Thread rules: one thread at a time per executor.
 */
#ifndef EXECUTOR_EXECUTOR_H
#define EXECUTOR_EXECUTOR_H

#include "reddnd/chain/ring/publish.h"
#include "reddnd/program/program.h"

struct executor;

struct executor_region {
	uint8_t *mem; /* a multiple of 8, as in the file. Words are read whole, the last one as well */
	uint64_t size;
	bool writable;
};

/** What a program runs on. */
struct executor_parts {
	struct executor_region region[CHAIN_MAX_WINDOWS]; /* by region of the program */
	uint32_t slot_size;                               /* bytes of the reply slot */
	uint32_t data_size; /* of the messages of a request: executor_bytes(), or less */
};

/** What is to be sent to the client, in this order. */
struct executor_message {
	uint8_t opcode;     /* WQE_OP_WRITE, _WRITE_IMM, _SEND, _SEND_IMM of mlx5/wqe.h */
	bool solicited;     /* the client's */
	uint32_t slot_at;   /* of WRITE: where in the slot */
	uint32_t imm;       /* as a number */
	uint32_t from, len; /* in the data */
	uint32_t wqebb;     /* of the image's reply queue: what sends it */
};

enum executor_result {
	EXECUTOR_DONE,
	EXECUTOR_MORE,  /* it has executed as much as it should; executor_run() goes on */
	EXECUTOR_FAULT, /* executor_fault() */
};

enum { EXECUTOR_LOOP = CHAIN_MAX_QUEUES /* in place of a queue: that of the loop */ };

enum { EXECUTOR_READS = 4 };

struct executor_fault {
	uint8_t queue;    /* of the program; or EXECUTOR_LOOP */
	uint32_t wqebb;   /* of the image, or of the loop's ring */
	uint8_t syndrome; /* enum cqe_syndrome; 0: nothing is left to run, and the chain is not over */
};

/** @p must outlive it. -ENOMEM. */
int executor_new(struct executor **x, const struct program *p, const struct executor_parts *parts);
void executor_free(struct executor *x); /* NULL is fine */

/** Bytes that the messages of one request have at most, each of them with its largest length. */
uint64_t executor_bytes(const struct program *p);

/** Messages of one request, at most. */
unsigned executor_max_messages(const struct program *p);

/** Begins with request @number, of p->image->arg_len bytes. @data: where the data of its messages are put,
 * data_size bytes. */
void executor_begin(struct executor *x, uint64_t number, const uint8_t *request, uint8_t *data);
/**
 * After executor_begin(), of a program with a payload: the message had @bytes in all, and what is behind its
 * arg_len arguments has been received into the extent at @extent of the payload's region, behind as many
 * bytes.
 */
void executor_payload(struct executor *x, uint64_t extent, uint32_t bytes);
/** Of a program that publishes, after the request (ring/publish.h). .place: bytes from the start of the
 * region, in the low 56 bits. */
struct chain_outcome executor_outcome(const struct executor *x);
/** Places in regions that @request, which has not begun, will read: their number, and @at. Those of which it
 * has the address itself; and those to which what is there leads now. So they can be fetched into the cache,
 * but nothing depends on them: what is there may be another thing when it is read, or not be read at all. */
unsigned executor_reads(const struct executor *x, const uint8_t *request, const uint8_t *at[EXECUTOR_READS]);
unsigned executor_reads_then(
	const struct executor *x, const uint8_t *request, const uint8_t *at[EXECUTOR_READS]);
/** Executes up to @wqes work requests. */
enum executor_result executor_run(struct executor *x, uint64_t wqes);

/** Work requests of the request so far, NOPs included. */
uint64_t executor_wqes(const struct executor *x);
/** Iterations of its endless loop in this request so far, half a lap of the ring at a time. */
uint64_t executor_iterations(const struct executor *x);
/** The reply queue of the request, as it is by now: one instance. */
const uint8_t *executor_replies(const struct executor *x);
/** The messages of the request so far. */
const struct executor_message *executor_messages(const struct executor *x, unsigned *n);
/** What was wrong. */
const struct executor_fault *executor_fault(const struct executor *x);

#endif
