/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/pool.h"

#include <assert.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct pool {
	size_t used; /* from the start of this structure */
};

static size_t align(size_t n)
{
	return (n + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

struct pool *pool_new(void)
{
	struct pool *p = mmap(
		NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	p->used = align(sizeof(*p));
	return p;
}

void pool_free(struct pool *p)
{
	if (p)
		munmap(p, POOL_BYTES);
}

void *pool_alloc(struct pool *p, size_t size)
{
	void *mem = (char *)p + p->used;

	assert(size <= POOL_BYTES - p->used - alignof(max_align_t) &&
		"the limits of the language are too wide");
	p->used += align(size);
	return mem;
}

char *pool_copy(struct pool *p, const char *s, size_t len)
{
	char *copy = pool_alloc(p, len + 1);

	memcpy(copy, s, len);
	return copy;
}

char *pool_printf(struct pool *p, const char *fmt, ...)
{
	char *text, *s;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	assert(n >= 0);
	s = pool_copy(p, text, (size_t)n);
	free(text);
	return s;
}

bool pool_is_full(const struct pool *p)
{
	return p->used > POOL_BYTES / 2;
}

void *pool_grow_bytes(struct pool *p, void *v, size_t n, size_t size)
{
	void *wider;

	if (n && (n < 4 || n & (n - 1)))
		return v;
	wider = pool_alloc(p, (n ? 2 * n : 4) * size);
	if (n)
		memcpy(wider, v, n * size);
	return wider;
}
