/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/host.h"

#include "util/number.h"

#include <stdio.h>
#include <string.h>

/* Digits behind a colon */
static bool read_port(const char *text, size_t len, uint16_t *port)
{
	char digits[6];
	uint64_t v;

	if (len >= sizeof(digits))
		return false;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (number_parse_decimal(digits, 1, UINT16_MAX, &v) < 0)
		return false;
	*port = (uint16_t)v;
	return true;
}

bool host_split(const char *text, size_t len, char *host, size_t size, uint16_t *port)
{
	const char *end = text + len, *stop = memchr(text, ':', len);

	if (len && *text == '[') {
		text++;
		stop = memchr(text, ']', len - 1);
		if (!stop)
			return false;
		len = (size_t)(stop - text);
		stop++;
	} else if (stop && !memchr(stop + 1, ':', (size_t)(end - stop - 1))) {
		len = (size_t)(stop - text);
	} else {
		stop = end;
	}
	if (!len || len >= size)
		return false;
	if (stop != end && (*stop != ':' || !read_port(stop + 1, (size_t)(end - stop - 1), port)))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	return true;
}

int host_look_up(const char *host, uint16_t port, int flags, struct addrinfo **list)
{
	const struct addrinfo hints = {.ai_flags = flags | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	return getaddrinfo(host, service, &hints, list);
}
