/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/internal.h"

#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rnic_neighbour_resolve(
	struct rnic_device *dev, struct ibv_ah_attr *address, uint8_t mac[6], uint16_t *udp_sport)
{
	struct mlx5dv_ah dv = {0};
	struct mlx5dv_obj obj = {0};
	struct ibv_ah *ah = ibv_create_ah(dev->pd->pd, address);
	int r;

	if (!ah)
		return errno ? -errno : -EHOSTUNREACH;
	if (!dev->direct) { /* the kernel knows it now, and connects queue pairs by itself */
		ibv_destroy_ah(ah);
		return 0;
	}
	obj.ah.in = ah;
	obj.ah.out = &dv;
	r = mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH);
	if (r == 0) {
		memcpy(mac, dv.av->rmac, 6);
		*udp_sport = be16toh(dv.av->rlid);
	}
	ibv_destroy_ah(ah);
	return -abs(r);
}

enum { HOP_LIMIT = 64 };

/* RoCE v2 before v1. A link-local GID is there for as long as the port is, and the kernel computes its MAC
 * address without asking anybody (Linux drivers/infiniband/core/verbs.c, ib_resolve_unicast_gid_dmac). */
static unsigned worth(const struct ibv_gid_entry *e)
{
	return (e->gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0) + (rnic_gid_is_link_local(&e->gid) ? 1 : 0);
}

/* To port @to, from GID @e of @dev: the MAC address of the other port, and the UDP port to send from. */
static int resolve(struct rnic_device *dev, const struct ibv_gid_entry *e, const struct ibv_gid_entry *to,
	struct rnic_path *path)
{
	struct ibv_ah_attr attr = {.is_global = 1,
		.port_num = RNIC_PORT,
		.grh = {.dgid = to->gid, .sgid_index = (uint8_t)e->gid_index, .hop_limit = HOP_LIMIT}};
	int r = rnic_neighbour_resolve(dev, &attr, path->dmac, &path->udp_sport);

	if (r < 0)
		return r;
	if (path->udp_sport < RNIC_UDP_SPORT_MIN)
		path->udp_sport = RNIC_UDP_SPORT_MIN;
	memcpy(path->dgid, to->gid.raw, sizeof(path->dgid));
	path->sgid_index = (uint8_t)e->gid_index;
	path->hop_limit = HOP_LIMIT;
	return 0;
}

struct gids {
	struct ibv_gid_entry *entry;
	ssize_t n;
};

static void free_gids(struct gids *g)
{
	free(g->entry);
}

static int read_gids(struct rnic_device *dev, struct gids *g)
{
	struct ibv_port_attr port;
	int r = ibv_query_port(dev->ctx, RNIC_PORT, &port);

	if (r)
		return log_errno(-abs(r), "%s: cannot query its port", rnic_name(dev));
	g->entry = calloc((size_t)port.gid_tbl_len + 1, sizeof(*g->entry));
	if (!g->entry)
		return -ENOMEM;
	g->n = ibv_query_gid_table(dev->ctx, g->entry, (size_t)port.gid_tbl_len, 0);
	return g->n < 0 ? log_errno((int)g->n, "%s: cannot read its GIDs", rnic_name(dev)) : 0;
}

/* Tries GIDs of one kind on both sides: the best that leads there */
static int find_gids(struct rnic_device *dev, struct rnic_device *to, struct rnic_path *path)
{
	CLEANUP(free_gids) struct gids own = {0};
	CLEANUP(free_gids) struct gids other = {0};
	int r = read_gids(dev, &own);

	if (r == 0)
		r = read_gids(to, &other);
	if (r < 0)
		return r;
	r = -ENODATA;
	for (unsigned w = 4; w-- > 0 && r < 0;)
		for (ssize_t i = 0; i < own.n && r < 0; i++)
			for (ssize_t j = dev == to ? i : 0; j < (dev == to ? i + 1 : other.n) && r < 0; j++)
				if (own.entry[i].port_num == RNIC_PORT &&
					other.entry[j].port_num == RNIC_PORT && worth(&own.entry[i]) == w &&
					worth(&other.entry[j]) == w)
					r = resolve(dev, &own.entry[i], &other.entry[j], path);
	return r < 0 ? log_errno(r, "%s: no GID leads to %s: both network interfaces must be up",
			       rnic_name(dev), rnic_name(to))
		     : 0;
}

int rnic_path_to(struct rnic_device *dev, struct rnic_device *to, struct rnic_path *path)
{
	struct ibv_port_attr port;
	int r = ibv_query_port(to->ctx, RNIC_PORT, &port);

	if (r)
		return log_errno(-abs(r), "%s: cannot query its port", rnic_name(to));
	*path = (struct rnic_path){.port = RNIC_PORT, .mtu = (uint8_t)port.active_mtu};
	if (!dev->caps.infiniband)
		return find_gids(dev, to, path);
	if (!port.lid) {
		log_error("%s: its port has no LID: a subnet manager must run", rnic_name(to));
		return -ENETDOWN;
	}
	path->dlid = port.lid;
	return 0;
}

int rnic_own_path_find(struct rnic_device *dev)
{
	int r;

	dev->own = (struct rnic_path){.port = RNIC_PORT, .mtu = IBV_MTU_4096};
	if (!dev->caps.infiniband && dev->caps.force_loopback) {
		dev->own.loopback = true;
		return 0;
	}
	r = rnic_path_to(dev, dev, &dev->own);
	if (r < 0)
		return r;
	if (dev->caps.infiniband)
		log_info("%s: its queues reach each other by LID %u", rnic_name(dev), dev->own.dlid);
	else
		log_info("%s: its queues reach each other by GID %u, as it has no forced loopback",
			rnic_name(dev), dev->own.sgid_index);
	return 0;
}
