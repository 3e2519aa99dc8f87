/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * url.h - where a Redis server is: redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], or
 * unix://[[USER]:PASSWORD@]PATH[?db=DB], or where that can be asked; and which columns of a PostgreSQL server
 * are followed, as other clients write them. Pure.
 */
#ifndef TOOLS_REDDN_FOLLOW_URL_H
#define TOOLS_REDDN_FOLLOW_URL_H

#include "util/lookup.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

struct url {
	char host[256]; /* empty: a Unix socket */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char user[128], password[512]; /* empty: none */
	uint16_t port;
	unsigned db;
};

/** 0, or -EINVAL with the mistake in @err. User and password may have %HH for any byte but zero. */
int url_parse(struct url *url, const char *text, char *err, size_t errlen);

enum { URL_SEEDS = 16 };

/** redis+cluster://[[USER]:PASSWORD@]HOST[:PORT],...[/?slots=FIRST-LAST]: some nodes of a cluster, as servers
 * of their own, and which slots are meant, redis_slots(). 0, or -EINVAL with the mistake in @err. */
int url_parse_cluster(struct url seeds[URL_SEEDS], unsigned *n, uint64_t *slots, const char *text, char *err,
	size_t errlen);

/**
 * redis+sentinel://[[USER]:PASSWORD@]HOST[:PORT],.../NAME[/DB]: sentinels, and the name of a master; user and
 * password are for the master.
 */
struct sentinel_url {
	struct url sentinel[URL_SEEDS]; /* n */
	unsigned n;
	char name[128];
	struct url master; /* without host and port */
};

/** 0, or -EINVAL with the mistake in @err. */
int url_parse_sentinel(struct sentinel_url *url, const char *text, char *err, size_t errlen);

enum { URL_ADDRESS = 300 };

/** HOST:PORT, in @text. */
const char *url_address(const struct url *url, char text[URL_ADDRESS]);

/** The URL without its password, for messages: it belongs to @url and stays until the next call. */
const char *url_name(const struct url *url);

/** postgresql://...?table=TABLE&key=COLUMN&value=COLUMN[&publication=NAME]; the other parameters are those of
 * libpq. */
struct postgres_url {
	char conninfo[1024]; /* for libpq */
	char table[160], key[64], value[64], publication[64];
	char name[512]; /* without the password, for messages */
};

/** 0, or -EINVAL with the mistake in @err. */
int postgres_url_parse(struct postgres_url *url, const char *text, char *err, size_t errlen);

/* The address of a server's host, which is looked up while all else goes on. */

struct address {
	struct lookup *lookup; /* NULL: none has begun */
	char text[64];         /* numeric */
};

/** 0: it is there. -EAGAIN: not yet; ask again when address_fd() can be read. -ENOENT: @why. A call after 0
 * or an error begins anew. */
int address_find(struct address *a, const struct url *url, const char **why);

/** -1: nothing is looked up. */
int address_fd(const struct address *a);

void address_deinit(struct address *a);

#endif
