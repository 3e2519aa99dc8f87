/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/pool.h"

#include "libclient/reddn.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, PENDING = -EINPROGRESS };

void mc_tcp_deinit(struct mc_tcp_get *get)
{
	free(get->value);
	*get = (struct mc_tcp_get){0};
}

int mc_tcp_reserve(struct mc_tcp_get *get, size_t len)
{
	char *p = len > get->room ? realloc(get->value, len) : get->value;

	if (!p)
		return -ENOMEM;
	get->value = p;
	if (len > get->room)
		get->room = len;
	return 0;
}

static int error_of(memcached_st *memc, memcached_return_t rc)
{
	int e = memcached_last_error_errno(memc);

	switch (rc) {
	case MEMCACHED_NOTFOUND:
	case MEMCACHED_END:
		return REDDN_MISS;
	case MEMCACHED_TIMEOUT:
		return -ETIMEDOUT;
	case MEMCACHED_BAD_KEY_PROVIDED:
	case MEMCACHED_KEY_TOO_BIG:
		return -EINVAL;
	case MEMCACHED_MEMORY_ALLOCATION_FAILURE:
		return -ENOMEM;
	case MEMCACHED_NO_SERVERS:
		return -ENOTCONN;
	case MEMCACHED_HOST_LOOKUP_FAILURE:
		return -EHOSTUNREACH;
	case MEMCACHED_CONNECTION_FAILURE:
	case MEMCACHED_SERVER_MARKED_DEAD:
	case MEMCACHED_SERVER_TEMPORARILY_DISABLED:
		return -ECONNREFUSED;
	default:
		return e > 0 ? -e : -EIO;
	}
}

static void take(struct mc_tcp_get *get, const memcached_result_st *result)
{
	size_t len = memcached_result_length(result);

	get->status = 0;
	if (mc_tcp_reserve(get, len + 1) < 0) { /* never NULL */
		get->status = -ENOMEM;
		return;
	}
	if (len)
		memcpy(get->value, memcached_result_value(result), len);
	get->len = len;
	get->cas = memcached_result_cas(result);
	get->flags = memcached_result_flags(result);
}

static struct mc_tcp_get *find(struct mc_tcp_get *const *gets, size_t n, const memcached_result_st *result)
{
	const char *key = memcached_result_key_value(result);
	size_t len = memcached_result_key_length(result);

	for (size_t i = 0; i < n; i++)
		if (gets[i]->status == PENDING && gets[i]->key_len == len &&
			memcmp(gets[i]->key, key, len) == 0)
			return gets[i];
	return NULL;
}

/* Asks for the keys and takes what comes, to the end, so that nothing is left for the next question. Returns
 * how it ended. */
static memcached_return_t ask(memcached_st *memc, struct mc_tcp_get *const *gets, size_t n)
{
	const char *keys[BATCH];
	size_t lens[BATCH];
	memcached_result_st result;
	memcached_return_t rc;

	for (size_t i = 0; i < n; i++) {
		keys[i] = gets[i]->key;
		lens[i] = gets[i]->key_len;
		gets[i]->status = PENDING;
	}
	rc = memcached_mget(memc, keys, lens, n);
	if (memcached_failed(rc))
		return rc;
	memcached_result_create(memc, &result);
	while (memcached_fetch_result(memc, &result, &rc)) {
		struct mc_tcp_get *get = find(gets, n, &result);

		if (get)
			take(get, &result);
	}
	memcached_result_free(&result);
	return rc;
}

static bool have_one_server(const memcached_st *memc, struct mc_tcp_get *const *gets, size_t n)
{
	uint32_t first = memcached_generate_hash(memc, gets[0]->key, gets[0]->key_len);

	for (size_t i = 1; i < n; i++)
		if (memcached_generate_hash(memc, gets[i]->key, gets[i]->key_len) != first)
			return false;
	return true;
}

static void ask_batch(memcached_st *memc, struct mc_tcp_get *const *gets, size_t n)
{
	memcached_return_t rc = ask(memc, gets, n);
	/* If a server was ejected meanwhile, another one may have been asked for the other keys, and
	 * answered: libmemcached calls that a success. */
	bool sure =
		n == 1 || (memcached_last_error(memc) == MEMCACHED_SUCCESS && have_one_server(memc, gets, n));

	for (size_t i = 0; i < n; i++) {
		if (gets[i]->status != PENDING)
			continue;
		if (!sure)
			rc = ask(memc, &gets[i], 1);
		if (gets[i]->status == PENDING)
			gets[i]->status = error_of(memc, rc);
	}
}

void mc_tcp_ask(memcached_st *memc, struct mc_tcp_get *const *gets, size_t n)
{
	for (size_t i = 0; i < n; i += BATCH)
		ask_batch(memc, gets + i, n - i < BATCH ? n - i : BATCH);
}
