/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/addresses.h"

#include "libclient/public.h"

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

int reddn_addresses_find(struct addrinfo **list, const char *host, uint16_t port, char *err, size_t errlen)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	char service[8];
	int r;

	snprintf(service, sizeof(service), "%u", port);
	r = getaddrinfo(host, service, &hints, list);
	return r ? reddn_fail(-EHOSTUNREACH, err, errlen, "%s: %s", host, gai_strerror(r)) : 0;
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
