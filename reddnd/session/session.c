/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/session.h"

#include "reddnd/chain/decode.h"
#include "reddnd/util/cleanup.h"
#include "reddnd/util/log.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* A client that marks its SENDs as solicited wakes the daemon with each; that is no error, but not for free */
enum { FALSE_ALARMS_MAX = 1000 };

/* ---- making ---------------------------------------------------------------------------------------------- */

static int make_queues(struct session *s, const struct session_parts *parts)
{
	const struct session_layout *l = &s->layout;
	const struct chain_image *img = s->offload->img;
	int r;

	r = rnic_block_init(&s->block, parts->dev, parts->arena, l->size, l->code_off, l->code_size);
	for (unsigned q = 0; q < img->nqueues && r == 0; q++) {
		const struct rnic_cq_attr cq = {
			.cqes_off = l->queue[q].cqes_off,
			.db_off = l->queue[q].cq_db_off,
			.log_size = l->queue[q].cq_log_size,
			.overrun_ignore = true,
			.cookie = s->id << SESSION_COOKIE_BITS | q,
		};

		r = rnic_cq_init(&s->cq[q], &s->block, &cq);
	}
	for (unsigned q = 0; q < img->nqueues && r == 0; q++) {
		const struct rnic_qp_attr qp = {
			.wq_off = l->queue[q].wq_off,
			.rq_entries = q == 0 ? l->slots : 0,
			.rq_stride = l->rq_stride,
			.sq_wqebbs = l->queue[q].ring_wqebbs,
			.db_off = l->queue[q].qp_db_off,
			.send_cq = q == 0 ? &s->audit_cq->cq : &s->cq[q],
			.recv_cq = &s->cq[q],
			.managed = true,
			.cookie = s->id << SESSION_COOKIE_BITS | SESSION_COOKIE_QP | q,
		};

		r = rnic_qp_init(&s->qp[q], &s->block, &qp);
	}
	return r;
}

static void fill_env(struct session *s, const struct session_request *request)
{
	const struct session_layout *l = &s->layout;
	const struct chain_image *img = s->offload->img;
	const struct rnic_block *b = &s->block;
	struct chain_env *env = &s->env;

	env->slots = l->slots;
	env->recv_cqn = s->cq[0].cqn;
	for (unsigned q = 0; q < img->nqueues; q++) {
		env->queue[q].qpn = s->qp[q].qpn;
		env->queue[q].cqn = q == 0 ? s->audit_cq->cq.cqn : s->cq[q].cqn;
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
	env->slot_addr = request->slot_addr;
	env->slot_rkey = request->slot_rkey;
	env->slot_size = request->slot_size;
	env->slot_count = request->depth;
	env->rq = s->qp[0].rq;
	env->rq_stride = l->rq_stride;
	offload_bind(s->offload, env);
}

static void arm_all(struct session *s)
{
	const struct chain_image *img = s->offload->img;

	for (unsigned slot = 0; slot < s->layout.slots; slot++)
		chain_format_recv(img, &s->env, slot);
	while (s->armed < s->layout.slots)
		chain_arm(img, &s->env, s->armed++);
	rnic_qp_post_recvs(&s->qp[0], (uint32_t)s->armed - 1);
}

static int start(struct session *s, const struct session_parts *parts)
{
	const struct chain_image *img = s->offload->img;
	int r = 0;

	for (unsigned q = 1; q < img->nqueues && r == 0; q++)
		r = rnic_qp_connect_self(&s->qp[q], img->max_rd_atomic);
	if (r == 0)
		r = rnic_conn_connect(s->conn, &s->qp[0]);
	for (unsigned q = 0; q < img->nqueues && r == 0; q++)
		rnic_cq_arm(&s->cq[q], true);
	for (unsigned q = 1; q < img->nqueues && r == 0; q++)
		if (chain_start_index(img, q))
			r = starter_enable(parts->starter, s->qp[q].qpn, chain_start_index(img, q));
	return r;
}

static uint32_t tail_of(const struct chain_queue *q)
{
	uint32_t w = q->wqebbs - 1;

	while (!q->starts[w])
		w--;
	return q->wqebbs - w;
}

static void destroy_queues(struct session *s)
{
	/* All are stopped before one goes, so that none works on a queue that is gone; and all are gone before the
	 * memory they work on */
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		rnic_qp_stop(&s->qp[q]);
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		rnic_qp_deinit(&s->qp[q]);
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		rnic_cq_deinit(&s->cq[q]);
	rnic_block_deinit(&s->block);
}

int session_new(struct session **out, uint64_t id, const struct session_parts *parts,
	const struct offload *offload, const struct session_request *request, struct rnic_conn *conn)
{
	const struct chain_image *img = offload->img;
	CLEANUP(cleanup_free) struct session *s = calloc(1, sizeof *s);
	unsigned slots = offload_slots(offload, request->depth);
	int r;

	if (!s)
		return -ENOMEM;
	assert(img->queue[0].cqes == 1);
	s->id = id;
	s->offload = offload;
	s->conn = conn;
	s->audit = parts->audit;
	s->tail = tail_of(&img->queue[0]);
	r = session_layout(img, slots, 1u << rnic_device_caps(parts->dev)->log_max_qp_wqebbs, &s->layout);
	if (r < 0)
		return r;
	s->charge = chain_ring_wqes(&img->queue[0], slots);
	r = audit_charge(s->audit, s->charge, 0, &s->audit_cq);
	if (r < 0)
		return r;
	r = make_queues(s, parts);
	if (r == 0) {
		fill_env(s, request);
		arm_all(s);
		r = start(s, parts);
	}
	if (r < 0) {
		destroy_queues(s);
		audit_refund(s->audit, s->audit_cq, s->charge);
		return r;
	}
	s->qpn = s->qp[0].qpn;
	rnic_conn_set_user(conn, s);
	*out = steal_ptr(&s);
	return 0;
}

void session_describe(const struct session *s, struct reddn_wire_rep *rep)
{
	*rep = (struct reddn_wire_rep){
		.magic = htobe32(REDDN_WIRE_MAGIC),
		.version = REDDN_WIRE_VERSION,
		.shape = REDDN_SHAPE_TABLE,
		.depth = htobe16((uint16_t)s->env.slot_count),
		.arg_len = htobe32(s->offload->img->arg_len),
		.reply_max = htobe32(s->offload->slot_need),
		.session = htobe64(s->id),
	};
	table_describe(&s->offload->table->geometry, &rep->table);
}

/* ---- ending ---------------------------------------------------------------------------------------------- */

void session_end(struct session *s)
{
	s->ended = true;
	for (unsigned q = 0; q < s->offload->img->nqueues; q++)
		rnic_qp_stop(&s->qp[q]);
	rnic_conn_disconnect(s->conn);
}

void session_stop_queues(struct session *s)
{
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		rnic_qp_deinit(&s->qp[q]);
}

void session_free(struct session *s)
{
	destroy_queues(s);
	audit_refund(s->audit, s->audit_cq, s->charge);
	rnic_conn_free(s->conn);
	free(s);
}

/* ---- running --------------------------------------------------------------------------------------------- */

static int describe_error(
	const struct session *s, unsigned q, const struct rnic_cqe *cqe, char *why, size_t size)
{
	struct rnic_cqe cause;

	/* What is flushed tells of trouble elsewhere */
	for (unsigned i = 0; i < s->offload->img->nqueues && cqe->syndrome == RNIC_SYNDROME_FLUSHED; i++)
		if (rnic_cq_find_error(&s->cq[i], &cause) && cause.syndrome != RNIC_SYNDROME_FLUSHED) {
			cqe = &cause;
			q = i;
		}
	if (cqe->syndrome == RNIC_SYNDROME_FLUSHED)
		snprintf(why, size,
			"a queue failed, though no step of it did: the NIC ended it, or the client broke a "
			"rule (%s, %#x)",
			rnic_syndrome_text(cqe->syndrome), cqe->vendor);
	else if (cqe->receive && cqe->syndrome == RNIC_SYNDROME_LENGTH)
		snprintf(why, size, "a request was longer than %u bytes (%s, %#x)", s->offload->img->arg_len,
			rnic_syndrome_text(cqe->syndrome), cqe->vendor);
	else if (cqe->receive)
		snprintf(why, size, "receiving a request failed: %s (%#x)", rnic_syndrome_text(cqe->syndrome),
			cqe->vendor);
	else
		snprintf(why, size, "step %s failed: %s (%#x)",
			chain_step_at(s->offload->img, s->layout.slots, q, cqe->index, NULL),
			rnic_syndrome_text(cqe->syndrome), cqe->vendor);
	return 1;
}

int session_completed(struct session *s, const struct rnic_cqe *cqe, char *why, size_t size)
{
	uint16_t last;

	if (cqe->error)
		return describe_error(s, 0, cqe, why, size);
	last = (uint16_t)(chain_enable_index(
				  s->offload->img, &s->env, 0, s->done, s->offload->img->queue[0].wqebbs) -
			  s->tail);
	if (cqe->index != last) {
		snprintf(why, size, "completion of WQE %u where %u was next", cqe->index, last);
		return 1;
	}
	s->done++;
	return 0;
}

unsigned session_used(const struct session *s)
{
	return (unsigned)((s->done + s->layout.slots - s->armed) * 8 / s->layout.slots);
}

int session_rearm(struct session *s, char *why, size_t size)
{
	const struct chain_image *img = s->offload->img;
	struct rnic_cqe cqe;

	while (s->armed < s->done + s->layout.slots) {
		uint64_t finished = s->armed - s->layout.slots;

		if (rnic_cq_peek(&s->cq[0], (uint32_t)finished, &cqe) && !cqe.error &&
			cqe.length != img->arg_len) {
			snprintf(why, size, "request %" PRIu64 " had %u bytes, not %u", finished, cqe.length,
				img->arg_len);
			return 1;
		}
		chain_arm(img, &s->env, s->armed++);
	}
	rnic_qp_post_recvs(&s->qp[0], (uint32_t)s->armed - 1);
	return 0;
}

int session_alarm(struct session *s, unsigned part, char *why, size_t size)
{
	unsigned q = part & ~(unsigned)SESSION_COOKIE_QP;
	struct rnic_cqe cqe;

	if (q >= s->offload->img->nqueues)
		return 0;
	if (rnic_cq_find_error(&s->cq[q], &cqe))
		return describe_error(s, q, &cqe, why, size);
	if (part & SESSION_COOKIE_QP) {
		snprintf(why, size, "the device reports that queue pair %#x is broken", s->qp[q].qpn);
		return 1;
	}
	if (++s->false_alarms > FALSE_ALARMS_MAX) {
		snprintf(why, size, "more than %d SENDs of the client were solicited", FALSE_ALARMS_MAX);
		return 1;
	}
	s->cq[q].consumer = (uint32_t)(q == 0 ? s->done : s->done * s->offload->img->queue[q].cqes);
	rnic_cq_arm(&s->cq[q], true);
	return rnic_cq_find_error(&s->cq[q], &cqe) ? describe_error(s, q, &cqe, why, size) : 0;
}
