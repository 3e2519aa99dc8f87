/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/route.h"

#include "mlx5/wqe.h"

#include <string.h>

void hw_gid_mac(const uint8_t gid[16], uint8_t mac[6])
{
	if (gid[11] == 0xff && gid[12] == 0xfe) { /* EUI-64: the MAC with ff:fe inside, U/L bit flipped */
		const uint8_t eui[6] = {gid[8] ^ 2, gid[9], gid[10], gid[13], gid[14], gid[15]};

		memcpy(mac, eui, 6);
		return;
	}
	mac[0] = 0x02;
	mac[1] = 0;
	memcpy(mac + 2, gid + 12, 4);
}

/*
 * struct mlx5_wqe_av: the index of the source GID is in bits 27:20 of grh_gid_fl; in rlid is the UDP port, on
 * InfiniBand the LID. Bit 30 is for InfiniBand, where a GRH is optional (rdma-core, mlx5_create_ah()).
 */
struct hw_av hw_datagram_av(const struct hw_dev *dev, const uint8_t *wqe)
{
	uint32_t grh = wqe_get32(wqe + WQE_UD_GRH);
	struct hw_av av = {
		.grh = hw_is_infiniband(dev) && grh >> 30 & 1,
		.dlid = wqe_get16(wqe + WQE_UD_SPORT),
		.sgid_index = grh >> 20 & (HW_GIDS - 1),
		.hop_limit = wqe[WQE_UD_HOP_LIMIT],
		.dscp = wqe[WQE_UD_TCLASS] >> 2,
		.udp_sport = wqe_get16(wqe + WQE_UD_SPORT),
	};

	memcpy(av.dgid, wqe + WQE_UD_RGID, sizeof(av.dgid));
	memcpy(av.dmac, wqe + WQE_UD_RMAC, sizeof(av.dmac));
	return av;
}

static enum hw_lost lost(const struct hw_av *av, const struct hw_dev *to)
{
	uint8_t mac[6];

	if (!to)
		return HW_LOST_GID;
	hw_gid_mac(av->dgid, mac);
	if (memcmp(mac, av->dmac, sizeof(mac)) != 0)
		return HW_LOST_MAC;
	return av->hop_limit ? HW_LOST_ELSEWHERE : HW_LOST_HOPS;
}

static enum hw_lost lost_in_subnet(const struct hw_av *av, const struct hw_dev *to)
{
	if (!to)
		return HW_LOST_LID;
	return !av->grh || hw_has_gid(to, av->dgid) ? HW_LOST_ELSEWHERE : HW_LOST_GRH;
}

struct hw_dev *hw_route(struct hw_dev *from, const struct hw_av *av, enum hw_lost *why)
{
	bool infiniband = hw_is_infiniband(from);
	struct hw_dev *to = av->loopback                 ? from
			    : infiniband                 ? hw_dev_by_lid(av->dlid)
			    : hw_has_gid(from, av->dgid) ? from
							 : hw_dev_by_gid(av->dgid);
	enum hw_lost reason = av->loopback ? HW_LOST_ELSEWHERE
			      : infiniband ? lost_in_subnet(av, to)
					   : lost(av, to);

	if (why)
		*why = reason;
	return reason == HW_LOST_ELSEWHERE ? to : NULL;
}
