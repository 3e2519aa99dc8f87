/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counter RDMA-ADDRESS PORT OFFLOAD SERVER HOLD: what only the rule about CAS ids that were known refuses
 * (libclient/mc/judge.h). The NIC takes the words of the first header at two moments: some before memcached
 * changes a number in place, and some while it rests in the midst of the digits. If the count of references
 * is of the first moment and the CAS id of the second, header, item and header are those of a change that is
 * over, and the digits are half new.
 *
 * The memcached has no items, and is slowed (slow.c) with SLOW_HOLD=HOLD. OFFLOAD sends one item of a bucket.
 * $SOFTCX is the tool that splits the READ; its seed chooses the words. So this is tried until it has chosen
 * those, one time in twelve.
 *
 * Prints how often it was tried. Status 0: a number that was never set is a hit without the rule; with all
 * rules none is, and the next hit is the number as it is. 1: it is not so.
 */
#include "tests/lib/die.h"
#include "tests/memcached/moment.h"

#include <stdio.h>
#include <string.h>

/* DELAY_MS: between the two moments, and twice as much after the second one came too early */
enum { TRIES = 500, DELAY_MS = 20, DELAY_MOST_MS = 20000, DIGITS = 10 };

static const char key[] = "number";
static const char *const numbers[] = {"1111111111", "2222222222"};
static struct moment m;

static bool is_number(const struct mc_item *item, unsigned i)
{
	return item->len == DIGITS && memcmp(item->value, numbers[i], DIGITS) == 0;
}

/* The reply is a hit, of a number that was never set, though nobody held the item */
static bool is_torn(const struct reddn_result *r, uint64_t newest, unsigned leave_out)
{
	struct mc_item item;

	return moment_judge(&m, r, key, newest, leave_out, &item) == MC_HIT && !item.held &&
	       !is_number(&item, 0) && !is_number(&item, 1);
}

/* The next hit has number @i */
static bool comes_right(unsigned i)
{
	struct mc_item item;
	bool right;

	moment_hit(&m, key, &item);
	right = is_number(&item, i);
	reddn_release(m.c);
	return right;
}

/* What becomes of a reply in the midst of a change */
struct found {
	bool in_time, torn_without, torn;
};

/* Changes the number to @i, and the NIC reads meanwhile */
static struct found read_half_done(unsigned i, unsigned delay_ms)
{
	const uint64_t newest = m.facts.newest;
	/* where items move with their CAS ids, the count that comes with the value has to be one, too */
	const unsigned moves =
		m.facts.lines.served.traits & REDDN_CACHE_IDS_MOVE ? (unsigned)MC_RULE_COUNTER : 0;
	struct found found = {.in_time = true};
	struct reddn_result r;
	char answer[32] = "";

	moment_hold_memcached(&m);
	moment_fault("split %u000 --opcode read --at %d", delay_ms, MOMENT_BUCKETS + 1);
	moment_submit(&m, key);
	moment_wait_for_nic();
	if (talk_send(&m.t, "%s %s 1111111111", i ? "incr" : "decr", key) < 0)
		die("memcached cannot be asked");
	moment_wait_for_memcached(&m);
	if (reddn_poll(m.c, &r, 1) == 1)
		found.in_time = false;
	else
		r = moment_reply(&m);
	found.torn_without = is_torn(&r, newest, MC_RULE_KNOWN | moves);
	found.torn = is_torn(&r, newest, 0);
	reddn_release(m.c);
	moment_release_memcached(&m);
	if (talk_line(&m.t, answer, sizeof(answer)) < 0 || strcmp(answer, numbers[i]) != 0)
		die("%s becomes \"%s\"", key, answer);
	return found;
}

int main(int argc, char **argv)
{
	unsigned delay_ms = DELAY_MS, tries = 0, i = 0;
	struct found found = {0};
	bool right = true;

	if (argc != 6)
		return 2;
	moment_open(&m, argv + 1);
	moment_ask(&m, "STORED", "set number 0 0 10\r\n1111111111");
	while (tries < TRIES && right && !found.torn && !found.torn_without) {
		tries++;
		right = comes_right(i);
		i = !i;
		found = read_half_done(i, delay_ms);
		if (!found.in_time && delay_ms < DELAY_MOST_MS)
			delay_ms *= 2;
	}
	right = right && comes_right(i);
	printf("{\"tries\": %u, \"torn_without\": %d, \"torn\": %d, \"right_later\": %d}\n", tries,
		found.torn_without, found.torn, right);
	moment_close(&m);
	return !(found.torn_without && !found.torn && right);
}
