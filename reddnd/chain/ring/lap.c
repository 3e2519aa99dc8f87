/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQEs of the caller are entries. Everything gets its place in the ring as an item, and lanes are planned for
 * the numbers that follow from it; again, if there were too few places for what moves lanes. Then ring and
 * lanes are written. After an allocation has failed (nomem) the object can only be freed.
 */
#include "reddnd/chain/ring/lap.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/lanes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	LAP_WQEBB = 64, /* bytes */
	PAD_WQEBBS = 8,
	CQES_ROUND = 256,
	LAP_POINTS = LAP_MAX_SGE + 1,
	LAP_NUMBERS = 2,
	LAP_NONE = 0xffffffff,
};

/* A WQE that the caller added, or the place of some that the ring adds */
struct lap_entry {
	uint8_t wqe[LAP_WQE_BYTES];
	uint8_t section;
	enum { LAP_GIVEN, LAP_RENEW, LAP_ADVANCE } kind;
	bool fills;               /* the group that it ends in has nothing else */
	unsigned for_id, through; /* LAP_NONE, or: WAIT for that, SEND_EN through that */
	unsigned npoints, nnumbers;
	struct {
		uint16_t at, offset;
		unsigned target;
	} point[LAP_POINTS];
	struct {
		uint8_t at, bytes;
		uint64_t value, step;
	} number[LAP_NUMBERS];
};

/* A WQE of the laid out ring */
struct lap_item {
	uint32_t at; /* WQEBB */
	uint8_t wqebbs, section;
	bool signalled;
	uint32_t cqe;
	enum { LAP_ITEM_ENTRY, LAP_ITEM_READ, LAP_ITEM_WRITE, LAP_ITEM_ADD, LAP_ITEM_NOP } kind;
	unsigned index; /* of the entry, the READ in its section, the WRITE, or the word of lanes */
};

struct lap {
	struct lap_env env;
	unsigned sections, section;
	struct lap_entry *entries;
	unsigned nentries, entries_room;
	struct lane_field *outside, *fields;
	unsigned noutside, outside_room, nfields, fields_room;
	struct lap_item *items;
	unsigned nitems, items_room;
	unsigned *item_of; /* by entry */
	/* Places for FETCH_ADDs, and for READs and WRITEs as struct lanes has them */
	unsigned adds;
	struct {
		uint8_t *wqebbs;
		unsigned n, room;
	} moves[LAP_MAX_SECTIONS + 1];
	unsigned cqes;
	uint32_t used;
	bool awaited, nomem;
};

/* WQEBBs of @ds segments */
static unsigned lap_wqebbs(unsigned ds)
{
	return (ds * WQE_DS + LAP_WQEBB - 1) / LAP_WQEBB;
}

static const struct lap_item *lap_item_of(const struct lap *l, unsigned id)
{
	return &l->items[l->item_of[id]];
}

/* The WQEBB behind it */
static uint32_t lap_item_end(const struct lap_item *it)
{
	return it->at + it->wqebbs;
}

/* ---- entries ---- */

int lap_new(struct lap **out, const struct lap_env *env, unsigned sections)
{
	struct lap *l = calloc(1, sizeof(*l));

	assert(sections >= 2 && sections <= LAP_MAX_SECTIONS && sections % 2 == 0);
	if (!l)
		return -ENOMEM;
	l->env = *env;
	l->sections = sections;
	*out = l;
	return 0;
}

void lap_free(struct lap *l)
{
	if (!l)
		return;
	free(l->entries);
	for (unsigned s = 0; s <= LANE_WRITES; s++)
		free(l->moves[s].wqebbs);
	free(l->outside);
	free(l->fields);
	free(l->items);
	free(l->item_of);
	free(l);
}

static struct lap_entry *new_entry(struct lap *l, unsigned kind)
{
	static struct lap_entry lost;
	struct lap_entry *e;

	l->entries = lanes_more(&l->nomem, l->entries, l->nentries, &l->entries_room, sizeof(*l->entries));
	e = l->nomem ? &lost : &l->entries[l->nentries++];
	*e = (struct lap_entry){
		.kind = kind, .section = (uint8_t)l->section, .for_id = LAP_NONE, .through = LAP_NONE};
	return e;
}

static struct lap_entry *entry_of(struct lap *l, unsigned id)
{
	static struct lap_entry lost;

	return l->nomem ? &lost : &l->entries[id];
}

unsigned lap_add(struct lap *l, enum chain_verb verb, unsigned nsge, uint8_t flags)
{
	const struct chain_verb_info *v = chain_verb_info(verb);
	struct lap_entry *e = new_entry(l, LAP_GIVEN);
	unsigned ds = chain_wqe_ds(verb, nsge);

	assert(ds * WQE_DS <= LAP_WQE_BYTES);
	e->wqe[WQE_OPMOD] = v->opmod;
	e->wqe[WQE_OPCODE] = v->opcode;
	e->wqe[WQE_DSCOUNT] = (uint8_t)ds;
	e->wqe[WQE_FLAGS] = flags;
	return l->nomem ? 0 : l->nentries - 1;
}

uint8_t *lap_bytes(struct lap *l, unsigned id)
{
	return entry_of(l, id)->wqe;
}

void lap_point(struct lap *l, unsigned id, unsigned at, unsigned target, unsigned offset)
{
	struct lap_entry *e = entry_of(l, id);

	assert(e->npoints < LAP_POINTS || l->nomem);
	if (l->nomem)
		return;
	e->point[e->npoints].at = (uint16_t)at;
	e->point[e->npoints].target = target;
	e->point[e->npoints++].offset = (uint16_t)offset;
}

void lap_number(struct lap *l, unsigned id, unsigned at, unsigned bytes, uint64_t value, uint64_t step)
{
	struct lap_entry *e = entry_of(l, id);

	assert(e->nnumbers < LAP_NUMBERS || l->nomem);
	if (l->nomem)
		return;
	e->number[e->nnumbers].at = (uint8_t)at;
	e->number[e->nnumbers].bytes = (uint8_t)bytes;
	e->number[e->nnumbers].value = value;
	e->number[e->nnumbers++].step = step;
}

void lap_await(struct lap *l, unsigned id, unsigned for_id)
{
	entry_of(l, id)->for_id = for_id;
	l->awaited = true;
}

void lap_enable(struct lap *l, unsigned id, unsigned through)
{
	entry_of(l, id)->through = through;
	lap_fill_group(l, through);
}

void lap_fill_group(struct lap *l, unsigned id)
{
	entry_of(l, id)->fills = true;
}

static void outside(struct lap *l, struct lane_field f)
{
	l->outside = lanes_more(&l->nomem, l->outside, l->noutside, &l->outside_room, sizeof(*l->outside));
	f.section = (uint8_t)l->section;
	if (!l->nomem)
		l->outside[l->noutside++] = f;
}

void lap_refresh(struct lap *l, uint64_t addr, uint32_t key, unsigned bytes, uint64_t value, uint64_t step)
{
	assert(bytes >= 1 && bytes <= 4);
	outside(l, (struct lane_field){
			   .addr = addr, .key = key, .bytes = (uint8_t)bytes, .value = value, .step = step});
}

void lap_restore(struct lap *l, uint64_t addr, uint32_t key, const uint8_t *bytes, unsigned len, uint32_t tag)
{
	struct lane_field f = {.addr = addr, .key = key, .fixed = true, .bytes = (uint8_t)len, .tag = tag};

	assert(len >= 1 && len <= 8);
	for (unsigned i = len; i-- > 0;)
		f.value = f.value << 8 | bytes[i];
	outside(l, f);
}

void lap_renew(struct lap *l)
{
	new_entry(l, LAP_RENEW);
}

void lap_advance(struct lap *l)
{
	new_entry(l, LAP_ADVANCE);
}

void lap_next_section(struct lap *l)
{
	l->section++;
	assert(l->section < l->sections);
}

/* ---- places ---- */

static struct lap_item *new_item(
	struct lap *l, unsigned kind, unsigned wqebbs, unsigned section, unsigned index)
{
	static struct lap_item lost;
	struct lap_item *it;

	l->items = lanes_more(&l->nomem, l->items, l->nitems, &l->items_room, sizeof(*l->items));
	it = l->nomem ? &lost : &l->items[l->nitems++];
	*it = (struct lap_item){.kind = kind,
		.at = l->used,
		.wqebbs = (uint8_t)wqebbs,
		.section = (uint8_t)section,
		.index = index};
	l->used += wqebbs;
	return it;
}

/* Appends NOPs up to WQEBB @end */
static void lap_pad(struct lap *l, uint32_t end, unsigned section)
{
	while (l->used < end && !l->nomem) {
		uint32_t left = end - l->used;

		new_item(l, LAP_ITEM_NOP, left < PAD_WQEBBS ? left : PAD_WQEBBS, section, 0);
	}
}

static uint32_t group_end(const struct lap *l)
{
	uint32_t group = l->env.group ? l->env.group : 1;

	return (l->used + group - 1) & ~(group - 1);
}

/* Puts everything in its place, given how many READs, FETCH_ADDs and WRITEs there are */
static void lap_place(struct lap *l)
{
	l->nitems = 0;
	l->used = 0;
	for (unsigned i = 0; i < l->nentries; i++) {
		const struct lap_entry *e = &l->entries[i];

		if (l->nomem)
			return;
		l->item_of[i] = l->nitems;
		switch (e->kind) {
		case LAP_GIVEN:
			new_item(l, LAP_ITEM_ENTRY, lap_wqebbs(e->wqe[WQE_DSCOUNT]), e->section, i)
				->signalled = e->wqe[WQE_FLAGS] & WQE_SIGNALLED;
			break;
		case LAP_RENEW:
			for (unsigned r = 0; r < l->moves[e->section].n; r++)
				new_item(l, LAP_ITEM_READ, l->moves[e->section].wqebbs[r], e->section, r);
			break;
		case LAP_ADVANCE:
			for (unsigned a = 0; a < l->adds; a++)
				new_item(l, LAP_ITEM_ADD, 1, e->section, a);
			for (unsigned w = 0; w < l->moves[LANE_WRITES].n; w++)
				new_item(l, LAP_ITEM_WRITE, l->moves[LANE_WRITES].wqebbs[w], e->section, w);
			break;
		}
		if (e->fills)
			lap_pad(l, group_end(l), e->section);
	}
}

/* With a WAIT for an own CQE they are made up to a multiple of 256, or of the largest power of two for which
 * the lap has so many WQEs */
static void lap_number_cqes(struct lap *l)
{
	unsigned want, round = CQES_ROUND, n = 0;

	for (unsigned i = 0; i < l->nitems; i++)
		n += l->items[i].signalled;
	while ((want = (n + round - 1) / round * round) > l->nitems)
		round /= 2;
	for (unsigned i = l->nitems; i-- > 0 && l->awaited && n < want;) {
		n += !l->items[i].signalled;
		l->items[i].signalled = true;
	}
	l->cqes = n;
	n = 0;
	for (unsigned i = 0; i < l->nitems; i++)
		if (l->items[i].signalled)
			l->items[i].cqe = n++;
}

/* In lap 0: the CQE that the WAIT @it is for, and the index of the SEND_EN @it */

static uint64_t lap_wait_value(const struct lap *l, const struct lap_item *it, unsigned for_id)
{
	const struct lap_item *t = lap_item_of(l, for_id);

	return l->env.first_cqe + t->cqe - (t->at < it->at ? 0 : (uint64_t)l->cqes);
}

static uint32_t lap_enable_value(const struct lap *l, const struct lap_item *it, unsigned through)
{
	uint32_t end = lap_item_end(lap_item_of(l, through));

	return end > it->at ? end : end + l->env.wqebbs;
}

/* Where the number is refreshed it has the value for the next time its WQE runs */
static void own_field(
	struct lap *l, const struct lap_item *it, unsigned at, unsigned bytes, uint64_t value, uint64_t step)
{
	unsigned by = (it->section + l->sections / 2) % l->sections;

	l->fields = lanes_more(&l->nomem, l->fields, l->nfields, &l->fields_room, sizeof(*l->fields));
	if (l->nomem)
		return;
	l->fields[l->nfields++] = (struct lane_field){
		.addr = l->env.iova + (uint64_t)it->at * LAP_WQEBB + at,
		.key = l->env.lkey,
		.section = (uint8_t)by,
		.bytes = (uint8_t)bytes,
		.value = value + (by < it->section ? 0 : step),
		.step = step,
	};
}

/* Lists what is refreshed: numbers of the ring's WQEs, and what the caller named */
static void lap_collect(struct lap *l)
{
	l->nfields = 0;
	for (unsigned i = 0; i < l->noutside; i++) {
		l->fields = lanes_more(&l->nomem, l->fields, l->nfields, &l->fields_room, sizeof(*l->fields));
		if (!l->nomem)
			l->fields[l->nfields++] = l->outside[i];
	}
	for (unsigned i = 0; i < l->nitems && !l->nomem; i++) {
		const struct lap_item *it = &l->items[i];
		const struct lap_entry *e = it->kind == LAP_ITEM_ENTRY ? &l->entries[it->index] : NULL;

		if (!l->env.ignores_index)
			own_field(l, it, WQE_INDEX, 2, it->at, l->env.wqebbs);
		if (!e)
			continue;
		if (e->for_id != LAP_NONE)
			own_field(l, it, WQE_SYNC_INDEX + 1, 3, lap_wait_value(l, it, e->for_id), l->cqes);
		if (e->through != LAP_NONE)
			own_field(l, it, WQE_SYNC_INDEX + 2, 2, lap_enable_value(l, it, e->through),
				l->env.wqebbs);
		for (unsigned n = 0; n < e->nnumbers; n++)
			own_field(l, it, e->number[n].at, e->number[n].bytes, e->number[n].value,
				e->number[n].step);
	}
}

/* ---- bytes ---- */

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

/* As @lanes have been planned. Spare places for READs and FETCH_ADDs are NOPs */
static void lap_emit(const struct lap *l, const struct lanes *lanes)
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

/* ---- the lap ---- */

static void measure(const struct lap *l, const struct lanes *lanes, uint32_t used, struct lap_size *size)
{
	*size = (struct lap_size){.wqebbs = used, .lanes = lanes->size + LAP_NOWHERE, .cqes = l->cqes};
	size->wqes = l->nitems;
	for (unsigned s = 0; s <= LANE_WRITES; s++)
		size->copies += lanes->moves[s].n;
	size->adds = lanes->nwords;
	for (unsigned i = 0; i < l->nitems; i++)
		size->nops += l->items[i].kind == LAP_ITEM_NOP;
}

/* Places for READs, FETCH_ADDs and WRITEs; true when some were missing or too small */
static bool make_room(struct lap *l, const struct lanes *lanes)
{
	bool short_of = lanes->nwords > l->adds;

	if (short_of)
		l->adds = lanes->nwords;
	for (unsigned s = 0; s <= LANE_WRITES; s++)
		for (unsigned i = 0; i < lanes->moves[s].n; i++) {
			unsigned need = lap_wqebbs(chain_wqe_ds(CHAIN_READ, lanes->moves[s].v[i].nsge));

			l->moves[s].wqebbs = lanes_more(
				&l->nomem, l->moves[s].wqebbs, i, &l->moves[s].room, sizeof(uint8_t));
			if (l->nomem)
				return false;
			if (i == l->moves[s].n)
				l->moves[s].wqebbs[l->moves[s].n++] = 0;
			if (l->moves[s].wqebbs[i] >= need)
				continue;
			l->moves[s].wqebbs[i] = (uint8_t)need;
			short_of = true;
		}
	return short_of;
}

/* One try; 1 when there were too few places, and now are more */
static int lay_out(struct lap *l, struct lap_size *size)
{
	struct lanes lanes = {0};
	bool again = false;
	uint32_t used;
	int r = 0;

	lap_place(l);
	used = l->used;
	*size = (struct lap_size){.wqebbs = used};
	if (l->nomem)
		return -ENOMEM;
	if (used > l->env.wqebbs)
		return -E2BIG;
	lap_pad(l, l->env.wqebbs, l->sections - 1);
	if (l->nomem)
		return -ENOMEM;
	lap_number_cqes(l);
	lap_collect(l);
	if (l->nomem || lanes_plan(&lanes, l->fields, l->nfields, LAP_MAX_SGE))
		return -ENOMEM;
	again = make_room(l, &lanes);
	if (l->nomem)
		r = -ENOMEM;
	if (!again && !r) {
		measure(l, &lanes, used, size);
		if (l->env.ring && size->lanes > l->env.lanes_size)
			r = -E2BIG;
		else if (l->env.ring)
			lap_emit(l, &lanes);
	}
	lanes_free(&lanes);
	return r ? r : again;
}

int lap_finish(struct lap *l, struct lap_size *size)
{
	int r;

	assert(l->env.wqebbs >= LAP_MIN_RING && !(l->env.wqebbs & (l->env.wqebbs - 1)));
	if (!l->nomem)
		l->item_of = calloc(l->nentries + 1, sizeof(*l->item_of));
	if (l->nomem || !l->item_of)
		return -ENOMEM;
	do
		r = lay_out(l, size);
	while (r > 0);
	return r;
}

uint16_t lap_index_of(const struct lap *l, unsigned id)
{
	return (uint16_t)lap_item_of(l, id)->at;
}

uint16_t lap_index_after(const struct lap *l, unsigned id)
{
	return (uint16_t)lap_item_end(lap_item_of(l, id));
}

int lap_wqe_at(const struct lap *l, uint16_t index)
{
	uint32_t at = index & (l->env.wqebbs - 1);

	for (unsigned i = 0; i < l->nitems; i++)
		if (at >= l->items[i].at && at < lap_item_end(&l->items[i]))
			return l->items[i].kind == LAP_ITEM_ENTRY ? (int)l->items[i].index : -1;
	return -1;
}
