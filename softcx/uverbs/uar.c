/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/uverbs.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/mlx5-abi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * The page by which libraries turn time stamps into wall-clock time: one per device, which
 * applications map for reading (Linux hw/mlx5/main.c, mlx5_ib_mmap_clock_info_page; core/lib/clock.c).
 * Pages live as long as the process. uverbs_timers() of call.h updates them.
 */

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

/* A descriptor of the page, which stays ours. 0 or -errno. */
static int clock_info(struct hw_dev *dev, int *fd)
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

/* Command 9 marks an offset that an object owns (Linux mlx5_ib: MLX5_IB_MMAP_OFFSET_START). */
enum { MMAP_OBJECT = 9, COMMAND_SHIFT = 8, COMMAND_MASK = 0xff };

static int uar_destroy(struct uverbs_obj *obj)
{
	struct uverbs_uar *uar = (struct uverbs_uar *)obj;

	return hw_uar_free(obj->file->dev, uar->hw);
}

int uverbs_uar_create(struct uverbs_file *file, struct uverbs_uar **out)
{
	struct uverbs_uar *uar = uverbs_obj_new(file, UVERBS_UAR, sizeof(*uar));
	CLEANUP(uverbs_obj_discard) struct uverbs_obj *pending = (struct uverbs_obj *)uar;
	int r;

	if (!uar)
		return -ENOMEM;
	r = hw_uar_alloc(file->dev, &uar->hw);
	if (r < 0)
		return r;
	uverbs_obj_commit(&pending, uar_destroy);
	*out = uar;
	return 0;
}

int uverbs_uar_find(struct uverbs_file *file, uint32_t index, struct uverbs_uar **out)
{
	for (uint32_t h = 0; h < file->table_len; h++) {
		struct uverbs_obj *obj = uverbs_obj_any(file, h);

		if (!obj || obj->type != UVERBS_UAR)
			continue;
		*out = (struct uverbs_uar *)obj;
		if (hw_uar_index((*out)->hw) == index)
			return 0;
	}
	return -EINVAL;
}

uint64_t uverbs_uar_offset(const struct uverbs_uar *uar)
{
	uint64_t index = uar->obj.handle;

	return ((index >> 8) << 16 | MMAP_OBJECT << COMMAND_SHIFT | (index & 0xff)) * UVERBS_PAGE;
}

struct hw_uar *uverbs_page_at(struct uverbs_file *file, uint64_t offset)
{
	uint64_t page = offset / UVERBS_PAGE, index = page >> 16 << 8 | (page & 0xff);
	uint64_t command = page >> COMMAND_SHIFT & COMMAND_MASK;
	struct uverbs_obj *obj;

	if (offset % UVERBS_PAGE)
		return NULL;
	if (command == MLX5_IB_MMAP_CORE_CLOCK && index == 0)
		return file->time;
	if (command != MMAP_OBJECT || uverbs_obj_find(file, UVERBS_UAR, index, &obj) < 0)
		return NULL;
	return ((struct uverbs_uar *)obj)->hw;
}

int uverbs_uar_mmap(struct uverbs_file *file, uint64_t offset, uint64_t len, int *fd, uint64_t *fd_offset)
{
	struct hw_uar *uar;
	int r;

	if (len != UVERBS_PAGE)
		return -EINVAL;
	if ((offset / UVERBS_PAGE >> COMMAND_SHIFT & COMMAND_MASK) == MLX5_IB_MMAP_CLOCK_INFO) {
		*fd_offset = 0;
		return offset / UVERBS_PAGE == MLX5_IB_MMAP_CLOCK_INFO << COMMAND_SHIFT
			       ? clock_info(file->dev, fd)
			       : -EOPNOTSUPP; /* another version */
	}
	if (offset == (uint64_t)(MLX5_IB_MMAP_CORE_CLOCK << COMMAND_SHIFT) * UVERBS_PAGE && !file->time) {
		r = hw_uar_alloc_time(file->dev, &file->time);
		if (r < 0)
			return r;
	}
	uar = uverbs_page_at(file, offset);
	if (!uar)
		return -EINVAL;
	hw_uar_mapped(uar);
	*fd = hw_uar_fd(uar);
	*fd_offset = 0;
	return 0;
}
