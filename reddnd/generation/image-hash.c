/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/image-hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Each part is hashed with what came before as its seed, after its length */
static void add(uint64_t *h, const void *bytes, size_t size)
{
	*h = XXH3_64bits_withSeed(&size, sizeof(size), *h);
	*h = XXH3_64bits_withSeed(bytes, size, *h);
}

/* By value: structures have padding */
static void add_number(uint64_t *h, uint64_t v)
{
	add(h, &v, sizeof(v));
}

static void add_queue(uint64_t *h, const struct chain_queue *q)
{
	add(h, q->wqes, (size_t)q->wqebbs * CHAIN_WQEBB);
	add(h, q->starts, q->wqebbs);
	add_number(h, q->head_wqebbs);
	add_number(h, q->cqes);
}

static void add_reloc(uint64_t *h, const struct chain_reloc *r)
{
	add_number(h, (uint64_t)r->kind << 24 | (uint64_t)r->where << 16 | (uint64_t)r->sym << 8 | r->index);
	add_number(h, r->offset);
	add_number(h, (uint64_t)r->addend);
}

static void add_recv(uint64_t *h, const struct chain_recv_sge *s)
{
	add_number(h, (uint64_t)s->sym << 24 | (uint64_t)s->index << 16 | s->len);
	add_number(h, s->offset);
}

static void add_restore(uint64_t *h, const struct chain_restore *r)
{
	add_number(h, (uint64_t)r->sym << 8 | r->index);
	add_number(h, (uint64_t)r->offset << 32 | r->len);
}

static void add_image(uint64_t *h, const struct chain_image *img)
{
	add_number(h, img->nqueues);
	for (unsigned q = 0; q < img->nqueues; q++)
		add_queue(h, &img->queue[q]);
	for (unsigned i = 0; i < img->nrelocs; i++)
		add_reloc(h, &img->relocs[i]);
	for (unsigned i = 0; i < img->nrecv; i++)
		add_recv(h, &img->recv[i]);
	for (unsigned i = 0; i < img->nrestores; i++)
		add_restore(h, &img->restores[i]);
	add(h, img->scratch_init, img->scratch_size);
	add(h, img->region_bits, sizeof(img->region_bits));
	add_number(h, img->nregions);
	add_number(h, img->arg_len);
	add_number(h, img->pad_wqebbs);
}

static void add_qp(uint64_t *h, const struct queue_layout_qp *q)
{
	const uint64_t all[] = {q->cqes_off, q->cq_db_off, q->cq_log_size, q->wq_off, q->qp_db_off,
		q->ring_off, q->ring_wqebbs};

	add(h, all, sizeof(all));
}

static void add_layout(uint64_t *h, const struct queue_layout *l)
{
	const uint64_t all[] = {l->slots, l->rq_stride, l->recycled, l->scratch_off, l->lanes_off,
		l->code_off, l->code_size, l->size, l->recycling.start, l->recycling.recvs,
		l->recycling.ring_wqebbs, l->recycling.lanes, l->recycling.progress, l->recycling.log,
		l->loop.lanes_off, l->loop.scratch_off, l->loop.shared_off};

	add(h, all, sizeof(all));
	add(h, l->recycling.recv_en, sizeof(l->recycling.recv_en));
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		add_qp(h, &l->queue[q]);
	add_qp(h, &l->recycler);
	add_qp(h, &l->replies);
	add_qp(h, &l->loop.queue);
	add_qp(h, &l->loop.credits);
}

/* What credits of a loop without a bound are counted by; its ring stays as it was written */
static void add_loop(uint64_t *h, const struct chain_loop_info *l)
{
	add_number(h, l->iterations);
	add_number(h, l->lap.wqes);
	add_number(h, l->progress);
}

uint64_t image_hash(const struct program *p, const struct queue_layout *l)
{
	uint64_t h = 0;

	add_image(&h, p->image);
	add_layout(&h, l);
	if (p->loop)
		add_loop(&h, &p->loop_info);
	return h ? h : 1;
}
