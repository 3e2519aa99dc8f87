/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * image.h - the compiled form of a program: the bytes of one *instance* of a chain (the WQEs that serve one
 * request) plus relocations. Pure data: no verbs, no device, no daemon.
 *
 * An instance spreads over one or more queues. Queue 0 is the REPLY queue: the managed SQ of the QP
 * the client is connected to. The others are CODE queues: managed SQs of loopback QPs. Every queue's ring
 * holds the same number of instances, one after the other, and a pad that fills the ring up to a power of two
 * WQEBBs; slot k of every ring always holds instance number k, k+slots, k+2*slots, ... Scratch memory is
 * `scratch_size` bytes per slot. There are at least two slots, see below.
 *
 * A request is one SEND of the client. It consumes the RECV of its slot, whose scatter list (`recv`)
 * puts the client's bytes into fields of the instance, and nowhere else. The CQE of that RECV, number
 * `seq` of the RECV CQ, starts the chain: the *head*, the first WQEBBs of a queue, waits for it and enables
 * the rest. A RECV that is flushed has a CQE as well. But it is flushed because the client's queue pair has
 * failed. If the head is in queue 0, it is flushed too, and nothing of the instance runs.
 *
 * In an image that *overlaps* the head is in a code queue, and enables the head of the next instance when the
 * request is there: instances are at work at the same time, each queue doing its part of one after that of
 * the other. There an instance may run for a RECV that was flushed. It reads, and changes its own memory; its
 * reply is flushed. So only a chain that changes nothing else may overlap.
 *
 * Arming = copying the image into the slot and applying the relocations for instance number `seq`, or, where
 * another instance was before, as much of both as has changed (see arm.h); after that, and only after that,
 * its RECV may be posted. The end of instance seq enables the
 * head of instance seq+1, so that one must be armed before the RECV of seq is posted: with N slots at most
 * N-1 RECVs are posted at a time.
 *
 * A *payload* is what a request has behind its arg_len bytes of arguments. Each instance is armed with an
 * *extent*, a part of region payload.region: arg_len bytes, a header that nobody but the server writes, and
 * behind them payload.max bytes, which are the last entry of the RECV's scatter list. So the value is in its
 * final place when it arrives, and the count of bytes in the RECV's CQE is the length of header and payload
 * together, which no client can make anything else. The message is bounded by the RECV: a longer one fails,
 * and nothing of the instance runs.
 *
 * A *locator* is a word of eight bytes that names a part of a region: its length as a be24, then its offset
 * as a be40. An extent leaves an instance only by the *publish*: one CAS that puts its locator into a word of
 * a region, in place of the word that the chain has read there. A publish without an extent puts a constant
 * there, the locator of a record that the program's author knows, such as a tombstone. What came of it is
 * found in the instance, before it is armed again: ring/publish.h.
 */
#ifndef CHAIN_IR_IMAGE_H
#define CHAIN_IR_IMAGE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* Where what a locator names begins is less than that */
#define CHAIN_MAX_OFFSET (UINT64_C(1) << 40)

enum {
	CHAIN_MAX_QUEUES = 8,
	CHAIN_MAX_RECV_SGE = 16,
	CHAIN_MAX_WINDOWS = 8,
	CHAIN_MAX_ARG = 2048,         /* bytes of a request, without its payload */
	CHAIN_MAX_LOCATED = 0xffffff, /* bytes that a locator can name */
	CHAIN_WQEBB = 64,             /* bytes */
	/* Words that are published are those of buckets of this size, and this byte of one has this value;
	 * no other byte of them has, and none of an offset that a server gives (protocol/table-format.h) */
	CHAIN_BUCKET = 16,
	CHAIN_BUCKET_TAG = 14,
	CHAIN_TAG = 0xa5,
};

/** What an address or key relocation refers to. */
enum chain_sym_kind {
	CHAIN_SYM_QUEUE,   /* this instance's WQEs in queue `index` */
	CHAIN_SYM_SCRATCH, /* this instance's scratch bytes; index unused */
	CHAIN_SYM_REGION,  /* region or window binding `index` of the program */
	CHAIN_SYM_SLOT,    /* the client's reply slot of this instance; index unused */
	CHAIN_SYM_CQE,     /* the CQE of this instance's RECV; index unused */
	CHAIN_SYM_EXTENT,  /* the extent that this instance is armed with; index unused */
};

enum chain_reloc_kind {
	CHAIN_REL_ADDR64,  /* BE64: address (IOVA) of the symbol + addend */
	CHAIN_REL_LKEY32,  /* BE32: key for local use of the symbol */
	CHAIN_REL_RKEY32,  /* BE32: key for remote use of the symbol; for SLOT the client's rkey */
	CHAIN_REL_QPN24,   /* BE24 of the BE32 at offset (low byte, DS, stays): QPN of queue `index` */
	CHAIN_REL_QPN32,   /* BE32: QPN of queue `index` (SEND_EN operand) */
	CHAIN_REL_CQN32,   /* BE32: CQN of the CQ of queue `index`; CHAIN_CQ_RECV for the RECV CQ */
	CHAIN_REL_INDEX16, /* BE16: WQE index of the WQEBB this field is in (ctrl segment) */
	CHAIN_REL_ENABLE,  /* BE32: producer index of queue `index` after `addend` WQEBBs of this instance;
			      addend may exceed the queue's WQEBBs per instance: the head of the next one,
			      the pad in between accounted for. The end of an instance of a code queue has
			      the pad with it: it runs when the last slot is over, and the request of the
			      first does not wait for it */
	CHAIN_REL_WAIT,    /* BE32: CQE number: seq * (CQEs per instance on that CQ) + addend, 24 bits.
			      index as in CQN32 */
	CHAIN_REL_SEQ32,   /* BE32: instance number seq + addend */
};

#define CHAIN_CQ_RECV 0xff

struct chain_reloc {
	uint8_t kind;  /* enum chain_reloc_kind */
	uint8_t where; /* queue whose image holds the field */
	uint8_t sym;   /* enum chain_sym_kind, for ADDR64, LKEY32, RKEY32; or 0 */
	uint8_t index;
	uint32_t offset; /* of the field in that queue's image, bytes */
	int64_t addend;
};

/** One range of bytes that the client's SEND fills, in message order. */
struct chain_recv_sge {
	uint8_t sym;   /* CHAIN_SYM_QUEUE or CHAIN_SYM_SCRATCH; CHAIN_SYM_EXTENT, the last one: the payload */
	uint8_t index; /* queue */
	uint32_t len;
	uint32_t offset;
};

struct chain_payload {
	uint32_t max; /* bytes; 0: there is none */
	uint8_t region;
};

struct chain_publish {
	bool there;
	bool extent; /* it puts the locator of the instance's extent there; else a constant */
	uint8_t region, queue;
	uint32_t offset; /* of its WQE in that queue's image; a NOP until the chain wants it, or always a CAS
			  */
	uint32_t was;    /* offset in scratch memory of the eight bytes that it found; all bits are set until
			    then */
	bool swapped;    /* in reverse order */
};

struct chain_queue {
	uint8_t *wqes;        /* image, wqebbs * 64 bytes */
	uint32_t wqebbs;      /* per instance */
	uint32_t head_wqebbs; /* leading WQEBBs that the previous instance enables; only of one queue */
	uint32_t cqes;        /* success CQEs per instance on this queue's send CQ */
	uint8_t *starts;      /* wqebbs bytes: 1 where a WQE begins */
	bool overlaps;        /* WQEs of several instances may be enabled at a time */
};

/** Bytes that an instance changes and that must be restored for the next one in its slot. */
struct chain_restore {
	uint8_t sym, index; /* as of chain_recv_sge */
	uint32_t offset, len;
};

/** The step of the program that the WQE at `wqebb` of a queue's image is. */
struct chain_label {
	uint8_t queue;
	uint32_t wqebb;
	char name[24];
};

struct chain_image {
	char name[32];
	unsigned nqueues;
	struct chain_queue queue[CHAIN_MAX_QUEUES];
	/* First those that stay in a slot, from again_reloc on those that every instance in it needs, and of
	 * these from index_reloc on those of INDEX16 */
	struct chain_reloc *relocs;
	unsigned nrelocs, again_reloc, index_reloc;
	struct chain_recv_sge recv[CHAIN_MAX_RECV_SGE];
	unsigned nrecv;
	uint32_t arg_len; /* bytes of a request, or of what is before its payload */
	struct chain_payload payload;
	struct chain_publish publish;
	uint8_t *scratch_init; /* scratch_size bytes */
	uint32_t scratch_size; /* per slot, multiple of 8 */
	unsigned nregions;     /* bindings the program needs (CHAIN_SYM_REGION indices) */
	/* The chain replaces that many low bits of addresses in a region: its IOVA must be a multiple of
	 * 2^bits */
	uint8_t region_bits[CHAIN_MAX_WINDOWS];
	struct chain_restore *restores;
	unsigned nrestores;
	struct chain_label *labels; /* by queue, then wqebb */
	unsigned nlabels;
	/* Work requests per instance by class, as the paper counts them; and NOPs that pad */
	unsigned n_copy, n_atomic, n_sync, n_pad;
	unsigned fetch_group; /* as of the description */
	unsigned pad_wqebbs;  /* of a NOP that pads a ring; 0: CHAIN_PAD_WQEBBS */
	/* READs and atomics a queue may have outstanding, at most */
	unsigned max_rd_atomic;
};

enum {
	CHAIN_MAX_RING = 32768, /* WQEBBs: half of what a 16-bit WQE index can tell apart */
	CHAIN_PAD_WQEBBS = 4,   /* of a NOP that pads; a device has send WQEs of 256 bytes at least */
	CHAIN_LONGEST_PAD =
		15, /* the same of any device: the DS field has 6 bits, and counts segments of 16 bytes */
};

/** The word that names @length bytes at @offset, as the host reads it: its bytes in memory are a be24 and a
 * be40, and the caller sees to it that the two fit. */
static inline uint64_t chain_locator(uint64_t offset, uint32_t length)
{
	assert(offset < CHAIN_MAX_OFFSET && length <= CHAIN_MAX_LOCATED);
	return __builtin_bswap64((uint64_t)length << 40 | offset);
}

static inline uint64_t chain_located_at(uint64_t locator)
{
	return __builtin_bswap64(locator) & (CHAIN_MAX_OFFSET - 1);
}

static inline uint32_t chain_located_bytes(uint64_t locator)
{
	return (uint32_t)(__builtin_bswap64(locator) >> 40);
}

/** WQEBB of the ring of queue @q at which its pad begins. */
static inline uint32_t chain_pad_at(const struct chain_image *img, unsigned q, unsigned slots)
{
	return img->queue[q].wqebbs * slots;
}

/** WQEBBs of the ring for @slots instances, pad included: a power of two; 0 if no ring can be that large. */
uint32_t chain_ring_wqebbs(const struct chain_queue *q, unsigned slots);

/** WQEBBs of the NOP of a pad of which @left WQEBBs are left: as many as can be. */
uint32_t chain_pad_nop(const struct chain_image *img, uint32_t left);

/** WQEs in such a ring, those of the pad included: the CQEs that it leaves when all of it is flushed, at
 * most. */
uint32_t chain_ring_wqes(const struct chain_queue *q, unsigned slots);

/** CQEs of what is enabled at a time in a ring of @ring WQEBBs, and is flushed if the first of it fails. */
uint32_t chain_ring_flushed(const struct chain_queue *q, unsigned slots, uint32_t ring);

/** CQEs of such a ring that may be unread, at most, if no more is flushed than was enabled: no instance is
 * armed again before its CQEs are read. */
uint32_t chain_ring_cqes(const struct chain_queue *q, unsigned slots);

/** Bytes that a relocation writes, from its offset on. */
unsigned chain_reloc_bytes(const struct chain_reloc *r);

/** Bytes of an RQ entry: a power of two >= 16. */
uint32_t chain_rq_stride(const struct chain_image *img);

/** Frees an image and all that it owns. NULL is fine. */
void chain_free(struct chain_image *img);

#endif
