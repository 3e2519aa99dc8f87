/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/net.h"

#include <stdlib.h>

enum { ROOM_LEAST = 64 };

bool ucma_timers_room(struct ucma_net *net)
{
	unsigned room = net->timer_room ? 2 * net->timer_room : ROOM_LEAST;
	struct ucma_id **timer;

	if (HASH_COUNT(net->ids) + 1 < net->timer_room)
		return true;
	timer = realloc(net->timer, room * sizeof(*timer));
	if (!timer)
		return false;
	net->timer = timer;
	net->timer_room = room;
	return true;
}

static void timer_put(struct ucma_net *net, unsigned at, struct ucma_id *id)
{
	net->timer[at] = id;
	id->timer = at;
}

static unsigned timer_sooner(const struct ucma_net *net, unsigned a, unsigned b)
{
	return b <= net->timers && net->timer[b]->due < net->timer[a]->due ? b : a;
}

/* From the place @at, which is free, to the one that its due time gives it */
static void timer_settle(struct ucma_net *net, unsigned at, struct ucma_id *id)
{
	for (; at > 1 && id->due < net->timer[at / 2]->due; at /= 2)
		timer_put(net, at, net->timer[at / 2]);
	while (2 * at <= net->timers) {
		unsigned next = timer_sooner(net, 2 * at, 2 * at + 1);

		if (id->due <= net->timer[next]->due)
			break;
		timer_put(net, at, net->timer[next]);
		at = next;
	}
	timer_put(net, at, id);
}

void ucma_timer_start(struct ucma_id *id, uint64_t delay_ns)
{
	ucma_timer_stop(id);
	id->due = nic_now() + delay_ns;
	timer_settle(id->net, ++id->net->timers, id);
}

void ucma_timer_stop(struct ucma_id *id)
{
	struct ucma_net *net = id->net;
	unsigned at = id->timer;
	struct ucma_id *last;

	if (!at)
		return;
	last = net->timer[net->timers--];
	id->timer = 0;
	if (last != id)
		timer_settle(net, at, last);
}

struct ucma_id *ucma_timer_first(const struct ucma_net *net)
{
	return net->timers ? net->timer[1] : NULL;
}
