/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/seen.h"

#include "tools/common/tool.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct seen_key seen_key_of(const void *key, size_t len, uint64_t where)
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

bool seen_has(const struct seen *s, const struct seen_key *k)
{
	return s->n && bsearch(k, s->keys, s->n, sizeof(*k), by_hash);
}

void seen_deinit(struct seen *s)
{
	free(s->keys);
	*s = (struct seen){0};
}
