/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/admit.h"

#include "reddnd/generation/layouts.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *name_of(const uint8_t address[16], char text[INET6_ADDRSTRLEN])
{
	struct in6_addr a;

	memcpy(&a, address, sizeof(a));
	if (IN6_IS_ADDR_V4MAPPED(&a))
		inet_ntop(AF_INET, address + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
	return text;
}

static bool fits(const struct catalog_tenant *t, bool has_token, const struct admit_from *from)
{
	if (t->has_key != has_token)
		return false;
	return !has_token || token_valid(&t->key, from->req, from->ends, from->now);
}

/* As catalog_match() */
static int match(const struct catalog_tenant *t, const struct admit_from *from)
{
	if (!from->untrusted)
		return catalog_match(t, from->ends->client);
	return t->nnetworks && !t->has_key ? -1 : 0;
}

static bool find_tenant(const struct generation *g, const struct admit_from *from, struct tenant **tenant,
	const struct catalog_tenant **conf, struct reddn_wire_rej *rej)
{
	static const uint8_t no_token[sizeof((struct reddn_wire_req *)0)->token];
	const struct catalog *c = g->catalog;
	bool has_token, keys = false;
	char text[INET6_ADDRSTRLEN];
	int best = -1;

	has_token = memcmp(from->req->token, no_token, sizeof(no_token)) != 0;
	for (unsigned i = 0; i < c->ntenants; i++) {
		int bits = match(&c->tenants[i], from);

		if (bits > best)
			best = bits;
	}
	for (unsigned i = 0; i < c->ntenants; i++) {
		const struct catalog_tenant *t = &c->tenants[i];

		if (best < 0 || match(t, from) != best)
			continue;
		if (fits(t, has_token, from)) {
			*conf = t;
			*tenant = g->tenants[i];
			return true;
		}
		keys |= t->has_key;
	}
	name_of(from->ends->client, text);
	if (best < 0)
		request_refuse(rej, REDDN_REJ_ACCESS, 0, "clients from %s are not served", text);
	else if (!has_token)
		request_refuse(rej, REDDN_REJ_ACCESS, 0, "clients from %s need a token", text);
	else if (!keys)
		request_refuse(rej, REDDN_REJ_ACCESS, 0, "clients from %s must not have a token", text);
	else
		request_refuse(rej, REDDN_REJ_ACCESS, 0,
			"the token is invalid: wrong key, clock or version, or not for this connection from "
			"%s",
			text);
	return false;
}

static bool check_depth(const struct request *request, const struct offload *o, struct reddn_wire_rej *rej)
{
	uint32_t fits;

	if (!request_check(request, o->conf->depth_max, o->slot_need, rej))
		return false;
	if (!o->recycled || (request->depth & (request->depth - 1)) == 0)
		return true;
	fits = 2u << (31 - __builtin_clz(request->depth));
	fits = fits <= o->conf->depth_max ? fits : fits / 2;
	return request_refuse(rej, REDDN_REJ_DEPTH, fits,
		"depth is %u; offload %s is recycled and takes a power of two, such as %u", request->depth,
		request->offload, fits);
}

static bool find_offload(const struct generation *g, const struct admit_from *from,
	const struct catalog_tenant *conf, struct admit_result *a, struct reddn_wire_rej *rej)
{
	a->offload = generation_offload(g, from->device, a->request.offload);
	if (!a->offload)
		return request_refuse(
			rej, REDDN_REJ_OFFLOAD, 0, "there is no offload %s", a->request.offload);
	if (!catalog_allows(conf, (unsigned)(a->offload->conf - g->catalog->offloads)))
		return request_refuse(rej, REDDN_REJ_ACCESS, 0, "tenant %s may not use offload %s",
			conf->name, a->request.offload);
	return true;
}

/* Its session has what was allowed when it began */
static bool find_session(const struct admit_from *from, struct admit_result *a, struct reddn_wire_rej *rej)
{
	if (!from->offload || a->tenant != from->tenant)
		return request_refuse(rej, REDDN_REJ_UNKNOWN, 0,
			"session %" PRIu64 " is not this client's, has ended, or takes no more connections",
			a->request.session);
	a->offload = from->offload;
	snprintf(a->request.offload, sizeof(a->request.offload), "%s", a->offload->conf->name);
	return true;
}

bool admit_client(const struct generation *g, const struct admit_from *from, struct admit_result *a,
	struct reddn_wire_rej *rej)
{
	const struct catalog_tenant *conf;

	if (!find_tenant(g, from, &a->tenant, &conf, rej))
		return false;
	if (!(a->request.joins ? find_session(from, a, rej) : find_offload(g, from, conf, a, rej)))
		return false;
	if (a->offload->elsewhere)
		return request_refuse(rej, REDDN_REJ_RESOURCES, 0,
			"offload %s is served on device %s alone; connect to an address of that",
			a->request.offload, rnic_device_name(g->served->device[0].dev));
	if (offload_is_disabled(a->offload, NULL))
		return request_refuse(rej, REDDN_REJ_RESOURCES, 0,
			a->offload->unfit
				? "offload %s cannot run on the server's NIC; the server's log has the "
				  "reason"
				: "offload %s is disabled until its data can be served; the server's "
				  "log has the reason",
			a->request.offload);
	if (a->request.no_immediates && !a->offload->cpu)
		return request_refuse(rej, REDDN_REJ_RESOURCES, 0,
			"the server's NIC answers offload %s with immediates, which the client's device "
			"cannot take; engine = \"cpu\" would do",
			a->request.offload);
	if (!check_depth(&a->request, a->offload, rej))
		return false;
	a->charge.sessions = !a->request.joins;
	a->charge.depth = a->request.depth;
	a->charge.queue_bytes = layouts_queue_bytes(a->offload, a->request.depth, a->request.no_immediates);
	a->charge.slot_bytes = (uint64_t)a->request.depth * a->request.slot_size;
	a->charge.extent_bytes =
		layouts_extent_bytes(a->offload, layouts_of_depth(a->offload, a->request.depth));
	return tenant_charge(a->tenant, &a->charge, from->now_us, rej);
}
