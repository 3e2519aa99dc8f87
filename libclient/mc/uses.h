/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * uses.h - reports keys that were got by the NIC to their memcached, so that it does not evict them: "mg KEY"
 * (protocol.txt), whose effect on the LRU lists is that of a get. Never waits for an answer, and gives up
 * rather than wait for room in the socket.
 */
#ifndef LIBCLIENT_MC_USES_H
#define LIBCLIENT_MC_USES_H

#include "memcached/talk.h"

#include <stdbool.h>

struct mc_uses {
	const char *server; /* talk.h */
	uint32_t per_s;     /* at most so many in a second */
	uint64_t next_ns;   /* CLOCK_MONOTONIC: not before */
	struct talk talk;
	bool open;
};

/** Connects when it is first needed; @server stays the caller's. */
void mc_uses_init(struct mc_uses *u, const char *server, uint32_t per_s);
void mc_uses_deinit(struct mc_uses *u);

/** True if @key was reported at @now_ns. */
bool mc_uses_report(struct mc_uses *u, const char *key, size_t key_len, uint64_t now_ns);

#endif
