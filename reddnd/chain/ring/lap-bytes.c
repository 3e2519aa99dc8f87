/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/lap-bytes.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/lap-layout.h"

#include <string.h>

static void put_number(uint8_t *p, unsigned bytes, uint64_t value)
{
	while (bytes) {
		p[--bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static void emit_entry(const struct lap *l, const struct lap_item *it, uint8_t *w)
{
	const struct lap_entry *e = &l->entries[it->index];

	memcpy(w, e->wqe, (size_t)e->wqe[WQE_DSCOUNT] * WQE_DS);
	if (e->for_id != LAP_NONE) {
		put_number(w + WQE_SYNC_INDEX + 1, 3, lap_wait_value(l, it, e->for_id));
		wqe_put32(w + WQE_SYNC_OBJECT, l->env.cqn);
	}
	if (e->through != LAP_NONE) {
		put_number(w + WQE_SYNC_INDEX + 2, 2, lap_enable_value(l, it, e->through));
		wqe_put32(w + WQE_SYNC_OBJECT, l->env.qpn);
	}
	for (unsigned n = 0; n < e->nnumbers; n++)
		put_number(w + e->number[n].at, e->number[n].bytes, e->number[n].value);
	for (unsigned p = 0; p < e->npoints; p++)
		wqe_put64(w + e->point[p].at,
			l->env.iova + (uint64_t)lap_item_of(l, e->point[p].target)->at * LAP_WQEBB +
				e->point[p].offset);
}

/* Bytes that nobody wants go behind the lanes */
static uint64_t nowhere(const struct lap *l, const struct lanes *lanes)
{
	return l->env.lanes_iova + lanes->size;
}

static void emit_remote(const struct lap *l, uint8_t *w, uint64_t from)
{
	wqe_put64(w + WQE_RADDR, l->env.lanes_iova + from);
	wqe_put32(w + WQE_RKEY, l->env.lanes_rkey);
}

/* A READ in a place that was made for a longer one takes some bytes too many, which go nowhere */
static void emit_read(const struct lap *l, const struct lanes *lanes, const struct lane_read *r,
	unsigned wqebbs, bool fence, uint8_t *w)
{
	unsigned s = 0;

	w[WQE_OPCODE] = WQE_OP_READ;
	w[WQE_FLAGS] = fence ? WQE_FENCE : 0;
	emit_remote(l, w, r->from);
	for (; s < r->nsge; s++) {
		bool lost = !r->sge[s].key;

		wqe_put_sge(w + WQE_RDMA_SGE + s * WQE_DS, r->sge[s].len,
			lost ? l->env.lanes_lkey : r->sge[s].key, lost ? nowhere(l, lanes) : r->sge[s].addr);
	}
	for (; lap_wqebbs(chain_wqe_ds(CHAIN_READ, s)) < wqebbs; s++)
		wqe_put_sge(w + WQE_RDMA_SGE + s * WQE_DS, 1, l->env.lanes_lkey, nowhere(l, lanes));
	w[WQE_DSCOUNT] = (uint8_t)chain_wqe_ds(CHAIN_READ, s);
}

static uint64_t word_of(const uint8_t *bytes, uint32_t word)
{
	uint64_t v = 0;

	for (unsigned i = 8; i-- > 0;)
		v = v << 8 | bytes[(size_t)word * 8 + i];
	return v;
}

static void emit_add(const struct lap *l, const struct lanes *lanes, unsigned nth_word, uint8_t *w)
{
	uint32_t word = 0;

	for (unsigned skip = nth_word; !lanes_word_moves(lanes, word) || skip-- > 0;)
		word++;
	w[WQE_OPMOD] = WQE_OPMOD_MASKED_8B;
	w[WQE_OPCODE] = WQE_OP_MASKED_FETCH_ADD;
	w[WQE_FLAGS] = nth_word == 0 ? WQE_FENCE : 0; /* the READs before it still want the old numbers */
	emit_remote(l, w, (uint64_t)word * 8);
	wqe_put64(w + WQE_ATOMIC, word_of(lanes->add, word));
	wqe_put64(w + WQE_ATOMIC + 8, word_of(lanes->bound, word));
	wqe_put_sge(w + WQE_ATOMIC + 16, 8, l->env.lanes_lkey, nowhere(l, lanes));
	w[WQE_DSCOUNT] = (uint8_t)chain_wqe_ds(CHAIN_MASKED_FETCH_ADD, 1);
}

void lap_emit(const struct lap *l, const struct lanes *lanes)
{
	unsigned next[LAP_MAX_SECTIONS], adds = lanes_adds(lanes), first = 0;
	bool renewing[LAP_MAX_SECTIONS] = {0};

	for (unsigned s = 0; s < l->sections; s++) {
		next[s] = first;
		while (first < lanes->nreads && lanes->reads[first].section == s)
			first++;
	}
	memset(l->env.ring, 0, (size_t)l->env.wqebbs * LAP_WQEBB);
	for (unsigned i = 0; i < l->nitems; i++) {
		const struct lap_item *it = &l->items[i];
		uint8_t *w = l->env.ring + (size_t)it->at * LAP_WQEBB;
		unsigned s = it->section;

		w[WQE_DSCOUNT] = (uint8_t)(it->wqebbs * (LAP_WQEBB / WQE_DS));
		if (it->kind == LAP_ITEM_ENTRY) {
			emit_entry(l, it, w);
		} else if (it->kind == LAP_ITEM_READ && next[s] < lanes->nreads &&
			   lanes->reads[next[s]].section == s) {
			emit_read(l, lanes, &lanes->reads[next[s]++], it->wqebbs, !renewing[s], w);
			renewing[s] = true;
		} else if (it->kind == LAP_ITEM_ADD && it->index < adds) {
			emit_add(l, lanes, it->index, w);
		}
		if (it->signalled)
			w[WQE_FLAGS] |= WQE_SIGNALLED;
		wqe_put16(w + WQE_INDEX, (uint16_t)it->at);
		wqe_put32(w + WQE_QPN_DS, l->env.qpn << 8 | w[WQE_DSCOUNT]);
	}
	memcpy(l->env.lanes, lanes->init, lanes->size);
	memset(l->env.lanes + lanes->size, 0, LAP_NOWHERE);
}
