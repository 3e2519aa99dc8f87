/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/url.h"

#include "util/host.h"
#include "util/number.h"
#include "util/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { REDIS_PORT = 6379 };

bool url_decode(char *out, size_t size, const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '%') {
			int hi = i + 2 < len ? text_hex_digit(text[i + 1]) : -1;
			int lo = i + 2 < len ? text_hex_digit(text[i + 2]) : -1;

			if (hi < 0 || lo < 0)
				return false;
			c = (char)(hi << 4 | lo);
			i += 2;
		}
		if (c == '\0' || n + 1 == size)
			return false;
		out[n++] = c;
	}
	out[n] = '\0';
	return true;
}

static int parse_db(struct url *url, const char *text, char *err, size_t errlen)
{
	uint64_t db;

	if (number_parse_decimal(text, 0, INT_MAX, &db) < 0)
		return snprintf(err, errlen, "\"%s\" is no number of a database", text), -EINVAL;
	url->db = (unsigned)db;
	return 0;
}

static int parse_path(struct url *url, const char *text, char *err, size_t errlen)
{
	const char *query = strchrnul(text, '?');

	if (*text != '/' || (size_t)(query - text) >= sizeof(url->path))
		return snprintf(err, errlen,
			       "a socket is an absolute path of up to %zu characters: "
			       "unix:///run/redis/redis.sock",
			       sizeof(url->path) - 1),
		       -EINVAL;
	memcpy(url->path, text, (size_t)(query - text));
	if (*query == '\0')
		return 0;
	if (strncmp(query, "?db=", 4) != 0)
		return snprintf(err, errlen, "\"%s\": only ?db=N may be there", query), -EINVAL;
	return parse_db(url, query + 4, err, errlen);
}

static int parse_host(struct url *url, const char *text, char *err, size_t errlen)
{
	size_t len = strcspn(text, "/");

	url->port = REDIS_PORT;
	if (!host_split(text, len, url->host, sizeof(url->host), &url->port))
		return snprintf(err, errlen, "\"%.*s\" is not HOST, HOST:PORT or [ADDRESS]:PORT", (int)len,
			       text),
		       -EINVAL;
	return text[len] == '\0' || text[len + 1] == '\0' ? 0 : parse_db(url, text + len + 1, err, errlen);
}

int url_parse(struct url *url, const char *text, char *err, size_t errlen)
{
	bool local = strncmp(text, "unix://", 7) == 0;
	const char *at, *colon;

	*url = (struct url){0};
	if (!local && strncmp(text, "redis://", 8) != 0)
		return snprintf(err, errlen,
			       "a source is redis://HOST[:PORT][/DB], unix://PATH[?db=DB], "
			       "postgresql://HOST/DB?... or file:///PATH"),
		       -EINVAL;
	text += local ? 7 : 8;
	/* the last one: who writes a password is not to read it in an error */
	at = local ? (*text == '/' ? NULL : strstr(text, "@/")) : strrchr(text, '@');
	if (at) {
		colon = memchr(text, ':', (size_t)(at - text));
		if (!colon || !url_decode(url->user, sizeof(url->user), text, (size_t)(colon - text)) ||
			!url_decode(
				url->password, sizeof(url->password), colon + 1, (size_t)(at - colon - 1)))
			return snprintf(err, errlen,
				       "before @ there is USER:PASSWORD or :PASSWORD, with %%HH for "
				       "characters as @ and /"),
			       -EINVAL;
		text = at + 1;
	}
	return local ? parse_path(url, text, err, errlen) : parse_host(url, text, err, errlen);
}

const char *url_name(const struct url *url)
{
	static char name[sizeof(url->host) + 32];

	if (!*url->host)
		snprintf(name, sizeof(name), "unix://%s?db=%u", url->path, url->db);
	else
		snprintf(name, sizeof(name),
			strchr(url->host, ':') ? "redis://[%s]:%u/%u" : "redis://%s:%u/%u", url->host,
			url->port, url->db);
	return name;
}
