/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/store/moves.h"

#include <assert.h>

static bool is_removal(const struct reddn_store_move *v)
{
	return v->from == v->to;
}

/* Copies the entry, whose mark is where it was or 0. The last store but one decides where it is. */
static void entry_move(const struct buckets *b, const struct reddn_store_move *v)
{
	word_set(bucket_locator(b, v->to), word_get(bucket_locator(b, v->from)));
	word_set(bucket_mark(b, v->to), v->mark);
	word_set(bucket_mark(b, v->from), 0);
	word_set(bucket_locator(b, v->from), b->null);
}

/* ---- recovery ---- */

/* A removal is taken back: the entry may have got a record. Whether a grace was over before the other writer
 * died is known only of an entry that is in both buckets. False: the move cannot be, and nothing was done but
 * to leave the entry where it is, if that is known. */
static bool recover_one(struct moves *m, const struct reddn_store_move *v)
{
	const struct buckets *b = m->buckets;
	uint64_t from, to;

	if (v->from >= b->n || v->to >= b->n || !bucket_is_mark(v->mark) ||
		(!is_removal(v) && bucket_other(b, v->from, v->mark) != v->to))
		return false;
	from = word_get(bucket_mark(b, v->from));
	to = word_get(bucket_mark(b, v->to));
	if (!is_removal(v) && to == v->mark) {
		if (!from || from == v->mark) {
			word_set(bucket_mark(b, v->from), 0);
			word_set(bucket_locator(b, v->from), b->null);
		}
		return true;
	}
	if (!is_removal(v) && !to && (!from || from == v->mark)) {
		word_set(bucket_mark(b, v->from), 0);
		m->move[m->n++] = *v;
		return true;
	}
	if (!from)
		word_set(bucket_mark(b, v->from), v->mark);
	return is_removal(v);
}

unsigned moves_recover(struct moves *m, struct reddn_store_move *wrong)
{
	uint64_t count = word_get(&m->journal->count), moves = word_get(m->live);
	unsigned nwrong = 0;

	for (uint64_t i = 0; i < count && i < REDDN_STORE_MOVES; i++) {
		const struct reddn_store_move *in = &m->journal->move[i];
		/* Others may change it meanwhile: what is checked is what is done */
		const struct reddn_store_move v = {
			word_get(&in->from), word_get(&in->to), word_get(&in->mark)};

		if (!recover_one(m, &v) && nwrong++ == 0)
			*wrong = v;
	}
	m->begun = m->n > 0;
	if (!m->begun)
		word_set(&m->journal->count, 0);
	if (m->begun != moves % 2)
		word_set(m->live, moves + 1);
	return nwrong;
}

/* ---- collecting ---- */

bool moves_use(const struct moves *m, uint64_t n)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->move[i].from == n || m->move[i].to == n)
			return true;
	return false;
}

bool moves_from(const struct moves *m, uint64_t n)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->move[i].from == n)
			return true;
	return false;
}

/* The last move first: its bucket is empty. If there is no room for all, then the last ones: they make the
 * path shorter. */
static void path_add(struct moves *m, const uint64_t *path, unsigned n)
{
	for (unsigned k = n; k > 0 && m->n < REDDN_STORE_MOVES; k--)
		m->move[m->n++] = (struct reddn_store_move){
			path[k - 1], path[k], word_get(bucket_mark(m->buckets, path[k - 1]))};
}

/*
 * Each bucket holds one entry and each entry has one other bucket, so there are only two paths. The shorter
 * one that ends at an empty bucket is taken.
 */
enum moves_room moves_path(struct moves *m, const uint64_t at[2])
{
	const struct buckets *b = m->buckets;
	bool busy[2] = {false, false};

	assert(!m->begun);
	if (m->n == REDDN_STORE_MOVES)
		return MOVES_BUSY;
	for (unsigned n = 0; n < MOVES_MAX_PATH && !(busy[0] && busy[1]); n++) {
		for (int i = 0; i < 2; i++) {
			uint64_t *path = m->path[i];

			if (busy[i])
				continue;
			path[n] =
				n == 0 ? at[i]
				       : bucket_other(b, path[n - 1], word_get(bucket_mark(b, path[n - 1])));
			busy[i] = moves_use(m, path[n]);
			if (!busy[i] && bucket_is_empty(b, path[n])) {
				path_add(m, path, n);
				return MOVES_ADDED;
			}
		}
	}
	return busy[0] || busy[1] ? MOVES_BUSY : MOVES_NONE;
}

enum moves_room moves_try(struct moves *m, const uint64_t at[2])
{
	unsigned n = m->n;
	enum moves_room r = moves_path(m, at);

	m->n = n;
	return r;
}

bool moves_remove(struct moves *m, uint64_t n, uint64_t record)
{
	assert(!m->begun);
	if (m->n == REDDN_STORE_MOVES)
		return false;
	m->record[m->n] = record;
	m->move[m->n++] = (struct reddn_store_move){n, n, word_get(bucket_mark(m->buckets, n))};
	return true;
}

/* ---- begin and end ---- */

void moves_begin(struct moves *m)
{
	struct reddn_store_journal *j = m->journal;

	assert(!m->begun && m->n && m->n <= REDDN_STORE_MOVES);
	/* Before the journal has them: from then on another writer may copy entries */
	word_set(m->live, word_get(m->live) + 1);
	for (unsigned i = 0; i < m->n; i++) {
		word_set(&j->move[i].from, m->move[i].from);
		word_set(&j->move[i].to, m->move[i].to);
		word_set(&j->move[i].mark, m->move[i].mark);
	}
	word_set(&j->count, m->n);
	for (unsigned i = 0; i < m->n; i++)
		word_set(bucket_mark(m->buckets, m->move[i].from), 0);
	m->begun = true;
}

/* False: it has got a record, and stays. */
static bool entry_remove(
	const struct buckets *b, const struct reddn_store_move *v, uint64_t locator, uint64_t record)
{
	if (bucket_kind(b, locator) == BUCKET_RECORD && locator != record) {
		word_set(bucket_mark(b, v->from), v->mark);
		return false;
	}
	word_set(bucket_locator(b, v->from), b->null);
	return true;
}

void moves_end(struct moves *m, void (*ended)(void *arg, const struct moves_ended *e), void *arg)
{
	struct moves_ended done[REDDN_STORE_MOVES];
	unsigned n = 0;

	assert(m->begun);
	for (unsigned i = 0; i < m->n; i++) {
		struct moves_ended e = {m->move[i], word_get(bucket_locator(m->buckets, m->move[i].from)),
			is_removal(&m->move[i])};

		if (!e.removed)
			entry_move(m->buckets, &m->move[i]);
		else if (!entry_remove(m->buckets, &m->move[i], e.locator, m->record[i]))
			continue;
		done[n++] = e;
	}
	word_set(&m->journal->count, 0);
	word_set(m->live, word_get(m->live) + 1);
	m->n = 0;
	m->begun = false;
	for (unsigned i = 0; i < n; i++)
		ended(arg, &done[i]);
}
