/* SPDX-License-Identifier: BSD-2-Clause */
/* What a template writes for a session is, byte by byte, what chain_recycle() makes for it. Chains that
 * change relocated fields, whose bytes it takes from the rings, are in tests/programs/places.c. */
#include "reddnd/chain/ring/recycle-template.h"
#include "tests/chain/by-hand.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/ring/lap-check.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bed {
	struct chain_image *img;
	struct chain_env env;
	struct chain_recycle made;
	uint8_t *mem;
	size_t size;
};

/* One block, as sessions have it, of which every number depends on @seed */
static void place(struct bed *b, uint64_t seed)
{
	struct chain_env *env = &b->env;
	uint64_t iova = 0x1000000000 + (seed << 20), at = 0;
	uint32_t lkey = (uint32_t)(0x1100 * seed + 0x11), rkey = (uint32_t)(0x2200 * seed + 0x22);

#define TAKE(bytes) (at = (at + 4095) / 4096 * 4096, at += (bytes), at - (bytes))
	for (unsigned q = 0; q < b->img->nqueues; q++) {
		uint64_t off = TAKE((uint64_t)env->queue[q].ring_wqebbs * CHAIN_WQEBB);

		env->queue[q].iova = iova + off;
		env->queue[q].ring = b->mem + off;
		env->queue[q].lkey = lkey;
		env->queue[q].rkey = rkey;
		env->queue[q].qpn = (uint32_t)(0x500 + 0x10 * seed + q);
		env->queue[q].cqn = (uint32_t)(0x900 + 0x10 * seed + q);
	}
	env->recv_cqn = (uint32_t)(0x700 + seed);
	env->recycler.iova = iova + TAKE((uint64_t)b->made.ring_wqebbs * CHAIN_WQEBB);
	env->recycler.ring = b->mem + (env->recycler.iova - iova);
	env->recycler.ring_wqebbs = b->made.ring_wqebbs;
	env->recycler.lkey = lkey;
	env->recycler.qpn = (uint32_t)(0xa00 + seed);
	env->recycler.cqn = (uint32_t)(0xb00 + seed);
	env->scratch.iova = iova + TAKE((uint64_t)env->slots * b->img->scratch_size);
	env->scratch.mem = b->mem + (env->scratch.iova - iova);
	env->scratch.lkey = lkey;
	env->scratch.rkey = rkey;
	env->lanes.iova = iova + TAKE(b->made.lanes);
	env->lanes.mem = b->mem + (env->lanes.iova - iova);
	env->lanes.lkey = lkey;
	env->lanes.rkey = env->lanes.lkey;
	env->lanes.size = b->made.lanes;
	env->rq = b->mem + TAKE((uint64_t)env->slots * env->rq_stride);
#undef TAKE
	for (unsigned i = 0; i < b->img->nregions; i++) {
		env->region[i].iova = (0x70 + seed) << 44;
		env->region[i].lkey = (uint32_t)(0x3300 + seed + i);
		env->region[i].rkey = (uint32_t)(0x4400 + seed + i);
	}
	env->slot_addr = 0x7f0000000000 + (seed << 24);
	env->slot_rkey = (uint32_t)(0x5500 * seed + 0x55);
	env->slot_size = (uint32_t)(64 * seed);
	env->slot_count = (uint32_t)(env->slots >> seed);
}

static void begin(struct bed *b, bool parallel, unsigned slots)
{
	const struct chain_hash_get p = {.parallel = parallel, .offset_len = 4};

	*b = (struct bed){.env.slots = slots};
	assert_int_equal(chain_hash_get(&p, &b->img), 0);
	for (unsigned q = 0; q < b->img->nqueues; q++)
		b->env.queue[q].ring_wqebbs = chain_recycle_ring(b->img, q, slots);
	assert_int_equal(chain_recycle_size(b->img, &b->env, &b->made), 0);
	b->env.rq_stride = chain_rq_stride(b->img);
	b->size = 1 << 21;
	b->mem = calloc(1, b->size);
	assert_non_null(b->mem);
}

static void end(struct bed *b)
{
	chain_free(b->img);
	free(b->mem);
}

static void both_ways(bool parallel, unsigned slots)
{
	struct chain_template *t;
	struct chain_recycle made;
	uint8_t *direct;
	struct bed b;

	begin(&b, parallel, slots);
	direct = malloc(b.size);
	assert_non_null(direct);
	assert_int_equal(chain_template_new(&t, b.img, &b.env, &b.made), 0);
	for (uint64_t seed = 1; seed <= 3; seed++) {
		place(&b, seed);
		made = b.made;
		memset(b.mem, 0, b.size);
		assert_int_equal(chain_recycle(b.img, &b.env, &made), 0);
		memcpy(direct, b.mem, b.size);
		/* what a session before this one has left is no matter where the template writes */
		memset(b.env.recycler.ring, 0xee, (size_t)b.made.ring_wqebbs * CHAIN_WQEBB);
		memset(b.env.lanes.mem, 0xee, b.made.lanes);
		chain_template_write(t, b.img, &b.env, &b.made);
		assert_memory_equal(b.mem, direct, b.size);
		assert_memory_equal(&b.made, &made, sizeof(made));
	}
	chain_template_free(t);
	free(direct);
	end(&b);
}

static void a_template_writes_what_is_made(void **state)
{
	(void)state;
	both_ways(false, 64);
	both_ways(true, 64);
	both_ways(false, 256);
	both_ways(false, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_template_writes_what_is_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
