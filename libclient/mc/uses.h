/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uses.h - reports keys that were got by the NIC to their memcached, so that it does not evict them: "mg KEY"
 * (protocol.txt), whose effect on the LRU lists is that of a get. Waits for no answer and no room in the
 * socket; whoever owns the connection takes the answers (talk_has_ended()).
 *
 * A report wakes a thread of memcached, which takes it ten times as long as what it does then. So reports
 * are gathered and sent ten times in a second. A report that comes longer after the last ones is sent at
 * once.
 */
#ifndef LIBCLIENT_MC_USES_H
#define LIBCLIENT_MC_USES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
