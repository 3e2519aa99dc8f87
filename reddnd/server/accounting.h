/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accounting.h - the counters of sessions, offloads, tenants and the daemon.
 *
 * Thread rules: one thread, that of the event loop.
 */
#ifndef SERVER_ACCOUNTING_H
#define SERVER_ACCOUNTING_H

#include "reddnd/session/session.h"

/** Of the daemon, since it started. */
struct accounting {
	uint64_t requests;
	uint64_t refused;  /* clients */
	uint64_t unlisted; /* of these: only counted, as events too */
	uint64_t failed;   /* sessions that ended because of an error or a broken rule */
	uint64_t reloads;
};

void accounting_began(struct session *s);
void accounting_ended(struct accounting *a, struct session *s, bool failed);
/** The same of a session of a daemon before this one, which that one has counted. */
void accounting_adopted(struct session *s);
/** @tenant: NULL if the client belongs to none. */
void accounting_refused(struct accounting *a, struct tenant *tenant);
void accounting_verdict(struct session *s, enum verdict_kind kind);

/** @n more requests of @s are answered. */
void accounting_answered(struct accounting *a, struct session *s, uint64_t n);
/** Brings the counters of @s up to date with what the NIC left in memory: the requests of a recycled session,
 * the iterations of a loop, the outcomes of requests. */
void accounting_update(struct accounting *a, struct session *s);

#endif
