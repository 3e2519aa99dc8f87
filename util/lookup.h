/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lookup.h - the addresses of a host name, for a caller who waits no longer than it wants to: getaddrinfo(3)
 * has no limit of its own, and takes tens of seconds where no name server answers. A thread calls it, which
 * ends by itself. Where the host is an address there is no thread, and the lookup has ended at once.
 */
#ifndef UTIL_LOOKUP_H
#define UTIL_LOOKUP_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

struct lookup;

/** Begins. -ENOMEM, -EMFILE, -EAGAIN: no thread can be made. */
int lookup_begin(struct lookup **lookup, const char *host, uint16_t port);

/** Can be read when it has ended; belongs to the lookup. */
int lookup_fd(const struct lookup *l);
bool lookup_has_ended(const struct lookup *l);

/** Frees one that has ended: 0 and a list for freeaddrinfo(3), or the error of getaddrinfo(3). */
int lookup_end(struct lookup *l, struct addrinfo **list);

/** Frees one that nobody waits for any more; NULL is allowed. */
void lookup_abandon(struct lookup *l);

#endif
