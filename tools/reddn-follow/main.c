/* SPDX-License-Identifier: BSD-2-Clause */
/* reddn-follow - keeps a table equal to the strings of a Redis server; see reddn-follow(1). */
#include "tools/common/tool.h"
#include "tools/reddn-follow/redis.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/json.h"
#include "util/number.h"
#include "util/output.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <systemd/sd-daemon.h>

static const char usage_text[] =
	"usage: reddn-follow [OPTIONS] SOURCE TABLE\n"
	"\n"
	"Keeps TABLE equal to the strings of a Redis server or replica, so that a NIC can answer gets.\n"
	"SOURCE: redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] or unix://[[USER]:PASSWORD@]PATH[?db=DB]\n"
	"\n"
	"  -p, --prefix TEXT     only keys that begin so; up to 16 times (all keys)\n"
	"  -1, --once            end when the table is equal to the source\n"
	"  -k, --max-key SIZE    longest key, if the table is to be made (64K)\n"
	"  -v, --max-value SIZE  longest value, if the table is to be made (64K)\n"
	"      --acl             print the command that gives a user of Redis the rights for that\n"
	"  -j, --json            print each change of state as a line of JSON\n"
	"  -h, --help            this text\n"
	"      --version         the version\n"
	"\n"
	"A table that does not exist is made, and grows. The password may be in REDISCLI_AUTH.\n"
	"\n"
	"Examples:\n"
	"  reddn-follow --prefix user: redis://db.example.com /dev/shm/reddn/users.table\n";

enum { INCOMPLETE = 1, FAILED = 2, PROGRESS_MS = 100, WORDS = 1024 };

struct arguments {
	struct redis_prefixes prefixes;
	struct reddn_table_options create;
	struct url url;
	const char *table;
	bool once, json, acl;
};

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

/* ---- reports --------------------------------------------------------------------------------- */

struct report {
	const struct arguments *args;
	enum redis_state state;
	uint64_t absent, loads, shown; /* shown: ms */
	char why[sizeof(((struct redis *)0)->why)];
	bool progress; /* a line is not ended */
};

static void report_json(const struct redis *r)
{
	struct json_object *o = json_object_new_object();
	struct reddn_table_stat st;

	reddn_table_stat(r->mirror->table, &st);
	json_add_text(o, "state", redis_state_name(r->state));
	json_object_object_add(o, "complete", json_object_new_boolean(redis_complete(r)));
	json_add_count(o, "entries", st.entries);
	json_add_count(o, "absent", r->keys.nabsent);
	json_add_count(o, "loads", r->loads);
	json_add_count(o, "invalidated", r->invalidated);
	json_add_count(o, "puts", r->mirror->puts);
	json_add_count(o, "deletes", r->mirror->deletes);
	json_add_text(o, "why", *r->why ? r->why : NULL);
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	fflush(stdout);
	json_object_put(o);
}

static void report_words(const struct redis *r, char words[WORDS])
{
	struct reddn_table_stat st;

	reddn_table_stat(r->mirror->table, &st);
	if (r->state == REDIS_APART)
		snprintf(words, WORDS, "%s: %s; trying again", url_name(r->url), r->why);
	else if (r->state != REDIS_FOLLOWING)
		snprintf(words, WORDS, "%s: loading, %" PRIu64 " keys", url_name(r->url), st.entries);
	else if (redis_complete(r))
		snprintf(words, WORDS, "%s: following, %" PRIu64 " keys", url_name(r->url), st.entries);
	else
		snprintf(words, WORDS,
			"%s: following, %" PRIu64 " keys; %" PRIu64
			" are absent: the table has no room for them, or they are longer than it allows",
			url_name(r->url), st.entries, r->keys.nabsent);
}

/* To the service manager */
static void report_status(const struct redis *r, const char *words)
{
	sd_notifyf(0, "%sSTATUS=%s", r->state == REDIS_FOLLOWING ? "READY=1\n" : "", words);
}

static void report_progress(struct report *t, const struct redis *r)
{
	char words[WORDS];

	if (r->state < REDIS_VERIFYING || r->state == REDIS_FOLLOWING || r->now - t->shown < PROGRESS_MS)
		return;
	t->shown = r->now;
	report_words(r, words);
	report_status(r, words);
	if (t->args->json || !isatty(STDERR_FILENO))
		return;
	t->progress = true;
	fprintf(stderr, "\r%" PRIu64 " keys", r->mirror->puts);
}

/* What has changed. The same trouble is reported once, however often it is met. */
static void report(struct report *t, const struct redis *r)
{
	bool news = r->loads != t->loads || (r->state == REDIS_FOLLOWING && !r->keys.nabsent != !t->absent) ||
		    (r->state == REDIS_APART && strcmp(r->why, t->why) != 0) ||
		    (t->state == REDIS_FOLLOWING && r->state != t->state);
	char words[WORDS];

	if (t->args->json && (news || r->state != t->state))
		report_json(r);
	report_progress(t, r);
	if (news) {
		report_words(r, words);
		report_status(r, words);
	}
	if (news && !t->args->json) {
		if (t->progress)
			fputc('\n', stderr);
		t->progress = false;
		tool_complain("%s", words);
	}
	t->state = r->state;
	t->absent = r->keys.nabsent;
	t->loads = r->loads;
	snprintf(t->why, sizeof(t->why), "%s", r->why);
}

/* ---- following --------------------------------------------------------------------------------- */

static int follow(const struct arguments *a, struct redis *r)
{
	struct report reported = {.args = a};
	struct pollfd fds[2];
	sigset_t block, before;
	int pause;

	sigemptyset(&block);
	sigaddset(&block, SIGINT);
	sigaddset(&block, SIGTERM);
	sigprocmask(SIG_BLOCK, &block, &before);
	sigaction(SIGINT, &(struct sigaction){.sa_handler = on_signal}, NULL);
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_signal}, NULL);
	signal(SIGPIPE, SIG_IGN);
	while (!stopped) {
		pause = redis_prepare(r, fds);
		if (ppoll(fds, COUNT(fds), &(struct timespec){pause / 1000, pause % 1000 * 1000000L},
			    &before) < 0)
			continue;
		redis_turn(r, fds);
		report(&reported, r);
		if (r->mirror->error)
			return TOOL_FAIL(FAILED, "%s: %s", a->table,
				r->mirror->error == -ESTALE
					? "it was removed, or another table has taken its name"
					: strerror(-r->mirror->error));
		if (a->once && r->state == REDIS_APART)
			return TOOL_FAIL(FAILED, "%s: %s", url_name(&a->url), r->why);
		if (a->once && r->state == REDIS_FOLLOWING && !r->again && r->barriers)
			break;
	}
	sd_notify(0, "STOPPING=1");
	return a->once && !redis_complete(r) ? INCOMPLETE : 0;
}

static int run(const struct arguments *a)
{
	static struct redis r; /* large */
	struct mirror mirror;
	char err[512];
	int status;

	if (mirror_open(&mirror, a->table, &a->create, err, sizeof(err)) < 0)
		return TOOL_FAIL(FAILED, "%s", err);
	redis_init(&r, &a->url, &a->prefixes, &mirror);
	status = follow(a, &r);
	redis_deinit(&r);
	mirror_close(&mirror);
	return status;
}

/* ---- the command line -------------------------------------------------------------------------- */

enum { OPTION_ACL = 256, OPTION_VERSION };

static bool add_prefix(struct redis_prefixes *p, const char *text)
{
	if (p->n == COUNT(p->text) || !*text)
		return false;
	/* Redis refuses prefixes of which one begins with another */
	for (unsigned i = 0; i < p->n; i++)
		if (strncmp(p->text[i], text, strlen(text)) == 0 ||
			strncmp(p->text[i], text, strlen(p->text[i])) == 0)
			return false;
	p->text[p->n++] = text;
	return true;
}

static bool set_size(uint32_t *size, const char *text)
{
	uint64_t n;

	if (number_parse_size(text, UINT32_MAX, &n) < 0 || n == 0)
		return false;
	*size = (uint32_t)n;
	return true;
}

static bool set_option(struct arguments *a, int letter)
{
	switch (letter) {
	case 'p':
		return add_prefix(&a->prefixes, optarg);
	case 'k':
		return set_size(&a->create.max_key, optarg);
	case 'v':
		return set_size(&a->create.max_value, optarg);
	case '1':
		return a->once = true;
	case 'j':
		return a->json = true;
	case OPTION_ACL:
		return a->acl = true;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"prefix", required_argument, NULL, 'p'},
		{"once", no_argument, NULL, '1'},
		{"max-key", required_argument, NULL, 'k'},
		{"max-value", required_argument, NULL, 'v'},
		{"acl", no_argument, NULL, OPTION_ACL},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, OPTION_VERSION},
		{NULL, 0, NULL, 0},
	};
	struct arguments a = {.create.grow = 1};
	const char *password = getenv("REDISCLI_AUTH");
	char err[256];
	int c;

	output_begin(FAILED);
	while ((c = getopt_long(argc, argv, "p:1k:v:jh", options, NULL)) >= 0) {
		if (c == 'h')
			return fputs(usage_text, stdout), 0;
		if (c == OPTION_VERSION)
			return puts("reddn-follow " REDDN_VERSION), 0;
		if (c == '?')
			return fputs("try reddn-follow --help\n", stderr), EX_USAGE;
		if (!set_option(&a, c))
			return TOOL_FAIL(
				EX_USAGE, "\"%s\" is no value of -%c, or is there already", optarg, c);
	}
	if (a.acl)
		return redis_print_acl(&a.prefixes), 0;
	if (argc - optind != 2)
		return fputs("usage: reddn-follow [OPTIONS] SOURCE TABLE\n", stderr), EX_USAGE;
	if (url_parse(&a.url, argv[optind], err, sizeof(err)) < 0)
		return TOOL_FAIL(EX_USAGE, "%s", err);
	if (!*a.url.password && password &&
		snprintf(a.url.password, sizeof(a.url.password), "%s", password) >=
			(int)sizeof(a.url.password))
		return TOOL_FAIL(
			EX_USAGE, "REDISCLI_AUTH has more than %zu bytes", sizeof(a.url.password) - 1);
	a.table = argv[optind + 1];
	return run(&a);
}
