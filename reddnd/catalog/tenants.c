/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/settings.h"
#include "util/cleanup.h"
#include "util/number.h"
#include "util/text.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A bucket is filled in steps of a millisecond or so: it must hold what one of them brings */
enum { RATE_MAX = 1000000000, COUNT_MAX = 1000000, STEPS_PER_SECOND = 1000, SECOND_US = 1000000 };

/* ---- networks ---------------------------------------------------------------------------------------------
 */

static void set_v4(uint8_t address[16], const uint8_t v4[4])
{
	memset(address, 0, 10);
	memset(address + 10, 0xff, 2);
	memcpy(address + 12, v4, 4);
}

/* "192.0.2.0/24", "2001:db8::/32", or one address */
static bool parse_network(const char *text, struct catalog_network *n)
{
	const char *slash = strchrnul(text, '/');
	char address[INET6_ADDRSTRLEN];
	uint8_t v4[4];
	unsigned most;
	char *end;
	long bits;

	if ((size_t)(slash - text) >= sizeof(address))
		return false;
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = '\0';
	if (inet_pton(AF_INET, address, v4) == 1) {
		set_v4(n->address, v4);
		most = 32;
	} else if (inet_pton(AF_INET6, address, n->address) == 1) {
		most = 128;
	} else {
		return false;
	}
	bits = *slash ? strtol(slash + 1, &end, 10) : (long)most;
	if (*slash && (slash[1] < '0' || slash[1] > '9' || *end || bits > (long)most))
		return false;
	n->bits = (unsigned)bits + 128 - most;
	return true;
}

static bool is_v4(const uint8_t address[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(address, prefix, sizeof(prefix)) == 0;
}

static bool same_bits(const uint8_t a[16], const uint8_t b[16], unsigned bits)
{
	unsigned bytes = bits / 8;

	return memcmp(a, b, bytes) == 0 &&
	       (bits % 8 == 0 || (uint8_t)((a[bytes] ^ b[bytes]) >> (8 - bits % 8)) == 0);
}

int catalog_match(const struct catalog_tenant *t, const uint8_t address[16])
{
	int best = t->nnetworks ? -1 : 0;

	for (unsigned i = 0; i < t->nnetworks; i++) {
		const struct catalog_network *n = &t->networks[i];

		if (is_v4(address) == is_v4(n->address) && same_bits(address, n->address, n->bits) &&
			(int)n->bits > best)
			best = (int)n->bits;
	}
	return best;
}

static void add_network(struct load *l, const config_setting_t *s, struct catalog_tenant *t)
{
	const char *text = config_setting_get_string(s);
	struct catalog_network *n = &t->networks[t->nnetworks];

	if (t->nnetworks == CATALOG_NETWORKS_MAX) {
		settings_wrong(l, s, "too many networks of a tenant; at most %d", CATALOG_NETWORKS_MAX);
		return;
	}
	if (!text || !parse_network(text, n)) {
		settings_wrong(l, s,
			"\"%s\" is no network; write an address and the length of its prefix: "
			"\"192.0.2.0/24\", \"2001:db8::/32\"",
			text ? text : "");
		return;
	}
	for (unsigned bit = n->bits; bit < 128; bit++)
		if (n->address[bit / 8] & 0x80 >> bit % 8) {
			settings_wrong(
				l, s, "\"%s\" has bits of a host; they must be 0 behind the prefix", text);
			return;
		}
	t->nnetworks++;
}

static void tenant_networks(struct load *l, const config_setting_t *s, void *object)
{
	if (config_setting_length(s) == 0)
		settings_wrong(l, s, "\"networks\" is empty; leave it out for clients from anywhere");
	for (int i = 0; i < config_setting_length(s); i++)
		add_network(l, config_setting_get_elem(s, (unsigned)i), object);
}

/* ---- the key ----------------------------------------------------------------------------------------------
 */

/* "credential:NAME" is a file that systemd made readable for this service alone */
static char *key_path(struct load *l, const config_setting_t *s)
{
	static const char prefix[] = "credential:";
	const char *text = config_setting_get_string(s), *dir = getenv("CREDENTIALS_DIRECTORY");
	char *path = NULL;

	if (strncmp(text, prefix, sizeof(prefix) - 1) == 0) {
		text += sizeof(prefix) - 1;
		if (!text_is_name(text, 255))
			settings_wrong(l, s, "\"%s\" is no name of a credential", text);
		else if (!dir)
			settings_wrong(l, s,
				"there is no credential %s: CREDENTIALS_DIRECTORY is not set; systemd sets "
				"it for "
				"LoadCredential= of the service",
				text);
		else if (asprintf(&path, "%s/%s", dir, text) < 0)
			path = NULL;
	} else if (text[0] != '/') {
		settings_wrong(
			l, s, "key \"%s\" is relative; give it from the root, or \"credential:NAME\"", text);
	} else {
		path = strdup(text);
	}
	return path;
}

static void tenant_key(struct load *l, const config_setting_t *s, void *object)
{
	CLEANUP(cleanup_free) char *path = key_path(l, s);
	struct catalog_tenant *t = object;
	char why[200];
	struct stat st;
	int r;

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

/* ---- offloads ---------------------------------------------------------------------------------------------
 */

bool catalog_allows(const struct catalog_tenant *t, unsigned offload)
{
	for (unsigned i = 0; i < t->noffloads; i++)
		if (t->offloads[i] == offload)
			return true;
	return !t->offloads;
}

static void allow(struct load *l, const config_setting_t *s, struct catalog_tenant *t)
{
	const char *name = config_setting_get_string(s), *near, **words;
	const struct catalog *c = l->catalog;

	for (unsigned i = 0; name && i < c->noffloads; i++)
		if (strcmp(c->offloads[i].name, name) == 0) {
			t->offloads[t->noffloads++] = i;
			return;
		}
	words = calloc(c->noffloads + 1, sizeof(*words));
	for (unsigned i = 0; words && i < c->noffloads; i++)
		words[i] = c->offloads[i].name;
	near = words && name ? text_nearest(name, words, c->noffloads) : NULL;
	settings_wrong(l, s,
		near ? "no offload \"%s\"; did you mean \"%s\"?"
		     : "no offload \"%s\"; declare it in \"offloads\"",
		name ? name : "", near);
	free(words);
}

static void tenant_offloads(struct load *l, const config_setting_t *s, void *object)
{
	struct catalog_tenant *t = object;

	t->offloads = calloc((size_t)config_setting_length(s) + 1, sizeof(*t->offloads));
	for (int i = 0; t->offloads && i < config_setting_length(s); i++)
		allow(l, config_setting_get_elem(s, (unsigned)i), t);
}

/* ---- quotas and rates -------------------------------------------------------------------------------------
 */

static void tenant_name(struct load *l, const config_setting_t *s, void *object)
{
	settings_name(l, s, ((struct catalog_tenant *)object)->name);
}

static void tenant_sessions(struct load *l, const config_setting_t *s, void *object)
{
	long long v;

	if (settings_integer(l, s, 1, COUNT_MAX, &v))
		((struct catalog_tenant *)object)->limits.sessions = (uint32_t)v;
}

static void tenant_depth(struct load *l, const config_setting_t *s, void *object)
{
	long long v;

	if (settings_integer(l, s, 1, INT32_MAX, &v))
		((struct catalog_tenant *)object)->limits.depth = (uint32_t)v;
}

static void tenant_queue_bytes(struct load *l, const config_setting_t *s, void *object)
{
	struct catalog_tenant *t = object;

	if (!settings_amount(s, &t->limits.queue_bytes) || t->limits.queue_bytes == 0)
		settings_wrong(l, s, "\"queue_bytes\" is no size; write it as in \"64M\"");
}

static void tenant_slot_bytes(struct load *l, const config_setting_t *s, void *object)
{
	struct catalog_tenant *t = object;

	if (!settings_amount(s, &t->limits.slot_bytes) || t->limits.slot_bytes == 0)
		settings_wrong(l, s, "\"slot_bytes\" is no size; write it as in \"64M\"");
}

static void per_second(struct load *l, const config_setting_t *s, uint64_t *rate)
{
	long long v;

	if (settings_integer(l, s, 1, RATE_MAX, &v))
		*rate = (uint64_t)v;
}

static void tenant_rate(struct load *l, const config_setting_t *s, void *object)
{
	per_second(l, s, &((struct catalog_tenant *)object)->limits.rate);
}

static void tenant_burst(struct load *l, const config_setting_t *s, void *object)
{
	per_second(l, s, &((struct catalog_tenant *)object)->limits.burst);
}

static void tenant_session_rate(struct load *l, const config_setting_t *s, void *object)
{
	per_second(l, s, &((struct catalog_tenant *)object)->limits.session_rate);
}

static void tenant_session_burst(struct load *l, const config_setting_t *s, void *object)
{
	per_second(l, s, &((struct catalog_tenant *)object)->limits.session_burst);
}

static void tenant_connect_rate(struct load *l, const config_setting_t *s, void *object)
{
	per_second(l, s, &((struct catalog_tenant *)object)->limits.connect_rate);
}

static void tenant_connect_burst(struct load *l, const config_setting_t *s, void *object)
{
	per_second(l, s, &((struct catalog_tenant *)object)->limits.connect_burst);
}

static void bytes_per_second(struct load *l, const config_setting_t *s, uint64_t *to)
{
	if (!settings_amount(s, to) || *to == 0)
		settings_wrong(l, s, "\"%s\" is no size; write it as in \"64M\"", config_setting_name(s));
}

static void tenant_bytes_rate(struct load *l, const config_setting_t *s, void *object)
{
	bytes_per_second(l, s, &((struct catalog_tenant *)object)->limits.bytes_rate);
}

static void tenant_session_bytes_rate(struct load *l, const config_setting_t *s, void *object)
{
	bytes_per_second(l, s, &((struct catalog_tenant *)object)->limits.session_bytes_rate);
}

static void tenant_idle_timeout(struct load *l, const config_setting_t *s, void *object)
{
	uint64_t us;

	if (number_parse_duration(config_setting_get_string(s), &us) < 0 || us < SECOND_US)
		settings_wrong(l, s,
			"\"idle_timeout\" is \"%s\"; it must be a time of at least 1 s, as in \"10m\"",
			config_setting_get_string(s));
	else
		((struct catalog_tenant *)object)->limits.idle_timeout = us;
}

uint64_t catalog_burst_min(uint64_t rate)
{
	return (rate + STEPS_PER_SECOND - 1) / STEPS_PER_SECOND;
}

static void check_burst(
	struct load *l, const config_setting_t *group, const char *prefix, uint64_t rate, uint64_t burst)
{
	if (burst && !rate)
		settings_wrong(l, group, "\"%sburst\" means nothing without \"%srate\"", prefix, prefix);
	else if (burst && burst < catalog_burst_min(rate))
		settings_wrong(l, group,
			"\"%sburst\" is %llu; for %llu requests per second it must be at least %llu", prefix,
			(unsigned long long)burst, (unsigned long long)rate,
			(unsigned long long)catalog_burst_min(rate));
}

/* ---- tenants ----------------------------------------------------------------------------------------------
 */

static const struct rule tenant_rules[] = {
	{"name", T_STRING, "a name", true, tenant_name},
	{"networks", T_ARRAY | T_LIST, "a list of networks: [ \"192.0.2.0/24\" ]", false, tenant_networks},
	{"key", T_STRING, "the path of a file, or \"credential:NAME\"", false, tenant_key},
	{"offloads", T_ARRAY | T_LIST, "a list of names: [ \"users\" ]", false, tenant_offloads},
	{"sessions", T_INT | T_INT64, "a number", false, tenant_sessions},
	{"depth", T_INT | T_INT64, "a number of requests", false, tenant_depth},
	{"queue_bytes", T_STRING | T_INT | T_INT64, "a size as in \"64M\"", false, tenant_queue_bytes},
	{"slot_bytes", T_STRING | T_INT | T_INT64, "a size as in \"64M\"", false, tenant_slot_bytes},
	{"rate", T_INT | T_INT64, "a number of requests per second", false, tenant_rate},
	{"burst", T_INT | T_INT64, "a number of requests", false, tenant_burst},
	{"session_rate", T_INT | T_INT64, "a number of requests per second", false, tenant_session_rate},
	{"session_burst", T_INT | T_INT64, "a number of requests", false, tenant_session_burst},
	{"bytes_rate", T_STRING | T_INT | T_INT64, "a size as in \"64M\"", false, tenant_bytes_rate},
	{"session_bytes_rate", T_STRING | T_INT | T_INT64, "a size as in \"64M\"", false,
		tenant_session_bytes_rate},
	{"connect_rate", T_INT | T_INT64, "a number of clients per second", false, tenant_connect_rate},
	{"connect_burst", T_INT | T_INT64, "a number of clients", false, tenant_connect_burst},
	{"idle_timeout", T_STRING, "a time: \"10m\"", false, tenant_idle_timeout},
};

/* Two that a client without a token could belong to as well */
static const struct catalog_network *same_network(
	const struct catalog_tenant *a, const struct catalog_tenant *b)
{
	static const struct catalog_network anywhere;

	if (a->has_key || b->has_key)
		return NULL;
	if (!a->nnetworks && !b->nnetworks)
		return &anywhere;
	for (unsigned i = 0; i < a->nnetworks; i++)
		for (unsigned j = 0; j < b->nnetworks; j++)
			if (a->networks[i].bits == b->networks[j].bits &&
				memcmp(a->networks[i].address, b->networks[j].address, 16) == 0)
				return &a->networks[i];
	return NULL;
}

void settings_parse_tenant(struct load *l, const config_setting_t *group)
{
	struct catalog *c = l->catalog;
	struct catalog_tenant *t = &c->tenants[c->ntenants];
	unsigned before = l->nerrors;

	t->where = settings_where(l, group);
	settings_group(l, group, "in a tenant", tenant_rules, COUNT(tenant_rules), t);
	check_burst(l, group, "", t->limits.rate, t->limits.burst);
	check_burst(l, group, "session_", t->limits.session_rate, t->limits.session_burst);
	if (t->limits.connect_burst && !t->limits.connect_rate)
		settings_wrong(l, group, "\"connect_burst\" means nothing without \"connect_rate\"");
	for (unsigned i = 0; i < c->ntenants; i++) {
		const struct catalog_tenant *other = &c->tenants[i];

		if (*t->name && strcmp(other->name, t->name) == 0)
			settings_wrong(l, group, "tenant \"%s\" is already declared at %s; names must differ",
				t->name, other->where);
		else if (l->nerrors == before && same_network(other, t))
			settings_wrong(l, group,
				"tenants \"%s\" and \"%s\" have a network in common, and no key tells them "
				"apart",
				other->name, t->name);
	}
	c->ntenants++;
}
