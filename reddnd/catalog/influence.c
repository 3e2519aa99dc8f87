/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/influence.h"

#include "util/cleanup.h"

#include <stdlib.h>
#include <string.h>

DEFINE_CLEANUP(struct program *, program_free)

static void cover(struct chain_span *all, const struct chain_span *more)
{
	if (more->to == 0)
		return;
	if (all->to == 0 || more->from < all->from)
		all->from = more->from;
	if (more->to > all->to)
		all->to = more->to;
}

/* Where region @name of the program is */
static bool find(const struct influence *all, const struct influence_offload *o, const char *name,
	struct influence_place *at)
{
	struct catalog_binding bound;
	char why[200];

	return catalog_bind(o->catalog, o->conf, name, false, &bound, why, sizeof(why)) == 0 &&
	       all->place(all->arg, o, bound.region, bound.part, at);
}

static uint64_t end_of(const struct influence_place *at)
{
	return at->size > UINT64_MAX - at->off ? UINT64_MAX : at->off + at->size;
}

/* Bytes of a place as bytes of its file */
static struct chain_span span_of_file(const struct influence_place *at, const struct chain_span *s)
{
	uint64_t to = s->to > at->size ? at->size : s->to;

	if (s->to == 0)
		return *s;
	return (struct chain_span){at->off + s->from, to > UINT64_MAX - at->off ? UINT64_MAX : at->off + to};
}

/* What of the bytes of a file is in the place. Empty: 0, 0 */
static struct chain_span span_of_place(const struct influence_place *at, const struct chain_span *file)
{
	uint64_t from = file->from > at->off ? file->from : at->off,
		 to = file->to < end_of(at) ? file->to : end_of(at);

	return from < to ? (struct chain_span){from - at->off, to - at->off} : (struct chain_span){0};
}

static void note_file(struct influence_offload *o, unsigned file, bool stores)
{
	unsigned i = 0;

	while (i < o->nfiles && o->files[i] != file)
		i++;
	if (i == o->nfiles)
		o->files[o->nfiles++] = file;
	o->stores |= (uint32_t)stores << i;
}

static bool is_same(const struct chain_stored *a, const struct chain_stored *b)
{
	return a->any.from == b->any.from && a->any.to == b->any.to && a->theirs.from == b->theirs.from &&
	       a->theirs.to == b->theirs.to;
}

/* What the regions of @p are by now. That only grows, so there are no fewer of them than before. True if @o
 * did not know that */
static bool update(const struct influence *all, struct influence_offload *o, const struct program *p)
{
	struct catalog_stored was = o->in;
	bool news = false;

	o->in.n = 0;
	for (unsigned i = 0; i < p->nregions; i++) {
		struct influence_place at;
		struct chain_stored s;

		if (!find(all, o, p->regions[i].name, &at))
			continue;
		s.any = span_of_place(&at, &all->files[at.file].any);
		s.theirs = span_of_place(&at, &all->files[at.file].theirs);
		if (s.any.to == 0)
			continue;
		news |= o->in.n >= was.n || !is_same(&was.region[o->in.n].stored, &s);
		strcpy(o->in.region[o->in.n].name, p->regions[i].name);
		o->in.region[o->in.n++].stored = s;
	}
	return news;
}

/* True if the offload is to be looked at again */
static bool look(const struct influence *all, struct influence_offload *o)
{
	static const struct program_target device = {.masked_atomics = true, .calc = PROGRAM_CALC};
	CLEANUP(program_freep) struct program *p = NULL;
	CLEANUP(cleanup_free) char *messages = NULL;

	if (o->wrong)
		return false;
	if (catalog_compile(o->conf, &o->in, NULL, 0, &device, &p, &messages)) {
		o->wrong = true;
		all->wrong(all->arg, o, messages);
		return false;
	}
	for (unsigned i = 0; i < p->nregions; i++) {
		const struct chain_stored *stored = &p->regions[i].stored;
		struct influence_place at;
		struct chain_span any, theirs;

		if (!find(all, o, p->regions[i].name, &at))
			continue;
		note_file(o, at.file, p->regions[i].writable && stored->any.to != 0);
		any = span_of_file(&at, &stored->any);
		theirs = span_of_file(&at, &stored->theirs);
		cover(&all->files[at.file].any, &any);
		cover(&all->files[at.file].theirs, &theirs);
	}
	return update(all, o, p);
}

void influence_settle(const struct influence *all)
{
	bool more = true;

	while (more) {
		more = false;
		for (unsigned i = 0; i < all->noffloads; i++)
			more |= look(all, &all->offloads[i]);
	}
}
