/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/into.h"

#include "libclient/public.h"
#include "libclient/queues.h"

#include <errno.h>

int reddn_into_begin(const struct reddn *c, struct reddn_session *s)
{
	int r = 0;

	if (!s->into)
		return 0;
	if (!s->sink)
		r = reddn_session_sink(s);
	if (r == 0 && !s->sunk)
		r = reddn_queues_register(s, s->sink, reddn_session_sink_len(s), &s->sunk);
	for (unsigned i = 0; i < REDDN_MEMORIES && r == 0; i++)
		if (c->memory[i].len && !s->memory[i])
			r = reddn_queues_register(s, c->memory[i].at, c->memory[i].len, &s->memory[i]);
	return r;
}

int reddn_into_find(const struct reddn *c, const uint8_t *at, size_t room)
{
	for (int i = 0; i < REDDN_MEMORIES; i++) {
		const struct reddn_memory *m = &c->memory[i];

		if (m->len && room <= m->len && (uintptr_t)at >= (uintptr_t)m->at &&
			(uintptr_t)at - (uintptr_t)m->at <= m->len - room)
			return i;
	}
	return -EFAULT;
}

int reddn_into_receive(const struct reddn_session *s, struct reddn_connection *k,
	const struct reddn_slot *slot, const struct reddn_request *q)
{
	const size_t head = reddn_into_at(&s->geo) + sizeof(struct reddn_record) + q->len;
	struct ibv_sge places[REDDN_INTO_PLACES] = {
		{.addr = (uintptr_t)slot->mem, .length = (uint32_t)head, .lkey = s->mr->lkey},
		{.addr = (uintptr_t)q->into.at,
			.length = q->into.room,
			.lkey = s->memory[q->into.memory]->lkey},
		{.addr = (uintptr_t)s->sink,
			.length = (uint32_t)reddn_session_sink_len(s),
			.lkey = s->sunk->lkey}};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = (uintptr_t)k, .sg_list = places, .num_sge = REDDN_INTO_PLACES};

	/* A NIC takes a segment without bytes for one of 2^31 */
	if (!q->into.room) {
		places[1] = places[2];
		wr.num_sge--;
	}
	return -ibv_post_recv(k->qp, &wr, &bad);
}

static void forget(struct reddn *c, unsigned i)
{
	reddn_queues_leave(&c->session.memory[i]);
	reddn_queues_leave(&c->standby.session.memory[i]);
	c->memory[i] = (struct reddn_memory){0};
}

PUBLIC int reddn_register(struct reddn *c, void *at, size_t len)
{
	unsigned i = 0;
	int r = 0;

	if (!(c->connector.opt.flags & REDDN_INTO) || !at || !len)
		return -EINVAL;
	while (i < REDDN_MEMORIES && c->memory[i].len)
		i++;
	if (i == REDDN_MEMORIES)
		return -ENOSPC;
	c->memory[i] = (struct reddn_memory){.at = at, .len = len};
	if (c->session.pd)
		r = reddn_into_begin(c, &c->session);
	if (r == 0 && c->standby.session.pd)
		r = reddn_into_begin(c, &c->standby.session);
	if (r < 0)
		forget(c, i);
	return r;
}

PUBLIC int reddn_unregister(struct reddn *c, void *at)
{
	unsigned i = 0;

	while (i < REDDN_MEMORIES && (!c->memory[i].len || c->memory[i].at != at))
		i++;
	if (i == REDDN_MEMORIES)
		return -ENOENT;
	if (c->busy)
		return -EBUSY;
	forget(c, i);
	return 0;
}
