/* SPDX-License-Identifier: BSD-2-Clause */
#include "protocol/token.h"

#include "util/cleanup.h"
#include "util/file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>

static const char purpose[16] = "reddn token 2";

static int fail(int error, char *why, size_t size, const char *words)
{
	snprintf(why, size, "%s", words);
	return error;
}

int token_key_read(const char *path, struct token_key *key, char *why, size_t why_size)
{
	CLEANUP(cleanup_close) int fd = file_open(path, O_RDONLY);
	uint8_t bytes[TOKEN_KEY_MAX + 2];
	long len = fd < 0 ? fd : file_read(fd, bytes, sizeof(bytes));
	int r = 0;

	if (len < 0)
		return fail((int)len, why, why_size, file_error((int)len));
	if ((len > 1 && memcmp(bytes + len - 2, "\r\n", 2) == 0) ||
		(len > 2 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0))
		r = fail(-EINVAL, why, why_size,
			"a key with a carriage return at its end, or a byte order mark, is another one; "
			"remove them");
	if (len && bytes[len - 1] == '\n')
		len--;
	if (r == 0 && len < TOKEN_KEY_MIN)
		r = fail(-EINVAL, why, why_size,
			"a key has at least 16 bytes; openssl rand -hex 32 makes one");
	if (r == 0 && len > TOKEN_KEY_MAX)
		r = fail(-EINVAL, why, why_size, "a key has at most 1024 bytes");
	if (r == 0) {
		memcpy(key->bytes, bytes, (size_t)len);
		key->len = (size_t)len;
	}
	explicit_bzero(bytes, sizeof(bytes));
	return r;
}

void token_key_wipe(struct token_key *key)
{
	explicit_bzero(key, sizeof(*key));
}

static void make(const struct token_key *key, const struct reddn_wire_req *req, const struct token_ends *ends,
	uint64_t window, uint8_t token[8])
{
	const uint32_t qpn = htobe32(ends->client_qpn);
	const uint16_t port = htobe16(ends->port);
	struct hmac_sha256_ctx hmac;

	window = htobe64(window);
	hmac_sha256_set_key(&hmac, key->len, key->bytes);
	hmac_sha256_update(&hmac, sizeof(purpose), (const uint8_t *)purpose);
	hmac_sha256_update(&hmac, sizeof(window), (const uint8_t *)&window);
	hmac_sha256_update(&hmac, sizeof(ends->client), ends->client);
	hmac_sha256_update(&hmac, sizeof(ends->gid), ends->gid);
	hmac_sha256_update(&hmac, sizeof(ends->server), ends->server);
	hmac_sha256_update(&hmac, sizeof(qpn), (const uint8_t *)&qpn);
	hmac_sha256_update(&hmac, sizeof(port), (const uint8_t *)&port);
	hmac_sha256_update(&hmac, offsetof(struct reddn_wire_req, token), (const uint8_t *)req);
	hmac_sha256_digest(&hmac, 8, token);
	explicit_bzero(&hmac, sizeof(hmac));
}

void token_make(const struct token_key *key, const struct reddn_wire_req *req, const struct token_ends *ends,
	uint64_t now, uint8_t token[8])
{
	make(key, req, ends, now / TOKEN_WINDOW_S, token);
}

bool token_valid(const struct token_key *key, const struct reddn_wire_req *req, const struct token_ends *ends,
	uint64_t now)
{
	uint64_t window = now / TOKEN_WINDOW_S;
	uint8_t token[8];
	int valid = 0;

	for (uint64_t w = window - 1; w != window + 2; w++) {
		make(key, req, ends, w, token);
		valid |= memeql_sec(token, req->token, sizeof(token));
	}
	explicit_bzero(token, sizeof(token));
	return valid;
}
