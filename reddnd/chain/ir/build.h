/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * build.h - a chain described as data, and the builder that turns it into an image.
 *
 * A description lists queues, steps (one work request each, in the order of their queue), words of scratch
 * memory and the places a request's bytes go to. Ordering is explicit: fences, WAITs for a step, SEND_ENs
 * through a step. The builder derives indices, counts, keys and addresses.
 *
 * The builder refuses a description that
 *   - names a label, field, word, region or queue that does not exist, or reaches beyond its bytes;
 *   - patches a head or a key, or lets a request reach more than operands, scratch and the low bytes of an
 * address in a region;
 *   - makes the NIC read from a client, or lets a code queue send or write to a client;
 *   - waits for a step of queue 0, whose send CQ may be shared with other sessions;
 *   - contains a step that can never run, an enable that enables nothing, or no enable of the next head;
 *   - begins anywhere but at one head, with a WAIT for the request;
 *   - has its head in a queue of code, and changes anything but its own memory and the client's, calls a
 * loop, or enables a queue from two others. See image.h;
 *   - publishes twice, by anything but a CAS of a word of a region that leaves the old word in scratch
 * memory, or calls a loop as well; has a payload that it does not publish, or one in a region that it may
 * write to.
 *
 * It does not prove that a patch lands before the patched WQE is fetched: see order.h.
 */
#ifndef CHAIN_IR_BUILD_H
#define CHAIN_IR_BUILD_H

#include "reddnd/chain/ir/error.h"
#include "reddnd/chain/ir/image.h"
#include "reddnd/chain/ir/stored.h"
#include "reddnd/chain/ir/verbs.h"

enum {
	CHAIN_MAX_STEPS = 512,
	CHAIN_MAX_SGE = 30, /* max_send_sge of ConnectX NICs */
	CHAIN_MAX_WORDS = 512,
	CHAIN_MAX_SCRATCH = 32768, /* bytes per instance */
	CHAIN_MAX_GROUP = 16,      /* WQEBBs that are fetched together */
	/* Bytes that a NIC has read before it writes the first of them: the smallest path MTU */
	CHAIN_PACKET = 256,
};

/** Bytes somewhere: what a step reads or writes, or where bytes of a request go. */
enum chain_place_kind {
	CHAIN_AT_NONE,
	CHAIN_AT_REGION,  /* `index`: the region; `from`: bytes from its start */
	CHAIN_AT_SLOT,    /* the client's reply slot; `from` */
	CHAIN_AT_SCRATCH, /* `name`: a word; `from`: bytes into it; may go on into the next word */
	CHAIN_AT_FIELD,   /* `name`: label of a step; `field`, and `sge` for local.*; `from`: bytes into it */
	CHAIN_AT_LENGTH,  /* the count of the request's bytes in the CQE of its RECV, 4 bytes, big-endian;
			     `from`;  only a READ of code takes it, and only in a chain with a payload */
};

struct chain_place {
	uint8_t kind;
	uint8_t index;
	const char *name;
	uint8_t field; /* enum chain_field */
	uint8_t sge;
	uint32_t from;
	uint32_t len;   /* bytes; of a remote place: ignored, the data segments give it */
	uint32_t max;   /* of a data segment whose length the chain replaces: that length at most; else 0 */
	uint32_t least; /* and at least, which a region's writer has to keep; 0: a condition sees to it */
	/* Of a length that a READ brings: the step that has it is executed only if this READ has found the
	 * tag of the bucket that begins with these bytes. The proof cannot check that, and
	 * program/front/bucket.c is responsible */
	bool in_bucket;
	unsigned line; /* of an argument: line of the source, 0: none */
};

enum chain_step_flag {
	CHAIN_DORMANT = 1 << 0,   /* posted as a NOP; the chain may give it its opcode */
	CHAIN_FENCE = 1 << 1,     /* starts after the READs and atomics before it in its queue completed */
	CHAIN_SIGNALLED = 1 << 2, /* one CQE on its queue's CQ, dormant or not */
	CHAIN_IMM_SEQ = 1 << 3,   /* imm = instance number, not .imm */
	/*
	 * The step copies lanes to opcodes: each lane is 0 or the opcode of its step. The proof cannot check
	 * that, because lanes share a word with bytes that a client or a region chooses: masked atomics
	 * decide by a carry, or by a byte that no value reaches, which opcodes replace the lanes, and the
	 * proof knows each byte only by itself. Whoever sets this flag is responsible: lower/cond-bytes.c
	 * gives every lane, in the word and in each swap operand, 0 or the opcode of its step.
	 */
	CHAIN_LANES = 1 << 4,
	CHAIN_CALL = 1 << 5, /* a NOP before or after a run of desc.loop: the order treats it as doing what
				the loop may do */
	CHAIN_AHEAD =
		1 << 6, /* a step of the reply that derive.h enables before the steps after it are over */
};

enum chain_upto {
	CHAIN_UPTO_STEP,      /* the step named `through` */
	CHAIN_UPTO_END,       /* the queue's last step */
	CHAIN_UPTO_NEXT_HEAD, /* that, and the head of the next instance */
};

struct chain_step {
	const char *label; /* unique; NULL if nothing refers to the step */
	uint8_t queue;
	uint8_t verb; /* enum chain_verb, no RECV_EN; a dormant step: what it may become */
	uint8_t flags;
	struct chain_place remote;
	struct chain_place local[CHAIN_MAX_SGE];         /* up to the first CHAIN_AT_NONE; len > 0.
							    An atomic without one drops the old value */
	uint64_t swap, compare, swap_mask, compare_mask; /* as numbers: the NIC's host is little-endian */
	uint64_t add, boundary;
	uint32_t imm;
	const char *until;   /* WAIT: for the CQE of that step; NULL: for the request */
	uint8_t target;      /* SEND_EN: queue */
	uint8_t upto;        /* SEND_EN: enum chain_upto */
	const char *through; /* SEND_EN */
	uint8_t pad;         /* a NOP that only fills the ring: WQEBBs it takes; else 0 */
	bool publishes;      /* a CAS: see image.h */
	bool extent;     /* and its swap operand is the locator of the extent, whose length is 0 until a READ
			    brings it */
	uint8_t located; /* if not, it is that of a part of this region */
	bool in_bucket;  /* executed only if the READ that has brought what it compares has found the tag of
			    that bucket: as of chain_place */
	unsigned line;   /* of the source, for messages; 0: none */
	const char *why; /* one sentence if the step was derived: what needs it; else NULL */
};

struct chain_word {
	const char *name;
	uint16_t size;       /* bytes; words follow each other, each at a multiple of 8 */
	const uint8_t *init; /* size bytes, or NULL: zero */
};

struct chain_queue_desc {
	const char *name;
	uint8_t head; /* leading steps that the previous instance enables; only of one queue */
};

enum chain_region_flag {
	CHAIN_WRITABLE = 1 << 0, /* the chain may write to it */
	CHAIN_STEERED = 1 << 1,  /* and bytes of a request may choose any place in it */
};

/** What the program declares of a region. */
struct chain_region {
	const char *name;
	uint64_t size; /* bytes it has at least; 0: what the places with constant addresses need */
	uint8_t flags; /* enum chain_region_flag */
	struct chain_stored stored; /* by other programs */
	unsigned line;
};

struct chain_desc {
	const char *name;
	const struct chain_queue_desc *queues;
	unsigned nqueues;
	const struct chain_word *words;
	unsigned nwords;
	unsigned nregions;
	const struct chain_region
		*regions;    /* nregions of them; NULL: no sizes are declared, and none is writable */
	uint32_t slot_size;  /* bytes of the reply slot; 0: what the replies need */
	bool ignores_index;  /* the device checks neither index nor QPN of a WQE, so that these may hold
				operands */
	bool fenced_enables; /* on this device a SEND_EN heeds a fence as other WQEs do */
	bool swapped_old;    /* on this device the old value of an atomic arrives with its bytes in reverse
				order */
	/* An instance may begin while the one before it is at work: derive.h then puts the head into a queue
	 * of code, where that is allowed */
	bool overlap;
	/* WQEBBs of a managed queue that the device fetches together, past the enabled index too: a power of
	 * two, CHAIN_MAX_GROUP at most; 0 as 1. What derive.h makes then has NOPs that fill the groups */
	uint16_t fetch_group;
	uint8_t pad_wqebbs; /* of a NOP that pads a ring: what the device takes, CHAIN_LONGEST_PAD at most; 0:
			       CHAIN_PAD_WQEBBS */
	const struct chain_step *steps;
	unsigned nsteps;
	const struct chain_place *args; /* in message order; kind SCRATCH or FIELD */
	unsigned nargs;
	struct chain_payload payload;  /* .max 0: there is none */
	const struct chain_desc *loop; /* an endless loop that it calls (endless.h), or NULL */
	uint8_t shared;                /* with a loop: the region, last of regions[], that the two share, */
	const uint8_t *shared_init;    /* and its bytes before the first request */
};

/**
 * Builds @d. 0 and an image that the caller frees with chain_free(); CHAIN_REFUSED and the reason in
 * @err; -ENOMEM. Leaves *@img alone unless it returns 0.
 */
int chain_build(const struct chain_desc *d, struct chain_image **img, struct chain_error *err);

/** Writes the operands of an atomic into its WQE; of another verb: nothing. */
void chain_put_operands(uint8_t *wqe, const struct chain_step *st);

/** The step of @d with that label; d->nsteps: there is none. */
unsigned chain_step_named(const struct chain_desc *d, const char *label);

/** Bytes of all data segments of @st, each with its largest length. */
uint64_t chain_step_most(const struct chain_step *st);

#endif
