/* SPDX-License-Identifier: BSD-2-Clause */
/* addresses.h - the addresses of a server's name, which are tried one after the other. */
#ifndef LIBCLIENT_ADDRESSES_H
#define LIBCLIENT_ADDRESSES_H

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Look @host up. 0, and the caller passes *list to freeaddrinfo(). -EHOSTUNREACH; -ETIMEDOUT: not before
 * @deadline (clock_ms); and others of lookup_begin(), with the reason in @err.
 */
int reddn_addresses_find(
	struct addrinfo **list, const char *host, uint16_t port, uint64_t deadline, char *err, size_t errlen);

/**
 * Until when (clock_ms) @address may be tried: those behind it in its list get as much as it does of what is
 * left between @now and @deadline.
 */
uint64_t reddn_addresses_until(const struct addrinfo *address, uint64_t now, uint64_t deadline);

/** Append to the words of a failure at @err which of several addresses they are about. */
void reddn_addresses_add(
	const struct addrinfo *list, const struct addrinfo *address, char *err, size_t errlen);

#endif
