/* SPDX-License-Identifier: BSD-2-Clause */
/* softcx.c - the tool: runs programs on the emulated network adapter. */
#include "softcx/proto/proto.h"
#include "softcx/tool/fault.h"
#include "softcx/tool/fuzz.h"
#include "softcx/tool/nic.h"
#include "softcx/tool/run.h"
#include "softcx/tool/status.h"
#include "softcx/tool/trace-event.h"
#include "softcx/tool/trace.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void usage(FILE *to)
{
	fputs("Usage: softcx run [OPTION...] COMMAND [ARGUMENT...]\n"
	      "       softcx nic [OPTION...]\n"
	      "       softcx fuzz [OPTION...] COMMAND [ARGUMENT...]\n"
	      "       softcx status [--objects | --json] [--dir DIR]\n"
	      "       softcx trace [--show KINDS] [--qp N]... [--pid P] [--count N]\n"
	      "                    [--json | --pcapng FILE] [--dir DIR]\n"
	      "       softcx fault [--dir DIR] add FAULT [OPTION...] | list [--json] | clear [ID]\n"
	      "       softcx stop [--dir DIR]\n"
	      "An emulated ConnectX network adapter under the ordinary RDMA libraries.\n\n"
	      "  run      run COMMAND on it; starts a NIC if none runs, which ends soon after its last user\n"
	      "  nic      be the NIC, in the foreground\n"
	      "  fuzz     run COMMAND under many seeds, on a new NIC each, and show the first that breaks "
	      "it\n"
	      "  status   what lives in the NIC\n"
	      "  trace    print what it executes: send WQEs, and at will RECVs, CQEs and WAITs\n"
	      "  fault    make the NIC fail on demand: softcx(1) has the list\n"
	      "  stop     end the NIC\n\n"
	      "Options of run, nic and fuzz:\n"
	      "  --dir DIR          where the NIC lives (default: $SOFTCX_DIR, $XDG_RUNTIME_DIR/softcx,\n"
	      "                     /tmp/softcx-UID)\n"
	      "  --seed N           of every choice that the hardware is free to make (default 1)\n"
	      "  --lenient          always make the friendliest choice\n"
	      "  --no-index-check   execute WQEs whose index field is wrong\n"
	      "  --no-qpn-check     execute WQEs whose QPN field is wrong\n"
	      "  --no-sync-fence    WAIT, SEND_EN and RECV_EN heed no fence\n"
	      "  --clock NAME|FILE  timestamps of a NIC with these costs: cx5, cx6 or a file (default: the "
	      "machine's clock)\n"
	      "  --devices N        number of devices of a host (default 1)\n"
	      "  --hosts A[:N],...  names of emulated hosts and their numbers of devices (default: one)\n"
	      "Options of run:\n"
	      "  --host A           run COMMAND on this host (default: the first)\n"
	      "  --think US         with --clock: what COMMAND takes for each message it receives (default "
	      "0)\n"
	      "  --leak-check       say what COMMAND did not destroy; if it succeeded, exit with 3 then\n"
	      "Options of fuzz:\n"
	      "  --seeds N|FROM-TO  seeds to try (default 100: 1 to 100)\n"
	      "  --jobs J           runs at once (default 1)\n"
	      "  --timeout SECONDS  for each run (default 60)\n"
	      "  --keep-going       try every seed\n"
	      "  --lines N          of the output and of the trace to show (default 40)\n"
	      "  --json             the result as JSON\n"
	      "Options of status:\n"
	      "  --objects          every object of every open file\n"
	      "  --json             all of it as JSON\n"
	      "Options of trace:\n"
	      "  --show KINDS       a list of wqe, recv, cqe, wait; or all (default: wqe)\n"
	      "  --qp N             only this queue pair; may be repeated\n"
	      "  --pid P            only queue pairs of this process\n"
	      "  --count N          end after N records\n"
	      "  --json             a JSON object on each line\n"
	      "  --pcapng FILE      write what was sent to FILE for Wireshark (-: standard output)\n"
	      "Options of nic:\n"
	      "  --linger SECONDS   end when there was no client for so long (default: never)\n"
	      "  --ready-fd FD      write a line to FD when ready\n",
		to);
}

static int trace(const struct trace_options *opt)
{
	int fd = tool_nic_connect();

	return fd < 0 ? tool_no_nic() : tool_trace(fd, opt);
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

/* ---- command line ----------------------------------------------------------------------- */

static uint64_t check_number(const char *name, const char *value)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(value, &end, 0);
	if (errno || end == value || *end || *value == '-')
		tool_die("--%s %s: not a number", name, value);
	return n;
}

static uint32_t check_range(const char *name, const char *value, uint32_t most)
{
	uint64_t n = check_number(name, value);

	if (n == 0 || n > most)
		tool_die("--%s %s: not from 1 to %u", name, value, most);
	return (uint32_t)n;
}

int main(int argc, char **argv)
{
	enum {
		DIR_ = 1,
		SEED,
		LENIENT,
		NO_INDEX,
		NO_QPN,
		NO_FENCE,
		CLOCK,
		THINK,
		DEVICES,
		HOSTS,
		HOST,
		JSON,
		OBJECTS,
		LEAKS,
		QP,
		PID,
		COUNT,
		SHOW,
		PCAPNG,
		SEEDS,
		JOBS,
		TIMEOUT,
		KEEP_GOING,
		LINES,
		HELP
	};
	static const struct option options[] = {
		{"dir", required_argument, NULL, DIR_},
		{"seed", required_argument, NULL, SEED},
		{"lenient", no_argument, NULL, LENIENT},
		{"no-index-check", no_argument, NULL, NO_INDEX},
		{"no-qpn-check", no_argument, NULL, NO_QPN},
		{"no-sync-fence", no_argument, NULL, NO_FENCE},
		{"clock", required_argument, NULL, CLOCK},
		{"think", required_argument, NULL, THINK},
		{"devices", required_argument, NULL, DEVICES},
		{"hosts", required_argument, NULL, HOSTS},
		{"host", required_argument, NULL, HOST},
		{"json", no_argument, NULL, JSON},
		{"objects", no_argument, NULL, OBJECTS},
		{"leak-check", no_argument, NULL, LEAKS},
		{"qp", required_argument, NULL, QP},
		{"pid", required_argument, NULL, PID},
		{"count", required_argument, NULL, COUNT},
		{"show", required_argument, NULL, SHOW},
		{"pcapng", required_argument, NULL, PCAPNG},
		{"seeds", required_argument, NULL, SEEDS},
		{"jobs", required_argument, NULL, JOBS},
		{"timeout", required_argument, NULL, TIMEOUT},
		{"keep-going", no_argument, NULL, KEEP_GOING},
		{"lines", required_argument, NULL, LINES},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	struct tool_nic_options opt = {.argc = 1};
	const char *verb = argc > 1 ? argv[1] : "", *dir_option = NULL, *host = NULL;
	struct tool_fuzz_options fuzz = {.first = 1, .last = 100, .jobs = 1, .timeout = 60, .lines = 40};
	struct trace_options filter = {0};
	bool objects = false, leak_check = false;
	int c;

	if (strcmp(verb, "nic") == 0) {
		char nic[PATH_MAX];

		tool_find_part(nic, "nic/softcx-nic", SOFTCX_LIBEXECDIR "/softcx-nic");
		argv[1] = nic;
		execv(nic, argv + 1);
		tool_die("%s: %s", nic, strerror(errno));
	}
	if (strcmp(verb, "--help") == 0) {
		usage(stdout);
		return 0;
	}
	if (strcmp(verb, "run") != 0 && strcmp(verb, "fuzz") != 0 && strcmp(verb, "status") != 0 &&
		strcmp(verb, "trace") != 0 && strcmp(verb, "fault") != 0 && strcmp(verb, "stop") != 0) {
		usage(stderr);
		return 125;
	}
	argv[1] = argv[0];
	/* '+': the command's options are the command's */
	while ((c = getopt_long(argc - 1, argv + 1, "+", options, NULL)) != -1) {
		switch (c) {
		case DIR_:
			dir_option = optarg;
			break;
		case SEED:
			check_number("seed", optarg);
			opt.seed = optarg;
			tool_nic_option(&opt, "seed", optarg);
			break;
		case LENIENT:
			opt.lenient = true;
			tool_nic_option(&opt, "lenient", NULL);
			break;
		case NO_INDEX:
			opt.no_index_check = true;
			tool_nic_option(&opt, "no-index-check", NULL);
			break;
		case NO_FENCE:
			opt.no_sync_fence = true;
			tool_nic_option(&opt, "no-sync-fence", NULL);
			break;
		case NO_QPN:
			opt.no_qpn_check = true;
			tool_nic_option(&opt, "no-qpn-check", NULL);
			break;
		case CLOCK:
			opt.clock = optarg;
			tool_nic_option(&opt, "clock", optarg);
			break;
		case THINK:
			tool_run_think(optarg);
			break;
		case DEVICES:
			check_number("devices", optarg);
			opt.devices = optarg;
			tool_nic_option(&opt, "devices", optarg);
			break;
		case HOSTS:
			opt.host_list = optarg;
			tool_nic_option(&opt, "hosts", optarg);
			break;
		case HOST:
			host = optarg;
			break;
		case JSON:
			filter.json = true;
			break;
		case OBJECTS:
			objects = true;
			break;
		case LEAKS:
			leak_check = true;
			break;
		case QP:
			if (filter.nqpns == SOFTCX_TRACE_QPS)
				tool_die("--qp: at most %d", SOFTCX_TRACE_QPS);
			filter.qpns[filter.nqpns++] = check_range("qp", optarg, 0xffffff);
			break;
		case PID:
			filter.pid = check_range("pid", optarg, INT32_MAX);
			break;
		case SHOW:
			filter.kinds = trace_event_kinds(optarg);
			if (!filter.kinds)
				tool_die("--show %s: not a list of wqe, recv, cqe and wait, nor all", optarg);
			break;
		case PCAPNG:
			filter.pcapng = optarg;
			break;
		case COUNT:
			filter.count = check_range("count", optarg, UINT32_MAX);
			break;
		case SEEDS:
			if (!tool_fuzz_seeds(optarg, &fuzz.first, &fuzz.last))
				tool_die("--seeds %s: neither a number nor FROM-TO", optarg);
			break;
		case JOBS:
			fuzz.jobs = check_range("jobs", optarg, TOOL_FUZZ_MAX_JOBS);
			break;
		case TIMEOUT:
			fuzz.timeout = check_range("timeout", optarg, 86400);
			break;
		case KEEP_GOING:
			fuzz.keep_going = true;
			break;
		case LINES:
			fuzz.lines = check_range("lines", optarg, 1000000);
			break;
		case HELP:
			usage(stdout);
			return 0;
		default:
			return 125;
		}
	}
	if ((strcmp(verb, "run") == 0 || strcmp(verb, "fuzz") == 0) && !argv[1 + optind]) {
		usage(stderr);
		return 125;
	}
	if (strcmp(verb, "fuzz") == 0) {
		if (opt.seed || opt.lenient || dir_option || host)
			tool_die("fuzz: --%s has no place here; --seeds says which seeds to try",
				opt.seed      ? "seed"
				: opt.lenient ? "lenient"
				: host        ? "host"
					      : "dir");
		tool_nic_hosts(&opt);
		fuzz.json = filter.json;
		return tool_fuzz(argv + 1 + optind, &opt, &fuzz);
	}
	tool_set_dir(dir_option);
	tool_nic_hosts(&opt);
	if (strcmp(verb, "run") == 0)
		return tool_run(argv + 1 + optind, &opt, host, leak_check);
	if (strcmp(verb, "fault") == 0)
		return tool_fault(argv + 1 + optind, filter.json);
	if (strcmp(verb, "trace") == 0)
		return trace(&filter);
	return strcmp(verb, "status") == 0 ? tool_status(objects, filter.json) : stop();
}
