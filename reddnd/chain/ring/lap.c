/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/lap.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/lap-bytes.h"
#include "reddnd/chain/ring/lap-layout.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

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

	l->entries = lap_more(l, l->entries, l->nentries, &l->entries_room, sizeof(*l->entries));
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
	l->outside = lap_more(l, l->outside, l->noutside, &l->outside_room, sizeof(*l->outside));
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

			l->moves[s].wqebbs =
				lap_more(l, l->moves[s].wqebbs, i, &l->moves[s].room, sizeof(uint8_t));
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
