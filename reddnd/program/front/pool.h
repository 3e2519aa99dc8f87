/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h - memory that is freed all at once: the trees of one compilation.
 *
 * A pool reserves POOL_BYTES of address space and uses pages of it as they are needed, so that an allocation
 * cannot fail. What may be asked of it is bounded by the limits of the language (limits.h); the compiler
 * refuses a program as too large when pool_is_full(). One thread at a time.
 */
#ifndef PROGRAM_FRONT_POOL_H
#define PROGRAM_FRONT_POOL_H

#include <stdbool.h>
#include <stddef.h>

enum { POOL_BYTES = 64 << 20 };

struct pool;

struct pool *pool_new(void); /* NULL: no memory */
void pool_free(struct pool *p);

/** @size zeroed bytes, aligned for any type. Never NULL. */
void *pool_alloc(struct pool *p, size_t size);
/** A zero-terminated copy of @len bytes. */
char *pool_copy(struct pool *p, const char *s, size_t len);
char *pool_printf(struct pool *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** Less than half of it is left: the compiler stops adding to its trees. */
bool pool_is_full(const struct pool *p);

/**
 * Makes room for one more element in the array @v of @n elements; arrays grow in powers of two, and what they
 * grow out of stays in the pool.
 */
#define pool_grow(p, v, n) ((v) = pool_grow_bytes((p), (v), (n), sizeof(*(v))))
void *pool_grow_bytes(struct pool *p, void *v, size_t n, size_t size);

#endif
