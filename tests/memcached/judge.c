/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/memcached/judge.h"

#include "protocol/cache-item.h"

#include <ctype.h>
#include <endian.h>
#include <string.h>
#include <xxhash.h>

enum { LINES = 128, ITEMS = 136, HEAD = 32, REST = 24 };
#define OFFSET ((1ull << 40) - 1) /* of an address */

/* One item as the walks saw it */
struct seen {
	uint64_t before, whole, after; /* where it was */
	struct reddn_cache_item h, v, c;
	const uint8_t *key;
};

bool judge_lines(const uint8_t *reply, struct reddn_cache_live *live, struct reddn_cache_served *served)
{
	memcpy(live, reply, sizeof(*live));
	memcpy(served, reply + sizeof(*live), sizeof(*served));
	return served->sum == XXH3_64bits(served, offsetof(struct reddn_cache_served, sum)) &&
	       live->generation % 2 == 0 && live->generation == served->generation;
}

static uint64_t offset_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v) & OFFSET;
}

static struct seen see(const uint8_t *p)
{
	struct seen s = {.before = offset_at(p), .whole = offset_at(p + 8), .after = offset_at(p + 16)};

	memcpy((uint8_t *)&s.h + HEAD, p + 24, 24);
	memcpy((uint8_t *)&s.c + HEAD, p + 48, 24);
	memcpy((uint8_t *)&s.v + REST, p + 72, sizeof(s.v) - REST);
	s.key = p + 72 + sizeof(s.v) - REST;
	return s;
}

static bool is_same(const struct reddn_cache_item *a, const struct reddn_cache_item *b)
{
	const uint16_t flags = CACHE_ITEM_LINKED | CACHE_ITEM_CAS | CACHE_ITEM_CFLAGS;

	return a->cas == b->cas && a->nbytes == b->nbytes && a->nkey == b->nkey &&
	       (a->it_flags & flags) == (b->it_flags & flags);
}

static bool is_whole(const struct seen *s, const struct reddn_cache_served *served, unsigned rules)
{
	const struct reddn_cache_item *v = &s->v;

	return (v->it_flags & CACHE_ITEM_LINKED) && (v->it_flags & CACHE_ITEM_CAS) && v->cas &&
	       !(v->it_flags & (CACHE_ITEM_CHUNKED | CACHE_ITEM_HDR)) && v->nbytes >= 2 &&
	       (v->exptime == 0 || v->exptime > served->clock + 1) && v->time > served->flushed &&
	       (!(rules & JUDGE_BEFORE) || is_same(&s->h, v)) &&
	       (!(rules & JUDGE_AFTER) || is_same(&s->c, v)) &&
	       (!(rules & JUDGE_PLACES) || (s->before == s->whole && s->whole == s->after));
}

/* incr changes a value in place, and holds a reference meanwhile */
static bool may_change(const struct seen *s, const uint8_t *value, size_t len)
{
	return len && (isdigit(*value) || isspace(*value) || *value == '-' || *value == '+') &&
	       s->h.refcount != 1;
}

enum judge_result judge_reply(
	const uint8_t *reply, size_t len, const char *key, unsigned rules, struct judge_item *item)
{
	struct reddn_cache_served served;
	struct reddn_cache_live live;
	uint32_t n, most;

	if (!judge_lines(reply, &live, &served))
		return JUDGE_UNSURE;
	memcpy(&n, reply + LINES, sizeof(n));
	memcpy(&most, reply + LINES + 4, sizeof(most));
	n = be32toh(n);
	most = be32toh(most);
	for (uint32_t i = 0; i < n && ITEMS + (i + 1ull) * (72 + most) <= len; i++) {
		const uint8_t *part = reply + ITEMS + i * (72ull + most);
		struct seen s = see(part);
		size_t at = reddn_cache_value(s.v.nkey, s.v.it_flags) - REST;

		if (s.v.nkey != strlen(key) || memcmp(s.key, key, s.v.nkey) != 0)
			continue;
		if (!is_whole(&s, &served, rules) || at + (size_t)s.v.nbytes > most)
			return JUDGE_UNSURE;
		*item = (struct judge_item){part + 72 + at, (size_t)s.v.nbytes - 2, s.v.cas};
		return (rules & JUDGE_COUNTER) && may_change(&s, item->value, item->len) ? JUDGE_UNSURE
											 : JUDGE_HIT;
	}
	return JUDGE_ABSENT;
}
