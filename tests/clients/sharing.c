/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sharing HOST PORT SWAPS ADDS TALLY ROLE - a client of words that others change, too (libreddn(3)). SWAPS
 * and ADDS are offloads of compare-and-swap.rdn and fetch-and-add.rdn with the same words. What it has done
 * is in the file TALLY at any time, for those who kill it. Until SIGINT, but for the last role:
 *
 *     count     takes the lock, and counts in the word that it protects
 *     keep      takes the other lock, and renews its lease: nobody must get it
 *     want      tries to take that one
 *     add       adds to a word
 *     swap      swaps a word for values of its own, 400 times: prints begin, end, expected, new and old word
 */
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "util/array.h"
#include "util/clock.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LOCK, COUNTED, KEPT, ADDED, SWAPPED }; /* numbers of words */
enum { TIMEOUT_MS = 100000, LEASE_MS = 200, KEPT_LEASE_MS = 2000, TRY_MS = 50, TURNS = 5, SWAPS = 400 };
enum { VALUE_BITS = 32 };

static volatile sig_atomic_t stopped;
static struct reddn *c;

/* Of what was begun and is not done nobody knows whether it was executed: what the library has reported as
 * -EINPROGRESS, and one more of a client that was killed. `token`: it has the lock */
static volatile struct tally {
	uint64_t begun, done, unknown, overtaken, taken, token;
} * tally;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static bool unknown(int r)
{
	if (r < 0 && r != -EINPROGRESS)
		errx(1, "%s: %s", strerror(-r), reddn_errmsg(c));
	return r < 0;
}

/* Only the holder changes the word from now on. -EPERM: a later one has it. */
static int stamp(const struct reddn_lock *l, uint64_t *seen)
{
	uint64_t was, own;

	for (;; *seen = was) {
		if (*seen >> VALUE_BITS > l->token)
			return -EPERM;
		own = l->token << VALUE_BITS | (*seen & ((1ull << VALUE_BITS) - 1));
		if (unknown(reddn_cas(c, COUNTED, *seen, own, &was)))
			return -EINPROGRESS;
		if (was == *seen)
			break;
	}
	*seen = own;
	return 0;
}

static int count_once(uint64_t *seen)
{
	uint64_t was;

	tally->begun++;
	if (unknown(reddn_cas(c, COUNTED, *seen, *seen + 1, &was))) {
		tally->unknown++;
		return -EINPROGRESS;
	}
	if (was != *seen) {
		tally->begun--;
		return -EPERM;
	}
	tally->done++;
	++*seen;
	return 0;
}

static void count(void)
{
	struct reddn_lock l = {.word = LOCK, .lease_ms = LEASE_MS};
	uint64_t seen = 0;
	int r = reddn_lock(c, &l, -1);

	for (; !stopped; r = reddn_lock(c, &l, -1)) {
		if (unknown(r))
			continue;
		tally->taken++;
		tally->token = l.token;
		r = stamp(&l, &seen);
		for (unsigned i = 0; i < TURNS && r == 0; i++)
			r = count_once(&seen);
		if (r == 0)
			r = reddn_lock_renew(c, &l);
		tally->token = 0;
		tally->overtaken += r == -EPERM;
		while ((r = reddn_unlock(c, &l)) == -EINPROGRESS)
			;
		if (r < 0 && r != -EPERM)
			unknown(r);
	}
}

/* A lease that was renewed in time, by the clock of the holder, is not ended. */
static void keep(void)
{
	struct reddn_lock l = {.word = KEPT, .lease_ms = KEPT_LEASE_MS};

	if (reddn_lock(c, &l, -1) < 0)
		errx(1, "no lock: %s", reddn_errmsg(c));
	tally->token = l.token;
	while (!stopped) {
		uint64_t until = l.since + KEPT_LEASE_MS * 1000000ull;
		int r = reddn_lock_renew(c, &l);

		if (r == -EPERM && clock_ns() >= until) {
			tally->overtaken++; /* the machine was busy with something else */
			reddn_lock(c, &l, -1);
		} else if (r < 0) {
			errx(1, "the lease was ended: %s", strerror(-r));
		}
		tally->done++;
		usleep(KEPT_LEASE_MS * 10);
	}
	if (reddn_unlock(c, &l) < 0)
		tally->overtaken++;
}

static void want(void)
{
	struct reddn_lock l = {.word = KEPT, .lease_ms = KEPT_LEASE_MS};

	while (!stopped) {
		int r = reddn_lock(c, &l, TRY_MS);

		tally->done++;
		if (r == -EAGAIN)
			continue;
		if (unknown(r))
			continue;
		tally->taken++;
		reddn_unlock(c, &l);
	}
}

static void add(void)
{
	uint64_t was;

	while (!stopped) {
		tally->begun++;
		if (unknown(reddn_faa(c, ADDED, 1, &was)))
			tally->unknown++;
		else
			tally->done++;
	}
}

static void swap(void)
{
	uint64_t seen = 0, was, mine = (uint64_t)getpid() << 32;

	for (unsigned i = 0; i < SWAPS; i++) {
		uint64_t begin = clock_ns();
		int r = reddn_cas(c, SWAPPED, seen, ++mine, &was);

		if (r < 0)
			errx(1, "%s", strerror(-r));
		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", begin, clock_ns(),
			seen, mine, was);
		seen = was == seen ? mine : was;
	}
}

static const struct role {
	const char *name;
	void (*run)(void);
	bool adds;
} roles[] = {{"count", count, false}, {"keep", keep, false}, {"want", want, false}, {"add", add, true},
	{"swap", swap, false}};

int main(int argc, char **argv)
{
	struct reddn_options opt = {.timeout_ms = TIMEOUT_MS};
	const struct role *role = NULL;
	char why[300];
	int fd;

	if (argc != 7)
		errx(2, "usage: sharing HOST PORT SWAPS ADDS TALLY ROLE");
	for (unsigned i = 0; i < COUNT(roles); i++)
		if (strcmp(roles[i].name, argv[6]) == 0)
			role = &roles[i];
	if (!role)
		errx(2, "there is no role \"%s\"", argv[6]);
	sigaction(SIGINT, &(struct sigaction){.sa_handler = on_signal}, NULL);
	fd = open(argv[5], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*tally)) < 0)
		err(2, "%s", argv[5]);
	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (tally == MAP_FAILED)
		err(2, "%s", argv[5]);
	opt.host = argv[1];
	opt.port = (uint16_t)arg_number(argv[2], UINT16_MAX);
	opt.offload = role->adds ? argv[4] : argv[3];
	if (reddn_connect(&c, &opt, why, sizeof(why)))
		errx(2, "%s", why);
	role->run();
	reddn_close(c);
	return 0;
}
