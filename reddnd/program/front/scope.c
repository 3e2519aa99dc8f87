/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/sema.h"

#include "util/text.h"

#include <string.h>

void scope_enter(struct sema *s, struct scope *inner)
{
	*inner = (struct scope){.up = s->scope};
	s->scope = inner;
}

void scope_leave(struct sema *s)
{
	s->scope = s->scope->up;
}

struct sym *scope_find(const struct sema *s, const char *word)
{
	for (const struct scope *scope = s->scope; scope; scope = scope->up) {
		for (struct sym *sym = scope->syms; sym; sym = sym->next) {
			if (!strcmp(sym->word, word))
				return sym;
		}
	}
	return NULL;
}

const char *scope_what(const struct sym *sym)
{
	static const char *const WHAT[] = {[SYM_BAD] = "a name",
		[SYM_OPEN] = "a name",
		[SYM_NUMBER] = "a constant",
		[SYM_REGION] = "a region",
		[SYM_STRUCT] = "a structure",
		[SYM_ARG] = "an argument",
		[SYM_VAR] = "a variable",
		[SYM_QUEUE] = "a queue",
		[SYM_PAYLOAD] = "the payload",
		[SYM_LABEL] = "a label"};

	return WHAT[sym->kind];
}

struct sym *scope_declare(struct sema *s, struct syn_name name, enum sym_kind kind)
{
	const struct sym *before = scope_find(s, name.word);
	struct sym *sym = pool_alloc(s->pool, sizeof(*sym));

	sym->kind = kind;
	sym->word = name.word;
	sym->pos = name.pos;
	if (before) {
		diag_error(s->d, NAME, name.pos, "\"%s\" is already %s; choose another name", name.word,
			scope_what(before));
		diag_note(s->d, before->pos, "it is declared here");
		sym->kind = SYM_BAD;
		return sym;
	}
	sym->next = s->scope->syms;
	s->scope->syms = sym;
	return sym;
}

/* A declaration of that name anywhere, in view or not */
static const struct syn_name *declaration(const struct syn_block *b, const char *word)
{
	const struct syn_name *found = NULL;

	for (unsigned i = 0; i < b->n && !found; i++) {
		const struct syn_stmt *st = &b->stmt[i];

		if (st->kind == SYN_VERB && st->verb->label.word && !strcmp(st->verb->label.word, word))
			return &st->verb->label;
		if (st->kind != SYN_ON && st->kind != SYN_REPLY && st->name.word &&
			!strcmp(st->name.word, word))
			return &st->name;
		for (unsigned n = 0; n < st->nnames; n++) {
			if (!strcmp(st->names[n].word, word))
				return &st->names[n];
		}
		found = declaration(&st->body, word);
		if (!found)
			found = declaration(&st->otherwise, word);
	}
	return found;
}

struct sym *scope_need(struct sema *s, struct syn_name name)
{
	struct sym *sym = scope_find(s, name.word);
	const char *words[PROGRAM_MAX_LIST] = {"slot"}, *nearest;
	const struct syn_name *elsewhere;
	unsigned n = 1;

	if (sym && sym->kind == SYM_OPEN) {
		sema_error(s, NAME, name.pos, "\"%s\" is used in its own declaration", name.word);
		return NULL;
	}
	if (sym)
		return sym->kind == SYM_BAD ? NULL : sym;
	elsewhere = declaration(s->body, name.word);
	if (elsewhere) {
		diag_error(s->d, NAME, name.pos,
			"\"%s\" is not known here; a name is known from its declaration to the end of its "
			"block",
			name.word);
		diag_note(s->d, elsewhere->pos, "it is declared here");
		return NULL;
	}
	for (const struct scope *scope = s->scope; scope; scope = scope->up) {
		for (sym = scope->syms; sym && n < PROGRAM_MAX_LIST; sym = sym->next)
			words[n++] = sym->word;
	}
	nearest = text_nearest(name.word, words, n);
	if (nearest)
		diag_error(s->d, NAME, name.pos, "there is no \"%s\" here; did you mean \"%s\"?", name.word,
			nearest);
	else
		diag_error(s->d, NAME, name.pos,
			"there is no \"%s\"; it has to be declared before it is used", name.word);
	return NULL;
}

struct sym *scope_need_kind(struct sema *s, struct syn_name name, enum sym_kind kind, const char *instead)
{
	struct sym *sym = scope_need(s, name);

	if (!sym || sym->kind == kind)
		return sym;
	sema_error(s, TYPE, name.pos, "\"%s\" is %s%s", sym->word, scope_what(sym), instead);
	return NULL;
}

static bool is_taken(const struct sema *s, const char *name, bool verb)
{
	for (unsigned i = 0; i < (verb ? s->prog->nverbs : s->prog->nvars); i++) {
		const char *other = verb ? s->prog->verb[i]->name : s->prog->var[i]->name;

		if (other && !strcmp(other, name))
			return true;
	}
	return false;
}

const char *scope_unique(struct sema *s, const char *name, bool verb)
{
	const char *unique = name;

	for (unsigned n = 2; is_taken(s, unique, verb); n++)
		unique = pool_printf(s->pool, "%s.%u", name, n);
	return unique;
}
