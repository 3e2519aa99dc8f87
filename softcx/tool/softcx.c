/* SPDX-License-Identifier: BSD-2-Clause */
/* softcx.c - the tool: runs programs on the emulated network adapter. */
#include "softcx/proto/options.h"
#include "softcx/tool/devices.h"
#include "softcx/tool/fault.h"
#include "softcx/tool/fuzz.h"
#include "softcx/tool/nic.h"
#include "softcx/tool/run.h"
#include "softcx/tool/status.h"
#include "softcx/tool/trace-event.h"
#include "softcx/tool/trace.h"
#include "util/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
