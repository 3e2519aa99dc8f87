/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/session.h"

#include "reddnd/generation/bindings.h"
#include "reddnd/generation/generation.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/generation/offer.h"
#include "reddnd/session/count.h"
#include "reddnd/session/cpu.h"
#include "reddnd/session/foreign.h"
#include "reddnd/session/limits.h"
#include "reddnd/session/queues.h"
#include "util/cleanup.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stddef.h>
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

/* ---- connections ---- */

static const struct session *last_of(const struct session *first)
{
	while (first->further)
		first = first->further;
	return first;
}

static uint64_t next_connection(const struct session *first)
{
	return last_of(first)->id + (UINT64_C(1) << LEDGER_CONNECTION_SHIFT);
}

/* In the order of their numbers, also if a daemon finds them in another one */
void session_join(struct session *s, struct session *first)
{
	struct session *before = first;

	while (before->further && before->further->id < s->id)
		before = before->further;
	s->first = first;
	s->further = before->further;
	before->further = s;
	first->connections++;
	session_cpu_share_loops(s);
}

void session_note_connections(const struct session *first)
{
	if (first->slot)
		first->slot->session.further = (uint8_t)(first->connections - 1);
}

bool session_is_whole(const struct session *first)
{
	return !first->slot || first->connections > first->slot->session.further;
}

/* ---- in the ledger ---- */

static void record_program(struct session *s)
{
	const struct ledger *ledger = rnic_device_ledger(rnic_pd_device(s->domain->pd));
	const struct ledger_slot *slots[CHAIN_MAX_WINDOWS];

	s->slot->session.image = layouts_image(s->offload, &s->queues.layout);
	bindings_slots(s->offload, s->domain->pd, slots);
	for (unsigned i = 0; i < CHAIN_MAX_WINDOWS; i++)
		s->slot->session.windows[i] = ledger_number(ledger, slots[i]);
}

/* ---- beginning ---- */

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

static void release(struct session *s)
{
	s->engine->free(s);
	if (s->adopted)
		release_windows(s);
	rnic_device_drop_slot(rnic_pd_device(s->domain->pd), s->slot);
}

/* What the next daemon must know of it, besides its queues: to go on with it, or to tell its client why it
 * ends */
static int record(struct session *s, struct rnic_device *dev, const struct request *request)
{
	struct ledger_session *l;
	int r = rnic_device_take_slot(dev, LEDGER_SESSION, &s->slot);

	if (r < 0 || !s->slot)
		return r;
	l = &s->slot->session;
	l->number = s->id;
	l->secret = s->secret;
	l->since = s->since;
	l->cm_id = rnic_conn_id(s->client.conn);
	ledger_set_name(l->tenant, s->tenant->name);
	ledger_set_name(l->offload, s->offload->conf->name);
	memcpy(l->address, s->client.address, sizeof(l->address));
	l->slot_addr = request->slot_addr;
	l->slot_rkey = request->slot_rkey;
	l->slot_size = request->slot_size;
	l->depth = request->depth;
	l->slots = s->queues.layout.slots;
	return 0;
}

/* When a connection has been accepted, all end with it. So a further one is refused if its queues do not
 * begin */
static int begin(struct session *s, const struct session_parts *parts, const struct request *request)
{
	int r;

	s->pacing.state = session_is_limited(s) ? PACING_ON : PACING_NONE;
	r = s->engine->begin(s, parts, request);
	return r == 0 && !session_is_first(s) ? session_queues_started(s) : r;
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
	s->id = first ? next_connection(first) : id;
	s->first = first ? first : s;
	s->since = now;
	s->offload = a->offload;
	s->tenant = a->tenant;
	s->domain = &a->tenant->domain[parts->device];
	s->charge = a->charge;
	s->client = *client;
	s->queues.layout = *layouts_of_depth(a->offload, a->request.depth);
	s->engine = session_engine_of(a->offload->cpu, s->queues.layout.recycled);
	r = first ? 0 : begin_group(s, now);
	if (r < 0)
		return r;
	r = record(s, parts->dev, &a->request);
	if (r == 0)
		r = begin(s, parts, &a->request);
	if (r < 0) {
		release(s);
		return r;
	}
	if (s->slot && s->slot->session.recycled) {
		record_program(s);
		session_note(s);
	}
	if (s->slot)
		ledger_live(s->slot);
	generation_use(s->offload);
	if (first)
		session_join(s, first);
	session_set_state(s, SESSION_ARMED);
	*out = steal_ptr(&s);
	return 0;
}

void session_describe(const struct session *s, struct reddn_wire_rep *rep)
{
	offer_describe(s->offload, s->tenant, rep);
	rep->depth = htobe16((uint16_t)s->queues.env.slot_count);
	rep->session = htobe64(session_number(s));
	rep->secret = htobe64(s->secret);
	if (s->sends)
		rep->flags |= REDDN_REP_SENDS;
}

/* ---- ending ---- */

void session_end(struct session *s)
{
	session_set_state(s, SESSION_ENDED);
	if (s->slot)
		ledger_ending(s->slot);
	s->engine->stop(s);
	rnic_conn_disconnect(s->client.conn);
}

void session_free(struct session *s)
{
	assert(s->state == SESSION_GONE);
	release(s);
	rnic_conn_free(s->client.conn);
	tenant_refund(s->tenant, &s->charge);
	if (s->adopted)
		tenant_unref(s->tenant);
	if (!s->foreign)
		generation_leave(s->offload);
	foreign_free(s->foreign);
	free(s);
}
