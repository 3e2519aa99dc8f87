/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/judge.h"

#include "protocol/cache-hash.h"
#include "protocol/cache-item.h"

#include <ctype.h>
#include <endian.h>
#include <string.h>
#include <xxhash.h>

/* Of a reply: where its items begin, and of each what comes before its bytes from REST on */
enum { LINES = 128, FIRST = 136, ITEMS = 144, WALKS = 88, HEAD = 32, NEXT = 16, REST = 24 };
#define OFFSET ((1ull << 40) - 1) /* of an address */
/* seconds in which memcached does not evict what it moved to the front of a list */
enum { MOVED_S = 2 };

/* One item as the walks saw it */
struct seen {
	uint64_t before, whole, after; /* where each walk looked; 0: behind the last item of the bucket */
	struct reddn_cache_item h, v, c;
	const uint8_t *rest; /* of the item, from REST on */
	bool reached;        /* the last walk found it in the table */
};

bool mc_lines_read(const uint8_t *reply, size_t len, struct mc_lines *lines)
{
	const struct reddn_cache_served *served = &lines->served;

	_Static_assert(sizeof(*lines) == LINES, "both lines");
	if (len < ITEMS)
		return false;
	memcpy(lines, reply, sizeof(*lines));
	return served->sum == XXH3_64bits(served, offsetof(struct reddn_cache_served, sum)) &&
	       lines->live.generation % 2 == 0 && lines->live.generation == served->generation;
}

static uint32_t word_at(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static uint64_t offset_at(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v) & OFFSET;
}

static bool is_same(const struct reddn_cache_item *a, const struct reddn_cache_item *b)
{
	const uint16_t flags = CACHE_ITEM_LINKED | CACHE_ITEM_CAS | CACHE_ITEM_CFLAGS;

	return a->cas == b->cas && a->nbytes == b->nbytes && a->nkey == b->nkey &&
	       (a->it_flags & flags) == (b->it_flags & flags);
}

/* Where the last walk was led to from @before; NULL: from the bucket */
static uint64_t led_to(const struct seen *before, uint64_t first)
{
	return before ? before->c.h_next & OFFSET : first;
}

/* The last walk reads items where earlier ones were led to. So it was led there, too, if what points to the
 * item, which it read before that, points there still, and was in the table all the while. */
static bool leads(const struct seen *before, const struct seen *s, uint64_t first)
{
	return s->after == led_to(before, first) &&
	       (!before ||
		       (before->reached && before->before == before->after &&
			       (before->c.it_flags & CACHE_ITEM_LINKED) && is_same(&before->h, &before->c)));
}

static struct seen see(const uint8_t *p)
{
	struct seen s = {.before = offset_at(p), .whole = offset_at(p + 8), .after = offset_at(p + 16)};

	memcpy((uint8_t *)&s.h + HEAD, p + 24, 24);
	memcpy((uint8_t *)&s.c + NEXT, p + 48, 40);
	memcpy((uint8_t *)&s.v + REST, p + WALKS, sizeof(s.v) - REST);
	s.rest = p + WALKS;
	return s;
}

static bool is_linked(const struct seen *s, unsigned rules)
{
	const struct reddn_cache_item *v = &s->v;

	return (v->it_flags & CACHE_ITEM_LINKED) && (v->it_flags & CACHE_ITEM_CAS) && v->cas &&
	       v->nbytes >= 2 && (!(rules & MC_RULE_BEFORE) || is_same(&s->h, v)) &&
	       (!(rules & MC_RULE_AFTER) || is_same(&s->c, v)) &&
	       (!(rules & MC_RULE_PLACES) || (s->reached && s->before == s->whole && s->whole == s->after));
}

/* memcached's clock may be a second ahead of @clock. A flush_all with a delay takes effect at flushed - 1. */
static bool is_over(const struct reddn_cache_item *v, const struct reddn_cache_served *served, uint64_t clock)
{
	bool later = served->flushed != UINT64_MAX && served->flushed > clock + 2;

	return (v->exptime && v->exptime <= clock + 1) || (v->time <= served->flushed && !later);
}

/*
 * incr and decr change a value in place, if it begins as a number does (memcached.c, do_add_delta): they take
 * a reference, which makes the count two; they get the next CAS id and store it; they write the digits, and
 * spaces behind them; and they give the reference back. The count of one in h, read when the CAS id had been
 * given, shows that the change is over. That the id is in h, too, does not show when: a READ may take its
 * words at different times, this count before the change and this id in the midst of it. What a reply showed
 * before the NIC was asked does, of this id or a later one: ids are given in order. docs/design/memcached.md
 */
static bool may_change(const struct mc_item *item, unsigned rules)
{
	bool held = item->held && (rules & MC_RULE_COUNTER), fresh = item->fresh && (rules & MC_RULE_KNOWN);

	return item->len && (held || fresh) &&
	       (isdigit(*item->value) || isspace(*item->value) || *item->value == '-' || *item->value == '+');
}

/* While an item is copied to another page, memcached holds it, and its copy has that count, too, until it is
 * whole and in the table. The same CAS id shows that only if it is not kept. The count that came with the
 * value is asked for as well, because that of h may be of what was there before, if its words were read at
 * different times. */
static bool may_be_copied(const struct seen *s, const struct mc_lines *lines)
{
	return (s->h.refcount != 1 || s->v.refcount != 1) && (lines->served.traits & REDDN_CACHE_IDS_MOVE);
}

/* It may have the key: of a long key only the beginning was sent */
static bool has_key(const struct seen *s, const struct mc_question *q, uint32_t most)
{
	size_t room = most - (sizeof(s->v) - REST);

	return s->v.nkey == q->key_len &&
	       memcmp(s->rest + sizeof(s->v) - REST, q->key, q->key_len < room ? q->key_len : room) == 0;
}

/* memcached evicts from the end of its list COLD, which an item leaves when it is used for the second time,
 * in this list or before. It leaves it with a new time: one that left it just now is not reported again. */
static bool is_due(const struct reddn_cache_item *v, uint64_t clock)
{
	if (v->it_flags & CACHE_ITEM_ACTIVE)
		return false;
	return !(v->it_flags & CACHE_ITEM_FETCHED) ||
	       ((v->clsid & CACHE_ITEM_LIST) == CACHE_ITEM_COLD && clock >= (uint64_t)v->time + MOVED_S);
}

static uint32_t flags_of(const struct reddn_cache_item *item, const uint8_t *value)
{
	uint32_t flags = 0;

	if (item->it_flags & CACHE_ITEM_CFLAGS)
		memcpy(&flags, value - sizeof(flags), sizeof(flags));
	return flags;
}

static enum mc_judgement judge_item(const struct seen *s, const struct mc_lines *lines,
	const struct mc_question *q, uint32_t most, struct mc_item *item)
{
	const struct reddn_cache_item *v = &s->v;
	uint32_t at = reddn_cache_value(v->nkey, v->it_flags);

	if (!is_linked(s, q->rules))
		return MC_UNSURE;
	if ((v->it_flags & (CACHE_ITEM_CHUNKED | CACHE_ITEM_HDR)) || is_over(v, &lines->served, q->clock))
		return MC_ELSEWHERE;
	*item = (struct mc_item){.len = (size_t)v->nbytes - 2,
		.place = s->whole,
		.at = at,
		.held = s->h.refcount != 1,
		.fresh = v->cas > q->newest,
		.cas = v->cas,
		.exptime = v->exptime,
		.due = is_due(v, q->clock)};
	if (at - REST + (size_t)v->nbytes > most)
		return MC_LONG;
	item->value = s->rest + at - REST;
	item->flags = flags_of(v, item->value);
	if ((q->rules & MC_RULE_COUNTER) && may_be_copied(s, lines))
		return MC_UNSURE;
	return may_change(item, q->rules) ? MC_UNSURE : MC_HIT;
}

enum mc_judgement mc_judge(const uint8_t *reply, size_t len, const struct mc_lines *lines,
	const struct mc_question *q, struct mc_item *item)
{
	uint32_t n = word_at(reply + LINES), most = word_at(reply + LINES + 4);
	size_t step = (size_t)WALKS + most;
	struct seen s = {0}, before;
	uint64_t first;
	bool one_place = true;

	item->cas = 0;
	if (len < ITEMS || most < sizeof(struct reddn_cache_item) - REST)
		return MC_ELSEWHERE;
	memcpy(&first, reply + FIRST, sizeof(first));
	first &= OFFSET;
	for (uint32_t i = 0; i < n && ITEMS + (i + 1) * step <= len; i++) {
		before = s;
		s = see(reply + ITEMS + i * step);
		s.reached = leads(i ? &before : NULL, &s, first);
		/* an item before the end may have been unlinked, which clears its pointer */
		if (!s.before && !s.whole && !s.after)
			return s.reached && one_place ? MC_ABSENT : MC_UNSURE;
		if (has_key(&s, q, most))
			return judge_item(&s, lines, q, most, item);
		one_place = one_place && s.whole == s.after;
	}
	return MC_BEYOND;
}

bool mc_judge_pieces(const struct mc_item *before, const uint8_t *bytes, const struct mc_item *after,
	const struct mc_question *q, struct mc_item *item)
{
	struct reddn_cache_item v;

	memcpy(&v, bytes, sizeof(v));
	if (before->place != after->place || before->cas != after->cas || before->len != after->len ||
		v.cas != before->cas || (size_t)v.nbytes != before->len + 2 ||
		reddn_cache_value(v.nkey, v.it_flags) != before->at || v.nkey != q->key_len ||
		memcmp(bytes + sizeof(v), q->key, q->key_len) != 0)
		return false;
	*item = *after; /* touched meanwhile, perhaps */
	item->held = before->held;
	item->fresh = before->fresh;
	item->value = bytes + before->at;
	item->flags = flags_of(&v, item->value);
	return !may_change(item, q->rules);
}

void mc_facts_take(struct mc_facts *f, const struct mc_lines *lines, bool proved, uint64_t now_ms)
{
	bool next = !f->known || f->lines.live.generation != lines->live.generation;
	int64_t ahead_ms = (int64_t)(lines->served.clock * 1000) - (int64_t)now_ms;

	f->known = proved && lines->served.hash < CACHE_HASHES;
	if (!f->known)
		return;
	/* reddnd's clock is whole seconds, and late; so it is ahead by as much as it ever was */
	if (next || ahead_ms > f->ahead_ms)
		f->ahead_ms = ahead_ms;
	if (next)
		f->newest = 0;
	f->lines = *lines;
}

void mc_facts_saw(struct mc_facts *f, uint64_t cas)
{
	if (cas > f->newest)
		f->newest = cas;
}

uint64_t mc_facts_clock(const struct mc_facts *f, uint64_t now_ms)
{
	return (uint64_t)((int64_t)now_ms + f->ahead_ms) / 1000;
}

uint64_t mc_facts_age(const struct mc_facts *f, uint64_t now_ms)
{
	int64_t age_ms = (int64_t)now_ms + f->ahead_ms - (int64_t)(f->lines.served.asked * 1000);

	return f->lines.served.died || age_ms < 0 ? 0 : (uint64_t)age_ms;
}

bool mc_facts_place(
	const struct mc_facts *f, unsigned i, const char *key, size_t key_len, struct mc_place *place)
{
	const struct reddn_cache_live *live = &f->lines.live;
	uint64_t tables = f->known ? live->tables : 0;
	unsigned place_power, power;

	for (; i && tables; i--)
		tables &= tables - 1;
	if (!tables)
		return false;
	place_power = (unsigned)__builtin_ctzll(tables);
	power = place_power ? place_power : (unsigned)live->power_min;
	if (power > 28)
		return false; /* offsets have four bytes */
	*place = (struct mc_place){
		.generation = live->generation,
		.table = 1ull << place_power,
		.at = (uint32_t)reddn_cache_table(0, place_power) +
		      8 * (cache_hash((enum cache_hash)f->lines.served.hash, key, key_len) &
				  ((1u << power) - 1)),
	};
	return true;
}

bool mc_place_holds(const struct mc_place *place, const struct mc_lines *lines)
{
	return place->generation == lines->live.generation && (place->table & lines->live.tables);
}
