/* SPDX-License-Identifier: BSD-2-Clause */
#include "protocol/wire.h"
#include "reddnd/catalog/kept.h"
#include "reddnd/catalog/settings.h"
#include "reddnd/program/program.h"
#include "util/cleanup.h"
#include "util/file.h"
#include "util/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- which program, and with which params ---- */

/* 0; -ENOENT: no such file; other errors have been reported */
static int read_program(
	struct settings *l, const config_setting_t *s, const char *path, struct catalog_offload *o)
{
	CLEANUP(cleanup_close) int fd = file_open(path, O_RDONLY);
	CLEANUP(cleanup_free) char *text = malloc(PROGRAM_MAX_SOURCE + 1);
	long len;

	if (fd == -ENOENT)
		return -ENOENT;
	/* One byte more than a program may have: the compiler reports what is too long */
	len = fd < 0 ? fd : text ? file_read(fd, text, PROGRAM_MAX_SOURCE + 1) : -ENOMEM;
	if (len < 0) {
		settings_wrong(l, s, "program %s cannot be read: %s", path, file_error((int)len));
		return -EIO;
	}
	o->path = strdup(path);
	o->text = steal_ptr(&text);
	o->text_len = (size_t)len;
	return 0;
}

static void restore_program(
	struct settings *l, const config_setting_t *s, const char *name, struct catalog_offload *o)
{
	const struct kept_program *p = l->kept->programs + l->catalog->noffloads;

	if (l->catalog->noffloads >= l->kept->nprograms || p->path.len == 0) {
		settings_wrong(l, s, "program %s was not kept", name);
		return;
	}
	o->path = strndup((const char *)p->path.at, p->path.len);
	o->text = malloc(p->text.len + 1);
	if (!o->text)
		return;
	memcpy(o->text, p->text.at, p->text.len);
	o->text_len = p->text.len;
}

/* That is @name.rdn in the first of the directories "programs" that has it */
static void find_program(
	struct settings *l, const config_setting_t *s, const char *name, struct catalog_offload *o)
{
	const struct catalog *c = l->catalog;

	if (l->kept) {
		restore_program(l, s, name, o);
		return;
	}
	for (unsigned i = 0; i < c->nprograms; i++) {
		CLEANUP(cleanup_free) char *path = NULL;

		if (asprintf(&path, "%s/%s.rdn", c->programs[i], name) < 0 ||
			read_program(l, s, path, o) != -ENOENT)
			return;
	}
	settings_wrong(l, s, "there is no program %s.rdn in %s%s; see \"programs\"", name, c->programs[0],
		c->nprograms > 1 ? ", nor in the other directories" : "");
}

/* The setting "program" of @offload: reads the file. "/x/y.rdn" is that file; "y" is one to be found */
static void programs_parse(struct settings *l, const config_setting_t *s, void *offload)
{
	const char *name = config_setting_get_string(s);

	if (name[0] != '/' && !text_is_name(name, CATALOG_NAME_MAX))
		settings_wrong_value(l, s,
			"the name of a program in the directories of \"programs\", or an absolute path");
	else if (name[0] != '/')
		find_program(l, s, name, offload);
	else if (l->kept)
		restore_program(l, s, name, offload);
	else if (read_program(l, s, name, offload) == -ENOENT)
		settings_wrong(l, s, "there is no program %s", name);
}

/* That holds @s; "name" may stand behind it */
static const char *name_of(const config_setting_t *s)
{
	const char *name = "";

	config_setting_lookup_string(config_setting_parent(s), "name", &name);
	return name;
}

static bool sets(const struct catalog_offload *o, const char *param)
{
	return settings_index(o->params, o->nparams, sizeof(*o->params), param) < o->nparams;
}

/* The group "params" of @offload */
static void programs_parse_params(struct settings *l, const config_setting_t *s, void *offload)
{
	struct catalog_offload *o = offload;

	for (int i = 0; i < config_setting_length(s); i++) {
		const config_setting_t *p = config_setting_get_elem(s, (unsigned)i);
		const char *name = config_setting_name(p);
		struct catalog_setting *set = &o->params[o->nparams];

		if (o->nparams == CATALOG_PARAMS_MAX)
			settings_wrong(l, p, "a program has at most %d params", CATALOG_PARAMS_MAX);
		else if (sets(o, name))
			settings_wrong(l, p, "offload \"%s\": its name sets param \"%s\"", o->name, name);
		else if (strlen(name) > CATALOG_NAME_MAX || !settings_amount(p, &set->value))
			settings_wrong(l, p,
				"offload \"%s\": param \"%s\" must be set to a number, as in 4 or \"64K\"",
				*o->name ? o->name : name_of(s), name);
		else
			strcpy(o->params[o->nparams++].name, name);
	}
}

int catalog_compile(const struct catalog_offload *o, const struct catalog_stored *in,
	const struct program_setting *more, unsigned nmore, const struct program_target *target,
	struct program **program, char **messages)
{
	const struct program_source source = {.name = o->path, .text = o->text, .len = o->text_len};
	struct program_setting set[2 * CATALOG_PARAMS_MAX];
	struct program_stored stored[CATALOG_BINDINGS_MAX];
	struct program_target there = *target;
	unsigned n = 0;

	there.stored = stored;
	for (; in && there.nstored < in->n; there.nstored++)
		stored[there.nstored] = (struct program_stored){
			in->region[there.nstored].name, in->region[there.nstored].stored};
	for (; n < o->nparams; n++)
		set[n] = (struct program_setting){.name = o->params[n].name, .value = o->params[n].value};
	for (unsigned i = 0; i < nmore && n < COUNT(set); i++)
		if (!sets(o, more[i].name))
			set[n++] = more[i];
	return program_compile(&source, set, n, &there, program, messages);
}

/* ---- which memory each region of it is ---- */

static const struct {
	const char *name;
	enum catalog_part part, of_memcached;
} parts[] = {
	{"buckets", CATALOG_BUCKETS, CATALOG_CACHE_TABLES},
	{"heap", CATALOG_HEAP, CATALOG_WHOLE},
	{"items", CATALOG_WHOLE, CATALOG_CACHE_ITEMS},
	{"live", CATALOG_LIVE, CATALOG_CACHE_LIVE},
};

/* Sets *@part to that of a @memcached or a table, CATALOG_WHOLE if it has none of that name. False: nothing
 * has */
static bool part_named(const char *name, bool memcached, uint8_t *part)
{
	for (unsigned i = 0; i < COUNT(parts); i++)
		if (strcmp(name, parts[i].name) == 0) {
			*part = (uint8_t)(memcached ? parts[i].of_memcached : parts[i].part);
			return true;
		}
	return false;
}

static const char *kind_of(const struct catalog_region *r)
{
	return r->raw ? "raw" : r->memcached ? "memcached" : r->store ? "store" : "table";
}

#define PARTS_OF(r)                                                                                          \
	((r)->memcached ? "\"NAME.buckets\", \"NAME.items\" or \"NAME.live\""                                \
			: "\"NAME.buckets\", \"NAME.heap\" or \"NAME.live\"")

static unsigned refer(struct settings *l, const config_setting_t *s, const char *name)
{
	const struct catalog *c = l->catalog;

	return settings_refer(l, s, "region", name, c->regions, c->nregions, sizeof(*c->regions));
}

/* The setting "region" of @offload: where all regions without a binding of their own are */
static void bindings_parse_region(struct settings *l, const config_setting_t *s, void *offload)
{
	struct catalog_offload *o = offload;

	o->region = refer(l, s, config_setting_get_string(s));
	o->has_region = o->region < l->catalog->nregions;
}

/* X = "region" or "region.part"; names may have dots themselves */
static void parse_one(struct settings *l, const config_setting_t *s, struct catalog_offload *o)
{
	struct catalog_binding *b = &o->bindings[o->nbindings];
	const char *value = config_setting_get_string(s);
	char name[2 * CATALOG_NAME_MAX] = "";
	const struct catalog_region *r;
	char *dot;

	if (!value || strlen(config_setting_name(s)) > CATALOG_NAME_MAX || strlen(value) >= sizeof(name)) {
		settings_wrong(l, s,
			"region \"%s\" must be bound to a region, as in \"users\" or \"users.heap\"",
			config_setting_name(s));
		return;
	}
	strcpy(name, value);
	strcpy(b->name, config_setting_name(s));
	dot = strrchr(name, '.');
	b->part = CATALOG_WHOLE;
	if (dot && part_named(dot + 1, false, &b->part))
		*dot++ = '\0';
	else
		dot = NULL;
	b->region = refer(l, s, name);
	if (b->region == l->catalog->nregions)
		return;
	r = &l->catalog->regions[b->region];
	if (dot)
		part_named(dot, r->memcached, &b->part);
	if (r->raw ? !dot : b->part != CATALOG_WHOLE)
		o->nbindings++;
	else if (r->raw)
		settings_wrong(
			l, s, "region \"%s\" is no table and has no parts; write its name alone", name);
	else
		settings_wrong(
			l, s, "region \"%s\" is a %s; name a part of it: %s", name, kind_of(r), PARTS_OF(r));
}

/* The group "regions" of @offload */
static void bindings_parse(struct settings *l, const config_setting_t *s, void *offload)
{
	struct catalog_offload *o = offload;

	for (int i = 0; i < config_setting_length(s); i++) {
		const config_setting_t *b = config_setting_get_elem(s, (unsigned)i);

		if (o->nbindings == CATALOG_BINDINGS_MAX)
			settings_wrong(l, b, "a program has at most %d regions", CATALOG_BINDINGS_MAX);
		else
			parse_one(l, b, o);
	}
}

static const struct catalog_binding *binding(const struct catalog_offload *o, const char *name)
{
	unsigned i = settings_index(o->bindings, o->nbindings, sizeof(*o->bindings), name);

	return i < o->nbindings ? &o->bindings[i] : NULL;
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
	if (!b && !r->raw)
		part_named(name, r->memcached, &bound->part);
	if (!r->raw && bound->part == CATALOG_WHOLE) {
		snprintf(why, size,
			"region \"%s\" of the program is no part of %s \"%s\", which has buckets, %s and "
			"live",
			name, kind_of(r), r->name, r->memcached ? "items" : "heap");
		return -EINVAL;
	}
	if (!writable || r->writable || r->store)
		return 0;
	snprintf(why, size, "the program writes to region \"%s\", but \"%s\" is not declared writable = true",
		name, r->name);
	return -EINVAL;
}

static void check_apart(struct settings *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program *p, const struct catalog_binding *bound)
{
	for (unsigned i = 0; i < p->nregions; i++)
		for (unsigned k = 0; k < i; k++)
			if (bound[i].region == bound[k].region && bound[i].part == bound[k].part &&
				(p->regions[i].writable || p->regions[k].writable))
				settings_wrong(l, group,
					"offload \"%s\": regions \"%s\" and \"%s\" of its program are both "
					"\"%s\", and it writes to one of them; bind them to two regions",
					o->name, p->regions[k].name, p->regions[i].name,
					l->catalog->regions[bound[i].region].name);
}

/* Line of the first READ in region @i, or 0 */
static unsigned read_line(const struct chain_desc *d, unsigned i)
{
	for (unsigned s = 0; d && s < d->nsteps; s++)
		if (d->steps[s].verb == CHAIN_READ && d->steps[s].remote.kind == CHAIN_AT_REGION &&
			d->steps[s].remote.index == i)
			return d->steps[s].line;
	return 0;
}

/* The keys of these parts let a NIC gather from them, and nothing else: rnic_region_window() */
static void check_reads(struct settings *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program *p, const struct catalog_binding *bound)
{
	for (unsigned i = 0; i < p->nregions; i++) {
		const uint8_t part = bound[i].part;
		unsigned line = read_line(p->desc, i);

		line = line ? line : read_line(p->loop, i);
		if (line && (part == CATALOG_HEAP || part == CATALOG_LIVE || part == CATALOG_CACHE_LIVE))
			settings_wrong(l, group,
				"offload \"%s\": line %u of its program reads in \"%s\", which is the %s of "
				"\"%s\": a program can only send that, as in \"write %s -> slot\"",
				o->name, line, p->regions[i].name,
				part == CATALOG_HEAP ? "heap" : "live line",
				l->catalog->regions[bound[i].region].name, p->regions[i].name);
	}
}

static const char *part_name(uint8_t part)
{
	unsigned i = 0;

	while (parts[i].part != part)
		i++;
	return parts[i].name;
}

/* libreddn asks for buckets of a table or store, or puts there, and takes what they lead to for records of
 * its heap. Regions with other names are the program's own. */
static void check_shape(struct settings *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program *p, const struct catalog_binding *bound)
{
	const struct catalog_region *table = NULL, *r;
	const char *const shape = program_shape_name(p->shape);
	const char *const kind = p->shape == PROGRAM_PUT ? "store" : "table";
	bool has_buckets = false;
	uint8_t part;

	for (unsigned i = 0; i < p->nregions; i++) {
		const char *name = p->regions[i].name;

		has_buckets |= bound[i].part == CATALOG_BUCKETS;
		if (!part_named(name, false, &part) || part == CATALOG_WHOLE)
			continue;
		r = &l->catalog->regions[bound[i].region];
		if (p->shape == PROGRAM_PUT ? !r->store : r->raw || r->memcached) {
			settings_wrong(l, group,
				"offload \"%s\": its program has shape %s and needs a region of kind "
				"\"%s\"; "
				"\"%s\" is of kind \"%s\"",
				o->name, shape, kind, r->name, kind_of(r));
			return;
		}
		table = table ? table : r;
		if (r == table && bound[i].part == part)
			continue;
		settings_wrong(l, group,
			"offload \"%s\": its program has shape %s, so its region \"%s\" must be "
			"\"%s.%s\"; it "
			"is \"%s.%s\"",
			o->name, shape, name, table->name, name, r->name, part_name(bound[i].part));
		return;
	}
	if (!has_buckets)
		settings_wrong(l, group,
			"offload \"%s\": its program has shape %s, and none of its regions is the buckets "
			"of a "
			"%s",
			o->name, shape, kind);
	else if (p->shape == PROGRAM_PUT && !p->image->publish.there)
		settings_wrong(l, group, "offload \"%s\": its program has shape put, and publishes nothing",
			o->name);
}

/* Extents come from a store, and it has to learn what becomes of them: from the NIC, since the CPU's atomics
 * do not exclude those of a NIC, and of each instance before the next one is in its slot */
static int check_published(const struct catalog *c, const struct catalog_offload *o, const struct program *p,
	char *why, size_t size)
{
	struct catalog_binding to, from;
	const struct catalog_region *store;
	const char *const name = p->regions[p->image->publish.region].name;

	if (!p->payload.max)
		return text_why(-EINVAL, why, size,
			"its program publishes a constant locator in \"%s\", and a store keeps account of "
			"its extents alone; a \"payload\" is published in one, also one of no bytes",
			name);
	catalog_bind(c, o, name, true, &to, why, size);
	catalog_bind(c, o, p->regions[p->payload.region].name, false, &from, why, size);
	store = &c->regions[to.region];
	if (!store->store || to.part != CATALOG_BUCKETS)
		return text_why(-EINVAL, why, size,
			"its program publishes in \"%s\", so that must be the buckets of a region of kind "
			"\"store\"; \"%s\" is of kind \"%s\"",
			name, store->name, kind_of(store));
	if (from.region != to.region || from.part != CATALOG_HEAP)
		return text_why(-EINVAL, why, size,
			"its program publishes in \"%s.buckets\", so \"%s\", which its payload is in, must "
			"be "
			"\"%s.heap\"",
			store->name, p->regions[p->payload.region].name, store->name);
	if (o->engine == CATALOG_CPU)
		return text_why(-EINVAL, why, size,
			"its program publishes, which only a NIC can; set \"engine\" to \"nic\"");
	return 0;
}

int catalog_check_publish(const struct catalog *c, const struct catalog_offload *o, const struct program *p,
	char *why, size_t size)
{
	const struct chain_publish *publish = &p->image->publish;
	struct catalog_binding bound;

	for (unsigned i = 0; i < p->nregions; i++) {
		if (!p->regions[i].writable || (publish->there && publish->region == i))
			continue;
		catalog_bind(c, o, p->regions[i].name, true, &bound, why, size);
		if (c->regions[bound.region].store)
			return text_why(-EINVAL, why, size,
				"the program writes to region \"%s\", and in a store, as \"%s\" is, only a "
				"publish changes something",
				p->regions[i].name, c->regions[bound.region].name);
	}
	return publish->there ? check_published(c, o, p, why, size) : 0;
}

static bool has_region(const struct program *p, const char *name)
{
	for (unsigned i = 0; i < p->nregions; i++)
		if (strcmp(p->regions[i].name, name) == 0)
			return true;
	return false;
}

/* Reports at @group each region of @p that is bound to nothing suitable, each binding that @p has no region
 * for, regions that are the same memory although @p writes to one of them: the order of a chain relies on
 * their being different; the first region of a program with a shape that is not the part of its name of one
 * table or store; READs of what can only be sent; and what catalog_check_publish() finds */
static void bindings_check(struct settings *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program *p)
{
	struct catalog_binding bound[PROGRAM_MAX_REGIONS];
	const unsigned before = l->nerrors;
	char why[300];

	for (unsigned i = 0; i < p->nregions; i++) {
		if (catalog_bind(l->catalog, o, p->regions[i].name, p->regions[i].writable, &bound[i], why,
			    sizeof(why)) == 0)
			continue;
		settings_wrong(l, group, "offload \"%s\": %s", o->name, why);
		bound[i].region = l->catalog->nregions + i; /* no other one's */
	}
	check_apart(l, group, o, p, bound);
	if (p->shape != PROGRAM_OPAQUE && l->nerrors == before)
		check_shape(l, group, o, p, bound);
	if (l->nerrors == before && catalog_check_publish(l->catalog, o, p, why, sizeof(why)) < 0)
		settings_wrong(l, group, "offload \"%s\": %s", o->name, why);
	if (l->nerrors == before)
		check_reads(l, group, o, p, bound);
	for (unsigned b = 0; b < o->nbindings; b++)
		if (!has_region(p, o->bindings[b].name))
			settings_wrong(l, group, "offload \"%s\": its program has no region \"%s\"", o->name,
				o->bindings[b].name);
}

/* ---- offloads ---- */

#define LOOP_BUDGET_MAX (UINT64_C(1) << 40)

enum { DEPTH_DEFAULT = 64, INSTANCES_MIN = 4, INSTANCES_MAX = 32768, BUDGET_MIN_US = 10000 };

static void parse_instances(struct settings *l, const config_setting_t *s, void *object)
{
	struct catalog_offload *o = object;
	long long n = settings_integer(s);

	if (n == 0 || (n >= INSTANCES_MIN && n <= INSTANCES_MAX && (n & (n - 1)) == 0))
		o->instances = (uint32_t)n;
	else
		settings_wrong_value(l, s, "0 or a power of two from 4 to 32768");
}

static void parse_policy(struct settings *l, const config_setting_t *s, struct verdict_policy *policy)
{
	if (config_setting_type(s) != CONFIG_TYPE_STRING ||
		verdict_policy_parse(config_setting_get_string(s), policy) < 0)
		settings_wrong(l, s,
			"\"%s\" must be \"log\", \"throttle:RATE:TIME\", \"terminate\" or \"ban:TIME\", as "
			"in \"throttle:100:60s\" or \"ban:60s\"",
			config_setting_name(s));
}

/* One for all kinds of verdicts, or a group of some kinds */
static void parse_on_error(struct settings *l, const config_setting_t *s, void *object)
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
				"unreachable, time and loop",
				config_setting_name(p));
		else
			parse_policy(l, p, &o->on_error[kind]);
	}
}

enum { LOOP_RATE_MIN = 1000, LOOP_RATE_DEFAULT = 1000000, LOOP_RATE_MAX = 100000000 };

#define OFFLOAD(member) SETTINGS_FIELD(struct catalog_offload, member)

#define A_PROGRAM "the name of a program"

/* Is read when the offload is known */
static void parse_later(struct settings *l, const config_setting_t *s, void *object)
{
	(void)l;
	(void)s;
	(void)object;
}

/* A whole has none of the last ones, and its parts have none of the first ones */
enum { RULES_OF_WHOLES = 13, RULES_OF_KEYS = 2 };

static const struct settings_rule offload_rules[] = {
	{"name", SETTINGS_A_NAME, SETTINGS_NAME, OFFLOAD(name), .required = true},
	{"program", A_PROGRAM, SETTINGS_PARSE(SETTINGS_STRING, programs_parse)},
	{"region", "the name of a region", SETTINGS_PARSE(SETTINGS_STRING, bindings_parse_region)},
	{"regions", "a group: { nodes = \"users\"; }", SETTINGS_PARSE(SETTINGS_GROUP, bindings_parse)},
	{"mode", "\"recycled\", \"unrolled\" or \"auto\"", SETTINGS_CHOICE, OFFLOAD(mode),
		.words = {[CATALOG_MODE_AUTO] = "auto",
			[CATALOG_RECYCLED] = "recycled",
			[CATALOG_UNROLLED] = "unrolled"}},
	ENTRIES_ENGINE(OFFLOAD(engine)),
	{"loop_budget", "a number of iterations from 1 to \"1024G\", as in 10000 or \"1M\"", SETTINGS_SIZE,
		OFFLOAD(loop_budget), 1, LOOP_BUDGET_MAX},
	{"loop_rate", "a number of WQEs per second", SETTINGS_NUMBER, OFFLOAD(loop_rate), LOOP_RATE_MIN,
		LOOP_RATE_MAX},
	{"put", "a group: { depth_max = 16; }", SETTINGS_PARSE(SETTINGS_GROUP, parse_later)},
	{"put_if", "a group: { depth_max = 16; }", SETTINGS_PARSE(SETTINGS_GROUP, parse_later)},
	{"mget", "a group: { keys = [4, 16]; }", SETTINGS_PARSE(SETTINGS_GROUP, parse_later)},
	{"exists", "a group: { keys = [16, 64]; }", SETTINGS_PARSE(SETTINGS_GROUP, parse_later)},
	{"exists_exact", "a group: { keys = [16]; }", SETTINGS_PARSE(SETTINGS_GROUP, parse_later)},
	{"params", "a group: { probes = 2; }", SETTINGS_PARSE(SETTINGS_GROUP, programs_parse_params)},
	{"depth_max", "a number of requests", SETTINGS_NUMBER, OFFLOAD(depth_max), 1, REDDN_WIRE_MAX_DEPTH},
	{"instances", "a power of two, or 0", SETTINGS_PARSE(SETTINGS_INT, parse_instances)},
	{"wqe_budget", "a number of WQEs", SETTINGS_NUMBER, OFFLOAD(wqe_budget), 1, UINT16_MAX},
	{"time_budget", "a time of at least 10 ms, as in \"250ms\" or \"2s\"", SETTINGS_TIME,
		OFFLOAD(time_budget), BUDGET_MIN_US},
	{"on_error", "\"terminate\", or a group: { time = \"log\"; }",
		SETTINGS_PARSE(SETTINGS_STRING | SETTINGS_GROUP, parse_on_error)},
	{"keys", "a list of numbers of keys: [4, 16]", SETTINGS_PARSE(SETTINGS_ARRAY, parse_later)},
	{"cpu_above", "a number of keys", SETTINGS_NUMBER, OFFLOAD(cpu_above), 1, REDDN_WIRE_KEYS},
};

static void check_loop(struct settings *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program *p)
{
	if (p->loop && !o->loop_budget && !o->time_budget)
		settings_wrong(l, group,
			"offload \"%s\": its program has a loop without a bound; set \"time_budget\" or "
			"\"loop_budget\", after which the daemon ends it",
			o->name);
	if (!p->loop && o->loop_budget)
		settings_wrong(l, group,
			"offload \"%s\": all loops of its program have bounds; \"loop_budget\" is for others",
			o->name);
}

/* Loops have bounds, in the program or in the catalog, so the WQEs of a request are known before it comes */
int catalog_check_budget(const struct catalog_offload *o, const struct program *p, char *why, size_t size)
{
	uint64_t wqes = program_wqes(p) + program_loop_wqes(p, o->loop_budget);

	if (!o->wqe_budget)
		return 0;
	if (p->loop && !o->loop_budget) {
		snprintf(why, size, "its loop has no bound, so a \"wqe_budget\" needs a \"loop_budget\"");
		return -EINVAL;
	}
	if (wqes <= o->wqe_budget)
		return 0;
	snprintf(why, size, "a request takes %" PRIu64 " WQEs, \"wqe_budget\" is %u", wqes, o->wqe_budget);
	return -E2BIG;
}

DEFINE_CLEANUP(struct program *, program_free)

/* With the program for a device that needs the fewest WQEs, @target or one that also trusts fences, where the
 * configuration does or the CPU may execute it, and checks no indices: every other device needs as many */
static void check_budget(struct settings *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program_target *target)
{
	struct program_target fewest = *target;
	CLEANUP(program_freep) struct program *p = NULL;
	CLEANUP(cleanup_free) char *messages = NULL;
	char why[200];
	int r = 0;

	fewest.fenced_enables = l->catalog->fenced_enables || o->engine != CATALOG_NIC;
	fewest.ignores_index = o->mode != CATALOG_RECYCLED;
	if (o->wqe_budget && catalog_compile(o, NULL, NULL, 0, &fewest, &p, &messages) == 0)
		r = catalog_check_budget(o, p, why, sizeof(why));
	if (r < 0)
		settings_wrong(l, group, "offload \"%s\": %s%s", o->name, why,
			r == -E2BIG ? ", on the device that needs the fewest" : "");
}

/* Compiles for a device that has everything: what a real one lacks is found when it is opened */
static void check_program(struct settings *l, const config_setting_t *group, const struct catalog_offload *o)
{
	const struct program_target any = {.masked_atomics = true, .calc = PROGRAM_CALC};
	CLEANUP(program_freep) struct program *p = NULL;
	CLEANUP(cleanup_free) char *messages = NULL;

	if (catalog_compile(o, NULL, NULL, 0, &any, &p, &messages)) {
		settings_wrong(l, group, "offload \"%s\": its program has mistakes", o->name);
		if (messages)
			fputs(messages, l->errors);
		return;
	}
	check_loop(l, group, o, p);
	check_budget(l, group, o, &any);
	bindings_check(l, group, o, p);
}

/* Its settings have been read, without a mistake if there were @before: it is the next one of the catalog */
static void add(struct settings *l, const config_setting_t *group, struct catalog_offload *o, unsigned before)
{
	struct catalog *c = l->catalog;
	unsigned other = settings_index(c->offloads, c->noffloads, sizeof(*o), o->name);

	if (o->instances && o->instances < 2u * o->depth_max)
		settings_wrong(l, group, "\"instances\" is %u; it must be at least twice \"depth_max\" (%u)",
			o->instances, o->depth_max);
	if (*o->name && other < c->noffloads)
		settings_wrong(l, group, "offload \"%s\" is already declared at %s; names must differ",
			o->name, c->offloads[other].where);
	if (l->nerrors == before)
		check_program(l, group, o);
	c->noffloads++;
}

/* ---- an offload without a program: the gets from a table or a store, and its parts ---- */

/* `kind` as in wire.h. Of those with a number of keys: how many a request may have. Others: 0, of a store */
static const struct part {
	const char *setting; /* the group of its settings, */
	const char *program;
	uint8_t kind, least, most;
} parts_of_whole[] = {
	{"put", "store-put", REDDN_WIRE_PART_PUT, 0, 0}, /* which every store has */
	{"put_if", "store-put-if", REDDN_WIRE_PART_PUT_IF, 0, 0},
	{"mget", "hash-mget", 0, 2, REDDN_WIRE_RECORDS},
	{"exists", "hash-exists", REDDN_WIRE_PART_EXISTS, 1, REDDN_WIRE_KEYS},
	{"exists_exact", "hash-exists-exact", REDDN_WIRE_PART_EXISTS, 1, REDDN_WIRE_RECORDS},
};

/* False: its name would be too long, and it is none */
static bool name_part(struct settings *l, const config_setting_t *group, const struct catalog_offload *whole,
	struct catalog_offload *o)
{
	char name[2 * CATALOG_NAME_MAX];
	const int len = reddn_wire_part_name(name, sizeof(name), whole->name, o->part);

	if (len <= CATALOG_NAME_MAX) {
		strcpy(o->name, name);
		return true;
	}
	settings_wrong(l, group,
		"offload \"%s\": \"%s\" must be a name, too: its own has at most %zu characters", whole->name,
		name, CATALOG_NAME_MAX - (size_t)len + strlen(whole->name));
	return false;
}

/* Which engine answers so many keys */
static void choose_engine(
	struct settings *l, const config_setting_t *own, struct catalog_offload *o, unsigned keys)
{
	if (o->cpu_above && o->engine != CATALOG_AUTO)
		settings_wrong(l, config_setting_get_member(own, "cpu_above"),
			"\"cpu_above\" is for offloads whose \"engine\" is \"auto\"");
	else if (keys <= o->cpu_above)
		o->cpu_above = 0;
	else if (o->cpu_above)
		o->engine = CATALOG_CPU;
}

/* @own: its settings, or NULL. @keys: of a request; 0: of those that put */
static void add_part(struct settings *l, const config_setting_t *group, const struct catalog_offload *whole,
	const struct part *p, const config_setting_t *own, unsigned keys)
{
	struct catalog_offload *o = &l->catalog->offloads[l->catalog->noffloads];
	const size_t nrules = COUNT(offload_rules) - RULES_OF_WHOLES - (keys ? 0 : RULES_OF_KEYS);
	unsigned before = l->nerrors;

	o->part = (uint8_t)(p->kind | keys);
	if (!name_part(l, group, whole, o))
		return;
	o->where = settings_where(l, group);
	o->entry = whole->entry;
	o->has_region = true;
	o->region = whole->region;
	o->engine = keys ? whole->engine : CATALOG_NIC;
	o->mode = keys || whole->mode == CATALOG_UNROLLED ? whole->mode : CATALOG_MODE_AUTO;
	o->depth_max = whole->depth_max;
	o->loop_rate = LOOP_RATE_DEFAULT;
	o->time_budget = whole->time_budget;
	memcpy(o->on_error, whole->on_error, sizeof(o->on_error));
	if (keys)
		o->params[o->nparams++] = (struct catalog_setting){"keys", keys};
	find_program(l, group, p->program, o);
	if (own)
		settings_group(l, own, "in a part of an offload", offload_rules + RULES_OF_WHOLES, nrules, o);
	choose_engine(l, own, o, keys);
	add(l, group, o, before);
}

/* One for each number of keys in the group @own; *@n: how many such parts the whole has */
static void add_parts(struct settings *l, const config_setting_t *group, const struct catalog_offload *whole,
	const struct part *p, const config_setting_t *own, unsigned *n)
{
	const config_setting_t *all = config_setting_get_member(own, "keys");
	long long before = p->least - 1;

	if (!all || !config_setting_length(all))
		settings_wrong(l, own,
			"\"%s\" of offload \"%s\" has no \"keys\"; set it to a list, as [4, 16]", p->setting,
			whole->name);
	for (int i = 0; all && i < config_setting_length(all); i++, (*n)++) {
		const config_setting_t *s = config_setting_get_elem(all, (unsigned)i);
		const long long keys = settings_integer(s);

		if (keys <= before || keys > p->most || *n == REDDN_WIRE_PARTS) {
			settings_wrong(l, s,
				"\"%s\" of offload \"%s\" has numbers of keys from %u to %u, the smallest "
				"first, and an offload has %d such parts in all",
				p->setting, whole->name, p->least, p->most, REDDN_WIRE_PARTS);
			return;
		}
		before = keys;
		add_part(l, group, whole, p, own, (unsigned)keys);
	}
}

/* @group has no program */
static void parse_whole(
	struct settings *l, const config_setting_t *group, struct catalog_offload *whole, unsigned before)
{
	const bool is_store = l->catalog->regions[whole->region].store;
	unsigned n = 0;

	find_program(l, group, "hash-get", whole);
	add(l, group, whole, before);
	for (const struct part *p = parts_of_whole; p < parts_of_whole + COUNT(parts_of_whole); p++) {
		const config_setting_t *own = config_setting_get_member(group, p->setting);

		if (own && p->most)
			add_parts(l, group, whole, p, own, &n);
		else if (own && !is_store)
			settings_wrong(l, own, "\"%s\" is for offloads of a store", p->setting);
		else if (own || (is_store && !p->most && p->kind == REDDN_WIRE_PART_PUT))
			add_part(l, group, whole, p, own, 0);
	}
}

/* It has a program, and so no parts */
static void check_no_parts(struct settings *l, const config_setting_t *group, const struct catalog_offload *o)
{
	for (const struct part *p = parts_of_whole; p < parts_of_whole + COUNT(parts_of_whole); p++)
		if (config_setting_get_member(group, p->setting))
			settings_wrong(l, group, "offload \"%s\": \"%s\" means nothing beside \"program\"",
				o->name, p->setting);
}

static bool is_of_table(const struct catalog *c, const struct catalog_offload *o)
{
	return o->has_region && !c->regions[o->region].raw && !c->regions[o->region].memcached;
}

void entries_parse_offload(struct settings *l, const config_setting_t *group)
{
	struct catalog *c = l->catalog;
	struct catalog_offload *o = &c->offloads[c->noffloads];
	bool has_program = config_setting_get_member(group, "program");
	unsigned before = l->nerrors;

	o->where = settings_where(l, group);
	o->entry = (unsigned)config_setting_index(group);
	o->engine = c->engine;
	o->depth_max = DEPTH_DEFAULT;
	o->loop_rate = LOOP_RATE_DEFAULT;
	for (unsigned k = 0; k < VERDICT_KINDS; k++)
		o->on_error[k].action = VERDICT_TERMINATE;
	settings_group(l, group, "in an offload", offload_rules, COUNT(offload_rules) - RULES_OF_KEYS, o);
	if (!has_program && is_of_table(c, o)) {
		parse_whole(l, group, o, before);
		return;
	}
	if (has_program)
		check_no_parts(l, group, o);
	else
		settings_wrong(l, group,
			"\"program\" is missing in an offload; set it to " A_PROGRAM
			", or \"region\" to that of a table or a store");
	add(l, group, o, before);
}
