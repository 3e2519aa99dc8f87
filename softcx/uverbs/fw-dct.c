/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fw-dct.c - CREATE_DCT: a target of the dynamically connected transport, ready at once. UCX makes its own so
 * (uct_dc_mlx5_iface_devx_create_dct).
 */
#include "softcx/uverbs/fw-obj.h"
#include "softcx/uverbs/prm.h"

static int make_ready(struct hw_dev *dev, struct hw_qp *target, const uint8_t *dctc)
{
	const unsigned atomic =
		prm_get(dctc, PRM_dctc_rae) && prm_get(dctc, PRM_dctc_atomic_mode) ? HW_REMOTE_ATOMIC : 0;
	const struct hw_qp_mod mod = {
		.mask = HW_QP_ACCESS | HW_QP_RNR_TIMER | HW_QP_MTU,
		.access = (prm_get(dctc, PRM_dctc_rre) ? HW_REMOTE_READ : 0) |
			  (prm_get(dctc, PRM_dctc_rwe) ? HW_REMOTE_WRITE : 0) | atomic,
		.min_rnr_timer = (uint8_t)prm_get(dctc, PRM_dctc_min_rnr_nak),
		.mtu = (uint16_t)(128u << prm_get(dctc, PRM_dctc_mtu)),
	};
	int r = hw_qp_modify(dev, target, HW_INIT, &mod);

	return r < 0 ? r : hw_qp_modify(dev, target, HW_RTR, NULL);
}

int uverbs_fw_create_dct(struct uverbs_file *file, const struct uverbs_mbox *m, uverbs_fw_event *handler,
	struct uverbs_devx **out)
{
	const uint8_t *dctc = m->in + PRM_create_dct_in_dctc_byte;
	struct hw_qp_attr attr = {.type = HW_DCT, .on_event = uverbs_fw_on_event};
	struct uverbs_obj *cq, *srq;
	struct uverbs_pd *pd;
	int r;

	if (uverbs_fw_lengths(m, PRM_SIZE_create_dct_in, PRM_SIZE_create_dct_out) < 0)
		return -EREMOTEIO;
	if (prm_get(dctc, PRM_dctc_mtu) < 1 || prm_get(dctc, PRM_dctc_mtu) > 5)
		return uverbs_fw_refuse(m, FW_BAD_PARAM, FW_SYN_MTU);
	pd = uverbs_fw_pd(file, (uint32_t)prm_get(dctc, PRM_dctc_pd));
	if (!pd)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_PD);
	cq = uverbs_fw_cq(file, (uint32_t)prm_get(dctc, PRM_dctc_cqn), &attr.rcq);
	if (!cq)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_CQN);
	srq = uverbs_fw_srq(file, (uint32_t)prm_get(dctc, PRM_dctc_srqn_xrqn), &attr.srq);
	if (!srq)
		return uverbs_fw_refuse(m, FW_BAD_RESOURCE, FW_SYN_SRQN);

	struct uverbs_devx *devx = uverbs_fw_new(file, handler);
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)devx;
	if (!devx)
		return -ENOMEM;
	attr.pdn = pd->pdn;
	attr.scq = attr.rcq;
	attr.user_index = (uint32_t)prm_get(dctc, PRM_dctc_user_index);
	attr.cs_res = (uint8_t)prm_get(dctc, PRM_dctc_cs_res);
	attr.dc_key = prm_get(dctc, PRM_dctc_dc_access_key);
	attr.arg = devx;
	r = hw_qp_create(file->dev, &attr, &devx->qp);
	if (r < 0)
		return uverbs_fw_device_refuses(m, r);
	r = make_ready(file->dev, devx->qp, dctc);
	if (r < 0) {
		hw_qp_destroy(file->dev, devx->qp);
		return uverbs_fw_device_refuses(m, r);
	}
	uverbs_obj_need(&devx->obj, &pd->obj);
	uverbs_obj_need(&devx->obj, cq);
	uverbs_obj_need(&devx->obj, srq);
	prm_set(m->out, PRM_create_dct_out_dctn, hw_qpn(devx->qp));
	pending = NULL;
	*out = devx;
	return 0;
}
