/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * devx.h - objects of a device file by their handles, by ioctl(2) (<rdma/rdma_user_ioctl_cmds.h>,
 * <rdma/mlx5_user_ioctl_cmds.h>). libmlx5 keeps the handles of DEVX objects to itself (struct
 * mlx5dv_devx_obj), and a successor process needs them: a handle is all that the kernel knows an object by.
 *
 * Any process that has the file may use it so, unlike write(2) (Linux core/uverbs_ioctl.c checks no
 * credentials).
 *
 * Thread rules: any. Errors: negative errno, not logged. A command that firmware refuses leaves status and
 * syndrome in @out (PRM_out_status, PRM_out_syndrome).
 */
#ifndef RNIC_DEVX_H
#define RNIC_DEVX_H

#include <stddef.h>
#include <stdint.h>

/** Types of objects, in the order in which they can be destroyed. */
enum rnic_devx_type {
	RNIC_DEVX_VERBS_QP, /* that verbs made (plain.h), as the next */
	RNIC_DEVX_VERBS_CQ,
	RNIC_DEVX_OBJ, /* that a firmware command made: QPs, CQs */
	RNIC_DEVX_MR,
	RNIC_DEVX_UMEM,
	RNIC_DEVX_AH,
	RNIC_DEVX_UAR,
	RNIC_DEVX_PD,
	RNIC_DEVX_TYPES
};

enum { RNIC_DEVX_LIST_MAX = UINT16_MAX / sizeof(uint32_t) };

/** -ENOENT: there is no such object. Never try it on a CQ that may be in use: the kernel stops its events
 * before the firmware refuses (Linux mlx5/core/cq.c, mlx5_core_destroy_cq). */
int rnic_devx_destroy(int fd, enum rnic_devx_type type, uint32_t handle);
/** The handles of all objects of a type, newest first; the newest RNIC_DEVX_LIST_MAX, if there are more.
 * Returns their number. -EIO: the device is gone. Linux 5.9. */
int rnic_devx_list(int fd, enum rnic_devx_type type, uint32_t handles[static RNIC_DEVX_LIST_MAX]);

int rnic_devx_query(int fd, uint32_t handle, const void *in, size_t in_size, void *out, size_t out_size);
int rnic_devx_modify(int fd, uint32_t handle, const void *in, size_t in_size, void *out, size_t out_size);

/** Memory that commands name as *@id. Firmware gets it in pages of @page bytes. The device writes
 * there. */
int rnic_devx_umem_reg(int fd, void *mem, uint64_t size, uint64_t page, uint32_t *handle, uint32_t *id);

/** A doorbell page: what queues are created with, and where mmap(2) has it. */
struct rnic_devx_uar {
	uint32_t handle;
	uint32_t page_id;
	uint64_t mmap_off, mmap_size;
};

int rnic_devx_uar_alloc(int fd, struct rnic_devx_uar *uar);

/** A non-blocking descriptor that the cookies of events are read from. */
int rnic_devx_event_fd(int fd, int *events);
/** 1 and the cookie of an event, or 0 when there is none. */
int rnic_devx_next_event(int events, uint64_t *cookie);

/* What completion queues and queue pairs have in common. Private to rnic. */

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
