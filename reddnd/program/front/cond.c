/* SPDX-License-Identifier: BSD-2-Clause */
/* What may be compared with what */
#include "reddnd/program/front/sema.h"

#include <inttypes.h>

static void swap_sides(struct ast_cond *c)
{
	static const uint8_t MIRROR[] = {[AST_REL_EQ] = AST_REL_EQ,
		[AST_REL_NE] = AST_REL_NE,
		[AST_REL_LT] = AST_REL_GT,
		[AST_REL_GT] = AST_REL_LT,
		[AST_REL_LE] = AST_REL_GE,
		[AST_REL_GE] = AST_REL_LE};
	struct ast_operand left = c->left;

	c->left = c->right;
	c->right = left;
	c->relation = MIRROR[c->relation];
}

static bool holds(uint8_t relation, uint64_t a, uint64_t b)
{
	switch ((enum ast_relation)relation) {
	case AST_REL_EQ:
		return a == b;
	case AST_REL_NE:
		return a != b;
	case AST_REL_LT:
		return a < b;
	case AST_REL_GT:
		return a > b;
	case AST_REL_LE:
		return a <= b;
	case AST_REL_GE:
		break;
	}
	return a >= b;
}

/* The NIC does not add here: argument and constant are different bytes of one operand */
static bool above_fits(struct sema *s, const struct ast_cond *c)
{
	const struct ast_operand *arg = &c->right;
	uint64_t unit = arg->type.bytes < 8 ? 1ull << 8 * arg->type.bytes : 0;

	if (!unit || c->left.type.bytes <= arg->type.bytes)
		return sema_error(s, VALUE, arg->pos,
			"there is no room for 0x%" PRIx64
			" above \"%s\": it is compared with %s, which is not "
			"wider than it",
			arg->value, arg->arg->name, sema_type_name(&c->left.type));
	if (arg->value % unit)
		return sema_error(s, VALUE, arg->pos,
			"0x%" PRIx64 " reaches into the %u bits of \"%s\", and a NIC does not add here: what "
			"is above an argument is a multiple of 0x%" PRIx64,
			arg->value, 8 * arg->type.bytes, arg->arg->name, unit);
	return sema_fits(&c->left.type, arg->value) ||
	       sema_error(s, VALUE, arg->pos, "0x%" PRIx64 " does not fit into %s", arg->value,
		       sema_type_name(&c->left.type));
}

static bool comparable(struct sema *s, const struct ast_cond *c)
{
	const struct ast_type *l = &c->left.type, *r = &c->right.type;
	bool ordered = c->relation != AST_REL_EQ && c->relation != AST_REL_NE;
	bool var = c->left.kind == AST_PLACE;

	if (l->kind == AST_OFFSET || r->kind == AST_OFFSET)
		return sema_error(
			s, PLACE, c->pos, "an offset cannot be compared; mov it into a variable first");
	if ((l->kind == AST_BYTES) != (r->kind == AST_BYTES) ||
		(l->kind == AST_BYTES && l->bytes != r->bytes))
		return sema_error(s, TYPE, c->pos, "%s cannot be compared with %s", sema_type_name(l),
			sema_type_name(r));
	if (l->kind == AST_BYTES) {
		if (ordered)
			return sema_error(
				s, TYPE, c->pos, "bytes are compared with == and !=; they are no number");
		return l->bytes <= PROGRAM_MAX_COMPARED ||
		       sema_error(s, LIMIT, c->pos, "%s in a comparison; %d bytes are the limit",
			       sema_type_name(l), PROGRAM_MAX_COMPARED);
	}
	if (ordered && var && l->order == AST_BE)
		return sema_error(s, TYPE, c->pos,
			"the NIC calculates with little-endian numbers; mov swab(...) into an le%u first",
			8 * l->bytes);
	if (c->right.kind == AST_CONST)
		return true;
	if (c->right.kind == AST_ARG && c->right.value && !above_fits(s, c))
		return false;
	if (!var && c->right.kind == AST_ARG && !c->right.value) /* both are sent as they are needed */
		return true;
	if (r->bytes > l->bytes || (c->right.kind == AST_PLACE && r->bytes < l->bytes))
		return sema_error(s, TYPE, c->pos, "%s compared with %s; %s", sema_type_name(l),
			sema_type_name(r),
			c->right.kind == AST_PLACE ? "variables must have the same type"
						   : "the argument must not be wider");
	if (c->right.kind == AST_ARG || l->order == AST_ANY || r->order == AST_ANY)
		return true;
	return l->order == r->order ||
	       sema_error(s, TYPE, c->pos,
		       "%s compared with %s: the byte orders differ; mov swab(...) turns one into the other",
		       sema_type_name(l), sema_type_name(r));
}

/* Of ARG + CONSTANT, in whatever order, the argument; *@above is the rest. Of all else: @e, 0 */
static const struct syn_expr *argument_of(struct sema *s, const struct syn_expr *e, uint64_t *above)
{
	const struct syn_expr *part = e;
	const struct sym *sym;
	uint64_t sum = 0, value;

	*above = 0;
	while (part->kind == SYN_BINARY && part->op == '+') {
		bool left = sema_eval(s, part->left, &value) == SEMA_CONST;

		if ((!left && sema_eval(s, part->right, &value) != SEMA_CONST) ||
			__builtin_add_overflow(sum, value, &sum))
			return e;
		part = left ? part->right : part->left;
	}
	sym = part->kind == SYN_REF ? scope_find(s, part->name.word) : NULL;
	if (!sym || sym->kind != SYM_ARG)
		return e;
	*above = sum;
	return part;
}

/* One side of a condition. @type: that of the other side, for a constant */
static bool typed_side(
	struct sema *s, const struct syn_expr *e, const struct ast_type *type, struct ast_operand *op)
{
	uint64_t above;

	if (!sema_operand(s, argument_of(s, e, &above), type, op))
		return false;
	if (above && op->type.kind != AST_UINT)
		return sema_error(s, TYPE, e->pos, "a number is added to \"%s\", which is %s", op->arg->name,
			sema_type_name(&op->type));
	op->value |= above;
	op->pos = e->pos;
	return op->kind != AST_PLACE || sema_has_type(s, op->place);
}

static enum sema_constness compare(
	struct sema *s, const struct syn_cond *syn, const struct ast_cond **cond, bool *held)
{
	struct ast_cond *c = pool_alloc(s->pool, sizeof(*c));
	uint64_t a = 0, b = 0;
	enum sema_constness left = sema_eval(s, syn->left, &a), right;

	if (left == SEMA_ERROR)
		return SEMA_ERROR;
	right = sema_eval(s, syn->right, &b);
	if (right == SEMA_ERROR)
		return SEMA_ERROR;
	if (left == SEMA_CONST && right == SEMA_CONST) {
		*held = holds(syn->relation, a, b);
		return SEMA_CONST;
	}
	s->decisions++;
	*cond = c;
	c->relation = syn->relation;
	c->pos = syn->pos;
	c->queue = s->queue;
	if (left == SEMA_CONST) { /* constants take their type from the other side */
		if (!typed_side(s, syn->right, NULL, &c->right) ||
			!sema_operand(s, syn->left, &c->right.type, &c->left))
			return SEMA_ERROR;
		swap_sides(c);
	} else {
		if (!typed_side(s, syn->left, NULL, &c->left) ||
			!typed_side(s, syn->right, &c->left.type, &c->right))
			return SEMA_ERROR;
		if ((c->right.kind == AST_PLACE &&
			    (c->left.kind == AST_ARG || c->right.place->kind != AST_AT_VAR)) ||
			(c->left.kind == AST_ARG && c->left.value && c->right.kind == AST_ARG))
			swap_sides(c);
	}
	if (c->left.kind == AST_ARG && c->left.value) {
		sema_error(s, VALUE, c->left.pos,
			"a constant is added to an argument only for the comparison with something wider "
			"that is not constant");
		return SEMA_ERROR;
	}
	if (c->left.swab || c->right.swab) {
		sema_error(s, TYPE, c->pos, "swab in a comparison; mov it into a variable first");
		return SEMA_ERROR;
	}
	if ((c->right.kind == AST_PLACE && c->right.place->kind != AST_AT_VAR) ||
		(c->left.kind == AST_PLACE && c->left.place->kind == AST_AT_FIELD)) {
		sema_error(s, PLACE, c->pos,
			"a comparison is between a variable or a place in a region, and a variable, an "
			"argument or a constant");
		return SEMA_ERROR;
	}
	return comparable(s, c) ? SEMA_RUNTIME : SEMA_ERROR;
}

enum sema_constness sema_cond(
	struct sema *s, const struct syn_cond *syn, const struct ast_cond **cond, bool *held)
{
	const bool and = syn->kind == AST_AND;
	struct ast_cond c = {.kind = syn->kind, .queue = s->queue, .pos = syn->pos};
	enum sema_constness first, second;
	struct ast_cond *both;

	if (syn->kind == AST_COMPARE)
		return compare(s, syn, cond, held);
	first = sema_cond(s, syn->first, &c.first, held);
	/* a constant that decides leaves the rest out: that need not be right then */
	if (first == SEMA_ERROR || (first == SEMA_CONST && *held != and))
		return first;
	second = sema_cond(s, syn->second, &c.second, held);
	if (first == SEMA_CONST || second == SEMA_ERROR || (second == SEMA_CONST && *held != and)) {
		*cond = c.second;
		return second;
	}
	*cond = c.first;
	if (second == SEMA_RUNTIME) {
		both = pool_alloc(s->pool, sizeof(*both));
		*both = c;
		*cond = both;
	}
	return SEMA_RUNTIME;
}
