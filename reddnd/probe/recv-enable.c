/* SPDX-License-Identifier: BSD-2-Clause */
/* Managed receive queues: which RECVs a RECV_EN lets a message use. */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"

enum { HOLD_MS = 2, MESSAGES = 3 };

#define SOURCE 0x0123456789abcdefull

struct words {
	uint64_t source, received[MESSAGES];
};

/* As many SENDs as RECVs, all of which are enabled from the first on */
static int write_messages(struct bed *bed, struct words *w)
{
	w->source = SOURCE;
	for (unsigned i = 0; i < MESSAGES; i++) {
		uint8_t *send = bed_wqe(bed, BED_TARGET, WQE_OP_SEND, 2, 0);

		bed_sge(bed, send + WQE_SEND_SGE, &w->source, sizeof(w->source));
		bed_sge(bed, bed_recv(bed, BED_TARGET), &w->received[i], sizeof(w->source));
	}
	return bed_enable(bed, BED_TARGET, MESSAGES);
}

static int enable(struct bed *bed, unsigned index)
{
	return master_qp_enable_recvs(bed->master, bed->qp[BED_TARGET].qpn, (uint16_t)index);
}

/* Number @n is not received. 0 with the words if it is */
static int expect_none(const struct bed *bed, unsigned n, const char *words, struct probe_result *result)
{
	struct rnic_cqe cqe;

	bed_sleep(HOLD_MS);
	return rnic_cq_peek(&bed->recv_cq[BED_TARGET], n, &cqe) ? probe_denies(result, "%s", words) : 1;
}

static int expect(const struct bed *bed, unsigned n, const char *words, struct probe_result *result)
{
	const struct words *w = (const struct words *)bed->memory;
	int r = bed_expect(bed, &bed->recv_cq[BED_TARGET], n, words, result);

	if (r <= 0 || w->received[n] == SOURCE)
		return r;
	return probe_denies(result, "a message did not arrive as it was sent");
}

static int run(struct bed *bed, struct probe_result *result)
{
	int r = write_messages(bed, (struct words *)bed->memory);

	if (r == 0)
		r = expect_none(bed, 0, "a RECV was used that no RECV_EN had enabled", result);
	for (unsigned i = 0; i < MESSAGES && r > 0; i++) {
		r = enable(bed, i + 1);
		if (r == 0)
			r = expect(bed, i,
				i ? "the next RECV_EN enabled nothing" : "a RECV_EN enabled nothing", result);
		if (r > 0 && i + 1 < MESSAGES)
			r = expect_none(bed, i + 1, "a RECV was used that no RECV_EN had enabled", result);
	}
	return r;
}

int check_recv_enable(struct probe *probe, struct probe_result *result)
{
	return bed_use(probe, &(struct bed_attr){.managed_recvs = true}, result, run, NULL);
}
