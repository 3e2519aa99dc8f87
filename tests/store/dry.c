/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dry ADDRESS PORT PUTS SESSIONS DEPTH OPS KEYS - as many sessions of the offload PUTS as the server accepts,
 * up to SESSIONS, each with DEPTH puts under way all the time, until OPS have ended, of KEYS keys. Prints
 * what became of them. No put may end but as done, for want of room, or because it was asked in vain for too
 * long.
 */
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "tests/lib/die.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 64, RESULTS = 64 };

static struct reddn *c[MOST];
static unsigned done, full, late;

static void count(const struct reddn *of, const struct reddn_result *r)
{
	done += r->status == 0;
	full += r->status == -ENOSPC;
	late += r->status == -EAGAIN;
	if (r->status && r->status != -ENOSPC && r->status != -EAGAIN)
		die("a put ends with %s: %s", strerror(-r->status), reddn_errmsg(of));
}

int main(int argc, char **argv)
{
	const char value[48] = "a value";
	struct reddn_result res[RESULTS];
	unsigned sessions = 0, refused = 0, next = 0;
	char err[300] = "";

	if (argc != 8)
		die("dry ADDRESS PORT PUTS SESSIONS DEPTH OPS KEYS");
	uint64_t most = arg_number(argv[4], MOST), depth = arg_number(argv[5], 1024),
		 ops = arg_number(argv[6], UINT32_MAX), keys = arg_number(argv[7], UINT32_MAX);
	const struct reddn_options opt = {.host = argv[1],
		.port = (uint16_t)arg_number(argv[2], UINT16_MAX),
		.offload = argv[3],
		.depth = (uint32_t)depth,
		.retry_ms = 50};

	while (sessions + refused < most) {
		int r = reddn_connect(&c[sessions], &opt, err, sizeof(err));

		if (r < 0 && r != -EBUSY)
			die("%s", err);
		*(r < 0 ? &refused : &sessions) += 1;
	}
	while (done + full + late < ops)
		for (unsigned i = 0; i < sessions; i++) {
			char key[16];
			int n;

			do
				n = snprintf(
					key, sizeof(key), "key-%u", (unsigned)(next++ * 2654435761u % keys));
			while (reddn_put_submit(c[i], key, (size_t)n, value, sizeof(value), 0) == 0);
			n = reddn_poll(c[i], res, RESULTS);
			if (n < 0)
				die("session %u: %s", i, reddn_errmsg(c[i]));
			for (int k = 0; k < n; k++)
				count(c[i], &res[k]);
		}
	printf("%u sessions, %u refused (%s); %u puts done, %u found no room, %u were asked in vain\n",
		sessions, refused, err, done, full, late);
	for (unsigned i = 0; i < sessions; i++)
		reddn_close(c[i]);
	return done ? 0 : 1;
}
