/* SPDX-License-Identifier: BSD-2-Clause */
/* A ring with each kind of field, and lanes of which some are copied from elsewhere, is filled in for
 * sessions whose addresses, keys and numbers are all different. */
#include "reddnd/chain/ring/ring.h"

#include "mlx5/wqe.h"

#include <string.h>

#include "tests/lib/cmocka.h"

enum { WQEBBS = 8, LANES_AT = 64, LANES = 24, ELSEWHERE = 16 };

struct session {
	uint8_t ring[WQEBBS * CHAIN_WQEBB], lanes[LANES_AT + LANES], elsewhere[ELSEWHERE];
	struct ring_values v;
};

/* No byte of it is zero by chance */
static void begin(struct session *s, unsigned seed)
{
	memset(s, 0xee, sizeof(*s));
	for (unsigned i = 0; i < RING_SYMBOLS; i++) {
		s->v.of[i].iova = ((uint64_t)seed << 40) + ((uint64_t)(i + 1) << 32) + 0x1000;
		s->v.of[i].lkey = 0x11000000 * seed + i;
		s->v.of[i].rkey = 0x22000000 * seed + i;
		s->v.of[i].qpn = 0x330000 * seed + i;
		s->v.of[i].cqn = 0x440000 * seed + i;
		s->v.of[i].mem = NULL;
	}
	for (unsigned i = 0; i < ELSEWHERE; i++)
		s->elsewhere[i] = (uint8_t)(seed * 16 + i);
	s->v.of[RING_SELF].mem = s->ring;
	s->v.of[RING_LANES].mem = s->lanes;
	s->v.of[RING_QUEUE + 1].mem = s->elsewhere;
}

static struct ring_image *make(void)
{
	const struct ring_copy copies[] = {
		{3, 5, ring_at(RING_QUEUE + 1, 2)}, {20, 1, ring_at(RING_QUEUE + 1, 9)}};
	struct ring_image *r = ring_new(WQEBBS, LANES_AT, LANES);

	assert_non_null(r);
	memset(r->ring, 0x55, (size_t)WQEBBS * CHAIN_WQEBB);
	memset(r->lanes, 0x77, LANES);
	for (unsigned w = 0; w < 2; w++) { /* runs of two */
		ring_name(r, w * CHAIN_WQEBB + WQE_QPN_DS, RING_QPN24, ring_at(RING_SELF, 0));
		ring_name(r, w * CHAIN_WQEBB + WQE_RADDR, RING_REMOTE, ring_at(RING_LANES, 8 * w));
		ring_name(r, w * CHAIN_WQEBB + WQE_RDMA_SGE, RING_SEGMENT,
			ring_at(RING_REGION + w, 0x123456789));
	}
	ring_name(r, 2 * CHAIN_WQEBB + WQE_SYNC_OBJECT, RING_QPN, ring_at(RING_QUEUE, 0));
	ring_name(r, 3 * CHAIN_WQEBB + WQE_SYNC_OBJECT, RING_CQN, ring_at(RING_QUEUE + 7, 0));
	ring_copies(r, copies, 2);
	assert_int_equal(ring_done(r), 0);
	return r;
}

static void expect_ring(const struct session *s)
{
	uint8_t ring[WQEBBS * CHAIN_WQEBB];

	memset(ring, 0x55, sizeof(ring));
	for (unsigned w = 0; w < 2; w++) {
		uint8_t *wqe = ring + (size_t)w * CHAIN_WQEBB;

		wqe_put32(wqe + WQE_QPN_DS, s->v.of[RING_SELF].qpn << 8 | 0x55);
		wqe_put64(wqe + WQE_RADDR, s->v.of[RING_LANES].iova + (uint64_t)8 * w);
		wqe_put32(wqe + WQE_RKEY, s->v.of[RING_LANES].rkey);
		wqe_put32(wqe + WQE_RDMA_SGE + WQE_SGE_LKEY, s->v.of[RING_REGION + w].lkey);
		wqe_put64(wqe + WQE_RDMA_SGE + WQE_SGE_ADDR, s->v.of[RING_REGION + w].iova + 0x123456789);
	}
	wqe_put32(ring + 2 * CHAIN_WQEBB + WQE_SYNC_OBJECT, s->v.of[RING_QUEUE].qpn);
	wqe_put32(ring + 3 * CHAIN_WQEBB + WQE_SYNC_OBJECT, s->v.of[RING_QUEUE + 7].cqn);
	assert_memory_equal(s->ring, ring, sizeof(ring));
}

static void expect_lanes(const struct session *s)
{
	uint8_t lanes[LANES_AT + LANES] = {0};

	memset(lanes + LANES_AT, 0x77, LANES);
	memcpy(lanes + LANES_AT + 3, s->elsewhere + 2, 5);
	lanes[LANES_AT + 20] = s->elsewhere[9];
	assert_memory_equal(s->lanes, lanes, sizeof(lanes));
}

static void each_session_gets_its_own(void **state)
{
	struct ring_image *r = make();
	struct session s;

	for (unsigned seed = 1; seed <= 3; seed++) {
		begin(&s, seed);
		ring_fill(r, &s.v);
		expect_ring(&s);
		expect_lanes(&s);
	}
	ring_free(r);
}

static void a_proof_needs_no_lanes(void **state)
{
	struct ring_image *r = make();
	struct session s;

	begin(&s, 1);
	s.v.of[RING_LANES].mem = s.v.of[RING_QUEUE + 1].mem = NULL;
	ring_fill(r, &s.v);
	expect_ring(&s);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_session_gets_its_own),
		cmocka_unit_test(a_proof_needs_no_lanes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
