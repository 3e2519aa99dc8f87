/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * way-tcp.c - gets, sets and deletes of memcached (protocol.txt of memcached: the meta commands), gets and
 * sets of Redis (RESP2) over a socket that never blocks: of TCP, or if the host begins with a slash, the Unix
 * socket there. Answers come in the order of their requests. Several keys of a request: "get" and MGET with
 * all of them, EXISTS, and as memcached has no such command, a "mg" that wants no value for each key. Those
 * of "get" and EXISTS must be there: they do not say which is not. No call is outside of what librspreload.so
 * intercepts.
 */
#include "tests/bench/ways/many.h"
#include "tests/bench/ways/ways.h"

#include "tools/common/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_ROOM = 64 << 10 };

struct buffer {
	char *bytes;
	size_t at, used, room; /* [at, used) is unread */
};

struct talker;

/** One of the two protocols. */
struct protocol {
	int (*write)(struct talker *c, const struct load_op *op); /* -EINVAL: it has no such request */
	int (*write_many)(struct talker *c, const struct reddn_key *keys, unsigned n);
	/** Reads one answer at the begin of @text. Returns its length, 0 if it has that of the next key, too;
	 * -EAGAIN: incomplete; -EPROTO. */
	ssize_t (*read)(struct talker *c, const char *text, size_t len, struct reddn_result *res);
};

bool way_versions;

struct talker {
	const struct protocol *protocol;
	int fd;
	unsigned depth; /* keys */
	struct buffer out, in;
	uint64_t *cookies; /* of key n at n % depth */
	uint64_t sent, done;
	size_t exist; /* keys whose answer is in the number that comes next, and was reported */
	char why[128];
};

/* ---- buffers ---------------------------------------------------------------------------- */

static int need(struct buffer *b, size_t more)
{
	size_t room = b->room ? b->room : FIRST_ROOM;
	char *p;

	if (b->at) {
		memmove(b->bytes, b->bytes + b->at, b->used - b->at);
		b->used -= b->at;
		b->at = 0;
	}
	while (room - b->used < more)
		room *= 2;
	if (room == b->room)
		return 0;
	p = realloc(b->bytes, room);
	if (!p)
		return -ENOMEM;
	b->bytes = p;
	b->room = room;
	return 0;
}

static int put(struct buffer *b, const void *bytes, size_t len)
{
	if (b->room - b->used < len) {
		int r = need(b, len);

		if (r < 0)
			return r;
	}
	memcpy(b->bytes + b->used, bytes, len);
	b->used += len;
	return 0;
}

static int put_text(struct buffer *b, const char *text)
{
	return put(b, text, strlen(text));
}

/* Bytes up to and including the line feed; 0: none. */
static size_t line_of(const char *text, size_t len)
{
	const char *lf = memchr(text, '\n', len);

	return lf ? (size_t)(lf - text) + 1 : 0;
}

static bool begins(const char *text, size_t len, const char *word)
{
	return len >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

/* The last number in a line. */
static size_t last_number(const char *line, size_t len)
{
	size_t n = 0, scale = 1;

	while (len && (line[len - 1] < '0' || line[len - 1] > '9'))
		len--;
	for (; len && line[len - 1] >= '0' && line[len - 1] <= '9'; len--, scale *= 10)
		n += (size_t)(line[len - 1] - '0') * scale;
	return n;
}

/* ---- memcached -------------------------------------------------------------------------- */

static int memcached_write(struct talker *c, const struct load_op *op)
{
	static const char *const commands[] = {
		[LOAD_GET] = "mg ", [LOAD_PUT] = "ms ", [LOAD_PUT_IF] = "ms ", [LOAD_DELETE] = "md "};
	char text[64];
	int r = put_text(&c->out, commands[op->kind]);

	if (r == 0)
		r = put(&c->out, op->key, op->key_len);
	if (!op->value)
		return r < 0 ? r
			     : put_text(&c->out, op->kind       ? "\r\n"
						 : way_versions ? " v c\r\n"
								: " v\r\n");
	if (op->kind == LOAD_PUT_IF)
		snprintf(text, sizeof(text), " %zu C%" PRIu64 "\r\n", op->value_len, op->version);
	else
		snprintf(text, sizeof(text), " %zu\r\n", op->value_len);
	if (r == 0)
		r = put_text(&c->out, text);
	if (r == 0)
		r = put(&c->out, op->value, op->value_len);
	return r < 0 ? r : put_text(&c->out, "\r\n");
}

static int memcached_write_many(struct talker *c, const struct reddn_key *keys, unsigned n)
{
	int r = way_exists ? 0 : put_text(&c->out, "get");

	for (unsigned i = 0; i < n && r == 0; i++) {
		r = put_text(&c->out, way_exists ? "mg " : " ");
		if (r == 0)
			r = put(&c->out, keys[i].key, keys[i].key_len);
		if (r == 0 && (way_exists || i == n - 1))
			r = put_text(&c->out, "\r\n");
	}
	return r;
}

static ssize_t memcached_read(struct talker *c, const char *text, size_t len, struct reddn_result *res)
{
	size_t line = line_of(text, len), whole;

	if (!line)
		return -EAGAIN;
	if (begins(text, line, "END")) {
		/* of the "get" before, all of whose keys had to come */
		const bool whole_get = way_keys && (c->done % way_keys == 0 || c->done == c->sent);
		ssize_t more = whole_get ? memcached_read(c, text + line, len - line, res) : -EPROTO;

		return more < 0 ? more : (ssize_t)line + more;
	}
	if (begins(text, line, "HD") || begins(text, line, "EN") || begins(text, line, "NF") ||
		begins(text, line, "EX")) {
		res->status = text[0] == 'H' ? 0 : text[1] == 'X' ? REDDN_CONFLICT : REDDN_MISS;
		return (ssize_t)line;
	}
	if (!begins(text, line, "VA ") && !begins(text, line, "VALUE ")) {
		snprintf(c->why, sizeof(c->why), "memcached: %.*s", (int)line, text);
		return -EPROTO;
	}
	res->version = last_number(text, line);
	res->length = text[2] == ' ' ? strtoul(text + 3, NULL, 10) : res->version;
	whole = line + res->length + 2;
	if (len < whole)
		return -EAGAIN;
	res->value = text + line;
	return (ssize_t)whole;
}

static const struct protocol memcached = {memcached_write, memcached_write_many, memcached_read};

/* ---- Redis ------------------------------------------------------------------------------ */

static int put_bulk(struct buffer *b, const void *bytes, size_t len)
{
	char text[32];
	int r;

	snprintf(text, sizeof(text), "$%zu\r\n", len);
	r = put_text(b, text);
	if (r == 0)
		r = put(b, bytes, len);
	return r < 0 ? r : put_text(b, "\r\n");
}

static int redis_write(struct talker *c, const struct load_op *op)
{
	int r = op->kind > LOAD_PUT ? -EINVAL : 0;

	if (r == 0)
		r = put_text(&c->out, op->value ? "*3\r\n$3\r\nSET\r\n" : "*2\r\n$3\r\nGET\r\n");
	if (r == 0)
		r = put_bulk(&c->out, op->key, op->key_len);
	if (r == 0 && op->value)
		r = put_bulk(&c->out, op->value, op->value_len);
	return r;
}

static int redis_write_many(struct talker *c, const struct reddn_key *keys, unsigned n)
{
	char text[32];
	int r;

	snprintf(text, sizeof(text), "*%u\r\n", n + 1);
	r = put_text(&c->out, text);
	if (r == 0)
		r = put_text(&c->out, way_exists ? "$6\r\nEXISTS\r\n" : "$4\r\nMGET\r\n");
	for (unsigned i = 0; i < n && r == 0; i++)
		r = put_bulk(&c->out, keys[i].key, keys[i].key_len);
	return r;
}

static ssize_t redis_read(struct talker *c, const char *text, size_t len, struct reddn_result *res)
{
	size_t line = line_of(text, len), whole;

	if (!line)
		return -EAGAIN;
	if (text[0] == '*') {
		ssize_t more = redis_read(c, text + line, len - line, res);

		return more < 0 ? more : (ssize_t)line + more;
	}
	if (begins(text, line, "+OK") || begins(text, line, "$-1")) {
		res->status = text[0] == '+' ? 0 : REDDN_MISS;
		return (ssize_t)line;
	}
	if (text[0] != '$') {
		snprintf(c->why, sizeof(c->why), "Redis: %.*s", (int)line, text);
		return -EPROTO;
	}
	res->length = last_number(text, line);
	whole = line + res->length + 2;
	if (len < whole)
		return -EAGAIN;
	res->value = text + line;
	return (ssize_t)whole;
}

/* How many of the keys exist: all of them. Each has a result, and the last one uses up the number. */
static ssize_t redis_read_exist(struct talker *c, const char *text, size_t len, struct reddn_result *res)
{
	const size_t line = line_of(text, len), left = c->sent - (c->done - c->exist);
	const size_t keys = left < way_keys ? left : way_keys;

	(void)res;
	if (!line)
		return -EAGAIN;
	if (text[0] != ':' || last_number(text, line) != keys) {
		snprintf(c->why, sizeof(c->why), "Redis, which of several keys exist: %.*s", (int)line, text);
		return -EPROTO;
	}
	c->exist = (c->exist + 1) % keys;
	return c->exist ? 0 : (ssize_t)line;
}

static const struct protocol redis = {redis_write, redis_write_many, redis_read};
static const struct protocol redis_exists = {redis_write, redis_write_many, redis_read_exist};

/* ---- the connection --------------------------------------------------------------------- */

static int submit(void *conn, const struct load_op *op, uint64_t cookie)
{
	struct talker *c = conn;
	int r;

	if (c->sent - c->done == c->depth)
		return -EAGAIN;
	r = c->protocol->write(c, op);
	if (r < 0)
		return r;
	c->cookies[c->sent++ % c->depth] = cookie;
	return 0;
}

static int submit_many(void *conn, const struct reddn_key *keys, unsigned n, uint64_t cookie)
{
	struct talker *c = conn;
	int r;

	if (c->sent - c->done + n > c->depth)
		return -EAGAIN;
	r = c->protocol->write_many(c, keys, n);
	for (unsigned i = 0; i < n && r == 0; i++)
		c->cookies[c->sent++ % c->depth] = cookie + i;
	return r;
}

static int transmit(struct talker *c)
{
	ssize_t n;

	if (c->out.at == c->out.used)
		return 0;
	n = send(c->fd, c->out.bytes + c->out.at, c->out.used - c->out.at, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	c->out.at += (size_t)n;
	if (c->out.at == c->out.used)
		c->out.at = c->out.used = 0;
	return 0;
}

static int receive(struct talker *c)
{
	int r = need(&c->in, FIRST_ROOM / 2);
	ssize_t n;

	if (r < 0)
		return r;
	n = recv(c->fd, c->in.bytes + c->in.used, c->in.room - c->in.used, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	c->in.used += (size_t)n;
	return n ? 0 : -ECONNRESET;
}

static void release(void *conn)
{
	(void)conn;
}

static int poll_results(void *conn, struct reddn_result *res, int max)
{
	struct talker *c = conn;
	int n = 0, r = transmit(c);

	if (r == 0 && c->in.at == c->in.used)
		r = c->sent == c->done ? 0 : receive(c);
	for (unsigned again = 0; r == 0 && n < max && c->in.at != c->in.used;) {
		ssize_t got;

		res[n] = (struct reddn_result){.cookie = c->cookies[c->done % c->depth]};
		got = c->protocol->read(c, c->in.bytes + c->in.at, c->in.used - c->in.at, &res[n]);
		if (got < 0 && got != -EAGAIN)
			return (int)got;
		if (got < 0) {
			/* More may be there, but the caller still uses the results in the buffer */
			if (n || again++)
				break;
			r = receive(c);
			continue;
		}
		c->in.at += (size_t)got;
		c->done++;
		n++;
	}
	if (r < 0)
		snprintf(c->why, sizeof(c->why), "the connection failed: %s", strerror(-r));
	return r < 0 ? r : n;
}

static const char *errmsg(void *conn)
{
	return ((struct talker *)conn)->why;
}

static void close_talker(void *conn)
{
	struct talker *c = conn;

	if (c->fd >= 0)
		close(c->fd);
	free(c->cookies);
	free(c->out.bytes);
	free(c->in.bytes);
	free(c);
}

static int dial_unix(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int dial(const char *host, uint16_t port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *ai;
	char service[8];
	int one = 1, fd, r;

	snprintf(service, sizeof(service), "%u", port);
	r = getaddrinfo(host, service, &hints, &ai);
	if (r) {
		errno = EINVAL;
		return -1;
	}
	fd = socket(ai->ai_family, SOCK_STREAM, 0);
	if (fd >= 0 && (connect(fd, ai->ai_addr, ai->ai_addrlen) < 0 ||
			       setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(ai);
	return fd;
}

static int open_talker(struct load_way *way, const struct reddn_options *opt, const struct protocol *protocol)
{
	struct talker *c = calloc(1, sizeof(*c));

	if (!c)
		return tool_complain("%s", strerror(ENOMEM));
	*way = (struct load_way){.conn = c,
		.depth = opt->depth,
		.submit = submit,
		.poll = poll_results,
		.release = release,
		.errmsg = errmsg,
		.close = close_talker};
	c->protocol = protocol;
	c->depth = opt->depth * (way_keys ? way_keys : 1);
	c->cookies = calloc(c->depth, sizeof(*c->cookies));
	c->fd = opt->host[0] == '/' ? dial_unix(opt->host) : dial(opt->host, opt->port);
	if (!c->cookies || c->fd < 0)
		return tool_complain("%s port %u: %s", opt->host, opt->port, strerror(errno));
	return way_keys ? many_wrap(way, submit_many, way_keys) : 0;
}

int way_memcached_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_talker(way, opt, &memcached);
}

int way_redis_open(struct load_way *way, const struct reddn_options *opt)
{
	return open_talker(way, opt, way_exists ? &redis_exists : &redis);
}
