/* SPDX-License-Identifier: BSD-2-Clause */
/* reddn-memcached - sets up a memcached whose items NICs can read, and proves that they can; see
 * reddn-memcached(8). */
#include "memcached/cache-layout.h"
#include "memcached/options.h"
#include "memcached/proof.h"
#include "tools/common/table-print.h"
#include "tools/common/tool.h"
#include "tools/common/verbs.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/file.h"
#include "util/json.h"
#include "util/output.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage_text[] =
	"usage: reddn-memcached setup [OPTIONS]\n"
	"       reddn-memcached check [OPTIONS]\n"
	"\n"
	"Prepares a memcached whose items a NIC can read.\n"
	"\n"
	"  -j, --json            results as JSON\n"
	"  -h, --help            this text; of a verb, what it takes\n"
	"      --version         the version\n"
	"setup: let a unit of systemd start memcached with its items in a file\n"
	"  -u, --unit NAME       of memcached, a service (memcached.service)\n"
	"  -c, --conf FILE       its options (/etc/memcached.conf)\n"
	"  -r, --root DIR        work on the files below DIR (/)\n"
	"check: prove by keys that are set and deleted how memcached has its items\n"
	"  -f, --file FILE       with its items (/dev/shm/reddn/memcached.cache)\n"
	"  -s, --server ADDRESS  of memcached, HOST:PORT or a socket (127.0.0.1:11211)\n";

enum { REFUSED = 1, TRIES = 50, PAUSE_MS = 100, TIMEOUT_MS = 5000 };

struct arguments {
	const char *unit, *conf, *root, *file, *server;
	bool json;
};

DEFINE_CLEANUP(struct json_object *, json_object_put)
DEFINE_CLEANUP(FILE *, fclose)

static int print(
	const struct arguments *a, struct json_object *o, const struct table_column *columns, unsigned n)
{
	if (a->json)
		puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	else
		table_print_object(stdout, o, columns, n);
	return 0;
}

/* ---- check ---------------------------------------------------------------------------------- */

static const struct table_column proof_columns[] = {
	{"file", "file", TABLE_TEXT},
	{"server", "server", TABLE_TEXT},
	{"version", "version", TABLE_TEXT},
	{"pid", "process", TABLE_TEXT},
	{"hash", "hash", TABLE_TEXT},
	{"power", "hash table, power of two", TABLE_TEXT},
	{"table_offset", "its offset", TABLE_TEXT},
};

static int refuse(const struct arguments *a, const char *why)
{
	CLEANUP(json_object_putp) struct json_object *o = json_object_new_object();

	json_object_object_add(o, "served", json_object_new_boolean(false));
	json_add_text(o, "why", why);
	if (a->json)
		puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	else
		tool_complain("%s cannot be served: %s", a->file, why);
	return REFUSED;
}

static int print_proof(const struct arguments *a, const struct proof *p)
{
	CLEANUP(json_object_putp) struct json_object *o = json_object_new_object();

	json_object_object_add(o, "served", json_object_new_boolean(true));
	json_add_text(o, "file", a->file);
	json_add_text(o, "server", a->server);
	json_add_text(o, "version", p->version);
	json_add_count(o, "pid", p->pid);
	json_add_count(o, "generation", p->generation);
	json_add_text(o, "hash", cache_hash_name(p->hash));
	json_add_count(o, "power", p->power);
	json_add_count(o, "table_offset", p->table_off);
	json_add_count(o, "clock", p->clock);
	return print(a, o, proof_columns, COUNT(proof_columns));
}

static int cmd_check(const struct arguments *a)
{
	CLEANUP(cleanup_close) int fd = file_open(a->file, O_RDONLY);
	struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	struct reader reader;
	struct proof proof;
	struct talk talk = {0};
	char why[PROOF_WHY];
	struct stat st;
	int e = -EAGAIN;

	if (fd < 0)
		return tool_complain("%s: %s", a->file, file_error(fd));
	if (fstat(fd, &st) < 0)
		return tool_complain("%s: %m", a->file);
	if (reader_init(&reader, fd, (uint64_t)st.st_size, why, sizeof(why)) < 0)
		return refuse(a, why);
	e = talk_open(&talk, a->server, TIMEOUT_MS, why, sizeof(why));
	talk_deinit(&talk);
	if (e < 0)
		return tool_complain("%s", why);
	e = -EAGAIN;
	for (unsigned i = 0; i < TRIES && e == -EAGAIN; i++) {
		if (i)
			nanosleep(&pause, NULL);
		e = proof_make(&proof, &reader, &talk, why);
	}
	talk_close(&talk);
	if (e == -EINVAL || e == -EAGAIN)
		return refuse(a, why);
	return e < 0 ? tool_complain("%s: %s", a->server, why) : print_proof(a, &proof);
}

/* ---- setup ---------------------------------------------------------------------------------- */

static bool join(char path[PATH_MAX], const char *root, const char *dir, const char *name, const char *end)
{
	return snprintf(path, PATH_MAX, "%s%s%s%s", root, dir, name, end) < PATH_MAX;
}

/* The options of Debian's memcached.conf: each line that begins with a hyphen has some
 * (systemd-memcached-wrapper) */
static int read_conf(const char *path, struct options *o)
{
	CLEANUP(fclosep) FILE *f = fopen(path, "re");
	char program[] = "memcached", line[1024], *argv[256] = {program}, *rest;
	int argc = 1, e = 0;

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "#\n")] = 0;
		if (line[strspn(line, " \t")] != '-')
			continue;
		for (char *w = strtok_r(line, " \t", &rest); w && argc < 255;
			w = strtok_r(NULL, " \t", &rest)) {
			argv[argc] = strdup(w);
			if (!argv[argc++])
				return -ENOMEM;
		}
	}
	e = options_read(o, argc, argv);
	while (argc > 1)
		free(argv[--argc]);
	return e;
}

/* 0, or an exit status */
static int check_options(const char *conf, const struct options *o, struct reddn_cache_header *layout)
{
	if (o->unserved)
		return TOOL_FAIL(REFUSED, "%s: %s", conf, o->unserved);
	if (cache_layout_make(layout, o->memory, o->power) < 0)
		return TOOL_FAIL(REFUSED, "%s: -m %" PRIu64 " with hashpower=%u cannot be served", conf,
			o->memory >> 20, o->power);
	return 0;
}

/* Makes the folders of @path */
static int make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

/* 1: @to is @from already */
static int copy(const char *from, const char *to)
{
	CLEANUP(cleanup_close) int in = file_open(from, O_RDONLY), out = -1;
	char bytes[4096], before[4096];
	long n = in < 0 ? in : file_read(in, bytes, sizeof(bytes)), m;

	if (n < 0)
		return (int)n;
	out = open(to, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (out < 0)
		return -errno;
	m = file_read(out, before, sizeof(before));
	if (m == n && memcmp(bytes, before, (size_t)n) == 0)
		return 1;
	return ftruncate(out, 0) < 0 || pwrite(out, bytes, (size_t)n, 0) != n ? -errno : 0;
}

static int print_setup(const struct arguments *a, const char *drop_in, bool unchanged,
	const struct reddn_cache_header *layout)
{
	CLEANUP(json_object_putp) struct json_object *o = json_object_new_object();
	char file[PATH_MAX], unit[64];

	snprintf(unit, sizeof(unit), "%.*s", (int)(strlen(a->unit) - strlen(".service")), a->unit);
	snprintf(file, sizeof(file), "/dev/shm/reddn/%s.cache", unit);
	json_add_text(o, "drop_in", drop_in);
	json_object_object_add(o, "unchanged", json_object_new_boolean(unchanged));
	json_add_text(o, "file", file);
	json_add_count(o, "bytes", layout->file_size);
	if (a->json) {
		puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
		return 0;
	}
	printf("%s %s: %s starts memcached with its items in %s\n", unchanged ? "unchanged" : "written",
		drop_in, a->unit, file);
	printf("the file will take %" PRIu64 " MiB of memory: slab pages %" PRIu64
	       " MiB, hash tables %" PRIu64 " MiB\n",
		layout->file_size >> 20, layout->pages_size >> 20, layout->pages_off >> 20);
	printf("next: systemctl daemon-reload && systemctl restart %s && reddn-memcached check -f %s\n",
		a->unit, file);
	return 0;
}

static bool is_unit(const char *name)
{
	size_t len = strlen(name), end = strlen(".service");

	return len > end && strcmp(name + len - end, ".service") == 0 && !strchr(name, '/');
}

static int cmd_setup(const struct arguments *a)
{
	char conf[PATH_MAX], drop_in[PATH_MAX], from[PATH_MAX];
	struct reddn_cache_header layout;
	struct options o;
	int e;

	if (!is_unit(a->unit))
		return tool_complain("\"%s\" is no name of a service, such as memcached.service", a->unit);
	if (!join(conf, a->root, "", a->conf, "") ||
		!join(from, a->root, REDDN_DATADIR, "/memcached.conf", "") ||
		!join(drop_in, a->root, "/etc/systemd/system/", a->unit, ".d/reddn.conf"))
		return tool_complain("a path is too long");
	e = read_conf(conf, &o);
	if (e < 0)
		return tool_complain("%s: %s", conf, strerror(-e));
	e = check_options(conf, &o, &layout);
	if (e)
		return e;
	e = make_folders(drop_in);
	if (e == 0)
		e = copy(from, drop_in);
	if (e < 0)
		return tool_complain("%s cannot be written from %s: %s", drop_in, from, strerror(-e));
	return print_setup(a, drop_in, e == 1, &layout);
}

/* --------------------------------------------------------------------------------------------- */

static const struct option options[] = {
	{"unit", required_argument, NULL, 'u'},
	{"conf", required_argument, NULL, 'c'},
	{"root", required_argument, NULL, 'r'},
	{"file", required_argument, NULL, 'f'},
	{"server", required_argument, NULL, 's'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const struct command {
	struct verb verb;
	int (*run)(const struct arguments *a);
} commands[] = {
	{{{.name = "setup"}, 0, 0, "ucrj", "  reddn-memcached setup && systemctl restart memcached\n"},
		cmd_setup},
	{{{.name = "check"}, 0, 0, "fsj", "  reddn-memcached check --json --server 127.0.0.1:11212\n"},
		cmd_check},
};

static bool set_option(void *arguments, int letter, const char *text)
{
	struct arguments *a = arguments;

	switch (letter) {
	case 'u':
		a->unit = text;
		return true;
	case 'c':
		a->conf = text;
		return true;
	case 'r':
		a->root = text;
		return true;
	case 'f':
		a->file = text;
		return true;
	case 's':
		a->server = text;
		return true;
	default: /* 'j' */
		a->json = true;
		return true;
	}
}

int main(int argc, char **argv)
{
	static const struct verbs verbs = {.tool = "reddn-memcached",
		.usage = usage_text,
		.version = "reddn-memcached " REDDN_VERSION "\n",
		.table = commands,
		.n = COUNT(commands),
		.size = sizeof(commands[0]),
		.letters = "u:c:r:f:s:j",
		.options = options,
		.set = set_option};
	struct arguments a = {
		.unit = "memcached.service",
		.conf = "/etc/memcached.conf",
		.root = "",
		.file = "/dev/shm/reddn/memcached.cache",
		.server = "127.0.0.1:11211",
	};
	const struct command *command;
	char **args;
	int status;

	output_begin(2);
	command = verbs_parse(&verbs, argc, argv, &a, &args, &status);
	return command ? command->run(&a) : status;
}
