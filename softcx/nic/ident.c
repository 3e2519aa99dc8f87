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
static uint8_t machine_gid[16 - 2][16]; /* the IPv4 addresses of this machine */
static unsigned nmachine_gids;

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

static void find_machine_gids(void)
{
	struct ifaddrs *list;

	if (getifaddrs(&list))
		return;
	for (struct ifaddrs *i = list; i && nmachine_gids < COUNT(machine_gid); i = i->ifa_next) {
		const struct sockaddr_in *sin = (const struct sockaddr_in *)i->ifa_addr;

		if (sin && sin->sin_family == AF_INET && (i->ifa_flags & IFF_UP) &&
			!(i->ifa_flags & IFF_LOOPBACK))
			map_ipv4(machine_gid[nmachine_gids++], sin->sin_addr.s_addr);
	}
	freeifaddrs(list);
}

void nic_dev_gids(unsigned dev, uint8_t gids[16][16], unsigned *ngids)
{
	const uint8_t link_local[16] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe,
		mac[3], mac[4], (uint8_t)(mac[5] + dev)};
	unsigned number, host = nic_dev_host(dev, &number);

	memcpy(gids[0], link_local, 16);
	map_ipv4(gids[1], htonl((uint32_t)IN_LOOPBACKNET << 24 | host << 16 | (number + 1)));
	*ngids = 2;
	if (dev != 0)
		return;
	memcpy(gids[2], machine_gid, sizeof(machine_gid));
	*ngids += nmachine_gids;
}

void ident_gids(const struct profile *profile, unsigned dev, uint8_t gids[16][16], unsigned *ngids)
{
	uint64_t guid = nic_dev_guid(dev);

	if (profile->value[PROFILE_LINK] != PROFILE_INFINIBAND) {
		nic_dev_gids(dev, gids, ngids);
		return;
	}
	*ngids = 1;
	memset(gids[0], 0, 16);
	gids[0][0] = 0xfe; /* the default prefix, as before any subnet manager sets one */
	gids[0][1] = 0x80;
	memcpy(gids[0] + 8, &guid, sizeof(guid));
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
