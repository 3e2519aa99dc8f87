/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/influence.h"

#include "util/cleanup.h"

#include <stdlib.h>
#include <string.h>

DEFINE_CLEANUP(struct program *, program_free)

enum { ROUNDS = 16 /* of all offloads: more than one stands behind another */ };

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

/* What is stored in the file, as bytes of the place. A bucket in which something is published is one of the
 * file, and where buckets of the place lie across those the length of none is known */
static struct chain_stored stored_in_place(const struct influence_place *at, const struct chain_stored *file)
{
	struct chain_stored s = {.any = span_of_place(at, &file->any),
		.theirs = span_of_place(at, &file->theirs),
		.located = span_of_place(at, &file->located)};

	if (s.located.to)
		s.longest = file->longest;
	if (at->off % CHAIN_BUCKET)
		chain_span_add(&s.any, &s.located);
	return s;
}

/* The same the other way round */
static void store_in_file(
	struct chain_stored *file, const struct influence_place *at, const struct chain_stored *s)
{
	chain_stored_add(file, &(struct chain_stored){.any = span_of_file(at, &s->any),
				       .theirs = span_of_file(at, &s->theirs),
				       .located = span_of_file(at, &s->located),
				       .longest = s->longest});
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
	       a->theirs.to == b->theirs.to && a->located.from == b->located.from &&
	       a->located.to == b->located.to && a->longest == b->longest;
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
		s = stored_in_place(&at, &all->files[at.file]);
		if (s.any.to == 0 && s.located.to == 0)
			continue;
		news |= o->in.n >= was.n || !is_same(&was.region[o->in.n].stored, &s);
		strcpy(o->in.region[o->in.n].name, p->regions[i].name);
		o->in.region[o->in.n++].stored = s;
	}
	return news;
}

/* Of a program that can be compiled without them, where nothing is stored yet */
static unsigned params(const struct influence *all, const struct influence_offload *o,
	const struct program_target *device, struct program_setting *more)
{
	CLEANUP(program_freep) struct program *p = NULL;
	CLEANUP(cleanup_free) char *messages = NULL;

	if (!all->params || catalog_compile(o->conf, NULL, NULL, 0, device, &p, &messages))
		return 0;
	return all->params(all->arg, o, p, more);
}

static bool stores(const struct program *p, unsigned region)
{
	const struct chain_stored *s = &p->regions[region].stored;

	return (p->payload.max && p->payload.region == region) ||
	       (p->regions[region].writable && (s->any.to || s->located.to));
}

/* True if the offload is to be looked at again. @late: what still grows in a file is all of it */
static bool look(const struct influence *all, struct influence_offload *o, bool late)
{
	static const struct program_target device = {.masked_atomics = true, .calc = PROGRAM_CALC};
	CLEANUP(program_freep) struct program *p = NULL;
	CLEANUP(cleanup_free) char *messages = NULL;
	struct program_setting more[INFLUENCE_PARAMS];

	if (o->wrong)
		return false;
	if (catalog_compile(o->conf, &o->in, more, params(all, o, &device, more), &device, &p, &messages)) {
		o->wrong = true;
		all->wrong(all->arg, o, messages);
		return false;
	}
	for (unsigned i = 0; i < p->nregions; i++) {
		struct influence_place at;
		struct chain_stored was;

		if (!find(all, o, p->regions[i].name, &at))
			continue;
		note_file(o, at.file, stores(p, i));
		was = all->files[at.file];
		store_in_file(&all->files[at.file], &at, &p->regions[i].stored);
		if (late)
			chain_stored_widen(&all->files[at.file], &was);
	}
	return update(all, o, p);
}

void influence_settle(const struct influence *all)
{
	bool more = true;

	for (unsigned round = 0; more; round++) {
		more = false;
		for (unsigned i = 0; i < all->noffloads; i++)
			more |= look(all, &all->offloads[i], round >= ROUNDS);
	}
}
