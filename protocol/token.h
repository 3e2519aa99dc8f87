/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * token.h - proof that a client has the key of a tenant: 8 bytes in the connect request (wire.h).
 *
 * A token is the beginning of an HMAC-SHA256 over the rest of the request, both ends of the connection and
 * the time in windows of 30 s. So a copied token works only for the same reply slots with the same rkey, at
 * the same server, for the queue pair that it was made for, for 90 seconds: whoever sends a copy has no part
 * in the connection that follows. reddn-wire(7) lists the bytes.
 *
 * The server takes the ends from its connection, not from the request.
 *
 * No allocation, no state. Checking a token takes the same time whichever byte is wrong.
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

/** Both ends of a connection, as the client and the server know them. */
struct token_ends {
	uint8_t client[16];  /* its address; IPv4 as ::ffff:a.b.c.d */
	uint8_t gid[16];     /* of the client: the source of its path */
	uint8_t server[16];  /* the address that the client connects to; IPv4 as ::ffff:a.b.c.d */
	uint16_t port;       /* that the client connects to */
	uint32_t client_qpn; /* the queue pair that its REQ names */
};

/**
 * Read the key in file @path: its bytes, without a line feed at the end. 0, or -errno and the reason in words
 * in @why: the file cannot be read, or is too short or too long for a key.
 */
int token_key_read(const char *path, struct token_key *key, char *why, size_t why_size);

/** Overwrite the key with zeroes. */
void token_key_wipe(struct token_key *key);

/** Make the token of @req for the connection between @ends at @now (s, Unix time). req->token is not part of
 * it. */
void token_make(const struct token_key *key, const struct reddn_wire_req *req, const struct token_ends *ends,
	uint64_t now, uint8_t token[8]);

/** True if req->token was made in the time window of @now or in one beside it, as clocks differ. */
bool token_valid(const struct token_key *key, const struct reddn_wire_req *req, const struct token_ends *ends,
	uint64_t now);

#endif
