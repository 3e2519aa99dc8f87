/* SPDX-License-Identifier: BSD-2-Clause */
/* Long WQEs: what renews a chain, and inline data; and messages that are longer than their queue pair allows
 * (QPC.log_msg_max). */
#include "mlx5/wqe.h"
#include "reddnd/probe/bed.h"

#include <string.h>

enum {
	NEEDED = 512 /* bytes of a send WQE: of a READ that renews a chain (generation/offload.c) */,
	SGES = 30,
	EACH = 16
};

struct memory {
	uint8_t source[SGES * EACH], sink[SGES][EACH];
	uint8_t inlined[NEEDED];
};

/* A READ that scatters to as many places as 512 bytes can name */
static int scatter(struct bed *bed, struct probe_result *result)
{
	struct memory *m = (struct memory *)bed->memory;
	uint8_t *w = bed_wqe(bed, BED_WORK, WQE_OP_READ, 2 + SGES, WQE_SIGNALLED);
	int r;

	bed_pad(bed, BED_WORK, false);
	bed_remote(bed, w, m->source);
	for (unsigned i = 0; i < SGES; i++)
		bed_sge(bed, w + WQE_RDMA_SGE + (size_t)i * WQE_DS, m->sink[SGES - 1 - i], EACH);
	for (unsigned i = 0; i < sizeof(m->source); i++)
		m->source[i] = (uint8_t)(i + 1);
	r = bed_start(bed);
	if (r == 0)
		r = bed_expect(bed, &bed->cq[BED_WORK], 0, "a READ of 512 bytes did not end", result);
	for (unsigned i = 0; i < SGES && r > 0; i++)
		if (memcmp(m->sink[SGES - 1 - i], m->source + (size_t)i * EACH, EACH) != 0)
			r = probe_denies(result, "data segment %u of %d got other bytes", i, SGES);
	return r;
}

/* A WRITE with all the data that a WQE of 512 bytes has room for */
static int inlined(struct bed *bed, struct probe_result *result)
{
	enum { BYTES = NEEDED - WQE_RDMA_SGE - 4 };
	struct memory *m = (struct memory *)bed->memory;
	uint8_t *w = bed_wqe(bed, BED_WORK, WQE_OP_WRITE, NEEDED / WQE_DS, WQE_SIGNALLED);
	int r;

	bed_remote(bed, w, m->inlined);
	wqe_put32(w + WQE_RDMA_SGE, WQE_INLINE | BYTES);
	for (unsigned i = 0; i < BYTES; i++)
		w[WQE_RDMA_SGE + 4 + i] = (uint8_t)(i + 7);
	r = bed_start(bed);
	if (r == 0)
		r = bed_expect(bed, &bed->cq[BED_WORK], 1, "a WRITE with inline data did not end", result);
	for (unsigned i = 0; i < BYTES && r > 0; i++)
		if (m->inlined[i] != (uint8_t)(i + 7))
			r = probe_denies(
				result, "byte %u of %d bytes of inline data is another one", i, BYTES);
	return r;
}

static int run(struct bed *bed, struct probe_result *result)
{
	int r = scatter(bed, result);

	return r > 0 ? inlined(bed, result) : r;
}

int check_long_wqes(struct probe *probe, struct probe_result *result)
{
	const struct rnic_caps *caps = rnic_device_caps(probe->master->block.dev);

	if (caps->max_sq_wqe < NEEDED)
		return probe_denies(result, "its send WQEs have %u bytes at most", caps->max_sq_wqe);
	return bed_use(probe, NULL, result, run, NULL);
}

enum { TOO_LONG = BED_MESSAGE + 1 };

struct messages {
	uint8_t source[TOO_LONG], sink[TOO_LONG];
};

_Static_assert(sizeof(struct messages) <= BED_MEMORY, "the bed is too small");

/* The longest message, then one that is longer */
static int run_messages(struct bed *bed, struct probe_result *result)
{
	struct messages *m = (struct messages *)bed->memory;
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
	return bed_use(probe, &(struct bed_attr){.limited = true}, result, run_messages, NULL);
}
