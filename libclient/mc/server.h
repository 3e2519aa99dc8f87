/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * server.h - one memcached of a pool, and the NIC that reads its items: connects to it, again after a pause
 * when it is lost, and makes sure that it is the NIC of this memcached.
 */
#ifndef LIBCLIENT_MC_SERVER_H
#define LIBCLIENT_MC_SERVER_H

#include "libclient/mc/judge.h"
#include "libclient/mc/nic.h"
#include "memcached/identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Reports keys that were got by the NIC to their memcached, so that it does not evict them: "mg KEY"
 * (protocol.txt), whose effect on the LRU lists is that of a get. Waits for no answer and no room in the
 * socket; whoever owns the connection takes the answers (talk_has_ended()).
 *
 * A report wakes a thread of memcached, which takes it ten times as long as what it does then. So reports
 * are gathered and sent ten times in a second. A report that comes longer after the last ones is sent at
 * once.
 */
struct mc_uses {
	int fd;           /* of a connection with the memcached, the caller's; -1: none */
	uint32_t per_s;   /* at most so many in a second */
	uint64_t next_ns; /* CLOCK_MONOTONIC: no report is taken before */
	uint64_t send_ns; /* and those that were taken are sent then */
	size_t len;       /* bytes of them */
	unsigned keys;    /* and how many */
	uint64_t sent;    /* keys, since mc_uses_init() */
	char lines[4096];
};

void mc_uses_init(struct mc_uses *u, uint32_t per_s);

/** True if @key is taken at @now_ns, to be reported. False if it waits to be sent already,
 * or as many do as there is room for. */
bool mc_uses_report(struct mc_uses *u, const char *key, size_t key_len, uint64_t now_ns);

/** Sends what was taken, if it is time. A connection that does not take it is shut down (shutdown(2)), and
 * left. */
void mc_uses_send_due(struct mc_uses *u, uint64_t now_ns);

/** Sends what was taken: the connection is about to be closed. */
void mc_uses_send_last(struct mc_uses *u);

struct mc_server {
	char host[256];        /* a name or the path of a socket, */
	unsigned port;         /* 0: of a socket; both as libmemcached has them */
	char name[300];        /* of both (talk.h) */
	struct mc_where where; /* its NIC */
	const struct reddn_mc_options *options;
	struct mc_nic nic;     /* of memcached-get */
	struct mc_nic pieces;  /* of memcached-piece, if an item is longer */
	uint16_t pieces_depth; /* to ask for next, because more was refused; 0: none was */
	struct mc_facts facts;
	struct identity verified; /* of the memcached that this server is, and that nic has the items of */
	struct talk talk;         /* with that memcached, if @talks: it lives as long as this connection, */
	bool talks;
	struct identity denied;  /* instead of which another memcached answered, */
	uint64_t doubted, asked; /* when its NIC had been asked so often; and how often it was */
	uint64_t look_ms;        /* of which that was seen last at this time */
	uint64_t talk_ms;        /* talks to the memcached not before: the last time nobody answered, */
	uint32_t pause_ms;       /* for so long; 0: it answered */
	bool begins;             /* the NIC's last reply was of a memcached that is not proved yet, */
	bool listens;            /* which accepts connections */
	struct mc_uses uses;
};

/** @host, a name or the path of a socket, and @port are libmemcached's; @options and @err as in
 * reddn_mc_connect(), with no defaults left. -EINVAL: @options->nics is malformed. */
int mc_server_init(struct mc_server *s, const char *host, unsigned port,
	const struct reddn_mc_options *options, char *err, size_t errlen);
void mc_server_deinit(struct mc_server *s);

/** True if requests can be sent to its NIC; connects to it if it is time to. */
bool mc_server_ready(struct mc_server *s);

/** The same for pieces of items. Where the depth is refused, the next call asks for less. */
bool mc_server_has_pieces(struct mc_server *s);

/** True if a memcached that begins accepts connections; looks again after a pause if it does not. */
bool mc_server_listens(struct mc_server *s);

/** The NIC is not to be used any more; @why is copied. */
void mc_server_lose(struct mc_server *s, uint64_t now_ms, const char *why);

/** Closes a NIC that was lost: its results are released. */
void mc_server_release(struct mc_server *s);

/**
 * Learn from the lines of a reply, which mc_lines_read() has accepted. True if the reply can be judged: the
 * facts are known, and the memcached is the one of this server, which has the item by which reddnd names it
 * (memcached/identity.h). That is asked over TCP, when the lines name another one, and when the connection
 * over which it was asked has ended; again after a pause if nobody answers. One that was verified, or that
 * reddnd calls dead, is relied on until another memcached answers. That may be the next one, of which the NIC
 * did not know yet when it was asked: replies to earlier requests do not count (mc_server_doubts()). It is
 * lost if it names the same one again.
 */
bool mc_server_learn(struct mc_server *s, const struct mc_lines *lines, uint64_t nth, uint64_t now_ms);

/** True if another memcached has answered since request @nth. */
static inline bool mc_server_doubts(const struct mc_server *s, uint64_t nth)
{
	return nth <= s->doubted;
}

#endif
