/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/hosts.h"

#include "libclient/public.h"
#include "libclient/question.h"
#include "util/host.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define INVALID(...) reddn_fail(-EINVAL, err, errlen, __VA_ARGS__)

/* ---- names ---- */

static int hosts_read_one(struct reddn_hosts *h, const char *text, const char *part, size_t len,
	uint16_t port, char *err, size_t errlen)
{
	struct reddn_host *host = &h->host[h->n];

	for (; len && *part == ' '; len--)
		part++;
	while (len && part[len - 1] == ' ')
		len--;
	host->port = port;
	if (!host_split(part, len, host->name, sizeof(host->name), &host->port))
		return INVALID("host \"%s\": \"%.*s\" is no host, nor HOST:PORT or [ADDRESS]:PORT", text,
			(int)len, part);
	h->n++;
	return 0;
}

static void hosts_shuffle(struct reddn_hosts *h)
{
	for (unsigned i = h->n; i > 1; i--) {
		struct reddn_host last = h->host[i - 1];
		uint32_t any = 0;

		if (getrandom(&any, sizeof(any), GRND_NONBLOCK) < 0)
			return;
		h->host[i - 1] = h->host[any % i];
		h->host[any % i] = last;
	}
}

int reddn_hosts_read(
	struct reddn_hosts *h, const char *text, uint16_t port, bool spread, char *err, size_t errlen)
{
	unsigned n = 1;

	for (const char *s = text; *s; s++)
		n += *s == ',';
	if (n > REDDN_HOSTS_MAX)
		return INVALID("host: %u hosts, up to %d", n, REDDN_HOSTS_MAX);
	h->host = calloc(n, sizeof(*h->host));
	if (!h->host)
		return reddn_fail(-ENOMEM, err, errlen, "out of memory");
	for (const char *part = text; h->n < n;) {
		size_t len = strcspn(part, ",");
		int r = hosts_read_one(h, text, part, len, port, err, errlen);

		if (r < 0)
			return r;
		part += len + 1;
	}
	if (spread)
		hosts_shuffle(h);
	return 0;
}

static void host_set_list(struct reddn_host *host, struct addrinfo *list)
{
	if (host->list)
		freeaddrinfo(host->list);
	host->list = list;
}

void reddn_hosts_deinit(struct reddn_hosts *h)
{
	for (unsigned i = 0; i < h->n; i++) {
		lookup_abandon(h->host[i].lookup);
		host_set_list(&h->host[i], NULL);
	}
	free(h->host);
}

/* ---- addresses ---- */

static void lookup_wait(const struct lookup *l, uint64_t deadline)
{
	struct pollfd p = {.fd = lookup_fd(l), .events = POLLIN};

	while (!lookup_has_ended(l) && reddn_time_left(deadline))
		poll(&p, 1, reddn_time_left(deadline));
}

/* Take what was found, if it can be used. As a text of libc or of ours; NULL: it can */
static const char *host_end_lookup(struct reddn_host *host)
{
	const struct sockaddr_in6 *v6;
	struct addrinfo *list;
	int r = lookup_end(host->lookup, &list);

	host->lookup = NULL;
	if (r)
		return gai_strerror(r);
	v6 = (const struct sockaddr_in6 *)list->ai_addr;
	if (v6->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) && !v6->sin6_scope_id) {
		freeaddrinfo(list);
		return "a link-local address needs an interface of this machine, as in fe80::1%eth0";
	}
	host_set_list(host, list);
	return NULL;
}

static socklen_t address_len(const struct sockaddr *a)
{
	return a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static int host_find(struct reddn_host *host, uint64_t deadline, char *err, size_t errlen)
{
	const char *why;

	lookup_wait(host->lookup, deadline);
	if (!lookup_has_ended(host->lookup))
		return reddn_fail(-ETIMEDOUT, err, errlen, "%s: not looked up in time", host->name);
	why = host_end_lookup(host);
	return why ? reddn_fail(-EHOSTUNREACH, err, errlen, "%s: %s", host->name, why) : 0;
}

int reddn_hosts_look_up(struct reddn_hosts *h, uint64_t deadline, char *err, size_t errlen)
{
	char others[256];
	int first = 0;
	bool found = false;

	for (unsigned i = 0; i < h->n; i++) {
		int r = lookup_begin(&h->host[i].lookup, h->host[i].name, h->host[i].port);

		if (r < 0)
			return reddn_fail(
				r, err, errlen, "%s: cannot be looked up: %s", h->host[i].name, strerror(-r));
	}
	for (unsigned i = 0; i < h->n; i++) {
		int r = host_find(
			&h->host[i], deadline, first ? others : err, first ? sizeof(others) : errlen);

		found |= r == 0;
		first = first ? first : r;
	}
	return found ? 0 : first;
}

void reddn_hosts_look_up_again(struct reddn_hosts *h)
{
	for (unsigned i = 0; i < h->n; i++) {
		struct reddn_host *host = &h->host[i];

		if (host->lookup && !lookup_has_ended(host->lookup))
			continue;
		if (host->lookup)
			host_end_lookup(host);
		if (lookup_begin(&host->lookup, host->name, host->port) < 0)
			host->lookup = NULL;
	}
}

int reddn_hosts_copy(
	struct reddn_hosts *h, const struct reddn_hosts *of, unsigned host, const struct sockaddr *known)
{
	char text[REDDN_HOST_NAME];

	h->host = calloc(of->n, sizeof(*h->host));
	if (!h->host)
		return -ENOMEM;
	for (h->n = 0; h->n < of->n; h->n++) {
		h->host[h->n].port = of->host[h->n].port;
		memcpy(h->host[h->n].name, of->host[h->n].name, sizeof(h->host->name));
	}
	if (known &&
		getnameinfo(known, address_len(known), text, sizeof(text), NULL, 0, NI_NUMERICHOST) == 0 &&
		lookup_begin(&h->host[host].lookup, text, h->host[host].port) < 0)
		h->host[host].lookup = NULL;
	for (unsigned i = 0; i < h->n; i++)
		if (!h->host[i].lookup &&
			lookup_begin(&h->host[i].lookup, h->host[i].name, h->host[i].port) < 0)
			h->host[i].lookup = NULL;
	return 0;
}

/* ---- which of them ---- */

static unsigned hosts_mark(
	struct reddn_hosts *h, enum reddn_choice choice, unsigned host, uint64_t now, bool all)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->n; i++) {
		bool fits = choice == REDDN_ANY_HOST || (i == host) == (choice == REDDN_THIS_HOST);

		h->host[i].chosen = fits && (all || now >= h->host[i].out_until);
		n += h->host[i].chosen;
	}
	return n;
}

bool reddn_hosts_choose(struct reddn_hosts *h, enum reddn_choice choice, unsigned host, uint64_t now)
{
	h->left = hosts_mark(h, choice, host, now, choice == REDDN_THIS_HOST);
	if (!h->left && choice == REDDN_ANY_HOST)
		h->left = hosts_mark(h, choice, host, now, true);
	h->at = choice == REDDN_ANY_HOST ? host % h->n : 0;
	while (h->left && !h->host[h->at].chosen)
		h->at = (h->at + 1) % h->n;
	return h->left;
}

bool reddn_hosts_next(struct reddn_hosts *h)
{
	if (h->left <= 1)
		return false;
	h->left--;
	do {
		h->at = (h->at + 1) % h->n;
	} while (!h->host[h->at].chosen);
	return true;
}

static unsigned count_addresses(const struct addrinfo *list)
{
	unsigned n = 0;

	for (; list; list = list->ai_next)
		n++;
	return n;
}

uint64_t reddn_hosts_until(
	const struct reddn_hosts *h, const struct addrinfo *address, uint64_t now, uint64_t deadline)
{
	unsigned n = count_addresses(address);

	for (unsigned i = h->at, left = h->left; left > 1;) {
		i = (i + 1) % h->n;
		if (h->host[i].chosen) {
			n += count_addresses(h->host[i].list);
			left--;
		}
	}
	return now < deadline ? now + (deadline - now) / n : deadline;
}

void reddn_hosts_add(const struct reddn_hosts *h, const struct addrinfo *address, char *err, size_t errlen)
{
	const struct reddn_host *host = reddn_hosts_at(h);
	unsigned n = count_addresses(host->list);
	size_t len = strlen(err);
	char text[64] = "";

	if (n > 1 && getnameinfo(address->ai_addr, address->ai_addrlen, text, sizeof(text), NULL, 0,
			     NI_NUMERICHOST) != 0)
		return;
	if (h->n > 1)
		snprintf(err + len, errlen - len, " (%s%s%s, one of %u hosts)", host->name,
			n > 1 ? " at " : "", text, h->n);
	else if (n > 1)
		snprintf(err + len, errlen - len, " (at %s, one of %u addresses)", text, n);
}

static bool is_other_of_family(const struct addrinfo *a, const struct addrinfo *b)
{
	return a->ai_family == b->ai_family &&
	       (a->ai_addrlen != b->ai_addrlen || memcmp(a->ai_addr, b->ai_addr, a->ai_addrlen) != 0);
}

/* glibc reports an address twice that a file of hosts has twice. */
bool reddn_hosts_is_one_machine(const struct reddn_hosts *h)
{
	for (const struct addrinfo *a = h->host->list; a; a = a->ai_next)
		for (const struct addrinfo *b = h->host->list; b != a; b = b->ai_next)
			if (is_other_of_family(a, b))
				return false;
	return h->n == 1;
}
