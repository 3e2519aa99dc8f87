/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * devx.h - DEVX: user memory for firmware objects, firmware commands from the application,
 * events of their objects.
 *
 * A command that firmware refuses makes the ioctl fail with -EREMOTEIO and leaves status and
 * syndrome in the out mailbox (Linux 5.18 and newer). Commands that the kernel itself refuses (an opcode that
 * does not fit the method, another object's number) give -EINVAL and no mailbox.
 */
#ifndef SOFTCX_UVERBS_DEVX_H
#define SOFTCX_UVERBS_DEVX_H

#include "softcx/uverbs/ioctl.h"

/** Subscriptions that somebody can still read the events of. */
unsigned uverbs_devx_subscriptions(const struct uverbs_file *file);

#endif
