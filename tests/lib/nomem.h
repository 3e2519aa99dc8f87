/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nomem.h - makes one allocation after the other fail. For one file of a test that is linked with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc.
 */
#ifndef TESTS_LIB_NOMEM_H
#define TESTS_LIB_NOMEM_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static unsigned nomem_countdown; /* the allocation that fails; 0: none */
static int nomem_result;

static bool nomem_now(void)
{
	return nomem_countdown && --nomem_countdown == 0;
}

void *__wrap_malloc(size_t size)
{
	return nomem_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return nomem_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return nomem_now() ? NULL : __real_realloc(p, size);
}

/* Evaluates @call, which returns an int, with its first, second, ... allocation failing, until it returns
 * something else than @failure */
#define NOMEM_TRY(failure, call)                                                                             \
	do {                                                                                                 \
		unsigned nomem_nth = 0;                                                                      \
		do {                                                                                         \
			nomem_countdown = ++nomem_nth;                                                       \
			nomem_result = (call);                                                               \
		} while (nomem_result == (failure));                                                         \
		nomem_countdown = 0;                                                                         \
		assert_true(nomem_nth > 1);                                                                  \
	} while (0)

#endif
