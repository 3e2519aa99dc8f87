/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/session.h"

#include "mlx5/wqe.h"
#include "reddnd/generation/generation.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* A client that marks its SENDs as solicited wakes the daemon with each; that is no error, but not for free
 */
enum { FALSE_ALARMS_MAX = 1000, RECYCLER_READS = 16 /* under way at a time */ };

/* ---- making ----------------------------------------------------------------------------------------------
 */

static const struct rnic_cq *reply_cq(const struct session *s)
{
	return s->layout.recycled ? &s->reply_cq : &s->pool_cq->cq;
}

static int make_cq(struct session *s, unsigned part, const struct queue_layout_qp *l, struct rnic_cq *cq)
{
	const struct rnic_cq_attr attr = {
		.cqes_off = l->cqes_off,
		.db_off = l->cq_db_off,
		.log_size = l->cq_log_size,
		.overrun_ignore = true,
		.cookie = s->id << SESSION_COOKIE_BITS | part,
	};

	return rnic_cq_init(cq, &s->block, &attr);
}

static int make_recycler(struct session *s)
{
	const struct queue_layout_qp *l = &s->layout.recycler;
	const struct rnic_qp_attr qp = {
		.wq_off = l->wq_off,
		.sq_wqebbs = l->ring_wqebbs,
		.db_off = l->qp_db_off,
		.send_cq = &s->recycler_cq,
		.managed = true,
		.cookie = s->id << SESSION_COOKIE_BITS | SESSION_COOKIE_QP | SESSION_RECYCLER,
	};
	int r = make_cq(s, SESSION_RECYCLER, l, &s->recycler_cq);

	if (r == 0)
		r = make_cq(s, SESSION_REPLIES, &s->layout.replies, &s->reply_cq);
	return r == 0 ? rnic_qp_init(&s->recycler, &s->block, &qp) : r;
}

static int make_queues(struct session *s, const struct session_parts *parts)
{
	const struct queue_layout *l = &s->layout;
	const struct chain_image *img = s->offload->img;
	int r;

	r = rnic_block_init(&s->block, s->tenant->pd, parts->arena, l->size, l->code_off, l->code_size);
	for (unsigned q = 0; q < img->nqueues && r == 0; q++)
		r = make_cq(s, q, &l->queue[q], &s->cq[q]);
	if (r == 0 && l->recycled)
		r = make_recycler(s);
	if (r == 0 && s->offload->program->loop)
		r = session_loop_new(&s->loop, s->offload->program, &s->block, &l->loop,
			s->id << SESSION_COOKIE_BITS | SESSION_LOOP,
			s->id << SESSION_COOKIE_BITS | SESSION_COOKIE_QP | SESSION_LOOP);
	for (unsigned q = 0; q < img->nqueues && r == 0; q++) {
		const struct rnic_qp_attr qp = {
			.wq_off = l->queue[q].wq_off,
			.rq_entries = q == 0 ? l->slots : 0,
			.rq_stride = l->rq_stride,
			.sq_wqebbs = l->queue[q].ring_wqebbs,
			.db_off = l->queue[q].qp_db_off,
			.send_cq = q == 0 ? reply_cq(s) : &s->cq[q],
			.recv_cq = &s->cq[q],
			.managed = true,
			.managed_rq = q == 0 && l->recycled,
			.cookie = s->id << SESSION_COOKIE_BITS | SESSION_COOKIE_QP | q,
		};

		r = rnic_qp_init(&s->qp[q], &s->block, &qp);
	}
	return r;
}

static int fill_env(struct session *s, const struct request *request)
{
	const struct queue_layout *l = &s->layout;
	const struct chain_image *img = s->offload->img;
	const struct rnic_block *b = &s->block;
	struct chain_env *env = &s->env;
	int r;

	env->slots = l->slots;
	env->recv_cqn = s->cq[0].cqn;
	for (unsigned q = 0; q < img->nqueues; q++) {
		env->queue[q].qpn = s->qp[q].qpn;
		env->queue[q].cqn = q == 0 ? reply_cq(s)->cqn : s->cq[q].cqn;
		env->queue[q].iova = b->iova + l->queue[q].ring_off - b->code_off;
		env->queue[q].lkey = b->lkey;
		env->queue[q].rkey = b->rkey;
		env->queue[q].ring = s->qp[q].sq;
		env->queue[q].ring_wqebbs = l->queue[q].ring_wqebbs;
	}
	env->scratch.iova = b->iova + l->scratch_off - b->code_off;
	env->scratch.lkey = b->lkey;
	env->scratch.rkey = b->rkey;
	env->scratch.mem = b->mem + l->scratch_off;
	if (l->recycled) {
		env->recycler.qpn = s->recycler.qpn;
		env->recycler.cqn = s->recycler_cq.cqn;
		env->recycler.lkey = b->lkey;
		env->recycler.iova = b->iova + l->recycler.ring_off - b->code_off;
		env->recycler.ring = s->recycler.sq;
		env->recycler.ring_wqebbs = l->recycler.ring_wqebbs;
		env->lanes.iova = b->iova + l->lanes_off - b->code_off;
		env->lanes.lkey = b->lkey;
		env->lanes.rkey = b->rkey;
		env->lanes.mem = b->mem + l->lanes_off;
		env->lanes.size = l->recycling.lanes;
	}
	env->slot_addr = request->slot_addr;
	env->slot_rkey = request->slot_rkey;
	env->slot_size = request->slot_size;
	env->slot_count = request->depth;
	env->rq = s->qp[0].rq;
	env->rq_stride = l->rq_stride;
	r = offload_bind(s->offload, s->tenant->pd, env);
	return r == 0 && s->loop ? session_loop_write(s->loop, env) : r;
}

static int arm_all(struct session *s)
{
	const struct chain_image *img = s->offload->img;

	if (s->layout.recycled)
		return chain_recycle(img, &s->env, &s->layout.recycling);
	for (unsigned slot = 0; slot < s->layout.slots; slot++)
		chain_format_recv(img, &s->env, slot);
	while (s->armed < s->layout.slots)
		chain_arm(img, &s->env, s->armed++);
	return 0;
}

static int start_recycler(struct session *s)
{
	if (!s->layout.recycled)
		return 0;
	rnic_cq_arm(&s->recycler_cq, true);
	rnic_cq_arm(&s->reply_cq, true);
	return master_qp_enable(&s->tenant->master, s->recycler.qpn, s->layout.recycling.start);
}

static bool has_budgets(const struct session *s)
{
	return s->offload->conf->time_budget || s->offload->conf->loop_budget;
}

static int start(struct session *s)
{
	const struct chain_image *img = s->offload->img;
	int r = 0;

	for (unsigned q = 1; q < img->nqueues && r == 0; q++)
		r = rnic_qp_connect_self(&s->qp[q], img->max_rd_atomic);
	if (r == 0 && s->layout.recycled)
		r = rnic_qp_connect_self(&s->recycler, RECYCLER_READS);
	if (r == 0 && s->loop)
		r = session_loop_start(s->loop, &s->tenant->master);
	if (r == 0)
		r = rnic_conn_connect(s->conn, &s->qp[0], s->paced);
	s->resting = has_budgets(s);
	for (unsigned q = 0; q < img->nqueues && r == 0; q++)
		rnic_cq_arm(&s->cq[q], !(q == 0 && s->resting));
	for (unsigned q = 1; q < img->nqueues && r == 0; q++)
		if (chain_start_index(img, q))
			r = master_qp_enable(&s->tenant->master, s->qp[q].qpn, chain_start_index(img, q));
	return r == 0 ? start_recycler(s) : r;
}

static uint32_t tail_of(const struct chain_queue *q)
{
	uint32_t w = q->wqebbs - 1;

	while (!q->starts[w])
		w--;
	return q->wqebbs - w;
}

/*
 * The queue of the client's requests comes last: when it is stopped, its RECVs are flushed, and to whoever
 * waits for a request the CQE of a flushed RECV is one.
 */
static void stop_queues(struct session *s)
{
	session_loop_stop(s->loop);
	rnic_qp_stop(&s->recycler);
	for (unsigned q = CHAIN_MAX_QUEUES; q-- > 0;)
		rnic_qp_stop(&s->qp[q]);
}

static void destroy_queues(struct session *s)
{
	/* All are stopped before one goes, so that none works on a queue that is gone; and all are gone
	 * before the memory they work on */
	stop_queues(s);
	session_stop_queues(s);
	session_loop_free(s->loop);
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		rnic_cq_deinit(&s->cq[q]);
	rnic_cq_deinit(&s->recycler_cq);
	rnic_cq_deinit(&s->reply_cq);
	rnic_block_deinit(&s->block);
}

int session_new(struct session **out, uint64_t id, const struct session_parts *parts,
	const struct admit_result *a, struct rnic_conn *conn, uint64_t now)
{
	const struct chain_image *img = a->offload->img;
	CLEANUP(cleanup_free) struct session *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return -ENOMEM;
	assert(img->queue[0].cqes == 1);
	s->id = id;
	s->offload = a->offload;
	s->tenant = a->tenant;
	s->paid = a->charge;
	s->limit.rate = a->tenant->limits.session_rate;
	s->limit.burst = a->tenant->limits.session_burst;
	rate_init(&s->rate, s->limit.rate, s->limit.burst, now);
	rate_init(&s->bytes, a->tenant->limits.session_bytes_rate,
		rate_burst(a->tenant->limits.session_bytes_rate, session_price(s)), now);
	tenant_expect_replies(s->tenant, session_price(s), now);
	s->conn = conn;
	rnic_conn_address(conn, s->address);
	s->cq_pool = parts->cq_pool;
	s->tail = tail_of(&img->queue[0]);
	s->layout = *offload_layout(a->offload, a->request.depth);
	if (!s->layout.recycled) {
		s->charge = chain_ring_wqes(&img->queue[0], s->layout.slots);
		r = cq_pool_charge(s->cq_pool, s->charge, &s->pool_cq);
	}
	if (r < 0)
		return r;
	r = make_queues(s, parts);
	if (r == 0) {
		r = fill_env(s, &a->request);
		if (r == 0)
			r = arm_all(s);
		session_set_paced(s, session_is_limited(s));
		if (r == 0)
			r = start(s);
	}
	if (r < 0) {
		destroy_queues(s);
		cq_pool_refund(s->cq_pool, s->pool_cq, s->charge);
		return r;
	}
	s->qpn = s->qp[0].qpn;
	generation_ref(s->offload->generation);
	rnic_conn_set_user(conn, s);
	*out = steal_ptr(&s);
	return 0;
}

void session_describe(const struct session *s, struct reddn_wire_rep *rep)
{
	offload_describe(s->offload, rep);
	rep->depth = htobe16((uint16_t)s->env.slot_count);
	rep->session = htobe64(s->id);
}

/* ---- ending ----------------------------------------------------------------------------------------------
 */

void session_end(struct session *s)
{
	s->ended = true;
	stop_queues(s);
	rnic_conn_disconnect(s->conn);
}

void session_stop_queues(struct session *s)
{
	session_loop_stop_queue(s->loop);
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		rnic_qp_deinit(&s->qp[q]);
	rnic_qp_deinit(&s->recycler);
}

void session_free(struct session *s)
{
	destroy_queues(s);
	cq_pool_refund(s->cq_pool, s->pool_cq, s->charge);
	rnic_conn_free(s->conn);
	tenant_refund(s->tenant, &s->paid);
	generation_unref(s->offload->generation);
	free(s);
}

/* ---- running ---------------------------------------------------------------------------------------------
 */

/* The CQ of a part, or NULL */
static struct rnic_cq *cq_of(struct session *s, unsigned part)
{
	if (part < s->offload->img->nqueues)
		return &s->cq[part];
	if (part == SESSION_LOOP)
		return session_loop_cq(s->loop);
	if (s->layout.recycled && part == SESSION_RECYCLER)
		return &s->recycler_cq;
	return s->layout.recycled && part == SESSION_REPLIES ? &s->reply_cq : NULL;
}

/* The position of a WQE in the image of its queue; false in the pad */
static bool in_image(const struct session *s, unsigned q, uint16_t index, uint32_t *wqebb)
{
	uint32_t own = s->offload->img->queue[q].wqebbs;
	uint32_t at = index & (s->layout.queue[q].ring_wqebbs - 1);

	*wqebb = at % own;
	return at < own * s->layout.slots;
}

static int judge_error(const struct session *s, unsigned q, const struct rnic_cqe *cqe, struct verdict *v)
{
	const struct offload *o = s->offload;
	struct rnic_cqe cause;
	uint32_t wqebb;

	/* What is flushed tells of trouble elsewhere */
	for (unsigned i = 0; i <= SESSION_LOOP && cqe->syndrome == CQE_SYND_FLUSH; i++) {
		const struct rnic_cq *cq = cq_of((struct session *)s, i);

		if (cq && rnic_cq_find_error(cq, &cause) && cause.syndrome != CQE_SYND_FLUSH) {
			cqe = &cause;
			q = i;
		}
	}
	if (q == SESSION_REPLIES)
		q = 0;
	if (cqe->syndrome == CQE_SYND_FLUSH)
		verdict_set(v, VERDICT_QUEUE, true,
			"a queue failed, though no step of it did: the NIC ended it, or the client broke a "
			"rule (%s, %#x)",
			rnic_syndrome_text(cqe->syndrome), cqe->vendor);
	else if (cqe->receive && cqe->syndrome == CQE_SYND_LOCAL_LENGTH)
		verdict_set(v, VERDICT_REQUEST, true, "a request was longer than %u bytes (%s, %#x)",
			o->img->arg_len, rnic_syndrome_text(cqe->syndrome), cqe->vendor);
	else if (cqe->receive)
		verdict_set(v, VERDICT_REQUEST, true, "receiving a request failed: %s (%#x)",
			rnic_syndrome_text(cqe->syndrome), cqe->vendor);
	else if (q == SESSION_RECYCLER)
		verdict_set(v, VERDICT_QUEUE, true,
			"WQE %u of the recycler, the queue that arms the chain anew, failed: %s (%#x)",
			cqe->index, rnic_syndrome_text(cqe->syndrome), cqe->vendor);
	else if (q == SESSION_LOOP)
		verdict_of_loop(v, o->program, o->conf->path, cqe);
	else if (!in_image(s, q, cqe->index, &wqebb))
		verdict_set(v, VERDICT_QUEUE, true, "a NOP that pads a queue failed: %s (%#x)",
			rnic_syndrome_text(cqe->syndrome), cqe->vendor);
	else
		verdict_of_step(v, o->program, o->conf->path, q, wqebb, cqe);
	v->syndrome = cqe->syndrome;
	v->vendor = cqe->vendor;
	return 1;
}

int session_completed(struct session *s, const struct rnic_cqe *cqe, struct verdict *v)
{
	uint16_t last;

	if (cqe->error)
		return judge_error(s, 0, cqe, v);
	last = (uint16_t)(chain_enable_index(
				  s->offload->img, &s->env, 0, s->done, s->offload->img->queue[0].wqebbs) -
			  s->tail);
	if (cqe->index != last) {
		verdict_set(
			v, VERDICT_QUEUE, true, "completion of WQE %u where %u was next", cqe->index, last);
		return 1;
	}
	s->done++;
	return 0;
}

static uint64_t landed(const struct session *s)
{
	if (!s->layout.recycled)
		return 0;
	return le64toh(__atomic_load_n(
		(uint64_t *)(s->env.lanes.mem + s->layout.recycling.progress), __ATOMIC_ACQUIRE));
}

/*
 * The recycler counts quarters of the slots; from there on the CQEs of replies tell. Their ring holds twice
 * as many as there are slots, so none is mistaken for one a round older.
 */
uint64_t session_count(struct session *s)
{
	uint64_t before = s->done, kept = landed(s);
	struct rnic_cqe cqe;

	if (!s->layout.recycled)
		return 0;
	if (kept > s->done)
		s->done = kept;
	while (rnic_cq_peek(&s->reply_cq, (uint32_t)s->done, &cqe) && !cqe.error)
		s->done++;
	return s->done - before;
}

uint64_t session_count_loop(struct session *s)
{
	uint64_t before = s->iterations;

	s->iterations = session_loop_iterations(s->loop);
	return s->iterations - before;
}

unsigned session_used(const struct session *s)
{
	return (unsigned)((s->done + s->layout.slots - s->armed) * 8 / s->layout.slots);
}

/* It paid for the longest reply. A client of its own making can have more of a table than that
 * (reddnd-security(7)). */
static void settle(struct rate *r, uint64_t paid, uint64_t bytes)
{
	if (!r->per_second)
		return;
	if (bytes <= paid)
		rate_give(r, paid - bytes);
	else
		rate_take(r, bytes - paid < r->tokens ? bytes - paid : r->tokens);
}

void session_look(struct session *s)
{
	const struct offload *o = s->offload;

	for (; !s->layout.recycled && s->looked < s->done; s->looked++) {
		struct outcome out = outcome_read(&o->outcome, o->img, &s->env, s->looked);
		bool miss = o->outcome.conditional && !out.hit;

		s->hits += out.hit;
		s->misses += miss;
		s->bytes_out += out.bytes;
		o->stats->hits += out.hit;
		o->stats->misses += miss;
		o->stats->bytes_out += out.bytes;
		settle(&s->bytes, session_price(s), out.bytes);
		settle(&s->tenant->bytes, session_price(s), out.bytes);
	}
}

int session_rearm(struct session *s, struct verdict *v)
{
	const struct chain_image *img = s->offload->img;
	struct rnic_cqe cqe;

	session_look(s);
	while (s->armed < s->done + s->layout.slots) {
		uint64_t finished = s->armed - s->layout.slots;

		if (rnic_cq_peek(&s->cq[0], (uint32_t)finished, &cqe) && !cqe.error &&
			cqe.length != img->arg_len) {
			verdict_set(v, VERDICT_REQUEST, true, "request %" PRIu64 " had %u bytes, not %u",
				finished, cqe.length, img->arg_len);
			return 1;
		}
		chain_arm(img, &s->env, s->armed++);
	}
	return 0;
}

bool session_is_limited(const struct session *s)
{
	return s->rate.per_second || s->tenant->rate.per_second || s->bytes.per_second ||
	       s->tenant->bytes.per_second;
}

uint64_t session_price(const struct session *s)
{
	return s->offload->slot_need;
}

uint64_t session_postable(const struct session *s)
{
	return (s->layout.recycled ? landed(s) + s->layout.slots : s->armed) - 1;
}

int session_post(struct session *s, uint64_t to)
{
	int r = 0;

	if (s->unsettled && session_postable(s) >= s->posted) {
		s->unsettled = false;
		r = master_qp_enable_recvs(&s->tenant->master, s->qp[0].qpn, (uint16_t)s->posted);
	}
	if (r < 0 || s->unsettled || to <= s->posted)
		return r;
	if (s->layout.recycled)
		r = master_qp_enable_recvs(&s->tenant->master, s->qp[0].qpn, (uint16_t)to);
	else
		rnic_qp_post_recvs(&s->qp[0], (uint32_t)to);
	if (r == 0)
		s->posted = to;
	return r;
}

/*
 * A RECV_EN of the recycler is turned into a NOP and back: one byte, which the NIC reads before or after. It
 * may have read the old one for the section that it is in. So when pacing begins that section counts as
 * posted, and is posted once it can be, which makes it true (session_post()). When pacing ends, one RECV_EN
 * may be lacking; that of the next section makes up for it, and there are slots enough until then.
 */
void session_set_paced(struct session *s, bool paced)
{
	const struct queue_layout *l = &s->layout;
	uint8_t opcode = paced ? WQE_OP_NOP : WQE_OP_RECV_EN;
	bool begins = paced && !s->paced;

	if (l->recycled && paced != s->paced)
		for (unsigned g = 0; g < 4; g++)
			__atomic_store_n(s->env.recycler.ring + l->recycling.recv_en[g] * RNIC_WQEBB_BYTES +
						 WQE_OPCODE,
				opcode, __ATOMIC_RELEASE);
	s->paced = paced;
	s->unsettled = l->recycled && begins && s->posted;
	if (s->unsettled)
		s->posted = session_postable(s) + l->slots / 4;
}

void session_arm_replies(struct session *s)
{
	s->reply_cq.consumer = (uint32_t)s->done;
	rnic_cq_arm(&s->reply_cq, false);
}

int session_alarm(struct session *s, unsigned part, struct verdict *v)
{
	unsigned q = part & ~(unsigned)SESSION_COOKIE_QP;
	struct rnic_cq *cq = cq_of(s, q);
	struct rnic_cqe cqe;
	bool asked;

	if (!cq)
		return 0;
	if (rnic_cq_find_error(cq, &cqe))
		return judge_error(s, q, &cqe, v);
	if (part & SESSION_COOKIE_QP) {
		verdict_set(v, VERDICT_QUEUE, true, "the device reports that queue pair %#x is broken",
			q == SESSION_RECYCLER ? s->recycler.qpn
			: q == SESSION_LOOP   ? session_loop_qpn(s->loop)
					      : s->qp[q].qpn);
		return 1;
	}
	asked = (s->paced && part == SESSION_REPLIES) || (part == 0 && s->resting);
	s->resting &= part != 0;
	if (!asked && ++s->false_alarms > FALSE_ALARMS_MAX) {
		verdict_set(v, VERDICT_REQUEST, true, "more than %d SENDs of the client were solicited",
			FALSE_ALARMS_MAX);
		return 1;
	}
	if (q < s->offload->img->nqueues)
		cq->consumer = (uint32_t)(q == 0 ? s->done : s->done * s->offload->img->queue[q].cqes);
	rnic_cq_arm(cq, true);
	return rnic_cq_find_error(cq, &cqe) ? judge_error(s, q, &cqe, v) : 0;
}

bool session_busy(const struct session *s)
{
	struct rnic_cqe cqe;

	return rnic_cq_peek(&s->cq[0], (uint32_t)s->done, &cqe) && !cqe.error;
}

bool session_rest(struct session *s)
{
	if (session_busy(s))
		return false;
	s->resting = true;
	s->cq[0].consumer = (uint32_t)s->done;
	rnic_cq_arm(&s->cq[0], false);
	return !session_busy(s);
}

bool session_is_idle(struct session *s, uint64_t now_us, uint64_t limit_us)
{
	return verdict_is_idle(&s->idle, s->done, session_busy(s), now_us, limit_us);
}

int session_watch(struct session *s, uint64_t now_us, struct verdict *v)
{
	const struct catalog_offload *conf = s->offload->conf;
	uint64_t silent = 0, rounds = 0;
	bool busy = session_busy(s);

	if (conf->loop_budget)
		rounds = verdict_silent(
			&s->rounds, s->done, busy, session_loop_iterations(s->loop), conf->loop_budget);
	if (conf->time_budget)
		silent = verdict_silent(&s->silence, s->done, busy, now_us, conf->time_budget);
	if (rounds)
		verdict_set(v, VERDICT_LOOP, false,
			"request %" PRIu64 " was %" PRIu64
			" times in the loop and is not answered; the loop budget is "
			"%" PRIu64 " iterations",
			s->done, rounds, conf->loop_budget);
	else if (silent)
		verdict_set(v, VERDICT_TIME, false,
			"request %" PRIu64 " was taken more than %" PRIu64
			" ms ago and is not answered; the time budget is "
			"%" PRIu64 " ms",
			s->done, silent / 1000, conf->time_budget / 1000);
	return rounds || silent;
}

void session_apply_limit(struct session *s, uint64_t now)
{
	bool slowed = s->throttle.until > now && (!s->limit.rate || s->throttle.rate < s->limit.rate);

	if (slowed)
		rate_set(&s->rate, s->throttle.rate, s->throttle.burst, now);
	else
		rate_set(&s->rate, s->limit.rate, s->limit.burst, now);
}
