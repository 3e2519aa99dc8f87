/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admit.h - whether somebody who connects is served: whose client it is, what it may use, and what is left of
 * the quotas.
 *
 * The address decides on the tenant: of all networks that it is in, the longest prefix. If several tenants
 * have that one, a client with a token belongs to the one whose key made it, a client without to the one that
 * has no key. So a tenant with a key is never entered without a token, and a wrong token is refused, not
 * passed over.
 */
#ifndef GENERATION_ADMIT_H
#define GENERATION_ADMIT_H

#include "reddnd/generation/generation.h"

/** What of a connection is looked at. */
struct admit_from {
	const void *data; /* private data */
	size_t size;
	const uint8_t *address; /* 16 bytes: rnic_conn_address() */
	uint64_t now;           /* s, Unix time */
	uint64_t now_us;        /* of CLOCK_MONOTONIC */
};

struct admit_result {
	struct request request;
	const struct offload *offload;
	struct tenant *tenant; /* which has been charged */
	struct tenant_charge charge;
};

/**
 * True: the tenant has been charged; tenant_refund() when the session is over, or was not made. False: @rej
 * says why not; a->tenant is the tenant that the refusal counts for, or NULL.
 */
bool admit_client(const struct generation *generation, const struct admit_from *from, struct admit_result *a,
	struct reddn_wire_rej *rej);

#endif
