/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/uverbs/uar.h"

#include "softcx/uverbs/clock-info.h"

#include <errno.h>
#include <rdma/mlx5-abi.h>

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
			       ? uverbs_clock_info(file->dev, fd)
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
