/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/region.h"

#include "reddnd/rnic/internal.h"
#include "util/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>

struct window {
	SLIST_ENTRY(window) link;
	struct ibv_mr *mr;
};

struct rnic_region {
	uint8_t *mem;
	uint64_t size;
	dev_t dev;
	ino_t ino;
	SLIST_HEAD(, window) windows;
};

int rnic_region_open(struct rnic_region **out, const char *path)
{
	CLEANUP(cleanup_free) struct rnic_region *region = calloc(1, sizeof(*region));
	CLEANUP(cleanup_close) int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (!region)
		return -ENOMEM;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EINVAL;
	region->size = (uint64_t)st.st_size;
	region->dev = st.st_dev;
	region->ino = st.st_ino;
	region->mem = mmap(NULL, region->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (region->mem == MAP_FAILED)
		return -errno;
	*out = steal_ptr(&region);
	return 0;
}

void rnic_region_close(struct rnic_region *region)
{
	struct window *w;

	while ((w = SLIST_FIRST(&region->windows))) {
		SLIST_REMOVE_HEAD(&region->windows, link);
		ibv_dereg_mr(w->mr);
		free(w);
	}
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

bool rnic_region_is(const struct rnic_region *a, const struct rnic_region *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

int rnic_region_window(struct rnic_region *region, struct rnic_pd *pd, unsigned number, uint64_t off,
	uint64_t size, enum rnic_access access, struct rnic_window *window)
{
	static const int flags[] = {
		[RNIC_LOCAL_READ] = 0,
		[RNIC_REMOTE_READ] = IBV_ACCESS_REMOTE_READ,
		[RNIC_REMOTE_CHANGE] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t iova = ((uint64_t)number + 1) << RNIC_WINDOW_BITS | off % page;
	CLEANUP(cleanup_free) struct window *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	assert(off < region->size && size <= region->size - off);
	w->mr = ibv_reg_mr_iova(pd->pd, region->mem + off, size, iova, (unsigned)flags[access]);
	if (!w->mr)
		return -errno;
	*window = (struct rnic_window){.iova = iova, .lkey = w->mr->lkey, .rkey = w->mr->rkey};
	SLIST_INSERT_HEAD(&region->windows, w, link);
	steal_ptr(&w);
	return 0;
}
