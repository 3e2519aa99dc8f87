/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store between chains and its daemon, in schedules at random. A chain is executed word by word: each word
 * that it reads, and its CAS, is a step of its own, and so is each word of a message. Between them come the
 * reports of its outcome, work, and graces that wait for what had begun. What a get returns must have been
 * there at some time while it ran. With a rule left out, some schedule must find it.
 *
 * The daemon dies at any of its stores, and the next one opens the store while chains go on.
 */
#include "reddnd/store/pool.h"
#include "reddnd/store/test-rig.h"
#include "reddnd/store/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum { SESSIONS = 5, DEPTH = 3, KEYS = 24, CHANGES = 8192, STEPS = 20000, RECORD_MAX = 160 };

/* What callers leave out of the protocol */
enum left_out {
	NOTHING,
	CAS,        /* a plain store publishes */
	ONE_DEVICE, /* something comes between the read and the write of a CAS */
	WINNER,     /* who lost his CAS reports that he published */
	GRACE,      /* a grace is over before the chains are */
	ODD,        /* a get does not look at moves */
	TOMBSTONE,  /* a delete clears the mark */
	WHOLE,      /* a chain begins before its message is complete, and the client dies */
	OUTCOMES,   /* a grace does not wait for outcomes, which are late */
	HOLDING,    /* the next daemon does not know what instances are armed with */
	RULES
};

enum stage { EMPTY, ARMED, MESSAGE, RUNNING, OVER };

struct chain {
	enum stage stage;
	uint64_t extent; /* offset; 0: none */
	uint64_t seq;
	uint32_t key, bytes, sent;
	uint64_t value; /* 0: a delete */
	uint8_t record[RECORD_MAX];
	uint64_t bucket[2], loc[2], mark[2];
	unsigned seen; /* bits: words of buckets */
	bool tried, decided, stored;
	uint64_t found; /* by the CAS */
	/* a get */
	unsigned hit, words, word, order;
	uint64_t slot[RECORD_MAX / 8 + 2];
	uint64_t began, moves;
};

struct session {
	bool alive, gets;
	uint32_t bytes;  /* that it publishes at most */
	uint32_t extent; /* of its extents */
	uint64_t begun, reported, awaited;
	struct chain chain[DEPTH];
};

struct sim {
	struct rig rig;
	struct store *store;
	enum left_out left_out;
	bool few;      /* extents: they are large, and the heap is full of those of a few entries */
	unsigned late; /* of so many chances to report an outcome, one is taken */
	uint64_t random, now, next_value;
	struct session session[SESSIONS];
	bool grace, wanted;
	char wrong[200];
	struct {
		uint64_t time, value;
	} change[KEYS][CHANGES];
	unsigned changes[KEYS];
	uint64_t last_version;
	uint64_t puts, deletes, gets, misses, conflicts, graces, crashes, evictions, daemons;
};

static unsigned pick(struct sim *m, unsigned n)
{
	m->random = m->random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(m->random >> 33) % n;
}

static void wrong(struct sim *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void wrong(struct sim *m, const char *format, ...)
{
	va_list ap;

	if (*m->wrong)
		return;
	va_start(ap, format);
	vsnprintf(m->wrong, sizeof(m->wrong), format, ap);
	va_end(ap);
}

/* ---- what must be there ---- */

static uint64_t value_now(const struct sim *m, uint32_t key)
{
	return m->changes[key] ? m->change[key][m->changes[key] - 1].value : 0;
}

static void value_set(struct sim *m, uint32_t key, uint64_t value)
{
	assert_true(m->changes[key] < CHANGES);
	m->change[key][m->changes[key]].time = m->now;
	m->change[key][m->changes[key]++].value = value;
}

/* True if the key had the value at some time since @from. */
static bool value_was(const struct sim *m, uint32_t key, uint64_t value, uint64_t from)
{
	unsigned n = m->changes[key];

	for (unsigned i = n; i-- > 0;) {
		if (m->change[key][i].value == value)
			return true;
		if (m->change[key][i].time < from)
			return false;
	}
	return value == 0;
}

static const uint64_t TORN = UINT64_MAX;

/* The value of the record; 0: it is of another key; or TORN. @len: of the record, without the header */
static uint64_t value_of(const uint8_t *record, uint64_t len, uint32_t key)
{
	struct reddn_record h;
	uint32_t is;
	uint64_t value;

	memcpy(&h, record, sizeof(h));
	if (h.key_len != 4 || h.val_len < 8 || reddn_record_size(h.key_len, h.val_len) > len ||
		h.sum != reddn_record_sum_of(
				 record + 16, h.key_len + h.val_len, (uint64_t)4 << 32 | h.val_len))
		return TORN;
	memcpy(&is, record + 16, 4);
	memcpy(&value, record + 20, 8);
	return is == key ? value : 0;
}

/* A store in which nothing happens has each key with its value, once; or, if it evicts, without one. */
static void check_quiet(struct sim *m, const struct rig *r)
{
	unsigned found[KEYS] = {0};

	for (uint64_t b = 0; b < r->buckets; b++) {
		uint64_t loc = r->words[2 * b], mark = r->words[2 * b + 1], value = 0;
		uint32_t k = 0;

		for (; k < KEYS; k++) {
			struct reddn_place p = rig_place(r, k);

			if (mark == reddn_mark(p.fp) && (b == p.bucket[0] || b == p.bucket[1]))
				break;
		}
		if (!mark && loc != r->null)
			wrong(m, "the empty bucket %" PRIu64 " has a locator", b);
		if (!mark)
			continue;
		if (k == KEYS || found[k]++)
			wrong(m, "bucket %" PRIu64 " has no key, or one that another has", b);
		else if (reddn_locator_len(loc) != r->header)
			value = value_of(r->heap + reddn_locator_off(loc) + r->header,
				reddn_locator_len(loc) - r->header, k);
		if (k < KEYS && value != value_now(m, k) && (value || !r->evict))
			wrong(m, "key %u has not the last value that was put", k);
	}
	for (uint32_t k = 0; k < KEYS && !r->evict; k++)
		if (!found[k] && value_now(m, k))
			wrong(m, "key %u is lost", k);
}

/* ---- a writer that dies at any store ---- */

static struct sim *dying;      /* each store of its writer may be the last */
static uint8_t *again, *twice; /* files as they were then */
static unsigned until_again;   /* stores of the recovery until it dies, too; 0: it does not */
static unsigned until_next;    /* stores of the daemon until it dies, and the next one begins */
static jmp_buf next_daemon;

static void check_file(struct sim *m, uint8_t *file)
{
	struct rig copy;
	struct store *s = NULL;
	char why[200];
	uint64_t at;

	rig_look(&copy, &m->rig, file);
	if (store_open(&s, file, copy.size, NULL, 0, why, sizeof(why)) < 0 || *why) {
		wrong(m, "%s", why);
		return;
	}
	rig_settle(s);
	check_quiet(m, &copy);
	if (copy.h->live.moves % 2)
		wrong(m, "moves are odd");
	if (store_take(s, m->session[0].bytes, &at) == 0 && *(uint64_t *)(copy.heap + at) <= m->last_version)
		wrong(m, "a version comes again");
	store_close(s);
}

static void die(struct sim *m)
{
	const struct reddn_store_journal *j =
		(const struct reddn_store_journal *)(m->rig.file + REDDN_STORE_JOURNAL);
	bool both = pick(m, 4) == 0;

	dying = NULL;
	/* The next writer copies entries while sessions that only get go on */
	if (j->count && m->rig.h->live.moves % 2 == 0)
		wrong(m, "the journal has moves, but the number of moves is even");
	memcpy(again, m->rig.file, m->rig.size);
	until_again = both ? 1 + pick(m, 12) : 0;
	check_file(m, again);
	if (both && !until_again)
		check_file(m, twice);
	until_again = 0;
	m->crashes++;
	dying = m;
}

/* In place of that of words.c */
void word_set(uint64_t *word, uint64_t value)
{
	atomic_store_explicit((_Atomic uint64_t *)word, value, memory_order_release);
	if (dying && !*dying->wrong)
		die(dying);
	else if (until_again && --until_again == 0)
		memcpy(twice, again, (size_t)((struct reddn_table_header *)again)->file_size);
	else if (until_next && --until_next == 0)
		longjmp(next_daemon, 1);
}

/* ---- chains ---- */

static void client_begins(struct sim *m, struct session *s, struct chain *c)
{
	struct reddn_place p;
	uint32_t val_len = 8 + pick(m, s->bytes - m->rig.header - 16 - 4 - 8 - 8);

	c->key = pick(m, KEYS);
	p = rig_place(&m->rig, c->key);
	memcpy(c->bucket, p.bucket, sizeof(c->bucket));
	c->seen = c->hit = c->words = c->word = c->sent = 0;
	c->tried = c->decided = c->stored = false;
	c->found = 0;
	memset(c->slot, 0, sizeof(c->slot));
	c->began = m->now;
	c->moves = m->rig.h->live.moves;
	c->stage = MESSAGE;
	if (s->gets)
		return;
	if (pick(m, 2)) {
		uint64_t b = c->bucket[0];

		c->bucket[0] = c->bucket[1];
		c->bucket[1] = b;
	}
	c->value = pick(m, 4) ? ++m->next_value : 0;
	c->bytes = c->value ? rig_record(&m->rig, c->record, c->key, c->value, val_len) : m->rig.header;
}

/* One word of the message, or its end: the chain begins. */
static void message_step(struct sim *m, struct session *s, struct chain *c)
{
	uint32_t left = s->gets ? 0 : c->bytes - m->rig.header - c->sent, n = left < 8 ? left : 8;
	bool early = m->left_out == WHOLE && c->sent > 16 && pick(m, 4) == 0;

	memcpy(m->rig.heap + c->extent + m->rig.header + c->sent, c->record + c->sent, n);
	c->sent += n;
	if (n && !early)
		return;
	c->seq = s->begun++;
	c->stage = RUNNING;
}

/* Reads one of the words of the buckets that it has not read. */
static void bucket_step(struct sim *m, struct chain *c, unsigned words)
{
	unsigned w = pick(m, words);

	while (c->seen & 1u << w)
		w = (w + 1) % words;
	if (w % 2)
		c->mark[w / 2] = word_get(&m->rig.words[2 * c->bucket[w / 2] + 1]);
	else
		c->loc[w / 2] = word_get(&m->rig.words[2 * c->bucket[w / 2]]);
	c->seen |= 1u << w;
}

static uint64_t put_locator(const struct chain *c)
{
	return reddn_locator(c->extent, c->bytes);
}

static void put_cas(struct sim *m, struct chain *c)
{
	uint64_t *loc = &m->rig.words[2 * c->bucket[0]];

	if (m->left_out == TOMBSTONE && !c->value) {
		m->rig.words[2 * c->bucket[0] + 1] = 0;
		value_set(m, c->key, 0);
		c->stage = OVER;
		return;
	}
	if (!c->tried) {
		c->tried = true;
	} else if (!c->decided) {
		c->decided = true;
		c->found = m->left_out == CAS ? c->loc[0] : *loc;
	} else {
		c->stage = OVER;
	}
	if (c->found != c->loc[0] || c->stored || !c->decided ||
		(m->left_out == ONE_DEVICE && c->stage != OVER))
		return;
	c->stored = true;
	*loc = put_locator(c);
	value_set(m, c->key, c->value);
}

static void put_step(struct sim *m, struct chain *c)
{
	const struct reddn_place p = rig_place(&m->rig, c->key);

	if (c->seen != 3)
		bucket_step(m, c, 2);
	else if (c->mark[0] == reddn_mark(p.fp))
		put_cas(m, c);
	else
		c->stage = OVER;
}

static void get_is_over(struct sim *m, struct chain *c)
{
	bool moved = c->moves % 2 || word_get(&m->rig.h->live.moves) != c->moves;
	const uint8_t *record = (const uint8_t *)c->slot + m->rig.header;
	uint64_t value = 0, lengths;

	c->stage = OVER;
	memcpy(&lengths, record, sizeof(lengths));
	if (lengths)
		value = value_of(record, sizeof(c->slot) - m->rig.header, c->key);
	if (value == TORN) {
		wrong(m, "a get of key %u is torn", c->key);
		return;
	}
	/* One that a move has overtaken may have read the record of another key */
	if (!value && moved && m->left_out != ODD)
		return;
	m->gets += value != 0;
	m->misses += !value;
	if (!value_was(m, c->key, value, c->began))
		wrong(m, "a get of key %u returned what was not there", c->key);
}

/* The records of both buckets if both match, one after the other */
static void get_step(struct sim *m, struct chain *c)
{
	const struct reddn_place p = rig_place(&m->rig, c->key);

	if (c->seen != 15) {
		bucket_step(m, c, 4);
		return;
	}
	if (c->word < c->words) {
		unsigned w = (c->order + c->word++) % c->words;

		memcpy(&c->slot[w], m->rig.heap + reddn_locator_off(c->loc[c->hit - 1]) + 8 * w, 8);
		return;
	}
	while (c->hit < 2) {
		unsigned i = c->hit++;

		if (c->mark[i] != reddn_mark(p.fp) || reddn_locator_len(c->loc[i]) == m->rig.header)
			continue;
		c->words = (reddn_locator_len(c->loc[i]) + 7) / 8;
		c->order = pick(m, c->words);
		c->word = 0;
		return;
	}
	get_is_over(m, c);
}

static void chain_step(struct sim *m, struct session *s, struct chain *c)
{
	switch (c->stage) {
	case ARMED:
		client_begins(m, s, c);
		break;
	case MESSAGE:
		message_step(m, s, c);
		break;
	case RUNNING:
		if (s->gets)
			get_step(m, c);
		else
			put_step(m, c);
		break;
	case EMPTY:
	case OVER:
		break;
	}
}

/* ---- the daemon ---- */

static void arm(struct sim *m, struct session *s, struct chain *c)
{
	if (!s->gets && !c->extent && store_take(m->store, s->extent, &c->extent) < 0) {
		c->extent = 0;
		return;
	}
	if (!s->gets)
		store_renew(m->store, c->extent);
	if (!s->gets)
		m->last_version = *(uint64_t *)(m->rig.heap + c->extent);
	c->stage = ARMED;
}

static void published(struct sim *m, struct chain *c)
{
	m->puts += c->value != 0;
	m->deletes += !c->value;
	if (!store_published(m->store, 16 * c->bucket[0], c->loc[0], put_locator(c)))
		wrong(m, "a put is refused");
	c->extent = 0;
}

static void report(struct sim *m, struct session *s, struct chain *c)
{
	if (s->gets) {
	} else if (c->tried && (c->found == c->loc[0] || m->left_out == WINNER)) {
		published(m, c);
	} else if (c->tried) {
		m->conflicts++;
	} else if (!store_unplaced(m->store, c->extent, c->bytes)) {
		wrong(m, "a put without a bucket is refused");
	}
	s->reported++;
	c->stage = EMPTY;
}

static struct chain *next_over(struct session *s)
{
	for (unsigned i = 0; i < DEPTH; i++)
		if (s->chain[i].stage == OVER && s->chain[i].seq == s->reported)
			return &s->chain[i];
	return NULL;
}

static void session_begins(struct sim *m, struct session *s, unsigned n)
{
	*s = (struct session){.alive = true, .gets = n % 3 == 2, .bytes = n % 3 ? 128 : 64};
	s->extent = m->few ? n % 3 ? 2016 : 1344 : s->bytes;
	for (unsigned i = 0; i < DEPTH; i++)
		arm(m, s, &s->chain[i]);
}

/* Its queues are stopped, wherever its chains are. */
static void session_ends(struct sim *m, struct session *s)
{
	for (unsigned i = 0; i < DEPTH; i++) {
		struct chain *c = &s->chain[i];

		if (c->stage == OVER)
			report(m, s, c);
		else if (c->stage == RUNNING && c->tried)
			store_unfinished(m->store, 16 * c->bucket[0], c->loc[0], put_locator(c));
		else if (c->extent)
			store_give(m->store, c->extent);
		if (c->stage == EMPTY && c->extent)
			store_give(m->store, c->extent);
	}
	s->alive = false;
}

static void grace_begins(struct sim *m)
{
	store_grace_begins(m->store);
	m->grace = true;
	for (unsigned i = 0; i < SESSIONS; i++)
		m->session[i].awaited = m->session[i].begun;
}

static bool grace_is_over(const struct sim *m)
{
	for (unsigned i = 0; i < SESSIONS; i++) {
		const struct session *s = &m->session[i];

		if (m->left_out == GRACE)
			return true;
		for (unsigned k = 0; m->left_out == OUTCOMES && k < DEPTH; k++)
			if (s->alive && s->chain[k].stage == RUNNING && s->chain[k].seq < s->awaited)
				return false;
		if (m->left_out != OUTCOMES && s->alive && s->reported < s->awaited)
			return false;
	}
	return true;
}

/* With it the keys of entries that are evicted become absent. */
static void grace_ends(struct sim *m)
{
	store_grace_over(m->store);
	m->graces++;
	m->grace = m->wanted = false;
	/* Else moves have begun that this grace did not cover */
	for (uint32_t k = 0; m->rig.evict && m->rig.h->live.moves % 2 == 0 && k < KEYS; k++)
		if (value_now(m, k) && rig_bucket(&m->rig, k) < 0) {
			value_set(m, k, 0);
			m->evictions++;
		}
}

static struct sim *opening; /* its store is being opened */

int __wrap_pool_claim(struct pool *p, uint64_t at, uint32_t bytes, uint64_t bucket);
int __real_pool_claim(struct pool *p, uint64_t at, uint32_t bytes, uint64_t bucket);

/* Between reading a bucket and the next one */
int __wrap_pool_claim(struct pool *p, uint64_t at, uint32_t bytes, uint64_t bucket)
{
	for (unsigned n = opening ? pick(opening, 24) : 0; n > 0; n--) {
		struct session *s = &opening->session[pick(opening, SESSIONS)];

		opening->now++;
		if (s->alive)
			chain_step(opening, s, &s->chain[pick(opening, DEPTH)]);
	}
	return __real_pool_claim(p, at, bytes, bucket);
}

static uint64_t drains;

void __wrap_pool_drain(struct pool *p, uint64_t n, uint32_t bytes);
void __real_pool_drain(struct pool *p, uint64_t n, uint32_t bytes);

void __wrap_pool_drain(struct pool *p, uint64_t n, uint32_t bytes)
{
	drains++;
	__real_pool_drain(p, n, bytes);
}

/* The NIC has what the daemon before this one armed. What that had not armed again is free */
static void take_over(struct sim *m)
{
	struct store_held held[SESSIONS * DEPTH];
	char why[200] = "";
	size_t n = 0;

	until_next = 0;
	store_close(m->store);
	m->store = NULL;
	for (struct session *s = m->session; s < m->session + SESSIONS; s++)
		for (struct chain *c = s->chain; s->alive && c < s->chain + DEPTH; c++) {
			if (c->stage == EMPTY)
				c->extent = 0;
			else if (c->extent && m->left_out != HOLDING)
				held[n++] = (struct store_held){c->extent, s->extent};
		}
	m->grace = m->wanted = false;
	m->daemons++;
	opening = m;
	if (store_open(&m->store, m->rig.file, m->rig.size, held, n, why, sizeof(why)) < 0 || *why)
		wrong(m, "%s", why);
	opening = NULL;
}

static void daemon_step(struct sim *m)
{
	unsigned n = pick(m, SESSIONS);
	struct session *s = &m->session[n];
	struct chain *c = s->alive ? next_over(s) : NULL;

	switch (pick(m, 8)) {
	case 0:
		m->wanted = store_work(m->store);
		break;
	case 1:
		if (m->wanted && !m->grace)
			grace_begins(m);
		break;
	case 2:
		if (m->grace && grace_is_over(m))
			grace_ends(m);
		break;
	case 3:
		if (s->alive && pick(m, 8) == 0)
			session_ends(m, s);
		else if (!s->alive && pick(m, 4) == 0)
			session_begins(m, s, n);
		break;
	default:
		if (c && pick(m, m->late) == 0)
			report(m, s, c);
		for (unsigned i = 0; s->alive && i < DEPTH; i++)
			if (s->chain[i].stage == EMPTY)
				arm(m, s, &s->chain[i]);
	}
}

/* One that evicts is not asked what it had done when it died */
static void daemon_goes_on(struct sim *m)
{
	if (!m->rig.evict && !dying && pick(m, 200) == 0)
		until_next = 1 + pick(m, 12);
	if (setjmp(next_daemon))
		take_over(m);
	else
		daemon_step(m);
	until_next = 0;
}

/* Keys with a record, or with a tombstone, as the file has them: what the store counts came from reports */
static void count_buckets(const struct rig *r, uint64_t *records, uint64_t *tombstones)
{
	*records = *tombstones = 0;
	for (uint64_t b = 0; b < r->buckets; b++) {
		const uint64_t loc = r->words[2 * b];
		const bool dead = reddn_locator_len(loc) == r->header;

		if (!r->words[2 * b + 1] || loc == r->null)
			continue;
		*tombstones += dead;
		*records += !dead;
	}
}

static void check_numbers(struct sim *m)
{
	struct store_numbers n;
	uint64_t held = 0, used = 0, resting = 0, records, tombstones;

	store_numbers(m->store, &n);
	count_buckets(&m->rig, &records, &tombstones);
	for (unsigned i = 0; i < n.classes; i++) {
		held += n.extents[i].held;
		used += n.extents[i].used;
		resting += n.extents[i].resting;
	}
	if (n.contradictions)
		wrong(m, "%" PRIu64 " reports contradict the store", n.contradictions);
	if (held || used != n.entries + n.tombstones || n.entries != m->rig.h->live.entries)
		wrong(m, "%" PRIu64 " extents are held, %" PRIu64 " used, by %" PRIu64 " entries", held, used,
			n.entries);
	if (n.entries != records || n.tombstones != tombstones)
		wrong(m,
			"%" PRIu64 " entries and %" PRIu64 " tombstones are counted, but there are %" PRIu64
			" and %" PRIu64,
			n.entries, n.tombstones, records, tombstones);
	if (store_work(m->store))
		wrong(m,
			"there is work for ever: %" PRIu64 " extents rest, %" PRIu64 " tombstones, %" PRIu64
			" fresh",
			resting, n.tombstones, n.fresh);
}

static void finish(struct sim *m)
{
	for (unsigned i = 0; i < SESSIONS; i++)
		if (m->session[i].alive)
			session_ends(m, &m->session[i]);
	for (unsigned i = 0; i < 1000 && (m->grace || store_work(m->store)); i++) {
		if (!m->grace)
			grace_begins(m);
		grace_ends(m);
	}
	check_quiet(m, &m->rig);
	check_numbers(m);
}

static void run(struct sim *m, uint64_t seed, enum left_out left_out, unsigned steps, bool dies)
{
	struct rig rig = {.buckets = seed % 3 ? 32 : 16,
		.chunk = 4096,
		.chunks = seed % 3 ? 2 + seed % 4 : 2,
		.evict = seed % 3 == 0,
		.header = seed % 2 ? 15 : 17,
		.max_key = 16,
		.max_value = 128};

	memset(m, 0, sizeof(*m));
	m->few = seed % 6 == 0;
	if (m->few)
		rig.chunks = 10;
	rig_make(&rig);
	m->rig = rig;
	m->random = seed * 0x9e3779b97f4a7c15ull + 1;
	m->left_out = left_out;
	m->late = left_out == OUTCOMES ? 32 : seed % 4 ? 1 : 8;
	m->store = rig_open(&m->rig);
	dying = dies ? m : NULL;
	for (unsigned i = 0; i < SESSIONS; i++)
		session_begins(m, &m->session[i], i);
	for (unsigned i = 0; i < steps && !*m->wrong; i++) {
		struct session *s = &m->session[pick(m, SESSIONS)];

		m->now++;
		if (pick(m, 3) == 0)
			daemon_goes_on(m);
		else if (s->alive)
			chain_step(m, s, &s->chain[pick(m, DEPTH)]);
	}
	if (!*m->wrong)
		finish(m);
	dying = NULL;
	if (m->store)
		store_close(m->store);
	free(m->rig.file);
}

/* ---- tests ---- */

static void test_schedules(void **state)
{
	static struct sim m;
	struct sim all = {0};

	for (uint64_t seed = 1; seed <= 2000; seed++) {
		run(&m, seed, NOTHING, STEPS, false);
		if (*m.wrong)
			fail_msg("seed %" PRIu64 ": %s", seed, m.wrong);
		all.puts += m.puts;
		all.deletes += m.deletes;
		all.gets += m.gets;
		all.misses += m.misses;
		all.conflicts += m.conflicts;
		all.graces += m.graces;
		all.evictions += m.evictions;
		all.daemons += m.daemons;
	}
	print_message("%" PRIu64 " puts, %" PRIu64 " deletes, %" PRIu64 " conflicts, %" PRIu64
		      " hits, %" PRIu64 " certain misses, %" PRIu64 " graces, %" PRIu64 " evictions, %" PRIu64
		      " chunks drained, %" PRIu64 " daemons\n",
		all.puts, all.deletes, all.conflicts, all.gets, all.misses, all.graces, all.evictions, drains,
		all.daemons);
	assert_true(all.puts > 10000 && all.deletes > 1000 && all.conflicts > 100 && all.gets > 10000 &&
		    all.evictions > 500 && drains > 300 && all.misses > 1000 && all.daemons > 1000);
}

static void test_crashes(void **state)
{
	static struct sim m;
	uint64_t crashes = 0;

	for (uint64_t seed = 1; seed <= 12; seed++) {
		again = aligned_alloc(REDDN_TABLE_PAGE, 1 << 20);
		twice = aligned_alloc(REDDN_TABLE_PAGE, 1 << 20);
		run(&m, seed, NOTHING, STEPS, true);
		free(again);
		free(twice);
		if (*m.wrong)
			fail_msg("seed %" PRIu64 ": %s", seed, m.wrong);
		crashes += m.crashes;
	}
	print_message("%" PRIu64 " stores, each the last\n", crashes);
	assert_true(crashes > 1000);
}

static void test_rules(void **state)
{
	static const char *const names[] = {[CAS] = "CAS",
		[ONE_DEVICE] = "one device",
		[WINNER] = "winner",
		[GRACE] = "grace",
		[ODD] = "odd",
		[TOMBSTONE] = "tombstone",
		[WHOLE] = "whole message",
		[OUTCOMES] = "outcomes",
		[HOLDING] = "holding"};
	static struct sim m;

	for (enum left_out rule = CAS; rule < RULES; rule++) {
		uint64_t seed = 1;

		for (; seed <= 2000; seed++) {
			run(&m, seed, rule, STEPS, false);
			if (*m.wrong)
				break;
		}
		print_message("without %s: schedule %" PRIu64 ": %s\n", names[rule], seed, m.wrong);
		assert_true(seed <= 2000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schedules),
		cmocka_unit_test(test_crashes),
		cmocka_unit_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
