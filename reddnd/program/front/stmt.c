/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/sema.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static void block(struct sema *s, const struct syn_block *syn, struct ast_block *out, bool outermost);

static bool give_up(struct sema *s, struct diag_pos pos)
{
	const bool statements = s->statements >= PROGRAM_MAX_STATEMENTS || pool_is_full(s->pool),
		   decisions = s->decisions > PROGRAM_MAX_DECISIONS;

	if (!s->given_up && !statements && !decisions)
		return diag_is_full(s->d);
	if (!s->given_up && statements)
		sema_error(s, LIMIT, pos,
			"the program has more than %d statements when its loops are unrolled",
			PROGRAM_MAX_STATEMENTS);
	else if (!s->given_up)
		sema_error(s, LIMIT, pos,
			"the program has more than %d iterations and comparisons when its loops are unrolled",
			PROGRAM_MAX_DECISIONS);
	s->given_up = true;
	return true;
}

/* Labels are known in all of the iteration they are in, blocks other than loops included, and before their
 * verb */
static void declare_labels(struct sema *s, const struct syn_block *syn)
{
	for (unsigned i = 0; i < syn->n; i++) {
		const struct syn_stmt *st = &syn->stmt[i];
		struct sym *sym;

		if (st->kind == SYN_IF || st->kind == SYN_ON)
			declare_labels(s, &st->body);
		declare_labels(s, &st->otherwise);
		if (st->kind != SYN_VERB || !st->verb->label.word)
			continue;
		sym = scope_declare(s, st->verb->label, SYM_LABEL);
		sym->verb = pool_alloc(s->pool, sizeof(*sym->verb));
		sym->verb->kind = st->verb->kind;
		sym->verb->pos = st->verb->pos;
	}
}

static bool is_ahead(struct sema *s, const struct syn_verb *v)
{
	uint64_t number = v->ahead;

	return (!v->ahead_if || sema_number(s, v->ahead_if, "whether it is ahead", 0, 1, &number)) && number;
}

static void verb(struct sema *s, const struct syn_stmt *st, struct ast_block *out)
{
	const struct sym *label = st->verb->label.word ? scope_find(s, st->verb->label.word) : NULL;
	bool own = label && label->kind == SYM_LABEL && label->pos.line == st->verb->label.pos.line &&
		   label->pos.col == st->verb->label.pos.col;
	struct ast_verb *v = own ? label->verb : pool_alloc(s->pool, sizeof(*v));

	v->kind = st->verb->kind;
	v->pos = st->verb->pos;
	v->fence = st->verb->fence;
	v->ahead = is_ahead(s, st->verb);
	v->queue = s->queue;
	v->under = s->under;
	if (own)
		v->name = scope_unique(s, pool_printf(s->pool, "%s%s", label->word, s->suffix), true);
	if (!sema_verb(s, st->verb, v))
		assert(diag_errors(s->d) && "a verb is refused without a word");
	pool_grow(s->pool, s->prog->verb, s->prog->nverbs);
	s->prog->verb[s->prog->nverbs++] = v;
	sema_add_verb(s, out, v, st->pos);
}

/* A block with names of its own, its statements into @out */
static void inner(struct sema *s, const struct syn_block *syn, struct ast_block *out)
{
	struct scope scope;

	scope_enter(s, &scope);
	block(s, syn, out, false);
	scope_leave(s);
}

static void branch(struct sema *s, const struct syn_stmt *st, struct ast_block *out)
{
	struct ast_block then = {0}, otherwise = {0};
	const struct ast_under *around = s->under;
	const struct ast_cond *cond = NULL;
	struct ast_stmt *made;
	bool holds = false;
	enum sema_constness c = sema_cond(s, st->cond, &cond, &holds);

	if (c == SEMA_CONST) {
		inner(s, holds ? &st->body : &st->otherwise, out);
		return;
	}
	sema_go_under(s, cond, true);
	inner(s, &st->body, &then);
	s->under = around;
	sema_go_under(s, cond, false);
	inner(s, &st->otherwise, &otherwise);
	s->under = around;
	if (c == SEMA_ERROR)
		return;
	made = sema_add_stmt(s, out, AST_IF, st->pos);
	made->cond = cond;
	made->then = then;
	made->otherwise = otherwise;
}

/* Comparisons in a condition */
static unsigned terms(const struct ast_cond *c)
{
	return !c ? 0 : c->kind == AST_COMPARE ? 1 : terms(c->first) + terms(c->second);
}

/* One iteration: @counter is the for's variable, or NULL */
static void iteration(struct sema *s, const struct syn_stmt *st, struct ast_loop *loop,
	const struct syn_name *counter, uint64_t number)
{
	const char *suffix = s->suffix;
	struct ast_block body = {0};
	struct scope scope;

	/* a loop's condition is looked at once, and decided in each */
	s->decisions += 1 + terms(loop->cond);
	scope_enter(s, &scope);
	if (!loop->endless)
		s->suffix = pool_printf(s->pool, "%s[%" PRIu64 "]", suffix, number);
	if (counter) {
		struct sym *sym = scope_declare(s, *counter, SYM_NUMBER);

		sym->number = number;
	}
	declare_labels(s, &st->body);
	block(s, &st->body, &body, false);
	scope_leave(s);
	s->suffix = suffix;
	pool_grow(s->pool, loop->iter, loop->niters);
	loop->iter[loop->niters++] = body;
}

static bool range(struct sema *s, const struct syn_stmt *st, uint64_t *lo, uint64_t *hi)
{
	if (!sema_number(s, st->lo, "the range of a for", 0, UINT64_MAX, lo) ||
		!sema_number(s, st->hi, "the range of a for", 0, UINT64_MAX, hi))
		return false;
	if (*lo > *hi)
		return sema_error(s, VALUE, st->lo->pos,
			"the range ends, with %" PRIu64 ", before it begins, with %" PRIu64, *hi, *lo);
	if (*hi - *lo > PROGRAM_MAX_ITERATIONS)
		return sema_error(s, LIMIT, st->lo->pos, "%" PRIu64 " iterations; a loop may have %d",
			*hi - *lo, PROGRAM_MAX_ITERATIONS);
	return true;
}

/* The bounds of a loop: iterations lo to hi - 1 */
static bool bounds(
	struct sema *s, const struct syn_stmt *st, struct ast_loop *loop, uint64_t *lo, uint64_t *hi)
{
	*lo = 0;
	*hi = 1;
	if (st->kind == SYN_FOR)
		return range(s, st, lo, hi);
	if (st->count)
		return sema_number(s, st->count, "the number of iterations", 1, PROGRAM_MAX_ITERATIONS, hi);
	if (!s->prog->endless)
		return sema_error(s, LOOP, st->pos,
			"the loop has no bound; give it one (\"max 8\"), or declare the program \"endless\"");
	if (s->loop)
		return sema_error(s, LOOP, st->pos,
			"a loop without a bound inside a loop; only the outermost can be recycled");
	loop->endless = true;
	return true;
}

static void loop(struct sema *s, const struct syn_stmt *st, struct ast_block *out)
{
	struct ast_loop *l = pool_alloc(s->pool, sizeof(*l)), *around = s->loop;
	bool endless = s->endless, holds, fine;
	uint64_t lo, hi;

	fine = bounds(s, st, l, &lo, &hi);

	l->kind = st->kind == SYN_FOR ? AST_FOR : st->kind == SYN_WHILE ? AST_WHILE : AST_FOREVER;
	if (st->kind == SYN_WHILE) {
		enum sema_constness c = sema_cond(s, st->cond, &l->cond, &holds);

		if (c == SEMA_CONST)
			sema_error(s, LOOP, st->cond->pos,
				"the condition never changes; write \"loop\" or \"for\"");
		fine &= c == SEMA_RUNTIME;
	}
	if (!fine) { /* what is in it is looked at once */
		if (st->kind == SYN_FOR) {
			lo = 0;
			hi = 1;
		}
		hi = lo + 1;
	}
	s->loop = l;
	s->endless |= l->endless;
	for (uint64_t i = lo; i < hi && !give_up(s, st->pos); i++)
		iteration(s, st, l, st->kind == SYN_FOR ? &st->name : NULL, i);
	s->loop = around;
	s->endless = endless;
	inner(s, &st->otherwise, &l->otherwise);
	if (st->otherwise.n && (l->endless || st->kind == SYN_WHILE))
		sema_error(s, LOOP, st->otherwise.stmt[0].pos,
			"\"else\" after a loop that %s; it is for a \"for\" or a \"loop max\" that no break "
			"has left",
			l->endless ? "has no bound" : "its condition ends as well");
	sema_add_stmt(s, out, AST_LOOP, st->pos)->loop = l;
}

static void leave(struct sema *s, const struct syn_stmt *st, struct ast_block *out)
{
	if (!s->loop) {
		sema_error(s, LOOP, st->pos, "\"break\" outside a loop");
		return;
	}
	s->loop->breaks = true;
	sema_add_stmt(s, out, AST_BREAK, st->pos)->loop = s->loop;
}

static void on(struct sema *s, const struct syn_stmt *st, struct ast_block *out)
{
	const struct ast_queue *around = s->queue;
	const struct sym *sym =
		scope_need_kind(s, st->name, SYM_QUEUE, "; declare \"queue NAME\" and use that");
	uint32_t index;

	if (sym && sema_index(s, st->count, st->name.pos, sym->word, sym->count, &index))
		s->queue = sym->queue[index];
	inner(s, &st->body, out);
	s->queue = around;
}

static void block(struct sema *s, const struct syn_block *syn, struct ast_block *out, bool outermost)
{
	for (unsigned i = 0; i < syn->n; i++) {
		const struct syn_stmt *st = &syn->stmt[i];

		if (give_up(s, st->pos))
			return;
		s->statements++;
		switch ((enum syn_kind)st->kind) {
		case SYN_VERB:
			verb(s, st, out);
			break;
		case SYN_IF:
			branch(s, st, out);
			break;
		case SYN_FOR:
		case SYN_WHILE:
		case SYN_LOOP:
			loop(s, st, out);
			break;
		case SYN_BREAK:
			leave(s, st, out);
			break;
		case SYN_ON:
			on(s, st, out);
			break;
		default:
			sema_declare(s, st, outermost);
		}
	}
}

static void check_uses(struct sema *s)
{
	for (unsigned i = 0; i < s->nimplied; i++) {
		if (!s->implied[i]->used)
			sema_error(s, NAME, s->implied[i]->pos,
				"\"%s\" is set here for the first time and never used; is the name right?",
				s->implied[i]->word);
	}
}

static void check_answer(struct sema *s)
{
	for (unsigned i = 0; i < s->prog->nverbs; i++) {
		if (s->prog->verb[i]->kind == AST_WRITE_IMM || s->prog->verb[i]->kind == AST_SEND)
			return;
	}
	sema_error(s, ANSWER, s->prog->pos,
		"the program never answers; every path ends with a write_imm to slot");
}

/* A client of such a program has room for one of the two */
static void check_shape(struct sema *s)
{
	const bool sends = s->prog->shape == PROGRAM_INTO;

	for (unsigned i = 0; s->prog->shape != PROGRAM_OPAQUE && i < s->prog->nverbs; i++) {
		const struct ast_verb *v = s->prog->verb[i];

		if (v->kind == (sends ? AST_WRITE_IMM : AST_SEND))
			sema_error(s, ANSWER, v->pos,
				"a program of shape %s answers with %s; its clients are not ready for "
				"another answer",
				program_shape_name(s->prog->shape), sends ? "send" : "write_imm");
	}
}

void sema_body(struct sema *s, const struct syn_block *b)
{
	struct scope scope;

	s->body = b;
	scope_enter(s, &scope);
	declare_labels(s, b);
	block(s, b, &s->prog->body, true);
	scope_leave(s);
	if (diag_errors(s->d))
		return;
	sema_check_fields(s);
	sema_find_buckets(s);
	sema_replies(s);
	check_uses(s);
	if (!s->prog->endless)
		check_answer(s);
	check_shape(s);
	sema_check_settings(s);
}
