/* SPDX-License-Identifier: BSD-2-Clause */
/* reddn - sends requests to the NIC of a reddnd server; see reddn(1). */
#include "libclient/reddn.h"
#include "protocol/wire.h"
#include "tools/common/records.h"
#include "tools/common/tool.h"
#include "tools/common/units.h"
#include "tools/common/verbs.h"
#include "tools/load/load.h"
#include "tools/reddn.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/number.h"
#include "util/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage_text[] =
	"usage: reddn ping  [OPTIONS] HOST[:PORT][,...] OFFLOAD\n"
	"       reddn get   [OPTIONS] HOST[:PORT][,...] OFFLOAD KEY...\n"
	"       reddn exists [OPTIONS] HOST[:PORT][,...] OFFLOAD KEY...\n"
	"       reddn put   [OPTIONS] HOST[:PORT] OFFLOAD KEY [VALUE|-]\n"
	"       reddn delete [OPTIONS] HOST[:PORT] OFFLOAD KEY...\n"
	"       reddn call  [OPTIONS] HOST[:PORT][,...] OFFLOAD [ARGUMENT...]\n"
	"       reddn cas   [OPTIONS] HOST[:PORT] OFFLOAD WORD OLD NEW\n"
	"       reddn faa   [OPTIONS] HOST[:PORT] OFFLOAD WORD NUMBER\n"
	"       reddn lock  [OPTIONS] HOST[:PORT] OFFLOAD WORD COMMAND [ARGUMENT...]\n"
	"       reddn append [OPTIONS] HOST[:PORT] OFFLOAD [VALUE|-]\n"
	"       reddn log   [OPTIONS] HOST[:PORT] OFFLOAD\n"
	"       reddn bench [OPTIONS] HOST[:PORT][,...] OFFLOAD\n"
	"       reddn mc COMMAND\n"
	"\n"
	"Asks servers that run reddnd, over any RDMA NIC.\n"
	"\n"
	"  -p, --port N        port of the server (7471)\n"
	"  -t, --timeout MS    limit for connecting and for one request (5000)\n"
	"  -L, --lasting       when the session is lost, ask again with another one\n"
	"  -A, --max-age MS    ping, get, exists, bench: no older answers of a table with a source\n"
	"  -P, --policy P      which of several hosts first: first of the list (first), or any (spread)\n"
	"  -H, --shards redis  sets of hosts, with semicolons between them, by the slot of a key in a "
	"cluster\n"
	"  -K, --token-file F  file with the key of access tokens, if the server requires them\n"
	"  -j, --json          print results as JSON\n"
	"  -h, --help          this text; of a verb, what it takes\n"
	"      --version       the version\n"
	"ping: show the offload, and time gets of an absent key\n"
	"  -c, --count N       number of gets (4)\n"
	"  -i, --interval MS   time between two gets (1000)\n"
	"get: print the value of each key on a line\n"
	"  -e, --escape        print key TAB value with escapes, as reddn-table dump does\n"
	"exists: print those of the keys that exist, each on a line\n"
	"  -f, --first         stop at the first that is missing\n"
	"put: put a key in a store; without VALUE, or with -, standard input is the value\n"
	"  -E, --ttl MS        the value expires after so long\n"
	"delete: delete keys of a store\n"
	"  -v, --if-version N  put, delete: only if the key has this version, 0: if it is absent\n"
	"call: call any program; an argument is VALUE or NAME=VALUE, a value a number, text, or "
	"hex:0011aaff\n"
	"  -x, --hex           print the reply as hexadecimal lines, not its fields\n"
	"  -r, --raw           print the bytes of the reply\n"
	"cas: swap a word for NEW if it is OLD, and print what it was\n"
	"faa: add to a word, modulo 2^64, and print what it was\n"
	"lock: run COMMAND while the lock in a word is held, with its token in REDDN_TOKEN\n"
	"  -l, --lease MS      lease, the same for all clients of the lock (10000)\n"
	"  -w, --wait MS       wait for the lock at most so long (without a limit)\n"
	"append: append to a log, and print the number of the entry; without VALUE, or with -, each line of\n"
	"standard input\n"
	"log: print the entries of a log, each on a line\n"
	"  -e, --escape        print number TAB value with escapes\n"
	"  -F, --follow        wait for further ones\n"
	"  -N, --from N        begin with this number (0), or with the end\n"
	"  -W, --patience MS   wait so long for an entry that is under way (1000)\n"
	"bench: time many gets of random keys\n"
	"  -T, --table FILE    take the keys from this table\n"
	"  -k, --keys FILE     take the keys from this file: key, or key TAB value, per line\n"
	"  -u, --put[=N]       put the values in that file, N percent of the requests (100)\n"
	"  -V, --verify        compare the answers with the values in that file\n"
	"  -d, --depth N       outstanding requests per connection (16)\n"
	"  -C, --connections N connections of each client (1)\n"
	"  -n, --clients N     number of clients (1)\n"
	"  -c, --count N       number of gets\n"
	"  -s, --seconds N     duration without --count (5)\n"
	"  -R, --rate N        gets per second at most\n"
	"  -a, --absent N      percentage of gets for absent keys (0)\n"
	"  -S, --seed N        seed of the random order (1)\n"
	"mc: get items from a pool of memcacheds; reddn mc --help shows how\n"
	"Exit status: 0; 1 if a key was not found, an answer was wrong, a word was not OLD, a lock is\n"
	"held, or entries are missing; 2 for errors. That of COMMAND.\n";

struct arguments {
	struct load_options b;
	uint64_t interval_ms;
	bool escape, first;
	enum call_output output;
	uint32_t lease_ms;
	int wait_ms;
	uint64_t version;           /* that a key must have: */
	const uint64_t *if_version; /* this one, or NULL */
	uint64_t ttl_ms;
	bool follow;
	struct reddn_log log;
};

DEFINE_CLEANUP(struct reddn *, reddn_close)

static struct reddn *open_connection(const struct arguments *a)
{
	struct reddn *c;
	char err[256];

	if (reddn_connect(&c, &a->b.connect, err, sizeof(err)) < 0) {
		tool_complain("%s", err);
		return NULL;
	}
	return c;
}

static const char *shape_name(const struct reddn_info *i)
{
	if (i->shape == REDDN_EXISTS)
		return "exists";
	return i->shape == REDDN_OPAQUE ? "opaque" : i->record_max ? "store" : "table";
}

static void print_info(const struct arguments *a, const struct reddn_info *i, double connect_us)
{
	char one[UNITS_TEXT], two[UNITS_TEXT];

	if (a->b.json) {
		printf("{\"session\": %" PRIu64
		       ", \"shape\": \"%s\", \"depth\": %u, \"slot_size\": %u, \"request_len\": %u"
		       ", \"reply_max\": %u, \"connect_us\": %.1f",
			i->session, shape_name(i), i->depth, i->slot_size, i->request_len, i->reply_max,
			connect_us);
		if (i->shape != REDDN_OPAQUE)
			printf(", \"buckets\": %" PRIu64
			       ", \"max_key\": %u, \"max_value\": %u, \"keys\": %u, \"exists_keys\": %u",
				i->buckets, i->max_key, i->max_value, i->keys, i->exists_keys);
		puts("}");
		return;
	}
	printf("%s: session %" PRIu64 ", connected in %s, %u requests of %u bytes, slots of %s\n",
		a->b.connect.offload, i->session, units_time(one, (uint64_t)(connect_us * 1000)), i->depth,
		i->request_len, units_bytes(two, i->slot_size));
	if (i->shape != REDDN_OPAQUE)
		printf("%s: %" PRIu64 " buckets, keys up to %s, values up to %s\n", shape_name(i), i->buckets,
			units_bytes(one, i->max_key), units_bytes(two, i->max_value));
	if (i->keys > 1 || i->exists_keys)
		printf("requests of up to %u keys; to know which exist, %u\n", i->keys, i->exists_keys);
}

static void print_as_of(const struct arguments *a, struct reddn *c)
{
	struct reddn_info i;
	const char *complete;

	reddn_get_info(c, &i);
	complete = i.as_of.flags & REDDN_COMPLETE ? "true" : "false";
	if (!(i.as_of.flags & REDDN_FOLLOWS))
		return;
	if (a->b.json)
		printf("{\"as_of_source\": %" PRIu64 ", \"as_of_host\": %" PRIu64
		       ", \"source_epoch\": %u, \"complete\": %s}\n",
			i.as_of.source, i.as_of.host, i.as_of.epoch, complete);
	else if (!i.as_of.host)
		puts("the table follows a source, and has not been as new as it yet");
	else
		printf("as new as its source %.3f s ago%s\n", clock_age_s(i.as_of.host),
			*complete == 't' ? "" : "; keys are missing");
}

static int cmd_ping(struct arguments *a, char **keys)
{
	static const char absent[] = "\x01 no such key: reddn ping";
	char text[UNITS_TEXT];
	uint64_t started = clock_ns(), count = a->b.count ? a->b.count : 4;
	CLEANUP(reddn_closep) struct reddn *c = open_connection(a);
	struct reddn_info info;
	char buf[1];
	size_t len;
	int r = 0;

	(void)keys;
	if (!c)
		return 2;
	reddn_get_info(c, &info);
	print_info(a, &info, (double)(clock_ns() - started) / 1000);
	for (uint64_t i = 0; info.shape == REDDN_TABLE && i < count && r >= 0; i++) {
		size_t key_len = sizeof(absent) - 1 < info.max_key ? sizeof(absent) - 1 : info.max_key;
		double us;

		if (i)
			nanosleep(&(struct timespec){(time_t)(a->interval_ms / 1000),
					  (long)(a->interval_ms % 1000) * 1000000},
				NULL);
		started = clock_ns();
		r = reddn_get(c, absent, key_len, buf, sizeof(buf), &len);
		/* If a table has such a key, its value may be longer than the buffer. */
		if (r == -EMSGSIZE && len)
			r = 0;
		us = (double)(clock_ns() - started) / 1000;
		if (r < 0)
			tool_complain("%s", call_error(c, r));
		else if (a->b.json)
			printf("{\"seq\": %" PRIu64 ", \"us\": %.1f}\n", i + 1, us);
		else
			printf("reply %" PRIu64 " in %s\n", i + 1, units_time(text, (uint64_t)(us * 1000)));
		if (fflush(stdout) != 0)
			r = -EIO;
	}
	print_as_of(a, c);
	return r < 0 ? 2 : 0;
}

/* A value of a store has a version */
static void print_value(const struct arguments *a, const struct record_text *rec, uint64_t version)
{
	if (a->b.json && version) {
		fputs("{", stdout);
		records_write_member(stdout, "key", rec->key, rec->key_len);
		fputs(", ", stdout);
		records_write_member(stdout, "value", rec->val, rec->val_len);
		printf(", \"version\": %" PRIu64 "}\n", version);
		return;
	}
	if (a->b.json || a->escape) {
		records_write(stdout, a->b.json ? RECORDS_JSON : RECORDS_TSV, rec);
		return;
	}
	fwrite(rec->val, 1, rec->val_len, stdout);
	putchar('\n');
}

/* 0, 1 if it was not found, 2 if it cannot be known */
static int print_answer(const struct arguments *a, struct reddn *c, const struct reddn_mget *m)
{
	const char *key = m->key;

	if (m->status == 0) {
		print_value(a, &(struct record_text){m->key, m->key_len, m->buf, m->len}, m->version);
		return 0;
	}
	/* A length is that of a value which is longer than those of the table before; else the key is too
	 * long to be in the table */
	if (m->status != REDDN_MISS && (m->status != -EMSGSIZE || m->len))
		return tool_complain("%s: %s", key, call_error(c, m->status));
	fprintf(stderr, "reddn: %s: not found\n", key);
	return 1;
}

/* As many keys at a time as a request takes, and one after the other if that is one. */
static int cmd_get(struct arguments *a, char **keys)
{
	CLEANUP(reddn_closep) struct reddn *c = NULL;
	CLEANUP(cleanup_free) uint8_t *buf = NULL;
	struct reddn_mget m[REDDN_WIRE_RECORDS];
	struct reddn_info info;
	int ret = 0;

	for (unsigned i = 0; keys[i]; i++)
		if (!*keys[i])
			return tool_complain("key %u is empty; a key has at least one byte", i + 1);
	c = open_connection(a);
	if (!c)
		return 2;
	reddn_get_info(c, &info);
	buf = malloc(info.keys * (info.max_value + 1ul) + 1);
	if (!buf)
		return tool_complain("%s", strerror(ENOMEM));
	while (*keys && ret < 2) {
		unsigned n = 0;
		int r;

		for (; *keys && n < info.keys; keys++, n++)
			m[n] = (struct reddn_mget){.key = *keys,
				.key_len = strlen(*keys),
				.buf = buf + n * (info.max_value + 1ul),
				.buf_len = info.max_value};
		r = n ? reddn_mget(c, m, n) : -EINVAL;
		if (r < 0)
			return tool_complain("%s: %s", n ? (const char *)m[0].key : *keys, call_error(c, r));
		for (unsigned i = 0; i < n && ret < 2; i++) {
			r = print_answer(a, c, &m[i]);
			ret = r > ret ? r : ret;
		}
	}
	return ret;
}

/* 0, 1 if it is missing, 2 if it cannot be known */
static int print_exists(const struct arguments *a, struct reddn *c, const struct reddn_exists *e)
{
	const char *key = e->key;
	/* one that is too long for the table is not in it */
	const bool missing = e->status == REDDN_MISS || e->status == -EMSGSIZE;

	if (e->status && !missing)
		return tool_complain("%s: %s", key, call_error(c, e->status));
	if (a->b.json) {
		fputs("{", stdout);
		records_write_member(stdout, "key", e->key, e->key_len);
		printf(", \"exists\": %s}\n", missing ? "false" : "true");
	} else if (!missing) {
		puts(key);
	}
	if (missing)
		fprintf(stderr, "reddn: %s: not found\n", key);
	return missing;
}

static int cmd_exists(struct arguments *a, char **keys)
{
	CLEANUP(cleanup_free) struct reddn_exists *all = NULL;
	CLEANUP(reddn_closep) struct reddn *c = NULL;
	struct reddn_info info;
	size_t n = 0, first;
	int ret = 0, r;

	while (keys[n])
		if (!*keys[n++])
			return tool_complain("key %zu is empty; a key has at least one byte", n);
	all = calloc(n, sizeof(*all));
	if (!all)
		return tool_complain("%s", strerror(ENOMEM));
	for (size_t i = 0; i < n; i++)
		all[i] = (struct reddn_exists){.key = keys[i], .key_len = strlen(keys[i])};
	c = open_connection(a);
	if (!c)
		return 2;
	reddn_get_info(c, &info);
	if (!info.exists_keys)
		return tool_complain(
			"%s: it has no part for questions which keys exist, or this client may not use one",
			a->b.connect.offload);
	first = n;
	r = a->first ? reddn_first_missing(c, all, n, &first) : reddn_exists(c, all, n);
	if (r < 0)
		return tool_complain("%s", call_error(c, r));
	for (size_t i = 0; i < n && i <= first && ret < 2; i++) {
		r = print_exists(a, c, &all[i]);
		ret = r > ret ? r : ret;
	}
	return ret;
}

static int cmd_put(struct arguments *a, char **texts)
{
	CLEANUP(reddn_closep) struct reddn *c = open_connection(a);

	return c ? store_put(c, a->b.json, a->if_version, a->ttl_ms, texts) : 2;
}

static int cmd_delete(struct arguments *a, char **texts)
{
	CLEANUP(reddn_closep) struct reddn *c = open_connection(a);

	return c ? store_delete(c, a->b.json, a->if_version, texts) : 2;
}

static int cmd_call(struct arguments *a, char **texts)
{
	CLEANUP(reddn_closep) struct reddn *c = open_connection(a);

	return c ? call_run(c, a->b.connect.offload, a->b.json ? CALL_JSON : a->output, texts) : 2;
}

static int cmd_cas(struct arguments *a, char **texts)
{
	CLEANUP(reddn_closep) struct reddn *c = open_connection(a);

	return c ? words_cas(c, a->b.json, texts) : 2;
}

static int cmd_faa(struct arguments *a, char **texts)
{
	CLEANUP(reddn_closep) struct reddn *c = open_connection(a);

	return c ? words_faa(c, a->b.json, texts) : 2;
}

/* A lock outlives sessions, and so does its client. */
static int cmd_lock(struct arguments *a, char **texts)
{
	CLEANUP(reddn_closep) struct reddn *c = NULL;

	a->b.connect.flags = 0;
	c = open_connection(a);
	return c ? words_lock(c, a->lease_ms, a->wait_ms, texts) : 2;
}

static int cmd_append(struct arguments *a, char **texts)
{
	CLEANUP(reddn_closep) struct reddn *c = open_connection(a);

	return c ? log_append(c, a->b.json, texts) : 2;
}

static int cmd_log(struct arguments *a, char **texts)
{
	const struct log_output o = {
		.json = a->b.json, .escape = a->escape, .follow = a->follow, .lasting = !a->b.connect.flags};
	CLEANUP(reddn_closep) struct reddn *c = open_connection(a);

	(void)texts;
	return c ? log_print(c, &a->log, &o) : 2;
}

static int cmd_bench(struct arguments *a, char **keys)
{
	(void)keys;
	if (!a->b.table == !a->b.keys)
		return tool_complain("bench needs keys: either --table or --keys");
	return load_run(&a->b, a->b.writes ? load_reddn_open_put : load_reddn_open);
}

/* ---- the command line -------------------------------------------------------------------------- */

static const struct command {
	struct verb verb;
	int (*run)(struct arguments *a, char **keys);
} commands[] = {
	{{{.name = "ping"}, 2, 2, "pLPHKtjAci", "  reddn ping storage1 users\n"}, cmd_ping},
	{{{.name = "get"}, 3, INT32_MAX, "pLPHKtjAe", "  reddn get storage1 users alice bob\n"}, cmd_get},
	{{{.name = "exists"}, 3, INT32_MAX, "pLPHKtjAf", "  reddn exists storage1 users.exists alice bob\n"},
		cmd_exists},
	{{{.name = "put"}, 3, 4, "pLKtjvE", "  reddn put storage1 users alice admin\n"}, cmd_put},
	{{{.name = "delete"}, 3, INT32_MAX, "pLKtjv", "  reddn delete storage1 users alice bob\n"},
		cmd_delete},
	{{{.name = "call"}, 2, INT32_MAX, "pLPKtjrx",
		 "  reddn call storage1 tickets at=0 limit=100\n"
		 "  reddn call --json storage1:7472 tickets 0 100\n"},
		cmd_call},
	{{{.name = "cas"}, 5, 5, "pKtj", "  reddn cas storage1 words 7 0 1\n"}, cmd_cas},
	{{{.name = "faa"}, 4, 4, "pKtj", "  reddn faa storage1 counters 7 1\n"}, cmd_faa},
	{{{.name = "lock"}, 4, INT32_MAX, "pKtlw",
		 "  reddn lock --wait 0 storage1 words 7 -- ./backup --full\n"},
		cmd_lock},
	{{{.name = "append"}, 2, 3, "pKtj", "  reddn append storage1 events 'disk 7 has failed'\n"},
		cmd_append},
	{{{.name = "log"}, 2, 2, "pLKtjeFNW", "  reddn log --follow --from end storage1 events.read\n"},
		cmd_log},
	{{{.name = "bench"}, 2, 2, "pLPHKtjATkuVdCncsRaS",
		 "  reddn bench --table users.table --verify --seconds 10 storage1 users\n"},
		cmd_bench},
};

static const struct option options[] = {
	LOAD_OPTIONS,
	{"connections", required_argument, NULL, 'C'},
	{"timeout", required_argument, NULL, 't'},
	{"lasting", no_argument, NULL, 'L'},
	{"max-age", required_argument, NULL, 'A'},
	{"policy", required_argument, NULL, 'P'},
	{"shards", required_argument, NULL, 'H'},
	{"interval", required_argument, NULL, 'i'},
	{"escape", no_argument, NULL, 'e'},
	{"first", no_argument, NULL, 'f'},
	{"raw", no_argument, NULL, 'r'},
	{"hex", no_argument, NULL, 'x'},
	{"lease", required_argument, NULL, 'l'},
	{"wait", required_argument, NULL, 'w'},
	{"table", required_argument, NULL, 'T'},
	{"absent", required_argument, NULL, 'a'},
	{"put", optional_argument, NULL, 'u'},
	{"if-version", required_argument, NULL, 'v'},
	{"ttl", required_argument, NULL, 'E'},
	{"follow", no_argument, NULL, 'F'},
	{"from", required_argument, NULL, 'N'},
	{"patience", required_argument, NULL, 'W'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static bool set_option(void *arguments, int letter, const char *text)
{
	struct arguments *a = arguments;
	uint64_t v;

	switch (letter) {
	case 't':
		if (number_parse(text, 1, INT32_MAX, &v))
			return false;
		a->b.connect.timeout_ms = (uint32_t)v;
		return true;
	case 'A':
		if (number_parse(text, 1, INT32_MAX, &v))
			return false;
		a->b.connect.max_age_ms = (uint32_t)v;
		return true;
	case 'L':
		a->b.connect.flags = 0;
		return true;
	case 'P':
		a->b.connect.policy = strcmp(text, "spread") ? REDDN_FIRST : REDDN_SPREAD;
		return strcmp(text, "first") == 0 || strcmp(text, "spread") == 0;
	case 'H':
		a->b.connect.shards = REDDN_SHARDS_REDIS;
		return strcmp(text, "redis") == 0;
	case 'C':
		if (number_parse(text, 1, UINT16_MAX, &v))
			return false;
		a->b.connect.connections = (uint16_t)v;
		return true;
	case 'i':
		return number_parse(text, 0, INT32_MAX, &a->interval_ms) == 0;
	case 'l':
		if (number_parse(text, 1, INT32_MAX, &v))
			return false;
		a->lease_ms = (uint32_t)v;
		return true;
	case 'w':
		if (number_parse(text, 0, INT32_MAX, &v))
			return false;
		a->wait_ms = (int)v;
		return true;
	case 'e':
		a->escape = true;
		return true;
	case 'f':
		a->first = true;
		return true;
	case 'r':
		a->output = CALL_RAW;
		return true;
	case 'x':
		a->output = CALL_HEX;
		return true;
	case 'v':
		a->if_version = &a->version;
		return number_parse(text, 0, UINT64_MAX, &a->version) == 0;
	case 'F':
		a->follow = true;
		return true;
	case 'N':
		a->log.next = REDDN_LOG_END;
		return strcmp(text, "end") == 0 ||
		       number_parse(text, 0, UINT64_C(1) << 58, &a->log.next) == 0;
	case 'W':
		if (number_parse(text, 1, INT32_MAX, &v))
			return false;
		a->log.patience_ms = (uint32_t)v;
		return true;
	case 'E':
		return number_parse(text, 1, UINT64_C(1) << 50, &a->ttl_ms) == 0;
	case 'u':
		if (text && number_parse(text, 1, 100, &v))
			return false;
		a->b.write = LOAD_PUT;
		a->b.writes = text ? (unsigned)v : 100;
		return true;
	case 'T':
		a->b.table = text;
		return true;
	case 'a':
		if (number_parse(text, 0, 100, &v))
			return false;
		a->b.absent = (unsigned)v;
		return true;
	default:
		return load_set_option(&a->b, letter, text);
	}
}

int main(int argc, char **argv)
{
	/* "+": keys may begin with a dash, and need no "--" */
	static const struct verbs verbs = {.tool = "reddn",
		.usage = usage_text,
		.version = "reddn " REDDN_VERSION "\n",
		.table = commands,
		.n = COUNT(commands),
		.size = sizeof(commands[0]),
		.letters = "+" LOAD_LETTERS "C:t:LA:P:H:i:efrxl:w:T:a:u::v:E:FN:W:",
		.options = options,
		.before_dashes = 2,
		.set = set_option};
	struct arguments a = {.b = LOAD_DEFAULTS, .interval_ms = 1000, .lease_ms = 10000, .wait_ms = -1};
	const struct command *command;
	char **args;
	int status;

	a.b.connect.flags = REDDN_NO_RECONNECT;
	output_begin(2);
	if (argc > 1 && strcmp(argv[1], "mc") == 0)
		return reddn_mc_main(argc - 1, argv + 1);
	command = verbs_parse(&verbs, argc, argv, &a, &args, &status);
	if (!command)
		return status;
	a.b.connect.host = args[0];
	a.b.connect.offload = args[1];
	return command->run(&a, args + 2);
}
