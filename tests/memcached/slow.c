/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slow.c - preloaded into memcached by tests: makes it rest where a reader without locks could see what is
 * half done: before it takes a lock, and in the middle of a copy.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum { LOCKS = 32, COPIES = 16, REST_NS = 200000 }; /* one in so many; at most so long */
enum { SHORT = 512 };                               /* bytes, in the midst of which longer copies rest, too */

static __thread uint32_t state;

static uint32_t next_random(void)
{
	if (!state)
		state = (uint32_t)(uintptr_t)&state | 1;
	/* xorshift32 */
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

static void rest(unsigned one_in)
{
	struct timespec t = {.tv_nsec = next_random() % REST_NS};

	if (next_random() % one_in == 0)
		nanosleep(&t, NULL);
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
	static __typeof__(&pthread_mutex_lock) next;

	if (!next)
		next = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	rest(LOCKS);
	return next(m);
}

EXPORT void *memcpy(void *to, const void *from, size_t n)
{
	volatile uint8_t *t = to;
	const uint8_t *f = from;
	size_t middle = next_random() % (n < SHORT ? n + 1 : SHORT);

	for (size_t i = 0; i < n; i++) {
		if (i == middle)
			rest(COPIES);
		t[i] = f[i];
	}
	return to;
}
