/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * guard.h - notices stores to doorbell pages that sleep (hw.h), through the userfaultfd of the process that
 * maps the page.
 */
#ifndef SOFTCX_NIC_GUARD_H
#define SOFTCX_NIC_GUARD_H

#include "softcx/hw/hw.h"
#include "softcx/nic/event-loop.h"

/** Guards one mapping of @uar by @uffd, which it takes over unless it fails, until the page goes. */
int guard_add(struct event_loop *loop, struct hw_uar *uar, int uffd);

#endif
