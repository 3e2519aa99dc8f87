/* SPDX-License-Identifier: BSD-2-Clause */
/* Extents that a session of a daemon before this one has: held for it, and given back if it does not go on.
 * The ledger and the block may have anything. The store is the test's own, and what became of an instance. */
#include "mlx5/wqe.h"
#include "reddnd/generation/held-store.h"
#include "reddnd/session/extents.h"
#include "reddnd/session/heir.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cmocka.h"

enum {
	SLOTS = 64,
	SECTION = 16,
	SETTLED = 50,
	GIVEN = 3,
	ARMED = SLOTS + GIVEN * SECTION,
	HELD = ARMED - SETTLED,
	ARGS = 10,
	BYTES = 128,
	BUCKETS_AT = 1 << 20,
	HEAP_AT = 1 << 24,
	HEAP = 1 << 16,
	INO = 5,
	/* of the block */
	RQ = 0,
	STRIDE = 64,
	RING = SLOTS * STRIDE,
	SCRATCH = RING + SLOTS * CHAIN_WQEBB,
	LANES = SCRATCH + SLOTS * 8,
	DOORBELL = LANES + 64,
	BLOCK = DOORBELL + 64,
	END = 40, /* of a section in the ring of the recycler */
};

static struct held_store *const store = (struct held_store *)&store;
static struct store_held held[SLOTS];
static size_t nheld;
static unsigned given, unfinished;

static struct ledger *ledger;
static struct ledger_slot *slot, *buckets, *heap;
static struct rnic_arena *arena;
static struct region region;
static struct program program;
static struct chain_image img;
static struct queue_layout layouts[17];
static uint64_t images[17];
static struct offload offload;

/* ---- in place of the store and of the NIC ---- */

int __wrap_held_store_expect(uint64_t dev, uint64_t ino, const struct store_held *of, size_t n);
void __wrap_held_store_give(struct held_store *h, uint64_t at);
void __wrap_held_store_unfinished(struct held_store *h, uint64_t place, uint64_t old, uint64_t now);
struct chain_outcome __wrap_chain_outcome(
	const struct chain_image *image, const uint8_t *wqes, const uint8_t *scratch);

int __wrap_held_store_expect(uint64_t dev, uint64_t ino, const struct store_held *of, size_t n)
{
	assert_true(dev == 0 && ino == INO && n <= SLOTS);
	memcpy(held, of, n * sizeof(*of));
	nheld = n;
	return 0;
}

static uint64_t extent_of(uint64_t n)
{
	return BYTES * (n % SLOTS + 1);
}

void __wrap_held_store_give(struct held_store *h, uint64_t at)
{
	assert_ptr_equal(h, store);
	assert_int_equal(at, extent_of(SETTLED + given + unfinished));
	given++;
}

/* Each third one has come to its publish */
void __wrap_held_store_unfinished(struct held_store *h, uint64_t place, uint64_t old, uint64_t now)
{
	assert_ptr_equal(h, store);
	assert_int_equal(now, extent_of(SETTLED + given + unfinished));
	assert_int_equal(place, 16 * old);
	unfinished++;
}

struct chain_outcome __wrap_chain_outcome(
	const struct chain_image *image, const uint8_t *wqes, const uint8_t *scratch)
{
	const uint8_t *block = rnic_arena_at(arena, 0);
	const uint64_t n = (uint64_t)(wqes - block - RING) / CHAIN_WQEBB;

	assert_ptr_equal(image, &img);
	assert_int_equal(scratch - block, SCRATCH + n * 8);
	return (struct chain_outcome){
		.tried = n % 3 == 0, .place = BUCKETS_AT + 16 * n, .old = n, .now = extent_of(n)};
}

/* ---- tests ---- */

static void set_extent(unsigned n, uint64_t iova)
{
	wqe_put64(rnic_arena_at(arena, RQ + n * STRIDE + WQE_DS + WQE_SGE_ADDR), iova + ARGS);
}

static int setup(void **state)
{
	const uint64_t recycled = htole64(2 * SECTION);
	const uint32_t sent = htobe32(GIVEN * END);

	nheld = given = unfinished = 0;
	assert_int_equal(ledger_new(&ledger, 8, BLOCK), 0);
	assert_int_equal(rnic_arena_new(&arena, BLOCK), 0);
	region = (struct region){.store = store};
	program.nregions = 2;
	img = (struct chain_image){.arg_len = ARGS,
		.payload = {.max = BYTES - ARGS},
		.nrecv = 2,
		.recv[1].offset = ARGS,
		.publish = {.there = true, .extent = true, .region = 1, .queue = 1},
		.queue[1].wqebbs = 1,
		.scratch_size = 8};
	layouts[6] = (struct queue_layout){.slots = SLOTS,
		.size = BLOCK,
		.rq_stride = STRIDE,
		.queue = {{.wq_off = RQ}, {.ring_off = RING}},
		.scratch_off = SCRATCH,
		.lanes_off = LANES,
		.recycler.qp_db_off = DOORBELL,
		.recycling = {.ring_wqebbs = 256, .end = {END, 2 * END, 3 * END, 4 * END}}};
	images[6] = 77;
	offload = (struct offload){.program = &program,
		.img = &img,
		.layouts = layouts,
		.images = images,
		.recycled = true,
		.bound[0].region = &region};
	buckets = ledger_take(ledger, LEDGER_WINDOW);
	buckets->window = (struct ledger_window){.iova = BUCKETS_AT, .ino = INO};
	heap = ledger_take(ledger, LEDGER_WINDOW);
	heap->window = (struct ledger_window){.iova = HEAP_AT, .ino = INO, .bytes = HEAP};
	slot = ledger_take(ledger, LEDGER_SESSION);
	slot->session = (struct ledger_session){
		.number = 1, .slots = SLOTS, .settled = SETTLED, .image = images[6], .publishes = 1};
	slot->session.windows[1] = ledger_number(ledger, buckets);
	slot->session.windows[2] = ledger_number(ledger, heap);
	ledger_set_block(slot, 0, BLOCK);
	memcpy(rnic_arena_at(arena, LANES), &recycled, sizeof(recycled));
	memcpy(rnic_arena_at(arena, DOORBELL + sizeof(sent)), &sent, sizeof(sent));
	for (unsigned n = 0; n < SLOTS; n++)
		set_extent(n, HEAP_AT + extent_of(n));
	return 0;
}

static int teardown(void **state)
{
	ledger_free(ledger);
	rnic_arena_free(arena);
	return 0;
}

static void is_held(void **state)
{
	assert_true(session_publishes(slot));
	assert_int_equal(session_hold(ledger, slot, arena, &offload), 0);
	assert_int_equal(nheld, HELD);
	for (unsigned i = 0; i < HELD; i++) {
		assert_int_equal(held[i].at, extent_of(SETTLED + i));
		assert_int_equal(held[i].bytes, BYTES);
	}
}

static void expect_refused(void)
{
	nheld = 0;
	assert_int_equal(session_hold(ledger, slot, arena, &offload), -EBADMSG);
	assert_int_equal(nheld, 0);
}

/* Nothing of it is read before it is known to be there */
static void cannot_be(void **state)
{
	static const uint64_t iovas[] = {
		HEAP_AT - BYTES, HEAP_AT + HEAP - BYTES + 1, HEAP_AT + HEAP, 0, UINT64_MAX};
	const uint32_t window = slot->session.windows[2];

	for (unsigned i = 0; i < 5; i++) {
		set_extent(20, iovas[i]);
		expect_refused();
	}
	set_extent(20, HEAP_AT + HEAP - BYTES);
	assert_int_equal(session_hold(ledger, slot, arena, &offload), 0);
	heap->window.bytes = BYTES - 1;
	expect_refused();
	heap->window.bytes = HEAP;
	slot->session.windows[2] = 0;
	expect_refused();
	slot->session.windows[2] = window;
	slot->session.windows[1] = 0;
	expect_refused();
	slot->session.windows[1] = window;
	slot->session.settled = ARMED + 1;
	expect_refused();
	slot->session.settled = GIVEN * SECTION - 1;
	expect_refused();
	slot->session.settled = SETTLED;
	ledger_set_block(slot, UINT64_MAX, 0);
	expect_refused();
	ledger_set_block(slot, 0, BLOCK - 1);
	expect_refused();
}

/* All that was held for it is the store's again, once */
static void is_let_go(void **state)
{
	session_let_go(ledger, slot, arena, &offload);
	assert_int_equal(given + unfinished, HELD);
	assert_int_equal(unfinished, 21);
}

static void nothing_was_held(void **state)
{
	session_let_go(ledger, slot, arena, NULL);
	region.store = NULL;
	session_let_go(ledger, slot, arena, &offload);
	region.store = store;
	images[6]++;
	session_let_go(ledger, slot, arena, &offload);
	images[6]--;
	slot->session.settled = ARMED + 1;
	session_let_go(ledger, slot, arena, &offload);
	assert_int_equal(given + unfinished, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(is_held, setup, teardown),
		cmocka_unit_test_setup_teardown(cannot_be, setup, teardown),
		cmocka_unit_test_setup_teardown(is_let_go, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_was_held, setup, teardown)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
