/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"

#include "libclient/public.h"
#include "libclient/queues.h"
#include "protocol/redis-slots.h"
#include "util/clock.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A request is repeated at least so often, even if the machine stands still for retry_ms. DONE: no status
 * that a result has. */
enum { RETRIES_MIN = 16, DONE = INT_MAX };

/*
 * Results go to an array of the caller: `at` is the next one, and `end` where there is no room any more. What
 * may add some returns the next one after them.
 */
static struct reddn_result *finish(struct reddn *c, struct reddn_request *q, struct reddn_result *at,
	int status, const void *value, size_t length, struct reddn_as_of as_of)
{
	/* one by one: of a literal, gcc clears what it sets afterwards */
	at->cookie = q->cookie;
	at->status = status;
	at->value = value;
	at->length = length;
	at->as_of = as_of;
	at->version = 0;
	q->next_free = c->free_request;
	c->free_request = q;
	c->busy--;
	return at + 1;
}

/* The caller gets a value in the slot and keeps it until it releases it. */
static void hold(struct reddn *c, struct reddn_slot *s)
{
	s->next_held = c->held;
	c->held = s;
}

static void send_again(struct reddn *c, struct reddn_request *q)
{
	reddn_queue_add(&c->retry, q);
	c->exceptional = true;
}

/* One repetition more is due at @now. False: it was repeated long enough. */
static bool is_patient(const struct reddn *c, struct reddn_request *q, uint64_t now)
{
	if (!q->retries)
		q->retried_since = now;
	if (q->retries == RETRIES_MIN)
		return now - q->retried_since <= c->connector.opt.retry_ms * 1000000ull;
	q->retries++;
	return true;
}

/* Queue the request to be repeated. 0, or the status of its result if it was repeated long enough. */
static int retry(struct reddn *c, struct reddn_request *q, enum reddn_reply_state state)
{
	if (!is_patient(c, q, clock_ns()))
		return state == REDDN_REPLY_MOVED ? -EAGAIN : state == REDDN_REPLY_OLD ? -ESTALE : -EBADMSG;
	if (state == REDDN_REPLY_MOVED)
		c->retries_moved++;
	else if (state == REDDN_REPLY_OLD)
		c->retries_old++;
	else
		c->retries_overtaken++;
	send_again(c, q);
	return 0;
}

/* The table is no longer the one of the server, or not after its next reload. The next session has the one
 * that has replaced it. */
static int stale(struct reddn *c, struct reddn_request *q)
{
	reddn_break(c, -ESTALE, "another table has replaced the one of this session");
	if (!c->broken)
		send_again(c, q);
	return c->broken;
}

static bool is_young(const struct reddn *c, uint64_t as_of_host)
{
	uint64_t now = clock_read_ns(CLOCK_REALTIME);

	/* another host's clock may be ahead */
	return as_of_host &&
	       (as_of_host >= now || now - as_of_host <= c->connector.opt.max_age_ms * 1000000ull);
}

static struct reddn_as_of as_of(const struct reddn_request *q, const struct reddn_seen *now)
{
	static const struct reddn_seen nothing;

	return reddn_seen_as_of(now, q->dated ? &q->before : &nothing);
}

/* By what was known before it was asked for, the answer is older than this caller wants it. */
static bool is_old(const struct reddn *c, const struct reddn_request *q, const struct reddn_seen *now)
{
	return c->connector.opt.max_age_ms && (now->state & REDDN_FOLLOWS) &&
	       !is_young(c, as_of(q, now).host);
}

/* If the line that has come with it is young, the next answer is, by this one. */
static int old(struct reddn *c, struct reddn_request *q, const struct reddn_seen *now)
{
	if (!is_young(c, now->as_of_host) && !reddn_standby_instead(c))
		return -ESTALE;
	return retry(c, q, REDDN_REPLY_OLD);
}

/* The answer is that of a table without the slot of the key. */
static bool is_elsewhere(const struct reddn *c, const struct reddn_request *q, const struct reddn_seen *now)
{
	return c->shard && !redis_slots_have(now->slots, redis_slot(q->key, q->len));
}

/* Another shard is asked, also if it is this one again by then. */
static int elsewhere(struct reddn *c, struct reddn_request *q)
{
	struct reddn *whole = c->shard->owner;
	uint64_t now = clock_ns();

	if (!is_patient(c, q, now))
		return reddn_fail(-ESTALE, whole->errmsg, sizeof(whole->errmsg),
			"no shard states that its table has slot %u of Redis", redis_slot(q->key, q->len));
	q->due = now + reddn_jitter(reddn_put_pause(q->retries - 1u));
	reddn_queue_add(&c->elsewhere, q);
	c->exceptional = whole->strays = true;
	return 0;
}

/* 0: it goes on; DONE, or another status of its result */
static int status_of(
	struct reddn *c, struct reddn_request *q, enum reddn_reply_state state, const struct reddn_seen *now)
{
	switch (state) {
	case REDDN_REPLY_EXISTS:
		return DONE;
	case REDDN_REPLY_TOO_LONG:
		return -EMSGSIZE;
	case REDDN_REPLY_MISS:
		return REDDN_MISS;
	case REDDN_REPLY_STALE:
		return stale(c, q);
	case REDDN_REPLY_MOVED:
	case REDDN_REPLY_OVERTAKEN:
		return retry(c, q, state);
	case REDDN_REPLY_OLD:
		return old(c, q, now);
	case REDDN_REPLY_ELSEWHERE:
		return elsewhere(c, q);
	}
	return 0;
}

/* Keep the line that comes with each reply. The epoch stays that of the first one. False: the table is not
 * current. */
static bool see(struct reddn *c, const struct reddn_seen *now)
{
	uint64_t epoch = c->session.seen.epoch;
	bool current = LIKELY(now->epoch == epoch) || reddn_seen_current(now, &c->session.seen);

	c->session.seen = *now;
	if (!current)
		c->session.seen.epoch = epoch;
	c->session.dated |= now->state != 0;
	c->session.plain = c->session.dated || c->shard ? UINT64_MAX : c->session.seen.epoch;
	if (c->shard && current)
		c->shard->slots = now->slots;
	return current;
}

/* The line of a reply, with which nothing is new but moves. False: another one. */
static bool see_plain(struct reddn_session *s, const uint8_t *slot)
{
	uint64_t moves;

	if (!LIKELY(reddn_reply_is_plain(slot, s->plain, &moves)))
		return false;
	s->seen.moves = moves;
	return true;
}

/* A hit with any other line. The same result */
static NOINLINE bool reply_other_hit(struct reddn *c, const struct reddn_slot *s, struct reddn_request *q,
	const uint8_t *record, size_t len, struct reddn_result *at)
{
	const struct reddn_seen now = reddn_reply_see(s->mem);

	if (!see(c, &now) || is_elsewhere(c, q, &now) || is_old(c, q, &now))
		return false;
	finish(c, q, at, 0, reddn_reply_value(record, q->len), len, as_of(q, &now));
	return true;
}

/* True if the slot @s has a hit for the key of @q, whose record is at @record, and the table is current: then
 * that is the result @at. */
static bool reply_hit(struct reddn *c, const struct reddn_slot *s, struct reddn_request *q,
	const uint8_t *record, struct reddn_result *at)
{
	int64_t len = reddn_reply_hit(&c->session.geo, q->key, q->len, record);

	if (!LIKELY(len >= 0))
		return false;
	if (!LIKELY(see_plain(&c->session, s->mem)))
		return reply_other_hit(c, s, q, record, (size_t)len, at);
	finish(c, q, at, 0, reddn_reply_value(record, q->len), (size_t)len, (struct reddn_as_of){0});
	return true;
}

/* Process any other reply, as it is now; @found: the record, or the parts of buckets. */
static NOINLINE struct reddn_result *reply_without(struct reddn *c, const struct reddn_slot *s,
	struct reddn_request *q, const uint8_t *found, struct reddn_result *at)
{
	const struct reddn_seen before = {.moves = q->before.moves, .epoch = c->session.seen.epoch};
	const struct reddn_seen now = reddn_reply_see(s->mem);
	const struct reddn_geometry *g = &c->session.geo;
	enum reddn_reply_state state = q->kind == REDDN_KEY_EXISTS
					       ? reddn_reply_parts(g, q->mark, found, &now, &before)
					       : reddn_reply_without(g, q->key, q->len, found, &now, &before);
	const struct reddn_as_of age = as_of(q, &now);
	int status;

	if (state != REDDN_REPLY_STALE && is_elsewhere(c, q, &now))
		state = REDDN_REPLY_ELSEWHERE;
	else if (state != REDDN_REPLY_STALE && is_old(c, q, &now))
		state = REDDN_REPLY_OLD;
	status = status_of(c, q, state, &now);
	see(c, &now);
	return status ? finish(c, q, at, status == DONE ? 0 : status, NULL, 0, age) : at;
}

/* A record that has expired is none, but has the version that a put on a condition finds there */
static void judge_expiry(const struct reddn_geometry *g, const uint8_t *record, struct reddn_result *at)
{
	const uint64_t expiry = g->header ? reddn_store_expiry(record) : 0;

	if (LIKELY(!expiry) || expiry > clock_read_ns(CLOCK_REALTIME) / 1000000)
		return;
	at->status = REDDN_MISS;
	at->value = NULL;
	at->length = 0;
}

static NOINLINE void refill(struct reddn *c, struct reddn_connection *k)
{
	int r = c->state == REDDN_UP ? reddn_post_receives(k) : 0;

	if (r < 0)
		reddn_break(c, -EIO, "cannot post receives: %s", strerror(-r));
}

/* The first slot that has arrived is done with. */
static void pop(struct reddn *c, struct reddn_slot *s)
{
	c->arrived = s->next_arrived;
	if (s->refill)
		refill(c, s->refill);
}

/* Process a reply to several keys. What has no room stays in the slot, for the next poll. */
static struct reddn_result *reply_to_keys(
	struct reddn *c, struct reddn_slot *s, struct reddn_result *at, const struct reddn_result *end)
{
	struct reddn_request *q = s->request;
	bool held = false;

	while (q && at < end) {
		const struct reddn_geometry *g = &c->session.geo;
		const uint8_t *record = s->mem + reddn_record_at(g, c->arrived_key);
		const uint8_t *parts = s->mem + reddn_parts_at(g, c->arrived_key++);
		struct reddn_request *next = q->next;

		q->next = NULL;
		if (q->kind == REDDN_KEY_EXISTS) {
			at = reply_without(c, s, q, parts, at);
		} else if (reply_hit(c, s, q, record, at)) {
			held = true;
			at->version = reddn_reply_version(g, record);
			judge_expiry(g, record, at++);
		} else {
			at = reply_without(c, s, q, record, at);
		}
		q = next;
	}
	if (q) {
		s->request = q;
		return at;
	}
	if (held)
		hold(c, s);
	else
		s->request = NULL;
	c->arrived_key = 0;
	pop(c, s);
	return at;
}

/* The slot is free at once: the value is where the caller wanted it. */
static struct reddn_result *reply_into(struct reddn *c, struct reddn_slot *s, struct reddn_result *at)
{
	const struct reddn_geometry *g = &c->session.geo;
	struct reddn_request *q = s->request;
	const struct reddn_apart record = {.record = s->mem + reddn_into_at(g),
		.value = q->into.at,
		.rest = c->session.sink,
		.room = q->into.room,
		.longer = &q->into.longer};
	const struct reddn_seen before = {.moves = q->before.moves, .epoch = c->session.seen.epoch};
	const struct reddn_seen now = reddn_reply_see(s->mem);
	uint64_t version = reddn_reply_version(g, record.record);
	bool there;
	size_t len;
	enum reddn_reply_state state = reddn_reply_into(g, q->key, q->len, &record, &now, &before, &len);
	int status;

	pop(c, s);
	s->request = NULL;
	if (state != REDDN_REPLY_STALE && is_old(c, q, &now))
		state = REDDN_REPLY_OLD;
	status = status_of(c, q, state, &now);
	see(c, &now);
	if (!status)
		return at;
	status = status == DONE ? 0 : status;
	there = status == 0 || status == -EMSGSIZE;
	at = finish(c, q, at, status, status ? NULL : record.value, there ? len : 0, as_of(q, &now));
	if (there) {
		at[-1].version = version;
		judge_expiry(g, record.record, &at[-1]);
	}
	return at;
}

static struct reddn_result *reply_raw(struct reddn *c, struct reddn_slot *s, struct reddn_result *at)
{
	pop(c, s);
	hold(c, s);
	return finish(c, s->request, at, 0, s->mem, c->session.info.reply_max, (struct reddn_as_of){0});
}

/* ---- puts --------------------------------------------------------------------------------------- */

static void set_pause(struct reddn *c, uint64_t until)
{
	c->pause_until = until;
	reddn_connector_alarm_ns(&c->connector, until);
}

/* 0, or the status of its result if it was asked for long enough. */
static int put_pause(struct reddn *c, struct reddn_request *q)
{
	uint64_t now = clock_ns();

	if (!is_patient(c, q, now))
		return -EAGAIN;
	q->due = now + reddn_jitter(reddn_put_pause(q->retries - 1u));
	reddn_queue_add(&c->paused, q);
	c->exceptional = true;
	if (q->due < c->pause_until)
		set_pause(c, q->due);
	return 0;
}

/* Queue those that are due. */
static void end_pauses(struct reddn *c)
{
	uint64_t now = clock_ns(), next = UINT64_MAX;
	struct reddn_queue all = c->paused;
	struct reddn_request *q;

	if (now < c->pause_until)
		return;
	c->paused = (struct reddn_queue){0};
	while ((q = reddn_queue_take(&all))) {
		bool due = q->due <= now;

		reddn_queue_add(due ? &c->retry : &c->paused, q);
		if (!due && q->due < next)
			next = q->due;
	}
	set_pause(c, next);
}

/* 0: it goes on; DONE, or another status of its result */
static int put_status(struct reddn *c, struct reddn_request *q, enum reddn_put_state state)
{
	switch (state) {
	case REDDN_PUT_DONE:
		return DONE;
	case REDDN_PUT_NOTHING:
		return REDDN_MISS;
	case REDDN_PUT_FULL:
		return -ENOSPC;
	case REDDN_PUT_OTHER:
	case REDDN_PUT_AGAIN:
		send_again(c, q);
		return 0;
	case REDDN_PUT_VERSION:
		return REDDN_CONFLICT;
	case REDDN_PUT_NO_ENTRY:
		c->retries_absent++;
		return put_pause(c, q);
	case REDDN_PUT_CONFLICT:
		c->retries_conflict++;
		return put_pause(c, q);
	}
	return 0;
}

static enum reddn_put_state put_learn(
	const struct reddn *c, struct reddn_request *q, const uint8_t *slot, uint64_t *version)
{
	struct reddn_wire_put_if answer;

	memcpy(&answer, slot, sizeof(answer));
	if (c->session.info.shape == REDDN_PUT_IF)
		return reddn_put_if_learn(&q->put, &c->session.geo, &answer, version);
	return reddn_put_learn(&q->put, &c->session.geo, q->kind == REDDN_NO_RECORD, &answer.put);
}

/* The slot is free at once. */
static struct reddn_result *reply_put(struct reddn *c, struct reddn_slot *s, struct reddn_result *at)
{
	struct reddn_request *q = s->request;
	uint64_t version = 0;
	enum reddn_put_state state = put_learn(c, q, s->mem, &version);
	int status;

	pop(c, s);
	s->request = NULL;
	status = put_status(c, q, state);
	if (!status)
		return at;
	finish(c, q, at, status == DONE ? 0 : status, NULL, 0, (struct reddn_as_of){0});
	at->version = version;
	return at + 1;
}

static NOINLINE struct reddn_result *reply_unusual(
	struct reddn *c, struct reddn_slot *s, struct reddn_result *at, const struct reddn_result *end)
{
	if (reddn_request_is_put(s->request))
		return reply_put(c, s, at);
	if (s->request->kind == REDDN_KEY_INTO)
		return reply_into(c, s, at);
	return s->request->kind == REDDN_RAW ? reply_raw(c, s, at) : reply_to_keys(c, s, at, end);
}

/* Process the reply in the first slot that has arrived. */
static struct reddn_result *reply(
	struct reddn *c, struct reddn_slot *s, struct reddn_result *at, const struct reddn_result *end)
{
	struct reddn_request *q = s->request;
	const uint8_t *record = s->mem + REDDN_SLOT_RECORD;

	if (!LIKELY(q->kind == REDDN_ONE_KEY))
		return reply_unusual(c, s, at, end);
	pop(c, s);
	if (!LIKELY(reply_hit(c, s, q, record, at))) {
		s->request = NULL;
		return reply_without(c, s, q, record, at);
	}
	hold(c, s);
	return at + 1;
}

NOINLINE int reddn_report_rest(
	struct reddn *c, struct reddn_result *res, struct reddn_result *at, const struct reddn_result *end)
{
	struct reddn_request *q;

	if (c->paused.first)
		end_pauses(c);
	reddn_send_retries(c);
	while (at < end && (q = reddn_queue_take(&c->ended)))
		at = finish(c, q, at, q->status, NULL, 0, (struct reddn_as_of){0});
	c->exceptional = c->retry.first || c->ended.first || c->paused.first || c->elsewhere.first ||
			 c->session.hangup || c->state != REDDN_UP || c->before.connection ||
			 c->standby.unwatched;
	return at == res && !c->busy ? c->broken : (int)(at - res);
}

INLINED int reddn_report_arrived(struct reddn *c, struct reddn_result *res, const struct reddn_result *end)
{
	struct reddn_result *at = res;

	do {
		at = reply(c, c->arrived, at, end);
	} while (at < end && c->arrived);
	return c->exceptional ? reddn_report_rest(c, res, at, end) : (int)(at - res);
}

PUBLIC void reddn_release(struct reddn *c)
{
	for (struct reddn *p = c; p; p = reddn_next_of(c, p))
		reddn_release_held(p);
}
