/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * source.h - what counts as one source of clients, for bans and refusals. Pure.
 *
 * An IPv4 address is one. Of IPv6 a host has a whole network of addresses, so a source is a prefix, of 64
 * bits unless the configuration gives another length. Link-local addresses have the prefix of all their
 * neighbours: each of them is a source.
 */
#ifndef POLICY_SOURCE_H
#define POLICY_SOURCE_H

#include <netinet/in.h>
#include <stdint.h>

enum { SOURCE_BITS = 64, SOURCE_TEXT = INET6_ADDRSTRLEN + 4 };

struct source {
	uint8_t prefix[16]; /* IPv4 as ::ffff:a.b.c.d */
};

/** The source of a client. @bits: of an IPv6 address; 0: SOURCE_BITS. */
struct source source_of(const uint8_t address[16], unsigned bits);

/** The network that it probably shares with other sources of the same owner: 24 bits of IPv4, 48 of IPv6. */
struct source source_network(const struct source *s);

/** "192.0.2.1", "2001:db8::/64". */
const char *source_text(const struct source *s, unsigned bits, char text[SOURCE_TEXT]);

#endif
