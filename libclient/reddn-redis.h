/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddn-redis.h - commands of Redis whose reads are answered by the NIC of a reddnd server, out of a table
 * that follows that Redis (reddn-follow(1)). See libreddn-redis(3).
 *
 * It is beside hiredis, and takes its place where an application has a redisContext and calls redisCommand:
 *
 *     redisContext *source = redisConnect("db1", 6379);
 *     struct reddn_options nic = {.host = "storage1,storage2", .offload = "users"};
 *     struct reddn_redis *r;
 *
 *     reddn_redis_new(&r, source, &(struct reddn_redis_options){.nic = &nic});
 *     reply = reddn_redis_command(r, "GET %s", "alice");
 *     freeReplyObject(reply);
 *
 * GET, MGET, EXISTS and STRLEN ask the NIC first, and Redis if the NIC's answer is no proof: it has no such
 * key, which may be of another type, or too long for the table; the answer is from before the last write of
 * this handle, or from before the last answer that it had from Redis about that key, or too old; the table
 * follows another Redis than the one of the context (a replica is another one), or another database; there is
 * none. All other commands go to Redis alone. A GET of a key of another type has no value where Redis has an
 * error.
 *
 * In a cluster, with `connect`, a command goes to the node that has its key. The NIC answers if the table
 * follows the same masters, with the same slots: all of them, or with `shards` of `nic` those of the key.
 *
 * One thread at a time uses a handle, as it is with a redisContext. A child of fork makes its own.
 */
#ifndef REDDN_REDIS_H
#define REDDN_REDIS_H

#include "reddn.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A connection with Redis, and a handle of libreddn, which is made when it is needed. */
struct reddn_redis;

/** All that it points to stays the caller's, unchanged until reddn_redis_free. */
struct reddn_redis_options {
	/* Host and offload: gets of the table. max_age_ms as for gets. timeout_ms: until Redis is asked, 100
	 * if it is 0. A NIC that has not answered is not asked again for a second, one that is refused for
	 * half a minute. */
	const struct reddn_options *nic;
	/* Exactly those of the follower, if it follows only keys that begin with one of these */
	const char *const *prefixes;
	size_t nprefixes;
	/* A connection with a node of a cluster that Redis redirects a command to (MOVED, ASK): blocking, and
	 * authenticated, as @source is; NULL or a context with an error: there is none. The handle keeps it,
	 * and frees it. NULL: a redirect is the reply, an error. */
	redisContext *(*connect)(void *of, const char *host, int port);
	void *of;
	uint64_t reserved[2]; /* 0 */
};

/**
 * A handle over @source: connected to the Redis that the table follows, version 6.2 or later, with the right
 * to INFO and CLIENT INFO; blocking, in the database that the table follows, and without commands that have
 * no reply yet. Its first read of each connection goes to Redis, and finds out if that is so. It stays the
 * caller's, who may use it for what changes no key, and connects it again (redisReconnect) when it has an
 * error: until then what the table has is answered, and for all else there is NULL, as from redisCommand.
 * -EINVAL: no host or offload, or @source is not blocking. -ENOMEM.
 */
int reddn_redis_new(
	struct reddn_redis **out, redisContext *source, const struct reddn_redis_options *options);

/** Ends the session with the server, not the connection with Redis. NULL is allowed. */
void reddn_redis_free(struct reddn_redis *r);

/**
 * As redisCommand, redisvCommand and redisCommandArgv: the reply is for freeReplyObject. NULL: the context of
 * Redis has the error. Between MULTI and EXEC, and for ever after SELECT and RESET, only Redis is asked.
 * In a cluster, WATCH, SSUBSCRIBE, and what is between MULTI and EXEC go to the node of the context only:
 * redirects are replies.
 */
redisReply *reddn_redis_command(struct reddn_redis *r, const char *format, ...);
redisReply *reddn_redis_vcommand(struct reddn_redis *r, const char *format, va_list args);
redisReply *reddn_redis_command_argv(
	struct reddn_redis *r, int argc, const char *const *argv, const size_t *lengths);

/** The caller has changed something without this handle, as by a pipeline of its own: what is read from now
 * on is as new as that. In a cluster that is so by the clock of the node of the context. */
void reddn_redis_wrote(struct reddn_redis *r);

struct reddn_redis_info {
	uint64_t nic_answers;    /* reads that the NIC has answered */
	uint64_t source_answers; /* and Redis */
	const char *error;       /* why the NIC could not be asked the last time; "" if it could */
};

/** What the handle has done. The words in @info are valid until the next command. */
void reddn_redis_get_info(const struct reddn_redis *r, struct reddn_redis_info *info);

#ifdef __cplusplus
}
#endif

#endif
