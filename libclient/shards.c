/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/shards.h"

#include "libclient/part.h"
#include "protocol/redis-slots.h"
#include "util/clock.h"

#include <errno.h>

static unsigned slot_of(const struct reddn_request *q)
{
	return redis_slot(q->key, q->len);
}

/* Of those that have stated the slot one that has a session, as its table is the newer one; or NULL. */
static struct reddn *shards_find(const struct reddn *whole, unsigned slot)
{
	struct reddn *found = NULL;

	for (struct reddn *s = whole->parts; s; s = s->next_part) {
		if (!redis_slots_have(s->slots, slot))
			continue;
		if (s->state == REDDN_UP)
			return s;
		found = found ? found : s;
	}
	return found;
}

/* Whose slots are not known, or may be others by now: one that has no session has those that it had. */
static bool shard_may_have(const struct reddn *s)
{
	return s->state == REDDN_UP || (!s->slots && !s->broken);
}

/* The next one that may have a slot that nobody has stated, in a circle; @from, if there is no other. */
static struct reddn *shards_next(const struct reddn *whole, struct reddn *from)
{
	struct reddn *s = from;

	do {
		s = s->next_part ? s->next_part : whole->parts;
	} while (s != from && !shard_may_have(s));
	return s;
}

struct reddn *reddn_shard_of(const struct reddn *whole, const void *key, size_t key_len)
{
	struct reddn *found = shards_find(whole, redis_slot(key, key_len)), *first = whole->parts;

	if (found)
		return found;
	return shard_may_have(first) ? first : shards_next(whole, first);
}

/* What no other one can take */
static void stray_end(struct reddn *p, struct reddn_request *q, int status)
{
	q->status = status;
	reddn_queue_add(&p->ended, q);
	p->exceptional = true;
}

/* They have memory of their own for their keys, which has room for either. */
static void requests_swap(struct reddn_request *a, struct reddn_request *b)
{
	struct reddn_request old = *a;

	for (uint32_t i = 0; i < a->len || i < b->len; i++) {
		uint8_t byte = a->key[i];

		a->key[i] = b->key[i];
		b->key[i] = byte;
	}
	*a = *b;
	*b = old;
	b->key = a->key;
	a->key = old.key;
}

/* Where @to has no free request, one of its own strays changes places with it: else shards whose requests are
 * all for each other would wait for ever. What comes to @p is for the next call, which is due at once:
 * *@next. */
static bool stray_exchange(
	struct reddn *p, struct reddn_request *q, struct reddn *to, uint64_t now, uint64_t *next)
{
	struct reddn_request *other = to->elsewhere.first;

	if (!other || other->len > p->key_room)
		return false;
	reddn_queue_take(&to->elsewhere);
	requests_swap(q, other);
	reddn_queue_add(&p->elsewhere, q);
	reddn_request_send_later(to, other);
	*next = now;
	return true;
}

/* False: it has to wait, until then, or for a free request. */
static bool stray_move(
	const struct reddn *whole, struct reddn *p, struct reddn_request *q, uint64_t now, uint64_t *next)
{
	struct reddn *to = shards_find(whole, slot_of(q));
	int r = 0;

	if (!to && q->due > now)
		return false;
	to = to ? to : shards_next(whole, p->shard);
	if (q->kind == REDDN_KEY_EXISTS)
		r = reddn_part_of_keys(to, REDDN_EXISTS, 1, &to);
	r = r < 0 ? r : to->broken;
	if (r == 0 && q->len > to->session.geo.max_key)
		r = -EMSGSIZE;
	if (r < 0)
		stray_end(p, q, r);
	else if (to == p)
		reddn_request_send_later(p, q);
	else if (to->free_request)
		reddn_request_hand_over(p, q, to);
	else
		return stray_exchange(p, q, to, now, next);
	return true;
}

static void set_alarm(struct reddn *whole, uint64_t ns)
{
	if (ns != whole->pause_until)
		reddn_connector_alarm_ns(&whole->connector, ns);
	whole->pause_until = ns;
}

bool reddn_shards_route(struct reddn *whole)
{
	uint64_t now = clock_ns(), next = UINT64_MAX;
	bool ended = false;

	whole->strays = false;
	for (struct reddn *p = whole->parts; p; p = reddn_next_of(whole, p)) {
		struct reddn_queue all = p->elsewhere;
		struct reddn_request *q;

		p->elsewhere = (struct reddn_queue){0};
		while ((q = reddn_queue_take(&all))) {
			if (stray_move(whole, p, q, now, &next))
				continue;
			reddn_queue_add(&p->elsewhere, q);
			if (q->due > now && q->due < next)
				next = q->due;
		}
	}
	for (const struct reddn *p = whole->parts; p; p = reddn_next_of(whole, p)) {
		whole->strays |= p->elsewhere.first != NULL;
		ended |= p->ended.first != NULL;
	}
	set_alarm(whole, next);
	return ended;
}
