/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/inheritance.h"

#include "reddnd/ledger/ledger.h"
#include "reddnd/rnic/file-watch.h"
#include "reddnd/rnic/sweep.h"
#include "reddnd/server/actions.h"
#include "reddnd/server/collect.h"
#include "reddnd/server/events.h"
#include "reddnd/server/live.h"
#include "reddnd/session/heir.h"
#include "reddnd/session/session.h"
#include "reddnd/util/log.h"
#include "util/cleanup.h"
#include "util/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* ---- sessions that go on, among those of this daemon: all of them first, then they are served, since the
 * connections of one session may come in any order ---- */

/* @s was taken over. */
static void adoption_add(struct dispatch *d, struct session *s)
{
	live_add(d, s);
	if (session_number(s) == s->id)
		accounting_adopted(s);
	accounting_update(&d->shared->accounting, s);
	if (live_begin(d, s) == 0)
		return;
	if (session_number(s) == s->id)
		actions_end(d, s, REDDN_WIRE_END_FAILED, "the server has no memory left");
	else /* the first one ends because it is not whole */
		actions_drop(d, s);
}

static void serve_adopted(struct dispatch *d, struct session *s)
{
	struct verdict v;

	if (!session_is_over(s) && session_look(s, &v))
		actions_judge(d, s, &v);
	collect_watch(d, s);
	if (session_is_over(s))
		return;
	pacer_changed(&d->shared->pacer, s);
	if (budgets_begin(&d->budgets, s))
		dispatch_check_budget(d, s, clock_us());
}

/* A connection joins the first one of its session again */
static void join_adopted(struct dispatch *d, struct session *s)
{
	struct session *first = live_find(d, session_number(s));

	if (first == s)
		return;
	/* it began no session: the end of that has been reported */
	if (!first || first->tenant != s->tenant) {
		actions_drop(d, s);
		return;
	}
	session_join(s, first);
	d->nsessions--;
}

/* What clients have of a session is all of it or nothing */
static void check_adopted(struct dispatch *d, struct session *s)
{
	if (session_is_over(s) || !session_is_first(s))
		return;
	if (session_is_whole(s))
		report_adopted(d->shared->events, s);
	else
		actions_end(d, s, REDDN_WIRE_END_SHUTDOWN,
			"the server was restarted, and a connection of the session has ended");
}

/* Serves the sessions that were taken over. -errno of sd-event. */
static int adoption_serve(struct dispatch *d)
{
	struct session *s, *next;

	HASH_ITER (by_id, d->sessions, s, next)
		join_adopted(d, s);
	HASH_ITER (by_id, d->sessions, s, next)
		check_adopted(d, s);
	HASH_ITER (by_id, d->sessions, s, next)
		serve_adopted(d, s);
	collect_round(d);
	return collect_schedule(d);
}

/* Session @number, of a client with @address, is over: remembers why. */
static void adoption_end(struct dispatch *d, uint64_t number, const struct end_reason_query *query,
	const uint8_t address[16], const char *peer, const char *why)
{
	report_ended_heir(d->shared->events, number, address, peer, why);
	end_reasons_add(&d->shared->record->end_reasons, address, d->shared->record->enforcement.source_bits,
		query, REDDN_WIRE_END_SHUTDOWN, why);
}

/* ---- what was left of a device ---- */

enum { LIMIT = 3 };

#define REPLACED "the server was restarted, and the store was replaced"
#define NOT_SOUND "the server was restarted, and its queues are not as they should be"

DEFINE_CLEANUP(struct ledger_view *, ledger_view_free)

/* ---- what was left ---- */

/* @going_on: only those that go on */
static unsigned count_sessions(const struct ledger_view *v, bool going_on)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < v->head.used; i++)
		n += v->slots[i].state == LEDGER_LIVE && v->slots[i].kind == LEDGER_SESSION &&
		     (!going_on || ledger_goes_on(&v->slots[i]));
	return n;
}

static bool is_needed(const struct ledger_view *v, enum fd_store_name name)
{
	if (name == FD_STORE_DEVICE || name == FD_STORE_ARENA)
		return ledger_has_device(v);
	return name != FD_STORE_WATCHES;
}

/* NULL, or why the daemon starts afresh */
static const char *obstacle(const struct inheritance *in, const struct ledger_view *v)
{
	for (unsigned k = 0; k < FD_STORE_NAMES; k++)
		if (in->store.fd[k] < 0 && is_needed(v, (enum fd_store_name)k))
			return "a descriptor is missing";
	if (in->store.ncm == 0)
		return "the connections are missing";
	if (!ledger_is_of_this_boot(&v->head))
		return "the machine was booted since then";
	if (v->head.failed >= LIMIT)
		return "too many daemons failed to go on with it";
	return NULL;
}

static void start_afresh(struct inheritance *in, const struct ledger_view *v, const char *why)
{
	if (v && count_sessions(v, false))
		log_warning("%s: %u sessions of the daemon before this one end now: %s", in->store.name,
			count_sessions(v, false), why);
	else
		log_notice("%s: what the daemon before this one left is given up: %s", in->store.name, why);
	fd_store_device_clear(&in->store);
}

/* NULL, and the reason in @why */
static struct ledger_view *load(const struct inheritance *in, const char **why)
{
	struct ledger_view *v = NULL;

	*why = "there is no ledger";
	if (in->store.fd[FD_STORE_LEDGER] >= 0 && ledger_load(in->store.fd[FD_STORE_LEDGER], &v, why) < 0)
		log_warning("%s: the ledger that the daemon before this one left is not sound: %s",
			in->store.name, *why);
	return v;
}

void inheritance_give_up(const struct fd_store_device *left)
{
	struct inheritance in = {.store = *left};
	const char *why;
	CLEANUP(ledger_view_freep) struct ledger_view *v = load(&in, &why);

	start_afresh(&in, v, v ? "the device is not one of those that are configured now" : why);
}

void inheritance_drop(struct inheritance *in, const char *why)
{
	fd_store_drop_old_cm(&in->store);
	start_afresh(in, in->view, why);
	inheritance_deinit(in);
}

void inheritance_uncount(const struct inheritance *in, int fd)
{
	if (in->view && fd >= 0)
		ledger_set_failed(fd, in->view->head.failed);
}

bool inheritance_has_sessions(const struct inheritance *in)
{
	return in->view && count_sessions(in->view, true) > 0;
}

/* Counts the attempt before anything is done: a daemon that fails cannot */
static int begin(struct inheritance *in, struct ledger_view *v)
{
	int r = ledger_set_failed(in->store.fd[FD_STORE_LEDGER], v->head.failed + 1), n;

	if (r < 0)
		return log_errno(r, "the ledger cannot be written");
	n = ledger_has_device(v) ? rnic_sweep(in->store.fd[FD_STORE_DEVICE], v) : 0;
	if (n < 0)
		return log_errno(n, "what the daemon before this one left in the device cannot be destroyed");
	log_info("%s: going on with %u sessions of the daemon before this one; %d objects that do not go on "
		 "were destroyed",
		in->store.name, count_sessions(v, true), n);
	return 0;
}

void inheritance_take(struct inheritance *in, const struct fd_store_device *left)
{
	CLEANUP(ledger_view_freep) struct ledger_view *v = NULL;
	const char *why;

	*in = (struct inheritance){0};
	fd_store_device_init(&in->store);
	if (!left)
		return;
	in->store = *left;
	v = load(in, &why);
	if (v)
		why = obstacle(in, v);
	if (v && !why && begin(in, v) < 0)
		why = "it cannot be taken over";
	if (why)
		start_afresh(in, v, why);
	else
		in->view = steal_ptr(&v);
}

/* ---- arena and ledger ---- */

bool inheritance_has_device(const struct inheritance *in)
{
	return in->view && ledger_has_device(in->view);
}

int inheritance_open(struct inheritance *in, struct rnic_arena **arena, struct ledger **ledger)
{
	const struct ledger_view *v = in->view;
	CLEANUP(cleanup_free) struct ledger_block *used = calloc((size_t)v->head.used + 1, sizeof(*used));
	size_t n = 0;
	int r;

	if (!used)
		return -ENOMEM;
	for (uint32_t i = 0; i < v->head.used; i++)
		if (ledger_goes_on(&v->slots[i]) && v->slots[i].block.size)
			used[n++] = v->slots[i].block;
	r = inheritance_has_device(in)
		    ? rnic_arena_open(arena, in->store.fd[FD_STORE_ARENA], v->head.arena_bytes, used, n)
		    : rnic_arena_new(arena, v->head.arena_bytes);
	if (r < 0)
		return log_errno(r, "cannot go on with the arena");
	in->store.fd[FD_STORE_ARENA] = -1;
	r = ledger_open(ledger, in->store.fd[FD_STORE_LEDGER], v);
	if (r < 0)
		return log_errno(r, "cannot go on with the ledger");
	in->store.fd[FD_STORE_LEDGER] = -1;
	return 0;
}

void inheritance_open_watches(struct inheritance *in, struct rnic_device *dev)
{
	int fd = in->view ? steal_fd(&in->store.fd[FD_STORE_WATCHES]) : -1;

	if (fd < 0) {
		fd = file_watch_new();
		if (fd >= 0)
			fd_store_put(&in->store, FD_STORE_WATCHES, fd);
		else
			log_errno(fd,
				"files of regions cannot be watched: the next daemon pins them once more");
	}
	rnic_device_set_watches(dev, fd);
}

int inheritance_open_record(struct fd_store *store, bool goes_on, struct record **record)
{
	int fd, r = -ENOENT;

	if (goes_on && store->record >= 0)
		r = record_open(record, store->record);
	else
		fd_store_drop_record(store);

	if (r == 0)
		return 0;
	if (r != -ENOENT) {
		log_notice("bans and reasons of ended sessions are forgotten: another daemon wrote them");
		fd_store_drop_record(store);
	}
	r = record_new(record, &fd);
	if (r < 0)
		return log_errno(r, "cannot make a record of clients");
	fd_store_put_record(fd);
	close(fd);
	return 0;
}

/* ---- sessions ---- */

/* Its queues are destroyed first, if they have not been: once the client has the event, nothing is written to
 * it, and what it may have published is known. @o: as of adopt() */
static void end_in_words(struct dispatch *d, struct ledger_slot *slot, const struct offload *o,
	struct rnic_conn *conn, const char *why)
{
	const struct ledger_session *l = &slot->session;
	const struct end_reason_query query = {
		.session = l->number, .slot_addr = l->slot_addr, .slot_rkey = l->slot_rkey};
	uint64_t number = l->number;
	uint8_t address[16];

	memcpy(address, l->address, sizeof(address));
	if (rnic_sweep_queues(d->dev, slot) == 0)
		session_let_go(rnic_device_ledger(d->dev), slot, d->parts.arena, o);
	rnic_sweep_slot(d->dev, d->parts.arena, slot);
	/* Of several connections the first one stands for the session (session/session.h) */
	if (number <= LEDGER_SESSION_MASK)
		adoption_end(d, number, &query, address, conn ? rnic_conn_peer(conn) : "", why);
	if (conn)
		rnic_conn_free(conn);
}

/* NULL: it goes on; or why it does not. A tenant that is not configured any more is kept for its sessions, as
 * after a reload. */
static const char *take_over(const struct inheritance *in, struct dispatch *d, struct ledger_slot *slot,
	const struct offload *o, const struct session_client *client)
{
	const struct ledger_session *l = &slot->session;
	const struct session_parts *parts = &d->parts;
	const char *foreign = session_estrangement(slot, o);
	struct tenant *t = NULL;
	struct session *s;
	int r;

	if (foreign && session_is_overtaken(rnic_device_ledger(d->dev), slot, d->generation))
		return "the server was restarted, and a program stores what the session takes for its "
		       "owner's";
	if (session_store_is_replaced(d->dev, slot, o))
		return REPLACED;
	r = tenant_get(&t, in->tenants, l->tenant, in->served);

	if (r == 0)
		r = session_adopt(&s, slot, parts, o, foreign, t, client, clock_us());
	if (r == 0) {
		adoption_add(d, s);
		return NULL;
	}
	tenant_unref(t);
	return NOT_SOUND;
}

/* What a client gets that was being admitted when the daemon died */
static struct reddn_wire_rej refusal(void)
{
	struct reddn_wire_rej rej;

	request_refuse(&rej, REDDN_REJ_SHUTDOWN, 0,
		"the server was restarted before it had answered; connect again");
	return rej;
}

/* @o: the offload of that name, or NULL. @why: NULL, or why it ends. True: it goes on */
static bool adopt(const struct inheritance *in, struct dispatch *d, struct ledger_slot *slot,
	const struct offload *o, const char *why)
{
	const struct ledger_session *l = &slot->session;
	const struct reddn_wire_rej rej = refusal();
	struct session_client client = {0};

	if (rnic_cm_inherit_conn(d->cm, l->cm_id, l->number, &client.conn) < 0) {
		why = "its connection ended while no daemon ran";
	} else if (rnic_conn_refuse_inherited(client.conn, &rej, sizeof(rej))) {
		why = "the server was restarted before it had answered";
	} else if (!why) {
		client.peer = rnic_conn_peer(client.conn);
		memcpy(client.address, l->address, sizeof(client.address));
		why = take_over(in, d, slot, o, &client);
	}
	if (why)
		end_in_words(d, slot, o, client.conn, why);
	return !why;
}

/* NULL, or why the session that publishes ends */
static const char *hold(const struct dispatch *d, const struct ledger_slot *slot, const struct offload *o)
{
	const char *why = session_obstacle(slot, o);

	if (why)
		return why;
	if (session_store_is_replaced(d->dev, slot, o))
		return REPLACED;
	return session_hold(rnic_device_ledger(d->dev), slot, d->parts.arena, o) < 0 ? NOT_SOUND : NULL;
}

void inheritance_judge(struct inheritance *in, struct dispatch *d, const struct generation *g)
{
	struct ledger *ledger = rnic_device_ledger(d->dev);
	struct ledger_slot *slot = NULL;

	while (in->view && (slot = ledger_unclaimed(ledger, LEDGER_SESSION, slot))) {
		const struct offload *o = generation_offload(g, d->parts.device, slot->session.offload);
		const char *why = session_publishes(slot) ? hold(d, slot, o) : NULL;

		if (why)
			in->ended += !adopt(in, d, slot, o, why);
	}
}

static void sweep_unclaimed(struct dispatch *d, struct ledger *ledger, enum ledger_kind kind)
{
	struct ledger_slot *slot;

	while ((slot = ledger_unclaimed(ledger, kind, NULL))) {
		ledger_claim(ledger, slot);
		rnic_sweep_slot(d->dev, d->parts.arena, slot);
	}
}

int inheritance_adopt(
	struct inheritance *in, struct dispatch *d, const struct served *served, struct tenant **tenants)
{
	struct ledger *ledger = rnic_device_ledger(d->dev);
	const struct reddn_wire_rej rej = refusal();
	struct ledger_slot *slot = NULL;
	unsigned adopted = 0, ended = in->ended, refused;
	int r;

	if (!in->view)
		return 0;
	in->served = served;
	in->tenants = tenants;
	while ((slot = ledger_unclaimed(ledger, LEDGER_SESSION, slot))) {
		const struct offload *o =
			generation_offload(d->generation, d->parts.device, slot->session.offload);

		++*(adopt(in, d, slot, o, session_obstacle(slot, o)) ? &adopted : &ended);
	}
	refused = rnic_cm_refuse_old(d->cm, &rej, sizeof(rej));
	r = adoption_serve(d);
	if (r >= 0)
		r = rnic_cm_leave_old(d->cm);
	if (r < 0)
		return log_errno(r, "cannot serve the sessions of the daemon before this one");
	fd_store_drop_old_cm(&in->store);
	sweep_unclaimed(d, ledger, LEDGER_WINDOW);
	sweep_unclaimed(d, ledger, LEDGER_TENANT);
	ledger_head(ledger)->failed = 0;
	ledger_head(ledger)->distrusted = 0;
	if (refused)
		log_notice("%s: %u clients that the daemon before this one was admitting are refused",
			in->store.name, refused);
	log_notice("%s: %u sessions of the daemon before this one go on, %u have ended", in->store.name,
		adopted, ended);
	return 0;
}

void inheritance_deinit(struct inheritance *in)
{
	if (in->view)
		ledger_view_free(in->view);
	in->view = NULL;
}
