/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/options.h"

#include "libclient/public.h"
#include "protocol/wire.h"
#include "util/array.h"

#include <errno.h>
#include <string.h>

/* TIMEOUT_MAX: 24 days. poll() and epoll_wait() take an int, and a negative one for no limit */
enum { TIMEOUT_DEFAULT = 5000, TIMEOUT_MAX = 24 * 86400 * 1000, RETRY_DEFAULT = 1000, SPIN_DEFAULT = 20 };

#define INVALID(...) reddn_fail(-EINVAL, err, errlen, __VA_ARGS__)

static int read_key(const struct reddn_options *opt, struct token_key *key, char *err, size_t errlen)
{
	char why[128];
	int r;

	if (opt->token_file && opt->token_key)
		return INVALID("token_file and token_key are both given");
	if (opt->token_key && (opt->token_key_len < TOKEN_KEY_MIN || opt->token_key_len > TOKEN_KEY_MAX))
		return INVALID("token_key_len %zu: a key has %d to %d bytes", opt->token_key_len,
			TOKEN_KEY_MIN, TOKEN_KEY_MAX);
	if (opt->token_key) {
		memcpy(key->bytes, opt->token_key, opt->token_key_len);
		key->len = opt->token_key_len;
	}
	if (!opt->token_file)
		return 0;
	r = token_key_read(opt->token_file, key, why, sizeof(why));
	return r < 0 ? INVALID("key file %s: %s", opt->token_file, why) : 0;
}

static int check(const struct reddn_options *opt, char *err, size_t errlen)
{
	if (!opt->host || !opt->offload)
		return INVALID("options lack a host or an offload");
	if (!*opt->offload || strlen(opt->offload) >= sizeof(((struct reddn_wire_req *)0)->offload))
		return INVALID("offload \"%s\": a name has 1 to 23 bytes", opt->offload);
	if (opt->depth > REDDN_WIRE_MAX_DEPTH)
		return INVALID("depth %u: up to %u", opt->depth, REDDN_WIRE_MAX_DEPTH);
	if (opt->connections > REDDN_WIRE_CONNECTIONS)
		return INVALID("connections %u: up to %d", opt->connections, REDDN_WIRE_CONNECTIONS);
	if (opt->connections * opt->depth > UINT16_MAX)
		return INVALID("%u connections of depth %u: up to %d requests in all", opt->connections,
			opt->depth, UINT16_MAX);
	if (opt->flags & ~(REDDN_NO_RECONNECT | REDDN_REPEATABLE | REDDN_INTO))
		return INVALID("flags 0x%x: this library knows 0x%x", opt->flags,
			REDDN_NO_RECONNECT | REDDN_REPEATABLE | REDDN_INTO);
	if (opt->policy > REDDN_SPREAD)
		return INVALID("policy %u: this library knows 0 and %d", opt->policy, REDDN_SPREAD);
	if (opt->shards > REDDN_SHARDS_REDIS)
		return INVALID("shards %u: this library knows 0 and %d", opt->shards, REDDN_SHARDS_REDIS);
	if (opt->shards && (opt->flags & REDDN_INTO))
		return INVALID("shards: a handle with REDDN_INTO has none");
	if (opt->slot_size % 64)
		return INVALID("slot_size %u: must be a multiple of 64", opt->slot_size);
	for (unsigned i = 0; i < COUNT(opt->reserved); i++)
		if (opt->reserved[i] || opt->reserved32)
			return INVALID("reserved options must be 0");
	return 0;
}

int reddn_options_read(struct reddn_options *opt, struct token_key *key, char *err, size_t errlen)
{
	int r = check(opt, err, errlen);

	if (r < 0)
		return r;
	opt->port = opt->port ? opt->port : REDDN_WIRE_PORT;
	opt->connections = opt->connections ? opt->connections : 1;
	opt->timeout_ms = opt->timeout_ms ? opt->timeout_ms : TIMEOUT_DEFAULT;
	opt->timeout_ms = opt->timeout_ms < TIMEOUT_MAX ? opt->timeout_ms : TIMEOUT_MAX;
	opt->retry_ms = opt->retry_ms ? opt->retry_ms : RETRY_DEFAULT;
	opt->spin_us = opt->spin_us ? opt->spin_us : SPIN_DEFAULT;
	return read_key(opt, key, err, errlen);
}
