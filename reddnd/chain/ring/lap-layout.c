/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/lap-layout.h"

#include "mlx5/wqe.h"

enum {
	PAD_WQEBBS = 8,
	CQES_ROUND = 256,
};

static struct lap_item *new_item(
	struct lap *l, unsigned kind, unsigned wqebbs, unsigned section, unsigned index)
{
	static struct lap_item lost;
	struct lap_item *it;

	l->items = lap_more(l, l->items, l->nitems, &l->items_room, sizeof(*l->items));
	it = l->nomem ? &lost : &l->items[l->nitems++];
	*it = (struct lap_item){.kind = kind,
		.at = l->used,
		.wqebbs = (uint8_t)wqebbs,
		.section = (uint8_t)section,
		.index = index};
	l->used += wqebbs;
	return it;
}

void lap_pad(struct lap *l, uint32_t end, unsigned section)
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

void lap_place(struct lap *l)
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

void lap_number_cqes(struct lap *l)
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

uint64_t lap_wait_value(const struct lap *l, const struct lap_item *it, unsigned for_id)
{
	const struct lap_item *t = lap_item_of(l, for_id);

	return l->env.first_cqe + t->cqe - (t->at < it->at ? 0 : (uint64_t)l->cqes);
}

uint32_t lap_enable_value(const struct lap *l, const struct lap_item *it, unsigned through)
{
	uint32_t end = lap_item_end(lap_item_of(l, through));

	return end > it->at ? end : end + l->env.wqebbs;
}

/* Where the number is refreshed it has the value for the next time its WQE runs */
static void own_field(
	struct lap *l, const struct lap_item *it, unsigned at, unsigned bytes, uint64_t value, uint64_t step)
{
	unsigned by = (it->section + l->sections / 2) % l->sections;

	l->fields = lap_more(l, l->fields, l->nfields, &l->fields_room, sizeof(*l->fields));
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

void lap_collect(struct lap *l)
{
	l->nfields = 0;
	for (unsigned i = 0; i < l->noutside; i++) {
		l->fields = lap_more(l, l->fields, l->nfields, &l->fields_room, sizeof(*l->fields));
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
