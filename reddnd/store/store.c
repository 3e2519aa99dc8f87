/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/store/store.h"

#include "reddnd/store/buckets.h"
#include "reddnd/store/moves.h"
#include "reddnd/store/pool.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/text.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
	VERSIONS = 1 << 16,  /* that are reserved in the file at a time */
	WAITING = 256,       /* keys that wait for a bucket */
	YOUNG = 64,          /* fresh entries that are left to their clients */
	COLLECT_STEP = 1024, /* buckets between two looks at other things */
	EVICTIONS = 32,      /* in one grace, */
	FEW = 4,             /* while a chunk is drained, */
	DRAINED = 64,        /* and of a chunk that is drained */
	SAMPLE = 16,         /* entries: of these the one that was put first is evicted */
	SAMPLE_CHUNKS = 4,   /* chunks, of which one may be drained */
	DRAIN_GRACES = 8,    /* that a chunk is drained for when all of its entries have begun to leave */
	SAMPLE_STEPS = 1024, /* buckets that are looked at for one */
	SWEEP_MS = 1000      /* from one look at all buckets for records that expired to the next */
};

/* An instance that will never be over, until it is known whether it has published; or one that has, and
 * nobody knows whether what replaced it will be reported */
struct unfinished {
	uint64_t place, old, now;
	bool begun; /* a grace has, after it was reported */
};

struct store {
	struct buckets buckets;
	struct pool pool;
	struct moves moves;
	struct reddn_table_live *live;
	struct reddn_store_journal *journal;
	uint8_t *heap;
	uint64_t seed;
	uint32_t max_key, max_value;
	uint64_t version; /* the next one */
	uint64_t keys;    /* buckets in use, those between which an entry moves counted once */
	/* Extents of each kind that a bucket names, as far as is known */
	uint64_t count[BUCKET_KINDS];
	uint64_t moved, contradictions;

	bool is_new;              /* no grace is over since it was opened */
	bool grace, covers_moves; /* one is under way, which began after the moves */
	bool changed;             /* something is free that was not, since full was looked at */

	struct reddn_place waiting[WAITING];
	unsigned nwaiting;
	uint64_t young[YOUNG]; /* the last of them: buckets */
	unsigned nyoung, next_young;
	/* Buckets that are looked at for entries without a record, or with one that has expired */
	uint64_t collect_at, collect_left;
	uint64_t next_expiry; /* ms: no record expires before, but for those of buckets to be looked at; 0:
				 none */
	bool expires;      /* records may: one did, or the writer before this one did not leave the store */
	uint64_t swept_ms; /* when that was looked at last */
	uint64_t expired;

	/* The last one that found no room: for want of extents of so many bytes, or, if 0, of a bucket */
	uint32_t full_bytes;
	uint64_t full_at[2];

	struct unfinished *unfinished;
	size_t nunfinished;

	bool evicts;
	uint64_t evicted, random;
	uint32_t short_bytes;  /* extents of so many bytes are to become free; 0: none */
	uint32_t drain_next;   /* of the chunk that is drained: the extent whose entry is to leave next, */
	unsigned drain_graces; /* and, when all have begun to, how many graces it is drained for at most */
};

DEFINE_CLEANUP(struct store *, store_close)

/* ---- open ---- */

static int check_header(const struct reddn_table_header *h, uint64_t size, char *why, size_t n)
{
	if (h->magic != REDDN_TABLE_MAGIC || h->version != REDDN_TABLE_VERSION || !h->header)
		return text_why(-EBADMSG, why, n, "it is not a store; reddn-table create --store makes one");
	if (h->header < REDDN_STORE_HEADER_MIN || h->header > REDDN_STORE_HEADER_MAX)
		return text_why(-EBADMSG, why, n, "damaged: %" PRIu32 " bytes before a record", h->header);
	if (h->file_size > size || h->buckets < 2 || h->buckets & (h->buckets - 1) ||
		h->buckets > size / sizeof(struct reddn_bucket) || h->buckets_off % REDDN_TABLE_PAGE ||
		h->buckets_off < REDDN_TABLE_PAGE ||
		h->buckets_off > size - h->buckets * sizeof(struct reddn_bucket))
		return text_why(-EBADMSG, why, n,
			"damaged: %" PRIu64 " buckets at %" PRIu64 " of a file of %" PRIu64 " bytes",
			h->buckets, h->buckets_off, size);
	if (h->heap_off % REDDN_TABLE_PAGE ||
		h->heap_off < h->buckets_off + h->buckets * sizeof(struct reddn_bucket) ||
		h->heap_off > size || h->heap_size > size - h->heap_off || h->heap_size > POOL_HEAP_MAX)
		return text_why(-EBADMSG, why, n, "damaged: a heap of %" PRIu64 " bytes at %" PRIu64,
			h->heap_size, h->heap_off);
	if (h->chunk < REDDN_TABLE_PAGE || h->chunk & (h->chunk - 1) || h->chunk > h->heap_size ||
		h->chunk > POOL_CHUNK_MAX)
		return text_why(-EBADMSG, why, n, "damaged: chunks of %" PRIu64 " bytes", h->chunk);
	if (h->null_off < sizeof(uint64_t) || h->null_off % sizeof(uint64_t) ||
		h->null_off > REDDN_STORE_CHUNK_LINE - h->header)
		return text_why(-EBADMSG, why, n, "damaged: the null extent is at %" PRIu64, h->null_off);
	return 0;
}

/* What is there names no extent, or that of another bucket, or no chain publishes there: they go by marks */
static void end_at_once(const struct buckets *b, uint64_t n)
{
	if (!bucket_is_empty(b, n))
		word_set(bucket_mark(b, n), 0);
	if (word_get(bucket_locator(b, n)) != b->null)
		word_set(bucket_locator(b, n), b->null);
}

/* The entry in bucket @b. One that was made in breach of the rules ends here, or after a grace if clients may
 * replace it: whoever could do that to a bucket, a client among them, shall not do more harm than that. */
static int open_entry(struct store *s, uint64_t b, char *why, size_t n)
{
	const uint64_t locator = word_get(bucket_locator(&s->buckets, b));
	const enum bucket_kind kind = bucket_kind(&s->buckets, locator);
	int r = 0;

	if (!bucket_is_mark(word_get(bucket_mark(&s->buckets, b))) && !moves_from(&s->moves, b)) {
		end_at_once(&s->buckets, b);
		return 0;
	}
	if (kind != BUCKET_FRESH)
		r = pool_claim(&s->pool, reddn_locator_off(locator), reddn_locator_len(locator), b);
	if (r < 0 && r != -ENOMEM && kind == BUCKET_WRONG) {
		end_at_once(&s->buckets, b);
		return 0;
	}
	if (r < 0 && r != -ENOMEM)
		return text_why(-EBADMSG, why, n,
			"damaged: bucket %" PRIu64 " names %u bytes at %" PRIu64 " of the heap, %s", b,
			reddn_locator_len(locator), reddn_locator_off(locator),
			r == -EEXIST ? "as another does" : "where no extent is");
	s->keys++;
	if (kind != BUCKET_FRESH)
		s->count[kind]++;
	return r;
}

static int hold(struct store *s, const struct store_held *held, size_t n, char *why, size_t why_size)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = pool_hold(&s->pool, held[i].at, held[i].bytes);
	return r < 0 && r != -ENOMEM
		       ? text_why(-EBADMSG, why, why_size,
				 "instances of an earlier writer have extents that there cannot be")
		       : r;
}

static uint64_t now_ms(void)
{
	return clock_read_ns(CLOCK_REALTIME) / 1000000;
}

/* Of a record; 0: none. The owner of the file may have written a locator that names no extent. */
static uint64_t expiry_of(const struct store *s, uint64_t locator)
{
	uint64_t at = reddn_locator_off(locator);

	if (bucket_kind(&s->buckets, locator) != BUCKET_RECORD || !pool_bytes(&s->pool, at))
		return 0;
	return reddn_store_expiry(s->heap + at + s->buckets.header);
}

/* That record is in a bucket */
static void note_expiry(struct store *s, uint64_t locator)
{
	uint64_t expiry = expiry_of(s, locator);

	if (!expiry)
		return;
	s->expires = true;
	if (!s->next_expiry || expiry < s->next_expiry)
		s->next_expiry = expiry;
}

static void set_entries(struct store *s)
{
	word_set(&s->live->entries, s->count[BUCKET_RECORD]);
}

/* Keys without a record. Of two publishes the later may be reported first: then both extents count */
static uint64_t fresh(const struct store *s)
{
	const uint64_t have = s->count[BUCKET_RECORD] + s->count[BUCKET_TOMBSTONE] + s->count[BUCKET_WRONG];

	return s->keys > have ? s->keys - have : 0;
}

static int recover(struct store *s, char *why, size_t n)
{
	struct reddn_store_move wrong;
	unsigned nwrong = moves_recover(&s->moves, &wrong);
	int r;

	if (nwrong)
		snprintf(why, n,
			"its journal had %u moves that cannot be, and their entries may be lost: first "
			"that of mark %#" PRIx64 " from bucket %" PRIu64 " to %" PRIu64,
			nwrong, wrong.mark, wrong.from, wrong.to);
	for (uint64_t b = 0; b < s->buckets.n; b++) {
		r = open_entry(s, b, why, n);
		if (r < 0)
			return r;
	}
	pool_claimed(&s->pool);
	set_entries(s);
	word_set(&s->live->state, word_get(&s->live->state) & ~(uint64_t)REDDN_TABLE_FULL);
	s->expires = word_get(&s->journal->expires);
	s->next_expiry = s->expires ? 1 : 0;
	s->version = word_get(&s->journal->versions);
	if (s->version >> (8 * REDDN_STORE_VERSION - 1))
		return text_why(-EBADMSG, why, n, "damaged: versions from %#" PRIx64 " on", s->version);
	return 0;
}

/* A copy of the file that was made before differs from it from now on */
static int note_opened(uint8_t *file)
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		return -errno;
	word_set(&((struct reddn_table_header *)file)->opened, n);
	return 0;
}

int store_open(struct store **out, uint8_t *file, uint64_t size, const struct store_held *held, size_t n,
	char *why, size_t why_size)
{
	/* Its owner may change it meanwhile: what is checked is what is used */
	struct reddn_table_header copy = {0}, *h = &copy;
	CLEANUP(store_closep) struct store *s = NULL;
	int r;

	*why = '\0';
	if (size >= REDDN_TABLE_PAGE)
		memcpy(h, file, sizeof(*h));
	r = check_header(h, size, why, why_size);
	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->live = &((struct reddn_table_header *)file)->live;
	s->journal = (struct reddn_store_journal *)(file + REDDN_STORE_JOURNAL);
	s->heap = file + h->heap_off;
	s->seed = h->hash_seed;
	s->max_key = h->max_key;
	s->max_value = h->max_value;
	s->buckets = (struct buckets){(uint64_t *)(file + h->buckets_off), h->buckets, h->header,
		(uint32_t)reddn_record_padded(h->header + reddn_record_size(h->max_key, h->max_value)),
		reddn_locator(h->null_off, h->header)};
	s->moves.buckets = &s->buckets;
	s->moves.journal = s->journal;
	s->moves.live = &s->live->moves;
	s->is_new = true;
	s->evicts = h->evict;
	s->random = h->live.epoch;
	s->nyoung = h->buckets < 32 ? 1 : h->buckets / 16 < YOUNG ? (unsigned)(h->buckets / 16) : YOUNG;
	memset(s->young, 0xff, sizeof(s->young));
	r = pool_init(&s->pool, s->heap, h->heap_size, h->chunk);
	if (r == 0)
		r = hold(s, held, n, why, why_size);
	if (r == 0)
		r = recover(s, why, why_size);
	if (r == 0)
		r = note_opened(file);
	if (r < 0)
		return r;
	/* Clients may publish what expires, and this process may end before it sees that */
	word_set(&s->journal->expires, 1);
	*out = steal_ptr(&s);
	return 0;
}

void store_leave(struct store *s)
{
	if (!s->expires && !s->nunfinished && !pool_is_held(&s->pool))
		word_set(&s->journal->expires, 0);
}

void store_close(struct store *s)
{
	if (!s)
		return;
	pool_deinit(&s->pool);
	free(s->unfinished);
	free(s);
}

/* ---- extents ---- */

static void collect(struct store *s, uint64_t from)
{
	s->collect_at = from;
	s->collect_left = s->buckets.n;
}

/* Entries without a record go, if there are any whose clients are not about to give them one. */
static void collect_idle(struct store *s)
{
	if (!s->collect_left && (s->count[BUCKET_TOMBSTONE] > 0 || fresh(s) > s->nyoung))
		collect(s, s->collect_at);
}

void store_renew(struct store *s, uint64_t at)
{
	if (s->version + 1 >= word_get(&s->journal->versions))
		word_set(&s->journal->versions, s->version + VERSIONS);
	/* 0 is that of the null extent */
	word_set((uint64_t *)(s->heap + at), ++s->version);
}

static bool may_drain_any(const struct store *s, uint32_t bytes)
{
	if (s->pool.drained != POOL_NONE)
		return true;
	for (uint64_t n = 0; n < s->pool.nchunks; n++)
		if (pool_may_drain(&s->pool, n, bytes))
			return true;
	return false;
}

/* False: no extents of so many bytes will become free, unless entries without a record leave. */
static bool want_extents(struct store *s, uint32_t bytes)
{
	collect_idle(s);
	if (!s->evicts || !(pool_is_used(&s->pool, bytes) || may_drain_any(s, bytes)))
		return false;
	s->short_bytes = bytes;
	return true;
}

int store_take(struct store *s, uint32_t bytes, uint64_t *at)
{
	int r = s->is_new ? -ENOSPC : pool_take(&s->pool, bytes, at);

	if (r == -ENOSPC && !s->is_new)
		want_extents(s, pool_class_bytes(bytes));
	if (r < 0)
		return r;
	/* What it held before is nobody's to see; behind the header it is overwritten by what comes */
	for (uint32_t word = 1; word * sizeof(uint64_t) < s->buckets.header; word++)
		word_set((uint64_t *)(s->heap + *at) + word, 0);
	store_renew(s, *at);
	return 0;
}

bool store_may_hold(const struct store *s, uint32_t bytes, unsigned n)
{
	return pool_may_hold(&s->pool, bytes, n);
}

void store_give(struct store *s, uint64_t at)
{
	s->contradictions += !pool_give(&s->pool, at);
	s->changed = true;
}

/* ---- what came of instances ---- */

/* A bucket does not name it any more. When the store was opened it may have named another one already */
static void retire(struct store *s, uint64_t locator)
{
	int r = pool_retire(&s->pool, reddn_locator_off(locator));

	if (r > 0)
		s->count[bucket_kind(&s->buckets, locator)]--;
	s->contradictions += r < 0 && !(s->is_new && r == -ENOENT);
}

/* False: no bucket is known to name the extent of @now, which is held, or to have named it */
static bool is_seen(const struct store *s, uint64_t place, uint64_t now)
{
	const uint64_t b = place / sizeof(struct reddn_bucket);

	return (b < s->buckets.n && word_get(bucket_locator(&s->buckets, b)) == now) ||
	       !pool_is_unnamed(&s->pool, reddn_locator_off(now));
}

/* Until one that has replaced it is reported, or a grace is over in which none was */
static void put_off(struct store *s, uint64_t place, uint64_t old, uint64_t now)
{
	struct unfinished *grown = realloc(s->unfinished, (s->nunfinished + 1) * sizeof(*grown));

	/* Else the extent stays held until the store is opened again */
	if (!grown)
		return;
	s->unfinished = grown;
	s->unfinished[s->nunfinished++] = (struct unfinished){place, old, now, false};
}

bool store_published(struct store *s, uint64_t place, uint64_t old, uint64_t now)
{
	const enum bucket_kind is = bucket_kind(&s->buckets, now);

	/* The one that replaced it may have been reported to an earlier writer, and is not reported again */
	if (s->is_new && !is_seen(s, place, now)) {
		put_off(s, place, s->buckets.null, now);
	} else {
		int r = pool_publish(&s->pool, reddn_locator_off(now), place / sizeof(struct reddn_bucket));

		s->contradictions += r < 0;
		s->count[is] += r > 0;
	}
	retire(s, old);
	set_entries(s);
	note_expiry(s, now);
	if (is != BUCKET_WRONG)
		return true;
	collect(s, place / sizeof(struct reddn_bucket) % s->buckets.n);
	return false;
}

void store_unfinished(struct store *s, uint64_t place, uint64_t old, uint64_t now)
{
	if (is_seen(s, place, now))
		store_published(s, place, old, now);
	else
		put_off(s, place, old, now);
}

/* The first of those that are known to have published, because another has replaced what they did; NULL */
static struct unfinished *find_replaced(struct store *s)
{
	for (size_t i = 0; i < s->nunfinished; i++)
		if (!pool_is_unnamed(&s->pool, reddn_locator_off(s->unfinished[i].now)))
			return &s->unfinished[i];
	return NULL;
}

static void drop_unfinished(struct store *s, struct unfinished *u)
{
	*u = s->unfinished[--s->nunfinished];
}

/* After a grace, whoever has replaced what they published has been reported. That may be another of them. */
static void settle_unfinished(struct store *s)
{
	struct unfinished *u;

	while ((u = find_replaced(s))) {
		struct unfinished known = *u;

		drop_unfinished(s, u);
		store_published(s, known.place, known.old, known.now);
	}
	for (size_t i = s->nunfinished; i-- > 0;) {
		if (!s->unfinished[i].begun)
			continue;
		store_give(s, reddn_locator_off(s->unfinished[i].now));
		drop_unfinished(s, &s->unfinished[i]);
	}
}

/* ---- keys without a bucket ---- */

/* Entries to come: they will take extents, and give none back. */
static uint64_t owed(const struct store *s)
{
	return s->nwaiting + fresh(s);
}

/* True if it can be found in a bucket, */
static bool is_placed(const struct store *s, const struct reddn_place *p)
{
	for (int i = 0; i < 2; i++)
		if (word_get(bucket_mark(&s->buckets, p->bucket[i])) == reddn_mark(p->fp))
			return true;
	return false;
}

/* or is between two, or about to leave its own: then its client asks again */
static bool is_moving(const struct store *s, const struct reddn_place *p)
{
	for (unsigned i = 0; i < s->moves.n; i++) {
		const struct reddn_store_move *v = &s->moves.move[i];

		if (v->mark == reddn_mark(p->fp) && (v->from == p->bucket[0] || v->from == p->bucket[1]))
			return true;
	}
	return false;
}

static void set_full(struct store *s, bool full)
{
	uint64_t state = word_get(&s->live->state), is = state & REDDN_TABLE_FULL;

	if (full != !!is)
		word_set(&s->live->state, state ^ REDDN_TABLE_FULL);
}

static bool is_full(const struct store *s)
{
	return word_get(&s->live->state) & REDDN_TABLE_FULL;
}

bool store_unplaced(struct store *s, uint64_t at, uint32_t bytes)
{
	const uint8_t *record = s->heap + at + s->buckets.header;
	struct reddn_record head;
	struct reddn_place p;

	if (bytes == s->buckets.header)
		return true;
	if (bytes < s->buckets.header + sizeof(head))
		return false;
	/* A header is no multiple of 8 */
	memcpy(&head, record, sizeof(head));
	if (!head.key_len || head.key_len > s->max_key || head.val_len > s->max_value ||
		reddn_record_padded(s->buckets.header + reddn_record_size(head.key_len, head.val_len)) !=
			bytes)
		return false;
	p = reddn_hash_key(s->seed, s->buckets.n, record + sizeof(head), head.key_len);
	/* What a message of no bytes asks for: it would publish no locator */
	if (!p.fp)
		return true;
	for (unsigned i = 0; i < s->nwaiting; i++)
		if (reddn_place_same(&s->waiting[i], &p))
			return true;
	if (is_placed(s, &p) || s->nwaiting == WAITING)
		return true;
	if (pool_has_room(&s->pool, pool_bytes(&s->pool, at), owed(s))) {
		s->waiting[s->nwaiting++] = p;
		return true;
	}
	if (!want_extents(s, pool_bytes(&s->pool, at))) {
		s->full_bytes = pool_bytes(&s->pool, at);
		set_full(s, true);
		s->changed = false;
	}
	return true;
}

static void make_entry(struct store *s, uint64_t b, uint64_t fp)
{
	word_set(bucket_mark(&s->buckets, b), reddn_mark(fp));
	s->keys++;
	s->young[s->next_young++ % s->nyoung] = b;
	set_full(s, false);
}

/* ---- eviction ---- */

/* Fresh entries are newer than all: their clients are about to put. The owner of the file may have written a
 * locator that names no extent: that entry is older than all. */
static uint64_t version_of(const struct store *s, uint64_t locator)
{
	uint64_t at = reddn_locator_off(locator);

	if (locator == s->buckets.null)
		return UINT64_MAX;
	return pool_bytes(&s->pool, at) ? word_get((const uint64_t *)(s->heap + at)) : 0;
}

/* The locator of the record in bucket @b, if that may leave; 0 */
static uint64_t evictable(const struct store *s, uint64_t b)
{
	uint64_t locator = word_get(bucket_locator(&s->buckets, b));

	if (bucket_is_empty(&s->buckets, b) || bucket_kind(&s->buckets, locator) != BUCKET_RECORD ||
		moves_use(&s->moves, b))
		return 0;
	return locator;
}

/* Of both buckets, neither of which is one of a move: the entry that was put first. */
static void evict_older(struct store *s, const uint64_t at[2])
{
	uint64_t old[2] = {
		word_get(bucket_locator(&s->buckets, at[0])), word_get(bucket_locator(&s->buckets, at[1]))};
	int i = version_of(s, old[1]) < version_of(s, old[0]);

	moves_remove(&s->moves, at[i], old[i]);
}

static uint64_t next_random(struct store *s)
{
	s->random = s->random * 6364136223846793005ull + 1442695040888963407ull;
	return s->random >> 20;
}

/* The first put of a sample of entries with extents of the wanted size. Returns its version; 0: there are
 * none. */
static uint64_t evict_one(struct store *s)
{
	uint64_t victim = 0, old = 0;
	unsigned seen = 0;

	for (unsigned i = 0; i < SAMPLE_STEPS && seen < SAMPLE; i++) {
		uint64_t b = next_random(s) % s->buckets.n, locator = evictable(s, b);

		if (!locator || pool_bytes(&s->pool, reddn_locator_off(locator)) != s->short_bytes)
			continue;
		if (!old || version_of(s, locator) < version_of(s, old)) {
			victim = b;
			old = locator;
		}
		seen++;
	}
	return old && moves_remove(&s->moves, victim, old) ? version_of(s, old) : 0;
}

/* Of a sample of the entries of a chunk; 0: it has none, so nothing is lost with it */
static uint64_t mean_version(const struct store *s, uint64_t chunk)
{
	uint64_t sum = 0, n = 0, at, bucket;
	uint32_t from = 0;

	for (; n < SAMPLE && pool_next_used(&s->pool, chunk, &from, &at, &bucket); n++)
		sum += word_get((const uint64_t *)(s->heap + at));
	return n ? sum / n : 0;
}

/*
 * A chunk of another size is drained for the wanted one if its entries were put before @oldest on the
 * average, the oldest found of the wanted size. So the entries of all sizes become about as old before they
 * leave, and sizes that always come in the same parts take few chunks from each other. If there is no entry
 * of the wanted size, any chunk will do.
 */
static void drain_another(struct store *s, uint64_t oldest)
{
	const uint64_t looks = oldest == UINT64_MAX ? s->pool.nchunks : SAMPLE_CHUNKS;
	uint64_t chunk = POOL_NONE, version;

	for (uint64_t n = next_random(s), end = n + looks; n < end; n++) {
		const uint64_t c = n % s->pool.nchunks;

		if (!pool_may_drain(&s->pool, c, s->short_bytes))
			continue;
		version = mean_version(s, c);
		if (version >= oldest)
			continue;
		oldest = version;
		chunk = c;
	}
	if (chunk == POOL_NONE)
		return;
	pool_drain(&s->pool, chunk, s->short_bytes);
	s->drain_next = 0;
	s->drain_graces = 0;
}

/* What a put has replaced that was not reported yet rests soon. */
static void drain_some(struct store *s)
{
	uint64_t at, b, locator;

	while (s->pool.drained != POOL_NONE && !s->drain_graces && s->moves.n < EVICTIONS + DRAINED) {
		if (!pool_next_used(&s->pool, s->pool.drained, &s->drain_next, &at, &b)) {
			s->drain_graces = DRAIN_GRACES;
			return;
		}
		locator = b < s->buckets.n ? word_get(bucket_locator(&s->buckets, b)) : s->buckets.null;
		if (reddn_locator_off(locator) != at || bucket_is_empty(&s->buckets, b))
			continue;
		if (moves_use(&s->moves, b)) {
			s->drain_next--;
			return;
		}
		moves_remove(&s->moves, b, evictable(s, b));
	}
}

/* True if all of its entries have begun to leave */
static bool drain_ends(const struct store *s)
{
	return s->pool.drained != POOL_NONE && s->drain_graces;
}

/* Returns the version of the oldest of up to @most that leave; UINT64_MAX: there are none. */
static uint64_t evict_oldest(struct store *s, uint64_t most)
{
	uint64_t oldest = UINT64_MAX, version;

	while (most-- > 0 && s->moves.n < EVICTIONS && (version = evict_one(s)))
		oldest = version < oldest ? version : oldest;
	return oldest;
}

/* A small part of all, so that those that stay are the later ones; or a few, until a chunk is drained */
static void evict_some(struct store *s)
{
	const uint64_t part = s->count[BUCKET_RECORD] / 64 + 1;

	if (!s->short_bytes)
		return;
	drain_another(s, evict_oldest(s, part < FEW ? part : FEW));
	if (s->pool.drained == POOL_NONE && part > FEW)
		evict_oldest(s, part - FEW);
	s->short_bytes = 0;
}

/* True if the key does not wait any longer. */
static bool place_key(struct store *s, const struct reddn_place *p)
{
	if (is_placed(s, p) || is_moving(s, p))
		return true;
	for (int i = 0; i < 2; i++)
		if (bucket_is_empty(&s->buckets, p->bucket[i]) && !moves_use(&s->moves, p->bucket[i])) {
			make_entry(s, p->bucket[i], p->fp);
			return true;
		}
	if (s->moves.begun || moves_path(&s->moves, p->bucket) != MOVES_NONE)
		return false;
	if (s->evicts) {
		evict_older(s, p->bucket);
		return false;
	}
	collect_idle(s);
	s->full_bytes = 0;
	memcpy(s->full_at, p->bucket, sizeof(s->full_at));
	set_full(s, true);
	s->changed = false;
	return true;
}

static void place_keys(struct store *s)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < s->nwaiting; i++)
		if (!place_key(s, &s->waiting[i]))
			s->waiting[kept++] = s->waiting[i];
	s->nwaiting = kept;
}

/* The state is no longer full when the last one that found no room would find some. */
static void look_if_full(struct store *s)
{
	if (!is_full(s) || !s->changed || s->moves.begun)
		return;
	s->changed = false;
	if (s->full_bytes)
		set_full(s, !pool_has_room(&s->pool, s->full_bytes, owed(s)));
	else
		set_full(s, moves_try(&s->moves, s->full_at) == MOVES_NONE);
}

/* ---- entries without a record ---- */

static bool is_young(const struct store *s, uint64_t b)
{
	for (unsigned i = 0; i < s->nyoung; i++)
		if (s->young[i] == b)
			return true;
	return false;
}

/* *@record: that of the entry, if it has expired; else 0 */
static bool should_leave(struct store *s, uint64_t b, uint64_t now, uint64_t *record)
{
	uint64_t locator = word_get(bucket_locator(&s->buckets, b)), expiry;
	enum bucket_kind kind = bucket_kind(&s->buckets, locator);

	*record = 0;
	if (bucket_is_empty(&s->buckets, b) || (kind == BUCKET_FRESH && is_young(s, b)))
		return false;
	if (kind == BUCKET_RECORD) {
		expiry = s->expires ? expiry_of(s, locator) : 0;
		if (expiry > now)
			note_expiry(s, locator);
		if (!expiry || expiry > now)
			return false;
		*record = locator;
	}
	return !moves_use(&s->moves, b);
}

static void collect_some(struct store *s)
{
	uint64_t step = s->collect_left < COLLECT_STEP ? s->collect_left : COLLECT_STEP, record;
	const uint64_t now = now_ms();

	for (; step > 0; step--) {
		if (should_leave(s, s->collect_at, now, &record) &&
			!moves_remove(&s->moves, s->collect_at, record))
			return;
		s->collect_at = (s->collect_at + 1) % s->buckets.n;
		s->collect_left--;
	}
	/* All buckets were looked at since a sweep began */
	if (!s->collect_left && !s->next_expiry)
		s->expires = false;
}

/* When the next look at all buckets may begin; 0: there is nothing to look for */
static uint64_t sweep_ms(const struct store *s)
{
	const uint64_t least = s->swept_ms + SWEEP_MS;

	return s->next_expiry && s->next_expiry < least ? least : s->next_expiry;
}

/* Times that are known from now on are those of buckets that it passes, and of puts and moves meanwhile */
static void sweep(struct store *s)
{
	const uint64_t now = now_ms();

	/* the clock may have been set back */
	if (!s->next_expiry || s->next_expiry > now || (sweep_ms(s) > now && s->swept_ms <= now))
		return;
	s->next_expiry = 0;
	s->swept_ms = now;
	collect(s, s->collect_at);
}

/* ---- work and graces ---- */

bool store_work(struct store *s)
{
	uint64_t idle;

	place_keys(s);
	sweep(s);
	idle = s->count[BUCKET_TOMBSTONE] + fresh(s);
	if (!s->collect_left && (idle > s->buckets.n / 8 + s->nyoung || s->count[BUCKET_WRONG] > 0))
		collect(s, s->collect_at);
	if (!s->moves.begun) {
		evict_some(s);
		drain_some(s);
		collect_some(s);
		if (s->moves.n)
			moves_begin(&s->moves);
	}
	look_if_full(s);
	return s->is_new || (s->moves.begun && !s->covers_moves) || s->short_bytes || s->collect_left ||
	       s->nunfinished || drain_ends(s) || pool_wants_grace(&s->pool);
}

void store_grace_begins(struct store *s)
{
	if (s->grace)
		return;
	s->grace = true;
	s->covers_moves = s->moves.begun;
	pool_grace_begins(&s->pool);
	for (size_t i = 0; i < s->nunfinished; i++)
		s->unfinished[i].begun = true;
}

static void entry_ended(void *arg, const struct moves_ended *e)
{
	struct store *s = arg;

	if (!e->removed) {
		s->moved++;
		pool_moved(&s->pool, reddn_locator_off(e->locator), e->move.to);
		note_expiry(s, e->locator);
		for (unsigned i = 0; i < s->nyoung; i++)
			if (s->young[i] == e->move.from)
				s->young[i] = e->move.to;
		return;
	}
	if (bucket_kind(&s->buckets, e->locator) == BUCKET_RECORD) {
		const uint64_t expiry = expiry_of(s, e->locator);

		*(expiry && expiry <= now_ms() ? &s->expired : &s->evicted) += 1;
	}
	s->keys--;
	retire(s, e->locator);
	set_entries(s);
	s->changed = true;
}

void store_grace_over(struct store *s)
{
	assert(s->grace);
	s->grace = false;
	settle_unfinished(s);
	if (s->covers_moves)
		moves_end(&s->moves, entry_ended, s);
	s->covers_moves = s->is_new = false;
	if (pool_grace_over(&s->pool))
		s->changed = true;
	if (drain_ends(s) && --s->drain_graces == 0)
		pool_undrain(&s->pool);
}

/* ---- numbers ---- */

void store_numbers(const struct store *s, struct store_numbers *n)
{
	*n = (struct store_numbers){
		.buckets = s->buckets.n,
		.entries = s->count[BUCKET_RECORD],
		.tombstones = s->count[BUCKET_TOMBSTONE],
		.fresh = fresh(s),
		.moves = s->moved,
		.evicted = s->evicted,
		.expired = s->expired,
		.sweep_ms = sweep_ms(s),
		.contradictions = s->contradictions,
		.chunks = s->pool.nchunks,
		.chunks_free = s->pool.nunassigned,
		.full = is_full(s),
	};
	for (const struct pool_class *c = s->pool.class; c < s->pool.class + STORE_CLASSES; c++) {
		n->chunks_free += c->idle;
		if (c->chunks)
			n->extents[n->classes++] =
				(struct store_extents){c->bytes, c->free, c->held, c->used, c->resting};
	}
}
