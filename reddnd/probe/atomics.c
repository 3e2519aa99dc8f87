/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomics of 8 bytes: the byte order of memory and of the old value, and how they meet. */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"

#include <endian.h>

enum { EACH = 48 };

struct words {
	uint64_t swapped, kept, sum, shared;
	uint64_t old[3], olds[BED_QUEUES][EACH];
};

#define BEFORE 0x1122334455667788ull
#define AFTER 0xa1b2c3d4e5f60718ull
#define FULL 0x00000000ffffffffull

static int one_each(struct bed *bed, struct words *w, struct probe_result *result)
{
	int r;

	w->swapped = w->kept = htole64(BEFORE);
	w->sum = htole64(FULL);
	bed_cas(bed, BED_WORK, 0, &w->swapped, BEFORE, AFTER, &w->old[0]);
	bed_cas(bed, BED_WORK, 0, &w->kept, BEFORE + 1, AFTER, &w->old[1]);
	bed_add(bed, BED_WORK, WQE_SIGNALLED, &w->sum, 1, &w->old[2]);
	bed_pad(bed, BED_WORK, false);
	r = bed_start(bed);
	if (r == 0)
		r = bed_expect(bed, &bed->cq[BED_WORK], 0, "they did not complete", result);
	if (r <= 0)
		return r;
	if (le64toh(w->swapped) != AFTER || le64toh(w->kept) != BEFORE)
		return probe_denies(result, "a compare-and-swap gave the wrong result");
	if (le64toh(w->sum) != FULL + 1)
		return probe_denies(result, "a fetch-and-add gave the wrong sum");
	if (le64toh(w->old[0]) == BEFORE && le64toh(w->old[1]) == BEFORE && le64toh(w->old[2]) == FULL) {
		result->value = RNIC_ATOMICS_HOST;
		return 1;
	}
	if (be64toh(w->old[0]) == BEFORE && be64toh(w->old[1]) == BEFORE && be64toh(w->old[2]) == FULL) {
		result->value = RNIC_ATOMICS_SWAPPED;
		return 1;
	}
	return probe_denies(result, "an atomic returned another old value");
}

/* Two queues count on one word */
static int together(struct bed *bed, struct words *w, struct probe_result *result)
{
	int r;

	for (unsigned i = 0; i < EACH; i++)
		for (unsigned q = 0; q < BED_QUEUES; q++)
			bed_add(bed, q, i == EACH - 1 ? WQE_SIGNALLED : 0, &w->shared, 1, &w->olds[q][i]);
	r = bed_enable(bed, BED_TARGET, bed->posted[BED_TARGET]);
	if (r == 0)
		r = bed_start(bed);
	for (unsigned q = 0; q < BED_QUEUES && r >= 0; q++)
		r = bed_expect(bed, &bed->cq[q], q == BED_WORK ? 1 : 0, "they did not complete", result);
	if (r <= 0 || le64toh(w->shared) == BED_QUEUES * EACH)
		return r;
	result->value = RNIC_ATOMICS_WRONG;
	return probe_denies(result, "%d additions of 1 by two queues gave %u", BED_QUEUES * EACH,
		(unsigned)le64toh(w->shared));
}

int check_atomics(struct bed *bed, struct probe_result *result)
{
	struct words *w = (struct words *)bed->memory;
	int r = one_each(bed, w, result);

	if (r > 0)
		r = together(bed, w, result);
	if (r > 0 && result->value == RNIC_ATOMICS_SWAPPED)
		return probe_denies(result, "old values arrive big-endian");
	return r;
}
