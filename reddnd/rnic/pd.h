/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pd.h - protection domains. Queues of one cannot use memory keys of another.
 *
 * Thread rules: one thread. Errors have been logged.
 */
#ifndef RNIC_PD_H
#define RNIC_PD_H

#include "reddnd/rnic/device.h"

/** Makes another PD than that of the device (rnic_device_pd()), and records it in @slot (or NULL). */
int rnic_pd_new(struct rnic_pd **pd, struct rnic_device *dev, struct ledger_slot *slot);
/** The PD that @slot, which was inherited, has. */
int rnic_pd_adopt(struct rnic_pd **pd, struct rnic_device *dev, struct ledger_slot *slot);
void rnic_pd_free(struct rnic_pd *pd); /* after all objects in it */
struct rnic_device *rnic_pd_device(const struct rnic_pd *pd);

#endif
