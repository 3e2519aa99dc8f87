/* SPDX-License-Identifier: BSD-2-Clause */
/* Extents of a session, from the store and back to it: at any time each is in one place. The store, and what
 * became of an instance, are the test's own. */
#include "reddnd/session/extents.h"

#include "mlx5/wqe.h"
#include "reddnd/generation/held-store.h"
#include "reddnd/policy/offload-stats.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum {
	SLOTS = 4,
	ARGS = 10,
	MAX = 100,
	EXTENTS = 8,
	EXTENT = 128,
	BUCKETS_AT = 1 << 20,
	PLACE = 48,
	OLD = 7
};

static struct held_store *const store = (struct held_store *)&store;
static enum { FREE, HELD, PUBLISHED } extents[EXTENTS];
static char done[400]; /* what was reported */
static bool good;      /* what the store finds of payloads */
static bool joined;

/* Of an instance */
static struct {
	bool tried, published;
	uint32_t bytes;
} came[64];

static struct session session;
static struct offload_stats stats;
static struct region region;
static struct chain_image image;
static struct offload offload;

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void note(const char *format, ...)
{
	const size_t n = strlen(done);
	va_list ap;

	va_start(ap, format);
	vsnprintf(done + n, sizeof(done) - n, format, ap);
	va_end(ap);
}

/* ---- in place of the store and of the NIC ---- */

void __wrap_held_store_join(struct held_store *h);
void __wrap_held_store_leave(struct held_store *h);
int __wrap_held_store_take(struct held_store *h, uint32_t bytes, uint64_t *at);
void __wrap_held_store_renew(struct held_store *h, uint64_t at);
void __wrap_held_store_give(struct held_store *h, uint64_t at);
bool __wrap_held_store_published(struct held_store *h, uint64_t place, uint64_t old, uint64_t now);
bool __wrap_held_store_unplaced(struct held_store *h, uint64_t at, uint32_t bytes);
void __wrap_held_store_unfinished(struct held_store *h, uint64_t place, uint64_t old, uint64_t now);
struct chain_outcome __wrap_chain_outcome(
	const struct chain_image *img, const uint8_t *wqes, const uint8_t *scratch);
int __wrap_rnic_cq_peek(const struct rnic_cq *cq, uint32_t n, struct rnic_cqe *cqe);

static unsigned held(uint64_t at)
{
	assert_true(at % EXTENT == 0 && at / EXTENT < EXTENTS);
	assert_int_equal(extents[at / EXTENT], HELD);
	return (unsigned)(at / EXTENT);
}

void __wrap_held_store_join(struct held_store *h)
{
	assert_ptr_equal(h, store);
	assert_false(joined);
	joined = true;
}

/* Nothing that was armed is left */
void __wrap_held_store_leave(struct held_store *h)
{
	assert_ptr_equal(h, store);
	assert_true(joined);
	joined = false;
	for (unsigned i = 0; i < EXTENTS; i++)
		assert_int_not_equal(extents[i], HELD);
}

int __wrap_held_store_take(struct held_store *h, uint32_t bytes, uint64_t *at)
{
	assert_ptr_equal(h, store);
	assert_true(joined);
	assert_int_equal(bytes, ARGS + MAX);
	for (unsigned i = 0; i < EXTENTS; i++) {
		if (extents[i] != FREE)
			continue;
		extents[i] = HELD;
		*at = i * EXTENT;
		return 0;
	}
	return -ENOSPC;
}

void __wrap_held_store_renew(struct held_store *h, uint64_t at)
{
	note("renewed %u ", held(at));
}

void __wrap_held_store_give(struct held_store *h, uint64_t at)
{
	extents[held(at)] = FREE;
}

bool __wrap_held_store_published(struct held_store *h, uint64_t place, uint64_t old, uint64_t now)
{
	assert_int_equal(place, PLACE);
	assert_int_equal(old, OLD);
	note("published %u ", held(now));
	extents[held(now)] = PUBLISHED;
	return good;
}

bool __wrap_held_store_unplaced(struct held_store *h, uint64_t at, uint32_t bytes)
{
	note("unplaced %u: %u ", held(at), bytes);
	return good;
}

void __wrap_held_store_unfinished(struct held_store *h, uint64_t place, uint64_t old, uint64_t now)
{
	assert_true(place == PLACE && old == OLD);
	note("unfinished %u ", held(now));
	extents[held(now)] = PUBLISHED;
}

/* The instance in the slot, the last that was armed there */
static uint64_t instance_at(const uint8_t *wqes)
{
	uint64_t slot = (uint64_t)(wqes - session.queues.env.queue[1].ring) / CHAIN_WQEBB, n = slot;

	while (n + SLOTS < session.progress.armed)
		n += SLOTS;
	return n;
}

struct chain_outcome __wrap_chain_outcome(
	const struct chain_image *img, const uint8_t *wqes, const uint8_t *scratch)
{
	const uint64_t n = instance_at(wqes);

	assert_ptr_equal(img, &image);
	assert_int_equal(scratch - session.queues.env.scratch.mem, n % SLOTS * image.scratch_size);
	return (struct chain_outcome){.tried = came[n].tried,
		.published = came[n].published,
		.place = BUCKETS_AT + PLACE,
		.old = OLD,
		.now = session.extents.at[n % SLOTS]};
}

int __wrap_rnic_cq_peek(const struct rnic_cq *cq, uint32_t n, struct rnic_cqe *cqe)
{
	*cqe = (struct rnic_cqe){.length = came[n].bytes};
	return came[n].bytes != 0;
}

/* ---- tests ---- */

static int setup(void **state)
{
	static uint8_t ring[SLOTS * CHAIN_WQEBB], scratch[SLOTS * 8];

	memset(extents, 0, sizeof(extents));
	memset(came, 0, sizeof(came));
	*done = '\0';
	good = true;
	stats = (struct offload_stats){0};
	region = (struct region){.store = store};
	image = (struct chain_image){.arg_len = ARGS,
		.payload = {.max = MAX},
		.publish = {.there = true, .extent = true, .region = 1, .queue = 1},
		.queue[1].wqebbs = 1,
		.scratch_size = 8};
	offload = (struct offload){.img = &image, .stats = &stats, .bound[0].region = &region};
	session = (struct session){.offload = &offload, .queues.layout.slots = SLOTS};
	session.queues.env.region[1].iova = BUCKETS_AT;
	session.queues.env.queue[1].ring = ring;
	session.queues.env.scratch.mem = scratch;
	assert_int_equal(session_extents_begin(&session), 0);
	assert_ptr_equal(session.queues.env.extents.at, session.extents.at);
	return 0;
}

static int teardown(void **state)
{
	session_extents_end(&session);
	for (unsigned i = 0; i < EXTENTS; i++)
		assert_int_not_equal(extents[i], HELD);
	return 0;
}

static void arm(uint64_t to, uint64_t expected)
{
	assert_int_equal(session_extents_take(&session, session.progress.armed, to), expected);
	assert_int_equal(session.extents.waits, expected < to);
	session.progress.armed = expected;
}

static void comes(uint64_t n, bool tried, bool published, uint32_t bytes)
{
	came[n].tried = tried;
	came[n].published = published;
	came[n].bytes = bytes;
	session.progress.done = n + 1;
}

static void test_each_outcome(void **state)
{
	arm(SLOTS, SLOTS);
	comes(0, true, true, ARGS + 24);
	comes(1, true, false, ARGS + 24);
	comes(2, false, false, ARGS + 40);
	comes(3, false, false, ARGS);
	session_extents_settle(&session);
	assert_string_equal(done, "published 0 unplaced 2: 50 ");
	assert_int_equal(stats.bytes_in, 24 + 24 + 40);
	assert_int_equal(session.counters.payload, stats.bytes_in);
	/* once */
	session_extents_settle(&session);
	assert_string_equal(done, "published 0 unplaced 2: 50 ");
	/* that of slot 0 is the store's, the others go on, as others for who looks at versions */
	arm(2 * SLOTS, 2 * SLOTS);
	assert_string_equal(done, "published 0 unplaced 2: 50 renewed 1 renewed 2 renewed 3 ");
	assert_int_equal(session.extents.at[0], 4 * EXTENT);
}

/* One request follows the other into the same slots, until the store has nothing left */
static void test_it_waits(void **state)
{
	arm(SLOTS, SLOTS);
	for (unsigned n = 0; n < EXTENTS; n++) {
		comes(n, true, true, ARGS + 24);
		session_extents_settle(&session);
		arm(n + 1 + SLOTS, n < EXTENTS - SLOTS ? n + 1 + SLOTS : EXTENTS);
	}
	assert_true(session.extents.waits);
	extents[3] = FREE;
	arm(EXTENTS + 2, EXTENTS + 1);
	assert_int_equal(session.extents.at[0], 3 * EXTENT);
	extents[4] = FREE;
	arm(EXTENTS + 2, EXTENTS + 2);
}

/* What was not published goes on in another slot, if the store has nothing */
static void test_what_is_left(void **state)
{
	for (unsigned i = 2; i < EXTENTS; i++)
		extents[i] = PUBLISHED;
	arm(SLOTS, 2);
	for (unsigned n = 0; n < 3 * SLOTS; n++) {
		comes(n, true, false, ARGS + 24);
		session_extents_settle(&session);
		arm(n + 1 + SLOTS, n + 3);
	}
	assert_true(extents[0] == HELD && extents[1] == HELD);
	assert_int_equal(strlen(done), 3 * SLOTS * strlen("renewed 0 "));
	/* none of those that are armed */
	assert_int_equal(
		session_extents_take(&session, session.progress.armed, 5 * SLOTS), session.progress.armed);
}

static void test_no_record(void **state)
{
	struct verdict v;
	bool broken;

	arm(SLOTS, SLOTS);
	comes(0, false, false, ARGS + 3);
	assert_int_equal(session_extents_next(&session, UINT64_MAX, &broken, &v), SLOTS + 1);
	assert_false(broken);
	session.progress.armed++;
	good = false;
	comes(1, false, false, ARGS + 3);
	comes(2, true, true, ARGS + 5);
	session_extents_next(&session, UINT64_MAX, &broken, &v);
	assert_true(broken);
	assert_int_equal(v.kind, VERDICT_REQUEST);
	assert_non_null(strstr(v.text, "request 1 "));
	/* shorter than its arguments, which comes first */
	comes(3, false, false, ARGS - 1);
	session.extents.broken = false;
	session_extents_next(&session, UINT64_MAX, &broken, &v);
	assert_true(broken);
	assert_non_null(strstr(v.text, "request 3 had 9 bytes, not 10"));
}

/* Request 1 is under way, 2 has come, 3 has not */
static void test_the_end(void **state)
{
	arm(SLOTS, SLOTS);
	comes(0, true, true, ARGS + 24);
	came[1].tried = true;
	came[2].bytes = ARGS + 24;
	session_extents_end(&session);
	assert_string_equal(done, "published 0 unfinished 1 ");
	assert_true(extents[0] == PUBLISHED && extents[1] == PUBLISHED);
	assert_true(extents[2] == FREE && extents[3] == FREE);
	assert_null(session.extents.at);
}

/* Slots that could not be armed again have none */
static void test_the_end_of_one_that_waits(void **state)
{
	test_it_waits(state);
	comes(EXTENTS, true, false, ARGS + 24);
}

/* Sections of a recycler end here in its ring */
#define ENDS                                                                                                 \
	{                                                                                                    \
		50, 100, 150, 200                                                                            \
	}
enum { RING = 256 };

/* The recycler has armed 2 of its sections again, and its doorbell record is at @posted */
static int left(uint64_t settled, uint16_t posted, struct extents_left *l)
{
	struct queue_layout layouts[17] = {{.slots = 64,
		.lanes_off = 64,
		.recycling = {.progress = 8, .ring_wqebbs = RING, .end = ENDS},
		.recycler.qp_db_off = 128}};
	const struct offload o = {.layouts = layouts};
	const struct ledger_session s = {.slots = 64, .settled = settled};
	uint64_t block[32] = {[9] = htole64(2 * 16)};
	const uint32_t sent = htobe32(posted);

	memcpy((uint8_t *)block + 128 + sizeof(sent), &sent, sizeof(sent));
	return session_extents_left(&s, &o, (const uint8_t *)block, l);
}

/* What a daemon before this one has noted, and cannot have noted */
static void test_what_was_left(void **state)
{
	struct extents_left l;

	assert_int_equal(left(50, 150, &l), 0);
	assert_true(l.settled == 50 && l.armed == 64 + 3 * 16);
	assert_int_equal(left(48, 150, &l), 0);
	assert_int_equal(left(112, 150, &l), 0);
	assert_int_equal(left(64, 200, &l), 0);
	assert_true(l.settled == 64 && l.armed == 64 + 4 * 16);
	/* a section before all of it was settled; more than were armed; sections that were never given, whose
	 * WQEs are not renewed, or have been executed; the middle of one
	 */
	assert_int_equal(left(47, 150, &l), -EBADMSG);
	assert_int_equal(left(113, 150, &l), -EBADMSG);
	assert_int_equal(left(80, RING + 50, &l), -EBADMSG);
	assert_int_equal(left(32, 50, &l), -EBADMSG);
	assert_int_equal(left(50, 140, &l), -EBADMSG);
}

static uint64_t replies; /* that there are */

static void count(struct session *s)
{
	s->progress.done = replies;
}

static unsigned rung;

void __wrap_rnic_qp_ring(struct rnic_qp *qp, uint16_t index);

void __wrap_rnic_qp_ring(struct rnic_qp *qp, uint16_t index)
{
	assert_ptr_equal(qp->dev, &rung);
	rung = index;
}

/* The daemon before this one reported 50 requests to the store. More extents are not held than of the
 * requests behind them, so they have to be over. It wrote the doorbell record for three sections, and nobody
 * knows whether it rang. */
static void test_settled_are_over(void **state)
{
	static const struct session_engine engine = {.count = count};
	const struct chain_recycle recycling = {.ring_wqebbs = RING, .end = ENDS, .progress = 8};
	struct queue_layout layouts[17] = {{.slots = 64, .recycling = recycling}};
	struct chain_image img = {.nrecv = 1, .payload = {.max = MAX}};
	struct offload o = {.layouts = layouts, .img = &img, .bound[0].region = &region};
	struct ledger_slot slot = {.session = {.slots = 64, .settled = 50}};
	uint64_t block[2] = {htobe64(150), htole64(16)};
	uint8_t rq[64 * WQE_DS] = {0};
	struct session s = {.slot = &slot, .offload = &o, .engine = &engine};

	region.store = store;
	s.queues.layout = (struct queue_layout){.slots = 64, .rq_stride = WQE_DS};
	s.queues.block.mem = (uint8_t *)block;
	s.queues.env.rq = rq;
	s.recycler.qp = (struct rnic_qp){.dev = (struct rnic_device *)&rung, .sq_posted = 150};
	rung = 0;
	replies = 49;
	assert_int_equal(session_extents_adopt(&s), -EBADMSG);
	assert_null(s.extents.at);
	assert_int_equal(rung, 0);
	replies = 50;
	assert_int_equal(session_extents_adopt(&s), 0);
	assert_int_equal(s.progress.done, 50);
	assert_int_equal(s.progress.armed, 64 + 3 * 16);
	assert_int_equal(rung, 150);
	session_extents_forget(&s);
	/* none was given */
	slot.session.settled = 0;
	block[0] = block[1] = 0;
	s.recycler.qp.sq_posted = 0;
	rung = UINT16_MAX + 1;
	assert_int_equal(session_extents_adopt(&s), 0);
	assert_int_equal(s.progress.armed, 64);
	assert_int_equal(rung, UINT16_MAX + 1);
	session_extents_forget(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_outcome, setup, teardown),
		cmocka_unit_test_setup_teardown(test_it_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_record, setup, teardown),
		cmocka_unit_test(test_what_was_left),
		cmocka_unit_test(test_settled_are_over),
		cmocka_unit_test_setup_teardown(test_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_end_of_one_that_waits, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
