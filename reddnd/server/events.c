/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/events.h"

#include "reddnd/session/count.h"
#include "reddnd/session/foreign.h"
#include "reddnd/util/log.h"
#include "util/array.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* How many events of a shelf are of one source, or of one network */
struct share {
	struct source of;
	unsigned n;
	UT_hash_handle hh;
};

/* Events in the order of their numbers */
struct shelf {
	struct event **kept;
	unsigned n, room;
	struct share *sources, *networks;
};

enum { CLIENTS, APART, SHELVES };

struct events {
	struct shelf shelf[SHELVES];
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
	[EVENT_MOVED] = {"file-moved", "4267a2f8be68424b9e55f2e6865f87e0"},
	[EVENT_UNFINISHED] = {"unfinished-move", "6f5b1d3a0c7e4a52b86f2e9d41c7a053"},
	[EVENT_DEVICE_LOST] = {"device-lost", "dafdcf285df340749f041ebf15975c75"},
};

static bool make_shelf(struct shelf *s, unsigned room)
{
	s->room = room;
	s->kept = calloc(room, sizeof(struct event *));
	return s->kept;
}

struct events *events_new(void)
{
	struct events *ev = calloc(1, sizeof(*ev));

	if (ev && make_shelf(&ev->shelf[CLIENTS], EVENTS_KEPT) &&
		make_shelf(&ev->shelf[APART], EVENTS_KEPT_APART))
		return ev;
	events_free(ev);
	return NULL;
}

static void forget(struct share **all)
{
	struct share *s, *next;

	HASH_ITER (hh, *all, s, next) {
		HASH_DEL(*all, s);
		free(s);
	}
}

void events_free(struct events *ev)
{
	for (unsigned i = 0; ev && i < SHELVES; i++) {
		forget(&ev->shelf[i].sources);
		forget(&ev->shelf[i].networks);
		for (unsigned k = 0; k < ev->shelf[i].n; k++)
			free(ev->shelf[i].kept[k]);
		free(ev->shelf[i].kept);
	}
	free(ev);
}

const char *event_kind_name(enum event_kind kind)
{
	return kinds[kind].name;
}

static void write_journal(const struct event *e)
{
	char line[12] = "", repeats[24] = "";
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
		{"REDDND_REPEATS", repeats},
	};

	if (e->line)
		snprintf(line, sizeof(line), "%u", e->line);
	if (e->repeats)
		snprintf(repeats, sizeof(repeats), "%" PRIu64, e->repeats);
	log_event(
		e->level, e->session, kinds[e->kind].id, fields, COUNT(fields), __FILE__, __LINE__, e->text);
}

/* ---- what is kept ---- */

static struct shelf *shelf_of(struct events *ev, enum event_kind kind)
{
	bool client = kind == EVENT_BEGINS || kind == EVENT_ENDS || kind == EVENT_REFUSED;

	return &ev->shelf[client ? CLIENTS : APART];
}

/* Without memory some are not counted, and the oldest events go */
static void count_one(struct share **all, struct source of, bool more)
{
	struct share *s;

	HASH_FIND(hh, *all, &of, sizeof(of), s);
	if (!s && more) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return;
		s->of = of;
		HASH_ADD(hh, *all, of, sizeof(s->of), s);
	}
	if (!s)
		return;
	s->n += more ? 1 : -1u;
	if (s->n == 0) {
		HASH_DEL(*all, s);
		free(s);
	}
}

static void count(struct shelf *s, const struct event *e, bool more)
{
	count_one(&s->sources, e->source, more);
	count_one(&s->networks, source_network(&e->source), more);
}

static bool same(const struct source *a, const struct source *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* That with the most events; @network: of those in it */
static const struct share *largest(const struct share *all, const struct source *network)
{
	const struct share *most = NULL;

	for (const struct share *s = all; s; s = s->hh.next) {
		struct source in = source_network(&s->of);

		if ((!most || s->n > most->n) && (!network || same(network, &in)))
			most = s;
	}
	return most;
}

/* The place of the event that makes room: the oldest one of the source with the most, in the network with the
 * most */
static unsigned victim(const struct shelf *s)
{
	const struct share *network = largest(s->networks, NULL);
	const struct share *source = network ? largest(s->sources, &network->of) : NULL;
	unsigned i = 0;

	while (source && i < s->n && !same(&s->kept[i]->source, &source->of))
		i++;
	return i < s->n ? i : 0;
}

/* Room at the end; NULL: no memory */
static struct event *take_place(struct shelf *s)
{
	struct event *place = NULL;
	unsigned at;

	if (s->n < s->room)
		place = malloc(sizeof(*place));
	if (!place && s->n) {
		at = victim(s);
		place = s->kept[at];
		count(s, place, false);
		s->n--;
		memmove(&s->kept[at], &s->kept[at + 1], (s->n - at) * sizeof(struct event *));
	}
	if (place)
		s->kept[s->n++] = place;
	return place;
}

void events_add(struct events *ev, const struct event *e)
{
	struct shelf *shelf = shelf_of(ev, e->kind);
	struct event *mine = take_place(shelf), unkept;

	if (mine)
		count(shelf, e, true);
	else
		mine = &unkept;
	*mine = *e;
	mine->number = ++ev->count;
	mine->time_us = clock_read_ns(CLOCK_REALTIME) / 1000;
	write_journal(mine);
	if (ev->fn)
		ev->fn(ev->arg);
}

/* ---- readers ---- */

/* The first event from number @from on, or NULL */
static const struct event *first_from(const struct shelf *s, uint64_t from)
{
	unsigned low = 0, high = s->n;

	while (low < high) {
		unsigned mid = (low + high) / 2;

		if (s->kept[mid]->number < from)
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->n ? s->kept[low] : NULL;
}

static const struct event *find(const struct events *ev, uint64_t from)
{
	const struct event *first = NULL;

	for (unsigned i = 0; i < SHELVES; i++) {
		const struct event *e = first_from(&ev->shelf[i], from);

		if (e && (!first || e->number < first->number))
			first = e;
	}
	return first;
}

uint64_t events_first(const struct events *ev)
{
	const struct event *e = find(ev, 0);

	return e ? e->number : ev->count + 1;
}

const struct event *events_next(const struct events *ev, uint64_t *next, uint64_t *lost)
{
	const struct event *e = find(ev, *next);

	*lost = (e ? e->number : ev->count + 1) - *next;
	if (e)
		*next = e->number + 1;
	return e;
}

void events_listen(struct events *ev, void (*fn)(void *arg), void *arg)
{
	ev->fn = fn;
	ev->arg = arg;
}

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
