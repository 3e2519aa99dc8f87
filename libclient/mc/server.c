/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/server.h"

#include "libclient/public.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SHARE: of the time, an attempt to connect may take one part in so many */
enum { TALK_MS = 1000, PAUSE_MS = 1000, SHARE = 20 };

static void name_it(struct mc_server *s, const char *host, unsigned port)
{
	if (!port)
		snprintf(s->name, sizeof(s->name), "%s", host);
	else
		snprintf(s->name, sizeof(s->name), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

int mc_server_init(struct mc_server *s, const char *host, unsigned port,
	const struct reddn_mc_options *options, char *err, size_t errlen)
{
	const char *bad;

	*s = (struct mc_server){.options = options, .where.port = options->port};
	name_it(s, host, port);
	/* a socket has no address */
	if (port)
		snprintf(s->where.host, sizeof(s->where.host), "%s", host);
	snprintf(s->where.offload, sizeof(s->where.offload), "%s", options->offload);
	if (mc_where_find(&s->where, options->nics, host, port, &bad) < 0)
		return reddn_fail(-EINVAL, err, errlen,
			"nics: \"%s\" does not begin with SERVER=HOST[:PORT][/OFFLOAD]", bad);
	if (options->tcp_only)
		*s->where.host = '\0';
	snprintf(s->why, sizeof(s->why), "%s",
		options->tcp_only ? "no NIC is used"
		: *s->where.host  ? "not connected yet"
				  : "no NIC is known for it");
	mc_uses_init(&s->uses, s->name, options->uses_per_s);
	return 0;
}

void mc_server_deinit(struct mc_server *s)
{
	mc_uses_deinit(&s->uses);
	reddn_close(s->nic);
}

void mc_server_lose(struct mc_server *s, uint64_t now_ms, const char *why)
{
	if (why != s->why)
		snprintf(s->why, sizeof(s->why), "%s", why);
	s->lost = s->nic != NULL;
	s->flying = 0;
	s->facts.known = false;
	s->verified = 0;
	s->retry_ms = now_ms + PAUSE_MS;
}

void mc_server_release(struct mc_server *s)
{
	if (s->lost) {
		reddn_close(s->nic);
		s->nic = NULL;
		s->lost = false;
	} else if (s->nic) {
		reddn_release(s->nic);
	}
}

/* It must be what memcached-get takes */
static int check_offload(struct mc_server *s)
{
	enum reddn_arg_kind kind;
	struct reddn_info info;
	uint32_t bytes;

	reddn_get_info(s->nic, &info);
	if (info.nargs == 1 && reddn_get_arg(s->nic, 0, &kind, &bytes) == 0 && kind == REDDN_OFFSET &&
		bytes == 4)
		return 0;
	snprintf(s->why, sizeof(s->why), "offload %s is not memcached-get", s->where.offload);
	return -EINVAL;
}

bool mc_server_ready(struct mc_server *s, uint64_t now_ms)
{
	const struct reddn_options options = {.host = s->where.host,
		.offload = s->where.offload,
		.port = s->where.port,
		.depth = s->options->depth,
		.timeout_ms = s->options->connect_ms,
		.token_file = s->options->token_file};

	if (s->nic)
		return !s->lost;
	if (!*s->where.host || now_ms < s->retry_ms)
		return false;
	if (reddn_connect(&s->nic, &options, s->why, sizeof(s->why)) < 0) {
		uint64_t ended_ms = clock_ms();

		s->nic = NULL;
		mc_server_lose(s, ended_ms, s->why);
		if (SHARE * (ended_ms - now_ms) > PAUSE_MS)
			s->retry_ms = ended_ms + SHARE * (ended_ms - now_ms);
		return false;
	}
	s->facts = (struct mc_facts){0};
	if (check_offload(s) < 0) {
		mc_server_lose(s, now_ms, s->why);
		return false;
	}
	snprintf(s->why, sizeof(s->why), "its memcached is not known yet");
	return true;
}

/* The process id of the memcached that answers over TCP; 0: none does */
static uint64_t ask_pid(const struct mc_server *s)
{
	struct talk_stat pid = {.name = "pid"};
	struct talk t;
	char why[256];

	if (talk_open(&t, s->name, TALK_MS, why, sizeof(why)) < 0)
		return 0;
	if (talk_stats(&t, "", &pid, 1) < 0)
		*pid.value = '\0';
	talk_close(&t);
	return strtoull(pid.value, NULL, 10);
}

static bool verify(struct mc_server *s, uint64_t now_ms)
{
	const struct mc_lines *lines = &s->facts.lines;
	uint64_t pid = ask_pid(s);
	char why[300];

	/* of two that are dead nobody can say more */
	if (pid == lines->live.pid || (!pid && lines->served.died)) {
		s->verified = lines->live.generation;
		*s->why = '\0';
		return true;
	}
	if (pid)
		snprintf(why, sizeof(why),
			"offload %s has the items of process %" PRIu64
			", and the memcached of this server is %" PRIu64,
			s->where.offload, lines->live.pid, pid);
	else
		snprintf(why, sizeof(why), "memcached does not say whether this is its NIC");
	mc_server_lose(s, now_ms, why);
	return false;
}

bool mc_server_learn(struct mc_server *s, const struct mc_lines *lines, uint64_t now_ms)
{
	mc_facts_take(&s->facts, lines, true, now_ms);
	if (!s->facts.known)
		return false;
	return s->verified == lines->live.generation || verify(s, now_ms);
}
