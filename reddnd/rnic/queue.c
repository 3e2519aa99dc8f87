/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/queue.h"

#include "mlx5/barrier.h"
#include "mlx5/prm.h"
#include "reddnd/rnic/internal.h"
#include "reddnd/util/log.h"

#include <endian.h>

int rnic_queue_create(struct rnic_device *dev, const char *what, const uint8_t *in, size_t in_size,
	uint32_t *handle, uint32_t *number)
{
	uint8_t out[16] = {0};
	int r = rnic_devx_create(dev->ctx->cmd_fd, in, in_size, out, sizeof(out), handle);

	if (r < 0)
		return log_errno(r, "cannot make a %s (firmware status %#x, syndrome %#x)", what,
			(unsigned)prm_get(out, PRM_out_status), (unsigned)prm_get(out, PRM_out_syndrome));
	*number = (uint32_t)prm_get(out, PRM_out_objn);
	return 0;
}

int rnic_queue_subscribe(
	struct rnic_device *dev, int fd, uint32_t handle, const uint16_t *events, size_t n, uint64_t cookie)
{
	return rnic_devx_subscribe(dev->ctx->cmd_fd, fd ? fd : dev->events, handle, events, n, cookie);
}

void rnic_queue_store_record(uint32_t *p, uint32_t v)
{
	barrier_to_device();
	__atomic_store_n(p, htobe32(v), __ATOMIC_RELAXED);
}

void rnic_queue_ring(void *reg, uint64_t be_value)
{
	barrier_doorbell();
	__atomic_store_n((uint64_t *)reg, be_value, __ATOMIC_RELAXED);
	barrier_doorbell();
}
