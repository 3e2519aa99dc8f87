/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * failover-client reddn HOST PORT OFFLOAD | lasting HOSTS PORT OFFLOAD | mc POOL PORT OFFLOAD | memcached
 * HOST PORT, then MS BIN_MS KEYS - gets keys, one after the other, for MS milliseconds, and prints one JSON
 * object:
 *
 *   {"begin_ns": of CLOCK_MONOTONIC, "bins": [right values in each BIN_MS milliseconds], "by_nic": [of these,
 * those that the NIC sent], "misses": [answers in each that there is no such key], "wrong": N, "errors": N,
 * "gap_us": the longest time without a value, "silent_us": without an answer, "why": "the last error"}
 *
 * KEYS has lines of key, tab and value; and perhaps a tab and the value that replaces it, which is right at
 * any time, and the only one in gets that begin after SIGUSR1. A client of reddn never connects again: an
 * error ends it. A lasting one lets the library do that, at any of its hosts. POOL is that of a client of
 * libreddn-mc, which asks memcached what the NIC does not know. One of memcached connects until it is let in;
 * a connection that is lost or refused is an error.
 */
#include "libclient/reddn-mc.h"
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "tests/lib/die.h"
#include "util/array.h"
#include "util/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEYS = 1000, TEXT = 4096, BINS = 10000, CONNECT_MS = 60000, REPLY_MS = 5000, RETRY_US = 1000 };

static struct {
	char *key[KEYS], *value[KEYS];
	char *newer[KEYS]; /* or NULL */
	unsigned n;
} data;

static struct {
	uint64_t begin, bin_ns;
	uint64_t last_value, gap, last_answer, silent;
	uint64_t bins[BINS], by_nic[BINS], misses[BINS];
	uint64_t wrong, errors;
	char why[256];
} seen;

static void read_keys(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[TEXT];

	if (!f)
		die("the keys cannot be read");
	while (data.n < KEYS && fgets(line, sizeof(line), f)) {
		char *save, *key = strtok_r(line, "\t\n", &save), *value = strtok_r(NULL, "\t\n", &save);
		char *newer = strtok_r(NULL, "\t\n", &save);

		if (!value)
			die("a line has no value");
		data.key[data.n] = strdup(key);
		data.value[data.n] = strdup(value);
		data.newer[data.n++] = newer ? strdup(newer) : NULL;
	}
	fclose(f);
	if (!data.n)
		die("there are no keys");
}

/* All values have been replaced, and whoever did it knows that */
static volatile sig_atomic_t replaced;

static void on_replaced(int sig)
{
	(void)sig;
	replaced = 1;
}

static void note_error(const char *why)
{
	seen.errors++;
	snprintf(seen.why, sizeof(seen.why), "%s", why);
}

static void begin(void)
{
	seen.begin = seen.last_value = seen.last_answer = clock_ns();
}

static bool is_over(uint64_t ms)
{
	return clock_ns() - seen.begin >= ms * 1000000;
}

static void lengthen(uint64_t *longest, uint64_t *since, uint64_t now)
{
	if (now - *since > *longest)
		*longest = now - *since;
	*since = now;
}

/* @bin: its place in the bins */
static void note_answer(uint64_t now, uint64_t *bin)
{
	*bin = (now - seen.begin) / seen.bin_ns;
	if (*bin >= BINS)
		*bin = BINS - 1;
	lengthen(&seen.silent, &seen.last_answer, now);
}

static void note_miss(void)
{
	uint64_t bin;

	note_answer(clock_ns(), &bin);
	seen.misses[bin]++;
}

static void note_value(bool right, bool by_nic)
{
	const uint64_t now = clock_ns();
	uint64_t bin;

	note_answer(now, &bin);
	lengthen(&seen.gap, &seen.last_value, now);
	seen.wrong += !right;
	seen.bins[bin] += right;
	seen.by_nic[bin] += right && by_nic;
}

static bool is_text(const char *text, const void *value, size_t len)
{
	return text && len == strlen(text) && memcmp(value, text, len) == 0;
}

/* @old: the get began before it was known that the value was replaced */
static bool is_value(unsigned i, bool old, const void *value, size_t len)
{
	return (old && is_text(data.value[i], value, len)) || is_text(data.newer[i], value, len);
}

/* ---- reddn ---- */

static bool ask_reddn(struct reddn *c, unsigned i)
{
	char value[TEXT];
	bool old = !replaced;
	size_t len;
	int r = reddn_get(c, data.key[i], strlen(data.key[i]), value, sizeof(value), &len);

	if (r < 0) {
		note_error(*reddn_errmsg(c) ? reddn_errmsg(c) : strerror(-r));
		return false;
	}
	if (r == REDDN_MISS)
		note_miss();
	else
		note_value(is_value(i, old, value, len), true);
	return true;
}

static void run_session(char **argv, uint64_t ms, uint16_t flags)
{
	const struct reddn_options options = {.host = argv[2],
		.port = (uint16_t)arg_number(argv[3], UINT16_MAX),
		.offload = argv[4],
		.timeout_ms = CONNECT_MS,
		.flags = flags};
	char err[256];
	struct reddn *c;

	if (reddn_connect(&c, &options, err, sizeof(err)) < 0)
		die("%s", err);
	begin();
	for (unsigned i = 0; !is_over(ms) && (ask_reddn(c, i) || !flags); i = (i + 1) % data.n)
		;
	reddn_close(c);
}

static void run_reddn(char **argv, uint64_t ms)
{
	run_session(argv, ms, REDDN_NO_RECONNECT);
}

static void run_lasting(char **argv, uint64_t ms)
{
	run_session(argv, ms, 0);
}

/* ---- libreddn-mc ---- */

/* Until the NIC answers */
static void wait_for_nic(struct reddn_mc *mc)
{
	const uint64_t until = clock_ns() + CONNECT_MS * 1000000ull;
	struct reddn_mc_server server;
	struct reddn_mc_result res;

	while (reddn_mc_get(mc, data.key[0], strlen(data.key[0]), &res) < 0 || !res.by_nic) {
		if (clock_ns() > until) {
			reddn_mc_get_server(mc, 0, &server);
			die("%s", server.why);
		}
		usleep(RETRY_US);
	}
}

static void run_mc(char **argv, uint64_t ms)
{
	const struct reddn_mc_options options = {.port = (uint16_t)arg_number(argv[3], UINT16_MAX),
		.offload = argv[4],
		.connect_ms = CONNECT_MS,
		.reply_ms = REPLY_MS};
	struct reddn_mc_result res;
	struct reddn_mc *mc;
	char err[256];

	if (reddn_mc_connect(&mc, argv[2], &options, err, sizeof(err)) < 0)
		die("%s", err);
	wait_for_nic(mc);
	begin();
	for (unsigned i = 0; !is_over(ms); i = (i + 1) % data.n) {
		int r = reddn_mc_get(mc, data.key[i], strlen(data.key[i]), &res);

		if (r < 0)
			note_error(*reddn_mc_errmsg(mc) ? reddn_mc_errmsg(mc) : strerror(-r));
		else if (r == REDDN_MISS)
			note_miss();
		else
			note_value(is_value(i, true, res.value, res.length), res.by_nic);
	}
	reddn_mc_close(mc);
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
		note_value(have == want && memcmp(text, wanted, want) == 0, false);
	else
		note_miss();
	return true;
}

static void run_memcached(char **argv, uint64_t ms)
{
	int fd = open_memcached(argv);

	if (fd < 0)
		die("memcached does not let a client in");
	begin();
	for (unsigned i = 0; !is_over(ms); i = (i + 1) % data.n) {
		if (fd >= 0 && ask_memcached(fd, i))
			continue;
		note_error(fd >= 0 ? "the connection was lost" : "the connection was refused");
		if (fd >= 0)
			close(fd);
		usleep(RETRY_US);
		fd = open_memcached(argv);
	}
}

/* ---- the result ---- */

static void print_bins(const char *name, const uint64_t *bins, uint64_t n)
{
	printf("\"%s\": [", name);
	for (uint64_t i = 0; i < n; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)bins[i]);
	printf("], ");
}

static void print(uint64_t ms)
{
	const uint64_t bins = ms * 1000000 / seen.bin_ns, end = seen.begin + ms * 1000000;

	if (end > seen.last_value)
		lengthen(&seen.gap, &seen.last_value, end);
	if (end > seen.last_answer)
		lengthen(&seen.silent, &seen.last_answer, end);
	printf("{\"begin_ns\": %llu, ", (unsigned long long)seen.begin);
	print_bins("bins", seen.bins, bins);
	print_bins("by_nic", seen.by_nic, bins);
	print_bins("misses", seen.misses, bins);
	printf("\"wrong\": %llu, \"errors\": %llu, \"gap_us\": %llu, \"silent_us\": %llu, \"why\": \"%s\"}\n",
		(unsigned long long)seen.wrong, (unsigned long long)seen.errors,
		(unsigned long long)(seen.gap / 1000), (unsigned long long)(seen.silent / 1000), seen.why);
}

static const struct {
	const char *name;
	int words; /* of where it asks */
	void (*run)(char **argv, uint64_t ms);
} clients[] = {{"reddn", 3, run_reddn}, {"lasting", 3, run_lasting}, {"mc", 3, run_mc},
	{"memcached", 2, run_memcached}};

int main(int argc, char **argv)
{
	unsigned k = 0;
	uint64_t ms;
	int first;

	while (k < COUNT(clients) && (argc < 2 || strcmp(argv[1], clients[k].name) != 0))
		k++;
	if (k == COUNT(clients) || argc != clients[k].words + 5)
		return 2;
	first = clients[k].words + 2;
	ms = arg_number(argv[first], UINT32_MAX);
	seen.bin_ns = arg_number(argv[first + 1], UINT16_MAX) * 1000000;
	if (!ms || !seen.bin_ns || ms * 1000000 / seen.bin_ns > BINS)
		return 2;
	read_keys(argv[first + 2]);
	signal(SIGUSR1, on_replaced);
	clients[k].run(argv, ms);
	print(ms);
	return 0;
}
