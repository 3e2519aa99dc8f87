/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scale-client HOST PORT OFFLOAD DEPTH KEY VALUE - keeps many connections in one process and measures
 * the time of each action.
 *
 * Reads commands, one to a line, and answers each with a line of JSON:
 *
 *   open N    connects N times more; the connections stay
 *   probe N   connects and closes, N times
 *   get N     N gets of KEY on the oldest connection, one after the other
 *   each      one get on every connection
 *   close     closes all
 *   return    a get on every connection, all at once, when the server is away; with the times of
 *             CLOCK_MONOTONIC at which they had their answers
 *
 * Times are in nanoseconds: {"ns": [...]}. Every answer of the server is compared with VALUE; a failure
 * ends the program with status 1 and a line on standard error.
 */
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "tests/lib/die.h"
#include "util/array.h"
#include "util/clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { VALUE_MAX = 4096, CONNECT_MS = 60000, NAP_US = 1000 };

static struct {
	struct reddn_options options;
	const char *key, *value;
	struct reddn **conns;
	unsigned n;
} client;

static struct reddn *open_one(void)
{
	struct reddn *c;
	char err[256];

	if (reddn_connect(&c, &client.options, err, sizeof(err)) < 0)
		die("connection %u: %s", client.n + 1, err);
	return c;
}

static void check(int r, const void *value, size_t len)
{
	if (r)
		die("%s: %s", client.key, r == REDDN_MISS ? "not there" : strerror(-r));
	if (len != strlen(client.value) || memcmp(value, client.value, len) != 0)
		die("%s: a wrong value", client.key);
}

static void get_one(struct reddn *c)
{
	char value[VALUE_MAX];
	size_t len = 0;
	int r = reddn_get(c, client.key, strlen(client.key), value, sizeof(value), &len);

	check(r, value, len);
}

static void one_open(void)
{
	client.conns = realloc(client.conns, (client.n + 1) * sizeof(*client.conns));
	if (!client.conns)
		die("out of memory");
	client.conns[client.n] = open_one();
	client.n++;
}

static void one_probe(void)
{
	reddn_close(open_one());
}

static void one_get(void)
{
	if (!client.n)
		die("there is no connection");
	get_one(client.conns[0]);
}

static void one_each(void)
{
	static unsigned next;

	get_one(client.conns[next++ % client.n]);
}

static void one_close(void)
{
	reddn_close(client.conns[--client.n]);
}

static const struct {
	const char *name;
	void (*one)(void);
	bool all; /* once for each connection */
} commands[] = {
	{"open", one_open, false},
	{"probe", one_probe, false},
	{"get", one_get, false},
	{"each", one_each, true},
	{"close", one_close, true},
};

static void run(const char *name, unsigned count)
{
	size_t i = 0;

	while (i < COUNT(commands) && strcmp(commands[i].name, name) != 0)
		i++;
	if (i == COUNT(commands))
		die("there is no command %s", name);
	if (commands[i].all)
		count = client.n;
	printf("{\"ns\": [");
	for (unsigned k = 0; k < count; k++) {
		uint64_t begin = clock_ns();

		commands[i].one();
		printf("%s%llu", k ? ", " : "", (unsigned long long)(clock_ns() - begin));
	}
	puts("]}");
	fflush(stdout);
}

/* Prints when this one had its answer. False: not yet */
static bool has_returned(struct reddn *c, const char *separator)
{
	struct reddn_result res;
	int n = reddn_poll(c, &res, 1);

	if (n < 0)
		die("%s: %s", strerror(-n), reddn_errmsg(c));
	if (!n)
		return false;
	check(res.status, res.value, res.length);
	printf("%s%llu", separator, (unsigned long long)clock_ns());
	return true;
}

static void run_return(void)
{
	unsigned left = client.n;

	for (unsigned i = 0; i < client.n; i++) {
		int r = reddn_get_submit(client.conns[i], client.key, strlen(client.key), 0);

		if (r < 0)
			die("%s: %s", client.key, strerror(-r));
	}
	printf("{\"ns\": [");
	while (left) {
		unsigned before = left;

		/* Those that have their answer are at the end */
		for (unsigned i = 0; i < left;) {
			struct reddn *c = client.conns[i];

			if (!has_returned(c, left < client.n ? ", " : "")) {
				i++;
				continue;
			}
			client.conns[i] = client.conns[--left];
			client.conns[left] = c;
		}
		if (left == before)
			usleep(NAP_US);
	}
	puts("]}");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rlimit files;
	char line[100], name[100];
	unsigned count;

	if (argc != 7) {
		fputs("usage: scale-client HOST PORT OFFLOAD DEPTH KEY VALUE\n", stderr);
		return 2;
	}
	client.options = (struct reddn_options){.host = argv[1],
		.port = (uint16_t)arg_number(argv[2], UINT16_MAX),
		.offload = argv[3],
		.depth = (uint16_t)arg_number(argv[4], UINT16_MAX),
		.timeout_ms = CONNECT_MS};
	client.key = argv[5];
	client.value = argv[6];
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	while (fgets(line, sizeof(line), stdin)) {
		count = 0;
		if (sscanf(line, "%99s %u", name, &count) < 1)
			continue;
		if (strcmp(name, "return") == 0)
			run_return();
		else
			run(name, count);
	}
	while (client.n)
		one_close();
	free(client.conns);
	return 0;
}
