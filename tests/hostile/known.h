/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known.h - the table that the server answers from, which this client is told for once: what must come of a
 * request to hash-get, byte by byte.
 */
#ifndef TESTS_HOSTILE_KNOWN_H
#define TESTS_HOSTILE_KNOWN_H

#include "tests/hostile/hostile.h"

enum { KNOWN_FP = 7 /* bytes of a fingerprint in a request */ };

struct known_table {
	const uint8_t *file, *buckets, *heap;
	uint64_t window, heap_size;
};

/** What the chain takes from the bytes at an offset of the window. */
struct known_bucket {
	uint8_t fp[KNOWN_FP]; /* as a request has it: the most significant byte first */
	uint64_t len, off;
};

struct known_table known_map(const char *path);
struct known_bucket known_look(const struct known_table *t, uint64_t at);

/** Puts probe @p into the request: a fingerprint, and an offset of as many bytes as the server says. */
void known_put_probe(struct raw_client *c, unsigned p, const uint8_t *fp, uint64_t at);

/**
 * What the slots must hold after the request in @c has been answered in slot @slot. False if it cannot be
 * answered: it leads out of the window, or what lies there leads out of the heap or of the client's memory.
 */
bool known_model(struct raw_client *c, const struct known_table *t, unsigned slot, uint8_t *want);

#endif
