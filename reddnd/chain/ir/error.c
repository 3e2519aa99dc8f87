/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/error.h"

#include "reddnd/chain/ir/build.h"
#include "reddnd/chain/ir/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const names[CHAIN_ERROR_CODES] = {"NONE",
#define X(code, words) #code,
	CHAIN_ERRORS(X)
#undef X
};

static const char *const words_of[CHAIN_ERROR_CODES] = {"",
#define X(code, words) words,
	CHAIN_ERRORS(X)
#undef X
};

struct chain_error_at chain_error_step(const struct chain_desc *d, unsigned s)
{
	const struct chain_step *st = &d->steps[s];
	struct chain_error_at at = {.index = (uint16_t)s, .line = st->line};

	if (st->label)
		snprintf(at.label, sizeof(at.label), "%s", st->label);
	if (st->verb < CHAIN_VERBS)
		at.verb = chain_verb_info(st->verb)->name;
	return at;
}

static void add_step(struct chain_line *l, const struct chain_error_at *at)
{
	if (at->is_argument)
		chain_line_add(l, "argument %u", at->index);
	else if (at->label[0])
		chain_line_add(l, "step \"%s\"", at->label);
	else
		chain_line_add(l, "step %u (%s)", at->index, at->verb ? at->verb : "?");
	if (at->line)
		chain_line_add(l, " (line %u)", at->line);
}

/* @word: what is between two braces of the words */
static void add_word(struct chain_line *l, const struct chain_error *e, const char *word)
{
	if (*word == 'a')
		add_step(l, &e->at);
	else if (*word == 'o')
		add_step(l, &e->other);
	else if (*word == 'n')
		chain_line_add(l, "%s", e->name ? e->name : "");
	else if (*word == 'w')
		chain_line_add(l, "%s", e->what ? e->what : "");
	else if (*word == 'x')
		chain_line_add(l, "%#" PRIx64, e->number[0]);
	else
		chain_line_add(l, "%" PRIu64, e->number[*word - '0']);
}

const char *chain_error_text(const struct chain_error *e, char *text, size_t size)
{
	struct chain_line l = {text, size, 0};
	const char *word, *rest = words_of[e->code];

	text[0] = '\0';
	while ((word = strchr(rest, '{')) != NULL) {
		chain_line_add(&l, "%.*s", (int)(word - rest), rest);
		add_word(&l, e, word + 1);
		rest = strchr(word, '}') + 1;
	}
	chain_line_add(&l, "%s", rest);
	return text;
}

const char *chain_error_name(enum chain_error_code code)
{
	return names[code];
}
