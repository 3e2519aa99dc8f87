/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/bindings.h"

#include "reddnd/program/program.h"

#include <errno.h>
#include <string.h>

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

#define PARTS_OF(r)                                                                                          \
	((r)->memcached ? "\"NAME.buckets\", \"NAME.items\" or \"NAME.live\""                                \
			: "\"NAME.buckets\", \"NAME.heap\" or \"NAME.live\"")

static unsigned refer(struct settings *l, const config_setting_t *s, const char *name)
{
	const struct catalog *c = l->catalog;

	return settings_refer(l, s, "region", name, c->regions, c->nregions, sizeof(*c->regions));
}

void bindings_parse_region(struct settings *l, const config_setting_t *s, void *offload)
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
		settings_wrong(l, s, "region \"%s\" is %s; name a part of it: %s", name,
			r->memcached ? "a memcached" : "a table", PARTS_OF(r));
}

void bindings_parse(struct settings *l, const config_setting_t *s, void *offload)
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
			name, r->memcached ? "memcached" : "table", r->name, r->memcached ? "items" : "heap");
		return -EINVAL;
	}
	if (!writable || r->writable)
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
			if (bound[i].region == bound[k].region &&
				(p->regions[i].writable || p->regions[k].writable))
				settings_wrong(l, group,
					"offload \"%s\": regions \"%s\" and \"%s\" of its program are both "
					"\"%s\", and it writes to one of them; bind them to two regions",
					o->name, p->regions[k].name, p->regions[i].name,
					l->catalog->regions[bound[i].region].name);
}

static const char *part_name(uint8_t part)
{
	unsigned i = 0;

	while (parts[i].part != part)
		i++;
	return parts[i].name;
}

/* libreddn asks for buckets of a table, and takes what they lead to for records of its heap. Regions with
 * other names are the program's own. */
static void check_table(struct settings *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program *p, const struct catalog_binding *bound)
{
	const struct catalog_region *table = NULL, *r;
	bool has_buckets = false;
	uint8_t part;

	for (unsigned i = 0; i < p->nregions; i++) {
		const char *name = p->regions[i].name;

		has_buckets |= bound[i].part == CATALOG_BUCKETS;
		if (!part_named(name, false, &part) || part == CATALOG_WHOLE)
			continue;
		r = &l->catalog->regions[bound[i].region];
		if (r->raw || r->memcached) {
			settings_wrong(l, group,
				"offload \"%s\": its program has shape table and needs a region of kind "
				"\"table\"; "
				"\"%s\" is of kind \"%s\"",
				o->name, r->name, r->raw ? "raw" : "memcached");
			return;
		}
		table = table ? table : r;
		if (r == table && bound[i].part == part)
			continue;
		settings_wrong(l, group,
			"offload \"%s\": its program has shape table, so its region \"%s\" must be "
			"\"%s.%s\"; it "
			"is \"%s.%s\"",
			o->name, name, table->name, name, r->name, part_name(bound[i].part));
		return;
	}
	if (!has_buckets)
		settings_wrong(l, group,
			"offload \"%s\": its program has shape table, and none of its regions is the buckets "
			"of a "
			"table",
			o->name);
}

static bool has_region(const struct program *p, const char *name)
{
	for (unsigned i = 0; i < p->nregions; i++)
		if (strcmp(p->regions[i].name, name) == 0)
			return true;
	return false;
}

void bindings_check(struct settings *l, const config_setting_t *group, const struct catalog_offload *o,
	const struct program *p)
{
	struct catalog_binding bound[PROGRAM_MAX_REGIONS];
	const unsigned before = l->nerrors;
	char why[200];

	for (unsigned i = 0; i < p->nregions; i++) {
		if (catalog_bind(l->catalog, o, p->regions[i].name, p->regions[i].writable, &bound[i], why,
			    sizeof(why)) == 0)
			continue;
		settings_wrong(l, group, "offload \"%s\": %s", o->name, why);
		bound[i].region = l->catalog->nregions + i; /* no other one's */
	}
	check_apart(l, group, o, p, bound);
	if (p->shape == PROGRAM_TABLE && l->nerrors == before)
		check_table(l, group, o, p, bound);
	for (unsigned b = 0; b < o->nbindings; b++)
		if (!has_region(p, o->bindings[b].name))
			settings_wrong(l, group, "offload \"%s\": its program has no region \"%s\"", o->name,
				o->bindings[b].name);
}
