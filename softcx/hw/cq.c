/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/hw/cq.h"

#include "softcx/hw/clock.h"
#include "softcx/hw/qp.h"
#include "softcx/hw/turns.h"
#include "softcx/hw/uar.h"
#include "util/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	/* No library writes this arm word: the first arm of libmlx5 writes 0, the value of a fresh record */
	ARM_POISON = 0xffffffff,
	ARM_SOLICITED = 1 << 24,
	INDEX_MASK = 0xffffff,
};

/*
 * A device only reads doorbell records, and learns from a ring that a CQ was armed. Here a ring may be
 * overwritten, and only a new word shows it. Software may have its record in memory that the device may not
 * write to: UCX 1.23 does (uct_ib_mlx5_add_page). Memory that nobody here can write to stays as it is.
 */
static void poison(struct hw_cq *cq)
{
	enum { PAGE = 4096 };
	void *page = (void *)((uintptr_t)cq->db & ~(uintptr_t)(PAGE - 1));
	bool opens = !cq->db_mem->writable;

	if (opens && mprotect(page, PAGE, PROT_READ | PROT_WRITE) < 0) {
		cq->arm_word = hw_db_read(&cq->db[1]);
		return;
	}
	cq->arm_word = ARM_POISON;
	__atomic_store_n(&cq->db[1], ARM_POISON, __ATOMIC_RELEASE);
	if (opens)
		mprotect(page, PAGE, PROT_READ);
}

int hw_cq_create(struct hw_dev *dev, const struct hw_cq_attr *attr, struct hw_cq **out)
{
	struct hw_uar *uar = hw_uar_find(dev, attr->uar);
	struct hw_cq *cq;
	int err;

	if (!uar || attr->log_size > 22 || (attr->cqe_bytes != 64 && attr->cqe_bytes != 128))
		return -EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->dev = dev;
	cq->size = 1u << attr->log_size;
	cq->cqe_bytes = attr->cqe_bytes;
	cq->ring = hw_mem_pin(dev, attr->buf, attr->buf_off, (uint64_t)cq->size * cq->cqe_bytes, 64);
	cq->buf_mem = cq->ring ? attr->buf : NULL;
	cq->db = hw_mem_pin(dev, attr->db, attr->db_off, 8, 8);
	cq->db_mem = cq->db ? attr->db : NULL;
	err = cq->ring && cq->db ? hw_clock_add_cq(cq, attr->software) : -EINVAL;
	if (!err)
		err = hw_table_add(&dev->cqs, cq, &cq->cqn);
	if (err) {
		hw_mem_unpin(dev, cq->buf_mem);
		hw_mem_unpin(dev, cq->db_mem);
		hw_clock_remove_cq(cq);
		free(cq);
		return err;
	}
	cq->time = attr->time;
	cq->oi = attr->oi;
	cq->cc = attr->cc;
	hw_cq_moderate(cq, attr->period_us, attr->max_count);
	cq->on_comp = attr->on_comp;
	cq->on_error = attr->on_error;
	cq->arg = attr->arg;
	poison(cq);
	TAILQ_INIT(&cq->waiters);
	hw_uar_add_cq(uar, cq);
	*out = cq;
	return 0;
}

static void unmoderate(struct hw_cq *cq)
{
	if (cq->moderated)
		TAILQ_REMOVE(&cq->dev->moderated, cq, timer);
	cq->moderated = false;
}

int hw_cq_destroy(struct hw_dev *dev, struct hw_cq *cq)
{
	struct hw_qp *qp;

	if (cq->refs)
		return -EBUSY;
	/* Their WAIT is executed again and fails, as it names no CQ any more */
	while ((qp = TAILQ_FIRST(&cq->waiters)))
		hw_qp_resume(qp);
	unmoderate(cq);
	hw_uar_remove_cq(cq);
	hw_table_del(&dev->cqs, cq->cqn);
	hw_mem_unpin(dev, cq->buf_mem);
	hw_mem_unpin(dev, cq->db_mem);
	hw_clock_remove_cq(cq);
	free(cq);
	return 0;
}

static void fire(struct hw_cq *cq)
{
	unmoderate(cq);
	cq->armed = false;
	cq->event_at = cq->producer;
	hw_uar_unlist_cq(cq);
	if (cq->on_comp)
		cq->on_comp(cq->arg);
}

/* Fires, or lets moderation decide when. */
static void maybe_fire(struct hw_cq *cq)
{
	uint64_t last = cq->sol_only ? cq->sol_at : cq->producer;
	uint64_t consumer = cq->producer - ((cq->producer - cq->arm_word) & INDEX_MASK);

	if (last <= consumer || last <= cq->event_at)
		return;
	if (!cq->max_count && !cq->period_us) {
		fire(cq);
		return;
	}
	if (cq->max_count && cq->producer - cq->event_at >= cq->max_count) {
		fire(cq);
	} else if (!cq->moderated && cq->period_us) {
		cq->due = clock_ns() + cq->period_us * 1000ull;
		cq->moderated = true;
		TAILQ_INSERT_TAIL(&cq->dev->moderated, cq, timer);
	}
}

void hw_cq_check_arm(struct hw_cq *cq)
{
	uint32_t word = hw_db_read(&cq->db[1]);

	if (word == cq->arm_word)
		return;
	cq->arm_word = word;
	cq->armed = true;
	cq->sol_only = word & ARM_SOLICITED;
	maybe_fire(cq);
}

bool hw_cq_timers(struct hw_dev *dev)
{
	struct hw_cq *cq = TAILQ_FIRST(&dev->moderated), *next;
	bool any = false;

	for (; cq; cq = next) {
		next = TAILQ_NEXT(cq, timer);
		if (cq->due <= dev->now) {
			fire(cq);
			any = true;
		}
	}
	return any;
}

static void trace_cqe(const struct hw_cq *cq, const struct hw_cqe *c, const uint8_t b[64])
{
	struct hw_trace t = {
		.kind = HW_TRACE_CQE,
		.qpn = c->sop_qpn & 0xffffff,
		.idx = c->wqe_counter,
		.opcode = (uint8_t)(c->sop_qpn >> 24),
		.syndrome = c->syndrome,
		.ds = 4,
		.cqn = cq->cqn,
		.number = cq->producer & INDEX_MASK,
		.wqe = b,
	};

	cq->dev->trace(cq->dev->trace_arg, &t);
}

static void trace_release(const struct hw_cq *cq, const struct hw_qp *qp)
{
	struct hw_trace t = {
		.kind = HW_TRACE_RELEASED,
		.qpn = qp->qpn,
		.idx = qp->sq_ci,
		.opcode = WQE_OP_WAIT,
		.type = (uint8_t)qp->type,
		.ds = 2,
		.cqn = cq->cqn,
		.number = qp->wait_index & INDEX_MASK,
		.wqe = qp->shadow + (size_t)(qp->sq_ci & (qp->sq_wqebbs - 1)) * WQE_BB,
	};

	cq->dev->trace(cq->dev->trace_arg, &t);
}

/* Error CQEs have no room for it, but WAITs and software know their time too. */
static uint64_t timestamp(struct hw_cq *cq, const struct hw_cqe *c)
{
	uint64_t ticks = cq->clock ? hw_clock_cqe(cq, c) : hw_clock_ticks(clock_ns());

	if (cq->time)
		hw_uar_show_time(cq->time, ticks);
	return ticks;
}

/* A timestamp of the real-time clock: Linux mlx5_real_time_cyc2time() */
static uint64_t real_time(const struct hw_dev *dev, uint64_t ticks)
{
	uint64_t khz = hw_clock_khz(dev),
		 ns = dev->epoch + ticks / khz * 1000000 + ticks % khz * 1000000 / khz;

	return ns / 1000000000 << 32 | ns % 1000000000;
}

/* Writes the 64 bytes that software looks at; the owner bit last. */
static void put_cqe(struct hw_cq *cq, uint32_t slot, const struct hw_cqe *c)
{
	_Alignas(8) uint8_t b[64] = {0};
	uint8_t *dst = cq->ring + (size_t)slot * cq->cqe_bytes;
	uint64_t word, ticks = timestamp(cq, c);
	uint8_t format = 0;

	if (cq->cqe_bytes == 128) {
		if (c->inl) {
			memcpy(dst, c->inl, c->inl_len);
			format = CQE_INLINE_64;
		}
		dst += 64;
	} else if (c->inl) {
		memcpy(b, c->inl, c->inl_len);
		format = CQE_INLINE_32;
	}
	if (!format) {
		wqe_put16(b + CQE_SLID, c->slid);
		wqe_put32(b + CQE_RQPN, c->rqpn);
	}
	wqe_put32(b + CQE_USER_INDEX, c->user_index);
	memcpy(b + CQE_IMM, &c->imm_be, 4);
	wqe_put32(b + CQE_LENGTH, c->byte_cnt);
	if (c->syndrome) {
		b[CQE_VENDOR] = c->vendor;
		b[CQE_SYNDROME] = c->syndrome;
	} else {
		wqe_put64(b + CQE_TIMESTAMP, c->real_time ? real_time(cq->dev, ticks) : ticks);
	}
	wqe_put32(b + CQE_QPN, c->sop_qpn);
	wqe_put16(b + CQE_INDEX, c->wqe_counter);
	b[CQE_OP_OWN] = (uint8_t)(c->opcode << 4 | format | (c->solicited ? CQE_SOLICITED : 0) |
				  (cq->producer & cq->size ? CQE_OWNER : 0));
	memcpy(dst, b, 56);
	memcpy(&word, b + 56, 8);
	__atomic_store_n((uint64_t *)(dst + 56), word, __ATOMIC_RELEASE);
	if (__builtin_expect(cq->dev->trace != NULL, 0))
		trace_cqe(cq, c, b);
}

static void count_cqe(struct hw_cq *cq)
{
	cq->producer++;
	hw_uar_list_cq(cq);
}

/** CQEs that software has not consumed. A consumer index ahead of the producer is its mistake: 0. */
static uint32_t outstanding(struct hw_cq *cq)
{
	uint32_t used = (uint32_t)(cq->producer - hw_db_read(&cq->db[0])) & INDEX_MASK;

	return used < 0x800000 ? used : 0;
}

bool hw_cq_holds_one(struct hw_cq *cq)
{
	return outstanding(cq) == 1;
}

static bool overrun(struct hw_cq *cq)
{
	return outstanding(cq) >= cq->size;
}

bool hw_cq_push(struct hw_cq *cq, const struct hw_cqe *cqe)
{
	struct hw_qp *qp, *next;

	if (cq->failed)
		return false;
	if (!cq->oi && overrun(cq)) {
		cq->failed = true;
		if (cq->on_error)
			cq->on_error(cq->arg, HW_EV_CQ_ERROR);
		return false;
	}
	put_cqe(cq, cq->cc ? 0 : cq->producer & (cq->size - 1), cqe);
	count_cqe(cq);
	cq->dev->total.cqes++;
	if (cqe->solicited || cqe->syndrome)
		cq->sol_at = cq->producer;
	for (qp = TAILQ_FIRST(&cq->waiters); qp; qp = next) {
		next = TAILQ_NEXT(qp, run);
		if (!hw_cq_reached(cq, qp->wait_index))
			continue;
		if (__builtin_expect(cq->dev->trace != NULL, 0))
			trace_release(cq, qp);
		hw_qp_resume(qp);
	}
	hw_cq_check_arm(cq);
	if (cq->armed)
		maybe_fire(cq);
	return true;
}

int hw_cq_resize(struct hw_dev *dev, struct hw_cq *cq, struct hw_mem *buf, uint64_t off, uint8_t log_size,
	uint8_t cqe_bytes)
{
	struct hw_cqe resize = {.opcode = CQE_OP_RESIZE};
	uint32_t size;
	uint8_t *ring;

	if (log_size > 22 || (cqe_bytes != 64 && cqe_bytes != 128))
		return -EINVAL;
	size = 1u << log_size;
	/* They move to the new ring; the CQE that announces it needs a place in the old one */
	if (outstanding(cq) > size || overrun(cq))
		return -EINVAL;
	ring = hw_mem_pin(dev, buf, off, (uint64_t)size * cqe_bytes, 64);
	if (!ring)
		return -EINVAL;
	/* The last CQE in the old ring sends software to the new one, at the next index */
	put_cqe(cq, cq->producer & (cq->size - 1), &resize);
	count_cqe(cq);
	hw_mem_unpin(dev, cq->buf_mem);
	cq->buf_mem = buf;
	cq->ring = ring;
	cq->size = size;
	cq->cqe_bytes = cqe_bytes;
	return 0;
}

int hw_cq_moderate(struct hw_cq *cq, uint16_t period_us, uint16_t max_count)
{
	/* A count without a period would hold the last events of a burst back for ever */
	cq->period_us = max_count > 1 && !period_us ? 1 : period_us;
	cq->max_count = max_count;
	return 0;
}

uint32_t hw_cqn(const struct hw_cq *cq)
{
	return cq->cqn;
}

void *hw_cq_arg(const struct hw_cq *cq)
{
	return cq->arg;
}

struct hw_cq *hw_cq_find(struct hw_dev *dev, uint32_t cqn)
{
	return cqn >> 24 ? NULL : hw_table_get(&dev->cqs, cqn);
}

uint32_t hw_cq_producer(const struct hw_cq *cq)
{
	return cq->producer & INDEX_MASK;
}
