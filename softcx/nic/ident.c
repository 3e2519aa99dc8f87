/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/ident.h"

#include "softcx/proto/call.h"
#include "util/array.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_LID = 2 }; /* 1 is that of the subnet manager */

static const struct hosts *used;
/* The addresses of this machine, without those of its loopback interface: IPv4, then IPv6 */
static uint8_t machine_gid[HW_GIDS / 2][16];
static unsigned nipv4, nmachine_gids;
static bool has_ipv6; /* so that TCP reaches ::1 */

/* ---- names ------------------------------------------------------------------------------ */

const struct host *ident_host(unsigned dev)
{
	const struct host *h = used->host;

	while (dev >= h->first + h->ndevs)
		h++;
	return h;
}

static const char *say(const struct host *h, const char *what, int number, char label[SOFTCX_MAX_LABEL])
{
	bool several = used->n > 1;
	int n = snprintf(label, SOFTCX_MAX_LABEL, "%s%s%s", several ? h->name : "", several ? "/" : "", what);

	if (number >= 0)
		snprintf(label + n, (size_t)(SOFTCX_MAX_LABEL - n), "%d", number);
	return label;
}

const char *ident_dev(unsigned dev, char label[SOFTCX_MAX_LABEL])
{
	const struct host *h = ident_host(dev);

	return say(h, "mlx5_", (int)(dev - h->first), label);
}

const char *ident_file(unsigned host, int dev, char label[SOFTCX_MAX_LABEL])
{
	const struct host *h = &used->host[host];

	return dev < 0 ? say(h, "rdma_cm", -1, label) : say(h, "uverbs", dev - (int)h->first, label);
}

int ident_find_dev(const char *label, unsigned *dev)
{
	const char *slash = strchr(label, '/'), *number = slash ? slash + 1 : label;
	size_t len = slash ? (size_t)(slash - label) : 0;
	unsigned long n;
	char *end;

	if (strncmp(number, "mlx5_", 5) == 0)
		number += 5;
	n = strtoul(number, &end, 10);
	if (*number < '0' || *number > '9' || *end)
		return -ENOENT;
	for (unsigned i = 0; i < used->n; i++) {
		const struct host *h = &used->host[i];

		if (slash ? strlen(h->name) != len || memcmp(h->name, label, len) != 0 : i > 0)
			continue;
		if (n >= h->ndevs)
			return -ENOENT;
		*dev = h->first + (unsigned)n;
		return 0;
	}
	return -ENOENT;
}

unsigned nic_dev_host(unsigned dev, unsigned *number)
{
	const struct host *h = ident_host(dev);

	*number = dev - h->first;
	return (unsigned)(h - used->host);
}

/* ---- GUIDs and addresses ---------------------------------------------------------------- */

/** The modified EUI-64 of MAC address 0c:42:a1:a2:00:00 + device, as mlx5 makes its GUIDs and link-local
 * GIDs. */
static const uint8_t mac[6] = {0x0c, 0x42, 0xa1, 0xa2, 0x00, 0x00};

uint64_t nic_dev_guid(unsigned dev)
{
	const uint8_t guid[8] = {mac[0], mac[1], mac[2], 0x03, 0x00, mac[3], mac[4], (uint8_t)(mac[5] + dev)};
	uint64_t be;

	memcpy(&be, guid, sizeof(be));
	return be;
}

static void map_ipv4(uint8_t gid[16], uint32_t be)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &be, 4);
}

static void note_machine_gid(const struct ifaddrs *i)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)i->ifa_addr;
	uint8_t *gid = machine_gid[nmachine_gids];

	has_ipv6 |= i->ifa_addr->sa_family == AF_INET6;
	if (i->ifa_flags & IFF_LOOPBACK || nmachine_gids == COUNT(machine_gid))
		return;
	if (i->ifa_addr->sa_family == AF_INET)
		map_ipv4(gid, ((const struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr);
	else
		memcpy(gid, &sin6->sin6_addr, 16);
	nmachine_gids++;
}

static void find_machine_gids(void)
{
	static const sa_family_t families[] = {AF_INET, AF_INET6};
	struct ifaddrs *list;

	if (getifaddrs(&list))
		return;
	for (unsigned f = 0; f < COUNT(families); f++) {
		nipv4 = nmachine_gids;
		for (struct ifaddrs *i = list; i; i = i->ifa_next)
			if (i->ifa_addr && i->ifa_addr->sa_family == families[f] && i->ifa_flags & IFF_UP)
				note_machine_gid(i);
	}
	freeifaddrs(list);
}

struct table {
	struct hw_gid *gids;
	unsigned n;
};

/* For both versions, as Linux does (core/roce_gid_mgmt.c, update_gid) */
static void add(struct table *t, const uint8_t gid[16])
{
	for (unsigned i = 0; i < t->n; i++)
		if (memcmp(t->gids[i].raw, gid, 16) == 0)
			return;
	if (t->n + 2 > HW_GIDS)
		return;
	for (int v1 = 1; v1 >= 0; v1--) {
		memcpy(t->gids[t->n].raw, gid, 16);
		t->gids[t->n++].roce_v1 = v1;
	}
}

void nic_dev_gids(unsigned dev, struct hw_gid gids[HW_GIDS], unsigned *ngids)
{
	static const uint8_t loopback[16] = {[15] = 1};
	const uint8_t link_local[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe,
		mac[3], mac[4], (uint8_t)(mac[5] + dev)};
	unsigned number, host = nic_dev_host(dev, &number);
	struct table t = {.gids = gids};
	uint8_t own[16];

	map_ipv4(own, htonl((uint32_t)IN_LOOPBACKNET << 24 | host << 16 | (number + 1)));
	add(&t, link_local);
	add(&t, own);
	for (unsigned i = 0; dev == 0 && i < nipv4; i++)
		add(&t, machine_gid[i]);
	if (number == 0 && has_ipv6)
		add(&t, loopback);
	for (unsigned i = nipv4; dev == 0 && i < nmachine_gids; i++)
		add(&t, machine_gid[i]);
	*ngids = t.n;
}

void ident_gids(const struct profile *profile, unsigned dev, struct hw_gid gids[HW_GIDS], unsigned *ngids)
{
	uint64_t guid = nic_dev_guid(dev);

	if (profile->value[PROFILE_LINK] != PROFILE_INFINIBAND) {
		nic_dev_gids(dev, gids, ngids);
		return;
	}
	*ngids = 1;
	memset(&gids[0], 0, sizeof(gids[0]));
	gids[0].raw[0] = 0xfe; /* the default prefix, as before any subnet manager sets one */
	gids[0].raw[1] = 0x80;
	memcpy(gids[0].raw + 8, &guid, sizeof(guid));
}

uint16_t ident_lid(unsigned dev)
{
	return (uint16_t)(FIRST_LID + dev);
}

void ident_init(const struct hosts *hosts)
{
	used = hosts;
	find_machine_gids();
}
