/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/keys.h"

#include "tools/reddn-follow/rules.h"

#include <assert.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>
#include <xxhash.h>

/* Users of the source choose keys: nobody may choose those that are in one bucket. The same for all sets of
 * keys, as long as the process lives. */
static uint64_t seed;
#undef HASH_FUNCTION
#define HASH_FUNCTION(bytes, len, hash) ((hash) = (unsigned)XXH3_64bits_withSeed(bytes, len, seed))

enum { TICK_MS = 10, SLOTS = 1 << 16 }; /* keys that are due later stay in their slot for several turns */

static void *allocate(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		uthash_fatal(-1);
	return p;
}

void keys_init(struct keys *ks)
{
	*ks = (struct keys){.wheel = allocate(SLOTS, sizeof(*ks->wheel))};
	if (!seed && getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
		seed = (uintptr_t)ks->wheel;
}

void keys_deinit(struct keys *ks)
{
	struct key *k, *next;

	HASH_ITER (hh, ks->all, k, next) {
		HASH_DEL(ks->all, k);
		free(k);
	}
	free(ks->wheel);
}

static void key_set_state(struct keys *ks, struct key *k, enum key_state state)
{
	if (k->state == KEY_DIRTY) {
		DL_DELETE(ks->queue, k);
		ks->queue_bytes -= sizeof(*k) + k->len;
		ks->nqueued--;
	}
	k->state = state;
	if (state == KEY_DIRTY) {
		DL_APPEND(ks->queue, k);
		ks->queue_bytes += sizeof(*k) + k->len;
		ks->nqueued++;
		ks->queued++;
	}
}

static void key_set_due(struct keys *ks, struct key *k, uint64_t due)
{
	if (k->due) {
		DL_DELETE2(ks->wheel[k->due / TICK_MS % SLOTS], k, due_prev, due_next);
		ks->ndue--;
	}
	k->due = due;
	if (due) {
		if (due / TICK_MS < ks->ticked)
			ks->ticked = due / TICK_MS;
		DL_APPEND2(ks->wheel[due / TICK_MS % SLOTS], k, due_prev, due_next);
		ks->ndue++;
	}
}

static void key_free_if_idle(struct keys *ks, struct key *k)
{
	if (k->state != KEY_CLEAN || k->due || k->absent)
		return;
	HASH_DEL(ks->all, k);
	free(k);
}

void keys_mark(struct keys *ks, const char *bytes, size_t len)
{
	struct key *k;
	unsigned hash;

	HASH_VALUE(bytes, len, hash);
	HASH_FIND_BYHASHVALUE(hh, ks->all, bytes, len, hash, k);
	if (!k) {
		k = allocate(1, sizeof(*k) + len);
		k->len = (uint32_t)len;
		memcpy(k->bytes, bytes, len);
		HASH_ADD_KEYPTR_BYHASHVALUE(hh, ks->all, k->bytes, len, hash, k);
	}
	keys_changed(ks, k);
}

void keys_changed(struct keys *ks, struct key *k)
{
	if (k->state == KEY_CLEAN)
		key_set_state(ks, k, KEY_DIRTY);
	else if (k->state == KEY_ASKED && rule_kept(RULE_ASK_AGAIN))
		key_set_state(ks, k, KEY_ASKED_DIRTY);
}

struct key *keys_ask(struct keys *ks)
{
	struct key *k = ks->queue;

	if (k)
		key_set_state(ks, k, KEY_ASKED);
	return k;
}

void keys_answer(struct keys *ks, struct key *k, bool absent, uint64_t due)
{
	assert(k->state == KEY_ASKED || k->state == KEY_ASKED_DIRTY);
	ks->answered++;
	ks->nabsent += absent;
	ks->nabsent -= k->absent;
	k->absent = absent;
	key_set_due(ks, k, due);
	key_set_state(ks, k, k->state == KEY_ASKED ? KEY_CLEAN : KEY_DIRTY);
	key_free_if_idle(ks, k);
}

void keys_expire(struct keys *ks, uint64_t now)
{
	uint64_t to = now / TICK_MS, from = ks->ticked;
	struct key *k, *next;

	ks->ticked = to;
	if (from + SLOTS < to)
		from = to - SLOTS;
	for (uint64_t t = from; ks->ndue && t < to; t++)
		for (k = ks->wheel[t % SLOTS]; k; k = next) {
			next = k->due_next;
			if (k->due / TICK_MS >= to)
				continue;
			key_set_due(ks, k, 0);
			keys_changed(ks, k);
		}
}

void keys_expire_all(struct keys *ks, uint64_t now)
{
	keys_expire(ks, now + TICK_MS);
}

int keys_pause(const struct keys *ks, uint64_t now, int most)
{
	int ms = TICK_MS - (int)(now % TICK_MS);

	if (!ks->ndue)
		return most;
	for (uint64_t t = ks->ticked; ms < most && !ks->wheel[t % SLOTS]; t++)
		ms += TICK_MS;
	return ms < most ? ms : most;
}

void keys_forget_questions(struct keys *ks)
{
	struct key *k, *next;

	HASH_ITER (hh, ks->all, k, next) {
		key_set_state(ks, k, KEY_CLEAN);
		key_free_if_idle(ks, k);
	}
	ks->queued = ks->answered = 0;
}

void keys_mark_absent(struct keys *ks)
{
	struct key *k, *next;

	HASH_ITER (hh, ks->all, k, next)
		if (k->absent)
			keys_changed(ks, k);
}
