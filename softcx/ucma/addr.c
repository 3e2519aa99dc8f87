/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/addr.h"

#include "softcx/proto/call.h"

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

bool ucma_addr_multicast(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET
		       ? IN_MULTICAST(ntohl(in4(addr)->sin_addr.s_addr))
		       : addr->ss_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&in6(addr)->sin6_addr);
}

bool ucma_addr_lacks_scope(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6(addr)->sin6_addr) &&
	       !in6(addr)->sin6_scope_id;
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

void ucma_addr_gid(const struct sockaddr_storage *addr, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (addr->ss_family == AF_INET) {
		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, &in4(addr)->sin_addr, 4);
	} else if (addr->ss_family == AF_INET6) {
		memcpy(gid, &in6(addr)->sin6_addr, 16);
	}
}

enum { LINK_LOCAL = 1, FIRST_IPV4 = 3 }; /* of RoCE v2, in nic_dev_gids() */

static void set_where(struct ucma_where *where, unsigned dev, unsigned gid_index, const uint8_t gid[16])
{
	unsigned number;

	*where = (struct ucma_where){
		.dev = dev, .host = nic_dev_host(dev, &number), .gid_index = (uint8_t)gid_index};
	memcpy(where->gid, gid, sizeof(where->gid));
}

unsigned ucma_addr_first_dev(unsigned ndevs, unsigned host)
{
	unsigned dev = 0, number;

	while (dev + 1 < ndevs && nic_dev_host(dev, &number) != host)
		dev++;
	return dev;
}

void ucma_addr_of_dev(
	unsigned dev, sa_family_t family, struct sockaddr_storage *addr, struct ucma_where *where)
{
	struct hw_gid gids[HW_GIDS];
	unsigned n, i = family == AF_INET ? FIRST_IPV4 : LINK_LOCAL;

	nic_dev_gids(dev, gids, &n);
	set_where(where, dev, i, gids[i].raw);
	memset(addr, 0, sizeof(*addr));
	addr->ss_family = family;
	if (family == AF_INET)
		memcpy(&((struct sockaddr_in *)addr)->sin_addr, gids[i].raw + 12, 4);
	if (family == AF_INET6) {
		memcpy(&((struct sockaddr_in6 *)addr)->sin6_addr, gids[i].raw, 16);
		((struct sockaddr_in6 *)addr)->sin6_scope_id = NIC_DEV_IFINDEX;
	}
}

/* By RoCE v2, which Linux prefers where a device has it: cma.c, CMA_PREFERRED_ROCE_GID_TYPE */
static bool find_on(unsigned dev, const uint8_t want[16], struct ucma_where *where)
{
	struct hw_gid gids[HW_GIDS];
	unsigned n;

	nic_dev_gids(dev, gids, &n);
	for (unsigned i = 0; i < n; i++)
		if (!gids[i].roce_v1 && memcmp(gids[i].raw, want, 16) == 0) {
			set_where(where, dev, i, want);
			return true;
		}
	return false;
}

int ucma_addr_find(
	unsigned ndevs, unsigned host, const struct sockaddr_storage *addr, struct ucma_where *where)
{
	struct sockaddr_storage first;
	uint8_t want[16];
	unsigned number;

	if (addr->ss_family != AF_INET && addr->ss_family != AF_INET6)
		return -ENODEV;
	ucma_addr_gid(addr, want);
	/* the own host's before others': ::1 is an address of each */
	for (int own = 1; own >= 0; own--)
		for (unsigned dev = 0; dev < ndevs; dev++)
			if ((nic_dev_host(dev, &number) == host) == own && find_on(dev, want, where))
				return 0;
	if (!ndevs || !of_this_machine(addr))
		return -ENODEV;
	ucma_addr_of_dev(0, addr->ss_family, &first, where);
	return 0;
}
