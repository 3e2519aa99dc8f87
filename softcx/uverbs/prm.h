/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prm.h - bit positions of firmware commands that only the emulated firmware knows, in the form of
 * mlx5/prm.h. Sources: rdma-core 44 providers/mlx5/mlx5_ifc.h; DPDK drivers/common/mlx5/mlx5_prm.h for the
 * umem of CREATE_MKEY.
 */
#ifndef SOFTCX_UVERBS_PRM_H
#define SOFTCX_UVERBS_PRM_H

#include "mlx5/prm.h"

/* clang-format off */
enum {
	PRM_OP_QUERY_MKEY = 0x201,
	PRM_OP_CREATE_DCT = 0x710,
	PRM_OP_QUERY_LAG = 0x842,
	PRM_OP_CREATE_RMP = 0x90c,
	PRM_OP_CREATE_GENERAL = 0xa00, PRM_OP_MODIFY_GENERAL = 0xa01, PRM_OP_QUERY_GENERAL = 0xa02,
	PRM_OBJ_SCHED_ELEMENT = 0x26,
	PRM_CAP_QOS = 0xc,
	PRM_SIZE_sched_element_in = 144, PRM_SIZE_sched_element = 128,
	PRM_SIZE_klm = 16,
	PRM_SIZE_query_lag_in = 16, PRM_SIZE_query_lag_out = 16,
	PRM_SIZE_create_dct_in = 128, PRM_SIZE_create_dct_out = 16,
	PRM_SIZE_create_rmp_in = 272, PRM_SIZE_create_rmp_out = 16,
	PRM_SIZE_modify_qp_ext_in = 464, /* INIT2INIT and RTS2RTS with their extension */
};

#define PRM_create_mkey_in_mkey_umem_id 0x320, 32
#define PRM_create_mkey_in_mkey_umem_offset 0x340, 64
#define PRM_query_mkey_out_mkc_byte 0x010
#define PRM_create_mkey_in_klm_pas_mtt_byte 0x110 /* PRM_SIZE_klm bytes each */
#define PRM_klm_byte_count 0x000, 32
#define PRM_klm_mkey 0x020, 32
#define PRM_klm_address 0x040, 64
#define PRM_mkc_access_mode_4_2 0x003, 3
#define PRM_mkc_umr_en 0x010, 1
#define PRM_mkc_bsf_en 0x061, 1
#define PRM_mkc_en_rinval 0x067, 1

#define PRM_create_dct_in_dctc_byte 0x010
#define PRM_create_dct_out_dctn 0x048, 24
#define PRM_dctc_user_index 0x028, 24
#define PRM_dctc_cqn 0x048, 24
#define PRM_dctc_atomic_mode 0x068, 4
#define PRM_dctc_rre 0x06c, 1
#define PRM_dctc_rwe 0x06d, 1
#define PRM_dctc_rae 0x06e, 1
#define PRM_dctc_cs_res 0x088, 8
#define PRM_dctc_min_rnr_nak 0x093, 5
#define PRM_dctc_srqn_xrqn 0x0a8, 24
#define PRM_dctc_pd 0x0c8, 24
#define PRM_dctc_dc_access_key 0x100, 64
#define PRM_dctc_mtu 0x145, 3

#define PRM_create_rmp_in_wq_byte 0x050 /* of the context at 0x020 */
#define PRM_create_rmp_out_rmpn 0x048, 24
#define PRM_wq_type 0x000, 4
#define PRM_wq_signature 0x004, 1
#define PRM_wq_lwm 0x030, 16
#define PRM_wq_pd 0x048, 24
#define PRM_wq_dbr_addr 0x080, 64
#define PRM_wq_log_stride 0x10c, 4
#define PRM_wq_log_size 0x11b, 5
/* rdma-core has these two, Linux has them reserved */
#define PRM_wq_dbr_umem_id 0x140, 32
#define PRM_wq_umem_id 0x160, 32
#define PRM_wq_umem_offset 0x180, 64

#define PRM_general_obj_type 0x030, 16
#define PRM_general_obj_id 0x040, 32
/* the element follows the header of 16 bytes, in commands and in the answer to a query */
#define PRM_sched_element_byte 0x010
#define PRM_sched_element_modify_field_select 0x000, 64
#define PRM_sched_element_hierarchy 0x040, 8
#define PRM_sched_element_element_type 0x100, 8
#define PRM_sched_element_tsar_type 0x128, 8
#define PRM_sched_element_parent_id 0x140, 32
#define PRM_sched_element_max_average_bw 0x1c0, 32

#define PRM_modify_qp_in_qpc_ext 0x040, 1
#define PRM_modify_qp_in_opt_param_mask_95_32 0x840, 64
#define PRM_modify_qp_in_queue_group_requester 0x8a0, 32
#define PRM_modify_qp_in_queue_group_responder 0x8c0, 32

#define PRM_cmd_hca_cap_max_indirection 0x100, 8
#define PRM_cmd_hca_cap_fixed_buffer_size 0x108, 1
#define PRM_cmd_hca_cap_log_max_klm_list_size 0x11a, 6
#define PRM_cmd_hca_cap_log_max_ra_req_dc 0x12a, 6
#define PRM_cmd_hca_cap_log_max_ra_res_dc 0x13a, 6
#define PRM_cmd_hca_cap_dct 0x21a, 1
#define PRM_cmd_hca_cap_qpc_extension 0x122, 1
#define PRM_cmd_hca_cap_rq_ts_format 0x442, 2
#define PRM_cmd_hca_cap_log_max_msg 0x1c3, 5
#define PRM_cmd_hca_cap_qos 0x21b, 1
#define PRM_cmd_hca_cap_block_lb_mc 0x228, 1
#define PRM_cmd_hca_cap_log_max_rmp 0x383, 5
#define PRM_cmd_hca_cap_general_obj_types 0x400, 64
#define PRM_qos_cap_nic_sq_scheduling 0x008, 1
#define PRM_qos_cap_nic_rate_limit 0x00a, 1
#define PRM_qos_cap_nic_qp_scheduling 0x021, 1
#define PRM_qos_cap_nic_element_type 0x100, 16
#define PRM_qos_cap_nic_tsar_type 0x110, 16
/* clang-format on */

#endif
