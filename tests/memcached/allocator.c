/* SPDX-License-Identifier: BSD-2-Clause */
/* allocator.c - preloaded into memcached by tests, in front of libreddn-memcached.so: it has one of the C
 * library's allocation functions, as other allocators have all. */
#include <stdlib.h>

void *__libc_calloc(size_t count, size_t size);

__attribute__((visibility("default"))) void *calloc(size_t count, size_t size)
{
	return __libc_calloc(count, size);
}
