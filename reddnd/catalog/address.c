/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/address.h"

#include "protocol/wire.h"
#include "util/host.h"
#include "util/number.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <string.h>

/* What of an address there is to compare */
struct parts {
	int family;
	struct in6_addr address; /* or IPv4 in its first 4 bytes */
	const char *interface;   /* behind '%'; "": none */
};

/* False: it is no address */
static bool read_parts(const char *text, struct parts *p)
{
	const char *end = strchrnul(text, '%');
	char address[INET6_ADDRSTRLEN];

	*p = (struct parts){.family = memchr(text, ':', (size_t)(end - text)) ? AF_INET6 : AF_INET,
		.interface = *end ? end + 1 : end};
	if ((size_t)(end - text) >= sizeof(address))
		return false;
	memcpy(address, text, (size_t)(end - text));
	address[end - text] = '\0';
	return inet_pton(p->family, address, &p->address) == 1 && (p->family == AF_INET6 || !*end);
}

static bool is_group(const struct parts *p)
{
	uint32_t v4;

	memcpy(&v4, &p->address, sizeof(v4));
	v4 = ntohl(v4);
	return p->family == AF_INET ? IN_MULTICAST(v4) || v4 == INADDR_BROADCAST
				    : IN6_IS_ADDR_MULTICAST(&p->address);
}

const char *address_parse_listen(const char *text, struct catalog_listen *listen)
{
	static const char *const right = "a numeric address and a port: \"0.0.0.0:7471\", \"[::]:7471\"";
	uint16_t port = REDDN_WIRE_PORT;
	struct parts p;

	if (!host_split(text, strlen(text), listen->address, sizeof(listen->address), &port) ||
		!read_parts(listen->address, &p) || (text[0] == '[') != (p.family == AF_INET6))
		return right;
	if (is_group(&p))
		return "an address of this machine; nobody can listen on one of a group or for broadcasts";
	listen->port = port;
	if (p.family == AF_INET)
		return NULL;
	if (IN6_IS_ADDR_V4MAPPED(&p.address))
		return "an IPv4 address as such: \"127.0.0.1:7471\"";
	if (!IN6_IS_ADDR_LINKLOCAL(&p.address))
		return strchr(listen->address, '%')
			       ? "it without %; only link-local addresses have an interface"
			       : NULL;
	return *p.interface && strlen(p.interface) < IFNAMSIZ
		       ? NULL
		       : "a link-local address with its interface: \"[fe80::1%eth0]:7471\"";
}

bool address_overlaps(const struct catalog_listen *a, const struct catalog_listen *b)
{
	static const struct in6_addr any;
	struct parts pa, pb;
	size_t size;

	if (a->port != b->port || !read_parts(a->address, &pa) || !read_parts(b->address, &pb) ||
		pa.family != pb.family)
		return false;
	size = pa.family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
	return memcmp(&pa.address, &any, size) == 0 || memcmp(&pb.address, &any, size) == 0 ||
	       (memcmp(&pa.address, &pb.address, size) == 0 && strcmp(pa.interface, pb.interface) == 0);
}

static void set_v4(uint8_t address[16], const uint8_t v4[4])
{
	memset(address, 0, 10);
	memset(address + 10, 0xff, 2);
	memcpy(address + 12, v4, 4);
}

bool address_parse_network(const char *text, struct catalog_network *n)
{
	const char *slash = strchrnul(text, '/');
	char address[INET6_ADDRSTRLEN];
	uint64_t most, bits;
	uint8_t v4[4];

	if ((size_t)(slash - text) >= sizeof(address))
		return false;
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = '\0';
	if (inet_pton(AF_INET, address, v4) == 1) {
		set_v4(n->address, v4);
		most = 32;
	} else if (inet_pton(AF_INET6, address, n->address) == 1) {
		most = 128;
	} else {
		return false;
	}
	bits = most;
	if (*slash && number_parse_decimal(slash + 1, 0, most, &bits) < 0)
		return false;
	n->bits = (unsigned)(bits + 128 - most);
	return true;
}

bool address_has_host_bits(const struct catalog_network *n)
{
	for (unsigned bit = n->bits; bit < 128; bit++)
		if (n->address[bit / 8] & 0x80 >> bit % 8)
			return true;
	return false;
}

bool address_same_network(const struct catalog_network *a, const struct catalog_network *b)
{
	return a->bits == b->bits && memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

static bool is_v4(const uint8_t address[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(address, prefix, sizeof(prefix)) == 0;
}

static bool same_bits(const uint8_t a[16], const uint8_t b[16], unsigned bits)
{
	unsigned bytes = bits / 8;

	return memcmp(a, b, bytes) == 0 &&
	       (bits % 8 == 0 || (uint8_t)((a[bytes] ^ b[bytes]) >> (8 - bits % 8)) == 0);
}

int catalog_match(const struct catalog_tenant *t, const uint8_t address[16])
{
	int best = t->nnetworks ? -1 : 0;

	for (unsigned i = 0; i < t->nnetworks; i++) {
		const struct catalog_network *n = &t->networks[i];

		if (is_v4(address) == is_v4(n->address) && same_bits(address, n->address, n->bits) &&
			(int)n->bits > best)
			best = (int)n->bits;
	}
	return best;
}
