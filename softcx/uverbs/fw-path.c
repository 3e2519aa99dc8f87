/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address paths of queue pairs. Firmware refuses what it cannot send; an address that is wrong is refused by
 * nobody, and its packets are lost (softcx/hw/resp.h).
 */
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/fw-obj.h"
#include "softcx/uverbs/prm.h"

#include <string.h>

enum { PORT = 1 };

int uverbs_fw_read_port(const struct uverbs_mbox *m, const uint8_t *ads)
{
	return prm_get(ads, PRM_ads_vhca_port_num) == PORT ? 0
							   : uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_PORT);
}

/* Linux mlx5_set_path() writes these on RoCE only. */
static bool is_roce(const uint8_t *ads)
{
	static const uint8_t none[6];

	return memcmp(ads + PRM_ads_rmac_47_32_byte, none, sizeof(none)) != 0 ||
	       prm_get(ads, PRM_ads_udp_sport) || prm_get(ads, PRM_ads_dscp) ||
	       prm_get(ads, PRM_ads_eth_prio);
}

int uverbs_fw_read_path(
	struct uverbs_file *file, const struct uverbs_mbox *m, const uint8_t *ads, struct hw_av *av)
{
	unsigned rate = (unsigned)prm_get(ads, PRM_ads_stat_rate);
	uint8_t gid[16];

	*av = (struct hw_av){
		.loopback = prm_get(ads, PRM_ads_fl),
		.grh = prm_get(ads, PRM_ads_grh),
		.dlid = (uint16_t)prm_get(ads, PRM_ads_rlid),
		.sgid_index = (uint8_t)prm_get(ads, PRM_ads_src_addr_index),
		.hop_limit = (uint8_t)prm_get(ads, PRM_ads_hop_limit),
		.dscp = (uint8_t)prm_get(ads, PRM_ads_dscp),
		.udp_sport = (uint16_t)prm_get(ads, PRM_ads_udp_sport),
	};
	memcpy(av->dgid, ads + PRM_ads_rgid_rip_byte, sizeof(av->dgid));
	memcpy(av->dmac, ads + PRM_ads_rmac_47_32_byte, sizeof(av->dmac));
	if (!hw_gid(file->dev, av->sgid_index, gid))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_GID);
	if (rate && !(UVERBS_STAT_RATES >> rate & 1))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_STAT_RATE);
	if (uverbs_fw_read_port(m, ads) < 0)
		return -EREMOTEIO;
	if (av->loopback)
		return hw_fact(file->dev, PROFILE_FORCED_LOOPBACK)
			       ? 0
			       : uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_LOOPBACK);
	if (hw_is_infiniband(file->dev))
		return is_roce(ads) ? uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_PATH) : 0;
	/* Linux mlx5_set_path() writes these on InfiniBand only; rdma-core mlx5_create_ah(): every RoCE
	 * packet has a GRH, so the bit is reserved and should not be set */
	if (prm_get(ads, PRM_ads_grh) || prm_get(ads, PRM_ads_rlid) || prm_get(ads, PRM_ads_mlid))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_PATH);
	/* and these for RoCE v2 only; rdma-core tests/mlx5_base.py: "UDP sport must be reserved for roce v1"
	 */
	if (hw_gid_is_v1(file->dev, av->sgid_index))
		return av->udp_sport || av->dscp ? uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_PATH) : 0;
	return av->udp_sport < UVERBS_MIN_UDP_SPORT ? uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_SPORT) : 0;
}

void uverbs_fw_write_path(uint8_t *ads, const struct hw_av *av)
{
	prm_set(ads, PRM_ads_fl, av->loopback);
	prm_set(ads, PRM_ads_grh, av->grh);
	prm_set(ads, PRM_ads_rlid, av->dlid);
	prm_set(ads, PRM_ads_src_addr_index, av->sgid_index);
	prm_set(ads, PRM_ads_hop_limit, av->hop_limit);
	prm_set(ads, PRM_ads_dscp, av->dscp);
	prm_set(ads, PRM_ads_udp_sport, av->udp_sport);
	memcpy(ads + PRM_ads_rgid_rip_byte, av->dgid, sizeof(av->dgid));
	memcpy(ads + PRM_ads_rmac_47_32_byte, av->dmac, sizeof(av->dmac));
}
