/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/caps.h"
#include "softcx/uverbs/fw-obj.h"
#include "softcx/uverbs/prm.h"
#include "softcx/uverbs/uar.h"

#include <string.h>

#define MODIFY_CQ_SELECT 0x060, 32 /* modify_cq_in.modify_field_select */

int uverbs_fw_create_cq(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out)
{
	const uint8_t *cqc = m->in + PRM_create_cq_in_cq_context_byte;
	unsigned log_size, cqe_sz;
	struct uverbs_fw_ring ring;
	struct uverbs_uar *uar;
	uint32_t eqn;
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_create_cq_in, PRM_SIZE_create_cq_out) < 0)
		return -EREMOTEIO;
	log_size = (unsigned)prm_get(cqc, PRM_cqc_log_cq_size);
	cqe_sz = (unsigned)prm_get(cqc, PRM_cqc_cqe_sz);
	if (log_size > UVERBS_LOG_MAX_CQ_SZ || cqe_sz > 1)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_SIZE);
	if (prm_get(cqc, PRM_cqc_cqe_comp_en))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_TYPE);
	eqn = (uint32_t)prm_get(cqc, PRM_cqc_c_eqn_or_apu_element);
	if (eqn < UVERBS_EQN || eqn >= UVERBS_EQN + UVERBS_COMP_VECTORS)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_EQN);
	if (uverbs_uar_find(file, (uint32_t)prm_get(cqc, PRM_cqc_uar_page), &uar) < 0)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_UAR);
	const struct uverbs_fw_place place = {
		.umem = (uint32_t)prm_get(m->in, PRM_create_cq_in_cq_umem_id),
		.db_umem = (uint32_t)prm_get(cqc, PRM_cqc_dbr_umem_id),
		.off = prm_get(m->in, PRM_create_cq_in_cq_umem_offset),
		.db_off = prm_get(cqc, PRM_cqc_dbr_addr),
		.bytes = (uint64_t)(64u << cqe_sz) << log_size,
		.write = true,
	};
	r = uverbs_fw_ring(file, m, &place, &ring);
	if (r < 0)
		return r;

	struct uverbs_devx *devx = uverbs_fw_new(file, handler);
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)devx;
	if (!devx)
		return -ENOMEM;
	const struct hw_cq_attr attr = {
		.buf = ring.buf->mem,
		.buf_off = uverbs_fw_mem_off(ring.buf, ring.off),
		.db = ring.db->mem,
		.db_off = uverbs_fw_mem_off(ring.db, ring.db_off),
		.uar = hw_uar_index(uar->hw),
		.log_size = (uint8_t)log_size,
		.cqe_bytes = (uint8_t)(64u << cqe_sz),
		.software = file->software,
		.time = file->time,
		.oi = prm_get(cqc, PRM_cqc_oi),
		.cc = prm_get(cqc, PRM_cqc_cc),
		.period_us = (uint16_t)prm_get(cqc, PRM_cqc_cq_period),
		.max_count = (uint16_t)prm_get(cqc, PRM_cqc_cq_max_count),
		.on_comp = uverbs_fw_on_comp,
		.on_error = uverbs_fw_on_event,
		.arg = devx,
	};
	r = hw_cq_create(file->dev, &attr, &devx->cq);
	if (r < 0)
		return uverbs_fw_device_refuses(m, r);
	memcpy(devx->cqc, cqc, sizeof(devx->cqc));
	devx->db = ring.db;
	devx->db_off = ring.db_off;
	uverbs_fw_need_ring(devx, &ring);
	uverbs_obj_need(&devx->obj, &uar->obj);
	prm_set(m->out, PRM_create_cq_out_cqn, hw_cqn(devx->cq));
	pending = NULL;
	*out = devx;
	return 0;
}
int uverbs_fw_modify_cq(const struct uverbs_fw_target *t, const struct uverbs_mbox *m)
{
	enum { PERIOD = 1, COUNT = 2 }; /* modify_field_select */
	const uint8_t *cqc = m->in + PRM_create_cq_in_cq_context_byte;
	uint32_t select;
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_create_cq_in, PRM_SIZE_destroy_out) < 0)
		return -EREMOTEIO;
	select = (uint32_t)prm_get(m->in, MODIFY_CQ_SELECT);
	if (select != (PERIOD | COUNT))
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_FIELD);
	r = hw_cq_moderate(t->cq, (uint16_t)prm_get(cqc, PRM_cqc_cq_period),
		(uint16_t)prm_get(cqc, PRM_cqc_cq_max_count));
	return r < 0 ? uverbs_fw_device_refuses(m, r) : 0;
}
int uverbs_fw_query_cq(const struct uverbs_fw_target *t, const struct uverbs_mbox *m)
{
	uint8_t *cqc = m->out + PRM_query_cq_out_cq_context_byte;

	if (uverbs_fw_lengths(m, PRM_SIZE_query_qp_in, PRM_query_cq_out_cq_context_byte + PRM_SIZE_cqc) < 0)
		return -EREMOTEIO;
	if (t->devx) {
		memcpy(cqc, t->devx->cqc, PRM_SIZE_cqc);
		prm_set(cqc, PRM_cqc_consumer_counter, uverbs_fw_doorbell(t->devx, 0));
	}
	prm_set(cqc, PRM_cqc_producer_counter, hw_cq_producer(t->cq));
	return 0;
}
