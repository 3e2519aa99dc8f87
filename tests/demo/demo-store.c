/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * demo-store - puts known records in a store, changes some, and reads them back:
 *
 *	demo-store HOST PORT OFFLOAD FILE PART PARTS put|change|check
 *
 * FILE has records as reddn-table(1) loads them. Of PARTS clients this one writes the records of number PART,
 * and is their only writer; it reads those of all. "put" puts them. "change" puts each 20th with a line more,
 * and deletes as many, while it gets records at random. "check" gets all records of the part. Each answer is
 * compared with what it may be. A put whose outcome is unknown is asked again: nobody else writes its key.
 * Prints how many operations are done, now and then, and at the end "NAME NUMBER" lines. Exits with 1 if an
 * answer was wrong.
 */
#include "libclient/reddn.h"
#include "tests/lib/arg.h"
#include "tests/lib/die.h"
#include "tools/load/keyset.h"
#include "util/clock.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 16, RESULTS = 16, OF = 20, PRINT_EVERY = 50, VALUE_MOST = 4096, PATIENCE_S = 100 };

static const char more[] = "Changed: yes\n";

/* What becomes of a record */
enum fate { STAYS, CHANGED, DELETED };

static struct keyset set;
static struct reddn *store;
static unsigned part, parts;
static struct {
	uint64_t done, puts, deletes, gets, unknown, wrong;
} n;
/* records whose put is to be asked again; a part has no more */
static size_t *again, nagain;

static enum fate fate_of(size_t i)
{
	size_t mix = i / parts % OF;

	return mix == 0 ? CHANGED : mix == 1 ? DELETED : STAYS;
}

static int submit_put(size_t i, bool change)
{
	const struct keyset_key *k = &set.keys[i];
	uint8_t value[VALUE_MOST];
	size_t len = k->val_len;

	if (change && fate_of(i) == DELETED)
		return reddn_delete_submit(store, keyset_key(&set, i), k->key_len, set.count + i);
	memcpy(value, keyset_value(&set, i), len);
	if (change) {
		memcpy(value + len, more, sizeof(more) - 1);
		len += sizeof(more) - 1;
	}
	return reddn_put_submit(store, keyset_key(&set, i), k->key_len, value, len, set.count + i);
}

static void done(void)
{
	if (++n.done % PRINT_EVERY == 0)
		printf("%llu\n", (unsigned long long)n.done);
}

static void take_put(const struct reddn_result *res)
{
	bool unknown = res->status == -EINPROGRESS;

	if (unknown || res->status == -EAGAIN) {
		n.unknown += unknown;
		again[nagain++] = res->cookie;
		return;
	}
	if (res->status < 0)
		die("a put failed: %s", strerror(-res->status));
	done();
}

/* @may, @must: it may have been changed by now, or is. */
static bool is_right(const struct reddn_result *res, bool may, bool must)
{
	const struct keyset_key *k = &set.keys[res->cookie];
	enum fate fate = fate_of(res->cookie);
	size_t longer = k->val_len + sizeof(more) - 1;
	bool same;

	if (res->status == REDDN_MISS)
		return may && fate == DELETED;
	same = res->length >= k->val_len &&
	       memcmp(res->value, keyset_value(&set, res->cookie), k->val_len) == 0;
	if (res->length == k->val_len)
		return same && !(must && fate != STAYS);
	return same && may && fate == CHANGED && res->length == longer &&
	       memcmp((const uint8_t *)res->value + k->val_len, more, sizeof(more) - 1) == 0;
}

static unsigned collect(bool checks)
{
	struct reddn_result res[RESULTS];
	int r = reddn_poll(store, res, RESULTS);

	for (int i = 0; i < r; i++) {
		if (res[i].cookie >= set.count) {
			res[i].cookie -= set.count;
			take_put(&res[i]);
			continue;
		}
		if (res[i].status < 0)
			die("a get failed: %s", strerror(-res[i].status));
		if (!is_right(&res[i], true, checks)) {
			n.wrong++;
			fprintf(stderr, "wrong: %.*s\n", (int)set.keys[res[i].cookie].key_len,
				(const char *)keyset_key(&set, res[i].cookie));
		}
		n.gets++;
		if (checks)
			done();
	}
	reddn_release(store);
	return r > 0 ? (unsigned)r : 0;
}

/* The next record of the part that a phase is about, from @i on */
static size_t next(size_t i, bool change)
{
	while (i < set.count && (i % parts != part || (change && fate_of(i) == STAYS)))
		i++;
	return i;
}

static int submit_get(size_t i)
{
	return reddn_get_submit(store, keyset_key(&set, i), set.keys[i].key_len, i);
}

static bool submit_next(size_t *at, bool change, bool checks)
{
	size_t i = nagain ? again[nagain - 1] : *at;
	int r;

	if (i >= set.count)
		return false;
	r = checks ? submit_get(i) : submit_put(i, change);
	if (r < 0)
		return false;
	n.puts += !checks && !(change && fate_of(i) == DELETED);
	n.deletes += !checks && change && fate_of(i) == DELETED;
	if (nagain)
		nagain--;
	else
		*at = next(i + 1, change);
	return true;
}

static void run(bool change, bool checks)
{
	size_t at = next(0, change), asked = 0, total = 0;
	uint64_t last = clock_ns();

	for (size_t i = at; i < set.count; i = next(i + 1, change))
		total++;
	while (n.done < total || asked > n.gets) {
		bool any = submit_next(&at, change, checks);

		asked += checks && any;
		/* as many gets as it can besides */
		if (change && n.done < total && submit_get((size_t)random() % set.count) == 0)
			asked++;
		any |= collect(checks);
		if (any)
			last = clock_ns();
		else
			sched_yield();
		if (clock_ns() - last > PATIENCE_S * 1000000000ull)
			die("no answer");
	}
}

static struct reddn *connect_to(const char *host, uint16_t port, const char *offload)
{
	const struct reddn_options opt = {.host = host,
		.port = port,
		.offload = offload,
		.depth = DEPTH,
		.timeout_ms = PATIENCE_S * 1000,
		.retry_ms = PATIENCE_S * 1000};
	char err[256];
	struct reddn *c;

	if (reddn_connect(&c, &opt, err, sizeof(err)) < 0)
		die("%s", err);
	return c;
}

int main(int argc, char **argv)
{
	uint16_t port;

	if (argc != 8)
		die("usage: demo-store HOST PORT OFFLOAD FILE PART PARTS put|change|check");
	port = (uint16_t)arg_number(argv[2], UINT16_MAX);
	part = (unsigned)arg_number(argv[5], UINT16_MAX);
	parts = (unsigned)arg_number(argv[6], UINT16_MAX);
	if (keyset_load_text(&set, argv[4], true))
		return 2;
	again = calloc(set.count + 1, sizeof(*again));
	if (!again)
		die("out of memory");
	setvbuf(stdout, NULL, _IOLBF, 0);
	store = connect_to(argv[1], port, argv[3]);
	run(strcmp(argv[7], "change") == 0, strcmp(argv[7], "check") == 0);
	printf("puts %llu\ndeletes %llu\ngets %llu\nunknown %llu\nwrong %llu\n%llu\n",
		(unsigned long long)n.puts, (unsigned long long)n.deletes, (unsigned long long)n.gets,
		(unsigned long long)n.unknown, (unsigned long long)n.wrong, (unsigned long long)n.done);
	reddn_close(store);
	keyset_deinit(&set);
	free(again);
	return n.wrong > 0;
}
