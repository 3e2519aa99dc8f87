/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/lap.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/lanes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	WQEBB = 64,

	POINTS = LAP_MAX_SGE + 1,
	NUMBERS = 2,
	PAD_WQEBBS = 8,
	CQES_ROUND = 256,
	NONE = 0xffffffff
};

/* A WQE that the caller added, or the place of some that the ring adds */
struct entry {
	uint8_t wqe[LAP_WQE_BYTES];
	uint8_t section;
	enum { GIVEN, RENEW, ADVANCE } kind;
	bool fills;               /* the group that it ends in has nothing else */
	unsigned for_id, through; /* NONE, or: WAIT for that, SEND_EN through that */
	unsigned npoints, nnumbers;
	struct {
		uint16_t at, offset;
		unsigned target;
	} point[POINTS];
	struct {
		uint8_t at, bytes;
		uint64_t value, step;
	} number[NUMBERS];
};

/* A WQE of the laid out ring */
struct item {
	uint32_t at; /* WQEBB */
	uint8_t wqebbs, section;
	bool signalled;
	uint32_t cqe;
	enum { ITEM_ENTRY, ITEM_READ, ITEM_ADD, ITEM_NOP } kind;
	unsigned index; /* of the entry, READ or moving word */
};

struct lap {
	struct lap_env env;
	unsigned sections, section;
	struct entry *entries;
	unsigned nentries, entries_room;
	struct lane_field *outside, *fields;
	unsigned noutside, outside_room, nfields, fields_room;
	struct item *items;
	unsigned nitems, items_room;
	unsigned *item_of;                      /* by entry */
	unsigned reads[LAP_MAX_SECTIONS], adds; /* places for them */
	uint8_t *read_wqebbs[LAP_MAX_SECTIONS];
	unsigned reads_room[LAP_MAX_SECTIONS];
	unsigned cqes;
	uint32_t used;
	bool awaited, nomem;
};

/* ---- input of the caller -------------------------------------------------------------------- */

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
	for (unsigned s = 0; s < LAP_MAX_SECTIONS; s++)
		free(l->read_wqebbs[s]);
	free(l->outside);
	free(l->fields);
	free(l->items);
	free(l->item_of);
	free(l);
}

/* Room for one more of @n elements. On failure the object can only be freed, and lap_finish() returns -ENOMEM
 */
static void *more(struct lap *l, void *array, unsigned n, unsigned *room, size_t size)
{
	unsigned want = *room ? 2 * *room : 64;
	void *a;

	if (n < *room)
		return array;
	a = realloc(array, want * size);
	if (!a) {
		l->nomem = true;
		return array;
	}
	*room = want;
	return a;
}

static struct entry *new_entry(struct lap *l, unsigned kind)
{
	static struct entry lost;
	struct entry *e;

	l->entries = more(l, l->entries, l->nentries, &l->entries_room, sizeof(*l->entries));
	e = l->nomem ? &lost : &l->entries[l->nentries++];
	*e = (struct entry){.kind = kind, .section = (uint8_t)l->section, .for_id = NONE, .through = NONE};
	return e;
}

static struct entry *entry_of(struct lap *l, unsigned id)
{
	static struct entry lost;

	return l->nomem ? &lost : &l->entries[id];
}

unsigned lap_add(struct lap *l, enum chain_verb verb, unsigned nsge, uint8_t flags)
{
	const struct chain_verb_info *v = chain_verb_info(verb);
	struct entry *e = new_entry(l, GIVEN);
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
	struct entry *e = entry_of(l, id);

	assert(e->npoints < POINTS || l->nomem);
	if (l->nomem)
		return;
	e->point[e->npoints].at = (uint16_t)at;
	e->point[e->npoints].target = target;
	e->point[e->npoints++].offset = (uint16_t)offset;
}

void lap_number(struct lap *l, unsigned id, unsigned at, unsigned bytes, uint64_t value, uint64_t step)
{
	struct entry *e = entry_of(l, id);

	assert(e->nnumbers < NUMBERS || l->nomem);
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
	l->outside = more(l, l->outside, l->noutside, &l->outside_room, sizeof(*l->outside));
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
	new_entry(l, RENEW);
}

void lap_advance(struct lap *l)
{
	new_entry(l, ADVANCE);
}

void lap_next_section(struct lap *l)
{
	l->section++;
	assert(l->section < l->sections);
}

/* ---- layout ---------------------------------------------------------------------------------------- */

static struct item *new_item(struct lap *l, unsigned kind, unsigned wqebbs, unsigned section, unsigned index)
{
	static struct item lost;
	struct item *it;

	l->items = more(l, l->items, l->nitems, &l->items_room, sizeof(*l->items));
	it = l->nomem ? &lost : &l->items[l->nitems++];
	*it = (struct item){.kind = kind,
		.at = l->used,
		.wqebbs = (uint8_t)wqebbs,
		.section = (uint8_t)section,
		.index = index};
	l->used += wqebbs;
	return it;
}

static unsigned wqebbs_of(unsigned ds)
{
	return (ds * WQE_DS + WQEBB - 1) / WQEBB;
}

/* NOPs up to WQEBB @end */
static void pad(struct lap *l, uint32_t end, unsigned section)
{
	while (l->used < end && !l->nomem) {
		uint32_t left = end - l->used;

		new_item(l, ITEM_NOP, left < PAD_WQEBBS ? left : PAD_WQEBBS, section, 0);
	}
}

static uint32_t group_end(const struct lap *l)
{
	uint32_t group = l->env.group ? l->env.group : 1;

	return (l->used + group - 1) & ~(group - 1);
}

/* Everything in its place, given how many READs and FETCH_ADDs there are; the rest of the ring is NOPs */
static void place(struct lap *l)
{
	l->nitems = 0;
	l->used = 0;
	for (unsigned i = 0; i < l->nentries; i++) {
		const struct entry *e = &l->entries[i];

		if (l->nomem)
			return;
		l->item_of[i] = l->nitems;
		switch (e->kind) {
		case GIVEN:
			new_item(l, ITEM_ENTRY, wqebbs_of(e->wqe[WQE_DSCOUNT]), e->section, i)->signalled =
				e->wqe[WQE_FLAGS] & WQE_SIGNALLED;
			break;
		case RENEW:
			for (unsigned r = 0; r < l->reads[e->section]; r++)
				new_item(l, ITEM_READ, l->read_wqebbs[e->section][r], e->section, r);
			break;
		case ADVANCE:
			for (unsigned a = 0; a < l->adds; a++)
				new_item(l, ITEM_ADD, 1, e->section, a);
			break;
		}
		if (e->fills)
			pad(l, group_end(l), e->section);
	}
}

/* With a WAIT for an own CQE the CQEs of a lap are made up to a round number, if it has so many WQEs */
static void number_cqes(struct lap *l)
{
	unsigned want, n = 0;

	for (unsigned i = 0; i < l->nitems; i++)
		n += l->items[i].signalled;
	want = (n + CQES_ROUND - 1) / CQES_ROUND * CQES_ROUND;
	for (unsigned i = l->nitems; i-- > 0 && l->awaited && want <= l->nitems && n < want;) {
		n += !l->items[i].signalled;
		l->items[i].signalled = true;
	}
	l->cqes = n;
	n = 0;
	for (unsigned i = 0; i < l->nitems; i++)
		if (l->items[i].signalled)
			l->items[i].cqe = n++;
}

static const struct item *item_of(const struct lap *l, unsigned id)
{
	return &l->items[l->item_of[id]];
}

static uint32_t end_of(const struct item *it)
{
	return it->at + it->wqebbs;
}

static uint64_t wait_value(const struct lap *l, const struct item *it, unsigned for_id)
{
	const struct item *t = item_of(l, for_id);

	return l->env.first_cqe + t->cqe - (t->at < it->at ? 0 : (uint64_t)l->cqes);
}

static uint32_t enable_value(const struct lap *l, const struct item *it, unsigned through)
{
	uint32_t end = end_of(item_of(l, through));

	return end > it->at ? end : end + l->env.wqebbs;
}

/* Where the number is refreshed it has the value for the next time its WQE runs */
static void own_field(
	struct lap *l, const struct item *it, unsigned at, unsigned bytes, uint64_t value, uint64_t step)
{
	unsigned by = (it->section + l->sections / 2) % l->sections;

	l->fields = more(l, l->fields, l->nfields, &l->fields_room, sizeof(*l->fields));
	if (l->nomem)
		return;
	l->fields[l->nfields++] = (struct lane_field){
		.addr = l->env.iova + (uint64_t)it->at * WQEBB + at,
		.key = l->env.lkey,
		.section = (uint8_t)by,
		.bytes = (uint8_t)bytes,
		.value = value + (by < it->section ? 0 : step),
		.step = step,
	};
}

static void collect(struct lap *l)
{
	l->nfields = 0;
	for (unsigned i = 0; i < l->noutside; i++) {
		l->fields = more(l, l->fields, l->nfields, &l->fields_room, sizeof(*l->fields));
		if (!l->nomem)
			l->fields[l->nfields++] = l->outside[i];
	}
	for (unsigned i = 0; i < l->nitems && !l->nomem; i++) {
		const struct item *it = &l->items[i];
		const struct entry *e = it->kind == ITEM_ENTRY ? &l->entries[it->index] : NULL;

		if (!l->env.ignores_index)
			own_field(l, it, WQE_INDEX, 2, it->at, l->env.wqebbs);
		if (!e)
			continue;
		if (e->for_id != NONE)
			own_field(l, it, WQE_SYNC_INDEX + 1, 3, wait_value(l, it, e->for_id), l->cqes);
		if (e->through != NONE)
			own_field(
				l, it, WQE_SYNC_INDEX + 2, 2, enable_value(l, it, e->through), l->env.wqebbs);
		for (unsigned n = 0; n < e->nnumbers; n++)
			own_field(l, it, e->number[n].at, e->number[n].bytes, e->number[n].value,
				e->number[n].step);
	}
}

/* ---- bytes ------------------------------------------------------------------------------------------ */

static void put_number(uint8_t *p, unsigned bytes, uint64_t value)
{
	while (bytes) {
		p[--bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static void emit_entry(const struct lap *l, const struct item *it, uint8_t *w)
{
	const struct entry *e = &l->entries[it->index];

	memcpy(w, e->wqe, (size_t)e->wqe[WQE_DSCOUNT] * WQE_DS);
	if (e->for_id != NONE) {
		put_number(w + WQE_SYNC_INDEX + 1, 3, wait_value(l, it, e->for_id));
		wqe_put32(w + WQE_SYNC_OBJECT, l->env.cqn);
	}
	if (e->through != NONE) {
		put_number(w + WQE_SYNC_INDEX + 2, 2, enable_value(l, it, e->through));
		wqe_put32(w + WQE_SYNC_OBJECT, l->env.qpn);
	}
	for (unsigned n = 0; n < e->nnumbers; n++)
		put_number(w + e->number[n].at, e->number[n].bytes, e->number[n].value);
	for (unsigned p = 0; p < e->npoints; p++)
		wqe_put64(w + e->point[p].at, l->env.iova +
						      (uint64_t)item_of(l, e->point[p].target)->at * WQEBB +
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
	for (; wqebbs_of(chain_wqe_ds(CHAIN_READ, s)) < wqebbs; s++)
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

/* READs of a section are numbered through from the first of the section on; spare ones are NOPs */
static void emit(const struct lap *l, const struct lanes *lanes)
{
	unsigned next[LAP_MAX_SECTIONS], adds = lanes_adds(lanes), first = 0;
	bool renewing[LAP_MAX_SECTIONS] = {0};

	for (unsigned s = 0; s < l->sections; s++) {
		next[s] = first;
		while (first < lanes->nreads && lanes->reads[first].section == s)
			first++;
	}
	memset(l->env.ring, 0, (size_t)l->env.wqebbs * WQEBB);
	for (unsigned i = 0; i < l->nitems; i++) {
		const struct item *it = &l->items[i];
		uint8_t *w = l->env.ring + (size_t)it->at * WQEBB;
		unsigned s = it->section;

		w[WQE_DSCOUNT] = (uint8_t)(it->wqebbs * (WQEBB / WQE_DS));
		if (it->kind == ITEM_ENTRY) {
			emit_entry(l, it, w);
		} else if (it->kind == ITEM_READ && next[s] < lanes->nreads &&
			   lanes->reads[next[s]].section == s) {
			emit_read(l, lanes, &lanes->reads[next[s]++], it->wqebbs, !renewing[s], w);
			renewing[s] = true;
		} else if (it->kind == ITEM_ADD && it->index < adds) {
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

static void measure(const struct lap *l, const struct lanes *lanes, uint32_t used, struct lap_size *size)
{
	*size = (struct lap_size){.wqebbs = used, .lanes = lanes->size + LAP_NOWHERE, .cqes = l->cqes};
	size->wqes = l->nitems;
	size->reads = lanes->nreads;
	size->adds = lanes_adds(lanes);
	for (unsigned i = 0; i < l->nitems; i++)
		size->nops += l->items[i].kind == ITEM_NOP;
}

/* Places for the READs; true when some were missing or too small */
static bool make_room(struct lap *l, const struct lanes *lanes)
{
	unsigned nth[LAP_MAX_SECTIONS] = {0};
	bool short_of = false;

	for (unsigned i = 0; i < lanes->nreads; i++) {
		const struct lane_read *r = &lanes->reads[i];
		unsigned s = r->section, n = nth[s]++, need = wqebbs_of(chain_wqe_ds(CHAIN_READ, r->nsge));

		l->read_wqebbs[s] = more(l, l->read_wqebbs[s], n, &l->reads_room[s], 1);
		if (l->nomem)
			return false;
		if (n == l->reads[s])
			l->read_wqebbs[s][l->reads[s]++] = 0;
		if (l->read_wqebbs[s][n] < need) {
			l->read_wqebbs[s][n] = (uint8_t)need;
			short_of = true;
		}
	}
	return short_of;
}

/* One try; 1 when there were too few READs or FETCH_ADDs, and now are more */
static int lay_out(struct lap *l, struct lap_size *size)
{
	struct lanes lanes = {0};
	bool again = false;
	uint32_t used;
	int r = 0;

	place(l);
	used = l->used;
	*size = (struct lap_size){.wqebbs = used};
	if (l->nomem)
		return -ENOMEM;
	if (used > l->env.wqebbs)
		return -E2BIG;
	pad(l, l->env.wqebbs, l->sections - 1);
	if (l->nomem)
		return -ENOMEM;
	number_cqes(l);
	collect(l);
	if (l->nomem || lanes_plan(&lanes, l->fields, l->nfields, l->sections, LAP_MAX_SGE))
		return -ENOMEM;
	again = make_room(l, &lanes);
	if (l->nomem)
		r = -ENOMEM;
	if (lanes_adds(&lanes) > l->adds) {
		l->adds = lanes_adds(&lanes);
		again = true;
	}
	if (!again && !r) {
		measure(l, &lanes, used, size);
		if (l->env.ring && size->lanes > l->env.lanes_size)
			r = -E2BIG;
		else if (l->env.ring)
			emit(l, &lanes);
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
	return (uint16_t)item_of(l, id)->at;
}

uint16_t lap_index_after(const struct lap *l, unsigned id)
{
	return (uint16_t)end_of(item_of(l, id));
}

int lap_wqe_at(const struct lap *l, uint16_t index)
{
	uint32_t at = index & (l->env.wqebbs - 1);

	for (unsigned i = 0; i < l->nitems; i++)
		if (at >= l->items[i].at && at < end_of(&l->items[i]))
			return l->items[i].kind == ITEM_ENTRY ? (int)l->items[i].index : -1;
	return -1;
}
