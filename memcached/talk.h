/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * talk.h - commands to a memcached over TCP or a Unix socket, in its text protocol. Each waits for its
 * answer, at most the time that the connection was made with.
 *
 * Errors: -ETIMEDOUT, -EPIPE (it closed the connection), -EPROTO (that is no answer of memcached), -errno.
 */
#ifndef MEMCACHED_TALK_H
#define MEMCACHED_TALK_H

#include <stddef.h>
#include <stdint.h>

struct talk {
	int fd;
	size_t len;     /* bytes in buf */
	char buf[4096]; /* received, and not taken yet */
};

/** To the first address that accepts. @server: "HOST:PORT", "[V6]:PORT", or the path of a socket. Errors also
 * have a reason in @why. @timeout_ms: more than 0.
 */
int talk_open(struct talk *t, const char *server, unsigned timeout_ms, char *why, size_t size);
/** Waits for the addresses of a host name, and for nothing else: the connection is made when the socket can
 * be written to, and until then the address may still refuse. Passes over the first *@tried addresses, and
 * counts those that it tries, so that the next call takes the one behind them; -ECONNREFUSED: there are no
 * more.
 */
int talk_begin(struct talk *t, const char *server, unsigned *tried, char *why, size_t size);
void talk_close(struct talk *t);

/** Sends @command (and a line end), or several with line ends between them. memcached answers in their order:
 * the answers have to be taken by talk_line() and talk_stats_answer().
 */
int talk_send(struct talk *t, const char *command, ...) __attribute__((format(printf, 2, 3)));
/** talk_send(), and the first line of the answer, without its end. */
int talk_ask(struct talk *t, char *line, size_t size, const char *command, ...)
	__attribute__((format(printf, 4, 5)));
/** The next line of the answer. */
int talk_line(struct talk *t, char *line, size_t size);

struct talk_stat {
	const char *name;
	char value[64]; /* "" if the memcached does not have it */
};

/** The answer to `stats`, or to `stats WHAT`: the values of @n names. */
int talk_stats_answer(struct talk *t, struct talk_stat *stats, unsigned n);
/** `stats @what` ("" for those without a name), and its answer. */
int talk_stats(struct talk *t, const char *what, struct talk_stat *stats, unsigned n);

#endif
