/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/restart.h"

#include "reddnd/generation/layouts.h"
#include "reddnd/session/instances.h"
#include "reddnd/session/queues-code.h"
#include "reddnd/session/queues.h"

/* A queue that fails leaves any number of CQEs, more than its CQ has entries, and the recycler may take them
 * for replies */
static bool has_failed(struct session *s)
{
	struct rnic_cqe cqe;

	for (unsigned part = 0; part <= SESSION_REPLIES; part++) {
		const struct rnic_cq *cq = session_cq(s, part);

		if (cq && rnic_cq_find_error(cq, &cqe))
			return true;
	}
	return false;
}

/* Of those done there is a reply. Of all that were received there may be one: the NIC may have executed each,
 * as it does not wait for a client that acknowledges nothing, and instances may overlap. A RECV that was
 * flushed counts as received, as it does for them. */
static int restart_cqs(struct session *s)
{
	const struct chain_image *img = s->offload->img;
	struct rnic_cq *recv_cq = &s->queues.cq[0];
	const uint32_t first = recv_cq->first;
	uint64_t done, received;
	int r;

	session_count(s);
	done = s->progress.done;
	r = rnic_cq_restart(recv_cq, done, done + s->queues.layout.slots);
	received = done + ((recv_cq->first - first - (uint32_t)done) & 0xffffff);
	for (unsigned q = 1; q < img->nqueues && r == 0; q++)
		r = rnic_cq_restart(
			&s->queues.cq[q], session_code_cqes(s, q, done), session_code_cqes(s, q, received));
	if (r < 0 || !s->queues.layout.recycled)
		return r;
	r = rnic_cq_restart(&s->recycler.cq, 0, UINT64_MAX);
	return r == 0 ? rnic_cq_restart(&s->recycler.reply_cq, done, received) : r;
}

static int make_again(struct session *s)
{
	session_queues_destroy_code(s);
	return session_queues_make_code(s);
}

/* A recycled ring can begin with some numbers of CQEs only */
static int restart_recycled(struct session *s)
{
	const struct chain_template *t;
	struct chain_env env = {0};
	int r;

	if (has_failed(s))
		return make_again(s);
	r = restart_cqs(s);
	if (r == 0)
		r = layouts_template(s->offload, &s->queues.layout, &t);
	if (r < 0)
		return r;
	session_queues_begin_at(s, &env);
	return chain_template_fits(t, &env) ? 0 : make_again(s);
}

int session_restart(struct session *s)
{
	/* each number in an unrolled chain is written by itself */
	int r = s->queues.layout.recycled ? restart_recycled(s) : restart_cqs(s);

	if (r == 0)
		r = session_queues_connect_code(s);
	s->queues.connected = r == 0;
	return r;
}
