/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/clock-info.h"

#include "softcx/uverbs/uar.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/mlx5-abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Linux lib/clock.c has 23. A difference of more than 2^64 >> 23 nanoseconds, half an hour, overflows. */
enum { SHIFT = 23 };
#define UPDATE_NS (600 * 1000000000ull)

struct page {
	struct hw_dev *dev;
	struct mlx5_ib_clock_info *info;
	int fd; /* for reading only */
	LIST_ENTRY(page) link;
};

static LIST_HEAD(, page) pages = LIST_HEAD_INITIALIZER(pages);
static uint64_t updated_at;

static void update(struct page *page)
{
	struct mlx5_ib_clock_info *info = page->info;
	uint32_t sign = info->sign;
	uint64_t ticks, ns;

	hw_clock_read(page->dev, &ticks, &ns);
	__atomic_store_n(&info->sign, sign | MLX5_IB_CLOCK_INFO_KERNEL_UPDATING, __ATOMIC_SEQ_CST);
	info->cycles = ticks;
	info->nsec = ns;
	info->frac = 0;
	info->mult =
		(uint32_t)(((1000000ull << SHIFT) + hw_clock_khz(page->dev) / 2) / hw_clock_khz(page->dev));
	info->shift = SHIFT;
	info->mask = UINT64_MAX >> 1; /* as QUERY_DEVICE reports */
	info->overflow_period = UPDATE_NS;
	__atomic_store_n(&info->sign, sign + 2 * MLX5_IB_CLOCK_INFO_KERNEL_UPDATING, __ATOMIC_RELEASE);
}

static int new_page(struct hw_dev *dev, struct page **out)
{
	struct page *page = calloc(1, sizeof(*page));
	int fd = memfd_create("softcx-clock-info", MFD_CLOEXEC), rc = 0;
	char path[32];

	if (!page || fd < 0)
		rc = page ? -errno : -ENOMEM;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (rc == 0 && (ftruncate(fd, UVERBS_PAGE) < 0 || (page->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0))
		rc = -errno;
	if (rc == 0) {
		page->info = mmap(NULL, UVERBS_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		rc = page->info == MAP_FAILED ? -errno : 0;
		if (rc < 0)
			close(page->fd);
	}
	if (fd >= 0)
		close(fd);
	if (rc < 0) {
		free(page);
		return rc;
	}
	page->dev = dev;
	LIST_INSERT_HEAD(&pages, page, link);
	*out = page;
	return 0;
}

int uverbs_clock_info(struct hw_dev *dev, int *fd)
{
	struct page *page;
	int rc = 0;

	LIST_FOREACH (page, &pages, link)
		if (page->dev == dev)
			break;
	if (!page)
		rc = new_page(dev, &page);
	if (rc < 0)
		return rc;
	update(page);
	*fd = page->fd;
	return 0;
}

uint64_t uverbs_timers(uint64_t now)
{
	struct page *page;

	if (LIST_EMPTY(&pages))
		return UINT64_MAX;
	if (now - updated_at >= UPDATE_NS) {
		LIST_FOREACH (page, &pages, link)
			update(page);
		updated_at = now;
	}
	return updated_at + UPDATE_NS - now;
}
