/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/credits.h"

#include "mlx5/wqe.h"
#include "reddnd/rnic/cq.h"
#include "reddnd/session/send-queue.h"

#include <errno.h>

int session_credits_make(struct session_credits *c, const struct rnic_block *block,
	const struct queue_layout_qp *layout, uint64_t cq_cookie, uint64_t qp_cookie)
{
	return session_send_queue_make(&c->cq, &c->qp, block, layout, false, cq_cookie, qp_cookie);
}

int session_credits_connect(struct session_credits *c)
{
	return rnic_qp_connect_self(&c->qp, 1);
}

/* The doorbell record has the low bits of the number */
int session_credits_left(uint16_t posted, uint64_t used, uint64_t ahead, uint64_t *given)
{
	const uint16_t unused = (uint16_t)(posted - used);

	*given = used + unused;
	return unused > ahead ? -EBADMSG : 0;
}

/* The last credit may be there without the doorbell: ringing again does no harm */
void session_credits_resume(struct session_credits *c, uint64_t given)
{
	c->given = given;
	if (given)
		rnic_qp_ring(&c->qp, c->qp.sq_posted);
}

void session_credits_give(struct session_credits *c, uint64_t n)
{
	static const uint8_t nop[RNIC_WQEBB_BYTES] = {
		[WQE_OPCODE] = WQE_OP_NOP, [WQE_DSCOUNT] = 1, [WQE_FLAGS] = WQE_SIGNALLED};

	c->given += n;
	while (n-- > 0)
		rnic_qp_post(&c->qp, nop);
}

void session_credits_stop(struct session_credits *c)
{
	rnic_qp_stop(&c->qp);
}

void session_credits_destroy_qp(struct session_credits *c)
{
	rnic_qp_deinit(&c->qp);
}

void session_credits_free(struct session_credits *c)
{
	rnic_qp_deinit(&c->qp);
	rnic_cq_deinit(&c->cq);
}
