/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"
#include "libclient/memory.h"
#include "libclient/part.h"
#include "libclient/public.h"
#include "libclient/put.h"
#include "libclient/queues.h"
#include "libclient/reply.h"
#include "libclient/shards.h"
#include "protocol/table-format.h"
#include "protocol/wire.h"
#include "util/clock.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/*
 * Memory of the caller that values go to (REDDN_INTO). The answer to a get is a message, and the receive that
 * takes it is posted with the request: its scatter list has the slot for the head of the record and the key,
 * then the place of the caller, then a sink for what is longer. So nobody but the own NIC writes there, and
 * only while that receive is posted. The result of a request is reported when its receive has completed, or
 * when the queue pair that has it was destroyed: then no late reply finds it. So a session that is left, also
 * of a table that was replaced, ends before its requests are sent again or have a result (reconnect.c).
 *
 * All replies share the sink. It is read only for the end of a key that is longer than the one that was asked
 * for and its place: to tell a key with the same fingerprint, which is a miss, from a record that was reused.
 */

/* Post the receive for the reply to @q, which is the next one of the connection. 0 or -errno. */
static int reddn_into_receive(const struct reddn_session *s, struct reddn_connection *k,
	const struct reddn_slot *slot, const struct reddn_request *q)
{
	const size_t head = reddn_into_at(&s->geo) + sizeof(struct reddn_record) + q->len;
	struct ibv_sge places[REDDN_INTO_PLACES] = {
		{.addr = (uintptr_t)slot->mem, .length = (uint32_t)head, .lkey = s->mr->lkey},
		{.addr = (uintptr_t)q->into.at,
			.length = q->into.room,
			.lkey = s->memory[q->into.memory]->lkey},
		{.addr = (uintptr_t)s->sink,
			.length = (uint32_t)reddn_session_sink_len(s),
			.lkey = s->sunk->lkey}};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = (uintptr_t)k, .sg_list = places, .num_sge = REDDN_INTO_PLACES};

	/* A NIC takes a segment without bytes for one of 2^31 */
	if (!q->into.room) {
		places[1] = places[2];
		wr.num_sge--;
	}
	return -ibv_post_recv(k->qp, &wr, &bad);
}

/* True if its next number has a free slot, and the SQ room for what follows up to the next signal. */
static bool can_send(const struct reddn *c, const struct reddn_connection *k)
{
	return !k->sent_slot->request &&
	       (k->until_signal > 1 || k->sent + c->session.signal_every - k->reclaimed <= c->session.wqes);
}

/* The next connection that can send, or NULL. One after the other, so that all of them are at work. */
static struct reddn_connection *find_connection(const struct reddn *c)
{
	struct reddn_connection *k = c->session.turn;

	for (unsigned i = 0; i < c->session.info.connections; i++, k = k->next)
		if (can_send(c, k))
			return k;
	return NULL;
}

/* What was known before the reply: the epoch is that of the session, and the age of most tables is unknown.
 */
static void keep_seen(const struct reddn *c, struct reddn_request *q)
{
	q->before.moves = c->session.seen.moves;
	if (LIKELY(!c->session.dated))
		return;
	q->before = c->session.seen;
	q->dated = true;
}

/* What the reply is compared with: no record yet, and what was known before it */
static void expect_reply(const struct reddn *c, struct reddn_request *q, uint8_t *record)
{
	memset(record, 0, 8);
	keep_seen(c, q);
}

static void encode_key(const struct reddn *c, struct reddn_request *q, uint8_t *encoded, uint8_t *record)
{
	reddn_request_build(&c->session.geo, q->key, q->len, encoded);
	expect_reply(c, q, record);
}

static void encode_raw(const struct reddn *c, const struct reddn_request *q, struct reddn_slot *s)
{
	memcpy(s->encoded, q->key, q->len);
	memset(s->mem, 0, c->session.info.reply_max);
}

/* Every reply has all parts. */
static void encode_exists(const struct reddn *c, struct reddn_request *q, uint8_t *encoded)
{
	reddn_exists_build(&c->session.geo, q->key, q->len, encoded, &q->mark);
	keep_seen(c, q);
}

static void encode_keys(const struct reddn *c, struct reddn_request *q, struct reddn_slot *s)
{
	const struct reddn_geometry *g = &c->session.geo;
	uint8_t *encoded = s->encoded;
	unsigned k = 0;

	for (; q; q = q->next, k++) {
		if (q->kind == REDDN_KEY_EXISTS)
			encode_exists(c, q, encoded);
		else
			encode_key(c, q, encoded, s->mem + reddn_record_at(g, k));
		encoded += reddn_request_len(g);
	}
	memset(encoded, 0, (g->keys - k) * reddn_request_len(g));
}

static void encode(const struct reddn *c, struct reddn_request *q, struct reddn_slot *s)
{
	if (q->kind == REDDN_RAW)
		encode_raw(c, q, s);
	else if (q->kind == REDDN_ONE_KEY)
		encode_key(c, q, s->encoded, s->mem + REDDN_SLOT_RECORD);
	else
		encode_keys(c, q, s);
}

/*
 * The record in pieces, with the value from the caller's memory. That is read until the answer comes, which a
 * server sends when it has all of the message, or until the queue pair is destroyed. If the ACK of a message
 * that was answered is lost, the NIC sends once more what is there then, and the other NIC drops it.
 */
static int post_gathered(const struct reddn_session *s, struct reddn_connection *k,
	const struct reddn_request *q, const uint8_t *bytes, bool signaled)
{
	const struct reddn_record *r = reddn_put_record(q->key);
	const uint8_t *value = r->bytes + r->key_len, *rest = value + r->val_len, *end = q->key + q->len;
	struct ibv_sge places[REDDN_PUT_PLACES] = {
		{.addr = (uintptr_t)bytes, .length = (uint32_t)(value - bytes), .lkey = s->puts->lkey},
		{.addr = (uintptr_t)q->put.value,
			.length = r->val_len,
			.lkey = s->memory[q->put.memory]->lkey},
		{.addr = (uintptr_t)rest, .length = (uint32_t)(end - rest), .lkey = s->puts->lkey}};

	return reddn_post_places(k, places, rest < end ? REDDN_PUT_PLACES : REDDN_PUT_PLACES - 1, signaled);
}

/* Without an answer there is one that the key is not in the bucket. */
static int post_put(const struct reddn *c, struct reddn_connection *k, struct reddn_request *q,
	const struct reddn_slot *s, bool signaled)
{
	const struct reddn_geometry *g = &c->session.geo;
	uint8_t *bytes = reddn_put_address(g, q->key, &q->put);
	uint32_t payload = q->kind == REDDN_RECORD ? q->len - REDDN_PUT_RECORD : 0;

	memset(s->mem, 0xff, sizeof(struct reddn_wire_put_if));
	if (q->put.value)
		return post_gathered(&c->session, k, q, bytes, signaled);
	return reddn_post_request(&c->session, k, bytes, g->header + payload, c->session.puts, signaled);
}

/* No other number is answered before it is */
static int post_into(const struct reddn *c, struct reddn_connection *k, struct reddn_request *q,
	const struct reddn_slot *s, bool signaled)
{
	const struct reddn_geometry *g = &c->session.geo;
	const uint32_t number = htobe32((uint32_t)k->sent), other = ~number;
	int r;

	encode_key(c, q, s->encoded, s->mem + reddn_into_at(g));
	memcpy(s->encoded + reddn_request_len(g), &number, sizeof(number));
	memcpy(s->mem + REDDN_INTO_NUMBER, &other, sizeof(other));
	r = reddn_into_receive(&c->session, k, s, q);
	return r < 0 ? r
		     : reddn_post_request(&c->session, k, s->encoded, c->session.info.request_len,
			       c->session.mr, signaled);
}

static int post(const struct reddn *c, struct reddn_connection *k, struct reddn_request *q,
	struct reddn_slot *s, bool signaled)
{
	if (reddn_request_is_put(q))
		return post_put(c, k, q, s, signaled);
	if (q->kind == REDDN_KEY_INTO)
		return post_into(c, k, q, s, signaled);
	encode(c, q, s);
	return reddn_post_request(
		&c->session, k, s->encoded, c->session.info.request_len, c->session.mr, signaled);
}

static NOINLINE __attribute__((cold)) void post_failed(struct reddn *c, int error)
{
	reddn_break(c, -EIO, "cannot post a request: %s", strerror(error));
}

static void advance(
	struct reddn *c, struct reddn_connection *k, struct reddn_slot *s, struct reddn_request *q)
{
	s->request = q;
	k->sent_slot = s->next;
	k->sent++;
	c->session.turn = k->next;
}

/* Send @q and those that are linked to it, one for each key. */
static void send_request(struct reddn *c, struct reddn_connection *k, struct reddn_request *q)
{
	struct reddn_slot *s = k->sent_slot;
	bool signaled = k->until_signal == 1;
	int r;

	r = post(c, k, q, s, signaled);
	k->until_signal = signaled ? c->session.signal_every : k->until_signal - 1;
	advance(c, k, s, q);
	if (r < 0)
		post_failed(c, -r);
}

/* It can have a number together with others of its kind. */
static bool is_of_several(const struct reddn_request *q)
{
	return q->kind == REDDN_SOME_KEY || q->kind == REDDN_KEY_EXISTS;
}

/* Take as many requests from the retry queue as one number has. Returns the first. */
static struct reddn_request *take_retries(struct reddn *c)
{
	struct reddn_request *first = reddn_queue_take(&c->retry), *last = first;

	for (unsigned n = 1; n < c->session.info.keys && is_of_several(first) && c->retry.first &&
			     c->retry.first->kind == first->kind;
		n++)
		last = last->next = reddn_queue_take(&c->retry);
	return first;
}

void reddn_send_retries(struct reddn *c)
{
	struct reddn_connection *k;

	while (c->retry.first && c->state == REDDN_UP && (k = find_connection(c)))
		send_request(c, k, take_retries(c));
}

/*
 * The connection that takes the next request; or NULL, with the reason in @r: 0, there is no session, and the
 * request waits for the next one.
 */
static struct reddn_connection *begin(struct reddn *c, int *r)
{
	struct reddn_connection *k = NULL;

	*r = c->broken;
	if (c->broken || c->state != REDDN_UP)
		return NULL;
	/* Retries come first. */
	if (c->retry.first)
		reddn_send_retries(c);
	if (!c->retry.first && c->state == REDDN_UP)
		k = find_connection(c);
	*r = k || c->state != REDDN_UP ? 0 : -EAGAIN;
	return k;
}

/* The caller knows that there is a free one, and copies what it asks for. */
static struct reddn_request *new_request(
	struct reddn *c, size_t len, uint64_t cookie, enum reddn_request_kind kind)
{
	struct reddn_request *q = c->free_request;

	c->free_request = q->next_free;
	q->cookie = cookie;
	q->len = (uint32_t)len;
	q->kind = (uint8_t)kind;
	q->retries = 0;
	q->losses = 0;
	q->mark = 0;
	q->dated = false;
	c->busy++;
	return q;
}

/* If this fails, the request is one of those that were outstanding. */
static void go(struct reddn *c, struct reddn_connection *k, struct reddn_request *q)
{
	if (k)
		send_request(c, k, q);
	else
		reddn_queue_add(&c->retry, q);
	if (c->standby.unwatched)
		reddn_standby_watch(c);
}

static int submit(
	struct reddn *c, const void *bytes, size_t len, uint64_t cookie, enum reddn_request_kind kind)
{
	struct reddn_request *q;
	struct reddn_connection *k;
	int r;

	k = begin(c, &r);
	if (r < 0)
		return r;
	if (!c->free_request)
		return c->is_whole ? -EINVAL : -EAGAIN;
	q = new_request(c, len, cookie, kind);
	memcpy(q->key, bytes, len);
	go(c, k, q);
	return 0;
}

static int check_key(const struct reddn *c, enum reddn_shape shape, size_t key_len)
{
	if (!key_len || c->session.info.shape != shape)
		return -EINVAL;
	return key_len > c->session.geo.max_key ? -EMSGSIZE : 0;
}

/* With shards, it is the one that has it */
static struct reddn *choose_shard(struct reddn *whole, const void *key, size_t key_len)
{
	whole->errmsg[0] = '\0';
	return whole->asked = reddn_shard_of(whole, key, key_len);
}

static NOINLINE int submit_key(struct reddn *c, const void *key, size_t key_len, uint64_t cookie)
{
	int r;

	if (c->is_whole)
		return reddn_get_submit(choose_shard(c, key, key_len), key, key_len, cookie);
	r = check_key(c, REDDN_TABLE, key_len);
	c->asked = NULL;
	return r < 0 ? r : submit(c, key, key_len, cookie, reddn_kind_of_keys(&c->session.geo));
}

static NOINLINE struct reddn_place copy_long(
	const struct reddn *c, struct reddn_request *q, const void *key, size_t key_len)
{
	memcpy(q->key, key, key_len);
	return reddn_hash_key(c->session.geo.seed, c->session.geo.buckets, key, key_len);
}

/* Copy the key, and return its place */
static struct reddn_place copy_key(
	const struct reddn *c, struct reddn_request *q, const void *key, size_t key_len)
{
	struct reddn_place p;

	if (!short_is(key_len))
		return copy_long(c, q, key, key_len);
	p = reddn_hash_key(c->session.geo.seed, c->session.geo.buckets, key, key_len);
	short_copy(q->key, key, key_len);
	return p;
}

/* A number with one key has a free request if it has a free slot: there are as many. */
static int submit_usual(struct reddn *c, struct reddn_connection *k, struct reddn_slot *s, const void *key,
	size_t key_len, uint64_t cookie, bool signaled)
{
	struct reddn_request *q = new_request(c, key_len, cookie, REDDN_ONE_KEY);
	struct reddn_place place = copy_key(c, q, key, key_len);
	uint8_t *encoded = s->encoded;
	int r;

	reddn_request_write(&c->session.geo, &place, encoded);
	expect_reply(c, q, s->mem + REDDN_SLOT_RECORD);
	r = reddn_post_usual(&c->session, k, encoded, signaled);
	k->until_signal = signaled ? c->session.signal_every : k->until_signal - 1;
	advance(c, k, s, q);
	if (!LIKELY(!r))
		post_failed(c, r);
	return 0;
}

static NOINLINE INLINED int submit_signaled(
	struct reddn *c, struct reddn_connection *k, const void *key, size_t key_len, uint64_t cookie)
{
	if (!can_send(c, k))
		return submit_key(c, key, key_len, cookie);
	return submit_usual(c, k, k->sent_slot, key, key_len, cookie, true);
}

/* What is usual is done here, and all that is rare, or decided once for a handle, by submit_key(). */
PUBLIC INLINED int reddn_get_submit(struct reddn *c, const void *key, size_t key_len, uint64_t cookie)
{
	struct reddn_connection *k;
	struct reddn_slot *s;

	if (c->exceptional || key_len - 1 >= c->session.usual_key)
		return submit_key(c, key, key_len, cookie);
	k = c->session.turn;
	s = k->sent_slot;
	if (s->request)
		return submit_key(c, key, key_len, cookie);
	if (k->until_signal == 1)
		return submit_signaled(c, k, key, key_len, cookie);
	return submit_usual(c, k, s, key, key_len, cookie, false);
}

/* False: there are fewer free requests. */
static bool has_free(const struct reddn *c, unsigned n)
{
	const struct reddn_request *q = c->free_request;

	for (; n && q; n--)
		q = q->next_free;
	return !n;
}

/* The handle for so many keys, where that is seen at once; or NULL */
static inline struct reddn *usual_part(struct reddn *whole, enum reddn_shape shape, unsigned n)
{
	struct reddn *part = whole->several;

	if (whole->session.info.shape == shape && n - 1 < whole->session.info.keys) {
		whole->asked = NULL;
		return whole;
	}
	if (!part || part->session.info.shape != shape || n < whole->several_least ||
		n > part->session.info.keys || part->state != REDDN_UP ||
		part->session.geo.max_key < whole->session.geo.max_key)
		return NULL;
	whole->asked = part;
	return part;
}

static void copy_to(struct reddn_request *q, const struct reddn_key *key)
{
	if (short_is(key->key_len))
		short_copy(q->key, key->key, key->key_len);
	else
		memcpy(q->key, key->key, key->key_len);
}

/* Find what takes the keys of a shard, of those whose handle is in @to, and put it there in its place. */
static int split_find(struct reddn *shard, enum reddn_shape shape, const struct reddn_key *keys, unsigned n,
	struct reddn **to)
{
	struct reddn *c;
	unsigned some = 0;
	int r = 0;

	for (unsigned i = 0; i < n; i++)
		some += to[i] == shard;
	if (!some)
		return 0;
	c = usual_part(shard, shape, some);
	if (!c)
		r = reddn_part_of_keys(shard, shape, some, &c);
	for (unsigned i = 0; i < n && r == 0; i++) {
		if (to[i] != shard)
			continue;
		to[i] = c;
		r = check_key(c, shape, keys[i].key_len);
	}
	r = r < 0 ? r : c->broken;
	return r < 0 || has_free(c, some) ? r : -EAGAIN;
}

/* Of a handle with shards: all are submitted, or none. So they wait for their turn, if there are slots for
 * some only. */
static NOINLINE int submit_split(struct reddn *whole, enum reddn_shape shape, const struct reddn_key *keys,
	unsigned n, uint64_t cookie)
{
	struct reddn *to[REDDN_WIRE_KEYS];
	int r = n && n <= reddn_part_most(whole, shape) ? 0 : -EINVAL;

	for (unsigned i = 0; i < n && r == 0; i++)
		to[i] = choose_shard(whole, keys[i].key, keys[i].key_len);
	/* asked: the first one that cannot take its keys has the words for that */
	for (struct reddn *s = whole->parts; s && r == 0; s = s->next_part) {
		whole->asked = s;
		r = split_find(s, shape, keys, n, to);
	}
	if (r < 0)
		return r;
	for (unsigned i = 0; i < n; i++) {
		struct reddn_request *q = new_request(
			to[i], keys[i].key_len, cookie + i, reddn_kind_of_keys(&to[i]->session.geo));

		copy_to(q, &keys[i]);
		reddn_request_send_later(to[i], q);
	}
	for (unsigned i = 0; i < n; i++)
		reddn_send_retries(to[i]);
	return 0;
}

static int submit_keys(struct reddn *whole, enum reddn_shape shape, const struct reddn_key *keys, unsigned n,
	uint64_t cookie)
{
	struct reddn *c = usual_part(whole, shape, n), *other;
	struct reddn_queue all = {0};
	struct reddn_connection *k;
	int r = 0;

	if (whole->is_whole)
		return submit_split(whole, shape, keys, n, cookie);
	if (!c) {
		r = reddn_part_of_keys(whole, shape, n, &other);
		c = other;
	}
	for (unsigned i = 0; i < n && r == 0; i++)
		r = check_key(c, shape, keys[i].key_len);
	if (r < 0)
		return r;
	k = begin(c, &r);
	if (r < 0)
		return r;
	if (!has_free(c, n))
		return -EAGAIN;
	for (unsigned i = 0; i < n; i++) {
		struct reddn_request *q =
			new_request(c, keys[i].key_len, cookie + i, reddn_kind_of_keys(&c->session.geo));

		copy_to(q, &keys[i]);
		reddn_queue_add(&all, q);
	}
	if (k && n <= c->session.info.keys) {
		send_request(c, k, all.first);
	} else {
		reddn_queue_append(&c->retry, &all);
		c->exceptional = true;
		reddn_send_retries(c);
	}
	if (c->standby.unwatched)
		reddn_standby_watch(c);
	return 0;
}

PUBLIC int reddn_mget_submit(struct reddn *c, const struct reddn_key *keys, unsigned n, uint64_t cookie)
{
	return submit_keys(c, REDDN_TABLE, keys, n, cookie);
}

PUBLIC int reddn_exists_submit(struct reddn *c, const struct reddn_key *keys, unsigned n, uint64_t cookie)
{
	return submit_keys(c, REDDN_EXISTS, keys, n, cookie);
}

PUBLIC int reddn_get_into_submit(
	struct reddn *c, const void *key, size_t key_len, void *at, size_t room, uint64_t cookie)
{
	struct reddn_connection *k;
	struct reddn_request *q;
	int r = check_key(c, REDDN_TABLE_INTO, key_len), memory;

	if (r < 0)
		return r;
	room = room < UINT32_MAX >> 1 ? room : UINT32_MAX >> 1;
	memory = reddn_memory_find(c, at, room);
	if (memory < 0)
		return memory;
	k = begin(c, &r);
	if (r < 0)
		return r;
	if (!c->free_request)
		return -EAGAIN;
	q = new_request(c, key_len, cookie, REDDN_KEY_INTO);
	memcpy(q->key, key, key_len);
	q->into.at = at;
	q->into.room = (uint32_t)room;
	q->into.memory = (unsigned)memory;
	q->into.longer = 0;
	go(c, k, q);
	return 0;
}

static int submit_raw(struct reddn *c, const void *request, size_t len, uint64_t cookie)
{
	if (!c->session.repeatable)
		reddn_look_first(c);
	return submit(c, request, len, cookie, REDDN_RAW);
}

PUBLIC int reddn_call_submit(struct reddn *c, const struct reddn_arg *args, unsigned nargs, uint64_t cookie)
{
	uint8_t request[REDDN_REQUEST_MAX];
	int r = reddn_format_encode(&c->session.format, args, nargs, c->session.info.request_len, request);

	return r < 0 ? r : submit_raw(c, request, c->session.info.request_len, cookie);
}

PUBLIC int reddn_submit(struct reddn *c, const void *request, size_t len, uint64_t cookie)
{
	if (len != c->session.info.request_len)
		return -EINVAL;
	return submit_raw(c, request, len, cookie);
}

/* What the caller passes may change, or be unmapped, before the NIC has sent it: so it is copied, once, into
 * memory that the NIC reads, and stays there until the put has its result. But for a value in memory that is
 * registered, which the caller has promised to leave as it is. */
static int submit_put(struct reddn *c, const void *key, size_t key_len, const void *value, size_t value_len,
	const struct reddn_put *put, uint64_t cookie, enum reddn_request_kind kind)
{
	const struct reddn_geometry *g = &c->session.geo;
	struct reddn_connection *k;
	struct reddn_request *q;
	int r, memory = value_len ? reddn_memory_find(c, value, value_len) : -EFAULT;
	bool apart = memory >= 0;

	if (!reddn_put_fits(g, key_len, value_len, kind == REDDN_NO_RECORD))
		return -EMSGSIZE;
	k = begin(c, &r);
	if (r < 0)
		return r;
	if (!c->free_request)
		return -EAGAIN;
	q = new_request(c, reddn_put_size(g, key_len, value_len), cookie, kind);
	q->put = *put;
	q->put.value = apart ? value : NULL;
	q->put.memory = apart ? (uint8_t)memory : 0;
	reddn_put_compose(g, q->key, key, key_len, value, value_len, apart);
	go(c, k, q);
	return 0;
}

static int submit_blind(struct reddn *c, const void *key, size_t key_len, const void *value, size_t value_len,
	uint64_t expiry, uint64_t cookie, enum reddn_request_kind kind)
{
	const struct reddn_put put = {.expiry = expiry};
	struct reddn *puts;
	int r = key_len ? reddn_part_of_puts(c, REDDN_PUT, &puts) : -EINVAL;

	return r < 0 ? r : submit_put(puts, key, key_len, value, value_len, &put, cookie, kind);
}

PUBLIC int reddn_put_submit(struct reddn *c, const void *key, size_t key_len, const void *value,
	size_t value_len, uint64_t cookie)
{
	return submit_blind(c, key, key_len, value, value_len, 0, cookie, REDDN_RECORD);
}

PUBLIC int reddn_put_ttl_submit(struct reddn *c, const void *key, size_t key_len, const void *value,
	size_t value_len, uint64_t ttl_ms, uint64_t cookie)
{
	const uint64_t now = clock_read_ns(CLOCK_REALTIME) / 1000000;

	if (!ttl_ms || ttl_ms >= REDDN_VERSION_NONE - now)
		return -EINVAL;
	return submit_blind(c, key, key_len, value, value_len, now + ttl_ms, cookie, REDDN_RECORD);
}

PUBLIC int reddn_delete_submit(struct reddn *c, const void *key, size_t key_len, uint64_t cookie)
{
	return submit_blind(c, key, key_len, NULL, 0, 0, cookie, REDDN_NO_RECORD);
}

/* The caller has a version from the session that gets */
static int submit_put_if(struct reddn *c, const void *key, size_t key_len, const void *value,
	size_t value_len, uint64_t version, uint64_t cookie, enum reddn_request_kind kind)
{
	const struct reddn_put put = {.version = version, .asked = version, .seed = c->session.geo.seed};
	struct reddn *puts;
	int r = key_len && version < REDDN_VERSION_NONE ? reddn_part_of_puts(c, REDDN_PUT_IF, &puts)
							: -EINVAL;

	return r < 0 ? r : submit_put(puts, key, key_len, value, value_len, &put, cookie, kind);
}

PUBLIC int reddn_put_if_submit(struct reddn *c, const void *key, size_t key_len, const void *value,
	size_t value_len, uint64_t version, uint64_t cookie)
{
	return submit_put_if(c, key, key_len, value, value_len, version, cookie, REDDN_RECORD);
}

PUBLIC int reddn_delete_if_submit(
	struct reddn *c, const void *key, size_t key_len, uint64_t version, uint64_t cookie)
{
	return version ? submit_put_if(c, key, key_len, NULL, 0, version, cookie, REDDN_NO_RECORD) : -EINVAL;
}
