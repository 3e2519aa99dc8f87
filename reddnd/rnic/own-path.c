/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/own-path.h"

#include "reddnd/rnic/neighbour.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PORT = 1, HOP_LIMIT = 64 };

static bool is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* RoCE v2 before v1. A link-local GID is there for as long as the port is, and the kernel computes its MAC
 * address without asking anybody (Linux drivers/infiniband/core/verbs.c, ib_resolve_unicast_gid_dmac). */
static unsigned worth(const struct ibv_gid_entry *e)
{
	return (e->gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0) + (is_link_local(&e->gid) ? 1 : 0);
}

/* The MAC address of @e, and the UDP port to send from. */
static int resolve(struct rnic_device *dev, const struct ibv_gid_entry *e, struct rnic_path *own)
{
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = PORT,
		.grh = {.dgid = e->gid, .sgid_index = (uint8_t)e->gid_index, .hop_limit = HOP_LIMIT}};
	int r = rnic_neighbour_resolve(dev, &attr, own->dmac, &own->udp_sport);

	if (r < 0)
		return r;
	if (own->udp_sport < RNIC_UDP_SPORT_MIN)
		own->udp_sport = RNIC_UDP_SPORT_MIN;
	memcpy(own->dgid, e->gid.raw, sizeof(own->dgid));
	own->sgid_index = (uint8_t)e->gid_index;
	own->hop_limit = HOP_LIMIT;
	return 0;
}

static int find_gid(struct rnic_device *dev, unsigned most)
{
	CLEANUP(cleanup_free) struct ibv_gid_entry *all = calloc(most ? most : 1, sizeof(*all));
	ssize_t n = all ? ibv_query_gid_table(dev->ctx, all, most, 0) : -ENOMEM;
	int r = -ENODATA;

	if (n < 0)
		return log_errno((int)n, "%s: cannot read its GIDs", rnic_device_name(dev));
	for (unsigned w = 4; w-- > 0 && r < 0;)
		for (ssize_t i = 0; i < n && r < 0; i++)
			if (all[i].port_num == PORT && worth(&all[i]) == w)
				r = resolve(dev, &all[i], &dev->own);
	return r < 0 ? log_errno(r,
			       "%s has no forced loopback, and no GID of its own leads to it: its network "
			       "interface must be up",
			       rnic_device_name(dev))
		     : 0;
}

int rnic_own_path_find(struct rnic_device *dev)
{
	struct ibv_port_attr port;
	int r;

	dev->own = (struct rnic_path){.port = PORT, .mtu = IBV_MTU_4096};
	if (!dev->caps.infiniband && dev->caps.force_loopback) {
		dev->own.loopback = true;
		return 0;
	}
	r = ibv_query_port(dev->ctx, PORT, &port);
	if (r)
		return log_errno(-abs(r), "%s: cannot query its port", rnic_device_name(dev));
	dev->own.mtu = (uint8_t)port.active_mtu;
	if (!dev->caps.infiniband) {
		r = find_gid(dev, (unsigned)port.gid_tbl_len);
		if (r == 0)
			log_info("%s: its queues reach each other by GID %u, as it has no forced loopback",
				rnic_device_name(dev), dev->own.sgid_index);
		return r;
	}
	if (!port.lid) {
		log_error("%s: its port has no LID: a subnet manager must run", rnic_device_name(dev));
		return -ENETDOWN;
	}
	dev->own.dlid = port.lid;
	log_info("%s: its queues reach each other by LID %u", rnic_device_name(dev), port.lid);
	return 0;
}
