/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prm.h - bit positions of the mlx5 firmware commands and contexts that this project uses.
 *
 * Each PRM_<struct>_<field> expands to "first bit, width" as the Linux header mlx5_ifc.h counts
 * them: bit 0 is the most significant bit of byte 0. Sources: Linux 6.1 include/linux/mlx5/mlx5_ifc.h
 * and, for the umem fields of CREATE_QP, CREATE_CQ, QPC and CQC, DPDK drivers/common/mlx5/mlx5_prm.h.
 * A unit test compares every position with the kernel header of the machine it runs on.
 * Names ending in _byte are byte offsets of nested structures.
 */
#ifndef MLX5_PRM_H
#define MLX5_PRM_H

#include <stdint.h>

/* clang-format off */
enum prm_opcode {
	PRM_OP_QUERY_HCA_CAP = 0x100,
	PRM_OP_CREATE_MKEY = 0x200, PRM_OP_DESTROY_MKEY = 0x202,
	PRM_OP_CREATE_CQ = 0x400, PRM_OP_DESTROY_CQ = 0x401, PRM_OP_QUERY_CQ = 0x402, PRM_OP_MODIFY_CQ = 0x403,
	PRM_OP_CREATE_QP = 0x500, PRM_OP_DESTROY_QP = 0x501, PRM_OP_RST2INIT_QP = 0x502, PRM_OP_INIT2RTR_QP = 0x503,
	PRM_OP_RTR2RTS_QP = 0x504, PRM_OP_RTS2RTS_QP = 0x505, PRM_OP_2ERR_QP = 0x507, PRM_OP_2RST_QP = 0x50a,
	PRM_OP_QUERY_QP = 0x50b, PRM_OP_INIT2INIT_QP = 0x50e,
};

/* What timestamps of a queue are. DEFAULT: what the device is set to */
enum prm_ts_format { PRM_TS_FREE_RUNNING = 0, PRM_TS_DEFAULT = 1, PRM_TS_REAL_TIME = 2 };

/* op_mod of QUERY_HCA_CAP is type << 1 | 1 for the current (not maximal) value */
enum prm_cap_type { PRM_CAP_GENERAL = 0, PRM_CAP_ATOMIC = 3, PRM_CAP_ROCE = 4 };

enum prm_size {
	PRM_SIZE_create_qp_in = 272, PRM_SIZE_create_qp_out = 16, PRM_SIZE_qpc = 232, PRM_SIZE_ads = 44,
	PRM_SIZE_modify_qp_in = 272, PRM_SIZE_modify_qp_out = 16, /* RST2INIT, INIT2RTR, RTR2RTS, RTS2RTS */
	PRM_SIZE_qp_2err_in = 16, PRM_SIZE_destroy_in = 16, PRM_SIZE_destroy_out = 16,
	PRM_SIZE_query_qp_in = 16, PRM_SIZE_query_qp_out = 272,
	PRM_SIZE_query_cq_out = 272, PRM_SIZE_create_cq_in = 272, PRM_SIZE_create_cq_out = 16, PRM_SIZE_cqc = 64,
	PRM_SIZE_create_mkey_in = 272, PRM_SIZE_mkc = 64,
	PRM_SIZE_query_hca_cap_in = 16, PRM_SIZE_query_hca_cap_out = 4112,
};

/* Every command and every answer starts alike */
#define PRM_in_opcode 0x00, 16
#define PRM_in_uid 0x10, 16
#define PRM_in_op_mod 0x30, 16
#define PRM_in_objn 0x48, 24 /* QPN, CQN or mkey index of modify, query and destroy commands */
#define PRM_out_status 0x00, 8
#define PRM_out_syndrome 0x20, 32
#define PRM_out_objn 0x48, 24 /* QPN, CQN or mkey index of create commands */
/* RST2INIT and its successors: opt_param_mask and the QPC sit where CREATE_QP has them */
#define PRM_modify_qp_in_opt_param_mask 0x80, 32
#define PRM_modify_qp_in_qpc_byte 0x018

#define PRM_create_qp_in_opcode 0x000, 16
#define PRM_create_qp_in_uid 0x010, 16
#define PRM_create_qp_in_opt_param_mask 0x080, 32
#define PRM_create_qp_in_qpc_byte 0x018 /* 232 bytes */
#define PRM_create_qp_in_wq_umem_offset 0x800, 64
#define PRM_create_qp_in_wq_umem_id 0x840, 32
#define PRM_create_qp_in_wq_umem_valid 0x860, 1

#define PRM_create_qp_out_qpn 0x048, 24

#define PRM_qpc_state 0x000, 4
#define PRM_qpc_st 0x008, 8
#define PRM_qpc_pm_state 0x013, 2
#define PRM_qpc_pd 0x028, 24
#define PRM_qpc_mtu 0x040, 3
#define PRM_qpc_log_msg_max 0x043, 5
#define PRM_qpc_log_rq_size 0x049, 4
#define PRM_qpc_log_rq_stride 0x04d, 3
#define PRM_qpc_no_sq 0x050, 1
#define PRM_qpc_log_sq_size 0x051, 4
#define PRM_qpc_ts_format 0x058, 2
#define PRM_qpc_rlky 0x05b, 1
#define PRM_qpc_counter_set_id 0x060, 8
#define PRM_qpc_uar_page 0x068, 24
#define PRM_qpc_user_index 0x088, 24
#define PRM_qpc_log_page_size 0x0a3, 5
#define PRM_qpc_remote_qpn 0x0a8, 24
#define PRM_qpc_primary_address_path_byte 0x018 /* 44 bytes */
#define PRM_qpc_log_ack_req_freq 0x380, 4
#define PRM_qpc_log_sra_max 0x388, 3
#define PRM_qpc_retry_count 0x38d, 3
#define PRM_qpc_rnr_retry 0x390, 3
#define PRM_qpc_next_send_psn 0x3c8, 24
#define PRM_qpc_cqn_snd 0x3e8, 24
#define PRM_qpc_log_rra_max 0x488, 3
#define PRM_qpc_atomic_mode 0x48c, 4
#define PRM_qpc_rre 0x490, 1
#define PRM_qpc_rwe 0x491, 1
#define PRM_qpc_rae 0x492, 1
#define PRM_qpc_cd_slave_receive 0x49d, 1
#define PRM_qpc_cd_slave_send 0x49e, 1
#define PRM_qpc_cd_master 0x49f, 1
#define PRM_qpc_min_rnr_nak 0x4a3, 5
#define PRM_qpc_next_rcv_psn 0x4a8, 24
#define PRM_qpc_cqn_rcv 0x4e8, 24
#define PRM_qpc_dbr_addr 0x500, 64
#define PRM_qpc_rq_type 0x565, 3
#define PRM_qpc_srqn_rmpn_xrqn 0x568, 24
#define PRM_qpc_hw_sq_wqebb_counter 0x5a0, 16
#define PRM_qpc_sw_sq_wqebb_counter 0x5b0, 16
#define PRM_qpc_hw_rq_counter 0x5c0, 32
#define PRM_qpc_cs_req 0x630, 8
#define PRM_qpc_cs_res 0x638, 8
#define PRM_qpc_dbr_umem_valid 0x683, 1
#define PRM_qpc_dbr_umem_id 0x720, 32

#define PRM_ads_fl 0x000, 1
#define PRM_ads_pkey_index 0x010, 16
#define PRM_ads_grh 0x028, 1
#define PRM_ads_mlid 0x029, 7
#define PRM_ads_rlid 0x030, 16
#define PRM_ads_ack_timeout 0x040, 5
#define PRM_ads_src_addr_index 0x048, 8
#define PRM_ads_stat_rate 0x054, 4
#define PRM_ads_hop_limit 0x058, 8
#define PRM_ads_tclass 0x064, 8
#define PRM_ads_flow_label 0x06c, 20
#define PRM_ads_rgid_rip_byte 0x010 /* 16 bytes */
#define PRM_ads_dscp 0x10a, 6
#define PRM_ads_udp_sport 0x110, 16
#define PRM_ads_eth_prio 0x121, 3
#define PRM_ads_sl 0x124, 4
#define PRM_ads_vhca_port_num 0x128, 8
#define PRM_ads_rmac_47_32_byte 0x026 /* all 6 bytes of the MAC address */

#define PRM_query_qp_out_qpc_byte 0x018 /* 232 bytes */

#define PRM_create_cq_in_cq_context_byte 0x010 /* 64 bytes */
#define PRM_create_cq_in_cq_umem_offset 0x280, 64
#define PRM_create_cq_in_cq_umem_id 0x2c0, 32
#define PRM_create_cq_in_cq_umem_valid 0x2e0, 1

#define PRM_create_cq_out_cqn 0x048, 24

#define PRM_cqc_status 0x000, 4
#define PRM_cqc_dbr_umem_valid 0x006, 1
#define PRM_cqc_cqe_sz 0x008, 3
#define PRM_cqc_cc 0x00b, 1
#define PRM_cqc_scqe_break_moderation_en 0x00d, 1
#define PRM_cqc_oi 0x00e, 1
#define PRM_cqc_cq_period_mode 0x00f, 2
#define PRM_cqc_cqe_comp_en 0x011, 1
#define PRM_cqc_st 0x014, 4
#define PRM_cqc_dbr_umem_id 0x020, 32
#define PRM_cqc_log_cq_size 0x063, 5
#define PRM_cqc_uar_page 0x068, 24
#define PRM_cqc_cq_period 0x084, 12
#define PRM_cqc_cq_max_count 0x090, 16
#define PRM_cqc_c_eqn_or_apu_element 0x0a0, 32
#define PRM_cqc_log_page_size 0x0c3, 5
#define PRM_cqc_consumer_counter 0x148, 24
#define PRM_cqc_producer_counter 0x168, 24
#define PRM_cqc_dbr_addr 0x1c0, 64

#define PRM_query_cq_out_cq_context_byte 0x010 /* 64 bytes */

#define PRM_create_mkey_in_mkey_umem_valid 0x061, 1
#define PRM_create_mkey_in_memory_key_mkey_entry_byte 0x010 /* 64 bytes */
#define PRM_create_mkey_in_translations_octword_actual_size 0x300, 32

#define PRM_create_mkey_out_mkey_index 0x048, 24

#define PRM_mkc_free 0x001, 1
#define PRM_mkc_a 0x011, 1
#define PRM_mkc_rw 0x012, 1
#define PRM_mkc_rr 0x013, 1
#define PRM_mkc_lw 0x014, 1
#define PRM_mkc_lr 0x015, 1
#define PRM_mkc_access_mode_1_0 0x016, 2
#define PRM_mkc_qpn 0x020, 24
#define PRM_mkc_mkey_7_0 0x038, 8
#define PRM_mkc_length64 0x060, 1
#define PRM_mkc_pd 0x068, 24
#define PRM_mkc_start_addr 0x080, 64
#define PRM_mkc_len 0x0c0, 64
#define PRM_mkc_translations_octword_size 0x1a0, 32
#define PRM_mkc_log_page_size 0x1db, 5

#define PRM_query_hca_cap_in_op_mod 0x030, 16

#define PRM_query_hca_cap_out_capability_byte 0x010 /* 4096 bytes */

#define PRM_cmd_hca_cap_log_max_qp_sz 0x088, 8
#define PRM_cmd_hca_cap_event_cap 0x090, 1
#define PRM_cmd_hca_cap_wqe_index_ignore_cap 0x099, 1
#define PRM_cmd_hca_cap_log_max_qp 0x09b, 5
#define PRM_cmd_hca_cap_log_max_cq_sz 0x0c8, 8
#define PRM_cmd_hca_cap_log_max_cq 0x0db, 5
#define PRM_cmd_hca_cap_relaxed_ordering_write 0x0e8, 1
#define PRM_cmd_hca_cap_relaxed_ordering_read 0x0e9, 1
#define PRM_cmd_hca_cap_log_max_mkey 0x0ea, 6
#define PRM_cmd_hca_cap_log_max_ra_req_qp 0x14a, 6
#define PRM_cmd_hca_cap_log_max_ra_res_qp 0x15a, 6
#define PRM_cmd_hca_cap_rts2rts_qp_counters_set_id 0x169, 1
#define PRM_cmd_hca_cap_port_type 0x1b6, 2
#define PRM_cmd_hca_cap_num_ports 0x1b8, 8
#define PRM_cmd_hca_cap_stat_rate_support 0x1e0, 16
#define PRM_cmd_hca_cap_cqe_version 0x1fc, 4
#define PRM_cmd_hca_cap_roce 0x21d, 1
#define PRM_cmd_hca_cap_atomic 0x21e, 1
#define PRM_cmd_hca_cap_cq_oi 0x220, 1
#define PRM_cmd_hca_cap_cd 0x22c, 1
#define PRM_cmd_hca_cap_uar_4k 0x240, 1
#define PRM_cmd_hca_cap_umem_uid_0 0x252, 1
#define PRM_cmd_hca_cap_bf 0x260, 1
#define PRM_cmd_hca_cap_log_bf_reg_size 0x26b, 5
#define PRM_cmd_hca_cap_max_wqe_sz_sq 0x290, 16
#define PRM_cmd_hca_cap_max_wqe_sz_rq 0x2b0, 16
#define PRM_cmd_hca_cap_log_max_pd 0x32b, 5
#define PRM_cmd_hca_cap_sq_ts_format 0x440, 2
#define PRM_cmd_hca_cap_log_max_uctx 0x463, 5
#define PRM_cmd_hca_cap_log_max_umem 0x46b, 5
#define PRM_cmd_hca_cap_log_uar_page_sz 0x490, 16

#define PRM_roce_cap_sw_r_roce_src_udp_port 0x004, 1
#define PRM_roce_cap_fl_rc_qp_when_roce_disabled 0x005, 1
#define PRM_roce_cap_fl_rc_qp_when_roce_enabled 0x006, 1
#define PRM_roce_cap_qp_ts_format 0x01e, 2
#define PRM_roce_cap_roce_version 0x098, 8
#define PRM_roce_cap_r_roce_max_src_udp_port 0x0c0, 16
#define PRM_roce_cap_r_roce_min_src_udp_port 0x0d0, 16
#define PRM_roce_cap_roce_address_table_size 0x0f0, 16

#define PRM_atomic_caps_atomic_req_8B_endianness_mode 0x040, 2
#define PRM_atomic_caps_supported_atomic_req_8B_endianness_mode_1 0x046, 1
#define PRM_atomic_caps_atomic_operations 0x090, 16
#define PRM_atomic_caps_atomic_size_qp 0x0b0, 16
#define PRM_atomic_caps_atomic_size_dc 0x0d0, 16

/* clang-format on */

/** Value of the field of @width (1..64) bits that starts at bit @bit of the big-endian structure @p. */
static inline uint64_t prm_get(const void *p, unsigned bit, unsigned width)
{
	const uint8_t *b = p;
	uint64_t v = 0;

	for (unsigned i = bit; i < bit + width;) {
		unsigned room = 8 - i % 8, n = bit + width - i < room ? bit + width - i : room;

		v = v << n | ((b[i / 8] >> (room - n)) & ((1u << n) - 1));
		i += n;
	}
	return v;
}

/** Stores the low @width bits of @v into the field; the bits around it stay. */
static inline void prm_set(void *p, unsigned bit, unsigned width, uint64_t v)
{
	uint8_t *b = p;

	for (unsigned i = bit + width; i > bit;) {
		unsigned end = (i - 1) % 8 + 1, n = i - bit < end ? i - bit : end, shift = 8 - end;
		uint8_t mask = (uint8_t)(((1u << n) - 1) << shift);

		b[(i - 1) / 8] = (uint8_t)((b[(i - 1) / 8] & ~mask) | ((v << shift) & mask));
		v >>= n;
		i -= n;
	}
}

#endif
