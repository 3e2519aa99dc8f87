/* SPDX-License-Identifier: BSD-2-Clause */
/* How many CQEs a managed queue that fails gives. */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"

enum { EXECUTED = 2, ENABLED = 4, POSTED = 7 };

/* Two WQEs of the target are executed, a WAIT holds the third, and the fourth is enabled too: two to flush */
static void write_blocked(struct bed *bed)
{
	uint8_t *w;

	for (unsigned i = 0; i < EXECUTED; i++)
		bed_wqe(bed, BED_TARGET, WQE_OP_NOP, 1, WQE_SIGNALLED);
	w = bed_wqe(bed, BED_TARGET, WQE_OP_WAIT, 2, 0);
	wqe_put32(w + WQE_SYNC_INDEX, 0);
	wqe_put32(w + WQE_SYNC_OBJECT, bed->recv_cq[BED_TARGET].cqn);
	for (unsigned i = EXECUTED + 1; i < POSTED; i++)
		bed_wqe(bed, BED_TARGET, WQE_OP_NOP, 1, 0);
}

int check_flush(struct bed *bed, struct probe_result *result)
{
	const struct rnic_cq *cq = &bed->cq[BED_TARGET];
	struct rnic_cqe cqe;
	int r;

	write_blocked(bed);
	r = bed_enable(bed, BED_TARGET, ENABLED);
	if (r == 0)
		r = bed_expect(bed, cq, EXECUTED - 1, "what was enabled was not executed", result);
	if (r <= 0)
		return r;
	rnic_qp_stop(&bed->qp[BED_TARGET]);
	if (!bed_has_cqe(cq, ENABLED - 1) && !rnic_cq_find_error(cq, &cqe))
		return probe_denies(result, "WQEs that were enabled are not flushed");
	bed_sleep(BED_SETTLE_MS);
	/* So many that they have written over the first, or some that nobody enabled */
	if (!rnic_cq_peek(cq, 0, &cqe) || cqe.error || rnic_cq_peek(cq, ENABLED, &cqe))
		return probe_denies(
			result, "it gives more CQEs than %d, the WQEs that were enabled", ENABLED);
	return probe_measured(result, "%d CQEs of %d WQEs that were enabled", ENABLED, ENABLED);
}
