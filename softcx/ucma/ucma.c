/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/ucma/net.h"

#include <errno.h>
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

/* The id whose timer is due first, or NULL. */
static struct ucma_id *timer_first(const struct ucma_net *net)
{
	return net->timers ? net->timer[1] : NULL;
}

/* Files, their events, and the network. */

#define TIMERS_MAX 4096 /* timers per pass */

/* ---- events ------------------------------------------------------------------------------ */

static void event_add(struct ucma_file *file, struct ucma_event *event)
{
	TAILQ_INSERT_TAIL(&file->events, event, link);
	file->nevents++;
	file->wake(file->arg);
}

void ucma_event_take(struct ucma_file *file, struct ucma_event *event)
{
	TAILQ_REMOVE(&file->events, event, link);
	file->nevents--;
}

void ucma_event_resp(struct ucma_id *id, const struct rdma_ucm_event_resp *resp)
{
	struct ucma_event *event;

	/* a passive id whose application has not accepted yet: the accept will fail instead */
	if (!id->uid)
		return;
	event = calloc(1, sizeof(*event));
	if (!event)
		return;
	event->id = id;
	event->resp = *resp;
	event->resp.uid = id->uid;
	event->resp.id = id->handle;
	event_add(id->file, event);
}

void ucma_event(struct ucma_id *id, uint32_t event, int status)
{
	struct rdma_ucm_event_resp resp = {.event = event, .status = (uint32_t)status};

	ucma_event_resp(id, &resp);
}

void ucma_events_move(struct ucma_id *id, struct ucma_file *to)
{
	struct ucma_file *from = id->file;
	struct ucma_event *event, *next;

	for (event = TAILQ_FIRST(&from->events); event; event = next) {
		next = TAILQ_NEXT(event, link);
		if (event->id != id)
			continue;
		ucma_event_take(from, event);
		event_add(to, event);
	}
}

int ucma_event_request(struct ucma_id *listener, struct ucma_id *conn, const struct rdma_ucm_event_resp *resp)
{
	struct ucma_event *event;

	if (!listener->backlog)
		return -ENOMEM;
	event = calloc(1, sizeof(*event));
	if (!event)
		return -ENOMEM;
	listener->backlog--;
	event->id = listener;
	event->conn = conn;
	conn->request = event;
	event->resp = *resp;
	event->resp.uid = listener->uid;
	event->resp.id = conn->handle;
	event_add(listener->file, event);
	return 0;
}

/* ---- files and the network ---------------------------------------------------------------- */

int ucma_open(
	struct ucma_net *net, unsigned host, void (*wake)(void *arg), void *arg, struct ucma_file **file)
{
	struct ucma_file *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->net = net;
	f->host = host;
	f->wake = wake;
	f->arg = arg;
	TAILQ_INIT(&f->events);
	TAILQ_INIT(&f->ids);
	*file = f;
	return 0;
}

void ucma_close(struct ucma_file *file)
{
	while (!TAILQ_EMPTY(&file->ids))
		ucma_id_destroy(TAILQ_FIRST(&file->ids));
	free(file);
}

unsigned ucma_pending(const struct ucma_file *file)
{
	return file->nevents;
}

void ucma_counts(const struct ucma_net *net, struct ucma_counts *out)
{
	const struct ucma_id *id;

	*out = (struct ucma_counts){.ids = HASH_COUNT(net->ids)};
	for (id = net->ids; id; id = id->hh.next) {
		out->listeners += id->state == UCMA_LISTEN;
		out->connections += id->cm == UCMA_CM_ESTABLISHED;
	}
}

/* cma.c: cma_remove_one(). mlx5 takes a device that failed away and brings it back. */
static void on_device_event(void *arg, int event)
{
	const struct ucma_dev *dev = arg;
	struct ucma_id *id, *next;

	if (event != HW_EV_DEVICE_FATAL)
		return;
	for (id = dev->net->ids; id; id = next) {
		next = id->hh.next;
		if (id->has_dev && &dev->net->devs[id->local.dev] == dev)
			ucma_id_remove(id);
	}
}

int ucma_net_new(struct ucma_net **net, struct hw_dev *const *devs, unsigned ndevs)
{
	struct ucma_net *n = calloc(1, sizeof(*n));
	unsigned i;

	if (n)
		n->devs = calloc(ndevs, sizeof(*n->devs));
	if (!n || !n->devs) {
		free(n);
		return -ENOMEM;
	}
	n->ndevs = ndevs;
	STAILQ_INIT(&n->wire);
	for (i = 0; i < ndevs; i++) {
		struct ucma_dev *dev = &n->devs[i];

		*dev = (struct ucma_dev){.net = n, .hw = devs[i], .watch = {on_device_event, dev, {0}}};
		hw_dev_watch(dev->hw, &dev->watch);
	}
	*net = n;
	return 0;
}

void ucma_net_free(struct ucma_net *net)
{
	unsigned i;

	ucma_msg_drop_all(net);
	for (i = 0; i < net->ndevs; i++)
		hw_dev_unwatch(&net->devs[i].watch);
	free(net->devs);
	free(net->timer);
	free(net);
}

uint64_t ucma_net_timers(struct ucma_net *net)
{
	struct ucma_id *id;
	unsigned n;
	uint64_t now;

	ucma_cm_deliver(net);
	if (!timer_first(net))
		return STAILQ_EMPTY(&net->wire) ? UINT64_MAX : 0;
	now = nic_now();
	for (n = 0; n < TIMERS_MAX && (id = timer_first(net)) && id->due <= now; n++) {
		ucma_timer_stop(id);
		if (id->state == UCMA_CONNECT || id->state == UCMA_DISCONNECT)
			ucma_cm_timer(id);
		else
			ucma_id_timer(id);
	}
	if (!STAILQ_EMPTY(&net->wire))
		return 0;
	id = timer_first(net);
	return !id ? UINT64_MAX : id->due > now ? id->due - now : 0;
}
