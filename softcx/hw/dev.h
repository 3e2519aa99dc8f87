/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dev.h - the inside of a device: object tables, lists of queues with work, timers, the seed.
 * Internal to softcx/hw.
 */
#ifndef SOFTCX_HW_DEV_H
#define SOFTCX_HW_DEV_H

#include "softcx/hw/hw.h"
#include "util/xorshift.h"

#include <endian.h>
#include <sys/queue.h>

/**
 * Objects by a 24-bit number. Numbers are handed out in a circle of @span numbers, so that one that was
 * freed is not soon somebody else's.
 */
struct hw_table {
	void **page[4096];
	uint32_t first, span, next;
	unsigned live;
};

int hw_table_add(struct hw_table *t, void *obj, uint32_t *id); /* -ENOMEM, -ENOSPC */
void hw_table_del(struct hw_table *t, uint32_t id);
/** Calls @fn for every object; @fn may delete it. */
void hw_table_each(struct hw_table *t, struct hw_dev *dev, void (*fn)(struct hw_dev *dev, void *obj));

static inline void *hw_table_get(const struct hw_table *t, uint32_t id)
{
	void **page = t->page[(id >> 12) & 0xfff];

	return page ? page[id & 0xfff] : NULL;
}

struct hw_pd {
	uint32_t pdn;
	unsigned refs;
};

TAILQ_HEAD(hw_qp_list, hw_qp);
TAILQ_HEAD(hw_cq_list, hw_cq);
TAILQ_HEAD(hw_uar_list, hw_uar);

struct hw_dev {
	struct hw_config cfg;
	struct hw_pu *pu;       /* NULL: one thread executes all devices */
	struct hw_qp *claimant; /* a ready queue whose WQE waits for other units, and is next; or NULL */
	uint64_t rng;
	uint8_t max_ds;   /* of a send WQE */
	uint64_t lacking; /* hw_op_lacking() */
	struct hw_gid gid[HW_GIDS];
	unsigned ngids;

	struct hw_table pds, mkeys, uars, cqs, qps, srqs, rates;
	unsigned mems; /* references to application memory held by objects */
	uint8_t key_variant;

	struct hw_uar_list awake;  /* UARs to look at for rings */
	struct hw_uar_list asleep; /* UARs whose next ring wakes them (uar.h) */
	unsigned nawake, wqes_between_scans;
	unsigned ntimes_awake; /* of nawake: pages that show the time */
	uint64_t wqes_at_scan;
	uint64_t cost;     /* of all WQEs executed so far (turns.h) */
	uint64_t round;    /* of the scheduler: where the account of a queue without a rest is, */
	uint64_t furthest; /* and the highest account of any */
	uint64_t answers;  /* CQEs ever written that software waits for (qp.h) */

	struct hw_qp_list ready;     /* SQs with WQEs to execute, */
	struct hw_qp_list spent;     /* and those of them that have had their share of the round */
	struct hw_qp_list timed;     /* SQs in an RNR or retry pause */
	struct hw_qp_list inflight;  /* SQs with effects that have not landed */
	struct hw_qp_list broken;    /* RQs in ERR, whose RECVs are flushed as they are posted */
	struct hw_cq_list moderated; /* CQs with an event that moderation delays */
	unsigned nready;             /* on either of the first two */
	uint64_t now;                /* ns; read once per turn of a queue */
	uint64_t epoch; /* ns from 1970 to the beginning of that clock, when the device was made */

	TAILQ_HEAD(, hw_fault_rule) faults; /* of fault.c */
	unsigned faults_armed;              /* that may strike yet */
	bool port_down;
	struct hw_clock *clock; /* of clock.c; NULL: the clock is that of the machine */
	LIST_HEAD(, hw_dev_watch) watches;

	hw_trace_fn trace;
	void *trace_arg;
	struct hw_counts total;
	LIST_ENTRY(hw_dev) all;
};

LIST_HEAD(hw_devs, hw_dev);
extern struct hw_devs hw_devs; /* every device of this process */

void hw_dev_event(struct hw_dev *dev, int event); /* to all who watch the device */

/* Doorbell records are written by other threads. */
static inline uint32_t hw_db_read(const uint32_t *word)
{
	return be32toh(__atomic_load_n(word, __ATOMIC_ACQUIRE));
}

enum { HW_CLOCK_KHZ = 78125 }; /* of a ConnectX-5: 5 ticks in 64 ns */
static inline uint64_t hw_clock_ticks(uint64_t ns)
{
	return ns / 64 * 5 + ns % 64 * 5 / 64;
}

bool hw_has_gid(const struct hw_dev *dev, const uint8_t gid[16]);
struct hw_dev *hw_dev_by_gid(const uint8_t gid[16]); /* NULL when nobody has it */
struct hw_dev *hw_dev_by_lid(uint16_t lid);          /* likewise */

void hw_dev_seed(struct hw_dev *dev, uint64_t seed); /* starts the choices of @seed */

/** The next of the device's seeded choices. */
static inline uint32_t hw_random(struct hw_dev *dev)
{
	return (uint32_t)(xorshift(&dev->rng) >> 32);
}

/** Number in [0, n), n > 0. */
static inline uint32_t hw_pick(struct hw_dev *dev, uint32_t n)
{
	return (uint32_t)(((uint64_t)hw_random(dev) * n) >> 32);
}

int hw_pd_ref(struct hw_dev *dev, uint32_t pdn); /* -EINVAL: no such PD */
void hw_pd_unref(struct hw_dev *dev, uint32_t pdn);

/**
 * Address of [off, off+len) of @mem here and a reference to it; NULL when the range is not inside the
 * memory, not mapped here, or not aligned to @align (a power of two).
 */
void *hw_mem_pin(struct hw_dev *dev, struct hw_mem *mem, uint64_t off, uint64_t len, uint64_t align);
void hw_mem_unpin(struct hw_dev *dev, struct hw_mem *mem);

#endif
