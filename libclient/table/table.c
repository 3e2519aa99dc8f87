/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/public.h"
#include "libclient/reddn-table.h"
#include "libclient/table/impl.h"
#include "protocol/redis-slots.h"
#include "protocol/table-hash.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Buckets that a put or delete copies of a table that grows, after it has made the larger file in half as
 * many steps. From 5/12 of the buckets in use to where the first put finds no room, 48 %, 24 would do.
 * MAKE_LEAST: bytes of a step; to reserve less takes as long.
 */
enum { GROWTH_STEP = 32, MAKE_LEAST = 1 << 16 };

static void entries_add(struct reddn_table *t, int64_t n)
{
	reddn_word_set(reddn_live_word(&t->live->entries), t->live->entries + (uint64_t)n);
}

static void growth_copy(struct reddn_table *t, uint64_t bucket);

static void move(struct reddn_table *t, uint64_t from, uint64_t to)
{
	_Atomic uint64_t *moves = reddn_live_word(&t->live->moves);
	uint64_t m = reddn_word_get(moves);

	*t->journal = (struct reddn_table_journal){.from = from, .to = to};
	reddn_word_set(moves, m + 1);
	reddn_word_set(reddn_table_locator(t, to), reddn_word_get(reddn_table_locator(t, from)));
	reddn_word_set(reddn_table_mark(t, to), reddn_word_get(reddn_table_mark(t, from)));
	reddn_word_set(reddn_table_mark(t, from), 0);
	reddn_word_set(reddn_table_locator(t, from), t->null_locator);
	reddn_word_set(moves, m + 2);
	/* Else it would never be copied */
	if (t->growth && to < t->growth->copied && from >= t->growth->copied)
		growth_copy(t, to);
}

/*
 * Empty one of the two buckets. Each bucket holds one entry and each entry has one other bucket, so there are
 * only two chains. The entries of the shorter chain that ends at an empty bucket move, the last one first.
 */
static int make_room(struct reddn_table *t, const struct reddn_place *p, uint64_t *bucket)
{
	for (unsigned n = 0; n < REDDN_TABLE_MAX_PATH; n++) {
		for (int i = 0; i < 2; i++) {
			uint64_t *path = t->chains + i * REDDN_TABLE_MAX_PATH, mark;

			if (n == 0) {
				path[0] = p->bucket[i];
			} else {
				mark = reddn_word_get(reddn_table_mark(t, path[n - 1]));
				path[n] = reddn_hash_other(path[n - 1], reddn_mark_fp(mark), t->geo.buckets);
			}
			if (reddn_word_get(reddn_table_mark(t, path[n])))
				continue;
			for (unsigned k = n; k > 0; k--)
				move(t, path[k - 1], path[k]);
			*bucket = path[0];
			return 0;
		}
	}
	return -ENOSPC;
}

/* Find the writer's own key: 0 and the bucket, REDDN_TABLE_MISS, -ENOTUNIQ or -EBADMSG. */
static int find(
	struct reddn_table *t, const struct reddn_place *p, const void *key, size_t key_len, uint64_t *bucket)
{
	for (int i = 0; i < 2; i++) {
		uint64_t b = p->bucket[i], locator = reddn_word_get(reddn_table_locator(t, b));
		const struct reddn_record *r;

		if (reddn_word_get(reddn_table_mark(t, b)) != reddn_mark(p->fp))
			continue;
		if (!reddn_table_locator_ok(t, locator))
			return -EBADMSG;
		r = (const struct reddn_record *)(t->heap + reddn_locator_off(locator));
		if (reddn_record_padded(reddn_record_size(r->key_len, r->val_len)) !=
			reddn_locator_len(locator))
			return -EBADMSG;
		if (r->key_len != key_len || memcmp(r->bytes, key, key_len) != 0)
			return -ENOTUNIQ;
		*bucket = b;
		return 0;
	}
	return REDDN_TABLE_MISS;
}

static int key_check(const struct reddn_table *t, size_t key_len)
{
	if (!t->writer)
		return -EROFS;
	if (!reddn_word_get(reddn_live_word(&t->live->epoch)))
		return -ESTALE;
	if (!key_len)
		return -EINVAL;
	return key_len > t->geo.max_key ? -EMSGSIZE : 0;
}

static void free_record(struct reddn_table *t, uint64_t locator)
{
	reddn_heap_free(&t->space, reddn_locator_off(locator), reddn_locator_len(locator));
}

/* reddn_table_put() of a table that does not grow */
static int entry_put(struct reddn_table *t, const void *key, size_t key_len, const void *val, size_t val_len)
{
	int r = key_check(t, key_len), found;
	struct reddn_record *rec;
	struct reddn_place p;
	uint64_t bucket, off, size, padded, locator, old;

	if (r < 0)
		return r;
	if (val_len > t->geo.max_value)
		return -EMSGSIZE;
	p = reddn_table_place(t, key, key_len);
	found = find(t, &p, key, key_len, &bucket);
	if (found < 0)
		return found;
	size = reddn_record_size(key_len, val_len);
	padded = reddn_record_padded(size);
	r = reddn_heap_alloc(&t->space, padded, &off);
	if (r < 0)
		return r;
	locator = reddn_locator(off, padded);
	if (found == REDDN_TABLE_MISS) {
		r = make_room(t, &p, &bucket);
		if (r < 0) {
			free_record(t, locator);
			return r;
		}
	}
	rec = (struct reddn_record *)(t->heap + off);
	rec->key_len = (uint32_t)key_len;
	rec->val_len = (uint32_t)val_len;
	memcpy(rec->bytes, key, key_len);
	if (val_len)
		memcpy(rec->bytes + key_len, val, val_len);
	/* A reply carries the padding too: nothing of an earlier record may be in it. */
	memset((uint8_t *)rec + size, 0, padded - size);
	rec->sum = reddn_record_sum(rec);
	old = reddn_word_get(reddn_table_locator(t, bucket));
	reddn_word_set(reddn_table_locator(t, bucket), locator);
	if (found == 0) {
		free_record(t, old);
	} else {
		reddn_word_set(reddn_table_mark(t, bucket), reddn_mark(p.fp));
		entries_add(t, 1);
	}
	return 0;
}

/* reddn_table_delete() of a table that does not grow */
static int entry_delete(struct reddn_table *t, const void *key, size_t key_len)
{
	int r = key_check(t, key_len);
	struct reddn_place p;
	uint64_t bucket, locator;

	if (r < 0)
		return r;
	p = reddn_table_place(t, key, key_len);
	r = find(t, &p, key, key_len, &bucket);
	/* Another key in its place means that this key is absent. */
	if (r == -ENOTUNIQ)
		return REDDN_TABLE_MISS;
	if (r != 0)
		return r;
	locator = reddn_word_get(reddn_table_locator(t, bucket));
	reddn_word_set(reddn_table_mark(t, bucket), 0);
	reddn_word_set(reddn_table_locator(t, bucket), t->null_locator);
	entries_add(t, -1);
	free_record(t, locator);
	return 0;
}

/* ---- growth ---- */

static void growth_fail(struct reddn_table *t, int error)
{
	t->growth_error = error;
	t->grow_from = t->live->entries + t->live->entries / 8 + 1;
	reddn_table_growth_free(t->growth);
	t->growth = NULL;
}

static void growth_put(
	struct reddn_table *t, const void *key, size_t key_len, const void *val, size_t val_len)
{
	int r = entry_put(t->growth->next, key, key_len, val, val_len);

	if (r < 0)
		growth_fail(t, r);
}

/* Copy the entry of the bucket. Not by read_record(): the caller's key may be in the scratch record. */
static void growth_copy(struct reddn_table *t, uint64_t bucket)
{
	uint64_t locator = reddn_word_get(reddn_table_locator(t, bucket));
	const struct reddn_record *r = (const struct reddn_record *)(t->heap + reddn_locator_off(locator));

	if (!reddn_table_locator_ok(t, locator) ||
		!reddn_table_record_is_whole(t, r, reddn_locator_len(locator)))
		growth_fail(t, -EBADMSG);
	else
		growth_put(t, r->bytes, r->key_len, r->bytes + r->key_len, r->val_len);
}

/* The larger table takes the name, and the place in the handle. It is as new as this one. */
static void growth_publish(struct reddn_table *t)
{
	struct reddn_table *next = t->growth->next, old = *t;
	int r;

	next->live->state = t->live->state;
	next->live->as_of_source = t->live->as_of_source;
	next->live->as_of_host = t->live->as_of_host;
	next->live->origin = t->live->origin;
	next->live->slots = t->live->slots;
	r = reddn_table_succeed(t->growth->tmp, t->path, t);
	/* Somebody has locked the name. The next put or step tries again, and until then both are written */
	if (r == -EBUSY)
		return;
	if (r < 0) {
		growth_fail(t, r);
		return;
	}
	next->path = steal_ptr(&old.path);
	next->repaired = old.repaired;
	*t = *next;
	free(old.before);
	t->before = steal_ptr(&old.scratch);
	old.before = NULL;
	/* So that it is closed with the growth */
	*next = old;
	next->growth = NULL;
	reddn_table_growth_free(old.growth);
}

/* Make the part of the larger file that belongs to so many buckets. Half of the buckets have all of it. */
static void growth_make(struct reddn_table *t, uint64_t buckets)
{
	const struct reddn_table_options none = {0};
	struct reddn_table *next = t->growth->next;
	uint64_t size = next->geo.file_size, share = 2 * size / t->geo.buckets + 1;
	uint64_t bytes = buckets < size / share ? buckets * share : size;
	int r = buckets ? reddn_table_make_step(next, bytes > MAKE_LEAST ? bytes : MAKE_LEAST) : 0;

	if (r == 1)
		r = reddn_table_make_end(next, &none, NULL, 0);
	else if (r == 0)
		return;
	if (r < 0)
		growth_fail(t, r);
	else
		t->growth->made = true;
}

static int growth_begin(
	struct reddn_table *t, const struct reddn_table_options *opt, char *err, size_t errlen)
{
	CLEANUP(cleanup_free) struct reddn_table_growth *g = calloc(1, sizeof(*g));
	const struct reddn_table_options larger = {
		.capacity = opt->capacity,
		.buckets = opt->buckets || opt->capacity ? opt->buckets : 2 * t->geo.buckets,
		.heap_size = opt->heap_size ? opt->heap_size : 2 * t->geo.heap_size,
		/* Two keys that this table can hold both have room in one with the same seed and more
		 * buckets, too: there are more bits in which their buckets may differ. */
		.seed = opt->seed ? opt->seed : t->geo.hash_seed,
		.max_key = opt->max_key ? opt->max_key : t->geo.max_key,
		.max_value = opt->max_value ? opt->max_value : t->geo.max_value,
		.grow = (int)t->geo.grow,
	};
	int r;

	if (!g)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	r = reddn_table_create_beside(&g->next, t->path, t, &larger, g->tmp, err, errlen);
	if (r < 0)
		return r;
	g->pid = getpid();
	t->growth_error = 0;
	t->growth = steal_ptr(&g);
	return 0;
}

static void growth_step(struct reddn_table *t, uint64_t buckets)
{
	if (t->growth && !t->growth->made)
		growth_make(t, buckets);
	for (uint64_t n = 0;
		t->growth && t->growth->made && n < buckets && t->growth->copied < t->geo.buckets; n++) {
		uint64_t b = t->growth->copied++;

		if (reddn_word_get(reddn_table_mark(t, b)))
			growth_copy(t, b);
	}
	if (t->growth && t->growth->copied == t->geo.buckets)
		growth_publish(t);
}

/* True before a put finds no room: what is left is enough for the puts that copy the entries, unless their
 * values are much larger. */
static bool growth_is_due(const struct reddn_table *t)
{
	return t->geo.grow && t->path && !t->growth && t->live->entries >= t->grow_from &&
	       (t->live->entries > t->geo.buckets / 12 * 5 ||
		       reddn_heap_used(&t->space) > t->geo.heap_size / 4 * 3);
}

/* After a put or a delete */
static void growth_continue(struct reddn_table *t)
{
	int r = growth_is_due(t) ? growth_begin(t, &(struct reddn_table_options){0}, NULL, 0) : 0;

	if (r < 0)
		growth_fail(t, r);
	growth_step(t, GROWTH_STEP);
}

/* True: the table is larger now. */
static bool growth_complete(struct reddn_table *t)
{
	if (!t->growth &&
		(!t->geo.grow || !t->path || growth_begin(t, &(struct reddn_table_options){0}, NULL, 0) < 0))
		return false;
	growth_step(t, UINT64_MAX);
	return !t->growth && !t->growth_error;
}

PUBLIC int reddn_table_put(
	struct reddn_table *t, const void *key, size_t key_len, const void *val, size_t val_len)
{
	int r = entry_put(t, key, key_len, val, val_len);

	/* More than once where the record is large beside the heap */
	while (r == -ENOSPC && growth_complete(t))
		r = entry_put(t, key, key_len, val, val_len);
	if (r < 0)
		return r;
	if (t->growth && t->growth->made)
		growth_put(t, key, key_len, val, val_len);
	growth_continue(t);
	return 0;
}

PUBLIC int reddn_table_delete(struct reddn_table *t, const void *key, size_t key_len)
{
	int r = entry_delete(t, key, key_len);

	if (r != 0)
		return r;
	r = t->growth && t->growth->made ? entry_delete(t->growth->next, key, key_len) : 0;
	if (r < 0)
		growth_fail(t, r);
	growth_continue(t);
	return 0;
}

PUBLIC int reddn_table_grow(
	struct reddn_table *t, const struct reddn_table_options *opt, char *err, size_t errlen)
{
	char why[200] = "";
	int r;

	if (!t->writer)
		return reddn_fail(-EROFS, err, errlen, "the table is not open for writing");
	if (!t->path)
		return reddn_fail(-EINVAL, err, errlen, "the table was not opened by its name");
	if (t->growth)
		return reddn_fail(-EALREADY, err, errlen, "%s: grows already", t->path);
	if (!reddn_word_get(reddn_live_word(&t->live->epoch)))
		return reddn_fail(-ESTALE, err, errlen, "%s: another table has replaced it", t->path);
	r = growth_begin(t, opt, err, errlen);
	if (r < 0)
		return r;
	/* Who asks for it learns whether there is room */
	r = reddn_table_make_rest(t->growth->next, opt, why, sizeof(why));
	if (r < 0) {
		reddn_table_growth_free(t->growth);
		t->growth = NULL;
		return reddn_fail(r, err, errlen, "%s: %s", t->path, why);
	}
	t->growth->made = true;
	return 0;
}

PUBLIC int reddn_table_grow_step(struct reddn_table *t, uint64_t buckets, char *err, size_t errlen)
{
	int r;

	growth_step(t, buckets);
	r = t->growth_error;
	t->growth_error = 0;
	if (t->growth && t->growth->copied == t->geo.buckets)
		return reddn_fail(
			-EBUSY, err, errlen, "%s: another process holds the lock of its name", t->path);
	switch (-r) {
	case 0:
		return t->growth ? 0 : REDDN_TABLE_END;
	case ENOSPC:
		return reddn_fail(
			r, err, errlen, "%s: the larger table has no room for all entries", t->path);
	case ENOTUNIQ:
		return reddn_fail(r, err, errlen,
			"%s: two keys have the same fingerprint in the larger table; choose another seed",
			t->path);
	case EMSGSIZE:
		return reddn_fail(
			r, err, errlen, "%s: an entry is longer than the larger table allows", t->path);
	case EBADMSG:
		return reddn_fail(r, err, errlen, "%s: a record is damaged; make the table again", t->path);
	case ESTALE:
		return reddn_fail(r, err, errlen, "%s: another table has taken the name", t->path);
	default:
		return reddn_fail(r, err, errlen, "%s: %s", t->path, strerror(-r));
	}
}

/* ---- as-of ---- */

enum { FLAGS = REDDN_FOLLOWS | REDDN_COMPLETE };

_Static_assert((int)REDDN_FOLLOWS == REDDN_TABLE_FOLLOWS && (int)REDDN_COMPLETE == REDDN_TABLE_COMPLETE,
	"the flags of the interface are those of the format");

static uint64_t state_after(uint64_t before, const struct reddn_as_of *as_of)
{
	uint32_t ceased = (uint32_t)before & ~(uint32_t)FLAGS;

	if (before & REDDN_COMPLETE & ~as_of->flags)
		ceased += REDDN_TABLE_CEASED;
	return (uint64_t)as_of->epoch << REDDN_TABLE_EPOCH | ceased | as_of->flags;
}

static bool states_any(const struct reddn_as_of *as_of)
{
	return as_of->source || as_of->host || as_of->epoch || as_of->flags || as_of->origin;
}

PUBLIC int reddn_table_set_as_of(struct reddn_table *t, const struct reddn_as_of *as_of)
{
	struct reddn_table_live *live = t->live;
	uint64_t state = live->state;

	if (!t->writer)
		return -EROFS;
	if (!reddn_word_get(reddn_live_word(&live->epoch)))
		return -ESTALE;
	if ((as_of->flags & ~(uint32_t)FLAGS) || (!(as_of->flags & REDDN_FOLLOWS) && states_any(as_of)))
		return -EINVAL;
	if (state >> REDDN_TABLE_EPOCH == as_of->epoch && live->origin != as_of->origin)
		return -EINVAL;
	if (state >> REDDN_TABLE_EPOCH != as_of->epoch) {
		reddn_word_set(reddn_live_word(&live->as_of_source), 0);
		reddn_word_set(reddn_live_word(&live->as_of_host), 0);
	}
	if (!as_of->flags)
		reddn_word_set(reddn_live_word(&live->slots), 0);
	reddn_word_set(reddn_live_word(&live->state), state_after(state, as_of));
	reddn_word_set(reddn_live_word(&live->origin), as_of->origin);
	reddn_word_set(reddn_live_word(&live->as_of_source), as_of->source);
	reddn_word_set(reddn_live_word(&live->as_of_host), as_of->host);
	return 0;
}

PUBLIC int reddn_table_set_slots(struct reddn_table *t, unsigned first, unsigned n)
{
	if (!t->writer)
		return -EROFS;
	if (!reddn_word_get(reddn_live_word(&t->live->epoch)))
		return -ESTALE;
	if (first > REDIS_SLOTS || n > REDIS_SLOTS - first || !(t->live->state & REDDN_TABLE_FOLLOWS))
		return -EINVAL;
	reddn_word_set(reddn_live_word(&t->live->slots), redis_slots(first, n));
	return 0;
}

/* Of a moment at which the epoch changes, nothing is known. */
static struct reddn_as_of as_of_read(struct reddn_table_live *live)
{
	uint64_t before = reddn_word_get(reddn_live_word(&live->state));
	uint64_t source = reddn_word_get(reddn_live_word(&live->as_of_source));
	uint64_t host = reddn_word_get(reddn_live_word(&live->as_of_host));
	uint64_t state = reddn_word_get(reddn_live_word(&live->state));
	bool same = before >> REDDN_TABLE_EPOCH == state >> REDDN_TABLE_EPOCH;

	return (struct reddn_as_of){.source = same ? source : 0,
		.host = same ? host : 0,
		.epoch = (uint32_t)(state >> REDDN_TABLE_EPOCH),
		.flags = (uint32_t)(before & state & FLAGS),
		.origin = reddn_word_get(reddn_live_word(&live->origin))};
}

/* ---- */

PUBLIC void reddn_table_repaired(const struct reddn_table *t, struct reddn_table_repair *repair)
{
	*repair = t->repaired;
}

PUBLIC void reddn_table_stat(struct reddn_table *t, struct reddn_table_stat *st)
{
	*st = (struct reddn_table_stat){
		.entries = reddn_word_get(reddn_live_word(&t->live->entries)),
		.buckets = t->geo.buckets,
		.buckets_off = t->geo.buckets_off,
		.heap_off = t->geo.heap_off,
		.heap_size = t->geo.heap_size,
		.heap_used = t->writer ? reddn_heap_used(&t->space) : t->heap_used,
		.live_off = offsetof(struct reddn_table_header, live),
		.file_size = t->geo.file_size,
		.hash_seed = t->geo.hash_seed,
		.moves = reddn_word_get(reddn_live_word(&t->live->moves)),
		.epoch = reddn_word_get(reddn_live_word(&t->live->epoch)),
		.max_key = t->geo.max_key,
		.max_value = t->geo.max_value,
		.max_record = (uint32_t)reddn_record_size(t->geo.max_key, t->geo.max_value),
		.grow = (int)t->geo.grow,
		.header = t->geo.header,
		.idle = t->idle,
		.evict = (int)t->geo.evict,
		.slot = redis_slots_first(t->live->slots),
		.slots = redis_slots_count(t->live->slots),
		.as_of = as_of_read(t->live),
	};
}
