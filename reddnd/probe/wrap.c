/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that wrap: WQE indices after 2^16 WQEBBs, CQE numbers after 2^24. */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"

enum {
	INDICES = 1 << 16,
	NUMBERS = 1 << 24,
	LONG_NOP = 4, /* WQEBBs */
	SMALL = 4,    /* WQEBBs of a lap before the long ones */
	LAP_NOPS = (BED_WQEBBS - SMALL) / LONG_NOP,
	CQES_PER_LAP = BED_CQES / 2, /* so that the one that is awaited is still in the CQ */
};

struct words {
	uint64_t laps, old, mark, held;
};

/* ---- indices ---------------------------------------------------------------------------- */

/* A lap of the target's ring; its last WQE has a CQE */
static void write_lap(struct bed *bed, struct words *w)
{
	bed_add(bed, BED_TARGET, 0, &w->laps, 1, &w->old);
	for (unsigned i = 1; i < SMALL; i++)
		bed_wqe(bed, BED_TARGET, WQE_OP_NOP, 1, 0);
	for (unsigned i = 0; i < LAP_NOPS; i++)
		bed_wqe(bed, BED_TARGET, WQE_OP_NOP, LONG_NOP * WQE_BB / WQE_DS,
			i == LAP_NOPS - 1 ? WQE_SIGNALLED : 0);
}

int check_wqe_wrap(struct bed *bed, struct probe_result *result)
{
	const unsigned laps = INDICES / BED_WQEBBS + 2;
	struct words *w = (struct words *)bed->memory;
	int r = 1;

	for (unsigned lap = 0; lap < laps && r > 0; lap++) {
		write_lap(bed, w);
		r = bed_enable(bed, BED_TARGET, bed->posted[BED_TARGET]);
		if (r == 0)
			r = bed_expect(bed, &bed->cq[BED_TARGET], lap,
				lap * BED_WQEBBS < INDICES - BED_WQEBBS ? "a lap of the ring did not end"
									: "the ring stopped at 2^16 WQEBBs",
				result);
	}
	if (r <= 0)
		return r;
	if (w->laps != laps)
		return probe_denies(result, "%u laps of a ring ran %u times", laps, (unsigned)w->laps);
	return probe_measured(result, "%u laps of %d WQEBBs", laps, BED_WQEBBS);
}

/* ---- CQE numbers ------------------------------------------------------------------------ */

/* @n NOPs of the target with a CQE each; waits for the last of them, which is number @last */
static int give_cqes(struct bed *bed, unsigned n, uint32_t last, struct probe_result *result)
{
	int r;

	for (unsigned i = 0; i < n; i++)
		bed_wqe(bed, BED_TARGET, WQE_OP_NOP, 1, WQE_SIGNALLED);
	bed_pad(bed, BED_TARGET, false);
	r = bed_enable(bed, BED_TARGET, bed->posted[BED_TARGET]);
	return r < 0 ? r : bed_expect(bed, &bed->cq[BED_TARGET], last, "a CQE did not come", result);
}

/* The working queue waits for number 2^24 + 1, of which a WAIT has 24 bits, before and after number 2^24 - 1
 */
int check_cqe_wrap(struct bed *bed, struct probe_result *result)
{
	struct words *w = (struct words *)bed->memory;
	uint32_t given = 0;
	int r = 1;

	w->mark = 1;
	while (given < NUMBERS && r > 0) {
		unsigned n = NUMBERS - given < CQES_PER_LAP ? NUMBERS - given : CQES_PER_LAP;

		if (given / CQES_PER_LAP == NUMBERS / CQES_PER_LAP - 1) {
			bed_sync(bed, WQE_OP_WAIT, 0, (NUMBERS + 1) & 0xffffff, bed->cq[BED_TARGET].cqn);
			bed_copy(bed, BED_WORK, WQE_OP_WRITE, WQE_SIGNALLED, &w->held, &w->mark,
				sizeof(w->mark));
			r = bed_start(bed);
			if (r < 0)
				return r;
		}
		given += n;
		r = give_cqes(bed, n, given - 1, result);
	}
	if (r > 0)
		r = give_cqes(bed, 1, NUMBERS, result);
	if (r <= 0)
		return r;
	bed_sleep(BED_SETTLE_MS);
	if (__atomic_load_n(&w->held, __ATOMIC_ACQUIRE))
		return probe_denies(result, "a WAIT for CQE 2^24 + 1 ended before that CQE was there");
	r = give_cqes(bed, 1, NUMBERS + 1, result);
	return r > 0 ? bed_expect(bed, &bed->cq[BED_WORK], 0, "a WAIT for CQE 2^24 + 1 does not end", result)
		     : r;
}
