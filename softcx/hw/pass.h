/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pass.h - one look at all send queues of a device: who has turns, how long each is, and what lands between
 * them. Internal to softcx/hw.
 */
#ifndef SOFTCX_HW_PASS_H
#define SOFTCX_HW_PASS_H

#include "softcx/hw/dev.h"

/**
 * Executes enabled WQEs of ready queues and lets effects land, a bounded number. It ends soon after a CQE
 * that software waits for. False: there was nothing to do.
 */
bool hw_pass_run(struct hw_dev *dev);

#endif
