/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/pool.h"
#include "libclient/public.h"
#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

/* YIELD_EVERY: empty polls before it yields the CPU. SLEEP_MS: longest time without a look at the clock. */
enum { YIELD_EVERY = 4, SLEEP_MS = 50, BATCH = 64 };

/* libmemcached sends others as they are, unless MEMCACHED_BEHAVIOR_VERIFY_KEY is set. The binary protocol has
 * room for any byte */
static bool is_key(const struct reddn_mc *mc, const char *key, size_t key_len, size_t space_len)
{
	return key_len && space_len + key_len <= MEMCACHED_KEY_MOST &&
	       (key_is_text(key, key_len) ||
		       memcached_behavior_get(mc->memc, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL));
}

PUBLIC int reddn_mc_submit(struct reddn_mc *mc, const char *key, size_t key_len, uint64_t cookie)
{
	struct mc_ask *a;
	struct mc_tcp_get room;
	const char *space;
	size_t space_len;
	bool behind;

	space = mc_pool_namespace(mc, &space_len);
	if (!is_key(mc, key, key_len, space_len))
		return -EINVAL;
	a = mc_queue_take(&mc->idle);
	if (!a)
		return -EAGAIN;
	room = a->tcp;
	*a = (struct mc_ask){.key_len = space_len + key_len,
		.space_len = space_len,
		.cookie = cookie,
		.asked_ms = clock_tick_ms(),
		.tcp = room};
	memcpy(a->key, space, space_len);
	memcpy(a->key + space_len, key, key_len);
	mc->busy++;
	mc->stats.gets++;
	a->server = mc_pool_server(mc, key, key_len, &behind);
	if (behind)
		mc_send_tcp(mc, a, &mc->stats.without_nic);
	else
		mc_send(mc, a);
	return 0;
}

PUBLIC int reddn_mc_poll(struct reddn_mc *mc, struct reddn_mc_result *res, int max)
{
	return max < 0 ? -EINVAL : mc_ask_poll(mc, res, max);
}

PUBLIC void reddn_mc_release(struct reddn_mc *mc)
{
	mc_ask_release(mc);
}

/* Waits for a NIC. Returns results that came before it could sleep. */
static int sleep_on_nics(struct reddn_mc *mc, struct reddn_mc_result *res, int max, int64_t left_ms)
{
	nfds_t k = 0;
	int n;

	for (uint32_t i = 0; i < mc->nservers; i++) {
		struct mc_nic *both[] = {&mc->servers[i].nic, &mc->servers[i].pieces};

		for (unsigned b = 0; b < COUNT(both); b++)
			if (both[b]->flying && !both[b]->lost && reddn_arm(both[b]->c) == 0)
				mc->fds[k++] = (struct pollfd){.fd = reddn_fd(both[b]->c), .events = POLLIN};
	}
	n = mc_ask_poll(mc, res, max);
	if (n == 0)
		poll(mc->fds, k, (int)(left_ms < SLEEP_MS ? left_ms : SLEEP_MS));
	return n;
}

PUBLIC int reddn_mc_wait(struct reddn_mc *mc, struct reddn_mc_result *res, int max, int timeout_ms)
{
	const uint64_t start = clock_ns();

	if (max <= 0)
		return max ? -EINVAL : 0;
	for (unsigned polls = 1;; polls++) {
		int n = mc_ask_poll(mc, res, max);
		uint64_t waited;

		if (n || !mc->busy)
			return n;
		waited = clock_ns() - start;
		if (waited < mc->options.spin_us * 1000ull) {
			if (polls % YIELD_EVERY == 0)
				sched_yield();
			continue;
		}
		if (timeout_ms >= 0 && waited / 1000000 >= (unsigned)timeout_ms)
			return 0;
		n = sleep_on_nics(
			mc, res, max, timeout_ms < 0 ? SLEEP_MS : timeout_ms - (int64_t)(waited / 1000000));
		if (n)
			return n;
	}
}

PUBLIC int reddn_mc_get(struct reddn_mc *mc, const char *key, size_t key_len, struct reddn_mc_result *res)
{
	int r;

	if (mc->busy)
		return -EBUSY;
	mc_ask_release(mc);
	r = reddn_mc_submit(mc, key, key_len, 0);
	*res = (struct reddn_mc_result){.status = r};
	if (r == 0)
		reddn_mc_wait(mc, res, 1, -1);
	return res->status;
}

PUBLIC int reddn_mc_mget(struct reddn_mc *mc, const char *const *keys, const size_t *key_lens, size_t n,
	void (*each)(void *arg, const struct reddn_mc_result *res), void *arg)
{
	struct reddn_mc_result res[BATCH];
	size_t sent = 0;
	int first = 0;

	if (mc->busy)
		return -EBUSY;
	mc_ask_release(mc);
	while (sent < n || mc->busy) {
		int k = 0, r = 0;

		while (sent < n && (r = reddn_mc_submit(mc, keys[sent], key_lens[sent], sent)) == 0)
			sent++;
		if (r < 0 && r != -EAGAIN)
			res[k++] = (struct reddn_mc_result){.cookie = sent++, .status = r};
		else
			k = reddn_mc_wait(mc, res, BATCH, -1);
		for (int i = 0; i < k; i++) {
			if (res[i].status < 0 && !first)
				first = res[i].status;
			each(arg, &res[i]);
		}
		mc_ask_release(mc);
	}
	return first;
}
