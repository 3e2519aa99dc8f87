/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/clients.h"

#include "reddnd/server/actions.h"
#include "reddnd/server/collect.h"
#include "reddnd/server/live.h"
#include "reddnd/server/report.h"
#include "reddnd/session/session.h"
#include "reddnd/util/log.h"
#include "util/clock.h"

/* ---- connections ---- */

/* NULL: the client has been refused */
static struct session *begin(
	struct dispatch *d, const struct session_client *client, const struct admit_result *admitted)
{
	struct reddn_wire_rej rej;

	if (!admitted->offload->cpu || executors_choose(d->executors, &d->acceptor.parts.plain_events) == 0)
		return accept_begin(&d->acceptor, client, admitted, clock_us());
	request_refuse(&rej, REDDN_REJ_INTERNAL, 0, "the server could not start a thread");
	accept_refuse(&d->acceptor, client, admitted, clock_us(), &rej);
	return NULL;
}

static void on_began(struct dispatch *d, struct session *s)
{
	struct action action;

	accounting_began(s);
	report_began(d->shared->events, s);
	enforcement_begin(&d->shared->record->enforcement, s->client.address, clock_us(), &action);
	actions_take(d, s, &action);
}

static bool on_ready(void *arg, const struct session_client *client, const struct admit_result *admitted)
{
	struct dispatch *d = arg;
	struct session *s = begin(d, client, admitted);
	const char *broken = NULL;

	shared_report_unlisted(d->shared);
	if (!s)
		return false;
	/* Making the queues takes milliseconds, which are not the client's */
	s->since = clock_us();
	live_add(d, s);
	if (session_is_first(s))
		on_began(d, s);
	else
		log_at(LOG_INFO, session_number(s), "has %u connections", s->first->connections);
	pacer_post(&d->shared->pacer, s);
	if (live_begin(d, s) < 0 || accept_answer(s) < 0)
		broken = "the client could not be answered";
	else if (accept_begun(s) < 0)
		broken = "the NIC did not begin with its queues";
	if (broken) {
		actions_end(d, s, REDDN_WIRE_END_FAILED, broken);
		collect_reap(d);
	}
	return true;
}

static void on_refused(void *arg, const struct session_client *client, const struct admit_result *admitted,
	const struct reddn_wire_rej *rej)
{
	struct dispatch *d = arg;

	accept_refuse(&d->acceptor, client, admitted, clock_us(), rej);
	shared_report_unlisted(d->shared);
}

const struct arrivals_ops clients_arrivals_ops = {.ready = on_ready, .refused = on_refused};

static void on_request(void *arg, struct rnic_conn *conn, const void *data, size_t size)
{
	struct session_client client;
	struct admit_result admitted;
	struct dispatch *d = arg;

	if (accept_request(&d->acceptor, conn, data, size, clock_us(), &client, &admitted)) {
		/* Not the one of an older session that gets another connection */
		if (admitted.offload->generation == d->acceptor.generation &&
			offload_is_retired(admitted.offload))
			d->retired(d->arg);
		arrivals_add(&d->arrivals, &client, &admitted);
	} else {
		rnic_conn_free(conn);
	}
	shared_report_unlisted(d->shared);
}

static void on_established(void *arg, uint64_t number)
{
	struct dispatch *d = arg;
	struct session *s = live_find(d, number);

	if (!s || s->state != SESSION_ACCEPTED)
		return;
	ledger_established(s->slot);
	session_set_state(s, SESSION_ESTABLISHED);
	timers_set(&d->timers, s);
	log_at(LOG_DEBUG, session_number(s), "connected");
}

static void on_gone(void *arg, uint64_t number, const char *why)
{
	struct dispatch *d = arg;
	struct session *s;

	collect_drain(d);
	s = live_find(d, number);
	if (s)
		actions_left(d, s, why);
	collect_round(d);
}

const struct rnic_cm_ops clients_cm_ops = {
	.request = on_request, .established = on_established, .gone = on_gone};
