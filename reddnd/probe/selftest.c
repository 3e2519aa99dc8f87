/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/probe/selftest.h"

#include "mlx5/wqe.h"
#include "reddnd/probe/bed.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { HOLD_MS = 2, WQEBBS_OF_WRITES = 3, SENDS = 2 };

struct words {
	uint64_t hit, miss; /* operand in the low 56 bits, lane for the opcode in the high 8 */
	uint64_t old[2];
	uint64_t source, dest[2], done;
	uint64_t sum, swapped; /* by masked atomics */
	uint64_t received[SENDS];
};

#define OPERAND 0x00112233445566ull
#define SOURCE 0x0123456789abcdefull
/* A lane of one byte that is full, and an addend of one for each lane */
#define LANES 0x00000000000002ffull
#define LANES_ADD 0x0000000000000101ull
#define LANES_SUM 0x0000000000000300ull
#define LANES_BOUNDARY 0x0000000000008080ull

struct test {
	struct bed bed;
	struct words *words;
	bool masked;
};

/* ---- WQEs
 * ---------------------------------------------------------------------------------------------------- */

static void cas_wqe(struct test *t, uint64_t *word, uint64_t *old)
{
	uint8_t *w = bed_wqe(&t->bed, BED_WORK, WQE_OP_CAS, 4, 0);

	bed_remote(&t->bed, w, word);
	wqe_put64(w + WQE_ATOMIC, (uint64_t)WQE_OP_WRITE << 56);
	wqe_put64(w + WQE_ATOMIC + 8, OPERAND);
	bed_sge(&t->bed, w + 48, old, sizeof(*old));
}

/* The first of two lanes is full: it must not carry into the second */
static void masked_add_wqe(struct test *t)
{
	uint8_t *w = bed_wqe(&t->bed, BED_WORK, WQE_OP_MASKED_FETCH_ADD, 4, 0);

	w[WQE_OPMOD] = WQE_OPMOD_MASKED_8B;
	bed_remote(&t->bed, w, &t->words->sum);
	wqe_put64(w + WQE_ATOMIC, LANES_ADD);
	wqe_put64(w + WQE_ATOMIC + 8, LANES_BOUNDARY);
	bed_sge(&t->bed, w + 48, &t->words->old[0], 8);
}

/* Compares the low byte and replaces the second one */
static void masked_cas_wqe(struct test *t)
{
	uint8_t *w = bed_wqe(&t->bed, BED_WORK, WQE_OP_MASKED_CAS, 5, 0);

	w[WQE_OPMOD] = WQE_OPMOD_MASKED_8B;
	bed_remote(&t->bed, w, &t->words->swapped);
	wqe_put64(w + WQE_ATOMIC, ~OPERAND);
	wqe_put64(w + WQE_ATOMIC + 8, OPERAND & 0xff);
	wqe_put64(w + WQE_ATOMIC + 16, 0xff00);
	wqe_put64(w + WQE_ATOMIC + 24, 0xff);
	bed_sge(&t->bed, w + 64, &t->words->old[1], 8);
}

static void write_wqe(struct test *t, uint8_t opcode, uint8_t flags, uint64_t *to)
{
	uint8_t *w = bed_wqe(&t->bed, BED_TARGET, opcode, 3, flags);

	bed_remote(&t->bed, w, to);
	bed_sge(&t->bed, w + WQE_RDMA_SGE, &t->words->source, 8);
}

static void lane_wqe(struct test *t, const uint64_t *word, unsigned target, uint8_t flags)
{
	uint8_t *w = bed_wqe(&t->bed, BED_WORK, WQE_OP_READ, 3, flags);

	bed_remote(&t->bed, w, (const uint8_t *)word + 7);
	bed_sge(&t->bed, w + WQE_RDMA_SGE, bed_at(&t->bed, BED_TARGET, target) + WQE_OPCODE, 1);
}

static void sync_wqe(struct test *t, uint8_t opcode, uint32_t index, uint32_t object)
{
	bed_sync(&t->bed, opcode, 0, index, object);
}

/* As many SENDs as RECVs. One RECV is enabled now, the other when the master QP ticks again */
static void write_messages(struct test *t)
{
	struct bed *bed = &t->bed;
	uint32_t target = bed->qp[BED_TARGET].qpn;

	for (unsigned i = 0; i < SENDS; i++) {
		uint8_t *w = bed_wqe(bed, BED_TARGET, WQE_OP_SEND, 2, 0);

		bed_sge(bed, w + WQE_SEND_SGE, &t->words->source, 8);
		bed_sge(bed, bed->qp[BED_TARGET].rq + (size_t)i * WQE_DS, &t->words->received[i], 8);
	}
	sync_wqe(t, WQE_OP_RECV_EN, 1, target);
	sync_wqe(t, WQE_OP_SEND_EN, WQEBBS_OF_WRITES + SENDS, target);
	sync_wqe(t, WQE_OP_WAIT, bed->master->cq.consumer + 2, bed->master->cq.cqn);
	sync_wqe(t, WQE_OP_RECV_EN, 2, target);
}

static void write_chain(struct test *t)
{
	struct bed *bed = &t->bed;
	struct words *w = t->words;

	*w = (struct words){.hit = htole64(OPERAND),
		.miss = htole64(OPERAND + 1),
		.source = SOURCE,
		.sum = htole64(LANES),
		.swapped = htole64(OPERAND)};
	sync_wqe(t, WQE_OP_WAIT, bed->master->cq.consumer + 1, bed->master->cq.cqn);
	cas_wqe(t, &w->hit, &w->old[0]);
	cas_wqe(t, &w->miss, &w->old[1]);
	lane_wqe(t, &w->hit, 0, WQE_FENCE);
	lane_wqe(t, &w->miss, 1, WQE_SIGNALLED);
	sync_wqe(t, WQE_OP_WAIT, 0, bed->cq[BED_WORK].cqn);
	if (t->masked) {
		masked_add_wqe(t);
		masked_cas_wqe(t);
	}
	bed_wqe(bed, BED_WORK, WQE_OP_NOP, 1, WQE_FENCE | WQE_SIGNALLED);
	sync_wqe(t, WQE_OP_WAIT, 1, bed->cq[BED_WORK].cqn);
	sync_wqe(t, WQE_OP_SEND_EN, WQEBBS_OF_WRITES, bed->qp[BED_TARGET].qpn);
	write_wqe(t, WQE_OP_NOP, 0, &w->dest[0]);
	write_wqe(t, WQE_OP_NOP, 0, &w->dest[1]);
	write_wqe(t, WQE_OP_WRITE, WQE_SIGNALLED, &w->done);
	write_messages(t);
}

/* ---- the run
 * ------------------------------------------------------------------------------------------------- */

/* Checks the queues and the memory after the chain had time to finish */
static int judge(struct test *t, char *why, size_t size)
{
	const struct words *w = t->words;
	int r = bed_errors(&t->bed, why, size);

	if (r < 0)
		return r;
	if (__atomic_load_n(&w->done, __ATOMIC_ACQUIRE) != SOURCE)
		return bed_failed(why, size,
			le64toh(w->hit) == OPERAND
				? "a WAIT that was satisfied did not end, or a SEND_EN started nothing"
				: "a SEND_EN of a queue in mid-chain had no effect");
	if (le64toh(w->hit) != (uint64_t)WQE_OP_WRITE << 56 || le64toh(w->miss) != OPERAND + 1)
		return bed_failed(why, size, "a compare-and-swap gave the wrong result");
	if (w->dest[0] != SOURCE)
		return bed_failed(why, size,
			"a WQE was executed without the opcode it had been given before it was enabled");
	if (w->dest[1] != 0)
		return bed_failed(why, size, "a NOP was executed as something else");
	if (t->masked && le64toh(w->sum) != LANES_SUM)
		return bed_failed(why, size, "a masked fetch-and-add carried across a field boundary");
	if (t->masked && le64toh(w->swapped) != (OPERAND ^ 0xff00))
		return bed_failed(why, size, "a masked compare-and-swap gave the wrong result");
	return 0;
}

/* Checks that one RECV is enabled first, and then the next */
static int judge_recvs(struct test *t, char *why, size_t size)
{
	struct rnic_cqe cqe;
	int r;

	if (!bed_has_cqe(&t->bed.recv_cq, 0)) {
		r = bed_errors(&t->bed, why, size);
		return r < 0 ? r : bed_failed(why, size, "a RECV_EN enabled nothing");
	}
	bed_sleep(HOLD_MS);
	if (rnic_cq_peek(&t->bed.recv_cq, 1, &cqe))
		return bed_failed(why, size, "a RECV was used that no RECV_EN had enabled");
	r = master_qp_tick(t->bed.master);
	if (r < 0)
		return r;
	if (!bed_has_cqe(&t->bed.recv_cq, 1)) {
		r = bed_errors(&t->bed, why, size);
		return r < 0 ? r : bed_failed(why, size, "the second RECV_EN enabled nothing");
	}
	return t->words->received[0] == SOURCE && t->words->received[1] == SOURCE
		       ? 0
		       : bed_failed(why, size, "a message did not arrive as it was sent");
}

static int run(struct test *t, char *why, size_t size)
{
	int r;

	write_chain(t);
	r = bed_start(&t->bed);
	if (r < 0)
		return r;
	bed_sleep(HOLD_MS);
	if (le64toh(t->words->hit) != OPERAND || t->words->done)
		return bed_failed(why, size, "a WAIT did not hold back what follows it");
	r = master_qp_tick(t->bed.master);
	if (r < 0)
		return r;
	bed_has_cqe(&t->bed.cq[BED_TARGET], 0);
	r = judge(t, why, size);
	if (r == 0)
		r = judge_recvs(t, why, size) < 0;
	return r;
}

int selftest_run(struct master_qp *master, bool masked, char *why, size_t size)
{
	struct test t = {.masked = masked};
	int r;

	snprintf(why, size, "the queues for it could not be made");
	r = bed_init(&t.bed, master);
	t.words = (struct words *)t.bed.memory;
	if (r == 0)
		r = run(&t, why, size);
	bed_deinit(&t.bed);
	return r;
}
