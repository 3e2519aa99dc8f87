/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/uses.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { KEY_MOST = 250 };
static const uint64_t SECOND_NS = 1000000000, GATHER_NS = 100000000;

void mc_uses_init(struct mc_uses *u, const char *server, uint32_t per_s)
{
	*u = (struct mc_uses){.server = server, .per_s = per_s};
}

/* What was not sent is lost */
static void leave(struct mc_uses *u)
{
	if (u->open)
		talk_close(&u->talk);
	u->open = false;
	u->len = u->keys = u->tried = 0;
}

/* The binary protocol allows keys that would end the line */
static bool is_word(const char *key, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)key[i] <= ' ' || key[i] == 0x7f)
			return false;
	return len && len <= KEY_MOST;
}

/* What it answers does not matter. False: it has closed the connection. */
static bool take_answers(struct mc_uses *u)
{
	ssize_t n;

	do
		n = recv(u->talk.fd, u->talk.buf, sizeof(u->talk.buf), MSG_DONTWAIT);
	while (n > 0);
	return n < 0;
}

/* 1: it has them; 0: later, because the connection is not made yet or has no room; -1: it is of no use */
static int send_lines(struct mc_uses *u)
{
	ssize_t n;

	if (!take_answers(u))
		return -1;
	n = send(u->talk.fd, u->lines, u->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n == (ssize_t)u->len)
		return 1;
	return n < 0 && errno == EAGAIN ? 0 : -1;
}

/* The same, by the next address if one refuses; -1: none is of use */
static int send_anywhere(struct mc_uses *u)
{
	char why[256];
	int r;

	for (;;) {
		if (!u->open && talk_begin(&u->talk, u->server, &u->tried, why, sizeof(why)) < 0)
			return -1;
		u->open = true;
		r = send_lines(u);
		if (r >= 0)
			return r;
		talk_close(&u->talk);
		u->open = false;
	}
}

static void send_at(struct mc_uses *u, uint64_t now_ns)
{
	int r = send_anywhere(u);

	if (r < 0) {
		leave(u);
		u->next_ns = u->send_ns = now_ns + SECOND_NS;
		return;
	}
	if (r > 0) {
		u->sent += u->keys;
		u->len = u->keys = u->tried = 0;
	}
	u->send_ns = now_ns + GATHER_NS;
}

void mc_uses_send_due(struct mc_uses *u, uint64_t now_ns)
{
	if (u->len && now_ns >= u->send_ns)
		send_at(u, now_ns);
}

bool mc_uses_report(struct mc_uses *u, const char *key, size_t key_len, uint64_t now_ns)
{
	char line[KEY_MOST + 8];
	size_t len;

	if (now_ns < u->next_ns || !is_word(key, key_len))
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

void mc_uses_deinit(struct mc_uses *u)
{
	if (u->len && u->open)
		send_lines(u);
	leave(u);
}
