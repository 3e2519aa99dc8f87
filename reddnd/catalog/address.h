/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * address.h - private to the catalog: addresses and networks from text. Numeric only, no names. Pure.
 */
#ifndef CATALOG_ADDRESS_H
#define CATALOG_ADDRESS_H

#include "reddnd/catalog/catalog.h"

/** "1.2.3.4:5", "[::]:5", "[fe80::1%eth0]:5", or without the port, which is REDDN_WIRE_PORT then. NULL, or
 * what would be right. */
const char *address_parse_listen(const char *text, struct catalog_listen *listen);

/** True if nobody can listen on both: they are equal, or one is the wildcard of the other's family. */
bool address_overlaps(const struct catalog_listen *a, const struct catalog_listen *b);

/** "192.0.2.0/24", "2001:db8::/32", or one address. */
bool address_parse_network(const char *text, struct catalog_network *network);

/** True if a bit behind the prefix is set. */
bool address_has_host_bits(const struct catalog_network *network);

bool address_same_network(const struct catalog_network *a, const struct catalog_network *b);

#endif
