/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/run.h"

#include "softcx/hw/clock.h"
#include "softcx/hw/cq.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/turns.h"
#include "util/clock.h"

void hw_qp_set_run(struct hw_qp *qp, enum hw_run run)
{
	struct hw_dev *dev = qp->dev;

	switch (qp->run_state) {
	case HW_RUN_IDLE:
		break;
	case HW_RUN_READY:
		hw_turns_remove(qp);
		break;
	case HW_RUN_WAIT:
		TAILQ_REMOVE(&qp->wait_cq->waiters, qp, run);
		break;
	case HW_RUN_TIMED:
		TAILQ_REMOVE(&dev->timed, qp, run);
		break;
	}
	switch (run) {
	case HW_RUN_IDLE:
		break;
	case HW_RUN_READY:
		hw_turns_add(qp);
		break;
	case HW_RUN_WAIT:
		TAILQ_INSERT_TAIL(&qp->wait_cq->waiters, qp, run);
		break;
	case HW_RUN_TIMED:
		TAILQ_INSERT_TAIL(&dev->timed, qp, run);
		break;
	}
	qp->run_state = run;
	if (dev->claimant == qp)
		dev->claimant = NULL;
}

void hw_qp_resume(struct hw_qp *qp)
{
	hw_qp_set_run(qp, HW_RUN_READY);
}

void hw_qp_pause(struct hw_qp *qp, uint64_t ns)
{
	qp->due = clock_ns() + ns;
	if (qp->clock)
		hw_clock_pause(qp, ns);
	hw_qp_set_run(qp, HW_RUN_TIMED);
}
