/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/public.h"
#include "libclient/reddn-redis.h"
#include "libclient/redis/nodes.h"
#include "protocol/redis-nodes.h"
#include "protocol/redis-origin.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <xxhash.h>

enum {
	NIC_MS = 100,
	PAUSE_MS = 1000,    /* in which a NIC is not asked that could not answer, */
	REFUSED_MS = 30000, /* and one whose server refuses the client */
	NOTES = 16384,
};

/* Of keys with this hash: a hash of the last answer of Redis about it, and from when on, by the clock of
 * Redis, a table has that */
struct note {
	uint64_t key, answer, us;
};

struct reddn_redis {
	redisContext *source;
	struct reddn_redis_options own;
	struct reddn_options nic_options;
	struct reddn *nic;     /* NULL: none */
	uint64_t silent_until; /* ms of CLOCK_MONOTONIC */
	uint8_t *values;
	size_t values_size, value_max;
	bool in_transaction, elsewhere; /* in another database, perhaps */
	uint64_t link;                  /* the connection: its SO_COOKIE */
	uint64_t known_link;            /* and the one that has said which Redis it leads to */
	uint64_t origin;                /* and which that is (redis-origin.h); 0: it has not */
	bool is_cluster;
	uint64_t version;  /* of the origin of a cluster (redis_nodes_version) */
	uint64_t learn_at; /* ms of CLOCK_MONOTONIC: without an origin its nodes are asked again */
	/* Commands that may have changed something; those of them that are before `since` */
	uint64_t written, known, since;
	struct note note[NOTES];
	struct nodes nodes;
	struct reddn_redis_info info;
	char error[300];
};

/* ---- commands ---------------------------------------------------------------------------------- */

enum what {
	IS_ANY,
	IS_OF_NO_KEY,
	IS_READ,
	IS_GET,
	IS_MGET,
	IS_EXISTS,
	IS_STRLEN,
	BEGINS,
	ENDS,
	LEAVES,
	STAYS
};

/* What is not here may change any key, or has an answer about any. IS_READ: about the one that follows it.
 * STAYS: what it does is for the connection of the context, whichever node has the key */
static const struct {
	const char *name;
	enum what what;
} commands[] = {
	{"GET", IS_GET},
	{"MGET", IS_MGET},
	{"EXISTS", IS_EXISTS},
	{"STRLEN", IS_STRLEN},
	{"MULTI", BEGINS},
	{"EXEC", ENDS},
	{"DISCARD", ENDS},
	{"SELECT", LEAVES},
	{"RESET", LEAVES},
	{"SSUBSCRIBE", STAYS},
	{"WATCH", STAYS},
	{"BITCOUNT", IS_READ},
	{"BITPOS", IS_READ},
	{"DUMP", IS_READ},
	{"ECHO", IS_OF_NO_KEY},
	{"EXPIRETIME", IS_READ},
	{"GETBIT", IS_READ},
	{"GETRANGE", IS_READ},
	{"HEXISTS", IS_READ},
	{"HGET", IS_READ},
	{"HGETALL", IS_READ},
	{"HKEYS", IS_READ},
	{"HLEN", IS_READ},
	{"HMGET", IS_READ},
	{"HSCAN", IS_READ},
	{"HVALS", IS_READ},
	{"INFO", IS_OF_NO_KEY},
	{"LINDEX", IS_READ},
	{"LLEN", IS_READ},
	{"LPOS", IS_READ},
	{"LRANGE", IS_READ},
	{"PEXPIRETIME", IS_READ},
	{"PING", IS_OF_NO_KEY},
	{"PTTL", IS_READ},
	{"PUBLISH", IS_OF_NO_KEY},
	{"SCARD", IS_READ},
	{"SISMEMBER", IS_READ},
	{"SMEMBERS", IS_READ},
	{"SMISMEMBER", IS_READ},
	{"SRANDMEMBER", IS_READ},
	{"SSCAN", IS_READ},
	{"SUBSTR", IS_READ},
	{"TIME", IS_OF_NO_KEY},
	{"TTL", IS_READ},
	{"TYPE", IS_READ},
	{"XLEN", IS_READ},
	{"XRANGE", IS_READ},
	{"ZCARD", IS_READ},
	{"ZCOUNT", IS_READ},
	{"ZMSCORE", IS_READ},
	{"ZRANGE", IS_READ},
	{"ZRANK", IS_READ},
	{"ZSCAN", IS_READ},
	{"ZSCORE", IS_READ},
};

static enum what command_what(const struct command *c)
{
	for (size_t i = 0; c->n && i < COUNT(commands); i++)
		if (c->word[0].key_len == strlen(commands[i].name) &&
			strncasecmp(c->word[0].key, commands[i].name, c->word[0].key_len) == 0)
			return commands[i].what;
	return IS_ANY;
}

/* hiredis has made @text: "*", the number of words, and of each "$", its length, and its bytes. */
static int command_split(struct command *c)
{
	char *at;

	c->n = strtoul(c->text + 1, &at, 10);
	c->word = calloc(c->n, sizeof(*c->word));
	if (!c->word)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++) {
		c->word[i].key_len = strtoul(at + 3, &at, 10);
		c->word[i].key = at + 2;
		at += 2 + c->word[i].key_len;
	}
	return 0;
}

/* ---- Redis ------------------------------------------------------------------------------------- */

static uint64_t reply_hash(const redisReply *reply, uint64_t seed)
{
	uint64_t h = XXH3_64bits_withSeed(&reply->type, sizeof(reply->type), seed);

	h = XXH3_64bits_withSeed(&reply->integer, sizeof(reply->integer), h);
	if (reply->str)
		h = XXH3_64bits_withSeed(reply->str, reply->len, h);
	for (size_t i = 0; i < reply->elements; i++)
		h = reply_hash(reply->element[i], h);
	return h;
}

static struct note *note_of(struct reddn_redis *r, const struct reddn_key *key, uint64_t *hash)
{
	*hash = XXH3_64bits(key->key, key->key_len);
	return &r->note[*hash % NOTES];
}

static uint64_t answer_hash(const struct command *c, const redisReply *reply)
{
	return reply_hash(reply, XXH3_64bits(c->text, c->size));
}

static void redis_note(struct reddn_redis *r, const struct command *c, const redisReply *reply, uint64_t us)
{
	uint64_t hash, answer = answer_hash(c, reply), since = us;

	if (r->known != r->written) {
		if (nodes_settle(&r->nodes, &since))
			r->known = r->written;
		if (since > r->since)
			r->since = since;
	}
	for (size_t i = 1; i <= c->nkeys; i++) {
		struct note *n = note_of(r, &c->word[i], &hash);

		/* what was answered when the clock of Redis was ahead is not known any more */
		*n = us > n->us ? (struct note){hash, answer, us} : (struct note){hash, 0, n->us};
	}
}

/* The application may have connected the context again: no other socket of this host has or will have the
 * same cookie. */
static void redis_see_link(struct reddn_redis *r)
{
	uint64_t link = 0;
	socklen_t size = sizeof(link);

	getsockopt(r->source->fd, SOL_SOCKET, SO_COOKIE, &link, &size);
	if (link != r->link)
		nodes_forget_owners(&r->nodes);
	r->link = link;
}

/* The number or text behind @name; NULL: the reply is no text that has it. With RESP3 it is of another type
 */
static const char *reply_find(const redisReply *reply, const char *name)
{
	const char *at = reply->type != REDIS_REPLY_ERROR && reply->str ? strstr(reply->str, name) : NULL;

	return at ? at + strlen(name) : NULL;
}

/* Answers about another process, or another database, say nothing of this one's: as after a write, Redis has
 * to answer once. */
static void redis_set_origin(struct reddn_redis *r, uint64_t origin)
{
	if (origin == r->origin)
		return;
	r->origin = origin;
	r->written++;
	r->silent_until = 0;
}

static void redis_keep_why(struct reddn_redis *r, const char *what, const redisReply *reply)
{
	snprintf(r->error, sizeof(r->error), "Redis does not say which one it is, by %s: %s", what,
		reply->type == REDIS_REPLY_ERROR ? reply->str : "nothing that is known");
}

static void redis_set_server(struct reddn_redis *r, const redisReply *server, const redisReply *client)
{
	const char *run_id = reply_find(server, "\nrun_id:"), *db = reply_find(client, " db=");

	if (!run_id || !db)
		redis_keep_why(r, run_id ? "CLIENT INFO" : "INFO server", run_id ? client : server);
	redis_set_origin(r,
		run_id && db ? redis_origin(run_id, strtoull(db, NULL, 10), r->own.prefixes, r->own.nprefixes)
			     : 0);
}

/* What a node has that has not heard yet of what others have is not believed. */
static void redis_set_nodes(struct reddn_redis *r, const redisReply *nodes)
{
	const char *text = reply_find(nodes, "");
	uint64_t origin = text ? redis_nodes_origin(text, r->own.prefixes, r->own.nprefixes) : 0;
	uint64_t version = text ? redis_nodes_version(text) : r->version;

	r->nodes.outdated = false;
	nodes_forget_lost(&r->nodes);
	if (!origin) {
		redis_keep_why(r, "CLUSTER NODES", nodes);
		r->learn_at = clock_ms() + PAUSE_MS;
	}
	if (version < r->version)
		return;
	r->version = version;
	redis_set_origin(r, origin);
}

/* Of a cluster it is learned with the next answer. A process that has been started again has the same origin
 * there. */
static void redis_learn(struct reddn_redis *r)
{
	void *server = NULL, *client = NULL;

	if (!r->source->err && redisAppendCommand(r->source, "INFO server") == REDIS_OK &&
		redisAppendCommand(r->source, "CLIENT INFO") == REDIS_OK &&
		redisGetReply(r->source, &server) == REDIS_OK &&
		redisGetReply(r->source, &client) == REDIS_OK) {
		r->is_cluster = r->nodes.outdated = reply_find(server, "\nredis_mode:cluster");
		r->version = 0;
		r->silent_until = 0;
		r->known_link = r->link;
		if (r->is_cluster)
			r->written++;
		else
			redis_set_server(r, server, client);
	}
	freeReplyObject(server);
	freeReplyObject(client);
}

/* And learns from when on a table has what this answer has, and of a new connection, which Redis that is. */
static redisReply *redis_read(struct reddn_redis *r, const struct command *c)
{
	struct report report = {0};
	redisReply *reply;

	if (r->link != r->known_link)
		redis_learn(r);
	/* a node that loads its data, or has met no other one yet, has not answered */
	if (r->is_cluster && !r->origin && clock_ms() >= r->learn_at)
		r->nodes.outdated = true;
	reply = nodes_read(&r->nodes, c, &report);
	r->info.source_answers += reply != NULL;
	if (report.nodes)
		redis_set_nodes(r, report.nodes);
	freeReplyObject(report.nodes);
	if (reply && report.us)
		redis_note(r, c, reply, report.us);
	return reply;
}

static redisReply *redis_pass(struct reddn_redis *r, const struct command *c, enum what what)
{
	redisReply *reply;

	if (what == IS_ANY || what == STAYS || what == ENDS || r->in_transaction)
		r->written++;
	if (what == LEAVES)
		r->elsewhere = true;
	reply = what == IS_ANY && !r->in_transaction ? nodes_send(&r->nodes, c)
						     : nodes_send_to_source(&r->nodes, c);
	if (what == BEGINS && reply && reply->type == REDIS_REPLY_STATUS)
		r->in_transaction = true;
	/* A connection that is lost ends it, too */
	if (what == ENDS || what == LEAVES || !reply)
		r->in_transaction = false;
	return reply;
}

/* ---- the NIC ----------------------------------------------------------------------------------- */

static void nic_failed(struct reddn_redis *r, int error, const char *why)
{
	r->silent_until = clock_ms() + (error == -EACCES || error == -ENOENT ? REFUSED_MS : PAUSE_MS);
	snprintf(r->error, sizeof(r->error), "%s", why);
}

static bool nic_connect(struct reddn_redis *r)
{
	struct reddn_info info;
	char why[sizeof(r->error)];
	int error;

	if (clock_ms() < r->silent_until)
		return false;
	if (r->nic)
		return true;
	error = reddn_connect(&r->nic, &r->nic_options, why, sizeof(why));
	if (error) {
		nic_failed(r, error, why);
		return false;
	}
	reddn_get_info(r->nic, &info);
	if (info.shape != REDDN_TABLE) {
		reddn_close(r->nic);
		r->nic = NULL;
		nic_failed(r, -ENOENT, "the offload has no gets of a table");
		return false;
	}
	return true;
}

static bool has_prefix(const struct reddn_redis *r, const struct reddn_key *key)
{
	for (size_t i = 0; i < r->own.nprefixes; i++) {
		size_t n = strlen(r->own.prefixes[i]);

		if (key->key_len >= n && memcmp(key->key, r->own.prefixes[i], n) == 0)
			return true;
	}
	return r->own.nprefixes == 0;
}

static bool nic_may_know(const struct reddn_redis *r, const struct command *c)
{
	if (!c->nkeys || r->known != r->written || r->in_transaction || r->elsewhere || !r->origin ||
		r->nodes.outdated)
		return false;
	if (!r->source->err && r->link != r->known_link)
		return false;
	for (size_t i = 1; i <= c->nkeys; i++)
		if (!c->word[i].key_len || !has_prefix(r, &c->word[i]) ||
			(r->is_cluster && redis_slot(c->word[i].key, c->word[i].key_len) !=
						  redis_slot(c->word[1].key, c->word[1].key_len)))
			return false;
	return true;
}

/* Room for the values of @n keys: pages that no value comes to are never touched. */
static int nic_make_room(struct reddn_redis *r, size_t n)
{
	struct reddn_info info;
	size_t size;
	void *values;

	reddn_get_info(r->nic, &info); /* another session may have a table of longer values */
	r->value_max = info.max_value ? info.max_value : 1;
	if (__builtin_mul_overflow(n, r->value_max, &size))
		return -ENOMEM;
	if (size <= r->values_size)
		return 0;
	values = realloc(r->values, size);
	if (!values)
		return -ENOMEM;
	r->values = values;
	r->values_size = size;
	return 0;
}

static bool is_origin(const struct reddn_redis *r, uint64_t origin)
{
	/* only with shards is an answer of one that has the slot */
	return origin == r->origin || (r->is_cluster && r->nic_options.shards && origin == ~r->origin);
}

/* A table that follows another Redis, or none, is not asked again soon: if it is the slots that have others
 * by now, the next answer of Redis shows it. */
static bool is_of_source(struct reddn_redis *r, const struct reddn_mget *got, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (got[i].status >= 0 && !is_origin(r, got[i].as_of.origin)) {
			r->nodes.outdated = r->is_cluster;
			nic_failed(r, -ESTALE,
				"the table does not follow the Redis, the database and the prefixes of this "
				"handle");
			return false;
		}
	return true;
}

/* @reply has what the handle has seen of each key: it is from later than the last answer of Redis about it,
 * or the same one. Else a key that is always asked for would never have a table that is new enough. */
static bool is_proof(
	struct reddn_redis *r, const struct command *c, const struct reddn_mget *got, const redisReply *reply)
{
	uint64_t hash, answer = answer_hash(c, reply);

	for (size_t i = 0; i < c->nkeys; i++) {
		const struct note *n = note_of(r, &c->word[i + 1], &hash);

		if (got[i].as_of.source <= r->since ||
			(got[i].as_of.source <= n->us && (n->key != hash || n->answer != answer)))
			return false;
	}
	return true;
}

/* Of a key that it cannot have, or an answer that is too old: the next key may have one */
static bool is_unanswered(int status)
{
	return status == -ESTALE || status == -EMSGSIZE || status == -EINVAL;
}

static bool nic_get(struct reddn_redis *r, struct reddn_mget *got, size_t n)
{
	int status;

	if (!nic_connect(r) || nic_make_room(r, n) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		got[i].buf = r->values + i * r->value_max;
		got[i].buf_len = r->value_max;
	}
	status = reddn_mget(r->nic, got, n);
	for (size_t i = 0; i < n && status == 0; i++)
		if (got[i].status < 0 && !is_unanswered(got[i].status))
			status = got[i].status;
	if (status < 0)
		nic_failed(r, status, *reddn_errmsg(r->nic) ? reddn_errmsg(r->nic) : strerror(-status));
	else
		*r->error = '\0';
	return status == 0;
}

/* ---- replies ----------------------------------------------------------------------------------- */

static void reader_feed_value(redisReader *reader, const struct reddn_mget *got)
{
	char head[32];

	snprintf(head, sizeof(head), "$%zu\r\n", got->len);
	redisReaderFeed(reader, got->status ? "$-1" : head, got->status ? 3 : strlen(head));
	if (got->status == 0)
		redisReaderFeed(reader, got->buf, got->len);
	redisReaderFeed(reader, "\r\n", 2);
}

static void reader_feed_number(redisReader *reader, char type, size_t number)
{
	char text[32];

	redisReaderFeed(reader, text, (size_t)snprintf(text, sizeof(text), "%c%zu\r\n", type, number));
}

/* As hiredis makes it of the bytes that Redis would send, so that it can be freed by any version of hiredis.
 * NULL: no memory */
static redisReply *reply_of(enum what what, const struct reddn_mget *got, size_t n)
{
	redisReader *reader = redisReaderCreate();
	void *reply = NULL;

	if (!reader)
		return NULL;
	if (what == IS_EXISTS)
		reader_feed_number(reader, ':', n);
	else if (what == IS_STRLEN)
		reader_feed_number(reader, ':', got->len);
	else if (what == IS_MGET)
		reader_feed_number(reader, '*', n);
	for (size_t i = 0; i < n && (what == IS_GET || what == IS_MGET); i++)
		reader_feed_value(reader, &got[i]);
	redisReaderGetReply(reader, &reply);
	redisReaderFree(reader);
	return reply;
}

/* A key that is missing in the table may be one of another type: GET and MGET take that for missing, others
 * do not. */
static bool is_answer(enum what what, const struct reddn_mget *got, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (got[i].status < 0 || !(got[i].as_of.flags & REDDN_FOLLOWS) ||
			(got[i].status && (!(got[i].as_of.flags & REDDN_COMPLETE) || what == IS_EXISTS ||
						  what == IS_STRLEN)))
			return false;
	return true;
}

static redisReply *nic_read(struct reddn_redis *r, const struct command *c, enum what what)
{
	CLEANUP(cleanup_free) struct reddn_mget *got = NULL;
	redisReply *reply;

	if (what == IS_READ || !nic_may_know(r, c) ||
		((what == IS_GET || what == IS_STRLEN) && c->nkeys != 1))
		return NULL;
	got = calloc(c->nkeys, sizeof(*got));
	for (size_t i = 0; got && i < c->nkeys; i++)
		got[i] = (struct reddn_mget){.key = c->word[i + 1].key, .key_len = c->word[i + 1].key_len};
	if (!got || !nic_get(r, got, c->nkeys) || !is_of_source(r, got, c->nkeys) ||
		!is_answer(what, got, c->nkeys))
		return NULL;
	reply = reply_of(what, got, c->nkeys);
	if (reply && !is_proof(r, c, got, reply)) {
		freeReplyObject(reply);
		return NULL;
	}
	r->info.nic_answers += reply != NULL;
	return reply;
}

/* ---- what applications call -------------------------------------------------------------------- */

PUBLIC int reddn_redis_new(
	struct reddn_redis **out, redisContext *source, const struct reddn_redis_options *options)
{
	struct reddn_redis *r;

	if (!source || !(source->flags & REDIS_BLOCK) || !options || !options->nic || !options->nic->host ||
		!options->nic->offload)
		return -EINVAL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->source = source;
	r->nodes.source = source;
	r->nodes.connect = options->connect;
	r->nodes.of = options->of;
	r->own = *options;
	r->nic_options = *options->nic;
	if (!r->nic_options.timeout_ms)
		r->nic_options.timeout_ms = NIC_MS;
	*out = r;
	return 0;
}

PUBLIC void reddn_redis_free(struct reddn_redis *r)
{
	if (!r)
		return;
	reddn_close(r->nic);
	nodes_deinit(&r->nodes);
	free(r->values);
	free(r);
}

/* @text is hiredis' memory, and freed; its @size is negative if there is none. */
static redisReply *redis_run(struct reddn_redis *r, char *text, long long size)
{
	struct command c = {.text = text, .size = (size_t)size};
	redisReply *reply = NULL;
	enum what what;

	if (size < 0 || command_split(&c) < 0) {
		r->source->err = size == -2 ? REDIS_ERR_OTHER : REDIS_ERR_OOM;
		snprintf(r->source->errstr, sizeof(r->source->errstr), "%s",
			size == -2 ? "Invalid format string" : "Out of memory");
	} else {
		redis_see_link(r);
		what = command_what(&c);
		if (c.n > 1)
			c.nkeys = what == IS_READ ? 1 : c.n - 1;
		if (r->in_transaction || what < IS_READ || what > IS_STRLEN)
			reply = redis_pass(r, &c, what);
		else if (!(reply = nic_read(r, &c, what)))
			reply = redis_read(r, &c);
	}
	free(c.word);
	if (size >= 0)
		redisFreeCommand(text);
	return reply;
}

PUBLIC redisReply *reddn_redis_vcommand(struct reddn_redis *r, const char *format, va_list args)
{
	char *text;
	int size = redisvFormatCommand(&text, format, args);

	return redis_run(r, text, size);
}

PUBLIC redisReply *reddn_redis_command(struct reddn_redis *r, const char *format, ...)
{
	redisReply *reply;
	va_list args;

	va_start(args, format);
	reply = reddn_redis_vcommand(r, format, args);
	va_end(args);
	return reply;
}

PUBLIC redisReply *reddn_redis_command_argv(
	struct reddn_redis *r, int argc, const char *const *argv, const size_t *lengths)
{
	char *text;
	long long size = redisFormatCommandArgv(&text, argc, (const char **)(uintptr_t)argv, lengths);

	return redis_run(r, text, size);
}

PUBLIC void reddn_redis_wrote(struct reddn_redis *r)
{
	r->nodes.changed = true;
	r->written++;
}

PUBLIC void reddn_redis_get_info(const struct reddn_redis *r, struct reddn_redis_info *info)
{
	*info = r->info;
	info->error = r->error;
}
