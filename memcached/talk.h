/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * talk.h - commands to a memcached over TCP or a Unix socket, in its text protocol. talk_send() begins a
 * dialogue: its answers take at most the time that the connection was made with, all together, and have at
 * most TALK_MOST bytes. A memcached that answers a byte at a time, or without end, costs no more.
 *
 * Errors: -ETIMEDOUT, -ECANCELED (@stop), -EPIPE (it closed the connection), -EPROTO (that is no answer of
 * memcached), -errno.
 */
#ifndef MEMCACHED_TALK_H
#define MEMCACHED_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TALK_MOST = 1 << 20 };

/** All zero but for @stop before the first talk_open(). */
struct talk {
	int fd;
	int stop;                   /* a descriptor that ends each wait when it can be read; 0: none */
	struct addrinfo *addresses; /* of the server when they were found last; NULL: never */
	struct lookup *lookup;      /* that has not ended in time; NULL: none */
	unsigned timeout_ms;        /* of a dialogue */
	uint64_t until_ms;          /* CLOCK_MONOTONIC: this one has its answers by then, */
	size_t room;                /* of at most so many more bytes */
	size_t len;                 /* bytes in buf */
	char buf[4096];             /* received, and not taken yet */
};

/**
 * To the first address that accepts. @server: "HOST:PORT", "[V6]:PORT", or the path of a socket, the same one
 * for each connection of @t. Errors also have a reason in @why. @timeout_ms, for all addresses together: more
 * than 0. A host name is looked up each time. Where that fails, or takes more than half of the time, the
 * addresses from before are tried; talk_has_ended() when the new ones are there.
 */
int talk_open(struct talk *t, const char *server, unsigned timeout_ms, char *why, size_t size);
/** It can be opened again, */
void talk_close(struct talk *t);
/** or not any more: frees what is known of its addresses. */
void talk_deinit(struct talk *t);

/** Takes what has come, and waits for nothing. True: memcached has closed the connection, or died; or it may
 * have other addresses now. */
bool talk_has_ended(struct talk *t);

/** Sends @command (and a line end), or several with line ends between them. memcached answers in their order:
 * the answers have to be taken by talk_line() and talk_stats_answer().
 */
int talk_send(struct talk *t, const char *command, ...) __attribute__((format(printf, 2, 3)));
/** talk_send(), and the first line of the answer, without its end. */
int talk_ask(struct talk *t, char *line, size_t size, const char *command, ...)
	__attribute__((format(printf, 4, 5)));
/** The next line of the answer, without control characters and what is not UTF-8 (text_clean()). */
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
