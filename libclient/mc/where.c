/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/nic.h"

#include "util/host.h"

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

/* HOST[:PORT][/OFFLOAD] */
static bool read_place(struct text t, struct mc_where *where)
{
	struct text place = before(&t, '/');
	const struct text offload = t;

	if (offload.at[-1] == '/' && !copy(where->offload, sizeof(where->offload), offload))
		return false;
	return host_split(place.at, place.len, where->host, sizeof(where->host), &where->port);
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
