/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	WORD = 8,
	EQUAL = 8, /* from so many equal fields in a section on they get READs of their own */
	SHARED = 8 /* from so many numbers on that may have equal upper bytes these are fields of their own */
};

struct bytes {
	uint8_t *v;
	uint32_t n, room;
};

struct lane {
	uint64_t value, step;
	uint8_t bytes; /* 1, 2 or 4 */
	uint32_t at;
};

/* Copies that a WRITE makes of bytes of a lane */
struct copy {
	unsigned lane;
	uint8_t from, bytes;
};

/* As many copies of a field as one READ takes, for all sections in which many are equal to it */
struct block {
	struct lane_field like;
	uint32_t at;
	unsigned copies;
};

struct plan {
	struct lanes *l;
	unsigned max_sge;
	struct lane_field *fields;
	unsigned nfields;
	struct lane *lanes;
	unsigned nlanes, lanes_room;
	struct copy *copies;
	unsigned ncopies, copies_room;
	struct block *blocks;
	unsigned nblocks, blocks_room;
	struct bytes copied, fixed; /* in lap 0 */
	bool nomem;
};

/* ---- memory ------------------------------------------------------------------------------- */

static uint32_t put_bytes(struct plan *p, struct bytes *to, uint64_t value, unsigned n)
{
	uint32_t at = to->n;

	for (unsigned i = 0; i < n; i++) {
		to->v = ring_more(&p->nomem, to->v, to->n, &to->room, 1);
		if (!p->nomem)
			to->v[to->n++] = (uint8_t)(value >> 8 * i);
	}
	return at;
}

/* ---- lanes and copies --------------------------------------------------------------------- */

static bool is_lane_of(const struct lane *a, const struct lane *b)
{
	return a->value == b->value && a->step == b->step && a->bytes == b->bytes;
}

/* Neighbours are mostly of one lane: fields are in order */
static unsigned lane_of(struct plan *p, const struct lane_field *f)
{
	unsigned bytes = f->bytes + f->above;
	struct lane want = {.value = f->value, .step = f->step, .bytes = (uint8_t)(bytes == 3 ? 4 : bytes)};

	for (unsigned i = p->nlanes; i-- > 0;)
		if (is_lane_of(&p->lanes[i], &want))
			return i;
	p->lanes = ring_more(&p->nomem, p->lanes, p->nlanes, &p->lanes_room, sizeof(*p->lanes));
	if (p->nomem)
		return 0;
	p->lanes[p->nlanes] = want;
	return p->nlanes++;
}

static uint32_t put_fixed(struct plan *p, const struct lane_field *f)
{
	struct lanes *l = p->l;

	if (f->tag)
		l->backs = ring_more(&p->nomem, l->backs, l->nbacks, &l->backs_room, sizeof(*l->backs));
	if (f->tag && !p->nomem)
		l->backs[l->nbacks++] = (struct ring_copy){p->fixed.n, f->bytes, f->addr};
	return put_bytes(p, &p->fixed, f->value, f->bytes);
}

/* Where a READ finds the bytes of @f */
static uint32_t put_copy(struct plan *p, const struct lane_field *f)
{
	struct copy copy = {.from = f->above, .bytes = f->bytes};

	if (f->fixed)
		return put_fixed(p, f);
	copy.lane = lane_of(p, f);
	p->copies = ring_more(&p->nomem, p->copies, p->ncopies, &p->copies_room, sizeof(*p->copies));
	if (!p->nomem)
		p->copies[p->ncopies++] = copy;
	return put_bytes(p, &p->copied, f->value >> 8 * f->above, f->bytes);
}

static struct lane_move *new_move(struct plan *p, unsigned section, uint32_t at)
{
	struct lane_moves *m = &p->l->moves[section];
	struct lane_sge *sge = calloc(p->max_sge, sizeof(*sge));

	m->v = ring_more(&p->nomem, m->v, m->n, &m->room, sizeof(*m->v));
	p->nomem |= !sge;
	if (p->nomem) {
		free(sge);
		return NULL;
	}
	m->v[m->n] = (struct lane_move){.at = at, .sge = sge};
	return &m->v[m->n++];
}

static unsigned segments(const struct lane_field *f)
{
	return f->fixed ? 1 : f->bytes;
}

/* A copy's bytes one by one, the last of the field first; fixed bytes as they are */
static void add_segments(struct lane_move *read, const struct lane_field *f)
{
	if (f->fixed) {
		read->sge[read->nsge++] = (struct lane_sge){f->addr, f->bytes};
		return;
	}
	for (unsigned i = 0; i < f->bytes; i++)
		read->sge[read->nsge++] = (struct lane_sge){f->addr + f->bytes - 1 - i, 1};
}

static struct lane_move *new_read(struct plan *p, const struct lane_field *f, uint32_t at)
{
	struct lane_move *read = new_move(p, f->section, at);

	if (read)
		read->fixed = f->fixed;
	return read;
}

/* ---- fields ------------------------------------------------------------------------------- */

/* Low bytes that a lap does not change are not refreshed, nor is a number that it does not change at all */
static bool reduce(struct lane_field *f)
{
	uint64_t mask;

	if (f->fixed)
		return true;
	mask = (1ull << 8 * f->bytes) - 1;
	f->value &= mask;
	f->step &= mask;
	if (!f->step)
		return false;
	while (!(f->step & 0xff)) {
		f->bytes--;
		f->value >>= 8;
		f->step >>= 8;
	}
	return true;
}

/* Bits below the lowest one of the step never change, so that they have no part in a carry */
static void add_field(struct plan *p, struct lane_field f)
{
	uint64_t least;

	if (!reduce(&f))
		return;
	least = f.step & -f.step;
	if (!f.fixed && f.bytes > 1 && least >= SHARED) {
		struct lane_field low = f;

		low.addr += f.bytes - 1;
		low.bytes = 1;
		low.value &= 0xff;
		low.step &= 0xff;
		p->fields[p->nfields++] = low;
		f.bytes--;
		f.above = 1;
		f.value &= ~(least - 1);
	}
	p->fields[p->nfields++] = f;
}

static int by_kind(const void *x, const void *y)
{
	const struct lane_field *a = x, *b = y;

#define LESS(m)                                                                                              \
	if (a->m != b->m)                                                                                    \
	return a->m < b->m ? -1 : 1
	LESS(section);
	LESS(fixed);
	LESS(bytes);
	LESS(above);
	LESS(tag);
	if (!a->tag)
		LESS(value);
	LESS(step);
	LESS(addr);
#undef LESS
	return 0;
}

/* But for the section and the address */
static bool is_same(const struct lane_field *a, const struct lane_field *b)
{
	return a->fixed == b->fixed && a->bytes == b->bytes && a->above == b->above && a->tag == b->tag &&
	       (a->tag || a->value == b->value) && a->step == b->step;
}

/* ---- READs -------------------------------------------------------------------------------- */

static const struct block *block_of(struct plan *p, const struct lane_field *f)
{
	struct block *b;

	for (unsigned i = 0; i < p->nblocks; i++)
		if (is_same(&p->blocks[i].like, f))
			return &p->blocks[i];
	p->blocks = ring_more(&p->nomem, p->blocks, p->nblocks, &p->blocks_room, sizeof(*p->blocks));
	if (p->nomem)
		return NULL;
	b = &p->blocks[p->nblocks++];
	*b = (struct block){.like = *f, .copies = p->max_sge / segments(f), .at = put_copy(p, f)};
	for (unsigned i = 1; i < b->copies; i++)
		put_copy(p, f);
	return b;
}

/* READs for as many of @n equal fields as make them worth it; how many that are */
static unsigned read_equal(struct plan *p, const struct lane_field *f, unsigned n)
{
	unsigned done = 0;

	while (n - done >= EQUAL) {
		const struct block *b = block_of(p, f);
		struct lane_move *read = b ? new_read(p, f, b->at) : NULL;

		if (!read)
			return n;
		for (unsigned i = 0; i < b->copies && done < n; i++)
			add_segments(read, &f[done++]);
	}
	return done;
}

/* READs for all the others: their copies lie beside each other */
static void read_singles(struct plan *p, const struct lane_field *f, unsigned n)
{
	struct lane_move *read = NULL;

	for (unsigned i = 0; i < n && !p->nomem; i++) {
		uint32_t at = put_copy(p, &f[i]);

		if (!read || read->fixed != f[i].fixed || read->nsge + segments(&f[i]) > p->max_sge)
			read = new_read(p, &f[i], at);
		if (read)
			add_segments(read, &f[i]);
	}
}

static void plan_section(struct plan *p, struct lane_field *f, unsigned n)
{
	unsigned left = 0;

	for (unsigned i = 0, run; i < n && !p->nomem; i += run) {
		for (run = 1; i + run < n && is_same(&f[i], &f[i + run]);)
			run++;
		for (unsigned k = read_equal(p, &f[i], run); k < run; k++)
			f[left++] = f[i + k];
	}
	read_singles(p, f, left);
}

static void plan_sections(struct plan *p)
{
	for (unsigned i = 0, n; i < p->nfields; i += n) {
		for (n = 1; i + n < p->nfields && p->fields[i + n].section == p->fields[i].section;)
			n++;
		plan_section(p, p->fields + i, n);
	}
}

/* ---- memory of the lanes ------------------------------------------------------------------ */

/* Wide ones first: then none crosses the end of a word */
static void place_lanes(struct plan *p)
{
	uint32_t at = 0;

	for (unsigned bytes = 4; bytes; bytes /= 2)
		for (unsigned i = 0; i < p->nlanes; i++)
			if (p->lanes[i].bytes == bytes) {
				p->lanes[i].at = at;
				at += bytes;
			}
	p->l->nwords = (at + WORD - 1) / WORD;
}

static void write_lanes(struct plan *p)
{
	struct lanes *l = p->l;

	for (unsigned i = 0; i < p->nlanes; i++) {
		const struct lane *lane = &p->lanes[i];
		unsigned word = lane->at / WORD, shift = 8 * (lane->at % WORD);

		for (unsigned b = 0; b < lane->bytes; b++)
			l->init[lane->at + b] = (uint8_t)(lane->value >> 8 * b);
		l->add[word] |= lane->step << shift;
		l->bound[word] |= 1ull << (shift + 8 * lane->bytes - 1);
	}
}

/* The last one may become longer when the ring is laid out again: there is room behind what it writes */
static void write_copies(struct plan *p)
{
	struct lane_move *write = NULL;
	uint32_t at = p->l->nwords * WORD;

	for (unsigned i = 0; i < p->ncopies && !p->nomem; i++) {
		const struct copy *c = &p->copies[i];

		if (!write || write->nsge == p->max_sge)
			write = new_move(p, LANE_WRITES, at);
		if (!write)
			return;
		write->sge[write->nsge++] =
			(struct lane_sge){.addr = p->lanes[c->lane].at + c->from, .len = c->bytes};
		at += c->bytes;
	}
	for (unsigned i = write ? write->nsge : p->max_sge; i < p->max_sge; i++)
		put_bytes(p, &p->copied, 0, 1);
}

static void place_reads(struct plan *p)
{
	for (unsigned s = 0; s < LANE_WRITES; s++)
		for (unsigned i = 0; i < p->l->moves[s].n; i++) {
			struct lane_move *read = &p->l->moves[s].v[i];

			read->at += p->l->nwords * WORD + (read->fixed ? p->copied.n : 0);
		}
	for (unsigned i = 0; i < p->l->nbacks; i++)
		p->l->backs[i].to += p->l->nwords * WORD + p->copied.n;
}

static void place(struct plan *p)
{
	struct lanes *l = p->l;
	uint32_t at;

	place_lanes(p);
	write_copies(p);
	at = l->nwords * WORD;
	l->size = (at + p->copied.n + p->fixed.n + WORD - 1) / WORD * WORD;
	l->init = calloc(l->size + 1, 1);
	l->add = calloc(l->nwords + 1, sizeof(*l->add));
	l->bound = calloc(l->nwords + 1, sizeof(*l->bound));
	p->nomem |= !l->init || !l->add || !l->bound;
	if (p->nomem)
		return;
	write_lanes(p);
	if (p->copied.n)
		memcpy(l->init + at, p->copied.v, p->copied.n);
	if (p->fixed.n)
		memcpy(l->init + at + p->copied.n, p->fixed.v, p->fixed.n);
	place_reads(p);
}

/* ---- all ---------------------------------------------------------------------------------- */

int lanes_plan(struct lanes *l, const struct lane_field *fields, unsigned n, unsigned max_sge)
{
	struct plan p = {.l = l, .max_sge = max_sge, .fields = calloc(2 * (size_t)n + 1, sizeof(*p.fields))};

	*l = (struct lanes){0};
	p.nomem = !p.fields;
	for (unsigned i = 0; i < n && !p.nomem; i++)
		add_field(&p, fields[i]);
	if (!p.nomem) {
		qsort(p.fields, p.nfields, sizeof(*p.fields), by_kind);
		plan_sections(&p);
	}
	if (!p.nomem)
		place(&p);
	free(p.fields);
	free(p.lanes);
	free(p.copies);
	free(p.blocks);
	free(p.copied.v);
	free(p.fixed.v);
	if (p.nomem)
		lanes_free(l);
	return p.nomem ? -ENOMEM : 0;
}

void lanes_free(struct lanes *l)
{
	for (unsigned s = 0; s <= LANE_WRITES; s++) {
		for (unsigned i = 0; i < l->moves[s].n; i++)
			free(l->moves[s].v[i].sge);
		free(l->moves[s].v);
	}
	free(l->backs);
	free(l->init);
	free(l->add);
	free(l->bound);
	*l = (struct lanes){0};
}
