/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/redis.h"

#include "protocol/redis-origin.h"
#include "tools/reddn-follow/rules.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/text.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum {
	WINDOW_BYTES = 4 << 20,   /* of answers: the source keeps them until they are read */
	UNKNOWN_BYTES = 64 << 10, /* of an answer, before there is one */
	QUEUE_BYTES = 32 << 20,   /* of keys; no invalidation is read then */
	PING_MS = 500,
	INFO_MS = 1000,
	VIEW_MS = 100,      /* until a cluster is asked again whose nodes do not agree, or move slots */
	LATER_MS = 100,     /* until a key is asked for again that another server's walk was in the way of */
	VERIFY_STEP = 4096, /* keys of other servers, in a turn */
	BARRIER_MS = 5,     /* from the end of a barrier to the next one */
	SLEW_US = 1000,     /* that a clock may lose in a second, when it is slewed; and to round off */
	PAUSE_LEAST_MS = 20,
	PAUSE_MOST_MS = 500,
	FULL_MS = 10000,  /* until a key is tried again for which there was no room, */
	FULL_PER_MS = 10, /* and that much longer for each of them, */
	FULL_MOST_MS = 600000,
};

static const char channel[] = "__redis__:invalidate";
static const char no_question[] = "an answer to no question";

static void redis_set_state(struct redis *r, enum redis_state state)
{
	assert(state <= REDIS_VERIFYING || state == r->state + 1);
	r->whole->verifying += state == REDIS_VERIFYING;
	r->whole->verifying -= r->state == REDIS_VERIFYING;
	r->state = state;
}

/* It sees the slots as they are followed. */
static bool redis_agrees(const struct redis *r)
{
	return !r->whole->is_cluster || (r->view && r->view == r->whole->view);
}

static bool redis_owns(const struct redis *r, const char *key, size_t len)
{
	return !r->whole->is_cluster || r->whole->owner[redis_slot(key, len)] == r->number;
}

/* Nobody else will: the table was one of other slots. */
static bool redis_is_foreign(const struct redis *r, const char *key, size_t len)
{
	return r->whole->is_cluster && !redis_slots_have(r->whole->slots, redis_slot(key, len));
}

static bool redis_complete(const struct redis *r)
{
	/* A key that was not put is absent from its second answer on */
	return r->state == REDIS_FOLLOWING && !r->again && !r->keys.nabsent && r->put == MIRROR_PUT;
}

/* ---- connections ------------------------------------------------------------------------------ */

static const char args_of[] = ", with args";

/* Both connections go: without one the other is of no use. Keys that were asked for, or were to be, are asked
 * for again by the load that follows. */
static void redis_lose(struct redis *r, const char *why)
{
	if (r->state == REDIS_APART)
		return;
	snprintf(r->why, sizeof(r->why), "%s", why);
	/* "ERR unknown command 'AUTH', with args beginning with: " and the password */
	if (strstr(r->why, args_of))
		*strstr(r->why, args_of) = '\0';
	text_clean(r->why);
	if (r->data.context)
		redisFree(r->data.context);
	if (r->inval.context)
		redisFree(r->inval.context);
	r->data = r->inval = (struct redis_link){0};
	r->n = r->asked = 0;
	r->put = MIRROR_PUT;
	r->scanning = r->later = r->moves = false;
	r->view = 0;
	r->barrier.state = BARRIER_REST;
	r->pings = r->pongs = 0;
	r->infos = 0; /* all is asked for again anyway */
	keys_forget_questions(&r->keys);
	r->retry_at = r->now + r->pause;
	r->pause = r->pause * 2 < PAUSE_MOST_MS ? r->pause * 2 : PAUSE_MOST_MS;
	redis_set_state(r, REDIS_APART);
}

static void link_send(struct redis *r, struct redis_link *l, int argc, const char **argv, const size_t *len)
{
	redisAppendCommandArgv(l->context, argc, argv, len);
	l->awaited++;
	if (!l->since)
		l->since = r->now;
}

#define LINK_SEND(r, l, ...)                                                                                 \
	link_send(r, l, COUNT(((const char *[]){__VA_ARGS__})), (const char *[]){__VA_ARGS__}, NULL)

/* By the clock of the source; not later than that */
static uint64_t source_ms(const struct redis *r)
{
	return r->now + (uint64_t)(r->behind_us / 1000);
}

static void redis_question(struct redis *r, int what, struct key *key)
{
	assert(r->n < REDIS_QUESTIONS);
	r->questions[(r->first + r->n++) % REDIS_QUESTIONS] =
		(struct redis_question){what, key, source_ms(r)};
}

#define DATA_SEND(r, what, ...) (redis_question(r, what, NULL), LINK_SEND(r, &(r)->data, __VA_ARGS__))

static void link_open(struct redis *r, struct redis_link *l)
{
	const struct url *url = r->url;

	l->context = *url->host ? redisConnectNonBlock(r->address.text, url->port)
				: redisConnectUnixNonBlock(url->path);
	if (!l->context)
		redis_lose(r, "no memory");
	else if (l->context->err)
		redis_lose(r, l->context->errstr);
}

static void link_authenticate(struct redis *r, struct redis_link *l)
{
	if (*r->url->user)
		LINK_SEND(r, l, "AUTH", r->url->user, r->url->password);
	else if (*r->url->password)
		LINK_SEND(r, l, "AUTH", r->url->password);
}

static void redis_attach(struct redis *r)
{
	const char *why = NULL;
	int found = *r->url->host ? address_find(&r->address, r->url, &why) : 0;

	if (found == -EAGAIN)
		return;
	redis_set_state(r, REDIS_ATTACHING);
	if (found < 0)
		redis_lose(r, why);
	else
		link_open(r, &r->inval);
	if (r->state == REDIS_ATTACHING)
		link_open(r, &r->data);
	if (r->state != REDIS_ATTACHING)
		return;
	link_authenticate(r, &r->inval);
	*r->inval_run_id = '\0';
	LINK_SEND(r, &r->inval, "INFO", "server");
	LINK_SEND(r, &r->inval, "CLIENT", "ID");
	LINK_SEND(r, &r->inval, "SUBSCRIBE", channel);
	r->ping_at = r->info_at = UINT64_MAX;
}

static void redis_track(struct redis *r)
{
	const char *argv[6 + 2 * SOURCE_PREFIXES] = {
		"CLIENT", "TRACKING", "ON", "REDIRECT", r->inval_id, "BCAST"};
	int argc = 6;

	for (unsigned i = 0; i < r->prefixes->n; i++) {
		argv[argc++] = "PREFIX";
		argv[argc++] = r->prefixes->text[i];
	}
	redis_question(r, ASK_SETUP, NULL);
	link_send(r, &r->data, argc, argv, NULL);
}

/* One section at a time: Redis 6 takes no more. */
static const char *const info_sections[] = {"server", "replication", "commandstats", "persistence"};

/* With TIME before it, it may be the beginning of a barrier. */
static void redis_ask_info(struct redis *r)
{
	r->barrier = (struct redis_barrier){
		.state = BARRIER_ASKED, .host_ns = clock_read_ns(CLOCK_REALTIME), .asked_us = clock_us()};
	DATA_SEND(r, ASK_TIME, "TIME");
	if (r->whole->is_cluster)
		DATA_SEND(r, ASK_NODES, "CLUSTER", "NODES");
	for (size_t i = 0; i < COUNT(info_sections); i++)
		DATA_SEND(r, ASK_INFO, "INFO", info_sections[i]);
	r->seen = (struct redis_facts){0};
	r->info_at = UINT64_MAX;
}

static void redis_ping(struct redis *r)
{
	if (!rule_kept(RULE_PING))
		return;
	LINK_SEND(r, &r->inval, "PING");
	r->pings++;
	r->ping_at = UINT64_MAX;
}

/* Messages go to the invalidation connection from now on. */
static void redis_subscribed(struct redis *r)
{
	char db[16];

	if (*r->url->user || *r->url->password)
		redis_question(r, ASK_SETUP, NULL);
	link_authenticate(r, &r->data);
	if (r->url->db) {
		snprintf(db, sizeof(db), "%u", r->url->db);
		DATA_SEND(r, ASK_SETUP, "SELECT", db);
	}
	if (rule_kept(RULE_TRACK_FIRST))
		redis_track(r);
	redis_ask_info(r);
	r->ping_at = r->now;
}

/* True: there may be more to read. */
static bool link_read(struct redis *r, struct redis_link *l)
{
	size_t before = l->context->reader->len;
	bool more;

	if (redisBufferRead(l->context) != REDIS_OK) {
		redis_lose(r, l->context->errstr);
		return false;
	}
	more = l->context->reader->len != before;
	if (more && l->awaited)
		l->since = r->now;
	return more;
}

static redisReply *link_reply(struct redis *r, struct redis_link *l)
{
	void *reply = NULL;

	if (redisGetReplyFromReader(l->context, &reply) != REDIS_OK) {
		redis_lose(r, l->context->errstr);
		return NULL;
	}
	return reply;
}

static void link_answered(struct redis *r, struct redis_link *l)
{
	if (l->awaited)
		l->awaited--;
	l->since = l->awaited ? r->now : 0;
}

/* ---- a load ------------------------------------------------------------------------------------ */

/* Another process, another history, or other keys */
static uint64_t redis_identity(const struct redis *r)
{
	uint64_t h = XXH3_64bits(r->facts.run_id, sizeof(r->facts.run_id));

	h = XXH3_64bits_withSeed(r->facts.replid, sizeof(r->facts.replid), h);
	h = XXH3_64bits_withSeed(r->facts.role, sizeof(r->facts.role), h);
	h = XXH3_64bits_withSeed(&r->url->db, sizeof(r->url->db), h);
	h = XXH3_64bits_withSeed(&r->whole->slots, sizeof(r->whole->slots), h);
	return prefixes_hash(r->prefixes, h);
}

/* Servers of a cluster have no order. That another one has slots is stated with the next moment: until then
 * the table is as of the one before. */
static void redis_identify(struct redis *r)
{
	const struct prefixes *p = r->prefixes;
	uint64_t is = redis_identity(r);

	r->whole->identity += is - r->identity;
	r->identity = is;
	mirror_set_source(r->mirror, (uint32_t)(r->whole->identity >> 40),
		r->whole->is_cluster ? r->mirror->as_of.origin
				     : redis_origin(r->facts.run_id, r->url->db, p->text, p->n));
}

static void redis_load(struct redis *r)
{
	redis_set_state(r, REDIS_VERIFYING);
	r->facts = r->last;
	redis_identify(r);
	r->again = false;
	r->load_from = r->now;
	mirror_walk(r->mirror, &r->walk);
	keys_mark_absent(&r->keys);
}

static bool redis_may_load_again(const struct redis *r)
{
	return r->state == REDIS_FOLLOWING && r->again && r->now >= r->load_at && redis_agrees(r) &&
	       !r->moves;
}

/* Whatever there was: all may be different. Nothing is removed before the source has been asked. New keys are
 * not put during a load, so a source that often empties one of its databases is followed half of the time. */
static void redis_doubt(struct redis *r)
{
	r->again = true;
	if (redis_may_load_again(r))
		redis_load(r);
}

static bool redis_wants(const struct redis *r, const char *key, size_t len)
{
	return redis_owns(r, key, len) && prefixes_have(r->prefixes, key, len);
}

/* What is in the table, until there are enough to ask for */
static void redis_verify(struct redis *r)
{
	const char *key;
	size_t len;

	for (unsigned i = 0; i < VERIFY_STEP && r->keys.nqueued < REDIS_WINDOW; i++) {
		if (!mirror_walk_next(r->mirror, &r->walk, &key, &len)) {
			redis_set_state(r, REDIS_SCANNING);
			strcpy(r->cursor, "0");
			return;
		}
		if (redis_is_foreign(r, key, len))
			mirror_delete(r->mirror, key, len);
		else if (redis_owns(r, key, len))
			keys_mark(&r->keys, key, len);
	}
}

static const char glob_special[] = "*?[]\\";

/* A pattern of all that begins with @text; the caller frees it. */
static char *glob_of(const char *text)
{
	char *glob = malloc(2 * strlen(text) + 2), *end = glob;

	if (!glob)
		return NULL;
	for (; *text; text++) {
		if (strchr(glob_special, *text))
			*end++ = '\\';
		*end++ = *text;
	}
	memcpy(end, "*", 2);
	return glob;
}

static void redis_scan(struct redis *r)
{
	const char *argv[8] = {"SCAN", r->cursor, "COUNT", "1000", "TYPE", "string"};
	int argc = 6;
	/* with several, SCAN would go over all keys several times */
	CLEANUP(cleanup_free) char *match = r->prefixes->n == 1 ? glob_of(r->prefixes->text[0]) : NULL;

	if (match) {
		argv[argc++] = "MATCH";
		argv[argc++] = match;
	}
	redis_question(r, ASK_SCAN, NULL);
	link_send(r, &r->data, argc, argv, NULL);
	r->scanning = true;
}

/* What the table has was verified, or has changed since and was put. */
static void redis_scanned(struct redis *r, const redisReply *reply)
{
	const redisReply *list = reply->elements == 2 ? reply->element[1] : NULL;

	r->scanning = false;
	if (!list || list->type != REDIS_REPLY_ARRAY || reply->element[0]->type != REDIS_REPLY_STRING)
		return redis_lose(r, "the answer to SCAN is no list");
	for (size_t i = 0; i < list->elements; i++) {
		const redisReply *key = list->element[i];

		if (redis_wants(r, key->str, key->len) && !mirror_has(r->mirror, key->str, key->len))
			keys_mark(&r->keys, key->str, key->len);
	}
	snprintf(r->cursor, sizeof(r->cursor), "%s", reply->element[0]->str);
	if (strcmp(r->cursor, "0") == 0) {
		*r->cursor = '\0';
		r->goal = r->keys.queued;
	}
}

static void redis_finish_load(struct redis *r)
{
	r->load_at = r->now + (r->now - r->load_from);
	if (r->info_at > r->now && r->info_at != UINT64_MAX)
		r->info_at = r->now;
	redis_set_state(r, REDIS_FOLLOWING);
	r->loads++;
	r->pause = PAUSE_LEAST_MS;
	*r->why = '\0';
	if (!rule_kept(RULE_TRACK_FIRST))
		redis_track(r);
}

/* While another server verifies, nothing new can be put. */
static bool redis_may_scan(const struct redis *r)
{
	return r->state == REDIS_SCANNING && *r->cursor && !r->scanning && !r->whole->verifying;
}

static bool redis_is_scanned(const struct redis *r)
{
	return r->state == REDIS_SCANNING && !*r->cursor;
}

static void redis_advance(struct redis *r)
{
	if (redis_may_load_again(r))
		redis_load(r);
	if (r->state == REDIS_VERIFYING)
		redis_verify(r);
	if (r->state != REDIS_SCANNING)
		return;
	if (redis_may_scan(r) && r->keys.nqueued < REDIS_WINDOW)
		redis_scan(r);
	else if (redis_is_scanned(r) && r->keys.answered >= r->goal)
		redis_finish_load(r);
}

/* ---- keys -------------------------------------------------------------------------------------- */

static void redis_ask(struct redis *r)
{
	uint64_t window = WINDOW_BYTES / (r->mean + 64) + 1;
	struct key *k;

	if (window > REDIS_WINDOW)
		window = REDIS_WINDOW;
	/* many in one write(2) */
	if (r->asked > window / 2)
		return;
	while (r->asked < window && (k = keys_ask(&r->keys))) {
		if (!redis_wants(r, k->bytes, k->len)) {
			/* in the table from before; or it has gone to another server since */
			if (redis_owns(r, k->bytes, k->len))
				mirror_delete(r->mirror, k->bytes, k->len);
			keys_answer(&r->keys, k, false, 0);
			continue;
		}
		redis_question(r, ASK_GET, k);
		link_send(r, &r->data, 2, (const char *[]){"GET", k->bytes}, (const size_t[]){3, k->len});
		redis_question(r, ASK_TTL, k);
		link_send(r, &r->data, 2, (const char *[]){"PTTL", k->bytes}, (const size_t[]){4, k->len});
		r->asked++;
	}
}

static bool is_error(const redisReply *reply, const char *word)
{
	return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, word, strlen(word)) == 0;
}

/* The key is, or may be, at another server: only that one knows its value. */
static bool is_elsewhere(const struct redis *r, const redisReply *reply)
{
	return r->whole->is_cluster && (is_error(reply, "MOVED ") || is_error(reply, "ASK "));
}

/* A key that is new may not be put while there is a walk: SCANNING finds it if it is one's own, else it is
 * asked for again. */
static enum mirror_put redis_put(struct redis *r, struct key *k, const redisReply *reply)
{
	if (!r->whole->verifying || mirror_has(r->mirror, k->bytes, k->len))
		return mirror_put(r->mirror, k->bytes, k->len, reply->str, reply->len);
	if (r->state == REDIS_VERIFYING)
		return k->absent ? MIRROR_UNFIT : MIRROR_PUT;
	r->later = true;
	return MIRROR_NO_ROOM;
}

static void redis_got(struct redis *r, struct key *k, const redisReply *reply)
{
	bool owns = redis_owns(r, k->bytes, k->len);

	r->got = owns && reply->type == REDIS_REPLY_STRING;
	r->put = MIRROR_PUT;
	r->later = false;
	/* Its slot has moved since it was asked for: the answer of the other server is newer, and may be here
	 */
	if (!owns)
		return;
	if (r->got) {
		/* Large ones come together: fewer at a time at once, and more again by and by */
		r->mean = reply->len > r->mean ? reply->len : r->mean - (r->mean - reply->len) / 8;
		r->put = redis_put(r, k, reply);
	} else if (is_elsewhere(r, reply)) {
		r->again = true;
	} else if (reply->type == REDIS_REPLY_NIL || is_error(reply, "WRONGTYPE") ||
		   !rule_kept(RULE_ERRORS_SAY_NOTHING)) {
		mirror_delete(r->mirror, k->bytes, k->len);
	} else {
		redis_lose(
			r, reply->type == REDIS_REPLY_ERROR ? reply->str : "the answer to GET is no string");
	}
}

static void redis_got_ttl(struct redis *r, const struct redis_question *q, const redisReply *reply)
{
	uint64_t due = 0, full = FULL_MS + FULL_PER_MS * r->keys.nabsent;
	struct key *k = q->key;

	if (is_elsewhere(r, reply))
		r->again = true;
	else if (reply->type == REDIS_REPLY_ERROR && rule_kept(RULE_ERRORS_SAY_NOTHING))
		return redis_lose(r, reply->str);
	r->asked--;
	if (r->later)
		due = source_ms(r) + LATER_MS;
	else if (r->put == MIRROR_NO_ROOM)
		due = source_ms(r) + (full < FULL_MOST_MS ? full : FULL_MOST_MS);
	else if (r->got && reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0 &&
		 rule_kept(RULE_EXPIRY))
		due = (rule_kept(RULE_DUE) ? q->source_ms : source_ms(r)) + (uint64_t)reply->integer;
	/* It has expired since. */
	if (r->got && reply->type == REDIS_REPLY_INTEGER && reply->integer == -2)
		keys_changed(&r->keys, k);
	keys_answer(&r->keys, k, r->put != MIRROR_PUT, due);
	r->put = MIRROR_PUT;
}

/* ---- barriers ---------------------------------------------------------------------------------- */

static void barrier_end(struct redis *r, uint64_t pause_ms)
{
	r->barrier.state = BARRIER_REST;
	r->info_at = r->now + pause_ms;
}

/* The clock of the source against CLOCK_MONOTONIC: at the time of the answer, it is at least what it was when
 * the question came. So far ahead as it was found to be, it stays, but for what it may lose. */
static bool clock_is_set_back(struct redis *r, uint64_t source_us)
{
	uint64_t now = clock_us();
	int64_t least = (int64_t)(source_us - now), most = (int64_t)(source_us - r->barrier.asked_us);
	int64_t known = r->behind_us - (int64_t)((now - r->behind_at) * SLEW_US / 1000000);
	bool first = !r->behind_at, back = !first && most < known - SLEW_US;

	r->behind_us = first || back || least > known ? least : known;
	r->behind_at = now;
	return back;
}

static void redis_told_time(struct redis *r, const redisReply *reply)
{
	uint64_t us;

	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
		reply->element[0]->type != REDIS_REPLY_STRING ||
		reply->element[1]->type != REDIS_REPLY_STRING)
		return redis_lose(r, "the answer to TIME is no time");
	us = strtoull(reply->element[0]->str, NULL, 10) * 1000000 +
	     strtoull(reply->element[1]->str, NULL, 10);
	r->barrier.source_us = us;
	/* When no follower was there, the table is what knows the time */
	if (!clock_is_set_back(r, us) && us >= r->mirror->as_of.source)
		return;
	if (!rule_kept(RULE_CLOCK))
		return;
	mirror_reset_clock(r->mirror);
	r->stated = (struct reddn_as_of){0};
	/* when keys expire is by the clock before */
	redis_doubt(r);
}

static bool barrier_may_go_on(const struct redis *r)
{
	return (r->state == REDIS_FOLLOWING && !r->again && redis_agrees(r) && !r->moves) ||
	       !rule_kept(RULE_DOUBT);
}

/* The answers to TIME and INFO are there. */
static void barrier_informed(struct redis *r)
{
	struct redis_barrier *b = &r->barrier;

	if (!barrier_may_go_on(r))
		return barrier_end(r, r->whole->is_cluster ? VIEW_MS : INFO_MS);
	r->info_at = UINT64_MAX;
	b->state = rule_kept(RULE_PONG) ? BARRIER_PONG : BARRIER_PASS;
	b->goal = rule_kept(RULE_PONG) ? r->pings + 1 : r->keys.queued;
	redis_ping(r);
}

/* Answers are applied in the order of the queue. A key that has changed while it was asked for comes into the
 * queue again with its answer, and is there when all that were asked for are answered. */
static void barrier_queue(struct redis *r)
{
	keys_expire_all(&r->keys, r->barrier.source_us / 1000 + 1);
	r->barrier.state = BARRIER_PASS;
	r->barrier.goal = r->keys.queued;
}

/* The oldest of their moments: the table has all that any of them had by then. What one is in doubt of is as
 * of the moment before. */
static void whole_publish(const struct redis_whole *w)
{
	struct reddn_as_of oldest = w->server[0]->stated;
	bool complete = !w->is_cluster || w->is_covered;

	for (unsigned i = 0; i < w->n; i++) {
		const struct redis *r = w->server[i];

		if (!r->stated.source || !barrier_may_go_on(r))
			return;
		complete = complete && redis_complete(r);
		if (r->stated.source < oldest.source)
			oldest.source = r->stated.source;
		if (r->stated.host < oldest.host)
			oldest.host = r->stated.host;
	}
	if (w->is_cluster)
		mirror_set_source(w->mirror, (uint32_t)(w->identity >> 40), w->origin);
	mirror_publish(w->mirror, oldest.source, oldest.host, complete);
}

static void barrier_publish(struct redis *r)
{
	r->stated = (struct reddn_as_of){.source = r->barrier.source_us, .host = r->barrier.host_ns};
	whole_publish(r->whole);
	barrier_end(r, BARRIER_MS);
}

static void barrier_step(struct redis *r)
{
	struct redis_barrier *b = &r->barrier;

	if (b->state <= BARRIER_ASKED)
		return;
	if (!barrier_may_go_on(r))
		return barrier_end(r, r->whole->is_cluster ? VIEW_MS : INFO_MS);
	if (b->state == BARRIER_PONG && r->pongs >= b->goal) {
		b->state = BARRIER_SECOND_PONG;
		b->goal = r->pings + rule_kept(RULE_SECOND_PONG);
		redis_ping(r);
	}
	if (b->state == BARRIER_SECOND_PONG && r->pongs >= b->goal)
		barrier_queue(r);
	if (!rule_kept(RULE_APPLY) && b->state == BARRIER_PASS)
		return barrier_publish(r);
	if (b->state == BARRIER_PASS && r->keys.answered >= b->goal) {
		b->state = BARRIER_SECOND_PASS;
		b->goal = r->keys.queued;
	}
	if (b->state == BARRIER_SECOND_PASS && r->keys.answered >= b->goal)
		barrier_publish(r);
}
/* What comes from now on may be another source's, also where the load that it takes has to wait. */
static void redis_changed(struct redis *r)
{
	r->facts = r->last;
	redis_identify(r);
	redis_doubt(r);
}

/* ---- INFO -------------------------------------------------------------------------------------- */

static const char run_id_name[] = "\nrun_id:";

static void info_read(const char *text, const char *name, char *value, size_t size)
{
	const char *at = strstr(text, name);

	if (at)
		snprintf(value, size, "%.*s", (int)strcspn(at + strlen(name), "\r,"), at + strlen(name));
}

static bool redis_has_changed(const struct redis *r)
{
	return (rule_kept(RULE_INFO) && memcmp(&r->seen, &r->facts, sizeof(r->seen)) != 0) ||
	       (r->reset && rule_kept(RULE_RESET));
}

/* The text is kept if slots are to be followed in another way. */
static void redis_told_nodes(struct redis *r, const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_STRING ||
		!redis_nodes_myself(reply->str, r->whole->slots, r->id, &r->moves))
		return redis_lose(r, "the answer to CLUSTER NODES has no line of the node itself");
	r->view = redis_nodes_are_ruled(reply->str) ? redis_nodes_view(reply->str) : 0;
	free(r->nodes);
	r->nodes = redis_agrees(r) ? NULL : strdup(reply->str);
}

static void redis_informed(struct redis *r, const redisReply *reply)
{
	bool last = r->n == 0 || r->questions[r->first].what != ASK_INFO;
	char infos[24] = "";

	if (reply->type != REDIS_REPLY_STRING)
		return redis_lose(r, "the answer to INFO is no string");
	info_read(reply->str, run_id_name, r->seen.run_id, sizeof(r->seen.run_id));
	info_read(reply->str, "\nmaster_replid:", r->seen.replid, sizeof(r->seen.replid));
	info_read(reply->str, "\nrole:", r->seen.role, sizeof(r->seen.role));
	info_read(reply->str, "\ncmdstat_swapdb:calls=", r->seen.swaps, sizeof(r->seen.swaps));
	info_read(reply->str, "\nloading:", r->seen.loading, sizeof(r->seen.loading));
	info_read(reply->str, "\ncmdstat_info:calls=", infos, sizeof(infos));
	if (*infos) {
		r->reset = strtoull(infos, NULL, 10) < r->infos + COUNT(info_sections);
		r->infos = strtoull(infos, NULL, 10);
	}
	if (!last)
		return;
	r->last = r->seen;
	if (strcmp(r->seen.run_id, r->inval_run_id) != 0 && rule_kept(RULE_ONE_SERVER))
		redis_lose(r, "the name of the source leads to several servers: name one of them");
	else if (strcmp(r->seen.loading, "1") == 0)
		redis_lose(r, "the source loads its data");
	else if (r->whole->is_master && strcmp(r->seen.role, "master") != 0)
		redis_lose(r, "it is a replica, not the master");
	else if (r->state == REDIS_ATTACHING && redis_agrees(r))
		redis_load(r);
	else if (r->state != REDIS_ATTACHING && redis_has_changed(r))
		redis_changed(r);
	if (r->state != REDIS_APART)
		barrier_informed(r);
}

/* ---- answers ----------------------------------------------------------------------------------- */

static void redis_answer(struct redis *r, const redisReply *reply)
{
	struct redis_question q = r->questions[r->first];

	r->first = (r->first + 1) % REDIS_QUESTIONS;
	r->n--;
	link_answered(r, &r->data);
	if (q.what == ASK_GET)
		redis_got(r, q.key, reply);
	else if (q.what == ASK_TTL)
		redis_got_ttl(r, &q, reply);
	else if (reply->type == REDIS_REPLY_ERROR)
		redis_lose(r, reply->str);
	else if (q.what == ASK_TIME)
		redis_told_time(r, reply);
	else if (q.what == ASK_NODES)
		redis_told_nodes(r, reply);
	else if (q.what == ASK_SCAN)
		redis_scanned(r, reply);
	else if (q.what == ASK_INFO)
		redis_informed(r, reply);
}

static void redis_read_data(struct redis *r)
{
	redisReply *reply;

	if (!link_read(r, &r->data))
		return;
	while (r->state != REDIS_APART && (reply = link_reply(r, &r->data))) {
		if (r->n)
			redis_answer(r, reply);
		else
			redis_lose(r, reply->type == REDIS_REPLY_ERROR ? reply->str : no_question);
		freeReplyObject(reply);
	}
}

/* Keys of a message, or all. Other users of the source can publish on the channel too, but only texts: they
 * mean nothing */
static void redis_invalidate(struct redis *r, const redisReply *keys)
{
	if (keys->type == REDIS_REPLY_NIL && rule_kept(RULE_ALL_IN_DOUBT))
		redis_doubt(r);
	for (size_t i = 0; keys->type == REDIS_REPLY_ARRAY && i < keys->elements; i++) {
		r->invalidated++;
		keys_mark(&r->keys, keys->element[i]->str, keys->element[i]->len);
	}
}

/* A node of a cluster has some of the keys, and answers MOVED for the others. */
static void redis_named(struct redis *r, const char *info)
{
	char mode[16] = "";

	info_read(info, run_id_name, r->inval_run_id, sizeof(r->inval_run_id));
	info_read(info, "\nredis_mode:", mode, sizeof(mode));
	if (!r->whole->is_cluster && strcmp(mode, "cluster") == 0)
		redis_lose(r, "the source is a node of a cluster, to be followed as redis+cluster://");
}

static void redis_message(struct redis *r, const redisReply *m)
{
	const char *kind =
		m->type == REDIS_REPLY_ARRAY && m->elements && m->element[0]->type == REDIS_REPLY_STRING
			? m->element[0]->str
			: "";

	if (strcmp(kind, "message") == 0 && m->elements == 3)
		return redis_invalidate(r, m->element[2]);
	if (!r->inval.awaited)
		return redis_lose(r, m->type == REDIS_REPLY_ERROR ? m->str : no_question);
	link_answered(r, &r->inval);
	if (m->type == REDIS_REPLY_ERROR)
		redis_lose(r, m->str);
	else if (m->type == REDIS_REPLY_STRING)
		redis_named(r, m->str);
	else if (m->type == REDIS_REPLY_INTEGER)
		snprintf(r->inval_id, sizeof(r->inval_id), "%lld", m->integer);
	else if (strcmp(kind, "subscribe") == 0 && r->state == REDIS_ATTACHING && !r->data.awaited)
		redis_subscribed(r);
	else if (strcmp(kind, "pong") == 0) {
		r->pongs++;
		r->ping_at = r->now + PING_MS;
	}
}

static void redis_read_messages(struct redis *r)
{
	redisReply *reply;

	if (!link_read(r, &r->inval))
		return;
	while (r->state != REDIS_APART && (reply = link_reply(r, &r->inval))) {
		redis_message(r, reply);
		freeReplyObject(reply);
	}
}

/* ---- turns ------------------------------------------------------------------------------------- */

void redis_whole_init(struct redis_whole *w, const struct prefixes *prefixes, struct mirror *m)
{
	*w = (struct redis_whole){.prefixes = prefixes, .mirror = m};
}

void redis_init(struct redis *r, const struct url *url, struct redis_whole *w)
{
	assert(w->n < REDIS_SERVERS);
	w->server[w->n++] = r;
	*r = (struct redis){.url = url,
		.whole = w,
		.prefixes = w->prefixes,
		.mirror = w->mirror,
		.pause = PAUSE_LEAST_MS,
		.mean = UNKNOWN_BYTES};
	keys_init(&r->keys);
}

static void redis_deinit(void *of)
{
	struct redis *r = of;
	struct redis_whole *w = r->whole;
	unsigned i = 0;

	redis_lose(r, "");
	address_deinit(&r->address);
	keys_deinit(&r->keys);
	free(r->nodes);
	w->identity -= r->identity;
	while (w->server[i] != r)
		i++;
	w->server[i] = w->server[--w->n];
}

void redis_reassign(struct redis *r, bool others)
{
	r->stated = (struct reddn_as_of){0};
	r->again |= others && r->state > REDIS_ATTACHING;
	/* The answers of one that is asked are compared with the new view. */
	if (r->barrier.state > BARRIER_ASKED ||
		(r->barrier.state == BARRIER_REST && r->info_at != UINT64_MAX))
		barrier_end(r, 0);
}

static bool redis_is_full(const struct redis *r)
{
	return r->keys.queue_bytes > QUEUE_BYTES;
}

static void link_watch(struct redis *r, struct redis_link *l)
{
	if (r->state != REDIS_APART && l->since && r->now - l->since > REDIS_PATIENCE_MS)
		redis_lose(r, "no answer for two seconds");
}

/* What this program took itself, to reserve the memory of a larger table, is not the source's silence. */
static void link_excuse(struct redis_link *l, uint64_t ms)
{
	if (l->since)
		l->since += ms;
}

static void redis_keep_time(struct redis *r)
{
	/* what would show that the source lives is not read */
	if (redis_is_full(r) && r->inval.since)
		r->inval.since = r->now;
	link_watch(r, &r->inval);
	link_watch(r, &r->data);
	keys_expire(&r->keys, source_ms(r));
	if (r->state == REDIS_APART)
		return;
	if (r->now >= r->ping_at)
		redis_ping(r);
	if (r->now >= r->info_at)
		redis_ask_info(r);
}

static void link_write(struct redis *r, struct redis_link *l)
{
	int all = 1;

	if (r->state != REDIS_APART && redisBufferWrite(l->context, &all) != REDIS_OK)
		redis_lose(r, l->context->errstr);
	l->unsent = !all;
}

static void redis_turn(void *of, const struct pollfd *fds)
{
	struct redis *r = of;

	r->now = clock_ms();
	if (r->state != REDIS_APART && fds[0].revents)
		redis_read_messages(r);
	if (r->state != REDIS_APART && fds[1].revents)
		redis_read_data(r);
	if (r->state == REDIS_APART && r->now >= r->retry_at)
		redis_attach(r);
	redis_keep_time(r);
	redis_advance(r);
	barrier_step(r);
	if (r->state > REDIS_ATTACHING)
		redis_ask(r);
	link_write(r, &r->inval);
	link_write(r, &r->data);
	r->grows = mirror_tend(r->mirror, r->now);
	link_excuse(&r->inval, clock_ms() - r->now);
	link_excuse(&r->data, clock_ms() - r->now);
}

static int until(uint64_t at, uint64_t now, int most)
{
	return at <= now ? 0 : at - now < (uint64_t)most ? (int)(at - now) : most;
}

static int redis_prepare(void *of, struct pollfd fds[SOURCE_FDS], nfds_t *n)
{
	struct redis *r = of;
	const struct redis_link *links[] = {&r->inval, &r->data};
	uint64_t now = clock_ms();

	for (int i = 0; i < 2; i++)
		fds[i] = (struct pollfd){.fd = links[i]->context ? links[i]->context->fd : -1,
			.events = (short)(POLLIN | (links[i]->unsent ? POLLOUT : 0))};
	*n = 2;
	if (redis_is_full(r))
		fds[0].events &= ~POLLIN;
	if (redis_is_looked_up(r))
		fds[0].fd = address_fd(&r->address);
	if (r->state == REDIS_APART)
		return redis_is_looked_up(r) ? PING_MS : until(r->retry_at, now, PING_MS);
	if (r->grows ||
		(!r->asked && (r->state == REDIS_VERIFYING || redis_may_scan(r) || redis_is_scanned(r))))
		return 0;
	return keys_pause(&r->keys, source_ms(r) + now - r->now,
		until(r->ping_at, now, until(r->info_at, now, PING_MS)));
}

static void redis_report(const void *of, struct source_report *report)
{
	static const char *const names[] = {"apart", "attaching", "verifying", "scanning", "following"};
	const struct redis *r = of;

	*report = (struct source_report){
		/* one that is new has not been tried yet */
		.stage = r->state == REDIS_APART && *r->why ? SOURCE_APART
			 : r->state == REDIS_FOLLOWING      ? SOURCE_FOLLOWING
							    : SOURCE_LOADING,
		.state = names[r->state],
		.why = r->why,
		.loads = r->loads,
		.reported = r->invalidated,
		.absent = r->keys.nabsent,
		.complete = redis_complete(r),
		.settled = r->state == REDIS_FOLLOWING && !r->again && r->stated.source,
	};
}

struct source redis_as_source(struct redis *r)
{
	return (struct source){.of = r,
		.name = url_name(r->url),
		.prepare = redis_prepare,
		.turn = redis_turn,
		.report = redis_report,
		.deinit = redis_deinit};
}

/* As redis.conf and redis-cli read a word in quotation marks; white space would end a pattern of keys, and is
 * "any character" to it */
void redis_print_acl(const struct prefixes *prefixes, bool is_cluster)
{
	printf("ACL SETUSER follower on >PASSWORD resetchannels &%s resetkeys", channel);
	for (unsigned i = 0; i < prefixes->n; i++) {
		printf(" \"~");
		for (const char *p = prefixes->text[i]; *p; p++)
			printf("%s%s%c", strchr(glob_special, *p) ? "\\\\" : "",
				*p == '"' || *p == '\\' ? "\\" : "", isspace((unsigned char)*p) ? '?' : *p);
		printf("*\"");
	}
	printf("%s -@all +get +pttl +scan +info +ping +time +select +subscribe +client|id "
	       "+client|tracking%s\n",
		prefixes->n ? "" : " allkeys", is_cluster ? " +cluster|nodes" : "");
}
