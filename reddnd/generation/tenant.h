/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tenant.h - a tenant: its protection domains, what its sessions use of its quotas, and its rates.
 *
 * A tenant has a PD in each device. Rings, scratch and regions of its sessions there have keys of that PD,
 * which no queue of another tenant can use. Quotas and rates are of all its sessions, on whatever device.
 *
 * A tenant is identified by its name and outlives a reload: its use stays charged, and its limits become
 * those of the new configuration. A tenant that is no longer configured is freed with its last session.
 * Thread rules: one thread.
 */
#ifndef GENERATION_TENANT_H
#define GENERATION_TENANT_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/policy/offload-stats.h"
#include "reddnd/policy/rate.h"
#include "reddnd/policy/request.h"
#include "reddnd/rnic/arena.h"
#include "reddnd/rnic/device.h"
#include "reddnd/rnic/master-qp.h"

#include <uthash.h>

/*
 * The devices that the daemon serves on, each with its arena; its ledger is rnic_device_ledger(). No reload
 * changes them. Tenants and offloads have parts for each, in the same order.
 */

struct served_device {
	struct rnic_device *dev;
	struct rnic_arena *arena;
};

struct served {
	struct served_device device[CATALOG_DEVICES_MAX];
	unsigned n;
};

/** What a session, or a further connection of one, is charged for. */
struct tenant_charge {
	uint32_t sessions; /* 1; 0 for a further connection of one */
	uint32_t depth;
	uint64_t queue_bytes;
	uint64_t slot_bytes;   /* memory of the client's reply slots */
	uint64_t extent_bytes; /* of a store, for what its client puts */
};

/** What a tenant has in one device. */
struct tenant_domain {
	struct ledger_slot *slot; /* or NULL */
	struct rnic_pd *pd;       /* NULL: the device was lost before the tenant came */
	struct master_qp master;  /* of queues of that PD */
};

struct tenant {
	char name[CATALOG_NAME_MAX + 1];
	struct tenant_domain domain[CATALOG_DEVICES_MAX]; /* by device */
	unsigned ndomains;
	bool inherited;                   /* limits that an operator set under a daemon before this one */
	struct catalog_limits configured; /* and those in force */
	struct catalog_limits limits;
	struct rate rate, bytes; /* of requests; of bytes of replies */
	struct rate connects;    /* of new sessions and their further connections */
	uint64_t reply_most; /* bytes of the longest reply of any of its sessions: the least burst of bytes */
	struct rate_sharers sharers; /* sessions */
	/* in use */
	unsigned sessions;
	uint64_t depth, queue_bytes, slot_bytes, extent_bytes;
	/* since it was first configured */
	uint64_t requests, accepted, refused, failed;
	struct service_times service;
	struct tenant **all;
	unsigned refs;
	UT_hash_handle hh;
};

/**
 * Takes a reference to tenant @name of @all; makes the tenant, without limits, if there is none. Errors have
 * been logged. @all and what is in @served must outlive it.
 */
int tenant_get(struct tenant **tenant, struct tenant **all, const char *name, const struct served *served);
void tenant_unref(struct tenant *t); /* NULL is fine */

/** Applies @limits of the configuration. Sessions beyond them stay; new ones are refused. */
void tenant_limit(struct tenant *t, const struct catalog_limits *limits, uint64_t now_us);
/** The same of an operator: in force until the next tenant_limit(), or under the next daemon until the
 * configuration has other ones. */
void tenant_override(struct tenant *t, const struct catalog_limits *limits, uint64_t now_us);

/** Makes room in the bucket of bytes for a new session whose replies have up to @bytes. */
void tenant_expect_replies(struct tenant *t, uint64_t bytes, uint64_t now_us);

/** Charges a new session. False when a quota or connect_rate forbids it; @rej has the quota and what is left
 * of it. */
bool tenant_charge(
	struct tenant *t, const struct tenant_charge *charge, uint64_t now_us, struct reddn_wire_rej *rej);
/** Charges a session that goes on, quotas or not. */
void tenant_charge_heir(struct tenant *t, const struct tenant_charge *charge);
/** Gives back what a session has of the quotas. */
void tenant_refund(struct tenant *t, const struct tenant_charge *charge);
/** Gives back all that tenant_charge() took, connect_rate too: the client is judged anew. */
void tenant_uncharge(struct tenant *t, const struct tenant_charge *charge);

#endif
