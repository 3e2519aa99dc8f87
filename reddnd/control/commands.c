/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/commands.h"

#include "reddnd/control/audit.h"
#include "reddnd/control/metrics.h"
#include "reddnd/generation/generation.h"
#include "reddnd/server/enforcement.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/json.h"
#include "util/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ERROR_MAX = 4096, LOG_SECOND = 1000000 };

static const uint64_t rate_max = 1000000000, bytes_max = UINT64_C(1) << 40;

struct call {
	const struct commands *c;
	struct json_object *args;
	struct commands_follow *follow;
	char error[ERROR_MAX];
};

struct command {
	const char *name;
	bool changes;
	const char *const *members; /* that the request may have besides "command", NULL-terminated */
	struct json_object *(*run)(struct call *call);
};

DEFINE_CLEANUP(struct json_object *, json_object_put)

static struct json_object *refuse(struct call *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static struct json_object *refuse(struct call *call, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(call->error, sizeof(call->error), format, ap);
	va_end(ap);
	return NULL;
}

/* ---- commands that look
 * -------------------------------------------------------------------------------------- */

static struct json_object *run_status(struct call *call)
{
	struct json_object *o = json_object_new_object();
	struct server_status s;
	struct timespec cpu;

	server_status(call->c->server, &s);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	json_add_text(o, "version", REDDND_VERSION);
	json_add_text(o, "device", s.device);
	json_add_count(o, "uptime_us", s.uptime_us);
	json_add_count(o, "cpu_us", (uint64_t)cpu.tv_sec * LOG_SECOND + (uint64_t)cpu.tv_nsec / 1000);
	json_add_count(o, "sessions", s.sessions);
	json_add_count(o, "sessions_total", s.sessions_total);
	json_add_count(o, "refused", s.refused);
	json_add_count(o, "requests", s.requests);
	json_add_count(o, "failed_sessions", s.failed);
	json_add_count(o, "reloads", s.reloads);
	json_add_count(o, "arena_used", s.arena_used);
	json_add_count(o, "arena_size", s.arena_size);
	return o;
}

static struct json_object *count_verdicts(const uint64_t *counts)
{
	struct json_object *o = json_object_new_object();

	for (unsigned k = 0; k < VERDICT_KINDS; k++)
		json_add_count(o, verdict_kind_name(k), counts[k]);
	return o;
}

static uint64_t sum_verdicts(const uint64_t *counts)
{
	uint64_t sum = 0;

	for (unsigned k = 0; k < VERDICT_KINDS; k++)
		sum += counts[k];
	return sum;
}

static void add_session(void *arg, const struct server_session *s)
{
	struct json_object *o = json_object_new_object();

	json_add_count(o, "session", s->id);
	json_add_text(o, "peer", s->peer);
	json_add_text(o, "tenant", s->tenant);
	json_add_text(o, "offload", s->offload);
	json_object_object_add(o, "current", json_object_new_boolean(s->current));
	json_add_count(o, "depth", s->depth);
	json_add_count(o, "instances", s->instances);
	json_add_count(o, "queue_bytes", s->queue_bytes);
	json_add_count(o, "age_us", s->age_us);
	json_add_count(o, "requests", s->requests);
	json_add_count(o, "rate", s->rate);
	json_add_count(o, "burst", s->rate ? s->burst : 0);
	json_add_count(o, "bytes_rate", s->bytes_rate);
	if (!s->recycled) {
		json_add_count(o, "hits", s->hits);
		json_add_count(o, "misses", s->misses);
	}
	json_add_count(o, "wqes", s->wqes);
	json_add_count(o, "iterations", s->iterations);
	json_add_count(o, "bytes_in", s->bytes_in);
	if (!s->recycled)
		json_add_count(o, "bytes_out", s->bytes_out);
	json_add_count(o, "verdicts", sum_verdicts(s->verdicts));
	json_object_object_add(o, "verdicts_by_kind", count_verdicts(s->verdicts));
	json_object_array_add(arg, o);
}

static struct json_object *run_clients(struct call *call)
{
	struct json_object *list = json_object_new_array();

	server_each_session(call->c->server, add_session, list);
	return list;
}

static struct json_object *describe_args(const struct program *p)
{
	static const char *const kinds[] = {
		[PROGRAM_NUMBER] = "number", [PROGRAM_STRING] = "bytes", [PROGRAM_WINDOW] = "offset"};
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < p->nargs; i++) {
		struct json_object *o = json_object_new_object();

		json_add_text(o, "name", p->args[i].name);
		json_add_text(o, "kind", kinds[p->args[i].kind]);
		json_add_count(o, "bytes", p->args[i].bytes);
		json_object_array_add(list, o);
	}
	return list;
}

/* Of recycled chains nobody sees what they answered: no number is better than 0 */
static void add_stats(struct json_object *o, const struct offload_stats *t, bool recycled)
{
	json_add_count(o, "sessions", t->sessions);
	json_add_count(o, "failed_sessions", t->failed);
	json_add_count(o, "requests", t->requests);
	if (!recycled) {
		json_add_count(o, "hits", t->hits);
		json_add_count(o, "misses", t->misses);
	}
	json_add_count(o, "wqes", t->wqes);
	json_add_count(o, "iterations", t->iterations);
	json_add_count(o, "bytes_in", t->bytes_in);
	if (!recycled)
		json_add_count(o, "bytes_out", t->bytes_out);
	json_object_object_add(o, "verdicts", count_verdicts(t->verdicts));
}

static struct json_object *run_offloads(struct call *call)
{
	const struct generation *sv = server_generation(call->c->server);
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < sv->catalog->noffloads; i++) {
		const struct offload *f = &sv->offloads[i];
		struct json_object *o = json_object_new_object();

		json_add_text(o, "offload", f->conf->name);
		json_add_text(o, "program", f->program->name);
		json_add_text(o, "file", f->conf->path);
		json_add_text(o, "mode", f->conf->recycled ? "recycled" : "unrolled");
		json_object_object_add(o, "args", describe_args(f->program));
		json_add_count(o, "depth_max", f->conf->depth_max);
		json_add_count(o, "request_bytes", f->img->arg_len);
		json_add_count(o, "reply_bytes", f->slot_need);
		json_add_count(o, "copies", f->img->n_copy);
		json_add_count(o, "atomics", f->img->n_atomic);
		json_add_count(o, "waits_enables", f->img->n_sync);
		json_add_count(o, "wqes_per_request", f->outcome.wqes);
		add_stats(o, f->stats, f->conf->recycled);
		json_add_text(o, "where", f->conf->where);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *run_regions(struct call *call)
{
	const struct generation *sv = server_generation(call->c->server);
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < sv->catalog->nregions; i++) {
		const struct catalog_region *r = &sv->catalog->regions[i];
		const struct table_geometry *g = &sv->regions[i].table.geometry;
		struct json_object *o = json_object_new_object();

		json_add_text(o, "region", r->name);
		json_add_text(o, "kind", r->raw ? "raw" : "table");
		json_add_text(o, "path", r->path);
		json_add_count(o, "bytes", region_size(&sv->regions[i]));
		if (r->raw) {
			json_object_object_add(o, "writable", json_object_new_boolean(r->writable));
		} else {
			json_add_count(o, "buckets", g->buckets);
			json_add_count(o, "heap_bytes", g->heap_size);
			json_add_count(o, "max_key", g->max_key);
			json_add_count(o, "max_value", g->max_value);
		}
		json_add_text(o, "where", r->where);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *run_tenants(struct call *call)
{
	struct json_object *list = json_object_new_array();

	for (const struct tenant *t = server_tenants(call->c->server); t; t = t->hh.next) {
		struct json_object *o = json_object_new_object();

		json_add_text(o, "tenant", t->name);
		json_add_count(o, "sessions", t->sessions);
		json_add_count(o, "sessions_max", t->limits.sessions);
		json_add_count(o, "depth", t->depth);
		json_add_count(o, "depth_max", t->limits.depth);
		json_add_count(o, "queue_bytes", t->queue_bytes);
		json_add_count(o, "queue_bytes_max", t->limits.queue_bytes);
		json_add_count(o, "slot_bytes", t->slot_bytes);
		json_add_count(o, "slot_bytes_max", t->limits.slot_bytes);
		json_add_count(o, "rate", t->limits.rate);
		json_add_count(o, "burst", t->limits.burst);
		json_add_count(o, "session_rate", t->limits.session_rate);
		json_add_count(o, "session_burst", t->limits.session_burst);
		json_add_count(o, "bytes_rate", t->limits.bytes_rate);
		json_add_count(o, "session_bytes_rate", t->limits.session_bytes_rate);
		json_add_count(o, "connect_rate", t->limits.connect_rate);
		json_add_count(o, "connect_burst", t->limits.connect_burst);
		json_add_count(o, "idle_timeout_us", t->limits.idle_timeout);
		json_add_count(o, "accepted", t->accepted);
		json_add_count(o, "refused", t->refused);
		json_add_count(o, "failed_sessions", t->failed);
		json_add_count(o, "requests", t->requests);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *run_metrics(struct call *call)
{
	CLEANUP(cleanup_free) char *text = metrics_text(call->c->server);

	return text ? json_object_new_string(text) : refuse(call, "out of memory");
}

static struct json_object *run_audit(struct call *call)
{
	const struct events *ev = server_warden(call->c->server)->events;
	struct json_object *follow;
	uint64_t next;

	if (json_object_object_get_ex(call->args, "follow", &follow)) {
		if (!json_object_is_type(follow, json_type_boolean))
			return refuse(call, "\"follow\" must be true or false");
		call->follow->events = json_object_get_boolean(follow);
	}
	return audit_list(ev, call->follow->events ? &call->follow->next : &next);
}

/* ---- commands that change
 * ------------------------------------------------------------------------------------ */

static struct json_object *run_kick(struct call *call)
{
	struct json_object *id, *o;

	if (!json_object_object_get_ex(call->args, "session", &id) || !json_object_is_type(id, json_type_int))
		return refuse(call, "\"session\" is missing or no number; \"clients\" lists the sessions");
	if (server_kick(call->c->server, json_object_get_uint64(id)) < 0)
		return refuse(call, "there is no session %" PRIu64 "; \"clients\" lists the sessions",
			json_object_get_uint64(id));
	o = json_object_new_object();
	json_add_count(o, "session", json_object_get_uint64(id));
	return o;
}

/* False: told */
static bool take_rate(struct call *call, const char *name, uint64_t max, bool *said, uint64_t *v)
{
	struct json_object *o;

	*v = 0;
	*said = json_object_object_get_ex(call->args, name, &o);
	if (!*said)
		return true;
	*v = json_object_get_uint64(o);
	if (json_object_is_type(o, json_type_int) && json_object_get_int64(o) >= 0 && *v <= max)
		return true;
	refuse(call, "\"%s\" is no number from 0 to %" PRIu64, name, max);
	return false;
}

/* False: told */
static bool take_limit(struct call *call, struct server_limit *l)
{
	bool says_burst;

	if (!take_rate(call, "rate", rate_max, &l->says_rate, &l->rate) ||
		!take_rate(call, "burst", rate_max, &says_burst, &l->burst) ||
		!take_rate(call, "bytes_rate", bytes_max, &l->says_bytes, &l->bytes_rate))
		return false;
	if (!l->says_rate && (says_burst || !l->says_bytes))
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
	struct server_limit l;
	int r;

	json_object_object_get_ex(call->args, "session", &id);
	json_object_object_get_ex(call->args, "tenant", &name);
	if (!id == !name || (id && !json_object_is_type(id, json_type_int)) ||
		(name && !json_object_is_type(name, json_type_string)))
		return refuse(call, "either \"session\", a number, or \"tenant\", a name, is wanted");
	if (!take_limit(call, &l))
		return NULL;
	r = id ? server_limit_session(call->c->server, json_object_get_uint64(id), &l)
	       : server_limit_tenant(call->c->server, json_object_get_string(name), &l);
	if (r < 0)
		return refuse(call, "there is no such %s; \"%s\" lists them", id ? "session" : "tenant",
			id ? "clients" : "tenants");
	o = json_object_new_object();
	json_object_object_add(o, id ? "session" : "tenant", json_object_get(id ? id : name));
	if (l.says_rate)
		json_add_count(o, "rate", l.rate);
	if (l.burst)
		json_add_count(o, "burst", l.burst);
	if (l.says_bytes)
		json_add_count(o, "bytes_rate", l.bytes_rate);
	return o;
}

static struct json_object *run_reload(struct call *call)
{
	CLEANUP(cleanup_free) char *text = NULL;
	size_t size = 0;
	FILE *errors = open_memstream(&text, &size);
	int r;

	if (!errors)
		return refuse(call, "out of memory");
	log_tee(errors);
	r = call->c->reload(call->c->arg);
	log_tee(NULL);
	fclose(errors);
	if (r == 0)
		return run_offloads(call);
	if (size && text[size - 1] == '\n')
		text[size - 1] = '\0';
	return refuse(call, "%s", size ? text : strerror(-r));
}

/* ---- the table
 * ----------------------------------------------------------------------------------------------- */

static const char *const none[] = {NULL};
static const char *const session[] = {"session", NULL};
static const char *const limit[] = {"session", "tenant", "rate", "burst", "bytes_rate", NULL};
static const char *const follow_only[] = {"follow", NULL};

static const struct command commands[] = {
	{"status", false, none, run_status},
	{"clients", false, none, run_clients},
	{"offloads", false, none, run_offloads},
	{"regions", false, none, run_regions},
	{"tenants", false, none, run_tenants},
	{"metrics", false, none, run_metrics},
	{"audit", false, follow_only, run_audit},
	{"kick", true, session, run_kick},
	{"limit", true, limit, run_limit},
	{"reload", true, none, run_reload},
};

enum { NCOMMANDS = sizeof(commands) / sizeof(*commands) };

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

static struct json_object *run(struct call *call, bool may_change)
{
	const struct command *c = find(call);

	if (!c)
		return NULL;
	if (c->changes && !may_change)
		return refuse(call, "\"%s\" is for root and the user of the daemon", c->name);
	json_object_object_foreach(call->args, member, value)
	{
		(void)value;
		if (!known(c, member))
			return refuse(call, "\"%s\" takes no member \"%s\"", c->name, member);
	}
	return c->run(call);
}

struct json_object *commands_answer(const struct commands *c, const char *text, size_t len, bool may_change,
	struct commands_follow *follow)
{
	CLEANUP(json_object_putp) struct json_object *args = NULL;
	struct json_tokener *tokener = json_tokener_new_ex(4);
	struct json_object *answer = json_object_new_object(), *result;
	struct call call = {.c = c, .follow = follow};

	if (!tokener || !answer)
		return NULL;
	args = json_tokener_parse_ex(tokener, text, (int)len);
	if (json_tokener_get_error(tokener) != json_tokener_success ||
		json_tokener_get_parse_end(tokener) != len)
		json_object_putp(&args), args = NULL;
	json_tokener_free(tokener);
	call.args = args;
	result = run(&call, may_change);
	json_object_object_add(answer, "ok", json_object_new_boolean(result != NULL));
	if (result)
		json_object_object_add(answer, "result", result);
	else
		json_add_text(answer, "error", call.error);
	return answer;
}
