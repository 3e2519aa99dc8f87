/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/subcommands.h"

#include "tools/common/tool.h"
#include "util/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MAX_WORDS = 32 };

static const struct word *at(const struct words *w, size_t i)
{
	return (const struct word *)((const char *)w->table + i * w->size);
}

const void *words_find(const struct words *w, const char *name)
{
	const char *names[MAX_WORDS];
	char hint[TEXT_HINT], list[40];

	assert(w->n <= MAX_WORDS);
	for (size_t i = 0; i < w->n; i++) {
		names[i] = at(w, i)->name;
		if (strcmp(name, names[i]) == 0)
			return at(w, i);
	}
	snprintf(list, sizeof(list), "; %s --help lists them", w->tool);
	tool_complain("there is no command \"%s\"%s", name, text_hint(hint, name, names, w->n, list));
	return NULL;
}

void words_list(const struct words *w, int width)
{
	for (size_t i = 0; i < w->n; i++)
		printf("  %-8s %-*s %s\n", at(w, i)->name, width, at(w, i)->args ? at(w, i)->args : "",
			at(w, i)->help);
}

void words_names(const struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		printf("%s%s", i ? " " : "", at(w, i)->name);
}

void words_options(const struct option *options)
{
	for (size_t i = 0; options[i + 1].name; i++)
		printf("%s--%s", i ? " " : "", options[i].name);
}
