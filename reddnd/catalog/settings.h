/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settings.h - private to the catalog: groups of settings by rules, and mistakes told with file and line.
 */
#ifndef CATALOG_SETTINGS_H
#define CATALOG_SETTINGS_H

#include "reddnd/catalog/catalog.h"
#include "util/array.h"

#include <libconfig.h>
#include <stdio.h>

struct load {
	const char *path;
	struct catalog *catalog;
	FILE *errors;
	unsigned nerrors;
};

/** One setting of a group: @parse is called with a setting that has one of the allowed types. */
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
	T_BOOL = 1 << CONFIG_TYPE_BOOL,
	T_ARRAY = 1 << CONFIG_TYPE_ARRAY,
	T_LIST = 1 << CONFIG_TYPE_LIST,
	T_GROUP = 1 << CONFIG_TYPE_GROUP,
};

/** Tells a mistake at @s. */
void settings_wrong(struct load *l, const config_setting_t *s, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** "file:line" of @s, to be freed; NULL when there is no memory. */
char *settings_where(const struct load *l, const config_setting_t *s);

/** Calls the rule of each setting of @group; @words say where that is, for messages. At most 16 rules. */
void settings_group(struct load *l, const config_setting_t *group, const char *words,
	const struct rule *rules, size_t nrules, void *object);

/** Calls @parse for each group of the list @what. */
void settings_list(struct load *l, const config_setting_t *list, const char *what,
	void (*parse)(struct load *l, const config_setting_t *group));

void settings_name(struct load *l, const config_setting_t *s, char name[CATALOG_NAME_MAX + 1]);

/** False, with the mistake told, if it is not from @min to @max. */
bool settings_integer(
	struct load *l, const config_setting_t *s, long long min, long long max, long long *value);

/** A number, or text as in "64K". False, and nothing told, if it is neither. */
bool settings_amount(const config_setting_t *s, uint64_t *value);

/** Index of the region called @name; the number of regions, with the mistake told at @s, if there is none. */
unsigned settings_region(struct load *l, const config_setting_t *s, const char *name);

/** The entries of "regions", "offloads" and "tenants". */
void settings_parse_region(struct load *l, const config_setting_t *group);
void settings_parse_offload(struct load *l, const config_setting_t *group);
void settings_parse_tenant(struct load *l, const config_setting_t *group);

#endif
