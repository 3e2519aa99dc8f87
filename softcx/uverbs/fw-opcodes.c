/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/fw-obj.h"
#include "util/array.h"

/* Linux hw/mlx5/devx.c, devx_is_general_cmd: commands that need no object. Others do not reach the firmware.
 */
bool uverbs_fw_is_general(unsigned op)
{
	static const uint16_t known[] = {
		PRM_OP_QUERY_HCA_CAP, PRM_OP_QUERY_LAG, 0x101, /* QUERY_ADAPTER */
		0x10a,                                         /* QUERY_ISSI */
		0x740,                                         /* QUERY_ESW_FUNCTIONS */
		0x750,                                         /* QUERY_VPORT_STATE */
		0x752,                                         /* QUERY_ESW_VPORT_CONTEXT */
		0x754,                                         /* QUERY_NIC_VPORT_CONTEXT */
		0x760,                                         /* QUERY_ROCE_ADDRESS */
		0x762,                                         /* QUERY_HCA_VPORT_CONTEXT */
		0x76f,                                         /* QUERY_VNIC_ENV */
		0x770,                                         /* QUERY_VPORT_COUNTER */
		0x80a,                                         /* GET_DROPPED_PACKET_LOG */
		0x80d,                                         /* NOP */
		0x822,                                         /* QUERY_CONG_STATUS */
		0x824,                                         /* QUERY_CONG_PARAMS */
		0x826,                                         /* QUERY_CONG_STATISTICS */
	};

	for (size_t i = 0; i < COUNT(known); i++)
		if (known[i] == op)
			return true;
	return op >= 0xb00 && op < 0xd00;
}

/* The same, devx_is_obj_create_cmd: commands that make an object. */
bool uverbs_fw_creates(const struct uverbs_mbox *m)
{
	static const uint16_t known[] = {
		0x700, /* CREATE_SRQ */
		0x705, /* CREATE_XRC_SRQ */
		0x717, /* CREATE_XRQ */
		0x771, /* ALLOC_Q_COUNTER */
		0x782, /* CREATE_SCHEDULING_ELEMENT */
		0x800, /* ALLOC_PD */
		0x806, /* ATTACH_TO_MCG */
		0x80e, /* ALLOC_XRCD */
		0x816, /* ALLOC_TRANSPORT_DOMAIN */
		0x827, /* ADD_VXLAN_UDP_DPORT */
		0x829, /* SET_L2_TABLE_ENTRY */
		0x900, /* CREATE_TIR */
		0x904, /* CREATE_SQ */
		0x908, /* CREATE_RQ */
		0x912, /* CREATE_TIS */
		0x916, /* CREATE_RQT */
		0x930, /* CREATE_FLOW_TABLE */
		0x933, /* CREATE_FLOW_GROUP */
		0x939, /* ALLOC_FLOW_COUNTER */
		0x93d, /* ALLOC_PACKET_REFORMAT_CONTEXT */
		0x940, /* ALLOC_MODIFY_HEADER_CONTEXT */
	};
	enum { SET_FLOW_TABLE_ENTRY = 0x936 };
	unsigned op = (unsigned)prm_get(m->in, PRM_in_opcode);

	for (size_t i = 0; i < COUNT(known); i++)
		if (known[i] == op)
			return true;
	return op == SET_FLOW_TABLE_ENTRY && prm_get(m->in, PRM_in_op_mod) == 0;
}
