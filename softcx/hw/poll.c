/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/doorbell.h"
#include "softcx/hw/pass.h"
#include "softcx/hw/pu.h"
#include "softcx/hw/qp.h"
#include "util/clock.h"

static bool run_timers(struct hw_dev *dev)
{
	struct hw_qp *qp = TAILQ_FIRST(&dev->timed), *next;
	bool any = false;

	for (; qp; qp = next) {
		next = TAILQ_NEXT(qp, run);
		if (qp->due <= dev->now) {
			hw_qp_resume(qp);
			any = true;
		}
	}
	return any;
}

static enum hw_pass pass(struct hw_dev *dev)
{
	const uint64_t answers = dev->answers;
	bool looked, worked;

	dev->now = clock_ns();
	dev->total.passes++;
	looked = hw_doorbell_scan(dev);
	worked = run_timers(dev);
	worked |= hw_cq_timers(dev);
	worked |= hw_qp_flush_broken(dev);
	worked |= hw_pass_run(dev);
	if (dev->nready && dev->answers != answers)
		return HW_PASS_ANSWERED;
	return worked ? HW_PASS_WORKED : looked ? HW_PASS_LOOKED : HW_PASS_NOTHING;
}

/* A WQE that needs units which other threads have is executed at the beginning of a second pass. */
enum hw_pass hw_poll(struct hw_dev *dev)
{
	enum hw_pass first = pass(dev), second;
	struct hw_pu *pu = dev->pu;

	if (__builtin_expect(!pu || !pu->wants, 1))
		return first;
	hw_pu_take_wanted(pu);
	second = pass(dev);
	hw_pu_return(pu); /* it has gone, say: a command came before */
	pu->wants = 0;
	return second > first ? second : first;
}

uint64_t hw_rings(const struct hw_dev *dev)
{
	return dev->total.rings;
}

bool hw_must_poll(const struct hw_dev *dev)
{
	return dev->nawake || dev->nready || !TAILQ_EMPTY(&dev->inflight) || !TAILQ_EMPTY(&dev->broken);
}

bool hw_has_work(const struct hw_dev *dev)
{
	return dev->nready || !TAILQ_EMPTY(&dev->broken) || !TAILQ_EMPTY(&dev->moderated);
}

uint64_t hw_next_timer(const struct hw_dev *dev)
{
	const struct hw_qp *qp;
	const struct hw_cq *cq;
	uint64_t due = UINT64_MAX, now;

	TAILQ_FOREACH (qp, &dev->timed, run)
		if (qp->due < due)
			due = qp->due;
	TAILQ_FOREACH (cq, &dev->moderated, timer)
		if (cq->due < due)
			due = cq->due;
	if (due == UINT64_MAX)
		return due;
	now = clock_ns();
	return due > now ? due - now : 0;
}
