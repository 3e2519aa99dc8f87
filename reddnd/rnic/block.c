/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/block.h"

#include "reddnd/rnic/internal.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* IOVA of the arena's first page. Blocks lie below the regions (region.h), in the order of the arena. Not 0,
 * so that an address field that was not filled in points nowhere. */
#define BLOCK_IOVA_BASE (1ull << 32)

/*
 * Queues lie at multiples of 4 KiB. The kernel prefers larger pages, of huge pages or of an IOMMU, and
 * offsets must be multiples of a 64th of those, so it is asked to use pages of 4 KiB (Linux hw/mlx5/devx.c,
 * devx_umem_reg_cmd_alloc).
 */
enum { QUEUE_PAGE = 4096 };

int rnic_block_init(struct rnic_block *b, struct rnic_pd *pd, struct rnic_arena *arena, uint64_t size,
	uint64_t code_off, uint64_t code_size)
{
	return rnic_block_init_in(NULL, b, pd, arena, size, code_off, code_size, RNIC_BLOCK_LOOPBACK);
}

int rnic_block_init_in(struct ledger_slot *slot, struct rnic_block *b, struct rnic_pd *pd,
	struct rnic_arena *arena, uint64_t size, uint64_t code_off, uint64_t code_size,
	enum rnic_block_access access)
{
	static const unsigned flags[] = {[RNIC_BLOCK_LOCAL] = IBV_ACCESS_LOCAL_WRITE,
		[RNIC_BLOCK_LOOPBACK] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC};
	struct rnic_device *dev = pd->dev;
	int r;

	*b = (struct rnic_block){.slot = slot, .size = size, .code_off = code_off};
	r = rnic_arena_alloc(arena, size, &b->offset);
	if (r < 0)
		return r;
	ledger_set_block(slot, b->offset, (size + QUEUE_PAGE - 1) / QUEUE_PAGE * QUEUE_PAGE);
	b->dev = dev;
	b->pd = pd;
	b->arena = arena;
	b->mem = rnic_arena_at(arena, b->offset);
	r = rnic_devx_umem_reg(dev->ctx->cmd_fd, b->mem, size, QUEUE_PAGE, &b->umem, &b->umem_id);
	if (r < 0) {
		log_errno(r, "cannot pin %" PRIu64 " bytes of queue memory", size);
		rnic_block_deinit(b);
		return r;
	}
	b->pinned = true;
	ledger_made(
		slot, &(struct ledger_object){.type = LEDGER_UMEM, .handle = b->umem, .number = b->umem_id});
	if (code_size == 0)
		return 0;
	b->iova = BLOCK_IOVA_BASE + b->offset + code_off;
	b->mr = ibv_reg_mr_iova(pd->pd, b->mem + code_off, code_size, b->iova, flags[access]);
	if (!b->mr) {
		r = log_errno(-errno, "cannot register %" PRIu64 " bytes of queue memory", code_size);
		rnic_block_deinit(b);
		return r;
	}
	ledger_made(slot,
		&(struct ledger_object){.type = LEDGER_MR, .handle = b->mr->handle, .number = b->mr->lkey});
	b->lkey = b->mr->lkey;
	b->rkey = b->mr->rkey;
	return 0;
}

static int adopt_block(struct rnic_block *b, uint64_t size, uint64_t code_size)
{
	const struct ledger_object *umem = rnic_find_object(b->slot, LEDGER_UMEM, 0);
	const struct ledger_object *mr = rnic_find_object(b->slot, LEDGER_MR, 0);

	if (!umem || !mr != !code_size ||
		b->slot->block.size != (size + QUEUE_PAGE - 1) / QUEUE_PAGE * QUEUE_PAGE)
		return -EBADMSG;
	b->umem = umem->handle;
	b->umem_id = umem->number;
	if (!mr)
		return 0;
	/* Its keys are those that the kernel reports */
	b->mr = ibv_import_mr(b->pd->pd, mr->handle);
	if (!b->mr)
		return -errno;
	b->iova = BLOCK_IOVA_BASE + b->offset + b->code_off;
	b->lkey = b->mr->lkey;
	b->rkey = b->mr->rkey;
	return 0;
}

int rnic_block_adopt(struct ledger_slot *slot, struct rnic_block *b, struct rnic_pd *pd,
	struct rnic_arena *arena, uint64_t size, uint64_t code_off, uint64_t code_size)
{
	int r;

	*b = (struct rnic_block){.slot = slot,
		.dev = pd->dev,
		.pd = pd,
		.arena = arena,
		.offset = slot->block.offset,
		.mem = rnic_arena_at(arena, slot->block.offset),
		.size = size,
		.code_off = code_off,
		.pinned = true,
		.adopted = true};
	r = adopt_block(b, size, code_size);
	if (r < 0)
		*b = (struct rnic_block){0};
	return r;
}

static int unregister(struct rnic_block *b)
{
	uint32_t handle = b->mr ? b->mr->handle : 0;
	int r = b->mr ? -ibv_dereg_mr(b->mr) : 0, e;

	if (b->mr && r == 0)
		ledger_gone(b->slot, LEDGER_MR, handle);
	e = b->pinned ? rnic_devx_destroy(b->dev->ctx->cmd_fd, RNIC_DEVX_UMEM, b->umem) : 0;
	if (b->pinned && e == 0)
		ledger_gone(b->slot, LEDGER_UMEM, b->umem);
	return r < 0 ? r : e;
}

void rnic_block_deinit(struct rnic_block *b)
{
	int r;

	if (!b->dev)
		return;
	r = unregister(b);
	/* Memory that the device still holds must never be given to another session */
	if (r < 0) {
		log_error("the device does not release queue memory at %#" PRIx64 ": %s", b->offset,
			strerror(-r));
	} else {
		rnic_arena_release(b->arena, b->offset);
		ledger_set_block(b->slot, 0, 0);
	}
	*b = (struct rnic_block){0};
}
