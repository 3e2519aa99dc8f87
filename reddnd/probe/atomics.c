/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomics of 8 bytes: the byte order of memory and of the old value, and how they meet; and masked ones:
 * masks, field boundaries, and the old value. */
#include "mlx5/wqe.h"
#include "reddnd/probe/bed.h"

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

struct masked_words {
	uint64_t sum, swapped, kept, plain, old[3], old_plain;
};

#define OPERAND 0x0011223344556677ull
/* A lane of one byte that is full, and an addend of one for each lane: it must not carry into the second */
#define LANES 0x00000000000002ffull
#define LANES_ADD 0x0000000000000101ull
#define LANES_SUM 0x0000000000000300ull
#define LANES_BOUNDARY 0x0000000000008080ull

static void add_wqe(struct bed *bed, struct masked_words *w)
{
	uint8_t *p = bed_wqe(bed, BED_WORK, WQE_OP_MASKED_FETCH_ADD, 4, 0);

	p[WQE_OPMOD] = WQE_OPMOD_MASKED_8B;
	bed_remote(bed, p, &w->sum);
	wqe_put64(p + WQE_ATOMIC, LANES_ADD);
	wqe_put64(p + WQE_ATOMIC + 8, LANES_BOUNDARY);
	bed_sge(bed, p + 48, &w->old[0], 8);
}

/* Compares the low byte with @low and replaces the second one */
static void cas_wqe(struct bed *bed, uint64_t *word, uint8_t low, uint64_t *old, uint8_t flags)
{
	uint8_t *p = bed_wqe(bed, BED_WORK, WQE_OP_MASKED_CAS, 5, flags);

	p[WQE_OPMOD] = WQE_OPMOD_MASKED_8B;
	bed_remote(bed, p, word);
	wqe_put64(p + WQE_ATOMIC, ~OPERAND);
	wqe_put64(p + WQE_ATOMIC + 8, low);
	wqe_put64(p + WQE_ATOMIC + 16, 0xff00);
	wqe_put64(p + WQE_ATOMIC + 24, 0xff);
	bed_sge(bed, p + 64, old, 8);
}

/* In the byte order of the old values of atomics without masks, which another check reports */
static uint64_t old_value(const struct masked_words *w, unsigned i)
{
	return w->old_plain == htole64(OPERAND) ? le64toh(w->old[i]) : be64toh(w->old[i]);
}

static int run(struct bed *bed, struct probe_result *result)
{
	struct masked_words *w = (struct masked_words *)bed->memory;
	int r;

	*w = (struct masked_words){.sum = htole64(LANES),
		.swapped = htole64(OPERAND),
		.kept = htole64(OPERAND),
		.plain = htole64(OPERAND)};
	bed_add(bed, BED_WORK, 0, &w->plain, 1, &w->old_plain);
	add_wqe(bed, w);
	cas_wqe(bed, &w->swapped, OPERAND & 0xff, &w->old[1], 0);
	cas_wqe(bed, &w->kept, (OPERAND & 0xff) + 1, &w->old[2], WQE_SIGNALLED);
	r = bed_start(bed);
	if (r == 0)
		r = bed_expect(bed, &bed->cq[BED_WORK], 0, "they did not complete", result);
	if (r <= 0)
		return r;
	if (le64toh(w->sum) != LANES_SUM)
		return probe_denies(result, "a masked fetch-and-add carried across a field boundary");
	if (le64toh(w->swapped) != (OPERAND ^ 0xff00) || le64toh(w->kept) != OPERAND)
		return probe_denies(result, "a masked compare-and-swap gave the wrong result");
	if (old_value(w, 0) != LANES || old_value(w, 1) != OPERAND || old_value(w, 2) != OPERAND)
		return probe_denies(result, "a masked atomic returned another old value");
	return 1;
}

int check_masked_atomics(struct probe *probe, struct probe_result *result)
{
	if (!rnic_caps_masked_atomics(rnic_device_caps(probe->master->block.dev)))
		return probe_denies(result, "the device has none");
	return bed_use(probe, NULL, result, run, NULL);
}
