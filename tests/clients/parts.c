/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts replaced HOST PORT - gets, and asks for, keys of a table that is replaced by one with longer keys,
 * after a line on standard input. parts moved HOSTS PORT - asks which of absent keys exist, until the host
 * that could tell has no such part any more, nor has another. parts lasting HOSTS PORT - gets, and asks for,
 * keys that are there and keys that are not, many at once, until SIGINT; on SIGUSR1 it gets no more until it
 * has what it has asked for. It rests in between, and leaves the processor to other tests.
 */
#include "libclient/reddn.h"
#include "util/array.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char long_key[] = "a key that is longer than the table before takes";

static int complain(const char *what, int r)
{
	fprintf(stderr, "parts: %s: %d (%s)\n", what, r, strerror(r < 0 ? -r : 0));
	return 1;
}

/* Until the parts have sessions, gets go without them */
static int use_parts(struct reddn *c)
{
	char value[4][100];
	struct reddn_exists there[] = {{.key = "k1", .key_len = 2}, {.key = "k2", .key_len = 2}};
	struct reddn_mget get[COUNT(value)];
	int r = reddn_exists(c, there, COUNT(there));

	if (r < 0 || there[0].status || there[1].status)
		return complain("exists", r);
	for (unsigned n = 0; n < 1000; n++) {
		for (unsigned i = 0; i < COUNT(value); i++)
			get[i] = (struct reddn_mget){
				.key = "k1", .key_len = 2, .buf = value[i], .buf_len = sizeof(value[i])};
		r = reddn_mget(c, get, COUNT(get));
		if (r < 0 || get[3].status)
			return complain("mget", r);
	}
	return 0;
}

static int replaced(struct reddn *c)
{
	const size_t len = sizeof(long_key) - 1;
	char value[100];
	struct reddn_mget get = {.key = long_key, .key_len = len, .buf = value, .buf_len = sizeof(value)};
	struct reddn_exists there = {.key = long_key, .key_len = len};
	int r = use_parts(c);

	if (r)
		return r;
	puts("ready");
	fflush(stdout);
	(void)getchar();
	/* by this one the handle learns that the table was replaced */
	r = reddn_get(c, "k1", 2, value, sizeof(value), &(size_t){0});
	if (r < 0)
		return complain("get", r);
	r = reddn_mget(c, &get, 1);
	if (r < 0 || get.status)
		return complain("mget of a long key", r < 0 ? r : get.status);
	r = reddn_exists(c, &there, 1);
	return r < 0 || there.status ? complain("exists of a long key", r < 0 ? r : there.status) : 0;
}

static int moved(struct reddn *c)
{
	/* so many that it moves while some of them are asked for */
	static char name[20000][16];
	static struct reddn_exists absent[COUNT(name)];
	unsigned long asked = 0, exist = 0;
	int r;

	puts("ready");
	fflush(stdout);
	do {
		for (unsigned i = 0; i < COUNT(name); i++)
			absent[i] = (struct reddn_exists){.key = name[i],
				.key_len = (size_t)snprintf(name[i], sizeof(name[i]), "no %lu", asked++)};
		r = reddn_exists(c, absent, COUNT(absent));
		for (unsigned i = 0; r == 0 && i < COUNT(name); i++)
			exist += absent[i].status == 0;
	} while (r == 0);
	printf("%lu of %lu absent keys exist\n", exist, asked);
	/* by chance one of 32,262 */
	return r != -ENOENT || exist > 10 + asked / 3226 ? complain("exists", r) : 0;
}

/* ---- lasting ---- */

enum { KEYS_AT_ONCE = 4, RESULTS = 64, SLEEP_MS = 200, REST_US = 5000 };

static struct {
	unsigned long asked, submitted, gets, questions, exist;
} lasting_count;

static volatile sig_atomic_t stopped, paused;

static void on_signal(int sig)
{
	*(sig == SIGINT ? &stopped : &paused) = 1;
}

/* The first two keys are there, the others are not. Cookies of questions are from KEYS_AT_ONCE on */
static int lasting_submit(struct reddn *c, bool exists)
{
	char name[2][24];
	struct reddn_key keys[KEYS_AT_ONCE] = {{"k1", 2}, {"k2", 2}};
	int r;

	for (unsigned i = 0; i < 2; i++)
		keys[2 + i] = (struct reddn_key){name[i],
			(size_t)snprintf(name[i], sizeof(name[i]), "no %lu", lasting_count.asked + i)};
	r = exists ? reddn_exists_submit(c, keys, KEYS_AT_ONCE, KEYS_AT_ONCE)
		   : reddn_mget_submit(c, keys, KEYS_AT_ONCE, 0);
	lasting_count.asked += r == 0 ? 2 : 0;
	lasting_count.submitted += r == 0 && !exists ? KEYS_AT_ONCE : 0;
	return r;
}

static bool lasting_is_right(const struct reddn_result *res)
{
	bool there = res->cookie % KEYS_AT_ONCE < 2, question = res->cookie >= KEYS_AT_ONCE;

	lasting_count.questions += question;
	lasting_count.gets += !question;
	if (question && !there && res->status == 0) {
		lasting_count.exist++;
		return true;
	}
	if (!there || res->status)
		return !there && res->status == REDDN_MISS;
	return question || (res->length == 5 && memcmp(res->value, "value", 5) == 0);
}

static int lasting_take(struct reddn *c)
{
	struct reddn_result res[RESULTS];
	int n = reddn_wait(c, res, RESULTS, SLEEP_MS);

	for (int i = 0; i < n; i++)
		if (!lasting_is_right(&res[i])) {
			fprintf(stderr, "parts: key %u: %s\n", (unsigned)res[i].cookie, reddn_errmsg(c));
			return complain("wrong", res[i].status);
		}
	return n < 0 ? complain("wait", n) : 0;
}

static int lasting(struct reddn *c)
{
	int r = 0, gets, questions;

	signal(SIGINT, on_signal);
	signal(SIGUSR1, on_signal);
	setlinebuf(stdout);
	puts("ready");
	while (!stopped && r == 0) {
		do {
			gets = paused ? -EAGAIN : lasting_submit(c, false);
			questions = lasting_submit(c, true);
		} while (gets == 0 || questions == 0);
		if (gets != -EAGAIN || questions != -EAGAIN)
			return complain("submit", gets != -EAGAIN ? gets : questions);
		r = lasting_take(c);
		usleep(REST_US);
		if (paused && lasting_count.gets == lasting_count.submitted)
			puts("no get is left");
		paused &= lasting_count.gets < lasting_count.submitted;
	}
	printf("%lu gets, %lu questions; %lu absent keys exist\n", lasting_count.gets,
		lasting_count.questions, lasting_count.exist);
	return r || lasting_count.exist > 10 + lasting_count.questions / 3226;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(struct reddn *);
	} modes[] = {{"replaced", replaced}, {"moved", moved}, {"lasting", lasting}};
	unsigned mode = 0;
	struct reddn_options opt = {.offload = "t", .timeout_ms = 60000};
	struct reddn *c;
	char err[256];
	int r;

	while (argc == 4 && mode < COUNT(modes) && strcmp(argv[1], modes[mode].name) != 0)
		mode++;
	if (argc != 4 || mode == COUNT(modes))
		return 2;
	opt.host = argv[2];
	opt.port = (uint16_t)strtoul(argv[3], NULL, 10);
	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0) {
		fprintf(stderr, "parts: %s\n", err);
		return 2;
	}
	r = modes[mode].run(c);
	reddn_close(c);
	return r;
}
