/* SPDX-License-Identifier: BSD-2-Clause */
#include "libclient/connection.h"

#include "libclient/public.h"
#include "protocol/wire.h"
#include "util/array.h"
#include "util/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

static void *map_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int reddn_requests_init(struct reddn *c)
{
	uint32_t depth = c->info.depth;

	c->area_len = (size_t)depth * (c->info.slot_size + REDDN_REQUEST_MAX);
	c->area = map_pages(c->area_len);
	c->requests = calloc(depth, sizeof(*c->requests));
	c->slots = calloc(depth, sizeof(*c->slots));
	c->held = calloc(depth, sizeof(*c->held));
	c->recvs = calloc(depth, sizeof(*c->recvs));
	if (!c->area || !c->requests || !c->slots || !c->held || !c->recvs)
		return -ENOMEM;
	c->encoded = c->area + (size_t)depth * c->info.slot_size;
	for (uint32_t i = 0; i < depth; i++) {
		c->requests[i].next = i + 1 < depth ? i + 1 : REDDN_NONE;
		c->slots[i].request = REDDN_NONE;
		c->recvs[i].next = i + 1 < depth ? &c->recvs[i + 1] : NULL;
	}
	c->retry = REDDN_NONE;
	c->signal_every = depth > 1 ? depth / 2 : 1;
	return 0;
}

int reddn_keys_init(struct reddn *c)
{
	c->keys_len = c->key_room * c->info.depth;
	c->keys = map_pages(c->keys_len);
	return c->keys ? 0 : -ENOMEM;
}

void reddn_requests_deinit(struct reddn *c)
{
	if (c->area)
		munmap(c->area, c->area_len);
	if (c->keys)
		munmap(c->keys, c->keys_len);
	free(c->requests);
	free(c->slots);
	free(c->held);
	free(c->recvs);
}

static int unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

static int make_cq(struct reddn *c, char *err, size_t errlen)
{
	uint32_t depth = c->info.depth;
	int r;

	c->channel = ibv_create_comp_channel(c->id->verbs);
	if (!c->channel)
		return reddn_fail(-errno, err, errlen, "no completion channel: %m");
	/* Before there is a CQ, because reddn_close reads the channel until it is empty. */
	r = unblock(c->channel->fd);
	if (r < 0)
		return reddn_fail(r, err, errlen, "fcntl: %s", strerror(-r));
	/* Two batches of receives, and sends without a known completion: all of them may be flushed. */
	c->cq = ibv_create_cq(c->id->verbs, (int)(4 * depth + 16), c, c->channel, 0);
	return c->cq ? 0
		     : reddn_fail(-errno, err, errlen, "no completion queue for a depth of %u: %m", depth);
}

/* Devices differ in how much data a WQE holds inline; some support none. */
static int make_qp(struct reddn *c, char *err, size_t errlen)
{
	static const uint32_t inline_bytes[] = {REDDN_WIRE_INLINE, 32, 0};
	uint32_t depth = c->info.depth;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.send_cq = c->cq,
		.recv_cq = c->cq,
		.cap = {.max_send_wr = 2 * depth,
			.max_recv_wr = 2 * depth,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	int r = -1;

	for (unsigned i = 0; r < 0 && i < COUNT(inline_bytes); i++) {
		attr.cap.max_inline_data = inline_bytes[i];
		r = rdma_create_qp(c->id, c->pd, &attr);
	}
	if (r < 0)
		return reddn_fail(-errno, err, errlen, "no queue pair for a depth of %u: %m", depth);
	c->inline_max =
		attr.cap.max_inline_data < REDDN_WIRE_INLINE ? attr.cap.max_inline_data : REDDN_WIRE_INLINE;
	return 0;
}

int reddn_queues_init(struct reddn *c, char *err, size_t errlen)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int r;

	c->pd = ibv_alloc_pd(c->id->verbs);
	if (!c->pd)
		return reddn_fail(-errno, err, errlen, "no protection domain: %m");
	c->mr = ibv_reg_mr(c->pd, c->area, c->area_len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!c->mr)
		return reddn_fail(
			-errno, err, errlen, "cannot register %zu bytes for replies: %m", c->area_len);
	r = make_cq(c, err, errlen);
	if (r == 0)
		r = make_qp(c, err, errlen);
	if (r < 0)
		return r;
	r = unblock(c->events->fd);
	if (r < 0)
		return reddn_fail(r, err, errlen, "fcntl: %s", strerror(-r));
	if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->channel->fd, &ev) < 0 ||
		epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->events->fd, &ev) < 0)
		return reddn_fail(-errno, err, errlen, "epoll: %m");
	for (int i = 0; i < 2 && r == 0; i++)
		r = reddn_post_receives(c);
	return r < 0 ? reddn_fail(r, err, errlen, "cannot post receives: %s", strerror(-r)) : 0;
}

static void queues_deinit(struct reddn *c)
{
	if (c->id->qp) {
		rdma_disconnect(c->id);
		rdma_destroy_qp(c->id);
	}
	if (c->mr)
		ibv_dereg_mr(c->mr);
	if (c->cq) {
		struct ibv_cq *cq;
		void *context;

		while (ibv_get_cq_event(c->channel, &cq, &context) == 0)
			ibv_ack_cq_events(cq, 1);
		ibv_destroy_cq(c->cq);
	}
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
}

PUBLIC void reddn_close(struct reddn *c)
{
	if (!c)
		return;
	if (c->id) {
		queues_deinit(c);
		rdma_destroy_id(c->id);
	}
	if (c->events)
		rdma_destroy_event_channel(c->events);
	if (c->epoll >= 0)
		close(c->epoll);
	reddn_requests_deinit(c);
	free(c);
}

int reddn_post_receives(struct reddn *c)
{
	struct ibv_recv_wr *bad;

	c->recvs_used = 0;
	return -ibv_post_recv(c->id->qp, c->recvs, &bad);
}

void reddn_break(struct reddn *c, int error, const char *fmt, ...)
{
	va_list ap;

	if (c->broken)
		return;
	c->broken = error;
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
			c->hangup = true;
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
	info->sent = c->sent;
}

PUBLIC const char *reddn_errmsg(const struct reddn *c)
{
	return c->errmsg;
}
