/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/send.h"

#include "util/clock.h"

#include <errno.h>

enum { TRIES = 2 }; /* how often a NIC is asked again */

void mc_send_tcp(struct reddn_mc *mc, struct mc_ask *a, uint64_t *counter)
{
	++*counter;
	mc_queue_put(&mc->tcp, a);
}

void mc_send_abandon(struct reddn_mc *mc, const struct mc_server *s)
{
	for (uint32_t i = 0; i < mc->options.depth; i++) {
		struct mc_ask *a = &mc->asks[i];

		if (!a->flying || &mc->servers[a->server] != s)
			continue;
		a->flying = false;
		mc_send_tcp(mc, a, &mc->stats.without_nic);
	}
}

void mc_send_lose(struct reddn_mc *mc, struct mc_server *s, const char *why)
{
	mc_server_lose(s, clock_ms(), why);
	mc_send_abandon(mc, s);
}

void mc_send(struct reddn_mc *mc, struct mc_ask *a)
{
	struct mc_server *s = &mc->servers[a->server];
	int r;

	if (!mc_server_ready(s)) {
		mc_send_tcp(mc, a, &mc->stats.without_nic);
		return;
	}
	/* the reply of any bucket has where to look */
	if (!mc_facts_place(&s->facts, a->table, a->key, a->key_len, &a->place))
		a->place = (struct mc_place){0};
	a->newest = s->facts.newest;
	if (!a->began_ms)
		a->began_ms = clock_tick_ms();
	r = mc_nic_ask(&s->nic, a->place.at, (uint64_t)(a - mc->asks));
	if (r == -EAGAIN) {
		mc_queue_put(&mc->nic, a);
	} else if (r < 0) {
		mc_send_lose(mc, s, reddn_errmsg(s->nic.c));
		mc_send_tcp(mc, a, &mc->stats.without_nic);
	} else {
		a->flying = true;
	}
}

void mc_send_again(struct reddn_mc *mc, struct mc_ask *a)
{
	a->table = 0;
	a->beyond = false;
	a->began_ms = 0;
	a->pieces = (struct mc_pieces){0};
	if (a->tries++ == TRIES) {
		mc_send_tcp(mc, a, &mc->stats.unsure);
		return;
	}
	mc->stats.repeated++;
	mc_send(mc, a);
}

void mc_send_queued(struct reddn_mc *mc)
{
	struct mc_queue waiting = mc->nic;
	struct mc_ask *a;

	if (!waiting.first)
		return;
	mc_queue_init(&mc->nic);
	while ((a = mc_queue_take(&waiting)) != NULL)
		mc_send(mc, a);
}
