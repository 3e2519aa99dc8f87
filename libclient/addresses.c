/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/addresses.h"

#include "libclient/public.h"
#include "libclient/question.h"
#include "util/lookup.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static unsigned count(const struct addrinfo *list)
{
	unsigned n = 0;

	for (; list; list = list->ai_next)
		n++;
	return n;
}

/* True if it has ended by then; else it is abandoned */
static bool lookup_ends(struct lookup *l, uint64_t deadline)
{
	struct pollfd p = {.fd = lookup_fd(l), .events = POLLIN};

	while (!lookup_has_ended(l) && reddn_time_left(deadline))
		poll(&p, 1, reddn_time_left(deadline));
	if (lookup_has_ended(l))
		return true;
	lookup_abandon(l);
	return false;
}

/* As a text of libc or of ours; NULL: the list can be used */
static const char *result(struct lookup *l, const char *host, struct addrinfo **list)
{
	int r = lookup_end(l, list);
	const struct sockaddr_in6 *v6;

	if (r)
		return strchr(host, '[') ? "an address of IPv6 has no brackets here" : gai_strerror(r);
	v6 = (const struct sockaddr_in6 *)(*list)->ai_addr;
	if (v6->sin6_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) || v6->sin6_scope_id)
		return NULL;
	freeaddrinfo(*list);
	return "a link-local address needs an interface of this machine, as in fe80::1%eth0";
}

int reddn_addresses_find(
	struct addrinfo **list, const char *host, uint16_t port, uint64_t deadline, char *err, size_t errlen)
{
	struct lookup *l;
	const char *why;
	int r = lookup_begin(&l, host, port);

	if (r < 0)
		return reddn_fail(r, err, errlen, "%s: cannot be looked up: %s", host, strerror(-r));
	if (!lookup_ends(l, deadline))
		return reddn_fail(-ETIMEDOUT, err, errlen, "%s: not looked up in time", host);
	why = result(l, host, list);
	if (!why)
		return 0;
	*list = NULL;
	return reddn_fail(-EHOSTUNREACH, err, errlen, "%s: %s", host, why);
}

uint64_t reddn_addresses_until(const struct addrinfo *address, uint64_t now, uint64_t deadline)
{
	return now < deadline ? now + (deadline - now) / count(address) : deadline;
}

void reddn_addresses_add(
	const struct addrinfo *list, const struct addrinfo *address, char *err, size_t errlen)
{
	unsigned n = count(list);
	size_t len = strlen(err);
	char text[64];

	if (n > 1 && getnameinfo(address->ai_addr, address->ai_addrlen, text, sizeof(text), NULL, 0,
			     NI_NUMERICHOST) == 0)
		snprintf(err + len, errlen - len, " (at %s, one of %u addresses)", text, n);
}
