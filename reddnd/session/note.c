/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/note.h"

#include "reddnd/generation/bindings.h"

#include <stddef.h>
#include <string.h>

_Static_assert(offsetof(struct ledger_counters, read) + sizeof(uint64_t) == sizeof(struct ledger_counters),
	"what was read is stored behind what was found in it");

/* The daemon may be killed in the middle: each number is the old one or the new one, and those in front are
 * written first. Outcomes that it had counted since the last time are counted again if it is killed before it
 * writes how many those were: at most as many as there are slots */
static void keep(void *to, const void *from, size_t bytes)
{
	const uint64_t *new = from;
	uint64_t *old = to;

	for (size_t i = 0; i < bytes / sizeof(*old); i++)
		__atomic_store_n(&old[i], new[i], __ATOMIC_RELEASE);
}

static void note(const struct session *s, struct ledger_session *l)
{
	const struct session_counters *c = &s->counters;
	const struct ledger_limits limits = {.rate = s->limits.configured.rate,
		.burst = s->limits.configured.burst,
		.bytes_rate = s->limits.bytes.per_second,
		.throttle_rate = s->limits.throttle.rate,
		.throttle_until = s->limits.throttle.until};
	struct ledger_counters counters = {.done = s->progress.done,
		.posted = s->progress.posted,
		.read = c->read,
		.hits = c->hits,
		.misses = c->misses,
		.bytes_out = c->bytes_out,
		.unseen = c->unseen,
		.iterations = c->iterations};

	memcpy(counters.verdicts, c->verdicts, sizeof(c->verdicts));
	keep(&l->limits, &limits, sizeof(limits));
	l->false_alarms = c->false_alarms;
	keep(&l->counters, &counters, sizeof(counters));
}

void session_note(struct session *s)
{
	if (s->slot)
		note(s, &s->slot->session);
}

static void record_writes(struct ledger_recycler *r, const struct outcome_plan *plan)
{
	if (plan->nwrites > LEDGER_WRITES || plan->reply_wqebbs > UINT16_MAX)
		return;
	r->reply_wqebbs = (uint16_t)plan->reply_wqebbs;
	for (unsigned i = 0; i < plan->nwrites; i++)
		r->writes[i] = (struct ledger_write){.wqebb = (uint16_t)plan->writes[i].wqebb,
			.segments = plan->writes[i].nsge,
			.conditional = plan->writes[i].conditional};
	r->nwrites = (uint16_t)plan->nwrites;
}

/* For a daemon that does not have the program any more */
static void record_recycler(struct session *s)
{
	const struct queue_layout *l = &s->queues.layout;
	struct ledger_recycler *r = &s->slot->session.recycler;

	if (!l->recycled)
		return;
	*r = (struct ledger_recycler){.progress = l->lanes_off + l->recycling.progress,
		.log = l->lanes_off + l->recycling.log,
		.request_bytes = s->offload->img->arg_len,
		.reply_bytes = s->offload->slot_need,
		.wqes = (uint16_t)s->offload->outcome.wqes};
	_Static_assert(sizeof(r->recv_en) == sizeof(l->recycling.recv_en), "the ledger has each section");
	memcpy(r->recv_en, l->recycling.recv_en, sizeof(r->recv_en));
	record_writes(r, &s->offload->outcome);
}

void session_record_program(struct session *s)
{
	const struct ledger *ledger = rnic_device_ledger(rnic_pd_device(s->domain->pd));
	const struct ledger_slot *slots[CHAIN_MAX_WINDOWS];

	bindings_slots(s->offload, s->domain->pd, slots);
	for (unsigned i = 0; i < CHAIN_MAX_WINDOWS; i++)
		s->slot->session.windows[i] = ledger_number(ledger, slots[i]);
	record_recycler(s);
}
