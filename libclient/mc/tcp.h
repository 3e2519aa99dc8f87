/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp.h - gets by libmemcached.
 */
#ifndef LIBCLIENT_MC_TCP_H
#define LIBCLIENT_MC_TCP_H

#include <libmemcached/memcached.h>
#include <stddef.h>
#include <stdint.h>

/** A get, and room for its answer, which is kept for the next one. All zero: none. */
struct mc_tcp_get {
	const char *key;
	size_t key_len;
	int status; /* 0, REDDN_MISS, or -errno */
	char *value;
	size_t len, room;
	uint64_t cas;
	uint32_t flags;
};

/** Frees the room. */
void mc_tcp_deinit(struct mc_tcp_get *get);

/** Makes room for @len bytes. 0 or -ENOMEM. */
int mc_tcp_reserve(struct mc_tcp_get *get, size_t len);

/** Gets @n keys that have one server, in one question. Sets the status of each, and the answer if that is 0.
 */
void mc_tcp_ask(memcached_st *memc, struct mc_tcp_get *const *gets, size_t n);

#endif
