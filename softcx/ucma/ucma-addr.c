/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/ucma-addr.h"

#include "softcx/call.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

static const struct sockaddr_in *in4(const struct sockaddr_storage *addr)
{
	return (const struct sockaddr_in *)addr;
}

static const struct sockaddr_in6 *in6(const struct sockaddr_storage *addr)
{
	return (const struct sockaddr_in6 *)addr;
}

static const struct ucma_sockaddr_ib *ib(const struct sockaddr_storage *addr)
{
	return (const struct ucma_sockaddr_ib *)addr;
}

size_t ucma_addr_size(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct ucma_sockaddr_ib);
	default:
		return 0;
	}
}

bool ucma_addr_set(struct sockaddr_storage *addr, const void *bytes, size_t len)
{
	memset(addr, 0, sizeof(*addr));
	if (len < sizeof(addr->ss_family) || len > sizeof(*addr))
		return false;
	memcpy(addr, bytes, len);
	return ucma_addr_size(addr) == len;
}

bool ucma_addr_any(const struct sockaddr_storage *addr)
{
	static const uint8_t zero[16];

	switch (addr->ss_family) {
	case AF_INET:
		return in4(addr)->sin_addr.s_addr == htonl(INADDR_ANY);
	case AF_INET6:
		return IN6_IS_ADDR_UNSPECIFIED(&in6(addr)->sin6_addr);
	case AF_IB:
		return !memcmp(ib(addr)->addr, zero, sizeof(zero));
	default:
		return false;
	}
}

bool ucma_addr_same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	switch (a->ss_family) {
	case AF_INET:
		return in4(a)->sin_addr.s_addr == in4(b)->sin_addr.s_addr;
	case AF_INET6:
		return IN6_ARE_ADDR_EQUAL(&in6(a)->sin6_addr, &in6(b)->sin6_addr);
	case AF_IB:
		return !memcmp(ib(a)->addr, ib(b)->addr, sizeof(ib(a)->addr));
	default:
		return false;
	}
}

uint16_t ucma_addr_port(const struct sockaddr_storage *addr)
{
	switch (addr->ss_family) {
	case AF_INET:
		return ntohs(in4(addr)->sin_port);
	case AF_INET6:
		return ntohs(in6(addr)->sin6_port);
	case AF_IB:
		return (uint16_t)(be64toh(ib(addr)->sid) & be64toh(ib(addr)->sid_mask));
	default:
		return 0;
	}
}

void ucma_addr_set_port(struct sockaddr_storage *addr, uint16_t port)
{
	if (addr->ss_family == AF_INET) {
		((struct sockaddr_in *)addr)->sin_port = htons(port);
	} else if (addr->ss_family == AF_INET6) {
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
	} else if (addr->ss_family == AF_IB) {
		struct ucma_sockaddr_ib *sib = (struct ucma_sockaddr_ib *)addr;

		sib->sid = htobe64((be64toh(sib->sid) & ~UINT64_C(0xffff)) | port);
		sib->sid_mask = htobe64(UINT64_MAX);
	}
}

void ucma_addr_set_ip(struct sockaddr_storage *addr, const struct sockaddr_storage *from)
{
	uint16_t port = ucma_addr_port(addr);

	*addr = *from;
	ucma_addr_set_port(addr, port);
}

void ucma_addr_loopback(struct sockaddr_storage *addr, sa_family_t family)
{
	memset(addr, 0, sizeof(*addr));
	addr->ss_family = family;
	if (family == AF_INET)
		((struct sockaddr_in *)addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_addr = in6addr_loopback;
}

/* Is it one of those that belong to the machine as a whole? */
static bool of_this_machine(const struct sockaddr_storage *addr)
{
	struct ifaddrs *list, *i;
	bool found = false;

	if (addr->ss_family == AF_INET && (ntohl(in4(addr)->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET)
		return true;
	if (addr->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6(addr)->sin6_addr))
		return true;
	if (getifaddrs(&list))
		return false;
	for (i = list; i && !found; i = i->ifa_next) {
		struct sockaddr_storage own = {0};

		if (!i->ifa_addr)
			continue;
		if (i->ifa_addr->sa_family == AF_INET)
			memcpy(&own, i->ifa_addr, sizeof(struct sockaddr_in));
		else if (i->ifa_addr->sa_family == AF_INET6)
			memcpy(&own, i->ifa_addr, sizeof(struct sockaddr_in6));
		found = ucma_addr_same_ip(&own, addr);
	}
	freeifaddrs(list);
	return found;
}

/* The GID that an IP address would have (RoCE: IPv4-mapped, or the IPv6 address itself). */
static void gid_of_ip(const struct sockaddr_storage *addr, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (addr->ss_family == AF_INET) {
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &in4(addr)->sin_addr, 4);
	} else if (addr->ss_family == AF_INET6) {
		memcpy(gid, &in6(addr)->sin6_addr, 16);
	}
}

int ucma_addr_find(unsigned ndevs, const struct sockaddr_storage *addr, struct ucma_where *where)
{
	uint8_t want[16], gids[16][16];
	unsigned dev, i, n;

	if (addr->ss_family != AF_INET && addr->ss_family != AF_INET6)
		return -ENODEV;
	gid_of_ip(addr, want);
	for (dev = 0; dev < ndevs; dev++) {
		nic_dev_gids(dev, gids, &n);
		for (i = 0; i < n; i++) {
			if (memcmp(gids[i], want, sizeof(want)))
				continue;
			*where = (struct ucma_where){.dev = dev, .gid_index = (uint8_t)i};
			memcpy(where->gid, gids[i], sizeof(where->gid));
			return 0;
		}
	}
	if (!ndevs || !of_this_machine(addr))
		return -ENODEV;
	nic_dev_gids(0, gids, &n);
	if (!n)
		return -ENODEV;
	*where = (struct ucma_where){.dev = 0, .gid_index = n > 1 ? 1 : 0};
	memcpy(where->gid, gids[where->gid_index], sizeof(where->gid));
	return 0;
}
