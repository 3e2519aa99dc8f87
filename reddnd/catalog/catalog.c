/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/catalog.h"

#include "protocol/wire.h"
#include "reddnd/catalog/address.h"
#include "reddnd/catalog/influence.h"
#include "reddnd/catalog/kept.h"
#include "reddnd/catalog/settings.h"
#include "util/cleanup.h"
#include "util/text.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND_US = 1000000 };

#define ARENA_MIN (4ull << 20)
#define ARENA_MAX (64ull << 30)

/* ---- settings of the top --------------------------------------------------------------------------------
 */

/* The one before it that has the same address, or NULL */
static const struct catalog_listen *overlapping(const struct catalog *c, const struct catalog_listen *listen)
{
	for (unsigned i = 0; i < c->nlisten; i++)
		if (address_overlaps(&c->listen[i], listen))
			return &c->listen[i];
	return NULL;
}

static void parse_listen_one(struct settings *l, const config_setting_t *s, void *object)
{
	const char *text = config_setting_get_string(s), *right;
	struct catalog *c = object;
	const struct catalog_listen *other;
	struct catalog_listen listen;

	if (!text)
		settings_wrong(l, s, "\"listen\" holds something else than text; write \"address:port\"");
	else if (c->nlisten == CATALOG_LISTEN_MAX)
		settings_wrong(l, s, "too many addresses to listen on; at most %d", CATALOG_LISTEN_MAX);
	else if ((right = address_parse_listen(text, &listen)))
		settings_wrong(l, s, "cannot listen on \"%s\"; write %s", text, right);
	else if ((other = overlapping(c, &listen)))
		settings_wrong(l, s,
			"\"listen\" has \"%s\" beside %s port %u, which takes its place; leave one out", text,
			other->address, other->port);
	else
		c->listen[c->nlisten++] = listen;
}

static void parse_listen(struct settings *l, const config_setting_t *s, void *object)
{
	if (config_setting_is_aggregate(s) && config_setting_length(s) == 0)
		settings_wrong(l, s, "\"listen\" is empty; give at least one \"address:port\"");
	settings_each(l, s, object, parse_listen_one);
}

static void parse_metrics(struct settings *l, const config_setting_t *s, void *object)
{
	struct catalog *c = object;
	const char *right = address_parse_listen(config_setting_get_string(s), &c->metrics);

	c->serves_metrics = true;
	if (right || c->metrics.port == REDDN_WIRE_PORT)
		settings_wrong_value(l, s, "a numeric address and a port: \"127.0.0.1:9471\"");
}

static bool has_device(const struct catalog *c, const char *name)
{
	for (unsigned i = 0; i < c->ndevices; i++)
		if (strcmp(c->devices[i], name) == 0)
			return true;
	return false;
}

static void parse_one_device(struct settings *l, const config_setting_t *s, void *object)
{
	const char *name = config_setting_get_string(s);
	struct catalog *c = object;

	if (!name || !text_is_name(name, CATALOG_DEVICE_BYTES - 1))
		settings_wrong(l, s, "a device must be a name that ibv_devices lists");
	else if (has_device(c, name))
		settings_wrong(l, s, "\"device\" has %s twice", name);
	else if (c->ndevices == CATALOG_DEVICES_MAX)
		settings_wrong(l, s, "too many devices; at most %d", CATALOG_DEVICES_MAX);
	else
		strcpy(c->devices[c->ndevices++], name);
}

static void parse_device(struct settings *l, const config_setting_t *s, void *object)
{
	const char *name = config_setting_get_string(s);
	struct catalog *c = object;

	if (!name && config_setting_length(s) == 0)
		settings_wrong(l, s, "\"device\" is empty; name at least one device, or leave it out");
	else if (!name)
		settings_each(l, s, object, parse_one_device);
	else if (strcmp(name, "all") == 0)
		c->all_devices = true;
	else if (*name && !text_is_name(name, CATALOG_DEVICE_BYTES - 1))
		settings_wrong_value(l, s, "a name that ibv_devices lists, a list of such, \"all\", or \"\"");
	else if (*name)
		strcpy(c->devices[c->ndevices++], name);
}

static void parse_programs_one(struct settings *l, const config_setting_t *s, void *object)
{
	const char *path = config_setting_get_string(s);
	struct catalog *c = object;

	if (!path || path[0] != '/')
		settings_wrong(
			l, s, "\"programs\" must be an absolute path of a directory, or a list of them");
	else if (c->nprograms == CATALOG_PROGRAMS_MAX)
		settings_wrong(l, s, "too many directories of programs; at most %d", CATALOG_PROGRAMS_MAX);
	else
		c->programs[c->nprograms++] = strdup(path);
}

static void parse_programs(struct settings *l, const config_setting_t *s, void *object)
{
	settings_each(l, s, object, parse_programs_one);
}

static void parse_later(struct settings *l, const config_setting_t *s, void *object)
{
	(void)l;
	(void)s;
	(void)object;
}

#define CATALOG(member) SETTINGS_FIELD(struct catalog, member)

static const char a_list[] = "a list of groups: ( { ... }, { ... } )";

/* Regions, offloads and tenants are parsed afterwards, in an order that does not depend on the file's */
static const struct settings_rule top_rules[] = {
	{"listen", "\"address:port\" or a list of such",
		SETTINGS_PARSE(SETTINGS_STRING | SETTINGS_ARRAY, parse_listen)},
	{"device", "the name of a device, a list of such, or \"all\"",
		SETTINGS_PARSE(SETTINGS_STRING | SETTINGS_ARRAY, parse_device)},
	{"control", "an absolute path of at most 107 characters", SETTINGS_PATH, CATALOG(control),
		.max = CATALOG_SOCKET_MAX - 1},
	{"metrics", "\"address:port\"", SETTINGS_PARSE(SETTINGS_STRING, parse_metrics)},
	{"connect_timeout", "a time of at least 1 s, as in \"10s\"", SETTINGS_TIME, CATALOG(connect_timeout),
		SECOND_US},
	{"refusal_rate", "a number", SETTINGS_NUMBER, CATALOG(refusal_rate), 1, 1000000},
	{"source_prefix", "a number of bits", SETTINGS_NUMBER, CATALOG(source_bits), 32, 128},
	{"arena", "a size from 4M to 64G, as in \"256M\"", SETTINGS_SIZE, CATALOG(arena), ARENA_MIN,
		ARENA_MAX},
	ENTRIES_ENGINE(CATALOG(engine)),
	{"executors", "a number of threads", SETTINGS_NUMBER, CATALOG(executors), 0, 64},
	{"fenced_enables", "true or false", SETTINGS_FLAG, CATALOG(fenced_enables)},
	{"programs", "a directory or a list of such",
		SETTINGS_PARSE(SETTINGS_STRING | SETTINGS_ARRAY, parse_programs)},
	{"regions", a_list, SETTINGS_PARSE(SETTINGS_LIST, parse_later)},
	{"offloads", a_list, SETTINGS_PARSE(SETTINGS_LIST, parse_later)},
	{"tenants", a_list, SETTINGS_PARSE(SETTINGS_LIST, parse_later)},
};

/* An entry may be an offload with those of its puts and all other parts */
enum { MOST_OF_ONE = 3 + REDDN_WIRE_PARTS };

/* The list of that name, or NULL. @entries gets room for MOST_OF_ONE of each entry, and for one more */
static const config_setting_t *prepare_list(
	const config_t *config, const char *name, void **entries, size_t size, int *error)
{
	const config_setting_t *list = config_lookup(config, name);

	if (list && !config_setting_is_list(list))
		list = NULL;
	*entries = calloc((list ? MOST_OF_ONE * (size_t)config_setting_length(list) : 0) + 1, size);
	if (!*entries)
		*error = -ENOMEM;
	return list;
}

/* ---- what programs store for clients, where others read ---- */

struct offload_list {
	struct settings *l;
	const config_setting_t *list;
};

/* Before files are opened, one path is one file. Parts of tables are somewhere in theirs: generation/stored.h
 * looks again */
static bool place_in_path(void *arg, const struct influence_offload *o, unsigned region, uint8_t part,
	struct influence_place *at)
{
	const struct catalog_region *r = &o->catalog->regions[region];
	unsigned i = 0;

	(void)arg;
	(void)part;
	while (strcmp(o->catalog->regions[i].path, r->path) != 0)
		i++;
	*at = (struct influence_place){i, r->offset, r->length ? r->length : UINT64_MAX};
	return r->raw;
}

static void report_influenced(void *arg, const struct influence_offload *o, const char *messages)
{
	struct offload_list *of = arg;

	settings_wrong(of->l, config_setting_get_elem(of->list, o->conf->entry),
		"offload \"%s\": its program has mistakes, with regions into which programs of the catalog "
		"store something",
		o->conf->name);
	if (messages)
		fputs(messages, of->l->errors);
}

static int check_influence(struct settings *l, const config_setting_t *list)
{
	const struct catalog *c = l->catalog;
	CLEANUP(cleanup_free)
	struct influence_offload *offloads = calloc(c->noffloads + 1, sizeof(*offloads));
	CLEANUP(cleanup_free) struct chain_stored *files = calloc(c->nregions + 1, sizeof(*files));
	const struct influence all = {.offloads = offloads,
		.noffloads = c->noffloads,
		.files = files,
		.place = place_in_path,
		.wrong = report_influenced,
		.arg = &(struct offload_list){l, list}};
	bool writable = false;

	if (!offloads || !files)
		return -ENOMEM;
	for (unsigned i = 0; i < c->nregions; i++)
		writable |= c->regions[i].writable;
	for (unsigned i = 0; i < c->noffloads; i++)
		offloads[i] = (struct influence_offload){.catalog = c, .conf = &c->offloads[i]};
	if (writable)
		influence_settle(&all);
	return 0;
}

static int parse_lists(struct settings *l, const config_t *config)
{
	struct catalog *c = l->catalog;
	const config_setting_t *regions, *offloads, *tenants;
	int r = 0;

	regions = prepare_list(config, "regions", (void **)&c->regions, sizeof(*c->regions), &r);
	offloads = prepare_list(config, "offloads", (void **)&c->offloads, sizeof(*c->offloads), &r);
	tenants = prepare_list(config, "tenants", (void **)&c->tenants, sizeof(*c->tenants), &r);
	if (r < 0)
		return r;
	c->has_offloads = offloads;
	if (regions)
		settings_list(l, regions, "regions", entries_parse_region);
	if (offloads)
		settings_list(l, offloads, "offloads", entries_parse_offload);
	if (l->nerrors == 0)
		r = check_influence(l, offloads);
	if (r < 0)
		return r;
	if (!tenants)
		strcpy(c->tenants[c->ntenants++].name, "everyone");
	else if (config_setting_length(tenants) == 0)
		settings_wrong(
			l, tenants, "\"tenants\" is empty: nobody could connect; leave it out for everyone");
	else
		settings_list(l, tenants, "tenants", entries_parse_tenant);
	return 0;
}

static int parse_top(struct settings *l, const config_t *config)
{
	struct catalog *c = l->catalog;

	settings_group(
		l, config_root_setting(config), "in the configuration", top_rules, COUNT(top_rules), c);
	if (c->nlisten == 0)
		address_parse_listen("0.0.0.0", &c->listen[c->nlisten++]);
	if (c->nprograms == 0) {
		c->programs[c->nprograms++] = strdup(REDDND_PROGRAMS_LOCAL);
		c->programs[c->nprograms++] = strdup(REDDND_PROGRAMS);
	}
	return parse_lists(l, config);
}

/* Includes are relative to the file that holds them, which libconfig thinks is in one directory. Not
 * config_read_file(): a pipe can be read once */
static void read_config(struct settings *l, config_t *config)
{
	CLEANUP(cleanup_free) char *path = strdup(l->path), *text = NULL;
	const char *dir = path ? dirname(path) : ".";

	config_set_include_dir(config, dir);
	l->nerrors += scan_configuration(l->path, dir, l->errors, &text);
	if (l->nerrors || config_read_string(config, text) == CONFIG_TRUE)
		return;
	l->nerrors++;
	fprintf(l->errors, "%s:%d: %s; see libconfig's manual for the syntax\n",
		config_error_file(config) ? config_error_file(config) : l->path, config_error_line(config),
		config_error_text(config));
}

static void read_kept(struct settings *l, config_t *config)
{
	if (config_read_string(config, l->kept->text) == CONFIG_TRUE)
		return;
	l->nerrors++;
	fprintf(l->errors, "%s: line %d: %s\n", l->path, config_error_line(config),
		config_error_text(config));
}

/* NULL: no memory */
static char *text_of(config_t *config)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	config_write(config, f);
	fclose(f);
	return text;
}

DEFINE_CLEANUP(struct catalog *, catalog_free)

static int load(const struct settings *from, struct catalog **out, char **errors)
{
	CLEANUP(catalog_freep) struct catalog *catalog = calloc(1, sizeof(*catalog));
	struct settings l = *from;
	size_t size;
	config_t config;
	int r = 0;

	*errors = NULL;
	if (!catalog)
		return -ENOMEM;
	l.catalog = catalog;
	catalog->arena = 1ull << 30;
	catalog->connect_timeout = 10 * SECOND_US;
	catalog->refusal_rate = 1;
	catalog->source_bits = 64;
	l.errors = open_memstream(errors, &size);
	if (!l.errors)
		return -ENOMEM;
	config_init(&config);
	if (l.kept)
		read_kept(&l, &config);
	else
		read_config(&l, &config);
	if (l.nerrors == 0)
		r = parse_top(&l, &config);
	if (r == 0 && l.nerrors == 0) {
		catalog->text = text_of(&config);
		r = catalog->text ? 0 : -ENOMEM;
	}
	config_destroy(&config);
	fclose(l.errors);
	if (r < 0)
		return r;
	if (l.nerrors)
		return -EINVAL;
	*out = steal_ptr(&catalog);
	return 0;
}

int catalog_load(const char *path, struct catalog **catalog, char **errors)
{
	return load(&(struct settings){.path = path}, catalog, errors);
}

int kept_load(const struct kept *kept, struct catalog **catalog, char **errors)
{
	return load(&(struct settings){.path = "the configuration that was last in force", .kept = kept},
		catalog, errors);
}

struct catalog *catalog_ref(struct catalog *c)
{
	c->refs++;
	return c;
}

void catalog_free(struct catalog *c)
{
	if (c->refs > 0) {
		c->refs--;
		return;
	}
	for (unsigned i = 0; i < c->nregions; i++) {
		free(c->regions[i].path);
		free(c->regions[i].server);
		free(c->regions[i].where);
	}
	for (unsigned i = 0; i < c->noffloads; i++) {
		free(c->offloads[i].path);
		free(c->offloads[i].text);
		free(c->offloads[i].where);
	}
	for (unsigned i = 0; i < c->ntenants; i++) {
		token_key_wipe(&c->tenants[i].key);
		free(c->tenants[i].offloads);
		free(c->tenants[i].where);
	}
	for (unsigned i = 0; i < c->nprograms; i++)
		free(c->programs[i]);
	free(c->text);
	free(c->control);
	free(c->tenants);
	free(c->regions);
	free(c->offloads);
	free(c);
}
