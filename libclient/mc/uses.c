/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/server.h"

#include "memcached/key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const uint64_t SECOND_NS = 1000000000, GATHER_NS = 100000000;

void mc_uses_init(struct mc_uses *u, uint32_t per_s)
{
	*u = (struct mc_uses){.fd = -1, .per_s = per_s};
}

/* 1: it has them; 0: later, because the socket has no room; -1: it is of no use */
static int send_lines(const struct mc_uses *u)
{
	ssize_t n = u->fd < 0 ? -1 : send(u->fd, u->lines, u->len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n == (ssize_t)u->len)
		return 1;
	return u->fd >= 0 && n < 0 && errno == EAGAIN ? 0 : -1;
}

static void send_at(struct mc_uses *u, uint64_t now_ns)
{
	int r = send_lines(u);

	if (r < 0) {
		/* of a line that was sent in part, the rest would be taken for another one */
		if (u->fd >= 0)
			shutdown(u->fd, SHUT_RDWR);
		u->fd = -1;
		u->next_ns = now_ns + SECOND_NS;
	}
	if (r > 0)
		u->sent += u->keys;
	if (r != 0)
		u->len = u->keys = 0;
	u->send_ns = now_ns + GATHER_NS;
}

void mc_uses_send_due(struct mc_uses *u, uint64_t now_ns)
{
	if (u->len && now_ns >= u->send_ns)
		send_at(u, now_ns);
}

bool mc_uses_report(struct mc_uses *u, const char *key, size_t key_len, uint64_t now_ns)
{
	char line[MEMCACHED_KEY_MOST + 8];
	size_t len;

	/* the binary protocol allows keys that would end the line */
	if (now_ns < u->next_ns || !key_is_text(key, key_len))
		return false;
	u->next_ns = now_ns + SECOND_NS / u->per_s;
	len = (size_t)snprintf(line, sizeof(line), "mg %.*s\r\n", (int)key_len, key);
	if (memmem(u->lines, u->len, line, len))
		return false;
	if (u->len + len > sizeof(u->lines))
		send_at(u, now_ns);
	if (u->len + len > sizeof(u->lines))
		return false;
	memcpy(u->lines + u->len, line, len);
	u->len += len;
	u->keys++;
	return true;
}

void mc_uses_send_last(struct mc_uses *u)
{
	if (u->len)
		send_lines(u);
}
