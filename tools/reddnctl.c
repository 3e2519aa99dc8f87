/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reddnctl - asks a running reddnd what it does, and tells it what to do: one request on its control socket
 * per command.
 */
#include "tools/common/subcommands.h"
#include "tools/common/table-print.h"
#include "tools/common/tool.h"
#include "util/array.h"
#include "util/cleanup.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sysexits.h>
#include <time.h>

struct options {
	const char *socket;
	bool json, follow;
	unsigned interval, count;         /* of top: seconds, rounds (0: for ever) */
	const char *rate, *burst, *bytes; /* of limit */
};

struct link {
	FILE *to, *from;
};

struct command {
	struct word word;
	int (*run)(struct link *l, const struct options *o, const char *arg);
};

static void link_close(struct link *l)
{
	if (l->to)
		fclose(l->to);
	if (l->from)
		fclose(l->from);
}

DEFINE_CLEANUP(struct json_object *, json_object_put)

/* ---- one request
 * --------------------------------------------------------------------------------------------- */

static int link_open(struct link *l, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	CLEANUP(cleanup_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int second;

	if ((size_t)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path) >= sizeof(addr.sun_path))
		return TOOL_FAIL(EX_USAGE, "%s: too long for the path of a socket", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		tool_complain("%s: %s%s", path, strerror(errno),
			errno == ENOENT || errno == ECONNREFUSED
				? "; is reddnd running, with this \"control\"?"
			: errno == EACCES ? "; root and the group of reddnd may open it"
					  : "");
		return EX_UNAVAILABLE;
	}
	second = dup(fd);
	l->from = second < 0 ? NULL : fdopen(second, "r");
	l->to = fdopen(fd, "w");
	if (l->to)
		steal_fd(&fd);
	return l->to && l->from ? 0 : EX_OSERR;
}

/* The "result" of the answer, which is the caller's; NULL: the reason has been told */
static struct json_object *ask(struct link *l, struct json_object *request)
{
	CLEANUP(json_object_putp) struct json_object *mine = request, *answer = NULL;
	CLEANUP(cleanup_free) char *line = NULL;
	struct json_object *v;
	size_t size = 0;

	fprintf(l->to, "%s\n", json_object_to_json_string_ext(mine, JSON_C_TO_STRING_PLAIN));
	if (fflush(l->to) == 0 && getline(&line, &size, l->from) > 0)
		answer = json_tokener_parse(line);
	if (!answer || !json_object_object_get_ex(answer, "ok", &v)) {
		fputs("reddnctl: the daemon hung up\n", stderr);
		return NULL;
	}
	if (json_object_get_boolean(v) && json_object_object_get_ex(answer, "result", &v))
		return json_object_get(v);
	if (json_object_object_get_ex(answer, "error", &v))
		fprintf(stderr, "%s\n", json_object_get_string(v));
	return NULL;
}

static struct json_object *request(const char *command)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "command", json_object_new_string(command));
	return o;
}

static uint64_t member(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) ? json_object_get_uint64(v) : 0;
}

static int print_json(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	return 0;
}

/* ---- commands
 * ------------------------------------------------------------------------------------------------ */

static const struct show_column status_columns[] = {
	{"version", "version", SHOW_TEXT},
	{"device", "device", SHOW_TEXT},
	{"uptime_us", "up", SHOW_DURATION},
	{"cpu_us", "CPU time", SHOW_DURATION},
	{"sessions", "sessions", SHOW_COUNT},
	{"sessions_total", "sessions ever", SHOW_COUNT},
	{"refused", "refused", SHOW_COUNT},
	{"failed_sessions", "failed", SHOW_COUNT},
	{"requests", "requests", SHOW_COUNT},
	{"reloads", "reloads", SHOW_COUNT},
	{"arena_used", "arena used", SHOW_BYTES},
	{"arena_size", "arena", SHOW_BYTES},
};
static const struct show_column client_columns[] = {
	{"session", "SESSION", SHOW_COUNT},
	{"peer", "CLIENT", SHOW_TEXT},
	{"tenant", "TENANT", SHOW_TEXT},
	{"offload", "OFFLOAD", SHOW_TEXT},
	{"depth", "DEPTH", SHOW_COUNT},
	{"queue_bytes", "QUEUES", SHOW_BYTES},
	{"age_us", "AGE", SHOW_DURATION},
	{"requests", "REQUESTS", SHOW_COUNT},
	{"hits", "HITS", SHOW_COUNT},
	{"misses", "MISSES", SHOW_COUNT},
	{"bytes_out", "REPLIED", SHOW_BYTES},
	{"verdicts", "VERDICTS", SHOW_COUNT},
	{"current", "CURRENT", SHOW_FLAG},
};
static const struct show_column offload_columns[] = {
	{"offload", "OFFLOAD", SHOW_TEXT},
	{"program", "PROGRAM", SHOW_TEXT},
	{"mode", "MODE", SHOW_TEXT},
	{"depth_max", "DEPTH", SHOW_COUNT},
	{"request_bytes", "REQUEST", SHOW_BYTES},
	{"reply_bytes", "REPLY", SHOW_BYTES},
	{"copies", "COPIES", SHOW_COUNT},
	{"atomics", "ATOMICS", SHOW_COUNT},
	{"waits_enables", "WAITS", SHOW_COUNT},
	{"sessions", "SESSIONS", SHOW_COUNT},
	{"requests", "REQUESTS", SHOW_COUNT},
	{"hits", "HITS", SHOW_COUNT},
	{"misses", "MISSES", SHOW_COUNT},
	{"failed_sessions", "FAILED", SHOW_COUNT},
};
static const struct show_column region_columns[] = {
	{"region", "REGION", SHOW_TEXT},
	{"kind", "KIND", SHOW_TEXT},
	{"bytes", "SIZE", SHOW_BYTES},
	{"max_key", "KEYS TO", SHOW_BYTES},
	{"max_value", "VALUES TO", SHOW_BYTES},
	{"path", "PATH", SHOW_TEXT},
};
static const struct show_column tenant_columns[] = {
	{"tenant", "TENANT", SHOW_TEXT},
	{"sessions", "SESSIONS", SHOW_COUNT},
	{"sessions_max", "OF", SHOW_LIMIT},
	{"depth", "DEPTH", SHOW_COUNT},
	{"depth_max", "OF", SHOW_LIMIT},
	{"queue_bytes", "QUEUES", SHOW_BYTES},
	{"queue_bytes_max", "OF", SHOW_LIMIT_BYTES},
	{"slot_bytes", "SLOTS", SHOW_BYTES},
	{"slot_bytes_max", "OF", SHOW_LIMIT_BYTES},
	{"rate", "RATE", SHOW_LIMIT},
	{"session_rate", "OF SESSION", SHOW_LIMIT},
	{"connect_rate", "CONNECTS", SHOW_LIMIT},
	{"requests", "REQUESTS", SHOW_COUNT},
	{"refused", "REFUSED", SHOW_COUNT},
};
static const struct show_column top_columns[] = {
	{"session", "SESSION", SHOW_COUNT},
	{"peer", "CLIENT", SHOW_TEXT},
	{"offload", "OFFLOAD", SHOW_TEXT},
	{"per_second", "REQUESTS/S", SHOW_COUNT},
	{"requests", "REQUESTS", SHOW_COUNT},
	{"hits", "HITS", SHOW_COUNT},
	{"misses", "MISSES", SHOW_COUNT},
	{"wqes", "WQES", SHOW_COUNT},
	{"age_us", "AGE", SHOW_DURATION},
};

static int list(struct link *l, const struct options *o, const char *name, const struct show_column *columns,
	unsigned ncolumns)
{
	CLEANUP(json_object_putp) struct json_object *result = ask(l, request(name));

	if (!result)
		return EXIT_FAILURE;
	if (o->json)
		return print_json(result);
	show_table(stdout, result, columns, ncolumns);
	return 0;
}

static int run_status(struct link *l, const struct options *o, const char *arg)
{
	CLEANUP(json_object_putp) struct json_object *result = ask(l, request("status"));

	(void)arg;
	if (!result)
		return EXIT_FAILURE;
	if (o->json)
		return print_json(result);
	show_object(stdout, result, status_columns, COUNT(status_columns));
	return 0;
}

static int run_clients(struct link *l, const struct options *o, const char *arg)
{
	(void)arg;
	return list(l, o, "clients", client_columns, COUNT(client_columns));
}

static int run_offloads(struct link *l, const struct options *o, const char *arg)
{
	(void)arg;
	return list(l, o, "offloads", offload_columns, COUNT(offload_columns));
}

static int run_regions(struct link *l, const struct options *o, const char *arg)
{
	(void)arg;
	return list(l, o, "regions", region_columns, COUNT(region_columns));
}

static int run_tenants(struct link *l, const struct options *o, const char *arg)
{
	(void)arg;
	return list(l, o, "tenants", tenant_columns, COUNT(tenant_columns));
}

static int run_reload(struct link *l, const struct options *o, const char *arg)
{
	(void)arg;
	return list(l, o, "reload", offload_columns, COUNT(offload_columns));
}

static int run_metrics(struct link *l, const struct options *o, const char *arg)
{
	CLEANUP(json_object_putp) struct json_object *result = ask(l, request("metrics"));

	(void)arg;
	if (!result)
		return EXIT_FAILURE;
	if (o->json)
		return print_json(result);
	fputs(json_object_get_string(result), stdout);
	return 0;
}

static int run_kick(struct link *l, const struct options *o, const char *arg)
{
	CLEANUP(json_object_putp) struct json_object *result = NULL, *r = request("kick");
	uint64_t id;

	if (!tool_number(arg, 0, UINT64_MAX, &id))
		return TOOL_FAIL(EX_USAGE, "\"%s\" is no session; \"reddnctl clients\" lists them", arg);
	json_object_object_add(r, "session", json_object_new_uint64(id));
	result = ask(l, steal_ptr(&r));
	if (!result)
		return EXIT_FAILURE;
	if (o->json)
		return print_json(result);
	printf("session %" PRIu64 " has ended\n", id);
	return 0;
}

static bool take_limit(struct json_object *r, const char *name, const char *text)
{
	uint64_t v;

	if (!text)
		return true;
	if (!tool_number(text, 0, UINT64_MAX, &v)) {
		tool_complain("--%s \"%s\" is no number", name, text);
		return false;
	}
	json_object_object_add(r, name, json_object_new_uint64(v));
	return true;
}

static bool take_bytes(struct json_object *r, const char *text)
{
	uint64_t v;

	if (!text)
		return true;
	if (!tool_size(text, UINT64_MAX, &v)) {
		tool_complain("--bytes \"%s\" is no size; write it as in \"64M\"", text);
		return false;
	}
	json_object_object_add(r, "bytes_rate", json_object_new_uint64(v));
	return true;
}

static int run_limit(struct link *l, const struct options *o, const char *arg)
{
	CLEANUP(json_object_putp) struct json_object *result = NULL, *r = request("limit");
	bool session = arg[strspn(arg, "0123456789")] == '\0';
	const char *kind = session ? "session" : "tenant";

	if (!o->rate && (o->burst || !o->bytes)) {
		fputs("reddnctl: --rate is missing: requests per second, 0 for no limit\n", stderr);
		return EX_USAGE;
	}
	json_object_object_add(r, kind,
		session ? json_object_new_uint64(strtoull(arg, NULL, 10)) : json_object_new_string(arg));
	if (!take_limit(r, "rate", o->rate) || !take_limit(r, "burst", o->burst) || !take_bytes(r, o->bytes))
		return EX_USAGE;
	result = ask(l, steal_ptr(&r));
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

/* ---- audit
 * --------------------------------------------------------------------------------------------------- */

/* "2026-11-21 05:32:21.123456 verdict      session 7: client ..." */
static void print_event(struct json_object *e)
{
	const char *what = "", *text = "";
	struct json_object *v;
	char when[32] = "";
	struct tm tm;
	uint64_t us;
	time_t s;

	if (json_object_object_get_ex(e, "lost", &v)) {
		printf("%" PRIu64 " events are missing here: they came faster than they were read\n",
			json_object_get_uint64(v));
		return;
	}
	us = member(e, "time_us");
	s = (time_t)(us / 1000000);
	if (localtime_r(&s, &tm))
		strftime(when, sizeof(when), "%F %T", &tm);
	if (json_object_object_get_ex(e, "event", &v))
		what = json_object_get_string(v);
	if (json_object_object_get_ex(e, "text", &v))
		text = json_object_get_string(v);
	printf("%s.%06u %-13s ", when, (unsigned)(us % 1000000), what);
	if (member(e, "session"))
		printf("session %" PRIu64 ": ", member(e, "session"));
	puts(text);
}

static void show_event(const struct options *o, struct json_object *e)
{
	if (o->json)
		puts(json_object_to_json_string_ext(e, JSON_C_TO_STRING_NOSLASHESCAPE));
	else
		print_event(e);
}

static int run_audit(struct link *l, const struct options *o, const char *arg)
{
	struct json_object *r = request("audit");
	CLEANUP(json_object_putp) struct json_object *kept = NULL;
	CLEANUP(cleanup_free) char *line = NULL;
	size_t size = 0;

	(void)arg;
	if (o->follow)
		json_object_object_add(r, "follow", json_object_new_boolean(true));
	kept = ask(l, r);
	if (!kept)
		return EXIT_FAILURE;
	for (size_t i = 0; i < json_object_array_length(kept); i++)
		show_event(o, json_object_array_get_idx(kept, i));
	fflush(stdout);
	if (!o->follow)
		return 0;
	while (getline(&line, &size, l->from) > 0) {
		CLEANUP(json_object_putp) struct json_object *e = json_tokener_parse(line);

		if (e)
			show_event(o, e);
		if (fflush(stdout) != 0)
			return EX_IOERR;
	}
	fputs("reddnctl: the daemon hung up\n", stderr);
	return EXIT_FAILURE;
}

/* ---- top
 * ----------------------------------------------------------------------------------------------------- */

/* Adds "per_second" to each client of @now, from what it had in @before */
static void add_rates(struct json_object *now, struct json_object *before)
{
	for (size_t i = 0; i < json_object_array_length(now); i++) {
		struct json_object *o = json_object_array_get_idx(now, i);
		uint64_t requests = member(o, "requests"), age = member(o, "age_us"), rate = 0;

		for (size_t j = 0; before && j < json_object_array_length(before); j++) {
			struct json_object *b = json_object_array_get_idx(before, j);

			if (member(b, "session") == member(o, "session")) {
				requests -= member(b, "requests");
				age -= member(b, "age_us");
			}
		}
		if (age)
			rate = (uint64_t)((double)requests * 1e6 / (double)age + 0.5);
		json_object_object_add(o, "per_second", json_object_new_uint64(rate));
	}
}

static int busiest_first(const void *a, const void *b)
{
	uint64_t x = member(*(struct json_object *const *)a, "per_second");
	uint64_t y = member(*(struct json_object *const *)b, "per_second");

	return x < y ? 1 : x > y ? -1 : 0;
}

static int run_top(struct link *l, const struct options *o, const char *arg)
{
	CLEANUP(json_object_putp) struct json_object *before = NULL;

	(void)arg;
	for (unsigned round = 0;; round++) {
		struct json_object *now = ask(l, request("clients"));

		if (!now)
			return EXIT_FAILURE;
		add_rates(now, before);
		json_object_putp(&before);
		before = now;
		json_object_array_sort(now, busiest_first);
		if (o->json)
			puts(json_object_to_json_string_ext(now, JSON_C_TO_STRING_NOSLASHESCAPE));
		else {
			if (isatty(STDOUT_FILENO))
				fputs("\033[H\033[J", stdout);
			show_table(stdout, now, top_columns, COUNT(top_columns));
		}
		fflush(stdout);
		if (round + 1 == o->count)
			return 0;
		sleep(o->interval);
	}
}

/* ---- the command line
 * ---------------------------------------------------------------------------------------- */

static const struct command commands[] = {
	{{"status", NULL, "what the daemon is and has done"}, run_status},
	{{"clients", NULL, "the sessions there are"}, run_clients},
	{{"offloads", NULL, "what clients can ask for"}, run_offloads},
	{{"regions", NULL, "the data that is served"}, run_regions},
	{{"tenants", NULL, "who is served, and what they use of their quotas"}, run_tenants},
	{{"top", NULL, "sessions by requests per second, again and again"}, run_top},
	{{"metrics", NULL, "counters as OpenMetrics text"}, run_metrics},
	{{"audit", NULL, "clients that came and went, and what was wrong with them"}, run_audit},
	{{"kick", "SESSION", "end a session"}, run_kick},
	{{"limit", "TENANT|SESSION", "change a rate (--rate, --bytes) while it runs"}, run_limit},
	{{"reload", NULL, "read the configuration again and put it in force"}, run_reload},
};

static const struct words words = {"reddnctl", commands, COUNT(commands), sizeof(commands[0])};

static const struct option long_options[] = {
	{"socket", required_argument, NULL, 's'},
	{"json", no_argument, NULL, 'j'},
	{"rate", required_argument, NULL, 'r'},
	{"burst", required_argument, NULL, 'b'},
	{"bytes", required_argument, NULL, 'y'},
	{"follow", no_argument, NULL, 'f'},
	{"interval", required_argument, NULL, 'i'},
	{"count", required_argument, NULL, 'n'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{"bash-completion", no_argument, NULL, 'B'},
	{NULL, 0, NULL, 0},
};

static void usage(void)
{
	puts("usage: reddnctl [OPTIONS] COMMAND [ARGUMENT]\n"
	     "\n"
	     "Asks a running reddnd, or tells it.\n");
	words_list(&words, 15);
	puts("\n"
	     "  -s, --socket PATH      its control socket (default " REDDND_CONTROL ")\n"
	     "  -j, --json             what programs like to read\n"
	     "  -r, --rate N           of limit: requests per second, 0 for no limit\n"
	     "  -b, --burst N          and at once after a pause (default: of a tenth of a second)\n"
	     "  -y, --bytes SIZE       of limit: bytes of replies per second, as in 64M; 0 for no limit\n"
	     "  -f, --follow           audit: go on with what happens from now on\n"
	     "  -i, --interval SECONDS between rounds of top (default 1)\n"
	     "  -n, --count N          rounds of top (default: until interrupted)\n"
	     "  -h, --help             this text\n"
	     "  -V, --version          the version");
}

/* The words of this program, for the shell: made from the tables above when the program is built */
static void bash_completion(void)
{
	puts("# bash completion for reddnctl: made by reddnctl --bash-completion\n"
	     "_reddnctl()\n"
	     "{\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	     "\n"
	     "\tcase $prev in\n"
	     "\t-s|--socket)\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	     "\t\treturn ;;\n"
	     "\tkick)\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$(reddnctl clients 2>/dev/null | awk 'NR>1{print "
	     "$1}')\" -- \"$cur\")\n"
	     "\t\treturn ;;\n"
	     "\tesac");
	fputs("\tmapfile -t COMPREPLY < <(compgen -W '", stdout);
	words_names(&words);
	putchar(' ');
	words_options(long_options);
	puts("' -- \"$cur\")\n"
	     "}\n"
	     "complete -F _reddnctl reddnctl");
}

static bool parse_number(const char *text, unsigned *n)
{
	uint64_t v;

	if (!tool_number(text, 1, 86400, &v)) {
		tool_complain("\"%s\" is no number from 1 to 86400", text);
		return false;
	}
	*n = (unsigned)v;
	return true;
}

/* 0: go on; else the exit status plus one */
static int parse(int argc, char **argv, struct options *o)
{
	int c;

	while ((c = getopt_long(argc, argv, "s:jfi:n:r:b:y:hV", long_options, NULL)) >= 0) {
		switch (c) {
		case 's':
			o->socket = optarg;
			break;
		case 'j':
			o->json = true;
			break;
		case 'f':
			o->follow = true;
			break;
		case 'i':
		case 'n':
			if (!parse_number(optarg, c == 'i' ? &o->interval : &o->count))
				return EX_USAGE + 1;
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
			usage();
			return 1;
		case 'V':
			puts("reddnctl " REDDND_VERSION);
			return 1;
		case 'B':
			bash_completion();
			return 1;
		default:
			fputs("reddnctl --help lists the options\n", stderr);
			return EX_USAGE + 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {.socket = REDDND_CONTROL, .interval = 1};
	CLEANUP(link_close) struct link l = {0};
	const struct command *c;
	int r = parse(argc, argv, &o), given = argc - optind;

	if (r)
		return r - 1;
	if (given == 0) {
		fputs("reddnctl: a command is missing; reddnctl --help lists them\n", stderr);
		return EX_USAGE;
	}
	c = words_find(&words, argv[optind]);
	if (!c)
		return EX_USAGE;
	if (given != (c->word.args ? 2 : 1)) {
		fprintf(stderr, "usage: reddnctl %s%s%s\n", c->word.name, c->word.args ? " " : "",
			c->word.args ? c->word.args : "");
		return EX_USAGE;
	}
	r = link_open(&l, o.socket);
	return r ? r : c->run(&l, &o, c->word.args ? argv[optind + 1] : NULL);
}
