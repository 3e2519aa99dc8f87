/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chain-rig.h - one session of a chain on the emulated silicon, in one process: what the daemon does for a client, and the
 * client's queue pair, in one arena. Everything fails the test when it cannot do its work.
 */
#ifndef TESTS_CHAIN_RIG_H
#define TESTS_CHAIN_RIG_H

#include "reddnd/chain/arm.h"
#include "softcx/hw/test-rig.h"

enum { CHAIN_RIG_DEPTH = 16, CHAIN_RIG_KEYS = 16, CHAIN_RIG_ALL_RIGHTS = 15 };

struct chain_rig {
	struct rig rig;
	struct chain_image *img;
	struct chain_env env;
	struct rig_cq request_cq, cq[CHAIN_MAX_QUEUES], client_scq, client_rcq, boot_cq;
	struct rig_qp queue[CHAIN_MAX_QUEUES], client, boot;
	uint32_t key[CHAIN_RIG_KEYS];
	unsigned nkeys;
	uint8_t *args;
	uint64_t armed, posted, sent, completed; /* counts of instances */
	uint64_t cqes;                           /* of queue 0 */
	uint64_t rng;
};

/**
 * Opens the device for @img, which the rig then owns, with rings for @depth requests. Before
 * chain_rig_start() the test gives the regions their addresses and keys.
 */
void chain_rig_open(
	struct chain_rig *c, const struct hw_config *cfg, struct chain_image *img, unsigned depth);
/** A key for memory of rig_alloc(), known to the NIC at @iova. */
uint32_t chain_rig_key(struct chain_rig *c, const void *p, uint64_t len, uint64_t iova, unsigned access);
/** Queues, the client with @count reply slots of @size bytes at @slots, everything armed and started. */
void chain_rig_start(struct chain_rig *c, uint8_t *slots, uint32_t size, uint32_t count);

/** Sends a request of @len bytes, for which a receive into @reply (NULL: no bytes) is posted. */
void chain_rig_send(struct chain_rig *c, const void *arg, uint32_t len, void *reply, uint32_t reply_len);

/**
 * What the daemon does off the path: arms what has completed. When a queue has failed, false and the
 * error in words, with the step it happened in.
 */
bool chain_rig_serve(struct chain_rig *c, char *why, size_t size);

uint64_t chain_rig_random(struct chain_rig *c, uint64_t below);
void chain_rig_fill(struct chain_rig *c, void *p, size_t n); /* with random bytes */

void chain_rig_close(struct chain_rig *c);

#endif
