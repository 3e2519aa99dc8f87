/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device.h - one RDMA device: context, capabilities, doorbell page and events.
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
/** Readable when rnic_device_next_event() has an event. Owned by the device. -1: it has none. */
int rnic_device_event_fd(const struct rnic_device *dev);
/** 1 and the @cookie that a queue was created with, 0 when there is none left, or a negative errno. */
int rnic_device_next_event(struct rnic_device *dev, uint64_t *cookie);

/** Readable when rnic_device_read_async() has an event. Owned by the device. */
int rnic_device_async_fd(const struct rnic_device *dev);
/** Reads and logs the asynchronous events of the device. 1 when the device is lost and no object of it works
 * any more, else 0. */
int rnic_device_read_async(struct rnic_device *dev);
/** Its events have ended, which shows it too: it is lost from now on. */
void rnic_device_lose(struct rnic_device *dev);
/** True after either. */
bool rnic_device_is_lost(const struct rnic_device *dev);

/*
 * The time between two timestamps of CQEs. A device writes ticks of a free-running clock, whose frequency it
 * reports, or seconds << 32 | nanoseconds of a real-time clock, as it is set (PRM: CQE, timestamp; Linux
 * mlx5_real_time_cyc2time()).
 */

/** True: @stamp, which the device has just written, is of a real-time clock. It may be a day wrong. */
bool rnic_stamp_is_real_time(uint64_t stamp);

/** Nanoseconds from @from to @to, which @dev has written, the later one now. False: the device does not
 * report its clock, or @to is earlier. */
bool rnic_stamps_between(struct rnic_device *dev, uint64_t from, uint64_t to, uint64_t *ns);

/** The same of a clock that is known, @to not being earlier. @khz: 0 if it is a real-time clock. */
uint64_t rnic_stamps_of_clock(uint64_t khz, uint64_t from, uint64_t to);

/* Which device this is, for people and bug reports. */

struct rnic_identity {
	uint32_t vendor, part;
	const char *model;  /* "ConnectX-5", by the part; "unknown" */
	char firmware[64];  /* "16.35.4030" */
	char board[64];     /* PSID; "" if the kernel does not report it */
	const char *state;  /* of the port: "active", and others of ibv_port_state_str() */
	unsigned mtu;       /* bytes */
	unsigned long gids; /* of the port */
	char address[46];   /* IP address of a GID of RoCE v2, not a link-local one; "" */
	uint64_t clock_khz; /* of free-running timestamps; 0: unknown */
};

/** 0 or a negative errno. */
int rnic_identity_read(const struct rnic_device *dev, struct rnic_identity *id);

/*
 * Protection domains. Queues of one cannot use memory keys of another.
 *
 * Thread rules: one thread. Errors have been logged.
 */

/** Makes another PD than that of the device (rnic_device_pd()), and records it in @slot (or NULL). */
int rnic_pd_new(struct rnic_pd **pd, struct rnic_device *dev, struct ledger_slot *slot);
/** The PD that @slot, which was inherited, has. */
int rnic_pd_adopt(struct rnic_pd **pd, struct rnic_device *dev, struct ledger_slot *slot);
void rnic_pd_free(struct rnic_pd *pd); /* after all objects in it */
struct rnic_device *rnic_pd_device(const struct rnic_pd *pd);

#endif
