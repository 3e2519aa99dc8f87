/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * where.h - at which address and offload the NIC of a memcached answers: at the address of the memcached
 * itself, unless a list has another place. The list has parts SERVER=PLACE, with commas between. SERVER is
 * HOST, HOST:PORT or the path of a socket, as libmemcached knows the server. PLACE is HOST[:PORT][/OFFLOAD],
 * with an IPv6 address in brackets, or "-": this server has no NIC.
 */
#ifndef LIBCLIENT_MC_WHERE_H
#define LIBCLIENT_MC_WHERE_H

#include <stdint.h>

struct mc_where {
	char host[256]; /* "": no NIC */
	char offload[24];
	uint16_t port;
};

/** Sets *@where, which has the defaults, to the part of @list for the server at @host (a name or path) and
 * @port (0: a path). The first part counts. -EINVAL: a part is malformed, and *@bad is it. */
int mc_where_find(
	struct mc_where *where, const char *list, const char *host, unsigned port, const char **bad);

#endif
