/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words and locks, against a word of memory. Answers may be lost, before the request is executed or after.
 * All interleavings of some holders of a lock are explored, each rule of words.h and of Locks in libreddn(3)
 * is left out once, and what it prevents is found.
 */
#include "libclient/words.h"

#include "libclient/test-offload.h"
#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include <cmocka.h>

/* ---- in place of a session --------------------------------------------------------------------- */

static struct {
	uint64_t words[4];
	enum { ANSWERED, LOST_BEFORE, LOST_AFTER, LIED } how;
	uint64_t lie, lie_by; /* of LIED: the last answer, and how the next one differs */
} server;

static uint64_t execute(const struct reddn_arg *args)
{
	uint64_t *word = &server.words[args[0].number / 8], was = *word;

	assert_true(args[0].number % 8 == 0 && args[0].number / 8 < COUNT(server.words));
	if (test_offload.nargs == 2)
		*word += args[1].number;
	else if (was == args[1].number)
		*word = args[2].number;
	return was;
}

static int answer(const struct reddn_arg *args, uint8_t *reply)
{
	uint64_t was = server.how == LOST_BEFORE ? 0 : execute(args);

	if (server.how == LIED)
		was = server.lie ^= server.lie_by;
	else if (server.how != ANSWERED)
		return -EINPROGRESS;
	memcpy(reply, &was, sizeof(was));
	return 0;
}

static int setup(void **state)
{
	(void)state;
	memset(&server, 0, sizeof(server));
	test_offload_begin(&(struct test_offload){
		.arg = {{REDDN_OFFSET, 2}, {REDDN_NUMBER, 8}, {REDDN_NUMBER, 8}},
		.nargs = 3,
		.reply_max = 8,
		.execute = answer,
	});
	return 0;
}

/* ---- words ------------------------------------------------------------------------------------- */

static void swaps_and_adds(void **state)
{
	const struct reddn_result res = test_offload_result();
	uint64_t was = 0;

	(void)state;
	server.words[2] = 7;
	assert_int_equal(reddn_cas(&client, 2, 6, 9, &was), 0);
	assert_true(was == 7 && server.words[2] == 7);
	assert_int_equal(reddn_cas(&client, 2, 7, UINT64_MAX, &was), 0);
	assert_true(was == 7 && server.words[2] == UINT64_MAX);
	assert_int_equal(reddn_faa(&client, 2, 1, &was), -EINVAL);
	test_offload.nargs = 2;
	assert_int_equal(reddn_faa(&client, 2, 3, &was), 0);
	assert_true(was == UINT64_MAX && server.words[2] == 2);
	assert_int_equal(reddn_faa_submit(&client, 2, 1, 0), 0);
	assert_int_equal(reddn_word(&res), 2);
	assert_int_equal(reddn_cas(&client, 2, 6, 9, &was), -EINVAL);
	assert_int_equal(reddn_cas_submit(&client, 2, 6, 9, 0), -EINVAL);
}

static void refuses_other_offloads(void **state)
{
	uint64_t was;

	(void)state;
	assert_int_equal(reddn_cas(&client, UINT64_MAX / 8 + 1, 0, 1, &was), -ERANGE);
	test_offload.arg[1].bytes = 7;
	assert_int_equal(reddn_cas(&client, 0, 0, 1, &was), -EINVAL);
	setup(NULL);
	test_offload.arg[0].kind = REDDN_NUMBER;
	assert_int_equal(reddn_cas(&client, 0, 0, 1, &was), -EINVAL);
	assert_int_equal(test_offload.calls, 0);
}

/* Two machines would have two words. */
static void refuses_several_machines(void **state)
{
	static const struct {
		int family[3];
		bool fine;
	} names[] = {{{AF_INET}, true}, {{AF_INET6}, true}, {{AF_INET6, AF_INET}, true},
		{{AF_INET, AF_INET}, false}, {{AF_INET, AF_INET6, AF_INET6}, false}};
	struct sockaddr_in6 address[3];
	struct addrinfo list[3];
	uint64_t was;

	(void)state;
	for (unsigned i = 0; i < COUNT(names); i++) {
		memset(list, 0, sizeof(list));
		memset(address, 0, sizeof(address));
		for (unsigned k = 0; k < COUNT(list) && names[i].family[k]; k++) {
			list[k].ai_family = names[i].family[k];
			list[k].ai_addr = (struct sockaddr *)&address[k];
			list[k].ai_addrlen = sizeof(address[k]);
			address[k].sin6_addr.s6_addr[15] = (uint8_t)k;
			if (k)
				list[k - 1].ai_next = &list[k];
		}
		client.connector.hosts.host[0].list = list;
		assert_int_equal(reddn_cas(&client, 0, 0, 0, &was), names[i].fine ? 0 : -EINVAL);
		memset(address, 0, sizeof(address)); /* the same one twice */
		assert_int_equal(reddn_cas(&client, 0, 0, 0, &was), 0);
	}
	client.connector.hosts.host[0].list = NULL;
	client.connector.hosts.n = 2;
	assert_int_equal(reddn_cas(&client, 0, 0, 1, &was), -EINVAL);
}

/* A request that is sent again would add twice. */
static void refuses_to_repeat(void **state)
{
	struct reddn_lock l = {.lease_ms = 1};
	uint64_t was;

	(void)state;
	client.connector.opt.flags = REDDN_REPEATABLE;
	assert_int_equal(reddn_cas(&client, 0, 0, 1, &was), -EINVAL);
	assert_int_equal(reddn_lock(&client, &l, 0), -EINVAL);
	test_offload.nargs = 2;
	assert_int_equal(reddn_faa(&client, 0, 1, &was), -EINVAL);
	assert_int_equal(reddn_faa_submit(&client, 0, 1, 0), -EINVAL);
	client.connector.opt.flags = REDDN_NO_RECONNECT;
	assert_int_equal(reddn_faa(&client, 0, 1, &was), 0);
}

/* ---- one lock ---------------------------------------------------------------------------------- */

enum { LONG_MS = 1000000 };

#define HELD(token, renewals) (REDDN_WORD_HELD | (uint64_t)(token) << REDDN_WORD_TOKEN_SHIFT | (renewals))
#define FREE(token) ((uint64_t)(token) << REDDN_WORD_TOKEN_SHIFT)

static void taken_and_given_back(void **state)
{
	struct reddn_lock one = {.word = 1, .lease_ms = LONG_MS}, two = one;

	(void)state;
	assert_int_equal(reddn_lock(&client, &one, 0), 0);
	assert_true(one.token == 1 && server.words[1] == HELD(1, 0) && test_offload.calls == 1);
	assert_int_equal(reddn_lock(&client, &one, 0), -EDEADLK);
	assert_int_equal(reddn_lock(&client, &two, 0), -EAGAIN);
	assert_int_equal(reddn_lock(&client, &two, 1), -EAGAIN);
	assert_int_equal(reddn_lock_renew(&client, &two), -EPERM);
	assert_int_equal(reddn_unlock(&client, &two), -EPERM);
	assert_int_equal(reddn_lock_renew(&client, &one), 0);
	assert_true(server.words[1] == HELD(1, 0)); /* it has most of its lease */
	one.since -= LONG_MS / 2 * 1000000ull;
	assert_int_equal(reddn_lock_renew(&client, &one), 0);
	assert_true(server.words[1] == HELD(1, 1));
	assert_int_equal(reddn_unlock(&client, &one), 0);
	assert_true(server.words[1] == FREE(1) && !one.token);
	assert_int_equal(reddn_unlock(&client, &one), -EPERM);
	/* who knows the word needs one request, who does not needs two */
	test_offload.calls = 0;
	assert_int_equal(reddn_lock(&client, &one, 0), 0);
	assert_true(one.token == 2 && test_offload.calls == 1);
	assert_int_equal(reddn_unlock(&client, &one), 0);
	test_offload.calls = 0;
	assert_int_equal(reddn_lock(&client, &two, 0), 0);
	assert_true(two.token == 3 && test_offload.calls == 2);
}

/* The lease of a holder that died is over when a waiter has seen the word for so long, and not before. */
static void holder_dies(void **state)
{
	struct reddn_lock dead = {.lease_ms = LONG_MS}, l = dead;

	(void)state;
	assert_int_equal(reddn_lock(&client, &dead, 0), 0);
	assert_int_equal(reddn_lock(&client, &l, 0), -EAGAIN);
	l.since -= LONG_MS * 1000000ull / 2;
	assert_int_equal(reddn_lock(&client, &l, 0), -EAGAIN);
	l.since -= LONG_MS * 1000000ull / 2;
	assert_int_equal(reddn_lock(&client, &l, 0), 0);
	assert_true(l.token == 2 && server.words[0] == HELD(2, 0));
	/* it was not dead: it learns that it is too late */
	assert_int_equal(reddn_unlock(&client, &dead), -EPERM);
	assert_true(server.words[0] == HELD(2, 0));
	/* and waits as others do */
	assert_int_equal(reddn_lock(&client, &dead, 0), -EAGAIN);
}

static int ask_at(struct reddn_lock *l, enum reddn_lock_step step, uint64_t now)
{
	int r;

	do {
		uint64_t was = server.words[0];

		r = reddn_lock_ask(l, step, now);
		if (r < 0)
			return r;
		if (was == l->seen)
			server.words[0] = l->next;
		r = reddn_lock_learn(l, was, now);
	} while (r == REDDN_AGAIN);
	return r;
}

/* The holder renews as often as it can until the word is what a waiter saw long ago. */
static void waiter_asks_seldom(void **state)
{
	struct reddn_lock holder = {.lease_ms = LONG_MS}, l = holder;
	uint64_t lease = LONG_MS * 1000000ull, now = lease, wrapped;

	(void)state;
	assert_int_equal(ask_at(&holder, REDDN_LOCK, now), 0);
	assert_int_equal(ask_at(&l, REDDN_LOCK, now), -EAGAIN);
	wrapped = server.words[0];
	for (unsigned asked = 0; asked < 3; asked++) {
		do {
			now += lease / 4;
			assert_int_equal(ask_at(&holder, REDDN_RENEW, now), 0);
		} while (server.words[0] != wrapped || holder.since != now);
		assert_int_equal(ask_at(&l, REDDN_LOCK, now + 1), -EAGAIN);
	}
	/* It dies, and a waiter that sees the word for a lease from now on has the lock */
	assert_int_equal(ask_at(&l, REDDN_LOCK, now + lease), -EAGAIN);
	assert_int_equal(ask_at(&l, REDDN_LOCK, now + lease + 1), 0);
	assert_int_equal(l.token, 2);
}

/* A server that answers another word each time keeps nobody for longer than he wants to wait. */
static void server_lies(void **state)
{
	struct reddn_lock l = {.lease_ms = 1}, holder = l;

	(void)state;
	client.connector.opt.timeout_ms = 3;
	assert_int_equal(reddn_lock(&client, &holder, 0), 0);
	server.how = LIED;
	server.lie_by = 1 << REDDN_WORD_TOKEN_SHIFT; /* free, again and again */
	assert_int_equal(reddn_lock(&client, &l, 0), -EAGAIN);
	assert_int_equal(test_offload.calls, 3);
	assert_int_equal(reddn_lock(&client, &l, 3), -EAGAIN);
	server.lie = HELD(1, 0); /* the holder's own, renewed again and again */
	server.lie_by = 1;
	holder.since -= 1000000;
	assert_int_equal(reddn_lock_renew(&client, &holder), -ETIMEDOUT);
	assert_int_equal(reddn_unlock(&client, &holder), -ETIMEDOUT);
	server.how = ANSWERED;
	assert_int_equal(reddn_unlock(&client, &holder), 0);
	client.connector.opt.timeout_ms = 0;
}

/* A renewal that is not needed yet changes nothing, and learns that the lock has gone. */
static void renewed_early(void **state)
{
	struct reddn_lock l = {.lease_ms = LONG_MS};
	uint64_t lease = LONG_MS * 1000000ull, now = lease;

	(void)state;
	assert_int_equal(ask_at(&l, REDDN_LOCK, now), 0);
	assert_int_equal(ask_at(&l, REDDN_RENEW, now + lease / 2 - 1), 0);
	assert_true(server.words[0] == HELD(1, 0) && l.since == now && l.token == 1);
	assert_int_equal(ask_at(&l, REDDN_RENEW, now + lease / 2), 0);
	assert_true(server.words[0] == HELD(1, 1) && l.since == now + lease / 2);
	server.words[0] = HELD(2, 0);
	assert_int_equal(ask_at(&l, REDDN_RENEW, now + lease / 2 + 1), -EPERM);
	assert_int_equal(l.token, 0);
}

static void limits(void **state)
{
	struct reddn_lock l = {.lease_ms = 0};

	(void)state;
	assert_int_equal(reddn_lock(&client, &l, 0), -EINVAL);
	l.lease_ms = LONG_MS;
	server.words[0] = FREE((1ull << 47) - 2);
	assert_int_equal(reddn_lock(&client, &l, 0), 0);
	assert_true(l.token == (1ull << 47) - 1);
	server.words[0] = l.seen |= 0xffff; /* renewals wrap, and leave the token */
	l.since = 0;
	assert_int_equal(reddn_lock_renew(&client, &l), 0);
	assert_true(server.words[0] == HELD((1ull << 47) - 1, 0));
	assert_int_equal(reddn_unlock(&client, &l), 0);
	assert_int_equal(reddn_lock(&client, &l, 0), -EOVERFLOW);
}

/* Whether the request was executed or not, the caller asks again, and knows in the end. */
static void answers_are_lost(void **state)
{
	(void)state;
	for (unsigned how = LOST_BEFORE; how <= LOST_AFTER; how++) {
		struct reddn_lock l = {.lease_ms = LONG_MS};

		setup(NULL);
		server.how = how;
		assert_int_equal(reddn_lock(&client, &l, 0), -EINPROGRESS);
		assert_int_equal(l.token, 0);
		server.how = ANSWERED;
		if (how == LOST_AFTER) { /* taken for nobody */
			assert_int_equal(reddn_lock(&client, &l, 0), -EAGAIN);
			l.since -= LONG_MS * 1000000ull;
		}
		assert_int_equal(reddn_lock(&client, &l, 0), 0);
		assert_int_equal(l.token, how == LOST_AFTER ? 2 : 1);

		l.since -= LONG_MS * 1000000ull;
		server.how = how;
		assert_int_equal(reddn_lock_renew(&client, &l), -EINPROGRESS);
		assert_int_not_equal(l.token, 0);
		server.how = ANSWERED;
		assert_int_equal(reddn_lock_renew(&client, &l), 0);
		assert_true(l.seen == server.words[0] && l.since == l.asked);

		l.since -= LONG_MS * 1000000ull;
		server.how = how;
		assert_int_equal(reddn_lock_renew(&client, &l), -EINPROGRESS);
		assert_int_equal(reddn_unlock(&client, &l), -EINPROGRESS);
		assert_int_not_equal(l.token, 0);
		server.how = ANSWERED;
		assert_int_equal(reddn_unlock(&client, &l), 0);
		assert_true(server.words[0] == FREE(how == LOST_AFTER ? 2 : 1) && !l.token);
	}
}

static void unlock_twice(void **state)
{
	struct reddn_lock l = {.lease_ms = LONG_MS};

	(void)state;
	assert_int_equal(reddn_lock(&client, &l, 0), 0);
	server.how = LOST_AFTER;
	assert_int_equal(reddn_unlock(&client, &l), -EINPROGRESS);
	server.how = ANSWERED;
	assert_int_equal(reddn_unlock(&client, &l), 0);
	assert_true(server.words[0] == FREE(1) && !l.token);
}

static void in_steps(void **state)
{
	struct reddn_result res = test_offload_result();
	struct reddn_lock l = {.lease_ms = LONG_MS};

	(void)state;
	server.words[0] = FREE(4);
	assert_int_equal(reddn_lock_submit(&client, &l, REDDN_LOCK, 0), 0);
	assert_int_equal(reddn_lock_result(&l, &res), REDDN_AGAIN);
	assert_int_equal(reddn_lock_submit(&client, &l, REDDN_LOCK, 0), 0);
	assert_int_equal(reddn_lock_result(&l, &res), 0);
	assert_int_equal(l.token, 5);
	assert_int_equal(reddn_lock_submit(&client, &l, REDDN_UNLOCK, 0), 0);
	res.status = -EINPROGRESS;
	assert_int_equal(reddn_lock_result(&l, &res), -EINPROGRESS);
	assert_int_equal(l.token, 5);
}

/* ---- all interleavings ------------------------------------------------------------------------- */

/* Time passes in ticks of half a lease. A request is sent, executed, and answered, and anything may happen in
 * between. A process that goes no further has stopped, or died. */
enum { PROCESSES = 3, TICKS = 3, TICK_NS = 500000, LEASE_MS = 1 };

enum rule {
	ALL_RULES,
	TOKEN_GROWS,
	WHOLE_WORD,
	RENEWAL_CHANGES,
	HOLDER_COUNTS_EARLY,
	WAITER_COUNTS_LATE,
	STAMP_FIRST,
	EXPECT_TOKEN,
	RULES
};

static const char *const rule_words[RULES] = {"all rules", "the token grows when the lock is taken",
	"a lease is ended by a swap of the whole word", "a renewal changes the word",
	"a holder counts its lease from before it asked", "a waiter counts from after it was answered",
	"a holder stamps its token first", "a write expects the own token"};

enum act { TAKE, LOOK, STAMP, RENEW, RENEW_AGAIN, WRITE, GIVE_BACK, DONE };
enum phase { IDLE, SENT, EXECUTED };

struct process {
	struct reddn_lock l;
	uint64_t was, seen; /* the lock as it was answered; the data as it was read */
	uint64_t had;       /* its token, for good */
	uint32_t act, phase;
};

struct world {
	struct process p[PROCESSES];
	uint64_t lock, data; /* data: token << 16 | value */
	uint64_t written;    /* the largest token that has written */
	uint64_t now;
};

static struct {
	enum rule without;
	uint64_t *seen; /* hashes of worlds */
	size_t room, states;
	const char *violated;
} search;

enum { DATA_SHIFT = 16 };

static bool is_new(const struct world *w)
{
	uint64_t hash = XXH3_64bits(w, sizeof(*w)) | 1;
	size_t i = hash % search.room;

	while (search.seen[i] && search.seen[i] != hash)
		i = (i + 1) % search.room;
	if (search.seen[i])
		return false;
	search.seen[i] = hash;
	assert_true(++search.states < search.room / 2);
	return true;
}

static bool is_locking(const struct process *p)
{
	return p->act == TAKE || p->act == RENEW || p->act == RENEW_AGAIN || p->act == GIVE_BACK;
}

static void send_request(struct world *w, struct process *p)
{
	enum reddn_lock_step step = p->act == TAKE        ? REDDN_LOCK
				    : p->act == GIVE_BACK ? REDDN_UNLOCK
							  : REDDN_RENEW;

	assert_int_equal(reddn_lock_ask(&p->l, step, w->now * TICK_NS), 0);
	if (search.without == TOKEN_GROWS && step == REDDN_LOCK && p->l.next != p->l.seen)
		p->l.next = (p->l.seen & REDDN_WORD_TOKEN) | REDDN_WORD_HELD;
	if (search.without == RENEWAL_CHANGES && step == REDDN_RENEW)
		p->l.next = p->l.seen;
	p->phase = SENT;
}

static void execute_request(struct world *w, struct process *p)
{
	uint64_t compared = UINT64_MAX;

	if (search.without == WHOLE_WORD && p->act == TAKE && p->l.seen & REDDN_WORD_HELD)
		compared = REDDN_WORD_HELD;
	p->was = w->lock;
	if (!((w->lock ^ p->l.seen) & compared)) {
		w->lock = p->l.next;
		p->was = p->l.seen;
	}
	p->phase = EXECUTED;
}

static void take_answer(struct world *w, struct process *p)
{
	int r = reddn_lock_learn(&p->l, p->was, w->now * TICK_NS);

	if (search.without == RENEWAL_CHANGES && r == 0 && p->l.step == REDDN_RENEW)
		p->l.since = p->l.asked;
	if (search.without == HOLDER_COUNTS_EARLY && p->l.token)
		p->l.since = w->now * TICK_NS;
	if (search.without == WAITER_COUNTS_LATE && !p->l.token)
		p->l.since = p->l.asked;
	p->was = 0;
	p->phase = IDLE;
	if (r == -EPERM)
		p->act = DONE;
	if (r == 0 && p->act == TAKE)
		p->had = p->l.token;
	if (r == 0)
		p->act++;
}

static void change_data(struct world *w, struct process *p)
{
	uint64_t own = p->had << DATA_SHIFT, value = p->seen & 0xffff;

	if (p->act == LOOK) {
		p->seen = w->data;
		p->act = search.without == STAMP_FIRST    ? RENEW
			 : w->data >> DATA_SHIFT > p->had ? DONE
							  : STAMP;
	} else if (p->act == STAMP) {
		p->act = w->data == p->seen ? RENEW : LOOK;
		if (w->data == p->seen)
			w->data = p->seen = own | value;
	} else {
		if (w->data == p->seen || search.without == EXPECT_TOKEN) {
			if (w->written > p->had)
				search.violated = "a holder writes after a later one has written";
			w->data = own | (value + 1);
			w->written = p->had;
		}
		p->act = GIVE_BACK;
	}
}

static void step(struct world *w, struct process *p)
{
	if (!is_locking(p))
		change_data(w, p);
	else if (p->phase == IDLE)
		send_request(w, p);
	else if (p->phase == SENT)
		execute_request(w, p);
	else
		take_answer(w, p);
}

/* What matters no more, so that worlds that go on alike are the same. */
static void forget(struct process *p)
{
	if (p->phase == IDLE)
		p->l.next = p->l.asked = p->l.step = 0;
	if (p->act == DONE)
		memset(&p->l, 0, sizeof(p->l));
	if (p->act == TAKE || p->act == GIVE_BACK || p->act == DONE)
		p->seen = 0;
}

static void check(const struct world *w)
{
	for (unsigned i = 0; i < PROCESSES; i++) {
		const struct process *p = &w->p[i];

		for (unsigned k = 0; k < i; k++)
			if (p->had && p->had == w->p[k].had)
				search.violated = "two holders have one token";
		if (p->l.token && p->act != GIVE_BACK &&
			w->now * TICK_NS - p->l.since < LEASE_MS * 1000000ull &&
			(w->lock ^ p->l.seen) & ~REDDN_WORD_RENEWALS)
			search.violated = "a lease is ended before its time";
	}
}

static void explore(const struct world *w)
{
	struct world next;

	check(w);
	if (search.violated || !is_new(w))
		return;
	if (w->now < TICKS) {
		next = *w;
		next.now++;
		explore(&next);
	}
	for (unsigned i = 0; i < PROCESSES && !search.violated; i++) {
		if (w->p[i].act == DONE)
			continue;
		next = *w;
		step(&next, &next.p[i]);
		/* one of them renews its lease, the second does not, the third dies when it has the lock */
		if (i == 1 && next.p[i].act == RENEW)
			next.p[i].act = WRITE;
		if (i == 2 && next.p[i].act == LOOK)
			next.p[i].act = DONE;
		forget(&next.p[i]);
		explore(&next);
	}
}

static void all_interleavings(void **state)
{
	(void)state;
	search.room = 1 << 22;
	for (unsigned rule = 0; rule < RULES; rule++) {
		struct world w = {.lock = FREE(1)};

		for (unsigned i = 0; i < PROCESSES; i++)
			w.p[i].l = (struct reddn_lock){.lease_ms = LEASE_MS, .seen = FREE(1)};
		search.without = rule;
		search.violated = NULL;
		search.states = 0;
		search.seen = calloc(search.room, sizeof(*search.seen));
		assert_non_null(search.seen);
		explore(&w);
		free(search.seen);
		printf("%s%s%s: %zu states, %s\n", rule ? "without \"" : "", rule_words[rule],
			rule ? "\"" : "", search.states,
			search.violated ? search.violated : "nothing is wrong");
		assert_true(!rule == !search.violated);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(swaps_and_adds, setup),
		cmocka_unit_test_setup(refuses_other_offloads, setup),
		cmocka_unit_test_setup(refuses_several_machines, setup),
		cmocka_unit_test_setup(refuses_to_repeat, setup),
		cmocka_unit_test_setup(taken_and_given_back, setup),
		cmocka_unit_test_setup(holder_dies, setup),
		cmocka_unit_test_setup(waiter_asks_seldom, setup),
		cmocka_unit_test_setup(renewed_early, setup),
		cmocka_unit_test_setup(server_lies, setup),
		cmocka_unit_test_setup(limits, setup),
		cmocka_unit_test_setup(answers_are_lost, setup),
		cmocka_unit_test_setup(unlock_twice, setup),
		cmocka_unit_test_setup(in_steps, setup),
		cmocka_unit_test(all_interleavings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
