/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/catalog.h"

#include "libclient/wire.h"
#include "reddnd/util/cleanup.h"
#include "reddnd/util/text.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <libconfig.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define ARENA_MIN (4ull << 20)
#define ARENA_MAX (64ull << 30)

enum { DEPTH_DEFAULT = 64, INSTANCES_MIN = 4, INSTANCES_MAX = 32768 };

struct load {
	const char *path;
	struct catalog *catalog;
	FILE *errors;
	unsigned nerrors;
};

/* One setting of a group: @parse is called with a setting that has one of the allowed types */
struct rule {
	const char *name;
	unsigned types; /* bits: 1 << CONFIG_TYPE_* */
	const char *type_words;
	bool required;
	void (*parse)(struct load *l, const config_setting_t *s, void *object);
};

enum {
	T_STRING = 1 << CONFIG_TYPE_STRING,
	T_INT = 1 << CONFIG_TYPE_INT,
	T_INT64 = 1 << CONFIG_TYPE_INT64,
	T_ARRAY = 1 << CONFIG_TYPE_ARRAY,
	T_LIST = 1 << CONFIG_TYPE_LIST,
};

static const char *file_of(const struct load *l, const config_setting_t *s)
{
	const char *file = config_setting_source_file(s);

	return file ? file : l->path;
}

static void wrong(struct load *l, const config_setting_t *s, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void wrong(struct load *l, const config_setting_t *s, const char *format, ...)
{
	va_list ap;

	l->nerrors++;
	fprintf(l->errors, "%s:%u: ", file_of(l, s), config_setting_source_line(s));
	va_start(ap, format);
	vfprintf(l->errors, format, ap);
	va_end(ap);
	fputc('\n', l->errors);
}

static char *where(const struct load *l, const config_setting_t *s)
{
	char *text;

	return asprintf(&text, "%s:%u", file_of(l, s), config_setting_source_line(s)) < 0 ? NULL : text;
}

/* ---- groups ----------------------------------------------------------------------------------------------- */

static void unknown_setting(
	struct load *l, const config_setting_t *s, const char *group, const struct rule *rules, size_t nrules)
{
	const char *words[16], *nearest;
	char list[256] = "";
	size_t used = 0;

	assert(nrules <= COUNT(words));
	for (size_t i = 0; i < nrules; i++) {
		words[i] = rules[i].name;
		used += (size_t)snprintf(
			list + used, sizeof list - used, "%s%s", i ? ", " : "", rules[i].name);
	}
	nearest = text_nearest(config_setting_name(s), words, nrules);
	if (nearest)
		wrong(l, s, "unknown setting \"%s\" %s; did you mean \"%s\"?", config_setting_name(s), group,
			nearest);
	else
		wrong(l, s, "unknown setting \"%s\" %s; known are %s", config_setting_name(s), group, list);
}

static void parse_group(struct load *l, const config_setting_t *group, const char *words,
	const struct rule *rules, size_t nrules, void *object)
{
	bool seen[16] = {false};

	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		size_t r = 0;

		while (r < nrules && strcmp(rules[r].name, config_setting_name(s)) != 0)
			r++;
		if (r == nrules) {
			unknown_setting(l, s, words, rules, nrules);
			continue;
		}
		seen[r] = true;
		if (!(rules[r].types & 1u << config_setting_type(s)))
			wrong(l, s, "\"%s\" has the wrong type; it must be %s", rules[r].name,
				rules[r].type_words);
		else
			rules[r].parse(l, s, object);
	}
	for (size_t r = 0; r < nrules; r++)
		if (rules[r].required && !seen[r])
			wrong(l, group, "\"%s\" is missing %s; set it to %s", rules[r].name, words,
				rules[r].type_words);
}

/* Calls @parse for each group of a list */
static void parse_list(struct load *l, const config_setting_t *list, const char *what,
	void (*parse)(struct load *l, const config_setting_t *group))
{
	for (int i = 0; i < config_setting_length(list); i++) {
		const config_setting_t *s = config_setting_get_elem(list, (unsigned)i);

		if (config_setting_is_group(s))
			parse(l, s);
		else
			wrong(l, s, "entry %d of \"%s\" is no group; write { name = \"...\"; ... }", i + 1,
				what);
	}
}

static void parse_name(struct load *l, const config_setting_t *s, char *name)
{
	const char *value = config_setting_get_string(s);

	if (!text_is_name(value, CATALOG_NAME_MAX))
		wrong(l, s,
			"\"%s\" cannot be a name; 1 to %d letters, digits, '.', '_' or '-', beginning with a "
			"letter or digit",
			value, CATALOG_NAME_MAX);
	else
		strcpy(name, value);
}

static bool parse_integer(
	struct load *l, const config_setting_t *s, long long min, long long max, long long *value)
{
	*value = config_setting_type(s) == CONFIG_TYPE_INT64 ? config_setting_get_int64(s)
							     : config_setting_get_int(s);
	if (*value >= min && *value <= max)
		return true;
	wrong(l, s, "\"%s\" is %lld; it must be %lld to %lld", config_setting_name(s), *value, min, max);
	return false;
}

/* ---- regions ---------------------------------------------------------------------------------------------- */

static void region_name(struct load *l, const config_setting_t *s, void *object)
{
	parse_name(l, s, ((struct catalog_region *)object)->name);
}

static void region_path(struct load *l, const config_setting_t *s, void *object)
{
	const char *path = config_setting_get_string(s);

	if (path[0] != '/')
		wrong(l, s, "path \"%s\" is relative; give it from the root: \"/...\"", path);
	else
		((struct catalog_region *)object)->path = strdup(path);
}

static void region_kind(struct load *l, const config_setting_t *s, void *object)
{
	(void)object;
	if (strcmp(config_setting_get_string(s), "table") != 0)
		wrong(l, s, "unknown kind \"%s\"; it must be \"table\"", config_setting_get_string(s));
}

static const struct rule region_rules[] = {
	{"name", T_STRING, "a name", true, region_name},
	{"path", T_STRING, "the path of a file", true, region_path},
	{"kind", T_STRING, "\"table\"", true, region_kind},
};

static void parse_region(struct load *l, const config_setting_t *group)
{
	struct catalog *c = l->catalog;
	struct catalog_region *r = &c->regions[c->nregions];

	r->where = where(l, group);
	parse_group(l, group, "in a region", region_rules, COUNT(region_rules), r);
	for (unsigned i = 0; i < c->nregions; i++)
		if (*r->name && strcmp(c->regions[i].name, r->name) == 0)
			wrong(l, group, "region \"%s\" is already declared at %s; names must differ", r->name,
				c->regions[i].where);
	c->nregions++;
}

/* ---- offloads --------------------------------------------------------------------------------------------- */

static void offload_name(struct load *l, const config_setting_t *s, void *object)
{
	parse_name(l, s, ((struct catalog_offload *)object)->name);
}

static void offload_program(struct load *l, const config_setting_t *s, void *object)
{
	(void)object;
	if (strcmp(config_setting_get_string(s), "hash-get") != 0)
		wrong(l, s, "unknown program \"%s\"; it must be \"hash-get\"", config_setting_get_string(s));
}

static void offload_region(struct load *l, const config_setting_t *s, void *object)
{
	const struct catalog *c = l->catalog;
	const char *name = config_setting_get_string(s), *nearest;
	const char **words;

	for (unsigned i = 0; i < c->nregions; i++)
		if (strcmp(c->regions[i].name, name) == 0) {
			((struct catalog_offload *)object)->region = i;
			return;
		}
	words = calloc(c->nregions + 1, sizeof *words);
	for (unsigned i = 0; words && i < c->nregions; i++)
		words[i] = c->regions[i].name;
	nearest = words ? text_nearest(name, words, c->nregions) : NULL;
	if (nearest)
		wrong(l, s, "no region \"%s\"; did you mean \"%s\"?", name, nearest);
	else
		wrong(l, s, "no region \"%s\"; declare it in \"regions\"", name);
	free(words);
}

static void offload_mode(struct load *l, const config_setting_t *s, void *object)
{
	const char *mode = config_setting_get_string(s);

	if (strcmp(mode, "sequential") != 0 && strcmp(mode, "parallel") != 0)
		wrong(l, s, "unknown mode \"%s\"; it must be \"sequential\" or \"parallel\"", mode);
	else
		((struct catalog_offload *)object)->parallel = strcmp(mode, "parallel") == 0;
}

static void offload_depth_max(struct load *l, const config_setting_t *s, void *object)
{
	long long v;

	if (parse_integer(l, s, 1, REDDN_WIRE_MAX_DEPTH, &v))
		((struct catalog_offload *)object)->depth_max = (uint16_t)v;
}

static void offload_instances(struct load *l, const config_setting_t *s, void *object)
{
	struct catalog_offload *o = object;
	long long v;

	if (config_setting_get_int(s) == 0 && config_setting_type(s) == CONFIG_TYPE_INT)
		return;
	if (!parse_integer(l, s, INSTANCES_MIN, INSTANCES_MAX, &v))
		return;
	if (v & (v - 1))
		wrong(l, s, "\"instances\" is %lld; it must be a power of two", v);
	else
		o->instances = (uint32_t)v;
}

static const struct rule offload_rules[] = {
	{"name", T_STRING, "a name", true, offload_name},
	{"program", T_STRING, "\"hash-get\"", true, offload_program},
	{"region", T_STRING, "the name of a region", true, offload_region},
	{"mode", T_STRING, "\"sequential\" or \"parallel\"", false, offload_mode},
	{"depth_max", T_INT | T_INT64, "a number of requests", false, offload_depth_max},
	{"instances", T_INT | T_INT64, "a power of two, or 0", false, offload_instances},
};

static void parse_offload(struct load *l, const config_setting_t *group)
{
	struct catalog *c = l->catalog;
	struct catalog_offload *o = &c->offloads[c->noffloads];

	o->where = where(l, group);
	o->depth_max = DEPTH_DEFAULT;
	parse_group(l, group, "in an offload", offload_rules, COUNT(offload_rules), o);
	if (o->instances && o->instances < 2u * o->depth_max)
		wrong(l, group, "\"instances\" is %u; it must be at least twice \"depth_max\" (%u)",
			o->instances, o->depth_max);
	for (unsigned i = 0; i < c->noffloads; i++)
		if (*o->name && strcmp(c->offloads[i].name, o->name) == 0)
			wrong(l, group, "offload \"%s\" is already declared at %s; names must differ",
				o->name, c->offloads[i].where);
	c->noffloads++;
}

/* ---- the top ------------------------------------------------------------------------------------------------ */

/* "1.2.3.4:5", "1.2.3.4", "[::]:5", "[::]" */
static bool parse_address(const char *text, struct catalog_listen *listen)
{
	bool v6 = text[0] == '[';
	const char *begin = text + v6, *end = v6 ? strchr(begin, ']') : begin + strcspn(begin, ":");
	uint8_t binary[16];
	const char *port;
	char *rest;
	long v = REDDN_WIRE_PORT;

	if (!end || (size_t)(end - begin) >= sizeof listen->address)
		return false;
	memcpy(listen->address, begin, (size_t)(end - begin));
	listen->address[end - begin] = '\0';
	if (inet_pton(v6 ? AF_INET6 : AF_INET, listen->address, binary) != 1)
		return false;
	port = end + v6;
	if (*port) {
		if (*port != ':' || port[1] < '0' || port[1] > '9')
			return false;
		v = strtol(port + 1, &rest, 10);
		if (*rest || v < 1 || v > UINT16_MAX)
			return false;
	}
	listen->port = (uint16_t)v;
	return true;
}

static void listen_one(struct load *l, const config_setting_t *s)
{
	struct catalog *c = l->catalog;

	if (config_setting_type(s) != CONFIG_TYPE_STRING)
		wrong(l, s, "\"listen\" holds something else than text; write \"address:port\"");
	else if (c->nlisten == CATALOG_LISTEN_MAX)
		wrong(l, s, "too many addresses to listen on; at most %d", CATALOG_LISTEN_MAX);
	else if (!parse_address(config_setting_get_string(s), &c->listen[c->nlisten]))
		wrong(l, s,
			"cannot listen on \"%s\"; write a numeric address and a port: \"0.0.0.0:7471\", "
			"\"[::]:7471\"",
			config_setting_get_string(s));
	else
		c->nlisten++;
}

static void top_listen(struct load *l, const config_setting_t *s, void *object)
{
	(void)object;
	if (config_setting_type(s) == CONFIG_TYPE_STRING) {
		listen_one(l, s);
		return;
	}
	if (config_setting_length(s) == 0)
		wrong(l, s, "\"listen\" is empty; give at least one \"address:port\"");
	for (int i = 0; i < config_setting_length(s); i++)
		listen_one(l, config_setting_get_elem(s, (unsigned)i));
}

static void top_device(struct load *l, const config_setting_t *s, void *object)
{
	const char *name = config_setting_get_string(s);

	(void)object;
	if (*name && !text_is_name(name, sizeof l->catalog->device - 1))
		wrong(l, s, "\"%s\" cannot be a device; give a name that ibv_devices lists, or \"\"", name);
	else
		strcpy(l->catalog->device, name);
}

static void top_arena(struct load *l, const config_setting_t *s, void *object)
{
	uint64_t v = 0;
	int r = 0;

	(void)object;
	if (config_setting_type(s) == CONFIG_TYPE_STRING)
		r = text_parse_size(config_setting_get_string(s), &v);
	else
		v = (uint64_t)(config_setting_type(s) == CONFIG_TYPE_INT64 ? config_setting_get_int64(s)
									   : config_setting_get_int(s));
	if (r < 0 || v < ARENA_MIN || v > ARENA_MAX)
		wrong(l, s, "\"arena\" is no size that will do; write 4M to 64G, as in \"256M\"");
	else
		l->catalog->arena = v;
}

static void top_ignore(struct load *l, const config_setting_t *s, void *object)
{
	(void)l;
	(void)s;
	(void)object;
}

/* Regions and offloads are parsed afterwards, in an order that does not depend on the file's */
static const struct rule top_rules[] = {
	{"listen", T_STRING | T_ARRAY | T_LIST, "\"address:port\" or a list of such", false, top_listen},
	{"device", T_STRING, "the name of a device", false, top_device},
	{"arena", T_STRING | T_INT | T_INT64, "a size as in \"256M\"", false, top_arena},
	{"regions", T_LIST, "a list of groups: ( { ... }, { ... } )", false, top_ignore},
	{"offloads", T_LIST, "a list of groups: ( { ... }, { ... } )", false, top_ignore},
};

static int parse_top(struct load *l, const config_t *config)
{
	const config_setting_t *regions = config_lookup(config, "regions");
	const config_setting_t *offloads = config_lookup(config, "offloads");
	struct catalog *c = l->catalog;

	parse_group(
		l, config_root_setting(config), "in the configuration", top_rules, COUNT(top_rules), NULL);
	if (c->nlisten == 0)
		parse_address("0.0.0.0", &c->listen[c->nlisten++]);
	if (regions && config_setting_is_list(regions)) {
		c->regions = calloc((size_t)config_setting_length(regions) + 1, sizeof *c->regions);
		if (!c->regions)
			return -ENOMEM;
		parse_list(l, regions, "regions", parse_region);
	}
	if (offloads && config_setting_is_list(offloads)) {
		c->offloads = calloc((size_t)config_setting_length(offloads) + 1, sizeof *c->offloads);
		if (!c->offloads)
			return -ENOMEM;
		parse_list(l, offloads, "offloads", parse_offload);
	}
	return 0;
}

/* Includes are relative to the file that holds them, which libconfig thinks is in one directory */
static void read_config(struct load *l, config_t *config)
{
	CLEANUP(cleanup_free) char *path = strdup(l->path);

	if (path)
		config_set_include_dir(config, dirname(path));
	if (config_read_file(config, l->path) == CONFIG_TRUE)
		return;
	l->nerrors++;
	if (config_error_type(config) == CONFIG_ERR_FILE_IO)
		fprintf(l->errors, "%s: cannot be read: %s\n", l->path, strerror(errno));
	else
		fprintf(l->errors, "%s:%d: %s; see libconfig's manual for the syntax\n",
			config_error_file(config) ? config_error_file(config) : l->path,
			config_error_line(config), config_error_text(config));
}

DEFINE_CLEANUP(struct catalog *, catalog_free)

int catalog_load(const char *path, struct catalog **out, char **errors)
{
	CLEANUP(catalog_freep) struct catalog *catalog = calloc(1, sizeof *catalog);
	struct load l = {.path = path, .catalog = catalog};
	size_t size;
	config_t config;
	int r = 0;

	*errors = NULL;
	if (!catalog)
		return -ENOMEM;
	catalog->arena = 256ull << 20;
	l.errors = open_memstream(errors, &size);
	if (!l.errors)
		return -ENOMEM;
	config_init(&config);
	read_config(&l, &config);
	if (l.nerrors == 0)
		r = parse_top(&l, &config);
	config_destroy(&config);
	fclose(l.errors);
	if (r < 0)
		return r;
	if (l.nerrors)
		return -EINVAL;
	*out = steal_ptr(&catalog);
	return 0;
}

void catalog_free(struct catalog *c)
{
	for (unsigned i = 0; i < c->nregions; i++) {
		free(c->regions[i].path);
		free(c->regions[i].where);
	}
	for (unsigned i = 0; i < c->noffloads; i++)
		free(c->offloads[i].where);
	free(c->regions);
	free(c->offloads);
	free(c);
}
