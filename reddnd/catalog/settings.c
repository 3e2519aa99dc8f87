/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/settings.h"
#include "util/number.h"

#include "util/cleanup.h"
#include "util/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *file_of(const struct load *l, const config_setting_t *s)
{
	const char *file = config_setting_source_file(s);

	return file ? file : l->path;
}

/* What is told of a mistake is one line, whatever the strings are that it quotes */
static void put_line(FILE *f, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, f);
	fputc('\n', f);
}

void settings_wrong(struct load *l, const config_setting_t *s, const char *format, ...)
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
	fprintf(l->errors, "%s:%u: ", file_of(l, s), config_setting_source_line(s));
	put_line(l->errors, text ? text : format);
}

char *settings_where(const struct load *l, const config_setting_t *s)
{
	char *text;

	return asprintf(&text, "%s:%u", file_of(l, s), config_setting_source_line(s)) < 0 ? NULL : text;
}

enum { MAX_RULES = 32 }; /* of one group */

static void unknown_setting(
	struct load *l, const config_setting_t *s, const char *group, const struct rule *rules, size_t nrules)
{
	const char *words[MAX_RULES], *nearest;
	char list[MAX_RULES * 32] = "";
	size_t used = 0;

	for (size_t i = 0; i < nrules; i++) {
		words[i] = rules[i].name;
		used += (size_t)snprintf(
			list + used, sizeof(list) - used, "%s%s", i ? ", " : "", rules[i].name);
		assert(used < sizeof(list));
	}
	nearest = text_nearest(config_setting_name(s), words, nrules);
	if (nearest)
		settings_wrong(l, s, "unknown setting \"%s\" %s; did you mean \"%s\"?",
			config_setting_name(s), group, nearest);
	else
		settings_wrong(
			l, s, "unknown setting \"%s\" %s; known are %s", config_setting_name(s), group, list);
}

void settings_group(struct load *l, const config_setting_t *group, const char *words,
	const struct rule *rules, size_t nrules, void *object)
{
	bool seen[MAX_RULES] = {false};

	assert(nrules <= MAX_RULES);
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
			settings_wrong(l, s, "\"%s\" has the wrong type; it must be %s", rules[r].name,
				rules[r].type_words);
		else
			rules[r].parse(l, s, object);
	}
	for (size_t r = 0; r < nrules; r++)
		if (rules[r].required && !seen[r])
			settings_wrong(l, group, "\"%s\" is missing %s; set it to %s", rules[r].name, words,
				rules[r].type_words);
}

void settings_list(struct load *l, const config_setting_t *list, const char *what,
	void (*parse)(struct load *l, const config_setting_t *group))
{
	for (int i = 0; i < config_setting_length(list); i++) {
		const config_setting_t *s = config_setting_get_elem(list, (unsigned)i);

		if (config_setting_is_group(s))
			parse(l, s);
		else
			settings_wrong(l, s, "entry %d of \"%s\" is no group; write { name = \"...\"; ... }",
				i + 1, what);
	}
}

void settings_name(struct load *l, const config_setting_t *s, char name[CATALOG_NAME_MAX + 1])
{
	const char *value = config_setting_get_string(s);

	if (!text_is_name(value, CATALOG_NAME_MAX))
		settings_wrong(l, s,
			"\"%s\" cannot be a name; 1 to %d letters, digits, '.', '_' or '-', beginning with a "
			"letter or digit",
			value, CATALOG_NAME_MAX);
	else
		strcpy(name, value);
}

bool settings_integer(
	struct load *l, const config_setting_t *s, long long min, long long max, long long *value)
{
	*value = config_setting_type(s) == CONFIG_TYPE_INT64 ? config_setting_get_int64(s)
							     : config_setting_get_int(s);
	if (*value >= min && *value <= max)
		return true;
	settings_wrong(
		l, s, "\"%s\" is %lld; it must be %lld to %lld", config_setting_name(s), *value, min, max);
	return false;
}

bool settings_amount(const config_setting_t *s, uint64_t *value)
{
	long long v;

	if (config_setting_type(s) == CONFIG_TYPE_STRING)
		return number_parse_size(config_setting_get_string(s), INT64_MAX, value) == 0;
	v = config_setting_type(s) == CONFIG_TYPE_INT64 ? config_setting_get_int64(s)
							: config_setting_get_int(s);
	*value = (uint64_t)v;
	return v >= 0 &&
	       (config_setting_type(s) == CONFIG_TYPE_INT || config_setting_type(s) == CONFIG_TYPE_INT64);
}

unsigned settings_region(struct load *l, const config_setting_t *s, const char *name)
{
	const struct catalog *c = l->catalog;
	char hint[TEXT_HINT];
	const char **words;

	for (unsigned i = 0; i < c->nregions; i++)
		if (strcmp(c->regions[i].name, name) == 0)
			return i;
	words = calloc(c->nregions + 1, sizeof(*words));
	for (unsigned i = 0; words && i < c->nregions; i++)
		words[i] = c->regions[i].name;
	settings_wrong(l, s, "no region \"%s\"%s", name,
		text_hint(hint, name, words, words ? c->nregions : 0, "; declare it in \"regions\""));
	free(words);
	return c->nregions;
}
