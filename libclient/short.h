/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * short.h - memcpy() and memcmp() of short keys, of 9 to 16 bytes: a call is more instructions than what it
 * does. A hash of XXH3 has a case of its own for the same lengths.
 */
#ifndef LIBCLIENT_SHORT_H
#define LIBCLIENT_SHORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** True if @len is that of a short key. */
static inline bool short_is(size_t len)
{
	return len - 9 < 8;
}

/** Copy the @len bytes of a short key. */
static inline void short_copy(void *to, const void *from, size_t len)
{
	uint64_t first, last;

	memcpy(&first, from, sizeof(first));
	memcpy(&last, (const uint8_t *)from + len - sizeof(last), sizeof(last));
	memcpy(to, &first, sizeof(first));
	memcpy((uint8_t *)to + len - sizeof(last), &last, sizeof(last));
}

/** True if the @len bytes of both are the same, whether it is a short key or not. */
static inline bool short_same(const void *a, const void *b, size_t len)
{
	uint64_t first[2], last[2];

	if (!short_is(len))
		return memcmp(a, b, len) == 0;
	memcpy(&first[0], a, sizeof(first[0]));
	memcpy(&first[1], b, sizeof(first[1]));
	memcpy(&last[0], (const uint8_t *)a + len - sizeof(last[0]), sizeof(last[0]));
	memcpy(&last[1], (const uint8_t *)b + len - sizeof(last[1]), sizeof(last[1]));
	return !((first[0] ^ first[1]) | (last[0] ^ last[1]));
}

#endif
