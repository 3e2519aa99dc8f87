/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/service.h"

#include "reddnd/policy/offload-stats.h"
#include "reddnd/rnic/stamps.h"
#include "reddnd/session/cpu.h"

static void add(struct session *s, uint64_t ns, uint64_t n)
{
	service_times_add(&s->counters.service, ns, n);
	service_times_add(&s->offload->stats->service, ns, n);
	service_times_add(&s->tenant->service, ns, n);
}

void session_served(struct session *s, uint64_t n, const struct rnic_cqe *reply)
{
	struct rnic_device *dev = rnic_pd_device(s->domain->pd);
	struct rnic_cqe request;
	uint64_t ns;

	if (!reply->error && rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &request) && !request.error &&
		rnic_stamps_between(dev, request.timestamp, reply->timestamp, &ns))
		add(s, ns, 1);
}

/* The NIC goes on meanwhile. The ring of RECVs is not the larger one: if its CQE is still there after that of
 * the reply was read, both are of instance @n. */
static void sample(struct session *s, uint64_t n)
{
	struct rnic_cqe reply, before, after;

	if (rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &before) &&
		rnic_cq_peek(&s->recycler.reply_cq, (uint32_t)n, &reply) &&
		rnic_cq_peek(&s->queues.cq[0], (uint32_t)n, &after) && after.timestamp == before.timestamp)
		session_served(s, n, &reply);
}

void session_served_since(struct session *s, uint64_t from)
{
	uint64_t done = s->progress.done, slots = s->queues.layout.slots;

	for (uint64_t n = done > from + slots ? done - slots : from; n < done; n++)
		sample(s, n);
}

/* Those that were taken together, and completed together, are counted together */
void session_served_by_cpu(struct session *s, uint64_t from)
{
	uint64_t n, timed = session_cpu_timed(s);

	from = from < timed ? timed : from;
	for (; from < s->progress.done; from += n) {
		uint64_t ns = session_cpu_took(s, from);

		for (n = 1; from + n < s->progress.done && session_cpu_took(s, from + n) == ns;)
			n++;
		add(s, ns, n);
	}
}
