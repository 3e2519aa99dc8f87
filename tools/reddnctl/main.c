/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddnctl - controls and inspects a running reddnd: one request on its control socket per command. This file
 * has the command line.
 */
#include "tools/common/help.h"
#include "tools/common/tool.h"
#include "tools/reddnctl/commands.h"
#include "tools/reddnctl/control.h"
#include "util/array.h"
#include "util/number.h"
#include "util/output.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

struct command {
	struct subcommand subcommand;
	const char *letters; /* of options that not all commands take */
	int (*run)(struct control *l, const struct ctl_options *o, const char *arg);
};

/* The first one is the default */
static const struct command commands[] = {
	{{"status", NULL, "state of the daemon, and its counters", "  reddnctl status\n"}, "", ctl_status},
	{{"sessions", NULL, "list sessions", "  reddnctl sessions --json\n"}, "", ctl_sessions},
	{{"offloads", NULL, "list offloads", "  reddnctl offloads\n"}, "", ctl_offloads},
	{{"regions", NULL, "list data regions", "  reddnctl regions\n"}, "", ctl_regions},
	{{"tenants", NULL, "list tenants, their quotas and usage", "  reddnctl tenants --json\n"}, "",
		ctl_tenants},
	{{"top", NULL, "sessions, offloads or tenants by requests per second, repeatedly",
		 "  reddnctl top --interval 5\n  reddnctl top --by offloads --sort P99\n"},
		"inBS", ctl_top},
	{{"metrics", NULL, "counters as OpenMetrics text", "  reddnctl metrics | grep requests\n"}, "",
		ctl_metrics},
	{{"audit", NULL, "events: sessions, refusals, verdicts, reloads", "  reddnctl audit --follow\n"}, "f",
		ctl_audit},
	{{"kick", "SESSION", "end a session", "  reddnctl kick 17\n"}, "", ctl_kick},
	{{"limit", "TENANT|SESSION", "change a rate limit (--rate, --bytes) at run time",
		 "  reddnctl limit everyone --rate 10000 --bytes 64M\n"},
		"rby", ctl_limit},
	{{"reload", NULL, "read the configuration again and apply it", "  reddnctl reload\n"}, "",
		ctl_reload},
	{{"hand-over", "REGION", "give a file (--file) to the daemon, as its owner",
		 "  reddnctl hand-over users --file /proc/self/fd/3 3<>users.table\n"},
		"F", ctl_hand_over},
};

static const struct subcommands subcommands = {"reddnctl", commands, COUNT(commands), sizeof(commands[0])};

static const struct option long_options[] = {
	{"socket", required_argument, NULL, 's'},
	{"json", no_argument, NULL, 'j'},
	{"rate", required_argument, NULL, 'r'},
	{"burst", required_argument, NULL, 'b'},
	{"bytes", required_argument, NULL, 'y'},
	{"file", required_argument, NULL, 'F'},
	{"follow", no_argument, NULL, 'f'},
	{"interval", required_argument, NULL, 'i'},
	{"count", required_argument, NULL, 'n'},
	{"by", required_argument, NULL, 'B'},
	{"sort", required_argument, NULL, 'S'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

enum { LETTERS = COUNT(long_options) };

static const char options_text[] =
	"  -s, --socket PATH      control socket (default " REDDND_CONTROL ")\n"
	"  -j, --json             output for programs\n"
	"  -r, --rate N           limit: requests per second, 0 for no limit\n"
	"  -b, --burst N          limit: requests at once after a pause (default: --rate / 10)\n"
	"  -y, --bytes SIZE       limit: bytes of replies per second, as in 64M; 0 for no limit\n"
	"  -F, --file PATH        hand-over: the file, such as /proc/PID/fd/N for a memfd\n"
	"  -f, --follow           audit: continue with new events\n"
	"  -i, --interval SECONDS top: seconds between rounds (default 1)\n"
	"  -B, --by WHAT          top: sessions, offloads or tenants (default sessions)\n"
	"  -S, --sort COLUMN      top: by the column with that heading (default REQUESTS/S)\n"
	"  -n, --count N          top: number of rounds (default: until interrupted)\n"
	"  -h, --help             show this help, or that of the command\n"
	"  -V, --version          show the version\n";

static void usage(void)
{
	puts("usage: reddnctl [OPTIONS] [COMMAND [ARGUMENT]]\n"
	     "\n"
	     "Controls and inspects a running reddnd. Without a command it shows the status.\n");
	subcommands_list(&subcommands, 15);
	printf("\n%s", options_text);
	help_examples(stdout, "  reddnctl top --interval 5\n"
			      "  reddnctl sessions --json\n"
			      "  reddnctl limit everyone --rate 10000\n");
}

static bool parse_number(const char *text, unsigned *n)
{
	uint64_t v;

	if (number_parse(text, 1, 86400, &v)) {
		tool_complain("\"%s\" is not a number from 1 to 86400", text);
		return false;
	}
	*n = (unsigned)v;
	return true;
}

/* 0: continue; else the exit status plus one. @given gets the letters of the options, each once */
static int parse(int argc, char **argv, struct ctl_options *o, char given[static LETTERS])
{
	int c;

	given[0] = '\0';
	while ((c = getopt_long(argc, argv, "s:jF:fi:n:B:S:r:b:y:hV", long_options, NULL)) >= 0) {
		size_t n = strlen(given);

		if (c != '?' && !strchr(given, c)) {
			given[n] = (char)c;
			given[n + 1] = '\0';
		}
		switch (c) {
		case 's':
			o->socket = optarg;
			break;
		case 'j':
			o->json = true;
			break;
		case 'F':
			o->file = optarg;
			break;
		case 'f':
			o->follow = true;
			break;
		case 'i':
		case 'n':
			if (!parse_number(optarg, c == 'i' ? &o->interval : &o->count))
				return EX_USAGE + 1;
			break;
		case 'B':
			o->by = optarg;
			break;
		case 'S':
			o->sort = optarg;
			break;
		case 'r':
			o->rate = optarg;
			break;
		case 'b':
			o->burst = optarg;
			break;
		case 'y':
			o->bytes = optarg;
			break;
		case 'h':
			o->help = true;
			break;
		case 'V':
			puts("reddnctl " REDDND_VERSION);
			return 1;
		default:
			fputs("reddnctl --help lists the options\n", stderr);
			return EX_USAGE + 1;
		}
	}
	return 0;
}

/* False after an error: @c does not take the option */
static bool takes(const struct command *c, const char *given)
{
	for (; *given; given++) {
		const struct option *o = long_options;

		if (strchr("sjhV", *given) || strchr(c->letters, *given))
			continue;
		while (o->val != *given)
			o++;
		tool_complain("%s takes no option --%s; reddnctl %s --help shows what it takes",
			c->subcommand.name, o->name, c->subcommand.name);
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct ctl_options o = {.socket = REDDND_CONTROL, .interval = 1};
	CLEANUP(control_close) struct control l = {0};
	const struct command *c;
	char options[LETTERS];
	int r, given;

	output_begin(EX_IOERR);
	r = parse(argc, argv, &o, options);
	if (r)
		return r - 1;
	given = argc - optind;
	c = given ? subcommands_find(&subcommands, argv[optind]) : &commands[0];
	if (!c)
		return EX_USAGE;
	if (o.help) {
		if (given)
			help_subcommand(&subcommands, &c->subcommand, options_text);
		else
			usage();
		return 0;
	}
	if (given && given != (c->subcommand.args ? 2 : 1)) {
		fprintf(stderr, "usage: reddnctl %s%s%s\n", c->subcommand.name, c->subcommand.args ? " " : "",
			c->subcommand.args ? c->subcommand.args : "");
		return EX_USAGE;
	}
	if (!takes(c, options))
		return EX_USAGE;
	r = control_open(&l, o.socket);
	return r ? r : c->run(&l, &o, c->subcommand.args ? argv[optind + 1] : NULL);
}
