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
#include "tests/lib/die.h"
#include "tests/memcached/moment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	VALUE = 8000,
	NAME = 32,
	CLASSES = 64,
	NOT_IN_TIME = 3,
};

static const char moved[] = "moved";
static struct moment m;

static void set(const char *name, char fill)
{
	char command[VALUE + 100];
	int n = snprintf(command, sizeof(command), "set %s 0 0 %d\r\n", name, VALUE);

	memset(command + n, fill, VALUE);
	command[n + VALUE] = '\0';
	moment_ask(&m, "STORED", command);
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
	if (talk_stats(&m.t, "slabs", stats, CLASSES) < 0)
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

static bool is_right(const struct mc_item *item)
{
	for (size_t i = 0; i < item->len; i++)
		if (item->value[i] != 'm')
			return false;
	return item->len == VALUE;
}

/* The reply to a question whose READs came in the midst of the copy. Status 3: they did not */
static struct reddn_result read_half_done(unsigned class, const char *before, unsigned delay_ms)
{
	struct reddn_result r;
	char command[100];

	moment_hold_memcached(&m);
	moment_fault("delay %u000 --opcode read --at %d", delay_ms, MOMENT_BUCKETS + 1);
	moment_submit(&m, moved);
	moment_wait_for_nic();
	snprintf(command, sizeof(command), "delete %s", before);
	moment_ask(&m, "DELETED", command);
	snprintf(command, sizeof(command), "slabs reassign %u 1", class);
	moment_ask(&m, "OK", command);
	moment_wait_for_memcached(&m);
	if (reddn_poll(m.c, &r, 1) != 0)
		exit(NOT_IN_TIME);
	return moment_reply(&m);
}

int main(int argc, char **argv)
{
	bool torn, refused, right;
	unsigned class, leave_out;
	struct reddn_result r;
	struct mc_item item;
	char before[NAME];

	if (argc != 7)
		return 2;
	moment_open(&m, argv + 1);
	for (unsigned i = 0; snprintf(before, sizeof(before), "before-%u", i),
		      moment_place(&m, before).at != moment_place(&m, moved).at;)
		i++;
	class = fill(before);
	r = read_half_done(class, before, (unsigned)atoi(argv[6]));
	/* of an item that keeps its CAS id the counter's rule refuses the copy, too */
	leave_out =
		MC_RULE_PLACES | (m.facts.lines.served.traits & REDDN_CACHE_IDS_MOVE ? MC_RULE_COUNTER : 0);
	/* the value was never set */
	torn = moment_judge(&m, &r, moved, 0, leave_out, &item) == MC_HIT && !is_right(&item);
	refused = moment_judge(&m, &r, moved, 0, 0, &item) == MC_UNSURE;
	reddn_release(m.c);
	moment_release_memcached(&m);
	/* it is soon where it belongs */
	moment_hit(&m, moved, &item);
	right = is_right(&item);
	reddn_release(m.c);
	printf("{\"torn_without\": %d, \"unsure\": %d, \"right_later\": %d}\n", torn, refused, right);
	moment_close(&m);
	return !(torn && refused && right);
}
