/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/live.h"

#include "reddnd/session/session.h"

struct session *live_find(const struct dispatch *d, uint64_t id)
{
	struct session *s;

	HASH_FIND(by_id, d->sessions, &id, sizeof(id), s);
	return s;
}

bool live_is_older(const struct dispatch *d, const struct session *s)
{
	return s->offload->generation != d->generation;
}

void live_add(struct dispatch *d, struct session *s)
{
	HASH_ADD(by_id, d->sessions, id, sizeof(s->id), s);
	HASH_ADD(by_qpn, d->completions.by_qpn, queues.qpn, sizeof(s->queues.qpn), s);
	d->nsessions += session_is_first(s);
	d->nolder += live_is_older(d, s);
}

void live_remove(struct dispatch *d, struct session *s)
{
	HASH_DELETE(by_id, d->sessions, s);
	HASH_DELETE(by_qpn, d->completions.by_qpn, s);
	if (s->finished)
		TAILQ_REMOVE(&d->completions.finished, s, link);
	s->finished = false;
	if (s->recycler.watched)
		TAILQ_REMOVE(&d->completions.watched, s, recycler.link);
	s->recycler.watched = false;
	d->nsessions -= session_is_first(s);
	d->nolder -= live_is_older(d, s);
}

int live_begin(struct dispatch *d, struct session *s)
{
	int r = timers_begin(&d->timers, s);

	return r == 0 ? s->engine->serve(s) : r;
}
