/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fw-rmp.c - receive memory pools: shared receive queues made by a firmware command. UCX takes it for granted
 * that a device with DEVX has them (uct_rc_mlx5_devx_init_rx).
 */
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/fw-obj.h"
#include "softcx/uverbs/pd.h"
#include "softcx/uverbs/uar.h"

#include <errno.h>

enum { WQ_LIST = 0, WQ_CYCLIC = 1 };

int uverbs_fw_create_rmp(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out)
{
	const uint8_t *wq = m->in + PRM_create_rmp_in_wq_byte;
	struct hw_srq_attr attr = {.on_event = uverbs_fw_on_event};
	struct uverbs_fw_ring ring;
	struct uverbs_pd *pd;
	unsigned type, size;
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_create_rmp_in, PRM_SIZE_create_rmp_out) < 0)
		return -EREMOTEIO;
	type = (unsigned)prm_get(wq, PRM_wq_type);
	size = (unsigned)prm_get(wq, PRM_wq_log_size);
	if ((type != WQ_LIST && type != WQ_CYCLIC) || prm_get(wq, PRM_wq_signature))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	attr.cyclic = type == WQ_CYCLIC;
	attr.wqes = 1u << size;
	attr.stride = 1u << prm_get(wq, PRM_wq_log_stride);
	if (size > 15 || attr.stride < 32 || attr.stride > hw_fact(file->dev, PROFILE_RECV_WQE))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_SIZE);
	pd = uverbs_fw_pd(file, (uint32_t)prm_get(wq, PRM_wq_pd));
	if (!pd)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_PD);
	const struct uverbs_fw_place place = {
		.umem = (uint32_t)prm_get(wq, PRM_wq_umem_id),
		.db_umem = (uint32_t)prm_get(wq, PRM_wq_dbr_umem_id),
		.off = prm_get(wq, PRM_wq_umem_offset),
		.db_off = prm_get(wq, PRM_wq_dbr_addr),
		.bytes = (uint64_t)attr.wqes * attr.stride,
	};
	r = uverbs_fw_ring(file, m, &place, &ring);
	if (r < 0)
		return r;

	struct uverbs_devx *devx = uverbs_fw_new(file, handler);
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)devx;
	if (!devx)
		return -ENOMEM;
	attr.pdn = pd->pdn;
	attr.buf = ring.buf->mem;
	attr.buf_off = uverbs_fw_mem_off(ring.buf, ring.off);
	attr.db = ring.db->mem;
	attr.db_off = uverbs_fw_mem_off(ring.db, ring.db_off);
	attr.arg = devx;
	r = hw_srq_create(file->dev, &attr, &devx->srq);
	if (r < 0)
		return uverbs_fw_device_refuses(m, r);
	hw_srq_limit(devx->srq, (uint16_t)prm_get(wq, PRM_wq_lwm));
	uverbs_obj_need(&devx->obj, &pd->obj);
	uverbs_fw_need_ring(devx, &ring);
	prm_set(m->out, PRM_create_rmp_out_rmpn, hw_srqn(devx->srq));
	pending = NULL;
	*out = devx;
	return 0;
}
