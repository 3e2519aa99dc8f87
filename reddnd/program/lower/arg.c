/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a request go straight to where they are used. A client sends each of them once: what several
 * places use arrives in the first of these, and is copied to the others, so that they cannot differ. One READ
 * brings the copies of all arguments to their places, from a word in which a WRITE has put them beside each
 * other. Only a program that tests nothing, changes no region, patches no length and puts no address together
 * gets a copy for each use from the client: it reads at places that a client may pick one by one.
 *
 * A RECV has few places. Where there are more arguments than these, all arrive beside each other in a block,
 * which is one place, and are copied from there.
 */
#include "reddnd/program/lower/ir.h"

#include <string.h>

void lower_use_arg(struct lower *l, const struct ast_arg *arg, struct place to, uint16_t first, uint16_t len,
	bool reversed, bool inverted)
{
	struct arg_use *u = pool_alloc(l->pool, sizeof(*u));

	*u = (struct arg_use){
		.arg = arg, .to = to, .first = first, .len = len, .reversed = reversed, .inverted = inverted};
	*l->last_use = u;
	l->last_use = &u->next;
}

unsigned lower_max_places(const struct lower *l)
{
	return l->p->payload ? CHAIN_MAX_RECV_SGE - 1 : CHAIN_MAX_RECV_SGE;
}

/* The next use of @arg, from @u on */
static struct arg_use *next_use(struct arg_use *u, const struct ast_arg *arg)
{
	while (u && u->arg != arg)
		u = u->next;
	return u;
}

/* Two uses of @arg have a byte in common */
static bool is_shared(struct lower *l, const struct ast_arg *arg)
{
	for (struct arg_use *a = next_use(l->uses, arg); a; a = next_use(a->next, arg))
		for (struct arg_use *b = next_use(a->next, arg); b; b = next_use(b->next, arg))
			if (a->first < b->first + b->len && b->first < a->first + a->len)
				return true;
	return false;
}

/* What is copied before the steps of the program */
struct copies {
	struct op op;       /* the queue in which it is copied */
	struct step *last;  /* of the steps so far, which come first of all */
	struct word *block; /* in which all arguments arrive; NULL: each where it is used */
	struct copy {
		const struct ast_arg *arg;
		struct place from, to;
	} * copy;
	unsigned n;
};

static struct step *add_step(struct lower *l, struct copies *c, const struct ast_arg *arg,
	enum chain_verb verb, struct place remote)
{
	struct step *s = lower_step(l, &c->op, verb, "argument");

	s->line = arg->pos.line;
	s->remote = remote;
	if (c->last)
		TAILQ_INSERT_AFTER(&l->steps, c->last, s, link);
	else
		TAILQ_INSERT_HEAD(&l->steps, s, link);
	c->last = s;
	l->used[s->queue] = true;
	return s;
}

/* A queue of code, the reply's only reaches the client: that of the first use, or of the first step */
static uint8_t queue_for(const struct lower *l, const struct arg_use *u)
{
	const struct step *s;

	if (u->to.step && u->to.step->queue)
		return u->to.step->queue;
	TAILQ_FOREACH (s, &l->steps, link)
		if (s->queue)
			return s->queue;
	return (uint8_t)(1 + l->p->nqueues);
}

static bool find_use(struct lower *l, const struct ast_arg *arg, bool inverted)
{
	for (struct arg_use *u = next_use(l->uses, arg); u; u = next_use(u->next, arg))
		if (u->inverted == inverted)
			return true;
	return false;
}

/* A word with the complement of what has arrived at @from: 1 is added to each bit, without a carry. NULL: the
 * device cannot do that */
static struct word *invert(
	struct lower *l, struct copies *c, const struct ast_arg *arg, const struct place *from)
{
	struct word *inverted;
	struct step *s;

	if (!l->target->masked_atomics) {
		lower_refuse(l, DEVICE, arg->pos,
			"\"%s\" is compared by its order and used otherwise, which takes masked atomics, and "
			"this device has none; let it be two arguments",
			arg->name);
		return NULL;
	}
	inverted = lower_word(l, "complement", WORD);
	s = add_step(l, c, arg, CHAIN_READ, *from);
	*lower_local(l, s) = lower_scratch(inverted, 0, arg->type.bytes);
	s = add_step(l, c, arg, CHAIN_MASKED_FETCH_ADD, lower_scratch(inverted, 0, WORD));
	s->add = s->boundary = UINT64_MAX;
	return inverted;
}

/* All of the argument goes to a field of a WQE that the client cannot see, as it is: from there it can be
 * copied */
static bool can_arrive(const struct arg_use *u)
{
	return u->to.kind == CHAIN_AT_FIELD && u->to.step->queue && !u->to.step->in_loop &&
	       u->len == u->arg->type.bytes && !u->reversed && !u->to.reversed;
}

/* The next @bytes of the block; or a word. What a request lacks is zero, in the form in which it arrives */
static struct place arrive(
	struct lower *l, struct copies *c, const struct ast_arg *arg, uint32_t bytes, bool inverted)
{
	struct word *word = c->block ? c->block : lower_word(l, arg->name, (uint16_t)bytes);
	const uint32_t at = c->block ? word->size : 0;

	word->size = (uint16_t)(at + bytes);
	memset(word->init + at, inverted ? 0xff : 0, bytes);
	return lower_scratch(word, at, bytes);
}

static struct copy *add_copy(
	struct lower *l, struct copies *c, const struct ast_arg *arg, struct place from, struct place to)
{
	pool_grow(l->pool, c->copy, c->n);
	c->copy[c->n] = (struct copy){.arg = arg, .from = from, .to = to};
	return &c->copy[c->n++];
}

/* Where it arrives: where it is used first, if it can be, so that this use waits for no copy; in the block;
 * or in a word of its own. Takes its uses off the list, but for that one */
static void share(struct lower *l, struct copies *c, const struct ast_arg *arg)
{
	const bool plain = find_use(l, arg, false), both = plain && find_use(l, arg, true);
	struct arg_use **u = &l->uses, *arrival = next_use(l->uses, arg);
	struct place from, complement;

	if (!c->op.queue)
		c->op.queue = queue_for(l, arrival);
	while (arrival && (c->block || !can_arrive(arrival) || arrival->inverted != !plain))
		arrival = next_use(arrival->next, arg);
	from = arrival ? arrival->to : arrive(l, c, arg, arg->type.bytes, !plain);
	complement = from;
	if (both) {
		struct word *inverted = invert(l, c, arg, &from);

		if (!inverted)
			return;
		complement = lower_scratch(inverted, 0, arg->type.bytes);
	}
	while (*u) {
		struct copy *copy;

		if ((*u)->arg != arg || *u == arrival) {
			u = &(*u)->next;
			continue;
		}
		copy = add_copy(l, c, arg, (*u)->inverted ? complement : from, (*u)->to);
		copy->from.from += (*u)->first;
		copy->from.len = (*u)->len;
		copy->to.reversed ^= (*u)->reversed;
		*u = (*u)->next;
	}
	l->last_use = u;
	if (!arrival)
		lower_use_arg(l, arg, from, 0, (uint16_t)from.len, false, !plain);
}

/* They lie beside each other as it is */
static bool is_range(const struct copy *copy, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		const struct place *a = &copy[i - 1].from, *b = &copy[i].from;

		if (a->kind != CHAIN_AT_SCRATCH || b->kind != CHAIN_AT_SCRATCH || a->word != b->word ||
			a->from + a->len != b->from)
			return false;
	}
	return true;
}

/* As many of the @n copies from @c on as one READ can bring: how many these are */
static unsigned copy_some(struct lower *l, struct copies *c, const struct copy *copy, unsigned n)
{
	const unsigned most = lower_max_sge(l);
	unsigned segments = 0, bytes = 0, k = 0;
	struct place from = copy->from;
	struct step *s;

	for (; k < n && k < most && (!k || segments + lower_segments(&copy[k].to) <= most); k++) {
		segments += lower_segments(&copy[k].to);
		bytes += copy[k].to.len;
	}
	if (!is_range(copy, k)) {
		from = lower_scratch(lower_word(l, "copies", (uint16_t)bytes), 0, bytes);
		s = add_step(l, c, copy->arg, CHAIN_WRITE, from);
		for (unsigned i = 0; i < k; i++)
			*lower_local(l, s) = copy[i].from;
	}
	s = add_step(l, c, copy->arg, CHAIN_READ, from);
	for (unsigned i = 0; i < k; i++)
		*lower_local(l, s) = copy[i].to;
	return k;
}

/* The address of a place in a region has several parts, which depend on each other in the text and which a
 * client could choose apart: terms of which one was read, one argument twice, or a term and a patch */
static bool is_put_together(const struct ast_verb *v, const struct ast_place *p)
{
	if (!p || p->kind != AST_AT_REGION || p->nterms == 0)
		return false;
	if (v->patched & (1u << CHAIN_F_REMOTE_ADDR | 1u << CHAIN_F_LOCAL_ADDR))
		return true;
	return p->nterms > 1 && (p->term[0].var || p->term[1].var || p->term[0].arg == p->term[1].arg);
}

/* @v writes to a field of @of */
static bool writes_field(const struct ast_verb *v, const struct ast_verb *of)
{
	bool found =
		v->place && v->kind != AST_READ && v->place->kind == AST_AT_FIELD && v->place->verb == of;

	for (unsigned i = 0; i < v->npieces && !found; i++)
		found = v->piece[i].to && v->piece[i].to->kind == AST_AT_FIELD && v->piece[i].to->verb == of;
	return found;
}

/* Several statements write to fields of @of. One of them reads all that it writes at one place */
static bool is_patched_by_several(const struct lower *l, const struct ast_verb *of)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->nops && of->patched && n < 2; i++)
		n += writes_field(l->op[i].verb, of);
	return n > 1;
}

/* Bytes of several sources lie beside each other in a variable or a field, from where they may become an
 * address */
static bool is_joined(const struct ast_verb *v)
{
	return v->kind == AST_WRITE && v->nsources > 1 && v->place->kind != AST_AT_SLOT;
}

/* True if a program with these operations could rely on the uses of an argument being equal: it tests,
 * calculates, changes a region, patches a length, or puts an address together. In one that does not, each
 * step depends on one use of each argument: its place is of arguments and constants, or of what one other
 * step has read */
static bool relies_on_args(const struct lower *l)
{
	for (unsigned i = 0; i < l->nops; i++) {
		const struct ast_verb *v = l->op[i].verb;

		if (!v || v->lengths || v->kind == AST_CAS || v->kind == AST_ADD || v->kind == AST_CALC ||
			(v->kind != AST_READ && v->place && v->place->kind == AST_AT_REGION))
			return true;
	}
	for (unsigned i = 0; i < l->nops; i++) {
		const struct ast_verb *v = l->op[i].verb;

		if (is_joined(v) || is_put_together(v, v->place) || is_patched_by_several(l, v))
			return true;
		for (unsigned k = 0; k < v->nsources; k++)
			if (v->source[k].kind == AST_PLACE && is_put_together(v, v->source[k].place))
				return true;
	}
	return false;
}

/* Places that @arg goes to, all arguments if it is NULL */
static unsigned count_places(const struct lower *l, const struct ast_arg *arg)
{
	unsigned n = 0;

	for (const struct arg_use *u = l->uses; u; u = u->next)
		if (!arg || u->arg == arg)
			n += u->to.kind == CHAIN_AT_SCRATCH && !u->to.word ? u->to.web->nparts : 1;
	return n;
}

/* A request has room for a copy of each use */
static bool fits_request(const struct lower *l)
{
	unsigned bytes = 0;

	for (const struct arg_use *u = l->uses; u; u = u->next)
		bytes += u->len;
	return count_places(l, NULL) <= lower_max_places(l) && bytes <= CHAIN_MAX_ARG;
}

/* The argument that goes to most places; NULL if none goes to several */
static const struct ast_arg *most_places(const struct lower *l)
{
	const struct ast_arg *most = NULL;
	unsigned n = 1;

	for (unsigned a = 0; a < l->p->nargs; a++)
		if (count_places(l, l->p->arg[a]) > n) {
			most = l->p->arg[a];
			n = count_places(l, most);
		}
	return most;
}

/* All but the first ones, which have places of their own, in the block: each byte in the form in which it is
 * used */
static void gather(struct lower *l, struct copies *c)
{
	unsigned left = lower_max_places(l) - 1;

	for (unsigned a = 0; a < l->p->nargs; a++) {
		const struct ast_arg *arg = l->p->arg[a];

		if (!c->block && !is_shared(l, arg) && count_places(l, arg) <= left) {
			left -= count_places(l, arg);
			continue;
		}
		if (!c->block) {
			c->block = lower_word(l, "arguments", (uint16_t)l->p->arg_bytes);
			c->block->size = 0;
		}
		if (is_shared(l, arg)) {
			share(l, c, arg);
			continue;
		}
		for (struct arg_use *u = next_use(l->uses, arg); u; u = next_use(u->next, arg)) {
			if (!c->op.queue)
				c->op.queue = queue_for(l, u);
			u->to = add_copy(l, c, arg, arrive(l, c, arg, u->len, u->inverted), u->to)->from;
		}
	}
}

/* Each takes one place at least */
static unsigned count_used(const struct lower *l)
{
	unsigned n = 0;

	for (unsigned a = 0; a < l->p->nargs; a++)
		n += next_use(l->uses, l->p->arg[a]) != NULL;
	return n;
}

void lower_share_args(struct lower *l)
{
	struct copies c = {0};
	const struct ast_arg *most;

	if (!relies_on_args(l) && fits_request(l))
		return;
	if (count_used(l) > lower_max_places(l))
		gather(l, &c);
	for (unsigned a = 0; a < l->p->nargs && !c.block; a++)
		if (is_shared(l, l->p->arg[a]))
			share(l, &c, l->p->arg[a]);
	/* what is compared in parts goes to a place for each */
	while (!diag_errors(l->diag) && !c.block && count_places(l, NULL) > lower_max_places(l) &&
		(most = most_places(l)))
		share(l, &c, most);
	for (unsigned i = 0; i < c.n;)
		i += copy_some(l, &c, &c.copy[i], c.n - i);
}
