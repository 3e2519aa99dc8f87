/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/turns.h"

#include "reddnd/util/log.h"

#include <sys/epoll.h>

enum { EVENTS_AT_ONCE = 256 };

static void add(struct turns *t, struct session *s)
{
	if (s->ready)
		return;
	s->ready = true;
	TAILQ_INSERT_TAIL(&t->ready, s, turn);
}

void turns_remove(struct turns *t, struct session *s)
{
	if (s->ready)
		TAILQ_REMOVE(&t->ready, s, turn);
	s->ready = false;
}

/* Those that are ready now, one turn each. One may be removed in the turn of another. */
static void serve_round(struct turns *t)
{
	struct session *last = TAILQ_LAST(&t->ready, turns_ready), *s;

	while ((s = TAILQ_FIRST(&t->ready))) {
		bool is_last = s == last;

		turns_remove(t, s);
		if (t->ops->serve(t->arg, s))
			add(t, s);
		if (is_last)
			break;
	}
	t->ops->round(t->arg);
}

static int go_on(struct turns *t)
{
	return sd_event_source_set_enabled(t->more, TAILQ_EMPTY(&t->ready) ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static int on_more(sd_event_source *source, void *arg)
{
	struct turns *t = arg;

	(void)source;
	serve_round(t);
	return go_on(t);
}

static int on_events(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct turns *t = arg;
	uint64_t number;
	int r = 0;

	(void)source;
	(void)fd;
	(void)revents;
	for (unsigned n = 0; n < EVENTS_AT_ONCE && (r = rnic_plain_events_next(t->events, &number)) > 0;
		n++) {
		struct session *s = t->ops->find(t->arg, number);

		if (s)
			add(t, s);
	}
	if (r < 0)
		return log_errno(r, "completions of queues cannot be read");
	return go_on(t);
}

int turns_init(
	struct turns *t, sd_event *event, struct rnic_device *dev, const struct turns_ops *ops, void *arg)
{
	int r = rnic_plain_events_new(&t->events, dev);

	TAILQ_INIT(&t->ready);
	t->ops = ops;
	t->arg = arg;
	if (r < 0)
		return r;
	r = sd_event_add_io(event, &t->source, rnic_plain_events_fd(t->events), EPOLLIN, on_events, t);
	if (r >= 0)
		r = sd_event_add_defer(event, &t->more, on_more, t);
	if (r >= 0)
		r = sd_event_source_set_enabled(t->more, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_source_set_exit_on_failure(t->source, 1);
	if (r >= 0)
		r = sd_event_source_set_exit_on_failure(t->more, 1);
	return r < 0 ? log_errno(r, "cannot watch completions") : 0;
}

void turns_deinit(struct turns *t)
{
	sd_event_source_disable_unref(t->more);
	sd_event_source_disable_unref(t->source);
	rnic_plain_events_free(t->events);
}
