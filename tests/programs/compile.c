/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * compile [-M] [-C] [NAME=VALUE...] FILE: prints the errors of a program, with these params set; -M: for a
 * device without masked atomics, -C: without CALC. Exit status 0: it is accepted, 1: it is refused, 2:
 * something else.
 */
#include "reddnd/program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 1 << 20, SETTINGS = 8 };

static char text[LARGEST];

int main(int argc, char **argv)
{
	struct program_setting settings[SETTINGS];
	struct program_source src = {.text = text};
	struct program_target target = {.masked_atomics = true, .calc = PROGRAM_CALC};
	struct program *program = NULL;
	unsigned n = 0;
	char *said = NULL;
	FILE *f;
	int r;

	for (; argc > 2 && argv[1][0] == '-'; argv++, argc--) {
		target.masked_atomics &= strcmp(argv[1], "-M") != 0;
		if (strcmp(argv[1], "-C") == 0)
			target.calc = 0;
	}
	for (; argc > 2 && n < SETTINGS && strchr(argv[1], '='); argv++, argc--) {
		char *value = strchr(argv[1], '=');

		*value = 0;
		settings[n++] = (struct program_setting){argv[1], strtoull(value + 1, NULL, 0)};
	}
	if (argc != 2) {
		fprintf(stderr, "usage: compile [-M] [-C] [NAME=VALUE...] FILE\n");
		return 2;
	}
	f = fopen(argv[1], "rb");
	if (!f) {
		perror(argv[1]);
		return 2;
	}
	src.len = fread(text, 1, sizeof(text), f);
	fclose(f);
	src.name = strrchr(argv[1], '/');
	src.name = src.name ? src.name + 1 : argv[1];
	r = program_compile(&src, settings, n, &target, &program, &said);
	if (said)
		fputs(said, stdout);
	free(said);
	program_free(program);
	return r == 0 ? 0 : r == PROGRAM_REFUSED ? 1 : 2;
}
