/* SPDX-License-Identifier: BSD-2-Clause */
/* How queues of the device reach each other: without an address, and by that of the port. */
#include "reddnd/probe/bed.h"

#include "mlx5/wqe.h"

enum { BYTES = 8192 /* more than a packet */ };

struct memory {
	uint64_t count, old;
	uint8_t source[BYTES], written[BYTES], read[BYTES], received[BYTES];
};

_Static_assert(sizeof(struct memory) <= BED_MEMORY, "the bed is too small");

/* Each kind of message once, of several packets */
static int run(struct bed *bed, struct probe_result *result)
{
	struct memory *m = (struct memory *)bed->memory;
	int r;

	m->source[0] = m->source[BYTES - 1] = 1;
	bed_sge(bed, bed_recv(bed, BED_TARGET), m->received, BYTES);
	rnic_qp_post_recvs(&bed->qp[BED_TARGET], bed->recvs[BED_TARGET]);
	bed_copy(bed, BED_TARGET, WQE_OP_WRITE, 0, m->written, m->source, BYTES);
	bed_copy(bed, BED_TARGET, WQE_OP_READ, 0, m->source, m->read, BYTES);
	bed_add(bed, BED_TARGET, 0, &m->count, 1, &m->old);
	bed_sge(bed, bed_wqe(bed, BED_TARGET, WQE_OP_SEND, 2, WQE_SIGNALLED) + WQE_SEND_SGE, m->source,
		BYTES);
	r = bed_enable(bed, BED_TARGET, bed->posted[BED_TARGET]);
	if (r == 0)
		r = bed_expect(bed, &bed->cq[BED_TARGET], 0, "nothing arrived", result);
	if (r > 0)
		r = bed_expect(bed, &bed->recv_cq[BED_TARGET], 0, "no message was received", result);
	if (r <= 0)
		return r;
	if (!m->written[BYTES - 1] || !m->read[BYTES - 1] || !m->received[BYTES - 1] || m->count != 1)
		return probe_denies(result, "%s did not arrive whole",
			!m->written[BYTES - 1]    ? "a WRITE"
			: !m->read[BYTES - 1]     ? "a READ"
			: !m->received[BYTES - 1] ? "a SEND"
						  : "an atomic");
	return 1;
}

int check_forced_loopback(struct probe *probe, struct probe_result *result)
{
	const struct rnic_caps *caps = rnic_device_caps(probe->master->block.dev);

	if (caps->infiniband)
		return probe_denies(result, "an InfiniBand port has none");
	if (!caps->force_loopback)
		return probe_denies(result, "the firmware reports none");
	return bed_use(probe, NULL, result, run, NULL);
}

int check_own_address(struct probe *probe, struct probe_result *result)
{
	return bed_use(probe, &(struct bed_attr){.by_address = true}, result, run, NULL);
}
