/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * devices.h - lists the devices that the NIC can be.
 */
#ifndef SOFTCX_TOOL_DEVICES_H
#define SOFTCX_TOOL_DEVICES_H

#include <stdbool.h>

/** Prints a line for each profile, or all facts as JSON. Returns the exit status: 1 if a profile is wrong. */
int tool_devices(bool json);

#endif
