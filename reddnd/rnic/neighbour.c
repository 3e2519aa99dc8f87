/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/neighbour.h"

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
