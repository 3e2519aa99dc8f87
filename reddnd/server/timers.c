/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/server-impl.h"
#include "reddnd/session/posting.h"
#include "reddnd/session/silence.h"
#include "reddnd/util/log.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdio.h>

enum { ACCURACY_US = 10000, MS = 1000 };

static uint64_t half_open_until(const struct server *sv, const struct session *s)
{
	/* The message that completes a connection can be lost; a client that asks has completed it */
	if (s->timer.established || s->progress.done)
		return UINT64_MAX;
	return s->since + sv->generation->catalog->connect_timeout;
}

static uint64_t idle_until(const struct session *s)
{
	uint64_t limit = s->tenant->limits.idle_timeout;

	return limit ? s->timer.idle.since + limit : UINT64_MAX;
}

/* When the timer is due next */
static void set_timer(const struct server *sv, struct session *s)
{
	uint64_t at = half_open_until(sv, s);

	if (s->limits.throttle.until && s->limits.throttle.until < at)
		at = s->limits.throttle.until;
	if (idle_until(s) < at)
		at = idle_until(s);
	if (!s->timer.source)
		return;
	if (at == UINT64_MAX)
		sd_event_source_set_enabled(s->timer.source, SD_EVENT_OFF);
	else if (sd_event_source_set_time(s->timer.source, at) < 0 ||
		 sd_event_source_set_enabled(s->timer.source, SD_EVENT_ONESHOT) < 0)
		log_error("session %" PRIu64 ": its timer cannot be set", s->id);
}

static void apply(struct server *sv, struct session *s)
{
	pace_changed(&sv->pacer, s);
	set_timer(sv, s);
}

static int due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct session *s = arg;
	struct server *sv = s->timer.owner;
	uint64_t now = clock_us();
	char why[100];

	(void)source;
	(void)usec;
	rounds_drain(sv);
	rounds_count(sv, s);
	if (now >= half_open_until(sv, s)) {
		snprintf(why, sizeof(why), "the client did not complete the connection within %" PRIu64 " ms",
			sv->generation->catalog->connect_timeout / MS);
		door_end(sv, s, REDDN_WIRE_END_UNREACHABLE, why);
	}
	if (!s->ended && now >= idle_until(s) && session_is_idle(s, now, s->tenant->limits.idle_timeout)) {
		snprintf(why, sizeof(why), "the client has asked for nothing for %" PRIu64 " ms",
			(now - s->timer.idle.since) / MS);
		door_end(sv, s, REDDN_WIRE_END_IDLE, why);
	}
	if (!s->ended && s->limits.throttle.until && now >= s->limits.throttle.until) {
		session_throttle(s, 0, 0, clock_us());
		log_at(LOG_INFO, s->id, "is not slowed any more");
		apply(sv, s);
	}
	if (!s->ended)
		set_timer(sv, s);
	rounds_collect(sv);
	return 0;
}

int upkeep_begin(struct server *sv, struct session *s)
{
	int r;

	s->timer.owner = sv;
	s->timer.idle.since = s->since;
	r = sd_event_add_time(sv->event, &s->timer.source, CLOCK_MONOTONIC, UINT64_MAX, ACCURACY_US, due, s);
	if (r < 0)
		return log_errno(r, "cannot make a timer");
	set_timer(sv, s);
	return 0;
}

void upkeep_established(struct session *s)
{
	s->timer.established = true;
	set_timer(s->timer.owner, s);
}

void upkeep_throttle(struct server *sv, struct session *s, uint64_t rate, uint64_t until)
{
	session_throttle(s, rate, until, clock_us());
	log_at(LOG_INFO, s->id, "is slowed to %" PRIu64 " requests per second for %" PRIu64 " ms", rate,
		(until - clock_us()) / MS);
	apply(sv, s);
}

void upkeep_limit(struct server *sv, struct session *s, const struct server_limit *limit)
{
	if (limit->says_rate)
		session_limit_requests(s, limit->rate, limit->burst, clock_us());
	if (limit->says_bytes)
		session_limit_bytes(s, limit->bytes_rate, clock_us());
	apply(sv, s);
}

void upkeep_changed(struct server *sv, struct session *s)
{
	/* What was before a timeout began does not count */
	s->timer.idle = (struct verdict_idle){.done = s->progress.done, .since = clock_us()};
	set_timer(sv, s);
}

void upkeep_end(struct session *s)
{
	s->timer.source = sd_event_source_disable_unref(s->timer.source);
}
