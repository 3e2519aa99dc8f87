/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * moved RDMA-ADDRESS PORT OFFLOAD SERVER HOLD DELAY_MS: what only the rule of places refuses
 * (libclient/mc/judge.h). The NIC has read the bucket, which points to an item; that one is deleted, and
 * memcached moves another item of the bucket to its place. While the copy is half done, and the item still in
 * the table where it was, the NIC reads at that place: header, item and header are the same.
 *
 * The memcached has no items of this size yet, and is slowed (slow.c) with SLOW_HOLD=HOLD. OFFLOAD sends one
 * item of a bucket. $SOFTCX is the tool that holds the READ of the first header for DELAY_MS.
 *
 * Prints what becomes of the reply with all rules, and without the one. Status 0: it is unsure with all
 * rules, and a value that was never set without the one; and the right value comes once the item is moved. 1:
 * it is not so. 3: this was not in time.
 */
#include "libclient/mc/facts.h"
#include "libclient/reddn.h"
#include "memcached/talk.h"
#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	VALUE = 8000,
	NAME = 32,
	CLASSES = 64,
	WAIT_MS = 60000,
	BUCKETS = 3, /* READs of the bucket, before that of a header */
	NOT_IN_TIME = 3,
};

static const char moved[] = "moved";
static const char *hold, *server;
static struct mc_facts facts;
static struct reddn *c;
static struct talk t;

static _Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* ---- memcached -------------------------------------------------------------------------- */

static void ask(const char *wanted, const char *command)
{
	char answer[256];
	int e = talk_ask(&t, answer, sizeof(answer), "%s", command);

	if (e < 0 || strcmp(answer, wanted) != 0)
		die("%.40s: %s", command, e < 0 ? strerror(-e) : answer);
}

static void set(const char *name, char fill)
{
	char command[VALUE + 100];
	int n = snprintf(command, sizeof(command), "set %s 0 0 %d\r\n", name, VALUE);

	memset(command + n, fill, VALUE);
	command[n + VALUE] = '\0';
	ask("STORED", command);
}

/* Of the largest class of slabs in use: items of a page */
static unsigned per_page(unsigned *class)
{
	static char names[CLASSES][NAME];
	struct talk_stat stats[CLASSES];

	for (unsigned i = 0; i < CLASSES; i++) {
		snprintf(names[i], NAME, "%u:chunks_per_page", i);
		stats[i].name = names[i];
	}
	if (talk_stats(&t, "slabs", stats, CLASSES) < 0)
		die("stats slabs");
	for (*class = CLASSES - 1; *class && !*stats[*class].value;)
		--*class;
	return (unsigned)atoi(stats[*class].value);
}

/* The item that is moved is the first of the first page, whose chunks are given out from the last to the
 * first; and what was set after it, the first item of its bucket, is in the second page. Returns their class.
 */
static unsigned fill(const char *before)
{
	unsigned class, others;
	char name[NAME];

	set("other-0", 'o');
	others = per_page(&class) - 1;
	for (unsigned i = 1; i < others; i++) {
		snprintf(name, sizeof(name), "other-%u", i);
		set(name, 'o');
	}
	set(moved, 'm');
	set(before, 'b');
	return class;
}

/* ---- the NIC ---------------------------------------------------------------------------- */

static struct mc_place place_of(const char *name)
{
	struct mc_place place = {0};

	mc_facts_place(&facts, 0, name, strlen(name), &place);
	return place;
}

static void submit(uint64_t at)
{
	const struct reddn_arg arg = {.number = at};

	if (reddn_call_submit(c, &arg, 1, 0) < 0)
		die("submit: %s", reddn_errmsg(c));
}

static struct reddn_result wait_for_reply(void)
{
	struct reddn_result r;

	if (reddn_wait(c, &r, 1, WAIT_MS) != 1 || r.status < 0)
		die("no answer: %s", reddn_errmsg(c));
	return r;
}

/* Until this memcached is proved */
static void learn(void)
{
	for (uint64_t end = clock_ms() + WAIT_MS; !facts.known && clock_ms() < end;) {
		struct reddn_result r;
		struct mc_lines lines;

		submit(0);
		r = wait_for_reply();
		mc_facts_take(&facts, &lines, mc_lines_read(r.value, r.length, &lines), clock_ms());
		reddn_release(c);
		pause_ms(1);
	}
	if (!facts.known)
		die("memcached is not proved");
}

static enum mc_judgement judge(const struct reddn_result *r, unsigned leave_out, struct mc_item *item)
{
	struct mc_question q = {.key = moved, .key_len = strlen(moved), .rules = MC_RULES & ~leave_out};
	struct mc_lines lines;

	if (!mc_lines_read(r->value, r->length, &lines))
		return MC_UNSURE;
	q.clock = mc_facts_clock(&facts, clock_ms());
	return mc_judge(r->value, r->length, &lines, &q, item);
}

static bool is_right(const struct mc_item *item)
{
	for (size_t i = 0; i < item->len; i++)
		if (item->value[i] != 'm')
			return false;
	return item->len == VALUE;
}

/* ---- the moment ------------------------------------------------------------------------- */

static void softcx(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void softcx(const char *format, ...)
{
	char words[200];
	va_list ap;

	va_start(ap, format);
	vsnprintf(words, sizeof(words), format, ap);
	va_end(ap);
	if (system(words) != 0)
		die("%s", words);
}

static bool is_held_by_nic(void)
{
	return system("\"$SOFTCX\" fault list --json | grep -q '\"struck\":1'") == 0;
}

static bool is_held_by_memcached(void)
{
	return access(hold, F_OK) < 0;
}

static void wait_until(bool (*is_so)(void), const char *what)
{
	uint64_t end = clock_ms() + WAIT_MS;

	while (!is_so()) {
		if (clock_ms() > end)
			die("%s", what);
		pause_ms(1);
	}
}

/* The reply to a question whose READs came in the midst of the copy. Status 3: they did not */
static struct reddn_result read_half_done(unsigned class, const char *before, unsigned delay_ms)
{
	struct reddn_result r;
	char command[100];

	close(open(hold, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	softcx("\"$SOFTCX\" fault clear >&2 && \"$SOFTCX\" fault add delay %u000 --opcode read --at %d >&2",
		delay_ms, BUCKETS + 1);
	submit(place_of(moved).at);
	wait_until(is_held_by_nic, "the NIC does not read");
	snprintf(command, sizeof(command), "delete %s", before);
	ask("DELETED", command);
	snprintf(command, sizeof(command), "slabs reassign %u 1", class);
	ask("OK", command);
	wait_until(is_held_by_memcached, "memcached moves nothing");
	if (reddn_poll(c, &r, 1) != 0)
		exit(NOT_IN_TIME);
	return wait_for_reply();
}

static void release_memcached(void)
{
	char held[4096];

	snprintf(held, sizeof(held), "%s.held", hold);
	unlink(held);
}

/* It is soon where it belongs */
static bool comes_right(void)
{
	bool right = false;

	for (uint64_t end = clock_ms() + WAIT_MS; !right && clock_ms() < end;) {
		struct reddn_result r;
		struct mc_item item;

		submit(place_of(moved).at);
		r = wait_for_reply();
		if (judge(&r, 0, &item) == MC_HIT) {
			right = is_right(&item);
			if (!right)
				break;
		}
		reddn_release(c);
		pause_ms(1);
	}
	return right;
}

/* The value was never set */
static bool is_torn(const struct reddn_result *r, unsigned leave_out)
{
	struct mc_item item;

	return judge(r, leave_out, &item) == MC_HIT && !is_right(&item);
}

int main(int argc, char **argv)
{
	struct reddn_options options = {.depth = 1, .timeout_ms = WAIT_MS};
	bool torn, refused, right;
	unsigned class, leave_out;
	struct reddn_result r;
	struct mc_item item;
	char before[NAME], err[256];

	if (argc != 7)
		return 2;
	options.host = argv[1];
	options.port = (uint16_t)atoi(argv[2]);
	options.offload = argv[3];
	server = argv[4];
	hold = argv[5];
	if (talk_open(&t, server, WAIT_MS, err, sizeof(err)) < 0 ||
		reddn_connect(&c, &options, err, sizeof(err)) < 0)
		die("%s", err);
	learn();
	for (unsigned i = 0;
		snprintf(before, sizeof(before), "before-%u", i), place_of(before).at != place_of(moved).at;)
		i++;
	class = fill(before);
	r = read_half_done(class, before, (unsigned)atoi(argv[6]));
	/* of an item that keeps its CAS id the counter's rule refuses the copy, too */
	leave_out = MC_RULE_PLACES | (facts.lines.served.traits & REDDN_CACHE_IDS_MOVE ? MC_RULE_COUNTER : 0);
	torn = is_torn(&r, leave_out);
	refused = judge(&r, 0, &item) == MC_UNSURE;
	reddn_release(c);
	release_memcached();
	right = comes_right();
	printf("{\"torn_without\": %d, \"unsure\": %d, \"right_later\": %d}\n", torn, refused, right);
	reddn_close(c);
	talk_close(&t);
	return !(torn && refused && right);
}
