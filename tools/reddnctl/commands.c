/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddnctl/commands.h"

#include "tools/common/table-print.h"
#include "tools/common/tool.h"
#include "util/array.h"
#include "util/number.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

/* As in "2026-11-21 05:32:21.123456 verdict      session 7: client ..." */
static void print_text(struct json_object *e)
{
	const char *what = "", *text = "";
	struct json_object *v;
	char when[32] = "";
	struct tm tm;
	uint64_t us;
	time_t s;

	if (json_object_object_get_ex(e, "lost", &v)) {
		printf("%" PRIu64 " events are missing: they came faster than this reader\n",
			json_object_get_uint64(v));
		return;
	}
	us = control_member(e, "time_us");
	s = (time_t)(us / 1000000);
	if (localtime_r(&s, &tm))
		strftime(when, sizeof(when), "%F %T", &tm);
	if (json_object_object_get_ex(e, "event", &v))
		what = json_object_get_string(v);
	if (json_object_object_get_ex(e, "text", &v))
		text = json_object_get_string(v);
	printf("%s.%06u %-13s ", when, (unsigned)(us % 1000000), what);
	if (control_member(e, "session"))
		printf("session %" PRIu64 ": ", control_member(e, "session"));
	puts(text);
}

static void print_event(const struct ctl_options *o, struct json_object *e)
{
	if (o->json)
		puts(json_object_to_json_string_ext(e, JSON_C_TO_STRING_NOSLASHESCAPE));
	else
		print_text(e);
}

int ctl_audit(struct control *l, const struct ctl_options *o, const char *arg)
{
	struct json_object *r = control_request("audit");
	CLEANUP(json_object_putp) struct json_object *kept = NULL;
	struct json_object *e;

	(void)arg;
	if (o->follow)
		json_object_object_add(r, "follow", json_object_new_boolean(true));
	kept = control_call(l, r);
	if (!kept)
		return EXIT_FAILURE;
	for (size_t i = 0; i < json_object_array_length(kept); i++)
		print_event(o, json_object_array_get_idx(kept, i));
	if (fflush(stdout) != 0)
		return EX_IOERR;
	if (!o->follow)
		return 0;
	while ((e = control_next(l))) {
		print_event(o, e);
		json_object_put(e);
		if (fflush(stdout) != 0)
			return EX_IOERR;
	}
	return TOOL_FAIL(EXIT_FAILURE, "the daemon closed the connection");
}

static const struct table_column status_columns[] = {
	{"version", "version", TABLE_TEXT},
	{"device", "device", TABLE_TEXT},
	{"uptime_us", "up", TABLE_DURATION},
	{"cpu_us", "CPU time", TABLE_DURATION},
	{"sessions", "sessions", TABLE_COUNT},
	{"sessions_total", "sessions ever", TABLE_COUNT},
	{"refused", "refused", TABLE_COUNT},
	{"failed_sessions", "failed", TABLE_COUNT},
	{"requests", "requests", TABLE_COUNT},
	{"reloads", "reloads", TABLE_COUNT},
	{"configuration_refused", "refused configuration", TABLE_TEXT},
	{"disabled", "disabled offloads", TABLE_COUNT},
	{"moved_files", "moved files", TABLE_COUNT},
	{"unfinished_moves", "unfinished moves", TABLE_COUNT},
	{"arena_used", "arena used", TABLE_BYTES},
	{"arena_size", "arena", TABLE_BYTES},
};
static const struct table_column device_columns[] = {
	{"device", "DEVICE", TABLE_TEXT},
	{"state", "STATE", TABLE_TEXT},
	{"sessions", "SESSIONS", TABLE_COUNT},
	{"arena_used", "ARENA USED", TABLE_BYTES},
	{"arena_size", "ARENA", TABLE_BYTES},
	{"left_out", "NOTE", TABLE_TEXT},
};
static const struct table_column session_columns[] = {
	{"device", "DEVICE", TABLE_TEXT}, /* the first one: see ctl_sessions() */
	{"session", "SESSION", TABLE_COUNT},
	{"peer", "CLIENT", TABLE_TEXT},
	{"tenant", "TENANT", TABLE_TEXT},
	{"offload", "OFFLOAD", TABLE_TEXT},
	{"connections", "CONNECTIONS", TABLE_COUNT},
	{"depth", "DEPTH", TABLE_COUNT},
	{"queue_bytes", "QUEUES", TABLE_BYTES},
	{"age_us", "AGE", TABLE_DURATION},
	{"requests", "REQUESTS", TABLE_COUNT},
	{"hits", "HITS", TABLE_COUNT},
	{"misses", "MISSES", TABLE_COUNT},
	{"unseen", "UNSEEN", TABLE_COUNT},
	{"bytes_out", "REPLIED", TABLE_BYTES},
	{"verdicts", "VERDICTS", TABLE_COUNT},
	{"current", "CURRENT", TABLE_FLAG},
	{"note", "NOTE", TABLE_TEXT},
};
static const struct table_column offload_columns[] = {
	{"offload", "OFFLOAD", TABLE_TEXT},
	{"program", "PROGRAM", TABLE_TEXT},
	{"shape", "SHAPE", TABLE_TEXT},
	{"mode", "MODE", TABLE_TEXT},
	{"engine", "ENGINE", TABLE_TEXT},
	{"state", "STATE", TABLE_TEXT},
	{"depth_max", "DEPTH", TABLE_COUNT},
	{"request_bytes", "REQUEST", TABLE_BYTES},
	{"reply_bytes", "REPLY", TABLE_BYTES},
	{"copies", "COPIES", TABLE_COUNT},
	{"atomics", "ATOMICS", TABLE_COUNT},
	{"waits_enables", "WAITS", TABLE_COUNT},
	{"sessions", "SESSIONS", TABLE_COUNT},
	{"requests", "REQUESTS", TABLE_COUNT},
	{"hits", "HITS", TABLE_COUNT},
	{"misses", "MISSES", TABLE_COUNT},
	{"unseen", "UNSEEN", TABLE_COUNT},
	{"failed_sessions", "FAILED", TABLE_COUNT},
	{"why", "WHY", TABLE_TEXT},
};
static const struct table_column region_columns[] = {
	{"region", "REGION", TABLE_TEXT},
	{"kind", "KIND", TABLE_TEXT},
	{"bytes", "SIZE", TABLE_BYTES},
	{"max_key", "KEYS TO", TABLE_BYTES},
	{"max_value", "VALUES TO", TABLE_BYTES},
	{"entries", "ENTRIES", TABLE_COUNT},
	{"state", "STATE", TABLE_TEXT},
	{"source", "SOURCE", TABLE_TEXT},
	{"age_us", "AGE", TABLE_DURATION},
	{"path", "PATH", TABLE_TEXT},
	{"why", "WHY", TABLE_TEXT},
};
static const struct table_column tenant_columns[] = {
	{"tenant", "TENANT", TABLE_TEXT},
	{"sessions", "SESSIONS", TABLE_COUNT},
	{"sessions_max", "OF", TABLE_LIMIT},
	{"depth", "DEPTH", TABLE_COUNT},
	{"depth_max", "OF", TABLE_LIMIT},
	{"queue_bytes", "QUEUES", TABLE_BYTES},
	{"queue_bytes_max", "OF", TABLE_LIMIT_BYTES},
	{"slot_bytes", "SLOTS", TABLE_BYTES},
	{"slot_bytes_max", "OF", TABLE_LIMIT_BYTES},
	{"extent_bytes", "EXTENTS", TABLE_BYTES},
	{"extent_bytes_max", "OF", TABLE_LIMIT_BYTES},
	{"rate", "RATE", TABLE_LIMIT},
	{"session_rate", "OF SESSION", TABLE_LIMIT},
	{"connect_rate", "CONNECTS", TABLE_LIMIT},
	{"requests", "REQUESTS", TABLE_COUNT},
	{"refused", "REFUSED", TABLE_COUNT},
};

static int print_json(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	return 0;
}

/* Takes @answer, a list or NULL */
static int print_list(const struct ctl_options *o, struct json_object *answer,
	const struct table_column *columns, unsigned ncolumns)
{
	CLEANUP(json_object_putp) struct json_object *result = answer;

	if (!result)
		return EXIT_FAILURE;
	if (o->json)
		return print_json(result);
	table_print_list(stdout, result, columns, ncolumns);
	return 0;
}

static int list(struct control *l, const struct ctl_options *o, const char *name,
	const struct table_column *columns, unsigned ncolumns)
{
	return print_list(o, control_call(l, control_request(name)), columns, ncolumns);
}

/* What the status has of several together */
static void print_devices(struct json_object *devices)
{
	if (json_object_array_length(devices) < 2)
		return;
	putchar('\n');
	table_print_list(stdout, devices, device_columns, COUNT(device_columns));
}

int ctl_status(struct control *l, const struct ctl_options *o, const char *arg)
{
	CLEANUP(json_object_putp) struct json_object *result = control_call(l, control_request("status"));

	(void)arg;
	if (!result)
		return EXIT_FAILURE;
	if (o->json)
		return print_json(result);
	table_print_object(stdout, result, status_columns, COUNT(status_columns));
	print_devices(json_object_object_get(result, "devices"));
	return 0;
}

static bool differ_in_device(struct json_object *sessions)
{
	const char *first = NULL;

	for (size_t i = 0; i < json_object_array_length(sessions); i++) {
		const char *device = json_object_get_string(
			json_object_object_get(json_object_array_get_idx(sessions, i), "device"));

		if (first && device && strcmp(first, device) != 0)
			return true;
		first = device;
	}
	return false;
}

int ctl_sessions(struct control *l, const struct ctl_options *o, const char *arg)
{
	struct json_object *sessions = control_call(l, control_request("sessions"));
	unsigned from = sessions && differ_in_device(sessions) ? 0 : 1;

	(void)arg;
	return print_list(o, sessions, session_columns + from, COUNT(session_columns) - from);
}

int ctl_offloads(struct control *l, const struct ctl_options *o, const char *arg)
{
	(void)arg;
	return list(l, o, "offloads", offload_columns, COUNT(offload_columns));
}

int ctl_regions(struct control *l, const struct ctl_options *o, const char *arg)
{
	(void)arg;
	return list(l, o, "regions", region_columns, COUNT(region_columns));
}

int ctl_tenants(struct control *l, const struct ctl_options *o, const char *arg)
{
	(void)arg;
	return list(l, o, "tenants", tenant_columns, COUNT(tenant_columns));
}

int ctl_reload(struct control *l, const struct ctl_options *o, const char *arg)
{
	(void)arg;
	return list(l, o, "reload", offload_columns, COUNT(offload_columns));
}

int ctl_hand_over(struct control *l, const struct ctl_options *o, const char *arg)
{
	CLEANUP(cleanup_close) int fd = -1;
	struct json_object *r;

	if (!o->file)
		return TOOL_FAIL(EX_USAGE, "--file is missing: the file of region %s", arg);
	fd = open(o->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return TOOL_FAIL(EX_NOINPUT, "%s: %s", o->file, strerror(errno));
	r = control_request("hand_over");
	json_object_object_add(r, "region", json_object_new_string(arg));
	return print_list(o, control_call_with(l, r, fd), offload_columns, COUNT(offload_columns));
}

int ctl_metrics(struct control *l, const struct ctl_options *o, const char *arg)
{
	CLEANUP(json_object_putp) struct json_object *result = control_call(l, control_request("metrics"));

	(void)arg;
	if (!result)
		return EXIT_FAILURE;
	if (o->json)
		return print_json(result);
	fputs(json_object_get_string(result), stdout);
	return 0;
}

int ctl_kick(struct control *l, const struct ctl_options *o, const char *arg)
{
	CLEANUP(json_object_putp) struct json_object *result = NULL, *r = control_request("kick");
	uint64_t id;

	if (number_parse(arg, 0, UINT64_MAX, &id))
		return TOOL_FAIL(
			EX_USAGE, "\"%s\" is no session number; \"reddnctl sessions\" lists them", arg);
	json_object_object_add(r, "session", json_object_new_uint64(id));
	result = control_call(l, steal_ptr(&r));
	if (!result)
		return EXIT_FAILURE;
	if (o->json)
		return print_json(result);
	printf("session %" PRIu64 " has ended\n", id);
	return 0;
}

static bool add_number(struct json_object *r, const char *name, const char *text)
{
	uint64_t v;

	if (!text)
		return true;
	if (number_parse(text, 0, UINT64_MAX, &v)) {
		tool_complain("--%s \"%s\" is no number", name, text);
		return false;
	}
	json_object_object_add(r, name, json_object_new_uint64(v));
	return true;
}

static bool add_size(struct json_object *r, const char *text)
{
	uint64_t v;

	if (!text)
		return true;
	if (number_parse_size(text, UINT64_MAX, &v)) {
		tool_complain("--bytes \"%s\" is no size; write it as in \"64M\"", text);
		return false;
	}
	json_object_object_add(r, "bytes_rate", json_object_new_uint64(v));
	return true;
}

int ctl_limit(struct control *l, const struct ctl_options *o, const char *arg)
{
	CLEANUP(json_object_putp) struct json_object *result = NULL, *r = control_request("limit");
	bool session = arg[strspn(arg, "0123456789")] == '\0';
	const char *kind = session ? "session" : "tenant";

	if (!o->rate && (o->burst || !o->bytes)) {
		return TOOL_FAIL(EX_USAGE, "--rate is missing: requests per second, 0 for no limit");
	}
	json_object_object_add(r, kind,
		session ? json_object_new_uint64(strtoull(arg, NULL, 10)) : json_object_new_string(arg));
	if (!add_number(r, "rate", o->rate) || !add_number(r, "burst", o->burst) || !add_size(r, o->bytes))
		return EX_USAGE;
	result = control_call(l, steal_ptr(&r));
	if (!result)
		return EXIT_FAILURE;
	if (o->json)
		return print_json(result);
	if (o->rate)
		printf(strcmp(o->rate, "0") == 0 ? "%s %s: no limit\n" : "%s %s: %s requests per second\n",
			kind, arg, o->rate);
	if (o->bytes)
		printf(strcmp(o->bytes, "0") == 0 ? "%s %s: no limit of bytes\n"
						  : "%s %s: %s bytes per second\n",
			kind, arg, o->bytes);
	return 0;
}
