/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chain-rig.h - one session of a chain on the emulated silicon, in one process: what the daemon does for a
 * client, and the client's queue pair, in one arena. Everything fails the test when it cannot do its work.
 */
#ifndef TESTS_CHAIN_CHAIN_RIG_H
#define TESTS_CHAIN_CHAIN_RIG_H

#include "reddnd/chain/ring/arm.h"
#include "reddnd/chain/ring/endless.h"
#include "reddnd/chain/ring/publish.h"
#include "reddnd/chain/ring/recycle.h"
#include "softcx/hw/test-rig.h"
#include "tests/lib/sanitized.h"

enum { CHAIN_RIG_DEPTH = 16, CHAIN_RIG_SLOTS = 32, CHAIN_RIG_KEYS = 24, CHAIN_RIG_ALL_RIGHTS = 15 };

/** Seeds to try: where every access is checked, fewer, for the same time. */
enum { CHAIN_RIG_SEEDS = SANITIZED ? 60 : 1000 };
enum { CHAIN_RIG_LONG = SANITIZED ? 4000 : 150000 /* requests, so that numbers of 16 bits wrap */ };

/** What sessions of a chain have in common that are alike in their slots and their first request. */
struct chain_rig_recycler {
	struct chain_recycle size;
	struct ring_image *image; /* NULL: not made yet */
};

struct chain_rig {
	struct rig rig;
	struct chain_image *img;
	struct chain_writer *writer;
	struct chain_env env;
	struct rig_cq request_cq, cq[CHAIN_MAX_QUEUES], client_scq, client_rcq, boot_cq;
	struct rig_qp queue[CHAIN_MAX_QUEUES], client, boot;
	uint32_t key[CHAIN_RIG_KEYS];
	unsigned nkeys;
	uint8_t *args;
	uint64_t armed, posted, sent, completed; /* counts of instances */
	uint64_t cqes;                           /* of queue 0 */
	uint64_t rng;
	bool recycled;
	struct chain_recycle recycling;
	struct chain_rig_recycler *shared; /* before chain_rig_start(); NULL: with none */
	struct rig_cq recycler_cq;
	struct rig_qp recycler;
	uint64_t looked, given; /* of a chain with a payload, recycled: instances for which .over was called;
				   sections that the recycler was given */
	bool no_sections;       /* it is for none, and the recycler gets no section */
	const struct chain_desc *loop; /* that the chain calls */
	const struct chain_loop_info *loop_info;
	const struct ring_image *loop_image;
	struct ring_values loop_values;
	struct rig_cq loop_cq, credit_cq;
	struct rig_qp loop_qp;
	/* Of a chain with a payload: the extents of the slots, and what is called when an instance is over,
	 * before its slot gets the extent that is in the array then */
	uint64_t extent[CHAIN_RIG_SLOTS];
	void (*over)(void *arg, uint64_t seq);
	void *over_arg;
};

/**
 * Opens the device for @img, which the rig then owns, with rings for @depth requests. Before
 * chain_rig_start() the test gives the regions their addresses and keys.
 */
void chain_rig_open(
	struct chain_rig *c, const struct hw_config *cfg, struct chain_image *img, unsigned depth);
/** Before chain_rig_start(): @slots instances that the NIC keeps going by itself. */
void chain_rig_recycle(struct chain_rig *c, unsigned slots);
/** As if @first requests, a multiple of the slots, had been answered already. */
void chain_rig_first(struct chain_rig *c, uint64_t first);
/**
 * Before chain_rig_start(): what it calls is @loop, whose ring is @image. The last region, of the @shared
 * bytes at @init, is the rig's; the others have their addresses and keys by now.
 */
void chain_rig_loop(struct chain_rig *c, const struct chain_desc *loop, const struct ring_image *image,
	const struct chain_loop_info *info, const uint8_t *init, uint32_t shared);
/** Before chain_rig_start(), of a chain with a payload: the region of its extents, which is @len bytes at @p.
 */
void chain_rig_extents(struct chain_rig *c, const void *p, uint64_t len);
/** What came of the publish of instance @seq, whose slot is not armed again. */
struct chain_outcome chain_rig_outcome(const struct chain_rig *c, uint64_t seq);
/** A key for memory of rig_alloc(), known to the NIC at @iova. */
uint32_t chain_rig_key(struct chain_rig *c, const void *p, uint64_t len, uint64_t iova, unsigned access);
/** Queues, the client with @count reply slots of @size bytes at @slots, everything armed and started. */
void chain_rig_start(struct chain_rig *c, uint8_t *slots, uint32_t size, uint32_t count);

/** Sends a request of @len bytes, for which a receive into @reply (NULL: no bytes) is posted. */
void chain_rig_send(struct chain_rig *c, const void *arg, uint32_t len, void *reply, uint32_t reply_len);

/**
 * What the daemon does off the path: arms what has completed, unless the chain is recycled. When a queue has
 * failed, false and the error in words, with the step it happened in.
 */
bool chain_rig_serve(struct chain_rig *c, char *why, size_t size);

/** From now on the choices of the silicon, and those of chain_rig_random(), are those of @seed. */
void chain_rig_seed(struct chain_rig *c, uint64_t seed);
uint64_t chain_rig_random(struct chain_rig *c, uint64_t below);
void chain_rig_fill(struct chain_rig *c, void *p, size_t n); /* with random bytes */

void chain_rig_close(struct chain_rig *c);

#endif
