/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a request go straight to where they are used. A client sends each of them once: what several
 * places use is copied there, so that they cannot differ. One READ copies them to all places, from a word
 * into which a WRITE has put as many copies. Only a program that tests nothing, changes no region and patches
 * no length gets a copy for each use from the client: it reads at places that a client may pick one by one.
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

/* Where an argument arrives, and what is copied from there */
struct arrival {
	const struct ast_arg *arg;
	struct op op;          /* the queue in which it is copied */
	struct step *last;     /* of the steps so far, which come first of all */
	struct word *plain;    /* the argument, big-endian */
	struct word *inverted; /* its complement */
};

static struct step *add_step(struct lower *l, struct arrival *a, enum chain_verb verb, struct place remote)
{
	struct step *s = lower_step(l, &a->op, verb, "argument");

	s->line = a->arg->pos.line;
	s->remote = remote;
	if (a->last)
		TAILQ_INSERT_AFTER(&l->steps, a->last, s, link);
	else
		TAILQ_INSERT_HEAD(&l->steps, s, link);
	a->last = s;
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

/* The complement of what has arrived: 1 is added to each bit, without a carry */
static bool invert(struct lower *l, struct arrival *a)
{
	uint32_t bytes = a->arg->type.bytes;
	struct step *s;

	if (!l->target->masked_atomics)
		return lower_refuse(l, DEVICE, a->arg->pos,
			"\"%s\" is compared by its order and used otherwise, which takes masked atomics, and "
			"this device has none; let it be two arguments",
			a->arg->name);
	a->inverted = lower_word(l, "complement", WORD);
	s = add_step(l, a, CHAIN_READ, lower_scratch(a->plain, 0, bytes));
	*lower_local(l, s) = lower_scratch(a->inverted, 0, bytes);
	s = add_step(l, a, CHAIN_MASKED_FETCH_ADD, lower_scratch(a->inverted, 0, WORD));
	s->add = s->boundary = UINT64_MAX;
	return true;
}

static struct place source_of(const struct arrival *a, const struct arg_use *u)
{
	return lower_scratch(u->inverted ? a->inverted : a->plain, u->first, u->len);
}

/* As many of the uses from @u on as one READ can bring: the one after them */
static struct arg_use *copy_some(struct lower *l, struct arrival *a, struct arg_use *u)
{
	const unsigned most = lower_max_sge(l);
	struct arg_use *end = u;
	struct step *write, *read;
	unsigned segments = 0, uses = 0, bytes = 0;
	struct word *copies;

	for (; end && uses < most; end = next_use(end->next, a->arg), uses++) {
		struct place to = end->to;

		to.reversed ^= end->reversed;
		if (uses && segments + lower_segments(&to) > most)
			break;
		segments += lower_segments(&to);
		bytes += end->len;
	}
	if (uses == 1) {
		read = add_step(l, a, CHAIN_READ, source_of(a, u));
	} else {
		copies = lower_word(l, a->arg->name, (uint16_t)bytes);
		write = add_step(l, a, CHAIN_WRITE, lower_scratch(copies, 0, bytes));
		for (struct arg_use *i = u; i != end; i = next_use(i->next, a->arg))
			*lower_local(l, write) = source_of(a, i);
		read = add_step(l, a, CHAIN_READ, lower_scratch(copies, 0, bytes));
	}
	for (; u != end; u = next_use(u->next, a->arg)) {
		struct place to = u->to;

		to.reversed ^= u->reversed;
		*lower_local(l, read) = to;
	}
	return end;
}

static void drop_uses(struct lower *l, const struct ast_arg *arg)
{
	struct arg_use **u = &l->uses;

	while (*u)
		if ((*u)->arg == arg)
			*u = (*u)->next;
		else
			u = &(*u)->next;
	l->last_use = u;
}

static void share(struct lower *l, const struct ast_arg *arg)
{
	struct arg_use *u = next_use(l->uses, arg);
	struct arrival a = {.arg = arg, .op.queue = queue_for(l, u)};
	bool plain = find_use(l, arg, false), inverted = find_use(l, arg, true);
	struct word *word = lower_word(l, arg->name, (uint16_t)arg->type.bytes);

	memset(word->init, plain ? 0 : 0xff, word->size); /* what a request lacks is zero */
	a.plain = a.inverted = word;
	if (plain && inverted && !invert(l, &a))
		return;
	while (u)
		u = copy_some(l, &a, u);
	drop_uses(l, arg);
	lower_use_arg(l, arg, lower_scratch(word, 0, word->size), 0, word->size, false, !plain);
}

/* True if a program with these operations could rely on the uses of an argument being equal: it tests,
 * changes a region, or patches a length */
static bool relies_on_args(const struct lower *l)
{
	for (unsigned i = 0; i < l->nops; i++) {
		const struct ast_verb *v = l->op[i].verb;

		if (!v || v->lengths || v->kind == AST_CAS || v->kind == AST_ADD ||
			(v->kind != AST_READ && v->place && v->place->kind == AST_AT_REGION))
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
	return count_places(l, NULL) <= CHAIN_MAX_RECV_SGE && bytes <= CHAIN_MAX_ARG;
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

void lower_share_args(struct lower *l)
{
	const struct ast_arg *most;

	if (!relies_on_args(l) && fits_request(l))
		return;
	for (unsigned a = 0; a < l->p->nargs; a++)
		if (is_shared(l, l->p->arg[a]))
			share(l, l->p->arg[a]);
	/* what is compared in parts goes to a place for each */
	while (!diag_errors(l->diag) && count_places(l, NULL) > CHAIN_MAX_RECV_SGE && (most = most_places(l)))
		share(l, most);
}
