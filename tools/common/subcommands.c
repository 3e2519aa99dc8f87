/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/subcommands.h"

#include "tools/common/tool.h"
#include "util/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MAX_SUBCOMMANDS = 32 };

const struct subcommand *subcommands_at(const struct subcommands *s, size_t i)
{
	return (const struct subcommand *)((const char *)s->table + i * s->size);
}

const void *subcommands_find(const struct subcommands *s, const char *name)
{
	const char *names[MAX_SUBCOMMANDS];
	char hint[TEXT_HINT], list[40];

	assert(s->n <= MAX_SUBCOMMANDS);
	for (size_t i = 0; i < s->n; i++) {
		names[i] = subcommands_at(s, i)->name;
		if (strcmp(name, names[i]) == 0)
			return subcommands_at(s, i);
	}
	snprintf(list, sizeof(list), "; %s --help lists them", s->tool);
	tool_complain("there is no command \"%s\"%s", name, text_hint(hint, name, names, s->n, list));
	return NULL;
}

void subcommands_list(const struct subcommands *s, int width)
{
	size_t longest = 0;

	for (size_t i = 0; i < s->n; i++)
		if (strlen(subcommands_at(s, i)->name) > longest)
			longest = strlen(subcommands_at(s, i)->name);
	for (size_t i = 0; i < s->n; i++)
		printf("  %-*s %-*s %s\n", (int)longest, subcommands_at(s, i)->name, width,
			subcommands_at(s, i)->args ? subcommands_at(s, i)->args : "",
			subcommands_at(s, i)->help);
}
