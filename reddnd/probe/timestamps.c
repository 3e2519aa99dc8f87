/* SPDX-License-Identifier: BSD-2-Clause */
/* What the timestamps of CQEs are. */
#include "reddnd/probe/check.h"

#include "reddnd/rnic/identity.h"
#include "reddnd/rnic/stamps.h"

#include <errno.h>
#include <inttypes.h>

int check_timestamps(struct probe *probe, struct probe_result *result)
{
	const struct rnic_cq *cq = &probe->master->cq;
	struct rnic_identity id;
	struct rnic_cqe cqe;
	int r = master_qp_tick(probe->master);

	if (r == 0)
		r = rnic_identity_read(probe->master->block.dev, &id);
	if (r < 0)
		return r;
	if (!rnic_cq_peek(cq, cq->consumer - 1, &cqe))
		return probe_cannot(result, -EIO, "the CQE is gone");
	if (rnic_stamp_is_real_time(cqe.timestamp))
		return probe_denies(result, "they are seconds and nanoseconds of a real-time clock");
	return probe_measured(result, "ticks, of %" PRIu64 " kHz as the device reports", id.clock_khz);
}
