/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/uses.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { CONNECT_MS = 200, KEY_MOST = 250 };
static const uint64_t SECOND_NS = 1000000000;

void mc_uses_init(struct mc_uses *u, const char *server, uint32_t per_s)
{
	*u = (struct mc_uses){.server = server, .per_s = per_s};
}

void mc_uses_deinit(struct mc_uses *u)
{
	if (u->open)
		talk_close(&u->talk);
	u->open = false;
}

/* The binary protocol allows keys that would end the line */
static bool is_word(const char *key, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)key[i] <= ' ' || key[i] == 0x7f)
			return false;
	return len && len <= KEY_MOST;
}

/* What it answers does not matter */
static bool take_answers(struct mc_uses *u)
{
	ssize_t n;

	do
		n = recv(u->talk.fd, u->talk.buf, sizeof(u->talk.buf), MSG_DONTWAIT);
	while (n > 0);
	return n < 0;
}

bool mc_uses_report(struct mc_uses *u, const char *key, size_t key_len, uint64_t now_ns)
{
	char line[KEY_MOST + 8], why[256];
	int len;

	if (now_ns < u->next_ns || !is_word(key, key_len))
		return false;
	u->next_ns = now_ns + SECOND_NS / u->per_s;
	if (!u->open) {
		u->open = talk_open(&u->talk, u->server, CONNECT_MS, why, sizeof(why)) == 0;
		if (!u->open) {
			u->next_ns = now_ns + SECOND_NS;
			return false;
		}
	}
	len = snprintf(line, sizeof(line), "mg %.*s\r\n", (int)key_len, key);
	if (take_answers(u) && send(u->talk.fd, line, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len)
		return true;
	mc_uses_deinit(u);
	u->next_ns = now_ns + SECOND_NS;
	return false;
}
