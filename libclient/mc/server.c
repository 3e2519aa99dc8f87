/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/mc/server.h"

#include "libclient/pause.h"
#include "libclient/public.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* DOUBT_MS: for a memcached that seems to be dead, while gets wait. LOOK_MS: between two looks whether it is.
 * TALK_PAUSE_MS: the longest pause between two attempts, which is TALK_SHARE times as long as the attempt
 * took. PIECES: the depth for them; LESS: the part of it that is asked for next where that is too much */
enum {
	TALK_MS = 1000,
	DOUBT_MS = 100,
	LOOK_MS = 10,
	TALK_PAUSE_MS = 200,
	TALK_SHARE = 4,
	PIECES = 16,
	LESS = 4
};

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

	*s = (struct mc_server){.options = options, .port = port, .where.port = options->port};
	snprintf(s->host, sizeof(s->host), "%s", host);
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
	snprintf(s->nic.why, sizeof(s->nic.why), "%s",
		options->tcp_only ? "no NIC is used"
		: *s->where.host  ? "not connected yet"
				  : "no NIC is known for it");
	mc_uses_init(&s->uses, options->uses_per_s);
	return 0;
}

static void hang_up(struct mc_server *s)
{
	if (s->talks)
		talk_close(&s->talk);
	s->talks = false;
	s->uses.fd = -1;
}

void mc_server_deinit(struct mc_server *s)
{
	mc_uses_send_last(&s->uses);
	hang_up(s);
	talk_deinit(&s->talk);
	reddn_close(s->nic.c);
	reddn_close(s->pieces.c);
}

void mc_server_lose(struct mc_server *s, uint64_t now_ms, const char *why)
{
	mc_nic_lose(&s->nic, now_ms, why);
	s->facts.known = false;
	s->verified = (struct identity){0};
	hang_up(s);
}

void mc_server_release(struct mc_server *s)
{
	mc_nic_release(&s->nic);
	mc_nic_release(&s->pieces);
}

bool mc_server_ready(struct mc_server *s)
{
	bool fresh = !s->nic.c;

	if (!mc_nic_ready(&s->nic, &s->where, s->where.offload, s->options, "memcached-get", 4))
		return false;
	if (fresh) {
		s->facts = (struct mc_facts){0};
		snprintf(s->nic.why, sizeof(s->nic.why), "its memcached is not known yet");
	}
	return true;
}

bool mc_server_has_pieces(struct mc_server *s)
{
	struct reddn_mc_options options = *s->options;
	char offload[sizeof(s->where.offload) + 8];

	/* the pieces of one item are on their way together, also if gets are not */
	if (options.depth < PIECES)
		options.depth = PIECES;
	if (s->pieces_depth)
		options.depth = s->pieces_depth;
	snprintf(offload, sizeof(offload), "%s-pieces", s->where.offload);
	if (strlen(offload) >= sizeof(s->where.offload))
		return false;
	s->pieces.refused = 0;
	s->pieces_depth = 0;
	if (mc_nic_ready(&s->pieces, &s->where, offload, &options, "memcached-piece", 5))
		return true;
	/* a get waits for one attempt to connect, and this one goes over TCP */
	if ((s->pieces.refused == -ERANGE || s->pieces.refused == -EDQUOT) && options.depth > 1) {
		s->pieces_depth = options.depth > LESS ? options.depth / LESS : 1;
		s->pieces.retry_ms = 0;
	}
	return false;
}

/* It did not answer what it was asked at @since_ms */
static void talk_later(struct mc_server *s, uint64_t since_ms)
{
	uint64_t now_ms = clock_ms(), least = TALK_SHARE * (now_ms - since_ms);

	s->pause_ms = reddn_pause_next(s->pause_ms, REDDN_PAUSE_LEAST_MS, TALK_PAUSE_MS);
	s->talk_ms = now_ms + (s->pause_ms > least ? s->pause_ms : least);
}

bool mc_server_listens(struct mc_server *s)
{
	uint64_t now_ms = clock_ms();
	char why[256];

	if (s->listens || now_ms < s->talk_ms)
		return s->listens;
	hang_up(s);
	s->talks = s->listens = talk_open(&s->talk, s->name, TALK_MS, why, sizeof(why)) == 0;
	hang_up(s);
	if (!s->listens) {
		talk_later(s, now_ms);
		return false;
	}
	s->pause_ms = 0;
	return true;
}

static bool is_same(const struct identity *a, const struct identity *b)
{
	return a->cas == b->cas && a->generation == b->generation;
}

/* The memcached that was verified lives, or did so a moment ago */
static bool talks(struct mc_server *s, uint64_t now_ms)
{
	if (s->talks && now_ms - s->look_ms >= LOOK_MS) {
		s->look_ms = now_ms;
		if (talk_has_ended(&s->talk))
			hang_up(s);
	}
	return s->talks;
}

/* 1: the memcached that answers is @named, and s->talk is a connection with it; 0: it is another one; -errno:
 * nobody answers */
static int ask_identity(struct mc_server *s, const struct identity *named, unsigned limit_ms)
{
	char why[256];
	int r;

	hang_up(s);
	r = talk_open(&s->talk, s->name, limit_ms, why, sizeof(why));
	if (r < 0)
		return r;
	s->talks = true;
	r = identity_ask(&s->talk, named);
	if (r != 1)
		hang_up(s);
	return r;
}

/* The memcached that answers is not @named. It may be the next one, of which the NIC did not know when it was
 * asked: the NIC is lost if it is asked again, and names the same. */
static void deny(struct mc_server *s, const struct identity *named, uint64_t now_ms)
{
	char why[300];

	if (!is_same(&s->denied, named)) {
		s->denied = *named;
		s->doubted = s->asked;
		return;
	}
	snprintf(why, sizeof(why), "offload %s has the items of another memcached than this server",
		s->where.offload);
	mc_server_lose(s, now_ms, why);
}

static bool verify(struct mc_server *s, const struct identity *named, uint64_t now_ms)
{
	const bool was = is_same(&s->verified, named), died = s->facts.lines.served.died;
	int r = -EAGAIN;

	if (now_ms >= s->talk_ms) {
		r = ask_identity(s, named, was || died ? DOUBT_MS : TALK_MS);
		if (r < 0)
			talk_later(s, now_ms);
		else
			s->pause_ms = 0;
	}
	if (r == 0) {
		deny(s, named, now_ms);
		return false;
	}
	if (r > 0) {
		s->denied = (struct identity){0};
		s->look_ms = now_ms;
		s->uses.fd = s->talk.fd;
	}
	/* of two that are dead nobody can say more, unless another one has answered after this one */
	if (r > 0 || ((was || died) && !is_same(&s->denied, named))) {
		s->verified = *named;
		s->nic.pause_ms = 0;
		*s->nic.why = '\0';
		return true;
	}
	/* it may have just died, or be about to answer */
	snprintf(s->nic.why, sizeof(s->nic.why), "memcached does not say whether this is its NIC");
	return false;
}

bool mc_server_learn(struct mc_server *s, const struct mc_lines *lines, uint64_t nth, uint64_t now_ms)
{
	const struct identity named = {lines->live.generation, lines->served.identity};

	if (mc_server_doubts(s, nth))
		return false;
	mc_facts_take(&s->facts, lines, true, now_ms);
	if (!s->facts.known)
		return false;
	return (is_same(&s->verified, &named) && talks(s, now_ms)) || verify(s, &named, now_ms);
}
