/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scheduling elements, as mlx5dv_sched_node_create(3) and its like ask for them: nodes and leaves (queue
 * groups) with a maximum rate, and queues that are put into leaves. Shares of bandwidth are not offered.
 */
#include "softcx/uverbs/fw-obj.h"

#include "softcx/uverbs/prm.h"

#include <string.h>

enum { HIERARCHY_NIC = 3, TYPE_TSAR = 0, TYPE_QUEUE_GROUP = 4, TSAR_DWRR = 0 };
enum { SELECT_MAX_AVG_BW = 1 << 1 }; /* enum mlx5dv_sched_elem_attr_flags; bit 0 is the share */
enum { OPT_QUEUE_GROUP = 1 << 1 };   /* rdma-core, MLX5_QPC_OPT_MASK_32_QOS_QUEUE_GROUP_ID */

static bool is_element(const struct uverbs_mbox *m)
{
	return prm_get(m->in, PRM_general_obj_type) == PRM_OBJ_SCHED_ELEMENT;
}

static unsigned type_of(const uint8_t *element)
{
	return (unsigned)prm_get(element, PRM_sched_element_element_type);
}

/* A live element of this context; 0 is the root, which no context owns. */
static struct uverbs_devx *find_element(struct uverbs_file *file, uint32_t id)
{
	for (uint32_t h = 0; h < file->table_len; h++) {
		struct uverbs_obj *obj = uverbs_obj_any(file, h);
		struct uverbs_devx *devx = (struct uverbs_devx *)obj;

		if (obj && obj->type == UVERBS_DEVX && devx->rate && hw_rate_id(devx->rate) == id)
			return devx;
	}
	return NULL;
}

static int check_element(const struct uverbs_mbox *m, const uint8_t *element)
{
	unsigned type = type_of(element);

	if (prm_get(element, PRM_sched_element_hierarchy) != HIERARCHY_NIC ||
		(type != TYPE_TSAR && type != TYPE_QUEUE_GROUP) ||
		prm_get(element, PRM_sched_element_tsar_type) != TSAR_DWRR)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	if (prm_get(element, PRM_sched_element_modify_field_select) & ~(uint64_t)SELECT_MAX_AVG_BW)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_FIELD);
	return 0;
}

int uverbs_fw_create_general(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out)
{
	const uint8_t *element = m->in + PRM_sched_element_byte;
	struct uverbs_devx *parent = NULL;
	uint32_t parent_id;
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_destroy_in, PRM_SIZE_destroy_out) < 0)
		return -EREMOTEIO;
	if (!is_element(m))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	if (uverbs_fw_lengths(m, PRM_SIZE_sched_element_in, PRM_SIZE_destroy_out) < 0 ||
		check_element(m, element) < 0)
		return -EREMOTEIO;
	parent_id = (uint32_t)prm_get(element, PRM_sched_element_parent_id);
	if (parent_id) {
		parent = find_element(file, parent_id);
		if (!parent || type_of(parent->element) != TYPE_TSAR)
			return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_ELEMENT);
	} else if (type_of(element) != TYPE_TSAR) {
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_ELEMENT);
	}

	struct uverbs_devx *devx = uverbs_fw_new(file, handler);
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)devx;
	if (!devx)
		return -ENOMEM;
	r = hw_rate_create(file->dev, parent ? parent->rate : NULL, &devx->rate);
	if (r < 0)
		return uverbs_fw_device_refuses(m, r);
	memcpy(devx->element, element, sizeof(devx->element));
	hw_rate_set(devx->rate, (uint32_t)prm_get(element, PRM_sched_element_max_average_bw));
	uverbs_obj_need(&devx->obj, parent ? &parent->obj : NULL);
	prm_set(m->out, PRM_general_obj_id, hw_rate_id(devx->rate));
	pending = NULL;
	*out = devx;
	return 0;
}

int uverbs_fw_modify_element(struct uverbs_devx *devx, const struct uverbs_mbox *m)
{
	const uint8_t *element = m->in + PRM_sched_element_byte;
	uint32_t mbps;

	if (uverbs_fw_lengths(m, PRM_SIZE_sched_element_in, PRM_SIZE_destroy_out) < 0 ||
		check_element(m, element) < 0)
		return -EREMOTEIO;
	if (!is_element(m) || type_of(element) != type_of(devx->element))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	if (!prm_get(element, PRM_sched_element_modify_field_select))
		return 0;
	mbps = (uint32_t)prm_get(element, PRM_sched_element_max_average_bw);
	prm_set(devx->element, PRM_sched_element_max_average_bw, mbps);
	hw_rate_set(devx->rate, mbps);
	return 0;
}

int uverbs_fw_query_element(const struct uverbs_devx *devx, const struct uverbs_mbox *m)
{
	if (uverbs_fw_lengths(m, PRM_SIZE_destroy_in, PRM_sched_element_byte + PRM_SIZE_sched_element) < 0)
		return -EREMOTEIO;
	memcpy(m->out + PRM_sched_element_byte, devx->element, PRM_SIZE_sched_element);
	return 0;
}

int uverbs_fw_modify_queue_group(struct uverbs_file *file, struct hw_qp *qp, const struct uverbs_mbox *m)
{
	struct uverbs_devx *leaf = NULL;
	uint32_t id;
	uint64_t opt;

	if (!prm_get(m->in, PRM_modify_qp_in_qpc_ext))
		return 0;
	if (uverbs_fw_lengths(m, PRM_SIZE_modify_qp_ext_in, PRM_SIZE_modify_qp_out) < 0)
		return -EREMOTEIO;
	opt = prm_get(m->in, PRM_modify_qp_in_opt_param_mask_95_32);
	/* the rate of answers to READs is not limited here */
	if ((opt & ~(uint64_t)OPT_QUEUE_GROUP) || prm_get(m->in, PRM_modify_qp_in_queue_group_responder))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_FIELD);
	if (!opt)
		return 0;
	id = (uint32_t)prm_get(m->in, PRM_modify_qp_in_queue_group_requester);
	if (id) {
		leaf = find_element(file, id);
		if (!leaf || type_of(leaf->element) != TYPE_QUEUE_GROUP)
			return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_ELEMENT);
	}
	hw_qp_limit(qp, leaf ? leaf->rate : NULL);
	return 0;
}
