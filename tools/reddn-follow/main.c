/* SPDX-License-Identifier: BSD-2-Clause */
/* reddn-follow - keeps a table equal to a source; see reddn-follow(1). */
#include "tools/common/tool.h"
#include "tools/reddn-follow/cluster.h"
#include "tools/reddn-follow/files.h"
#include "tools/reddn-follow/postgres.h"
#include "tools/reddn-follow/redis.h"
#include "tools/reddn-follow/sentinel.h"
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
	"Keeps TABLE equal to a source, so that a NIC can answer gets. SOURCE:\n"
	"  redis://[[USER]:PASSWORD@]HOST[:PORT][/DB]  strings of a Redis server or replica\n"
	"  unix://[[USER]:PASSWORD@]PATH[?db=DB]       the same on a Unix socket\n"
	"  redis+cluster://[[USER]:PASSWORD@]HOST[:PORT],...[/?slots=FIRST-LAST]\n"
	"                                              the same of a cluster, of which some nodes are "
	"given,\n"
	"                                              or of a range of its slots\n"
	"  redis+sentinel://[[USER]:PASSWORD@]HOST[:PORT],.../NAME[/DB]\n"
	"                                              the same of the master NAME of these sentinels\n"
	"  postgresql://[USER[:PASSWORD]@]HOST[:PORT]/DB?table=TABLE&key=COLUMN&value=COLUMN\n"
	"                                              two columns of a table of PostgreSQL\n"
	"  file:///PATH                                a file of records, or a folder of such\n"
	"\n"
	"  -p, --prefix TEXT     only keys that begin so; up to 16 times (all keys)\n"
	"  -1, --once            end when the table is equal to the source\n"
	"  -k, --max-key SIZE    longest key, if the table is to be made (64K)\n"
	"  -v, --max-value SIZE  longest value, if the table is to be made (64K)\n"
	"      --acl [SOURCE]    print the commands that give a user of Redis, or of a source of\n"
	"                        PostgreSQL, the rights for that\n"
	"  -j, --json            print each change of state as a line of JSON\n"
	"  -h, --help            this text\n"
	"      --version         the version\n"
	"\n"
	"A table that does not exist is made, and grows. The password may be in REDISCLI_AUTH, or "
	"PGPASSWORD.\n"
	"\n"
	"Examples:\n"
	"  reddn-follow --prefix user: redis://db.example.com /dev/shm/reddn/users.table\n";

enum { INCOMPLETE = 1, FAILED = 2, PROGRESS_MS = 100, WORDS = 1024 };

struct arguments {
	struct prefixes prefixes;
	struct reddn_table_options create;
	enum { FROM_REDIS, FROM_CLUSTER, FROM_SENTINEL, FROM_POSTGRES, FROM_FILES } kind;
	struct url url[URL_SEEDS]; /* the first one; of a cluster, nurls */
	unsigned nurls;
	uint64_t slots; /* of a cluster: redis_slots() */
	struct sentinel_url sentinel;
	struct postgres_url postgres;
	const char *file;
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

struct reports {
	const struct arguments *args;
	const struct source *source;
	struct mirror *mirror;
	struct source_report last;
	uint64_t shown; /* ms */
	char why[SOURCE_WHY];
	bool progress; /* a line is not ended */
};

static uint64_t entries(struct mirror *m)
{
	struct reddn_table_stat st;

	reddn_table_stat(m->table, &st);
	return st.entries;
}

static void report_json(const struct reports *t, const struct source_report *r)
{
	struct json_object *o = json_object_new_object();

	json_add_text(o, "state", r->state);
	json_object_object_add(o, "complete", json_object_new_boolean(r->complete));
	json_add_count(o, "entries", entries(t->mirror));
	json_add_count(o, "absent", r->absent);
	json_add_count(o, "loads", r->loads);
	json_add_count(o, "invalidated", r->reported);
	json_add_count(o, "puts", t->mirror->puts);
	json_add_count(o, "deletes", t->mirror->deletes);
	json_add_text(o, "why", *r->why ? r->why : NULL);
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	fflush(stdout);
	json_object_put(o);
}

static void report_words(const struct reports *t, const struct source_report *r, char words[WORDS])
{
	const char *name = t->source->name;
	uint64_t n = entries(t->mirror);

	if (r->stage == SOURCE_APART)
		snprintf(words, WORDS, "%s: %s; trying again", name, r->why);
	else if (r->stage == SOURCE_LOADING)
		snprintf(words, WORDS, "%s: loading, %" PRIu64 " keys", name, n);
	else if (r->complete)
		snprintf(words, WORDS, "%s: following, %" PRIu64 " keys", name, n);
	else
		snprintf(words, WORDS,
			"%s: following, %" PRIu64 " keys; %" PRIu64
			" are absent: the table has no room for them, or they are longer than it allows",
			name, n, r->absent);
}

/* To the service manager */
static void report_status(const struct source_report *r, const char *words)
{
	sd_notifyf(0, "%sSTATUS=%s", r->stage == SOURCE_FOLLOWING ? "READY=1\n" : "", words);
}

static void report_progress(struct reports *t, const struct source_report *r)
{
	uint64_t now = clock_ms();
	char words[WORDS];

	if (r->stage != SOURCE_LOADING || now - t->shown < PROGRESS_MS)
		return;
	t->shown = now;
	report_words(t, r, words);
	report_status(r, words);
	if (t->args->json || !isatty(STDERR_FILENO))
		return;
	t->progress = true;
	fprintf(stderr, "\r%" PRIu64 " keys", t->mirror->puts);
}

/* What has changed. The same trouble is reported once, however often it is met. */
static void report(struct reports *t, const struct source_report *r)
{
	bool follows = r->stage == SOURCE_FOLLOWING;
	bool news = r->loads != t->last.loads || (follows && !r->absent != !t->last.absent) ||
		    (r->stage == SOURCE_APART && strcmp(r->why, t->why) != 0) ||
		    (t->last.stage == SOURCE_FOLLOWING && !follows);
	char words[WORDS];

	if (t->args->json && (news || r->state != t->last.state))
		report_json(t, r);
	report_progress(t, r);
	if (news) {
		report_words(t, r, words);
		report_status(r, words);
	}
	if (news && !t->args->json) {
		if (t->progress)
			fputc('\n', stderr);
		t->progress = false;
		tool_complain("%s", words);
	}
	t->last = *r;
	snprintf(t->why, sizeof(t->why), "%s", r->why);
}

/* ---- following --------------------------------------------------------------------------------- */

static int follow(const struct arguments *a, const struct source *s, struct mirror *m)
{
	struct reports reports = {.args = a, .source = s, .mirror = m};
	struct source_report now = {0};
	struct pollfd fds[SOURCE_FDS];
	nfds_t nfds;
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
		pause = s->prepare(s->of, fds, &nfds);
		if (ppoll(fds, nfds, &(struct timespec){pause / 1000, pause % 1000 * 1000000L}, &before) < 0)
			continue;
		s->turn(s->of, fds);
		s->report(s->of, &now);
		report(&reports, &now);
		if (m->error)
			return TOOL_FAIL(FAILED, "%s: %s", a->table,
				m->error == -ESTALE ? "it was removed, or another table has taken its name"
						    : strerror(-m->error));
		if (a->once && now.stage == SOURCE_APART)
			return TOOL_FAIL(FAILED, "%s: %s", s->name, now.why);
		if (a->once && now.settled)
			break;
	}
	sd_notify(0, "STOPPING=1");
	return a->once && !now.complete ? INCOMPLETE : 0;
}

static int open_source(const struct arguments *a, struct mirror *m, struct source *s)
{
	/* large */
	static struct redis redis;
	static struct redis_whole whole;
	static struct cluster cluster;
	static struct sentinel sentinel;
	static struct postgres postgres;
	static struct files files;
	int r;

	switch (a->kind) {
	case FROM_REDIS:
		redis_whole_init(&whole, &a->prefixes, m);
		redis_init(&redis, a->url, &whole);
		*s = redis_as_source(&redis);
		break;
	case FROM_CLUSTER:
		cluster_init(&cluster, a->url, a->nurls, a->slots, &a->prefixes, m);
		*s = cluster_as_source(&cluster);
		break;
	case FROM_SENTINEL:
		sentinel_init(&sentinel, &a->sentinel, &a->prefixes, m);
		*s = sentinel_as_source(&sentinel);
		break;
	case FROM_POSTGRES:
		postgres_init(&postgres, &a->postgres, &a->prefixes, m);
		*s = postgres_as_source(&postgres);
		break;
	case FROM_FILES:
		r = files_init(&files, a->file, &a->prefixes, m);
		if (r < 0)
			return TOOL_FAIL(FAILED, "%s: cannot be watched: %s", a->file,
				r == -EMFILE ? "no inotify instance is left; fs.inotify.max_user_instances"
					     : strerror(-r));
		*s = files_as_source(&files);
		break;
	}
	return 0;
}

static int run(const struct arguments *a)
{
	struct source source;
	struct mirror mirror;
	char err[512];
	int status;

	if (mirror_open(&mirror, a->table, &a->create, err, sizeof(err)) < 0)
		return TOOL_FAIL(FAILED, "%s", err);
	status = open_source(a, &mirror, &source);
	if (status == 0) {
		status = follow(a, &source, &mirror);
		source.deinit(source.of);
	}
	mirror_close(&mirror);
	return status;
}

/* ---- the command line -------------------------------------------------------------------------- */

enum { OPTION_ACL = 256, OPTION_VERSION };

static bool add_prefix(struct prefixes *p, const char *text)
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

static bool set_password(struct url *urls, unsigned n, char *err, size_t errlen)
{
	const char *password = getenv("REDISCLI_AUTH");

	if (*urls->password || !password)
		return true;
	if (strlen(password) >= sizeof(urls->password)) {
		snprintf(err, errlen, "REDISCLI_AUTH has more than %zu bytes", sizeof(urls->password) - 1);
		return false;
	}
	for (unsigned i = 0; i < n; i++)
		strcpy(urls[i].password, password);
	return true;
}

static bool has_scheme(const char *text, const char *scheme)
{
	return strncmp(text, scheme, strlen(scheme)) == 0;
}

static bool read_source(struct arguments *a, const char *text, char *err, size_t errlen)
{
	a->nurls = 1;
	if (has_scheme(text, "file:///")) {
		a->kind = FROM_FILES;
		a->file = text + strlen("file://");
		return true;
	}
	if (has_scheme(text, "postgresql://") || has_scheme(text, "postgres://")) {
		a->kind = FROM_POSTGRES;
		return postgres_url_parse(&a->postgres, text, err, errlen) == 0;
	}
	if (has_scheme(text, "redis+sentinel://")) {
		a->kind = FROM_SENTINEL;
		return url_parse_sentinel(&a->sentinel, text, err, errlen) == 0 &&
		       set_password(&a->sentinel.master, 1, err, errlen);
	}
	if (has_scheme(text, "redis+cluster://"))
		a->kind = FROM_CLUSTER;
	return (a->kind == FROM_CLUSTER ? url_parse_cluster(a->url, &a->nurls, &a->slots, text, err, errlen)
					: url_parse(a->url, text, err, errlen)) == 0 &&
	       set_password(a->url, a->nurls, err, errlen);
}

static int print_rights(const struct arguments *a)
{
	if (a->kind <= FROM_SENTINEL)
		redis_print_acl(&a->prefixes, a->kind == FROM_CLUSTER);
	else if (a->kind == FROM_POSTGRES)
		postgres_print_rights(&a->postgres);
	else
		return TOOL_FAIL(EX_USAGE, "files need no rights: --acl is for Redis and PostgreSQL");
	return 0;
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
	if (a.acl && optind == argc)
		return print_rights(&a);
	if (argc - optind != (a.acl ? 1 : 2))
		return fputs("usage: reddn-follow [OPTIONS] SOURCE TABLE\n", stderr), EX_USAGE;
	if (!read_source(&a, argv[optind], err, sizeof(err)))
		return TOOL_FAIL(EX_USAGE, "%s", err);
	if (a.acl)
		return print_rights(&a);
	a.table = argv[optind + 1];
	return run(&a);
}
