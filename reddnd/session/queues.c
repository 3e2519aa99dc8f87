/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/queues.h"

#include "mlx5/barrier.h"
#include "reddnd/generation/bindings.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/session/count.h"
#include "reddnd/session/extents.h"
#include "reddnd/session/send-queue.h"
#include "reddnd/session/session.h"

#include <endian.h>
#include <string.h>

/* ---- making ---- */

static const struct rnic_cq *reply_cq(const struct session *s)
{
	return s->queues.layout.recycled ? &s->recycler.reply_cq : &s->queues.pool_cq->cq;
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

	return rnic_cq_init(cq, &s->queues.block, &attr);
}

static int make_recycler(struct session *s)
{
	const uint64_t cq = s->id << SESSION_COOKIE_BITS, qp = cq | SESSION_COOKIE_QP;
	const struct queue_layout *l = &s->queues.layout;
	const struct rnic_block *b = &s->queues.block;
	int r = session_send_queue_make(&s->recycler.cq, &s->recycler.qp, b, &l->recycler,
		!s->offload->img->payload.max, cq | SESSION_RECYCLER, qp | SESSION_RECYCLER);

	return r == 0 ? make_cq(s, SESSION_REPLIES, &l->replies, &s->recycler.reply_cq) : r;
}

static int make_qp(struct session *s, unsigned q)
{
	const struct queue_layout *l = &s->queues.layout;
	const struct rnic_qp_attr qp = {
		.wq_off = l->queue[q].wq_off,
		.rq_entries = q == 0 ? l->slots : 0,
		.rq_stride = l->rq_stride,
		.sq_wqebbs = l->queue[q].ring_wqebbs,
		.db_off = l->queue[q].qp_db_off,
		.send_cq = q == 0 ? reply_cq(s) : &s->queues.cq[q],
		.recv_cq = &s->queues.cq[q],
		.max_message = q == 0 ? s->offload->max_message : 0,
		.managed = true,
		.managed_rq = q == 0 && l->recycled,
		.cookie = s->id << SESSION_COOKIE_BITS | SESSION_COOKIE_QP | q,
	};

	return rnic_qp_init(&s->queues.qp[q], &s->queues.block, &qp);
}

/* Makes them in the block, or finds them if that was adopted */
static int make_queues(struct session *s)
{
	const struct queue_layout *l = &s->queues.layout;
	const struct chain_image *img = s->offload->img;
	struct session_queues *qs = &s->queues;
	int r = 0;

	for (unsigned q = 0; q < img->nqueues && r == 0; q++)
		r = make_cq(s, q, &l->queue[q], &qs->cq[q]);
	if (r == 0 && l->recycled)
		r = make_recycler(s);
	if (r == 0 && s->offload->program->loop)
		r = session_loop_new(&qs->loop, &s->loops, s->offload->program, s->offload->conf->loop_rate,
			&qs->block, &l->loop, s->id << SESSION_COOKIE_BITS | SESSION_LOOP,
			s->id << SESSION_COOKIE_BITS | SESSION_COOKIE_QP | SESSION_LOOP);
	for (unsigned q = 0; q < img->nqueues && r == 0; q++)
		r = make_qp(s, q);
	qs->qpn = qs->qp[0].qpn;
	return r;
}

/* ---- the environment of the chain ---- */

static void fill_queues(struct session *s)
{
	const struct queue_layout *l = &s->queues.layout;
	const struct rnic_block *b = &s->queues.block;
	struct chain_env *env = &s->queues.env;

	env->slots = l->slots;
	env->recv_cqn = s->queues.cq[0].cqn;
	if (s->offload->img->payload.max) {
		env->recv_cq.iova = b->iova + l->queue[0].cqes_off - b->code_off;
		env->recv_cq.rkey = b->rkey;
	}
	for (unsigned q = 0; q < s->offload->img->nqueues; q++) {
		env->queue[q].qpn = s->queues.qp[q].qpn;
		env->queue[q].cqn = q == 0 ? reply_cq(s)->cqn : s->queues.cq[q].cqn;
		env->queue[q].iova = b->iova + l->queue[q].ring_off - b->code_off;
		env->queue[q].lkey = b->lkey;
		env->queue[q].rkey = b->rkey;
		env->queue[q].ring = s->queues.qp[q].sq;
		env->queue[q].ring_wqebbs = l->queue[q].ring_wqebbs;
	}
	env->scratch.iova = b->iova + l->scratch_off - b->code_off;
	env->scratch.lkey = b->lkey;
	env->scratch.rkey = b->rkey;
	env->scratch.mem = b->mem + l->scratch_off;
	env->rq = s->queues.qp[0].rq;
	env->rq_stride = l->rq_stride;
}

static void fill_recycler(struct session *s)
{
	const struct queue_layout *l = &s->queues.layout;
	const struct rnic_block *b = &s->queues.block;
	struct chain_env *env = &s->queues.env;

	env->recycler.qpn = s->recycler.qp.qpn;
	env->recycler.cqn = s->recycler.cq.cqn;
	env->recycler.lkey = b->lkey;
	env->recycler.iova = b->iova + l->recycler.ring_off - b->code_off;
	env->recycler.ring = s->recycler.qp.sq;
	env->recycler.ring_wqebbs = l->recycler.ring_wqebbs;
	env->lanes.iova = b->iova + l->lanes_off - b->code_off;
	env->lanes.lkey = b->lkey;
	env->lanes.rkey = b->rkey;
	env->lanes.mem = b->mem + l->lanes_off;
	env->lanes.size = l->recycling.lanes;
}

/* All but its regions */
static void fill_chain(struct session *s, const struct request *request)
{
	struct chain_env *env = &s->queues.env;

	fill_queues(s);
	if (s->queues.layout.recycled)
		fill_recycler(s);
	env->slot_addr = request->slot_addr;
	env->slot_rkey = request->slot_rkey;
	env->slot_size = request->slot_size;
	env->slot_count = request->depth;
}

static int fill_env(struct session *s, const struct request *request)
{
	struct chain_env *env = &s->queues.env;
	int r;

	fill_chain(s, request);
	r = bindings_register(s->offload, s->domain->pd, env);
	if (r == 0 && s->queues.loop)
		session_loop_write(s->queues.loop, env);
	return r;
}

/* WQEBBs from the start of the last WQE of a reply to the end of it */
static uint32_t tail_of(const struct chain_queue *q)
{
	uint32_t w = q->wqebbs - 1;

	while (!q->starts[w])
		w--;
	return q->wqebbs - w;
}

int session_queues_make(struct session *s, struct rnic_arena *arena, const struct request *request)
{
	const struct queue_layout *l = &s->queues.layout;
	int r = rnic_block_init_in(s->slot, &s->queues.block, s->domain->pd, arena, l->size, l->code_off,
		l->code_size, RNIC_BLOCK_LOOPBACK);

	s->queues.tail = tail_of(&s->offload->img->queue[0]);
	if (r == 0)
		r = make_queues(s);
	return r == 0 ? fill_env(s, request) : r;
}

/* ---- taking over ---- */

int session_queues_adopt(struct session *s, struct rnic_arena *arena, const struct request *request)
{
	const struct queue_layout *l = &s->queues.layout;
	int r = rnic_block_adopt(
		s->slot, &s->queues.block, s->domain->pd, arena, l->size, l->code_off, l->code_size);

	s->queues.tail = tail_of(&s->offload->img->queue[0]);
	if (r == 0)
		r = make_queues(s);
	if (r < 0)
		return r;
	fill_chain(s, request);
	return s->queues.loop ? session_loop_resume(s->queues.loop, &s->queues.env) : 0;
}

/* Success CQEs of the first @n instances on the CQ of code queue @q. */
static uint64_t session_code_cqes(const struct session *s, unsigned q, uint64_t n)
{
	return n * s->offload->img->queue[q].cqes;
}

/* The CQ of queue @part goes on behind the CQEs of the instances that are done. */
static void session_seek(struct session *s, unsigned part)
{
	uint64_t done = s->progress.done;

	rnic_cq_seek(&s->queues.cq[part], part == 0 ? done : session_code_cqes(s, part, done));
}

/* The CQ of a loop is armed when that starts or goes on */
static void arm_cqs(struct session *s)
{
	for (unsigned part = 0; part < SESSION_LOOP; part++)
		if (session_cq(s, part))
			rnic_cq_arm(session_cq(s, part), !(part == 0 && s->budgets.resting));
}

void session_queues_arm_events(struct session *s)
{
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES && session_cq(s, q); q++)
		session_seek(s, q);
	arm_cqs(s);
}

/* ---- beginning ---- */

static int connect_code(struct session *s)
{
	const struct chain_image *img = s->offload->img;
	int r = 0;

	for (unsigned q = 1; q < img->nqueues && r == 0; q++)
		r = rnic_qp_connect_self(&s->queues.qp[q], img->max_rd_atomic);
	return r;
}

/* The NIC begins while the client is answered */
static int enable_first(struct session *s)
{
	const struct chain_image *img = s->offload->img;

	return master_qp_post(
		&s->domain->master, s->queues.qp[chain_start_queue(img)].qpn, chain_start_index(img));
}

bool session_queues_are_starting(const struct session *s)
{
	return master_qp_has_posted(&s->domain->master);
}

int session_queues_started(struct session *s)
{
	return master_qp_wait(&s->domain->master);
}

int session_queues_start(struct session *s)
{
	int r = connect_code(s);

	if (r == 0 && s->queues.loop)
		r = session_loop_start(s->queues.loop, &s->first->loops,
			s->first->connections + !session_is_first(s), &s->domain->master);
	if (r == 0)
		r = rnic_conn_connect(s->client.conn, &s->queues.qp[0], session_is_paced(s));
	s->budgets.resting = session_has_budgets(s);
	if (r < 0)
		return r;
	arm_cqs(s);
	return enable_first(s);
}

int session_queues_serve(struct session *s)
{
	(void)s;
	return 0;
}

/* ---- requests ---- */

uint64_t session_queues_received(const struct session *s, uint64_t to)
{
	uint64_t n = s->progress.done;
	struct rnic_cqe cqe;

	while (n < to && rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &cqe) && !cqe.error)
		n++;
	return n;
}

uint64_t session_queues_iterations(const struct session *s)
{
	return session_loop_iterations(s->queues.loop);
}

/* ---- ending ---- */

int session_queues_settle(struct session *s, struct verdict *v)
{
	(void)s;
	(void)v;
	return 0;
}

/* A queue that stops ends its WQEs with error CQEs, and an error CQE ends a WAIT as any other does. Some
 * devices end WQEs that nothing has enabled, too. So the queue of the client stops before those for which it
 * waits: nothing answers or writes to the client after that. If the heads are in that queue, nothing enables
 * a code queue either; else the queue with the heads, which may go on with RECVs that are flushed, stops
 * next. The recycler waits for the queue of the client, or this process for it, and stops before it: it
 * restores no WQE of a request that is under way.
 */
void session_queues_stop(struct session *s)
{
	unsigned start = chain_start_queue(s->offload->img);

	session_queues_started(s); /* to enable a queue that has stopped is an error of the master QP */
	rnic_qp_stop(&s->recycler.qp);
	rnic_qp_stop(&s->queues.qp[0]);
	if (start)
		rnic_qp_stop(&s->queues.qp[start]);
	session_loop_stop(s->queues.loop);
	for (unsigned q = CHAIN_MAX_QUEUES; q-- > 1;)
		if (q != start)
			rnic_qp_stop(&s->queues.qp[q]);
	session_extents_end(s);
}

void session_destroy_qps(struct session *s)
{
	session_loop_destroy_qp(s->queues.loop);
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		rnic_qp_deinit(&s->queues.qp[q]);
	rnic_qp_deinit(&s->recycler.qp);
}

static void destroy_cqs(struct session *s)
{
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		rnic_cq_deinit(&s->queues.cq[q]);
	rnic_cq_deinit(&s->recycler.cq);
	rnic_cq_deinit(&s->recycler.reply_cq);
}

/* All queues are stopped before the first is destroyed: none may work on a queue that is gone. All are
 * destroyed before the memory that they work on. */
void session_queues_destroy(struct session *s)
{
	session_queues_stop(s);
	session_destroy_qps(s);
	session_loop_free(s->queues.loop);
	destroy_cqs(s);
	rnic_block_deinit(&s->queues.block);
}

/* ---- by part ---- */

struct rnic_cq *session_cq(struct session *s, unsigned part)
{
	struct rnic_cq *cq = part < CHAIN_MAX_QUEUES    ? &s->queues.cq[part]
			     : part == SESSION_RECYCLER ? &s->recycler.cq
			     : part == SESSION_REPLIES  ? &s->recycler.reply_cq
			     : part == SESSION_LOOP     ? session_loop_cq(s->queues.loop)
							: NULL;

	return cq && cq->dev ? cq : NULL;
}

const struct rnic_qp *session_qp(const struct session *s, unsigned part)
{
	const struct rnic_qp *qp = part < CHAIN_MAX_QUEUES    ? &s->queues.qp[part]
				   : part == SESSION_RECYCLER ? &s->recycler.qp
							      : NULL;

	return qp && qp->dev ? qp : NULL;
}

/* The QPN of queue @part, which has a CQ. */
static uint32_t session_qpn(const struct session *s, unsigned part)
{
	const struct rnic_qp *qp = session_qp(s, part);

	return qp ? qp->qpn : session_loop_qpn(s->queues.loop);
}

/* ---- what is wrong with them ---- */

/* A client that marks its SENDs as solicited wakes the daemon with each. That is no error, but it has a price
 */
enum { FALSE_ALARMS_MAX = 1000 };

/* The position of a WQE in the image of its queue; false in the pad */
static bool in_image(const struct session *s, unsigned q, uint16_t index, uint32_t *wqebb)
{
	const struct chain_image *img = s->offload->img;
	uint32_t at = index & (s->queues.layout.queue[q].ring_wqebbs - 1);

	*wqebb = at % img->queue[q].wqebbs;
	return at < chain_pad_at(img, q, s->queues.layout.slots);
}

/* True if queue @part has an error by itself: not one of what was flushed */
static bool has_cause(struct session *s, unsigned part, struct rnic_cqe *cqe)
{
	const struct rnic_cq *cq = session_cq(s, part);

	return cq && rnic_cq_find_error(cq, cqe) && cqe->syndrome != CQE_SYND_FLUSH;
}

/* What flushed a queue is an error of another one: replaces *cqe and *part by it, if it is there. Those of
 * queue 0 come first: when that fails, code may go on with RECVs that are flushed, which it does not
 * understand. */
static void find_cause(struct session *s, unsigned *part, struct rnic_cqe *cqe)
{
	struct rnic_cqe cause;

	for (unsigned i = 0; i <= SESSION_LOOP + 1 && cqe->syndrome == CQE_SYND_FLUSH; i++) {
		unsigned of = i == 0 ? 0 : i == 1 ? SESSION_REPLIES : i - 1;

		if (has_cause(s, of, &cause)) {
			*cqe = cause;
			*part = of;
		}
	}
}

void session_fault(struct session *s, unsigned part, const struct rnic_cqe *first, struct verdict *v)
{
	const struct offload *o = s->offload;
	struct rnic_cqe cqe = *first;
	const char *syndrome;
	uint32_t wqebb;

	find_cause(s, &part, &cqe);
	syndrome = rnic_syndrome_text(cqe.syndrome);
	if (part == SESSION_REPLIES)
		part = 0;
	if (cqe.syndrome == CQE_SYND_FLUSH)
		verdict_set(v, VERDICT_QUEUE, true,
			"a queue failed, though no step of it did: the NIC ended it, or the client broke a "
			"rule (%s, %#x)",
			syndrome, cqe.vendor);
	else if (cqe.receive && cqe.syndrome == CQE_SYND_LOCAL_LENGTH)
		verdict_set(v, VERDICT_REQUEST, true, "a request was longer than %u bytes (%s, %#x)",
			o->img->arg_len + o->img->payload.max, syndrome, cqe.vendor);
	else if (cqe.receive)
		verdict_set(v, VERDICT_REQUEST, true, "receiving a request failed: %s (%#x)", syndrome,
			cqe.vendor);
	else if (part == SESSION_RECYCLER)
		verdict_set(v, VERDICT_QUEUE, true,
			"WQE %u of the recycler, the queue that arms the chain anew, failed: %s (%#x)",
			cqe.index, syndrome, cqe.vendor);
	else if (s->foreign)
		verdict_set(v, verdict_kind_of(cqe.syndrome, part == 0), true,
			"a step in queue %u failed: %s (%#x)", part, syndrome, cqe.vendor);
	else if (part == SESSION_LOOP)
		verdict_of_loop(v, o->program, o->conf->path, &cqe);
	else if (!in_image(s, part, cqe.index, &wqebb))
		verdict_set(v, VERDICT_QUEUE, true, "a NOP that pads a queue failed: %s (%#x)", syndrome,
			cqe.vendor);
	else
		verdict_of_step(v, o->program, o->conf->path, part, wqebb, &cqe);
	v->syndrome = cqe.syndrome;
	v->vendor = cqe.vendor;
}

/* True if the daemon asked for this event of a CQ: it paces a recycled session, or gives it extents, or waits
 * for a request */
static bool is_asked_for(const struct session *s, unsigned part)
{
	return part == SESSION_REPLIES ? session_is_paced(s) || s->extents.at
				       : part == 0 && s->budgets.resting;
}

/* Errors of the CQ have been looked for. An event that was not asked for is a SEND marked as solicited */
static int count_event(struct session *s, unsigned part, struct verdict *v)
{
	bool asked = is_asked_for(s, part);

	if (part == 0)
		s->budgets.resting = false;
	if (asked || ++s->counters.false_alarms <= FALSE_ALARMS_MAX)
		return 0;
	verdict_set(v, VERDICT_REQUEST, true, "more than %d SENDs of the client were solicited",
		FALSE_ALARMS_MAX);
	return 1;
}

static void arm_again(struct session *s, unsigned part, struct rnic_cq *cq)
{
	if (part < s->offload->img->nqueues)
		session_seek(s, part);
	rnic_cq_arm(cq, true);
}

int session_event(struct session *s, unsigned cookie, struct verdict *v)
{
	unsigned part = cookie & ~(unsigned)SESSION_COOKIE_QP;
	struct rnic_cq *cq = session_cq(s, part);
	struct rnic_cqe cqe;

	if (!cq)
		return 0;
	if (rnic_cq_find_error(cq, &cqe)) {
		session_fault(s, part, &cqe, v);
		return 1;
	}
	if (cookie & SESSION_COOKIE_QP) {
		verdict_set(v, VERDICT_QUEUE, true, "the device reports that queue pair %#x is broken",
			session_qpn(s, part));
		return 1;
	}
	if (count_event(s, part, v))
		return 1;
	arm_again(s, part, cq);
	/* An error between the first look and arming raises no event */
	if (!rnic_cq_find_error(cq, &cqe))
		return 0;
	session_fault(s, part, &cqe, v);
	return 1;
}
