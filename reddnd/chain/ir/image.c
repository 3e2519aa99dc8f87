/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/image.h"

#include "mlx5/wqe.h"

#include <stdlib.h>

uint32_t chain_ring_wqebbs(const struct chain_queue *q, unsigned slots)
{
	uint64_t need = (uint64_t)q->wqebbs * slots;
	uint32_t ring = 1;

	if (need == 0 || need > CHAIN_MAX_RING)
		return 0;
	while (ring < need)
		ring *= 2;
	return ring;
}

uint32_t chain_pad_nop(const struct chain_image *img, uint32_t left)
{
	uint32_t longest = img->pad_wqebbs ? img->pad_wqebbs : CHAIN_PAD_WQEBBS;

	return left < longest ? left : longest;
}

static uint32_t wqes_of(const struct chain_queue *q)
{
	uint32_t wqes = 0;

	for (uint32_t w = 0; w < q->wqebbs; w++)
		wqes += q->starts[w];
	return wqes;
}

static uint32_t pad_wqes(const struct chain_queue *q, unsigned slots, uint32_t ring)
{
	uint32_t pad = ring - q->wqebbs * slots;

	return (pad + CHAIN_PAD_WQEBBS - 1) / CHAIN_PAD_WQEBBS;
}

uint32_t chain_ring_wqes(const struct chain_queue *q, unsigned slots)
{
	return wqes_of(q) * slots + pad_wqes(q, slots, chain_ring_wqebbs(q, slots));
}

/* Where instances do not overlap, no more than one has, and the pad: of the queue with the head the end of an
 * instance, then the pad and the head of the next, of others an instance and the pad behind it */
uint32_t chain_ring_flushed(const struct chain_queue *q, unsigned slots, uint32_t ring)
{
	return (q->overlaps ? wqes_of(q) * slots : wqes_of(q)) + pad_wqes(q, slots, ring);
}

uint32_t chain_ring_cqes(const struct chain_queue *q, unsigned slots)
{
	uint32_t all = chain_ring_wqes(q, slots);
	uint32_t cqes = q->cqes * slots + chain_ring_flushed(q, slots, chain_ring_wqebbs(q, slots));

	return cqes < all ? cqes : all;
}

unsigned chain_reloc_bytes(const struct chain_reloc *r)
{
	return r->kind == CHAIN_REL_ADDR64 ? 8 : r->kind == CHAIN_REL_INDEX16 ? 2 : 4;
}

uint32_t chain_rq_stride(const struct chain_image *img)
{
	uint32_t stride = WQE_DS;

	while (stride < img->nrecv * WQE_DS)
		stride *= 2;
	return stride;
}

void chain_free(struct chain_image *img)
{
	if (!img)
		return;
	for (unsigned q = 0; q < img->nqueues; q++) {
		free(img->queue[q].wqes);
		free(img->queue[q].starts);
	}
	free(img->relocs);
	free(img->labels);
	free(img->restores);
	free(img->scratch_init);
	free(img);
}
