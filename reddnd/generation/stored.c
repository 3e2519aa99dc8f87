/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/stored.h"

#include "reddnd/generation/generation.h"
#include "reddnd/generation/wrong.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Owners may hand over one file after the other. Beyond this number the oldest files of an owner that no
 * region has open are forgotten: without a limit the list would grow for as long as the daemon runs, and with
 * one for all owners one of them could make the daemon forget the files of another */
enum { HANDED_MAX = 1024 };

int stored_copy(struct stored *to, const struct stored *from)
{
	*to = (struct stored){.files = calloc(from->n + 1, sizeof(*to->files)), .n = from->n};
	if (!to->files)
		return -ENOMEM;
	if (from->n)
		memcpy(to->files, from->files, from->n * sizeof(*to->files));
	return 0;
}

void stored_free(struct stored *s)
{
	free(s->files);
	*s = (struct stored){0};
}

/* ---- for the next daemon ---- */

#define MAGIC 0x345244544e444452u /* also of the layout of what follows: struct stored_file */

/* In front of the file: where the list is. A kill does not interrupt a write of so few bytes in one page */
struct head {
	uint64_t magic, off, n;
};

/* False: there is no list */
static bool read_head(int fd, struct head *head)
{
	struct stat st;

	return fstat(fd, &st) == 0 && file_read_at(fd, 0, head, sizeof(*head)) == sizeof(*head) &&
	       head->magic == MAGIC && head->off >= sizeof(*head) && head->off <= (uint64_t)st.st_size &&
	       head->n <= ((uint64_t)st.st_size - head->off) / sizeof(struct stored_file);
}

static int write_at(int fd, const void *bytes, size_t size, uint64_t off)
{
	ssize_t n = pwrite(fd, bytes, size, (off_t)off);

	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -ENOSPC;
}

/* Beside the list that is there, which counts until the head names the other one: a daemon that dies between
 * leaves either, whole */
int stored_save(const struct stored *s, int fd)
{
	struct head now, next = {.magic = MAGIC, .off = sizeof(next), .n = s->n};
	size_t size = s->n * sizeof(*s->files);
	int r;

	if (read_head(fd, &now) && next.off + size > now.off)
		next.off = now.off + now.n * sizeof(*s->files);
	r = write_at(fd, s->files, size, next.off);
	return r < 0 ? r : write_at(fd, &next, sizeof(next), 0);
}

int stored_load(struct stored *s, int fd)
{
	struct head head;
	size_t size;

	*s = (struct stored){0};
	if (!read_head(fd, &head))
		return -EBADMSG;
	size = head.n * sizeof(*s->files);
	s->files = calloc(head.n + 1, sizeof(*s->files));
	if (!s->files)
		return -ENOMEM;
	if (file_read_at(fd, head.off, s->files, size) != (long)size) {
		stored_free(s);
		return -EBADMSG;
	}
	s->n = (unsigned)head.n;
	return 0;
}

/* ---- files ---- */

static bool is_same(const struct rnic_file_id *a, const struct rnic_file_id *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->generation == b->generation;
}

static struct stored_file *find(const struct stored *s, const struct rnic_file_id *id)
{
	for (unsigned i = 0; i < s->n; i++)
		if (is_same(&s->files[i].id, id))
			return &s->files[i];
	return NULL;
}

/* Bytes of a place of @size bytes at @off of a file */
static bool is_within(const struct chain_span *in, uint64_t off, uint64_t size, const struct chain_span *file)
{
	uint64_t to = in->to > size ? size : in->to;

	return in->to == 0 || (off + in->from >= file->from && off + to <= file->to);
}

bool stored_has(const struct stored *s, const struct region *r, uint8_t part, const struct chain_stored *in)
{
	const struct rnic_file_id id = rnic_region_id(r->file);
	const struct stored_file *f = find(s, &id);
	uint64_t off = region_part_off(r, part), size = region_part_size(r, part);

	if (!f)
		return in->any.to == 0 && in->located.to == 0;
	return is_within(&in->any, off, size, &f->stored.any) &&
	       is_within(&in->theirs, off, size, &f->stored.theirs) &&
	       is_within(&in->located, off, size, &f->stored.located) && in->longest <= f->stored.longest;
}

/* What @in has, and @before does not */
static bool has_more(const struct chain_span *in, const struct chain_span *before)
{
	return in->to && !(before->to && before->from <= in->from && in->to <= before->to);
}

static bool is_there(const struct chain_span *in, const struct stored_place *at)
{
	return in->from < at->off + at->size && at->off < in->to;
}

bool stored_has_more(const struct stored *s, const struct stored *before, const struct stored_place *at)
{
	static const struct chain_stored nothing;

	for (unsigned i = 0; i < s->n; i++) {
		const struct stored_file *f = &s->files[i], *was = find(before, &f->id);
		const struct chain_stored *then = was ? &was->stored : &nothing;

		if (f->id.dev != at->dev || f->id.ino != at->ino)
			continue;
		if (is_there(&f->stored.any, at) &&
			(has_more(&f->stored.any, &then->any) || has_more(&f->stored.theirs, &then->theirs)))
			return true;
		if (is_there(&f->stored.located, at) &&
			(has_more(&f->stored.located, &then->located) || f->stored.longest > then->longest))
			return true;
	}
	return false;
}

/* ---- finding out ---- */

struct settling {
	struct stored
		files; /* that regions have open, by number, with what clients have stored there anyway */
	struct chain_stored *stored;
	struct influence_offload *offloads; /* of the catalog, then living ones */
	unsigned ncatalog, n;
	bool *leave_out; /* by number of an offload: it does not store */
};

static void settling_deinit(struct settling *s)
{
	stored_free(&s->files);
	free(s->stored);
	free(s->offloads);
	free(s->leave_out);
}

static struct chain_span part_of(const struct region *r, uint8_t part)
{
	const uint64_t off = region_part_off(r, part);

	return (struct chain_span){off, off + region_part_size(r, part)};
}

/* A store is filled by clients, whoever else opens it: those of a daemon whose list is gone, or of another
 * catalog. It has no longer records (store_open()) */
static struct chain_stored stored_by_clients(const struct region *r)
{
	const struct chain_span heap = part_of(r, CATALOG_HEAP);

	return (struct chain_stored){.any = heap,
		.theirs = heap,
		.located = part_of(r, CATALOG_BUCKETS),
		.longest = (uint32_t)(table_slot_need(&r->table.geometry) - REDDN_SLOT_RECORD)};
}

static void add_file(struct settling *s, const struct region *r)
{
	struct rnic_file_id id;
	struct stored_file *f;

	if (!r->file)
		return;
	id = rnic_region_id(r->file);
	f = find(&s->files, &id);
	if (!f) {
		f = &s->files.files[s->files.n++];
		*f = (struct stored_file){.id = id};
	}
	if (r->conf->handover) {
		f->handed = true;
		f->owner = r->conf->owner;
	}
	if (r->conf->store && !region_is_bad(r, NULL)) {
		const struct chain_stored theirs = stored_by_clients(r);

		chain_stored_add(&f->stored, &theirs);
	}
}

static bool place(void *arg, const struct influence_offload *o, unsigned region, uint8_t part,
	struct influence_place *at)
{
	const struct settling *s = arg;
	struct region *const *regions = o->regions;
	const struct region *r = regions[region];
	struct rnic_file_id id;

	if (!r->file || region_is_bad(r, NULL))
		return false;
	id = rnic_region_id(r->file);
	*at = (struct influence_place){.file = (unsigned)(find(&s->files, &id) - s->files.files),
		.off = region_part_off(r, part),
		.size = region_part_size(r, part)};
	return true;
}

static unsigned params(
	void *arg, const struct influence_offload *o, const struct program *p, struct program_setting *params)
{
	struct region *const *regions = o->regions;
	const struct region *table = NULL;
	struct catalog_binding bound;
	char why[200];

	(void)arg;
	for (unsigned i = 0; i < p->nregions; i++)
		if (catalog_bind(o->catalog, o->conf, p->regions[i].name, false, &bound, why, sizeof(why)) ==
				0 &&
			bound.part == CATALOG_BUCKETS && !region_is_bad(regions[bound.region], NULL))
			table = regions[bound.region];
	return table ? table_params(&table->table.geometry, p, params) : 0;
}

static void report(void *arg, const struct influence_offload *o, const char *messages)
{
	const struct settling *s = arg;

	if (o >= s->offloads + s->ncatalog)
		return; /* an earlier one, which is not what is to be changed */
	log_error("%s: offload %s: its program has mistakes, with regions into which programs store "
		  "something, or have stored it:",
		o->conf->where, o->conf->name);
	if (messages)
		offload_log_lines(messages);
}

/* Leaves out the catalog's offloads by which something comes into the files of @broken. True: there were any
 */
static bool find_causes(struct settling *s, const struct influence_offload *broken)
{
	CLEANUP(cleanup_free) bool *reached = calloc(s->files.n + 1, sizeof(*reached));
	bool more = reached, any = false;

	for (unsigned k = 0; reached && k < broken->nfiles; k++)
		reached[broken->files[k]] = true;
	while (more) {
		more = false;
		for (unsigned i = 0; i < s->n; i++) {
			const struct influence_offload *o = &s->offloads[i];
			bool stores = false;

			for (unsigned k = 0; k < o->nfiles; k++)
				stores |= (o->stores >> k & 1) && reached[o->files[k]];
			for (unsigned k = 0; stores && k < o->nfiles; k++) {
				more |= !reached[o->files[k]];
				reached[o->files[k]] = true;
			}
			if (stores && i < s->ncatalog && !s->leave_out[i]) {
				s->leave_out[i] = true;
				any = true;
			}
		}
	}
	return any;
}

/* From what is stored already */
static void settle(struct settling *s, const struct stored *before)
{
	struct influence all = {.offloads = s->offloads,
		.noffloads = s->n,
		.files = s->stored,
		.place = place,
		.params = params,
		.wrong = report,
		.arg = s};

	for (unsigned i = 0; i < s->files.n; i++) {
		const struct stored_file *f = find(before, &s->files.files[i].id);

		s->stored[i] = s->files.files[i].stored;
		if (f)
			chain_stored_add(&s->stored[i], &f->stored);
	}
	for (unsigned i = 0; i < s->n; i++) {
		struct influence_offload *o = &s->offloads[i];

		*o = (struct influence_offload){.catalog = o->catalog,
			.conf = o->conf,
			.regions = o->regions,
			.wrong = s->leave_out[i]};
	}
	influence_settle(&all);
}

/* Until no offload of an earlier generation is wrong, or nothing can be done about it */
static void settle_with_living(
	struct settling *s, const struct stored *before, struct stored_offload *offloads)
{
	bool again = true;

	while (again) {
		again = false;
		settle(s, before);
		for (unsigned i = s->ncatalog; i < s->n && !again; i++) {
			if (!s->offloads[i].wrong)
				continue;
			again = find_causes(s, &s->offloads[i]);
			for (unsigned k = 0; again && k < s->ncatalog; k++)
				if (s->leave_out[k] && !offloads[k].relied_upon)
					offloads[k].relied_upon = s->offloads[i].conf->name;
		}
	}
}

/* Of an owner's files from number @from on, those that were handed over */
static unsigned count_handed(const struct stored *s, unsigned from, uid_t owner)
{
	unsigned n = 0;

	for (; from < s->n; from++)
		n += s->files[from].handed && s->files[from].owner == owner;
	return n;
}

/* Of the files that an owner has handed over, the oldest, which are in front */
static void forget_some(struct stored *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->n; i++)
		if (!s->files[i].handed || count_handed(s, i, s->files[i].owner) <= HANDED_MAX)
			s->files[n++] = s->files[i];
	s->n = n;
}

/* Files that are open go to the end, where forget_some() does not reach */
static void take_over(struct stored *s, struct settling *from)
{
	struct stored *all = &from->files;
	unsigned n = 0, before = 0;

	for (unsigned i = 0; i < s->n; i++)
		if (!find(all, &s->files[i].id))
			s->files[before++] = s->files[i];
	s->n = before;
	for (unsigned i = 0; i < all->n; i++)
		all->files[i].stored = from->stored[i];
	for (unsigned i = 0; i < all->n; i++)
		if (all->files[i].stored.any.to || all->files[i].stored.located.to)
			all->files[n++] = all->files[i];
	memcpy(s->files + s->n, all->files, n * sizeof(*s->files));
	s->n += n;
	forget_some(s);
}

static bool is_needed(const struct stored *s, const struct catalog *catalog)
{
	bool writable = s->n;

	for (unsigned i = 0; i < catalog->nregions; i++)
		writable |= catalog->regions[i].writable || catalog->regions[i].store;
	return writable;
}

int stored_settle(struct stored *s, const struct catalog *catalog, struct region **regions,
	const struct offload *const *living, unsigned nliving, struct stored_offload *offloads)
{
	CLEANUP(settling_deinit) struct settling now = {.ncatalog = catalog->noffloads};
	size_t nfiles = catalog->nregions;
	struct stored_file *room;

	if (!is_needed(s, catalog))
		return 0;
	now.n = catalog->noffloads + nliving;
	for (unsigned i = 0; i < nliving; i++)
		nfiles += living[i]->generation->catalog->nregions;
	now.files.files = calloc(nfiles + 1, sizeof(*now.files.files));
	now.stored = calloc(nfiles + 1, sizeof(*now.stored));
	now.offloads = calloc(now.n + 1, sizeof(*now.offloads));
	now.leave_out = calloc(now.n + 1, sizeof(*now.leave_out));
	room = realloc(s->files, (s->n + nfiles + 1) * sizeof(*s->files));
	if (room)
		s->files = room;
	if (!now.files.files || !now.stored || !now.offloads || !now.leave_out || !room)
		return -ENOMEM;
	for (unsigned i = 0; i < catalog->nregions; i++)
		add_file(&now, regions[i]);
	for (unsigned i = 0; i < catalog->noffloads; i++)
		now.offloads[i] = (struct influence_offload){
			.catalog = catalog, .conf = &catalog->offloads[i], .regions = regions};
	for (unsigned i = 0; i < nliving; i++) {
		struct generation *g = living[i]->generation;

		for (unsigned k = 0; k < g->catalog->nregions; k++)
			add_file(&now, g->regions[k]);
		now.offloads[now.ncatalog + i] = (struct influence_offload){
			.catalog = g->catalog, .conf = living[i]->conf, .regions = g->regions};
	}
	settle_with_living(&now, s, offloads);
	for (unsigned i = 0; i < catalog->noffloads; i++) {
		offloads[i].in = now.offloads[i].in;
		offloads[i].wrong = now.offloads[i].wrong && !offloads[i].relied_upon;
	}
	take_over(s, &now);
	return 0;
}
