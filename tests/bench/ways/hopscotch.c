/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/bench/ways/hopscotch.h"

#include "tests/bench/ways/pages.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* First bucket of the neighbourhood of the entry in bucket @i. */
static uint64_t home(const struct hopscotch *h, uint64_t i)
{
	struct reddn_place p = {.fp = reddn_mark_fp(h->words[2 * i + 1])};

	return hopscotch_place(&p, h->places);
}

/* Moves an earlier entry, the first that may lie in the empty bucket @to, there. Returns the bucket that is
 * now empty. */
static uint64_t hop(struct hopscotch *h, uint64_t to)
{
	uint64_t from = to < HOPSCOTCH_NEIGHBOURS ? 0 : to - HOPSCOTCH_NEIGHBOURS + 1;

	for (; from < to; from++) {
		if (home(h, from) + HOPSCOTCH_NEIGHBOURS <= to)
			continue;
		memcpy(&h->words[2 * to], &h->words[2 * from], 16);
		h->words[2 * from + 1] = 0;
		return from;
	}
	return to;
}

static bool insert(struct hopscotch *h, uint64_t locator, uint64_t mark)
{
	struct reddn_place p = {.fp = reddn_mark_fp(mark)};
	uint64_t first = hopscotch_place(&p, h->places), end = h->places + HOPSCOTCH_NEIGHBOURS - 1,
		 i = first;

	while (i < end && h->words[2 * i + 1])
		i++;
	if (i == end)
		return false;
	while (i >= first + HOPSCOTCH_NEIGHBOURS) {
		uint64_t empty = hop(h, i);

		if (empty == i)
			return false;
		i = empty;
	}
	h->words[2 * i] = locator;
	h->words[2 * i + 1] = mark;
	return true;
}

static bool fill(struct hopscotch *h, const struct reddn_table_header *hdr, const uint8_t *table)
{
	for (uint64_t b = 0; b < hdr->buckets; b++) {
		uint64_t word[2];

		memcpy(word, table + hdr->buckets_off + b * 16, 16);
		if (word[1] && !insert(h, word[0], word[1]))
			return false;
	}
	return true;
}

int hopscotch_build(struct hopscotch *h, const struct reddn_table_header *hdr, const uint8_t *table)
{
	h->places = hdr->buckets / 2;
	for (;;) {
		h->words = pages_get(hopscotch_bytes(h->places));
		if (!h->words)
			return -ENOMEM;
		if (fill(h, hdr, table))
			return 0;
		pages_put(h->words, hopscotch_bytes(h->places));
		h->places *= 2;
	}
}

void hopscotch_deinit(struct hopscotch *h)
{
	pages_put(h->words, hopscotch_bytes(h->places));
}
