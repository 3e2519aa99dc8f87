/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/common/table-print.h"
#include "tools/reddnctl/commands.h"
#include "util/array.h"

#include <stdlib.h>
#include <unistd.h>

static const struct table_column top_columns[] = {
	{"session", "SESSION", TABLE_COUNT},
	{"peer", "CLIENT", TABLE_TEXT},
	{"offload", "OFFLOAD", TABLE_TEXT},
	{"per_second", "REQUESTS/S", TABLE_COUNT},
	{"requests", "REQUESTS", TABLE_COUNT},
	{"hits", "HITS", TABLE_COUNT},
	{"misses", "MISSES", TABLE_COUNT},
	{"wqes", "WQES", TABLE_COUNT},
	{"age_us", "AGE", TABLE_DURATION},
};

/* Add "per_second" to each session of @now, from its counters in @before. */
static void add_rates(struct json_object *now, struct json_object *before)
{
	for (size_t i = 0; i < json_object_array_length(now); i++) {
		struct json_object *o = json_object_array_get_idx(now, i);
		uint64_t requests = control_member(o, "requests"), age = control_member(o, "age_us"),
			 rate = 0;

		for (size_t j = 0; before && j < json_object_array_length(before); j++) {
			struct json_object *b = json_object_array_get_idx(before, j);

			if (control_member(b, "session") == control_member(o, "session")) {
				requests -= control_member(b, "requests");
				age -= control_member(b, "age_us");
			}
		}
		if (age)
			rate = (uint64_t)((double)requests * 1e6 / (double)age + 0.5);
		json_object_object_add(o, "per_second", json_object_new_uint64(rate));
	}
}

static int busiest_first(const void *a, const void *b)
{
	uint64_t x = control_member(*(struct json_object *const *)a, "per_second");
	uint64_t y = control_member(*(struct json_object *const *)b, "per_second");

	return x < y ? 1 : x > y ? -1 : 0;
}

int ctl_top(struct control *l, const struct ctl_options *o, const char *arg)
{
	CLEANUP(json_object_putp) struct json_object *before = NULL;

	(void)arg;
	for (unsigned round = 0;; round++) {
		struct json_object *now = control_call(l, control_request("clients"));

		if (!now)
			return EXIT_FAILURE;
		add_rates(now, before);
		json_object_putp(&before);
		before = now;
		json_object_array_sort(now, busiest_first);
		if (o->json) {
			puts(json_object_to_json_string_ext(now, JSON_C_TO_STRING_NOSLASHESCAPE));
		} else {
			if (isatty(STDOUT_FILENO))
				fputs("\033[H\033[J", stdout);
			table_print_list(stdout, now, top_columns, COUNT(top_columns));
		}
		fflush(stdout);
		if (round + 1 == o->count)
			return 0;
		sleep(o->interval);
	}
}
