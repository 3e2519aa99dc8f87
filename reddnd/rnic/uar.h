/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uar.h - the doorbell page of a device (a UAR), which all its queues ring. Private to rnic.
 */
#ifndef RNIC_UAR_H
#define RNIC_UAR_H

struct rnic_device;

/** Makes a page, records it in the slot of the device, and maps it. Errors are those of the device. */
int rnic_uar_make(struct rnic_device *dev);
/** Maps the page that the slot of the device has: queues go on ringing the one that they were made with.
 * -EBADMSG: it has none. */
int rnic_uar_adopt(struct rnic_device *dev);
/** After all queues. Fine without a page. */
void rnic_uar_free(struct rnic_device *dev);

#endif
