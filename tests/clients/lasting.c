/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lasting HOST PORT OFFLOAD [KEY] - a client that is meant to outlive its servers: keeps as many gets of KEY
 * in flight as it can, or, without KEY, calls with the arguments 0 and 2^40; sleeps on the descriptor of the
 * library in between, and rests after answers, to leave the processor to other tests. Ends on SIGINT. Prints,
 * each on a line of its own:
 *
 *     value VALUE       what a get returned, if the get before returned something else; "absent" for a miss
 *     error N WORDS     the status of a result, if that of the error before was another one or of another
 *                       session
 *     replies           a call has an answer, the first of a session
 *     silent            nothing came for a while
 *     session N         the handle has its N-th session
 *     unanswered        an attempt to connect again has had no answer
 *     host NAME         of several hosts, this one is asked now; "none"
 *     standby NAME      and this is the one that is ready; "none"
 *     end N             results in all
 */
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "util/array.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_MS = 100000, RESULTS = 16, SILENCE_MS = 200, REST_US = 5000, VALUE = 1024 };

static volatile sig_atomic_t stopped, marked;

static struct {
	struct reddn *c;
	const char *key;
	uint64_t session, results;
	uint64_t submitted, mark; /* the number of the next request; of the first one after a signal, or 0 */
	uint64_t older;           /* requests without a result, of those before it */
	int error;
	bool replied, unanswered;
	unsigned host, standby; /* index + 1; 0: none */
	char value[VALUE];
} client;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static void on_mark(int sig)
{
	(void)sig;
	marked = 1;
}

static int submit(void)
{
	static const struct reddn_arg args[] = {{.number = 0}, {.number = 1ull << 40}};

	return client.key ? reddn_get_submit(client.c, client.key, strlen(client.key), client.submitted)
			  : reddn_call_submit(client.c, args, COUNT(args), client.submitted);
}

static void see_mark(void)
{
	if (marked) {
		marked = 0;
		client.mark = client.submitted;
		client.older = client.submitted - client.results;
	}
	if (client.mark && !client.older) {
		printf("mark\n");
		client.mark = 0;
	}
}

static void failed(int error)
{
	if (error != client.error)
		printf("error %d %s\n", error, reddn_errmsg(client.c));
	client.error = error;
}

static void report(const struct reddn_result *res)
{
	char value[VALUE] = "absent";

	client.results++;
	if (client.mark && res->cookie < client.mark)
		client.older--;
	if (res->status < 0) {
		failed(res->status);
		return;
	}
	client.error = 0;
	if (!client.key) {
		if (!client.replied)
			printf("replies\n");
		client.replied = true;
		return;
	}
	if (res->status == 0)
		snprintf(value, sizeof(value), "%.*s", (int)res->length, (const char *)res->value);
	if (strcmp(value, client.value) != 0)
		printf("value %s\n", value);
	memcpy(client.value, value, sizeof(value));
}

static void see_session(void)
{
	struct reddn_info info;

	reddn_get_info(client.c, &info);
	if (info.reconnects + 1 == client.session)
		return;
	client.session = info.reconnects + 1;
	client.error = 0;
	client.replied = false;
	printf("session %" PRIu64 "\n", client.session);
}

/* An attempt to connect has ended without an answer */
static void see_attempts(void)
{
	bool unanswered = strstr(reddn_errmsg(client.c), "no answer in time");

	if (unanswered && !client.unanswered)
		printf("unanswered\n");
	client.unanswered = unanswered;
}

/* Of several hosts: print @word and the name of one that has got this state. */
static void see_host(enum reddn_host_state state, const char *word, unsigned *last)
{
	struct reddn_host_info info;
	unsigned now = 0;

	for (unsigned i = 0; reddn_get_host(client.c, i, &info) == 0; i++)
		if (info.state == state)
			now = i + 1;
	if (now == *last || reddn_get_host(client.c, 1, &info) < 0)
		return;
	*last = now;
	if (now && reddn_get_host(client.c, now - 1, &info) == 0)
		printf("%s %s\n", word, info.name);
	else
		printf("%s none\n", word);
}

/* Take what there is. False: nothing. */
static bool take(void)
{
	struct reddn_result res[RESULTS];
	int n, r;

	see_mark();
	while ((r = submit()) == 0)
		client.submitted++;
	if (r < 0 && r != -EAGAIN)
		failed(r);
	n = reddn_poll(client.c, res, RESULTS);
	see_session();
	see_attempts();
	see_host(REDDN_HOST_IN_USE, "host", &client.host);
	see_host(REDDN_HOST_STANDBY, "standby", &client.standby);
	for (int i = 0; i < n; i++)
		report(&res[i]);
	reddn_release(client.c);
	if (n < 0)
		failed(n);
	return n > 0;
}

int main(int argc, char **argv)
{
	struct reddn_options opt = {.timeout_ms = TIMEOUT_MS};
	bool silent = false;
	char why[300];

	if (argc < 4 || argc > 5)
		errx(2, "usage: lasting HOST PORT OFFLOAD [KEY]");
	setlinebuf(stdout);
	signal(SIGINT, on_signal);
	signal(SIGUSR1, on_mark);
	opt.host = argv[1];
	opt.port = (uint16_t)arg_number(argv[2], UINT16_MAX);
	opt.offload = argv[3];
	client.key = argv[4];
	if (reddn_connect(&client.c, &opt, why, sizeof(why)))
		errx(2, "%s", why);
	while (!stopped) {
		struct pollfd p = {.fd = reddn_fd(client.c), .events = POLLIN};

		if (reddn_arm(client.c) < 0)
			errx(2, "cannot arm");
		if (take()) {
			silent = false;
			usleep(REST_US);
			continue;
		}
		if (poll(&p, 1, SILENCE_MS) == 0 && !silent) {
			printf("silent\n");
			silent = true;
		}
	}
	printf("end %" PRIu64 "\n", client.results);
	reddn_close(client.c);
	return 0;
}
