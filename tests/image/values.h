/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * values.h - what the bytes of a chain can be, for the second opinion on its image (check.h).
 *
 * Memory is words of eight bytes, as an atomic sees it. A word is one of several *cases*, each a set of
 * values for every byte (bytes.h): so bytes that are decided together stay together. A store that certainly
 * happens replaces the cases, for its own queue: a queue that runs at its own speed may see what was there
 * before, if the one that stores has failed. One that happens in some cases of a decision replaces those, in
 * the same way. Other stores add cases.
 *
 * A READ of a word that has several cases is a *decision*: which case it was decides what it brings, all
 * over. A WQE that is awake in some cases of a decision and asleep in the others has it as its *guard*: a
 * case of memory that belongs to others of these it does not see.
 *
 * Lists of cases are never changed, only replaced, so that a copy of struct word keeps what the word was.
 */
#ifndef TESTS_IMAGE_VALUES_H
#define TESTS_IMAGE_VALUES_H

#include "tests/image/bytes.h"

#include <stddef.h>

enum { WORD_BYTES = 8, CASES = 28 /* of a word, at most: of more, those that differ least become one */ };

/** Cases of a decision, as bits. No decision: number 0. */
struct guard {
	uint32_t decision;
	uint32_t cases;
};

enum { NOT_MADE = 1 << 30 /* in place of a case: there was no such READ */ };

struct word_case {
	struct bytes b[WORD_BYTES];
	struct guard in;
};

/** Who reads or stores. */
struct actor {
	uint8_t queue;
	bool sure;  /* to do so; else if its guard is, or nobody knows when */
	bool alone; /* no other queue reads what this one stores */
	struct guard guard;
};

struct word {
	const struct word_case *now, *before; /* before: what other queues than `owner` may see as well */
	uint8_t n, nbefore, owner;
	uint8_t written; /* bit k: something writes to byte k */
	uint8_t secret;  /* bit k: byte k is one of a key, or of an address that nothing may read */
};

/** Memory that is given back all at once, with all sets of bytes. */
struct pool_of_cases;
struct pool_of_cases *cases_pool_new(void);
void cases_pool_reset(struct pool_of_cases *p);
void cases_pool_free(struct pool_of_cases *p);

void word_set(struct pool_of_cases *p, struct word *w, const uint8_t v[WORD_BYTES]);
/** The cases that @a may see, at most 2 * CASES of them. */
unsigned word_seen(const struct word *w, const struct actor *a, const struct word_case *seen[2 * CASES]);
/** All values that @a may see in byte @k. */
struct bytes word_byte(const struct word *w, const struct actor *a, unsigned k);
/** @a makes these of the cases that it sees. With @made, they are those of a new decision. */
void word_store(struct pool_of_cases *p, struct word *w, const struct actor *a, const struct word_case *c,
	unsigned n, uint32_t made);
/** Makes @w one of its own cases and of those of @was, all decisions forgotten. True if that is more than
 * @was. */
bool word_join(struct pool_of_cases *p, struct word *w, const struct word *was);

/** What a word in the memory of the host becomes; operands as bytes in the order of that memory. */
struct word_atomic {
	struct bytes swap[WORD_BYTES], compare[WORD_BYTES], swap_mask[WORD_BYTES], compare_mask[WORD_BYTES];
	struct bytes add[WORD_BYTES], boundary[WORD_BYTES];
	bool again; /* any number of times */
};
/** The cases that a CAS leaves of @c, at most 2. */
unsigned case_swap(const struct word_case *c, const struct word_atomic *a, struct word_case out[2]);
void case_add(const struct word_case *c, const struct word_atomic *a, struct word_case *out);

#endif
