/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/late.h"

#include "mlx5/barrier.h"
#include "reddnd/session/count.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_MIN = 16 };

struct late_entry {
	const uint64_t *words; /* session_words() */
	uint64_t seen[SESSION_WORDS];
	struct session *session;
};

void late_deinit(struct late *l)
{
	free(l->entries);
	*l = (struct late){0};
}

static int make_room(struct late *l)
{
	unsigned room = l->room ? 2 * l->room : ROOM_MIN;
	struct late_entry *entries;

	if (l->n < l->room)
		return 0;
	entries = reallocarray(l->entries, room, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	l->entries = entries;
	l->room = room;
	return 0;
}

static void put(struct late *l, unsigned at, const struct late_entry *e)
{
	l->entries[at] = *e;
	e->session->late_at = at + 1;
}

/* Words of 0 are those of a session that has done nothing yet, or of none */
int late_add(struct late *l, struct session *s)
{
	int r = make_room(l);

	if (r == 0)
		put(l, l->n++, &(struct late_entry){.words = session_words(s), .session = s});
	return r;
}

void late_remove(struct late *l, struct session *s)
{
	if (!s->late_at)
		return;
	put(l, s->late_at - 1, &l->entries[--l->n]);
	s->late_at = 0;
}

static void load(const uint64_t *words, uint64_t seen[SESSION_WORDS])
{
	for (unsigned i = 0; i < SESSION_WORDS; i++)
		seen[i] = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
}

static bool has_changed(const struct late_entry *e)
{
	uint64_t now[SESSION_WORDS];

	load(e->words, now);
	return memcmp(now, e->seen, sizeof(now)) != 0;
}

/* What is over before the words are loaded is counted after that, and what is over afterwards changes them.
 * Of one that was counted the words are elsewhere now: it is counted again the next time, so that a client
 * that asks without end holds up nobody. */
static void count(struct late_entry *e, struct accounting *a)
{
	e->words = session_words(e->session);
	load(e->words, e->seen);
	barrier_from_device();
	if (accounting_count(a, e->session))
		*e = (struct late_entry){.words = session_words(e->session), .session = e->session};
}

static void look(struct late *l, unsigned from, unsigned to, struct accounting *a)
{
	for (unsigned i = from; i < to; i++)
		if (has_changed(&l->entries[i]))
			count(&l->entries[i], a);
}

void late_count(struct late *l, struct accounting *a)
{
	look(l, 0, l->n, a);
}

/* The last ones first: one that takes the place of one that ends is the last, and has had its turn */
void late_count_some(struct late *l, struct accounting *a)
{
	unsigned to = l->at && l->at < l->n ? l->at : l->n;

	l->at = to > LATE_SOME ? to - LATE_SOME : 0;
	look(l, l->at, to, a);
}

unsigned late_rounds(const struct late *l)
{
	return l->n > LATE_SOME ? (l->n + LATE_SOME - 1) / LATE_SOME : 1;
}
