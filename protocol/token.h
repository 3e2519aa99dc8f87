/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * token.h - proof that a client has the key of a tenant: 8 bytes in the request to connect (wire.h).
 *
 * A token is the beginning of an HMAC-SHA256 over all the rest of the request, the client's address and the
 * time, in windows of 30 s. So one that was overheard is of use only for the same reply slots, with the same
 * key to them, from the same address, for a minute and a half. reddn-wire(7) has the bytes.
 *
 * No allocation, no state. Not secret: whether a token is right takes the same time whichever byte is wrong.
 */
#ifndef PROTOCOL_TOKEN_H
#define PROTOCOL_TOKEN_H

#include "protocol/wire.h"

#include <stdbool.h>
#include <stddef.h>

enum { TOKEN_KEY_MIN = 16, TOKEN_KEY_MAX = 1024, TOKEN_WINDOW_S = 30 };

struct token_key {
	uint8_t bytes[TOKEN_KEY_MAX];
	size_t len;
};

/**
 * Reads the key in file @path: its bytes, without the line feed at their end if there is one. 0, or a
 * negative errno and @why in words: it cannot be read, or is too short or too long for a key.
 */
int token_key_read(const char *path, struct token_key *key, char *why, size_t why_size);
void token_key_wipe(struct token_key *key);

/** The token of @req, whose own token does not count, sent from @address (IPv4 as ::ffff:a.b.c.d) at @now (s,
 * Unix time). */
void token_make(const struct token_key *key, const struct reddn_wire_req *req, const uint8_t address[16],
	uint64_t now, uint8_t token[8]);

/** Whether it was made in the time window of @now, or in one beside it, as clocks differ. */
bool token_right(const struct token_key *key, const struct reddn_wire_req *req, const uint8_t address[16],
	uint64_t now);

#endif
