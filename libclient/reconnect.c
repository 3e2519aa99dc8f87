/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"

#include "libclient/public.h"
#include "libclient/queues.h"
#include "util/clock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * While nobody answers, a pause is 1/OUTAGE_PARTS of the outage, from REDDN_PAUSE_LEAST_MS to
 * REDDN_PAUSE_MOST_MS: so the handle is back soon after the server, relative to the time that it was away,
 * and many handles ask less and less. Sessions that are lost before they have answered for REDDN_STEADY_MS,
 * and refusals, double the pause. A server that refuses is asked less often: a full one at least every
 * REFUSED_MOST_MS, and one that does not want this client not before REFUSED_LEAST_MS. LOSSES: with so many
 * sessions a request was lost. It may be the reason.
 */
enum { OUTAGE_PARTS = 64, REFUSED_LEAST_MS = 1000, REFUSED_MOST_MS = 30000, LOSSES = 4 };

/* ---- requests ---- */

static void end_request(struct reddn *c, struct reddn_request *q, int status)
{
	q->status = status;
	reddn_queue_add(&c->ended, q);
}

static void end_requests(struct reddn *c, int status)
{
	struct reddn_request *q;

	while ((q = reddn_queue_take(&c->retry)) || (q = reddn_queue_take(&c->elsewhere)))
		end_request(c, q, status);
}

static bool may_repeat(const struct reddn *c, const struct reddn_request *q)
{
	if (reddn_request_is_put(q))
		return false;
	return q->kind != REDDN_RAW || c->session.repeatable || (c->connector.opt.flags & REDDN_REPEATABLE);
}

/* A request that was sent and has no reply. */
static void take_back(struct reddn *c, struct reddn_request *q)
{
	if (c->state == REDDN_UP)
		reddn_queue_add(&c->retry, q);
	else if (c->broken)
		end_request(c, q, c->broken);
	else if (!may_repeat(c, q))
		end_request(c, q, c->give_up ? c->give_up : -EINPROGRESS);
	else if (c->loss != -ESTALE && ++q->losses == LOSSES)
		end_request(c, q, c->loss);
	else
		reddn_queue_add(&c->retry, q);
}

/* Of a session that is lost; or, if the handle is UP, late. In the order of their numbers, and before those
 * that have not been sent, or have been answered that nothing was done. */
static void take_back_all(struct reddn *c)
{
	struct reddn_queue unsent = c->retry;

	if (c->paused.first)
		reddn_queue_append(&unsent, &c->paused);
	c->paused = c->retry = (struct reddn_queue){0};
	c->pause_until = UINT64_MAX;
	for (uint32_t i = 0; i < c->session.info.connections; i++) {
		struct reddn_connection *k = &c->session.connection[i];
		struct reddn_slot *s = k->arrived_slot;

		for (uint64_t n = k->arrived; n < k->sent; n++, s = s->next) {
			struct reddn_request *q = s->request, *next;

			for (; q; q = next) {
				next = q->next;
				take_back(c, q);
			}
			s->request = NULL;
		}
	}
	if (unsent.first)
		reddn_queue_append(&c->retry, &unsent);
	if (c->broken)
		end_requests(c, c->broken);
}

/* 0, or why the session in use cannot have it, which is not the @same as the one before. */
static int fit_request(const struct reddn *c, struct reddn_request *q, bool same)
{
	const struct reddn_geometry *g = &c->session.geo;
	const struct reddn_record *r = reddn_put_record(q->key);

	q->retries = 0;
	q->dated = false;
	if (q->kind == REDDN_RAW)
		return same ? 0 : -ESTALE;
	if (reddn_request_is_put(q)) {
		q->put = (struct reddn_put){.version = q->put.version,
			.asked = q->put.version,
			.seed = q->put.seed,
			.expiry = q->put.expiry,
			.value = q->put.value,
			.memory = q->put.memory};
		if (!reddn_put_fits(g, r->key_len, r->val_len, q->kind == REDDN_NO_RECORD))
			return -EMSGSIZE;
		/* Versions are those of one store, and each has a seed of its own */
		if (q->put.version && q->put.seed != g->seed)
			return -ESTALE;
		q->len = (uint32_t)reddn_put_pad(g, q->key);
		return 0;
	}
	q->kind = (uint8_t)reddn_kind_of_keys(g);
	return q->len > g->max_key ? -EMSGSIZE : 0;
}

/* Those that wait are of another table, perhaps. */
static void fit_requests(struct reddn *c, bool same)
{
	struct reddn_queue all = c->retry;
	struct reddn_request *q;

	c->retry = (struct reddn_queue){0};
	while ((q = reddn_queue_take(&all))) {
		int r = fit_request(c, q, same);

		if (r < 0)
			end_request(c, q, r);
		else
			reddn_queue_add(&c->retry, q);
	}
}

/* ---- pauses ---- */

static bool session_has_answered(const struct reddn_session *s)
{
	uint64_t arrived = 0;

	for (uint32_t i = 0; i < s->info.connections; i++)
		arrived += s->connection[i].arrived;
	/* One of a table that has been replaced answers, too. */
	return arrived && (!reddn_session_sees_table(s) || s->seen.epoch != UINT64_MAX);
}

static void pause_for(struct reddn *c, uint64_t ms)
{
	c->connect_at = clock_ms() + reddn_jitter(ms);
	reddn_connector_alarm(&c->connector, c->connect_at);
}

static void pause_doubled(struct reddn *c, uint32_t least, uint32_t most)
{
	c->pause_ms = reddn_pause_next(c->pause_ms, least, most);
	pause_for(c, c->pause_ms);
}

static void pause_of_outage(struct reddn *c)
{
	pause_for(c, reddn_pause_within((clock_ms() - c->lost_at) / OUTAGE_PARTS, REDDN_PAUSE_LEAST_MS,
			     REDDN_PAUSE_MOST_MS));
}

/* ---- sessions ---- */

static void drop_session(struct reddn *c)
{
	struct reddn_session *s = &c->session;

	c->connector.hosts.host[s->host].sent += reddn_session_sent(s);
	reddn_queues_free(s);
}

/*
 * That of a table that was replaced is all right. To end it takes both sides long, compared with a get: so it
 * goes when the next one has answered, or a server has no room for both. But one with receives at places of
 * the caller ends before its requests do (REDDN_INTO).
 */
static void leave_session(struct reddn *c)
{
	reddn_queues_free(&c->before);
	if (c->loss == -ESTALE && !c->session.into)
		reddn_queues_unwatch(&c->session, c->connector.epoll);
	else
		drop_session(c);
}

static void keep_session_before(struct reddn *c)
{
	c->connector.hosts.host[c->session.host].sent += reddn_session_sent(&c->session);
	c->before = c->session;
}

/* It is the session in use from now on; @same: as the one before. */
static void session_begin(struct reddn *c, bool same)
{
	c->errmsg[0] = '\0';
	c->loss_len = 0;
	c->broken = 0;
	c->wanted = false;
	c->several = NULL;
	c->reconnects += c->up_since > 0;
	c->up_since = clock_ms();
	c->standby.marked = false;
	c->standby.instead = false;
	c->exceptional = true;
	fit_requests(c, same);
	/* The caller may have armed the descriptor before, and sleep on it next */
	if (reddn_queues_arm(&c->session) < 0)
		reddn_break(c, -EIO, "cannot arm the completion queue");
	if (c->standby.wanted)
		reddn_standby_watch(c);
}

/* All requests are in queues, and the standby is WARM. False: there is no memory. */
static bool take_standby(struct reddn *c)
{
	bool same = reddn_session_is_same(&c->session, &c->standby.session);

	if (reddn_requests_grow(c, &c->standby.session) < 0) {
		reddn_standby_drop(c);
		return false;
	}
	c->go_back = false;
	reddn_standby_swap(c, c->state == REDDN_AWAY);
	/* Its late replies must not find memory of the caller, who gets it back with the next one's */
	if (c->standby.session.into)
		reddn_standby_drop(c);
	if (c->state == REDDN_AWAY)
		reddn_set_state(c, REDDN_UP);
	session_begin(c, same);
	return true;
}

/* A table that has been replaced has its successor at the same host, and others may have old values yet. A
 * writer that died before it renamed the successor leaves none: of a host that still has the table that was
 * replaced, others are asked. */
static void decide_where(struct reddn *c, bool answered)
{
	struct reddn_host *host = &c->connector.hosts.host[c->session.host];
	bool stale = c->loss == -ESTALE, again = stale && c->go_back && !answered;

	c->go_back = stale && !again;
	if (again)
		host->out_until = c->lost_at + REDDN_HOST_OUT_MS;
	/* Its successor may need smaller slots, which are pinned and charged */
	if (stale)
		host->slot_size = 0;
}

static void lost(struct reddn *c)
{
	bool answered = session_has_answered(&c->session);

	take_back_all(c);
	if (c->connector.opt.flags & REDDN_NO_RECONNECT) {
		drop_session(c);
		reddn_set_state(c, REDDN_OVER);
		return;
	}
	reddn_set_state(c, REDDN_AWAY);
	decide_where(c, answered);
	if (c->standby.state == REDDN_STANDBY_WARM && !c->go_back && take_standby(c))
		return;
	leave_session(c);
	/* It is on its way to another host */
	if (c->go_back && c->connector.state != REDDN_CONNECT_IDLE)
		reddn_connector_abandon(&c->connector);
	/* A table may be replaced as often as its writer likes: a server that then has the next one is all
	 * right */
	if (!answered || (c->loss != -ESTALE && c->lost_at - c->up_since < REDDN_STEADY_MS)) {
		pause_doubled(c, REDDN_PAUSE_LEAST_MS, REDDN_PAUSE_MOST_MS);
		return;
	}
	c->pause_ms = 0;
	c->connect_at = 0;
}

/* Else the host that was lost is the last one to be asked. */
static void connect_begin(struct reddn *c)
{
	if (c->go_back)
		reddn_connector_begin(&c->connector, REDDN_THIS_HOST, c->session.host);
	else
		reddn_connector_begin(&c->connector, REDDN_ANY_HOST, c->session.host + 1);
}

/* The words of the loss stay, and behind them is what came of the last attempt. */
static void report_attempt(struct reddn *c, const char *words)
{
	snprintf(c->errmsg + c->loss_len, sizeof(c->errmsg) - c->loss_len, "%s%s",
		c->loss_len ? "; connecting again: " : "", words);
	c->go_back = false;
}

/* The server wants no session of this client: those who wait must know. */
static void refused(struct reddn *c, int error, const char *words)
{
	report_attempt(c, words);
	c->broken = error;
	end_requests(c, error);
	pause_doubled(c, REFUSED_LEAST_MS, REFUSED_MOST_MS);
}

/* Hosts that were not asked may have what was there before. */
static void another_offload(struct reddn *c, unsigned host)
{
	const char *words = "the offload is another one now: connect again";

	c->connector.hosts.host[host].out_until = clock_ms() + REDDN_HOST_OUT_MS;
	if (c->connector.hosts.left > 1) {
		report_attempt(c, words);
		pause_for(c, 0);
	} else {
		refused(c, -ESTALE, words);
	}
}

static void take_over(struct reddn *c)
{
	struct reddn_session next = reddn_connector_take(&c->connector);
	bool same = reddn_session_is_same(&c->session, &next);
	bool fits = reddn_session_can_follow(&c->session, &next);

	if (!fits || reddn_requests_grow(c, &next) < 0) {
		drop_session(c);
		reddn_queues_free(&next);
		if (fits)
			refused(c, -ESTALE, "no memory for the requests of the new session");
		else
			another_offload(c, next.host);
		return;
	}
	keep_session_before(c);
	c->session = next;
	if (c->standby.session.host == next.host)
		reddn_standby_drop(c);
	reddn_set_state(c, REDDN_UP);
	session_begin(c, same);
}

/* All hosts have answered, and will not answer in another way by themselves. */
static bool is_final(const struct reddn_connector *a)
{
	switch (a->error) {
	case -ENOENT:
	case -EACCES:
	case -ERANGE:
	case -EMSGSIZE:
	case -EPROTO:
	case -EPROTONOSUPPORT:
	case -EOPNOTSUPP:
		return a->all_answered;
	default:
		return false;
	}
}

static void failed(struct reddn *c)
{
	struct reddn_connector *a = &c->connector;
	char words[REDDN_CONNECT_WORDS];

	c->wanted = false;
	if (is_final(a) && a->error == -EMSGSIZE && a->opt.slot_size) {
		int r = reddn_fail(-ESTALE, words, sizeof(words), "slot_size %u is too small now: %s",
			a->opt.slot_size, a->words);

		refused(c, r, words);
	} else if (is_final(a) || (a->opt.flags & REDDN_NO_RECONNECT)) {
		refused(c, a->error, a->words);
	} else {
		report_attempt(c, a->words);
		if (a->all_answered && a->error != -ESHUTDOWN)
			pause_doubled(c, REDDN_PAUSE_LEAST_MS, REFUSED_MOST_MS);
		else
			pause_of_outage(c);
	}
}

/* For two sessions, on either side. */
static bool has_no_room(int error)
{
	return error == -EBUSY || error == -EDQUOT || error == -ENOMEM;
}

/* With what the session of the replaced table took, there may be room: it is asked again at once. */
static void end_attempt(struct reddn *c)
{
	bool kept = c->session.connection;

	reddn_connector_rest(&c->connector);
	drop_session(c);
	if (kept && has_no_room(c->connector.error))
		pause_for(c, 0);
	else
		failed(c);
}

/* A part that nobody asks for. One that was refused goes on to ask, as it promises */
static bool is_unused(const struct reddn *c)
{
	return c->is_part && !c->busy && !c->wanted && !c->broken;
}

/* Nobody asks why it ended, and that is no reason for what a caller asks about */
static void forget_loss(struct reddn *c)
{
	c->errmsg[0] = '\0';
	c->loss_len = 0;
	c->loss = 0;
}

static void rest(struct reddn *c)
{
	if (c->connector.alarm != UINT64_MAX)
		reddn_connector_alarm(&c->connector, UINT64_MAX);
}

static void connect_again(struct reddn *c)
{
	struct reddn_connector *a = &c->connector;

	if (c->standby.wanted)
		reddn_standby_step(c);
	if (c->standby.state == REDDN_STANDBY_WARM && !c->go_back && take_standby(c))
		return;
	if (a->state == REDDN_CONNECT_IDLE) {
		if (is_unused(c)) {
			rest(c);
			return;
		}
		if (clock_ms() < c->connect_at)
			return;
		connect_begin(c);
	}
	reddn_connector_step(a);
	if (a->state == REDDN_CONNECT_DONE) {
		take_over(c);
	} else if (a->state == REDDN_CONNECT_FAILED) {
		end_attempt(c);
	}
}

void reddn_recover(struct reddn *c)
{
	bool unused = is_unused(c);

	assert(!c->arrived && !c->held);
	if (c->state == REDDN_LOST) {
		lost(c);
		if (unused)
			forget_loss(c);
	}
	if (c->give_up) {
		end_requests(c, c->give_up);
		c->give_up = 0;
	}
	if (c->state == REDDN_AWAY)
		connect_again(c);
	else if (c->before.connection && (!c->busy || session_has_answered(&c->session)))
		reddn_queues_free(&c->before);
}

void reddn_look_after(struct reddn *c)
{
	bool instead = c->standby.instead && c->standby.state == REDDN_STANDBY_WARM;
	uint64_t now = clock_ns();

	if (instead || reddn_standby_is_due(c, now)) {
		if (!instead)
			c->connector.hosts.host[c->session.host].late +=
				reddn_session_outstanding(&c->session);
		take_back_all(c);
		if (!take_standby(c))
			reddn_break(c, -ENOMEM, "no memory for the requests of another session");
	} else if (reddn_standby_waits(&c->standby, now)) {
		reddn_check_events(c);
		reddn_standby_step(c);
	}
}
