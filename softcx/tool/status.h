/* SPDX-License-Identifier: BSD-2-Clause */
/* status.h - "softcx status": prints what lives in the NIC. */
#ifndef SOFTCX_TOOL_STATUS_H
#define SOFTCX_TOOL_STATUS_H

#include <stdbool.h>

/** Returns the exit status. */
int tool_status(bool objects, bool json);

#endif
