/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uses.h - reports keys that were got by the NIC to their memcached, so that it does not evict them: "mg KEY"
 * (protocol.txt), whose effect on the LRU lists is that of a get. Waits for no connection, answer or room in
 * the socket, but to connect it looks up the addresses of its host, and getaddrinfo(3) may wait for those.
 *
 * A report wakes a thread of memcached, which takes it ten times as long as what it does then. So reports
 * are gathered and sent ten times in a second. A report that comes longer after the last ones is sent at
 * once.
 */
#ifndef LIBCLIENT_MC_USES_H
#define LIBCLIENT_MC_USES_H

#include "memcached/talk.h"

#include <stdbool.h>

struct mc_uses {
	const char *server; /* talk.h */
	uint32_t per_s;     /* at most so many in a second */
	uint64_t next_ns;   /* CLOCK_MONOTONIC: no report is taken before */
	uint64_t send_ns;   /* and those that were taken are sent then */
	size_t len;         /* bytes of them */
	unsigned keys;      /* and how many */
	uint64_t sent;      /* keys, since mc_uses_init() */
	unsigned tried;     /* addresses, since the last one that took keys (talk_begin) */
	char lines[4096];
	struct talk talk;
	bool open;
};

/** Connects when it is first needed; @server stays the caller's. */
void mc_uses_init(struct mc_uses *u, const char *server, uint32_t per_s);
/** Sends what was not sent yet. */
void mc_uses_deinit(struct mc_uses *u);

/** True if @key is taken at @now_ns, to be reported. False if it waits to be sent already,
 * or as many do as there is room for. */
bool mc_uses_report(struct mc_uses *u, const char *key, size_t key_len, uint64_t now_ns);

/** Sends what was taken, if it is time. */
void mc_uses_send_due(struct mc_uses *u, uint64_t now_ns);

#endif
