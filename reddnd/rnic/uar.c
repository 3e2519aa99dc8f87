/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/uar.h"

#include "reddnd/rnic/internal.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

static void free_page(struct rnic_device *dev)
{
	if (rnic_devx_destroy(dev->ctx->cmd_fd, RNIC_DEVX_UAR, dev->uar.handle) == 0)
		ledger_gone(dev->slot, LEDGER_UAR, dev->uar.handle);
}

static int map_page(struct rnic_device *dev)
{
	void *page = mmap(
		NULL, dev->uar.mmap_size, PROT_WRITE, MAP_SHARED, dev->ctx->cmd_fd, (off_t)dev->uar.mmap_off);

	if (page == MAP_FAILED)
		return -errno;
	dev->uar_page = page;
	return 0;
}

int rnic_uar_make(struct rnic_device *dev)
{
	int r = rnic_devx_uar_alloc(dev->ctx->cmd_fd, &dev->uar);

	if (r < 0)
		return r;
	ledger_made(dev->slot, &(struct ledger_object){.type = LEDGER_UAR,
				       .handle = dev->uar.handle,
				       .number = dev->uar.page_id,
				       .offset = dev->uar.mmap_off});
	r = map_page(dev);
	if (r < 0)
		free_page(dev);
	return r;
}

/* All queues ring the page that they were made with: the successor maps the same one */
int rnic_uar_adopt(struct rnic_device *dev)
{
	for (const struct ledger_object *o = dev->slot->object; o < dev->slot->object + LEDGER_OBJECTS; o++) {
		if (o->type != LEDGER_UAR)
			continue;
		dev->uar = (struct rnic_devx_uar){.handle = o->handle,
			.page_id = o->number,
			.mmap_off = o->offset,
			.mmap_size = (uint64_t)sysconf(_SC_PAGESIZE)};
		return map_page(dev);
	}
	return -EBADMSG;
}

void rnic_uar_free(struct rnic_device *dev)
{
	if (!dev->uar_page)
		return;
	munmap(dev->uar_page, dev->uar.mmap_size);
	free_page(dev);
}
