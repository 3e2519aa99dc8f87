/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/settings.h"

#include "util/array.h"
#include "util/cleanup.h"
#include "util/number.h"
#include "util/text.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RULES = 32 /* of one group */, MUST_BE = 160 };

/* ---- mistakes ------------------------------------------------------------------------------------------ */

static const char *file_of(const struct settings *l, const config_setting_t *s)
{
	const char *file = config_setting_source_file(s);

	return file ? file : l->path;
}

/* Nobody has written the lines of what was kept */
static void put_where(FILE *f, const struct settings *l, const config_setting_t *s)
{
	if (l->kept)
		fputs(l->path, f);
	else
		fprintf(f, "%s:%u", file_of(l, s), config_setting_source_line(s));
}

void settings_put_line(FILE *f, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, f);
	fputc('\n', f);
}

void settings_wrong(struct settings *l, const config_setting_t *s, const char *format, ...)
{
	CLEANUP(cleanup_free) char *text = NULL;
	va_list ap;
	int n;

	l->nerrors++;
	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0)
		text = NULL;
	put_where(l->errors, l, s);
	fputs(": ", l->errors);
	settings_put_line(l->errors, text ? text : format);
}

void settings_wrong_value(struct settings *l, const config_setting_t *s, const char *must_be)
{
	if (config_setting_type(s) == CONFIG_TYPE_STRING)
		settings_wrong(l, s, "\"%s\" is \"%s\"; it must be %s", config_setting_name(s),
			config_setting_get_string(s), must_be);
	else
		settings_wrong(l, s, "\"%s\" is %lld; it must be %s", config_setting_name(s),
			settings_integer(s), must_be);
}

char *settings_where(const struct settings *l, const config_setting_t *s)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	put_where(f, l, s);
	fclose(f);
	return text;
}

static void unknown_setting(struct settings *l, const config_setting_t *s, const char *where,
	const struct settings_rule *rules, size_t nrules)
{
	char known[MAX_RULES * 32] = "; known are ", hint[TEXT_HINT];
	const char *names[MAX_RULES], *end;
	size_t used = strlen(known);

	for (size_t i = 0; i < nrules; i++) {
		names[i] = rules[i].name;
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "", names[i]);
		assert(used < sizeof(known));
	}
	end = text_hint(hint, config_setting_name(s), names, nrules, known);
	settings_wrong(l, s, "unknown setting \"%s\" %s%s", config_setting_name(s), where, end);
}

/* ---- values -------------------------------------------------------------------------------------------- */

long long settings_integer(const config_setting_t *s)
{
	return config_setting_type(s) == CONFIG_TYPE_INT64 ? config_setting_get_int64(s)
							   : config_setting_get_int(s);
}

bool settings_amount(const config_setting_t *s, uint64_t *value)
{
	if (config_setting_type(s) == CONFIG_TYPE_STRING)
		return number_parse_size(config_setting_get_string(s), INT64_MAX, value) == 0;
	*value = (uint64_t)settings_integer(s);
	return 1 << config_setting_type(s) & SETTINGS_INT && settings_integer(s) >= 0;
}

static unsigned types_of(const struct settings_rule *rule)
{
	switch (rule->kind) {
	case SETTINGS_CUSTOM:
		return rule->types;
	case SETTINGS_FLAG:
		return SETTINGS_BOOL;
	case SETTINGS_NUMBER:
		return SETTINGS_INT;
	case SETTINGS_SIZE:
		return SETTINGS_INT | SETTINGS_STRING;
	default:
		return SETTINGS_STRING;
	}
}

static const char *must_be(const struct settings_rule *rule, char words[MUST_BE])
{
	if (rule->kind != SETTINGS_NUMBER)
		return rule->must_be;
	snprintf(words, MUST_BE, "%s from %llu to %llu", rule->must_be, (unsigned long long)rule->min,
		(unsigned long long)rule->max);
	return words;
}

static void store(void *field, size_t size, uint64_t value)
{
	assert(size == sizeof(uint16_t) || size == sizeof(uint32_t) || size == sizeof(uint64_t));
	if (size == sizeof(uint16_t))
		*(uint16_t *)field = (uint16_t)value;
	else if (size == sizeof(uint32_t))
		*(uint32_t *)field = (uint32_t)value;
	else
		*(uint64_t *)field = value;
}

static bool read_number(const config_setting_t *s, const struct settings_rule *rule, void *field)
{
	uint64_t v;

	if (!settings_amount(s, &v) || v < rule->min || v > rule->max)
		return false;
	store(field, rule->size, v);
	return true;
}

static void read_time(
	struct settings *l, const config_setting_t *s, const struct settings_rule *rule, void *field)
{
	uint64_t us;
	int r = number_parse_duration(config_setting_get_string(s), &us);

	if (r == -ERANGE)
		settings_wrong_value(l, s, "at most " NUMBER_LONGEST);
	else if (r < 0 || us < rule->min)
		settings_wrong_value(l, s, rule->must_be);
	else
		store(field, rule->size, us);
}

static bool read_text(const config_setting_t *s, const struct settings_rule *rule, void *field)
{
	const char *text = config_setting_get_string(s);

	switch (rule->kind) {
	case SETTINGS_NAME:
		if (!text_is_name(text, CATALOG_NAME_MAX))
			return false;
		strcpy(field, text);
		return true;
	case SETTINGS_PATH:
		if (text[0] != '/' || (rule->max && strlen(text) > rule->max))
			return false;
		*(char **)field = strdup(text);
		return true;
	default:
		for (uint8_t i = 0; i < COUNT(rule->words); i++)
			if (strcmp(text, rule->words[i]) == 0) {
				*(uint8_t *)field = i;
				return true;
			}
		return false;
	}
}

static void read_setting(
	struct settings *l, const config_setting_t *s, const struct settings_rule *rule, void *object)
{
	void *field = (char *)object + rule->offset;
	char words[MUST_BE];
	bool right = true;

	switch (rule->kind) {
	case SETTINGS_CUSTOM:
		rule->parse(l, s, object);
		break;
	case SETTINGS_FLAG:
		*(bool *)field = config_setting_get_bool(s);
		break;
	case SETTINGS_NUMBER:
	case SETTINGS_SIZE:
		right = read_number(s, rule, field);
		break;
	case SETTINGS_TIME:
		read_time(l, s, rule, field);
		break;
	default:
		right = read_text(s, rule, field);
	}
	if (!right)
		settings_wrong_value(l, s, must_be(rule, words));
}

/* ---- groups and lists ---------------------------------------------------------------------------------- */

void settings_group(struct settings *l, const config_setting_t *group, const char *where,
	const struct settings_rule *rules, size_t nrules, void *object)
{
	bool seen[MAX_RULES] = {false};
	char words[MUST_BE];

	assert(nrules <= MAX_RULES);
	for (int i = 0; i < config_setting_length(group); i++) {
		const config_setting_t *s = config_setting_get_elem(group, (unsigned)i);
		size_t r = 0;

		while (r < nrules && strcmp(rules[r].name, config_setting_name(s)) != 0)
			r++;
		if (r == nrules) {
			unknown_setting(l, s, where, rules, nrules);
			continue;
		}
		seen[r] = true;
		if (types_of(&rules[r]) & 1u << config_setting_type(s))
			read_setting(l, s, &rules[r], object);
		else
			settings_wrong(l, s, "\"%s\" has the wrong type; it must be %s", rules[r].name,
				must_be(&rules[r], words));
	}
	for (size_t r = 0; r < nrules; r++)
		if (rules[r].required && !seen[r])
			settings_wrong(l, group, "\"%s\" is missing %s; set it to %s", rules[r].name, where,
				must_be(&rules[r], words));
}

void settings_list(struct settings *l, const config_setting_t *list, const char *name,
	void (*parse)(struct settings *l, const config_setting_t *group))
{
	for (int i = 0; i < config_setting_length(list); i++) {
		const config_setting_t *s = config_setting_get_elem(list, (unsigned)i);

		if (config_setting_is_group(s))
			parse(l, s);
		else
			settings_wrong(l, s, "entry %d of \"%s\" is no group; write { name = \"...\"; ... }",
				i + 1, name);
	}
}

void settings_each(struct settings *l, const config_setting_t *s, void *object,
	void (*parse)(struct settings *l, const config_setting_t *s, void *object))
{
	if (!config_setting_is_aggregate(s))
		parse(l, s, object);
	for (int i = 0; i < config_setting_length(s); i++)
		parse(l, config_setting_get_elem(s, (unsigned)i), object);
}

/* ---- entries by name ----------------------------------------------------------------------------------- */

unsigned settings_index(const void *entries, unsigned n, size_t size, const char *name)
{
	unsigned i = 0;

	while (i < n && strcmp((const char *)entries + i * size, name) != 0)
		i++;
	return i;
}

unsigned settings_refer(struct settings *l, const config_setting_t *s, const char *what, const char *name,
	const void *entries, unsigned n, size_t size)
{
	CLEANUP(cleanup_free) const char **names = NULL;
	unsigned found = settings_index(entries, n, size, name);
	char hint[TEXT_HINT], declare[40];

	if (found < n)
		return found;
	names = calloc(n + 1, sizeof(*names));
	for (unsigned i = 0; names && i < n; i++)
		names[i] = (const char *)entries + i * size;
	snprintf(declare, sizeof(declare), "; declare it in \"%ss\"", what);
	settings_wrong(
		l, s, "no %s \"%s\"%s", what, name, text_hint(hint, name, names, names ? n : 0, declare));
	return n;
}
