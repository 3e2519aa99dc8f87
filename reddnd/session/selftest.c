/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/selftest.h"

#include "reddnd/chain/wqe.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, WQEBBS = 16, LOG_CQES = 6, HOLD_MS = 2, PATIENCE_MS = 1000 };
enum { WORK, TARGET, NQUEUES };
enum { /* offsets in the block: doorbells, CQEs, rings, then words */
	CQES = PAGE,
	RINGS = CQES + NQUEUES * PAGE,
	WORDS = RINGS + NQUEUES * PAGE,
	SIZE = WORDS + PAGE,
};

struct words {
	uint64_t hit, miss; /* operand in the low 56 bits, lane for the opcode in the high 8 */
	uint64_t old[2];
	uint64_t source, dest[2], done;
};

#define OPERAND 0x00112233445566ull
#define SOURCE 0x0123456789abcdefull

struct rig {
	struct starter *starter;
	struct rnic_block block;
	struct rnic_cq cq[NQUEUES];
	struct rnic_qp qp[NQUEUES];
	struct words *words;
	unsigned posted[NQUEUES];
};

static uint64_t word_iova(const struct rig *rig, const void *word)
{
	return rig->block.iova + (uint64_t)((const uint8_t *)word - (rig->block.mem + rig->block.code_off));
}

/* ---- WQEs ---------------------------------------------------------------------------------------------------- */

static uint8_t *wqe(struct rig *rig, unsigned q, uint8_t opcode, uint8_t ds, uint8_t flags)
{
	uint8_t *w = rig->qp[q].sq + rig->posted[q] * RNIC_WQEBB_BYTES;

	memset(w, 0, RNIC_WQEBB_BYTES);
	wqe_put16(w + WQE_INDEX, (uint16_t)rig->posted[q]++);
	w[WQE_OPCODE] = opcode;
	wqe_put32(w + WQE_QPN_DS, rig->qp[q].qpn << 8 | ds);
	w[WQE_FLAGS] = flags;
	return w;
}

static void sync_wqe(struct rig *rig, uint8_t opcode, uint32_t index, uint32_t object)
{
	uint8_t *w = wqe(rig, WORK, opcode, 2, 0);

	wqe_put32(w + WQE_SYNC_INDEX, index);
	wqe_put32(w + WQE_SYNC_OBJECT, object);
}

static void sge(const struct rig *rig, uint8_t *at, const void *mem, uint32_t len)
{
	wqe_put32(at + WQE_SGE_LEN, len);
	wqe_put32(at + WQE_SGE_LKEY, rig->block.lkey);
	wqe_put64(at + WQE_SGE_ADDR, word_iova(rig, mem));
}

static void remote(const struct rig *rig, uint8_t *w, const void *mem)
{
	wqe_put64(w + WQE_RADDR, word_iova(rig, mem));
	wqe_put32(w + WQE_RKEY, rig->block.rkey);
}

static void cas_wqe(struct rig *rig, uint64_t *word, uint64_t *old)
{
	uint8_t *w = wqe(rig, WORK, WQE_OP_CAS, 4, 0);

	remote(rig, w, word);
	wqe_put64(w + WQE_ATOMIC, (uint64_t)WQE_OP_WRITE << 56);
	wqe_put64(w + WQE_ATOMIC + 8, OPERAND);
	sge(rig, w + 48, old, sizeof *old);
}

static void write_wqe(struct rig *rig, uint8_t opcode, uint8_t flags, uint64_t *to, const uint64_t *from)
{
	uint8_t *w = wqe(rig, TARGET, opcode, 3, flags);

	remote(rig, w, to);
	sge(rig, w + WQE_RDMA_SGE, from, sizeof *from);
}

static void lane_wqe(struct rig *rig, const uint64_t *word, unsigned target, uint8_t flags)
{
	uint8_t *w = wqe(rig, WORK, WQE_OP_READ, 3, flags);

	remote(rig, w, (const uint8_t *)word + 7);
	sge(rig, w + WQE_RDMA_SGE, rig->qp[TARGET].sq + target * RNIC_WQEBB_BYTES + WQE_OPCODE, 1);
}

static void write_chain(struct rig *rig)
{
	*rig->words = (struct words){.hit = htole64(OPERAND), .miss = htole64(OPERAND + 1), .source = SOURCE};
	sync_wqe(rig, WQE_OP_WAIT, rig->starter->cq.consumer + 1, rig->starter->cq.cqn);
	cas_wqe(rig, &rig->words->hit, &rig->words->old[0]);
	cas_wqe(rig, &rig->words->miss, &rig->words->old[1]);
	lane_wqe(rig, &rig->words->hit, 0, WQE_FENCE);
	lane_wqe(rig, &rig->words->miss, 1, WQE_SIGNALLED);
	sync_wqe(rig, WQE_OP_WAIT, 0, rig->cq[WORK].cqn);
	sync_wqe(rig, WQE_OP_SEND_EN, 3, rig->qp[TARGET].qpn);
	write_wqe(rig, WQE_OP_NOP, 0, &rig->words->dest[0], &rig->words->source);
	write_wqe(rig, WQE_OP_NOP, 0, &rig->words->dest[1], &rig->words->source);
	write_wqe(rig, WQE_OP_WRITE, WQE_SIGNALLED, &rig->words->done, &rig->words->source);
}

/* ---- the run ------------------------------------------------------------------------------------------------- */

static int rig_init(struct rig *rig, struct starter *starter)
{
	int r;

	*rig = (struct rig){.starter = starter};
	r = rnic_block_init(&rig->block, starter->block.pd, starter->block.arena, SIZE, RINGS, SIZE - RINGS);
	for (unsigned q = 0; q < NQUEUES && r == 0; q++) {
		const struct rnic_cq_attr cq = {
			.cqes_off = CQES + q * PAGE,
			.db_off = 2ull * q * RNIC_DB_BYTES,
			.log_size = LOG_CQES,
			.overrun_ignore = true,
		};
		const struct rnic_qp_attr qp = {
			.wq_off = RINGS + q * PAGE,
			.sq_wqebbs = WQEBBS,
			.db_off = (2ull * q + 1) * RNIC_DB_BYTES,
			.send_cq = &rig->cq[q],
			.managed = true,
		};

		r = rnic_cq_init(&rig->cq[q], &rig->block, &cq);
		if (r == 0)
			r = rnic_qp_init(&rig->qp[q], &rig->block, &qp);
		if (r == 0)
			r = rnic_qp_connect_self(&rig->qp[q], 4);
	}
	if (r == 0)
		rig->words = (struct words *)(rig->block.mem + WORDS);
	return r;
}

static void rig_deinit(struct rig *rig)
{
	for (unsigned q = 0; q < NQUEUES; q++)
		rnic_qp_deinit(&rig->qp[q]);
	for (unsigned q = 0; q < NQUEUES; q++)
		rnic_cq_deinit(&rig->cq[q]);
	rnic_block_deinit(&rig->block);
}

static void sleep_ms(unsigned ms)
{
	const struct timespec t = {.tv_nsec = ms * 1000000l};

	nanosleep(&t, NULL);
}

static int failed(char *why, size_t size, const char *words)
{
	snprintf(why, size, "%s", words);
	return -EIO;
}

/* What the queues say after they had time enough */
static int judge(struct rig *rig, char *why, size_t size)
{
	static const char *const names[] = {"working", "target"};
	const struct words *w = rig->words;
	struct rnic_cqe cqe;

	for (unsigned q = 0; q < NQUEUES; q++)
		if (rnic_cq_find_error(&rig->cq[q], &cqe)) {
			snprintf(why, size, "WQE %u of the %s queue: %s (%#x)", cqe.index, names[q],
				rnic_syndrome_text(cqe.syndrome), cqe.vendor);
			return -EIO;
		}
	if (__atomic_load_n(&w->done, __ATOMIC_ACQUIRE) != SOURCE)
		return failed(why, size,
			le64toh(w->hit) == OPERAND
				? "a WAIT that was satisfied did not end, or a SEND_EN started nothing"
				: "a SEND_EN of a queue in mid-chain had no effect");
	if (le64toh(w->hit) != (uint64_t)WQE_OP_WRITE << 56 || le64toh(w->miss) != OPERAND + 1)
		return failed(why, size, "a compare-and-swap gave the wrong result");
	if (w->dest[0] != SOURCE)
		return failed(why, size,
			"a WQE was executed without the opcode it had been given before it was enabled");
	if (w->dest[1] != 0)
		return failed(why, size, "a NOP was executed as something else");
	return 0;
}

static int run(struct rig *rig, char *why, size_t size)
{
	struct rnic_cqe cqe;
	int r;

	write_chain(rig);
	r = starter_enable(rig->starter, rig->qp[WORK].qpn, (uint16_t)rig->posted[WORK]);
	if (r < 0)
		return r;
	sleep_ms(HOLD_MS);
	if (le64toh(rig->words->hit) != OPERAND || rig->words->done)
		return failed(why, size, "a WAIT did not hold back what follows it");
	r = starter_tick(rig->starter);
	if (r < 0)
		return r;
	for (unsigned ms = 0; ms < PATIENCE_MS && !rnic_cq_peek(&rig->cq[TARGET], 0, &cqe); ms++)
		sleep_ms(1);
	return judge(rig, why, size);
}

int selftest_run(struct starter *starter, char *why, size_t size)
{
	struct rig rig;
	int r;

	snprintf(why, size, "the queues for it could not be made");
	r = rig_init(&rig, starter);
	if (r == 0)
		r = run(&rig, why, size);
	rig_deinit(&rig);
	return r;
}
