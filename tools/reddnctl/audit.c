/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/tool.h"
#include "tools/reddnctl/commands.h"

#include <inttypes.h>
#include <stdlib.h>
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
