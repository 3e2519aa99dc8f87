/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a request go straight to where they are used, a copy of an argument for each of its uses. If
 * these are too many places, or too many bytes, they arrive in blocks of scratch, and READs bring them to
 * their places; of uses that want the same bytes again and again a block gets only some with the request, and
 * doubles these itself.
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

/* Uses of @arg (NULL: of all) that have no block, and bytes of the request */
static unsigned uses_of(const struct lower *l, const struct ast_arg *arg, unsigned *bytes)
{
	unsigned n = 0;

	*bytes = 0;
	for (const struct arg_use *u = l->uses; u; u = u->next)
		if (!arg || u->arg == arg) {
			n += !u->block;
			*bytes += u->copied ? 0 : u->len;
		}
	return n;
}

static struct arg_use *next_use(struct arg_use *u, const struct ast_arg *arg)
{
	while (u && u->arg != arg)
		u = u->next;
	return u;
}

/* Bytes of a block: from @alone on, @run bytes are the same @again bytes again and again */
struct stretch {
	unsigned alone, again, run;
};

static bool same_bytes(const struct arg_use *a, const struct arg_use *b)
{
	return a->first == b->first && a->len == b->len && a->reversed == b->reversed &&
	       a->inverted == b->inverted;
}

/* How far that goes when @uses of them, from @first on, are what is used again */
static struct stretch measure(struct arg_use *first, unsigned alone, unsigned uses)
{
	struct stretch s = {.alone = alone};
	struct arg_use *a = first, *b = first;

	for (; b && uses--; b = next_use(b->next, b->arg))
		s.again += b->len;
	s.run = s.again;
	for (; b && same_bytes(a, b); a = next_use(a->next, a->arg), b = next_use(b->next, b->arg))
		s.run += b->len;
	return s;
}

/* The one that can save most */
static struct stretch find_stretch(struct lower *l, const struct ast_arg *arg)
{
	struct stretch best = {0};
	unsigned alone = 0;

	for (struct arg_use *u = next_use(l->uses, arg); u; u = next_use(u->next, arg)) {
		for (unsigned uses = 1; uses <= MAX_PARTS; uses++) {
			struct stretch s = measure(u, alone, uses);

			if (s.run - s.again > best.run - best.again)
				best = s;
		}
		alone += u->len;
	}
	return best;
}

/* READs that bring @sent bytes of a stretch, which the request does, to the rest of it. The last of them */
static struct step *repeat(struct lower *l, const struct op *op, struct word *block, const struct stretch *s,
	unsigned sent, unsigned line)
{
	struct step *last = NULL;

	for (unsigned at = sent; at < s->run;) {
		unsigned n = s->run - at < at ? s->run - at : at;
		struct step *read = lower_step(l, op, CHAIN_READ, "repeat");

		read->line = line;
		read->remote = lower_scratch(block, s->alone, n);
		*lower_local(l, read) = lower_scratch(block, s->alone + at, n);
		if (last)
			TAILQ_INSERT_AFTER(&l->steps, last, read, link);
		else
			TAILQ_INSERT_HEAD(&l->steps, read, link);
		last = read;
		at += n;
	}
	return last;
}

/* @bytes are all that is used of @arg, and @less of these would better not be in the request */
static void gather(struct lower *l, const struct ast_arg *arg, unsigned bytes, unsigned less)
{
	unsigned most = lower_max_sge(l), at = 0, sent;
	struct word *block = lower_word(l, arg->name, (uint16_t)bytes);
	struct arg_use *first = next_use(l->uses, arg);
	const struct op op = {
		.queue = first->to.step ? first->to.step->queue : TAILQ_FIRST(&l->steps)->queue};
	struct stretch s = less ? find_stretch(l, arg) : (struct stretch){0};
	struct step *read = NULL, *before;

	sent = less + s.again < s.run ? (s.run - less) / s.again * s.again : s.again;
	before = repeat(l, &op, block, &s, sent, arg->pos.line);
	for (struct arg_use *u = first; u; u = next_use(u->next, arg)) {
		if (!read || read->nlocal == most) {
			const struct op of = {
				.queue = u->to.step ? u->to.step->queue : TAILQ_FIRST(&l->steps)->queue};

			read = lower_step(l, &of, CHAIN_READ, "argument");
			read->line = arg->pos.line;
			read->remote = lower_scratch(block, at, 0);
			if (before)
				TAILQ_INSERT_AFTER(&l->steps, before, read, link);
			else
				TAILQ_INSERT_HEAD(&l->steps, read, link);
			before = read;
		}
		memset(block->init + at, u->inverted ? 0xff : 0, u->len); /* what a request lacks is zero */
		u->block = block;
		u->copied = at >= s.alone + sent && at < s.alone + s.run;
		read->remote.len += u->len;
		*lower_local(l, read) = u->to;
		at += u->len;
	}
}

void lower_gather_args(struct lower *l)
{
	unsigned all, bytes, n;

	while (uses_of(l, NULL, &all) > CHAIN_MAX_RECV_SGE || all > CHAIN_MAX_ARG) {
		const struct ast_arg *best = NULL;
		unsigned most = 1;

		for (unsigned a = 0; a < l->p->nargs; a++) {
			n = uses_of(l, l->p->arg[a], &bytes);
			if (n > most) {
				most = n;
				best = l->p->arg[a];
			}
		}
		if (!best)
			return;
		uses_of(l, best, &bytes);
		gather(l, best, bytes, all > CHAIN_MAX_ARG ? all - CHAIN_MAX_ARG : 0);
	}
}
