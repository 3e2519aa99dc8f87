/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/rate.h"

#include "softcx/hw/qp.h"

#include <errno.h>
#include <stdlib.h>

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

struct hw_rate *hw_rate_find(struct hw_dev *dev, uint32_t id)
{
	return id >> 24 ? NULL : hw_table_get(&dev->rates, id);
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
