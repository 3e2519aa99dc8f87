/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps are moved where nothing changes by it: each as early as what it needs allows, so that work overlaps
 * and one barrier serves many. The copies of lanes that only the reply needs come last, and two of them
 * become one. A program with an answer ahead of what comes after it keeps the order of its text.
 */
#include "reddnd/program/lower/ir.h"

#include <string.h>

static bool fields_overlap(const struct place *a, const struct place *b)
{
	return a->step == b->step &&
	       (a->field == CHAIN_F_CTRL || b->field == CHAIN_F_CTRL ||
		       (a->field == b->field && a->sge == b->sge && a->from < b->from + b->len &&
			       b->from < a->from + a->len));
}

/* Of two places none of which is a variable's */
static bool plain_overlap(const struct place *a, const struct place *b)
{
	if (a->kind != b->kind)
		return false;
	switch ((enum chain_place_kind)a->kind) {
	case CHAIN_AT_REGION:
		return a->region == b->region;
	case CHAIN_AT_FIELD:
		return fields_overlap(a, b);
	case CHAIN_AT_SCRATCH:
		return a->word == b->word;
	case CHAIN_AT_SLOT:   /* in the one queue of the reply */
	case CHAIN_AT_LENGTH: /* which no step writes to */
	case CHAIN_AT_NONE:
		break;
	}
	return false;
}

static bool is_variable(const struct place *p)
{
	return p->kind == CHAIN_AT_SCRATCH && !p->word;
}

static bool overlap(const struct place *a, const struct place *b)
{
	if (!is_variable(a) && !is_variable(b))
		return plain_overlap(a, b);
	if (!is_variable(a))
		return overlap(b, a);
	for (unsigned i = 0; i < a->web->nparts; i++) {
		struct place part = lower_part(&a->web->part[i], a->web->part[i].first, a->web->part[i].len);

		if (overlap(&part, b))
			return true;
	}
	return false;
}

/* The WQE of @s, or a part of it, is at @p */
static bool in_wqe_of(const struct step *s, const struct place *p)
{
	for (unsigned i = 0; is_variable(p) && i < p->web->nparts; i++)
		if (p->web->part[i].step == s)
			return true;
	return p->kind == CHAIN_AT_FIELD && p->step == s;
}

static bool writes_remote(const struct step *s)
{
	return s->verb != CHAIN_READ && s->remote.kind != CHAIN_AT_NONE;
}

/* Whether @s touches @p, given that one of the two writes: a step also reads its own WQE */
static bool touches(const struct step *s, const struct place *p, bool written)
{
	bool scatters = chain_verb_info(s->verb)->scatters;

	if (written && in_wqe_of(s, p))
		return true;
	if ((written || writes_remote(s)) && overlap(&s->remote, p))
		return true;
	for (unsigned i = 0; (written || scatters) && i < s->nlocal; i++)
		if (overlap(&s->local[i], p))
			return true;
	return false;
}

bool lower_conflict(const struct step *a, const struct step *b)
{
	const struct step *both[2] = {a, b};

	if (a->queue == 0 && b->queue == 0)
		return true;
	for (unsigned i = 0; i < 2; i++) {
		const struct step *s = both[i], *other = both[1 - i];

		if (touches(other, &s->remote, writes_remote(s)))
			return true;
		for (unsigned k = 0; k < s->nlocal; k++)
			if (touches(other, &s->local[k], chain_verb_info(s->verb)->scatters))
				return true;
	}
	return false;
}

/* Nothing but the reply waits for it */
static bool can_be_last(const struct step *s)
{
	const struct test *t = s->lanes_of;

	if (!t || s->guard)
		return false;
	for (unsigned i = 0; i < t->on.n; i++)
		if (t->on.v[i]->queue)
			return false;
	for (unsigned i = 0; i < t->off.n; i++)
		if (t->off.v[i]->queue)
			return false;
	return true;
}

static unsigned find_depths(struct lower *l, unsigned last)
{
	unsigned deepest = 0;
	struct step *s, *before;

	TAILQ_FOREACH (s, &l->steps, link) {
		s->depth = can_be_last(s) ? last : 0;
		TAILQ_FOREACH (before, &l->steps, link) {
			if (before == s)
				break;
			if (s->depth <= before->depth && lower_conflict(before, s))
				s->depth = before->depth + 1;
		}
		if (s->queue && !can_be_last(s) && s->depth > deepest)
			deepest = s->depth;
	}
	return deepest;
}

void lower_schedule(struct lower *l)
{
	struct steps sorted = TAILQ_HEAD_INITIALIZER(sorted);
	unsigned most = 0;
	struct step *s, *next;

	if (l->by_hand || l->early)
		return;
	find_depths(l, find_depths(l, 0) + 1);
	TAILQ_FOREACH (s, &l->steps, link)
		most = s->depth > most ? s->depth : most;
	for (unsigned depth = 0; depth <= most; depth++)
		for (s = TAILQ_FIRST(&l->steps); s; s = next) {
			next = TAILQ_NEXT(s, link);
			if (s->depth != depth)
				continue;
			TAILQ_REMOVE(&l->steps, s, link);
			TAILQ_INSERT_TAIL(&sorted, s, link);
		}
	TAILQ_CONCAT(&l->steps, &sorted, link);
}

/* ---- two copies of lanes as one ---------------------------------------------------------------- */

static bool can_pair(const struct step *s)
{
	return s && s->lanes_of && !s->guard && s->lanes_of->nwords == 1 && !s->lanes_of->word->carry &&
	       !s->lanes_of->word->twice;
}

static struct step *partner(const struct lower *l, struct step *s)
{
	struct step *other = TAILQ_NEXT(s, link);

	while (other && other->queue != s->queue)
		other = TAILQ_NEXT(other, link);
	return can_pair(other) && other->depth == s->depth && s->nlocal + other->nlocal <= lower_max_sge(l)
		       ? other
		       : NULL;
}

/* Makes @a and @b neighbours */
static void adjoin(struct lower *l, struct word *a, struct word *b)
{
	struct word *both = lower_word(l, "if", 2 * WORD);

	a->in = b->in = both;
	b->at = WORD;
}

void lower_pair_lanes(struct lower *l)
{
	struct step *s, *other;

	TAILQ_FOREACH (s, &l->steps, link) {
		if (l->by_hand || l->early || !can_pair(s) || s->lanes_of->word->word->in)
			continue;
		other = partner(l, s);
		if (!other)
			continue;
		adjoin(l, s->lanes_of->word->word, other->lanes_of->word->word);
		other->lanes_of->word->mirrored = true;
		s->remote.len += other->remote.len;
		for (unsigned i = 0; i < other->nlocal; i++)
			*lower_local(l, s) = other->local[i];
		other->lanes_of->copy = NULL;
		TAILQ_REMOVE(&l->steps, other, link);
	}
}

/* ---- when a queue fails ------------------------------------------------------------------------ */

/* Steps whose opcodes one READ brings, in their order, when all before it in its queue has succeeded */
struct woken {
	struct step *step[PROGRAM_MAX_SEGMENTS];
	unsigned n;
	struct word *opcodes;
};

/* They have no opcodes any more: a word has them */
static void begin_telling(struct lower *l, struct woken *woken)
{
	woken->opcodes = lower_word(l, "opcode", (uint16_t)woken->n);
	for (unsigned i = 0; i < woken->n; i++) {
		woken->opcodes->init[i] = chain_verb_info(woken->step[i]->verb)->opcode;
		woken->step[i]->flags |= CHAIN_DORMANT;
	}
}

static void bring_opcodes(struct lower *l, struct step *s, const struct woken *woken)
{
	for (unsigned i = 0; i < woken->n; i++)
		*lower_local(l, s) = lower_field(woken->step[i], CHAIN_F_OPCODE, 0, 0, 1);
}

static struct step *tell(struct lower *l, unsigned queue, const struct woken *woken)
{
	struct step *s = pool_alloc(l->pool, sizeof(*s));

	s->queue = (uint8_t)queue;
	s->verb = CHAIN_READ;
	s->flags = CHAIN_FENCE;
	s->line = woken->step[woken->n - 1]->line;
	s->label = pool_printf(l->pool, "tell~%u", l->names++);
	s->remote = lower_scratch(woken->opcodes, 0, woken->n);
	bring_opcodes(l, s, woken);
	TAILQ_INSERT_BEFORE(woken->step[0], s, link);
	return s;
}

/* True if the READ of lanes @s has room for opcodes as well, and for a segment of what is between */
static bool can_bring(const struct lower *l, const struct step *s, const struct woken *woken)
{
	return can_pair(s) && woken->n <= WORD && s->nlocal + 1 + woken->n <= lower_max_sge(l);
}

/* The lanes of one word end where the opcodes begin. Those of two, which are a pair, are in the middle of it:
 * then the READ puts the rest of the second word aside */
static void bring_with_lanes(struct lower *l, struct step *s, const struct woken *woken)
{
	struct word *first = s->lanes_of->word->word, *both = first->in;

	if (both) {
		const unsigned rest = WORD - (s->remote.len - s->lanes_of->word->nlanes);

		both->size = 3 * WORD;
		both->init = pool_alloc(l->pool, both->size);
		woken->opcodes->in = both;
		woken->opcodes->at = 2 * WORD;
		*lower_local(l, s) = lower_scratch(lower_word(l, "rest", (uint16_t)rest), 0, rest);
		s->remote.len += rest;
	} else {
		adjoin(l, first, woken->opcodes);
	}
	s->remote.len += woken->n;
	bring_opcodes(l, s, woken);
}

/* True if @s may as well come right before @to; NULL: last of all */
static bool can_be_later(const struct lower *l, struct step *s, const struct step *to)
{
	for (struct step *k = TAILQ_NEXT(s, link); k != to; k = TAILQ_NEXT(k, link))
		if (l->by_hand || l->early || lower_conflict(s, k))
			return false;
	return true;
}

/* The end of the reply, and what of it before that stands under no condition, as far as all code may come
 * before it */
static void find_woken(struct lower *l, struct step *end, struct woken *woken)
{
	struct step *s, *before;

	*woken = (struct woken){.step = {end}, .n = 1};
	for (s = TAILQ_PREV(end, steps, link); s && woken->n < lower_max_sge(l); s = before) {
		before = TAILQ_PREV(s, steps, link);
		if (s->queue || s->guard || !can_be_later(l, s, woken->step[0]))
			continue;
		TAILQ_REMOVE(&l->steps, s, link);
		TAILQ_INSERT_BEFORE(woken->step[0], s, link);
		memmove(woken->step + 1, woken->step, woken->n * sizeof(*woken->step));
		woken->step[0] = s;
		woken->n++;
	}
}

/* The last step of each queue of code before the end of the reply, which comes last if it can: an answer that
 * uses nothing of what the code does also means that the code has not failed. Returns that end; NULL: there
 * is one queue of code, where nothing gets lost */
static struct step *find_last(struct lower *l, struct step *last[LOWER_QUEUES])
{
	struct step *s, *end = NULL;
	bool several = false;
	unsigned queue = 0;

	TAILQ_FOREACH (s, &l->steps, link) {
		if (s->queue == 0)
			end = s;
		several |= s->queue && queue && s->queue != queue;
		queue = s->queue ? s->queue : queue;
	}
	if (!several)
		return NULL;
	if (can_be_later(l, end, NULL)) {
		TAILQ_REMOVE(&l->steps, end, link);
		TAILQ_INSERT_TAIL(&l->steps, end, link);
	}
	for (s = TAILQ_FIRST(&l->steps); s != end; s = TAILQ_NEXT(s, link))
		if (s->queue)
			last[s->queue] = s;
	return end;
}

/*
 * A WAIT for another queue's CQE also ends with the CQE of an error. So the last code queue brings the one
 * before it the opcode of such a step, and that one the next, until the first but one brings them to the
 * reply: when one fails, the client gets no answer rather than a wrong one, and nothing in its slot.
 */
void lower_tell(struct lower *l)
{
	struct step *s, *last[LOWER_QUEUES] = {0}, *end = find_last(l, last);
	unsigned first = 1, highest = LOWER_QUEUES - 1;
	struct woken woken;

	if (!end)
		return;
	while (first < highest && !last[first])
		first++;
	while (highest > first && !last[highest])
		highest--;
	if (highest == first) /* what its conditions come to is known when it has not failed */
		return;
	if (end->guard) { /* its opcode is what its condition came to */
		lower_refuse(l, ANSWER, diag_line(l->diag, end->line),
			"a program with several queues ends with an answer under no condition: only "
			"that one can do without when a queue fails; answer after the conditions, or "
			"use one queue");
		return;
	}
	find_woken(l, end, &woken);
	for (unsigned q = first + 1; q <= highest; q++) {
		if (!last[q])
			continue;
		begin_telling(l, &woken);
		s = last[q];
		if (q == highest && can_bring(l, s, &woken)) {
			bring_with_lanes(l, s, &woken);
			return;
		}
		s = tell(l, q, &woken);
		woken = (struct woken){.step = {s}, .n = 1};
	}
}
