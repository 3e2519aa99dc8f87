/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plain-internal.h - the two kinds of queues of plain.h: those that verbs make (plain-verbs.c), and those of
 * a device that takes direct commands (plain-direct.c). Private to rnic.
 *
 * What the functions mean is in plain.h, where each has its name without "verbs" or "direct".
 */
#ifndef RNIC_PLAIN_INTERNAL_H
#define RNIC_PLAIN_INTERNAL_H

#include "reddnd/rnic/internal.h"
#include "reddnd/rnic/plain.h"

enum { PLAIN_PARTS = 2 }; /* of the data of a message */

struct rnic_plain_events {
	struct ibv_comp_channel *channel; /* of queues that verbs make; else NULL */
	int fd;                           /* else: of the events of direct commands */
};

/** What both kinds begin with. */
struct rnic_plain {
	bool direct;
	uint32_t qpn;
	uint8_t *mem;
};

int plain_verbs_new(struct rnic_plain **q, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr);
void plain_verbs_stop(struct rnic_plain *q);
void plain_verbs_free(struct rnic_plain *q);
int plain_verbs_receive(struct rnic_plain *q, uint64_t to);
int plain_verbs_send(struct rnic_plain *q, const struct rnic_plain_send *send);
int plain_verbs_flush(struct rnic_plain *q, uint32_t number);
int plain_verbs_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH]);
int plain_verbs_arm(struct rnic_plain *q);

uint64_t plain_direct_bytes(const struct rnic_plain_attr *attr);
int plain_direct_new(struct rnic_plain **q, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr);
void plain_direct_stop(struct rnic_plain *q);
void plain_direct_free(struct rnic_plain *q);
void plain_direct_receive(struct rnic_plain *q, uint64_t to);
void plain_direct_send(struct rnic_plain *q, const struct rnic_plain_send *send);
void plain_direct_flush(struct rnic_plain *q, uint32_t number);
int plain_direct_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH]);
void plain_direct_arm(struct rnic_plain *q);
struct rnic_qp *plain_direct_qp(struct rnic_plain *q);

#endif
