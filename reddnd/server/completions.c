/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/loop-size.h"
#include "reddnd/server/server-impl.h"
#include "reddnd/session/faults.h"
#include "reddnd/session/instances.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <sys/epoll.h>

/* While there is traffic, completions are collected in rounds; the event of the device is asked for again
 * only when a round found none. The time between rounds follows the client that is nearest to running out of
 * armed instances: shorter when it has used half of them since the last round, longer below a quarter. */
enum { ROUND_MIN_US = 25, ROUND_MAX_US = 200 };

/* A client can cause events for as long as it likes: others have their turn after so many */
enum { EVENTS_AT_ONCE = 64 };

/* ---- counters
 * ------------------------------------------------------------------------------------------------ */

static void count_requests(struct server *sv, struct session *s, uint64_t n)
{
	struct offload_stats *t = s->offload->stats;

	sv->requests += n;
	t->requests += n;
	s->tenant->requests += n;
	t->wqes += n * s->offload->outcome.wqes;
	t->bytes_in += n * s->offload->img->arg_len;
}

static void count_loop(struct session *s)
{
	uint64_t before = loop_size_wqes(s->offload->program, s->counters.iterations);
	struct offload_stats *t = s->offload->stats;

	t->iterations += session_count_loop(s);
	t->wqes += loop_size_wqes(s->offload->program, s->counters.iterations) - before;
}

/* What recycled sessions have done since the last time: they tell nobody. And what became of the requests of
 * others */
void rounds_count(void *arg, struct session *s)
{
	struct server *sv = arg;

	count_requests(sv, s, session_count(s));
	count_loop(s);
	session_count_outcomes(s);
}

void rounds_count_all(struct server *sv)
{
	struct session *s, *next;

	HASH_ITER (by_id, sv->by_id, s, next)
		rounds_count(sv, s);
}

/* ---- audit: what is finished is counted and armed again
 * ------------------------------------------------------ */

void rounds_judge(struct server *sv, struct session *s, const struct verdict *v)
{
	const struct ban *slow;

	if (s->ended)
		return;
	switch (warden_judge(&sv->warden, s, v)) {
	case VERDICT_LOG:
		break;
	case VERDICT_THROTTLE:
		slow = warden_slows(&sv->warden, rnic_conn_peer(s->client.conn));
		if (slow)
			upkeep_throttle(sv, s, slow->rate, slow->until);
		break;
	default:
		door_end(sv, s, end_reason_of_verdict(v->kind), v->text);
	}
}

unsigned rounds_drain(struct server *sv)
{
	struct session *s = NULL;
	struct rnic_cqe cqe;
	struct verdict v;
	unsigned n = 0;

	while (cq_pool_next(&sv->cq_pool, &cqe)) {
		n++;
		if (!s || s->queues.qpn != cqe.qpn || s->ended)
			HASH_FIND(by_qpn, sv->by_qpn, &cqe.qpn, sizeof(cqe.qpn), s);
		if (!s) /* flushed by a queue that has ended */
			continue;
		if (session_completed(s, &cqe, &v)) {
			rounds_judge(sv, s, &v);
			s = NULL;
			continue;
		}
		count_requests(sv, s, 1);
		if (!s->finished) {
			s->finished = true;
			TAILQ_INSERT_TAIL(&sv->dirty, s, link);
		}
	}
	if (n)
		cq_pool_update(&sv->cq_pool);
	return n;
}

/* The number of a queue that is gone may come again with the next session: no CQE of it may be left by then
 */
void rounds_reap(struct server *sv)
{
	struct session *s;

	while ((s = TAILQ_FIRST(&sv->ended))) {
		TAILQ_REMOVE(&sv->ended, s, link);
		session_destroy_qps(s);
		rounds_drain(sv);
		session_free(s);
	}
}

static void adapt(struct server *sv, unsigned eighths)
{
	if (eighths >= 4 && sv->round_us > ROUND_MIN_US)
		sv->round_us /= 2;
	else if (eighths < 2 && sv->round_us < ROUND_MAX_US)
		sv->round_us *= 2;
}

unsigned rounds_collect(struct server *sv)
{
	unsigned n = rounds_drain(sv), used = 0;
	struct session *s;
	struct verdict v;

	while ((s = TAILQ_FIRST(&sv->dirty))) {
		TAILQ_REMOVE(&sv->dirty, s, link);
		s->finished = false;
		if (session_used(s) > used)
			used = session_used(s);
		if (session_rearm(s, &v))
			rounds_judge(sv, s, &v);
		if (!s->ended)
			pace_session(&sv->pacer, s);
	}
	if (n)
		adapt(sv, used);
	rounds_reap(sv);
	return n;
}

static int schedule_round(struct server *sv)
{
	int r = sd_event_source_set_time_relative(sv->timer, sv->round_us);

	return r < 0 ? r : sd_event_source_set_enabled(sv->timer, SD_EVENT_ONESHOT);
}

static int round_due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct server *sv = arg;

	(void)source;
	(void)usec;
	if (rounds_collect(sv))
		return schedule_round(sv);
	cq_pool_arm(&sv->cq_pool);
	return rounds_collect(sv) ? schedule_round(sv) : 0;
}

static int queue_ready(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct server *sv = arg;
	struct verdict v;
	uint64_t cookie;
	int r = 0;

	(void)source;
	(void)fd;
	(void)revents;
	for (unsigned n = 0; n < EVENTS_AT_ONCE && (r = rnic_device_next_event(sv->dev, &cookie)) > 0; n++) {
		struct session *s;

		/* An error of the reply comes first, and explains the flushed RECVs that raise this event */
		rounds_drain(sv);
		if (cookie & CQ_POOL_COOKIE) {
			cq_pool_event(&sv->cq_pool, cookie);
			continue;
		}
		s = server_find(sv, cookie >> SESSION_COOKIE_BITS);
		if (s)
			rounds_count(sv, s);
		if (s && session_event(s, cookie & ((1u << SESSION_COOKIE_BITS) - 1), &v))
			rounds_judge(sv, s, &v);
		if (s && s->pacing.paced && !s->ended)
			pace_session(&sv->pacer, s);
		if (s && !s->ended)
			watch_begin(sv, s);
	}
	if (r < 0)
		return log_errno(r, "%s: cannot read its events", rnic_device_name(sv->dev));
	rounds_collect(sv);
	return schedule_round(sv);
}

static int device_ready(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct server *sv = arg;

	(void)source;
	(void)fd;
	(void)revents;
	if (!rnic_device_read_async(sv->dev))
		return 0;
	warden_device_lost(&sv->warden, rnic_device_name(sv->dev));
	return -ENODEV;
}

/* ---- life
 * ---------------------------------------------------------------------------------------------------- */

int rounds_attach(struct server *sv)
{
	int r;

	sv->round_us = ROUND_MIN_US;
	r = sd_event_add_io(
		sv->event, &sv->queue_source, rnic_device_event_fd(sv->dev), EPOLLIN, queue_ready, sv);
	if (r >= 0)
		r = sd_event_add_io(sv->event, &sv->async_source, rnic_device_async_fd(sv->dev), EPOLLIN,
			device_ready, sv);
	/* Accuracy 1: by default sd-event would let a round wait for others to share its wake-up */
	if (r >= 0)
		r = sd_event_add_time_relative(sv->event, &sv->timer, CLOCK_MONOTONIC, 0, 1, round_due, sv);
	if (r >= 0)
		r = sd_event_source_set_enabled(sv->timer, SD_EVENT_OFF);
	for (size_t i = 0; r >= 0 && i < 3; i++)
		r = sd_event_source_set_exit_on_failure(
			(sd_event_source *[]){sv->queue_source, sv->async_source, sv->timer}[i], 1);
	return r;
}

void rounds_detach(struct server *sv)
{
	sd_event_source_disable_unref(sv->timer);
	sd_event_source_disable_unref(sv->async_source);
	sd_event_source_disable_unref(sv->queue_source);
}
