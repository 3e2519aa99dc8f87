/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/audit.h"

#include "util/json.h"

#include <stdio.h>
#include <syslog.h>

static void add_if_set(struct json_object *o, const char *name, const char *text)
{
	if (*text)
		json_add_text(o, name, text);
}

/* Leaves out what does not apply to the event */
static struct json_object *event_json(const struct event *e)
{
	struct json_object *o = json_object_new_object();

	json_add_count(o, "number", e->number);
	json_add_count(o, "time_us", e->time_us);
	add_if_set(o, "event", event_kind_name(e->kind));
	json_add_count(o, "priority", (uint64_t)e->level);
	if (e->session) {
		json_add_count(o, "session", e->session);
		json_add_count(o, "requests", e->requests);
	}
	if (e->repeats)
		json_add_count(o, "repeats", e->repeats);
	add_if_set(o, "peer", e->peer);
	add_if_set(o, "tenant", e->tenant);
	add_if_set(o, "offload", e->offload);
	add_if_set(o, "verdict", e->verdict);
	add_if_set(o, "action", e->action);
	add_if_set(o, "step", e->step);
	add_if_set(o, "program", e->path);
	if (e->line)
		json_add_count(o, "line", e->line);
	add_if_set(o, "syndrome", e->syndrome);
	add_if_set(o, "text", e->text);
	return o;
}

struct json_object *audit_list(const struct events *ev, uint64_t *next)
{
	struct json_object *list = json_object_new_array();
	const struct event *e;
	uint64_t lost;

	*next = events_first(ev);
	while ((e = events_next(ev, next, &lost)))
		json_object_array_add(list, event_json(e));
	return list;
}

char *audit_line(const struct events *ev, uint64_t *next)
{
	uint64_t lost, at = *next;
	const struct event *e = events_next(ev, &at, &lost);
	struct json_object *o;
	char *line = NULL;

	if (!e)
		return NULL;
	if (lost) {
		o = json_object_new_object();
		json_add_count(o, "lost", lost);
		at = e->number;
	} else {
		o = event_json(e);
	}
	*next = at;
	if (asprintf(&line, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_NOSLASHESCAPE)) < 0)
		line = NULL;
	json_object_put(o);
	return line;
}
