/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/settings.h"

#include "util/host.h"
#include "util/number.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH "an absolute path: \"/...\""
#define KIND "\"table\", \"store\", \"raw\" or \"memcached\""
#define SERVER "the address of a memcached, \"HOST:PORT\" or the path of its socket"
#define FILE_MAX (1ull << 62)
#define STALE_MAX_DEFAULT (600 * 1000000ull)
#define SIZE_MAX_DEFAULT (1ull << 30)
#define REGION(member) SETTINGS_FIELD(struct catalog_region, member)

/* The name of a user, or a number */
static void parse_owner(struct settings *l, const config_setting_t *s, void *region)
{
	struct catalog_region *r = region;
	const char *name = config_setting_get_string(s);
	const struct passwd *user;
	uint64_t id;

	r->owned = true;
	if (!name) {
		id = (uint64_t)settings_integer(s);
	} else if (number_parse_decimal(name, 0, UINT32_MAX - 1, &id) < 0) {
		user = getpwnam(name);
		if (!user) {
			settings_wrong(l, s,
				"there is no user \"%s\"; \"owner\" is the name or number of the user "
				"whom the file of the region belongs to",
				name);
			return;
		}
		id = user->pw_uid;
	}
	if (id >= UINT32_MAX)
		settings_wrong_value(l, s, "the name or number of a user");
	r->owner = (uid_t)id;
}

static void parse_kind(struct settings *l, const config_setting_t *s, void *region)
{
	struct catalog_region *r = region;
	const char *kind = config_setting_get_string(s);

	r->raw = strcmp(kind, "raw") == 0;
	r->memcached = strcmp(kind, "memcached") == 0;
	r->store = strcmp(kind, "store") == 0;
	if (!r->raw && !r->memcached && !r->store && strcmp(kind, "table") != 0)
		settings_wrong_value(l, s, KIND);
}

static void parse_server(struct settings *l, const config_setting_t *s, void *region)
{
	struct catalog_region *r = region;
	const char *server = config_setting_get_string(s);

	char host[256];
	uint16_t port = 0;

	if (*server != '/' && (!host_split(server, strlen(server), host, sizeof(host), &port) || !port))
		settings_wrong_value(l, s, SERVER);
	r->server = strdup(server);
}

static const struct settings_rule region_rules[] = {
	{"name", SETTINGS_A_NAME, SETTINGS_NAME, REGION(name), .required = true},
	{"path", PATH, SETTINGS_PATH, REGION(path)},
	{"handover", "true or false", SETTINGS_FLAG, REGION(handover)},
	{"size_max", "a number of bytes from 1 on, as in \"64M\"", SETTINGS_SIZE, REGION(size_max), 1,
		FILE_MAX},
	{"kind", KIND, SETTINGS_PARSE(SETTINGS_STRING, parse_kind), .required = true},
	{"server", SERVER, SETTINGS_PARSE(SETTINGS_STRING, parse_server)},
	{"stale_max", "a time of at least 1 s, as in \"10s\"", SETTINGS_TIME, REGION(stale_max), 1000000},
	{"writable", "true or false", SETTINGS_FLAG, REGION(writable)},
	{"offset", "a number of bytes, as in 4096 or \"64K\"", SETTINGS_SIZE, REGION(offset), 0, FILE_MAX},
	{"length", "a number of bytes from 1 on, as in 4096 or \"64K\"", SETTINGS_SIZE, REGION(length), 1,
		FILE_MAX},
	{"owner", "the name or number of a user",
		SETTINGS_PARSE(SETTINGS_STRING | SETTINGS_INT, parse_owner)},
};

/* It has a path, or it is handed over; then it has a word for messages in place of a path */
static void check_file(struct settings *l, const config_setting_t *group, struct catalog_region *r)
{
	bool has_path = config_setting_get_member(group, "path");

	if (!r->handover) {
		if (!has_path)
			settings_wrong(l, group,
				"\"path\" is missing in a region; set it to " PATH
				", or set \"handover\" to true");
		if (r->size_max)
			settings_wrong(l, group,
				"only a region whose file is handed over has \"size_max\"; leave it out, or "
				"set "
				"\"handover\" to true");
		return;
	}
	r->size_max = r->size_max ? r->size_max : SIZE_MAX_DEFAULT;
	if (has_path)
		settings_wrong(l, group,
			"a region whose file is handed over has no \"path\"; leave one of the two out");
	else if (asprintf(&r->path, "handover:%s", r->name) < 0)
		r->path = NULL;
	if (!r->owned)
		settings_wrong(l, group,
			"\"owner\" is missing in a region whose file is handed over; set it to the name or "
			"number of "
			"the user who may do that");
}

/* What only regions of one kind have */
static void check_kind(struct settings *l, const config_setting_t *group, struct catalog_region *r)
{
	if (r->memcached) {
		r->stale_max = r->stale_max ? r->stale_max : STALE_MAX_DEFAULT;
		if (!r->server)
			settings_wrong(l, group,
				"\"server\" is missing in a region of kind \"memcached\"; set it to " SERVER);
		if (r->handover || r->writable || r->offset || r->length)
			settings_wrong(l, group,
				"a region of kind \"memcached\" is the file that memcached makes, which it "
				"alone "
				"writes to; leave out \"handover\", \"writable\", \"offset\" and \"length\"");
		return;
	}
	if (r->server || r->stale_max)
		settings_wrong(l, group,
			"only a region of kind \"memcached\" has \"server\" and \"stale_max\"; leave them "
			"out");
	if (r->store && (r->handover || r->writable || r->offset || r->length))
		settings_wrong(l, group,
			"a store is the whole of a file that reddnd writes to, and programs that publish in "
			"it; leave out \"handover\", \"writable\", \"offset\" and \"length\"");
	if (r->store)
		return;
	if (r->writable && !r->raw)
		settings_wrong(l, group,
			"a table is written by its writer alone; only regions of kind \"raw\" can be "
			"\"writable\"");
	if (r->writable && r->offset % sizeof(uint64_t))
		settings_wrong(l, group,
			"\"offset\" of a region that is \"writable\" is a multiple of 8, because programs "
			"compare and add in aligned words");
	if ((r->offset || r->length) && !r->raw)
		settings_wrong(l, group,
			"a table is the whole of its file; only regions of kind \"raw\" can have \"offset\" "
			"and "
			"\"length\"");
}

void entries_parse_region(struct settings *l, const config_setting_t *group)
{
	struct catalog *c = l->catalog;
	struct catalog_region *r = &c->regions[c->nregions];
	unsigned other;

	r->where = settings_where(l, group);
	settings_group(l, group, "in a region", region_rules, COUNT(region_rules), r);
	check_kind(l, group, r);
	check_file(l, group, r);
	other = settings_index(c->regions, c->nregions, sizeof(*r), r->name);
	if (*r->name && other < c->nregions)
		settings_wrong(l, group, "region \"%s\" is already declared at %s; names must differ",
			r->name, c->regions[other].where);
	c->nregions++;
}
