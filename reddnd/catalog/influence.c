/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/influence.h"

#include "reddnd/program/program.h"
#include "util/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

DEFINE_CLEANUP(struct program *, program_free)

/* One file may be two regions */
static unsigned first_of(const struct catalog *c, unsigned region)
{
	unsigned i = 0;

	while (strcmp(c->regions[i].path, c->regions[region].path) != 0)
		i++;
	return i;
}

static void cover(struct chain_span *all, const struct chain_span *more)
{
	if (all->to == 0 || more->from < all->from)
		all->from = more->from;
	if (more->to > all->to)
		all->to = more->to;
}

/* The span of the file of region @name of the program; *@conf is the region */
static struct chain_span *span_of(const struct catalog *c, const struct catalog_offload *o, const char *name,
	struct chain_span *spans, const struct catalog_region **conf)
{
	struct catalog_binding bound;
	char why[200];

	if (catalog_bind(c, o, name, false, &bound, why, sizeof(why)) < 0)
		return NULL;
	*conf = &c->regions[bound.region];
	return &spans[first_of(c, bound.region)];
}

void catalog_span_of_file(const struct catalog_region *r, uint64_t *from, uint64_t *to)
{
	if (r->length && *to > r->length)
		*to = r->length;
	*from += r->offset;
	*to = *to > UINT64_MAX - r->offset ? UINT64_MAX : *to + r->offset;
}

/* What of the bytes of a file is in the region. Empty: 0, 0 */
static struct chain_span span_in_region(const struct catalog_region *r, const struct chain_span *file)
{
	uint64_t end = r->length ? r->offset + r->length : UINT64_MAX;
	uint64_t from = file->from > r->offset ? file->from : r->offset, to = file->to < end ? file->to : end;

	return from < to ? (struct chain_span){from - r->offset, to - r->offset} : (struct chain_span){0};
}

/* What the regions of @p are by now. True if @o did not know that */
static bool update(
	const struct catalog *c, struct catalog_offload *o, const struct program *p, struct chain_span *spans)
{
	struct catalog_theirs theirs[CATALOG_BINDINGS_MAX] = {0};
	unsigned n = 0;
	bool news;

	for (unsigned i = 0; i < p->nregions; i++) {
		const struct catalog_region *conf;
		const struct chain_span *file = span_of(c, o, p->regions[i].name, spans, &conf);
		struct chain_span s = file ? span_in_region(conf, file) : (struct chain_span){0};

		if (s.to == 0)
			continue;
		strcpy(theirs[n].region, p->regions[i].name);
		theirs[n].from = s.from;
		theirs[n++].to = s.to;
	}
	news = n != o->ntheirs || memcmp(theirs, o->theirs, sizeof(theirs)) != 0;
	memcpy(o->theirs, theirs, sizeof(theirs));
	o->ntheirs = n;
	return news;
}

/* True if the offload is to be looked at again */
static bool look(struct settings *l, const config_setting_t *group, struct catalog_offload *o,
	struct chain_span *spans)
{
	static const struct program_target any = {.masked_atomics = true};
	CLEANUP(program_freep) struct program *p = NULL;
	CLEANUP(cleanup_free) char *messages = NULL;

	if (catalog_compile(o, NULL, 0, &any, &p, &messages)) {
		settings_wrong(l, group,
			"offload \"%s\": its program has mistakes, with regions into which programs of the "
			"catalog store what clients send, or have since the daemon started",
			o->name);
		if (messages)
			fputs(messages, l->errors);
		return false;
	}
	for (unsigned i = 0; i < p->nregions; i++) {
		struct chain_span theirs = p->regions[i].theirs, *s;
		const struct catalog_region *conf;

		s = span_of(l->catalog, o, p->regions[i].name, spans, &conf);
		if (!s || theirs.to == 0)
			continue;
		catalog_span_of_file(conf, &theirs.from, &theirs.to);
		cover(s, &theirs);
	}
	return update(l->catalog, o, p, spans);
}

/* ---- from one catalog to the next -------------------------------------------------------------- */

const struct catalog_stored *catalog_stored(const struct catalog *c, const char *path)
{
	for (unsigned i = 0; i < c->nstored; i++)
		if (strcmp(c->stored[i].path, path) == 0)
			return &c->stored[i];
	return NULL;
}

/* True if there is anything that programs may find in their regions */
static bool inherit(const struct catalog *c, const struct catalog *before, struct chain_span *spans)
{
	bool any = false;

	for (unsigned i = 0; i < c->nregions; i++) {
		const struct catalog_stored *s = before ? catalog_stored(before, c->regions[i].path) : NULL;

		any |= s || c->regions[i].writable;
		if (s && first_of(c, i) == i)
			spans[i] = (struct chain_span){s->from, s->to};
	}
	return any;
}

static int keep(struct catalog *c, const char *path, const struct chain_span *span)
{
	char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	c->stored[c->nstored++] = (struct catalog_stored){copy, span->from, span->to};
	return 0;
}

/* Of regions that are not configured any more, too: they may be again */
static int remember(struct catalog *c, const struct catalog *before, const struct chain_span *spans)
{
	unsigned more = before ? before->nstored : 0;
	int r = 0;

	c->stored = calloc(c->nregions + more + 1, sizeof(*c->stored));
	if (!c->stored)
		return -ENOMEM;
	for (unsigned i = 0; i < c->nregions && r == 0; i++)
		if (spans[i].to)
			r = keep(c, c->regions[i].path, &spans[i]);
	for (unsigned i = 0; i < more && r == 0; i++)
		if (!catalog_stored(c, before->stored[i].path))
			r = keep(c, before->stored[i].path,
				&(struct chain_span){before->stored[i].from, before->stored[i].to});
	return r;
}

int influence_settle(struct settings *l, const config_setting_t *list, const struct catalog *before)
{
	struct catalog *c = l->catalog;
	CLEANUP(cleanup_free) struct chain_span *spans = calloc(c->nregions + 1, sizeof(*spans));
	bool more;

	if (!spans)
		return -ENOMEM;
	more = inherit(c, before, spans);
	while (more && l->nerrors == 0) {
		more = false;
		for (unsigned i = 0; i < c->noffloads; i++)
			more |= look(l, config_setting_get_elem(list, i), &c->offloads[i], spans);
	}
	return remember(c, before, spans);
}
