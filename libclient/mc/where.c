/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/where.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
	const char *at;
	size_t len;
};

static bool copy(char *to, size_t size, struct text from)
{
	if (!from.len || from.len >= size)
		return false;
	memcpy(to, from.at, from.len);
	to[from.len] = '\0';
	return true;
}

/* The part of *@t before the first @mark, which *@t then begins behind */
static struct text before(struct text *t, char mark)
{
	const char *end = memchr(t->at, mark, t->len);
	struct text part = {t->at, end ? (size_t)(end - t->at) : t->len};
	size_t taken = part.len + (end != NULL);

	*t = (struct text){t->at + taken, t->len - taken};
	return part;
}

static bool is_server(struct text t, const char *host, unsigned port)
{
	char with_port[300];

	snprintf(with_port, sizeof(with_port), "%s:%u", host, port);
	return (t.len == strlen(host) && memcmp(t.at, host, t.len) == 0) ||
	       (port && t.len == strlen(with_port) && memcmp(t.at, with_port, t.len) == 0);
}

static bool read_port(struct text t, uint16_t *port)
{
	char digits[6], *end;
	unsigned long v;

	if (!copy(digits, sizeof(digits), t))
		return false;
	v = strtoul(digits, &end, 10);
	*port = (uint16_t)v;
	return *digits >= '0' && *digits <= '9' && !*end && v && v <= UINT16_MAX;
}

/* HOST[:PORT][/OFFLOAD] */
static bool read_place(struct text t, struct mc_where *where)
{
	struct text place = before(&t, '/');
	const struct text offload = t;
	struct text host;

	if (offload.at[-1] == '/' && !copy(where->offload, sizeof(where->offload), offload))
		return false;
	if (place.len && *place.at == '[') {
		place.at++;
		place.len--;
		host = before(&place, ']');
		if (place.len && *place.at == ':')
			place = (struct text){place.at + 1, place.len - 1};
	} else {
		host = before(&place, ':');
	}
	return copy(where->host, sizeof(where->host), host) && (!place.len || read_port(place, &where->port));
}

int mc_where_find(struct mc_where *where, const char *list, const char *host, unsigned port, const char **bad)
{
	struct text rest = {list ? list : "", list ? strlen(list) : 0};
	bool found = false;

	while (rest.len) {
		struct text part = before(&rest, ','), server;
		struct mc_where place = *where;

		*bad = part.at;
		server = before(&part, '=');
		if (!server.len || !part.len)
			return -EINVAL;
		if (part.len == 1 && *part.at == '-')
			*place.host = '\0';
		else if (!read_place(part, &place))
			return -EINVAL;
		if (!found && is_server(server, host, port)) {
			*where = place;
			found = true;
		}
	}
	return 0;
}
