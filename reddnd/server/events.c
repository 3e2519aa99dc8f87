/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/events.h"

#include "reddnd/util/log.h"
#include "util/array.h"
#include "util/clock.h"

#include <stdio.h>
#include <stdlib.h>

struct events {
	struct event ring[EVENTS_KEPT];
	uint64_t count;
	void (*fn)(void *arg);
	void *arg;
};

/* These never change: they are in journals, in units/reddnd.catalog, and in scripts of operators */
static const struct {
	const char *name, *id;
} kinds[] = {
	[EVENT_BEGINS] = {"begins", "8c169811b6654f3cb1939c8da73e77ce"},
	[EVENT_ENDS] = {"ends", "3b9d6b8f334d45d1a48e1fb00ec1660c"},
	[EVENT_REFUSED] = {"refused", "133340f757394cc2afc74d607b3e7ad8"},
	[EVENT_VERDICT] = {"verdict", "e105435ac005465b9b1489e099583207"},
	[EVENT_RELOADED] = {"reloaded", "719e0e33c3914c988030743c9c9a1e0f"},
	[EVENT_RELOAD_FAILED] = {"reload-failed", "4a5280bcc33b4c648724e9e2de9638f6"},
	[EVENT_DEVICE_LOST] = {"device-lost", "dafdcf285df340749f041ebf15975c75"},
};

struct events *events_new(void)
{
	return calloc(1, sizeof(struct events));
}

void events_free(struct events *ev)
{
	free(ev);
}

const char *event_kind_name(enum event_kind kind)
{
	return kinds[kind].name;
}

static void write_journal(const struct event *e)
{
	char line[12] = "";
	const struct log_field fields[] = {
		{"REDDND_OFFLOAD", e->offload},
		{"REDDND_PEER", e->peer},
		{"REDDND_TENANT", e->tenant},
		{"REDDND_VERDICT", e->verdict},
		{"REDDND_ACTION", e->action},
		{"REDDND_STEP", e->step},
		{"REDDND_PROGRAM", e->path},
		{"REDDND_LINE", line},
		{"REDDND_SYNDROME", e->syndrome},
	};

	if (e->line)
		snprintf(line, sizeof(line), "%u", e->line);
	log_event(
		e->level, e->session, kinds[e->kind].id, fields, COUNT(fields), __FILE__, __LINE__, e->text);
}

void events_add(struct events *ev, const struct event *e)
{
	struct event *mine = &ev->ring[ev->count % EVENTS_KEPT];

	*mine = *e;
	mine->number = ++ev->count;
	mine->time_us = clock_read_ns(CLOCK_REALTIME) / 1000;
	write_journal(mine);
	if (ev->fn)
		ev->fn(ev->arg);
}

uint64_t events_first(const struct events *ev)
{
	return ev->count > EVENTS_KEPT ? ev->count - EVENTS_KEPT + 1 : 1;
}

const struct event *events_next(const struct events *ev, uint64_t *next, uint64_t *lost)
{
	uint64_t first = events_first(ev), at = *next < first ? first : *next;

	*lost = at - *next;
	if (at > ev->count)
		return NULL;
	*next = at + 1;
	return &ev->ring[(at - 1) % EVENTS_KEPT];
}

void events_listen(struct events *ev, void (*fn)(void *arg), void *arg)
{
	ev->fn = fn;
	ev->arg = arg;
}
