/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/master-qp.h"

#include "mlx5/wqe.h"
#include "reddnd/util/log.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

enum { LOG_CQES = 6, WQEBBS = 64, PAGE = 4096, POLLS_BEFORE_NAPS = 1000, NAPS = 20000, NAP_NS = 50000 };

static void destroy_queues(struct master_qp *m)
{
	rnic_qp_deinit(&m->qp);
	rnic_cq_deinit(&m->cq);
}

static int make_queues(struct master_qp *m)
{
	const struct rnic_cq_attr cq = {.cqes_off = PAGE, .db_off = 0, .log_size = LOG_CQES};
	const struct rnic_qp_attr qp = {
		.wq_off = 2 * PAGE,
		.sq_wqebbs = WQEBBS,
		.db_off = RNIC_DB_BYTES,
		.send_cq = &m->cq,
	};
	int r = rnic_cq_init(&m->cq, &m->block, &cq);

	if (r == 0)
		r = rnic_qp_init(&m->qp, &m->block, &qp);
	if (r == 0)
		r = rnic_qp_connect_self(&m->qp, 1);
	if (r < 0)
		destroy_queues(m);
	return r;
}

/* The next daemon makes its own: the slot never becomes LIVE */
int master_qp_init(struct master_qp *m, struct rnic_pd *pd, struct rnic_arena *arena)
{
	int r;

	*m = (struct master_qp){.dev = rnic_pd_device(pd)};
	r = rnic_device_take_slot(m->dev, LEDGER_OWN, &m->slot);
	if (r == 0)
		r = rnic_block_init_in(m->slot, &m->block, pd, arena, 2 * PAGE + WQEBBS * RNIC_WQEBB_BYTES,
			PAGE, 0, RNIC_BLOCK_LOCAL);
	if (r == 0)
		r = make_queues(m);
	if (r < 0)
		master_qp_deinit(m);
	return r;
}

void master_qp_deinit(struct master_qp *m)
{
	destroy_queues(m);
	rnic_block_deinit(&m->block);
	rnic_device_drop_slot(m->dev, m->slot);
	*m = (struct master_qp){0};
}

/* Waits for the CQE of the last WQE: a second at least. It counts naps and reads no clock: when a machine or
 * a container stands still, the time of the clock goes on, and the device may be the last to run again. */
static int wait_cqe(struct master_qp *m)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	const uint16_t posted = (uint16_t)(m->qp.sq_posted - 1);
	struct rnic_cqe cqe;
	unsigned polls = 0;

	while (!rnic_cq_poll(&m->cq, &cqe) || (!cqe.error && cqe.index != posted)) {
		if (++polls < POLLS_BEFORE_NAPS)
			continue;
		if (polls == POLLS_BEFORE_NAPS + NAPS) {
			log_error("timed out waiting for a completion of the master QP");
			return -ETIMEDOUT;
		}
		nanosleep(&nap, NULL);
	}
	rnic_cq_update(&m->cq);
	if (cqe.error) {
		log_error("the master QP failed: %s (%#x)", rnic_syndrome_text(cqe.syndrome), cqe.vendor);
		return -EIO;
	}
	return 0;
}

static int be_ready(struct master_qp *m)
{
	return m->qp.dev ? 0 : make_queues(m);
}

/* After an error the SQ executes nothing more, and after a timeout a CQE may still come: the queues are
 * destroyed, and made again for the next WQE. */
int master_qp_wait(struct master_qp *m)
{
	int r = m->waits ? wait_cqe(m) : 0;

	m->waits = 0;
	if (r < 0)
		destroy_queues(m);
	return r;
}

static void post(struct master_qp *m, const uint8_t wqe[static RNIC_WQEBB_BYTES])
{
	assert(m->waits < WQEBBS);
	m->waits++;
	rnic_qp_post(&m->qp, wqe);
}

static void post_enable(struct master_qp *m, uint8_t opcode, uint32_t qpn, uint16_t index)
{
	uint8_t wqe[RNIC_WQEBB_BYTES] = {
		[WQE_OPCODE] = opcode, [WQE_DSCOUNT] = 2, [WQE_FLAGS] = WQE_SIGNALLED};

	wqe_put32(wqe + WQE_SYNC_INDEX, index);
	wqe_put32(wqe + WQE_SYNC_OBJECT, qpn);
	post(m, wqe);
}

int master_qp_post(struct master_qp *m, uint32_t qpn, uint16_t index)
{
	int r = be_ready(m);

	if (r == 0)
		post_enable(m, WQE_OP_SEND_EN, qpn, index);
	return r;
}

int master_qp_post_recvs(struct master_qp *m, uint32_t qpn, uint16_t index)
{
	int r = be_ready(m);

	if (r == 0)
		post_enable(m, WQE_OP_RECV_EN, qpn, index);
	return r;
}

int master_qp_enable(struct master_qp *m, uint32_t qpn, uint16_t index)
{
	int r = master_qp_post(m, qpn, index);

	return r == 0 ? master_qp_wait(m) : r;
}

int master_qp_enable_recvs(struct master_qp *m, uint32_t qpn, uint16_t index)
{
	int r = master_qp_post_recvs(m, qpn, index);

	return r == 0 ? master_qp_wait(m) : r;
}

int master_qp_tick(struct master_qp *m)
{
	const uint8_t wqe[RNIC_WQEBB_BYTES] = {
		[WQE_OPCODE] = WQE_OP_NOP, [WQE_DSCOUNT] = 1, [WQE_FLAGS] = WQE_SIGNALLED};

	int r = be_ready(m);

	if (r < 0)
		return r;
	post(m, wqe);
	return master_qp_wait(m);
}
