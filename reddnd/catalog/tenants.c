/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/address.h"
#include "reddnd/catalog/kept.h"
#include "reddnd/catalog/settings.h"
#include "util/cleanup.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A bucket is filled in steps of a millisecond or so: it must hold what one of them brings */
enum { RATE_MAX = 1000000000, SESSIONS_MAX = 1000000, STEPS_PER_SECOND = 1000, SECOND_US = 1000000 };

/* ---- networks, key, offloads ----------------------------------------------------------------------------
 */

static void parse_network(struct settings *l, const config_setting_t *s, void *object)
{
	const char *text = config_setting_get_string(s);
	struct catalog_tenant *t = object;
	struct catalog_network *n = &t->networks[t->nnetworks];

	if (t->nnetworks == CATALOG_NETWORKS_MAX)
		settings_wrong(l, s, "too many networks of a tenant; at most %d", CATALOG_NETWORKS_MAX);
	else if (!text || !address_parse_network(text, n))
		settings_wrong(l, s,
			"\"%s\" is no network; write an address and the length of its prefix: "
			"\"192.0.2.0/24\", \"2001:db8::/32\"",
			text ? text : "");
	else if (address_has_host_bits(n))
		settings_wrong(l, s, "\"%s\" has bits of a host; they must be 0 behind the prefix", text);
	else
		t->nnetworks++;
}

static void parse_networks(struct settings *l, const config_setting_t *s, void *object)
{
	if (config_setting_length(s) == 0)
		settings_wrong(l, s, "\"networks\" is empty; leave it out for clients from anywhere");
	settings_each(l, s, object, parse_network);
}

/* "credential:NAME" is a file that systemd made readable for this service alone */
static char *key_path(struct settings *l, const config_setting_t *s)
{
	static const char prefix[] = "credential:";
	const char *text = config_setting_get_string(s), *dir = getenv("CREDENTIALS_DIRECTORY");
	char *path = NULL;

	if (strncmp(text, prefix, strlen(prefix)) == 0) {
		text += strlen(prefix);
		if (!text_is_name(text, 255))
			settings_wrong(l, s, "\"%s\" is no name of a credential", text);
		else if (!dir)
			settings_wrong(l, s,
				"there is no credential %s: CREDENTIALS_DIRECTORY is not set; systemd sets "
				"it for LoadCredential= of the service",
				text);
		else if (asprintf(&path, "%s/%s", dir, text) < 0)
			path = NULL;
	} else if (text[0] != '/') {
		settings_wrong_value(l, s, "an absolute path, or \"credential:NAME\"");
	} else {
		path = strdup(text);
	}
	return path;
}

static void restore_key(struct settings *l, const config_setting_t *s, struct catalog_tenant *t)
{
	const struct kept_bytes *key = l->kept->keys + l->catalog->ntenants;

	t->has_key = l->catalog->ntenants < l->kept->nkeys && key->len > 0;
	if (!t->has_key) {
		settings_wrong(l, s, "the key was not kept");
		return;
	}
	memcpy(t->key.bytes, key->at, key->len);
	t->key.len = key->len;
}

static void parse_key(struct settings *l, const config_setting_t *s, void *object)
{
	CLEANUP(cleanup_free) char *path = l->kept ? NULL : key_path(l, s);
	struct catalog_tenant *t = object;
	char why[200];
	struct stat st;
	int r;

	if (l->kept)
		restore_key(l, s, t);
	if (!path)
		return;
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & S_IROTH) {
		settings_wrong(l, s, "key file %s can be read by everybody; chmod o= it", path);
		return;
	}
	r = token_key_read(path, &t->key, why, sizeof(why));
	if (r < 0)
		settings_wrong(l, s, "key file %s: %s", path, why);
	t->has_key = r == 0;
}

static void allow(struct settings *l, const config_setting_t *s, void *object)
{
	const char *name = config_setting_get_string(s);
	const struct catalog *c = l->catalog;
	struct catalog_tenant *t = object;
	unsigned i = settings_refer(
		l, s, "offload", name ? name : "", c->offloads, c->noffloads, sizeof(*c->offloads));

	if (i < c->noffloads)
		t->offloads[t->noffloads++] = i;
}

static void parse_offloads(struct settings *l, const config_setting_t *s, void *object)
{
	struct catalog_tenant *t = object;

	t->offloads = calloc((size_t)config_setting_length(s) + 1, sizeof(*t->offloads));
	if (t->offloads)
		settings_each(l, s, t, allow);
}

bool catalog_allows(const struct catalog_tenant *t, unsigned offload)
{
	for (unsigned i = 0; i < t->noffloads; i++)
		if (t->offloads[i] == offload)
			return true;
	return !t->offloads;
}

/* ---- the group ------------------------------------------------------------------------------------------
 */

#define TENANT(member) SETTINGS_FIELD(struct catalog_tenant, member)

#define PER_SECOND(member) SETTINGS_NUMBER, TENANT(limits.member), 1, RATE_MAX
#define BYTES(member) SETTINGS_SIZE, TENANT(limits.member), 1, INT64_MAX

static const char a_size[] = "a size, as in \"64M\"";

static const struct settings_rule tenant_rules[] = {
	{"name", SETTINGS_A_NAME, SETTINGS_NAME, TENANT(name), .required = true},
	{"networks", "a list of networks: [ \"192.0.2.0/24\" ]",
		SETTINGS_PARSE(SETTINGS_ARRAY, parse_networks)},
	{"key", "an absolute path, or \"credential:NAME\"", SETTINGS_PARSE(SETTINGS_STRING, parse_key)},
	{"offloads", "a list of names: [ \"users\" ]", SETTINGS_PARSE(SETTINGS_ARRAY, parse_offloads)},
	{"sessions", "a number", SETTINGS_NUMBER, TENANT(limits.sessions), 1, SESSIONS_MAX},
	{"depth", "a number of requests", SETTINGS_NUMBER, TENANT(limits.depth), 1, INT32_MAX},
	{"queue_bytes", a_size, BYTES(queue_bytes)},
	{"slot_bytes", a_size, BYTES(slot_bytes)},
	{"extent_bytes", a_size, BYTES(extent_bytes)},
	{"rate", "a number of requests per second", PER_SECOND(rate)},
	{"burst", "a number of requests", PER_SECOND(burst)},
	{"session_rate", "a number of requests per second", PER_SECOND(session_rate)},
	{"session_burst", "a number of requests", PER_SECOND(session_burst)},
	{"bytes_rate", a_size, BYTES(bytes_rate)},
	{"session_bytes_rate", a_size, BYTES(session_bytes_rate)},
	{"connect_rate", "a number of clients per second", PER_SECOND(connect_rate)},
	{"connect_burst", "a number of clients", PER_SECOND(connect_burst)},
	{"idle_timeout", "a time of at least 1 s, as in \"10m\"", SETTINGS_TIME, TENANT(limits.idle_timeout),
		SECOND_US},
};

uint64_t catalog_burst_min(uint64_t rate)
{
	return (rate + STEPS_PER_SECOND - 1) / STEPS_PER_SECOND;
}

static void check_burst(struct settings *l, const config_setting_t *group, const char *prefix, uint64_t rate,
	uint64_t burst, uint64_t least)
{
	if (burst && !rate)
		settings_wrong(l, group, "\"%sburst\" means nothing without \"%srate\"", prefix, prefix);
	else if (burst && burst < least)
		settings_wrong(l, group,
			"\"%sburst\" is %" PRIu64 "; for %" PRIu64
			" requests per second it must be at least %" PRIu64,
			prefix, burst, rate, least);
}

static void check_bursts(
	struct settings *l, const config_setting_t *group, const struct catalog_limits *limits)
{
	check_burst(l, group, "", limits->rate, limits->burst, catalog_burst_min(limits->rate));
	check_burst(l, group, "session_", limits->session_rate, limits->session_burst,
		catalog_burst_min(limits->session_rate));
	check_burst(l, group, "connect_", limits->connect_rate, limits->connect_burst, 0);
}

/* True if a client without a token could belong to both */
static bool overlap(const struct catalog_tenant *a, const struct catalog_tenant *b)
{
	if (a->has_key || b->has_key)
		return false;
	for (unsigned i = 0; i < a->nnetworks; i++)
		for (unsigned j = 0; j < b->nnetworks; j++)
			if (address_same_network(&a->networks[i], &b->networks[j]))
				return true;
	return !a->nnetworks && !b->nnetworks;
}

void entries_parse_tenant(struct settings *l, const config_setting_t *group)
{
	struct catalog *c = l->catalog;
	struct catalog_tenant *t = &c->tenants[c->ntenants];
	unsigned before = l->nerrors;

	t->where = settings_where(l, group);
	settings_group(l, group, "in a tenant", tenant_rules, COUNT(tenant_rules), t);
	check_bursts(l, group, &t->limits);
	for (unsigned i = 0; i < c->ntenants; i++) {
		const struct catalog_tenant *other = &c->tenants[i];

		if (*t->name && strcmp(other->name, t->name) == 0)
			settings_wrong(l, group, "tenant \"%s\" is already declared at %s; names must differ",
				t->name, other->where);
		else if (l->nerrors == before && overlap(other, t))
			settings_wrong(l, group,
				"tenants \"%s\" and \"%s\" have a network in common, and no key to tell them "
				"apart",
				other->name, t->name);
	}
	c->ntenants++;
}
