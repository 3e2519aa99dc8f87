/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/reddn-mc.h"

#include "libclient/reddn-mc.h"
#include "tools/common/records.h"
#include "tools/common/tool.h"
#include "tools/load/load-mc.h"
#include "util/array.h"
#include "util/cleanup.h"
#include "util/number.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <libmemcached/memcached.h>
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
	"  -S, --seed N        seed of the random order (1)\n"
	"Exit status: 0; 1 if a key was not found or an answer was wrong; 2 for errors.\n";

struct arguments {
	struct load_options load; /* connect: of the pool, see load-mc.h */
	struct reddn_mc_options pool;
	bool fill;
};

DEFINE_CLEANUP(struct reddn_mc *, reddn_mc_close)

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
			fprintf(stderr, "reddn: %s: not found\n", *keys);
			ret = 1;
		} else {
			ret = tool_complain("%s: %s: %s", *keys, strerror(-r), reddn_mc_errmsg(mc));
		}
	}
	return tool_flush() ? 2 : ret;
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
			printf("{\"server\": \"%s\", \"nic\": %s, \"pid\": %" PRIu64 ", \"why\": \"%s\"}\n",
				s.name, s.nic ? "true" : "false", s.pid, s.why);
		else if (s.nic)
			printf("%-30s by the NIC, memcached is process %" PRIu64 "\n", s.name, s.pid);
		else
			printf("%-30s over TCP: %s\n", s.name, s.why);
	}
	return tool_flush();
}

/* ---- bench ------------------------------------------------------------------------------ */

static int fill(const struct arguments *a)
{
	CLEANUP(reddn_mc_closep) struct reddn_mc *mc = open_pool(a);
	struct keyset set = {0};
	int r;

	if (!mc)
		return 2;
	r = keyset_load_text(&set, a->load.keys, true);
	for (size_t i = 0; i < set.count && r == 0; i++) {
		memcached_return_t rc = memcached_set(reddn_mc_memcached(mc),
			(const char *)keyset_key(&set, i), set.keys[i].key_len,
			(const char *)keyset_value(&set, i), set.keys[i].val_len, 0, 0);

		if (rc != MEMCACHED_SUCCESS)
			r = tool_complain("%.*s: %s", (int)set.keys[i].key_len,
				(const char *)keyset_key(&set, i),
				memcached_last_error_message(reddn_mc_memcached(mc)));
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

/* The configuration string for a list of servers; the caller frees it. NULL: no memory */
static char *configuration(const char *pool)
{
	char *list = strdup(pool), *rest = list, *host, *config = NULL;
	size_t len;
	FILE *f;

	if (!list || strncmp(pool, "--", 2) == 0)
		return list;
	f = open_memstream(&config, &len);
	while (f && (host = strsep(&rest, ",")) != NULL)
		fprintf(f, "%s--SERVER=%s", host == list ? "" : " ", host);
	if (f)
		fclose(f);
	free(list);
	return config;
}

/* ---- options ---------------------------------------------------------------------------- */

static const struct command {
	const char *name;
	int (*run)(struct arguments *a, char **keys);
	int min_args, max_args;
	const char *options;
} commands[] = {
	{"get", cmd_get, 2, INT32_MAX, "NopKm0j"},
	{"stats", cmd_stats, 1, 1, "NopKm0j"},
	{"bench", cmd_bench, 1, 1, "NopKm0jkfVzdncsS"},
};

static const struct option options[] = {
	{"nics", required_argument, NULL, 'N'},
	{"offload", required_argument, NULL, 'o'},
	{"port", required_argument, NULL, 'p'},
	{"token-file", required_argument, NULL, 'K'},
	{"misses", required_argument, NULL, 'm'},
	{"tcp", no_argument, NULL, '0'},
	{"json", no_argument, NULL, 'j'},
	{"keys", required_argument, NULL, 'k'},
	{"fill", no_argument, NULL, 'f'},
	{"verify", no_argument, NULL, 'V'},
	{"zipf", required_argument, NULL, 'z'},
	{"depth", required_argument, NULL, 'd'},
	{"clients", required_argument, NULL, 'n'},
	{"count", required_argument, NULL, 'c'},
	{"seconds", required_argument, NULL, 's'},
	{"seed", required_argument, NULL, 'S'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static bool set_number(struct load_options *l, int o, const char *arg)
{
	uint64_t v;
	char *end;

	if (o == 's' || o == 'z') {
		double d = strtod(arg, &end);

		*(o == 's' ? &l->seconds : &l->zipf) = d;
		return end != arg && !*end && d > 0 && d < (o == 's' ? 1e9 : 100);
	}
	if (number_parse(arg, o == 'S' ? 0 : 1, o == 'c' || o == 'S' ? UINT64_MAX : UINT16_MAX, &v))
		return false;
	switch (o) {
	case 'p':
		l->connect.port = (uint16_t)v;
		return true;
	case 'd':
		l->connect.depth = (uint16_t)v;
		return true;
	case 'n':
		l->clients = (unsigned)v;
		return true;
	case 'c':
		l->count = v;
		return true;
	default:
		l->seed = v;
		return true;
	}
}

static bool set_option(struct arguments *a, int o, const char *arg)
{
	switch (o) {
	case 'N':
		a->pool.nics = arg;
		return true;
	case 'o':
		a->load.connect.offload = arg;
		return true;
	case 'K':
		a->load.connect.token_file = arg;
		return true;
	case 'm':
		a->pool.misses = strcmp(arg, "fast") == 0 ? REDDN_MC_MISSES_FAST : REDDN_MC_MISSES_CONFIRM;
		return strcmp(arg, "fast") == 0 || strcmp(arg, "confirm") == 0;
	case '0':
		a->pool.tcp_only = true;
		return true;
	case 'j':
		a->load.json = true;
		return true;
	case 'k':
		a->load.keys = arg;
		return true;
	case 'f':
		a->fill = true;
		return true;
	case 'V':
		a->load.verify = true;
		return true;
	default:
		return set_number(&a->load, o, arg);
	}
}

int reddn_mc_main(int argc, char **argv)
{
	struct arguments a = {.load = {.clients = 1, .seconds = 5, .seed = 1}};
	CLEANUP(cleanup_free) char *config = NULL;
	const struct command *cmd = NULL;
	int o;

	for (size_t i = 0; argc > 1 && i < COUNT(commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			cmd = &commands[i];
	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
		return fputs(usage_text, stdout) < 0;
	if (!cmd) {
		if (argc > 1)
			return tool_complain("mc: unknown command \"%s\"; see reddn mc --help", argv[1]);
		fputs(usage_text, stderr);
		return 2;
	}
	argc--;
	argv++;
	/* "+": keys may begin with a dash */
	while ((o = getopt_long(argc, argv, "+N:o:p:K:m:0jk:fVz:d:n:c:s:S:h", options, NULL)) != -1) {
		if (o == 'h')
			return fputs(usage_text, stdout) < 0;
		if (o == '?')
			return 2;
		if (!strchr(cmd->options, o))
			return tool_complain("mc %s takes no option -%c", cmd->name, o);
		if (!set_option(&a, o, optarg))
			return tool_complain("option -%c: \"%s\" is out of range", o, optarg);
	}
	if (argc - optind < cmd->min_args || argc - optind > cmd->max_args) {
		fputs(usage_text, stderr);
		return 2;
	}
	config = configuration(argv[optind]);
	if (!config)
		return tool_complain("%s", strerror(ENOMEM));
	a.load.connect.host = config;
	return cmd->run(&a, argv + optind + 1);
}
