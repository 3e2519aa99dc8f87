/* SPDX-License-Identifier: BSD-2-Clause */
/* fault.h - "softcx fault": makes the NIC fail on demand. */
#ifndef SOFTCX_TOOL_FAULT_H
#define SOFTCX_TOOL_FAULT_H

#include <stdbool.h>

/** Sends @words to the NIC, which interprets them. Returns the exit status. */
int tool_fault(char **words, bool json);

#endif
