/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/source.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ADDRESS_BITS = 128, V4_NETWORK_BITS = 96 + 24, V6_NETWORK_BITS = 48 };

static struct in6_addr in6(const uint8_t address[16])
{
	struct in6_addr a;

	memcpy(&a, address, sizeof(a));
	return a;
}

static bool is_whole(const uint8_t address[16])
{
	struct in6_addr a = in6(address);

	return IN6_IS_ADDR_V4MAPPED(&a) || IN6_IS_ADDR_LINKLOCAL(&a);
}

static struct source first_bits(const uint8_t address[16], unsigned bits)
{
	struct source s = {{0}};

	memcpy(s.prefix, address, bits / 8);
	if (bits % 8)
		s.prefix[bits / 8] = (uint8_t)(address[bits / 8] & 0xff00 >> bits % 8);
	return s;
}

struct source source_of(const uint8_t address[16], unsigned bits)
{
	return first_bits(address, is_whole(address) ? ADDRESS_BITS : bits ? bits : SOURCE_BITS);
}

struct source source_network(const struct source *s)
{
	struct in6_addr a = in6(s->prefix);

	return first_bits(s->prefix, IN6_IS_ADDR_V4MAPPED(&a) ? V4_NETWORK_BITS : V6_NETWORK_BITS);
}

const char *source_text(const struct source *s, unsigned bits, char text[SOURCE_TEXT])
{
	struct in6_addr a = in6(s->prefix);

	if (IN6_IS_ADDR_V4MAPPED(&a)) {
		inet_ntop(AF_INET, s->prefix + 12, text, SOURCE_TEXT);
		return text;
	}
	inet_ntop(AF_INET6, s->prefix, text, SOURCE_TEXT);
	if (!is_whole(s->prefix) && (bits ? bits : SOURCE_BITS) < ADDRESS_BITS)
		snprintf(text + strlen(text), SOURCE_TEXT - strlen(text), "/%u", bits ? bits : SOURCE_BITS);
	return text;
}
