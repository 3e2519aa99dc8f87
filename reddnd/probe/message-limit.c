/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that are longer than their queue pair allows (QPC.log_msg_max). */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"

enum { TOO_LONG = BED_MESSAGE + 1 };

struct memory {
	uint8_t source[TOO_LONG], sink[TOO_LONG];
};

_Static_assert(sizeof(struct memory) <= BED_MEMORY, "the bed is too small");

/* The longest message, then one that is longer */
static int run(struct bed *bed, struct probe_result *result)
{
	struct memory *m = (struct memory *)bed->memory;
	struct rnic_cqe cqe;
	int r;

	m->source[BED_MESSAGE - 1] = m->source[TOO_LONG - 1] = 1;
	bed_copy(bed, BED_TARGET, WQE_OP_WRITE, WQE_SIGNALLED, m->sink, m->source, BED_MESSAGE);
	bed_copy(bed, BED_TARGET, WQE_OP_WRITE, WQE_SIGNALLED, m->sink, m->source, TOO_LONG);
	r = bed_enable(bed, BED_TARGET, 1);
	if (r == 0)
		r = bed_expect(bed, &bed->cq[BED_TARGET], 0, "the longest message was not sent", result);
	if (r <= 0)
		return r;
	if (!m->sink[BED_MESSAGE - 1])
		return probe_denies(result, "the longest message did not arrive");
	r = bed_enable(bed, BED_TARGET, 2);
	if (r < 0)
		return r;
	/* A device that flushes more than was enabled has written over the first CQEs */
	if (!bed_has_cqe(&bed->cq[BED_TARGET], 1) && !rnic_cq_find_error(&bed->cq[BED_TARGET], &cqe))
		return probe_denies(result, "a message that is too long was never completed");
	if (!rnic_cq_find_error(&bed->cq[BED_TARGET], &cqe) || m->sink[TOO_LONG - 1])
		return probe_denies(result,
			"a message of %d bytes was sent over a queue pair with a limit of %d", TOO_LONG,
			BED_MESSAGE);
	return probe_measured(result, "%s", rnic_syndrome_text(cqe.syndrome));
}

int check_message_limit(struct probe *probe, struct probe_result *result)
{
	return bed_use(probe, &(struct bed_attr){.limited = true}, result, run, NULL);
}
