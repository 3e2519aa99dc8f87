/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tenant.h - who is served, as one: its protection domain, what its sessions use of its quotas, its rate.
 *
 * A tenant has one PD. Whatever a chain of its sessions names - rings, scratch, regions - has keys of that
 * PD, and no queue of another tenant can use them.
 *
 * Tenants are known by their names and outlive a reload: what they use goes on being counted, limits become
 * those of the new configuration. One that is no longer configured goes with its last session. Thread rules:
 * one thread.
 */
#ifndef GENERATION_TENANT_H
#define GENERATION_TENANT_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/policy/rate.h"
#include "reddnd/policy/request.h"
#include "reddnd/rnic/master-qp.h"

#include <uthash.h>

/** What a session is charged for. */
struct tenant_charge {
	uint32_t depth;
	uint64_t queue_bytes;
	uint64_t slot_bytes; /* that the client has registered for replies */
};

struct tenant {
	char name[CATALOG_NAME_MAX + 1];
	struct rnic_pd *pd;
	struct master_qp master; /* of queues of that PD */
	struct catalog_limits limits;
	struct rate rate, bytes; /* of requests, and of what they are answered */
	struct rate connects;    /* of sessions that begin */
	uint64_t reply_most; /* bytes of the longest reply that a session of it may have got: the least that a
				bucket holds */
	unsigned waiting;    /* sessions that want more credits than there are */
	unsigned turns;      /* of them that are still to get theirs (pace.c) */
	/* in use */
	unsigned sessions;
	uint64_t depth, queue_bytes, slot_bytes;
	/* since it was first configured */
	uint64_t requests, accepted, refused, failed;
	struct tenant **all;
	unsigned refs;
	UT_hash_handle hh;
};

/**
 * Another reference to tenant @name of @all; if it is new, without limits. Errors have been logged. @all must
 * outlive it, and so must @dev and @arena.
 */
int tenant_get(struct tenant **tenant, struct tenant **all, const char *name, struct rnic_device *dev,
	struct rnic_arena *arena);
void tenant_unref(struct tenant *t); /* NULL is fine */

/** Puts @limits in force. What is in use beyond them stays; nothing is added to it. */
void tenant_limit(struct tenant *t, const struct catalog_limits *limits, uint64_t now_us);

/** A session whose replies have up to @bytes begins. */
void tenant_expect_replies(struct tenant *t, uint64_t bytes, uint64_t now_us);

/** Charges a session that begins; false when a quota, or the rate of those, forbids it: @rej names it and the
 * number. */
bool tenant_charge(
	struct tenant *t, const struct tenant_charge *charge, uint64_t now_us, struct reddn_wire_rej *rej);
void tenant_refund(struct tenant *t, const struct tenant_charge *charge);

#endif
