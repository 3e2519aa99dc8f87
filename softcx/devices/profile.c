/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/devices/profile.h"

#include "util/array.h"
#include "util/datafile.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BASES = 4 };

enum kind { NUMBER, POWER /* of two */, TRUTH, WORD, VERSION };

static const struct fact {
	const char *name;
	enum kind kind;
	unsigned least, most; /* of a number or power */
	const char *words[4];
} facts[PROFILE_FACTS] = {
	[PROFILE_PART] = {"identity.part", NUMBER, 1, 0xffff, {NULL}},
	[PROFILE_PCI] = {"identity.pci", NUMBER, 1, 0xffff, {NULL}},
	[PROFILE_FIRMWARE] = {"identity.firmware", VERSION, 0, 0, {NULL}},
	[PROFILE_LINK] = {"port.link", WORD, 0, 0, {"Ethernet", "InfiniBand"}},
	[PROFILE_SPEED] = {"port.speed", WORD, 0, 0, {"EDR", "HDR", "NDR"}},
	[PROFILE_LOG_QPS] = {"limits.log_qps", NUMBER, 8, 18, {NULL}},
	[PROFILE_LOG_READS] = {"limits.log_reads", NUMBER, 0, 7, {NULL}},
	[PROFILE_SEND_WQE] = {"limits.send_wqe", NUMBER, 64, 1024, {NULL}},
	[PROFILE_RECV_WQE] = {"limits.recv_wqe", NUMBER, 16, 512, {NULL}},
	[PROFILE_SCHEDULING] = {"has.scheduling", TRUTH, 0, 0, {NULL}},
	[PROFILE_DEVX] = {"has.devx", TRUTH, 0, 0, {NULL}},
	[PROFILE_FORCED_LOOPBACK] = {"has.forced_loopback", TRUTH, 0, 0, {NULL}},
	[PROFILE_CROSS_CHANNEL] = {"has.cross_channel", TRUTH, 0, 0, {NULL}},
	[PROFILE_IMMEDIATES] = {"has.immediates", TRUTH, 0, 0, {NULL}},
	[PROFILE_PATHS] = {"has.paths", TRUTH, 0, 0, {NULL}},
	[PROFILE_ATOMICS] = {"has.atomics", TRUTH, 0, 0, {NULL}},
	[PROFILE_MASKED_ATOMICS] = {"has.masked_atomics", TRUTH, 0, 0, {NULL}},
	[PROFILE_CALC] = {"has.calc", WORD, 0, 0, {"none", "8 bytes", "16 bytes"}},
	[PROFILE_HOST_ATOMICS] = {"has.host_atomics", TRUTH, 0, 0, {NULL}},
	[PROFILE_CLOCKS] = {"has.clocks", WORD, 0, 0, {"free-running", "real-time", "both"}},
	[PROFILE_RECV_ENABLE] = {"has.recv_enable", TRUTH, 0, 0, {NULL}},
	[PROFILE_CHECKS_INDEX] = {"checks.index", TRUTH, 0, 0, {NULL}},
	[PROFILE_CHECKS_QPN] = {"checks.qpn", TRUTH, 0, 0, {NULL}},
	[PROFILE_SYNC_FENCE] = {"checks.sync_fence", TRUTH, 0, 0, {NULL}},
	[PROFILE_MESSAGE_LIMIT] = {"checks.message_limit", TRUTH, 0, 0, {NULL}},
	[PROFILE_FETCH_GROUP] = {"managed.fetch", POWER, 64, 4096, {NULL}},
	[PROFILE_RECV_FETCH] = {"managed.recv_fetch", POWER, 16, 4096, {NULL}},
	[PROFILE_DOORBELL] = {"managed.doorbell", WORD, 0, 0, {"error", "ignored", "moves"}},
	[PROFILE_BEHIND] = {"managed.behind", WORD, 0, 0, {"ignored", "around"}},
	[PROFILE_FLUSH] = {"managed.flush", WORD, 0, 0, {"enabled", "doorbell"}},
};

static const char *const in_tree[] = {"devices", "../devices", NULL};

/* ---- one file --------------------------------------------------------------------------- */

struct reader {
	const char *path;
	struct profile *p;
	bool given[PROFILE_FACTS];
	char *why; /* PROFILE_WHY bytes */
};

/* @s: where; NULL: the file as a whole. */
__attribute__((format(printf, 3, 4))) static int wrong(
	struct reader *r, const config_setting_t *s, const char *format, ...)
{
	int n = s ? snprintf(r->why, PROFILE_WHY, "%s:%u: ", r->path, config_setting_source_line(s))
		  : snprintf(r->why, PROFILE_WHY, "%s: ", r->path);
	va_list ap;

	va_start(ap, format);
	if (n < PROFILE_WHY)
		vsnprintf(r->why + n, (size_t)(PROFILE_WHY - n), format, ap);
	va_end(ap);
	return -EINVAL;
}

/* The words that are right there, as "a, b or c". */
static const char *any_of(const char *const *words, char text[static 64])
{
	size_t n = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < 4 && words[i]; i++)
		n += (size_t)snprintf(text + n, 64 - n, "%s\"%s\"",
			!i                      ? ""
			: i < 3 && words[i + 1] ? ", "
						: " or ",
			words[i]);
	return text;
}

static bool parse_version(const char *text, uint64_t *value)
{
	unsigned major, minor, sub;
	char end;

	if (!text || sscanf(text, "%u.%u.%u%c", &major, &minor, &sub, &end) != 3 || minor > 0xffff ||
		sub > 0xffff)
		return false;
	*value = (uint64_t)major << 32 | (uint64_t)minor << 16 | sub;
	return true;
}

static int read_value(struct reader *r, const struct fact *f, const config_setting_t *s)
{
	uint64_t *value = &r->p->value[f - facts];
	const char *text = config_setting_get_string(s);
	char words[64];

	switch (f->kind) {
	case NUMBER:
		if (config_setting_type(s) != CONFIG_TYPE_INT || config_setting_get_int(s) < (int)f->least ||
			config_setting_get_int(s) > (int)f->most)
			return wrong(
				r, s, "%s must be a whole number from %u to %u", f->name, f->least, f->most);
		*value = (uint64_t)config_setting_get_int(s);
		return 0;
	case POWER:
		if (config_setting_type(s) != CONFIG_TYPE_INT || config_setting_get_int(s) < (int)f->least ||
			config_setting_get_int(s) > (int)f->most ||
			config_setting_get_int(s) & (config_setting_get_int(s) - 1))
			return wrong(
				r, s, "%s must be a power of two from %u to %u", f->name, f->least, f->most);
		*value = (uint64_t)config_setting_get_int(s);
		return 0;
	case TRUTH:
		if (config_setting_type(s) != CONFIG_TYPE_BOOL)
			return wrong(r, s, "%s must be true or false", f->name);
		*value = (uint64_t)config_setting_get_bool(s);
		return 0;
	case WORD:
		for (unsigned i = 0; text && i < COUNT(f->words) && f->words[i]; i++)
			if (strcmp(text, f->words[i]) == 0) {
				*value = i;
				return 0;
			}
		return wrong(r, s, "%s must be %s", f->name, any_of(f->words, words));
	default:
		if (!parse_version(text, value))
			return wrong(r, s, "%s must be a version such as \"16.35.4030\"", f->name);
		return 0;
	}
}

static int read_fact(struct reader *r, const struct fact *f, const config_setting_t *s)
{
	const config_setting_t *source;
	const char *text;

	if (!config_setting_is_list(s) || config_setting_length(s) != 2)
		return wrong(r, s,
			"%s must be (VALUE, \"SOURCE\"): a value and where it is from, or \"assumed\"",
			f->name);
	source = config_setting_get_elem(s, 1);
	text = config_setting_get_string(source);
	if (!text || !*text || strlen(text) >= PROFILE_SOURCE)
		return wrong(r, s,
			"%s needs its source as second element, a text of up to %d bytes; \"assumed\" if "
			"there is none",
			f->name, PROFILE_SOURCE - 1);
	snprintf(r->p->source[f - facts], PROFILE_SOURCE, "%s", text);
	r->given[f - facts] = true;
	return read_value(r, f, config_setting_get_elem(s, 0));
}

/* The facts of a group, as "a, b, c"; "" if there is none of that name. */
static void list_facts(const char *group, char *text, size_t size)
{
	size_t n = 0, len = strlen(group);

	text[0] = '\0';
	for (size_t i = 0; i < COUNT(facts); i++)
		if (strncmp(facts[i].name, group, len) == 0 && facts[i].name[len] == '.' && n < size)
			n += (size_t)snprintf(
				text + n, size - n, "%s%s", n ? ", " : "", facts[i].name + len + 1);
}

static int read_group(struct reader *r, const config_setting_t *group)
{
	const char *name = config_setting_name(group);
	char known[256];
	int rc = 0;

	list_facts(name, known, sizeof(known));
	if (!*known)
		return wrong(r, group,
			"there is no group %s; a profile has title, base, and the groups identity, port, "
			"limits, has, checks and managed",
			name);
	if (!config_setting_is_group(group))
		return wrong(r, group, "%s must be a group of facts, as in %s = { ... };", name, name);
	for (int i = 0; i < config_setting_length(group) && rc == 0; i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		const struct fact *f = facts;
		char full[128];

		snprintf(full, sizeof(full), "%s.%s", name, config_setting_name(s));
		while (f < facts + COUNT(facts) && strcmp(f->name, full) != 0)
			f++;
		rc = f < facts + COUNT(facts)
			     ? read_fact(r, f, s)
			     : wrong(r, s, "there is no fact %s; those of %s are: %s", full, name, known);
	}
	return rc;
}

static int read_file(struct reader *r, unsigned bases);

/* The base lies beside the file, or among the profiles that come with softcx. */
static int read_base(struct reader *r, const config_setting_t *s, unsigned bases)
{
	const char *name = config_setting_get_string(s);
	struct reader base = {.p = r->p, .why = r->why};
	char path[PATH_MAX];
	int rc;

	if (!name || !*name)
		return wrong(r, s, "base must be the name of a profile, such as \"cx5\"");
	if (bases == MAX_BASES)
		return wrong(r, s, "base \"%s\": more than %d bases, or a profile that is its own base", name,
			MAX_BASES);
	if (profile_find(name, path, sizeof(path)) < 0)
		return wrong(r, s, "base: a name of at most %d bytes", PATH_MAX);
	base.path = path;
	rc = read_file(&base, bases + 1);
	if (rc == -ENOENT)
		return wrong(r, s, "base \"%s\": there is no such profile; softcx devices lists them", name);
	memcpy(r->given, base.given, sizeof(r->given));
	return rc;
}

static int read_title(struct reader *r, const config_setting_t *root)
{
	const config_setting_t *s = config_setting_get_member(root, "title");
	const char *text = s ? config_setting_get_string(s) : NULL;

	if (!text || !*text || strlen(text) >= PROFILE_TITLE)
		return wrong(r, s, "a profile needs a title, a line of up to %d bytes", PROFILE_TITLE - 1);
	snprintf(r->p->title, sizeof(r->p->title), "%s", text);
	return 0;
}

static int read_settings(struct reader *r, const config_setting_t *root, unsigned bases)
{
	const config_setting_t *base = config_setting_get_member(root, "base");
	int rc = base ? read_base(r, base, bases) : 0;

	if (rc == 0)
		rc = read_title(r, root);
	for (int i = 0; i < config_setting_length(root) && rc == 0; i++) {
		const config_setting_t *s = config_setting_get_elem(root, (unsigned)i);
		const char *name = config_setting_name(s);

		if (strcmp(name, "title") != 0 && strcmp(name, "base") != 0)
			rc = read_group(r, s);
	}
	for (size_t i = 0; i < COUNT(facts) && rc == 0; i++)
		if (!r->given[i])
			rc = wrong(r, NULL, "%s is missing; a profile without a base gives every fact",
				facts[i].name);
	return rc;
}

static int read_file(struct reader *r, unsigned bases)
{
	char text[160];
	unsigned line;
	config_t cfg;
	int rc = datafile_read(&cfg, r->path, &line, text, sizeof(text));

	if (rc < 0 && line)
		snprintf(r->why, PROFILE_WHY, "%s:%u: %s", r->path, line, text);
	else if (rc < 0)
		snprintf(r->why, PROFILE_WHY, "%s: %s", r->path, text);
	if (rc < 0)
		return rc;
	rc = read_settings(r, config_root_setting(&cfg), bases);
	config_destroy(&cfg);
	return rc;
}

int profile_find(const char *name, char *path, size_t size)
{
	return datafile_find(name, in_tree, PROFILE_DIR, path, size);
}

int profile_read(const char *path, struct profile *p, char why[static PROFILE_WHY])
{
	struct reader r = {.path = path, .p = p, .why = why};
	const char *base = strrchr(path, '/');
	char *dot;
	int rc;

	memset(p, 0, sizeof(*p));
	rc = read_file(&r, 0);
	snprintf(p->name, sizeof(p->name), "%s", base ? base + 1 : path);
	dot = strrchr(p->name, '.');
	if (dot && strcmp(dot, ".conf") == 0)
		*dot = '\0';
	return rc;
}

/* ---- all of them ------------------------------------------------------------------------ */

static int is_profile(const struct dirent *e)
{
	size_t len = strlen(e->d_name);

	return len > 5 && strcmp(e->d_name + len - 5, ".conf") == 0;
}

int profile_list(char *names[static PROFILE_MAX])
{
	struct dirent **entries;
	char dir[PATH_MAX];
	int n = 0, found, r = datafile_dir(in_tree, PROFILE_DIR, dir, sizeof(dir));

	if (r < 0)
		return r;
	found = scandir(dir, &entries, is_profile, alphasort);
	if (found < 0)
		return -errno;
	for (int i = 0; i < found; i++) {
		if (n < PROFILE_MAX) {
			names[n] = strndup(entries[i]->d_name, strlen(entries[i]->d_name) - 5);
			n += names[n] != NULL;
		}
		free(entries[i]);
	}
	free(entries);
	return n;
}

/* ---- facts ------------------------------------------------------------------------------ */

const char *profile_fact_name(enum profile_fact fact)
{
	return facts[fact].name;
}

bool profile_fact_is_truth(enum profile_fact fact)
{
	return facts[fact].kind == TRUTH;
}

bool profile_fact_is_number(enum profile_fact fact)
{
	return facts[fact].kind == NUMBER || facts[fact].kind == POWER;
}

void profile_fact_text(const struct profile *p, enum profile_fact fact, char *text, size_t size)
{
	uint64_t v = p->value[fact];

	switch (facts[fact].kind) {
	case NUMBER:
	case POWER:
		snprintf(text, size, "%" PRIu64, v);
		break;
	case TRUTH:
		snprintf(text, size, "%s", v ? "true" : "false");
		break;
	case WORD:
		snprintf(text, size, "%s", facts[fact].words[v]);
		break;
	case VERSION:
		snprintf(text, size, "%u.%u.%04u", (unsigned)(v >> 32), (unsigned)(v >> 16) & 0xffff,
			(unsigned)v & 0xffff);
		break;
	}
}
