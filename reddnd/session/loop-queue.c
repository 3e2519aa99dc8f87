/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/loop-queue.h"

#include "mlx5/wqe.h"
#include "reddnd/session/send-queue.h"
#include "util/clock.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { READS = 16 /* under way at a time */ };

struct session_loop {
	const struct program *program;
	const struct rnic_block *block;
	struct queue_layout_loop layout;
	struct rnic_cq cq;
	struct rnic_qp qp;
	struct {
		struct rnic_cq cq;
		struct rnic_qp qp;
		uint64_t given;
	} credits;
	struct loop_pace pace;
	const uint64_t *progress; /* little-endian */
};

int session_loop_new(struct session_loop **out, struct session_loops *own, const struct program *p,
	uint64_t rate, const struct rnic_block *block, const struct queue_layout_loop *layout,
	uint64_t cq_cookie, uint64_t qp_cookie)
{
	struct session_loop *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->program = p;
	l->block = block;
	l->layout = *layout;
	l->pace = loop_pace_of(p, rate);
	rate_init(&own->rate, l->pace.per_second, l->pace.ahead, clock_us());
	r = session_send_queue_make(&l->cq, &l->qp, block, &layout->queue, true, cq_cookie, qp_cookie);
	if (r == 0)
		r = session_send_queue_make(
			&l->credits.cq, &l->credits.qp, block, &layout->credits, false, cq_cookie, qp_cookie);
	if (r < 0) {
		session_loop_free(l);
		return r;
	}
	*out = l;
	return 0;
}

/* The IOVA of @off in the block: its key begins at code_off */
static uint64_t iova(const struct session_loop *l, uint64_t off)
{
	return l->block->iova + off - l->block->code_off;
}

static void fill_in(struct ring_values *v, unsigned symbol, const struct session_loop *l, uint64_t off)
{
	v->of[symbol].iova = iova(l, off);
	v->of[symbol].lkey = l->block->lkey;
	v->of[symbol].rkey = l->block->rkey;
	v->of[symbol].mem = l->block->mem + off;
}

/* The memory that chain and loop share is the last region of the chain */
static void share(struct session_loop *l, struct chain_env *env)
{
	const unsigned shared = l->program->image->nregions - 1;

	env->region[shared].iova = iova(l, l->layout.shared_off);
	env->region[shared].lkey = l->block->lkey;
	env->region[shared].rkey = l->block->rkey;
	l->progress =
		(const uint64_t *)(l->block->mem + l->layout.lanes_off + l->program->loop_info.progress);
}

void session_loop_write(struct session_loop *l, struct chain_env *env)
{
	const struct program *p = l->program;
	const unsigned call = p->image->nqueues - 1, shared = p->image->nregions - 1;
	struct ring_values v = {0};

	/* A request wakes the loop by the first CQE of its last queue, and is woken by being enabled through
	 * the second */
	assert(p->image->queue[call].cqes == 2 && p->image->region_bits[shared] == 0);
	share(l, env);
	memcpy(l->block->mem + l->layout.shared_off, p->shared_init, p->shared_bytes);
	for (unsigned i = 0; i < p->image->nregions; i++) {
		v.of[RING_REGION + i].iova = env->region[i].iova;
		v.of[RING_REGION + i].lkey = env->region[i].lkey;
		v.of[RING_REGION + i].rkey = env->region[i].rkey;
	}
	fill_in(&v, RING_SELF, l, l->layout.queue.ring_off);
	fill_in(&v, RING_LANES, l, l->layout.lanes_off);
	fill_in(&v, RING_SCRATCH, l, l->layout.scratch_off);
	v.of[RING_SELF].qpn = l->qp.qpn;
	v.of[RING_SELF].cqn = l->cq.cqn;
	v.of[CHAIN_LOOP_CALLER].qpn = env->queue[call].qpn;
	v.of[CHAIN_LOOP_CALLER].cqn = env->queue[call].cqn;
	v.of[RING_CREDITS].cqn = l->credits.cq.cqn;
	chain_loop_write(p->loop_image, p->loop, &p->loop_info, &v);
}

int session_loop_start(
	struct session_loop *l, struct session_loops *shared, unsigned connections, struct master_qp *master)
{
	int r = rnic_qp_connect_self(&l->qp, READS);

	if (r == 0)
		r = rnic_qp_connect_self(&l->credits.qp, 1);
	if (r < 0)
		return r;
	rnic_cq_arm(&l->cq, true);
	session_loop_feed(l, shared, connections, clock_us());
	return master_qp_enable(master, l->qp.qpn, l->program->loop_info.start);
}

/* ---- credits ---- */

/* Those that were used up: one for each half of a lap */
static uint64_t used(const struct session_loop *l)
{
	return session_loop_iterations(l) / (l->program->loop_info.iterations / 2);
}

/* There is room for the NOPs of those that are not used up: one is when its half of a lap is counted, later
 * than its NOP */
static void give(struct session_loop *l, uint64_t n)
{
	static const uint8_t nop[RNIC_WQEBB_BYTES] = {
		[WQE_OPCODE] = WQE_OP_NOP, [WQE_DSCOUNT] = 1, [WQE_FLAGS] = WQE_SIGNALLED};

	l->credits.given += n;
	while (n-- > 0)
		rnic_qp_post(&l->credits.qp, nop);
}

/* The doorbell record has the low bits of their number. The last one may be there without the doorbell:
 * ringing again does no harm */
int session_loop_resume(struct session_loop *l, struct chain_env *env)
{
	const uint16_t posted = l->credits.qp.sq_posted;
	uint16_t unused;

	share(l, env);
	unused = (uint16_t)(posted - used(l));
	if (unused > l->layout.credits.ring_wqebbs)
		return -EBADMSG;
	l->credits.given = used(l) + unused;
	if (l->credits.given)
		rnic_qp_ring(&l->credits.qp, posted);
	rnic_cq_arm(&l->cq, true);
	return 0;
}

bool session_loop_feed(
	struct session_loop *l, struct session_loops *shared, unsigned connections, uint64_t now)
{
	uint64_t n;

	if (!l)
		return false;
	n = loop_pace_credits(&l->pace, l->credits.given - used(l), connections,
		rate_part(&shared->rate, &shared->sharers, now));
	rate_take(&shared->rate, n);
	give(l, n);
	return n > 0;
}

/* ---- ending ---- */

void session_loop_stop(struct session_loop *l)
{
	if (!l)
		return;
	rnic_qp_stop(&l->qp);
	rnic_qp_stop(&l->credits.qp);
}

void session_loop_destroy_qp(struct session_loop *l)
{
	if (!l)
		return;
	rnic_qp_deinit(&l->qp);
	rnic_qp_deinit(&l->credits.qp);
}

void session_loop_free(struct session_loop *l)
{
	if (!l)
		return;
	session_loop_destroy_qp(l);
	rnic_cq_deinit(&l->cq);
	rnic_cq_deinit(&l->credits.cq);
	free(l);
}

struct rnic_cq *session_loop_cq(struct session_loop *l)
{
	return l ? &l->cq : NULL;
}

uint32_t session_loop_qpn(const struct session_loop *l)
{
	return l ? l->qp.qpn : 0;
}

uint64_t session_loop_iterations(const struct session_loop *l)
{
	return l ? le64toh(__atomic_load_n(l->progress, __ATOMIC_ACQUIRE)) : 0;
}
