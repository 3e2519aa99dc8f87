/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue.h - what completion queues and queue pairs have in common. Private to rnic.
 */
#ifndef RNIC_QUEUE_H
#define RNIC_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct rnic_device;

/** Makes a @what by the command @in of @in_size bytes: its @handle, and its @number. Errors of the device
 * have been logged, with what firmware reports. */
int rnic_queue_create(struct rnic_device *dev, const char *what, const uint8_t *in, size_t in_size,
	uint32_t *handle, uint32_t *number);
/** Has the @n @events of the object @handle raised as @cookie, for readers of @fd (rnic_devx_event_fd()), or
 * of the device's (rnic_device_next_event()) if that is 0. */
int rnic_queue_subscribe(
	struct rnic_device *dev, int fd, uint32_t handle, const uint16_t *events, size_t n, uint64_t cookie);
/** Stores @v into a doorbell record, after all stores to queues before it. */
void rnic_queue_store_record(uint32_t *record, uint32_t v);
/**
 * Rings: stores @be_value into @reg of the doorbell page at once, after all stores before it. Where the
 * kernel has only write-combining pages (devx.c), the store would else stay in the processor until it is
 * flushed, and the device would not see it.
 */
void rnic_queue_ring(void *reg, uint64_t be_value);

#endif
