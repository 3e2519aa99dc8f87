/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keyset.h - keys of a benchmark, with their values where they are known: from a table or a text file.
 */
#ifndef TOOLS_LOAD_KEYSET_H
#define TOOLS_LOAD_KEYSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keyset_key {
	size_t at; /* offset of the key in the keyset's bytes; the value follows it */
	uint32_t key_len, val_len;
	bool known; /* the value is known */
};

/** All zero: empty. */
struct keyset {
	struct keyset_key *keys;
	size_t count, room;
	uint8_t *bytes;
	size_t used, size;
};

/**
 * Add all keys of table file @name, or of a text file with a key or key, tab, value per line (records.h).
 * @values: keep the values too. 0, or 2, the exit status, after an error on stderr.
 */
int keyset_load_table(struct keyset *k, const char *name, bool values);
int keyset_load_text(struct keyset *k, const char *name, bool values);
void keyset_deinit(struct keyset *k);

static inline const uint8_t *keyset_key(const struct keyset *k, size_t i)
{
	return k->bytes + k->keys[i].at;
}

static inline const uint8_t *keyset_value(const struct keyset *k, size_t i)
{
	return k->bytes + k->keys[i].at + k->keys[i].key_len;
}

#endif
