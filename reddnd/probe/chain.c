/* SPDX-License-Identifier: BSD-2-Clause */
/* A small chain: a WAIT that must hold, two compares, copied opcodes, and an enable of the queue with them.
 */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"

#include <endian.h>

enum { HOLD_MS = 2, WRITES = 3 };

struct words {
	uint64_t hit, miss; /* operand in the low 56 bits, lane for the opcode in the high 8 */
	uint64_t old[2];
	uint64_t source, dest[2], done;
};

#define OPERAND 0x00112233445566ull
#define SOURCE 0x0123456789abcdefull

/* Copies the lane of @word into the opcode of the target's WQE */
static void lane_wqe(struct bed *bed, const uint64_t *word, unsigned target, uint8_t flags)
{
	bed_copy(bed, BED_WORK, WQE_OP_READ, flags, (const uint8_t *)word + 7,
		bed_at(bed, BED_TARGET, target) + WQE_OPCODE, 1);
}

static void write_chain(struct bed *bed, struct words *w)
{
	const uint64_t opcode = (uint64_t)WQE_OP_WRITE << 56;

	*w = (struct words){.hit = htole64(OPERAND), .miss = htole64(OPERAND + 1), .source = SOURCE};
	bed_sync(bed, WQE_OP_WAIT, 0, bed->master->cq.consumer + 1, bed->master->cq.cqn);
	bed_cas(bed, BED_WORK, 0, &w->hit, OPERAND, opcode, &w->old[0]);
	bed_cas(bed, BED_WORK, 0, &w->miss, OPERAND, opcode, &w->old[1]);
	lane_wqe(bed, &w->hit, 0, WQE_FENCE);
	lane_wqe(bed, &w->miss, 1, WQE_SIGNALLED);
	bed_sync(bed, WQE_OP_WAIT, 0, 0, bed->cq[BED_WORK].cqn);
	bed_sync(bed, WQE_OP_SEND_EN, 0, WRITES, bed->qp[BED_TARGET].qpn);
	bed_copy(bed, BED_TARGET, WQE_OP_NOP, 0, &w->dest[0], &w->source, sizeof(w->source));
	bed_copy(bed, BED_TARGET, WQE_OP_NOP, 0, &w->dest[1], &w->source, sizeof(w->source));
	bed_copy(bed, BED_TARGET, WQE_OP_WRITE, WQE_SIGNALLED, &w->done, &w->source, sizeof(w->source));
}

static int judge(const struct bed *bed, const struct words *w, struct probe_result *result)
{
	int r = bed_fine(bed, result);

	if (r <= 0)
		return r;
	if (__atomic_load_n(&w->done, __ATOMIC_ACQUIRE) != SOURCE)
		return probe_denies(result, "%s",
			le64toh(w->hit) == OPERAND
				? "a WAIT that was satisfied did not end, or a SEND_EN started nothing"
				: "a SEND_EN of a queue in mid-chain had no effect");
	if (le64toh(w->hit) != (uint64_t)WQE_OP_WRITE << 56 || le64toh(w->miss) != OPERAND + 1)
		return probe_denies(result, "a compare-and-swap gave the wrong result");
	if (w->dest[0] != SOURCE)
		return probe_denies(result,
			"a WQE was executed without the opcode it had been given before it was enabled");
	return w->dest[1] == 0 ? 1 : probe_denies(result, "a NOP was executed as something else");
}

int check_chain(struct bed *bed, struct probe_result *result)
{
	struct words *w = (struct words *)bed->memory;
	int r;

	write_chain(bed, w);
	r = bed_start(bed);
	if (r < 0)
		return r;
	bed_sleep(HOLD_MS);
	if (le64toh(w->hit) != OPERAND || w->done)
		return probe_denies(result, "a WAIT did not hold back what follows it");
	r = master_qp_tick(bed->master);
	if (r < 0)
		return r;
	bed_has_cqe(&bed->cq[BED_TARGET], 0);
	return judge(bed, w, result);
}
