/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/verbs.h"

#include "tools/common/help.h"
#include "tools/common/tool.h"

#include <stdio.h>
#include <string.h>

enum { LETTERS_MAX = 64, NAME_MAX_BYTES = 64 };

static int show(const char *text)
{
	fputs(text, stdout);
	return 0;
}

static const struct verb *at(const struct verbs *v, size_t i)
{
	return (const struct verb *)((const char *)v->table + i * v->size);
}

static int show_all(const struct verbs *v)
{
	fputs(v->usage, stdout);
	for (size_t i = 0, n = 0; i < v->n; i++)
		if (at(v, i)->examples)
			printf("%s%s", n++ ? "" : "\nExamples:\n", at(v, i)->examples);
	return 0;
}

static int show_verb(const struct verbs *v, const struct verb *verb)
{
	help_verb(stdout, v->usage, &(struct help_verb){v->tool, verb->is.name, verb->options});
	help_examples(stdout, verb->examples);
	return 0;
}

static int show_usage(const struct verbs *v)
{
	fputs(v->usage, stderr);
	return 2;
}

static int wrong_number(const struct verbs *v, const struct verb *verb, int n)
{
	tool_complain("%s: %s; %s %s --help shows what it takes", verb->is.name,
		n < verb->min_args ? "an argument is missing" : "there are too many arguments", v->tool,
		verb->is.name);
	help_usage(stderr, v->usage, &(struct help_verb){v->tool, verb->is.name, verb->options});
	return 2;
}

/* The verb @first. NULL: there is none, and *@status is set */
static const struct verb *find(const struct verbs *v, const char *first, int *status)
{
	const struct verb *verb = NULL;

	*status = 2;
	if (!first)
		show_usage(v);
	else if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
		*status = show_all(v);
	else if (v->version && (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0))
		*status = show(v->version);
	else
		verb = subcommands_find(&(struct subcommands){v->tool, v->table, v->n, v->size}, first);
	return verb;
}

/* -1, or the exit status */
static int set(const struct verbs *v, const struct verb *verb, void *arguments, int letter)
{
	if (letter == 'h')
		return show_verb(v, verb);
	if (letter == '?')
		return 2;
	if (!strchr(verb->options, letter))
		return tool_complain("%s takes no option -%c", verb->is.name, letter);
	if (!v->set(arguments, letter, optarg))
		return tool_complain("\"%s\" is no value for option -%c, or out of range%s; see %s %s --help",
			optarg, letter, v->values ? v->values : "", v->tool, verb->is.name);
	return -1;
}

/* Their number, without a "--" before others */
static int skip_dashes(const struct verbs *v, char **args, int n)
{
	const int at = v->before_dashes;

	if (!at || n < at + 2 || strcmp(args[at], "--") != 0)
		return n;
	memmove(&args[at], &args[at + 1], (size_t)(n - at) * sizeof(*args));
	return n - 1;
}

const void *verbs_parse(
	const struct verbs *v, int argc, char **argv, void *arguments, char ***args, int *status)
{
	const struct verb *verb = find(v, argc > 1 ? argv[1] : NULL, status);
	char letters[LETTERS_MAX], name[NAME_MAX_BYTES];
	int letter, r = -1, n;

	if (!verb)
		return NULL;
	snprintf(letters, sizeof(letters), "%sh", v->letters);
	/* which getopt_long(3) puts before its messages */
	snprintf(name, sizeof(name), "%s %s", v->tool, verb->is.name);
	argv[1] = name;
	while (r < 0 && (letter = getopt_long(argc - 1, argv + 1, letters, v->options, NULL)) != -1)
		r = set(v, verb, arguments, letter);
	n = skip_dashes(v, argv + 1 + optind, argc - 1 - optind);
	if (r < 0 && (n < verb->min_args || n > verb->max_args))
		r = wrong_number(v, verb, n);
	argv[1] = (char *)(uintptr_t)verb->is.name;
	*status = r;
	*args = argv + 1 + optind;
	return r < 0 ? verb : NULL;
}
