/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/release.h"

#include "reddnd/generation/generation.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/foreign.h"
#include "reddnd/session/queues.h"

#include <assert.h>

/* What it claimed of the windows of the daemon before this one, when it was taken over */
static void release_windows(struct session *s)
{
	struct rnic_device *dev = rnic_pd_device(s->domain->pd);

	for (unsigned i = 0; i < LEDGER_WINDOWS; i++) {
		uint32_t number = s->slot->session.windows[i];

		s->slot->session.windows[i] = 0;
		if (number)
			rnic_window_release(dev, ledger_slot_of(rnic_device_ledger(dev), number));
	}
}

void session_release(struct session *s)
{
	session_queues_destroy(s);
	session_cpu_free(s->cpu);
	cq_pool_refund(s->queues.pool, s->queues.pool_cq, s->queues.pool_cqes);
	if (s->adopted)
		release_windows(s);
	rnic_device_drop_slot(rnic_pd_device(s->domain->pd), s->slot);
}

void session_free(struct session *s)
{
	assert(s->state == SESSION_GONE);
	session_release(s);
	rnic_conn_free(s->client.conn);
	tenant_refund(s->tenant, &s->charge);
	if (s->adopted)
		tenant_unref(s->tenant);
	if (!s->foreign)
		generation_leave(s->offload);
	foreign_free(s->foreign);
	free(s);
}
