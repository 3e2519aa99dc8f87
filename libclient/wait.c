/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"
#include "libclient/memory.h"
#include "libclient/part.h"
#include "libclient/public.h"
#include "libclient/queues.h"
#include "protocol/wire.h"
#include "util/clock.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>

/* Empty polls of reddn_wait before it yields the CPU, which takes a system call. */
enum { YIELD_EVERY = 4, MANY_RESULTS = 64 };

PUBLIC int reddn_fd(struct reddn *c)
{
	return c->connector.epoll;
}

static int arm(struct reddn *c)
{
	if (c->state != REDDN_UP)
		return 0;
	reddn_check_events(c);
	if (c->standby.wanted && reddn_standby_waits(&c->standby, clock_ns()))
		reddn_standby_step(c);
	else if (c->standby.wanted)
		reddn_standby_watch(c);
	return reddn_queues_arm(&c->session);
}

PUBLIC int reddn_arm(struct reddn *c)
{
	int r = 0;

	for (struct reddn *p = c; p && r == 0; p = reddn_next_of(c, p))
		r = arm(p);
	return r;
}

/* Events of the connection manager have come, perhaps */
static void wake(struct reddn *c)
{
	for (struct reddn *p = c; p; p = reddn_next_of(c, p))
		if (p->state == REDDN_UP)
			reddn_check_events(p);
}

PUBLIC int reddn_wait(struct reddn *c, struct reddn_result *res, int max, int timeout_ms)
{
	uint64_t start = clock_ns(), now = start;

	for (unsigned polls = 1;; polls++) {
		struct epoll_event ev;
		int64_t left = -1;
		int n = reddn_poll(c, res, max);

		/* Without room for a result it would wait for none. */
		if (n || !reddn_is_busy(c) || !max)
			return n;
		if (now - start < c->connector.opt.spin_us * 1000ull) {
			if (polls % YIELD_EVERY == 0)
				sched_yield();
			now = clock_ns();
			continue;
		}
		n = reddn_arm(c);
		if (n < 0)
			return n;
		n = reddn_poll(c, res, max);
		if (n)
			return n;
		if (timeout_ms >= 0) {
			left = timeout_ms - (int64_t)((clock_ns() - start) / 1000000);
			if (left <= 0)
				return 0;
		}
		if (epoll_wait(c->connector.epoll, &ev, 1, (int)left) < 0 && errno != EINTR)
			return -errno;
		wake(c);
	}
}

/* Begin a call that waits: nothing may be outstanding. Releases the results that the caller still has. */
static int begin(struct reddn *c)
{
	struct reddn_result res;

	int r;

	if (reddn_is_busy(c))
		return c->broken ? c->broken : -EBUSY;
	r = reddn_poll(c, &res, 1);
	/* The server refused before, and is being asked again: this caller has the time to wait */
	if (r < 0 && c->state == REDDN_AWAY && c->connector.state != REDDN_CONNECT_IDLE) {
		reddn_connector_wait(&c->connector);
		r = reddn_poll(c, &res, 1);
	}
	return r;
}

/* A caller who waits for a reply can also wait for the reason why there is none. */
static int end(struct reddn *c, int r)
{
	for (struct reddn *p = c; p; p = reddn_next_of(c, p))
		p->give_up = 0;
	if (r == -EINPROGRESS || (r < 0 && r == c->loss && r != -ETIMEDOUT))
		reddn_end_reason(c);
	return r;
}

static void give_up(struct reddn *c, int r)
{
	if (r == 0)
		reddn_break(c, -ETIMEDOUT, "no reply in %u ms", c->connector.opt.timeout_ms);
	else
		reddn_break(c, r, "cannot wait for a reply: %s", strerror(-r));
	c->give_up = r ? r : -ETIMEDOUT;
}

/* Wait for results of what a call has submitted. If there are none, its requests end, and so do the sessions
 * that they were sent with: who knows when the replies come. */
static int wait_for_some(struct reddn *c, struct reddn_result *res, int max)
{
	int r = reddn_wait(c, res, max, (int)c->connector.opt.timeout_ms);

	for (struct reddn *p = c; p && r <= 0; p = reddn_next_of(c, p))
		if (p->busy)
			give_up(p, r);
	return r;
}

/* Wait for the only outstanding request. Returns the status of its result. */
static int finish(struct reddn *c, struct reddn_result *res)
{
	int r = wait_for_some(c, res, 1);

	while (r <= 0 && reddn_is_busy(c))
		r = reddn_poll(c, res, 1);
	return r < 0 ? r : res->status;
}

PUBLIC int reddn_get(struct reddn *c, const void *key, size_t key_len, void *buf, size_t buf_len, size_t *len)
{
	struct reddn_result res;
	int r = begin(c);

	*len = 0;
	if (r == 0)
		r = reddn_get_submit(c, key, key_len, 0);
	if (r == 0)
		r = finish(c, &res);
	if (r)
		return end(c, r);
	*len = res.length;
	if (res.length > buf_len)
		return -EMSGSIZE;
	if (res.length)
		memcpy(buf, res.value, res.length);
	return 0;
}

/* A call that asks for many keys, and how far it is */
struct many {
	union {
		struct reddn_mget *get;
		struct reddn_exists *exists;
		struct reddn_into *into;
	};
	enum reddn_shape shape;
	bool to_first;             /* no key is asked for behind one that is missing: that is `n` */
	size_t n, next, submitted; /* keys; the next one; those without a result */
};

static struct reddn_key many_key(const struct many *m, size_t i)
{
	if (m->shape == REDDN_TABLE)
		return (struct reddn_key){m->get[i].key, m->get[i].key_len};
	if (m->shape == REDDN_TABLE_INTO)
		return (struct reddn_key){m->into[i].key, m->into[i].key_len};
	return (struct reddn_key){m->exists[i].key, m->exists[i].key_len};
}

static void take_value(struct reddn_mget *key, const struct reddn_result *res)
{
	key->status = res->status;
	key->len = res->length;
	key->as_of = res->as_of;
	key->version = res->version;
	if (res->length > key->buf_len)
		key->status = -EMSGSIZE;
	else if (res->length)
		memcpy(key->buf, res->value, res->length);
}

static void many_take(struct many *m, const struct reddn_result *res)
{
	size_t i = res->cookie;

	if (m->shape == REDDN_TABLE) {
		take_value(&m->get[i], res);
		return;
	}
	if (m->shape == REDDN_TABLE_INTO) {
		m->into[i].status = res->status;
		m->into[i].len = res->length;
		m->into[i].as_of = res->as_of;
		return;
	}
	m->exists[i].status = res->status;
	m->exists[i].as_of = res->as_of;
	if (m->to_first && res->status && i < m->n)
		m->n = i;
}

static int many_submit_keys(struct reddn *c, const struct many *m, const struct reddn_key *some, unsigned k)
{
	const struct reddn_into *into = &m->into[m->next];

	if (m->shape == REDDN_TABLE)
		return reddn_mget_submit(c, some, k, m->next);
	if (m->shape == REDDN_EXISTS)
		return reddn_exists_submit(c, some, k, m->next);
	return reddn_get_into_submit(c, into->key, into->key_len, into->at, into->room, m->next);
}

/* Bytes of a key that any session takes which may be asked: a table has been replaced by another one,
 * perhaps, and parts with requests do not have that yet */
static uint32_t many_longest(const struct reddn *c, const struct many *m)
{
	uint32_t longest = c->is_whole ? UINT32_MAX : c->session.geo.max_key;

	for (const struct reddn *p = c->parts; p; p = reddn_next_of(c, p))
		if ((p->busy || !p->is_part) && p->session.info.shape == m->shape &&
			p->session.geo.max_key < longest)
			longest = p->session.geo.max_key;
	return longest;
}

/* Submit keys until there is no room. One that no request can have gets its status. */
static int many_submit(struct reddn *c, struct many *m)
{
	const uint32_t longest = many_longest(c, m), most = reddn_part_most(c, m->shape);
	struct reddn_key some[REDDN_WIRE_KEYS];
	struct reddn *to;
	int r = 0;

	/* the session is one with another host by now, which does not answer that */
	if (m->next < m->n && !most)
		return reddn_part_of_keys(c, m->shape, 1, &to);
	while (m->next < m->n && r == 0) {
		struct reddn_result none = {.cookie = m->next};
		unsigned k = 0;

		for (; k < most && m->next + k < m->n; k++) {
			some[k] = many_key(m, m->next + k);
			none.status = some[k].key_len ? -EMSGSIZE : -EINVAL;
			if (!some[k].key_len || some[k].key_len > longest)
				break;
		}
		if (!k) {
			many_take(m, &none);
			m->next++;
			continue;
		}
		r = many_submit_keys(c, m, some, k);
		m->next += r == 0 ? k : 0;
		m->submitted += r == 0 ? k : 0;
	}
	return r == -EAGAIN ? 0 : r;
}

/* -errno: the server refuses a session without which there is no answer. Of several shards, those that do not
 * refuse have answers. */
static int many_refused(const struct reddn *c, const struct many *m)
{
	int r = c->session.info.shape == m->shape ? c->broken : 0;

	for (const struct reddn *p = c->is_whole ? NULL : c->parts; p && r == 0; p = p->next_part)
		r = p->session.info.shape == m->shape && m->shape == REDDN_EXISTS ? p->broken : 0;
	return r;
}

static int many_ask(struct reddn *c, struct many *m)
{
	struct reddn_result res[MANY_RESULTS];
	int r = many_submit(c, m);

	while (r == 0 && m->submitted) {
		r = wait_for_some(c, res, MANY_RESULTS);
		for (int i = 0; i < r; i++, m->submitted--)
			many_take(m, &res[i]);
		reddn_release(c);
		r = r == 0 ? -ETIMEDOUT : r < 0 ? r : many_refused(c, m);
		if (r == 0)
			r = many_submit(c, m);
	}
	/* Results of keys that the caller never submitted are not for its next reddn_poll(). */
	while (r < 0 && reddn_is_busy(c))
		reddn_poll(c, res, MANY_RESULTS);
	return r;
}

/* Without keys nothing is submitted that could be refused */
static int many_run(struct reddn *c, struct many *m)
{
	struct reddn *to;
	int r = reddn_part_most(c, m->shape) ? begin(c) : reddn_part_of_keys(c, m->shape, 1, &to);

	return end(c, r == 0 ? many_ask(c, m) : r);
}

PUBLIC int reddn_mget(struct reddn *c, struct reddn_mget *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		keys[i].len = 0;
	return many_run(c, &(struct many){.get = keys, .shape = REDDN_TABLE, .n = n});
}

PUBLIC int reddn_mget_into(struct reddn *c, struct reddn_into *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (reddn_memory_find(c, keys[i].at, keys[i].room) < 0)
			return -EFAULT;
	return many_run(c, &(struct many){.into = keys, .shape = REDDN_TABLE_INTO, .n = n});
}

PUBLIC int reddn_get_into(
	struct reddn *c, const void *key, size_t key_len, void *at, size_t room, size_t *len)
{
	struct reddn_into one = {.key = key, .key_len = key_len, .at = at, .room = room};
	int r = reddn_mget_into(c, &one, 1);

	*len = one.len;
	return r < 0 ? r : one.status;
}

PUBLIC int reddn_exists(struct reddn *c, struct reddn_exists *keys, size_t n)
{
	return many_run(c, &(struct many){.exists = keys, .shape = REDDN_EXISTS, .n = n});
}

PUBLIC int reddn_first_missing(struct reddn *c, struct reddn_exists *keys, size_t n, size_t *first)
{
	struct many m = {.exists = keys, .shape = REDDN_EXISTS, .to_first = true, .n = n};
	int r = many_run(c, &m);

	*first = m.n;
	/* a key that is too long for the table is not in it */
	if (r == 0 && m.n < n && keys[m.n].status < 0 && keys[m.n].status != -EMSGSIZE)
		r = keys[m.n].status;
	return r;
}

/* As begin(), of the handle that puts so */
static int begin_put(struct reddn *c, enum reddn_shape shape, struct reddn **puts)
{
	int r = reddn_is_busy(c) ? -EBUSY : reddn_part_of_puts(c, shape, puts);

	reddn_release(c);
	return r < 0 ? r : begin(*puts);
}

/* With the result @r of the submission. *@version, of one with a condition: that which the key has */
static int finish_put(struct reddn *c, int r, uint64_t *version)
{
	struct reddn_result res = {.version = 0};

	r = r == 0 ? finish(c, &res) : r;
	if (r == REDDN_CONFLICT)
		*version = res.version;
	return end(c, r);
}

PUBLIC int reddn_put(struct reddn *c, const void *key, size_t key_len, const void *value, size_t value_len)
{
	struct reddn *puts = c;
	int r = begin_put(c, REDDN_PUT, &puts);

	return finish_put(puts, r == 0 ? reddn_put_submit(puts, key, key_len, value, value_len, 0) : r, NULL);
}

PUBLIC int reddn_put_ttl(struct reddn *c, const void *key, size_t key_len, const void *value,
	size_t value_len, uint64_t ttl_ms)
{
	struct reddn *puts = c;
	int r = begin_put(c, REDDN_PUT, &puts);

	if (r == 0)
		r = reddn_put_ttl_submit(puts, key, key_len, value, value_len, ttl_ms, 0);
	return finish_put(puts, r, NULL);
}

PUBLIC int reddn_delete(struct reddn *c, const void *key, size_t key_len)
{
	struct reddn *puts = c;
	int r = begin_put(c, REDDN_PUT, &puts);

	return finish_put(puts, r == 0 ? reddn_delete_submit(puts, key, key_len, 0) : r, NULL);
}

PUBLIC int reddn_put_if(struct reddn *c, const void *key, size_t key_len, const void *value, size_t value_len,
	uint64_t *version)
{
	struct reddn *puts = c;
	int r = begin_put(c, REDDN_PUT_IF, &puts);

	if (r == 0)
		r = reddn_put_if_submit(c, key, key_len, value, value_len, *version, 0);
	return finish_put(puts, r, version);
}

PUBLIC int reddn_delete_if(struct reddn *c, const void *key, size_t key_len, uint64_t *version)
{
	struct reddn *puts = c;
	int r = begin_put(c, REDDN_PUT_IF, &puts);

	if (r == 0)
		r = reddn_delete_if_submit(c, key, key_len, *version, 0);
	return finish_put(puts, r, version);
}

PUBLIC int reddn_call(
	struct reddn *c, const struct reddn_arg *args, unsigned nargs, void *buf, size_t buf_len)
{
	struct reddn_result res;
	int r = begin(c);

	if (r == 0)
		r = reddn_call_submit(c, args, nargs, 0);
	if (r == 0)
		r = finish(c, &res);
	if (r == 0)
		memcpy(buf, res.value, res.length < buf_len ? res.length : buf_len);
	return end(c, r);
}
