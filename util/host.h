/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * host.h - hosts and ports from text, as people write them: HOST, HOST:PORT, [ADDRESS]:PORT.
 */
#ifndef UTIL_HOST_H
#define UTIL_HOST_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Splits @len bytes of text. *@port stays as it is if the text has none, as an IPv6 address without brackets.
 * False: there is no host, it does not fit into @size bytes, a bracket is missing, or the port is no decimal
 * number from 1 to 65535.
 */
bool host_split(const char *text, size_t len, char *host, size_t size, uint16_t *port);

/** getaddrinfo(3) for TCP at @port, with these flags: 0 and a list for freeaddrinfo(3), or its error. */
int host_look_up(const char *host, uint16_t port, int flags, struct addrinfo **list);

#endif
