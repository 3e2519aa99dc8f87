/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/catalog.h"
#include "util/number.h"

#include "protocol/wire.h"
#include "reddnd/catalog/includes.h"
#include "reddnd/catalog/settings.h"
#include "util/cleanup.h"
#include "util/text.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <libconfig.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND_US = 1000000 };

#define ARENA_MIN (4ull << 20)
#define ARENA_MAX (64ull << 30)

/* ---- the top
 * ------------------------------------------------------------------------------------------------ */

/* "1.2.3.4:5", "1.2.3.4", "[::]:5", "[::]" */
static bool parse_address(const char *text, struct catalog_listen *listen)
{
	bool v6 = text[0] == '[';
	const char *begin = text + v6, *end = v6 ? strchr(begin, ']') : begin + strcspn(begin, ":");
	uint8_t binary[16];
	const char *port;
	char *rest;
	long v = REDDN_WIRE_PORT;

	if (!end || (size_t)(end - begin) >= sizeof(listen->address))
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
		settings_wrong(l, s, "\"listen\" holds something else than text; write \"address:port\"");
	else if (c->nlisten == CATALOG_LISTEN_MAX)
		settings_wrong(l, s, "too many addresses to listen on; at most %d", CATALOG_LISTEN_MAX);
	else if (!parse_address(config_setting_get_string(s), &c->listen[c->nlisten]))
		settings_wrong(l, s,
			"cannot listen on \"%s\"; write a numeric address and a port: \"0.0.0.0:7471\", "
			"\"[::]:7471\"",
			config_setting_get_string(s));
	else
		c->nlisten++;
}

static void top_metrics(struct load *l, const config_setting_t *s, void *object)
{
	const char *text = config_setting_get_string(s);

	(void)object;
	l->catalog->serves_metrics = true;
	if (!parse_address(text, &l->catalog->metrics) || l->catalog->metrics.port == REDDN_WIRE_PORT)
		settings_wrong(l, s,
			"cannot serve metrics at \"%s\"; write a numeric address and a port: "
			"\"127.0.0.1:9471\"",
			text);
}

static void top_listen(struct load *l, const config_setting_t *s, void *object)
{
	(void)object;
	if (config_setting_type(s) == CONFIG_TYPE_STRING) {
		listen_one(l, s);
		return;
	}
	if (config_setting_length(s) == 0)
		settings_wrong(l, s, "\"listen\" is empty; give at least one \"address:port\"");
	for (int i = 0; i < config_setting_length(s); i++)
		listen_one(l, config_setting_get_elem(s, (unsigned)i));
}

static void top_device(struct load *l, const config_setting_t *s, void *object)
{
	const char *name = config_setting_get_string(s);

	(void)object;
	if (*name && !text_is_name(name, sizeof(l->catalog->device) - 1))
		settings_wrong(
			l, s, "\"%s\" cannot be a device; give a name that ibv_devices lists, or \"\"", name);
	else
		strcpy(l->catalog->device, name);
}

static void top_connect_timeout(struct load *l, const config_setting_t *s, void *object)
{
	uint64_t us;

	(void)object;
	if (number_parse_duration(config_setting_get_string(s), &us) < 0 || us < SECOND_US)
		settings_wrong(l, s,
			"\"connect_timeout\" is \"%s\"; it must be a time of at least 1 s, as in \"10s\"",
			config_setting_get_string(s));
	else
		l->catalog->connect_timeout = us;
}

static void top_arena(struct load *l, const config_setting_t *s, void *object)
{
	uint64_t v;

	(void)object;
	if (!settings_amount(s, &v) || v < ARENA_MIN || v > ARENA_MAX)
		settings_wrong(l, s, "\"arena\" is no size that will do; write 4M to 64G, as in \"256M\"");
	else
		l->catalog->arena = v;
}

static void top_control(struct load *l, const config_setting_t *s, void *object)
{
	const char *path = config_setting_get_string(s);

	(void)object;
	if (path[0] != '/' || strlen(path) >= CATALOG_SOCKET_MAX)
		settings_wrong(l, s,
			"\"%s\" cannot be a control socket; give an absolute path of at most %d characters",
			path, CATALOG_SOCKET_MAX - 1);
	else
		l->catalog->control = strdup(path);
}

static void add_programs(struct load *l, const config_setting_t *s, const char *path)
{
	struct catalog *c = l->catalog;

	if (!path || path[0] != '/')
		settings_wrong(
			l, s, "\"programs\" must be a directory, or a list of them, from the root: \"/...\"");
	else if (c->nprograms == CATALOG_PROGRAMS_MAX)
		settings_wrong(l, s, "too many directories of programs; at most %d", CATALOG_PROGRAMS_MAX);
	else
		c->programs[c->nprograms++] = strdup(path);
}

static void top_programs(struct load *l, const config_setting_t *s, void *object)
{
	(void)object;
	if (config_setting_type(s) == CONFIG_TYPE_STRING) {
		add_programs(l, s, config_setting_get_string(s));
		return;
	}
	for (int i = 0; i < config_setting_length(s); i++)
		add_programs(l, s, config_setting_get_string(config_setting_get_elem(s, (unsigned)i)));
}

static void top_ignore(struct load *l, const config_setting_t *s, void *object)
{
	(void)l;
	(void)s;
	(void)object;
}

/* Regions, offloads and tenants are parsed afterwards, in an order that does not depend on the file's */
static const struct rule top_rules[] = {
	{"listen", T_STRING | T_ARRAY | T_LIST, "\"address:port\" or a list of such", false, top_listen},
	{"device", T_STRING, "the name of a device", false, top_device},
	{"control", T_STRING, "an absolute path", false, top_control},
	{"metrics", T_STRING, "\"address:port\"", false, top_metrics},
	{"connect_timeout", T_STRING, "a time: \"10s\"", false, top_connect_timeout},
	{"arena", T_STRING | T_INT | T_INT64, "a size as in \"256M\"", false, top_arena},
	{"programs", T_STRING | T_ARRAY | T_LIST, "a directory or a list of such", false, top_programs},
	{"regions", T_LIST, "a list of groups: ( { ... }, { ... } )", false, top_ignore},
	{"offloads", T_LIST, "a list of groups: ( { ... }, { ... } )", false, top_ignore},
	{"tenants", T_LIST, "a list of groups: ( { ... }, { ... } )", false, top_ignore},
};

static int parse_tenants(struct load *l, const config_setting_t *tenants)
{
	struct catalog *c = l->catalog;
	bool given = tenants && config_setting_is_list(tenants);

	c->tenants = calloc((given ? (size_t)config_setting_length(tenants) : 0) + 1, sizeof(*c->tenants));
	if (!c->tenants)
		return -ENOMEM;
	if (given && config_setting_length(tenants) == 0)
		settings_wrong(
			l, tenants, "\"tenants\" is empty: nobody could connect; leave it out for everyone");
	if (given)
		settings_list(l, tenants, "tenants", settings_parse_tenant);
	else
		strcpy(c->tenants[c->ntenants++].name, "everyone");
	return 0;
}

static int parse_top(struct load *l, const config_t *config)
{
	const config_setting_t *regions = config_lookup(config, "regions");
	const config_setting_t *offloads = config_lookup(config, "offloads");
	struct catalog *c = l->catalog;

	settings_group(
		l, config_root_setting(config), "in the configuration", top_rules, COUNT(top_rules), NULL);
	if (c->nlisten == 0)
		parse_address("0.0.0.0", &c->listen[c->nlisten++]);
	if (c->nprograms == 0) {
		c->programs[c->nprograms++] = strdup(REDDND_PROGRAMS_LOCAL);
		c->programs[c->nprograms++] = strdup(REDDND_PROGRAMS);
	}
	if (regions && config_setting_is_list(regions)) {
		c->regions = calloc((size_t)config_setting_length(regions) + 1, sizeof(*c->regions));
		if (!c->regions)
			return -ENOMEM;
		settings_list(l, regions, "regions", settings_parse_region);
	}
	if (offloads && config_setting_is_list(offloads)) {
		c->offloads = calloc((size_t)config_setting_length(offloads) + 1, sizeof(*c->offloads));
		if (!c->offloads)
			return -ENOMEM;
		settings_list(l, offloads, "offloads", settings_parse_offload);
	}
	return parse_tenants(l, config_lookup(config, "tenants"));
}

/* Includes are relative to the file that holds them, which libconfig thinks is in one directory */
static void read_config(struct load *l, config_t *config)
{
	CLEANUP(cleanup_free) char *path = strdup(l->path);
	const char *dir = path ? dirname(path) : ".";

	config_set_include_dir(config, dir);
	l->nerrors += includes_check(l->path, dir, l->errors);
	if (l->nerrors)
		return;
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
	CLEANUP(catalog_freep) struct catalog *catalog = calloc(1, sizeof(*catalog));
	struct load l = {.path = path, .catalog = catalog};
	size_t size;
	config_t config;
	int r = 0;

	*errors = NULL;
	if (!catalog)
		return -ENOMEM;
	catalog->arena = 256ull << 20;
	catalog->connect_timeout = 10 * SECOND_US;
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
	free(c->control);
	free(c->tenants);
	free(c->regions);
	free(c->offloads);
	free(c);
}
