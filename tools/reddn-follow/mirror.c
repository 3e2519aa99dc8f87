/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/mirror.h"

#include "protocol/redis-slots.h"
#include "tools/common/tool.h"
#include "tools/reddn-follow/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* Of a key, with @where. */
static struct seen_key seen_key_of(const void *key, size_t len, uint64_t where)
{
	XXH128_hash_t hash = XXH3_128bits(key, len);

	return (struct seen_key){{hash.low64, hash.high64}, where};
}

static int by_hash(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(((struct seen_key *)0)->hash));
}

void seen_add(struct seen *s, const void *key, size_t len, uint64_t where)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->keys = tool_must(reallocarray(s->keys, s->room, sizeof(*s->keys)));
	}
	s->keys[s->n++] = seen_key_of(key, len, where);
}

void seen_sort(struct seen *s)
{
	if (s->n)
		qsort(s->keys, s->n, sizeof(*s->keys), by_hash);
}

const struct seen_key *seen_twice(const struct seen *s)
{
	for (size_t i = 1; i < s->n; i++)
		if (by_hash(&s->keys[i - 1], &s->keys[i]) == 0)
			return &s->keys[i - 1];
	return NULL;
}

static bool seen_has(const struct seen *s, const struct seen_key *k)
{
	return s->n && bsearch(k, s->keys, s->n, sizeof(*k), by_hash);
}

void seen_deinit(struct seen *s)
{
	free(s->keys);
	*s = (struct seen){0};
}

enum {
	GROW_STEP = 1024, /* buckets: less than a millisecond */
	LOOK_MS = 1000,
};

static void mirror_fail(struct mirror *m, int error)
{
	if (!m->error)
		m->error = error;
}

static void mirror_state(struct mirror *m, struct reddn_as_of as_of)
{
	int r = reddn_table_set_as_of(m->table, &as_of);

	m->as_of = as_of;
	if (r < 0)
		mirror_fail(m, r);
}

static void mirror_state_slots(struct mirror *m, uint64_t slots)
{
	int r = slots == m->stated_slots
			? 0
			: reddn_table_set_slots(m->table, redis_slots_first(slots), redis_slots_count(slots));

	m->stated_slots = slots;
	if (r < 0)
		mirror_fail(m, r);
}

int mirror_open(
	struct mirror *m, const char *path, const struct reddn_table_options *opt, char *err, size_t errlen)
{
	struct reddn_table_stat st;
	int r;

	*m = (struct mirror){.path = path};
	if (access(path, F_OK) < 0 && errno == ENOENT)
		r = reddn_table_create(&m->table, path, opt, err, errlen);
	else
		r = reddn_table_open(&m->table, path, REDDN_TABLE_WRITE, err, errlen);
	if (r < 0)
		return r;
	reddn_table_stat(m->table, &st);
	/* What a follower before has stated is true, until there is another source */
	st.as_of.flags |= REDDN_FOLLOWS;
	mirror_state(m, st.as_of);
	m->stated_slots = redis_slots(st.slot, st.slots);
	return 0;
}

/* ---- what is absent ---- */

static struct mirror_absent *absent_find(const struct mirror *m, const struct seen_key *k)
{
	struct mirror_absent *a;

	HASH_FIND(hh, m->absent, k->hash, sizeof(k->hash), a);
	return a;
}

static void absent_forget(struct mirror *m, struct mirror_absent *a)
{
	HASH_DEL(m->absent, a);
	free(a);
}

static void absent_set(struct mirror *m, const char *key, size_t len, bool absent)
{
	const struct seen_key k = seen_key_of(key, len, 0);
	struct mirror_absent *a = absent_find(m, &k);

	if (a && !absent)
		absent_forget(m, a);
	if (a || !absent)
		return;
	a = tool_must(calloc(1, sizeof(*a)));
	a->key = k;
	HASH_ADD(hh, m->absent, key.hash, sizeof(k.hash), a);
}

static void absent_keep(struct mirror *m, const struct seen *seen)
{
	struct mirror_absent *a, *next;

	HASH_ITER (hh, m->absent, a, next)
		if (!seen_has(seen, &a->key))
			absent_forget(m, a);
}

uint64_t mirror_count_absent(const struct mirror *m)
{
	return HASH_COUNT(m->absent);
}

void mirror_close(struct mirror *m)
{
	absent_keep(m, &(struct seen){0});
	reddn_table_close(m->table);
}

/* ---- as-of ---- */

/* The low bits of an epoch count how often the clock was set back or the source was another one: a source
 * that is back has another epoch. The others are the source. */
enum { SOURCE_SHIFT = 8, CLOCKS = (1 << SOURCE_SHIFT) - 1 };

void mirror_set_source(struct mirror *m, uint32_t source, uint64_t origin)
{
	if (m->as_of.epoch >> SOURCE_SHIFT == source && m->as_of.origin == origin)
		return;
	if (m->slots != m->stated_slots)
		mirror_state_slots(m, 0);
	mirror_state(
		m, (struct reddn_as_of){.epoch = source << SOURCE_SHIFT | ((m->as_of.epoch + 1) & CLOCKS),
			   .flags = REDDN_FOLLOWS,
			   .origin = origin});
}

void mirror_reset_clock(struct mirror *m)
{
	uint32_t epoch = m->as_of.epoch;

	mirror_state(m, (struct reddn_as_of){.epoch = (epoch & ~(uint32_t)CLOCKS) | ((epoch + 1) & CLOCKS),
				.flags = REDDN_FOLLOWS,
				.origin = m->as_of.origin});
}

void mirror_publish(struct mirror *m, uint64_t source_us, uint64_t host_ns, bool complete)
{
	if (m->error)
		return; /* something is missing for good */
	mirror_state(m, (struct reddn_as_of){.source = source_us,
				.host = host_ns,
				.epoch = m->as_of.epoch,
				.flags = REDDN_FOLLOWS | (complete ? REDDN_COMPLETE : 0),
				.origin = m->as_of.origin});
	mirror_state_slots(m, m->slots);
}

/* Before a key is removed that the source has */
static void mirror_cease(struct mirror *m)
{
	struct reddn_as_of as_of = m->as_of;

	if (!(as_of.flags & REDDN_COMPLETE) || !rule_kept(RULE_INCOMPLETE_FIRST))
		return;
	as_of.flags &= ~(uint32_t)REDDN_COMPLETE;
	mirror_state(m, as_of);
}

/* ---- */

enum mirror_put mirror_put(struct mirror *m, const char *key, size_t key_len, const char *val, size_t val_len)
{
	int r = reddn_table_put(m->table, key, key_len, val, val_len);

	switch (-r) {
	case 0:
		m->puts++;
		return MIRROR_PUT;
	case ENOSPC:
	case ENOTUNIQ:
	case EMSGSIZE:
	case EINVAL:
		mirror_cease(m);
		if (rule_kept(RULE_NO_OLD_VALUE))
			mirror_delete(m, key, key_len);
		return r == -ENOSPC || r == -ENOTUNIQ ? MIRROR_NO_ROOM : MIRROR_UNFIT;
	default:
		mirror_fail(m, r);
		return MIRROR_UNFIT;
	}
}

void mirror_delete(struct mirror *m, const char *key, size_t key_len)
{
	int r = reddn_table_delete(m->table, key, key_len);

	if (m->absent)
		absent_set(m, key, key_len, false);
	if (r == 0)
		m->deletes++;
	else if (r < 0 && r != -EINVAL && r != -EMSGSIZE)
		mirror_fail(m, r);
}

bool mirror_get(struct mirror *m, const char *key, size_t key_len, const void **val, size_t *val_len)
{
	int r = reddn_table_get(m->table, key, key_len, val, val_len);

	if (r < 0 && r != -EINVAL && r != -EMSGSIZE)
		mirror_fail(m, r);
	return r == 0;
}

bool mirror_has(struct mirror *m, const char *key, size_t key_len)
{
	const void *val;
	size_t val_len;

	return mirror_get(m, key, key_len, &val, &val_len);
}

enum mirror_put mirror_equal(
	struct mirror *m, const char *key, size_t key_len, const char *val, size_t val_len)
{
	enum mirror_put put = MIRROR_PUT;
	const void *is;
	size_t is_len;

	if (!mirror_get(m, key, key_len, &is, &is_len) || is_len != val_len || memcmp(is, val, val_len) != 0)
		put = mirror_put(m, key, key_len, val, val_len);
	if (put != MIRROR_PUT || m->absent)
		absent_set(m, key, key_len, put != MIRROR_PUT);
	return put;
}

static uint64_t mirror_epoch(struct mirror *m)
{
	struct reddn_table_stat st;

	reddn_table_stat(m->table, &st);
	return st.epoch;
}

void mirror_walk(struct mirror *m, struct mirror_walk *w)
{
	*w = (struct mirror_walk){.epoch = mirror_epoch(m)};
}

bool mirror_walk_next(struct mirror *m, struct mirror_walk *w, const char **key, size_t *len)
{
	struct reddn_table_entry e;
	int r;

	/* a table that has grown has its keys at other places */
	if (mirror_epoch(m) != w->epoch)
		mirror_walk(m, w);
	r = reddn_table_next(m->table, &w->at, &e);
	if (r < 0)
		mirror_fail(m, r);
	if (r != 0)
		return false;
	*key = e.key;
	*len = e.key_len;
	return true;
}

bool mirror_keep(struct mirror *m, struct mirror_walk *w, const struct seen *seen, unsigned n)
{
	const char *key;
	size_t len;

	while (n--) {
		struct seen_key k;

		if (!mirror_walk_next(m, w, &key, &len)) {
			absent_keep(m, seen);
			return true;
		}
		k = seen_key_of(key, len, 0);
		if (!seen_has(seen, &k))
			mirror_delete(m, key, len);
	}
	return false;
}

/* A table that has grown is another file. One that was removed, or renamed, is not marked. */
static void mirror_look(struct mirror *m, uint64_t now)
{
	uint64_t epoch = mirror_epoch(m);
	struct stat st;

	if (epoch == 0 || stat(m->path, &st) < 0 || (epoch == m->epoch && st.st_ino != m->inode)) {
		mirror_fail(m, -ESTALE);
		return;
	}
	m->epoch = epoch;
	m->inode = st.st_ino;
	m->look_at = now + LOOK_MS;
}

bool mirror_tend(struct mirror *m, uint64_t now)
{
	int r = reddn_table_grow_step(m->table, GROW_STEP, NULL, 0);

	if (r == -EBADMSG || r == -ESTALE)
		mirror_fail(m, r);
	if (now >= m->look_at || mirror_epoch(m) != m->epoch)
		mirror_look(m, now);
	return r == 0;
}
