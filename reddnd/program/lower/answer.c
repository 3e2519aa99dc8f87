/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request is answered once, whatever its conditions come to. Conditions are nested, so that the answers of
 * a right program are the leaves of a tree: no two of them can both run, and if one condition has an answer
 * on one side, it has on the other.
 */
#include "reddnd/program/lower/ir.h"

static const struct ast_verb *answer(const struct op *op)
{
	return op->verb && (op->verb->kind == AST_WRITE_IMM || op->verb->kind == AST_SEND) ? op->verb : NULL;
}

/* True if @g can hold with what is assumed. *open: the outermost condition that this leaves open; NULL if
 * there is none, or if @g cannot hold */
static bool possible(const struct guard *g, const struct guard **open)
{
	*open = NULL;
	for (; g; g = g->up) {
		if (g->test->assumed == (g->otherwise ? 1 : -1)) {
			*open = NULL; /* a condition further in decides nothing here */
			return false;
		}
		if (!g->test->assumed)
			*open = g;
	}
	return true;
}

/* @last: what was assumed last; NULL: nothing */
static bool answered(struct lower *l, const struct test *last)
{
	const struct guard *open = NULL;
	bool any = false, both = true;

	for (unsigned i = 0; i < l->nops && !open; i++)
		if (answer(&l->op[i]) && possible(l->op[i].guard, &open)) {
			if (!open)
				return true;
			any = true;
		}
	if (!any && !last)
		return lower_refuse(l, ANSWER, l->p->pos,
			"this program never answers; end it with a `write_imm` to the slot");
	if (!any)
		return lower_refuse(l, ANSWER, last->cond->pos,
			"a request for which this %s is never answered; let it have a `write_imm` too, or "
			"answer after the conditions",
			last->assumed < 0 ? "does not hold" : "holds");
	for (int side = 0; side < 2 && both; side++) {
		open->test->assumed = side ? -1 : 1;
		both = answered(l, open->test);
	}
	open->test->assumed = 0;
	return both;
}

static const struct ast_verb *slot_write(const struct op *op)
{
	return op->verb && op->verb->kind == AST_WRITE && op->verb->place->kind == AST_AT_SLOT ? op->verb
											       : NULL;
}

/* Once it has its answer, the client may have another request answered there */
static bool writes_late(struct lower *l)
{
	for (unsigned i = 0; i < l->nops; i++)
		for (unsigned k = i + 1; answer(&l->op[i]) && k < l->nops; k++)
			if (slot_write(&l->op[k]) && !lower_excludes(l->op[i].guard, l->op[k].guard))
				return !lower_refuse(l, ANSWER, slot_write(&l->op[k])->pos,
					"line %u may have answered before this, and the slot is the "
					"client's again; "
					"write to it before the answer",
					answer(&l->op[i])->pos.line);
	return false;
}

static void refuse_second(struct lower *l, const struct ast_verb *first, const struct ast_verb *second)
{
	if (first->pos.line == second->pos.line && first->pos.col == second->pos.col)
		lower_refuse(l, ANSWER, second->pos,
			"an earlier iteration of the loop may have answered the request already, and a "
			"request is answered once; set a variable here and answer after the loop, or leave "
			"the loop with a `break` under one `if`, whose conditions `&&` joins");
	else
		lower_refuse(l, ANSWER, second->pos,
			"line %u may have answered the request already, and a request is answered once; put "
			"one of the two into the `else` of the other's condition",
			first->pos.line);
}

void lower_check_answers(struct lower *l)
{
	for (unsigned i = 0; i < l->nops; i++)
		for (unsigned k = i + 1; k < l->nops; k++)
			if (answer(&l->op[i]) && answer(&l->op[k]) &&
				!lower_excludes(l->op[i].guard, l->op[k].guard)) {
				refuse_second(l, answer(&l->op[i]), answer(&l->op[k]));
				return;
			}
	if (!writes_late(l))
		answered(l, NULL);
}
