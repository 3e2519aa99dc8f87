/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/table-print.h"

#include "tools/common/units.h"
#include "util/text.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { CELL = 128, SECOND = 1000000 /* us */, MAX_COLUMNS = 32 };

static void format_duration(char *cell, uint64_t us)
{
	uint64_t s = us / SECOND;

	if (s < 60)
		snprintf(cell, CELL, "%" PRIu64 ".%02" PRIu64 " s", s, us % SECOND / (SECOND / 100));
	else if (s < 3600)
		snprintf(cell, CELL, "%" PRIu64 "m %" PRIu64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(cell, CELL, "%" PRIu64 "h %" PRIu64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(cell, CELL, "%" PRIu64 "d %" PRIu64 "h", s / 86400, s / 3600 % 24);
}

static void format(char *cell, struct json_object *o, const struct table_column *column)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, column->member, &v)) {
		strcpy(cell, "-");
		return;
	}
	switch (column->format) {
	case TABLE_TEXT:
		snprintf(cell, CELL, "%s", json_object_get_string(v));
		text_clean(cell);
		break;
	case TABLE_COUNT:
		snprintf(cell, CELL, "%" PRIu64, json_object_get_uint64(v));
		break;
	case TABLE_BYTES:
		units_bytes(cell, json_object_get_uint64(v));
		break;
	case TABLE_DURATION:
		format_duration(cell, json_object_get_uint64(v));
		break;
	case TABLE_LIMIT:
	case TABLE_LIMIT_BYTES:
		if (json_object_get_uint64(v) == 0)
			strcpy(cell, "-");
		else if (column->format == TABLE_LIMIT_BYTES)
			units_bytes(cell, json_object_get_uint64(v));
		else
			snprintf(cell, CELL, "%" PRIu64, json_object_get_uint64(v));
		break;
	case TABLE_TIME:
		units_time(cell, json_object_get_uint64(v));
		break;
	case TABLE_FLAG:
		strcpy(cell, json_object_get_boolean(v) ? "yes" : "no");
		break;
	}
}

/* Characters of UTF-8 text */
static size_t characters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void print_cell(FILE *f, const char *text, size_t width, enum table_format format, int last)
{
	int pad = (int)(width - characters(text));

	if (format == TABLE_TEXT || format == TABLE_FLAG)
		fprintf(f, "%s%*s", text, last ? 0 : pad, "");
	else
		fprintf(f, "%*s%s", pad, "", text);
	fputs(last ? "\n" : "  ", f);
}

static size_t column_width(struct json_object *list, const struct table_column *column)
{
	size_t width = characters(column->heading), rows = json_object_array_length(list);
	char cell[CELL];

	for (size_t r = 0; r < rows; r++) {
		format(cell, json_object_array_get_idx(list, r), column);
		if (characters(cell) > width)
			width = characters(cell);
	}
	return width;
}

size_t table_width(struct json_object *list, const struct table_column *columns, unsigned ncolumns)
{
	size_t width = 0;

	for (unsigned c = 0; c < ncolumns; c++)
		width += column_width(list, &columns[c]) + (c ? 2 : 0);
	return width;
}

void table_print_list(
	FILE *f, struct json_object *list, const struct table_column *columns, unsigned ncolumns)
{
	size_t width[MAX_COLUMNS], rows = json_object_array_length(list);
	char cell[CELL];

	assert(ncolumns <= MAX_COLUMNS);
	for (unsigned c = 0; c < ncolumns; c++)
		width[c] = column_width(list, &columns[c]);
	for (unsigned c = 0; c < ncolumns; c++)
		print_cell(f, columns[c].heading, width[c], columns[c].format, c + 1 == ncolumns);
	for (size_t r = 0; r < rows; r++)
		for (unsigned c = 0; c < ncolumns; c++) {
			format(cell, json_object_array_get_idx(list, r), &columns[c]);
			print_cell(f, cell, width[c], columns[c].format, c + 1 == ncolumns);
		}
}

void table_print_object(FILE *f, struct json_object *o, const struct table_column *columns, unsigned ncolumns)
{
	size_t width = 0;
	char cell[CELL];

	for (unsigned c = 0; c < ncolumns; c++)
		if (strlen(columns[c].heading) > width)
			width = strlen(columns[c].heading);
	for (unsigned c = 0; c < ncolumns; c++) {
		format(cell, o, &columns[c]);
		fprintf(f, "%-*s  %s\n", (int)width, columns[c].heading, *cell ? cell : "-");
	}
}
