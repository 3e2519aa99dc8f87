/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/executor/internal.h"

#include "mlx5/cqe.h"

/* ---- queues ----------------------------------------------------------------------------------- */

static bool fails(struct schedule *c, uint8_t queue, uint32_t wqebb, uint8_t syndrome)
{
	c->fault = (struct executor_fault){.queue = queue, .wqebb = wqebb, .syndrome = syndrome};
	return false;
}

/* CQE numbers have 24 bits */
static bool is_over(const struct schedule *c, const uint8_t *wqe)
{
	uint32_t cq = wqe_get32(wqe + WQE_SYNC_OBJECT), number = wqe_get32(wqe + WQE_SYNC_INDEX);
	uint32_t cqes = cq < SCHEDULE_QUEUES ? c->queue[cq].cqes : cq == SCHEDULE_RECVS;

	return cq == SCHEDULE_CREDITS || (int32_t)((cqes - 1 - number) << 8) >= 0;
}

/* An instance has no successor: what enables the head of the next one, enables to the end */
static bool enable(struct schedule *c, const uint8_t *wqe)
{
	uint32_t qpn = wqe_get32(wqe + WQE_SYNC_OBJECT);
	struct schedule_queue *q = &c->queue[qpn < SCHEDULE_QUEUES ? qpn : 0];
	int16_t more;

	if (qpn >= SCHEDULE_QUEUES || !q->wqebbs)
		return false;
	more = (int16_t)(wqe_get32(wqe + WQE_SYNC_INDEX) - (uint32_t)q->upto);
	if (more > 0)
		q->upto += (uint64_t)more;
	if (qpn != EXECUTOR_LOOP && q->upto > q->wqebbs)
		q->upto = q->wqebbs;
	return true;
}

/* Only a loop goes round */
static uint32_t place(const struct schedule_queue *q)
{
	return (uint32_t)(q->at < q->wqebbs ? q->at : q->at % q->wqebbs);
}

/* NULL: there is none. One of a loop is copied to @copy, as it may go on at the beginning of the ring */
static const uint8_t *fetch(const struct schedule_queue *q, uint32_t at, uint8_t *copy)
{
	const uint8_t *wqe = q->ring + (size_t)at * WQE_BB;
	uint32_t bytes = op_ds(wqe) * WQE_DS, first = (q->wqebbs - at) * WQE_BB;

	if (bytes == 0 || bytes > q->wqebbs * WQE_BB)
		return NULL;
	if (q->ops)
		return q->ops[at].wqe && bytes <= first ? wqe : NULL;
	first = first < bytes ? first : bytes;
	memcpy(copy, wqe, first);
	memcpy(copy + first, q->ring, bytes - first);
	return copy;
}

static bool is_only_nop(const struct schedule *c, const struct op *op)
{
	return op->wqe[WQE_OPCODE] == WQE_OP_NOP && !op_is_written(&c->s, op->wqe + WQE_OPCODE, 1);
}

/* A work request that takes its place in the order has its CQE, whatever it does */
static bool execute(struct schedule *c, struct op *op, const uint8_t *wqe)
{
	const uint8_t opcode = wqe[WQE_OPCODE];
	bool good = true;

	if (c->finding) {
		if (!is_only_nop(c, op)) /* there is no loop: @wqe is its own */
			c->order[c->norder++] = op;
		return true;
	}
	if (wqe == op->wqe)
		good = op_execute(&c->s, op);
	else if (opcode != WQE_OP_NOP)
		good = op_execute_copy(&c->s, op, wqe);
	return good || fails(c, op->queue, op->wqebb, c->s.syndrome);
}

enum step { STEP_NONE, STEP_DONE, STEP_FAILED };

static enum step step(struct schedule *c, uint8_t number)
{
	struct schedule_queue *q = &c->queue[number];
	struct op of_loop, *op;
	uint8_t copy[WQE_MAX_BBS * WQE_BB];
	const uint8_t *wqe;
	uint32_t at;
	bool good = true;

	if (q->at >= q->upto)
		return STEP_NONE;
	at = place(q);
	wqe = fetch(q, at, copy);
	if (!wqe) {
		fails(c, number, at, CQE_SYND_LOCAL_QP_OP);
		return STEP_FAILED;
	}
	of_loop.queue = number;
	of_loop.wqebb = at;
	of_loop.wqe = NULL;
	op = q->ops ? &q->ops[at] : &of_loop;
	if (wqe[WQE_OPCODE] == WQE_OP_WAIT && !is_over(c, wqe))
		return STEP_NONE;
	c->wqes++;
	if (wqe[WQE_OPCODE] == WQE_OP_SEND_EN)
		good = enable(c, wqe) || fails(c, number, at, CQE_SYND_LOCAL_QP_OP);
	else if (wqe[WQE_OPCODE] != WQE_OP_WAIT)
		good = execute(c, op, wqe);
	if (!good)
		return STEP_FAILED;
	q->at += (op_ds(wqe) * WQE_DS + WQE_BB - 1) / WQE_BB;
	q->cqes += (wqe[WQE_FLAGS] & WQE_SIGNALLED) != 0;
	return STEP_DONE;
}

static enum executor_result run_queues(struct schedule *c, uint64_t wqes)
{
	unsigned idle = 0;

	for (; idle < c->nused; c->turn = c->turn + 1 < c->nused ? c->turn + 1 : 0, idle++) {
		enum step s;

		while ((s = step(c, c->used[c->turn])) == STEP_DONE) {
			idle = 0;
			if (--wqes == 0)
				return EXECUTOR_MORE;
		}
		if (s == STEP_FAILED)
			return EXECUTOR_FAULT;
	}
	if (c->queue[0].at == c->queue[0].wqebbs)
		return EXECUTOR_DONE;
	fails(c, 0, (uint32_t)c->queue[0].at, 0);
	return EXECUTOR_FAULT;
}

static void begin_queues(struct schedule *c)
{
	for (unsigned i = 0; i < c->nused; i++) {
		struct schedule_queue *q = &c->queue[c->used[i]];

		q->at = q->upto = q->cqes = 0;
	}
	c->turn = 0;
	c->queue[c->start_queue].upto = c->start;
	c->queue[EXECUTOR_LOOP].upto = c->loop_start;
}

/* ---- the order -------------------------------------------------------------------------------- */

static bool is_sync(uint8_t opcode)
{
	return opcode == WQE_OP_WAIT || opcode == WQE_OP_SEND_EN || opcode == WQE_OP_RECV_EN;
}

/* What decides about the order must not be written from now on. False: it is. A NOP has no place in the
 * order if it is not known that it may become another work request */
static bool fix(struct schedule *c)
{
	bool good = true;

	for (uint64_t i = 0; i < c->s.code; i += WQE_BB) {
		const struct op *op = &c->s.ops[i / WQE_BB];

		if (!op->wqe)
			continue;
		for (unsigned b = 0; b < WQE_SYNC_OBJECT + 4; b++)
			if (is_sync(op->opcode) || b == WQE_DSCOUNT || b == WQE_FLAGS ||
				(b == WQE_OPCODE && is_only_nop(c, op)))
				c->s.marks[i + b] |= OP_FIXED;
	}
	for (uint64_t i = 0; i < c->s.code; i++)
		good &= (c->s.marks[i] & (OP_FIXED | OP_WRITTEN)) != (OP_FIXED | OP_WRITTEN);
	return good;
}

int schedule_find(struct schedule *c, struct op **order)
{
	c->order = order;
	c->finding = true;
	begin_queues(c);
	c->wqes = c->norder = 0;
	if (c->queue[EXECUTOR_LOOP].wqebbs || !fix(c) || run_queues(c, UINT64_MAX) != EXECUTOR_DONE) {
		c->norder = 0;
		for (uint64_t i = 0; i < c->s.code; i++)
			c->s.marks[i] &= (uint8_t)~OP_FIXED;
	}
	c->all = c->wqes;
	c->finding = false;
	return c->norder ? trace_init(&c->trace, c->norder) : 0;
}

void schedule_trace(struct schedule *c)
{
	if (c->norder)
		trace_make(&c->trace, &c->s, c->order, c->norder);
}

void schedule_shrink(struct schedule *c)
{
	if (c->norder && trace_shrink(&c->trace))
		schedule_trace(c);
}

void schedule_begin(struct schedule *c)
{
	c->wqes = 0;
	c->next = 0;
	if (!c->norder)
		begin_queues(c);
}

/* Up to @n work requests of which @done have been executed, unless one has failed. Not inlined: a request is
 * rarely interrupted */
static __attribute__((noinline)) enum executor_result run_in_order(
	struct schedule *c, uint64_t n, unsigned done)
{
	const unsigned left = c->norder - c->next;

	n = n < left ? n : left;
	if (done < n && !c->s.syndrome)
		done += op_execute_row(&c->s, c->order + c->next + done, (unsigned)n - done);
	c->next += done;
	c->wqes += done;
	if (done < n) {
		const struct op *op = c->order[c->next];

		c->wqes++;
		fails(c, op->queue, op->wqebb, c->s.syndrome);
		return EXECUTOR_FAULT;
	}
	if (n < left)
		return EXECUTOR_MORE;
	c->wqes = c->all;
	return EXECUTOR_DONE;
}

enum executor_result schedule_run(struct schedule *c, uint64_t wqes)
{
	unsigned done = 0;

	if (!c->norder)
		return run_queues(c, wqes);
	c->s.syndrome = 0;
	if (c->next == 0 && wqes >= c->norder)
		done = trace_execute(&c->trace, &c->s);
	if (done < c->norder)
		return run_in_order(c, wqes, done);
	c->next = done;
	c->wqes = c->all;
	return EXECUTOR_DONE;
}
