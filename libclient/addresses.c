/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/addresses.h"

#include "libclient/public.h"
#include "util/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static unsigned count(const struct addrinfo *list)
{
	unsigned n = 0;

	for (; list; list = list->ai_next)
		n++;
	return n;
}

/* As a text of libc or of ours; NULL: the list can be used */
static const char *look_up(struct addrinfo **list, const char *host, uint16_t port)
{
	int r = host_look_up(host, port, 0, list);
	const struct sockaddr_in6 *v6;

	if (r)
		return strchr(host, '[') ? "an address of IPv6 has no brackets here" : gai_strerror(r);
	v6 = (const struct sockaddr_in6 *)(*list)->ai_addr;
	if (v6->sin6_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) || v6->sin6_scope_id)
		return NULL;
	freeaddrinfo(*list);
	return "a link-local address needs an interface of this machine, as in fe80::1%eth0";
}

int reddn_addresses_find(struct addrinfo **list, const char *host, uint16_t port, char *err, size_t errlen)
{
	const char *why = look_up(list, host, port);

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
