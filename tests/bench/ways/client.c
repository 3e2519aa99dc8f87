/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * baseline-client - asks for keys in one of the ways that gets by the NIC are compared with (ways.h), with
 * the loop, the options and the output of "reddn bench": baseline-client [OPTION...] WAY HOST PORT [OFFLOAD].
 */
#include "tests/bench/ways/many.h"
#include "tests/bench/ways/ways.h"
#include "tools/common/tool.h"
#include "tools/load/load-mc.h"
#include "tools/load/load.h"
#include "util/array.h"
#include "util/number.h"

#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The clock of the NIC, from ibv_query_rt_values_ex(). On an emulated NIC with a modelled clock it is the
 * time of this process's newest completion: the difference between two completions is the time that the
 * modelled NIC takes.
 */

static struct ibv_context *device;
static uint64_t khz;

/* Opens the first device, which the connection manager uses too. 0, or -errno and a message on stderr. */
static int nic_clock_open(void)
{
	struct ibv_context **list = rdma_get_devices(NULL);
	struct ibv_device_attr_ex attr;

	device = list ? list[0] : NULL; /* librdmacm keeps it open */
	if (list)
		rdma_free_devices(list);
	if (!device || ibv_query_device_ex(device, NULL, &attr) || !attr.hca_core_clock) {
		fputs("the NIC has no clock\n", stderr);
		return -EOPNOTSUPP;
	}
	khz = attr.hca_core_clock;
	return 0;
}

/* The time in nanoseconds. Call nic_clock_open() first. */
static uint64_t nic_clock_now(void)
{
	struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	int r = ibv_query_rt_values_ex(device, &v);

	if (r) {
		fprintf(stderr, "cannot read the clock of the NIC: %s\n", strerror(r));
		exit(2);
	}
	/* the library makes a timespec of the ticks */
	return (uint64_t)((unsigned __int128)((uint64_t)v.raw_clock.tv_sec * 1000000000u +
					      (uint64_t)v.raw_clock.tv_nsec) *
			  1000000u / khz);
}

static const char *const of_reddnd[] = {"get", "mget", "exists", "call", "append", "lock", "mc"};

enum { PATIENCE_MS = 60000, EXTENTS = 4, EXTENTS_MORE = 64 };

static const struct {
	const char *name;
	load_open_fn *open;
} ways[] = {
	{"ideal", way_ideal_open},
	{"swap", way_swap_open},
	{"onesided", way_onesided_open},
	{"hopscotch", way_hopscotch_open},
	{"requests", way_requests_open},
	{"list", way_list_open},
	{"list-requests", way_list_requests_open},
	{"get", way_get_open},
	{"mget", way_mget_open},
	{"exists", way_exists_open},
	{"call", way_call_open},
	{"append", way_append_open},
	{"lock", way_lock_open},
	{"mc", load_mc_open},
	{"memcached", way_memcached_open},
	{"redis", way_redis_open},
};

static const char usage_text[] =
	"usage: baseline-client [OPTION...] WAY HOST PORT [OFFLOAD]\n"
	"\n"
	"WAY: ideal swap onesided hopscotch requests list list-requests (to baseline-server), memcached, "
	"redis;\n"
	"of an OFFLOAD of reddnd: get, mget, exists, call (the \"keys\" are arguments: 5,7), append (they "
	"begin\n"
	"entries of 200 bytes), lock (they are words), mc (HOST is a pool, as libmemcached is configured)\n"
	"  -k, --keys FILE       keys, or key, tab, value     -T, --table TABLE  a table with them\n"
	"  -d, --depth N         requests outstanding (16)    -n, --clients N    connections (1)\n"
	"  -c, --count N         requests to do               -s, --seconds N    without count (5)\n"
	"  -a, --absent N        percent absent keys (0)      -S, --seed N       of the order of keys (1)\n"
	"  -w, --set             set keys to their values     -i, --in-order     each key in its turn\n"
	"  -x, --write KIND      put, put_if or delete        -y, --writes N     percent that write (100)\n"
	"  -z, --zipf S          Zipf's law for the keys, the first of the file most often\n"
	"  -l, --latest N        N keys are there, puts are of those behind them, gets of the latest\n"
	"  -V, --verify          check answers                -v, --value-size N bytes, of ideal (64)\n"
	"  -j, --json            -C, --nic-clock         measure with it, a --count\n"
	"  -W, --warmup N        requests before those that count\n"
	"  -N, --connections N   of one handle of reddnd (1)\n"
	"  -m, --many N          keys of one request: all but ideal and call; the depth counts these\n"
	"  -e, --exists          ask only which exist: onesided requests memcached redis\n"
	"  -t, --timeout MS      without an answer (10000)\n"
	"  -u, --work US         CPU time to spend on each answer (0)\n"
	"  -b, --barrier         say \"connected\", and begin after a line on standard input\n";

static const struct option options[] = {
	{"keys", required_argument, NULL, 'k'},
	{"table", required_argument, NULL, 'T'},
	{"depth", required_argument, NULL, 'd'},
	{"connections", required_argument, NULL, 'N'},
	{"clients", required_argument, NULL, 'n'},
	{"count", required_argument, NULL, 'c'},
	{"seconds", required_argument, NULL, 's'},
	{"absent", required_argument, NULL, 'a'},
	{"seed", required_argument, NULL, 'S'},
	{"set", no_argument, NULL, 'w'},
	{"write", required_argument, NULL, 'x'},
	{"writes", required_argument, NULL, 'y'},
	{"zipf", required_argument, NULL, 'z'},
	{"latest", required_argument, NULL, 'l'},
	{"in-order", no_argument, NULL, 'i'},
	{"verify", no_argument, NULL, 'V'},
	{"value-size", required_argument, NULL, 'v'},
	{"json", no_argument, NULL, 'j'},
	{"nic-clock", no_argument, NULL, 'C'},
	{"warmup", required_argument, NULL, 'W'},
	{"many", required_argument, NULL, 'm'},
	{"exists", no_argument, NULL, 'e'},
	{"barrier", no_argument, NULL, 'b'},
	{"work", required_argument, NULL, 'u'},
	{"timeout", required_argument, NULL, 't'},
	{0},
};

static bool take_number(struct load_options *l, int o, const char *arg)
{
	uint64_t v;

	if (number_parse(arg, 0, UINT64_MAX, &v))
		return false;
	switch (o) {
	case 'W':
		l->warmup = v;
		return true;
	case 'N':
		l->connect.connections = (uint16_t)v;
		return v >= 1 && v <= UINT16_MAX;
	case 'm':
		way_keys = (unsigned)v;
		return v >= 1 && v <= REQUEST_KEYS;
	case 't':
		l->connect.timeout_ms = (uint32_t)v;
		return v >= 1 && v <= UINT32_MAX;
	case 'u':
		l->work = v * 1000;
		return v <= 1000000;
	case 'a':
		l->absent = (unsigned)v;
		return v <= 100;
	case 'y':
		l->writes = (unsigned)v;
		l->write = l->write ? l->write : LOAD_PUT;
		return v >= 1 && v <= 100;
	case 'l':
		l->present = v;
		return v >= 1;
	case 'v':
		way_ideal_bytes = (uint32_t)v;
		return v >= 1 && v <= 1 << 20;
	}
	return false;
}

static bool take_kind(struct load_options *l, const char *text)
{
	static const char *const names[] = {
		[LOAD_PUT] = "put", [LOAD_PUT_IF] = "put_if", [LOAD_DELETE] = "delete"};

	for (l->write = LOAD_PUT; l->write < COUNT(names); l->write++)
		if (strcmp(text, names[l->write]) == 0)
			break;
	if (!l->writes)
		l->writes = 100;
	return l->write < COUNT(names);
}

static bool take_exponent(struct load_options *l, const char *text)
{
	char *end;

	l->zipf = strtod(text, &end);
	return end != text && !*end && l->zipf > 0 && l->zipf < 100;
}

/* Of a connection: more than are outstanding, because what was replaced a moment ago may be read still; for
 * new keys about twice its part. */
static unsigned extents(const struct load_options *l)
{
	const uint64_t puts =
		l->present ? (l->count + l->warmup) * l->writes / 50 / l->clients + EXTENTS_MORE : 0;

	return EXTENTS * l->connect.depth + (unsigned)puts;
}

static void wait_for_line(void)
{
	int c;

	puts("connected");
	fflush(stdout);
	do
		c = getchar();
	while (c != '\n' && c != EOF);
}

static bool take_option(struct load_options *l, int o, const char *arg)
{
	switch (o) {
	case 'T':
		l->table = arg;
		return true;
	case 'w':
		return take_kind(l, "put");
	case 'x':
		return take_kind(l, arg);
	case 'z':
		return take_exponent(l, arg);
	case 'i':
		l->in_order = true;
		return true;
	case 'b':
		l->connected = wait_for_line;
		return true;
	case 'e':
		way_exists = true;
		return true;
	case 'C':
		l->now = nic_clock_now;
		return true;
	case 'N':
	case 'W':
	case 'm':
	case 't':
	case 'u':
	case 'a':
	case 'y':
	case 'l':
	case 'v':
		return take_number(l, o, arg);
	default:
		return load_set_option(l, o, arg);
	}
}

int main(int argc, char **argv)
{
	struct load_options l = LOAD_DEFAULTS;
	load_open_fn *open = NULL;
	uint64_t port;
	bool offload = false;
	int o;

	l.connect.depth = 16;
	while ((o = getopt_long(argc, argv, "k:T:d:N:n:c:s:a:S:wiVv:jCW:bu:t:m:ex:y:z:l:", options, NULL)) !=
		-1) {
		if (o == '?')
			return 2;
		if (!take_option(&l, o, optarg))
			return tool_complain("option -%c: \"%s\" is out of range", o, optarg);
	}
	for (size_t i = 0; i < COUNT(of_reddnd); i++)
		offload |= optind < argc && strcmp(argv[optind], of_reddnd[i]) == 0;
	if (argc - optind != 3 + offload || !l.keys == !l.table || (l.now && !l.count)) {
		fputs(usage_text, stderr);
		return 2;
	}
	for (size_t i = 0; i < COUNT(ways); i++)
		if (strcmp(argv[optind], ways[i].name) == 0)
			open = ways[i].open;
	if (!open)
		return tool_complain("%s: no such way", argv[optind]);
	if (number_parse(argv[optind + 2], 1, UINT16_MAX, &port))
		return tool_complain("%s: not a port", argv[optind + 2]);
	l.connect.host = argv[optind + 1];
	l.connect.port = (uint16_t)port;
	if (offload)
		l.connect.offload = argv[optind + 3];
	else if (way_exists && !way_keys)
		way_keys = 1;
	way_versions = l.write == LOAD_PUT_IF;
	if (l.write)
		way_extents = extents(&l);
	/* puts that others were faster than, however busy this machine is */
	l.connect.retry_ms = PATIENCE_MS;
	if (l.now && nic_clock_open() < 0)
		return 2;
	/* by that clock, nothing may depend on how busy this machine is */
	if (l.now)
		l.connect.timeout_ms = load_mc_options.connect_ms = load_mc_options.reply_ms = PATIENCE_MS;
	return load_run(&l, open);
}
