/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/spares.h"

#include "util/clock.h"

#include <stdlib.h>

/* Of many sessions that end at once the first are kept */
enum { SPARES_MAX = 64, ACCURACY_US = 100000 };

static void drop(struct spares *sp, struct session *s)
{
	TAILQ_REMOVE(&sp->kept, s, link);
	sp->n--;
	session_free_spare(s);
}

/* The timer runs only while there are any */
static void wait_for_oldest(struct spares *sp)
{
	const struct session *s = TAILQ_FIRST(&sp->kept);

	if (s && sd_event_source_set_time(sp->timer, s->kept_until) >= 0)
		sd_event_source_set_enabled(sp->timer, SD_EVENT_ONESHOT);
}

static int on_due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct spares *sp = arg;
	uint64_t now = clock_us();
	struct session *s;

	(void)source;
	(void)usec;
	while ((s = TAILQ_FIRST(&sp->kept)) && s->kept_until <= now)
		drop(sp, s);
	wait_for_oldest(sp);
	return 0;
}

int spares_init(struct spares *sp, sd_event *event)
{
	int r;

	TAILQ_INIT(&sp->kept);
	r = sd_event_add_time_relative(event, &sp->timer, CLOCK_MONOTONIC, 0, ACCURACY_US, on_due, sp);
	return r < 0 ? r : sd_event_source_set_enabled(sp->timer, SD_EVENT_OFF);
}

void spares_deinit(struct spares *sp)
{
	if (sp->timer)
		spares_clear(sp);
	sp->timer = sd_event_source_disable_unref(sp->timer);
}

bool spares_put(struct spares *sp, struct session *s)
{
	if (!sp->keep_us || sp->n == SPARES_MAX || session_make_spare(s) < 0)
		return false;
	s->kept_until = clock_us() + sp->keep_us;
	TAILQ_INSERT_TAIL(&sp->kept, s, link);
	sp->n++;
	if (sp->n == 1)
		wait_for_oldest(sp);
	return true;
}

static bool fits(const struct session *spare, const struct session *s)
{
	return spare->tenant == s->tenant && spare->image == s->image && !s->offload->cpu;
}

bool spares_take(struct spares *sp, struct session *s)
{
	struct session *spare;

	TAILQ_FOREACH (spare, &sp->kept, link)
		if (fits(spare, s))
			break;
	if (!spare)
		return false;
	s->queues = spare->queues;
	s->recycler = spare->recycler;
	s->slot = spare->slot;
	TAILQ_REMOVE(&sp->kept, spare, link);
	sp->n--;
	tenant_unref(spare->tenant);
	free(spare);
	return true;
}

bool spares_clear(struct spares *sp)
{
	bool any = sp->n > 0;

	while (sp->n)
		drop(sp, TAILQ_FIRST(&sp->kept));
	return any;
}
