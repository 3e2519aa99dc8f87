/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arm.h - puts instances of a chain into the rings of one session. Memory writes only: no allocation, but of
 * a writer, no system call, no doorbell.
 *
 * Instance number seq lives in slot seq % slots of every ring; its lap is seq / slots. The ring index of
 * WQEBB w of slot k in lap l is l * ring_wqebbs + k * wqebbs + w, mod 2^16 (a WQE index counts WQEBBs
 * since RESET and is not masked to the ring).
 *
 * When may instance seq be armed? For seq < slots at any time before the first RECV is posted; later, when
 * instance seq - slots has completed, that is, the last CQE of its reply has been seen. When may the
 * RECV of seq be posted? When both seq and seq + 1 are armed. The caller issues the barrier between arming
 * and the doorbell.
 *
 * Not locked: one thread at a time per session. A writer is only read: any.
 */
#ifndef CHAIN_RING_ARM_H
#define CHAIN_RING_ARM_H

#include "reddnd/chain/ir/image.h"

#include <stdbool.h>

/** Where one session's rings, keys and numbers are. Addresses named iova are the NIC's, pointers are ours:
 * NULL where only sizes are asked for. */
struct chain_env {
	unsigned slots;            /* power of two >= 2, so that RQ entry k always belongs to slot k */
	uint32_t recv_cqn;         /* CQ of the client QP's RECVs: exactly one CQE per request */
	struct {                   /* by queue */
		uint32_t qpn, cqn; /* cqn: of the send CQ, which only queue 0 may share with others */
		uint64_t iova;     /* of the ring */
		uint32_t lkey, rkey;
		uint8_t *ring;        /* ring_wqebbs * 64 bytes */
		uint32_t ring_wqebbs; /* chain_ring_wqebbs() */
	} queue[CHAIN_MAX_QUEUES];
	struct {
		uint64_t iova; /* multiple of 8 */
		uint32_t lkey, rkey;
		uint8_t *mem; /* slots * scratch_size bytes */
	} scratch;
	/* Of a recycled chain (recycle.h): number of its first instance. 0, unless queues and CQs have come
	 * to a multiple of 65536 already; the CQ of the recycler has had as many CQEs */
	uint64_t first;
	struct {
		uint32_t qpn, cqn, lkey, ring_wqebbs;
		uint64_t iova;
		uint8_t *ring;
	} recycler;
	struct {
		uint64_t iova; /* multiple of 64 */
		uint32_t lkey, rkey;
		uint8_t *mem; /* size bytes; of recycled chains: lap.h */
		uint32_t size;
	} lanes;
	struct {
		uint64_t iova; /* multiple of 2^region_bits */
		uint32_t lkey, rkey;
	} region[CHAIN_MAX_WINDOWS];
	struct { /* the CQEs of recv_cqn, of a chain with a payload: as many as slots, so that the CQE of a
		    RECV stays until its slot is armed again */
		uint64_t iova;
		uint32_t rkey;
	} recv_cq;
	struct { /* of a chain with a payload: its region, by a key that RECVs may write with, and by slot
		    where in it the extent begins that the next instance there is armed with. Whoever gives an
		    extent to a slot gives it to no other, until it has looked what came of it (publish.h) */
		uint64_t iova;
		uint32_t lkey;
		const uint64_t *at;
	} extents;
	uint64_t slot_addr; /* the client's reply slots: of instance seq, number seq % slot_count */
	uint32_t slot_rkey, slot_size, slot_count;
	uint8_t *rq;        /* slots * rq_stride bytes */
	uint32_t rq_stride; /* chain_rq_stride() */
};

/**
 * What instances are written from: tables that a tight loop goes through. They have fields that are a base
 * plus a constant, and words of eight bytes of which some are restored. The bases (index of an instance in
 * each ring, CQE numbers, its reply slot) are few, and most go on by a constant from one instance to the
 * next.
 */
struct chain_writer;

/** @img must outlive it. -ENOMEM. */
int chain_writer_new(struct chain_writer **writer, const struct chain_image *img);
void chain_writer_free(struct chain_writer *writer); /* NULL is fine */

/**
 * Writes the instances from @from up to @to, exclusive, into their slots of every ring and into their
 * scratch. Slot 0 of lap l > 0 also brings the pad that precedes it, at the end of lap l - 1: the NOPs of the
 * lap before that have been executed by then, whereas the last slot may be armed again while the pad after it
 * still waits to be executed.
 */
void chain_arm(const struct chain_writer *writer, const struct chain_env *env, uint64_t from, uint64_t to);

/** The same where this memory has instance seq - slots of the same image and environment in the slot of each:
 * only what that has changed, and the numbers that go on. Not for the first lap. */
void chain_arm_again(
	const struct chain_writer *writer, const struct chain_env *env, uint64_t from, uint64_t to);

/** The extent of the next instance in @slot of a recycled chain with a payload: where its RECV and its
 * publish have it. The instance in the slot is over, and its section is not given yet. */
void chain_arm_extent(const struct chain_image *img, const struct chain_env *env, unsigned slot);

/** The NOPs behind the last slot of queue @q, for the end of lap @lap; chain_arm() does it when it is time.
 */
void chain_write_pad(const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t lap);

/** Writes the scatter list of RQ entry @slot. Once per session, because it never changes, except that of a
 * chain with a payload: after each arming of the slot, with the same extent, before its RECV is posted. */
void chain_format_recv(const struct chain_image *img, const struct chain_env *env, unsigned slot);

/**
 * The queue with the head, and the producer index that starts it when instance 0 is armed: the end of its
 * head. All other queues are started by queues of the chain.
 */
unsigned chain_start_queue(const struct chain_image *img);
uint16_t chain_start_index(const struct chain_image *img);

/** Producer index of queue @q after @wqebbs WQEBBs of instance @seq, as CHAIN_REL_ENABLE defines it. */
uint16_t chain_enable_index(const struct chain_image *img, const struct chain_env *env, unsigned q,
	uint64_t seq, uint32_t wqebbs);

/** Ring index behind instance @seq in queue @q, where the pad or the next instance begins. */
uint16_t chain_end_index(
	const struct chain_image *img, const struct chain_env *env, unsigned q, uint64_t seq);

/* ---- for other files of the room ---- */

/** Where an instance of a chain lies, and what its relocations are made from: worked out once for all of
 * them. */
struct chain_instance {
	const struct chain_image *img;
	const struct chain_env *env;
	unsigned slot;
	uint64_t lap;
	uint64_t seq, slot_addr;
	struct {
		uint64_t addr; /* IOVA of its first WQEBB */
		uint64_t at,
			next; /* ring index of that, and of the one of the next instance there, not reduced */
		uint8_t *wqes;
	} queue[CHAIN_MAX_QUEUES];
	uint64_t scratch;
	uint8_t *scratch_mem;
};

void chain_locate(
	struct chain_instance *in, const struct chain_image *img, const struct chain_env *env, uint64_t seq);

/** What a symbol has: 0 for a key that it is not used by. */
struct chain_symbol {
	uint64_t iova;
	uint32_t lkey, rkey;
};

/** @sym: enum chain_sym_kind. */
struct chain_symbol chain_symbol(const struct chain_instance *in, unsigned sym, unsigned index);

/** The CQE number, not reduced, that a WAIT of instance in->seq waits for with addend 0. @index: as of CQN32.
 */
uint64_t chain_cqe_number(const struct chain_instance *in, unsigned index);

/** Whether @wqebbs WQEBBs of an instance in queue @q reach through the pad: CHAIN_REL_ENABLE then counts from
 * the end of the instance on, at the next one. */
static inline bool chain_through_pad(const struct chain_queue *q, uint32_t wqebbs)
{
	return wqebbs > q->wqebbs || (wqebbs == q->wqebbs && !q->head_wqebbs);
}

#endif
