/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of a completion queue: one for each time that it is armed, and none otherwise; and what the
 * timestamps of CQEs are. */
#include "mlx5/wqe.h"
#include "reddnd/probe/bed.h"
#include "reddnd/rnic/device.h"

#include <errno.h>
#include <inttypes.h>

enum { PAGE = 4096, LOG_CQES = 6, WQEBBS = 64, COOKIE = 0x70726f6265 };

struct armed {
	struct rnic_block block;
	struct rnic_cq cq;
	struct rnic_qp qp;
};

static int init(struct armed *a, const struct master_qp *master)
{
	const struct rnic_cq_attr cq = {.cqes_off = PAGE, .log_size = LOG_CQES, .cookie = COOKIE};
	const struct rnic_qp_attr qp = {.wq_off = 2 * PAGE,
		.sq_wqebbs = WQEBBS,
		.db_off = RNIC_DB_BYTES,
		.send_cq = &a->cq,
		.cookie = COOKIE + 1};
	int r = rnic_block_init(&a->block, master->block.pd, master->block.arena, 3 * PAGE, 0, 0);

	if (r == 0)
		r = rnic_cq_init(&a->cq, &a->block, &cq);
	if (r == 0)
		r = rnic_qp_init(&a->qp, &a->block, &qp);
	return r == 0 ? rnic_qp_connect_self(&a->qp, 1) : r;
}

/* Posts @n WQEs with a CQE each, and takes these. The last one is wrong if @fails */
static int post(struct armed *a, unsigned n, bool fails, struct probe_result *result)
{
	uint8_t w[RNIC_WQEBB_BYTES] = {
		[WQE_OPCODE] = WQE_OP_NOP, [WQE_DSCOUNT] = 1, [WQE_FLAGS] = WQE_SIGNALLED};
	struct rnic_cqe cqe;

	for (unsigned i = 0; i < n; i++) {
		if (fails && i == n - 1) {
			w[WQE_OPCODE] = WQE_OP_READ;
			w[WQE_DSCOUNT] = 3;
			wqe_put32(w + WQE_RDMA_SGE, 8);
		}
		rnic_qp_post(&a->qp, w);
	}
	for (unsigned i = 0; i < n; i++) {
		if (!bed_has_cqe(&a->cq, a->cq.consumer))
			return probe_denies(result, "a WQE has no CQE");
		rnic_cq_poll(&a->cq, &cqe);
	}
	rnic_cq_update(&a->cq);
	return 1;
}

/* Events of the CQ that come, until one more than @expected, or none for a while */
static unsigned events(const struct armed *a, unsigned expected)
{
	unsigned patience = expected ? BED_PATIENCE_MS : BED_SETTLE_MS / 2, n = 0;
	uint64_t cookie;

	for (unsigned ms = 0; ms < patience && n <= expected; ms++) {
		while (rnic_device_next_event(a->block.dev, &cookie) > 0)
			n += cookie == COOKIE;
		if (n == expected && patience > BED_SETTLE_MS)
			patience = ms + BED_SETTLE_MS / 2;
		bed_sleep(1);
	}
	return n;
}

static int expect(const struct armed *a, unsigned expected, const char *when, struct probe_result *result)
{
	unsigned n = events(a, expected);

	return n == expected ? 1 : probe_denies(result, "%u events %s, not %u", n, when, expected);
}

static int run(struct armed *a, struct probe_result *result)
{
	static const struct {
		bool arm, errors_only, fails;
		unsigned events;
		const char *when;
	} steps[] = {
		{false, false, false, 0, "of a CQ that is not armed"},
		{true, false, false, 1, "of a CQ that is armed for any CQE"},
		{false, false, false, 0, "after the one for which it was armed"},
		{true, false, false, 1, "of a CQ that is armed again"},
		{true, true, false, 0, "of a CQ that is armed for errors, without an error"},
		{true, true, true, 1, "of a CQ that is armed for errors, with an error"},
	};
	int r = 1;

	for (unsigned i = 0; i < sizeof(steps) / sizeof(steps[0]) && r > 0; i++) {
		if (steps[i].arm)
			rnic_cq_arm(&a->cq, steps[i].errors_only);
		r = post(a, 3, steps[i].fails, result);
		if (r > 0)
			r = expect(a, steps[i].events, steps[i].when, result);
	}
	return r;
}

int check_events(struct probe *probe, struct probe_result *result)
{
	struct armed a = {0};
	int r = init(&a, probe->master);

	if (r == 0)
		r = run(&a, result);
	rnic_qp_deinit(&a.qp);
	rnic_cq_deinit(&a.cq);
	rnic_block_deinit(&a.block);
	return r;
}

int check_timestamps(struct probe *probe, struct probe_result *result)
{
	const struct rnic_cq *cq = &probe->master->cq;
	struct rnic_identity id;
	struct rnic_cqe cqe;
	int r = master_qp_tick(probe->master);

	if (r == 0)
		r = rnic_identity_read(probe->master->block.dev, &id);
	if (r < 0)
		return r;
	if (!rnic_cq_peek(cq, cq->consumer - 1, &cqe))
		return probe_cannot(result, -EIO, "the CQE is gone");
	if (rnic_stamp_is_real_time(cqe.timestamp))
		return probe_denies(result, "they are seconds and nanoseconds of a real-time clock");
	return probe_measured(result, "ticks, of %" PRIu64 " kHz as the device reports", id.clock_khz);
}
