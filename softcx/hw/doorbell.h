/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doorbell.h - notices which queues software rang. Internal to softcx/hw.
 *
 * A word that software stored names the queue that rang last. Others on the page may have rung before it, and
 * their words are overwritten; but software stores the doorbell record first, and records are not lost. So a
 * scan reads the record of the named queue at once and then those of others on the page, a few at a time:
 * a ring costs the same however many queues share the page. When such a read finds something, the steps
 * become larger.
 *
 * Those that a record of can change nothing are left out: managed SQs, and CQs without a CQE since their last
 * event, which the next CQE looks at. A server has thousands of these on one page, and few others.
 */
#ifndef SOFTCX_HW_DOORBELL_H
#define SOFTCX_HW_DOORBELL_H

#include <stdbool.h>

struct hw_dev;

/** Looks at all pages that are awake, and sends quiet ones to sleep. True: something rang or may have. */
bool hw_doorbell_scan(struct hw_dev *dev);

#endif
