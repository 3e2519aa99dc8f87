/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/spares.h"

#include "reddnd/session/release.h"
#include "util/clock.h"

#include <stdlib.h>

enum { ACCURACY_US = 100000 };

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

static unsigned count(const struct spares *sp, const struct tenant *t)
{
	const struct session *c;
	unsigned n = 0;

	TAILQ_FOREACH (c, &sp->kept, link)
		n += c->tenant == t;
	return n;
}

/* The oldest of the tenant that has the most; NULL: @t itself, or no other has two more */
static struct session *displaced_by(const struct spares *sp, const struct tenant *t)
{
	unsigned most = count(sp, t) + 1, n;
	struct session *c, *found = NULL;

	TAILQ_FOREACH (c, &sp->kept, link) {
		n = count(sp, c->tenant);
		if (n <= most)
			continue;
		most = n;
		found = c;
	}
	return found;
}

/* Clients of one tenant that come and go take no places that others have use for */
static bool make_room(struct spares *sp, const struct tenant *t)
{
	struct session *displaced = sp->n == SPARES_MAX ? displaced_by(sp, t) : NULL;

	if (displaced)
		drop(sp, displaced);
	return sp->n < SPARES_MAX;
}

bool spares_put(struct spares *sp, struct session *s)
{
	if (!sp->keep_us || !s->intact || !make_room(sp, s->tenant) || session_make_spare(s) < 0)
		return false;
	s->kept_until = clock_us() + sp->keep_us;
	TAILQ_INSERT_TAIL(&sp->kept, s, link);
	sp->n++;
	if (sp->n == 1)
		wait_for_oldest(sp);
	return true;
}

/* Never across tenants: what is kept is in the protection domain of its tenant */
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
