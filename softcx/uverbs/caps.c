/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/caps.h"

#include "softcx/proto/call.h"
#include "softcx/uverbs/prm.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

enum { VENDOR_MELLANOX = 0x02c9 };

static uint32_t fact(const struct hw_dev *hw, enum profile_fact f)
{
	return (uint32_t)hw_fact(hw, f);
}

bool uverbs_caps_ts_format(const struct hw_dev *hw, unsigned format)
{
	uint64_t clocks = fact(hw, PROFILE_CLOCKS);

	switch (format) {
	case PRM_TS_FREE_RUNNING:
		return clocks != PROFILE_REAL_TIME;
	case PRM_TS_DEFAULT: /* whichever that is: rdma-core tests/mlx5_base.py, create_qp() */
		return true;
	case PRM_TS_REAL_TIME:
		return clocks != PROFILE_FREE_RUNNING;
	default:
		return false;
	}
}

/* The default of a device that has both is assumed */
bool uverbs_caps_real_time(const struct hw_dev *hw, unsigned format)
{
	return format == PRM_TS_REAL_TIME ||
	       (format == PRM_TS_DEFAULT && fact(hw, PROFILE_CLOCKS) == PROFILE_REAL_TIME);
}

void uverbs_caps_ucontext(const struct hw_dev *hw, struct mlx5_ib_alloc_ucontext_resp *resp, size_t room)
{
	memset(resp, 0, sizeof(*resp));
	resp->qp_tab_size = 1u << fact(hw, PROFILE_LOG_QPS);
	resp->bf_reg_size = 512;
	resp->tot_bfregs = 0; /* the library allocates UARs itself */
	resp->cache_line_size = 64;
	resp->max_sq_desc_sz = fact(hw, PROFILE_SEND_WQE);
	resp->max_rq_desc_sz = fact(hw, PROFILE_RECV_WQE);
	resp->max_send_wqebb = 1u << UVERBS_LOG_MAX_QP_SZ;
	resp->max_recv_wr = 1u << UVERBS_LOG_MAX_QP_SZ;
	resp->max_srq_recv_wr = UVERBS_MAX_SRQ_WR;
	resp->num_ports = 1;
	resp->response_length = (uint32_t)(room < sizeof(*resp) ? room : sizeof(*resp));
	resp->cqe_version = 1;
	resp->cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE | MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
	resp->eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
	resp->log_uar_size = 12;
	resp->num_uars_per_page = 1;
	resp->clock_info_versions = 1 << MLX5_IB_CLOCK_INFO_V1;
	resp->comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_CORE_CLOCK_OFFSET;
	resp->hca_core_clock_offset = 0;
}

/* Of a send WQE with a remote address, and of a RECV */
static uint32_t sges(const struct hw_dev *hw)
{
	uint32_t send = fact(hw, PROFILE_SEND_WQE), recv = fact(hw, PROFILE_RECV_WQE);

	return ((send < recv ? send : recv) - 32) / 16;
}

void uverbs_caps_device(const struct hw_dev *hw, unsigned dev, struct ib_uverbs_ex_query_device_resp *resp)
{
	struct ib_uverbs_query_device_resp *b = &resp->base;

	memset(resp, 0, sizeof(*resp));
	b->fw_ver = hw_fact(hw, PROFILE_FIRMWARE);
	b->node_guid = nic_dev_guid(dev);
	b->sys_image_guid = nic_dev_guid(dev);
	b->max_mr_size = UINT64_MAX;
	b->page_size_cap = 0xfffffffffffff000;
	b->vendor_id = VENDOR_MELLANOX;
	b->vendor_part_id = fact(hw, PROFILE_PART);
	b->max_qp = 1u << fact(hw, PROFILE_LOG_QPS);
	b->max_qp_wr = 1u << UVERBS_LOG_MAX_QP_SZ;
	b->device_cap_flags = IB_UVERBS_DEVICE_BAD_PKEY_CNTR | IB_UVERBS_DEVICE_BAD_QKEY_CNTR |
			      IB_UVERBS_DEVICE_CHANGE_PHY_PORT | IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT |
			      IB_UVERBS_DEVICE_SYS_IMAGE_GUID | IB_UVERBS_DEVICE_RC_RNR_NAK_GEN |
			      IB_UVERBS_DEVICE_MEM_WINDOW | IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B;
	b->max_sge = sges(hw);
	b->max_sge_rd = b->max_sge;
	b->max_cq = 1u << UVERBS_LOG_MAX_CQ;
	b->max_cqe = UVERBS_MAX_CQE;
	b->max_mr = 1u << 24;
	b->max_mw = 1u << 24;
	b->max_pd = 1u << 24;
	b->max_qp_rd_atom = 1u << fact(hw, PROFILE_LOG_READS);
	b->max_res_rd_atom = b->max_qp_rd_atom * b->max_qp;
	b->max_qp_init_rd_atom = 1u << fact(hw, PROFILE_LOG_READS);
	/* Linux hw/mlx5/main.c get_atomic_caps: only what replies in host order counts */
	b->atomic_cap = fact(hw, PROFILE_ATOMICS) && fact(hw, PROFILE_HOST_ATOMICS) ? IBV_ATOMIC_HCA
										    : IBV_ATOMIC_NONE;
	b->max_ah = INT32_MAX;
	b->max_srq = 1u << UVERBS_LOG_MAX_SRQ;
	b->max_srq_wr = UVERBS_MAX_SRQ_WR;
	b->max_srq_sge = UVERBS_MAX_SRQ_SGE;
	b->max_pkeys = 1;
	b->local_ca_ack_delay = 16;
	b->phys_port_cnt = 1;

	resp->response_length = sizeof(*resp);
	resp->timestamp_mask = 0x7fffffffffffffff;
	resp->hca_core_clock = hw_clock_khz(hw);
	resp->device_cap_flags_ex = b->device_cap_flags;
	resp->cq_moderation_caps.max_cq_moderation_count = UINT16_MAX;
	resp->cq_moderation_caps.max_cq_moderation_period = 0xfff;
}

void uverbs_caps_device_drv(struct mlx5_ib_query_device_resp *resp, size_t room)
{
	memset(resp, 0, sizeof(*resp));
	resp->response_length = (uint32_t)(room < sizeof(*resp) ? room : sizeof(*resp));
}

int uverbs_caps_port(const struct hw_dev *dev, uint32_t port, struct ib_uverbs_query_port_resp_ex *ex)
{
	static const uint8_t speeds[] = {[PROFILE_EDR] = 32, [PROFILE_HDR] = 64, [PROFILE_NDR] = 128};
	struct ib_uverbs_query_port_resp *p = &ex->legacy_resp;

	memset(ex, 0, sizeof(*ex));
	if (port != 1)
		return -EINVAL;
	p->port_cap_flags = IB_UVERBS_PCF_CM_SUP;
	p->max_msg_sz = 1u << UVERBS_LOG_MAX_MSG;
	p->gid_tbl_len = UVERBS_GID_TABLE;
	p->pkey_tbl_len = 1;
	p->state = hw_port_up(dev) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	p->max_mtu = IBV_MTU_4096;
	p->active_mtu = IBV_MTU_4096;
	p->active_width = 2; /* 4x */
	p->active_speed = speeds[fact(dev, PROFILE_SPEED)];
	p->phys_state = hw_port_up(dev) ? 5 : 3; /* link up, disabled */
	if (hw_is_infiniband(dev)) {
		p->link_layer = IBV_LINK_LAYER_INFINIBAND;
		p->lid = hw_lid(dev);
		p->sm_lid = UVERBS_SM_LID;
		p->subnet_timeout = UVERBS_SUBNET_TIMEOUT;
		p->max_vl_num = 4; /* VL0 to VL7 */
		p->gid_tbl_len = UVERBS_IB_GID_TABLE;
		return 0;
	}
	p->port_cap_flags |= IB_UVERBS_PCF_IP_BASED_GIDS;
	p->link_layer = IBV_LINK_LAYER_ETHERNET;
	p->flags = IB_UVERBS_QPF_GRH_REQUIRED;
	return 0;
}

bool uverbs_caps_gid(const struct hw_dev *dev, uint32_t index, struct ib_uverbs_gid_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	if (!hw_gid(dev, index, (uint8_t *)entry->gid))
		return false;
	entry->gid_index = index;
	entry->port_num = 1;
	entry->gid_type = hw_is_infiniband(dev)      ? IB_UVERBS_GID_TYPE_IB
			  : hw_gid_is_v1(dev, index) ? IB_UVERBS_GID_TYPE_ROCE_V1
						     : IB_UVERBS_GID_TYPE_ROCE_V2;
	entry->netdev_ifindex = hw_is_infiniband(dev) ? 0 : NIC_DEV_IFINDEX;
	return true;
}

static void caps_general(const struct hw_dev *hw, uint8_t *p)
{
	prm_set(p, PRM_cmd_hca_cap_log_max_qp_sz, UVERBS_LOG_MAX_QP_SZ);
	prm_set(p, PRM_cmd_hca_cap_log_max_qp, fact(hw, PROFILE_LOG_QPS));
	prm_set(p, PRM_cmd_hca_cap_log_max_cq_sz, UVERBS_LOG_MAX_CQ_SZ);
	prm_set(p, PRM_cmd_hca_cap_log_max_cq, UVERBS_LOG_MAX_CQ);
	prm_set(p, PRM_cmd_hca_cap_log_max_mkey, 24);
	prm_set(p, PRM_cmd_hca_cap_log_max_ra_req_qp, fact(hw, PROFILE_LOG_READS));
	prm_set(p, PRM_cmd_hca_cap_log_max_ra_res_qp, fact(hw, PROFILE_LOG_READS));
	prm_set(p, PRM_cmd_hca_cap_port_type, !hw_is_infiniband(hw)); /* 1: Ethernet */
	prm_set(p, PRM_cmd_hca_cap_num_ports, 1);
	prm_set(p, PRM_cmd_hca_cap_stat_rate_support, UVERBS_STAT_RATES);
	prm_set(p, PRM_cmd_hca_cap_sq_ts_format, fact(hw, PROFILE_CLOCKS));
	prm_set(p, PRM_cmd_hca_cap_rq_ts_format, fact(hw, PROFILE_CLOCKS));
	prm_set(p, PRM_cmd_hca_cap_log_max_msg, UVERBS_LOG_MAX_MSG);
	prm_set(p, PRM_cmd_hca_cap_block_lb_mc, 1);
	prm_set(p, PRM_cmd_hca_cap_cqe_version, 1);
	prm_set(p, PRM_cmd_hca_cap_roce, !hw_is_infiniband(hw));
	prm_set(p, PRM_cmd_hca_cap_atomic, fact(hw, PROFILE_ATOMICS));
	prm_set(p, PRM_cmd_hca_cap_cq_oi, 1);
	prm_set(p, PRM_cmd_hca_cap_cd, fact(hw, PROFILE_CROSS_CHANNEL));
	prm_set(p, PRM_cmd_hca_cap_uar_4k, 1);
	prm_set(p, PRM_cmd_hca_cap_umem_uid_0, 1);
	prm_set(p, PRM_cmd_hca_cap_bf, 1);
	prm_set(p, PRM_cmd_hca_cap_log_bf_reg_size, 9);
	prm_set(p, PRM_cmd_hca_cap_max_wqe_sz_sq, fact(hw, PROFILE_SEND_WQE));
	prm_set(p, PRM_cmd_hca_cap_max_wqe_sz_rq, fact(hw, PROFILE_RECV_WQE));
	prm_set(p, PRM_cmd_hca_cap_log_max_pd, 24);
	prm_set(p, PRM_cmd_hca_cap_log_max_rmp, UVERBS_LOG_MAX_SRQ);
	prm_set(p, PRM_cmd_hca_cap_log_max_uctx, fact(hw, PROFILE_DEVX) ? 16 : 0);
	prm_set(p, PRM_cmd_hca_cap_log_max_umem, 24);
	prm_set(p, PRM_cmd_hca_cap_log_uar_page_sz, 0);
	prm_set(p, PRM_cmd_hca_cap_qpc_extension, 1);
	prm_set(p, PRM_cmd_hca_cap_dct, 1);
	prm_set(p, PRM_cmd_hca_cap_log_max_ra_req_dc, fact(hw, PROFILE_LOG_READS));
	prm_set(p, PRM_cmd_hca_cap_log_max_ra_res_dc, fact(hw, PROFILE_LOG_READS));
	prm_set(p, PRM_cmd_hca_cap_max_indirection, HW_INDIRECTIONS);
	prm_set(p, PRM_cmd_hca_cap_fixed_buffer_size, 1); /* KSM */
	prm_set(p, PRM_cmd_hca_cap_log_max_klm_list_size, HW_LOG_MAX_PIECES);
	if (fact(hw, PROFILE_SCHEDULING)) {
		prm_set(p, PRM_cmd_hca_cap_qos, 1);
		prm_set(p, PRM_cmd_hca_cap_general_obj_types, 1ull << PRM_OBJ_SCHED_ELEMENT);
	}
}

/* Limits, not shares. The library reads the rate limit only beside that for raw send queues, of which there
 * are none. */
static void caps_qos(uint8_t *p)
{
	enum { TSAR = 1 << 0, QUEUE_GROUP = 1 << 4, DWRR = 1 << 0 };

	prm_set(p, PRM_qos_cap_nic_sq_scheduling, 1);
	prm_set(p, PRM_qos_cap_nic_rate_limit, 1);
	prm_set(p, PRM_qos_cap_nic_qp_scheduling, 1);
	prm_set(p, PRM_qos_cap_nic_element_type, TSAR | QUEUE_GROUP);
	prm_set(p, PRM_qos_cap_nic_tsar_type, DWRR);
}

static void caps_atomic(const struct hw_dev *hw, uint8_t *p)
{
	/* Linux switches to host-endian 8-byte results at load when it can: core/main.c,
	 * handle_hca_cap_atomic */
	prm_set(p, PRM_atomic_caps_atomic_req_8B_endianness_mode, fact(hw, PROFILE_HOST_ATOMICS));
	prm_set(p, PRM_atomic_caps_supported_atomic_req_8B_endianness_mode_1, fact(hw, PROFILE_HOST_ATOMICS));
	/* CAS, FAA; masked CAS, masked FAA */
	prm_set(p, PRM_atomic_caps_atomic_operations, 0x3 | (fact(hw, PROFILE_MASKED_ATOMICS) ? 0xc : 0));
	prm_set(p, PRM_atomic_caps_atomic_size_qp, 0x4 | 0x8);
	prm_set(p, PRM_atomic_caps_atomic_size_dc, 0x4 | 0x8);
}

static void caps_roce(const struct hw_dev *hw, uint8_t *p)
{
	prm_set(p, PRM_roce_cap_fl_rc_qp_when_roce_enabled, fact(hw, PROFILE_FORCED_LOOPBACK));
	prm_set(p, PRM_roce_cap_fl_rc_qp_when_roce_disabled, 1);
	prm_set(p, PRM_roce_cap_sw_r_roce_src_udp_port, 1);
	prm_set(p, PRM_roce_cap_r_roce_min_src_udp_port, UVERBS_MIN_UDP_SPORT);
	prm_set(p, PRM_roce_cap_r_roce_max_src_udp_port, UVERBS_MAX_UDP_SPORT);
	prm_set(p, PRM_roce_cap_qp_ts_format, fact(hw, PROFILE_CLOCKS));
	prm_set(p, PRM_roce_cap_roce_version, 1 << 0 | 1 << 2); /* RoCE v1 and v2 */
	prm_set(p, PRM_roce_cap_roce_address_table_size, UVERBS_GID_TABLE);
}

/* enum mlx5_cap_type of Linux device.h: pages that a ConnectX-5 has beside those above */
enum {
	CAP_ETHERNET = 0x1,
	CAP_IPOIB = 0x5,
	CAP_IPOIB_ENHANCED = 0x6,
	CAP_FLOW_TABLE = 0x7,
	CAP_ESWITCH_FLOW_TABLE = 0x8,
	CAP_ESWITCH = 0x9,
	CAP_DEBUG = 0xd,
	CAP_DEVICE_MEMORY = 0xf,
	CAP_GENERAL_2 = 0x20,
};

bool uverbs_caps_hca(const struct hw_dev *hw, unsigned op_mod, uint8_t page[4096])
{
	memset(page, 0, 4096);
	switch (op_mod >> 1) {
	case PRM_CAP_GENERAL:
		caps_general(hw, page);
		return true;
	case PRM_CAP_QOS:
		caps_qos(page);
		return fact(hw, PROFILE_SCHEDULING);
	case PRM_CAP_ATOMIC:
		caps_atomic(hw, page);
		return true;
	case PRM_CAP_ROCE:
		caps_roce(hw, page);
		return !hw_is_infiniband(hw);
	case CAP_ETHERNET:
	case CAP_IPOIB:
	case CAP_IPOIB_ENHANCED:
	case CAP_FLOW_TABLE:
	case CAP_ESWITCH_FLOW_TABLE:
	case CAP_ESWITCH:
	case CAP_DEBUG:
	case CAP_DEVICE_MEMORY:
	case CAP_GENERAL_2:
		return true; /* the device has none of it */
	default:
		return false;
	}
}
