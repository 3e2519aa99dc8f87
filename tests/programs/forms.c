/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forms FILE [TITLE]: every entry of a table of forms (forms-table.h) is compiled for several kinds of
 * devices, and runs on the emulated silicon, in chains that the rig arms and in those that the NIC recycles,
 * beside what the table has; or is refused where and why it has to be. TITLE: only this entry.
 */
#include "tests/lib/sanitized.h"
#include "tests/programs/forms-table.h"
#include "tests/programs/in-parts.h"
#include "tests/programs/run.h"
#include "tests/programs/values.h"
#include "util/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 2, MODES = 2, ALL_OF = 40 /* alternatives; of more, each on one device and in one mode */ };
/* Where every access is checked, one alternative of some, for the same time */
enum { EACH = SANITIZED ? 3 : 1 };

/* An alternative of an entry on its way */
struct running {
	struct run_offload o; /* first: .request gets it back */
	const struct forms_case *c;
	const char *device;
};

struct totals {
	const char *only;
	unsigned cases, runs, bad;
	unsigned line, nth; /* of an entry, and of its alternatives */
	bool sparse;
};

static const struct run_offload devices[] = {{.name = "any device"},
	{.name = "no-masks", .no_masks = true, .no_calc = true}, {.name = "direct", .direct = true},
	{.name = "no-calc", .no_calc = true}};

static bool complain(struct totals *t, const struct forms_case *c, const char *device, const char *what)
{
	fprintf(stderr, "%s:%u: %s [%s] (%s%s): %s\n", c->file, c->line, c->title, c->which, device,
		run_recycled ? ", recycled" : "", what);
	if (t->bad++ == 0)
		fprintf(stderr, "%s\n", c->text);
	return false;
}

/* ---- memory ----------------------------------------------------------------------------------- */

static unsigned region_of(const struct program *p, const char *name)
{
	unsigned i = 0;

	while (i < p->nregions && strcmp(p->regions[i].name, name))
		i++;
	if (i == p->nregions)
		fail_msg("there is no region %s", name);
	return i;
}

static void put_all(struct run *r, const struct forms_list *list, uint8_t *const *to)
{
	for (unsigned i = 0; i < list->n; i++) {
		const struct forms_bytes *b = &list->v[i];
		unsigned region = region_of(r->p, b->name);

		if (b->at + b->len > r->o->region_bytes[region])
			fail_msg("%s is smaller than %u bytes", b->name, b->at + b->len);
		memcpy(to[region] + b->at, b->bytes, b->len);
	}
}

/* What the table does not give is 0, 1, 2... so that no two places close to each other are the same */
static void fill(struct run *r, uint8_t *const *to)
{
	const struct running *run = (const struct running *)r->o;

	for (unsigned i = 0; i < r->p->nregions; i++)
		for (uint32_t k = 0; k < r->o->region_bytes[i]; k++)
			to[i][k] = (uint8_t)(k + (k >> 8) + 16 * i);
	put_all(r, &run->c->memory, to);
}

/* One extent serves all requests, so that the table can have its place */
static void setup(struct run *r)
{
	fill(r, r->region);
	for (unsigned s = 1; s < CHAIN_RIG_SLOTS; s++)
		r->c.extent[s] = r->c.extent[0];
}

/* What is behind the arguments is in the extent as well */
static void take_payload(struct run *r, const struct forms_vector *v)
{
	r->payload_bytes = 0;
	for (unsigned i = 0; i < v->payload.n; i++) {
		memcpy(r->payload + r->payload_bytes, v->payload.v[i].bytes, v->payload.v[i].len);
		r->payload_bytes += v->payload.v[i].len;
	}
	if (r->p->payload.max)
		memcpy(r->model[r->p->payload.region] + run_extent(r) + r->c.img->arg_len, r->payload,
			r->payload_bytes);
}

static void put(uint8_t *to, const struct forms_list *list)
{
	for (unsigned i = 0; i < list->n; i++) {
		const struct forms_bytes *b = &list->v[i];

		if (b->at + b->len > RUN_SLOT)
			fail_msg("a reply has at most %d bytes", RUN_SLOT);
		memcpy(to + b->at, b->bytes, b->len);
	}
}

/* Each request finds the memory as the table describes it. Only one is on its way if they change it */
static void request(struct run *r, uint8_t *slot)
{
	const struct running *run = (const struct running *)r->o;
	const struct forms_vector *v =
		&run->c->vector[r->c.sent < run->c->nvectors ? r->c.sent : run_random(r, run->c->nvectors)];

	if (r->o->depth == 1) {
		for (unsigned i = 0; i < r->p->nregions; i++)
			if (memcmp(r->region[i], r->model[i], r->o->region_bytes[i]) ||
				memcmp(r->executed[i], r->model[i], r->o->region_bytes[i])) {
				r->enough = true; /* the comparison in the end finds it */
				return;
			}
		fill(r, r->region);
		fill(r, r->executed);
		in_parts_follow(r->in_parts);
		fill(r, r->model);
		put_all(r, &v->memory, r->model);
		take_payload(r, v);
	}
	memset(r->arg, 0, sizeof(r->arg));
	for (unsigned i = 0; i < v->nargs; i++)
		if (v->arg[i].bytes)
			run_arg_bytes(r, v->arg[i].name, v->arg[i].raw);
		else
			run_arg(r, v->arg[i].name, v->arg[i].number);
	*run_answer(r) = (struct run_answer){.sends = v->sends, .has_imm = v->has_imm, .imm = v->imm};
	put(slot, &v->reply);
	put(run_inbox(r), &v->sent);
}

/* ---- one alternative -------------------------------------------------------------------------- */

static bool as_refused(
	struct totals *t, const struct forms_case *c, const char *device, const struct program_errors *errors)
{
	char what[2000];

	if (errors->n && !strcmp(errors->error[0].code, c->refused) &&
		errors->error[0].line == c->refused_line && strstr(errors->error[0].text, c->words))
		return true;
	snprintf(what, sizeof(what), "not refused with %s in line %u, but:\n%s", c->refused, c->refused_line,
		errors->text ? errors->text : "accepted");
	return complain(t, c, device, what);
}

static void run_case(struct totals *t, const struct forms_case *c, struct running *run, struct program *p)
{
	bool writes = p->loop;
	char why[400];

	for (unsigned i = 0; i < p->nregions; i++) {
		writes |= p->regions[i].writable;
		run->o.region_bytes[i] = FORMS_REGION;
	}
	for (unsigned i = 0; i < c->size.n; i++)
		run->o.region_bytes[region_of(p, c->size.v[i].name)] = c->size.v[i].len;
	run->o.depth = writes ? 1 : 2;
	run->o.setup = setup;
	run->o.request = request;
	for (unsigned mode = 0; mode < MODES; mode++) {
		run_recycled = mode;
		if (t->sparse && t->nth / COUNT(devices) % MODES != mode)
			continue;
		/* a condition may be decided in a control segment, which nothing restores */
		if (mode && !run_recycles(p->image)) {
			if (!c->unrolled && !run->o.direct)
				complain(t, c, run->device, "it cannot be recycled");
			continue;
		}
		/* every run has seeds of its own, and the first one is lenient: everything in order, at once
		 */
		if (!run_program(&run->o, p, (uint64_t)SEEDS * t->runs++, SEEDS, c->nvectors, NULL, why))
			complain(t, c, run->device, why);
	}
}

static void on_device(struct totals *t, const struct forms_case *c, const struct run_offload *device)
{
	struct running run = {.o = *device, .c = c, .device = device->name};
	struct program_source src = {.name = "p", .text = c->text, .len = strlen(c->text)};
	struct program_target target = {.masked_atomics = !device->no_masks,
		.calc = device->no_calc ? 0 : PROGRAM_CALC,
		.ignores_index = device->direct};
	struct program_errors errors = {0};
	struct program *p = NULL;

	run_recycled = false;
	if (program_diagnose(&src, NULL, 0, &target, &p, &errors) < 0)
		fail_msg("no memory");
	if (*c->refused)
		as_refused(t, c, device->name, &errors);
	else if (c->masks && device->no_masks && !p && !strcmp(errors.error[0].code, "DEVICE"))
		;
	else if (!p)
		complain(t, c, device->name, errors.text);
	else if (c->masks && device->no_masks)
		complain(t, c, device->name, "it does not need masks");
	else if (!c->quiet)
		run_case(t, c, &run, p);
	program_errors_free(&errors);
	program_free(p);
}

static void try(void *arg, const struct forms_case *c)
{
	struct totals *t = arg;

	if (t->only && strcmp(t->only, c->title))
		return;
	if (t->line != c->line) {
		t->line = c->line;
		t->nth = 0;
	}
	t->sparse = ++t->nth > ALL_OF && !*c->device;
	if (t->cases++ % EACH)
		return;
	if (!*c->refused && !c->quiet && !c->nvectors) {
		complain(t, c, "table", "there is no request");
		return;
	}
	for (unsigned d = 0; d < COUNT(devices); d++)
		if (c->calculates && devices[d].no_masks)
			continue;
		else if (*c->device    ? !strcmp(c->device, devices[d].name)
			 : *c->refused ? d == 0
				       : !t->sparse || t->nth % COUNT(devices) == d)
			on_device(t, c, &devices[d]);
}

static const char *path, *title;

static void all(void **state)
{
	struct totals t = {.only = title};

	(void)state;
	assert_true(forms_read(path, try, &t));
	print_message("%u programs, %u runs, %u are not what they should be\n", t.cases, t.runs, t.bad);
	assert_true(t.cases > 0);
	assert_int_equal(t.bad, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all)};

	if (argc < 2) {
		fprintf(stderr, "usage: forms FILE [TITLE]\n");
		return 2;
	}
	path = argv[1];
	title = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
