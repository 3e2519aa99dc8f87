/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/region.h"

#include "reddnd/rnic/internal.h"
#include "reddnd/util/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { MAX_WINDOWS = 8 };

struct rnic_region {
	struct rnic_device *dev;
	uint8_t *mem;
	uint64_t size;
	struct ibv_mr *mrs[MAX_WINDOWS];
	unsigned nmrs;
};

int rnic_region_open(struct rnic_region **out, struct rnic_device *dev, const char *path)
{
	CLEANUP(cleanup_free) struct rnic_region *region = calloc(1, sizeof *region);
	CLEANUP(cleanup_close) int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (!region)
		return -ENOMEM;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EINVAL;
	region->dev = dev;
	region->size = (uint64_t)st.st_size;
	region->mem = mmap(NULL, region->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (region->mem == MAP_FAILED)
		return -errno;
	*out = steal_ptr(&region);
	return 0;
}

void rnic_region_close(struct rnic_region *region)
{
	for (unsigned i = 0; i < region->nmrs; i++)
		ibv_dereg_mr(region->mrs[i]);
	munmap(region->mem, region->size);
	free(region);
}

const uint8_t *rnic_region_mem(const struct rnic_region *region)
{
	return region->mem;
}

uint64_t rnic_region_size(const struct rnic_region *region)
{
	return region->size;
}

int rnic_region_window(struct rnic_region *region, unsigned number, uint64_t off, uint64_t size, bool remote,
	struct rnic_window *window)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t iova = ((uint64_t)number + 1) << RNIC_WINDOW_BITS | off % page;
	struct ibv_mr *mr;

	assert(region->nmrs < MAX_WINDOWS);
	assert(off < region->size && size <= region->size - off);
	mr = ibv_reg_mr_iova(
		region->dev->pd, region->mem + off, size, iova, remote ? IBV_ACCESS_REMOTE_READ : 0);
	if (!mr)
		return -errno;
	region->mrs[region->nmrs++] = mr;
	*window = (struct rnic_window){.iova = iova, .lkey = mr->lkey, .rkey = mr->rkey};
	return 0;
}
