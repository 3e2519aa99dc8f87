/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slow.c - preloaded into memcached by tests: makes it rest where a reader without locks could see what is
 * half done: before it takes a lock, and in the middle of a copy.
 *
 * If there is a file $SLOW_HOLD, the next copy of an item to another place, or of digits into an item,
 * renames it to $SLOW_HOLD.held, and stops in the middle until that is gone. With $SLOW_START, the search for
 * the address of its port does the same.
 */
#include "protocol/cache-format.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* It has a thread that moves items */
static bool is_mover(void)
{
	char name[16] = "";

	pthread_getname_np(pthread_self(), name, sizeof(name));
	return strcmp(name, "mc-slabmaint") == 0;
}

static void hold(const char *variable)
{
	const char *path = getenv(variable);
	char held[4096];

	if (!path || access(path, F_OK) < 0)
		return;
	snprintf(held, sizeof(held), "%s.held", path);
	if (rename(path, held) < 0)
		return;
	while (access(held, F_OK) == 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* incr writes nothing but digits */
static bool is_incr(const void *to, const uint8_t *from, size_t n)
{
	if ((uintptr_t)to < REDDN_CACHE_BASE || (uintptr_t)to >= 2 * REDDN_CACHE_BASE)
		return false;
	for (size_t i = 0; i < n; i++)
		if (from[i] < '0' || from[i] > '9')
			return false;
	return true;
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
	static __typeof__(&pthread_mutex_lock) next;

	if (!next)
		next = (__typeof__(next))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	rest(LOCKS);
	return next(m);
}

EXPORT int getaddrinfo(
	const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found)
{
	static __typeof__(&getaddrinfo) next;

	if (!next)
		next = (__typeof__(next))dlsym(RTLD_NEXT, "getaddrinfo");
	hold("SLOW_START");
	return next(host, port, hints, found);
}

EXPORT void *memcpy(void *to, const void *from, size_t n)
{
	volatile uint8_t *t = to;
	const uint8_t *f = from;
	size_t middle = next_random() % (n < SHORT ? n + 1 : SHORT);

	for (size_t i = 0; i < n; i++) {
		if (i == n / 2 && (n > SHORT ? is_mover() : is_incr(to, f, n)))
			hold("SLOW_HOLD");
		if (i == middle)
			rest(COPIES);
		t[i] = f[i];
	}
	return to;
}
