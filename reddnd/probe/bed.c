/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"
#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, RING = BED_WQEBBS * RNIC_WQEBB_BYTES, RECV = BED_RECV_SGES * WQE_DS };
enum { NCQS = 2 * BED_QUEUES, LOG_CQES = 8, CQ_BYTES = RNIC_CQE_BYTES << LOG_CQES };
enum { /* offsets in the block: doorbells, CQEs, queues (before each ring its RECVs), then memory */
	CQES = PAGE,
	RINGS = CQES + NCQS * CQ_BYTES,
	RING_SIZE = PAGE + RING,
	MEMORY = RINGS + BED_QUEUES * RING_SIZE,
	SIZE = MEMORY + BED_MEMORY,
};
enum { POLLS = 50, POLL_NS = 20000 };

_Static_assert(1 << LOG_CQES == BED_CQES && CQ_BYTES % PAGE == 0, "a CQ has whole pages");
_Static_assert(BED_RECVS *RECV <= PAGE, "RECVs have one page");

uint64_t bed_iova(const struct bed *bed, const void *mem)
{
	return bed->block.iova + (uint64_t)((const uint8_t *)mem - (bed->block.mem + bed->block.code_off));
}

uint8_t *bed_at(const struct bed *bed, unsigned q, unsigned index)
{
	return bed->qp[q].sq + index % BED_WQEBBS * RNIC_WQEBB_BYTES;
}

/* ---- WQEs ------------------------------------------------------------------------------- */

uint8_t *bed_wqe(struct bed *bed, unsigned q, uint8_t opcode, uint8_t ds, uint8_t flags)
{
	uint8_t *w = bed_at(bed, q, bed->posted[q]);

	memset(w, 0, (size_t)ds * WQE_DS);
	wqe_put16(w + WQE_INDEX, (uint16_t)bed->posted[q]);
	bed->posted[q] += (ds * WQE_DS + RNIC_WQEBB_BYTES - 1) / RNIC_WQEBB_BYTES;
	w[WQE_OPCODE] = opcode;
	wqe_put32(w + WQE_QPN_DS, bed->qp[q].qpn << 8 | ds);
	w[WQE_FLAGS] = flags;
	return w;
}

void bed_pad(struct bed *bed, unsigned q, bool signalled)
{
	enum { LONGEST = 4 /* WQEBBs; every device has WQEs of 256 bytes */ };

	while (bed->posted[q] % BED_GROUP) {
		unsigned left = BED_GROUP - bed->posted[q] % BED_GROUP, n = left < LONGEST ? left : LONGEST;

		bed_wqe(bed, q, WQE_OP_NOP, (uint8_t)(n * WQE_BB / WQE_DS),
			signalled && n == left ? WQE_SIGNALLED : 0);
	}
}

void bed_sync(struct bed *bed, uint8_t opcode, uint8_t flags, uint32_t index, uint32_t object)
{
	uint8_t *w = bed_wqe(bed, BED_WORK, opcode, 2, flags);

	wqe_put32(w + WQE_SYNC_INDEX, index);
	wqe_put32(w + WQE_SYNC_OBJECT, object);
}

void bed_sge(const struct bed *bed, uint8_t *at, const void *mem, uint32_t len)
{
	wqe_put_sge(at, len, bed->block.lkey, bed_iova(bed, mem));
}

void bed_remote(const struct bed *bed, uint8_t *wqe, const void *mem)
{
	wqe_put64(wqe + WQE_RADDR, bed_iova(bed, mem));
	wqe_put32(wqe + WQE_RKEY, bed->block.rkey);
}

uint8_t *bed_copy(struct bed *bed, unsigned q, uint8_t opcode, uint8_t flags, const void *remote, void *local,
	uint32_t len)
{
	uint8_t *w = bed_wqe(bed, q, opcode, 3, flags);

	bed_remote(bed, w, remote);
	bed_sge(bed, w + WQE_RDMA_SGE, local, len);
	return w;
}

static uint8_t *atomic(
	struct bed *bed, unsigned q, uint8_t opcode, uint8_t flags, uint64_t *word, uint64_t *old)
{
	uint8_t *w = bed_wqe(bed, q, opcode, 4, flags);

	bed_remote(bed, w, word);
	bed_sge(bed, w + WQE_ATOMIC + WQE_DS, old, sizeof(*old));
	return w;
}

void bed_add(struct bed *bed, unsigned q, uint8_t flags, uint64_t *word, uint64_t add, uint64_t *old)
{
	wqe_put64(atomic(bed, q, WQE_OP_FETCH_ADD, flags, word, old) + WQE_ATOMIC, add);
}

void bed_cas(struct bed *bed, unsigned q, uint8_t flags, uint64_t *word, uint64_t compare, uint64_t swap,
	uint64_t *old)
{
	uint8_t *w = atomic(bed, q, WQE_OP_CAS, flags, word, old);

	wqe_put64(w + WQE_ATOMIC, swap);
	wqe_put64(w + WQE_ATOMIC + 8, compare);
}

uint8_t *bed_recv(struct bed *bed, unsigned q)
{
	uint8_t *sge = bed->qp[q].rq + (size_t)(bed->recvs[q]++ % BED_RECVS) * RECV;

	memset(sge, 0, RECV);
	for (unsigned i = 0; i < BED_RECV_SGES; i++)
		wqe_put32(sge + (size_t)i * WQE_DS + WQE_SGE_LKEY, WQE_LKEY_NONE);
	return sge;
}

/* ---- life ------------------------------------------------------------------------------- */

static int init_cq(struct bed *bed, struct rnic_cq *cq, unsigned n)
{
	const struct rnic_cq_attr attr = {
		.cqes_off = CQES + n * CQ_BYTES,
		.db_off = (uint64_t)n * RNIC_DB_BYTES,
		.log_size = LOG_CQES,
		.overrun_ignore = true,
	};

	return rnic_cq_init(cq, &bed->block, &attr);
}

static int init_queue(struct bed *bed, unsigned q, const struct bed_attr *how)
{
	bool target = q == BED_TARGET;
	const struct rnic_qp_attr attr = {
		.wq_off = RINGS + q * RING_SIZE,
		.rq_entries = BED_RECVS,
		.rq_stride = RECV,
		.sq_wqebbs = BED_WQEBBS,
		.db_off = (uint64_t)(NCQS + q) * RNIC_DB_BYTES,
		.send_cq = &bed->cq[q],
		.recv_cq = &bed->recv_cq[q],
		.max_message = target && how->limited ? BED_MESSAGE : 0,
		.managed = true,
		.managed_rq = target && how->managed_recvs,
	};
	int r = init_cq(bed, &bed->cq[q], 2 * q);

	if (r == 0)
		r = init_cq(bed, &bed->recv_cq[q], 2 * q + 1);
	if (r == 0)
		r = rnic_qp_init(&bed->qp[q], &bed->block, &attr);
	if (r < 0)
		return r;
	return how->by_address ? rnic_qp_connect_by_address(&bed->qp[q], &bed->qp[q], 4)
			       : rnic_qp_connect_self(&bed->qp[q], 4);
}

/* 0 or a negative errno; deinit() in either case */
static int init(struct bed *bed, const struct probe *probe, const struct bed_attr *attr)
{
	int r;

	bed->probe = probe;
	bed->master = probe->master;
	r = rnic_block_init(
		&bed->block, probe->master->block.pd, probe->master->block.arena, SIZE, RINGS, SIZE - RINGS);
	for (unsigned q = 0; q < BED_QUEUES && r == 0; q++)
		r = init_queue(bed, q, attr);
	if (r == 0)
		bed->memory = bed->block.mem + MEMORY;
	return r;
}

static void deinit(struct bed *bed)
{
	for (unsigned q = 0; q < BED_QUEUES; q++)
		rnic_qp_deinit(&bed->qp[q]);
	for (unsigned q = 0; q < BED_QUEUES; q++) {
		rnic_cq_deinit(&bed->cq[q]);
		rnic_cq_deinit(&bed->recv_cq[q]);
	}
	rnic_block_deinit(&bed->block);
}

int bed_use(const struct probe *probe, const struct bed_attr *attr, struct probe_result *result,
	int (*run)(struct bed *bed, struct probe_result *result), void *arg)
{
	const struct bed_attr none = {0};
	struct bed bed = {.arg = arg};
	int r = init(&bed, probe, attr ? attr : &none);

	if (r == 0)
		r = run(&bed, result);
	deinit(&bed);
	return r;
}

/* ---- running ---------------------------------------------------------------------------- */

int bed_enable(struct bed *bed, unsigned q, unsigned index)
{
	return master_qp_enable(bed->master, bed->qp[q].qpn, (uint16_t)index);
}

int bed_start(struct bed *bed)
{
	return bed_enable(bed, BED_WORK, bed->posted[BED_WORK]);
}

void bed_sleep(unsigned ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l};

	nanosleep(&t, NULL);
}

/* Most CQEs come within microseconds */
bool bed_has_cqe(const struct rnic_cq *cq, unsigned n)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	struct rnic_cqe cqe;

	for (unsigned polls = 0; polls < POLLS && !rnic_cq_peek(cq, n, &cqe); polls++)
		nanosleep(&pause, NULL);
	for (unsigned ms = 0; ms < BED_PATIENCE_MS && !rnic_cq_peek(cq, n, &cqe); ms++)
		bed_sleep(1);
	return rnic_cq_peek(cq, n, &cqe);
}

int bed_fine(const struct bed *bed, struct probe_result *result)
{
	const struct {
		const struct rnic_cq *cq;
		const char *name;
	} queues[] = {{&bed->cq[BED_WORK], "working"}, {&bed->cq[BED_TARGET], "target"},
		{&bed->recv_cq[BED_WORK], "working queue's receive"}, {&bed->recv_cq[BED_TARGET], "receive"}};
	struct rnic_cqe cqe;

	for (unsigned i = 0; i < COUNT(queues); i++)
		if (rnic_cq_find_error(queues[i].cq, &cqe))
			return probe_denies(result, "WQE %u of the %s queue: %s (%#x)", cqe.index,
				queues[i].name, rnic_syndrome_text(cqe.syndrome), cqe.vendor);
	return 1;
}

int bed_expect(const struct bed *bed, const struct rnic_cq *cq, unsigned n, const char *missing,
	struct probe_result *result)
{
	bool came = bed_has_cqe(cq, n);
	int fine = bed_fine(bed, result);

	return came || !fine ? fine : probe_denies(result, "%s", missing);
}

int probe_denies(struct probe_result *result, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(result->words, sizeof(result->words), format, ap);
	va_end(ap);
	return 0;
}

int probe_cannot(struct probe_result *result, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(result->words, sizeof(result->words), format, ap);
	va_end(ap);
	return error;
}

int probe_measured(struct probe_result *result, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(result->measured, sizeof(result->measured), format, ap);
	va_end(ap);
	return 1;
}
