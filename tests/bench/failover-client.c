/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * failover-client reddn HOST PORT OFFLOAD | memcached HOST PORT, then MS BIN_MS KEYS - gets keys, one after
 * the other, for MS milliseconds, and prints one JSON object:
 *
 *   {"begin_ns": of CLOCK_MONOTONIC, "bins": [right answers in each BIN_MS milliseconds], "wrong": N,
 * "errors": N, "gap_us": the longest time without an answer, "why": "the last error"}
 *
 * KEYS has lines of key, tab and value. A client of reddn never connects again: an error ends it. One of
 * memcached connects until it is let in; a connection that is lost or refused is an error, and a key that is
 * not there is no answer.
 */
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "util/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEYS = 1000, TEXT = 4096, BINS = 10000, CONNECT_MS = 60000, RETRY_US = 1000 };

static struct {
	char *key[KEYS], *value[KEYS];
	unsigned n;
} data;

static struct {
	uint64_t begin, last, gap;
	uint64_t bin_ns;
	uint64_t bins[BINS];
	uint64_t wrong, errors;
	char why[256];
} seen;

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "failover-client: %s\n", what);
	exit(1);
}

static void read_keys(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[TEXT];

	if (!f)
		die("the keys cannot be read");
	while (data.n < KEYS && fgets(line, sizeof(line), f)) {
		char *tab = strchr(line, '\t');

		if (!tab)
			die("a line has no value");
		line[strcspn(line, "\n")] = '\0';
		*tab = '\0';
		data.key[data.n] = strdup(line);
		data.value[data.n++] = strdup(tab + 1);
	}
	fclose(f);
	if (!data.n)
		die("there are no keys");
}

static void note_error(const char *why)
{
	seen.errors++;
	snprintf(seen.why, sizeof(seen.why), "%s", why);
}

static void note_answer(uint64_t now, bool right)
{
	uint64_t bin = (now - seen.begin) / seen.bin_ns;

	if (now - seen.last > seen.gap)
		seen.gap = now - seen.last;
	seen.last = now;
	if (!right)
		seen.wrong++;
	else if (bin < BINS)
		seen.bins[bin]++;
}

/* ---- reddn ---- */

static bool ask_reddn(struct reddn *c, unsigned i)
{
	char value[TEXT];
	size_t len;
	int r = reddn_get(c, data.key[i], strlen(data.key[i]), value, sizeof(value), &len);

	if (r < 0) {
		note_error(*reddn_errmsg(c) ? reddn_errmsg(c) : strerror(-r));
		return false;
	}
	note_answer(
		clock_ns(), r == 0 && len == strlen(data.value[i]) && memcmp(value, data.value[i], len) == 0);
	return true;
}

static void run_reddn(char **argv, uint64_t ms)
{
	const struct reddn_options options = {.host = argv[2],
		.port = (uint16_t)arg_number(argv[3], UINT16_MAX),
		.offload = argv[4],
		.timeout_ms = CONNECT_MS};
	char err[256];
	struct reddn *c;

	if (reddn_connect(&c, &options, err, sizeof(err)) < 0)
		die(err);
	seen.begin = seen.last = clock_ns();
	for (unsigned i = 0; clock_ns() - seen.begin < ms * 1000000 && ask_reddn(c, i); i = (i + 1) % data.n)
		;
	reddn_close(c);
}

/* ---- memcached ---- */

static int open_memcached(char **argv)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)arg_number(argv[3], UINT16_MAX))};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || inet_pton(AF_INET, argv[2], &to.sin_addr) != 1)
		die("no socket");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* True: the connection is good */
static bool ask_memcached(int fd, unsigned i)
{
	char text[TEXT], wanted[TEXT + 300];
	int len = snprintf(text, sizeof(text), "get %s\r\n", data.key[i]);
	size_t want = (size_t)snprintf(wanted, sizeof(wanted), "VALUE %s 0 %zu\r\n%s\r\nEND\r\n", data.key[i],
		strlen(data.value[i]), data.value[i]);
	size_t have = 0;

	if (send(fd, text, (size_t)len, MSG_NOSIGNAL) != len)
		return false;
	while (have < 5 || memcmp(text + have - 5, "END\r\n", 5) != 0) {
		ssize_t n = have < sizeof(text) ? recv(fd, text + have, sizeof(text) - have, 0) : 0;

		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	if (have > 5)
		note_answer(clock_ns(), have == want && memcmp(text, wanted, want) == 0);
	return true;
}

static void run_memcached(char **argv, uint64_t ms)
{
	int fd = open_memcached(argv);

	if (fd < 0)
		die("memcached does not let a client in");
	seen.begin = seen.last = clock_ns();
	for (unsigned i = 0; clock_ns() - seen.begin < ms * 1000000; i = (i + 1) % data.n) {
		if (fd >= 0 && ask_memcached(fd, i))
			continue;
		note_error(fd >= 0 ? "the connection was lost" : "the connection was refused");
		if (fd >= 0)
			close(fd);
		usleep(RETRY_US);
		fd = open_memcached(argv);
	}
}

static void print(uint64_t ms)
{
	const uint64_t bins = ms * 1000000 / seen.bin_ns, end = seen.begin + ms * 1000000;

	if (end > seen.last && end - seen.last > seen.gap)
		seen.gap = end - seen.last;
	printf("{\"begin_ns\": %llu, \"bins\": [", (unsigned long long)seen.begin);
	for (uint64_t i = 0; i < bins; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)seen.bins[i]);
	printf("], \"wrong\": %llu, \"errors\": %llu, \"gap_us\": %llu, \"why\": \"%s\"}\n",
		(unsigned long long)seen.wrong, (unsigned long long)seen.errors,
		(unsigned long long)(seen.gap / 1000), seen.why);
}

int main(int argc, char **argv)
{
	bool reddn = argc > 1 && strcmp(argv[1], "reddn") == 0;
	int first = reddn ? 5 : 4;
	uint64_t ms;

	if (argc != first + 3)
		return 2;
	ms = arg_number(argv[first], UINT32_MAX);
	seen.bin_ns = arg_number(argv[first + 1], UINT16_MAX) * 1000000;
	if (!ms || !seen.bin_ns || ms * 1000000 / seen.bin_ns > BINS)
		return 2;
	read_keys(argv[first + 2]);
	(reddn ? run_reddn : run_memcached)(argv, ms);
	print(ms);
	return 0;
}
