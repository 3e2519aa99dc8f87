/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/rnic/plain.h"

#include "reddnd/rnic/internal.h"
#include "reddnd/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- events ----------------------------------------------------------------------------------- */

static int make_channel(struct rnic_plain_events *e, struct rnic_device *dev)
{
	int flags;

	e->channel = ibv_create_comp_channel(dev->ctx);
	flags = e->channel ? fcntl(e->channel->fd, F_GETFL) : -1;
	if (flags >= 0 && fcntl(e->channel->fd, F_SETFL, flags | O_NONBLOCK) == 0)
		return 0;
	return errno ? -errno : -ENOMEM;
}

int rnic_plain_events_new(struct rnic_plain_events **out, struct rnic_device *dev)
{
	struct rnic_plain_events *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->fd = -1;
	r = dev->direct ? rnic_devx_event_fd(dev->ctx->cmd_fd, &e->fd) : make_channel(e, dev);
	if (r < 0) {
		rnic_plain_events_free(e);
		return log_errno(r, "%s: cannot make a channel for completions", rnic_device_name(dev));
	}
	*out = e;
	return 0;
}

void rnic_plain_events_free(struct rnic_plain_events *e)
{
	if (e && e->channel)
		ibv_destroy_comp_channel(e->channel);
	else if (e && e->fd >= 0)
		close(e->fd);
	free(e);
}

int rnic_plain_events_fd(const struct rnic_plain_events *e)
{
	return e->channel ? e->channel->fd : e->fd;
}

int rnic_plain_events_next(struct rnic_plain_events *e, uint64_t *cookie)
{
	struct ibv_cq *cq;
	void *context;

	if (!e->channel)
		return rnic_devx_next_event(e->fd, cookie);
	errno = 0;
	if (ibv_get_cq_event(e->channel, &cq, &context))
		return errno == EAGAIN || errno == EINTR ? 0 : -(errno ? errno : EIO);
	ibv_ack_cq_events(cq, 1); /* so that destroying the CQ waits for nothing */
	*cookie = (uintptr_t)context;
	return 1;
}

/* ---- queues ----------------------------------------------------------------------------------- */

uint64_t rnic_plain_bytes(const struct rnic_device *dev, const struct rnic_plain_attr *attr)
{
	return dev->direct ? plain_direct_bytes(attr) : attr->size;
}

int rnic_plain_new(struct rnic_plain **q, struct rnic_pd *pd, struct rnic_arena *arena,
	const struct rnic_plain_attr *attr)
{
	return (pd->dev->direct ? plain_direct_new : plain_verbs_new)(q, pd, arena, attr);
}

void rnic_plain_stop(struct rnic_plain *q)
{
	if (q)
		(q->direct ? plain_direct_stop : plain_verbs_stop)(q);
}

void rnic_plain_free(struct rnic_plain *q)
{
	if (q)
		(q->direct ? plain_direct_free : plain_verbs_free)(q);
}

uint32_t rnic_plain_qpn(const struct rnic_plain *q)
{
	return q->qpn;
}

uint8_t *rnic_plain_memory(const struct rnic_plain *q)
{
	return q->mem;
}

int rnic_plain_receive(struct rnic_plain *q, uint64_t to)
{
	if (!q->direct)
		return plain_verbs_receive(q, to);
	plain_direct_receive(q, to);
	return 0;
}

int rnic_plain_send(struct rnic_plain *q, const struct rnic_plain_send *s)
{
	if (!q->direct)
		return plain_verbs_send(q, s);
	plain_direct_send(q, s);
	return 0;
}

int rnic_plain_flush(struct rnic_plain *q, uint32_t number)
{
	if (!q->direct)
		return plain_verbs_flush(q, number);
	plain_direct_flush(q, number);
	return 0;
}

int rnic_plain_poll(struct rnic_plain *q, struct rnic_plain_completion c[RNIC_PLAIN_BATCH])
{
	return q->direct ? plain_direct_poll(q, c) : plain_verbs_poll(q, c);
}

int rnic_plain_arm(struct rnic_plain *q)
{
	if (!q->direct)
		return plain_verbs_arm(q);
	plain_direct_arm(q);
	return 0;
}

struct rnic_qp *rnic_plain_qp(struct rnic_plain *q)
{
	return q->direct ? plain_direct_qp(q) : NULL;
}
