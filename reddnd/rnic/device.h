/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.h - one RDMA device: context, protection domains, doorbell page, events, and memory blocks for
 * queues.
 *
 * Any device has what verbs offer: queue pairs of plain.h. What else there is takes an mlx5 device with
 * direct commands (DEVX), and is used where the device runs chains: caps.h has the reason if not.
 *
 * Open it after privileges are settled and never fork after that: the kernel ties the device file to the
 * credentials of its opener (Linux drivers/infiniband/core/uverbs_main.c, ib_safe_file_access).
 *
 * Thread rules: one thread.
 */
#ifndef RNIC_DEVICE_H
#define RNIC_DEVICE_H

#include "reddnd/ledger/ledger.h"
#include "reddnd/rnic/arena.h"
#include "reddnd/rnic/caps.h"

struct rnic_device;
struct rnic_pd;

/** True if the machine has a device @name. */
bool rnic_device_exists(const char *name);
/**
 * Opens device @name, or when @name is empty the machine's only mlx5 device, or its only one, and logs its
 * capabilities. @ledger: where its objects are recorded, which go with the device file if it takes no direct
 * commands, so that only sessions are; NULL: nowhere. It must outlive the device.
 * -ENODEV when there is no such device. Errors have been logged.
 */
int rnic_device_open(struct rnic_device **dev, const char *name, struct ledger *ledger);
/** The same; -EOPNOTSUPP, which has been logged, when it runs no chains. */
int rnic_device_open_for_chains(struct rnic_device **dev, const char *name, struct ledger *ledger);
/**
 * Goes on with the device file @fd of a daemon before this one, which stays the caller's, and what @ledger,
 * which was inherited too, has of the device itself. After a sweep (sweep.h). Events of what it has come
 * again when that is taken over (rnic_block_adopt()). Errors as above.
 */
int rnic_device_import(struct rnic_device **dev, int fd, struct ledger *ledger);
void rnic_device_close(struct rnic_device *dev);

/** Gives it the watches of files (file-watch.h), which it takes, or -1: windows that are recorded have one
 * each. Before the first of them. */
void rnic_device_set_watches(struct rnic_device *dev, int watches);

/** NULL: it has none. */
struct ledger *rnic_device_ledger(const struct rnic_device *dev);
/** A slot of its ledger, or NULL if it has none for that kind. -ENOSPC: all are in use. */
int rnic_device_take_slot(struct rnic_device *dev, enum ledger_kind kind, struct ledger_slot **slot);
/** The slot is free; NULL is fine. */
void rnic_device_drop_slot(struct rnic_device *dev, struct ledger_slot *slot);

/** The device file, in which all objects are. Owned by the device. */
int rnic_device_fd(const struct rnic_device *dev);
const char *rnic_device_name(const struct rnic_device *dev);
const struct rnic_caps *rnic_device_caps(const struct rnic_device *dev);
/** True: its file can be handed on, with what is in it (rnic_device_import()). */
bool rnic_device_outlives(const struct rnic_device *dev);
/** @error of a call of this room is a shortage, of memory, descriptors or what firmware has, which may pass:
 * it does not show what a device can do. */
bool rnic_is_shortage(int error);
/** It is found to run no chains: @why, a clause. */
void rnic_device_deny_chains(struct rnic_device *dev, const char *why);
/** Notes what self-tests have observed. Call it before programs are compiled for the device. */
void rnic_device_set_observed(struct rnic_device *dev, const struct rnic_observed *observed);

/** The PD for objects that belong to no client in particular; owned by the device. */
struct rnic_pd *rnic_device_pd(struct rnic_device *dev);
/** Makes another PD, and records it in @slot (or NULL). Queues of one PD cannot use memory keys of another.
 * Errors have been logged. */
int rnic_pd_new(struct rnic_pd **pd, struct rnic_device *dev, struct ledger_slot *slot);
/** The PD that @slot, which was inherited, has. */
int rnic_pd_adopt(struct rnic_pd **pd, struct rnic_device *dev, struct ledger_slot *slot);
void rnic_pd_free(struct rnic_pd *pd); /* after all objects in it */
struct rnic_device *rnic_pd_device(const struct rnic_pd *pd);

/** Readable when rnic_device_next_event() has an event. Owned by the device. -1: it has none. */
int rnic_device_event_fd(const struct rnic_device *dev);
/** 1 and the @cookie that a queue was created with, 0 when there is none left, or a negative errno. */
int rnic_device_next_event(struct rnic_device *dev, uint64_t *cookie);

/** Readable when rnic_device_read_async() has an event. Owned by the device. */
int rnic_device_async_fd(const struct rnic_device *dev);
/** Reads and logs the asynchronous events of the device. 1 when the device is lost and no object of it works
 * any more, else 0. */
int rnic_device_read_async(struct rnic_device *dev);

/**
 * An extent of the arena that the device knows: queues are placed in it by offset, and the part
 * [code_off, code_off + code_size) has a memory key for local and loopback access (read, write, atomic).
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

/** @code_off: multiple of 64. -ENOSPC when the arena is full, -ENOMEM, or the error of the device.
 */
int rnic_block_init(struct rnic_block *block, struct rnic_pd *pd, struct rnic_arena *arena, uint64_t size,
	uint64_t code_off, uint64_t code_size);
/** The same, recorded in @slot (or NULL), as will be its queues. */
int rnic_block_init_in(struct ledger_slot *slot, struct rnic_block *block, struct rnic_pd *pd,
	struct rnic_arena *arena, uint64_t size, uint64_t code_off, uint64_t code_size);
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
