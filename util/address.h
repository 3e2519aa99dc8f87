/* SPDX-License-Identifier: BSD-2-Clause */
/* address.h - IP addresses of both families in 16 bytes. */
#ifndef UTIL_ADDRESS_H
#define UTIL_ADDRESS_H

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

/** The address in @sa, without the port; IPv4 as ::ffff:a.b.c.d. All zero for another family. */
static inline void address_read(const struct sockaddr *sa, uint8_t address[16])
{
	memset(address, 0, 16);
	if (sa->sa_family == AF_INET) {
		memset(address + 10, 0xff, 2);
		memcpy(address + 12, &((const struct sockaddr_in *)sa)->sin_addr, 4);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(address, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
	}
}

/** The address in @sa, of one of these families, with port 0: any. */
static inline struct sockaddr_storage address_any_port(const struct sockaddr *sa)
{
	struct sockaddr_storage to = {0};

	if (sa->sa_family == AF_INET) {
		memcpy(&to, sa, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)&to)->sin_port = 0;
	} else {
		memcpy(&to, sa, sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)&to)->sin6_port = 0;
	}
	return to;
}

#endif
