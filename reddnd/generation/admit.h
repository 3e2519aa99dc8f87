/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * admit.h - decides if a client that connects is served: finds its tenant, checks what the tenant may use,
 * and charges the quotas.
 *
 * The address decides on the tenant: of all networks that have the address, the one with the longest prefix.
 * If several tenants have that network, a client with a token belongs to the tenant whose key made the token,
 * and a client without a token to the tenant without a key. So no client gets into a tenant with a key
 * without a token, and a wrong token is refused, not ignored.
 *
 * Where nothing shows that a client has the address that it gives, as on InfiniBand, networks do not decide:
 * a token leads into the tenant whose key made it, and a client without one into a tenant without key and
 * without networks.
 */
#ifndef GENERATION_ADMIT_H
#define GENERATION_ADMIT_H

#include "reddnd/generation/generation.h"

/** What admit_client() uses of a connection. */
struct admit_from {
	const struct reddn_wire_req *req; /* private data */
	const struct token_ends *ends;    /* of the connection */
	unsigned device;                  /* that it came in on (tenant.h) */
	bool untrusted;                   /* nothing shows that the client has its address */
	uint64_t now;                     /* s, Unix time */
	uint64_t now_us;                  /* of CLOCK_MONOTONIC */
	/* Of a request for a further connection, what its session has: NULL if there is no such session */
	const struct offload *offload;
	const struct tenant *tenant;
};

struct admit_result {
	struct request request;
	const struct offload *offload;
	struct tenant *tenant; /* has been charged */
	struct tenant_charge charge;
};

/**
 * Judges the request @a->request, which was parsed from that data (policy/request.h). True: the tenant has
 * been charged, and the rest of @a is filled in; the caller calls tenant_refund() when the session is over or
 * was not made. False: @rej is the refusal; a->tenant is the tenant that the refusal counts for, or NULL.
 */
bool admit_client(const struct generation *generation, const struct admit_from *from, struct admit_result *a,
	struct reddn_wire_rej *rej);

#endif
