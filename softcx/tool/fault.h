/* SPDX-License-Identifier: BSD-2-Clause */
/* tool-fault.h - "softcx fault": tells the NIC what to do wrong. */
#ifndef SOFTCX_TOOL_FAULT_H
#define SOFTCX_TOOL_FAULT_H

#include <stdbool.h>

/** @words go to the NIC as they are, which knows what they mean. Returns the exit status. */
int tool_fault(char **words, bool json);

#endif
