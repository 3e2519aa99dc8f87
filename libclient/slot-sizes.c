/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/slot-sizes.h"

#include "util/array.h"

#include <pthread.h>
#include <string.h>
#include <xxhash.h>

/* Offloads are known by a hash: should two have the same, one gets slots that are too large, or asks again */
static struct {
	uint64_t of; /* 0: unused */
	uint32_t bytes;
} sizes[64];
static unsigned next;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash(const char *host, uint16_t port, const char *offload)
{
	uint64_t h = XXH3_64bits_withSeed(host, strlen(host), port);

	h = XXH3_64bits_withSeed(offload, strlen(offload), h);
	return h ? h : 1;
}

uint32_t reddn_slot_size(const char *host, uint16_t port, const char *offload)
{
	uint64_t of = hash(host, port, offload);
	uint32_t bytes = 0;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < COUNT(sizes) && !bytes; i++)
		if (sizes[i].of == of)
			bytes = sizes[i].bytes;
	pthread_mutex_unlock(&lock);
	return bytes;
}

void reddn_slot_size_set(const char *host, uint16_t port, const char *offload, uint32_t bytes)
{
	uint64_t of = hash(host, port, offload);
	unsigned i = 0;

	pthread_mutex_lock(&lock);
	while (i < COUNT(sizes) && sizes[i].of != of)
		i++;
	if (i == COUNT(sizes))
		i = next++ % COUNT(sizes);
	sizes[i].of = of;
	sizes[i].bytes = bytes;
	pthread_mutex_unlock(&lock);
}
