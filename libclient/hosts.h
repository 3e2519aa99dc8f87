/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hosts.h - the servers of a handle, as the caller named them: their addresses, which are tried one after the
 * other, and which of them wants no session of this client for now.
 */
#ifndef LIBCLIENT_HOSTS_H
#define LIBCLIENT_HOSTS_H

#include "util/lookup.h"

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NAME: bytes of a name, with the NUL. OUT_MS: how long a host that refuses a session is not asked again */
enum { REDDN_HOSTS_MAX = 16, REDDN_HOST_NAME = 256, REDDN_HOST_OUT_MS = 30000 };

struct reddn_host {
	char name[REDDN_HOST_NAME];
	uint16_t port;
	struct addrinfo *list; /* NULL: the name was not found */
	struct lookup *lookup; /* once more; or NULL */
	uint64_t out_until;    /* ms (clock_ms) */
	bool chosen;           /* by reddn_hosts_choose() */
	uint32_t slot_size;    /* that the last session with it needed; 0: unknown */
	/* counted: sessions that were made; requests of those that have ended; requests that another host was
	 * asked as well, because this one was late */
	uint32_t sessions;
	uint64_t sent, late;
};

struct reddn_hosts {
	struct reddn_host *host; /* n, in the order in which they are tried */
	unsigned n;
	/* the choice that is being tried: from which one on, and how many are left, with the one at hand */
	unsigned at, left;
};

enum reddn_choice {
	REDDN_ANY_HOST,   /* all but those that are out; or all if there is no other. From one of them on */
	REDDN_THIS_HOST,  /* this one */
	REDDN_OTHER_HOST, /* all but this one and those that are out */
};

/**
 * Read @text: hosts with commas between them, each as HOST, HOST:PORT, or [ADDRESS]:PORT; @port for those
 * without. With @spread their order is a random one. 0; -EINVAL, or -ENOMEM, and the reason in @err. deinit
 * frees it in any case; all zero is allowed there.
 */
int reddn_hosts_read(
	struct reddn_hosts *h, const char *text, uint16_t port, bool spread, char *err, size_t errlen);

/**
 * The same hosts, which are looked up without waiting: what is found is for reddn_hosts_look_up_again(). Of
 * @host, @known is an address, which is found at once; NULL: none is known. -ENOMEM; deinit as of read.
 */
int reddn_hosts_copy(
	struct reddn_hosts *h, const struct reddn_hosts *of, unsigned host, const struct sockaddr *known);

void reddn_hosts_deinit(struct reddn_hosts *h);

/** What they have is that of one machine, as far as anybody knows. It may have an address of each family;
 * several of a family are of several machines. */
bool reddn_hosts_is_one_machine(const struct reddn_hosts *h);

/**
 * Look all of them up, and wait. 0: one was found at least. -EHOSTUNREACH; -ETIMEDOUT: not before @deadline
 * (clock_ms); and others of lookup_begin(), with the reason for the first one in @err.
 */
int reddn_hosts_look_up(struct reddn_hosts *h, uint64_t deadline, char *err, size_t errlen);

/** The same without waiting: what is found is for the next call. */
void reddn_hosts_look_up_again(struct reddn_hosts *h);

/** Choose the hosts to try, and be at the first of them. False: there is none. */
bool reddn_hosts_choose(struct reddn_hosts *h, enum reddn_choice choice, unsigned host, uint64_t now);

/** The one that is tried. */
static inline struct reddn_host *reddn_hosts_at(const struct reddn_hosts *h)
{
	return &h->host[h->at];
}

/** Go on to the next one of the choice. False: there is none, and this one stays. */
bool reddn_hosts_next(struct reddn_hosts *h);

/**
 * Until when (clock_ms) @address of the host that is tried may be tried: those behind it, of this host and
 * the next ones, get as much as it does of what is left between @now and @deadline.
 */
uint64_t reddn_hosts_until(
	const struct reddn_hosts *h, const struct addrinfo *address, uint64_t now, uint64_t deadline);

/** Append to the words of a failure at @err which of several hosts and addresses they are about. */
void reddn_hosts_add(const struct reddn_hosts *h, const struct addrinfo *address, char *err, size_t errlen);

#endif
