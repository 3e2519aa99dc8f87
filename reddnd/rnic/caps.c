/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/caps.h"

#include "mlx5/prm.h"
#include "util/array.h"

#include <stdio.h>
#include <string.h>

enum { PORT_TYPE_INFINIBAND = 0, SQ_WQE_NEEDED = 256, RQ_WQE_NEEDED = 256, LOG_WQEBBS_NEEDED = 12 };

void rnic_caps_parse(
	struct rnic_caps *caps, const uint8_t *general, const uint8_t *roce, const uint8_t *atomic)
{
	*caps = (struct rnic_caps){
		.cross_channel = prm_get(general, PRM_cmd_hca_cap_cd),
		.overrun_ignore = prm_get(general, PRM_cmd_hca_cap_cq_oi),
		.infiniband = prm_get(general, PRM_cmd_hca_cap_port_type) == PORT_TYPE_INFINIBAND,
		.index_ignore = prm_get(general, PRM_cmd_hca_cap_wqe_index_ignore_cap),
		.log_max_qp_wqebbs = (unsigned)prm_get(general, PRM_cmd_hca_cap_log_max_qp_sz),
		.log_max_cqes = (unsigned)prm_get(general, PRM_cmd_hca_cap_log_max_cq_sz),
		.max_sq_wqe = (unsigned)prm_get(general, PRM_cmd_hca_cap_max_wqe_sz_sq),
		.max_rq_wqe = (unsigned)prm_get(general, PRM_cmd_hca_cap_max_wqe_sz_rq),
		.log_rd_atomic = (unsigned)prm_get(general, PRM_cmd_hca_cap_log_max_ra_req_qp),
		.log_rd_dest = (unsigned)prm_get(general, PRM_cmd_hca_cap_log_max_ra_res_qp),
	};
	caps->force_loopback =
		!caps->infiniband && roce && prm_get(roce, PRM_roce_cap_fl_rc_qp_when_roce_enabled);
	/* As Linux, mlx5_get_qp_default_ts(): which capability counts for QPs */
	if (caps->infiniband || !roce)
		caps->ts_formats = prm_get(general, PRM_cmd_hca_cap_sq_ts_format);
	else
		caps->ts_formats = prm_get(roce, PRM_roce_cap_qp_ts_format);
	if (atomic) {
		caps->atomic_ops = (uint16_t)prm_get(atomic, PRM_atomic_caps_atomic_operations);
		caps->atomic_size = (uint16_t)prm_get(atomic, PRM_atomic_caps_atomic_size_qp);
		caps->host_atomics = prm_get(atomic, PRM_atomic_caps_atomic_req_8B_endianness_mode) == 1;
	}
}

bool rnic_caps_sufficient(const struct rnic_caps *caps, char *why, size_t size)
{
	const struct {
		bool ok;
		const char *words;
	} needs[] = {
		{caps->cross_channel, "cross-channel work requests (WAIT, SEND_EN)"},
		{caps->overrun_ignore, "completion queues that ignore overrun"},
		{caps->atomic_ops & RNIC_ATOMIC_CAS, "compare-and-swap"},
		{caps->max_sq_wqe >= SQ_WQE_NEEDED, "send WQEs of 256 bytes"},
		{caps->max_rq_wqe >= RQ_WQE_NEEDED, "receive WQEs of 256 bytes"},
		{caps->log_max_qp_wqebbs >= LOG_WQEBBS_NEEDED, "send queues of 4096 WQEBBs"},
	};
	size_t used = 0;

	why[0] = '\0';
	for (size_t i = 0; i < COUNT(needs); i++)
		if (!needs[i].ok && used < size)
			used += (size_t)snprintf(
				why + used, size - used, "%s%s", used ? "; " : "", needs[i].words);
	return used == 0;
}

bool rnic_caps_masked_atomics(const struct rnic_caps *caps)
{
	return caps->atomic_ops & RNIC_ATOMIC_MASKED_CAS && caps->atomic_ops & RNIC_ATOMIC_MASKED_ADD;
}

void rnic_caps_describe(const struct rnic_caps *caps, char *text, size_t size)
{
	snprintf(text, size,
		"%s, cross-channel %s, overrun-ignore %s, forced loopback %s, atomics%s%s%s%s%s, SQ 2^%u "
		"WQEBBs, CQ 2^%u CQEs, WQEs of %u/%u bytes, %u/%u READs in flight, WQE index check %s",
		caps->infiniband ? "InfiniBand" : "RoCE", caps->cross_channel ? "yes" : "no",
		caps->overrun_ignore ? "yes" : "no", caps->force_loopback ? "yes" : "no",
		caps->atomic_ops & RNIC_ATOMIC_CAS ? " cas" : "",
		caps->atomic_ops & RNIC_ATOMIC_ADD ? " add" : "",
		caps->atomic_ops & RNIC_ATOMIC_MASKED_CAS ? " masked-cas" : "",
		caps->atomic_ops & RNIC_ATOMIC_MASKED_ADD ? " masked-add" : "",
		caps->host_atomics ? " (host order)" : "", caps->log_max_qp_wqebbs, caps->log_max_cqes,
		caps->max_sq_wqe, caps->max_rq_wqe, 1u << caps->log_rd_atomic, 1u << caps->log_rd_dest,
		caps->index_ignore ? "can be off" : "on");
}

unsigned rnic_caps_atomic_mode(const struct rnic_caps *caps)
{
	unsigned log = 0;

	if (!(caps->atomic_ops & (RNIC_ATOMIC_MASKED_CAS | RNIC_ATOMIC_MASKED_ADD)) || caps->atomic_size < 8)
		return 1;
	while (caps->atomic_size >> (log + 1))
		log++;
	return log;
}
