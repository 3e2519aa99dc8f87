/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known.h - the expected answer to a request to hash-get, byte by byte. This client, unlike an attacker, has
 * the server's table.
 */
#ifndef TESTS_HOSTILE_KNOWN_H
#define TESTS_HOSTILE_KNOWN_H

#include "tests/hostile/hostile.h"

enum { KNOWN_FP = 6 /* bytes of a fingerprint in a request */ };

struct known_table {
	const uint8_t *file, *buckets, *heap;
	uint64_t window, heap_size;
};

/** The chain's reading of the bytes at an offset of the window. */
struct known_bucket {
	uint8_t fp[KNOWN_FP]; /* as in a request: the most significant byte first */
	uint8_t tag;
	uint64_t len, off;
};

struct known_table known_map(const char *path);
struct known_bucket known_look(const struct known_table *t, uint64_t at);

/** Puts probe @p into the request: a fingerprint, and an offset of the server's offset length. */
void known_put_probe(struct raw_client *c, unsigned p, const uint8_t *fp, uint64_t at);

/**
 * Computes the slots after an answer in @slot to the request in @c. False if no answer is possible, because
 * the request leads out of the window, or the bytes there lead out of the heap or of the client's memory.
 */
bool known_model(struct raw_client *c, const struct known_table *t, unsigned slot, uint8_t *want);

#endif
