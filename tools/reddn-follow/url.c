/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-follow/url.h"

#include "protocol/redis-slots.h"
#include "util/array.h"
#include "util/host.h"
#include "util/number.h"
#include "util/text.h"

#include <errno.h>
#include <libpq-fe.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { REDIS_PORT = 6379, SENTINEL_PORT = 26379 };

static bool url_decode(char *out, size_t size, const char *text, size_t len)
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

static int parse_host(struct url *url, const char *text, uint16_t port, char *err, size_t errlen)
{
	size_t len = strcspn(text, "/");

	url->port = port;
	if (!host_split(text, len, url->host, sizeof(url->host), &url->port))
		return snprintf(err, errlen, "\"%.*s\" is not HOST, HOST:PORT or [ADDRESS]:PORT", (int)len,
			       text),
		       -EINVAL;
	return text[len] == '\0' || text[len + 1] == '\0' ? 0 : parse_db(url, text + len + 1, err, errlen);
}

static int url_parse_with(struct url *url, const char *text, uint16_t port, char *err, size_t errlen)
{
	bool local = strncmp(text, "unix://", 7) == 0;
	const char *at, *colon;

	*url = (struct url){0};
	if (!local && strncmp(text, "redis://", 8) != 0)
		return snprintf(err, errlen,
			       "a source is redis://HOST[:PORT][/DB], unix://PATH[?db=DB], "
			       "redis+cluster://HOST[:PORT],...[/?slots=FIRST-LAST], "
			       "redis+sentinel://HOST[:PORT],.../NAME, "
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
	return local ? parse_path(url, text, err, errlen) : parse_host(url, text, port, err, errlen);
}

static int parse_slots(uint64_t *slots, const char *query, char *err, size_t errlen)
{
	const char *text = query + strlen("?slots="), *dash;
	uint64_t first, last;
	char one[8] = "";

	*slots = REDIS_SLOTS_ALL;
	if (!*query)
		return 0;
	dash = strncmp(query, "?slots=", strlen("?slots=")) == 0 ? strchr(text, '-') : NULL;
	if (dash && (size_t)(dash - text) < sizeof(one))
		memcpy(one, text, (size_t)(dash - text));
	if (!dash || number_parse_decimal(one, 0, REDIS_SLOTS - 1, &first) < 0 ||
		number_parse_decimal(dash + 1, first, REDIS_SLOTS - 1, &last) < 0)
		return snprintf(err, errlen, "\"%s\": only ?slots=FIRST-LAST may be there, of slots 0 to %d",
			       query, REDIS_SLOTS - 1),
		       -EINVAL;
	*slots = redis_slots((unsigned)first, (unsigned)(last - first + 1));
	return 0;
}

int url_parse(struct url *url, const char *text, char *err, size_t errlen)
{
	return url_parse_with(url, text, REDIS_PORT, err, errlen);
}

/* @text, @len bytes: [[USER]:PASSWORD@]HOST[:PORT],... as servers of their own */
static int parse_hosts(struct url hosts[URL_SEEDS], unsigned *n, const char *text, size_t len, uint16_t port,
	char *err, size_t errlen)
{
	const char *at = memrchr(text, '@', len), *host, *end;
	size_t user = at ? (size_t)(at + 1 - text) : 0;
	char one[1024];
	int r = 0;

	*n = 0;
	for (host = text + user; r == 0; host = end + 1) {
		end = memchr(host, ',', (size_t)(text + len - host));
		end = end ? end : text + len;
		if (*n == URL_SEEDS || user + (size_t)(end - host) + sizeof("redis://") > sizeof(one))
			return snprintf(err, errlen, "%u hosts are enough, each of less than 256 characters",
				       URL_SEEDS),
			       -EINVAL;
		snprintf(one, sizeof(one), "redis://%.*s%.*s", (int)user, text, (int)(end - host), host);
		r = url_parse_with(&hosts[*n], one, port, err, errlen);
		*n += r == 0;
		if (end == text + len)
			break;
	}
	return r;
}

int url_parse_cluster(
	struct url seeds[URL_SEEDS], unsigned *n, uint64_t *slots, const char *text, char *err, size_t errlen)
{
	const char *rest = text + strlen("redis+cluster://"), *at = strrchr(rest, '@');
	const char *query = strchrnul(at ? at : rest, '?');
	int r = parse_slots(slots, query, err, errlen);

	if (r == 0)
		r = parse_hosts(seeds, n, rest, (size_t)(query - rest), REDIS_PORT, err, errlen);
	for (unsigned i = 0; r == 0 && i < *n; i++)
		if (seeds[i].db)
			return snprintf(err, errlen, "a cluster has database 0 only"), -EINVAL;
	return r;
}

int url_parse_sentinel(struct sentinel_url *url, const char *text, char *err, size_t errlen)
{
	const char *rest = text + strlen("redis+sentinel://"), *at = strrchr(rest, '@');
	const char *name = strchrnul(at ? at : rest, '/'), *db;
	size_t len;
	int r;

	*url = (struct sentinel_url){0};
	db = *name ? strchrnul(name + 1, '/') : name;
	len = *name ? (size_t)(db - name - 1) : 0;
	if (!len || len >= sizeof(url->name))
		return snprintf(err, errlen,
			       "behind the sentinels there is the name of a master, of up to %zu characters: "
			       "redis+sentinel://HOST[:PORT],.../NAME[/DB]",
			       sizeof(url->name) - 1),
		       -EINVAL;
	memcpy(url->name, name + 1, len);
	r = parse_hosts(url->sentinel, &url->n, rest, (size_t)(name - rest), SENTINEL_PORT, err, errlen);
	if (r < 0)
		return r;
	url->master = url->sentinel[0];
	*url->master.host = '\0';
	return *db && db[1] ? parse_db(&url->master, db + 1, err, errlen) : 0;
}

const char *url_address(const struct url *url, char text[URL_ADDRESS])
{
	snprintf(text, URL_ADDRESS, strchr(url->host, ':') ? "[%s]:%u" : "%s:%u", url->host, url->port);
	return text;
}

const char *url_name(const struct url *url)
{
	static char name[URL_ADDRESS + 32];
	char address[URL_ADDRESS];

	if (!*url->host)
		snprintf(name, sizeof(name), "unix://%s?db=%u", url->path, url->db);
	else
		snprintf(name, sizeof(name), "redis://%s/%u", url_address(url, address), url->db);
	return name;
}

/* ---- PostgreSQL ---- */

static const char form[] = "postgresql://[USER@]HOST[:PORT]/DB?table=TABLE&key=COLUMN&value=COLUMN";

/* Those of this program; the others go to libpq. False: it has no room. */
static bool url_take(struct postgres_url *url, const char *text, size_t len, char *separator)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} own[] = {{"table=", url->table, sizeof(url->table)}, {"key=", url->key, sizeof(url->key)},
		{"value=", url->value, sizeof(url->value)},
		{"publication=", url->publication, sizeof(url->publication)}};
	size_t used = strlen(url->conninfo), name;

	for (unsigned i = 0; i < COUNT(own); i++) {
		name = strlen(own[i].name);
		if (len >= name && strncmp(text, own[i].name, name) == 0)
			return url_decode(own[i].to, own[i].size, text + name, len - name);
	}
	if (!len)
		return true;
	used += (size_t)snprintf(
		url->conninfo + used, sizeof(url->conninfo) - used, "%c%.*s", *separator, (int)len, text);
	*separator = '&';
	return used < sizeof(url->conninfo);
}

/* Without what is before an @ but the user, and without parameters of libpq, of which one is a password */
static void url_set_name(struct postgres_url *url, const char *text, size_t len)
{
	const char *host = strstr(text, "://") + 3, *at = memrchr(text, '@', len);

	snprintf(url->name, sizeof(url->name), "postgresql://%.*s?table=%s",
		(int)(text + len - (at ? at + 1 : host)), at ? at + 1 : host, url->table);
}

int postgres_url_parse(struct postgres_url *url, const char *text, char *err, size_t errlen)
{
	const char *query = strchrnul(text, '?'), *next;
	char separator = '?', *why = NULL;
	PQconninfoOption *options;
	bool fits;

	*url = (struct postgres_url){.publication = "reddn"};
	fits = snprintf(url->conninfo, sizeof(url->conninfo), "%.*s", (int)(query - text), text) <
	       (int)sizeof(url->conninfo);
	for (const char *at = query; fits && *at; at = next) {
		next = strchrnul(at + 1, '&');
		fits = url_take(url, at + 1, (size_t)(next - at - 1), &separator);
	}
	if (!fits || !*url->table || !*url->key || !*url->value)
		return snprintf(err, errlen, "a source of PostgreSQL is %s, with %%HH for characters as &",
			       form),
		       -EINVAL;
	url_set_name(url, text, (size_t)(query - text));
	options = PQconninfoParse(url->conninfo, &why);
	PQconninfoFree(options);
	if (options)
		return 0;
	/* what it does not understand may be a password */
	PQfreemem(why);
	return snprintf(err, errlen, "libpq does not understand it; a source of PostgreSQL is %s", form),
	       -EINVAL;
}

/* As hiredis does: of IPv4, if there is one, where redis-server listens by default */
static const struct addrinfo *addresses_choose(const struct addrinfo *list)
{
	for (const struct addrinfo *a = list; a; a = a->ai_next)
		if (a->ai_family == AF_INET)
			return a;
	return list;
}

int address_find(struct address *a, const struct url *url, const char **why)
{
	struct addrinfo *list = NULL;
	const struct addrinfo *one;
	int r = a->lookup ? 0 : lookup_begin(&a->lookup, url->host, url->port);

	if (r < 0)
		return *why = strerror(-r), -ENOENT;
	if (!lookup_has_ended(a->lookup))
		return -EAGAIN;
	r = lookup_end(a->lookup, &list);
	a->lookup = NULL;
	if (r == 0) {
		one = addresses_choose(list);
		r = getnameinfo(
			one->ai_addr, one->ai_addrlen, a->text, sizeof(a->text), NULL, 0, NI_NUMERICHOST);
		freeaddrinfo(list);
	}
	return r == 0 ? 0 : (*why = gai_strerror(r), -ENOENT);
}

int address_fd(const struct address *a)
{
	return a->lookup ? lookup_fd(a->lookup) : -1;
}

void address_deinit(struct address *a)
{
	lookup_abandon(a->lookup);
	a->lookup = NULL;
}
