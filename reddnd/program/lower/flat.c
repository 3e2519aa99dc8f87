/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/lower/ir.h"

/* What a row of statements leaves behind: under what the next one runs, if it is reached at all */
struct flow {
	const struct guard *guard;
	bool ends;            /* always with a break */
	bool broken;          /* sometimes, so that .guard is narrower than it was */
	bool flagged;         /* its loop has no bound, and several ways out */
	unsigned ifs;         /* around it in its loop */
	struct ast_var *left; /* of its loop: not 0 after a break whose `if` is within another one */
};

static struct flow flatten(struct lower *l, const struct ast_block *b, struct flow f);

static unsigned depth_of(const struct guard *g)
{
	return g ? g->depth : 0;
}

/* @g or the one above it that has this depth. A jump is as long as the two that follow it, or one up: E.
 * Myers, "An applicative random-access stack", 1983 */
static const struct guard *above(const struct guard *g, unsigned depth)
{
	while (depth_of(g) > depth)
		g = depth_of(g->jump) >= depth ? g->jump : g->up;
	return g;
}

bool lower_dominates(const struct guard *a, const struct guard *b)
{
	return above(b, depth_of(a)) == a;
}

/* They part at the two results of one test */
bool lower_excludes(const struct guard *a, const struct guard *b)
{
	const unsigned depth = depth_of(a) < depth_of(b) ? depth_of(a) : depth_of(b);

	a = above(a, depth);
	b = above(b, depth);
	if (a == b)
		return false;
	while (a->up != b->up) {
		bool far = a->jump != b->jump;

		a = far ? a->jump : a->up;
		b = far ? b->jump : b->up;
	}
	return a->test == b->test && a->otherwise != b->otherwise;
}

static const struct guard *guard(struct lower *l, struct test *t, bool otherwise, const struct guard *up)
{
	struct guard *g = pool_alloc(l->pool, sizeof(*g));
	const struct guard *jump = up ? up->jump : NULL;
	const bool twice = jump && up->depth - jump->depth == jump->depth - depth_of(jump->jump);

	*g = (struct guard){.test = t,
		.otherwise = otherwise,
		.up = up,
		.jump = twice ? jump->jump : up,
		.depth = depth_of(up) + 1};
	return g;
}

static struct op *add_op(struct lower *l, const struct guard *g)
{
	struct op *op;

	pool_grow(l->pool, l->op, l->nops);
	op = &l->op[l->nops++];
	*op = (struct op){.guard = g, .part = l->part};
	return op;
}

static bool is_reply(const struct ast_verb *v)
{
	return v->kind == AST_SEND || v->kind == AST_WRITE_IMM ||
	       (v->kind == AST_WRITE && v->place->kind == AST_AT_SLOT);
}

/* Code queues are those the program names, in their order, and one for all that is in none of them */
static uint8_t queue_of(const struct lower *l, const struct ast_verb *v)
{
	if (is_reply(v))
		return 0;
	return (uint8_t)(1 + (v->queue ? v->queue->index : l->p->nqueues));
}

static bool assigns(const struct ast_verb *v, const struct ast_var *var)
{
	for (unsigned i = 0; i < v->npieces; i++)
		if (v->piece[i].to && v->piece[i].to->kind == AST_AT_VAR && v->piece[i].to->var == var)
			return true;
	return v->kind != AST_READ && v->place && v->place->kind == AST_AT_VAR && v->place->var == var;
}

/* A condition is decided in the queue of the `on` around it. Without one it is where its operand comes from,
 * or else where the text is */
static uint8_t queue_of_test(const struct lower *l, const struct ast_cond *c)
{
	const struct ast_place *left = c->left.kind == AST_PLACE ? c->left.place : NULL;
	uint8_t last = 0;

	if (c->queue)
		return (uint8_t)(1 + c->queue->index);
	for (unsigned i = l->nops; i-- > 0;) {
		const struct op *op = &l->op[i];

		if (op->queue == 0)
			continue;
		if (!last)
			last = op->queue;
		if (op->verb && left && left->kind == AST_AT_VAR && assigns(op->verb, left->var))
			return op->queue;
	}
	return last ? last : (uint8_t)(1 + l->p->nqueues);
}

static struct op *add_verb(struct lower *l, const struct guard *g, const struct ast_verb *v)
{
	struct op *op = add_op(l, g);

	op->verb = v;
	op->queue = queue_of(l, v);
	return op;
}

static struct ast_place *var_place(struct lower *l, const struct ast_var *var)
{
	struct ast_place *p = pool_alloc(l->pool, sizeof(*p));

	*p = (struct ast_place){.kind = AST_AT_VAR, .type = var->type, .pos = var->pos, .var = var};
	return p;
}

static struct op *add_mov(struct lower *l, const struct guard *g, struct diag_pos pos,
	const struct ast_queue *queue, struct ast_operand from, const struct ast_place *to)
{
	struct ast_verb *v = pool_alloc(l->pool, sizeof(*v));
	struct ast_operand *source = pool_alloc(l->pool, sizeof(*source));

	*source = from;
	*v = (struct ast_verb){
		.kind = AST_MOV, .pos = pos, .queue = queue, .source = source, .nsources = 1, .place = to};
	return add_verb(l, g, v);
}

/* ---- conditions --------------------------------------------------------------------------------- */

static struct ast_operand var_operand(struct lower *l, const struct ast_var *var)
{
	return (struct ast_operand){
		.kind = AST_PLACE, .type = var->type, .place = var_place(l, var), .pos = var->pos};
}

static struct ast_var *add_var(struct lower *l, const char *name, uint32_t bytes, struct diag_pos pos)
{
	struct ast_var *var = pool_alloc(l->pool, sizeof(*var));

	*var = (struct ast_var){.name = name,
		.index = l->nvars++,
		.type = {.kind = AST_UINT, .order = AST_LE, .bytes = bytes},
		.pos = pos};
	return var;
}

bool lower_has_calc(const struct lower *l, const struct ast_verb *v, uint8_t part)
{
	static const unsigned operations[] = {
		[AST_CALC_ADD] = 1u << WQE_CALC_ADD,
		[AST_CALC_MAX] = 1u << WQE_CALC_MAXLOC,
		[AST_CALC_MIN] = 1u << WQE_CALC_MAXLOC | 1u << WQE_CALC_XOR,
		[AST_CALC_AND] = 1u << WQE_CALC_AND,
		[AST_CALC_OR] = 1u << WQE_CALC_OR,
		[AST_CALC_XOR] = 1u << WQE_CALC_XOR,
		[AST_CALC_SUB] = 1u << WQE_CALC_ADD | 1u << WQE_CALC_XOR,
	};

	return part != PART_LOOP && !(operations[v->calc] & ~l->target->calc);
}

/* No atomic is a maximum: without CALC a max or a min takes a condition */
static bool is_compared(const struct lower *l, const struct ast_verb *v)
{
	return v->kind == AST_CALC && (v->calc == AST_CALC_MAX || v->calc == AST_CALC_MIN) &&
	       !lower_has_calc(l, v, l->part);
}

bool lower_is_carry(const struct ast_cond *c)
{
	return c->relation != AST_REL_EQ && c->relation != AST_REL_NE;
}

/* Of two variables, a < b where their maximum is not a, and a > b where it is not b. That takes fewer work
 * requests than the carries of a sum with the complement of one */
static const struct ast_cond *by_maximum(
	struct lower *l, const struct ast_cond *c, const struct guard *g, uint8_t queue)
{
	const bool left = c->relation == AST_REL_LT || c->relation == AST_REL_GE;
	struct ast_verb *max = pool_alloc(l->pool, sizeof(*max));
	struct ast_operand *sources = pool_alloc(l->pool, 2 * sizeof(*sources));
	struct ast_cond *equal = pool_alloc(l->pool, sizeof(*equal));
	struct ast_var *larger;

	*max = (struct ast_verb){
		.kind = AST_CALC, .calc = AST_CALC_MAX, .pos = c->pos, .source = sources, .nsources = 2};
	if (!lower_is_carry(c) || c->right.kind != AST_PLACE || is_compared(l, max))
		return c;
	sources[0] = c->left;
	sources[1] = c->right;
	if (left && c->left.place->kind == AST_AT_REGION) {
		struct ast_var *read = add_var(l, "operand", c->left.type.bytes, c->pos);

		sources[0] = var_operand(l, read);
		add_mov(l, g, c->pos, c->queue, c->left, sources[0].place)->queue = queue;
	}
	larger = add_var(l, "larger", c->left.type.bytes, c->pos);
	max->place = var_place(l, larger);
	add_verb(l, g, max)->queue = queue;
	*equal = *c;
	equal->relation = c->relation == AST_REL_LT || c->relation == AST_REL_GT ? AST_REL_NE : AST_REL_EQ;
	equal->left = var_operand(l, larger);
	equal->right = sources[left ? 0 : 1];
	return equal;
}

static struct test *add_test(struct lower *l, const struct ast_cond *c, const struct guard *g, bool loop)
{
	struct test *t = pool_alloc(l->pool, sizeof(*t));
	uint8_t queue = queue_of_test(l, c);
	struct op *op;

	c = by_maximum(l, c, g, queue);
	op = add_op(l, g);
	*t = (struct test){.cond = c, .guard = g, .loop = loop};
	op->test = t;
	op->queue = queue;
	pool_grow(l->pool, l->test, l->ntests);
	l->test[l->ntests++] = t;
	return t;
}

/* ---- a max or a min that is compared ------------------------------------------------------------ */

static bool is_le(const struct ast_type *t)
{
	return t->order == AST_LE || t->bytes == 1;
}

/* @from as the other byte order has it, if @to has that */
static struct ast_operand ordered(struct ast_operand from, const struct ast_type *to)
{
	from.swab = from.kind != AST_CONST && from.type.order != AST_ANY && is_le(&from.type) != is_le(to) &&
		    from.type.bytes > 1 && to->bytes > 1;
	if (from.swab)
		from.type.order = is_le(to) ? AST_LE : AST_BE;
	return from;
}

/* An operand as it can be compared and moved: itself, or a variable that it is moved to. An argument cannot
 * be stored in the other byte order */
static struct ast_operand compared(
	struct lower *l, const struct guard *g, const struct ast_verb *v, const struct ast_operand *o)
{
	const struct ast_type type = {.kind = AST_UINT, .order = AST_LE, .bytes = v->place->type.bytes};
	struct ast_operand made = *o;
	bool as_it_is;

	if (o->kind == AST_CONST) {
		made.type = type;
		return made;
	}
	as_it_is = o->kind == AST_ARG ? v->place->kind != AST_AT_REGION || !ordered(*o, &v->place->type).swab
				      : o->place->kind == AST_AT_VAR && is_le(&o->type);
	if (o->type.bytes == type.bytes && as_it_is)
		return made;
	made = var_operand(l, add_var(l, "operand", type.bytes, o->pos));
	add_mov(l, g, v->pos, v->queue, ordered(*o, &type), made.place);
	return made;
}

/* Unless it is there already */
static void choose(struct lower *l, struct test *t, bool otherwise, const struct guard *up,
	const struct ast_verb *v, const struct ast_operand *o, struct ast_operand made)
{
	if (o->kind == AST_PLACE && o->place->kind == AST_AT_VAR && v->place->kind == AST_AT_VAR &&
		o->place->var == v->place->var)
		return;
	if (made.kind == AST_CONST)
		made.type = v->place->type;
	add_mov(l, guard(l, t, otherwise, up), v->pos, v->queue, ordered(made, &v->place->type), v->place);
}

/* If a < b, a max is b, and a min is a; one side of a condition is a variable, if one of them is */
static void flatten_compared(struct lower *l, const struct ast_verb *v, const struct guard *g)
{
	const struct ast_operand made[] = {
		compared(l, g, v, &v->source[0]), compared(l, g, v, &v->source[1])};
	const unsigned a = made[0].kind < made[1].kind ? 1 : 0, b = 1 - a;
	struct ast_cond *c = pool_alloc(l->pool, sizeof(*c));
	struct test *t;

	if (made[a].kind == AST_CONST) {
		struct ast_operand is =
			made[(v->calc == AST_CALC_MAX) == (made[a].value > made[b].value) ? a : b];

		is.type = v->place->type;
		add_mov(l, g, v->pos, v->queue, is, v->place);
		return;
	}
	*c = (struct ast_cond){
		.relation = AST_REL_LT, .left = made[a], .right = made[b], .queue = v->queue, .pos = v->pos};
	t = add_test(l, c, g, false);
	choose(l, t, v->calc == AST_CALC_MIN, g, v, &v->source[b], made[b]);
	choose(l, t, v->calc == AST_CALC_MAX, g, v, &v->source[a], made[a]);
}

/* ---- flags: decisions that no other branch of one `if` can express ------------------------------ */

static const struct ast_type flag_type = {.kind = AST_UINT, .order = AST_ANY, .bytes = 1};

static struct ast_var *add_flag(struct lower *l, const char *name, struct diag_pos pos)
{
	struct ast_var *var = pool_alloc(l->pool, sizeof(*var));

	*var = (struct ast_var){.name = name,
		.index = l->nvars++,
		.type = flag_type,
		.each_iteration = l->part == PART_LOOP,
		.pos = pos};
	return var;
}

/* flag = 1. If nothing asks for it, it costs nothing */
static void raise_flag(
	struct lower *l, const struct guard *g, const struct ast_var *flag, const struct ast_queue *queue)
{
	const struct ast_operand one = {.kind = AST_CONST, .type = flag_type, .value = 1};

	add_mov(l, g, flag->pos, queue, one, var_place(l, flag));
}

static struct test *test_flag(struct lower *l, const struct ast_var *flag, bool is,
	const struct ast_queue *queue, const struct guard *g, bool loop)
{
	struct ast_cond *c = pool_alloc(l->pool, sizeof(*c));

	*c = (struct ast_cond){.relation = AST_REL_EQ,
		.left = var_operand(l, flag),
		.right = {.kind = AST_CONST, .type = flag_type, .value = is},
		.queue = queue,
		.pos = flag->pos};
	return add_test(l, c, g, loop);
}

static const struct guard *unless_left(struct lower *l, const struct flow *f)
{
	return guard(l, test_flag(l, f->left, false, NULL, f->guard, true), false, f->guard);
}

static const struct guard *where(
	struct lower *l, const struct ast_cond *c, bool otherwise, const struct guard *up, bool loop);

/* One test for all of a condition. Of a && b a flag shows that both hold, of a || b that neither does */
static struct test *decide(struct lower *l, const struct ast_cond *c, const struct guard *g, bool loop)
{
	const bool both = c->kind == AST_AND;
	struct ast_var *flag;

	if (c->kind == AST_COMPARE)
		return add_test(l, c, g, loop);
	flag = add_flag(l, both ? "both" : "neither", c->pos);
	raise_flag(l, where(l, c, !both, g, false), flag, c->queue);
	return test_flag(l, flag, both, c->queue, g, loop);
}

/* Under what a condition holds, or if @otherwise does not */
static const struct guard *where(
	struct lower *l, const struct ast_cond *c, bool otherwise, const struct guard *up, bool loop)
{
	if (c->kind == (otherwise ? AST_OR : AST_AND))
		return where(l, c->second, otherwise, where(l, c->first, otherwise, up, loop), loop);
	return guard(l, decide(l, c, up, loop), otherwise, up);
}

static bool has_break(const struct ast_block *b)
{
	for (unsigned i = 0; i < b->n; i++)
		if (b->stmt[i].kind == AST_BREAK)
			return true;
	return false;
}

/* a && b without an else is an if within another one */
static struct flow flatten_both(struct lower *l, const struct ast_stmt *s, struct flow f)
{
	struct flow yes = {.guard = where(l, s->cond, false, f.guard, false),
		.ifs = f.ifs + 2,
		.left = f.left,
		.flagged = f.flagged};

	yes = flatten(l, &s->then, yes);
	if (yes.ends || yes.broken) {
		f.guard = unless_left(l, &f);
		f.broken = true;
	}
	return f;
}

static struct flow flatten_if(struct lower *l, const struct ast_stmt *s, struct flow f)
{
	struct flow yes = {.ifs = f.ifs + 1, .left = f.left, .flagged = f.flagged}, no = yes;
	struct test *t;

	if (s->cond->kind == AST_AND && !s->otherwise.n && !has_break(&s->then))
		return flatten_both(l, s, f);
	t = decide(l, s->cond, f.guard, false);
	yes.guard = guard(l, t, false, f.guard);
	no.guard = guard(l, t, true, f.guard);
	yes = flatten(l, &s->then, yes);
	no = flatten(l, &s->otherwise, no);
	t->loop = (yes.ends || no.ends) && l->part != PART_LOOP;
	if (yes.ends && no.ends)
		return (struct flow){.guard = f.guard, .ends = true};
	if (yes.ends || no.ends) {
		f.guard = yes.ends ? no.guard : yes.guard;
		f.broken = true;
	} else if (yes.broken || no.broken) {
		f.guard = unless_left(l, &f);
		f.broken = true;
	}
	return f;
}

static struct flow flatten_loop(
	struct lower *l, const struct ast_loop *loop, struct diag_pos pos, struct flow f)
{
	struct flow it = {.guard = f.guard, .left = add_flag(l, "left", pos)};

	for (unsigned i = 0; i < loop->niters && !it.ends && !lower_is_full(l); i++) {
		if (loop->kind == AST_WHILE)
			it.guard = where(l, loop->cond, false, it.guard, true);
		it = flatten(l, &loop->iter[i], it);
	}
	if (it.ends || !loop->otherwise.n)
		return f;
	/* A break in there leaves the loop around this one, and no branch of one `if` shows that it was
	 * reached */
	it = flatten(l, &loop->otherwise,
		(struct flow){.guard = it.guard, .ifs = f.ifs + 2, .left = f.left, .flagged = f.flagged});
	if (it.ends || it.broken) {
		f.guard = unless_left(l, &f);
		f.broken = true;
	}
	return f;
}

/* ---- without a bound ---------------------------------------------------------------------------- */

/* Ways out of a loop; *flat: none of its breaks is in an `if` within another one */
static unsigned count_breaks(const struct ast_block *b, const struct ast_loop *loop, unsigned ifs, bool *flat)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->n; i++) {
		const struct ast_stmt *s = &b->stmt[i];

		if (s->kind == AST_BREAK && s->loop == loop) {
			n++;
			*flat &= ifs == 1;
		} else if (s->kind == AST_IF) {
			n += count_breaks(&s->then, loop, ifs + 1, flat);
			n += count_breaks(&s->otherwise, loop, ifs + 1, flat);
		} else if (s->kind == AST_LOOP) {
			for (unsigned k = 0; k < s->loop->niters; k++)
				n += count_breaks(&s->loop->iter[k], loop, ifs + 2, flat);
			n += count_breaks(&s->loop->otherwise, loop, ifs + 2, flat);
		}
	}
	return n;
}

/*
 * One iteration. If there is one way out, its condition decides whether another one follows. Otherwise each
 * raises a flag, and the flag decides.
 */
static void flatten_endless(struct lower *l, const struct ast_loop *loop, struct diag_pos pos)
{
	struct flow it = {0};
	bool flat = true, condition = loop->kind == AST_WHILE;
	unsigned ways = count_breaks(&loop->iter[0], loop, 0, &flat) + condition;

	if (ways == 0) {
		lower_refuse(
			l, LOOP, pos, "nothing leaves this loop, so that no request would ever be answered");
		return;
	}
	l->part = PART_LOOP;
	l->endless = loop;
	l->loop_line = pos.line;
	it.left = add_flag(l, "left", pos);
	it.flagged = ways > 1 || !flat;
	if (condition) {
		struct test *t = decide(l, loop->cond, NULL, false);
		struct flow out = it;

		out.guard = l->leave = guard(l, t, true, NULL);
		if (it.flagged)
			raise_flag(l, out.guard, it.left, NULL);
		it.guard = guard(l, t, false, NULL);
	}
	flatten(l, &loop->iter[0], it);
	if (it.flagged) {
		const struct guard *stays = unless_left(l, &(struct flow){.left = it.left});

		l->leave = guard(l, stays->test, true, NULL);
	}
	l->part = PART_AFTER;
}

static struct flow flatten(struct lower *l, const struct ast_block *b, struct flow f)
{
	for (unsigned i = 0; i < b->n && !f.ends && !lower_is_full(l); i++) {
		const struct ast_stmt *s = &b->stmt[i];

		switch ((enum ast_stmt_kind)s->kind) {
		case AST_VERB:
			if (is_compared(l, s->verb)) {
				flatten_compared(l, s->verb, f.guard);
				break;
			}
			add_verb(l, f.guard, s->verb);
			l->by_hand |=
				s->verb->kind == AST_WAIT || s->verb->kind == AST_ENABLE || s->verb->fence;
			break;
		case AST_IF:
			f = flatten_if(l, s, f);
			break;
		case AST_LOOP:
			if (!s->loop->endless)
				f = flatten_loop(l, s->loop, s->pos, f);
			else if (f.guard || l->endless)
				lower_refuse(l, LOOP, s->pos, "%s",
					l->endless ? "a second loop without a bound; a program has one"
						   : "a loop without a bound inside of an \"if\"; begin the "
						     "loop with that \"if\", and leave it with a break");
			else
				flatten_endless(l, s->loop, s->pos);
			break;
		case AST_BREAK:
			if (f.ifs > 1 || f.flagged)
				raise_flag(l, f.guard, f.left, NULL);
			if (s->loop == l->endless && !f.flagged)
				l->leave = f.guard;
			f.ends = true;
			break;
		}
	}
	return f;
}

/* ---- labels ------------------------------------------------------------------------------------- */

const struct op *lower_op_of(const struct lower *l, const struct ast_verb *v)
{
	for (unsigned i = 0; i < l->nops; i++)
		if (l->op[i].verb == v)
			return &l->op[i];
	return NULL;
}

static bool is_field(const struct ast_place *p, const struct ast_place *field)
{
	return p && p->kind == AST_AT_FIELD && p->verb == field->verb && p->field == field->field &&
	       p->sge == field->sge;
}

bool lower_reads(const struct ast_verb *v, const struct ast_place *field)
{
	for (unsigned i = 0; i < v->nsources; i++)
		if (v->source[i].kind == AST_PLACE && is_field(v->source[i].place, field))
			return true;
	return (v->kind == AST_READ || v->kind == AST_CAS) && is_field(v->place, field);
}

bool lower_patches(const struct ast_verb *v, const struct ast_place *field)
{
	for (unsigned i = 0; i < v->npieces; i++)
		if (is_field(v->piece[i].to, field))
			return true;
	return v->kind != AST_READ && is_field(v->place, field);
}

static void check_label(struct lower *l, const struct ast_verb *v, struct diag_pos pos)
{
	if (v && !lower_op_of(l, v))
		lower_refuse(l, PLACE, pos,
			"\"%s\" is never reached: a \"break\" before it always leaves its loop", v->name);
}

static void check_place(struct lower *l, const struct ast_place *p)
{
	if (p && p->kind == AST_AT_FIELD)
		check_label(l, p->verb, p->pos);
}

static void check_operand(struct lower *l, const struct ast_operand *o)
{
	if (o->kind == AST_PLACE)
		check_place(l, o->place);
}

/* What follows a `break` in its block has no op: no statement that has one may name it */
static void check_labels(struct lower *l, const struct ast_verb *v)
{
	check_label(l, v->target, v->pos);
	check_place(l, v->place);
	for (unsigned i = 0; i < v->nsources; i++)
		check_operand(l, &v->source[i]);
	for (unsigned i = 0; i < v->npieces; i++)
		check_place(l, v->piece[i].to);
}

void lower_flatten(struct lower *l)
{
	l->nvars = l->p->nvars;
	flatten(l, &l->p->body, (struct flow){0});
	if (diag_errors(l->diag))
		return;
	for (unsigned i = 0; i < l->nops; i++)
		if (l->op[i].test)
			l->op[i].test->op = &l->op[i];
		else
			check_labels(l, l->op[i].verb);
}
