/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/fw.h"

#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/fw-obj.h"
#include "softcx/uverbs/prm.h"

#include <errno.h>
#include <string.h>

unsigned uverbs_fw_opcode(const struct uverbs_mbox *m)
{
	return (unsigned)prm_get(m->in, PRM_in_opcode);
}

int uverbs_fw_refuse(const struct uverbs_mbox *m, enum uverbs_fw_status status, enum uverbs_fw_syndrome why)
{
	memset(m->out, 0, m->out_len);
	prm_set(m->out, PRM_out_status, status);
	prm_set(m->out, PRM_out_syndrome, why);
	return -EREMOTEIO;
}

int uverbs_fw_lengths(const struct uverbs_mbox *m, size_t in, size_t out)
{
	if (m->in_len < in)
		return uverbs_fw_refuse(m, FW_BAD_IN_LEN, FW_SYN_LENGTH);
	return m->out_len < out ? uverbs_fw_refuse(m, FW_BAD_OUT_LEN, FW_SYN_LENGTH) : 0;
}

int uverbs_fw_device_refuses(const struct uverbs_mbox *m, int r)
{
	switch (r) {
	case -EBUSY:
		return uverbs_fw_refuse(m, FW_BUSY, FW_SYN_DEVICE);
	case -ENOMEM:
	case -ENOSPC:
		return uverbs_fw_refuse(m, FW_NO_RESOURCES, FW_SYN_DEVICE);
	default:
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_DEVICE);
	}
}

static int query_caps(struct uverbs_file *file, const struct uverbs_mbox *m)
{
	uint8_t page[4096];
	size_t room;

	if (uverbs_fw_lengths(m, PRM_SIZE_query_hca_cap_in, PRM_SIZE_destroy_out) < 0)
		return -EREMOTEIO;
	if (!uverbs_caps_hca(file->dev, (unsigned)prm_get(m->in, PRM_in_op_mod), page))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_CAP_TYPE);
	room = m->out_len - PRM_query_hca_cap_out_capability_byte;
	memcpy(m->out + PRM_query_hca_cap_out_capability_byte, page,
		room < sizeof(page) ? room : sizeof(page));
	return 0;
}

int uverbs_fw_general(struct uverbs_file *file, const struct uverbs_mbox *m)
{
	if (!uverbs_fw_is_general(uverbs_fw_opcode(m)))
		return -EINVAL;
	switch (uverbs_fw_opcode(m)) {
	case PRM_OP_QUERY_HCA_CAP:
		return query_caps(file, m);
	case PRM_OP_QUERY_LAG: /* no bond: the context is all 0 */
		return uverbs_fw_lengths(m, PRM_SIZE_query_lag_in, PRM_SIZE_query_lag_out);
	default:
		return uverbs_fw_refuse(m, FW_BAD_OP, FW_SYN_OPCODE);
	}
}

int uverbs_fw_create(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **devx)
{
	switch (uverbs_fw_opcode(m)) {
	case PRM_OP_CREATE_CQ:
		return uverbs_fw_create_cq(file, m, handler, devx);
	case PRM_OP_CREATE_QP:
		return uverbs_fw_create_qp(file, m, handler, devx);
	case PRM_OP_CREATE_DCT:
		return uverbs_fw_create_dct(file, m, handler, devx);
	case PRM_OP_CREATE_RMP:
		return uverbs_fw_create_rmp(file, m, handler, devx);
	case PRM_OP_CREATE_MKEY:
		return uverbs_fw_create_mkey(file, m, handler, devx);
	case PRM_OP_CREATE_GENERAL:
		return uverbs_fw_create_general(file, m, handler, devx);
	default:
		return uverbs_fw_creates(m) ? uverbs_fw_refuse(m, FW_BAD_OP, FW_SYN_OPCODE) : -EINVAL;
	}
}
int uverbs_fw_modify(struct uverbs_file *file, const struct uverbs_fw_target *t, const struct uverbs_mbox *m)
{
	if (uverbs_fw_opcode(m) == PRM_OP_MODIFY_CQ)
		return uverbs_fw_modify_cq(t, m);
	if (uverbs_fw_opcode(m) == PRM_OP_MODIFY_GENERAL)
		return uverbs_fw_modify_element(t->devx, m);
	return uverbs_fw_modify_qp(file, t, m);
}
int uverbs_fw_query(struct uverbs_file *file, const struct uverbs_fw_target *t, const struct uverbs_mbox *m)
{
	(void)file;
	switch (uverbs_fw_opcode(m)) {
	case PRM_OP_QUERY_CQ:
		return uverbs_fw_query_cq(t, m);
	case PRM_OP_QUERY_QP:
		return uverbs_fw_query_qp(t, m);
	case PRM_OP_QUERY_MKEY:
		return uverbs_fw_query_mkey(t->devx, m);
	case PRM_OP_QUERY_GENERAL:
		return uverbs_fw_query_element(t->devx, m);
	default:
		return -EINVAL;
	}
}
