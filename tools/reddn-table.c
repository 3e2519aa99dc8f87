/* SPDX-License-Identifier: BSD-2-Clause */
/* reddn-table - makes, fills, dumps, describes, mends and enlarges tables; see reddn-table(1). */
#include "libclient/reddn-table.h"
#include "protocol/table-format.h"
#include "tools/common/records.h"
#include "tools/common/tool.h"
#include "tools/common/units.h"
#include "tools/common/verbs.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/number.h"
#include "util/output.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage_text[] =
	"usage: reddn-table create [OPTIONS] TABLE\n"
	"       reddn-table load [--json] [--quiet] TABLE [FILE]\n"
	"       reddn-table dump [--json] TABLE\n"
	"       reddn-table stat [--json] TABLE\n"
	"       reddn-table repair [--json] [--quiet] TABLE\n"
	"       reddn-table grow [OPTIONS] TABLE\n"
	"\n"
	"Makes, fills and reads tables that NICs look keys up in.\n"
	"\n"
	"  -j, --json            records or results as JSON, one object per line\n"
	"  -q, --quiet           do not print progress or results\n"
	"  -h, --help            this text; of a verb, what it takes\n"
	"      --version         the version\n"
	"create: make an empty table\n"
	"  -c, --capacity N      expected entries (10000)\n"
	"  -b, --buckets N       buckets, a power of two (from the capacity)\n"
	"  -H, --heap SIZE       bytes for records (512 per entry)\n"
	"  -k, --max-key SIZE    longest key (64K)\n"
	"  -v, --max-value SIZE  longest value (64K)\n"
	"  -s, --seed N          seed of the hash (random)\n"
	"  -f, --replace         replace an existing table\n"
	"  -g, --grow            let its writer make it larger when it is nearly full\n"
	"  -S, --store           a store, which clients change through reddnd (max-key 256, max-value 1K)\n"
	"  -F, --from TABLE      of a store: with the entries, buckets and seed of a table\n"
	"  -e, --evict           of a store: where there is no room, remove what was put long ago\n"
	"load: read records from FILE or standard input, one per line: key TAB value\n"
	"dump: print all records\n"
	"stat: print size, usage and limits of the table\n"
	"repair: complete or undo what a killed writer left unfinished\n"
	"grow: make a larger table of the entries, which takes the name; options as of create (twice the "
	"size)\n"
	"SIZE and N may end in K, M, G, KiB, MiB or GiB.\n";

DEFINE_CLEANUP(struct reddn_table *, reddn_table_close)
DEFINE_CLEANUP(FILE *, fclose)

enum { GROW_STEP = 4096 }; /* buckets between two looks at signals */

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static void stop_on_signals(void)
{
	struct sigaction act = {.sa_handler = on_signal};

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
}

struct arguments {
	struct reddn_table_options create;
	enum records_format format;
	bool quiet;
	const char *from;
};

/* How many of the largest records the heap of a store has room for, those included that sessions hold */
static void print_extents(const struct reddn_table_stat *st)
{
	uint64_t extent = (st->header + reddn_store_payload(st->header, st->max_record) + 63) / 64 * 64;

	printf("a store: %" PRIu64 " extents of %" PRIu64 " bytes, if all have room for the largest record; "
	       "sessions that put hold as many as their depth\n",
		st->heap_size / extent, extent);
}

static int cmd_create(struct arguments *a, char **args)
{
	CLEANUP(reddn_table_closep) struct reddn_table *from = NULL;
	struct reddn_table *t;
	struct reddn_table_stat st;
	char err[512], size[UNITS_TEXT];

	int r = a->from ? reddn_table_open(&from, a->from, REDDN_TABLE_WRITE, err, sizeof(err)) : 0;

	a->create.from = from;
	if (r == 0)
		r = reddn_table_create(&t, args[0], &a->create, err, sizeof(err));
	if (r == -EEXIST && !a->create.replace)
		return tool_complain("%s; --replace replaces a table", err);
	if (r < 0)
		return tool_complain("%s", err);
	reddn_table_stat(t, &st);
	reddn_table_close(t);
	if (a->quiet)
		return 0;
	printf("%s: %" PRIu64 " buckets, for about %" PRIu64 " entries; heap of %s\n", args[0], st.buckets,
		st.buckets / 3, units_bytes(size, st.heap_size));
	if (st.header)
		print_extents(&st);
	return 0;
}

/* ---- load ---------------------------------------------------------------------------------- */

struct progress {
	bool shown;
	uint64_t total; /* 0: unknown */
	uint64_t last;  /* ms, clock_ms */
};

static void progress_print(struct progress *p, uint64_t done, uint64_t count, bool final)
{
	uint64_t now = clock_ms();
	unsigned part;

	if (!p->shown || (!final && now - p->last < 100))
		return;
	p->last = now;
	if (p->total) {
		part = done < p->total ? (unsigned)(done * 40 / p->total) : 40;
		fprintf(stderr, "\r[%.*s%*s] %3u%%  %" PRIu64 " records", (int)part,
			"########################################", (int)(40 - part), "",
			(unsigned)(done < p->total ? done * 100 / p->total : 100), count);
	} else {
		fprintf(stderr, "\r%" PRIu64 " records", count);
	}
	if (final)
		fputc('\n', stderr);
	fflush(stderr);
}

/* Describe why a put failed, and the remedy. */
static void explain_put(struct reddn_table *t, int r, const struct record_text *rec, char *buf, size_t len)
{
	char remedy[300] = "make it larger with reddn-table grow";
	struct reddn_table_stat st;

	reddn_table_stat(t, &st);
	switch (-r) {
	case ENOSPC:
		/* One that grows by itself could not: once more, for the reason */
		if (st.grow)
			reddn_table_grow(t, &(struct reddn_table_options){0}, remedy, sizeof(remedy));
		snprintf(buf, len,
			"the table is full: %" PRIu64 " entries in %" PRIu64 " buckets, %" PRIu64
			" of %" PRIu64 " bytes of heap used; %s",
			st.entries, st.buckets, st.heap_used, st.heap_size, remedy);
		break;
	case EMSGSIZE:
		snprintf(buf, len, "key of %zu bytes (up to %u), value of %zu bytes (up to %u)", rec->key_len,
			st.max_key, rec->val_len, st.max_value);
		break;
	case EINVAL:
		snprintf(buf, len, "the key is empty");
		break;
	case ENOTUNIQ:
		snprintf(buf, len,
			"another key has the same fingerprint; make the table again with another --seed");
		break;
	default:
		snprintf(buf, len, "%s", strerror(-r));
	}
}

/* Put the records of @reader until its end, a signal or an error, which @err describes. RECORDS_END or
 * -errno. */
static int load_records(struct reddn_table *t, struct records_reader *reader, struct progress *progress,
	uint64_t *count, char *err, size_t errlen)
{
	struct record_text rec;
	int r;

	while ((r = stopped ? -EINTR : records_next(reader, &rec)) == 0) {
		if (!rec.val) {
			snprintf(err, errlen, "no value: a line is key TAB value");
			return -EBADMSG;
		}
		r = reddn_table_put(t, rec.key, rec.key_len, rec.val, rec.val_len);
		if (r < 0) {
			explain_put(t, r, &rec, err, errlen);
			return r;
		}
		if (++*count % 256 == 0)
			progress_print(progress, reader->bytes, *count, false);
	}
	if (r != RECORDS_END)
		snprintf(err, errlen, "%s", r == -EBADMSG ? reader->why : strerror(-r));
	return r;
}

static int cmd_load(struct arguments *a, char **args)
{
	const char *name = args[1] && strcmp(args[1], "-") ? args[1] : "<standard input>";
	struct progress progress = {.shown = !a->quiet && isatty(STDERR_FILENO)};
	CLEANUP(reddn_table_closep) struct reddn_table *t = NULL;
	CLEANUP(fclosep) FILE *in = NULL;
	struct reddn_table_stat table;
	struct records_reader reader;
	struct stat st;
	uint64_t count = 0;
	char err[512] = "";
	int r;

	in = args[1] && strcmp(args[1], "-") ? fopen(args[1], "re") : stdin;
	if (!in)
		return tool_complain("%s: %s", args[1], strerror(errno));
	if (fstat(fileno(in), &st) == 0 && S_ISREG(st.st_mode))
		progress.total = (uint64_t)st.st_size;
	if (reddn_table_open(&t, args[0], REDDN_TABLE_WRITE, err, sizeof(err)) < 0)
		return tool_complain("%s", err);
	/* A signal ends the load between two records, so that none is in the table in part. */
	stop_on_signals();
	reddn_table_stat(t, &table);
	records_init(&reader, in, a->format, (size_t)table.max_key + table.max_value);
	r = load_records(t, &reader, &progress, &count, err, sizeof(err));
	progress_print(&progress, reader.bytes, count, true);
	if (r != RECORDS_END && stopped)
		tool_complain("stopped by a signal");
	else if (r != RECORDS_END && ferror(in))
		tool_complain("%s: %s", name, err);
	else if (r != RECORDS_END)
		tool_complain("%s:%" PRIu64 ": %s", name, reader.line, err);
	if (!a->quiet || r != RECORDS_END)
		fprintf(r == RECORDS_END ? stdout : stderr, "%s: %" PRIu64 " records loaded%s\n", args[0],
			count, r == RECORDS_END ? "" : " before that");
	records_deinit(&reader);
	return r == RECORDS_END ? 0 : 2;
}

/* ---- dump, stat ------------------------------------------------------------------------------ */

static int cmd_dump(struct arguments *a, char **args)
{
	struct reddn_table *t;
	struct reddn_table_entry e;
	uint64_t pos = 0, damaged = 0, expiring = 0;
	char err[512];
	int r;

	if (reddn_table_open(&t, args[0], 0, err, sizeof(err)) < 0)
		return tool_complain("%s", err);
	while ((r = reddn_table_next(t, &pos, &e)) != REDDN_TABLE_END) {
		if (r < 0) {
			tool_complain("%s: the record of bucket %" PRIu64 " is damaged", args[0], pos - 1);
			damaged++;
			continue;
		}
		records_write(stdout, a->format, &(struct record_text){e.key, e.key_len, e.val, e.val_len});
		expiring += e.expires != 0;
	}
	if (expiring)
		tool_complain("%s: %" PRIu64 " of the values expire, and their records do not say when",
			args[0], expiring);
	reddn_table_close(t);
	return damaged ? 2 : 0;
}

static void print_as_of(const struct reddn_table_stat *st)
{
	const struct reddn_as_of *as_of = &st->as_of;

	if (!(as_of->flags & REDDN_FOLLOWS))
		return;
	printf("source     epoch %u, %s\n", as_of->epoch,
		as_of->flags & REDDN_COMPLETE ? "complete" : "keys are missing");
	if (st->slots)
		printf("slots      %u to %u of Redis\n", st->slot, st->slot + st->slots - 1);
	if (as_of->host)
		printf("as of      %" PRIu64 " us of the source, %.3f s ago\n", as_of->source,
			clock_age_s(as_of->host));
}

static int cmd_stat(struct arguments *a, char **args)
{
	struct reddn_table *t;
	struct reddn_table_stat st;
	char err[512], used[UNITS_TEXT], heap[UNITS_TEXT], key[UNITS_TEXT], value[UNITS_TEXT],
		file[UNITS_TEXT];

	if (reddn_table_open(&t, args[0], 0, err, sizeof(err)) < 0)
		return tool_complain("%s", err);
	reddn_table_stat(t, &st);
	reddn_table_close(t);
	if (a->format == RECORDS_JSON)
		printf("{\"entries\": %" PRIu64 ", \"buckets\": %" PRIu64
		       ", \"load\": %.4f, \"heap_size\": %" PRIu64 ", \"heap_used\": %" PRIu64
		       ", \"max_key\": %u, \"max_value\": %u, \"max_record\": %u, \"grow\": %s"
		       ", \"moves\": %" PRIu64 ", \"moving\": %s, \"seed\": %" PRIu64 ", \"epoch\": %" PRIu64
		       ", \"buckets_off\": %" PRIu64 ", \"heap_off\": %" PRIu64 ", \"live_off\": %" PRIu64
		       ", \"file_size\": %" PRIu64 ", \"follows\": %s, \"complete\": %s"
		       ", \"source_epoch\": %u, \"slot\": %u, \"slots\": %u, \"as_of_source\": %" PRIu64
		       ", \"as_of_host\": %" PRIu64 ", \"store\": %s, \"header\": %u, \"idle\": %" PRIu64
		       ", \"evict\": %s}\n",
			st.entries, st.buckets, (double)st.entries / (double)st.buckets, st.heap_size,
			st.heap_used, st.max_key, st.max_value, st.max_record, st.grow ? "true" : "false",
			st.moves / 2, st.moves & 1 ? "true" : "false", st.hash_seed, st.epoch, st.buckets_off,
			st.heap_off, st.live_off, st.file_size,
			st.as_of.flags & REDDN_FOLLOWS ? "true" : "false",
			st.as_of.flags & REDDN_COMPLETE ? "true" : "false", st.as_of.epoch, st.slot, st.slots,
			st.as_of.source, st.as_of.host, st.header ? "true" : "false", st.header, st.idle,
			st.evict ? "true" : "false");
	else
		printf("entries    %" PRIu64 "\n"
		       "buckets    %" PRIu64 " (%.1f%% used, up to about 48%% can be%s)\n"
		       "heap       %s of %s used (%.1f%%)\n"
		       "max key    %s\n"
		       "max value  %s\n"
		       "moves      %" PRIu64 "%s\n"
		       "seed       0x%016" PRIx64 "\n"
		       "file       %s: buckets at %" PRIu64 ", heap at %" PRIu64 "\n",
			st.entries, st.buckets, 100.0 * (double)st.entries / (double)st.buckets,
			st.grow ? "; its writer makes it larger" : "", units_bytes(used, st.heap_used),
			units_bytes(heap, st.heap_size), 100.0 * (double)st.heap_used / (double)st.heap_size,
			units_bytes(key, st.max_key), units_bytes(value, st.max_value), st.moves / 2,
			st.moves & 1 ? ", one unfinished: a writer is moving an entry, or died doing so" : "",
			st.hash_seed, units_bytes(file, st.file_size), st.buckets_off, st.heap_off);
	if (a->format != RECORDS_JSON)
		print_as_of(&st);
	if (a->format != RECORDS_JSON && st.header)
		printf("store      %u bytes before each record, %" PRIu64 " buckets of keys without one%s\n",
			st.header, st.idle, st.evict ? "; it evicts" : "");
	return 0;
}

/* ---- repair ----------------------------------------------------------------------------------- */

static int cmd_repair(struct arguments *a, char **args)
{
	struct reddn_table *t;
	struct reddn_table_repair done;
	char err[512];

	if (reddn_table_open(&t, args[0], REDDN_TABLE_WRITE, err, sizeof(err)) < 0)
		return tool_complain("%s", err);
	reddn_table_repaired(t, &done);
	reddn_table_close(t);
	if (a->format == RECORDS_JSON)
		printf("{\"moves\": %u, \"entries\": %" PRIu64 ", \"replacements\": %u}\n", done.moves,
			done.entries, done.replacements);
	else if (!a->quiet && !done.moves && !done.entries && !done.replacements)
		printf("%s: nothing to repair\n", args[0]);
	else if (!a->quiet)
		printf("%s: repaired: %u unfinished move%s ended, %" PRIu64 " incomplete entries removed%s\n",
			args[0], done.moves, done.moves == 1 ? "" : "s", done.entries,
			done.replacements ? ", an unfinished replacement undone" : "");
	return 0;
}

/* ---- grow ------------------------------------------------------------------------------------- */

static int cmd_grow(struct arguments *a, char **args)
{
	struct progress progress = {.shown = !a->quiet && isatty(STDERR_FILENO)};
	CLEANUP(reddn_table_closep) struct reddn_table *t = NULL;
	struct reddn_table_stat st, now;
	char err[512], before[UNITS_TEXT], after[UNITS_TEXT];
	uint64_t done = 0;
	int r;

	if (reddn_table_open(&t, args[0], REDDN_TABLE_WRITE, err, sizeof(err)) < 0 ||
		reddn_table_grow(t, &a->create, err, sizeof(err)) < 0)
		return tool_complain("%s", err);
	stop_on_signals();
	reddn_table_stat(t, &st);
	progress.total = st.buckets;
	for (r = 0; r == 0 && !stopped; done += GROW_STEP) {
		r = reddn_table_grow_step(t, GROW_STEP, err, sizeof(err));
		progress_print(&progress, done, done * st.entries / st.buckets, false);
	}
	if (r == 0)
		return tool_complain("stopped by a signal; the table is as it was");
	if (r < 0)
		return tool_complain("%s", err);
	progress_print(&progress, st.buckets, st.entries, true);
	reddn_table_stat(t, &now);
	if (a->format == RECORDS_JSON)
		printf("{\"entries\": %" PRIu64 ", \"buckets\": %" PRIu64 ", \"heap_size\": %" PRIu64 "}\n",
			now.entries, now.buckets, now.heap_size);
	else if (!a->quiet)
		printf("%s: %" PRIu64 " entries, from %" PRIu64 " buckets and a heap of %s to %" PRIu64
		       " and %s\n",
			args[0], now.entries, st.buckets, units_bytes(before, st.heap_size), now.buckets,
			units_bytes(after, now.heap_size));
	return 0;
}

/* ---- the command line -------------------------------------------------------------------------- */

static const struct command {
	struct verb verb;
	int (*run)(struct arguments *a, char **args);
} commands[] = {
	{{{.name = "create"}, 1, 1, "cbHkvsfgSeFq",
		 "  reddn-table create --capacity 1M --heap 1G /dev/shm/reddn/users.table\n"},
		cmd_create},
	{{{.name = "load"}, 1, 2, "jq", "  reddn-table load /dev/shm/reddn/users.table users.tsv\n"},
		cmd_load},
	{{{.name = "dump"}, 1, 1, "j", "  reddn-table dump /dev/shm/reddn/users.table | sort >users.tsv\n"},
		cmd_dump},
	{{{.name = "stat"}, 1, 1, "j", "  reddn-table stat --json /dev/shm/reddn/users.table\n"}, cmd_stat},
	{{{.name = "repair"}, 1, 1, "jq", "  reddn-table repair /dev/shm/reddn/users.table\n"}, cmd_repair},
	{{{.name = "grow"}, 1, 1, "cbHkvsjq",
		 "  reddn-table grow --capacity 4M /dev/shm/reddn/users.table\n"},
		cmd_grow},
};

static const struct option options[] = {
	{"capacity", required_argument, NULL, 'c'},
	{"buckets", required_argument, NULL, 'b'},
	{"heap", required_argument, NULL, 'H'},
	{"max-key", required_argument, NULL, 'k'},
	{"max-value", required_argument, NULL, 'v'},
	{"seed", required_argument, NULL, 's'},
	{"replace", no_argument, NULL, 'f'},
	{"grow", no_argument, NULL, 'g'},
	{"store", no_argument, NULL, 'S'},
	{"from", required_argument, NULL, 'F'},
	{"evict", no_argument, NULL, 'e'},
	{"json", no_argument, NULL, 'j'},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static bool set_option(void *arguments, int letter, const char *text)
{
	struct arguments *a = arguments;
	uint64_t v = 0;

	if (letter == 'F') {
		a->from = text;
		return true;
	}
	/* the library takes 0 for the default */
	if (text && (number_parse_size(text, letter == 'k' || letter == 'v' ? UINT32_MAX : UINT64_MAX, &v) ||
			    v == 0))
		return false;
	switch (letter) {
	case 'c':
		a->create.capacity = v;
		break;
	case 'b':
		a->create.buckets = v;
		break;
	case 'H':
		a->create.heap_size = v;
		break;
	case 'k':
		a->create.max_key = (uint32_t)v;
		break;
	case 'v':
		a->create.max_value = (uint32_t)v;
		break;
	case 's':
		a->create.seed = v;
		break;
	case 'f':
		a->create.replace = 1;
		break;
	case 'g':
		a->create.grow = 1;
		break;
	case 'S':
		a->create.store = 1;
		break;
	case 'e':
		a->create.evict = 1;
		break;
	case 'j':
		a->format = RECORDS_JSON;
		break;
	case 'q':
		a->quiet = true;
		break;
	}
	return true;
}

int main(int argc, char **argv)
{
	static const struct verbs verbs = {.tool = "reddn-table",
		.usage = usage_text,
		.version = "reddn-table " REDDN_VERSION "\n",
		.table = commands,
		.n = COUNT(commands),
		.size = sizeof(commands[0]),
		.letters = "c:b:H:k:v:s:fgSeF:jq",
		.options = options,
		.values = "; write it as in 4096, 64K or 1GiB",
		.set = set_option};
	struct arguments a = {0};
	const struct command *command;
	char **args;
	int status;

	output_begin(2);
	command = verbs_parse(&verbs, argc, argv, &a, &args, &status);
	return command ? command->run(&a, args) : status;
}
