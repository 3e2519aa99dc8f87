/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WQEs of the caller are entries. Everything gets its place in the ring as an item, and lanes are planned for
 * the numbers that follow from it; again, if there were too few places for what moves lanes. Then the image
 * is made. After an allocation has failed (nomem) the object can only be freed.
 */
#include "reddnd/chain/ring/lap.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/lanes.h"
#include "reddnd/chain/ring/lap-check.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	LAP_WQEBB = 64, /* bytes */
	PAD_WQEBBS = 8,
	CQES_ROUND = 256,
	LAP_NAMES = LAP_MAX_SGE + 1,
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
	unsigned nnames, nnumbers;
	struct {
		uint16_t at;
		uint8_t field;
		unsigned target; /* LAP_NONE, or: @addr is an offset in that WQE */
		uint64_t addr;
	} name[LAP_NAMES];
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

	l->entries = ring_more(&l->nomem, l->entries, l->nentries, &l->entries_room, sizeof(*l->entries));
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

void lap_point(
	struct lap *l, unsigned id, unsigned at, enum ring_field field, unsigned target, unsigned offset)
{
	lap_name(l, id, at, field, offset);
	if (!l->nomem)
		l->entries[id].name[l->entries[id].nnames - 1].target = target;
}

void lap_name(struct lap *l, unsigned id, unsigned at, enum ring_field field, uint64_t addr)
{
	struct lap_entry *e = entry_of(l, id);

	assert(e->nnames < LAP_NAMES || l->nomem);
	if (l->nomem)
		return;
	e->name[e->nnames].at = (uint16_t)at;
	e->name[e->nnames].field = (uint8_t)field;
	e->name[e->nnames].target = LAP_NONE;
	e->name[e->nnames++].addr = addr;
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

/* One 64-bit word, so that who looks at it sees a number that was there */
void lap_count(struct lap *l, unsigned n)
{
	unsigned id = lap_add(l, CHAIN_FETCH_ADD, 1, 0);
	uint8_t *w = lap_bytes(l, id);

	wqe_put64(w + WQE_ATOMIC, n);
	wqe_put32(w + WQE_ATOMIC + 16 + WQE_SGE_LEN, 8);
	lap_name(l, id, WQE_RADDR, RING_REMOTE, ring_at(RING_LANES, 0));
	lap_name(l, id, WQE_ATOMIC + 16, RING_SEGMENT, ring_at(RING_LANES, 8));
}

static void outside(struct lap *l, struct lane_field f)
{
	l->outside = ring_more(&l->nomem, l->outside, l->noutside, &l->outside_room, sizeof(*l->outside));
	f.section = (uint8_t)l->section;
	if (!l->nomem)
		l->outside[l->noutside++] = f;
}

void lap_refresh(struct lap *l, uint64_t addr, unsigned bytes, uint64_t value, uint64_t step)
{
	assert(bytes >= 1 && bytes <= 4);
	outside(l, (struct lane_field){.addr = addr, .bytes = (uint8_t)bytes, .value = value, .step = step});
}

void lap_restore(struct lap *l, uint64_t addr, const uint8_t *bytes, unsigned len, uint32_t tag)
{
	struct lane_field f = {.addr = addr, .fixed = true, .bytes = (uint8_t)len, .tag = tag};

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

	l->items = ring_more(&l->nomem, l->items, l->nitems, &l->items_room, sizeof(*l->items));
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

	l->fields = ring_more(&l->nomem, l->fields, l->nfields, &l->fields_room, sizeof(*l->fields));
	if (l->nomem)
		return;
	l->fields[l->nfields++] = (struct lane_field){
		.addr = ring_at(RING_SELF, (uint64_t)it->at * LAP_WQEBB + at),
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
		l->fields = ring_more(&l->nomem, l->fields, l->nfields, &l->fields_room, sizeof(*l->fields));
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

/* What is written for the items of a lap, as lanes have been planned */
struct emission {
	const struct lap *lap;
	const struct lanes *lanes;
	struct ring_image *to;
	uint32_t at; /* in the ring: the item's */
	uint8_t *wqe;
};

static void emit_name(const struct emission *e, unsigned at, enum ring_field field, uint64_t addr)
{
	ring_name(e->to, e->at + at, field, addr);
}

static void emit_entry(const struct emission *m, const struct lap_item *it)
{
	const struct lap *l = m->lap;
	const struct lap_entry *e = &l->entries[it->index];
	uint8_t *w = m->wqe;

	memcpy(w, e->wqe, (size_t)e->wqe[WQE_DSCOUNT] * WQE_DS);
	if (e->for_id != LAP_NONE) {
		put_number(w + WQE_SYNC_INDEX + 1, 3, lap_wait_value(l, it, e->for_id));
		emit_name(m, WQE_SYNC_OBJECT, RING_CQN, ring_at(RING_SELF, 0));
	}
	if (e->through != LAP_NONE) {
		put_number(w + WQE_SYNC_INDEX + 2, 2, lap_enable_value(l, it, e->through));
		emit_name(m, WQE_SYNC_OBJECT, RING_QPN, ring_at(RING_SELF, 0));
	}
	for (unsigned n = 0; n < e->nnumbers; n++)
		put_number(w + e->number[n].at, e->number[n].bytes, e->number[n].value);
	for (unsigned n = 0; n < e->nnames; n++) {
		uint64_t addr = e->name[n].addr;

		if (e->name[n].target != LAP_NONE)
			addr = ring_at(RING_SELF,
				(uint64_t)lap_item_of(l, e->name[n].target)->at * LAP_WQEBB + addr);
		emit_name(m, e->name[n].at, e->name[n].field, addr);
	}
}

static uint64_t lane_addr(const struct emission *e, uint64_t at)
{
	return ring_at(RING_LANES, e->lap->env.lanes_at + at);
}

static void emit_segment(const struct emission *e, unsigned at, uint32_t len, uint64_t addr)
{
	wqe_put32(e->wqe + at + WQE_SGE_LEN, len);
	emit_name(e, at, RING_SEGMENT, addr);
}

/* Bytes that nobody wants go behind the lanes */
static void emit_nowhere(const struct emission *e, unsigned at, uint32_t len)
{
	emit_segment(e, at, len, lane_addr(e, e->lanes->size));
}

/* One in a place that was made for a longer one takes some bytes too many from nowhere, or puts them there.
 * A WRITE gathers from the lanes */
static void emit_move(
	const struct emission *e, const struct lane_move *m, uint8_t opcode, unsigned wqebbs, bool fence)
{
	unsigned s = 0;

	e->wqe[WQE_OPCODE] = opcode;
	e->wqe[WQE_FLAGS] = fence ? WQE_FENCE : 0;
	emit_name(e, WQE_RADDR, RING_REMOTE, lane_addr(e, m->at));
	for (; s < m->nsge; s++)
		emit_segment(e, WQE_RDMA_SGE + s * WQE_DS, m->sge[s].len,
			opcode == WQE_OP_WRITE ? lane_addr(e, m->sge[s].addr) : m->sge[s].addr);
	for (; lap_wqebbs(chain_wqe_ds(CHAIN_READ, s)) < wqebbs; s++)
		emit_nowhere(e, WQE_RDMA_SGE + s * WQE_DS, 1);
	e->wqe[WQE_DSCOUNT] = (uint8_t)chain_wqe_ds(CHAIN_READ, s);
}

static void emit_add(const struct emission *e, unsigned word)
{
	uint8_t *w = e->wqe;

	w[WQE_OPMOD] = WQE_OPMOD_MASKED_8B;
	w[WQE_OPCODE] = WQE_OP_MASKED_FETCH_ADD;
	emit_name(e, WQE_RADDR, RING_REMOTE, lane_addr(e, (uint64_t)word * 8));
	wqe_put64(w + WQE_ATOMIC, e->lanes->add[word]);
	wqe_put64(w + WQE_ATOMIC + 8, e->lanes->bound[word]);
	emit_nowhere(e, WQE_ATOMIC + 16, 8);
	w[WQE_DSCOUNT] = (uint8_t)chain_wqe_ds(CHAIN_MASKED_FETCH_ADD, 1);
}

/* What nothing is left for stays a NOP. The first WRITE waits for the FETCH_ADDs, and for READs that still
 * want the old copies */
static void emit_item(const struct emission *e, const struct lap_item *it)
{
	const unsigned of = it->kind == LAP_ITEM_WRITE ? LANE_WRITES : it->section;
	const struct lane_moves *m = &e->lanes->moves[of];

	switch (it->kind) {
	case LAP_ITEM_ENTRY:
		emit_entry(e, it);
		break;
	case LAP_ITEM_READ:
	case LAP_ITEM_WRITE:
		if (it->index < m->n)
			emit_move(e, &m->v[it->index], it->kind == LAP_ITEM_READ ? WQE_OP_READ : WQE_OP_WRITE,
				it->wqebbs, it->index == 0);
		break;
	case LAP_ITEM_ADD:
		if (it->index < e->lanes->nwords)
			emit_add(e, it->index);
		break;
	case LAP_ITEM_NOP:
		break;
	}
}

/* Spare places for READs and FETCH_ADDs are NOPs */
static int lap_emit(const struct lap *l, const struct lanes *lanes, struct ring_image **image)
{
	struct emission e = {.lap = l, .lanes = lanes};
	int r;

	e.to = ring_new(l->env.wqebbs, l->env.lanes_at, lanes->size + LAP_NOWHERE);
	if (!e.to)
		return -ENOMEM;
	for (unsigned i = 0; i < l->nitems && !e.to->nomem; i++) {
		const struct lap_item *it = &l->items[i];

		e.at = it->at * LAP_WQEBB;
		e.wqe = e.to->ring + e.at;
		e.wqe[WQE_DSCOUNT] = (uint8_t)(it->wqebbs * (LAP_WQEBB / WQE_DS));
		emit_item(&e, it);
		if (it->signalled)
			e.wqe[WQE_FLAGS] |= WQE_SIGNALLED;
		wqe_put16(e.wqe + WQE_INDEX, (uint16_t)it->at);
		emit_name(&e, WQE_QPN_DS, RING_QPN24, ring_at(RING_SELF, 0));
	}
	if (!e.to->nomem)
		memcpy(e.to->lanes, lanes->init, lanes->size);
	ring_copies(e.to, lanes->backs, lanes->nbacks);
	r = ring_done(e.to);
	if (r < 0)
		ring_free(e.to);
	else
		*image = e.to;
	return r;
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

			l->moves[s].wqebbs = ring_more(
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
static int lay_out(struct lap *l, struct lap_size *size, struct ring_image **image)
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
		if (image)
			r = lap_emit(l, &lanes, image);
	}
	lanes_free(&lanes);
	return r ? r : again;
}

int lap_finish(struct lap *l, struct lap_size *size, struct ring_image **image)
{
	int r;

	assert(l->env.wqebbs >= LAP_MIN_RING && !(l->env.wqebbs & (l->env.wqebbs - 1)));
	if (!l->nomem)
		l->item_of = calloc(l->nentries + 1, sizeof(*l->item_of));
	if (l->nomem || !l->item_of)
		return -ENOMEM;
	do
		r = lay_out(l, size, image);
	while (r > 0);
	return r;
}

/* ---- proof ---- */

/* One key for all that has one in a session: with two, conflicts between accesses by one and the other would
 * not be found */
static void stand_in(struct ring_values *v, unsigned shared)
{
	enum { KEY = 0x100, QPN = 0x200, CQN = 0x300 };

	for (unsigned s = 0; s < RING_SYMBOLS; s++) {
		v->of[s].iova = ring_at(s + 1, 0);
		v->of[s].lkey = v->of[s].rkey = s < RING_REGION || s == RING_REGION + shared ? KEY : KEY + s;
		v->of[s].qpn = QPN + s;
		v->of[s].cqn = CQN + s;
	}
}

int lap_prove(const struct ring_image *image, const struct lap_env *env, const struct lap_proof *proof,
	struct chain_error *err)
{
	struct ring_values v = {0};
	struct lap_made made;
	int r;

	stand_in(&v, proof->shared);
	v.of[RING_SELF].mem = malloc((size_t)image->wqebbs * LAP_WQEBB);
	if (!v.of[RING_SELF].mem)
		return -ENOMEM;
	ring_fill(image, &v);
	made = (struct lap_made){
		.ring = v.of[RING_SELF].mem,
		.wqebbs = image->wqebbs,
		.qpn = v.of[RING_SELF].qpn,
		.cqn = v.of[RING_SELF].cqn,
		.iova = v.of[RING_SELF].iova,
		.lkey = v.of[RING_SELF].lkey,
		.lanes_iova = v.of[RING_LANES].iova + image->lanes_at,
		.lanes_key = v.of[RING_LANES].lkey,
		.lanes_size = image->lanes_bytes,
		.first_cqe = env->first_cqe,
		.group = env->group,
		.discard = proof->discard ? ring_at(1, proof->discard) : 0,
		.verbs = proof->verbs,
		.doorbell = proof->doorbell,
		.count_iova = v.of[RING_LANES].iova,
	};
	r = lap_check(&made, proof->start, err);
	free(v.of[RING_SELF].mem);
	return r;
}

/* ---- what is where ---- */

uint16_t lap_index_of(const struct lap *l, unsigned id)
{
	return (uint16_t)lap_item_of(l, id)->at;
}

uint16_t lap_index_after(const struct lap *l, unsigned id)
{
	return (uint16_t)lap_item_end(lap_item_of(l, id));
}
