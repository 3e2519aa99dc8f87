/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settings.h - private to the catalog: reads groups of settings by tables of rules, and collects mistakes.
 *
 * A mistake is one line, "file:line: what is wrong; what would be right". Reading goes on after it, so that
 * one run finds them all.
 */
#ifndef CATALOG_SETTINGS_H
#define CATALOG_SETTINGS_H

#include "reddnd/catalog/catalog.h"
#include "util/array.h"

#include <libconfig.h>
#include <stddef.h>
#include <stdio.h>

struct settings {
	const char *path;        /* of the configuration */
	const struct kept *kept; /* what it is restored from (kept.h); NULL: files */
	struct catalog *catalog;
	FILE *errors;
	unsigned nerrors;
};

/** How a setting is read, and what its field in the object is. */
enum settings_kind {
	SETTINGS_CUSTOM, /* parse() reads a setting of one of the types */
	SETTINGS_NAME,   /* char[CATALOG_NAME_MAX + 1] */
	SETTINGS_PATH, /* char *, which the object owns: an absolute path of at most max characters; 0: any */
	SETTINGS_FLAG, /* bool */
	SETTINGS_CHOICE, /* uint8_t: one of the words; its index */
	SETTINGS_NUMBER, /* uint16_t, uint32_t or uint64_t, from min to max */
	SETTINGS_SIZE,   /* uint64_t, from min to max: a number, or text as in "64K" */
	SETTINGS_TIME,   /* uint64_t, us, at least min: text as in "250ms" */
};

enum { /* bits of settings_rule.types */
	SETTINGS_STRING = 1 << CONFIG_TYPE_STRING,
	SETTINGS_INT = 1 << CONFIG_TYPE_INT | 1 << CONFIG_TYPE_INT64,
	SETTINGS_BOOL = 1 << CONFIG_TYPE_BOOL,
	SETTINGS_ARRAY = 1 << CONFIG_TYPE_ARRAY | 1 << CONFIG_TYPE_LIST,
	SETTINGS_LIST = 1 << CONFIG_TYPE_LIST,
	SETTINGS_GROUP = 1 << CONFIG_TYPE_GROUP,
};

struct settings_rule {
	const char *name;
	const char *must_be; /* for messages, as in "a time of at least 1 s" */
	enum settings_kind kind;
	size_t offset, size; /* of the field: SETTINGS_FIELD() */
	uint64_t min, max;
	bool required;
	const char *words[3]; /* of a choice */
	unsigned types;       /* of a custom one */
	void (*parse)(struct settings *l, const config_setting_t *s, void *object);
};

#define SETTINGS_FIELD(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define SETTINGS_PARSE(type, fn) SETTINGS_CUSTOM, .types = (type), .parse = (fn)

/* What the name of an entry must be */
#define SETTINGS_A_NAME "a name: 1 to 23 letters, digits, '.', '_' or '-', a letter or digit first"
_Static_assert(CATALOG_NAME_MAX == 23, "SETTINGS_A_NAME has the number");

/** Reports a mistake at @s. */
void settings_wrong(struct settings *l, const config_setting_t *s, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Writes @text and a line feed. Replaces control characters, so that each mistake stays on one line. */
void settings_put_line(FILE *f, const char *text);

/** Reports that the value of @s, a number or text, is not @must_be. */
void settings_wrong_value(struct settings *l, const config_setting_t *s, const char *must_be);

/** "file:line" of @s, to be freed; NULL when there is no memory. */
char *settings_where(const struct settings *l, const config_setting_t *s);

/** Reads each setting of @group into @object by its rule; @where: "in a region", for messages. */
void settings_group(struct settings *l, const config_setting_t *group, const char *where,
	const struct settings_rule *rules, size_t nrules, void *object);

/** Calls @parse for each group of the list called @name. */
void settings_list(struct settings *l, const config_setting_t *list, const char *name,
	void (*parse)(struct settings *l, const config_setting_t *group));

/** Calls @parse for each element of an array or list, or for @s if it is neither. */
void settings_each(struct settings *l, const config_setting_t *s, void *object,
	void (*parse)(struct settings *l, const config_setting_t *s, void *object));

/** The value of an integer. */
long long settings_integer(const config_setting_t *s);

/** A number, or text as in "64K". False if @s is neither, or negative; nothing is reported. */
bool settings_amount(const config_setting_t *s, uint64_t *value);

/** Index of the entry called @name, or @n. Entries are @size bytes and begin with their names. */
unsigned settings_index(const void *entries, unsigned n, size_t size, const char *name);

/** The same for a reference at @s to a @what, "region" or "offload": when there is none, that is reported. */
unsigned settings_refer(struct settings *l, const config_setting_t *s, const char *what, const char *name,
	const void *entries, unsigned n, size_t size);

/*
 * Reads the file of a configuration, and checks it and the files that it includes for what libconfig does not
 * report. At a directory, as in @include "", the scanner of libconfig 1.5 ends the process (its input
 * function is the one that flex makes), and a FIFO would block it. And it checks for what versions of
 * libconfig read differently, such as 4294967297 without a suffix, which 1.5 reads as 1, or which some of
 * them refuse.
 */

/**
 * Reads the file @path, which may be a pipe, to *@text, to be freed. Writes to @errors a line for each
 * mistake in it and in the files that it includes: it cannot be read; an @include names something else than
 * a regular file that can be read, or is too deep; versions of libconfig read a number, an escape or a comma
 * differently; a text or a comment has no end. Relative names start at @dir, as in libconfig. Returns the
 * number of lines; without any there is a *@text.
 */
unsigned scan_configuration(const char *path, const char *dir, FILE *errors, char **text);

/*
 * Read one entry of the lists "regions", "offloads" and "tenants". The catalog has room for it. Offloads
 * refer to regions, and tenants to offloads, that have been read before.
 */

void entries_parse_region(struct settings *l, const config_setting_t *group);
void entries_parse_offload(struct settings *l, const config_setting_t *group);
void entries_parse_tenant(struct settings *l, const config_setting_t *group);

/** The setting "engine" of offloads, and of the daemon for those that do not have it. */
#define ENTRIES_ENGINE(field)                                                                                \
	{                                                                                                    \
		"engine", "\"nic\", \"cpu\" or \"auto\"", SETTINGS_CHOICE, field, .words = {                 \
			[CATALOG_AUTO] = "auto",                                                             \
			[CATALOG_NIC] = "nic",                                                               \
			[CATALOG_CPU] = "cpu"                                                                \
		}                                                                                            \
	}

#endif
