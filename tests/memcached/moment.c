/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/memcached/moment.h"

#include "tests/lib/die.h"
#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void moment_pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Until this memcached is proved */
static void learn(struct moment *m)
{
	const struct reddn_arg nowhere = {0};

	for (uint64_t end = clock_ms() + MOMENT_WAIT_MS; !m->facts.known && clock_ms() < end;) {
		struct reddn_result r;
		struct mc_lines lines;

		if (reddn_call_submit(m->c, &nowhere, 1, 0) < 0)
			die("submit: %s", reddn_errmsg(m->c));
		r = moment_reply(m);
		mc_facts_take(&m->facts, &lines, mc_lines_read(r.value, r.length, &lines), clock_ms());
		reddn_release(m->c);
		moment_pause_ms(1);
	}
	if (!m->facts.known)
		die("memcached is not proved");
}

void moment_open(struct moment *m, char *const args[5])
{
	const struct reddn_options options = {.host = args[0],
		.port = (uint16_t)atoi(args[1]),
		.offload = args[2],
		.depth = 1,
		.timeout_ms = MOMENT_WAIT_MS,
		.flags = REDDN_NO_RECONNECT};
	char err[256];

	*m = (struct moment){.hold = args[4]};
	if (talk_open(&m->t, args[3], MOMENT_WAIT_MS, err, sizeof(err)) < 0 ||
		reddn_connect(&m->c, &options, err, sizeof(err)) < 0)
		die("%s", err);
	learn(m);
}

void moment_close(struct moment *m)
{
	reddn_close(m->c);
	talk_close(&m->t);
	talk_deinit(&m->t);
}

static void wait_until(bool (*is_so)(const struct moment *), const struct moment *m, const char *what)
{
	uint64_t end = clock_ms() + MOMENT_WAIT_MS;

	while (!is_so(m)) {
		if (clock_ms() > end)
			die("%s", what);
		moment_pause_ms(1);
	}
}

/* ---- memcached -------------------------------------------------------------------------- */

void moment_ask(struct moment *m, const char *wanted, const char *command)
{
	char answer[256];
	int e = talk_ask(&m->t, answer, sizeof(answer), "%s", command);

	if (e < 0 || strcmp(answer, wanted) != 0)
		die("%.40s: %s", command, e < 0 ? strerror(-e) : answer);
}

void moment_hold_memcached(const struct moment *m)
{
	close(open(m->hold, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static bool is_held(const struct moment *m)
{
	return access(m->hold, F_OK) < 0;
}

void moment_wait_for_memcached(const struct moment *m)
{
	wait_until(is_held, m, "memcached copies nothing");
}

void moment_release_memcached(const struct moment *m)
{
	char held[4096];

	snprintf(held, sizeof(held), "%s.held", m->hold);
	unlink(held);
}

/* ---- the NIC ---------------------------------------------------------------------------- */

void moment_fault(const char *format, ...)
{
	char words[100], command[200];
	va_list ap;

	va_start(ap, format);
	vsnprintf(words, sizeof(words), format, ap);
	va_end(ap);
	snprintf(command, sizeof(command), "\"$SOFTCX\" fault clear >&2 && \"$SOFTCX\" fault add %s >&2",
		words);
	if (system(command) != 0)
		die("%s", command);
}

static bool has_struck(const struct moment *m)
{
	(void)m;
	return system("\"$SOFTCX\" fault list --json | grep -q '\"struck\":1'") == 0;
}

void moment_wait_for_nic(void)
{
	wait_until(has_struck, NULL, "the NIC does not read");
}

struct mc_place moment_place(const struct moment *m, const char *key)
{
	struct mc_place place = {0};

	mc_facts_place(&m->facts, 0, key, strlen(key), &place);
	return place;
}

void moment_submit(struct moment *m, const char *key)
{
	const struct reddn_arg at = {.number = moment_place(m, key).at};

	if (reddn_call_submit(m->c, &at, 1, 0) < 0)
		die("submit: %s", reddn_errmsg(m->c));
}

struct reddn_result moment_reply(struct moment *m)
{
	struct reddn_result r;

	if (reddn_wait(m->c, &r, 1, MOMENT_WAIT_MS) != 1 || r.status < 0)
		die("no answer: %s", reddn_errmsg(m->c));
	return r;
}

enum mc_judgement moment_judge(const struct moment *m, const struct reddn_result *r, const char *key,
	uint64_t newest, unsigned leave_out, struct mc_item *item)
{
	const struct mc_question q = {.key = key,
		.key_len = strlen(key),
		.clock = mc_facts_clock(&m->facts, clock_ms()),
		.newest = newest,
		.rules = MC_RULES & ~leave_out};
	struct mc_lines lines;

	item->cas = 0;
	if (!mc_lines_read(r->value, r->length, &lines))
		return MC_UNSURE;
	return mc_judge(r->value, r->length, &lines, &q, item);
}

void moment_hit(struct moment *m, const char *key, struct mc_item *item)
{
	for (uint64_t end = clock_ms() + MOMENT_WAIT_MS; clock_ms() < end;) {
		const uint64_t newest = m->facts.newest;
		struct reddn_result r;

		moment_submit(m, key);
		r = moment_reply(m);
		if (moment_judge(m, &r, key, newest, 0, item) == MC_HIT)
			return;
		mc_facts_saw(&m->facts, item->cas);
		reddn_release(m->c);
		moment_pause_ms(1);
	}
	die("no hit of %s", key);
}
