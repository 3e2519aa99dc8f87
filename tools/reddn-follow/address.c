/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/address.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* As hiredis does: of IPv4, if there is one, where redis-server listens by default */
static const struct addrinfo *addresses_choose(const struct addrinfo *list)
{
	for (const struct addrinfo *a = list; a; a = a->ai_next)
		if (a->ai_family == AF_INET)
			return a;
	return list;
}

int address_find(struct address *a, const struct url *url, const char **why)
{
	struct addrinfo *list = NULL;
	const struct addrinfo *one;
	int r = a->lookup ? 0 : lookup_begin(&a->lookup, url->host, url->port);

	if (r < 0)
		return *why = strerror(-r), -ENOENT;
	if (!lookup_has_ended(a->lookup))
		return -EAGAIN;
	r = lookup_end(a->lookup, &list);
	a->lookup = NULL;
	if (r == 0) {
		one = addresses_choose(list);
		r = getnameinfo(
			one->ai_addr, one->ai_addrlen, a->text, sizeof(a->text), NULL, 0, NI_NUMERICHOST);
		freeaddrinfo(list);
	}
	return r == 0 ? 0 : (*why = gai_strerror(r), -ENOENT);
}

int address_fd(const struct address *a)
{
	return a->lookup ? lookup_fd(a->lookup) : -1;
}

void address_deinit(struct address *a)
{
	lookup_abandon(a->lookup);
	a->lookup = NULL;
}
