/* SPDX-License-Identifier: BSD-2-Clause */
#include "protocol/wire.h"
#include "reddnd/catalog/settings.h"
#include "reddnd/program/program.h"
#include "util/cleanup.h"
#include "util/number.h"
#include "util/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOP_BUDGET_MAX (UINT64_C(1) << 40)

enum { DEPTH_DEFAULT = 64, INSTANCES_MIN = 4, INSTANCES_MAX = 32768, BUDGET_MIN_US = 10000 };

static void offload_name(struct load *l, const config_setting_t *s, void *object)
{
	settings_name(l, s, ((struct catalog_offload *)object)->name);
}

/* ---- the program ------------------------------------------------------------------------------------------
 */

/* 0; -ENOENT: no such file; else told */
static int read_program(
	struct load *l, const config_setting_t *s, const char *path, struct catalog_offload *o)
{
	CLEANUP(cleanup_free) char *text = malloc(PROGRAM_MAX_SOURCE + 1);
	FILE *f = text ? fopen(path, "re") : NULL;
	size_t len;
	bool failed;

	if (!f && errno == ENOENT)
		return -ENOENT;
	if (!f) {
		settings_wrong(l, s, "program %s cannot be read: %s", path, strerror(errno));
		return -errno;
	}
	/* One byte more than a program may have: the compiler says what is wrong then */
	len = fread(text, 1, PROGRAM_MAX_SOURCE + 1, f);
	failed = ferror(f);
	fclose(f);
	if (failed) {
		settings_wrong(l, s, "program %s cannot be read", path);
		return -EIO;
	}
	o->path = strdup(path);
	o->text = steal_ptr(&text);
	o->text_len = len;
	return 0;
}

/* "/x/y.rdn" is that file; "y" is y.rdn in the first directory of "programs" that has it */
static void offload_program(struct load *l, const config_setting_t *s, void *object)
{
	const char *name = config_setting_get_string(s);
	const struct catalog *c = l->catalog;

	if (name[0] == '/') {
		if (read_program(l, s, name, object) == -ENOENT)
			settings_wrong(l, s, "there is no program %s", name);
		return;
	}
	if (!text_is_name(name, CATALOG_NAME_MAX)) {
		settings_wrong(l, s,
			"\"%s\" cannot be a program; give the name of one in the directories of "
			"\"programs\", or the "
			"path of a file from the root",
			name);
		return;
	}
	for (unsigned i = 0; i < c->nprograms; i++) {
		CLEANUP(cleanup_free) char *path = NULL;

		if (asprintf(&path, "%s/%s.rdn", c->programs[i], name) < 0 ||
			read_program(l, s, path, object) != -ENOENT)
			return;
	}
	settings_wrong(l, s, "there is no program %s.rdn in %s%s; see \"programs\"", name, c->programs[0],
		c->nprograms > 1 ? ", nor in the other directories" : "");
}

static void offload_params(struct load *l, const config_setting_t *s, void *object)
{
	struct catalog_offload *o = object;

	for (int i = 0; i < config_setting_length(s); i++) {
		const config_setting_t *p = config_setting_get_elem(s, (unsigned)i);
		struct catalog_setting *set = &o->params[o->nparams];

		if (o->nparams == CATALOG_PARAMS_MAX)
			settings_wrong(l, p, "a program has at most %d params", CATALOG_PARAMS_MAX);
		else if (strlen(config_setting_name(p)) > CATALOG_NAME_MAX ||
			 !settings_amount(p, &set->value))
			settings_wrong(l, p, "param \"%s\" must be set to a number, as in 4 or \"64K\"",
				config_setting_name(p));
		else
			strcpy(o->params[o->nparams++].name, config_setting_name(p));
	}
}

/* ---- regions ----------------------------------------------------------------------------------------------
 */

static const char *const parts[] = {
	[CATALOG_BUCKETS] = "buckets", [CATALOG_HEAP] = "heap", [CATALOG_LIVE] = "live"};

static bool part_named(const char *name, uint8_t *part)
{
	for (uint8_t p = CATALOG_BUCKETS; p < COUNT(parts); p++)
		if (strcmp(name, parts[p]) == 0) {
			*part = p;
			return true;
		}
	return false;
}

static void offload_region(struct load *l, const config_setting_t *s, void *object)
{
	struct catalog_offload *o = object;

	o->region = settings_region(l, s, config_setting_get_string(s));
	o->has_region = o->region < l->catalog->nregions;
}

/* X = "region" or "region.part"; names may have dots themselves */
static void bind_one(struct load *l, const config_setting_t *s, struct catalog_offload *o)
{
	struct catalog_binding *b = &o->bindings[o->nbindings];
	char name[2 * CATALOG_NAME_MAX] = "";
	char *dot;

	if (config_setting_type(s) != CONFIG_TYPE_STRING ||
		strlen(config_setting_name(s)) > CATALOG_NAME_MAX ||
		strlen(config_setting_get_string(s)) >= sizeof(name)) {
		settings_wrong(l, s,
			"region \"%s\" must be bound to a region, as in \"users\" or \"users.heap\"",
			config_setting_name(s));
		return;
	}
	strcpy(name, config_setting_get_string(s));
	strcpy(b->name, config_setting_name(s));
	dot = strrchr(name, '.');
	b->part = CATALOG_WHOLE;
	if (dot && part_named(dot + 1, &b->part))
		*dot = '\0';
	b->region = settings_region(l, s, name);
	if (b->region == l->catalog->nregions)
		return;
	if (l->catalog->regions[b->region].raw != (b->part == CATALOG_WHOLE))
		settings_wrong(l, s, "region \"%s\" is %s", name,
			b->part ? "no table and has no parts; leave the part away"
				: "a table; name a part of it: \"NAME.buckets\", \"NAME.heap\" or "
				  "\"NAME.live\"");
	else
		o->nbindings++;
}

static void offload_regions(struct load *l, const config_setting_t *s, void *object)
{
	struct catalog_offload *o = object;

	for (int i = 0; i < config_setting_length(s); i++) {
		const config_setting_t *b = config_setting_get_elem(s, (unsigned)i);

		if (o->nbindings == CATALOG_BINDINGS_MAX)
			settings_wrong(l, b, "a program has at most %d regions", CATALOG_BINDINGS_MAX);
		else
			bind_one(l, b, o);
	}
}

static const struct catalog_binding *binding(const struct catalog_offload *o, const char *name)
{
	for (unsigned i = 0; i < o->nbindings; i++)
		if (strcmp(o->bindings[i].name, name) == 0)
			return &o->bindings[i];
	return NULL;
}

int catalog_bind(const struct catalog *c, const struct catalog_offload *o, const char *name, bool writable,
	struct catalog_binding *bound, char *why, size_t size)
{
	const struct catalog_binding *b = binding(o, name);
	const struct catalog_region *r;

	if (!b && !o->has_region) {
		snprintf(why, size,
			"region \"%s\" of the program is bound to nothing; set regions = { %s = \"...\"; }",
			name, name);
		return -EINVAL;
	}
	*bound = b ? *b : (struct catalog_binding){.region = o->region, .part = CATALOG_WHOLE};
	r = &c->regions[bound->region];
	if (!b && !r->raw && !part_named(name, &bound->part)) {
		snprintf(why, size,
			"region \"%s\" of the program is no part of table \"%s\", which has buckets, heap "
			"and live",
			name, r->name);
		return -EINVAL;
	}
	if (!writable || r->writable)
		return 0;
	snprintf(why, size, "the program writes to region \"%s\", but \"%s\" is not declared writable = true",
		name, r->name);
	return -EINVAL;
}

/* ---- the rest ---------------------------------------------------------------------------------------------
 */

static void offload_mode(struct load *l, const config_setting_t *s, void *object)
{
	const char *mode = config_setting_get_string(s);

	if (strcmp(mode, "unrolled") != 0 && strcmp(mode, "recycled") != 0)
		settings_wrong(l, s, "unknown mode \"%s\"; it must be \"unrolled\" or \"recycled\"", mode);
	else
		((struct catalog_offload *)object)->recycled = strcmp(mode, "recycled") == 0;
}

static void offload_depth_max(struct load *l, const config_setting_t *s, void *object)
{
	long long v;

	if (settings_integer(l, s, 1, REDDN_WIRE_MAX_DEPTH, &v))
		((struct catalog_offload *)object)->depth_max = (uint16_t)v;
}

static void offload_instances(struct load *l, const config_setting_t *s, void *object)
{
	struct catalog_offload *o = object;
	long long v;

	if (config_setting_get_int(s) == 0 && config_setting_type(s) == CONFIG_TYPE_INT)
		return;
	if (!settings_integer(l, s, INSTANCES_MIN, INSTANCES_MAX, &v))
		return;
	if (v & (v - 1))
		settings_wrong(l, s, "\"instances\" is %lld; it must be a power of two", v);
	else
		o->instances = (uint32_t)v;
}

/* ---- what it may take, and what follows
 * -------------------------------------------------------------------- */

static void offload_wqe_budget(struct load *l, const config_setting_t *s, void *object)
{
	long long v;

	if (settings_integer(l, s, 1, UINT16_MAX, &v))
		((struct catalog_offload *)object)->wqe_budget = (uint32_t)v;
}

static void offload_time_budget(struct load *l, const config_setting_t *s, void *object)
{
	uint64_t us;

	if (number_parse_duration(config_setting_get_string(s), &us) < 0 || us < BUDGET_MIN_US)
		settings_wrong(l, s,
			"\"time_budget\" is \"%s\"; it must be a time of at least %d ms, as in \"250ms\" or "
			"\"2s\"",
			config_setting_get_string(s), BUDGET_MIN_US / 1000);
	else
		((struct catalog_offload *)object)->time_budget = us;
}

static void offload_loop_budget(struct load *l, const config_setting_t *s, void *object)
{
	uint64_t n;

	if (!settings_amount(s, &n) || n == 0 || n > LOOP_BUDGET_MAX)
		settings_wrong(l, s,
			"\"loop_budget\" must be a number of iterations from 1 to \"1T\", as in 10000 or "
			"\"1M\"");
	else
		((struct catalog_offload *)object)->loop_budget = n;
}

static void parse_policy(struct load *l, const config_setting_t *s, struct verdict_policy *policy)
{
	if (config_setting_type(s) != CONFIG_TYPE_STRING ||
		verdict_policy_parse(config_setting_get_string(s), policy) < 0)
		settings_wrong(l, s,
			"\"%s\" must be \"log\", \"throttle:RATE:TIME\", \"terminate\" or \"ban:TIME\", as "
			"in "
			"\"throttle:100:60s\" or \"ban:60s\"",
			config_setting_name(s));
}

/* One for all kinds of verdicts, or a group of some kinds */
static void offload_on_error(struct load *l, const config_setting_t *s, void *object)
{
	struct catalog_offload *o = object;

	if (config_setting_type(s) == CONFIG_TYPE_STRING) {
		parse_policy(l, s, &o->on_error[0]);
		for (unsigned k = 1; k < VERDICT_KINDS; k++)
			o->on_error[k] = o->on_error[0];
		return;
	}
	for (int i = 0; i < config_setting_length(s); i++) {
		const config_setting_t *p = config_setting_get_elem(s, (unsigned)i);
		enum verdict_kind kind = verdict_kind_named(config_setting_name(p));

		if (kind == VERDICT_KINDS)
			settings_wrong(l, p,
				"there is no verdict \"%s\"; there are step, queue, request, rnr, "
				"unreachable, "
				"time and loop",
				config_setting_name(p));
		else
			parse_policy(l, p, &o->on_error[kind]);
	}
}

static const struct rule offload_rules[] = {
	{"name", T_STRING, "a name", true, offload_name},
	{"program", T_STRING, "the name of a program", true, offload_program},
	{"params", T_GROUP, "a group: { probes = 2; }", false, offload_params},
	{"region", T_STRING, "the name of a region", false, offload_region},
	{"regions", T_GROUP, "a group: { nodes = \"users\"; }", false, offload_regions},
	{"mode", T_STRING, "\"unrolled\" or \"recycled\"", false, offload_mode},
	{"depth_max", T_INT | T_INT64, "a number of requests", false, offload_depth_max},
	{"instances", T_INT | T_INT64, "a power of two, or 0", false, offload_instances},
	{"wqe_budget", T_INT | T_INT64, "a number of work requests", false, offload_wqe_budget},
	{"time_budget", T_STRING, "a time: \"250ms\"", false, offload_time_budget},
	{"loop_budget", T_INT | T_INT64 | T_STRING, "a number of iterations", false, offload_loop_budget},
	{"on_error", T_STRING | T_GROUP, "\"terminate\", or a group: { time = \"log\"; }", false,
		offload_on_error},
};

DEFINE_CLEANUP(struct program *, program_free)

int catalog_compile(const struct catalog_offload *o, const struct program_setting *more, unsigned nmore,
	const struct program_target *target, struct program **program, char **messages)
{
	struct program_setting set[2 * CATALOG_PARAMS_MAX];
	const struct program_source source = {.name = o->path, .text = o->text, .len = o->text_len};
	unsigned n = 0;

	for (; n < o->nparams; n++)
		set[n] = (struct program_setting){.name = o->params[n].name, .value = o->params[n].value};
	for (unsigned i = 0; i < nmore && n < COUNT(set); i++) {
		bool chosen = false;

		for (unsigned p = 0; p < o->nparams; p++)
			chosen |= strcmp(o->params[p].name, more[i].name) == 0;
		if (!chosen)
			set[n++] = more[i];
	}
	return program_compile(&source, set, n, target, program, messages);
}

/* Two regions of a program are different memory: that is what its order relies on */
static void check_apart(struct load *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program *p, const struct catalog_binding *bound)
{
	for (unsigned i = 0; i < p->nregions; i++)
		for (unsigned k = 0; k < i; k++)
			if (bound[i].region == bound[k].region &&
				(p->regions[i].writable || p->regions[k].writable))
				settings_wrong(l, group,
					"offload \"%s\": regions \"%s\" and \"%s\" of its program are both "
					"\"%s\", and it "
					"writes to one of them; bind them to two regions",
					o->name, p->regions[k].name, p->regions[i].name,
					l->catalog->regions[bound[i].region].name);
}

/* As far as it can be told without the device: for one that can do all there is */
static void check(struct load *l, const config_setting_t *group, const struct catalog_offload *o)
{
	static const struct program_target any = {.masked_atomics = true};
	CLEANUP(program_freep) struct program *p = NULL;
	CLEANUP(cleanup_free) char *messages = NULL;
	struct catalog_binding bound[PROGRAM_MAX_REGIONS];
	char why[200];

	if (catalog_compile(o, NULL, 0, &any, &p, &messages)) {
		settings_wrong(l, group, "offload \"%s\": its program has mistakes", o->name);
		if (messages)
			fputs(messages, l->errors);
		return;
	}
	if (p->loop && !o->loop_budget && !o->time_budget)
		settings_wrong(l, group,
			"offload \"%s\": its program has a loop without a bound; say when the daemon is to "
			"end "
			"it, with "
			"\"time_budget\" or \"loop_budget\"",
			o->name);
	if (!p->loop && o->loop_budget)
		settings_wrong(l, group,
			"offload \"%s\": all loops of its program have bounds; \"loop_budget\" is for others",
			o->name);
	for (unsigned i = 0; i < p->nregions; i++) {
		if (catalog_bind(l->catalog, o, p->regions[i].name, p->regions[i].writable, &bound[i], why,
			    sizeof(why)) == 0)
			continue;
		settings_wrong(l, group, "offload \"%s\": %s", o->name, why);
		bound[i].region = l->catalog->nregions + i;
	}
	check_apart(l, group, o, p, bound);
	for (unsigned b = 0; b < o->nbindings; b++) {
		bool known = false;

		for (unsigned i = 0; i < p->nregions; i++)
			known |= strcmp(p->regions[i].name, o->bindings[b].name) == 0;
		if (!known)
			settings_wrong(l, group, "offload \"%s\": its program has no region \"%s\"", o->name,
				o->bindings[b].name);
	}
}

void settings_parse_offload(struct load *l, const config_setting_t *group)
{
	struct catalog *c = l->catalog;
	struct catalog_offload *o = &c->offloads[c->noffloads];
	unsigned before = l->nerrors;

	o->where = settings_where(l, group);
	o->depth_max = DEPTH_DEFAULT;
	for (unsigned k = 0; k < VERDICT_KINDS; k++)
		o->on_error[k].action = VERDICT_TERMINATE;
	settings_group(l, group, "in an offload", offload_rules, COUNT(offload_rules), o);
	if (o->instances && o->instances < 2u * o->depth_max)
		settings_wrong(l, group, "\"instances\" is %u; it must be at least twice \"depth_max\" (%u)",
			o->instances, o->depth_max);
	for (unsigned i = 0; i < c->noffloads; i++)
		if (*o->name && strcmp(c->offloads[i].name, o->name) == 0)
			settings_wrong(l, group,
				"offload \"%s\" is already declared at %s; names must differ", o->name,
				c->offloads[i].where);
	if (l->nerrors == before)
		check(l, group, o);
	c->noffloads++;
}
