/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * assign.h - which device serves which address of "listen". Pure.
 */
#ifndef SERVER_ASSIGN_H
#define SERVER_ASSIGN_H

#include "reddnd/catalog/catalog.h"

enum { ASSIGN_WHY = 400, ASSIGN_MISSING = CATALOG_DEVICES_MAX };

struct assignment {
	/* Of each device; "": the one that addresses belong to, or the machine's only one */
	char name[CATALOG_DEVICES_MAX][CATALOG_DEVICE_BYTES];
	unsigned n;
	unsigned of[CATALOG_LISTEN_MAX]; /* the device of each address, or ASSIGN_MISSING */
};

/** True if what addresses belong to decides: "device" is a list, or "all". */
bool assign_asks(const struct catalog *c);

/**
 * @belongs: the device that each address of @c belongs to, "" if to none in particular; not used unless
 * assign_asks(). 0; or -EINVAL and @why, a line, if an address belongs to no device of the list, or a device
 * has no address.
 */
int assign_devices(const struct catalog *c, const char belongs[][CATALOG_DEVICE_BYTES], struct assignment *a,
	char why[ASSIGN_WHY]);
/**
 * The same of a configuration that has been in force, which cannot be wrong: addresses may have gone since,
 * or may belong to others. Those are MISSING, and a device may have no address. @belongs: also "" of an
 * address that has gone.
 */
void assign_again(const struct catalog *c, const char belongs[][CATALOG_DEVICE_BYTES], struct assignment *a);

/** True if an address of @c is assigned to device @device of @a. */
bool assign_has_address(const struct catalog *c, const struct assignment *a, unsigned device);

#endif
