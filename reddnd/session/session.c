/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/session.h"

#include "reddnd/generation/generation.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/generation/offer.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/group.h"
#include "reddnd/session/note.h"
#include "reddnd/session/posting.h"
#include "reddnd/session/queues.h"
#include "reddnd/session/release.h"
#include "util/cleanup.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

void session_set_state(struct session *s, enum session_state to)
{
	static const unsigned after[] = {
		[SESSION_ARMED] = 1 << SESSION_MAKING,
		[SESSION_ACCEPTED] = 1 << SESSION_MAKING | 1 << SESSION_ARMED,
		[SESSION_ESTABLISHED] = 1 << SESSION_ACCEPTED,
		[SESSION_ENDED] = 1 << SESSION_ARMED | 1 << SESSION_ACCEPTED | 1 << SESSION_ESTABLISHED,
		[SESSION_GONE] = 1 << SESSION_ENDED,
	};

	assert(after[to] >> s->state & 1);
	/* a session that is adopted was armed by another daemon */
	assert(s->state != SESSION_MAKING || to == (s->adopted ? SESSION_ACCEPTED : SESSION_ARMED));
	s->state = to;
}

/* Reserves the CQEs of its replies; a recycled chain needs none */
static int charge_pool(struct session *s, struct cq_pool *pool)
{
	struct session_queues *q = &s->queues;

	q->pool = pool;
	q->pool_cqes = layouts_reply_cqes(s->offload, q->layout.slots);
	return q->pool_cqes ? cq_pool_charge(pool, q->pool_cqes, s->offload->cq_alone, &q->pool_cq) : 0;
}

/* What the next daemon must know of it, besides its queues. */
static int record(struct session *s, struct rnic_device *dev, const struct request *request)
{
	struct ledger_session *l;
	int r = rnic_device_take_slot(dev, s->offload->cpu ? LEDGER_CPU_SESSION : LEDGER_SESSION, &s->slot);

	if (r < 0 || !s->slot)
		return r;
	l = &s->slot->session;
	l->number = s->id;
	l->secret = s->secret;
	l->since = s->since;
	l->image = s->image;
	l->cm_id = rnic_conn_id(s->client.conn);
	l->recycled = s->queues.layout.recycled;
	ledger_set_name(l->tenant, s->tenant->name);
	ledger_set_name(l->offload, s->offload->conf->name);
	memcpy(l->address, s->client.address, sizeof(l->address));
	l->slot_addr = request->slot_addr;
	l->slot_rkey = request->slot_rkey;
	l->slot_size = request->slot_size;
	l->depth = request->depth;
	l->slots = s->queues.layout.slots;
	if (s->queues.pool_cq)
		l->pool_cq = ledger_number(rnic_device_ledger(dev), s->queues.pool_cq->slot);
	return 0;
}

static int begin(struct session *s, struct rnic_arena *arena, const struct request *request)
{
	int r = session_queues_make(s, arena, request);

	if (r == 0)
		r = session_queues_arm(s);
	if (r < 0)
		return r;
	session_set_paced(s, session_is_limited(s));
	r = session_queues_start(s);
	/* When a connection has been accepted, all end with it. So a further one is refused if its queues do
	 * not begin */
	return r == 0 && !session_is_first(s) ? session_queues_started(s) : r;
}

static int begin_cpu(struct session *s, const struct session_parts *parts, const struct request *request)
{
	session_set_paced(s, session_is_limited(s));
	return session_cpu_begin(s, parts, request);
}

/* What the connections of a session have in common. */
static int begin_group(struct session *s, uint64_t now)
{
	s->connections = 1;
	session_init_limits(s, now);
	return getrandom(&s->secret, sizeof(s->secret), 0) == sizeof(s->secret) ? 0 : -errno;
}

int session_new(struct session **out, uint64_t id, struct session *first, const struct session_parts *parts,
	const struct admit_result *a, const struct session_client *client, uint64_t now)
{
	CLEANUP(cleanup_free) struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	assert(a->offload->img->queue[0].cqes == 1);
	s->id = first ? session_next_connection(first) : id;
	s->first = first ? first : s;
	s->since = now;
	s->offload = a->offload;
	s->tenant = a->tenant;
	s->domain = &a->tenant->domain[parts->device];
	s->charge = a->charge;
	s->client = *client;
	s->queues.layout = *layouts_of_depth(a->offload, a->request.depth);
	s->image = layouts_image(a->offload, &s->queues.layout);
	r = first ? 0 : begin_group(s, now);
	if (r == 0)
		r = charge_pool(s, parts->cq_pool);
	if (r < 0)
		return r;
	r = record(s, parts->dev, &a->request);
	if (r == 0)
		r = a->offload->cpu ? begin_cpu(s, parts, &a->request) : begin(s, parts->arena, &a->request);
	if (r < 0) {
		session_release(s);
		return r;
	}
	if (s->slot) {
		session_record_program(s);
		session_note(s);
		ledger_live(s->slot);
	}
	generation_use(s->offload);
	if (first)
		session_join(s, first);
	session_set_state(s, SESSION_ARMED);
	*out = steal_ptr(&s);
	return 0;
}

void session_describe(const struct session *s, struct reddn_wire_rep *rep)
{
	offer_describe(s->offload, rep);
	rep->depth = htobe16((uint16_t)s->queues.env.slot_count);
	rep->session = htobe64(session_number(s));
	rep->secret = htobe64(s->secret);
	if (s->cpu && session_cpu_sends(s))
		rep->flags = REDDN_REP_SENDS;
}

void session_end(struct session *s)
{
	session_set_state(s, SESSION_ENDED);
	if (s->slot)
		ledger_ending(s->slot);
	session_queues_stop(s);
	session_cpu_stop(s->cpu);
	rnic_conn_disconnect(s->client.conn);
}
