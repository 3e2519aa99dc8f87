/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * internal.h - private to the executor: memory, work requests in prepared form, which one is next, and the
 * order that was learnt.
 */
#ifndef EXECUTOR_INTERNAL_H
#define EXECUTOR_INTERNAL_H

#include "mlx5/wqe.h"
#include "reddnd/chain/ir/image.h"
#include "reddnd/executor/executor.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* ---- the memory that an executor reaches: spaces, each with a key and addresses of its own, as windows of a
 * NIC have. Copies and atomics on it (op.c) ---- */

enum {
	MEMORY_OWN,  /* WQEs and scratch of the chain */
	MEMORY_SLOT, /* of the client: nothing is there */
	MEMORY_REGIONS,
	MEMORY_SPACES = MEMORY_REGIONS + CHAIN_MAX_WINDOWS,
};

struct memory_space {
	uint8_t *mem;
	uint64_t size;
	bool writable;
};

struct memory {
	struct memory_space space[MEMORY_SPACES];
};

/** Far apart, and multiples of 2^56: an offset of up to 7 bytes that is patched into an address stays in its
 * space, or is beyond the end of it. */
static inline uint64_t memory_address(unsigned space)
{
	return (uint64_t)(space + 1) << 56;
}

static inline uint32_t memory_key(unsigned space)
{
	return 0xc0de0000u + space;
}

/** True if @key is that of @space, and [@addr, @addr + @len) is in it. */
static inline bool memory_has(
	const struct memory *m, unsigned space, uint32_t key, uint64_t addr, uint64_t len)
{
	uint64_t at = addr - memory_address(space), size = m->space[space].size;

	return key == memory_key(space) && at <= size && len <= size - at;
}

/** Where that is, in whatever space has the key; NULL: nowhere, or not to be written. Nothing is in the slot.
 */
static inline uint8_t *memory_at(
	const struct memory *m, uint32_t key, uint64_t addr, uint64_t len, bool writes)
{
	unsigned space = key - memory_key(0);

	if (space >= MEMORY_SPACES || space == MEMORY_SLOT || !memory_has(m, space, key, addr, len))
		return NULL;
	if (writes && !m->space[space].writable)
		return NULL;
	return m->space[space].mem + (addr - memory_address(space));
}

static inline bool memory_is_aligned(const void *p)
{
	return (uintptr_t)p % sizeof(uint64_t) == 0;
}

/** As memmove(), but words are read as one, also where only a part of one is wanted, and written as one if
 * they are aligned there too. All of the word must be there. */
void memory_copy(uint8_t *to, const uint8_t *from, size_t len);

/** True if @p, which is somewhere, is in the chain's own memory. */
static inline bool memory_is_own(const struct memory *m, const uint8_t *p)
{
	const struct memory_space *own = &m->space[MEMORY_OWN];

	return (uintptr_t)p - (uintptr_t)own->mem < own->size;
}

/** As memcpy(), of less than 8 bytes. */
static inline void memory_copy_part(uint8_t *to, const uint8_t *from, size_t len)
{
	uint32_t head, tail;

	if (len >= sizeof(head)) {
		memcpy(&head, from, sizeof(head));
		memcpy(&tail, from + len - sizeof(tail), sizeof(tail));
		memcpy(to, &head, sizeof(head));
		memcpy(to + len - sizeof(tail), &tail, sizeof(tail));
	} else if (len) {
		to[0] = from[0];
		to[len / 2] = from[len / 2];
		to[len - 1] = from[len - 1];
	}
}

/** As memory_copy() of few bytes to where nobody else is: returns where they are, in @to, which has room for
 * two words more. */
static inline const uint8_t *memory_read(uint64_t *to, const uint8_t *from, size_t len)
{
	const size_t off = (uintptr_t)from % sizeof(*to);
	const uint64_t *word = (const uint64_t *)(const void *)(from - off);

	for (size_t i = 0; i * sizeof(*to) < off + len; i++)
		to[i] = __atomic_load_n(word + i, __ATOMIC_ACQUIRE);
	return (const uint8_t *)to + off;
}

/* Acquire: a READ comes before what the chain does after it, as behind the fence of a NIC */
static inline uint64_t memory_load(const uint8_t *aligned)
{
	return __atomic_load_n((const uint64_t *)(const void *)aligned, __ATOMIC_ACQUIRE);
}

static inline void memory_store(uint8_t *aligned, uint64_t word)
{
	__atomic_store_n((uint64_t *)(void *)aligned, word, __ATOMIC_RELEASE);
}

/** As memory_copy() of aligned words that do not overlap. Unrolled by hand, as compilers leave atomics alone.
 */
static inline void memory_copy_words(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t i = 0;

	for (; i + 32 <= len; i += 32) {
		uint64_t a = memory_load(from + i), b = memory_load(from + i + 8),
			 c = memory_load(from + i + 16), d = memory_load(from + i + 24);

		memory_store(to + i, a);
		memory_store(to + i + 8, b);
		memory_store(to + i + 16, c);
		memory_store(to + i + 24, d);
	}
	for (; i < len; i += sizeof(uint64_t))
		memory_store(to + i, memory_load(from + i));
}

/* Atomics of 8 bytes at an aligned place; they return the old value */
uint64_t memory_swap(
	uint8_t *target, uint64_t swap, uint64_t compare, uint64_t swap_mask, uint64_t compare_mask);
/** Adds fields of a word each by itself: a bit of @boundary ends a field. */
uint64_t memory_add(uint8_t *target, uint64_t add, uint64_t boundary);

/* ---- a work request in prepared form: what its WQE means, found out once. Places that nothing ever writes
 * are pointers then; places that the request or the chain fills in are looked up each time. Which bytes of
 * the WQEs are written is learned: from the request's places, and before a work request writes any others.
 * What was prepared without knowing that is prepared anew (op.c) ---- */

/** A data segment. */
struct op_segment {
	uint8_t *mem; /* NULL: the WQE has to be asked */
	uint32_t len;
};

struct op;
struct op_state;
typedef bool op_run(struct op_state *s, const struct op *op);

struct op {
	uint64_t control;   /* the first 8 bytes of the WQE for which this was prepared; 0: it was not */
	const uint8_t *wqe; /* where it is, or a copy */
	uint8_t *remote;    /* NULL: the WQE has to be asked */
	uint64_t bytes;     /* of all segments, if .sized */
	op_run *run;
	bool sized;
	bool overlaps;  /* it writes to its own WQE, and is executed from a copy */
	bool in_slot;   /* a message of which place and length stay, and are right */
	bool settled;   /* small READ: its data segments stay, in own memory; atomic: all places */
	uint8_t opcode; /* that it has, or may have */
	uint8_t queue, at, nsegments; /* at: of the first segment in the WQE */
	uint8_t room;                 /* for segments */
	uint32_t wqebb;
	struct op_segment *segment;
};

/* of a byte of code: it is written; it must never be; each request begins by writing it */
enum { OP_WRITTEN = 1, OP_FIXED = 2, OP_GIVEN = 4 };

/** What work requests work on. */
struct op_state {
	struct memory memory;
	uint8_t *own; /* rings of the queues of the image, then the rest; code bytes of it are such rings */
	uint64_t code;
	uint8_t *marks; /* of each byte of code */
	struct op *ops; /* by WQEBB of code */
	bool learned;   /* something since this was false */
	bool swapped_old;
	uint8_t syndrome; /* of what failed */
	uint8_t *data;
	uint32_t data_size, data_used;
	struct executor_message *messages;
	unsigned nmessages, max_messages;
};

/** Segments that a WQE of so many WQEBBs has at most. */
enum { OP_SEGMENTS = WQE_BB / WQE_DS };
/** A READ of that many bytes is whole before its data are scattered, as one on the wire is. */
enum { OP_WHOLE = 64 };

/** Prepares @op as a work request with that opcode, which its WQE may have later. */
void op_prepare(struct op_state *s, struct op *op, uint8_t opcode);
/** Bytes of the code that are written from now on. False: one of them must not be, and none is learned. */
bool op_learn(struct op_state *s, uint64_t at, uint64_t len);
/** True if one of these bytes is. */
bool op_is_written(const struct op_state *s, const uint8_t *field, unsigned len);
/** Executes any but WAIT and SEND_EN. False: s->syndrome. */
bool op_execute(struct op_state *s, struct op *op);
/** The same of @n in a row. Returns how many were executed before one failed. */
unsigned op_execute_row(struct op_state *s, struct op *const *ops, unsigned n);
/** The same of the work request at that place as it is in the copy @wqe, unprepared; no NOP. */
bool op_execute_copy(struct op_state *s, const struct op *op, const uint8_t *wqe);

static inline unsigned op_ds(const uint8_t *wqe)
{
	return wqe[WQE_DSCOUNT] & WQE_MAX_DS;
}

/*
 * The work requests of a request in their order, as straight steps. A step knows of its work request what no
 * request changes: pointers, masks, the bounds that a place must keep. What the request or the chain fills in
 * is read from the WQE and checked, as op.c does, with the same syndromes. A work request of a rarer kind is
 * executed by op.c.
 *
 * A trace is right as long as nothing new is learned about what is written (op.c). Private to the executor.
 */

struct trace_step;
/** Executes @t, and then the next ones: as the last thing that it does, which compilers make a jump. Returns
 * the step that fails, with a syndrome in @s; else the one to go on with, as the rest does not hold any more
 * or is at its end. */
typedef const struct trace_step *trace_run(struct op_state *s, const struct trace_step *t);

/** Bytes of a word that is read, which become bytes of a word of the chain's own memory. */
struct trace_part {
	uint8_t *to; /* that word, aligned */
	uint64_t mask;
	uint8_t left; /* bits to rotate the word that is read */
	bool last;    /* of that word */
	uint8_t word;
};

struct trace_step {
	trace_run *run;
	struct op *op;
	unsigned number;  /* of that in the order. A READ of single bytes is a step for each */
	uint64_t control; /* of the WQE, if this is to be done */
	trace_run *then;  /* what that is */
	const uint8_t *wqe;
	/* a place that the WQE names: where its address is, the first and the last one that are right, and
	 * what is there */
	const uint8_t *address;
	uint64_t first, last;
	uint8_t *mem;
	const uint8_t *from; /* places that stay */
	uint8_t *to;
	uint32_t len;
	union {
		struct { /* of a READ of few bytes */
			const struct trace_part *part, *end;
			uint32_t nwords;
		};
		struct { /* of a compare-and-swap in own memory; .swap is masked */
			uint64_t swap, swap_mask, compare_mask;
		};
		struct { /* of a message */
			struct executor_message message;
			uint64_t room; /* in the slot */
		};
	};
};

struct trace {
	struct trace_step *step;
	unsigned nsteps, step_room; /* the end is one more */
	struct trace_part *part;
	unsigned nparts, part_room;
};

/** Room for @n work requests. -ENOMEM. */
int trace_init(struct trace *t, unsigned n);
void trace_deinit(struct trace *t);

/** Makes steps of @n work requests, whose WQEs are as in the image. */
void trace_make(struct trace *t, struct op_state *s, struct op *const *ops, unsigned n);
/** True: @t reads words whose place the WQE names, at .address. */
bool trace_reads_found(const struct trace_step *t);
/** True: @t, if it does anything, sends such bytes. */
bool trace_sends_found(const struct trace_step *t);
/** Gives back the room that trace_make() has not used. What is made later has no more; a work request that
 * needs more is executed by other means. True: it must be made again now. */
bool trace_shrink(struct trace *t);

/** Executes all. s->syndrome is 0. Returns how many were executed until one failed, with a syndrome, or
 * something was learned, without. */
static inline unsigned trace_execute(const struct trace *t, struct op_state *s)
{
	return t->step->run(s, t->step)->number;
}

/*
 * The queues of a request, and the order in which their work requests are executed.
 *
 * Queues run one after the other, each as far as it gets: of what a NIC may do, this is one way. Where no
 * request changes what decides about it (WAITs and SEND_ENs, lengths of WQEs, who has CQEs), the order is the
 * same for all requests, and found once; then WAITs and SEND_ENs have nothing left to do.
 */

/* Numbers of queue pairs and CQs: that of the queue, that of the CQ of RECVs, and of one that has all the
 * CQEs that a loop may wait for as credits */
enum { SCHEDULE_QUEUES = EXECUTOR_LOOP + 1, SCHEDULE_RECVS = SCHEDULE_QUEUES, SCHEDULE_CREDITS };

struct schedule_queue {
	uint8_t *ring;
	struct op *ops;    /* by WQEBB; NULL: of a loop */
	uint32_t wqebbs;   /* of it; 0: there is none */
	uint64_t at, upto; /* WQEBBs executed, enabled */
	uint32_t cqes;
};

struct schedule {
	struct op_state s;
	struct schedule_queue queue[SCHEDULE_QUEUES];
	unsigned nused; /* queues that there are, in the order in which they run */
	uint8_t used[SCHEDULE_QUEUES];
	unsigned turn; /* of these, the one that runs: a pause changes no order */
	unsigned start_queue;
	uint32_t start, loop_start; /* enabled at the beginning, of that queue and of the loop */
	uint64_t wqes;              /* of the request so far */
	struct executor_fault fault;
	/* the order of all requests, without what has nothing to do; .norder 0: there is none */
	struct op **order;
	unsigned norder, next;
	struct trace trace; /* of that order */
	uint64_t all;       /* work requests of a request */
	bool finding;
};

/** Finds the order, if there is one. What is written has been learned. @order: room for all work requests.
 * -ENOMEM. */
int schedule_find(struct schedule *c, struct op **order);
/** Makes the trace of the order, if there is one. The WQEs are as in the image. */
void schedule_trace(struct schedule *c);
/** After that: gives back memory that the trace does not need. */
void schedule_shrink(struct schedule *c);
/** A request begins. */
void schedule_begin(struct schedule *c);
/** Executes up to @wqes work requests. */
enum executor_result schedule_run(struct schedule *c, uint64_t wqes);

#endif
