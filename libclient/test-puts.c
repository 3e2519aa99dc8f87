/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts and deletes against a fake server, which executes the program of a put on a store in memory, a word at
 * a time. Between any two of its steps other clients put and delete, and the server makes
 * entries, moves them, and collects those without a record.
 */
#include "libclient/test-rig.h"

#include "libclient/connection.h"
#include "protocol/table-hash.h"
#include "util/array.h"
#include "util/clock.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 512, KEYS = 12, EXTENT = 512, EXTENTS = 200000, OPS = RIG_CONNECTIONS * RIG_MAX_DEPTH };

/* ---- the store ---------------------------------------------------------------------------------- */

static struct {
	struct {
		uint64_t loc, mark;
		unsigned key; /* whose it is */
	} bucket[BUCKETS];
	uint64_t moves, state;
	uint8_t *heap;
	uint64_t extents;  /* that are used: none is used again */
	bool wanted[KEYS]; /* an entry */
	bool full;         /* there will be no entry */
	bool quiet;        /* no other client */
	/* an entry that is moved from here, and the chains that have to be over before */
	unsigned from;
	uint64_t mark, waits_for[RIG_CONNECTIONS];
	bool moving;
	uint64_t clock;
	struct {
		bool present;
		uint64_t last_absent; /* clock */
	} key[KEYS];
	unsigned conflicts;
} store;

/* Those of operations, then an edge: of that only the first byte is registered */
enum { VALUE = 256 };
static uint8_t values[OPS * VALUE + VALUE];

/* Of a connection: what its chain has read */
static struct chain {
	unsigned bucket;
	uint64_t fp, loc, mark, moves, state;
	uint64_t extent; /* its locator */
} chains[RIG_CONNECTIONS];

static struct op {
	bool busy, is_delete, stays; /* its value, which is sent from where it is */
	unsigned key, value, published;
	bool found; /* a delete: there was a record */
	uint64_t clock;
} ops[OPS];

enum { KEY = 12 }; /* bytes */

static unsigned key_of(unsigned k, char key[static KEY])
{
	memset(key, 'k', KEY);
	memcpy(key, &k, sizeof(k));
	return KEY;
}

static struct reddn_place place_of(unsigned k)
{
	char key[KEY];
	unsigned len = key_of(k, key);

	return reddn_hash_key(rig.c.session.geo.seed, BUCKETS, key, len);
}

/* Others take many while the client pauses, by the clock: then they begin again */
static uint64_t new_extent(uint32_t len)
{
	return reddn_locator((1 + store.extents++ % (EXTENTS - 1)) * EXTENT, RIG_HEADER + len);
}

static uint64_t null_extent(void)
{
	return reddn_locator(0, RIG_HEADER);
}

static bool is_record(uint64_t loc)
{
	return reddn_locator_len(loc) > RIG_HEADER;
}

/* An entry of the key that clients can see */
static int find(unsigned k)
{
	struct reddn_place p = place_of(k);

	for (int i = 0; i < 2; i++)
		if (store.bucket[p.bucket[i]].mark == reddn_mark(p.fp))
			return (int)p.bucket[i];
	return -1;
}

static void publish(unsigned b, uint64_t loc)
{
	unsigned k = store.bucket[b].key;

	store.clock++;
	store.bucket[b].loc = loc;
	if (store.key[k].present && !is_record(loc))
		store.key[k].last_absent = store.clock;
	if (!store.key[k].present && is_record(loc))
		store.key[k].last_absent = store.clock;
	store.key[k].present = is_record(loc);
}

static void make_entry(unsigned k)
{
	struct reddn_place p = place_of(k);

	for (int i = 0; i < 2 && store.wanted[k] && find(k) < 0; i++) {
		unsigned b = (unsigned)p.bucket[i];

		if (store.bucket[b].mark)
			continue;
		store.bucket[b].loc = null_extent();
		store.bucket[b].key = k;
		store.bucket[b].mark = reddn_mark(p.fp);
	}
	store.wanted[k] = false;
}

static void begin_move(unsigned k)
{
	int b = find(k);

	if (b < 0)
		return;
	store.moving = true;
	store.moves++;
	store.from = (unsigned)b;
	store.mark = store.bucket[b].mark;
	store.bucket[b].mark = 0;
	for (unsigned i = 0; i < RIG_CONNECTIONS; i++)
		store.waits_for[i] = rig.end[i].served + rig.end[i].halfway;
}

static void end_move(void)
{
	unsigned to = (unsigned)reddn_hash_other(store.from, reddn_mark_fp(store.mark), BUCKETS);

	for (unsigned i = 0; i < RIG_CONNECTIONS; i++)
		if (rig.end[i].served < store.waits_for[i])
			return;
	if (store.bucket[to].mark)
		to = store.from;
	if (is_record(store.bucket[store.from].loc) || rig_rnd() % 2) {
		store.bucket[to].loc = store.bucket[store.from].loc;
		store.bucket[to].key = store.bucket[store.from].key;
		store.bucket[to].mark = store.mark;
	}
	store.moves++;
	store.moving = false;
}

/* What others do, once */
static void interfere(void)
{
	unsigned k = rig_rnd() % KEYS;
	int b;

	switch (rig_rnd() % 4) {
	case 0:
		if (!store.moving && !store.full)
			make_entry(k);
		break;
	case 1:
		if (store.moving)
			end_move();
		else if (rig_rnd() % 8 == 0)
			begin_move(k);
		break;
	default:
		b = store.quiet ? -1 : find(k);
		if (b >= 0)
			publish((unsigned)b, new_extent(rig_rnd() % 2 ? 100 : 0));
		break;
	}
}

static void maybe_interfere(void)
{
	while (rig_rnd() % 3 == 0)
		interfere();
}

/* ---- the program -------------------------------------------------------------------------------- */

static struct chain *chain_of(const struct rig_end *e)
{
	return &chains[e - rig.end];
}

static struct op *op_of(const struct rig_end *e)
{
	return &ops[rig.c.session.slots[e->k->base + e->served % e->depth].request->cookie];
}

/* The message is there as it was composed, whatever the caller did since to memory that is not registered. */
static void check_record(const struct reddn_record *r, uint32_t len, const struct op *op)
{
	char key[KEY];
	unsigned key_len = key_of(op->key, key);

	assert_int_equal(reddn_store_payload(RIG_HEADER, reddn_record_size(r->key_len, r->val_len)), len);
	assert_true(reddn_store_length_ok(RIG_HEADER, RIG_HEADER + len));
	assert_int_equal(r->sum, reddn_record_sum(r));
	assert_int_equal(r->key_len, key_len);
	assert_memory_equal(r->bytes, key, key_len);
	assert_int_equal(r->bytes[key_len], (uint8_t)op->value);
}

static void serve_half(struct rig_end *e)
{
	const uint8_t *arg = e->wire[e->served % RIG_MAX_DEPTH];
	uint32_t len = e->len[e->served % RIG_MAX_DEPTH] - RIG_HEADER;
	struct chain *a = chain_of(e);
	uint64_t offset = 0;

	if (e->halfway)
		return;
	*a = (struct chain){.extent = new_extent(len)};
	memcpy(store.heap + reddn_locator_off(a->extent), arg + RIG_HEADER, len);
	assert_int_equal(len == 0, op_of(e)->is_delete);
	if (len)
		check_record(
			(struct reddn_record *)(store.heap + reddn_locator_off(a->extent)), len, op_of(e));
	for (int i = 0; i < 6; i++)
		a->fp = a->fp << 8 | *arg++;
	for (int i = 0; i < 3; i++)
		offset = offset << 8 | *arg++;
	assert_true(offset < BUCKETS * 16 && offset % 16 == 0);
	a->bucket = (unsigned)(offset / 16);
	e->halfway = true;
	a->moves = store.moves;
	a->state = store.full ? REDDN_TABLE_FULL : 0;
	maybe_interfere();
	/* the words of a bucket in any order */
	for (int i = 0, first = rig_rnd() % 2; i < 2; i++) {
		if (i == first)
			a->loc = store.bucket[a->bucket].loc;
		else
			a->mark = store.bucket[a->bucket].mark;
		maybe_interfere();
	}
}

static void reply(struct rig_end *e, struct reddn_wire_put answer)
{
	memcpy(e->slots + e->served % e->depth * e->slot_size, &answer, sizeof(answer));
	e->halfway = false;
	e->receives--;
	rig_push((struct ibv_wc){.wr_id = (uintptr_t)e->k,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.imm_data = htonl((uint32_t)e->served)});
	e->served++;
}

static void serve_of(struct rig_end *e)
{
	struct chain *a = chain_of(e);
	uint64_t was = REDDN_PUT_ABSENT;
	struct op *op = op_of(e);

	assert_non_null(e);
	serve_half(e);
	if (a->mark == reddn_mark(a->fp)) {
		was = store.bucket[a->bucket].loc;
		store.conflicts += was != a->loc;
	} else if (is_record(a->extent)) {
		store.wanted[op->key] = true;
	}
	if (was == a->loc) {
		assert_int_equal(store.bucket[a->bucket].key, op->key);
		op->published++;
		op->found = is_record(was);
		publish(a->bucket, a->extent);
	}
	maybe_interfere();
	reply(e, (struct reddn_wire_put){
			 .expected = htobe64(a->loc), .was = was, .moves = a->moves, .state = a->state});
}

/* ---- the client --------------------------------------------------------------------------------- */

static void start(uint16_t connections, unsigned depth)
{
	uint8_t *heap = store.heap ? store.heap : malloc((size_t)EXTENTS * EXTENT);

	rig_start_several(1, connections, depth, RIG_PUTS, 100000);
	memset(&store, 0, sizeof(store));
	memset(ops, 0, sizeof(ops));
	store.heap = heap;
	store.extents = 0;
	assert_non_null(heap);
	assert_int_equal(reddn_register(&rig.c, values, OPS * VALUE + 1), 0);
}

/* Of a value, in any memory */
static uint8_t *place_of_value(unsigned i, bool stays, uint8_t other[static VALUE])
{
	if (stays)
		return values + i * VALUE;
	return rig_rnd() % 2 ? values + OPS * VALUE : other;
}

static int submit(unsigned i, unsigned k, bool is_delete)
{
	static unsigned numbers;
	uint8_t other[VALUE], *value;
	struct op *op = &ops[i];
	char key[KEY];
	unsigned len = key_of(k, key);
	int r;

	*op = (struct op){.is_delete = is_delete, .key = k, .value = ++numbers, .clock = store.clock};
	op->stays = rig_rnd() % 2;
	value = place_of_value(i, op->stays, other);
	memset(value, (int)op->value, VALUE - 1);
	/* two bytes at least, or the edge would be in registered memory */
	r = is_delete ? reddn_delete_submit(&rig.c, key, len, i)
		      : reddn_put_submit(&rig.c, key, len, value, 2 + op->value % (VALUE - 2), i);
	if (!op->stays || r)
		memset(value, 0, VALUE);
	memset(key, 0, sizeof(key));
	op->busy = r == 0;
	return r;
}

static void judge(const struct reddn_result *res)
{
	struct op *op = &ops[res->cookie];

	assert_true(op->busy);
	assert_null(res->value);
	assert_int_equal(res->length, 0);
	op->busy = false;
	if (op->stays)
		memset(values + res->cookie * VALUE, 0, VALUE);
	if (res->status == 0) {
		assert_int_equal(op->published, 1);
		assert_int_equal(op->is_delete, op->is_delete && op->found);
		return;
	}
	assert_int_equal(res->status, REDDN_MISS);
	assert_true(op->is_delete && !op->found);
	assert_true(op->published <= 1);
	assert_true(!store.key[op->key].present || store.key[op->key].last_absent > op->clock);
}

static void property(unsigned seed, uint16_t connections, unsigned depth, unsigned most)
{
	unsigned done = 0, busy = 0, refused = 0, all = connections * depth;
	struct reddn_result res[RIG_MAX_DEPTH];
	struct rig_end *e;
	int n;

	start(connections, depth);
	rig_seed(seed);
	rig.sends = RIG_LATE;
	while (done < most) {
		unsigned i = rig_rnd() % all;

		maybe_interfere();
		switch (rig_rnd() % 3) {
		case 0:
			if (ops[i].busy)
				break;
			n = submit(i, rig_rnd() % KEYS, rig_rnd() % 3 == 0);
			assert_true(n == 0 || n == -EAGAIN);
			busy += n == 0;
			refused += n != 0;
			break;
		case 1:
			e = rig_pending();
			if (e && rig_rnd() % 2)
				serve_half(e);
			else if (e)
				serve_of(e);
			break;
		case 2:
			n = reddn_poll(&rig.c, res, 1 + (int)(rig_rnd() % RIG_MAX_DEPTH));
			assert_true(n >= 0);
			for (int k = 0; k < n; k++)
				judge(&res[k]);
			busy -= (unsigned)n;
			done += (unsigned)n;
			break;
		}
		assert_int_equal(busy, rig.c.busy);
	}
	print_message("%u x depth %u: %u done, %lu conflicts, %lu without an entry, %u refused, %lu moves\n",
		connections, depth, done, (unsigned long)rig.c.retries_conflict,
		(unsigned long)rig.c.retries_absent, refused, (unsigned long)store.moves / 2);
	assert_true(rig.c.retries_conflict > 0 && rig.c.retries_conflict <= store.conflicts);
	assert_true(rig.c.retries_absent > 0);
	assert_true(store.moves > 100);
	rig_stop();
}

static void test_property(void **state)
{
	property(1, 1, 1, 1000);
	property(2, 1, 16, 8000);
	property(3, RIG_CONNECTIONS, 4, 8000);
	property(4, 2, RIG_MAX_DEPTH, 8000);
}

static int serve_and_poll(struct reddn_result *res)
{
	struct rig_end *e = rig_pending();

	if (e)
		serve_of(e);
	return reddn_poll(&rig.c, res, 1);
}

/* Until it has its result, or @sends requests were sent. Returns the status; 1000: none. */
static int serve_until(uint64_t sends)
{
	struct reddn_result res;
	int n = 0;

	while (n == 0 && rig.end[0].arrived < sends)
		n = serve_and_poll(&res);
	return n ? res.status : 1000;
}

static void test_refused(void **state)
{
	struct reddn_host *host = rig.c.connector.hosts.host;
	char long_key[RIG_KEY_MAX + 1] = {0}, long_value[300] = {0};

	start(1, 2);
	host = rig.c.connector.hosts.host;
	assert_non_null(host);
	assert_int_equal(reddn_put_submit(&rig.c, "", 0, "v", 1, 0), -EINVAL);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 0), -EINVAL);
	assert_int_equal(reddn_put_submit(&rig.c, long_key, sizeof(long_key), "v", 1, 0), -EMSGSIZE);
	assert_int_equal(reddn_delete_submit(&rig.c, long_key, sizeof(long_key), 0), -EMSGSIZE);
	assert_int_equal(reddn_put_if_submit(&rig.c, "k", 1, "v", 1, 0, 0), -EINVAL);
	assert_int_equal(reddn_delete_if_submit(&rig.c, "k", 1, 1, 0), -EINVAL);
	assert_int_equal(reddn_put_submit(&rig.c, "k", 1, long_value, 257, 0), -EMSGSIZE);
	rig.c.connector.opt.flags |= REDDN_REPEATABLE;
	assert_int_equal(reddn_put_submit(&rig.c, "k", 1, "v", 1, 0), -EINVAL);
	rig.c.connector.opt.flags = REDDN_NO_RECONNECT;
	rig.c.connector.hosts.n = 2;
	assert_int_equal(reddn_put_submit(&rig.c, "k", 1, "v", 1, 0), -EINVAL);
	rig.c.connector.hosts.n = 1;
	assert_int_equal(submit(0, 0, false), 0);
	assert_int_equal(submit(1, 1, false), 0);
	assert_int_equal(reddn_put_submit(&rig.c, "k", 1, "v", 1, 2), -EAGAIN);
	rig_stop();

	rig_start(2, RIG_GETS, 100000);
	assert_int_equal(reddn_put_submit(&rig.c, "k", 1, "v", 1, 0), -EINVAL);
	assert_int_equal(reddn_delete_submit(&rig.c, "k", 1, 0), -EINVAL);
	assert_int_equal(reddn_put_if_submit(&rig.c, "k", 1, "v", 1, 0, 0), -EINVAL);
	rig_stop();
}

/* A put to a key that has an entry takes one message to one bucket, or one to each. */
static void test_messages(void **state)
{
	start(1, 4);
	store.quiet = true;
	for (unsigned k = 0; k < KEYS; k++) {
		store.wanted[k] = true;
		make_entry(k);
	}
	rig_seed(7);
	for (unsigned i = 0; i < 200; i++) {
		unsigned k = rig_rnd() % KEYS;
		bool second = find(k) == (int)place_of(k).bucket[1];
		uint64_t before = rig.end[0].arrived;

		if (find(k) < 0)
			continue;
		assert_int_equal(submit(0, k, false), 0);
		/* no chain is halfway, so that what others did before does not count */
		store.full = true;
		store.moving = true;
		store.waits_for[0] = UINT64_MAX;
		assert_int_equal(serve_until(UINT64_MAX), 0);
		assert_int_equal(rig.end[0].arrived - before, 1 + second);
		judge(&(struct reddn_result){.cookie = 0});
		store.moving = false;
		store.full = false;
	}
	rig_stop();
}

/* A key that gets no entry is asked for with growing pauses, until the server has no room, or it took too
 * long. Nothing has happened then. */
static void test_no_entry(void **state)
{
	uint64_t began;

	start(1, 4);
	store.quiet = store.full = store.moving = true;
	store.waits_for[0] = UINT64_MAX; /* or an entry is on its way where the test looks for it */
	assert_int_equal(submit(0, 3, false), 0);
	assert_int_equal(serve_until(UINT64_MAX), -ENOSPC);
	assert_int_equal(rig.end[0].arrived, 16);
	/* it had no room for another key, and finds some for this one */
	assert_int_equal(submit(0, 3, false), 0);
	assert_int_equal(serve_until(16 + 14), 1000);
	make_entry(3);
	assert_int_equal(serve_until(UINT64_MAX), 0);
	publish((unsigned)find(3), null_extent());
	store.bucket[find(3)].mark = 0;
	/* a delete has nothing to do then */
	assert_int_equal(submit(0, 3, true), 0);
	assert_int_equal(serve_until(UINT64_MAX), REDDN_MISS);
	rig_stop();

	start(1, 4);
	store.quiet = store.moving = true;
	store.waits_for[0] = UINT64_MAX;
	rig.c.connector.opt.retry_ms = 1;
	began = clock_ns();
	assert_int_equal(submit(0, 3, false), 0);
	assert_int_equal(serve_until(UINT64_MAX), -EAGAIN);
	/* three quarters of the pauses of 16 times */
	assert_true(clock_ns() - began >= 8000000);
	assert_int_equal(rig.c.retries_absent, 17);
	assert_int_equal(ops[0].published, 0);
	assert_int_equal(rig.c.busy, 0);
	rig_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_property),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_no_entry),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	rig_extended = true;
	return failed + cmocka_run_group_tests_name("by ibv_qp_ex", tests, NULL, NULL);
}
