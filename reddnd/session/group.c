/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/group.h"

#include "reddnd/session/cpu.h"

static const struct session *last_of(const struct session *first)
{
	while (first->further)
		first = first->further;
	return first;
}

uint64_t session_next_connection(const struct session *first)
{
	return last_of(first)->id + (UINT64_C(1) << LEDGER_CONNECTION_SHIFT);
}

/* In the order of their numbers, also if a daemon finds them in another one */
void session_join(struct session *s, struct session *first)
{
	struct session *before = first;

	while (before->further && before->further->id < s->id)
		before = before->further;
	s->first = first;
	s->further = before->further;
	before->further = s;
	first->connections++;
	session_cpu_share_loops(s);
}

void session_note_connections(const struct session *first)
{
	if (first->slot)
		first->slot->session.further = (uint8_t)(first->connections - 1);
}

bool session_is_whole(const struct session *first)
{
	return !first->slot || first->connections > first->slot->session.further;
}

uint64_t session_done(const struct session *s)
{
	const struct session *c;
	uint64_t done = 0;

	SESSION_CONNECTIONS(c, s)
	done += c->progress.done;
	return done;
}
