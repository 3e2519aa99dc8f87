/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn.h"

#include "libclient/reddn-mc.h"
#include "memcached/key.h"
#include "tools/common/records.h"
#include "tools/common/tool.h"
#include "tools/common/verbs.h"
#include "tools/load/load-mc.h"
#include "tools/load/load.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/host.h"
#include "util/json.h"
#include "util/text.h"

#include <errno.h>
#include <inttypes.h>
#include <libmemcached/memcached.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
	"usage: reddn mc get   [OPTIONS] POOL KEY...\n"
	"       reddn mc stats [OPTIONS] POOL\n"
	"       reddn mc bench [OPTIONS] POOL\n"
	"\n"
	"POOL: HOST[:PORT],... or, after --, a configuration of libmemcached: \"--SERVER=a ...\"\n"
	"  -N, --nics LIST     NICs that are elsewhere: SERVER=HOST[:PORT][/OFFLOAD],...\n"
	"  -o, --offload NAME  of reddnd (memcached)\n"
	"  -p, --port N        port of reddnd (7471)\n"
	"  -K, --token-file F  file with the key of access tokens, if reddnd requires them\n"
	"  -m, --misses HOW    confirm: over TCP; fast: as the NIC has seen them (confirm)\n"
	"  -0, --tcp           use no NIC\n"
	"  -j, --json          print results as JSON\n"
	"get: print the value of each key on a line\n"
	"stats: connect to the NIC of each server, and print whether it is used\n"
	"bench: time many gets of random keys\n"
	"  -k, --keys FILE     take the keys from this file: key, or key TAB value, per line\n"
	"  -f, --fill          set the keys to the values in that file before\n"
	"  -V, --verify        compare the answers with the values in that file\n"
	"  -z, --zipf S        keys by Zipf's law with exponent S, the first most often (all alike)\n"
	"  -d, --depth N       outstanding gets per client (16)\n"
	"  -n, --clients N     number of clients (1)\n"
	"  -c, --count N       number of gets\n"
	"  -s, --seconds N     duration without --count (5)\n"
	"  -R, --rate N        gets per second at most\n"
	"  -S, --seed N        seed of the random order (1)\n"
	"Exit status: 0; 1 if a key was not found or an answer was wrong; 2 for errors.\n";

struct arguments {
	struct load_options load; /* connect: of the pool, see load-mc.h */
	struct reddn_mc_options pool;
	bool fill;
};

DEFINE_CLEANUP(struct reddn_mc *, reddn_mc_close)
DEFINE_CLEANUP(struct json_object *, json_object_put)

static struct reddn_mc *open_pool(const struct arguments *a)
{
	struct reddn_mc_options o = a->pool;
	struct reddn_mc *mc;
	char err[512];

	o.offload = a->load.connect.offload;
	o.port = a->load.connect.port;
	o.token_file = a->load.connect.token_file;
	if (reddn_mc_connect(&mc, a->load.connect.host, &o, err, sizeof(err)) < 0) {
		tool_complain("%s", err);
		return NULL;
	}
	return mc;
}

/* Leaves out of what libmemcached reports the address of its handle in front, and the place in its source
 * behind; the length of the rest. As in
 * "(0x5578018469e0) CONNECTION FAILURE,  host: cache1:11211 -> ./src/libmemcached/get.cc:233" */
static int cut(const char **report)
{
	const char *end = strstr(*report, " -> ");

	if (strncmp(*report, "(0x", 3) == 0 && strstr(*report, ") "))
		*report = strstr(*report, ") ") + 2;
	return (int)(end && end > *report ? (size_t)(end - *report) : strlen(*report));
}

/* ---- get -------------------------------------------------------------------------------- */

static void print_value(const struct arguments *a, const char *key, const struct reddn_mc_result *r)
{
	if (!a->load.json) {
		fwrite(r->value, 1, r->length, stdout);
		putchar('\n');
		return;
	}
	records_write(stdout, RECORDS_JSON,
		&(struct record_text){(const uint8_t *)key, strlen(key), r->value, r->length});
}

static int get_failed(struct reddn_mc *mc, const char *key, int r)
{
	const char *report = reddn_mc_errmsg(mc);
	int len = cut(&report);

	if (r == -EINVAL)
		return tool_complain("\"%s\": a key has " MEMCACHED_KEY_WORDS, key);
	return tool_complain("%s: %s: %.*s", key, strerror(-r), len, report);
}

static int cmd_get(struct arguments *a, char **keys)
{
	CLEANUP(reddn_mc_closep) struct reddn_mc *mc = open_pool(a);
	struct reddn_mc_result res;
	int ret = 0;

	if (!mc)
		return 2;
	for (; *keys && ret < 2; keys++) {
		int r = reddn_mc_get(mc, *keys, strlen(*keys), &res);

		if (r == 0) {
			print_value(a, *keys, &res);
		} else if (r == REDDN_MISS) {
			fprintf(stderr, "reddn: %s: not found\n", text_clean(*keys));
			ret = 1;
		} else {
			ret = get_failed(mc, *keys, r);
		}
	}
	return ret;
}

/* ---- stats ------------------------------------------------------------------------------ */

/* Gets of keys that are nowhere, until each server had some */
static void ask_each(struct reddn_mc *mc)
{
	enum { KEYS_PER_SERVER = 50 };
	struct reddn_mc_server s;
	struct reddn_mc_result res;
	unsigned servers = 0;

	while (reddn_mc_get_server(mc, servers, &s) == 0)
		servers++;
	for (unsigned i = 0; i < servers * KEYS_PER_SERVER; i++) {
		char key[40];

		snprintf(key, sizeof(key), "reddn-stats-%u", i);
		reddn_mc_get(mc, key, strlen(key), &res);
	}
}

static void print_server(const struct reddn_mc_server *s)
{
	CLEANUP(json_object_putp) struct json_object *o = json_object_new_object();

	json_add_text(o, "server", s->name);
	json_object_object_add(o, "nic", json_object_new_boolean(s->nic));
	json_add_count(o, "pid", s->pid);
	json_add_text(o, "why", s->why);
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
}

static int cmd_stats(struct arguments *a, char **keys)
{
	CLEANUP(reddn_mc_closep) struct reddn_mc *mc = open_pool(a);
	struct reddn_mc_server s;

	(void)keys;
	if (!mc)
		return 2;
	ask_each(mc);
	for (unsigned i = 0; reddn_mc_get_server(mc, i, &s) == 0; i++) {
		if (a->load.json)
			print_server(&s);
		else if (s.nic)
			printf("%-30s by the NIC, memcached is process %" PRIu64 "\n", s.name, s.pid);
		else
			printf("%-30s over TCP: %s\n", s.name, s.why);
	}
	return 0;
}

/* ---- bench ------------------------------------------------------------------------------ */

static int fill(const struct arguments *a)
{
	CLEANUP(reddn_mc_closep) struct reddn_mc *mc = open_pool(a);
	struct keyset set = {0};
	const char *report;
	int r, len;

	if (!mc)
		return 2;
	r = keyset_load_text(&set, a->load.keys, true);
	for (size_t i = 0; i < set.count && r == 0; i++) {
		const char *key = (const char *)keyset_key(&set, i);
		memcached_return_t rc;

		if (!key_is_text(key, set.keys[i].key_len)) {
			r = tool_complain("%s: key %zu: a key has " MEMCACHED_KEY_WORDS, a->load.keys, i + 1);
			break;
		}
		rc = memcached_set(reddn_mc_memcached(mc), key, set.keys[i].key_len,
			(const char *)keyset_value(&set, i), set.keys[i].val_len, 0, 0);
		if (rc != MEMCACHED_SUCCESS) {
			report = memcached_last_error_message(reddn_mc_memcached(mc));
			len = cut(&report);
			r = tool_complain("%.*s: %.*s", (int)set.keys[i].key_len, key, len, report);
		}
	}
	keyset_deinit(&set);
	return r;
}

static int cmd_bench(struct arguments *a, char **keys)
{
	int r;

	(void)keys;
	if (!a->load.keys)
		return tool_complain("bench needs --keys");
	r = a->fill ? fill(a) : 0;
	load_mc_options = a->pool;
	return r ? r : load_run(&a->load, load_mc_open);
}

/* ---- the pool ---------------------------------------------------------------------------- */

/* A configuration string of libmemcached has no IPv6 addresses */
static bool is_server(const char *text)
{
	char host[NI_MAXHOST];
	uint16_t port;

	return host_split(text, strlen(text), host, sizeof(host), &port) && !strpbrk(host, ":/ ");
}

/* The configuration string for a list of servers; the caller frees it. NULL: it has been complained about */
static char *configuration(const char *pool)
{
	CLEANUP(cleanup_free) char *list = strdup(pool), *config = NULL;
	char *rest = list, *host;
	size_t len;
	FILE *f;

	if (list && strncmp(pool, "--", 2) == 0)
		return steal_ptr(&list);
	f = list ? open_memstream(&config, &len) : NULL;
	if (!f)
		return tool_complain("%s", strerror(ENOMEM)), NULL;
	while ((host = strsep(&rest, ",")) != NULL && is_server(host))
		fprintf(f, "%s--SERVER=%s", host == list ? "" : " ", host);
	fclose(f);
	if (host)
		return tool_complain(
			       "\"%s\" in the pool \"%s\" is no HOST[:PORT] with a port from 1 to 65535; an "
			       "IPv6 address needs a host name, libmemcached takes no other",
			       host, pool),
		       NULL;
	return steal_ptr(&config);
}

/* ---- the command line -------------------------------------------------------------------- */

static const struct command {
	struct verb verb;
	int (*run)(struct arguments *a, char **keys);
} commands[] = {
	{{{.name = "get"}, 2, INT32_MAX, "NopKm0j", "  reddn mc get cache1,cache2 session:42\n"}, cmd_get},
	{{{.name = "stats"}, 1, 1, "NopKm0j", "  reddn mc stats cache1,cache2\n"}, cmd_stats},
	{{{.name = "bench"}, 1, 1, "NopKm0jkfVzdncsRS",
		 "  reddn mc bench --keys sessions.tsv --fill --zipf 0.99 cache1,cache2\n"},
		cmd_bench},
};

static const struct option options[] = {
	LOAD_OPTIONS,
	{"nics", required_argument, NULL, 'N'},
	{"offload", required_argument, NULL, 'o'},
	{"misses", required_argument, NULL, 'm'},
	{"tcp", no_argument, NULL, '0'},
	{"fill", no_argument, NULL, 'f'},
	{"zipf", required_argument, NULL, 'z'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static bool set_option(void *arguments, int letter, const char *text)
{
	struct arguments *a = arguments;
	char *end;

	switch (letter) {
	case 'N':
		a->pool.nics = text;
		return true;
	case 'o':
		a->load.connect.offload = text;
		return true;
	case 'm':
		a->pool.misses = strcmp(text, "fast") == 0 ? REDDN_MC_MISSES_FAST : REDDN_MC_MISSES_CONFIRM;
		return strcmp(text, "fast") == 0 || strcmp(text, "confirm") == 0;
	case '0':
		a->pool.tcp_only = true;
		return true;
	case 'f':
		a->fill = true;
		return true;
	case 'z':
		a->load.zipf = strtod(text, &end);
		return end != text && !*end && a->load.zipf > 0 && a->load.zipf < 100;
	default:
		return load_set_option(&a->load, letter, text);
	}
}

int reddn_mc_main(int argc, char **argv)
{
	/* "+": keys may begin with a dash */
	static const struct verbs verbs = {.tool = "reddn mc",
		.usage = usage_text,
		.table = commands,
		.n = COUNT(commands),
		.size = sizeof(commands[0]),
		.letters = "+" LOAD_LETTERS "N:o:m:0fz:",
		.options = options,
		.set = set_option};
	struct arguments a = {.load = LOAD_DEFAULTS};
	CLEANUP(cleanup_free) char *config = NULL;
	const struct command *command;
	char **args;
	int status;

	command = verbs_parse(&verbs, argc, argv, &a, &args, &status);
	if (!command)
		return status;
	config = configuration(args[0]);
	if (!config)
		return 2;
	a.load.connect.host = config;
	return command->run(&a, args + 1);
}
