/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tickets HOST PORT OFFLOAD - buys tickets of the first counter (conf/programs/counter.rdn), one at a time,
 * and expects each to be the next one, until SIGINT. Prints "bought N". If the session ends before that, it
 * prints the reason as well, and ends with status 3.
 */
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "util/array.h"

#include <endian.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

enum { TIMEOUT_MS = 100000, NUMBER_AT = 8, REPLY = 16 };
#define MANY (1ull << 40)

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

int main(int argc, char **argv)
{
	const struct reddn_arg args[] = {{.number = 0}, {.number = MANY}};
	struct reddn_options opt = {.timeout_ms = TIMEOUT_MS, .flags = REDDN_NO_RECONNECT};
	uint64_t sold = 0, number, next = 0;
	uint8_t reply[REPLY];
	struct reddn *c;
	char why[300];
	int r = 0;

	if (argc != 4)
		errx(2, "usage: tickets HOST PORT OFFLOAD");
	signal(SIGINT, on_signal);
	opt.host = argv[1];
	opt.port = (uint16_t)arg_number(argv[2], UINT16_MAX);
	opt.offload = argv[3];
	if (reddn_connect(&c, &opt, why, sizeof(why)))
		errx(2, "%s", why);
	for (; !stopped; next = le64toh(number) + 1, sold++) {
		r = reddn_call(c, args, COUNT(args), reply, sizeof(reply));
		if (r)
			break;
		memcpy(&number, reply + NUMBER_AT, sizeof(number));
		if (reply[0] != 1 || (sold && le64toh(number) != next))
			errx(1, "ticket %" PRIu64 " instead of %" PRIu64, le64toh(number), next);
	}
	printf("bought %" PRIu64 "\n", sold);
	if (r) {
		printf("%s: %s\n", strerror(-r), reddn_errmsg(c));
		return 3;
	}
	reddn_close(c);
	return 0;
}
