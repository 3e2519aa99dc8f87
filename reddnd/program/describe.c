/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/describe.h"

#include <stdio.h>
#include <stdlib.h>

void program_describe_type(const struct program_field *field, char *text, size_t size)
{
	static const char *const WORDS[] = {[PROGRAM_FIELD_BE] = "be",
		[PROGRAM_FIELD_LE] = "le",
		[PROGRAM_FIELD_BYTES] = "bytes ",
		[PROGRAM_FIELD_UP_TO] = "max "};
	bool number = field->kind == PROGRAM_FIELD_BE || field->kind == PROGRAM_FIELD_LE;

	if (number && field->bytes == 1)
		snprintf(text, size, "u8");
	else
		snprintf(text, size, "%s%u", WORDS[field->kind], number ? 8 * field->bytes : field->bytes);
}

static void describe_arg(FILE *f, const struct program *p, const struct program_arg *a)
{
	fprintf(f, "arg %s ", a->name);
	switch ((enum program_arg_kind)a->kind) {
	case PROGRAM_NUMBER:
		fprintf(f, "u%u;", 8u * a->bytes);
		break;
	case PROGRAM_STRING:
		fprintf(f, "bytes %u;", a->bytes);
		break;
	case PROGRAM_WINDOW:
		fprintf(f, "offset %u %s;", a->bytes, p->regions[a->region].name);
	}
}

char *program_describe(const struct program *p)
{
	char *text = NULL, type[24];
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "program %s;", p->name);
	for (unsigned i = 0; i < p->nargs; i++)
		describe_arg(f, p, &p->args[i]);
	for (unsigned i = 0; i < p->nfields; i++) {
		program_describe_type(&p->fields[i], type, sizeof(type));
		fprintf(f, "reply %s %u %s;", p->fields[i].name, p->fields[i].at, type);
	}
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}
