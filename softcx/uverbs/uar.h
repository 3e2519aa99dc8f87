/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uar.h - doorbell pages that the application allocates one by one and maps.
 *
 * rdma-core since 28 asks for dynamic UARs (MLX5_LIB_CAP_DYN_UAR): a page is an object with a
 * handle, a page id that queues are created with, and an offset for mmap(2). The static pages of
 * older libraries do not exist here.
 */
#ifndef SOFTCX_UVERBS_UAR_H
#define SOFTCX_UVERBS_UAR_H

#include "softcx/uverbs/uverbs.h"

enum { UVERBS_PAGE = 4096 };

struct uverbs_uar {
	struct uverbs_obj obj;
	struct hw_uar *hw;
};

int uverbs_uar_create(struct uverbs_file *file, struct uverbs_uar **uar);
/** -EINVAL when page @index is not one of this file: firmware refuses pages of other contexts. */
int uverbs_uar_find(struct uverbs_file *file, uint32_t index, struct uverbs_uar **uar);
/** The mmap(2) offset: command and index as Linux mlx5_ib encodes them in the page number. */
uint64_t uverbs_uar_offset(const struct uverbs_uar *uar);
/** The page whose mmap(2) offset this is, or NULL; that of the clock once it has been mapped. */
struct hw_uar *uverbs_page_at(struct uverbs_file *file, uint64_t offset);
/** -EINVAL for anything but a live UAR page or the clock page at its full length: no contiguous pages. */
int uverbs_uar_mmap(struct uverbs_file *file, uint64_t offset, uint64_t len, int *fd, uint64_t *fd_offset);

#endif
