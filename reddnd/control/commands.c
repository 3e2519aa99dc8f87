/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/commands.h"

#include "reddnd/generation/handover.h"
#include "reddnd/server/operator.h"
#include "reddnd/util/log.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/json.h"
#include "util/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
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

/* All events that are kept, the oldest first. Sets *@next to the number of the event after them. */
static struct json_object *audit_list(const struct events *ev, uint64_t *next)
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

enum { ERROR_MAX = 4096 };

static const uint64_t rate_max = 1000000000, bytes_max = UINT64_C(1) << 40;

struct call {
	const struct commands *c;
	struct json_object *args;
	const struct commands_peer *peer;
	struct commands_follow *follow;
	char error[ERROR_MAX];
};

struct command {
	const char *name;
	bool changes;
	const char *const *members; /* that the request may have besides "command", NULL-terminated */
	struct json_object *(*state)(const struct stats *stats); /* makes the answer of a snapshot; or NULL */
	struct json_object *(*run)(struct call *call);
};

DEFINE_CLEANUP(struct json_object *, json_object_put)
DEFINE_CLEANUP(struct stats *, stats_free)

static struct json_object *refuse(struct call *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static struct json_object *refuse(struct call *call, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(call->error, sizeof(call->error), format, ap);
	va_end(ap);
	/* has words of the client */
	text_clean(call->error);
	return NULL;
}

/* ---- commands that read ---- */

static struct json_object *answer_state(
	struct call *call, struct json_object *(*make)(const struct stats *stats))
{
	CLEANUP(stats_freep) struct stats *stats = operator_snapshot(call->c->server);

	return stats ? make(stats) : refuse(call, "out of memory");
}

static struct json_object *run_status(struct call *call)
{
	struct stats stats;

	operator_overview(call->c->server, &stats);
	return state_status(&stats);
}

static struct json_object *run_metrics(struct call *call)
{
	CLEANUP(stats_freep) struct stats *stats = operator_snapshot(call->c->server);
	CLEANUP(cleanup_free) char *text = stats ? metrics_text(stats) : NULL;

	return text ? json_text(text) : refuse(call, "out of memory");
}

static struct json_object *run_audit(struct call *call)
{
	const struct events *ev = server_events(call->c->server);
	struct json_object *follow;
	uint64_t next;

	if (json_object_object_get_ex(call->args, "follow", &follow)) {
		if (!json_object_is_type(follow, json_type_boolean))
			return refuse(call, "\"follow\" must be true or false");
		call->follow->events = json_object_get_boolean(follow);
	}
	return audit_list(ev, call->follow->events ? &call->follow->next : &next);
}

/* ---- commands that change ---- */

static struct json_object *run_kick(struct call *call)
{
	struct json_object *id, *o;

	if (!json_object_object_get_ex(call->args, "session", &id) || !json_object_is_type(id, json_type_int))
		return refuse(call, "\"session\" is missing or no number; \"sessions\" lists the sessions");
	if (operator_kick(call->c->server, json_object_get_uint64(id)) < 0)
		return refuse(call, "there is no session %" PRIu64 "; \"sessions\" lists the sessions",
			json_object_get_uint64(id));
	o = json_object_new_object();
	json_add_count(o, "session", json_object_get_uint64(id));
	return o;
}

/* False: refused */
static bool take_rate(struct call *call, const char *name, uint64_t max, bool *given, uint64_t *v)
{
	struct json_object *o;

	*v = 0;
	*given = json_object_object_get_ex(call->args, name, &o);
	if (!*given)
		return true;
	*v = json_object_get_uint64(o);
	if (json_object_is_type(o, json_type_int) && json_object_get_int64(o) >= 0 && *v <= max)
		return true;
	refuse(call, "\"%s\" is no number from 0 to %" PRIu64, name, max);
	return false;
}

/* False: refused */
static bool take_limit(struct call *call, struct operator_limit *l)
{
	bool has_burst;

	if (!take_rate(call, "rate", rate_max, &l->has_rate, &l->rate) ||
		!take_rate(call, "burst", rate_max, &has_burst, &l->burst) ||
		!take_rate(call, "bytes_rate", bytes_max, &l->has_bytes, &l->bytes_rate))
		return false;
	if (!l->has_rate && (has_burst || !l->has_bytes))
		refuse(call, "\"rate\" is missing: requests per second, 0 for no limit");
	else if (l->burst && l->burst < catalog_burst_min(l->rate))
		refuse(call, "\"burst\" is %" PRIu64 "; for that rate it must be at least %" PRIu64, l->burst,
			catalog_burst_min(l->rate));
	else
		return true;
	return false;
}

static struct json_object *run_limit(struct call *call)
{
	struct json_object *id = NULL, *name = NULL, *o;
	struct operator_limit l;
	int r;

	json_object_object_get_ex(call->args, "session", &id);
	json_object_object_get_ex(call->args, "tenant", &name);
	if (!id == !name || (id && !json_object_is_type(id, json_type_int)) ||
		(name && !json_object_is_type(name, json_type_string)))
		return refuse(call, "give either \"session\", a number, or \"tenant\", a name");
	if (!take_limit(call, &l))
		return NULL;
	r = id ? operator_limit_session(call->c->server, json_object_get_uint64(id), &l)
	       : operator_limit_tenant(call->c->server, json_object_get_string(name), &l);
	if (r < 0)
		return refuse(call, "there is no such %s; \"%s\" lists them", id ? "session" : "tenant",
			id ? "sessions" : "tenants");
	o = json_object_new_object();
	json_object_object_add(o, id ? "session" : "tenant", json_object_get(id ? id : name));
	if (l.has_rate)
		json_add_count(o, "rate", l.rate);
	if (l.burst)
		json_add_count(o, "burst", l.burst);
	if (l.has_bytes)
		json_add_count(o, "bytes_rate", l.bytes_rate);
	return o;
}

static struct json_object *run_reload(struct call *call)
{
	call->follow->reload = call->c->reload(call->c->arg);
	return NULL;
}

/* ---- commands of owners ---- */

/* The name of the region, or NULL: refused */
static const char *take_region(struct call *call)
{
	struct json_object *name;

	if (json_object_object_get_ex(call->args, "region", &name) &&
		json_object_is_type(name, json_type_string))
		return json_object_get_string(name);
	refuse(call, "\"region\" is missing or no text; \"regions\" lists them");
	return NULL;
}

static struct json_object *refuse_owner(struct call *call, const char *region, int error, const char *why)
{
	switch (error) {
	case -ENOENT:
		return refuse(call,
			"there is no region \"%s\" whose file is handed over, with handover = true; "
			"\"regions\" "
			"lists all",
			region);
	case -EPERM:
		return refuse(call, "only the \"owner\" of region \"%s\", and root, may do that", region);
	case -EBUSY:
		return refuse(call,
			"the file of region \"%s\" is handed over too often; wait some seconds, and try "
			"again",
			region);
	case -EINVAL:
		return refuse(call, "region \"%s\" cannot be served: %s", region, why);
	case -ENOSPC:
		return refuse(call, "files of %d regions are kept already", HANDOVERS_MAX);
	case -EACCES:
		return refuse(call,
			"the daemon may not open the file of region \"%s\"; memfds and files that all may "
			"read will do",
			region);
	default:
		return refuse(call, "region \"%s\": %s", region, strerror(-error));
	}
}

static struct json_object *run_hand_over(struct call *call)
{
	const char *region = take_region(call);
	char why[REGION_WHY];
	int r;

	if (!region)
		return NULL;
	if (call->peer->fd < 0)
		return refuse(
			call, "no descriptor came with the request; send that of the file (SCM_RIGHTS)");
	r = operator_hand_over(
		call->c->server, region, call->peer->fd, call->peer->uid, &call->follow->reload, why);
	return r < 0 ? refuse_owner(call, region, r, why) : NULL;
}

static struct json_object *run_give_back(struct call *call)
{
	const char *region = take_region(call);
	struct json_object *o;
	int fd;

	if (!region)
		return NULL;
	fd = operator_give_back(call->c->server, region, call->peer->uid);
	if (fd == -ENOENT)
		return refuse(call, "nobody has handed over the file of a region \"%s\"", region);
	if (fd < 0)
		return refuse_owner(call, region, fd, "");
	call->follow->gives = true;
	call->follow->fd = fd;
	o = json_object_new_object();
	json_add_text(o, "region", region);
	return o;
}

/* ---- the table ---- */

static const char *const none[] = {NULL};
static const char *const session[] = {"session", NULL};
static const char *const limit[] = {"session", "tenant", "rate", "burst", "bytes_rate", NULL};
static const char *const follow_only[] = {"follow", NULL};
static const char *const region_only[] = {"region", NULL};

static const struct command commands[] = {
	{"status", false, none, NULL, run_status},
	{"sessions", false, none, state_sessions, NULL},
	{"offloads", false, none, state_offloads, NULL},
	{"regions", false, none, state_regions, NULL},
	{"tenants", false, none, state_tenants, NULL},
	{"metrics", false, none, NULL, run_metrics},
	{"audit", false, follow_only, NULL, run_audit},
	{"kick", true, session, NULL, run_kick},
	{"limit", true, limit, NULL, run_limit},
	{"reload", true, none, NULL, run_reload},
	{"hand_over", false, region_only, NULL, run_hand_over},
	{"give_back", false, region_only, NULL, run_give_back},
};

enum { NCOMMANDS = COUNT(commands) };

static const struct command *find(struct call *call)
{
	const char *names[NCOMMANDS], *name;
	char hint[TEXT_HINT];
	struct json_object *word;

	if (!json_object_is_type(call->args, json_type_object) ||
		!json_object_object_get_ex(call->args, "command", &word) ||
		!json_object_is_type(word, json_type_string)) {
		refuse(call, "a request is a line { \"command\": \"NAME\" } of JSON");
		return NULL;
	}
	name = json_object_get_string(word);
	for (unsigned i = 0; i < NCOMMANDS; i++) {
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
		names[i] = commands[i].name;
	}
	refuse(call, "there is no command \"%s\"%s", name, text_hint(hint, name, names, NCOMMANDS, ""));
	return NULL;
}

static bool known(const struct command *c, const char *member)
{
	if (strcmp(member, "command") == 0)
		return true;
	for (const char *const *m = c->members; *m; m++)
		if (strcmp(member, *m) == 0)
			return true;
	return false;
}

static struct json_object *run(struct call *call)
{
	const struct command *c = find(call);

	if (!c)
		return NULL;
	if (c->changes && !call->peer->may_change)
		return refuse(call, "\"%s\" is for root and the user of the daemon", c->name);
	json_object_object_foreach(call->args, member, value)
	{
		(void)value;
		if (!known(c, member))
			return refuse(call, "\"%s\" takes no member \"%s\"", c->name, member);
	}
	return c->state ? answer_state(call, c->state) : c->run(call);
}

static void finish(struct json_object *answer, struct json_object *result, const struct call *call)
{
	json_object_object_add(answer, "ok", json_object_new_boolean(result != NULL));
	if (result)
		json_object_object_add(answer, "result", result);
	else
		json_add_text(answer, "error", call->error);
}

struct json_object *commands_answer(const struct commands *c, const char *text, size_t len,
	const struct commands_peer *peer, struct commands_follow *follow)
{
	CLEANUP(json_object_putp) struct json_object *args = NULL;
	struct json_tokener *tokener = json_tokener_new_ex(4);
	struct json_object *answer = json_object_new_object(), *result;
	struct call call = {.c = c, .peer = peer, .follow = follow};

	if (!tokener || !answer)
		return NULL;
	json_tokener_set_flags(tokener, JSON_TOKENER_VALIDATE_UTF8);
	args = json_tokener_parse_ex(tokener, text, (int)len);
	if (json_tokener_get_error(tokener) != json_tokener_success ||
		json_tokener_get_parse_end(tokener) != len)
		json_object_put(steal_ptr(&args));
	json_tokener_free(tokener);
	call.args = args;
	result = run(&call);
	finish(answer, result, &call);
	return answer;
}

struct json_object *commands_reloaded(const struct commands *c, int error, const char *errors)
{
	struct json_object *answer = json_object_new_object();
	struct call call = {.c = c};

	if (!answer)
		return NULL;
	finish(answer,
		error == 0 ? answer_state(&call, state_offloads)
			   : refuse(&call, "%s", *errors ? errors : strerror(-error)),
		&call);
	return answer;
}
