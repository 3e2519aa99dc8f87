/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/turns.h"

#include "softcx/hw/clock.h"
#include "softcx/hw/cq.h"
#include "softcx/hw/exec.h"
#include "softcx/hw/inflight.h"
#include "softcx/hw/pu.h"
#include "softcx/hw/uar.h"
#include "util/clock.h"

#include <errno.h>
#include <stdlib.h>

enum { OUT_OF_TURN = 16 }; /* one in so many turns, where there is a choice */

static void turns_add(struct hw_qp *qp)
{
	struct hw_dev *dev = qp->dev;

	if (qp->account < dev->round)
		qp->account = dev->round;
	qp->spent = !qp->clock && !hw_turns_has_share(qp);
	TAILQ_INSERT_TAIL(qp->spent ? &dev->spent : &dev->ready, qp, run);
	dev->nready++;
}

static void turns_remove(struct hw_qp *qp)
{
	struct hw_dev *dev = qp->dev;

	TAILQ_REMOVE(qp->spent ? &dev->spent : &dev->ready, qp, run);
	dev->nready--;
	if (qp->account > dev->furthest)
		dev->furthest = qp->account;
}

/* The queue whose turn it is, NULL if none can execute. */
static struct hw_qp *turns_next(struct hw_dev *dev)
{
	struct hw_qp *qp = TAILQ_FIRST(&dev->ready), *spent = TAILQ_FIRST(&dev->spent);

	if (qp && spent && !dev->cfg.lenient && hw_pick(dev, OUT_OF_TURN) == 0)
		return spent;
	if (qp)
		return qp;
	if (!spent)
		dev->round = dev->furthest;
	else if (spent->account > dev->round)
		dev->round = spent->account;
	return spent;
}

void hw_qp_set_run(struct hw_qp *qp, enum hw_run run)
{
	struct hw_dev *dev = qp->dev;

	switch (qp->run_state) {
	case HW_RUN_IDLE:
		break;
	case HW_RUN_READY:
		turns_remove(qp);
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
		turns_add(qp);
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

int hw_rate_create(struct hw_dev *dev, struct hw_rate *parent, struct hw_rate **out)
{
	struct hw_rate *rate = calloc(1, sizeof(*rate));
	int err;

	if (!rate)
		return -ENOMEM;
	err = hw_table_add(&dev->rates, rate, &rate->id);
	if (err) {
		free(rate);
		return err;
	}
	rate->parent = parent;
	if (parent)
		parent->members++;
	*out = rate;
	return 0;
}

int hw_rate_destroy(struct hw_dev *dev, struct hw_rate *rate)
{
	if (rate->members)
		return -EBUSY;
	if (rate->parent)
		rate->parent->members--;
	hw_table_del(&dev->rates, rate->id);
	free(rate);
	return 0;
}

void hw_rate_set(struct hw_rate *rate, uint32_t mbps)
{
	rate->mbps = mbps;
	rate->paid_until = 0;
}

uint32_t hw_rate_id(const struct hw_rate *rate)
{
	return rate->id;
}

void hw_qp_limit(struct hw_qp *qp, struct hw_rate *rate)
{
	if (qp->rate)
		qp->rate->members--;
	qp->rate = rate;
	if (rate)
		rate->members++;
}

uint64_t hw_rate_due(const struct hw_rate *rate)
{
	uint64_t due = 0;

	for (; rate; rate = rate->parent)
		if (rate->mbps && rate->paid_until > due)
			due = rate->paid_until;
	return due;
}

void hw_rate_charge(struct hw_rate *rate, uint32_t bytes, uint64_t now)
{
	for (; rate; rate = rate->parent) {
		if (!rate->mbps)
			continue;
		/* an idle time is credit for a short burst, no more */
		if (rate->paid_until + HW_RATE_BURST_NS < now)
			rate->paid_until = now - HW_RATE_BURST_NS;
		rate->paid_until += (uint64_t)bytes * 8000 / rate->mbps;
	}
}

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
		struct hw_qp *qp = dev->claimant ? dev->claimant : turns_next(dev);

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
