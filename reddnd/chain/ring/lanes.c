/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 8, BULK = 8 }; /* from so many equal numbers in a section on they get READs of their own */

/* Numbers that were found equal in one section, and the copies of their lane */
struct bulk {
	uint8_t bytes;
	bool fixed;
	uint64_t value, step;
	uint32_t tag;
	uint32_t at;
	unsigned copies;
};

struct plan {
	struct lanes *l;
	unsigned max_sge;
	struct bulk *bulks;
	unsigned nbulks;
};

/* ---- memory ------------------------------------------------------------------------------- */

static bool grow(struct lanes *l, uint32_t bytes)
{
	uint8_t **arrays[] = {&l->init, &l->add, &l->bound};
	uint32_t room = l->room ? l->room : 256;

	while (room < l->size + bytes)
		room *= 2;
	for (unsigned i = 0; room > l->room && i < 3; i++) {
		uint8_t *more = realloc(*arrays[i], room);

		if (!more) {
			l->nomem = true;
			return false;
		}
		memset(more + l->size, 0, room - l->size);
		*arrays[i] = more;
	}
	l->room = room;
	l->size += bytes;
	return true;
}

static uint32_t take(struct lanes *l, uint32_t bytes)
{
	uint32_t at = l->size;

	return grow(l, bytes) ? at : 0;
}

static void put_lane(struct lanes *l, uint32_t at, const struct lane_field *f)
{
	for (unsigned i = 0; i < f->bytes && !l->nomem; i++) {
		l->init[at + i] = (uint8_t)(f->value >> 8 * i);
		l->add[at + i] = f->fixed ? 0 : (uint8_t)(f->step >> 8 * i);
	}
	if (!l->nomem && !f->fixed)
		l->bound[at + f->bytes - 1] = 0x80;
}

static struct lane_read *new_read(struct plan *p, unsigned section, uint32_t from)
{
	struct lanes *l = p->l;
	struct lane_read *r;

	if (l->nreads == l->reads_room) {
		unsigned room = l->reads_room ? 2 * l->reads_room : 64;
		struct lane_read *more = realloc(l->reads, room * sizeof(*more));

		if (!more) {
			l->nomem = true;
			return NULL;
		}
		l->reads = more;
		l->reads_room = room;
	}
	r = &l->reads[l->nreads];
	*r = (struct lane_read){.section = (uint8_t)section, .from = from};
	r->sge = calloc(p->max_sge, sizeof(*r->sge));
	if (!r->sge) {
		l->nomem = true;
		return NULL;
	}
	l->nreads++;
	return r;
}

static unsigned segments(const struct lane_field *f)
{
	return f->fixed ? 1 : f->bytes;
}

/* The lane's bytes one by one, the last of the field first; fixed bytes as they are */
static void add_segments(struct lane_read *r, const struct lane_field *f)
{
	if (f->fixed) {
		r->sge[r->nsge++] = (struct lane_sge){f->addr, f->key, f->bytes};
		return;
	}
	for (unsigned i = 0; i < f->bytes; i++)
		r->sge[r->nsge++] = (struct lane_sge){f->addr + f->bytes - 1 - i, f->key, 1};
}

/* ---- numbers that are equal ------------------------------------------------------------------ */

static bool same(const struct lane_field *a, const struct lane_field *b)
{
	return a->fixed == b->fixed && a->bytes == b->bytes && a->tag == b->tag &&
	       (a->tag || a->value == b->value) && a->step == b->step;
}

static struct bulk *bulk_of(struct plan *p, const struct lane_field *f)
{
	struct bulk *b;

	for (unsigned i = 0; i < p->nbulks; i++) {
		b = &p->bulks[i];
		if (b->fixed == f->fixed && b->bytes == f->bytes && b->tag == f->tag &&
			(b->tag || b->value == f->value) && b->step == f->step)
			return b;
	}
	b = realloc(p->bulks, (p->nbulks + 1) * sizeof(*b));
	if (!b) {
		p->l->nomem = true;
		return NULL;
	}
	p->bulks = b;
	b = &p->bulks[p->nbulks++];
	*b = (struct bulk){
		.bytes = f->bytes, .fixed = f->fixed, .value = f->value, .step = f->step, .tag = f->tag};
	b->copies = p->max_sge / segments(f);
	b->at = take(p->l, (b->copies * b->bytes + WORD - 1) / WORD * WORD);
	for (unsigned i = 0; i < b->copies; i++)
		put_lane(p->l, b->at + i * b->bytes, f);
	return b;
}

/* READs for as many of @n equal fields as make them worth it; how many that are */
static unsigned plan_bulk(struct plan *p, const struct lane_field *f, unsigned n)
{
	unsigned done = 0;

	if (n < BULK || (!f->fixed && f->bytes == 3)) /* three bytes do not tile a word */
		return 0;
	while (n - done >= BULK) {
		struct bulk *b = bulk_of(p, f);
		struct lane_read *r = b ? new_read(p, f->section, b->at) : NULL;

		for (unsigned i = 0; r && i < b->copies && done < n; i++)
			add_segments(r, &f[done++]);
		if (!r)
			return n;
	}
	return done;
}

/* ---- the others -------------------------------------------------------------------------------- */

/* Singles of a section by their bytes; fixed ones last */
struct singles {
	const struct lane_field **of[5];
	unsigned n[5], taken[5];
	struct lane_read *r;
};

static const struct lane_field *next_single(struct singles *s, unsigned bytes)
{
	return s->taken[bytes] < s->n[bytes] ? s->of[bytes][s->taken[bytes]++] : NULL;
}

static void place_single(struct plan *p, struct singles *s, unsigned section, const struct lane_field *f)
{
	uint32_t at = take(p->l, f->bytes);

	put_lane(p->l, at, f);
	if (!p->l->nomem && (!s->r || s->r->nsge + segments(f) > p->max_sge))
		s->r = new_read(p, section, at);
	if (!p->l->nomem)
		add_segments(s->r, f);
}

/* Bytes that belong to nobody, up to the end of a word */
static void skip(struct plan *p, struct singles *s)
{
	uint32_t gap = -p->l->size & (WORD - 1);

	if (!gap)
		return;
	take(p->l, gap);
	if (p->l->nomem || !s->r || s->r->nsge == p->max_sge)
		s->r = NULL;
	else
		s->r->sge[s->r->nsge++] = (struct lane_sge){.len = gap};
}

static void plan_singles(struct plan *p, struct singles *s, unsigned section)
{
	for (;;) {
		uint32_t left = WORD - (p->l->size & (WORD - 1));
		const struct lane_field *f = NULL;

		/* Threes first, two to a word, then what fits in */
		if (left == 8 || left == 5)
			f = next_single(s, 3);
		for (unsigned bytes = 4; !f && bytes; bytes /= 2)
			if (left >= bytes)
				f = next_single(s, bytes);
		if (!f && left >= 3)
			f = next_single(s, 3);
		if (f)
			place_single(p, s, section, f);
		else if (left != WORD)
			skip(p, s);
		else
			break;
		if (p->l->nomem)
			return;
	}
}

static void plan_section(struct plan *p, struct lane_field *f, unsigned n)
{
	const struct lane_field **room = calloc(5 * (size_t)n + 1, sizeof(*room));
	struct singles s = {0};
	unsigned nfixed = 0;

	if (!room) {
		p->l->nomem = true;
		return;
	}
	for (unsigned b = 0; b < 5; b++)
		s.of[b] = room + (size_t)b * n;
	for (unsigned i = 0, run; i < n && !p->l->nomem; i += run) {
		for (run = 1; i + run < n && same(&f[i], &f[i + run]);)
			run++;
		for (unsigned k = plan_bulk(p, &f[i], run); k < run; k++) {
			unsigned b = f[i + k].fixed ? 0 : f[i + k].bytes;

			s.of[b][s.n[b]++] = &f[i + k];
		}
	}
	nfixed = s.n[0];
	if (!p->l->nomem)
		plan_singles(p, &s, f[0].section);
	for (unsigned i = 0; i < nfixed && !p->l->nomem; i++)
		place_single(p, &s, f[0].section, s.of[0][i]);
	if (!p->l->nomem) {
		s.r = NULL;
		take(p->l, -p->l->size & (WORD - 1));
	}
	free(room);
}

/* ---- all ------------------------------------------------------------------------------------------ */

static int by_kind(const void *x, const void *y)
{
	const struct lane_field *a = x, *b = y;

#define LESS(m)                                                                                              \
	if (a->m != b->m)                                                                                    \
	return a->m < b->m ? -1 : 1
	LESS(section);
	LESS(fixed);
	LESS(bytes);
	LESS(tag);
	if (!a->tag)
		LESS(value);
	LESS(step);
	LESS(addr);
#undef LESS
	return 0;
}

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

int lanes_plan(struct lanes *l, struct lane_field *fields, unsigned n, unsigned sections, unsigned max_sge)
{
	struct plan p = {.l = l, .max_sge = max_sge};
	unsigned kept = 0, first = 0;

	*l = (struct lanes){0};
	for (unsigned i = 0; i < n; i++)
		if (reduce(&fields[i]))
			fields[kept++] = fields[i];
	qsort(fields, kept, sizeof(*fields), by_kind);
	for (unsigned s = 0; s < sections && !l->nomem; s++) {
		unsigned end = first;

		while (end < kept && fields[end].section == s)
			end++;
		if (end > first)
			plan_section(&p, fields + first, end - first);
		first = end;
	}
	free(p.bulks);
	if (!l->nomem)
		return 0;
	lanes_free(l);
	return -ENOMEM;
}

void lanes_free(struct lanes *l)
{
	for (unsigned i = 0; i < l->nreads; i++)
		free(l->reads[i].sge);
	free(l->reads);
	free(l->init);
	free(l->add);
	free(l->bound);
	*l = (struct lanes){0};
}

bool lanes_word_moves(const struct lanes *l, uint32_t word)
{
	uint64_t add;

	memcpy(&add, l->add + (size_t)word * WORD, WORD);
	return add != 0;
}

unsigned lanes_adds(const struct lanes *l)
{
	unsigned adds = 0;

	for (uint32_t w = 0; w < l->size / WORD; w++)
		adds += lanes_word_moves(l, w);
	return adds;
}
