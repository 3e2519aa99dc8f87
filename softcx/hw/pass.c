/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/pass.h"

#include "softcx/hw/clock.h"
#include "softcx/hw/exec.h"
#include "softcx/hw/inflight.h"
#include "softcx/hw/pu.h"
#include "softcx/hw/turns.h"

enum {
	PASS = 512, /* WQEs in a pass */
	BURST = 32, /* most WQEs of one queue between two choices of the seed */
	/* Of hw_turns_charge(): */
	COST = 16384, /* in a pass, then doorbells are looked at again; */
	AFTER = 96,   /* after a CQE that software waits for: about as long as a context switch and back */
};

/* Why a pass or a turn ends early: for a WQE of this unit, or because it has done something and is awaited.
 */
static bool interrupted(const struct hw_dev *dev, unsigned done)
{
	return __builtin_expect(dev->pu != NULL, 0) &&
	       (dev->pu->wants || (done > 1 && hw_pu_awaited(dev->pu)));
}

/* Executes what the seed and its share allow of @qp, which can execute. Returns the number of WQEs. */
static unsigned turn(struct hw_qp *qp)
{
	struct hw_pu *pu = qp->dev->pu;
	unsigned done = 0;
	bool goes_on, waits;

	do {
		done += hw_exec_step(qp);
		if (__builtin_expect(qp->state == HW_SQD, 0))
			hw_qp_drain(qp);
		goes_on = qp->run_state == HW_RUN_READY && qp->sq_ci != qp->sq_pi;
	} while (goes_on && done < qp->burst && hw_turns_has_share(qp) && !interrupted(qp->dev, 0));
	if (pu)
		hw_pu_return(pu);
	waits = pu && pu->wants;
	qp->burst = goes_on ? qp->burst - done : 0;
	/* to the end of the line, or out of it */
	if (qp->run_state == HW_RUN_READY)
		hw_qp_set_run(qp, goes_on ? HW_RUN_READY : HW_RUN_IDLE);
	if (waits)
		qp->dev->claimant = qp;
	return done;
}

/* A modelled clock chooses the queue: the one whose next WQE may start first. */
static struct hw_qp *first_due(const struct hw_dev *dev)
{
	struct hw_qp *qp, *first = TAILQ_FIRST(&dev->ready);
	uint64_t due = hw_clock_due(first), at;

	TAILQ_FOREACH (qp, &dev->ready, run) {
		at = hw_clock_due(qp);
		if (at < due) {
			first = qp;
			due = at;
		}
	}
	return first;
}

/*
 * The choices of the seed before a turn of @qp. False: it has none. They are made once for each burst,
 * however many turns it takes: what a queue has sent must not land earlier because shares are short.
 */
static bool begin_turn(struct hw_qp *qp, unsigned most)
{
	struct hw_dev *dev = qp->dev;

	if (dev->cfg.lenient) {
		qp->burst = most;
		return true;
	}
	if (dev->claimant) /* it goes on with a turn */
		return true;
	/* While one goes on that has had its share, time passes for CQEs that WAITs are for */
	if (qp->spent && TAILQ_EMPTY(&dev->ready) && hw_pick(dev, 8) && hw_inflight_tick_at_rest(dev))
		return false;
	if (qp->burst)
		return true;
	switch (hw_pick(dev, 8)) {
	case 0: /* someone else first */
		hw_qp_set_run(qp, HW_RUN_READY);
		return false;
	case 1:
	case 2:
	case 3:
		hw_inflight_tick(dev);
		break;
	}
	if (qp->run_state != HW_RUN_READY) /* the tick has failed it */
		return false;
	qp->burst = 1 + hw_pick(dev, most);
	return true;
}

/* Effects land on a modelled clock as often as WQEs are executed. */
static unsigned turn_by_clock(struct hw_dev *dev)
{
	struct hw_qp *qp = first_due(dev);
	unsigned done;

	qp->burst = 1;
	done = turn(qp);
	if (!dev->cfg.lenient && hw_pick(dev, 2))
		hw_inflight_tick(dev);
	return done;
}

bool hw_pass_run(struct hw_dev *dev)
{
	const unsigned most = dev->cfg.pass ? dev->cfg.pass : PASS, burst = most < BURST ? most : BURST;
	const uint64_t answers = dev->answers;
	uint64_t end = dev->cost + COST;
	unsigned done = 0;

	if (!dev->nready && TAILQ_EMPTY(&dev->inflight))
		return false;
	while (done++ < most && dev->cost < end && !interrupted(dev, done)) {
		struct hw_qp *qp = dev->claimant ? dev->claimant : hw_turns_next(dev);

		if (!qp) {
			if (!hw_inflight_tick(dev))
				break;
			continue;
		}
		if (dev->clock)
			done += turn_by_clock(dev);
		else if (begin_turn(qp, burst))
			done += turn(qp);
		if (dev->answers != answers && end > dev->cost + AFTER)
			end = dev->cost + AFTER;
	}
	return true;
}
