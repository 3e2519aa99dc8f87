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

/* One in a place that was made for a longer one takes some bytes too many from nowhere, or puts them there */
static void emit_move(const struct lap *l, const struct lanes *lanes, const struct lane_move *m,
	uint8_t opcode, unsigned wqebbs, bool fence, uint8_t *w)
{
	unsigned s = 0;

	w[WQE_OPCODE] = opcode;
	w[WQE_FLAGS] = fence ? WQE_FENCE : 0;
	emit_remote(l, w, m->at);
	for (; s < m->nsge; s++) {
		const struct lane_sge *sge = &m->sge[s];

		wqe_put_sge(w + WQE_RDMA_SGE + s * WQE_DS, sge->len, sge->key ? sge->key : l->env.lanes_lkey,
			sge->key ? sge->addr : l->env.lanes_iova + sge->addr);
	}
	for (; lap_wqebbs(chain_wqe_ds(CHAIN_READ, s)) < wqebbs; s++)
		wqe_put_sge(w + WQE_RDMA_SGE + s * WQE_DS, 1, l->env.lanes_lkey, nowhere(l, lanes));
	w[WQE_DSCOUNT] = (uint8_t)chain_wqe_ds(CHAIN_READ, s);
}

static void emit_add(const struct lap *l, const struct lanes *lanes, unsigned word, uint8_t *w)
{
	w[WQE_OPMOD] = WQE_OPMOD_MASKED_8B;
	w[WQE_OPCODE] = WQE_OP_MASKED_FETCH_ADD;
	emit_remote(l, w, (uint64_t)word * 8);
	wqe_put64(w + WQE_ATOMIC, lanes->add[word]);
	wqe_put64(w + WQE_ATOMIC + 8, lanes->bound[word]);
	wqe_put_sge(w + WQE_ATOMIC + 16, 8, l->env.lanes_lkey, nowhere(l, lanes));
	w[WQE_DSCOUNT] = (uint8_t)chain_wqe_ds(CHAIN_MASKED_FETCH_ADD, 1);
}

/* What nothing is left for stays a NOP. The first WRITE waits for the FETCH_ADDs, and for READs that still
 * want the old copies */
static void emit_item(const struct lap *l, const struct lanes *lanes, const struct lap_item *it, uint8_t *w)
{
	const unsigned of = it->kind == LAP_ITEM_WRITE ? LANE_WRITES : it->section;
	const struct lane_moves *m = &lanes->moves[of];

	switch (it->kind) {
	case LAP_ITEM_ENTRY:
		emit_entry(l, it, w);
		break;
	case LAP_ITEM_READ:
	case LAP_ITEM_WRITE:
		if (it->index < m->n)
			emit_move(l, lanes, &m->v[it->index],
				it->kind == LAP_ITEM_READ ? WQE_OP_READ : WQE_OP_WRITE, it->wqebbs,
				it->index == 0, w);
		break;
	case LAP_ITEM_ADD:
		if (it->index < lanes->nwords)
			emit_add(l, lanes, it->index, w);
		break;
	case LAP_ITEM_NOP:
		break;
	}
}

void lap_emit(const struct lap *l, const struct lanes *lanes)
{
	memset(l->env.ring, 0, (size_t)l->env.wqebbs * LAP_WQEBB);
	for (unsigned i = 0; i < l->nitems; i++) {
		const struct lap_item *it = &l->items[i];
		uint8_t *w = l->env.ring + (size_t)it->at * LAP_WQEBB;

		w[WQE_DSCOUNT] = (uint8_t)(it->wqebbs * (LAP_WQEBB / WQE_DS));
		emit_item(l, lanes, it, w);
		if (it->signalled)
			w[WQE_FLAGS] |= WQE_SIGNALLED;
		wqe_put16(w + WQE_INDEX, (uint16_t)it->at);
		wqe_put32(w + WQE_QPN_DS, l->env.qpn << 8 | w[WQE_DSCOUNT]);
	}
	memcpy(l->env.lanes, lanes->init, lanes->size);
	memset(l->env.lanes + lanes->size, 0, LAP_NOWHERE);
}
