/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's side of a connection against a fake NIC and server: gets while the table's writer runs
 * between any two words that the NIC reads, and what a server or a network can do to a client.
 */
#include "libclient/test-rig.h"

#include "tests/lib/sanitized.h"
#include "util/array.h"
#include "util/clock.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* wr_id of the receives of the first connection */
static uint64_t first_id(void)
{
	return (uintptr_t)rig.c.session.connection;
}

/* What the offload of the rig is for */
static int submit_keys(const struct reddn_key *keys, unsigned n, uint64_t cookie)
{
	if (rig.c.session.info.shape == REDDN_EXISTS)
		return reddn_exists_submit(&rig.c, keys, n, cookie);
	return n == 1 ? reddn_get_submit(&rig.c, keys->key, keys->key_len, cookie)
		      : reddn_mget_submit(&rig.c, keys, n, cookie);
}

static int submit_get(uint32_t k, uint64_t cookie)
{
	uint8_t key[RIG_KEY_MAX];
	const struct reddn_key one = {key, rig_key_of(k, key)};

	return submit_keys(&one, 1, cookie);
}

/* Gets, and questions what exists, of one key in a request and of several */
static const struct {
	unsigned keys;
	enum rig_offload of;
} forms[] = {{1, RIG_GETS}, {4, RIG_GETS}, {1, RIG_EXISTS}, {4, RIG_EXISTS}};

static unsigned long sent(void)
{
	struct reddn_info info;

	reddn_get_info(&rig.c, &info);
	return info.sent;
}

struct asked {
	bool busy, present;
	uint32_t key;
	uint32_t version;
	uint64_t clock;
};

/* The result must have been right at some moment between the submission and now. */
static void judge(const struct reddn_result *res, const struct asked *a)
{
	uint32_t k = a->key;

	assert_true(a->busy);
	assert_int_equal(res->version != 0, rig_store && res->status == 0 && res->value);
	if (res->status == 0 && rig.c.session.info.shape == REDDN_EXISTS) {
		assert_null(res->value);
		assert_true(a->present || rig.key[k].version > a->version);
	} else if (res->status == 0) {
		uint32_t want[64], version;
		size_t len;

		assert_true(res->length >= 8);
		/* behind a key of any length */
		memcpy(&version, (const uint8_t *)res->value + 4, sizeof(version));
		assert_true(version >= a->version);
		assert_true(version <= rig.key[k].version);
		rig_value_of(k, version, want, &len);
		assert_int_equal(res->length, len);
		assert_memory_equal(res->value, want, len);
	} else {
		assert_int_equal(res->status, REDDN_MISS);
		assert_true(k >= RIG_STABLE);
		assert_true(!rig.key[k].present || rig.key[k].last_absent >= a->clock);
	}
}

/* Submits a get of some keys, from asked[i] on. Returns how many; 0: there was no room. */
static int ask(struct asked *asked, unsigned i, unsigned all)
{
	uint8_t bytes[RIG_MOST_KEYS][RIG_KEY_MAX];
	struct reddn_key keys[RIG_MOST_KEYS];
	unsigned n = 0, most = 1 + rig_rnd() % rig.c.session.info.keys;
	int r;

	for (; n < most && i + n < all && !asked[i + n].busy; n++) {
		struct asked *a = &asked[i + n];

		*a = (struct asked){.key = rig_rnd() % RIG_KEYS, .clock = rig.clock};
		a->version = rig.key[a->key].version;
		a->present = rig.key[a->key].present;
		keys[n] = (struct reddn_key){bytes[n], rig_key_of(a->key, bytes[n])};
	}
	if (!n)
		return 0;
	r = submit_keys(keys, n, i);
	if (r == -EAGAIN)
		return 0;
	assert_int_equal(r, 0);
	for (unsigned k = 0; k < n; k++)
		asked[i + k].busy = true;
	return (int)n;
}

/* Gets at random moments, a writer at random moments, and the NIC at random moments between. */
static void property_of(enum rig_offload of, unsigned seed, unsigned keys, uint16_t connections,
	unsigned depth, unsigned gets)
{
	static _Thread_local struct asked asked[RIG_CONNECTIONS * RIG_MAX_DEPTH * RIG_MOST_KEYS];
	unsigned all = connections * depth * keys;
	struct reddn_result res[RIG_MAX_DEPTH];
	unsigned done = 0, hits = 0, busy = 0, refusals = 0, most = 0;

	gets = SANITIZED ? gets / 4 : gets;
	/* A heap so small that freed memory comes back within the life of a request. */
	rig_start_several(keys, connections, depth, of, 24000 + 80 * RIG_KEYS);
	memset(asked, 0, sizeof(asked));
	rig_seed(seed);
	rig.writing = true;
	rig.sends = RIG_LATE;
	while (done < gets) {
		unsigned i = rig_rnd() % all;
		int n;

		rig_maybe_write();
		switch (rig_rnd() % 3) {
		case 0:
			n = ask(asked, i, all);
			refusals += n == 0;
			most = (unsigned)n > most ? (unsigned)n : most;
			busy += (unsigned)n;
			break;
		case 1:
			if (rig_pending() && rig_rnd() % 2)
				rig_serve_half(rig_pending());
			else if (rig_pending())
				rig_serve();
			break;
		case 2:
			/* Now and then a caller takes fewer results than there are. */
			n = reddn_poll(&rig.c, res, 1 + (int)(rig_rnd() % RIG_MAX_DEPTH));
			assert_true(n >= 0);
			/* Results stay as they are until the next poll, whatever happens. */
			rig_maybe_write();
			while (rig_pending() && rig_rnd() % 2)
				rig_serve();
			for (int k = 0; k < n; k++) {
				judge(&res[k], &asked[res[k].cookie]);
				hits += res[k].status == 0;
				asked[res[k].cookie].busy = false;
				busy--;
				done++;
			}
			break;
		}
		assert_int_equal(busy, rig.c.busy);
	}
	reddn_table_stat(rig.t, &rig.st);
	print_message("%u keys, %u x depth %2u: %u gets, %u hits, %lu sent, %lu moved, %lu overtaken, %u "
		      "refused, %lu "
		      "moves\n",
		keys, connections, depth, done, hits, sent(), (unsigned long)rig.c.retries_moved,
		(unsigned long)rig.c.retries_overtaken, refusals, (unsigned long)rig.st.moves / 2);
	assert_int_equal(most, keys);
	assert_true(rig.c.retries_moved > 0);
	assert_int_equal(rig.c.retries_overtaken > 0, of == RIG_GETS);
	for (unsigned i = 0; i < connections; i++)
		assert_true(rig.end[i].served > gets / (2 * connections * keys));
	rig_stop();
}

static void property(unsigned seed, unsigned keys, uint16_t connections, unsigned depth, unsigned gets)
{
	property_of(RIG_GETS, seed, keys, connections, depth, gets);
}

static void test_property(void **state)
{
	static const unsigned depths[] = {1, 2, 3, 16, 64};

	for (unsigned i = 0; i < COUNT(depths); i++)
		property(i + 1, 1, 1, depths[i], 20000);
}

static void test_several_connections(void **state)
{
	property(21, 1, RIG_CONNECTIONS, 1, 20000);
	property(22, 1, 2, 16, 20000);
	property(23, 1, RIG_CONNECTIONS, 16, 20000);
}

static void test_several_keys(void **state)
{
	property(31, RIG_MOST_KEYS, 1, 1, 20000);
	property(32, 3, 1, 4, 20000);
	property(33, RIG_MOST_KEYS, RIG_CONNECTIONS, 16, 20000);
}

/* Records have a header, and keys may have an entry without a record. */
static void test_store(void **state)
{
	rig_store = true;
	property(41, 1, 1, 16, 20000);
	property(42, RIG_MOST_KEYS, 2, 4, 20000);
	rig_store = false;
}

/* A record that has expired is absent, with its version; one that has not is there */
static void test_expiry(void **state)
{
	const uint64_t now = clock_read_ns(CLOCK_REALTIME) / 1000000;
	const uint64_t expiries[] = {0, 1, now, now + 1000000, (1ull << 56) - 1};
	uint8_t key[RIG_KEY_MAX];
	const size_t len = rig_key_of(0, key);

	rig_store = true;
	rig_start(2, RIG_GETS, 100000);
	for (unsigned i = 0; i < COUNT(expiries); i++) {
		const struct rig_end *e = rig.end;
		uint8_t *slot = e->slots + e->served % e->depth * e->slot_size;
		const uint64_t be = htobe64(expiries[i]);
		const bool over = i == 1 || i == 2;
		struct reddn_result res;

		assert_int_equal(reddn_get_submit(&rig.c, key, len, i), 0);
		rig_serve();
		memcpy(slot + reddn_record_at(&rig.c.session.geo, 0) - REDDN_STORE_EXPIRY,
			(const uint8_t *)&be + 1, REDDN_STORE_EXPIRY);
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
		assert_int_equal(res.status, over ? REDDN_MISS : 0);
		assert_true(res.version && !res.value == over && !res.length == over);
		reddn_release(&rig.c);
	}
	rig_stop();
	rig_store = false;
}

static void test_exists(void **state)
{
	property_of(RIG_EXISTS, 51, 1, 1, 16, 20000);
	property_of(RIG_EXISTS, 52, RIG_MOST_KEYS, RIG_CONNECTIONS, 4, 20000);
	rig_store = true;
	property_of(RIG_EXISTS, 53, 3, 1, 2, 20000);
	rig_store = false;
}

static void *property_in_thread(void *seed)
{
	property(*(unsigned *)seed, 2, 2, 16, 4000);
	return NULL;
}

/* reddn.h: different handles are independent. ThreadSanitizer sees whether they share anything. */
static void test_threads(void **state)
{
	unsigned seeds[3] = {11, 12, 13};
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, property_in_thread, &seeds[i]), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void test_depth_and_held(void **state)
{
	struct reddn_result res[4];

	rig_start(2, false, 100000);
	for (uint32_t k = 0; k < 2; k++)
		assert_int_equal(submit_get(k, k), 0);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), -EAGAIN);
	assert_int_equal(reddn_poll(&rig.c, res, 4), 0);
	rig_serve();
	rig_serve();
	assert_int_equal(reddn_poll(&rig.c, res, 1), 1);
	assert_int_equal(res[0].cookie, 0);
	/* The result of slot 0 is with the caller. */
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), -EAGAIN);
	assert_int_equal(reddn_poll(&rig.c, res, 4), 1);
	assert_int_equal(res[0].cookie, 1);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), 0);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), -EAGAIN);
	/* So is the result of slot 1, until it is released. */
	reddn_release(&rig.c);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), 0);
	assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), -EAGAIN);
	assert_int_equal(reddn_get_submit(&rig.c, "", 0, 9), -EINVAL);
	assert_int_equal(reddn_get_submit(&rig.c, "123456789012345678901234567890123", 33, 9), -EMSGSIZE);
	assert_int_equal(reddn_submit(&rig.c, "short", 5, 9), -EINVAL);
	rig_stop();
}

/* One get at a time, as long as the client has room. Returns how many */
static unsigned gets_with_room(unsigned most)
{
	struct reddn_result res;
	unsigned n = 0;

	for (; n < most && submit_get(0, n) == 0; n++) {
		rig_serve();
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
		assert_int_equal(res.cookie, n);
		reddn_release(&rig.c);
	}
	return n;
}

/* The CQE of a SEND may come later than the replies to it and to the ones behind it */
static void test_late_sends(void **state)
{
	enum { DEPTH = 4 };
	struct reddn_result res;

	rig_start(DEPTH, false, 100000);
	rig.sends = RIG_NEVER;
	/* each slot is free, and the next one would be signaled: there is no room for those behind it */
	assert_int_equal(gets_with_room(100), 3 * DEPTH - 1);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(submit_get(0, 0), -EAGAIN);
	/* one CQE frees as many as are between two */
	rig_complete_send(&rig.end[0]);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(gets_with_room(100), DEPTH);
	rig.sends = RIG_AT_ONCE;
	while (rig.end[0].completed < rig.end[0].signals)
		rig_complete_send(&rig.end[0]);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(gets_with_room(2 * DEPTH), 2 * DEPTH);
	rig_stop();
}

static void test_first_miss_asks_twice(void **state)
{
	struct reddn_result res;
	uint32_t absent = RIG_KEYS - 1;

	rig_start(4, false, 100000);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(reddn_get_submit(&rig.c, &absent, 4, 7), 0);
		rig_serve();
		if (i == 0) {
			assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
			rig_serve();
		}
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
		assert_int_equal(res.cookie, 7);
		assert_int_equal(res.status, REDDN_MISS);
	}
	assert_int_equal(sent(), 3);
	rig_stop();
}

/*
 * What is read after a move does not prove that a key is absent whose buckets were read before it: not even
 * if the reply of another connection, which came first, has shown the move.
 */
static void test_miss_beside_others(void **state)
{
	struct reddn_result res;
	struct rig_end *first;
	uint8_t *map;

	rig_start_several(1, 2, 4, false, 100000);
	/* what is known before */
	assert_int_equal(submit_get(0, 0), 0);
	rig_serve();
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(submit_get(RIG_KEYS - 1, 1), 0);
	first = rig_pending();
	rig_serve_half(first);
	map = mmap(NULL, rig.st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, rig.fd, 0);
	*(uint64_t *)(map + rig.st.live_off) += 2;
	munmap(map, rig.st.file_size);
	assert_int_equal(submit_get(2, 2), 0);
	rig_serve_of(&rig.end[first == &rig.end[0]]);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.cookie, 2);
	rig_serve_of(first);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	assert_int_equal(rig.c.retries_moved, 1);
	rig_serve();
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.cookie, 1);
	assert_int_equal(res.status, REDDN_MISS);
	rig_stop();
}

/* A record that never verifies, and a table that never stands still, end in an error after retry_ms. */
static void test_gives_up(void **state)
{
	struct reddn_result res;
	uint32_t k = 3;
	uint8_t *map;
	int n;

	rig_start(4, false, 100000);
	rig.c.connector.opt.retry_ms = 1;
	map = mmap(NULL, rig.st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, rig.fd, 0);
	for (uint64_t i = 64; i < 64 * 200; i++)
		map[rig.st.heap_off + i] ^= 0x10;
	assert_int_equal(submit_get(k, 1), 0);
	do {
		rig_serve();
		n = reddn_poll(&rig.c, &res, 1);
	} while (n == 0);
	assert_int_equal(n, 1);
	assert_int_equal(res.status, -EBADMSG);
	assert_true(rig.c.retries_overtaken > 0);
	/* A writer that died in a move. */
	map[rig.st.live_off] |= 1;
	k = RIG_KEYS - 1;
	assert_int_equal(submit_get(k, 1), 0);
	do {
		rig_serve();
		n = reddn_poll(&rig.c, &res, 1);
	} while (n == 0);
	assert_int_equal(n, 1);
	assert_int_equal(res.status, -EAGAIN);
	munmap(map, rig.st.file_size);
	rig_stop();
}

/* Every outstanding request gets the reason once; then reddn_poll returns it too. */
static void expect_broken(int error, unsigned outstanding)
{
	struct reddn_result res[RIG_MAX_DEPTH];
	unsigned seen = 0;
	uint64_t cookies = 0;
	int n;

	while ((n = reddn_poll(&rig.c, res, 3)) > 0) {
		for (int i = 0; i < n; i++) {
			assert_int_equal(res[i].status, error);
			cookies |= 1ull << res[i].cookie;
			seen++;
		}
		assert_true(seen <= outstanding);
	}
	assert_int_equal(seen, outstanding);
	assert_int_equal(__builtin_popcountll(cookies), outstanding);
	assert_int_equal(n, error);
	assert_int_equal(submit_get(1, 1), error);
	assert_true(strlen(reddn_errmsg(&rig.c)) > 5);
}

static void submit(unsigned n)
{
	for (uint32_t k = 0; k < n; k++)
		assert_int_equal(submit_get(k, k), 0);
}

static void test_broken(void **state)
{
	struct reddn_result res;

	rig_start(8, false, 100000);
	submit(7);
	rig_push((struct ibv_wc){.status = IBV_WC_RETRY_EXC_ERR, .opcode = IBV_WC_SEND});
	for (int i = 0; i < 12; i++)
		rig_push((struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR});
	expect_broken(-EIO, 7);
	rig_stop();

	rig_start(8, false, 100000);
	submit(5);
	rig_push((struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR});
	expect_broken(-ECONNRESET, 5);
	rig_stop();

	/* What arrived before the server hung up still counts. */
	rig_start(8, false, 100000);
	submit(5);
	rig_serve();
	rig.c.session.hangup = true;
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.status, 0);
	assert_int_equal(res.cookie, 0);
	expect_broken(-ECONNRESET, 4);
	rig_stop();

	/* A reply to a request that was never made; a reply out of order. */
	rig_start(8, false, 100000);
	rig_push((struct ibv_wc){.wr_id = first_id(), .opcode = IBV_WC_RECV_RDMA_WITH_IMM});
	expect_broken(-EPROTO, 0);
	rig_stop();
	rig_start(8, false, 100000);
	submit(5);
	rig_push((struct ibv_wc){
		.wr_id = first_id(), .opcode = IBV_WC_RECV_RDMA_WITH_IMM, .imm_data = htonl(1)});
	expect_broken(-EPROTO, 5);
	rig_stop();
}

/* A table is retired while gets of a key that is there and of one that is not are on their way: the NIC has
 * read the buckets of the first, if any has been answered before or not. In all forms. */
static void test_stale(void **state)
{
	for (unsigned n = 0; n < 4 * COUNT(forms); n++) {
		const bool hit = n & 1, later = n & 2;
		const uint32_t ask[2] = {hit ? 3 : RIG_KEYS - 1, hit ? RIG_KEYS - 1 : 3};
		struct reddn_result res;
		uint8_t *map;

		rig_start_several(forms[n / 4].keys, 1, 4, forms[n / 4].of, 100000);
		map = mmap(NULL, rig.st.file_size, PROT_READ | PROT_WRITE, MAP_SHARED, rig.fd, 0);
		if (later) {
			assert_int_equal(submit_get(3, 0), 0);
			rig_serve();
			assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
			assert_int_equal(res.status, 0);
		}
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(submit_get(ask[i], i), 0);
		rig_serve_half(rig_pending());
		((struct reddn_table_live *)(map + rig.st.live_off))->epoch = 0;
		rig_serve();
		expect_broken(-ESTALE, 2);
		assert_non_null(strstr(reddn_errmsg(&rig.c), "another table"));
		assert_int_equal(submit_get(3, 0), -ESTALE);
		munmap(map, rig.st.file_size);
		rig_stop();
	}
}

/* ---- tables that follow a source ---- */

static void state(uint64_t source, uint64_t age_ms, uint32_t flags)
{
	const struct reddn_as_of as_of = {.source = source,
		.host = clock_read_ns(CLOCK_REALTIME) - age_ms * 1000000,
		.epoch = 5,
		.flags = flags};

	assert_int_equal(reddn_table_set_as_of(rig.t, &as_of), 0);
}

static struct reddn_result ask_once(uint32_t k)
{
	struct reddn_result res;

	assert_int_equal(submit_get(k, 1), 0);
	rig_serve();
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	reddn_release(&rig.c);
	return res;
}

/* What the line of a reply states is behind the reading of the record: it counts from the next get on. */
static void test_as_of(void **unused)
{
	struct reddn_result res;
	struct reddn_info info;

	rig_start(4, false, 100000);
	assert_int_equal(ask_once(3).as_of.flags, 0);
	rig_stop();
	rig_start(4, false, 100000);
	state(1000, 0, REDDN_FOLLOWS | REDDN_COMPLETE);
	res = ask_once(3);
	assert_int_equal(res.as_of.flags, REDDN_FOLLOWS);
	assert_int_equal(res.as_of.source, 0);
	assert_int_equal(res.as_of.host, 0);
	assert_int_equal(submit_get(3, 1), 0);
	rig_serve_half(rig_pending());
	state(2000, 0, REDDN_FOLLOWS | REDDN_COMPLETE);
	rig_serve();
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.as_of.source, 1000);
	assert_int_equal(res.as_of.epoch, 5);
	assert_int_equal(res.as_of.flags, REDDN_FOLLOWS | REDDN_COMPLETE);
	reddn_release(&rig.c);
	reddn_get_info(&rig.c, &info);
	assert_int_equal(info.as_of.source, 2000);
	assert_int_equal(info.as_of.flags, REDDN_FOLLOWS | REDDN_COMPLETE);
	/* A miss, while the table is not complete for a moment */
	assert_int_equal(submit_get(RIG_KEYS - 1, 1), 0);
	state(2000, 0, REDDN_FOLLOWS);
	rig_serve_half(rig_pending());
	state(3000, 0, REDDN_FOLLOWS | REDDN_COMPLETE);
	rig_serve();
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.status, REDDN_MISS);
	assert_int_equal(res.as_of.source, 2000);
	assert_int_equal(res.as_of.flags, REDDN_FOLLOWS);
	assert_int_equal(ask_once(RIG_KEYS - 1).as_of.flags, REDDN_FOLLOWS | REDDN_COMPLETE);
	/* Moments of two epochs cannot be compared */
	rig_live()->state += 1ull << REDDN_TABLE_EPOCH;
	res = ask_once(3);
	assert_int_equal(res.as_of.epoch, 6);
	assert_int_equal(res.as_of.source, 0);
	assert_int_equal(ask_once(3).as_of.source, 3000);
	rig_stop();
}

static int ask_within(uint32_t k, unsigned repeats)
{
	uint64_t before = rig.c.retries_old;
	struct reddn_result res;
	int n;

	assert_int_equal(submit_get(k, 1), 0);
	for (n = 0; n == 0;) {
		rig_serve();
		n = reddn_poll(&rig.c, &res, 1);
	}
	assert_int_equal(n, 1);
	assert_int_equal(rig.c.retries_old - before, repeats);
	reddn_release(&rig.c);
	return res.status;
}

/* Hits and misses, in all forms */
static void test_max_age(void **unused)
{
	for (unsigned i = 0; i < 2 * COUNT(forms); i++) {
		const uint32_t k = i & 1 ? 3 : RIG_KEYS - 1;
		const int good = i & 1 ? 0 : REDDN_MISS;
		struct reddn_result res;

		rig_start_several(forms[i / 2].keys, 1, 4, forms[i / 2].of, 100000);
		rig.c.connector.opt.max_age_ms = 100000;
		/* its own source */
		assert_int_equal(ask_within(3, 0), 0);
		state(1000, 0, REDDN_FOLLOWS);
		assert_int_equal(ask_within(k, 1), good);
		assert_int_equal(ask_within(k, 0), good);
		/* by what is known it is young: it has not been more than this long since */
		state(1000, 200000, REDDN_FOLLOWS);
		assert_int_equal(ask_within(k, 0), good);
		assert_int_equal(ask_within(k, 0), -ESTALE);
		assert_int_equal(ask_within(k, 0), -ESTALE);
		assert_int_equal(rig.c.state, REDDN_UP);
		/* what is young has come behind the record */
		assert_int_equal(submit_get(k, 1), 0);
		rig_serve_half(rig_pending());
		state(2000, 0, REDDN_FOLLOWS);
		rig_serve();
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
		rig_serve();
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
		assert_int_equal(res.status, good);
		assert_int_equal(res.as_of.source, 2000);
		/* nothing was ever there */
		rig_live()->as_of_host = 0;
		assert_int_equal(ask_within(k, 0), good);
		assert_int_equal(ask_within(k, 0), -ESTALE);
		/* another clock */
		state(3000, 0, REDDN_FOLLOWS);
		rig_live()->as_of_host += 500000000000;
		assert_int_equal(ask_within(k, 1), good);
		rig_stop();
	}
}

/* Of more requests than reddn_mget() takes results at a time, none is left to the caller or to the next call.
 */
static void test_lost_mget(void **state)
{
	struct reddn_mget keys[RIG_CONNECTIONS * RIG_MAX_DEPTH];
	struct reddn_result res;
	size_t len;

	rig_start_several(1, RIG_CONNECTIONS, RIG_MAX_DEPTH, false, 100000);
	rig.lost_after = RIG_MAX_DEPTH;
	rig.c.end_asked = true; /* there is no server to ask */
	for (unsigned i = 0; i < COUNT(keys); i++)
		keys[i] = (struct reddn_mget){.key = "key", .key_len = 3};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(reddn_mget(&rig.c, keys, COUNT(keys)), -EIO);
		assert_int_equal(reddn_get(&rig.c, "key", 3, NULL, 0, &len), -EIO);
		assert_int_equal(reddn_poll(&rig.c, &res, 1), -EIO);
	}
	rig_stop();

	/* While the caller has requests that are outstanding, they are not in the way either, and keep their
	 * results. */
	rig_start(8, false, 100000);
	rig.lost_after = 3;
	rig.c.end_asked = true;
	submit(3);
	assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
	assert_int_equal(res.status, -EIO);
	assert_int_equal(reddn_mget(&rig.c, keys, 1), -EIO);
	expect_broken(-EIO, 2);
	rig_stop();
}

/* No room for a result is no reason to wait for ever. */
static void test_wait_without_room(void **state)
{
	struct reddn_result res;

	rig_start(8, false, 100000);
	rig.c.connector.opt.spin_us = UINT32_MAX; /* there is no channel to sleep on */
	submit(2);
	assert_int_equal(reddn_wait(&rig.c, &res, 0, -1), 0);
	assert_int_equal(reddn_wait(&rig.c, &res, -1, -1), -EINVAL);
	rig_serve();
	assert_int_equal(reddn_wait(&rig.c, &res, 0, -1), 0);
	assert_int_equal(reddn_wait(&rig.c, &res, 1, -1), 1);
	assert_int_equal(res.cookie, 0);
	rig_stop();
}

/* Replies that have come are results, one at a time, before the error behind them is. */
static void test_left_for_the_next_poll(void **state)
{
	struct reddn_result res;

	rig_start(8, false, 100000);
	for (unsigned round = 0; round < 5; round++) {
		submit(8);
		while (rig_pending())
			rig_serve();
		for (unsigned i = 0; i < 8; i++) {
			assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
			assert_int_equal(res.cookie, i);
			assert_int_equal(res.status, 0);
			/* the slots of those behind are in use */
			assert_int_equal(submit_get(0, 9), i == 0 ? -EAGAIN : 0);
			if (i == 0)
				continue;
			rig_serve();
			assert_int_equal(reddn_poll(&rig.c, NULL, 0), 0);
		}
		for (unsigned i = 0; i < 7; i++) {
			assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
			assert_int_equal(res.cookie, 9);
		}
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 0);
	}
	submit(8);
	for (unsigned i = 0; i < 3; i++)
		rig_serve();
	rig_push((struct ibv_wc){.status = IBV_WC_WR_FLUSH_ERR});
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(reddn_poll(&rig.c, &res, 1), 1);
		assert_int_equal(res.cookie, i);
		assert_int_equal(res.status, 0);
	}
	expect_broken(-ECONNRESET, 5);
	rig_stop();
}

/* The longest request has the most keys. It leaves that of the next slot as it is. */
static void test_longest_request(void **state)
{
	enum { KEYS = REDDN_WIRE_RECORDS };
	uint8_t bytes[KEYS][RIG_KEY_MAX], before[REDDN_REQUEST_MAX];
	struct reddn_result res[2 * KEYS];
	struct reddn_key keys[KEYS];

	rig_start_several(KEYS, 1, 2, false, 100000);
	assert_int_equal(rig.c.session.info.request_len, 2 * 9 * KEYS);
	for (uint32_t k = 0; k < KEYS; k++)
		keys[k] = (struct reddn_key){bytes[k], rig_key_of(k, bytes[k])};
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(reddn_mget_submit(&rig.c, keys, KEYS, 0), 0);
	rig_serve();
	assert_int_equal(reddn_poll(&rig.c, res, KEYS), KEYS);
	reddn_release(&rig.c);
	/* the NIC may still have to send it again */
	memcpy(before, rig.c.session.slots[1].encoded, sizeof(before));
	assert_int_equal(reddn_mget_submit(&rig.c, keys, KEYS, 0), 0);
	assert_memory_equal(before, rig.c.session.slots[1].encoded, sizeof(before));
	rig_serve();
	rig_serve();
	assert_int_equal(reddn_poll(&rig.c, res, 2 * KEYS), 2 * KEYS);
	for (unsigned i = 0; i < 2 * KEYS; i++)
		assert_int_equal(res[i].status, 0);
	rig_stop();
}

static void test_raw(void **state)
{
	struct reddn_result res[4];
	uint8_t arg[100];

	rig_start(3, true, 100000);
	for (int round = 0; round < 10; round++) {
		memset(rig.c.session.area, 0xdd, 3 * RIG_SLOT);
		for (int i = 0; i < 3; i++) {
			memset(arg, round * 3 + i, sizeof(arg));
			assert_int_equal(reddn_submit(&rig.c, arg, sizeof(arg), (uint64_t)i), 0);
		}
		assert_int_equal(reddn_submit(&rig.c, arg, sizeof(arg), 9), -EAGAIN);
		assert_int_equal(reddn_get_submit(&rig.c, "k", 1, 9), -EINVAL);
		for (int i = 0; i < 3; i++) {
			struct rig_end *e = rig.end;
			uint8_t *slot = reddn_slot_mem(&rig.c.session, e->served % 3);

			assert_int_equal(e->wire[e->served % RIG_MAX_DEPTH][99], round * 3 + i);
			assert_int_equal(slot[0] | slot[RIG_SLOT - 1], 0);
			slot[5] = (uint8_t)i;
			e->receives--;
			rig_push((struct ibv_wc){.wr_id = first_id(),
				.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
				.imm_data = htonl((uint32_t)e->served++)});
		}
		assert_int_equal(reddn_poll(&rig.c, res, 4), 3);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(res[i].cookie, i);
			assert_int_equal(res[i].length, RIG_SLOT);
			assert_int_equal(((const uint8_t *)res[i].value)[5], i);
		}
		assert_int_equal(reddn_poll(&rig.c, res, 4), 0);
	}
	rig_stop();
}

/* test-request [TEST]: all, or one */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_property),
		cmocka_unit_test(test_several_connections),
		cmocka_unit_test(test_several_keys),
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_store),
		cmocka_unit_test(test_exists),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_depth_and_held),
		cmocka_unit_test(test_late_sends),
		cmocka_unit_test(test_first_miss_asks_twice),
		cmocka_unit_test(test_miss_beside_others),
		cmocka_unit_test(test_gives_up),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_as_of),
		cmocka_unit_test(test_max_age),
		cmocka_unit_test(test_lost_mget),
		cmocka_unit_test(test_wait_without_room),
		cmocka_unit_test(test_left_for_the_next_poll),
		cmocka_unit_test(test_longest_request),
		cmocka_unit_test(test_raw),
	};
	int failed;

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_extended = true;
	return failed + cmocka_run_group_tests_name("by ibv_cq_ex", tests, NULL, NULL);
}
