/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nic.h - a session with one offload of a server: connects to it, again after a pause when it is lost.
 */
#ifndef LIBCLIENT_MC_NIC_H
#define LIBCLIENT_MC_NIC_H

#include "libclient/reddn-mc.h"

#include <stdint.h>

/**
 * At which address and offload the NIC of a memcached answers: at the address of the memcached
 * itself, unless a list has another place. The list has parts SERVER=PLACE, with commas between. SERVER is
 * HOST, HOST:PORT or the path of a socket, as libmemcached knows the server. PLACE is HOST[:PORT][/OFFLOAD],
 * with an IPv6 address in brackets, or "-": this server has no NIC.
 */
struct mc_where {
	char host[256]; /* "": no NIC */
	char offload[24];
	uint16_t port;
};

/** Sets *@where, which has the defaults, to the part of @list for the server at @host (a name or path) and
 * @port (0: a path). The first part counts. -EINVAL: a part is malformed, and *@bad is it. */
int mc_where_find(
	struct mc_where *where, const char *list, const char *host, unsigned port, const char **bad);

struct mc_nic {
	struct reddn *c;   /* NULL: not connected */
	bool lost;         /* c is to be closed, once its results are released */
	uint32_t flying;   /* requests without a reply */
	uint64_t heard_ms; /* clock_tick_ms() since when replies are due */
	uint64_t retry_ms; /* connects again not before, */
	uint32_t pause_ms; /* which is so much later; 0: it has been of use since */
	int refused;       /* how the last attempt to connect ended; 0: well */
	char why[300];     /* why it is not used; "": it is */
};

/** True if requests can be sent. Connects to offload @offload at @where if it is time to; @program, whose
 * only argument is an offset of @offset_bytes, is the one it must have. */
bool mc_nic_ready(struct mc_nic *nic, const struct mc_where *where, const char *offload,
	const struct reddn_mc_options *options, const char *program, uint32_t offset_bytes);

/** It is not to be used any more; @why is copied. */
void mc_nic_lose(struct mc_nic *nic, uint64_t now_ms, const char *why);

/** Releases its results, and closes it if it was lost. */
void mc_nic_release(struct mc_nic *nic);

/** Asks with @offset. 0; -EAGAIN: later; another error: it is to be lost. */
int mc_nic_ask(struct mc_nic *nic, uint64_t offset, uint64_t cookie);

/**
 * Takes up to @max results, all with a value; @now_ms is when, if there are any. Returns their number;
 * negative: it is to be lost, for the reason *@why. No result for @limit_ms is one.
 */
int mc_nic_poll(struct mc_nic *nic, struct reddn_result *got, int max, uint32_t limit_ms, uint64_t *now_ms,
	const char **why);

#endif
