/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/chain/chain-rig.h"

#include "reddnd/chain/ring/decode.h"
#include "softcx/hw/cq.h"
#include "softcx/hw/dev.h"
#include "softcx/hw/qp.h"
#include "util/xorshift.h"

#include <stdio.h>
#include <string.h>

enum { CQ_LOG = 7 };

uint64_t chain_rig_random(struct chain_rig *c, uint64_t below)
{
	return (xorshift(&c->rng) >> 11) % below;
}

void chain_rig_fill(struct chain_rig *c, void *p, size_t n)
{
	for (uint8_t *b = p; n--;)
		*b++ = (uint8_t)chain_rig_random(c, 256);
}

void chain_rig_open(struct chain_rig *c, const struct hw_config *cfg, struct chain_image *img, unsigned depth)
{
	memset(c, 0, sizeof(*c));
	c->img = img;
	assert_int_equal(chain_writer_new(&c->writer, img), 0);
	for (c->env.slots = 2; c->env.slots < depth + 1;)
		c->env.slots *= 2;
	rig_open(&c->rig, cfg);
	chain_rig_seed(c, cfg->seed);
}

void chain_rig_seed(struct chain_rig *c, uint64_t seed)
{
	c->rng = (seed + 1) * 0x9e3779b97f4a7c15;
	hw_dev_seed(c->rig.dev, seed);
}

uint32_t chain_rig_key(struct chain_rig *c, const void *p, uint64_t len, uint64_t iova, unsigned access)
{
	struct hw_mkey_attr a = {.pdn = c->rig.pdn,
		.iova = iova,
		.len = len,
		.access = access,
		.mem = &c->rig.mem,
		.mem_off = rig_off(&c->rig, p)};

	assert_true(c->nkeys < CHAIN_RIG_KEYS);
	assert_int_equal(hw_mkey_create(c->rig.dev, &a, &c->key[c->nkeys]), 0);
	return c->key[c->nkeys++];
}

void chain_rig_extents(struct chain_rig *c, const void *p, uint64_t len)
{
	assert_true(c->env.slots <= CHAIN_RIG_SLOTS);
	c->env.extents.iova = 0xc000000000;
	c->env.extents.lkey = chain_rig_key(c, p, len, c->env.extents.iova, HW_LOCAL_WRITE);
	c->env.extents.at = c->extent;
}

struct chain_outcome chain_rig_outcome(const struct chain_rig *c, uint64_t seq)
{
	const struct chain_publish *p = &c->img->publish;
	const size_t slot = seq & (c->env.slots - 1);

	return chain_outcome(c->img,
		c->env.queue[p->queue].ring + slot * c->img->queue[p->queue].wqebbs * CHAIN_WQEBB,
		c->env.scratch.mem + slot * c->img->scratch_size);
}

void chain_rig_recycle(struct chain_rig *c, unsigned slots)
{
	c->recycled = true;
	c->env.slots = slots;
}

void chain_rig_first(struct chain_rig *c, uint64_t first)
{
	c->env.first = first;
}

/* @mem: NULL, or it has that already */
static void give_memory(struct chain_rig *c, unsigned symbol, uint8_t *mem, uint64_t bytes, uint64_t iova)
{
	struct ring_values *v = &c->loop_values;

	v->of[symbol].mem = mem ? mem : rig_alloc(&c->rig, bytes);
	v->of[symbol].iova = iova;
	v->of[symbol].lkey = v->of[symbol].rkey =
		chain_rig_key(c, v->of[symbol].mem, bytes, iova, CHAIN_RIG_ALL_RIGHTS);
}

void chain_rig_loop(struct chain_rig *c, const struct chain_desc *loop, const struct ring_image *image,
	const struct chain_loop_info *info, const uint8_t *init, uint32_t shared)
{
	struct ring_values *v = &c->loop_values;
	unsigned last = c->img->nregions - 1;

	c->loop = loop;
	c->loop_info = info;
	c->loop_image = image;
	rig_cq_new_attr(&c->rig, &c->loop_cq, (struct hw_cq_attr){.log_size = CQ_LOG, .oi = true});
	rig_qp_new_with(&c->rig, &c->loop_qp, &c->loop_cq, &c->loop_cq,
		(struct rig_opt){.managed = true, .wqebbs = image->wqebbs});
	rig_connect(&c->loop_qp, &c->loop_qp);
	for (unsigned r = 0; r < last; r++) {
		v->of[RING_REGION + r].iova = c->env.region[r].iova;
		v->of[RING_REGION + r].lkey = c->env.region[r].lkey;
		v->of[RING_REGION + r].rkey = c->env.region[r].rkey;
	}
	give_memory(c, RING_REGION + last, NULL, shared, 0x7000000000);
	memcpy(v->of[RING_REGION + last].mem, init, shared);
	c->env.region[last].iova = v->of[RING_REGION + last].iova;
	c->env.region[last].lkey = v->of[RING_REGION + last].lkey;
	c->env.region[last].rkey = v->of[RING_REGION + last].rkey;
	give_memory(c, RING_SELF, c->loop_qp.sq, (uint64_t)image->wqebbs * CHAIN_WQEBB, 0x8000000000);
	v->of[RING_SELF].qpn = hw_qpn(c->loop_qp.qp);
	v->of[RING_SELF].cqn = hw_cqn(c->loop_cq.cq);
	give_memory(c, RING_LANES, NULL, info->lanes, 0x9000000000);
	give_memory(c, RING_SCRATCH, NULL, info->scratch + 8u, 0xa000000000);
}

static void make_loop(struct chain_rig *c)
{
	struct ring_values *v = &c->loop_values;
	unsigned last = c->img->nqueues - 1;

	/* It has all the credits that it may want */
	rig_cq_new_attr(&c->rig, &c->credit_cq, (struct hw_cq_attr){.log_size = CQ_LOG, .oi = true});
	c->credit_cq.cq->producer = 1u << 22;
	v->of[RING_CREDITS].cqn = hw_cqn(c->credit_cq.cq);
	v->of[CHAIN_LOOP_CALLER].cqn = c->env.queue[last].cqn;
	v->of[CHAIN_LOOP_CALLER].qpn = c->env.queue[last].qpn;
	assert_int_equal(c->img->queue[last].cqes, 2);
	chain_loop_write(c->loop_image, c->loop, c->loop_info, v);
}

static uint32_t ring_of(const struct chain_rig *c, unsigned q)
{
	return c->recycled ? chain_recycle_ring(c->img, q, c->env.slots)
			   : chain_ring_wqebbs(&c->img->queue[q], c->env.slots);
}

static void make_recycler(struct chain_rig *c)
{
	struct rig_opt opt = {.managed = !c->img->payload.max};
	struct chain_env *env = &c->env;

	if (c->shared && c->shared->image)
		c->recycling = c->shared->size;
	else
		assert_int_equal(chain_recycle_size(c->img, env, &c->recycling), 0);
	opt.wqebbs = env->recycler.ring_wqebbs = c->recycling.ring_wqebbs;
	rig_cq_new_attr(&c->rig, &c->recycler_cq, (struct hw_cq_attr){.log_size = CQ_LOG, .oi = true});
	rig_qp_new_with(&c->rig, &c->recycler, &c->recycler_cq, &c->recycler_cq, opt);
	rig_connect(&c->recycler, &c->recycler);
	env->recycler.qpn = hw_qpn(c->recycler.qp);
	env->recycler.cqn = hw_cqn(c->recycler_cq.cq);
	c->recycler_cq.cq->producer = env->first;
	env->recycler.ring = c->recycler.sq;
	env->recycler.iova = 0x5000000000;
	env->recycler.lkey = chain_rig_key(c, c->recycler.sq, (uint64_t)opt.wqebbs * CHAIN_WQEBB,
		env->recycler.iova, CHAIN_RIG_ALL_RIGHTS);
	env->lanes.size = c->recycling.lanes;
	env->lanes.mem = rig_alloc(&c->rig, env->lanes.size);
	env->lanes.iova = 0x6000000000;
	env->lanes.lkey = env->lanes.rkey =
		chain_rig_key(c, env->lanes.mem, env->lanes.size, env->lanes.iova, CHAIN_RIG_ALL_RIGHTS);
}

static void make_queues(struct chain_rig *c)
{
	unsigned slots = c->env.slots, kept = c->img->payload.max ? slots : 1;

	rig_cq_new_attr(&c->rig, &c->request_cq,
		(struct hw_cq_attr){.log_size = (uint8_t)__builtin_ctz(kept), .oi = true});
	c->env.recv_cqn = hw_cqn(c->request_cq.cq);
	c->env.recv_cq.iova = 0xb000000000;
	if (c->img->payload.max)
		c->env.recv_cq.rkey = chain_rig_key(c, c->request_cq.ring, (uint64_t)kept * CQE_BYTES,
			c->env.recv_cq.iova, HW_REMOTE_READ);
	for (unsigned q = 0; q < c->img->nqueues; q++) {
		struct rig_opt opt = {.managed = true,
			.wqebbs = ring_of(c, q),
			.rq_wqes = slots,
			.rq_stride = chain_rq_stride(c->img),
			.managed_recv = c->recycled && q == 0};
		uint64_t bytes = (uint64_t)opt.wqebbs * CHAIN_WQEBB;

		assert_true(opt.wqebbs > 0);
		rig_cq_new_attr(&c->rig, &c->cq[q],
			(struct hw_cq_attr){.log_size = CQ_LOG, .oi = q > 0 || c->recycled});
		rig_qp_new_with(&c->rig, &c->queue[q], &c->cq[q], q ? &c->cq[q] : &c->request_cq, opt);
		c->env.queue[q].qpn = hw_qpn(c->queue[q].qp);
		c->env.queue[q].cqn = hw_cqn(c->cq[q].cq);
		c->env.queue[q].ring = c->queue[q].sq;
		c->env.queue[q].ring_wqebbs = opt.wqebbs;
		c->env.queue[q].iova = (uint64_t)(16 + q) << 32;
		c->env.queue[q].lkey = c->env.queue[q].rkey =
			chain_rig_key(c, c->queue[q].sq, bytes, c->env.queue[q].iova, CHAIN_RIG_ALL_RIGHTS);
		if (q)
			rig_connect(&c->queue[q], &c->queue[q]);
	}
	c->env.rq = c->queue[0].rq;
	c->env.rq_stride = chain_rq_stride(c->img);
	if (!c->img->scratch_size)
		return;
	c->env.scratch.mem = rig_alloc(&c->rig, (size_t)slots * c->img->scratch_size);
	c->env.scratch.iova = 0x4000000000;
	c->env.scratch.lkey = c->env.scratch.rkey = chain_rig_key(c, c->env.scratch.mem,
		(uint64_t)slots * c->img->scratch_size, c->env.scratch.iova, CHAIN_RIG_ALL_RIGHTS);
}

static void make_client(struct chain_rig *c)
{
	rig_cq_new(&c->rig, &c->client_scq, 6);
	rig_cq_new(&c->rig, &c->client_rcq, 6);
	rig_qp_new_with(&c->rig, &c->client, &c->client_scq, &c->client_rcq, (struct rig_opt){.rq_wqes = 32});
	rig_connect(&c->client, &c->queue[0]);
	c->args = rig_alloc(&c->rig, (size_t)CHAIN_RIG_DEPTH * (CHAIN_MAX_ARG + c->img->payload.max));
}

static void post_receives(struct chain_rig *c)
{
	c->posted = c->armed - 1;
	c->queue[0].db[0] = htobe32((uint32_t)c->posted & 0xffff);
}

/* As if so many requests had been answered: all numbers of the silicon are what they would be then */
static void begin_at_first(struct chain_rig *c)
{
	struct hw_qp *client_side = c->queue[0].qp;

	c->armed = c->env.first;
	c->request_cq.cq->producer = c->env.first;
	for (unsigned q = 0; q < c->img->nqueues; q++) {
		const struct chain_queue *queue = &c->img->queue[q];
		struct hw_qp *qp = c->queue[q].qp;

		qp->sq_ci = (uint16_t)(c->env.first / c->env.slots * c->env.queue[q].ring_wqebbs);
		qp->sq_pi = qp->sq_fetched = qp->sq_ci;
		c->cq[q].cq->producer = c->env.first * queue->cqes;
		c->cq[q].ci = (uint32_t)c->cq[q].cq->producer;
		c->cq[q].db[0] = htobe32(c->cq[q].ci & 0xffffff);
	}
	client_side->rq_ci = client_side->rq_fetched = client_side->rq_enabled = (uint16_t)c->env.first;
}

static void write_recycler(struct chain_rig *c)
{
	struct ring_image *recycler = c->shared ? c->shared->image : NULL;

	if (!recycler)
		assert_int_equal(chain_recycle_new(&recycler, c->img, &c->env, &c->recycling), 0);
	chain_recycle_write(recycler, c->img, c->writer, &c->env);
	if (c->shared)
		*c->shared = (struct chain_rig_recycler){c->recycling, recycler};
	else
		ring_free(recycler);
}

void chain_rig_start(struct chain_rig *c, uint8_t *slots, uint32_t size, uint32_t count)
{
	const unsigned start = chain_start_queue(c->img);

	make_queues(c);
	make_client(c);
	c->env.slot_addr = 0x7f0012340000;
	c->env.slot_size = size;
	c->env.slot_count = count;
	c->env.slot_rkey = chain_rig_key(
		c, slots, (uint64_t)size * count, c->env.slot_addr, HW_LOCAL_WRITE | HW_REMOTE_WRITE);

	begin_at_first(c);
	if (c->recycled) {
		make_recycler(c);
		write_recycler(c);
	} else {
		chain_arm(c->writer, &c->env, c->armed, c->armed + c->env.slots);
		c->armed += c->env.slots;
		for (unsigned s = 0; s < c->env.slots; s++)
			chain_format_recv(c->img, &c->env, s);
		post_receives(c);
	}
	if (c->loop)
		make_loop(c);
	rig_cq_new(&c->rig, &c->boot_cq, 4);
	rig_qp_new(&c->rig, &c->boot, &c->boot_cq, &c->boot_cq);
	rig_connect(&c->boot, &c->boot);
	if (c->recycled) {
		wqe_enable(&c->boot, WQE_OP_RECV_EN, c->env.queue[0].qpn, c->recycling.recvs, 0);
		if (!c->img->payload.max)
			wqe_enable(&c->boot, WQE_OP_SEND_EN, c->env.recycler.qpn, c->recycling.end[0], 0);
	}
	if (c->loop)
		wqe_enable(
			&c->boot, WQE_OP_SEND_EN, c->loop_values.of[RING_SELF].qpn, c->loop_info->start, 0);
	wqe_enable(&c->boot, WQE_OP_SEND_EN, c->env.queue[start].qpn,
		(uint16_t)(c->queue[start].qp->sq_pi + chain_start_index(c->img)), 0);
	rig_ring(&c->boot);
	rig_run(&c->rig);
}

void chain_rig_send(struct chain_rig *c, const void *arg, uint32_t len, void *reply, uint32_t reply_len)
{
	uint8_t *buf = c->args + c->sent % CHAIN_RIG_DEPTH * (CHAIN_MAX_ARG + c->img->payload.max);

	memcpy(buf, arg, len);
	rig_recv(&c->client, reply ? 1 : 0, reply, reply_len);
	wqe_send(&c->client, WQE_OP_SEND, buf, len, SIG, 0);
	rig_ring(&c->client);
	c->sent++;
}

static bool error_of(struct chain_rig *c, unsigned q, const uint8_t *cqe, char *why, size_t size)
{
	uint16_t index = rig_cqe_idx(cqe);
	uint32_t at = index & (c->env.queue[q].ring_wqebbs - 1);
	char line[250];

	chain_decode(c->env.queue[q].ring + (size_t)at * CHAIN_WQEBB, CHAIN_WQEBB, line, sizeof(line));
	snprintf(why, size, "syndrome %#x of step %s: %s", rig_cqe_synd(cqe),
		chain_step_at(c->img, c->env.slots, q, index, NULL), line);
	return false;
}

/* Nobody polls these. The error is the one CQE that is neither good nor of a flushed WQE. Those of a ring
 * that is flushed as a whole may have overwritten it */
static const uint8_t *find_error(struct rig_cq *cq)
{
	const uint32_t end = (uint32_t)cq->cq->producer;
	const uint8_t *flushed = NULL;

	for (uint32_t i = end - cq->ci > cq->size ? end - cq->size : cq->ci; i != end; i++) {
		const uint8_t *cqe = cq->ring + (size_t)(i & (cq->size - 1)) * 64;

		if (rig_cqe_op(cqe) != CQE_OP_REQ_ERR)
			continue;
		if (rig_cqe_synd(cqe) != CQE_SYND_FLUSH)
			return cqe;
		flushed = cqe;
	}
	if (!flushed)
		cq->ci = end;
	return flushed;
}

static bool ring_error(const char *what, const struct rig_qp *qp, const uint8_t *cqe, char *why, size_t size)
{
	uint32_t at = rig_cqe_idx(cqe) & (qp->wqebbs - 1);
	char line[250];

	chain_decode(qp->sq + (size_t)at * CHAIN_WQEBB, 8 * CHAIN_WQEBB, line, sizeof(line));
	snprintf(why, size, "syndrome %#x of the %s at %u: %s", rig_cqe_synd(cqe), what, rig_cqe_idx(cqe),
		line);
	return false;
}

/* What became of extents, and the next ones, a section's slots at a time */
static void look(struct chain_rig *c)
{
	const unsigned slots = c->env.slots, together = chain_recycle_together(slots);
	uint64_t recycled;

	memcpy(&recycled, c->env.lanes.mem + c->recycling.progress, sizeof(recycled));
	for (; c->looked < c->completed; c->looked++)
		if (c->over)
			c->over(c->over_arg, c->env.first + c->looked);
	for (; c->given < c->looked / together && c->given < chain_recycle_may_give(slots, le64toh(recycled));
		c->given++)
		for (uint64_t n = c->given * together; n < (c->given + 1) * together; n++)
			chain_arm_extent(c->img, &c->env, (unsigned)n & (slots - 1));
	c->recycler.pi = chain_recycle_index(&c->recycling, slots, c->given);
	rig_ring(&c->recycler);
}

bool chain_rig_serve(struct chain_rig *c, char *why, size_t size)
{
	const uint8_t *cqe;

	if (c->recycled)
		c->completed = c->cq[0].cq->producer / c->img->queue[0].cqes - c->env.first;
	if (c->recycled && c->img->payload.max && !c->no_sections && c->queue[0].qp->state != HW_ERR)
		look(c);
	while (!c->recycled && (cqe = rig_cq_next(&c->cq[0]))) {
		if (rig_cqe_op(cqe) != CQE_OP_REQ)
			return error_of(c, 0, cqe, why, size);
		if (++c->cqes % c->img->queue[0].cqes)
			continue;
		c->completed++;
		if (c->over)
			c->over(c->over_arg, c->armed - c->env.slots);
		chain_arm_again(c->writer, &c->env, c->armed, c->armed + 1);
		if (c->img->payload.max)
			chain_format_recv(c->img, &c->env, (unsigned)c->armed & (c->env.slots - 1));
		c->armed++;
		post_receives(c);
	}
	for (unsigned q = c->recycled ? 0 : 1; q < c->img->nqueues; q++)
		if ((cqe = find_error(&c->cq[q])))
			return error_of(c, q, cqe, why, size);
	if (c->recycled && (cqe = find_error(&c->recycler_cq)))
		return ring_error("recycler", &c->recycler, cqe, why, size);
	if (c->loop && (cqe = find_error(&c->loop_cq)))
		return ring_error("loop", &c->loop_qp, cqe, why, size);
	return true;
}

void chain_rig_close(struct chain_rig *c)
{
	struct rig_cq *cqs[] = {&c->request_cq, &c->client_scq, &c->client_rcq, &c->boot_cq};

	rig_destroy(&c->client);
	rig_destroy(&c->boot);
	if (c->recycled) {
		rig_destroy(&c->recycler);
		assert_int_equal(hw_cq_destroy(c->rig.dev, c->recycler_cq.cq), 0);
	}
	if (c->loop) {
		rig_destroy(&c->loop_qp);
		assert_int_equal(hw_cq_destroy(c->rig.dev, c->loop_cq.cq), 0);
		assert_int_equal(hw_cq_destroy(c->rig.dev, c->credit_cq.cq), 0);
	}
	for (unsigned q = 0; q < c->img->nqueues; q++)
		rig_destroy(&c->queue[q]);
	for (unsigned q = 0; q < c->img->nqueues; q++)
		assert_int_equal(hw_cq_destroy(c->rig.dev, c->cq[q].cq), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(hw_cq_destroy(c->rig.dev, cqs[i]->cq), 0);
	for (unsigned k = 0; k < c->nkeys; k++)
		assert_int_equal(hw_mkey_destroy(c->rig.dev, c->key[k]), 0);
	rig_close(&c->rig);
	chain_writer_free(c->writer);
	chain_free(c->img);
}
