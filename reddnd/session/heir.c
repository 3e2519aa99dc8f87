/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/heir.h"

#include "reddnd/generation/generation.h"
#include "reddnd/generation/held-store.h"
#include "reddnd/generation/layouts.h"
#include "reddnd/session/extents.h"
#include "reddnd/session/foreign.h"
#include "reddnd/session/limits.h"
#include "reddnd/session/queues.h"
#include "reddnd/session/session.h"
#include "util/cleanup.h"

#include <errno.h>
#include <string.h>

_Static_assert((int)VERDICT_KINDS <= (int)LEDGER_VERDICTS, "the ledger has room for all of them");
_Static_assert((int)CHAIN_MAX_WINDOWS <= (int)LEDGER_WINDOWS, "the same of windows");

static void claim_windows(struct session *s)
{
	struct ledger *ledger = rnic_device_ledger(rnic_pd_device(s->domain->pd));

	for (unsigned i = 0; i < LEDGER_WINDOWS; i++)
		if (s->slot->session.windows[i])
			ledger_claim(ledger, ledger_slot_of(ledger, s->slot->session.windows[i]));
}

/* NULL, or why nobody can have @o */
static const char *absence(const struct offload *o)
{
	if (!o)
		return "the server was restarted, and the offload is no longer configured";
	return offload_is_disabled(o, NULL) ? "the server was restarted, and the offload is disabled" : NULL;
}

static bool has_instances_of(const struct ledger_session *l, const struct offload *o)
{
	const struct queue_layout *layout = layouts_of_slots(o, l->slots);

	return layout && o->recycled && layouts_image(o, layout) == l->image;
}

/* NULL, or why the instances of @o are not those of the session */
static const char *difference(const struct ledger_session *l, const struct offload *o)
{
	const char *why = absence(o);

	if (why)
		return why;
	return has_instances_of(l, o) ? NULL : "the server was upgraded, and the offload is another one now";
}

static bool has_part(const struct ledger_slot *slot, unsigned part)
{
	const uint64_t cookie = slot->session.number << SESSION_COOKIE_BITS | part;

	for (const struct ledger_object *o = slot->object; o < slot->object + LEDGER_OBJECTS; o++)
		if (o->type == LEDGER_CQ && o->cookie == cookie)
			return true;
	return false;
}

bool session_publishes(const struct ledger_slot *slot)
{
	return slot->session.publishes;
}

/* A loop without a bound, and a chain that publishes, go on as a daemon lets them that knows the program */
static bool needs_program(const struct ledger_slot *slot)
{
	return has_part(slot, SESSION_LOOP) || session_publishes(slot);
}

const char *session_obstacle(const struct ledger_slot *slot, const struct offload *o)
{
	const struct ledger_session *l = &slot->session;

	if (!l->accepted)
		return "the server was restarted while the session began";
	if (!l->recycled)
		return "the server was restarted, which ends sessions that are not recycled";
	if (l->depth >= l->slots)
		return "the server was restarted, and the session is not sound";
	return needs_program(slot) ? difference(l, o) : NULL;
}

const char *session_estrangement(const struct ledger_slot *slot, const struct offload *o)
{
	return needs_program(slot) ? NULL : difference(&slot->session, o);
}

/* The window of extents is behind those of regions (bindings_slots()) */
static const struct ledger_slot *extents_of(
	const struct ledger *ledger, const struct ledger_slot *slot, const struct offload *o)
{
	return ledger_slot_of(ledger, slot->session.windows[o->program->nregions]);
}

/* What a session that publishes has left */
struct left {
	const struct queue_layout *layout;
	const uint8_t *block;
	const struct ledger_window *buckets, *heap;
	struct extents_left instances;
};

/* -EBADMSG as of session_hold() */
static int left_of(struct left *f, const struct ledger *ledger, const struct ledger_slot *slot,
	const struct rnic_arena *arena, const struct offload *o)
{
	const struct ledger_slot *heap = extents_of(ledger, slot, o),
				 *buckets = ledger_slot_of(
					 ledger, slot->session.windows[o->img->publish.region]);
	const struct queue_layout *l = layouts_of_slots(o, slot->session.slots);

	if (!heap || !buckets || slot->block.size < l->size)
		return -EBADMSG;
	*f = (struct left){.layout = l,
		.block = rnic_arena_at(arena, slot->block.offset),
		.buckets = &buckets->window,
		.heap = &heap->window};
	return session_extents_left(&slot->session, o, f->block, &f->instances);
}

int session_hold(const struct ledger *ledger, const struct ledger_slot *slot, const struct rnic_arena *arena,
	const struct offload *o)
{
	const uint32_t bytes = o->img->arg_len + o->img->payload.max;
	CLEANUP(cleanup_free) struct store_held *held = NULL;
	struct left f;
	size_t n = 0;
	int r = left_of(&f, ledger, slot, arena, o);

	if (r < 0)
		return r;
	held = calloc(f.layout->slots, sizeof(*held));
	if (!held)
		return -ENOMEM;
	for (uint64_t i = f.instances.settled; i < f.instances.armed; i++) {
		const uint64_t at =
			session_extents_at(o, f.layout, f.block + f.layout->queue[0].wq_off, f.heap->iova, i);

		if (bytes > f.heap->bytes || at > f.heap->bytes - bytes)
			return -EBADMSG;
		held[n++] = (struct store_held){at, bytes};
	}
	return held_store_expect(f.heap->dev, f.heap->ino, held, n);
}

void session_let_go(const struct ledger *ledger, const struct ledger_slot *slot,
	const struct rnic_arena *arena, const struct offload *o)
{
	struct left f;

	if (!o || !session_publishes(slot) || !has_instances_of(&slot->session, o) ||
		!o->bound[o->img->payload.region].region->store || left_of(&f, ledger, slot, arena, o) < 0)
		return;
	session_extents_abandon(o, f.layout, f.block, &f.instances, f.buckets->iova, f.heap->iova);
}

bool session_is_overtaken(
	const struct ledger *ledger, const struct ledger_slot *slot, const struct generation *g)
{
	for (unsigned i = 0; i < LEDGER_WINDOWS; i++) {
		const struct ledger_slot *window = ledger_slot_of(ledger, slot->session.windows[i]);
		const struct ledger_window *w = window ? &window->window : NULL;

		if (w && stored_has_more(&g->stored, g->left,
				 &(struct stored_place){w->dev, w->ino, w->offset, w->bytes}))
			return true;
	}
	return false;
}

bool session_store_is_replaced(
	const struct rnic_device *dev, const struct ledger_slot *slot, const struct offload *o)
{
	const struct ledger *ledger = rnic_device_ledger(dev);

	for (unsigned i = 0; o && o->program && i < o->program->nregions; i++) {
		const struct ledger_slot *window = ledger_slot_of(ledger, slot->session.windows[i]);
		const struct region *r = o->bound[i].region;

		if (window && r && r->conf->store && r->file &&
			!rnic_window_is_of(dev, &window->window, r->file))
			return true;
	}
	return false;
}

static void restore_limits(struct session *s, uint64_t now)
{
	const struct ledger_limits *l = &s->slot->session.limits;

	session_limit_requests(s, l->rate, l->burst, now);
	session_limit_bytes(s, l->bytes_rate, now);
	if (l->throttle_until)
		session_throttle(s, l->throttle_rate, l->throttle_until, now);
}

static void restore_counters(struct session *s)
{
	const struct ledger_counters *l = &s->slot->session.counters;
	struct session_counters *c = &s->counters;

	c->hits = l->hits;
	c->misses = l->misses;
	c->bytes_out = l->bytes_out;
	c->unseen = l->unseen;
	c->iterations = s->engine->iterations(s);
	c->iterations = l->iterations < c->iterations ? l->iterations : c->iterations;
	c->false_alarms = s->slot->session.false_alarms;
	memcpy(c->verdicts, l->verdicts, sizeof(c->verdicts));
}

/* Whether its RECVs are paced is in the recycler. The other daemon may have died while it changed that: the
 * first section counts (session_set_paced()). -EBADMSG: the recycler is not where it was said to be. */
static int restore_pacing(struct session *s)
{
	uint8_t opcode = *session_recv_en(s, 0);

	for (unsigned g = 0; g < chain_recycle_sections(s->queues.layout.slots); g++)
		if (*session_recv_en(s, g) != WQE_OP_NOP && *session_recv_en(s, g) != WQE_OP_RECV_EN)
			return -EBADMSG;
	for (unsigned g = 1; g < chain_recycle_sections(s->queues.layout.slots); g++)
		__atomic_store_n(session_recv_en(s, g), opcode, __ATOMIC_RELEASE);
	s->pacing.state = opcode == WQE_OP_NOP ? PACING_ON : PACING_NONE;
	/* RECVs that count as posted may not be (posted_at_most()) */
	s->pacing.unsettled = session_is_paced(s);
	return 0;
}

/* Requests that are over have had their RECVs. If the ledger has fewer, the session was not paced when it was
 * written last. */
static uint64_t posted_at_most(const struct session *s, uint64_t kept)
{
	unsigned slots = s->queues.layout.slots;
	unsigned ahead = session_publishes(s->slot) ? slots / 2 : chain_recycle_together(slots);

	return kept + slots - 1 + (session_is_paced(s) ? ahead : 0);
}

/*
 * What the NIC has done is in its memory; the ledger has only what the other daemon had counted of it. It is
 * behind, but not by more than the slots if that daemon was looking, and not ahead by more than that: the
 * recycler counts a section's slots at a time.
 */
static int restore_progress(struct session *s)
{
	const struct ledger_counters *l = &s->slot->session.counters;
	unsigned slots = s->queues.layout.slots;
	uint64_t kept = session_recycled(s);
	int r = restore_pacing(s);

	s->progress.done = l->done <= kept + slots ? l->done : kept;
	s->counters.read = l->read <= s->progress.done ? l->read : s->progress.done;
	s->progress.posted =
		l->posted >= kept && l->posted <= kept + 2 * slots ? l->posted : posted_at_most(s, kept);
	s->progress.armed = s->progress.done + slots;
	return r;
}

static uint32_t key_of(const struct ledger_slot *window)
{
	for (unsigned i = 0; i < LEDGER_OBJECTS; i++)
		if (window->object[i].type == LEDGER_MR)
			return window->object[i].number;
	return 0;
}

/* Of the windows that its instances have, not those that new sessions get */
static int adopt_extents(struct session *s)
{
	const struct ledger *ledger = rnic_device_ledger(rnic_pd_device(s->domain->pd));
	const unsigned region = s->offload->img->publish.region;
	const struct ledger_slot *buckets = ledger_slot_of(ledger, s->slot->session.windows[region]),
				 *heap = extents_of(ledger, s->slot, s->offload);
	struct chain_env *env = &s->queues.env;

	if (!session_publishes(s->slot))
		return 0;
	if (!buckets || !heap || !s->offload->bound[s->offload->img->payload.region].region->store)
		return -EBADMSG;
	env->region[region].iova = buckets->window.iova;
	env->extents.iova = heap->window.iova;
	env->extents.lkey = key_of(heap);
	/* 0 is no key */
	return env->extents.lkey ? session_extents_adopt(s) : -EBADMSG;
}

static int choose_offload(struct session *s, const struct offload *o, const char *foreign)
{
	const struct ledger_slot *slot = s->slot;
	int r;

	s->offload = o;
	if (!foreign) {
		s->queues.layout = *layouts_of_slots(o, slot->session.slots);
		return 0;
	}
	r = foreign_new(&s->foreign, slot, o, foreign);
	if (r < 0)
		return r;
	s->offload = &s->foreign->offload;
	s->queues.layout = s->foreign->layout;
	return 0;
}

static void forget(struct session *s)
{
	session_loop_free(s->queues.loop);
	session_extents_forget(s);
	foreign_free(s->foreign);
	free(s);
}

DEFINE_CLEANUP(struct session *, forget)

int session_adopt(struct session **out, struct ledger_slot *slot, const struct session_parts *parts,
	const struct offload *o, const char *foreign, struct tenant *t, const struct session_client *client,
	uint64_t now)
{
	const struct ledger_session *l = &slot->session;
	const struct request request = {.slot_addr = l->slot_addr,
		.slot_rkey = l->slot_rkey,
		.slot_size = l->slot_size,
		.depth = (uint16_t)l->depth};
	CLEANUP(forgetp) struct session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->id = l->number;
	s->first = s; /* until it joins that one */
	s->secret = l->secret;
	s->connections = 1;
	s->since = l->since < now ? l->since : now;
	s->tenant = t;
	s->domain = &t->domain[parts->device];
	s->client = *client;
	s->slot = slot;
	s->adopted = true;
	s->engine = &engine_recycled;
	r = choose_offload(s, o, foreign);
	if (r < 0)
		return r;
	r = session_queues_adopt(s, parts->arena, &request);
	if (r == 0)
		r = restore_progress(s);
	if (r == 0)
		r = adopt_extents(s);
	if (r < 0)
		return r;
	s->charge = (struct tenant_charge){.sessions = session_number(s) == s->id,
		.depth = l->depth,
		.queue_bytes = layouts_bytes(s->offload, &s->queues.layout),
		.slot_bytes = (uint64_t)l->depth * l->slot_size,
		.extent_bytes = layouts_extent_bytes(s->offload, &s->queues.layout)};
	restore_counters(s);
	session_init_limits(s, now);
	restore_limits(s, now);
	ledger_claim(rnic_device_ledger(parts->dev), slot);
	claim_windows(s);
	tenant_charge_heir(t, &s->charge);
	if (!s->foreign)
		generation_use(o);
	session_queues_arm_events(s);
	session_set_state(s, SESSION_ACCEPTED);
	if (l->established)
		session_set_state(s, SESSION_ESTABLISHED);
	*out = steal_ptr(&s);
	return 0;
}

int session_look(struct session *s, struct verdict *v)
{
	struct rnic_cqe cqe;

	for (unsigned part = 0; part <= SESSION_LOOP; part++) {
		const struct rnic_cq *cq = session_cq(s, part);

		if (!cq || !rnic_cq_find_error(cq, &cqe))
			continue;
		session_fault(s, part, &cqe, v);
		return 1;
	}
	for (unsigned part = 0; part <= SESSION_LOOP; part++) {
		const struct rnic_qp *qp = session_qp(s, part);

		if (!qp || rnic_qp_is_broken(qp) <= 0)
			continue;
		verdict_set(v, VERDICT_QUEUE, true, "queue pair %#x broke while no daemon ran", qp->qpn);
		return 1;
	}
	return 0;
}
