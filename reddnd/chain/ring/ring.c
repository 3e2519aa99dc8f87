/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/ring.h"

#include "mlx5/wqe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void *ring_more(bool *nomem, void *array, unsigned n, unsigned *room, size_t size)
{
	unsigned want = *room ? 2 * *room : 64;
	void *a;

	if (n < *room)
		return array;
	a = realloc(array, want * size);
	if (!a) {
		*nomem = true;
		return array;
	}
	*room = want;
	return a;
}

static unsigned symbol_of(uint64_t addr)
{
	return (unsigned)(addr >> RING_SYMBOL_SHIFT);
}

static uint64_t offset_of(uint64_t addr)
{
	return addr & ((1ull << RING_SYMBOL_SHIFT) - 1);
}

/* ---- making one ---- */

struct ring_image *ring_new(uint32_t wqebbs, uint32_t lanes_at, uint32_t lanes_bytes)
{
	struct ring_image *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->wqebbs = wqebbs;
	r->lanes_at = lanes_at;
	r->lanes_bytes = lanes_bytes;
	r->ring = calloc(wqebbs, CHAIN_WQEBB);
	r->lanes = calloc(lanes_bytes, 1);
	r->nomem = !r->ring || !r->lanes;
	return r;
}

void ring_free(struct ring_image *r)
{
	if (!r)
		return;
	free(r->ring);
	free(r->lanes);
	free(r->relocs);
	free(r->copies);
	free(r);
}

void ring_name(struct ring_image *r, uint32_t at, enum ring_field field, uint64_t addr)
{
	assert(symbol_of(addr) < RING_SYMBOLS);
	r->relocs = ring_more(&r->nomem, r->relocs, r->nrelocs, &r->relocs_room, sizeof(*r->relocs));
	if (r->nomem)
		return;
	r->relocs[r->nrelocs++] = (struct ring_reloc){at, (uint8_t)field, (uint8_t)symbol_of(addr)};
	if (field == RING_SEGMENT)
		wqe_put64(r->ring + at + WQE_SGE_ADDR, offset_of(addr));
	else if (field == RING_REMOTE)
		wqe_put64(r->ring + at, offset_of(addr));
}

void ring_copies(struct ring_image *r, const struct ring_copy *copies, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		r->copies = ring_more(&r->nomem, r->copies, r->ncopies, &r->copies_room, sizeof(*r->copies));
		if (!r->nomem)
			r->copies[r->ncopies++] = copies[i];
	}
}

static bool is_alike(const struct ring_reloc *a, const struct ring_reloc *b)
{
	return a->field == b->field && a->symbol == b->symbol;
}

static int compare_relocs(const void *x, const void *y)
{
	const struct ring_reloc *a = x, *b = y;

	if (!is_alike(a, b))
		return a->field != b->field ? a->field - b->field : a->symbol - b->symbol;
	return a->at < b->at ? -1 : a->at > b->at;
}

/* Those of one field and symbol beside each other: writing them takes no decision for each */
int ring_done(struct ring_image *r)
{
	if (r->nomem)
		return -ENOMEM;
	if (r->nrelocs)
		qsort(r->relocs, r->nrelocs, sizeof(*r->relocs), compare_relocs);
	return 0;
}

/* ---- writing it ---- */

static void write_addresses(const struct ring_reloc *p, const struct ring_reloc *end, uint8_t *ring,
	uint64_t iova, uint32_t key, unsigned addr_at, unsigned key_at)
{
	for (; p < end; p++) {
		uint8_t *f = ring + p->at;

		wqe_put64(f + addr_at, iova + wqe_get64(f + addr_at));
		wqe_put32(f + key_at, key);
	}
}

static void write_qpn24s(
	const struct ring_reloc *p, const struct ring_reloc *end, uint8_t *ring, uint32_t qpn)
{
	for (; p < end; p++)
		wqe_put32(ring + p->at, qpn << 8 | ring[p->at + 3]);
}

static void write_numbers(
	const struct ring_reloc *p, const struct ring_reloc *end, uint8_t *ring, uint32_t number)
{
	for (; p < end; p++)
		wqe_put32(ring + p->at, number);
}

static void write_run(const struct ring_reloc *p, const struct ring_reloc *end, const struct ring_values *v)
{
	uint8_t *ring = v->of[RING_SELF].mem;
	const unsigned s = p->symbol;

	switch ((enum ring_field)p->field) {
	case RING_SEGMENT:
		write_addresses(p, end, ring, v->of[s].iova, v->of[s].lkey, WQE_SGE_ADDR, WQE_SGE_LKEY);
		return;
	case RING_REMOTE:
		write_addresses(p, end, ring, v->of[s].iova, v->of[s].rkey, 0, WQE_RKEY - WQE_RADDR);
		return;
	case RING_QPN24:
		write_qpn24s(p, end, ring, v->of[s].qpn);
		return;
	case RING_QPN:
		write_numbers(p, end, ring, v->of[s].qpn);
		return;
	case RING_CQN:
		write_numbers(p, end, ring, v->of[s].cqn);
		return;
	}
	assert(!"field");
}

static void write_lanes(const struct ring_image *r, const struct ring_values *v)
{
	uint8_t *lanes = v->of[RING_LANES].mem + r->lanes_at;

	memset(v->of[RING_LANES].mem, 0, r->lanes_at);
	memcpy(lanes, r->lanes, r->lanes_bytes);
	for (unsigned i = 0; i < r->ncopies; i++) {
		const struct ring_copy *c = &r->copies[i];

		memcpy(lanes + c->to, v->of[symbol_of(c->from)].mem + offset_of(c->from), c->len);
	}
}

void ring_fill(const struct ring_image *r, const struct ring_values *v)
{
	const struct ring_reloc *p = r->relocs, *end = p + r->nrelocs, *next;

	memcpy(v->of[RING_SELF].mem, r->ring, (size_t)r->wqebbs * CHAIN_WQEBB);
	for (; p < end; p = next) {
		for (next = p; next < end && is_alike(next, p);)
			next++;
		write_run(p, next, v);
	}
	if (v->of[RING_LANES].mem)
		write_lanes(r, v);
}
