/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/turns.h"

enum { OUT_OF_TURN = 16 }; /* one in so many turns, where there is a choice */

void hw_turns_add(struct hw_qp *qp)
{
	struct hw_dev *dev = qp->dev;

	if (qp->account < dev->round)
		qp->account = dev->round;
	qp->spent = !qp->clock && !hw_turns_has_share(qp);
	TAILQ_INSERT_TAIL(qp->spent ? &dev->spent : &dev->ready, qp, run);
	dev->nready++;
}

void hw_turns_remove(struct hw_qp *qp)
{
	struct hw_dev *dev = qp->dev;

	TAILQ_REMOVE(qp->spent ? &dev->spent : &dev->ready, qp, run);
	dev->nready--;
	if (qp->account > dev->furthest)
		dev->furthest = qp->account;
}

struct hw_qp *hw_turns_next(struct hw_dev *dev)
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
