/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * consistency RDMA-ADDRESS PORT OFFLOAD SERVER HITS RULES: threads change keys of a memcached by all of its
 * commands, another one makes it evict items, move slabs and make its table larger, and this one gets keys by
 * the NIC. Ends when HITS were accepted by RULES (libclient/mc/judge.h), or, with less than all of these, at
 * the first value that the key had at no time during its get. Prints counts as JSON. Status 0: no value was
 * wrong. 1: one was.
 */
#include "libclient/mc/judge.h"
#include "libclient/reddn.h"
#include "memcached/talk.h"
#include "tests/memcached/history.h"
#include "util/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WRITERS = 4, DEPTH = 16, CLASSES = 5 }; /* CLASSES of slabs: with -f 2, they have nearly all items */

static struct history history[HISTORY_KEYS];
static const char *server;
static bool stop;
static uint64_t moves; /* of slab pages */

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

/* ---- writers ---------------------------------------------------------------------------- */

/* A memcached that was killed is back in a moment */
static bool open_again(struct talk *t)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	char why[200];

	while (!stopped()) {
		if (talk_open(t, server, 2000, why, sizeof(why)) == 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static bool is_done(const char *answer)
{
	return strcmp(answer, "STORED") == 0 || strcmp(answer, "DELETED") == 0 ||
	       strcmp(answer, "TOUCHED") == 0 || (*answer >= '0' && *answer <= '9');
}

/* The key's next version. Whatever fails, as after an eviction, the next one but that depends on nothing.
 * False: the connection is lost */
static bool advance(struct talk *t, unsigned key)
{
	struct history *h = &history[key];
	char command[HISTORY_COMMAND], answer[256];
	uint64_t version = h->begun + 1;
	size_t len;

	if (h->begun != h->done || version == 1)
		version = history_restart(h->begun);
	len = history_command(key, version, command);
	__atomic_store_n(&h->begun, version, __ATOMIC_SEQ_CST);
	/* talk_ask() adds the last line end */
	if (talk_ask(t, answer, sizeof(answer), "%.*s", (int)len - 2, command) < 0)
		return false;
	if (is_done(answer))
		__atomic_store_n(&h->done, version, __ATOMIC_SEQ_CST);
	return true;
}

static void *write_keys(void *arg)
{
	unsigned first = *(unsigned *)arg, seed = first;
	struct talk t = {0};

	while (open_again(&t)) {
		while (!stopped() && advance(&t, first + (unsigned)rand_r(&seed) % (HISTORY_KEYS / WRITERS)))
			;
		talk_close(&t);
	}
	talk_deinit(&t);
	return NULL;
}

/* Items of many sizes: evictions; and moves of slab pages */
static void *churn(void *arg)
{
	unsigned seed = 99, n = 0;
	char answer[256], *value = malloc(20001);
	struct talk t = {0};

	(void)arg;
	memset(value, 'c', 20000);
	while (open_again(&t)) {
		int e = 0;

		while (!stopped() && e == 0) {
			int len = 1 + rand_r(&seed) % (rand_r(&seed) % 100 ? 600 : 20000);

			e = talk_ask(&t, answer, sizeof(answer), "set churn-%u 0 0 %d\r\n%.*s", n++ % 20000,
				len, len, value);
			/* Not -1 for any class: then memcached 1.6.38 looks behind the last one and dies, as
			 * it does without the library (mended in 1.6.45) */
			if (e == 0 && n % 5 == 0) {
				e = talk_ask(&t, answer, sizeof(answer), "slabs reassign %d %d",
					1 + rand_r(&seed) % CLASSES, 1 + rand_r(&seed) % CLASSES);
				moves += e == 0 && strcmp(answer, "OK") == 0;
			}
		}
		talk_close(&t);
	}
	talk_deinit(&t);
	free(value);
	return NULL;
}

/* ---- the reader ------------------------------------------------------------------------- */

static struct {
	uint64_t changes, hits, unsure, fresh, absent, unproved, wrong, lost;
} count;

struct question {
	unsigned key;
	uint64_t done;   /* version when it was asked */
	uint64_t newest; /* CAS id that was known then */
	struct mc_place place;
};

static struct mc_facts facts;

/* In either of two tables */
static struct mc_place place_of(unsigned key, unsigned seed)
{
	struct mc_place place = {0};
	char name[HISTORY_KEY];

	history_key(key, name);
	if (!mc_facts_place(&facts, seed % 2, name, strlen(name), &place))
		mc_facts_place(&facts, 0, name, strlen(name), &place);
	return place;
}

static void check(const struct question *q, const struct mc_item *item)
{
	uint64_t begun = __atomic_load_n(&history[q->key].begun, __ATOMIC_SEQ_CST);
	char value[HISTORY_VALUE];

	for (uint64_t v = q->done; v <= begun; v++) {
		int len = history_value(q->key, v, value);

		if (len >= 0 && (size_t)len == item->len && memcmp(value, item->value, item->len) == 0)
			return;
	}
	if (count.wrong++ < 3)
		fprintf(stderr, "key %u, versions %" PRIu64 " to %" PRIu64 ": %.*s\n", q->key, q->done, begun,
			(int)item->len, item->value);
}

static void take(const struct reddn_result *r, const struct question *q, unsigned rules)
{
	char name[HISTORY_KEY];
	struct mc_question question = {.key = name, .newest = q->newest, .rules = rules};
	enum mc_judgement judgement;
	uint64_t now_ms = clock_ms();
	struct mc_lines lines;
	struct mc_item item;
	bool proved = mc_lines_read(r->value, r->length, &lines);

	mc_facts_take(&facts, &lines, proved, now_ms);
	if (!facts.known || !mc_place_holds(&q->place, &lines)) {
		count.unproved++;
		return;
	}
	history_key(q->key, name);
	question.key_len = strlen(name);
	question.clock = mc_facts_clock(&facts, now_ms);
	judgement = mc_judge(r->value, r->length, &lines, &question, &item);
	mc_facts_saw(&facts, item.cas);
	switch (judgement) {
	case MC_HIT:
		count.hits++;
		check(q, &item);
		break;
	case MC_ABSENT:
	case MC_BEYOND:
		count.absent++;
		break;
	case MC_UNSURE:
		question.rules &= ~MC_RULE_KNOWN;
		count.fresh += mc_judge(r->value, r->length, &lines, &question, &item) == MC_HIT;
		count.unsure++;
		break;
	case MC_LONG:
	case MC_ELSEWHERE:
		count.unsure++;
		break;
	}
}

/* Until HITS were accepted. 1: the session is lost, as by a pointer that was read where memory had another
 * use; negative: no answer */
static int read_keys(struct reddn *c, uint64_t hits, unsigned rules)
{
	struct question asked[DEPTH];
	struct reddn_result results[DEPTH];
	unsigned seed = 1, free_slots[DEPTH], nfree = DEPTH;

	for (unsigned i = 0; i < DEPTH; i++)
		free_slots[i] = i;
	while (count.hits < hits && (count.wrong == 0 || rules == MC_RULES)) {
		int n;

		while (nfree) {
			struct question *q = &asked[free_slots[nfree - 1]];
			struct reddn_arg at = {0};

			q->key = (unsigned)rand_r(&seed) % HISTORY_KEYS;
			q->done = __atomic_load_n(&history[q->key].done, __ATOMIC_SEQ_CST);
			q->place = place_of(q->key, (unsigned)rand_r(&seed) >> 4);
			q->newest = facts.newest;
			at.number = q->place.at;
			if (reddn_call_submit(c, &at, 1, free_slots[nfree - 1]) < 0)
				break;
			nfree--;
		}
		n = reddn_wait(c, results, DEPTH, 10000);
		if (n < 0)
			return 1;
		if (n == 0) {
			fprintf(stderr, "no answer: %s\n", reddn_errmsg(c));
			return -1;
		}
		for (int i = 0; i < n; i++) {
			if (results[i].status < 0) {
				fprintf(stderr, "the session is lost: %s\n", reddn_errmsg(c));
				return 1;
			}
			take(&results[i], &asked[results[i].cookie], rules);
			free_slots[nfree++] = (unsigned)results[i].cookie;
		}
		reddn_release(c);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct reddn_options options = {.depth = DEPTH, .timeout_ms = 60000, .flags = REDDN_NO_RECONNECT};
	unsigned first[WRITERS];
	pthread_t writers[WRITERS + 1];
	struct reddn *c;
	char err[256];
	int r;

	if (argc != 7)
		return 2;
	options.host = argv[1];
	options.port = (uint16_t)atoi(argv[2]);
	options.offload = argv[3];
	server = argv[4];
	for (unsigned w = 0; w < WRITERS; w++) {
		first[w] = w * (HISTORY_KEYS / WRITERS);
		pthread_create(&writers[w], NULL, write_keys, &first[w]);
	}
	pthread_create(&writers[WRITERS], NULL, churn, NULL);
	do {
		if (reddn_connect(&c, &options, err, sizeof(err)) < 0) {
			fprintf(stderr, "%s\n", err);
			exit(2);
		}
		r = read_keys(c, strtoull(argv[5], NULL, 10), (unsigned)atoi(argv[6]));
		count.lost += r > 0;
		reddn_close(c);
	} while (r > 0);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned w = 0; w <= WRITERS; w++)
		pthread_join(writers[w], NULL);
	for (unsigned k = 0; k < HISTORY_KEYS; k++)
		count.changes += history[k].done;
	printf("{\"changes\": %" PRIu64 ", \"moves\": %" PRIu64 ", \"hits\": %" PRIu64
	       ", \"unsure\": %" PRIu64 ", \"of_fresh_counters\": %" PRIu64 ", \"absent\": %" PRIu64
	       ", \"unproved\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"lost\": %" PRIu64 "}\n",
		count.changes, moves, count.hits, count.unsure, count.fresh, count.absent, count.unproved,
		count.wrong, count.lost);
	return r < 0 ? 2 : count.wrong > 0;
}
