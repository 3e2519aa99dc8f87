/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/workload.h"
#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

struct entry {
	const char *key, *value;
	uint32_t key_len, value_len;
	UT_hash_handle hh;
};

struct workload_priv {
	char *data;
	size_t size;
	struct entry *entries, *by_key;
	char *absent;   /* text of the absent keys */
	uint32_t *took; /* time of each answer in units of 10 ns; the first `answers` are valid */
	size_t answers;
	bool *answered;
};

enum { WRONG_SHOWN = 5, ABSENT_MAX = 256 };

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static int map_file(struct workload_priv *p, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0) {
		fprintf(stderr, "%s: %m\n", path);
		if (fd >= 0)
			close(fd);
		return -EINVAL;
	}
	p->size = (size_t)st.st_size;
	p->data = p->size ? mmap(NULL, p->size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	close(fd);
	if (p->data == MAP_FAILED) {
		p->data = NULL;
		fprintf(stderr, "%s: cannot be mapped or is empty\n", path);
		return -EINVAL;
	}
	return 0;
}

/* Value of the field Package of the stanza [s, end), NULL when it has none. */
static const char *stanza_key(const char *s, const char *end, uint32_t *len)
{
	static const char field[] = "Package: ";

	while (s < end) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		const char *eol = nl ? nl : end;

		if ((size_t)(eol - s) > sizeof(field) - 1 && !memcmp(s, field, sizeof(field) - 1)) {
			s += sizeof(field) - 1;
			*len = (uint32_t)(eol - s);
			return s;
		}
		s = eol + 1;
	}
	return NULL;
}

static int index_stanzas(struct workload *w)
{
	struct workload_priv *p = w->priv;
	const char *s = p->data, *end = p->data + p->size;
	size_t room = 0, n = 0;

	for (const char *q = s; q + 1 < end; q++)
		room += q[0] == '\n' && q[1] == '\n';
	p->entries = calloc(room + 1, sizeof(*p->entries));
	if (!p->entries)
		return -ENOMEM;
	while (s < end) {
		const char *gap = memmem(s, (size_t)(end - s), "\n\n", 2), *stop = gap ? gap : end;
		struct entry *e = &p->entries[n], *old = NULL;

		if (!gap && stop > s && stop[-1] == '\n')
			stop--;
		e->key = stanza_key(s, stop, &e->key_len);
		e->value = s;
		e->value_len = (uint32_t)(stop - s);
		s = gap ? gap + 2 : end;
		while (s < end && *s == '\n')
			s++;
		if (!e->key)
			continue;
		HASH_FIND(hh, p->by_key, e->key, e->key_len, old);
		if (old) {
			old->value = e->value;
			old->value_len = e->value_len;
		} else {
			HASH_ADD_KEYPTR(hh, p->by_key, e->key, e->key_len, e);
			n++;
		}
	}
	w->keys = n;
	for (size_t i = 0; i < n; i++)
		if (p->entries[i].value_len > w->max_value)
			w->max_value = p->entries[i].value_len;
	return n ? 0 : -ENODATA;
}

/* An absent key is a present one with one character changed or added. */
static uint32_t make_absent(struct workload_priv *p, const struct entry *like, char *out, uint64_t *rng)
{
	for (;;) {
		struct entry *hit = NULL;
		uint32_t len = like->key_len < ABSENT_MAX - 1 ? like->key_len : ABSENT_MAX - 1;
		uint64_t r = draw(rng);
		char c = (char)('a' + r % 26);

		memcpy(out, like->key, len);
		if (r >> 32 & 1)
			out[len++] = c;
		else
			out[(r >> 33) % len] = c;
		HASH_FIND(hh, p->by_key, out, len, hit);
		if (!hit)
			return len;
	}
}

static int draw_gets(struct workload *w, size_t present, size_t absent, uint64_t seed)
{
	struct workload_priv *p = w->priv;
	uint64_t rng = seed;

	w->ngets = present + absent;
	w->gets = calloc(w->ngets, sizeof(*w->gets));
	p->took = calloc(w->ngets, sizeof(*p->took));
	p->answered = calloc(w->ngets, sizeof(*p->answered));
	p->absent = calloc(absent + 1, ABSENT_MAX);
	if (!w->gets || !p->took || !p->answered || !p->absent)
		return -ENOMEM;
	for (size_t i = 0; i < w->ngets; i++) {
		const struct entry *e = &p->entries[draw(&rng) % w->keys];
		struct workload_get *g = &w->gets[i];

		if (i < present) {
			*g = (struct workload_get){e->key, e->key_len, e->value, e->value_len, 0};
		} else {
			char *key = p->absent + (i - present) * ABSENT_MAX;

			*g = (struct workload_get){key, make_absent(p, e, key, &rng), NULL, 0, 0};
		}
	}
	for (size_t i = w->ngets; i > 1; i--) { /* Fisher-Yates */
		size_t j = draw(&rng) % i;
		struct workload_get g = w->gets[i - 1];

		w->gets[i - 1] = w->gets[j];
		w->gets[j] = g;
	}
	return 0;
}

int workload_load(struct workload **out, const char *path, size_t present, size_t absent, uint64_t seed)
{
	struct workload *w = calloc(1, sizeof(*w));
	int r = -ENOMEM;

	if (!w)
		return r;
	w->priv = calloc(1, sizeof(*w->priv));
	if (w->priv)
		r = map_file(w->priv, path);
	if (!r)
		r = index_stanzas(w);
	if (r == -ENODATA)
		fprintf(stderr, "%s: no stanza has a field Package\n", path);
	if (!r)
		r = draw_gets(w, present, absent, seed);
	if (r) {
		workload_free(w);
		return r;
	}
	*out = w;
	return 0;
}

void workload_free(struct workload *w)
{
	struct workload_priv *p = w->priv;

	if (p) {
		HASH_CLEAR(hh, p->by_key);
		if (p->data)
			munmap(p->data, p->size);
		free(p->entries);
		free(p->absent);
		free(p->took);
		free(p->answered);
		free(p);
	}
	free(w->gets);
	free(w);
}

void workload_start(struct workload *w, size_t i)
{
	w->gets[i].started = clock_ns();
	if (!w->first)
		w->first = w->gets[i].started;
}

void workload_answer(struct workload *w, size_t i, bool found, const void *value, size_t value_len)
{
	struct workload_get *g = &w->gets[i];
	struct workload_priv *p = w->priv;
	bool right;

	w->last = clock_ns();
	if (p->answered[i]) {
		fprintf(stderr, "%.*s: answered twice\n", (int)g->key_len, g->key);
		w->wrong++;
		return;
	}
	p->answered[i] = true;
	p->took[p->answers++] = (uint32_t)((w->last - g->started) / 10);
	if (found)
		right = g->value && g->value_len == value_len && !memcmp(g->value, value, value_len);
	else
		right = !g->value;
	if (right) {
		if (found)
			w->hits++;
		else
			w->misses++;
		return;
	}
	if (w->wrong++ < WRONG_SHOWN)
		fprintf(stderr, "%.*s: wrong answer: %s%s\n", (int)g->key_len, g->key,
			found ? (g->value ? "another value" : "a value for an absent key")
			      : "reported absent, is present",
			w->wrong == WRONG_SHOWN ? " (further ones are only counted)" : "");
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

bool workload_report(struct workload *w)
{
	struct workload_priv *p = w->priv;
	size_t n = p->answers;
	double seconds = (double)(w->last - w->first) / 1e9;

	qsort(p->took, n, sizeof(*p->took), by_size);
	printf("keys %zu\ngets %zu\nhits %zu\nmisses %zu\nwrong %zu\nunanswered %zu\nseconds %.6f\n", w->keys,
		w->ngets, w->hits, w->misses, w->wrong, w->ngets - n, seconds);
	if (n)
		printf("gets_per_s %.0f\np50_us %.2f\np99_us %.2f\n", (double)n / seconds,
			p->took[n / 2] / 100.0, p->took[n - 1 - n / 100] / 100.0);
	return n == w->ngets && !w->wrong;
}
