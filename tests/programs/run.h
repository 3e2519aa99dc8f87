/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run.h - runs a program of conf/programs on the emulated silicon, in this process, and by the CPU
 * (reddnd/executor), beside a model of it in plain C: after every reply the client's slot, and in the end
 * every region, must be as in the model, of both.
 */
#ifndef TESTS_PROGRAMS_RUN_H
#define TESTS_PROGRAMS_RUN_H

#include "reddnd/program/program.h"
#include "tests/chain/chain-rig.h"
#include "tests/lib/sanitized.h"

enum { RUN_SETTINGS = 4, RUN_SLOT = 8192, RUN_PAYLOAD = 256 };
enum { RUN_SEEDS = SANITIZED ? 60 : 300 };

struct run;

/** A program with its parameters, and what it must do. */
struct run_offload {
	const char *name; /* of the row in tables */
	const char *file; /* in conf/programs, or an absolute path; or */
	const char *text; /* the program itself */
	struct program_setting settings[RUN_SETTINGS];
	bool no_masks;  /* a device without masked atomics */
	bool no_calc;   /* nor CALC */
	bool direct;    /* and no checks of index and QPN */
	bool swapped;   /* a device whose old values of atomics are big-endian */
	bool fenced;    /* a device that heeds the fence of a SEND_EN */
	bool no_groups; /* it is too long for NOPs between its steps */
	bool unrolled;  /* it changes control segments for good, and cannot be recycled */
	bool large;     /* its regions are, so that few clients do */
	unsigned depth; /* requests at a time, a power of two; 1 where they change what others read */
	bool meets;     /* requests come in the middle of others; none writes to its slot after its answer */
	uint32_t region_bytes[CHAIN_MAX_WINDOWS];
	/** Fills the regions. They are copied to the models afterwards. */
	void (*setup)(struct run *r);
	/** Sets the arguments of one request, does to the models and to @slot what it means. */
	void (*request)(struct run *r, uint8_t *slot);
	bool by_executor; /* .request only sets arguments: it means what the CPU makes of it, and a request
			     that fails there is the end */
};

enum { RUN_NOPS = CHAIN_CLASS_SYNC + 1 };

/** Work requests of one request: those that ran, and how many of them had become or stayed NOPs. */
struct run_counts {
	uint64_t requests, copy, atomic, sync, nops;
	uint64_t least, most;             /* that were no NOPs; with depth 1 only */
	uint64_t loop[RUN_NOPS + 1];      /* of a loop without a bound: by class, and NOPs */
	uint64_t laps, lap[RUN_NOPS + 1]; /* the same of whole laps of its ring */
};

struct run {
	struct profile device;
	struct chain_rig c;
	struct program *p;
	const struct run_offload *o;
	uint8_t *region[CHAIN_MAX_WINDOWS], *model[CHAIN_MAX_WINDOWS];
	uint8_t *slots, *slots_after;
	/* Beside the silicon the CPU does the same, on regions of its own (reddnd/executor) */
	struct executor *executor;
	struct in_parts *in_parts; /* and once more, in parts */
	uint8_t *executed[CHAIN_MAX_WINDOWS], *message_data;
	uint8_t arg[PROGRAM_MAX_ARGS][64]; /* big-endian, or bytes as they are */
	/* Behind the arguments, set by .request; it goes to the extent of the slot, which stays the same: the
	 * last bytes of the region of a payload are theirs */
	uint8_t payload[RUN_PAYLOAD];
	uint32_t payload_bytes;
	uint32_t lacks; /* bytes at the end of the arguments that are not sent, because they are 0 */
	uint64_t seed, answered, busy, busy_before;
	/** Of the requests that are not answered yet, what .request may set: what arrives if not a write_imm
	 * with the number of the request */
	struct run_answer {
		bool sends, has_imm;
		uint32_t imm;
	} * answer;
	uint8_t *inbox, *inbox_after; /* what `send` brings, RUN_SLOT bytes for each request at a time */
	bool enough; /* set by .request: no requests after those that were sent, this one included */
	struct run_counts n;
	uint64_t first_lap[RUN_NOPS + 1]; /* .loop when a lap was over for the first time */
	char why[400];
};

/** Chains that the NIC keeps going, in few slots; otherwise the rig arms them. */
extern bool run_recycled;
/** Requests may begin while those before them are at work, where run_compile() can do that. */
extern bool run_overlap;
/** The old values of atomics arrive big-endian, and run_compile() compiles for that. */
extern bool run_swapped;
/** WQEBBs that the device fetches together, and for which run_compile() compiles; 0: each by itself. */
extern unsigned run_fetch_group;
/** What run_program() makes for the first client of a program and takes for others; NULL: anew for each. */
extern struct chain_rig_recycler *run_shared;

/** Whether such a chain can be recycled. */
bool run_recycles(const struct chain_image *img);
/** The program as compiled, or a failed test with the compiler's message. To be freed with program_free(). */
struct program *run_compile(const struct run_offload *o);
/**
 * A client of @o, which has become @p: nothing has been sent yet. @slots: that many, recycled; 0: armed by
 * the rig. As if @first requests had been answered, a multiple of the slots.
 */
struct run *run_begin(
	const struct run_offload *o, struct program *p, uint64_t seed, unsigned slots, uint64_t first);
void run_end(struct run *r);
/** The request that r->arg makes, and its length. */
uint32_t run_wire(const struct run *r, uint8_t wire[CHAIN_MAX_ARG]);

/** Where in its region the payload of the next request goes, its header included. */
uint64_t run_extent(const struct run *r);
/** The next request. False: the CPU executes it otherwise, and r->why. It was sent unless r->enough is true.
 */
bool run_send(struct run *r);
/** The reply of @cqe is that of the next request, and is right, or false and r->why. */
bool run_take_reply(struct run *r, const uint8_t *cqe);
/** Notes @what is wrong with the request, unless something was before. False. */
bool run_wrong(struct run *r, const char *what);
/** Compares @n bytes of @what, or false and r->why. */
bool run_same(struct run *r, const uint8_t *is, const uint8_t *should, size_t n, const char *what);

/**
 * One client: @requests requests under each of @seeds seeds of the silicon, from @seed on. True, or false and
 * the reason in
 * @why. Adds to @counts, if that is not NULL.
 */
bool run_offload(const struct run_offload *o, uint64_t seed, unsigned seeds, unsigned requests,
	struct run_counts *counts, char why[400]);
/** The same of @o as compiled already: @p stays the caller's. */
bool run_program(const struct run_offload *o, struct program *p, uint64_t seed, unsigned seeds,
	unsigned requests, struct run_counts *counts, char why[400]);
/** Where the rest of the request's own is: .answer and .inbox_after of the one that .request makes. */
struct run_answer *run_answer(struct run *r);
uint8_t *run_inbox(struct run *r);

void run_no_setup(struct run *r);

#endif
