/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * block.h - memory blocks for queues.
 *
 * Thread rules: one thread.
 */
#ifndef RNIC_BLOCK_H
#define RNIC_BLOCK_H

#include "reddnd/rnic/arena.h"
#include "reddnd/rnic/device.h"

/**
 * An extent of the arena that the device knows: queues are placed in it by offset, and the part
 * [code_off, code_off + code_size) has a memory key.
 */
struct rnic_block {
	struct rnic_device *dev;
	struct rnic_pd *pd; /* of its queues and its key */
	struct rnic_arena *arena;
	struct ledger_slot *slot; /* where it and its queues are recorded; or NULL */
	uint64_t offset;          /* in the arena */
	uint64_t size;            /* bytes */
	uint8_t *mem;
	bool pinned;
	bool adopted;           /* queues that are made in it are there already */
	uint32_t umem, umem_id; /* handle, and what commands name it by */
	struct ibv_mr *mr;      /* NULL when code_size was 0 */
	uint64_t code_off;
	uint64_t iova; /* of mem + code_off */
	uint32_t lkey, rkey;
};

/** What the key is for: gathers and scatters; loopback READs, WRITEs and atomics, too. */
enum rnic_block_access { RNIC_BLOCK_LOCAL, RNIC_BLOCK_LOOPBACK };

/** @code_off: multiple of 64. The key is for loopback access. -ENOSPC when the arena is full, -ENOMEM, or the
 * error of the device. */
int rnic_block_init(struct rnic_block *block, struct rnic_pd *pd, struct rnic_arena *arena, uint64_t size,
	uint64_t code_off, uint64_t code_size);
/** The same, recorded in @slot (or NULL), as will be its queues, with a key for @access. */
int rnic_block_init_in(struct ledger_slot *slot, struct rnic_block *block, struct rnic_pd *pd,
	struct rnic_arena *arena, uint64_t size, uint64_t code_off, uint64_t code_size,
	enum rnic_block_access access);
/**
 * The same block, made by a daemon before this one and recorded in @slot, which was inherited. Queues that
 * are made in it later are not made but found in @slot: they have what their attributes say, or it is
 * -EBADMSG. They go on as they are, armed or not, and their events come to this process from now on.
 */
int rnic_block_adopt(struct ledger_slot *slot, struct rnic_block *block, struct rnic_pd *pd,
	struct rnic_arena *arena, uint64_t size, uint64_t code_off, uint64_t code_size);
/** Every queue in it must have been destroyed. Fine on a block that is all zero or already gone. */
void rnic_block_deinit(struct rnic_block *block);

#endif
