/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/standby.h"

#include "libclient/connection.h"
#include "libclient/memory.h"
#include "libclient/queues.h"
#include "util/clock.h"

/*
 * LATE_LEAST_US, LATE_TIMES: when a session is late. DEAD_US: then requests are sent again whatever the
 * budget is. Of SENT_PER_CREDIT requests one may be sent again, and at once CREDIT_MOST, or all that are
 * outstanding.
 * LATE_MOST_MS: after that a session that is late is given up.
 * OLD_MS: so long a host whose table was too old is asked last.
 */
enum {
	LATE_LEAST_US = 5000,
	LATE_TIMES = 8,
	DEAD_US = 200000,
	SENT_PER_CREDIT = 20,
	CREDIT_MOST = 256,
	LATE_MOST_MS = 1000,
	OLD_MS = 1000,
	BATCH = 16,
};

uint64_t reddn_sent(const struct reddn *c)
{
	uint64_t sent = reddn_session_sent(&c->session) + reddn_session_sent(&c->standby.session);

	for (unsigned i = 0; i < c->connector.hosts.n; i++)
		sent += c->connector.hosts.host[i].sent;
	return sent;
}

static void standby_set(struct reddn_standby *y, enum reddn_standby_state state)
{
	y->state = state;
	y->since = clock_ms();
}

/* ---- the watch ---- */

static void watch_mark(struct reddn *c, uint64_t now)
{
	struct reddn_standby *y = &c->standby;

	y->marked = reddn_session_outstanding(&c->session) > 0;
	y->marked_at = now;
	for (uint32_t i = 0; i < c->session.info.connections; i++)
		c->session.connection[i].mark = c->session.connection[i].sent;
}

static bool watch_is_met(const struct reddn_session *s)
{
	for (uint32_t i = 0; i < s->info.connections; i++)
		if (s->connection[i].arrived < s->connection[i].mark)
			return false;
	return true;
}

/* A step up for one that is slower, a 99th of it down for one that is not: in balance 1 of 100 is slower. */
static void watch_learn(struct reddn_standby *y, uint64_t ns)
{
	if (ns > y->usual)
		y->usual += y->usual * 99 / 1024 + 1000;
	else
		y->usual -= y->usual / 1024;
}

static uint64_t watch_limit(const struct reddn_standby *y)
{
	uint64_t ns = LATE_TIMES * y->usual;

	ns = ns > LATE_LEAST_US * 1000ull ? ns : LATE_LEAST_US * 1000ull;
	return ns < DEAD_US * 1000ull ? ns : DEAD_US * 1000ull;
}

/* Only what may be executed twice can be sent again while it may still be executed. */
static bool watch_is_useful(const struct reddn *c)
{
	return reddn_session_sees_table(&c->session) || c->session.repeatable ||
	       (c->connector.opt.flags & REDDN_REPEATABLE);
}

static bool watch_has_credit(struct reddn *c)
{
	struct reddn_standby *y = &c->standby;
	uint64_t more = (reddn_sent(c) - y->credited) / SENT_PER_CREDIT;
	uint64_t requests = reddn_session_outstanding(&c->session);
	uint64_t most = requests > CREDIT_MOST ? requests : CREDIT_MOST;

	y->credited += more * SENT_PER_CREDIT;
	y->credit = y->credit + more < most ? y->credit + more : most;
	if (requests > y->credit)
		return false;
	y->credit -= requests;
	return true;
}

bool reddn_standby_is_due(struct reddn *c, uint64_t now)
{
	struct reddn_standby *y = &c->standby;
	uint64_t age = now - y->marked_at;

	if (watch_is_met(&c->session)) {
		if (y->marked)
			watch_learn(y, age);
		watch_mark(c, now);
		return false;
	}
	if (y->state != REDDN_STANDBY_WARM || age < watch_limit(y) || !watch_is_useful(c))
		return false;
	return watch_has_credit(c) || age >= DEAD_US * 1000ull;
}

/* ---- the session ---- */

void reddn_standby_swap(struct reddn *c, bool gone)
{
	struct reddn_standby *y = &c->standby;
	struct reddn_session before = c->session;

	c->session = y->session;
	y->session = before;
	y->pause_ms = 0;
	y->instead = false;
	y->stepped_at = clock_ns();
	standby_set(y, gone ? REDDN_STANDBY_GONE : REDDN_STANDBY_LATE);
}

void reddn_standby_drop(struct reddn *c)
{
	struct reddn_standby *y = &c->standby;

	if (y->state == REDDN_STANDBY_NONE)
		return;
	c->connector.hosts.host[y->session.host].sent += reddn_session_sent(&y->session);
	reddn_queues_free(&y->session);
	standby_set(y, REDDN_STANDBY_NONE);
}

/* It is gone: not at once again, if it has not lasted. */
static void standby_lost(struct reddn *c)
{
	struct reddn_standby *y = &c->standby;
	uint64_t now = clock_ms();

	if (y->state != REDDN_STANDBY_NONE && now - y->since > REDDN_STEADY_MS)
		y->pause_ms = 0;
	reddn_standby_drop(c);
	y->pause_ms = reddn_pause_next(y->pause_ms, REDDN_PAUSE_LEAST_MS, REDDN_PAUSE_MOST_MS);
	y->connect_at = now + reddn_jitter(y->pause_ms);
}

/* A reply that nobody waits for, or room for more requests. False: it is out of order. */
static bool standby_take(struct reddn_session *s, const struct ibv_wc *wc)
{
	struct reddn_connection *k =
		(struct reddn_connection *)(uintptr_t)(wc->wr_id & ~(uint64_t)REDDN_SEND);
	struct reddn_slot *slot = k->arrived_slot;

	if (wc->status != IBV_WC_SUCCESS)
		return false;
	if (wc->wr_id & REDDN_SEND) {
		k->reclaimed += s->signal_every;
		return true;
	}
	if (k->arrived == k->sent || reddn_session_number(s, wc) != (uint32_t)k->arrived)
		return false;
	k->arrived++;
	k->arrived_slot = slot->next;
	return !slot->refill || reddn_post_receives(k) == 0;
}

/* False: it is lost. */
static bool standby_drain(struct reddn_session *s)
{
	struct ibv_wc wc[BATCH];
	int n;

	if (reddn_queues_events(s) < 0 || s->hangup || reddn_queues_arm(s) < 0)
		return false;
	do {
		n = ibv_poll_cq(s->cq, BATCH, wc);
		for (int i = 0; i < n; i++)
			if (!standby_take(s, &wc[i]))
				return false;
	} while (n == BATCH);
	return n >= 0;
}

static void standby_look(struct reddn *c)
{
	struct reddn_standby *y = &c->standby;

	if (y->state == REDDN_STANDBY_GONE || !standby_drain(&y->session) ||
		(y->state == REDDN_STANDBY_LATE && clock_ms() - y->since > LATE_MOST_MS))
		standby_lost(c);
	else if (y->state == REDDN_STANDBY_LATE && !reddn_session_outstanding(&y->session))
		standby_set(y, REDDN_STANDBY_WARM);
}

static void standby_connected(struct reddn *c)
{
	struct reddn_standby *y = &c->standby;

	y->session = reddn_connector_take(&c->connector);
	standby_set(y, REDDN_STANDBY_WARM);
	/* Another program is nothing that this handle could use */
	if (!reddn_session_can_follow(&c->session, &y->session))
		c->connector.hosts.host[y->session.host].out_until = y->since + REDDN_HOST_OUT_MS;
	else if (y->session.host != c->session.host && reddn_memory_begin(c, &y->session) == 0 &&
		 reddn_queues_arm(&y->session) == 0)
		return;
	standby_lost(c);
}

/* It is not needed for a part that nobody uses, which may end by that */
static bool standby_is_needed(const struct reddn *c)
{
	return !c->is_part || c->busy;
}

static void standby_connect(struct reddn *c)
{
	struct reddn_connector *a = &c->connector;
	struct reddn_standby *y = &c->standby;

	if (a->state == REDDN_CONNECT_IDLE) {
		if (clock_ms() < y->connect_at || !standby_is_needed(c))
			return;
		reddn_connector_begin(a, REDDN_OTHER_HOST, c->session.host);
		if (a->state == REDDN_CONNECT_IDLE)
			standby_lost(c);
	}
	reddn_connector_step(a);
	if (a->state == REDDN_CONNECT_DONE) {
		standby_connected(c);
	} else if (a->state == REDDN_CONNECT_FAILED) {
		reddn_connector_rest(a);
		standby_lost(c);
	}
}

/* ---- tables that are too old ---- */

static bool has_other_host(const struct reddn *c, uint64_t now)
{
	const struct reddn_hosts *h = &c->connector.hosts;

	for (unsigned i = 0; i < h->n; i++)
		if (i != c->session.host && h->host[i].out_until <= now)
			return true;
	return false;
}

bool reddn_standby_instead(struct reddn *c)
{
	struct reddn_standby *y = &c->standby;
	uint64_t now = clock_ms();

	if (!y->wanted)
		return false;
	c->connector.hosts.host[c->session.host].out_until = now + OLD_MS;
	if (!has_other_host(c, now))
		return false;
	/* One that was lost, or could not be connected, is not waited for */
	if (y->state == REDDN_STANDBY_NONE && c->connector.state == REDDN_CONNECT_IDLE && y->connect_at > now)
		return false;
	if (y->state != REDDN_STANDBY_NONE && c->connector.hosts.host[y->session.host].out_until > now)
		reddn_standby_drop(c);
	return y->instead = true;
}

/* ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void reddn_standby_watch(struct reddn *c)
{
	struct reddn_standby *y = &c->standby;
	struct reddn_connector *a = &c->connector;
	uint64_t at = UINT64_MAX, now = clock_ms();

	y->unwatched = !c->busy && c->state == REDDN_UP;
	if (c->state != REDDN_UP)
		return;
	if (a->state != REDDN_CONNECT_IDLE)
		at = a->until;
	else if (y->state == REDDN_STANDBY_NONE && standby_is_needed(c))
		at = y->connect_at;
	if (c->busy)
		at = earlier(at, now + watch_limit(y) / 1000000 + 1);
	c->exceptional |= y->unwatched;
	/* An earlier one that is to come does no harm */
	if (a->alarm <= now || at < a->alarm)
		reddn_connector_alarm(a, at);
}

void reddn_standby_step(struct reddn *c)
{
	struct reddn_standby *y = &c->standby;

	y->stepped_at = clock_ns();
	if (y->state != REDDN_STANDBY_NONE)
		standby_look(c);
	if (c->state != REDDN_UP)
		return;
	if (y->state == REDDN_STANDBY_NONE)
		standby_connect(c);
	reddn_standby_watch(c);
}
