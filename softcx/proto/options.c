/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/proto/options.h"

#include "softcx/devices/profile.h"
#include "softcx/proto/hosts.h"
#include "util/number.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	RUN = 1 << VERB_RUN,
	NIC = 1 << VERB_NIC,
	FUZZ = 1 << VERB_FUZZ,
	STATUS = 1 << VERB_STATUS,
	TRACE = 1 << VERB_TRACE,
	FAULT = 1 << VERB_FAULT,
	DEVICES = 1 << VERB_DEVICES,
	STOP = 1 << VERB_STOP,
	ALL = (1 << VERBS) - 1,
	HELP_COLUMN = 21,
};

static const struct {
	const char *name, *synopsis, *help, *example;
} verb_table[VERBS] = {
	[VERB_RUN] = {"run", "[OPTION...] COMMAND [ARGUMENT...]",
		"run COMMAND on the NIC; starts one if none runs, which ends soon after its last user",
		"softcx run ibv_devinfo -v"},
	[VERB_NIC] = {"nic", "[OPTION...]", "be the NIC, in the foreground", "softcx nic --hosts a,b"},
	[VERB_FUZZ] = {"fuzz", "[OPTION...] COMMAND [ARGUMENT...]",
		"run COMMAND under many seeds, each on a new NIC, and show the first that breaks it",
		"softcx fuzz --seeds 1-1000 ./my-test"},
	[VERB_STATUS] = {"status", "[OPTION...]", "show what lives in the NIC", "softcx status --objects"},
	[VERB_TRACE] = {"trace", "[OPTION...]",
		"print what the NIC executes: send WQEs, and on request RECVs, CQEs and WAITs",
		"softcx trace --show all --count 100"},
	[VERB_FAULT] = {"fault", "[OPTION...] add FAULT [OPTION...] | list | clear [ID]",
		"make the NIC fail on demand: softcx(1) lists the faults",
		"softcx fault add drop --probability 0.01"},
	[VERB_DEVICES] = {"devices", "[OPTION...]", "list the devices that the NIC can be",
		"softcx devices --json"},
	[VERB_STOP] = {"stop", "[OPTION...]", "end the NIC", "softcx stop"},
};

/* Rows with the same verbs stand together: the help prints one title above them. */
const struct option_row option_table[OPTIONS] = {
	[OPTION_DIR] = {.name = "dir",
		.arg = "DIR",
		.verbs = ALL & ~FUZZ & ~DEVICES,
		.help = "where the NIC lives (default: $SOFTCX_DIR,\n$XDG_RUNTIME_DIR/softcx or "
			"/tmp/softcx-UID)"},
	[OPTION_SEED] = {.name = "seed",
		.arg = "N",
		.verbs = RUN | NIC,
		.help = "seed of the hardware's choices (default 1)",
		.min = 0,
		.max = UINT64_MAX,
		.value = 1},
	[OPTION_LENIENT] = {.name = "lenient",
		.verbs = RUN | NIC,
		.help = "always make the friendliest choice"},
	[OPTION_NO_INDEX_CHECK] = {.name = "no-index-check",
		.verbs = RUN | NIC | FUZZ,
		.help = "execute WQEs whose index field is wrong"},
	[OPTION_NO_QPN_CHECK] = {.name = "no-qpn-check",
		.verbs = RUN | NIC | FUZZ,
		.help = "execute WQEs whose QPN field is wrong"},
	[OPTION_NO_SYNC_FENCE] = {.name = "no-sync-fence",
		.verbs = RUN | NIC | FUZZ,
		.help = "WAIT, SEND_EN and RECV_EN ignore their fence"},
	[OPTION_CLOCK] = {.name = "clock",
		.arg = "NAME|FILE",
		.verbs = RUN | NIC | FUZZ,
		.help = "model the time of a NIC with these costs: cx5, cx6\nor a file (default: the "
			"machine's clock)"},
	[OPTION_DEVICE] = {.name = "device",
		.arg = "NAME|FILE",
		.verbs = RUN | NIC | FUZZ,
		.help = "be this device; softcx devices lists them\n(default: $SOFTCX_DEVICE, or cx5)"},
	[OPTION_DEVICES] = {.name = "devices",
		.arg = "N",
		.verbs = RUN | NIC | FUZZ,
		.help = "number of devices of a host (default 1)",
		.min = 1,
		.max = HOSTS_MAX_DEVS,
		.value = 1},
	[OPTION_HOSTS] = {.name = "hosts",
		.arg = "A[:N],...",
		.verbs = RUN | NIC | FUZZ,
		.help = "names of emulated hosts and their numbers of\ndevices (default: one host)"},
	[OPTION_PU] = {.name = "pu",
		.arg = "N",
		.verbs = RUN | NIC | FUZZ,
		.help = "number of threads that execute queues, each those\nof other devices (default 1)",
		.min = 1,
		.max = HOSTS_MAX_DEVS,
		.value = 1},
	[OPTION_LINGER] = {.name = "linger",
		.arg = "SECONDS",
		.verbs = NIC,
		.help = "end after so long without a client (default: never)",
		.min = 0,
		.max = UINT_MAX,
		.value = 0},
	[OPTION_READY_FD] = {.name = "ready-fd",
		.arg = "FD",
		.verbs = NIC,
		.help = "write a line to FD when ready",
		.min = 0,
		.max = INT_MAX,
		.value = 0},
	[OPTION_HOST] = {.name = "host",
		.arg = "A",
		.verbs = RUN,
		.help = "run COMMAND on this host (default: the first)"},
	[OPTION_LEAK_CHECK] = {.name = "leak-check",
		.verbs = RUN,
		.help = "report what COMMAND did not destroy; exit with 3\nthen if COMMAND succeeded"},
	[OPTION_THINK] = {.name = "think",
		.arg = "US",
		.verbs = RUN | FUZZ,
		.help = "with --clock: microseconds that COMMAND takes for\neach message it receives "
			"(default 0)"},
	[OPTION_IN_TURN] = {.name = "in-turn",
		.verbs = RUN,
		.help = "with --clock: COMMAND does one thing after the\nother, whatever queue pairs it "
			"uses"},
	[OPTION_SEEDS] = {.name = "seeds",
		.arg = "N|FROM-TO",
		.verbs = FUZZ,
		.help = "seeds to try (default 100: 1 to 100)"},
	[OPTION_JOBS] = {.name = "jobs",
		.arg = "J",
		.verbs = FUZZ,
		.help = "number of runs at once (default 1)",
		.min = 1,
		.max = OPTIONS_MAX_JOBS,
		.value = 1},
	[OPTION_TIMEOUT] = {.name = "timeout",
		.arg = "SECONDS",
		.verbs = FUZZ,
		.help = "limit of each run (default 60)",
		.min = 1,
		.max = 86400,
		.value = 60},
	[OPTION_KEEP_GOING] = {.name = "keep-going", .verbs = FUZZ, .help = "try every seed"},
	[OPTION_LINES] = {.name = "lines",
		.arg = "N",
		.verbs = FUZZ,
		.help = "lines of the output and of the trace to show (default 40)",
		.min = 1,
		.max = 1000000,
		.value = 40},
	[OPTION_OBJECTS] = {.name = "objects",
		.verbs = STATUS,
		.help = "show every object of every open file"},
	[OPTION_SHOW] = {.name = "show",
		.arg = "KINDS",
		.verbs = TRACE,
		.help = "a list of wqe, recv, cqe, wait; or all (default: wqe)"},
	[OPTION_QP] = {.name = "qp",
		.arg = "N",
		.verbs = TRACE,
		.help = "only this queue pair; may be repeated",
		.min = 1,
		.max = 0xffffff,
		.value = 0},
	[OPTION_PID] = {.name = "pid",
		.arg = "P",
		.verbs = TRACE,
		.help = "only queue pairs of this process",
		.min = 1,
		.max = INT32_MAX,
		.value = 0},
	[OPTION_COUNT] = {.name = "count",
		.arg = "N",
		.verbs = TRACE,
		.help = "end after N records",
		.min = 1,
		.max = UINT32_MAX,
		.value = 0},
	[OPTION_PCAPNG] = {.name = "pcapng",
		.arg = "FILE",
		.verbs = TRACE,
		.help = "write sent messages to FILE for Wireshark\n(-: standard output)"},
	[OPTION_JSON] = {.name = "json",
		.verbs = FUZZ | STATUS | TRACE | FAULT | DEVICES,
		.help = "print JSON; of a trace, an object on each line"},
	[OPTION_HELP] = {.name = "help", .verbs = ALL, .help = "print this help"},
};

enum option_verb options_verb(const char *name)
{
	unsigned verb = 0;

	while (verb < VERBS && strcmp(name, verb_table[verb].name) != 0)
		verb++;
	return verb;
}

/* Sets the defaults; nothing is given. */
static void options_init(struct options *o)
{
	memset(o, 0, sizeof(*o));
	for (unsigned id = 0; id < OPTIONS; id++)
		o->number[id] = option_table[id].value;
}

int options_set(struct options *o, enum option_id id, const char *text, char *why, size_t size)
{
	const struct option_row *row = &option_table[id];
	uint64_t n = 0;
	int r = row->max ? number_parse(text, row->min, row->max, &n) : 0;

	if (r == -EINVAL)
		snprintf(why, size, "--%s %s: not a number", row->name, text);
	else if (r < 0)
		snprintf(why, size, "--%s %s: not from %llu to %llu", row->name, text,
			(unsigned long long)row->min, (unsigned long long)row->max);
	if (r < 0)
		return -EINVAL;
	if (id == OPTION_QP && o->nqps == SOFTCX_TRACE_QPS) {
		snprintf(why, size, "--qp: at most %d", SOFTCX_TRACE_QPS);
		return -EINVAL;
	}
	if (row->max)
		o->number[id] = n;
	if (id == OPTION_QP)
		o->qp[o->nqps++] = (uint32_t)n;
	o->text[id] = text;
	return 0;
}

const char *options_device(const struct options *o)
{
	const char *given = o->text[OPTION_DEVICE], *env = getenv("SOFTCX_DEVICE");

	return given ? given : env && *env ? env : profile_default()->name;
}

int options_parse(
	struct options *o, enum option_verb verb, int argc, char **argv, int *first, char *why, size_t size)
{
	struct option all[OPTIONS + 1] = {{0}};
	int id = 0;

	options_init(o);
	why[0] = '\0';
	for (unsigned i = 0; i < OPTIONS; i++)
		all[i] = (struct option){.name = option_table[i].name,
			.has_arg = option_table[i].arg ? required_argument : no_argument,
			.val = (int)i + 1};
	/* '+': the options of a command are its own */
	while ((id = getopt_long(argc, argv, "+", all, NULL)) != -1) {
		if (id == '?')
			return -EINVAL;
		id--;
		if (!(option_table[id].verbs & 1u << verb)) {
			snprintf(why, size, "%s does not take --%s", verb_table[verb].name,
				option_table[id].name);
			return -EINVAL;
		}
		if (options_set(o, (enum option_id)id, optarg ? optarg : "", why, size) < 0)
			return -EINVAL;
	}
	*first = optind;
	return 0;
}

int options_check_pu(const struct options *o, unsigned ndevs, char *why, size_t size)
{
	uint64_t n = o->number[OPTION_PU];

	if (n > 1 && o->text[OPTION_CLOCK])
		snprintf(why, size,
			"--pu %llu with --clock: a modelled clock decides which queue is next, of all "
			"devices; "
			"leave one of them out",
			(unsigned long long)n);
	else if (n > ndevs)
		snprintf(why, size,
			"--pu %llu: one thread executes a device, and the NIC has %u; --hosts and --devices "
			"make more",
			(unsigned long long)n, ndevs);
	else
		return 0;
	return -EINVAL;
}

int options_args(const struct options *o, enum option_verb verb, char **argv)
{
	int n = 0;

	for (unsigned id = 0; id < OPTIONS; id++) {
		const struct option_row *row = &option_table[id];

		if (!o->text[id] || !(row->verbs & 1u << verb))
			continue;
		if (asprintf(&argv[n], row->arg ? "--%s=%s" : "--%s", row->name, o->text[id]) < 0) {
			while (n)
				free(argv[--n]);
			return -ENOMEM;
		}
		n++;
	}
	return n;
}

/* ---- help ------------------------------------------------------------------------------- */

static void print_row(FILE *to, const struct option_row *row)
{
	int n = fprintf(to, "  --%s%s%s", row->name, row->arg ? " " : "", row->arg ? row->arg : "");

	fprintf(to, "%*s", n < HELP_COLUMN ? HELP_COLUMN - n : 1, "");
	for (const char *c = row->help; *c; c++) {
		fputc(*c, to);
		if (*c == '\n')
			fprintf(to, "%*s", HELP_COLUMN, "");
	}
	fputc('\n', to);
}

/* "Options of run, nic and fuzz:" */
static void print_title(FILE *to, unsigned verbs)
{
	unsigned left = verbs;
	const char *before = "Options of ";

	for (unsigned verb = 0; verb < VERBS; verb++) {
		if (!(left & 1u << verb))
			continue;
		left &= ~(1u << verb);
		fprintf(to, "%s%s", before, verb_table[verb].name);
		before = left & (left - 1) ? ", " : " and ";
	}
	fputs(":\n", to);
}

void options_help(FILE *to)
{
	for (unsigned verb = 0; verb < VERBS; verb++)
		fprintf(to, "%s softcx %s %s\n", verb ? "      " : "usage:", verb_table[verb].name,
			verb_table[verb].synopsis);
	fputs("       softcx --help | --version\n"
	      "\nRuns programs on an emulated ConnectX, under the ordinary RDMA libraries.\n\n",
		to);
	for (unsigned verb = 0; verb < VERBS; verb++)
		fprintf(to, "  %-8s %s\n", verb_table[verb].name, verb_table[verb].help);
	fputc('\n', to);
	for (unsigned id = 0; id < OPTIONS; id++) {
		if (id == 0 || option_table[id].verbs != option_table[id - 1].verbs)
			print_title(to, option_table[id].verbs);
		print_row(to, &option_table[id]);
	}
	fputs("\nExamples:\n", to);
	for (unsigned verb = 0; verb < VERBS; verb++)
		fprintf(to, "  %s\n", verb_table[verb].example);
}

void options_help_verb(FILE *to, const char *program, enum option_verb verb)
{
	fprintf(to, "usage: %s %s\n\n%s: %s\n\n", program, verb_table[verb].synopsis, verb_table[verb].name,
		verb_table[verb].help);
	for (unsigned id = 0; id < OPTIONS; id++)
		if (option_table[id].verbs & 1u << verb)
			print_row(to, &option_table[id]);
	fprintf(to, "\nExamples:\n  %s\n", verb_table[verb].example);
}
