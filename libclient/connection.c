/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"

#include "libclient/public.h"
#include "libclient/queues.h"
#include "util/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *map_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int reddn_requests_init(struct reddn *c)
{
	uint32_t depth = c->depth * c->info.connections;
	uint8_t *encoded;

	c->info.depth = depth;
	c->area_len = (size_t)depth * (c->info.slot_size + REDDN_REQUEST_BYTES + REDDN_NUMBER_BYTES);
	c->area = map_pages(c->area_len);
	c->slots = calloc(depth, sizeof(*c->slots));
	c->recvs = calloc(depth, sizeof(*c->recvs));
	c->number = calloc(depth, sizeof(*c->number));
	if (!c->area || !c->slots || !c->recvs || !c->number)
		return -ENOMEM;
	encoded = c->area + (size_t)depth * c->info.slot_size;
	c->numbers = encoded + (size_t)depth * REDDN_REQUEST_BYTES;
	for (uint32_t i = 0; i < depth; i++) {
		bool last = (i + 1) % c->depth == 0;

		c->slots[i] = (struct reddn_slot){.next = &c->slots[last ? i + 1 - c->depth : i + 1],
			.mem = reddn_slot_mem(c, i),
			.encoded = encoded + (size_t)i * REDDN_REQUEST_BYTES,
			.refill = last ? &c->connection[i / c->depth] : NULL};
		c->recvs[i] = (struct ibv_recv_wr){.wr_id = (uintptr_t)&c->connection[i / c->depth],
			.next = last ? NULL : &c->recvs[i + 1],
			.sg_list = &c->number[i],
			.num_sge = 1};
	}
	/* The completion of a batch of sends may come after their replies */
	c->wqes = 3 * c->depth;
	c->signal_every = c->depth;
	c->turn = c->connection;
	c->seen = REDDN_SEEN_NOTHING;
	for (uint32_t i = 0; i < c->info.connections; i++) {
		struct reddn_connection *k = &c->connection[i];

		k->base = i * c->depth;
		k->sent_slot = k->arrived_slot = &c->slots[k->base];
		k->until_signal = c->signal_every;
		k->recvs = c->recvs + k->base;
		k->next = &c->connection[i + 1 < c->info.connections ? i + 1 : 0];
	}
	return 0;
}

/* Bytes of the longest key that is sent in the usual way */
static size_t usual_key(const struct reddn *c)
{
	if (c->info.shape != REDDN_TABLE || c->geo.keys != 1 || c->info.request_len > c->inline_max)
		return 0;
	for (uint32_t i = 0; i < c->info.connections; i++)
		if (!c->connection[i].qp_ex)
			return 0;
	return c->geo.max_key;
}

int reddn_keys_init(struct reddn *c)
{
	c->nrequests = c->info.depth * (c->info.keys ? c->info.keys : 1);
	c->keys_len = c->key_room * c->nrequests;
	c->keys = map_pages(c->keys_len);
	c->requests = calloc(c->nrequests, sizeof(*c->requests));
	if (!c->keys || !c->requests)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->nrequests; i++) {
		c->requests[i].key = c->keys + i * c->key_room;
		c->requests[i].next_free = i + 1 < c->nrequests ? &c->requests[i + 1] : NULL;
	}
	c->free_request = c->requests;
	/* An immediate has no bytes. Of the receives that are posted already it uses none */
	for (uint32_t i = 0; i < c->info.depth && !c->sends; i++)
		c->recvs[i].num_sge = 0;
	c->usual_key = usual_key(c);
	return 0;
}

void reddn_requests_deinit(struct reddn *c)
{
	if (c->area)
		munmap(c->area, c->area_len);
	if (c->keys)
		munmap(c->keys, c->keys_len);
	free(c->requests);
	free(c->slots);
	free(c->recvs);
	free(c->number);
}

PUBLIC void reddn_close(struct reddn *c)
{
	if (!c)
		return;
	reddn_queues_deinit(c);
	if (c->events)
		rdma_destroy_event_channel(c->events);
	if (c->epoll >= 0)
		close(c->epoll);
	reddn_description_deinit(&c->description);
	reddn_requests_deinit(c);
	free(c);
}

void reddn_break(struct reddn *c, int error, const char *fmt, ...)
{
	va_list ap;

	if (c->broken)
		return;
	c->broken = error;
	c->exceptional = true;
	va_start(ap, fmt);
	vsnprintf(c->errmsg, sizeof(c->errmsg), fmt, ap);
	va_end(ap);
}

int reddn_time_left(uint64_t deadline)
{
	uint64_t now = clock_ms();

	return now < deadline ? (int)(deadline - now) : 0;
}

int reddn_next_event(struct rdma_event_channel *events, uint64_t deadline, struct rdma_cm_event **out)
{
	struct pollfd p = {.fd = events->fd, .events = POLLIN};
	int r;

	do {
		r = poll(&p, 1, reddn_time_left(deadline));
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	return rdma_get_cm_event(events, out) < 0 ? -errno : 0;
}

void reddn_check_events(struct reddn *c)
{
	struct pollfd p = {.fd = c->events->fd, .events = POLLIN};
	struct rdma_cm_event *ev;

	while (poll(&p, 1, 0) > 0 && rdma_get_cm_event(c->events, &ev) == 0) {
		enum rdma_cm_event_type type = ev->event;

		rdma_ack_cm_event(ev);
		if (type == RDMA_CM_EVENT_DISCONNECTED)
			c->hangup = c->exceptional = true;
		else if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
			reddn_break(c, -ENODEV, "the RDMA device was removed");
	}
}

PUBLIC int reddn_get_arg(const struct reddn *c, unsigned i, enum reddn_arg_kind *kind, uint32_t *bytes)
{
	if (i >= c->format.nargs)
		return -EINVAL;
	*kind = (enum reddn_arg_kind)c->format.arg[i].kind;
	*bytes = c->format.arg[i].bytes;
	return 0;
}

PUBLIC void reddn_get_info(const struct reddn *c, struct reddn_info *info)
{
	*info = c->info;
	info->sent = 0;
	for (unsigned i = 0; i < c->info.connections; i++)
		info->sent += c->connection[i].sent;
}

PUBLIC const char *reddn_errmsg(const struct reddn *c)
{
	return c->errmsg;
}
