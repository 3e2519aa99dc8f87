/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table-print.h - answers of the daemon as a person likes to read them: tables of lists, lines of objects.
 */
#ifndef TOOLS_COMMON_TABLE_PRINT_H
#define TOOLS_COMMON_TABLE_PRINT_H

#include <json-c/json.h>
#include <stdio.h>

enum show_format {
	SHOW_TEXT,
	SHOW_COUNT,
	SHOW_BYTES,    /* 4.0 MiB */
	SHOW_DURATION, /* from microseconds: 3d 4h, 2m 5s, 1.25 s */
	SHOW_FLAG,     /* yes, no */
	SHOW_LIMIT,
	SHOW_LIMIT_BYTES, /* as a count, or bytes; "-" if it is 0 */
};

struct show_column {
	const char *member, *heading;
	enum show_format format;
};

/** A row for each object of the array @list; a member that is not there is "-". @ncolumns <= 16. */
void show_table(FILE *f, struct json_object *list, const struct show_column *columns, unsigned ncolumns);

/** A line "heading: value" for each column. */
void show_object(FILE *f, struct json_object *o, const struct show_column *columns, unsigned ncolumns);

#endif
