/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * served.h - the devices that the daemon serves on, each with its arena; its ledger is rnic_device_ledger().
 * No reload changes them. Tenants and offloads have parts for each, in the same order.
 */
#ifndef GENERATION_SERVED_H
#define GENERATION_SERVED_H

#include "reddnd/catalog/catalog.h"
#include "reddnd/rnic/arena.h"
#include "reddnd/rnic/device.h"

struct served_device {
	struct rnic_device *dev;
	struct rnic_arena *arena;
};

struct served {
	struct served_device device[CATALOG_DEVICES_MAX];
	unsigned n;
};

#endif
