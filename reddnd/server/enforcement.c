/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/enforcement.h"

#include "reddnd/policy/offload-stats.h"
#include "reddnd/util/log.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SECOND_US = 1000000 };

/* ---- time
 * ---------------------------------------------------------------------------------------------------- */

static int look_due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct warden *w = arg;

	(void)source;
	(void)usec;
	w->period_us = 0;
	w->look(w->arg, clock_us());
	return 0;
}

int warden_init(struct warden *w, sd_event *event, void (*look)(void *arg, uint64_t now_us), void *arg)
{
	int r;

	*w = (struct warden){.look = look, .arg = arg};
	w->events = events_new();
	if (!w->events)
		return -ENOMEM;
	r = sd_event_add_time_relative(event, &w->timer, CLOCK_MONOTONIC, 0, 1, look_due, w);
	if (r >= 0)
		r = sd_event_source_set_enabled(w->timer, SD_EVENT_OFF);
	return r < 0 ? log_errno(r, "cannot make a timer") : 0;
}

void warden_deinit(struct warden *w)
{
	sd_event_source_disable_unref(w->timer);
	events_free(w->events);
	*w = (struct warden){0};
}

void warden_look_within(struct warden *w, uint64_t us)
{
	if (w->period_us && w->period_us <= us)
		return;
	if (sd_event_source_set_time_relative(w->timer, us) >= 0 &&
		sd_event_source_set_enabled(w->timer, SD_EVENT_ONESHOT) >= 0)
		w->period_us = us;
}

/* ---- events
 * -------------------------------------------------------------------------------------------------- */

static void say(struct event *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct event *e, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(e->text, sizeof(e->text), format, ap);
	va_end(ap);
}

static void name(struct event *e, const char *peer, const char *tenant, const char *offload)
{
	snprintf(e->tenant, sizeof(e->tenant), "%s", tenant);
	snprintf(e->peer, sizeof(e->peer), "%s", peer);
	snprintf(e->offload, sizeof(e->offload), "%s", offload);
}

static void about(struct event *e, const struct session *s)
{
	e->session = s->id;
	e->requests = s->progress.done;
	name(e, rnic_conn_peer(s->client.conn), s->tenant->name, s->offload->conf->name);
}

bool warden_lets_in(struct warden *w, const char *peer, struct reddn_wire_rej *rej)
{
	uint64_t now = clock_us(), left;
	const struct ban *ban = bans_find(&w->bans, peer, now);

	if (!ban)
		return true;
	left = (ban->until - now + SECOND_US - 1) / SECOND_US;
	request_refuse(
		rej, REDDN_REJ_BANNED, (uint32_t)left, "refused for %" PRIu64 " s more: %s", left, ban->why);
	return false;
}

void warden_refused(
	struct warden *w, const char *peer, const char *tenant, const char *offload, const char *why)
{
	struct event e = {.kind = EVENT_REFUSED, .level = LOG_NOTICE};

	name(&e, peer, tenant, offload);
	say(&e, "client %s refused: %s", peer, why);
	events_add(w->events, &e);
}

void warden_began(struct warden *w, const struct session *s, const char *words)
{
	struct event e = {.kind = EVENT_BEGINS, .level = LOG_INFO};

	about(&e, s);
	say(&e, "client %s, tenant %s, offload %s, %s", e.peer, e.tenant, e.offload, words);
	events_add(w->events, &e);
}

void warden_ended(struct warden *w, const struct session *s, int level, const char *why)
{
	struct event e = {.kind = EVENT_ENDS, .level = level};

	about(&e, s);
	say(&e, "ends after %" PRIu64 " requests: %s", s->progress.done, why);
	events_add(w->events, &e);
}

void warden_reloaded(struct warden *w, const char *words)
{
	struct event e = {.kind = EVENT_RELOADED, .level = LOG_NOTICE};

	say(&e, "the configuration is in force: %s", words);
	events_add(w->events, &e);
}

void warden_reload_failed(struct warden *w, const char *why)
{
	struct event e = {.kind = EVENT_RELOAD_FAILED, .level = LOG_WARNING};

	say(&e, "%s", why);
	events_add(w->events, &e);
}

void warden_device_lost(struct warden *w, const char *device)
{
	struct event e = {.kind = EVENT_DEVICE_LOST, .level = LOG_ERR};

	say(&e, "device %s is lost; the daemon ends", device);
	events_add(w->events, &e);
}

/* ---- verdicts
 * ------------------------------------------------------------------------------------------------ */

const struct ban *warden_slows(struct warden *w, const char *peer)
{
	return bans_find(&w->slowed, peer, clock_us());
}

enum verdict_action warden_judge(struct warden *w, struct session *s, const struct verdict *v)
{
	const struct verdict_policy *policy = &s->offload->conf->on_error[v->kind];
	uint64_t until = clock_us() + (uint64_t)policy->seconds * SECOND_US;
	struct event e = {.kind = EVENT_VERDICT, .level = LOG_WARNING, .line = v->line};

	s->counters.verdicts[v->kind]++;
	s->offload->stats->verdicts[v->kind]++;
	about(&e, s);
	snprintf(e.verdict, sizeof(e.verdict), "%s", verdict_kind_name(v->kind));
	snprintf(e.action, sizeof(e.action), "%s", verdict_action_name(policy->action));
	snprintf(e.step, sizeof(e.step), "%s", v->step);
	snprintf(e.path, sizeof(e.path), "%s", v->path);
	if (v->syndrome)
		snprintf(e.syndrome, sizeof(e.syndrome), "%s", rnic_syndrome_text(v->syndrome));
	say(&e, "client %s, tenant %s, offload %s: %s", e.peer, e.tenant, e.offload, v->text);
	events_add(w->events, &e);
	if (policy->action == VERDICT_BAN)
		bans_add(&w->bans, e.peer, until, 0, v->text);
	if (policy->action == VERDICT_THROTTLE)
		bans_add(&w->slowed, e.peer, until, policy->rate, v->text);
	return v->fatal || policy->action > VERDICT_TERMINATE ? VERDICT_TERMINATE : policy->action;
}
