/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table-print.h - print JSON for people: a list as a table, an object as lines.
 */
#ifndef TOOLS_COMMON_TABLE_PRINT_H
#define TOOLS_COMMON_TABLE_PRINT_H

#include <json-c/json.h>
#include <stdio.h>

enum table_format {
	TABLE_TEXT,
	TABLE_COUNT,
	TABLE_BYTES,       /* 4.0 MiB */
	TABLE_DURATION,    /* from microseconds: 3d 4h, 2m 5s, 1.25 s */
	TABLE_TIME,        /* from nanoseconds: 850 ns, 8.3 us, 1.20 ms; "-" if it is 0 */
	TABLE_FLAG,        /* yes, no */
	TABLE_LIMIT,       /* as a count; "-" if it is 0 */
	TABLE_LIMIT_BYTES, /* as bytes; "-" if it is 0 */
};

/** One column: a member of the objects, and its heading. */
struct table_column {
	const char *member, *heading;
	enum table_format format;
};

/** Print a row for each object of the array @list, "-" for an absent member. @ncolumns <= 16. */
void table_print_list(
	FILE *f, struct json_object *list, const struct table_column *columns, unsigned ncolumns);

/** Characters of a row as table_print_list() prints it. */
size_t table_width(struct json_object *list, const struct table_column *columns, unsigned ncolumns);

/** Print a line "heading  value" for each column; "-" for an empty text. */
void table_print_object(
	FILE *f, struct json_object *o, const struct table_column *columns, unsigned ncolumns);

#endif
