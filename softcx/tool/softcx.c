/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/devices/profile.h"
#include "softcx/proto/options.h"
#include "softcx/tool/tool.h"
#include "softcx/tool/trace-text.h"
#include "util/output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "softcx fault": makes the NIC fail on demand. */

static void print_faults(struct json_object *all)
{
	for (size_t i = 0; i < json_object_array_length(all); i++) {
		struct json_object *o = json_object_array_get_idx(all, i);

		json_object_object_foreach(o, key, v)
			printf("%s%s %s", strcmp(key, "id") == 0 ? "" : ", ", key, json_object_get_string(v));
		putchar('\n');
	}
}

/* Sends @words to the NIC, which interprets them. Returns the exit status. */
static int tool_fault(char **words, bool json)
{
	static char answer[65536];
	char text[1000] = "fault";
	size_t len = strlen(text);
	struct json_object *all;
	int fd = tool_nic_connect();

	if (fd < 0)
		return tool_no_nic();
	for (; *words; words++) {
		if (strcmp(*words, "--json") == 0) {
			json = true;
			continue;
		}
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %s", *words);
		if (len >= sizeof(text))
			tool_die("fault: too many words");
	}
	if (!tool_nic_ask(fd, text, answer, sizeof(answer)))
		tool_die("the NIC in %s does not answer", tool_dir);
	if (answer[0] != '+') {
		fprintf(stderr, "softcx: fault: %s\n", answer + 1);
		return 1;
	}
	all = answer[1] == '[' ? json_tokener_parse(answer + 1) : NULL;
	if (!all) {
		if (answer[1])
			puts(answer + 1);
	} else if (json) {
		puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY));
	} else {
		print_faults(all);
	}
	json_object_put(all);
	return 0;
}

/*
 * Lists the devices that the NIC can be.
 */

static struct json_object *value_json(const struct profile *p, enum profile_fact fact)
{
	char text[64];

	if (profile_fact_is_truth(fact))
		return json_object_new_boolean(p->value[fact] != 0);
	if (profile_fact_is_number(fact))
		return json_object_new_uint64(p->value[fact]);
	profile_fact_text(p, fact, text, sizeof(text));
	return json_object_new_string(text);
}

static struct json_object *profile_json(const struct profile *p)
{
	struct json_object *o = json_object_new_object(), *facts = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(p->name));
	json_object_object_add(o, "title", json_object_new_string(p->title));
	for (unsigned i = 0; i < PROFILE_FACTS; i++) {
		struct json_object *f = json_object_new_object();

		json_object_object_add(f, "value", value_json(p, (enum profile_fact)i));
		json_object_object_add(f, "source", json_object_new_string(p->source[i]));
		json_object_object_add(facts, profile_fact_name((enum profile_fact)i), f);
	}
	json_object_object_add(o, "facts", facts);
	return o;
}

/* Prints a line for each profile, or all facts as JSON. Returns the exit status: 1 if a profile is wrong. */
static int tool_devices(bool json)
{
	struct json_object *all = json_object_new_array();
	char *names[PROFILE_MAX], path[PATH_MAX], why[PROFILE_WHY];
	int n = profile_list(names), rc = 0;
	struct profile p;

	if (n < 0)
		tool_die("the profiles of devices: %s", strerror(-n));
	for (int i = 0; i < n; i++) {
		if (profile_find(names[i], path, sizeof(path)) < 0 || profile_read(path, &p, why) < 0) {
			fprintf(stderr, "softcx: %s\n", why);
			rc = 1;
		} else if (json) {
			json_object_array_add(all, profile_json(&p));
		} else {
			printf("%-20s %s\n", p.name, p.title);
		}
		free(names[i]);
	}
	if (json)
		puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PRETTY));
	json_object_put(all);
	return rc;
}

/* The tool: runs programs on the emulated network adapter. */

enum { FAILED = 125 }; /* exit status: the failure is softcx's, not the command's */

/* Becomes the NIC process, which reads the same options. */
__attribute__((noreturn)) static void become_nic(char **argv)
{
	char nic[PATH_MAX];

	tool_find_part(nic, "nic/softcx-nic", SOFTCX_LIBEXECDIR "/softcx-nic");
	argv[0] = nic;
	execv(nic, argv);
	tool_die("%s: %s", nic, strerror(errno));
}

static int run(char **argv, const struct tool_nic_options *nic)
{
	const struct options *o = &nic->options;

	if (options_given(o, OPTION_THINK))
		tool_run_think(o->text[OPTION_THINK]);
	if (options_given(o, OPTION_IN_TURN))
		tool_run_in_turn();
	return tool_run(argv, nic, o->text[OPTION_HOST], options_given(o, OPTION_LEAK_CHECK));
}

static int fuzz(char **argv, const struct tool_nic_options *nic)
{
	const struct options *o = &nic->options;
	struct tool_fuzz_options fuzz = {.first = 1,
		.last = 100,
		.jobs = (unsigned)o->number[OPTION_JOBS],
		.timeout = (unsigned)o->number[OPTION_TIMEOUT],
		.lines = (unsigned)o->number[OPTION_LINES],
		.keep_going = options_given(o, OPTION_KEEP_GOING),
		.json = options_given(o, OPTION_JSON)};
	const char *seeds = o->text[OPTION_SEEDS];

	if (options_given(o, OPTION_THINK))
		tool_run_think(o->text[OPTION_THINK]);
	if (seeds && !tool_fuzz_seeds(seeds, &fuzz.first, &fuzz.last))
		tool_die("--seeds %s: neither a number nor FROM-TO", seeds);
	return tool_fuzz(argv, nic, &fuzz);
}

static int trace(const struct options *o)
{
	struct trace_options filter = {.nqpns = o->nqps,
		.pid = (uint32_t)o->number[OPTION_PID],
		.count = o->number[OPTION_COUNT],
		.json = options_given(o, OPTION_JSON),
		.pcapng = o->text[OPTION_PCAPNG]};
	const char *show = o->text[OPTION_SHOW];
	int fd;

	memcpy(filter.qpns, o->qp, sizeof(filter.qpns));
	if (show)
		filter.kinds = trace_event_kinds(show);
	if (show && !filter.kinds)
		tool_die("--show %s: not a list of wqe, recv, cqe and wait, nor all", show);
	fd = tool_nic_connect();
	return fd < 0 ? tool_no_nic() : tool_trace(fd, &filter);
}

static int stop(void)
{
	char answer[8];
	int fd = tool_nic_connect();

	if (fd < 0)
		return tool_no_nic();
	/* The end of the connection is the end of the NIC. */
	tool_nic_ask(fd, "stop", answer, sizeof(answer));
	return 0;
}

int main(int argc, char **argv)
{
	enum option_verb verb = argc > 1 ? options_verb(argv[1]) : VERBS;
	struct tool_nic_options nic;
	const struct options *o = &nic.options;
	char why[200], program[40];
	int first;

	output_begin(FAILED);
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		options_help(stdout);
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		puts("softcx " SOFTCX_RELEASE);
		return 0;
	}
	if (verb == VERB_NIC)
		become_nic(argv + 1);
	if (verb == VERBS && argc > 1)
		tool_die("there is no command \"%s\"; softcx --help lists them", argv[1]);
	if (verb == VERBS) {
		options_help(stderr);
		return FAILED;
	}
	snprintf(program, sizeof(program), "softcx %s", argv[1]);
	argv[1] = argv[0];
	if (options_parse(&nic.options, verb, argc - 1, argv + 1, &first, why, sizeof(why)) < 0) {
		if (why[0])
			tool_die("%s", why);
		return FAILED;
	}
	if (options_given(o, OPTION_HELP)) {
		options_help_verb(stdout, program, verb);
		return 0;
	}
	argv += 1 + first;
	if ((verb == VERB_RUN || verb == VERB_FUZZ) && !argv[0]) {
		options_help_verb(stderr, program, verb);
		return FAILED;
	}
	if (argv[0] && verb != VERB_RUN && verb != VERB_FUZZ && verb != VERB_FAULT)
		tool_die("\"%s\" is too much; %s --help shows what it takes", argv[0], program);
	if (verb == VERB_DEVICES)
		return tool_devices(options_given(o, OPTION_JSON));
	if (verb == VERB_RUN || verb == VERB_FUZZ) {
		tool_nic_device(&nic);
		tool_nic_clock(&nic);
	}
	if (verb != VERB_FUZZ)
		tool_set_dir(o->text[OPTION_DIR]);
	tool_nic_hosts(&nic);
	switch (verb) {
	case VERB_RUN:
		return run(argv, &nic);
	case VERB_FUZZ:
		return fuzz(argv, &nic);
	case VERB_STATUS:
		return tool_status(options_given(o, OPTION_OBJECTS), options_given(o, OPTION_JSON));
	case VERB_TRACE:
		return trace(o);
	case VERB_FAULT:
		return tool_fault(argv, options_given(o, OPTION_JSON));
	default:
		return stop();
	}
}
