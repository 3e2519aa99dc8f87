/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/report.h"

#include "reddnd/session/count.h"
#include "reddnd/session/foreign.h"
#include "reddnd/util/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void set_text(struct event *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void set_text(struct event *e, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(e->text, sizeof(e->text), format, ap);
	va_end(ap);
}

static void set_client(struct event *e, const char *peer, const char *tenant, const char *offload)
{
	snprintf(e->tenant, sizeof(e->tenant), "%s", tenant);
	snprintf(e->peer, sizeof(e->peer), "%s", peer);
	snprintf(e->offload, sizeof(e->offload), "%s", offload);
}

static void set_session(struct event *e, const struct session *s)
{
	e->session = session_number(s);
	e->requests = session_done(s);
	e->source = source_of(s->client.address, 0);
	set_client(e, s->client.peer, s->tenant->name, s->offload->conf->name);
}

/* ---- clients ---- */

void report_refused(struct events *ev, const struct session_client *c, const char *tenant,
	const char *offload, const char *why)
{
	struct event e = {.kind = EVENT_REFUSED, .level = LOG_NOTICE, .source = source_of(c->address, 0)};

	set_client(&e, c->peer, tenant, offload);
	set_text(&e, "client %s refused: %s", c->peer, why);
	events_add(ev, &e);
}

void report_unlisted(struct events *ev, const struct source *of, unsigned bits, uint64_t n, const char *why)
{
	struct event e = {.kind = EVENT_REFUSED, .level = LOG_NOTICE, .repeats = n};
	char text[SOURCE_TEXT];

	if (of) {
		e.source = *of;
		set_client(&e, source_text(of, bits, text), "", "");
		set_text(&e, "clients from %s refused, %" PRIu64 " more times; the last time: %s", text, n,
			why);
	} else {
		set_text(&e, "clients from many addresses refused, %" PRIu64 " more times", n);
	}
	events_add(ev, &e);
}

void report_began(struct events *ev, const struct session *s)
{
	const struct queue_layout *l = &s->queues.layout;
	struct event e = {.kind = EVENT_BEGINS, .level = LOG_INFO};

	set_session(&e, s);
	set_text(&e, "client %s, tenant %s, offload %s, depth %u, %u instances, %" PRIu64 " bytes of queues",
		e.peer, e.tenant, e.offload, s->queues.env.slot_count, l->slots, (uint64_t)l->size);
	events_add(ev, &e);
}

void report_adopted(struct events *ev, const struct session *s)
{
	struct event e = {.kind = EVENT_BEGINS, .level = LOG_INFO};

	set_session(&e, s);
	set_text(&e, "client %s, tenant %s, offload %s, depth %u goes on after %" PRIu64 " requests%s%s",
		e.peer, e.tenant, e.offload, s->queues.env.slot_count, s->progress.done,
		s->foreign ? ": " : "", s->foreign ? s->foreign->why : "");
	events_add(ev, &e);
}

void report_ended_heir(
	struct events *ev, uint64_t number, const uint8_t address[16], const char *peer, const char *why)
{
	struct event e = {
		.kind = EVENT_ENDS, .level = LOG_NOTICE, .session = number, .source = source_of(address, 0)};

	set_client(&e, peer, "", "");
	set_text(&e, "ends: %s", why);
	events_add(ev, &e);
}

int report_level(enum reddn_wire_end reason)
{
	switch (reason) {
	case REDDN_WIRE_END_CLIENT:
	case REDDN_WIRE_END_SHUTDOWN:
	case REDDN_WIRE_END_IDLE:
		return LOG_INFO;
	case REDDN_WIRE_END_OPERATOR:
		return LOG_NOTICE;
	default:
		return LOG_WARNING;
	}
}

void report_ended(struct events *ev, const struct session *s, enum reddn_wire_end reason, const char *text)
{
	struct event e = {.kind = EVENT_ENDS, .level = report_level(reason)};

	set_session(&e, s);
	if (s->connections > 1)
		set_text(&e, "ends after %" PRIu64 " requests of %u connections: %s", e.requests,
			s->connections, text);
	else
		set_text(&e, "ends after %" PRIu64 " requests: %s", e.requests, text);
	events_add(ev, &e);
}

void report_verdict(
	struct events *ev, const struct session *s, const struct verdict *v, enum verdict_action action)
{
	struct event e = {.kind = EVENT_VERDICT, .level = LOG_WARNING, .line = v->line};

	set_session(&e, s);
	snprintf(e.verdict, sizeof(e.verdict), "%s", verdict_kind_name(v->kind));
	snprintf(e.action, sizeof(e.action), "%s", verdict_action_name(action));
	snprintf(e.step, sizeof(e.step), "%s", v->step);
	snprintf(e.path, sizeof(e.path), "%s", v->path);
	if (v->syndrome)
		snprintf(e.syndrome, sizeof(e.syndrome), "%s", rnic_syndrome_text(v->syndrome));
	set_text(&e, "client %s, tenant %s, offload %s: %s", e.peer, e.tenant, e.offload, v->text);
	events_add(ev, &e);
}

/* ---- the daemon ---- */

void report_reloaded(struct events *ev, unsigned regions, unsigned offloads)
{
	struct event e = {.kind = EVENT_RELOADED, .level = LOG_NOTICE};

	set_text(&e, "the configuration is in force: %u regions, %u offloads; sessions go on as they began",
		regions, offloads);
	events_add(ev, &e);
}

void report_reload_failed(struct events *ev, const char *why)
{
	struct event e = {.kind = EVENT_RELOAD_FAILED, .level = LOG_WARNING};

	set_text(&e, "the configuration in force stays as it was: %s", why);
	events_add(ev, &e);
}

void report_moved(struct events *ev, const char *region, const char *path, bool replaced)
{
	struct event e = {.kind = EVENT_MOVED, .level = LOG_WARNING};

	set_text(&e,
		replaced ? "region %s: another file has replaced %s; the one before is served until a reload "
			   "or a restart takes the new one"
			 : "region %s: file %s was removed; it is served until a reload or a restart, which "
			   "will not find it",
		region, path);
	events_add(ev, &e);
}

void report_unfinished(struct events *ev, const char *region, const char *path)
{
	struct event e = {.kind = EVENT_UNFINISHED, .level = LOG_WARNING};

	set_text(&e,
		"region %s: the writer of the table died in the middle of a move, and no miss is certain "
		"until the next writer comes, or: reddn-table repair %s",
		region, path);
	events_add(ev, &e);
}

void report_device_lost(struct events *ev, const char *device)
{
	struct event e = {.kind = EVENT_DEVICE_LOST, .level = LOG_ERR};

	set_text(&e, "device %s is lost; the daemon ends", device);
	events_add(ev, &e);
}
