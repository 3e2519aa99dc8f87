/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queues.h - the memory region and completion queue of a session, and the queue pairs of its connections. One
 * thread at a time.
 */
#ifndef LIBCLIENT_QUEUES_H
#define LIBCLIENT_QUEUES_H

#include "libclient/session.h"

/** Make the event channel of the connection manager, which @epoll watches and which does not block. The same
 * results as of init. */
int reddn_queues_open(struct reddn_session *s, int epoll, char *err, size_t errlen);

/**
 * Make MR and CQ on the device of the first connection, whose id has one. 0, or -errno and the reason in
 * @err. reddn_queues_free frees what there is.
 */
int reddn_queues_init(struct reddn_session *s, char *err, size_t errlen);

/** Let the device read and write @len bytes of memory, until queues_free or queues_leave. -errno. */
int reddn_queues_register(const struct reddn_session *s, void *memory, size_t len, struct ibv_mr **mr);

/** The same of a @dmabuf, from @offset on, that is mapped at @memory. -EOPNOTSUPP: the device, its driver, or
 * the kernel cannot. */
int reddn_queues_register_dmabuf(const struct reddn_session *s, void *memory, size_t len, int dmabuf,
	uint64_t offset, struct ibv_mr **mr);

/** NULL is allowed, and left there. */
void reddn_queues_leave(struct ibv_mr **mr);

/** Let @epoll watch the channel of the CQ, which blocks no more. The same. */
int reddn_queues_watch(struct reddn_session *s, int epoll, char *err, size_t errlen);

/**
 * Make the QP of a connection on the same device. What needs no answer of the server can be done while it
 * works on the request: so prepare, which posts the receives (those of REDDN_INTO: none), follows the
 * request, and connect the answer. Begin comes before the request, with the route: on InfiniBand the
 * connection manager knows of no queue pair any more if the server has refused already (Linux cm.c,
 * cm_init_qp_init_attr). They return the same, connect also 1: the server has ended the connection meanwhile,
 * and an event of it follows.
 */
int reddn_queue_pair_init(struct reddn_session *s, struct reddn_connection *k, char *err, size_t errlen);
int reddn_queue_pair_begin(
	const struct reddn_session *s, struct reddn_connection *k, char *err, size_t errlen);
int reddn_queue_pair_prepare(
	const struct reddn_session *s, struct reddn_connection *k, char *err, size_t errlen);
int reddn_queue_pair_connect(struct reddn_connection *k, char *err, size_t errlen);

/** The event that has the server's answer. */
enum rdma_cm_event_type reddn_queue_pair_answer(const struct reddn_connection *k);

/** Ask for an event of the channel when the next reply comes, unless that is asked for. 0 or -errno. */
int reddn_queues_arm(struct reddn_session *s);

/**
 * Take the connection manager's events that have arrived: sets hangup if the server has disconnected.
 * -ENODEV: the device was removed.
 */
int reddn_queues_events(struct reddn_session *s);

/** Let @epoll watch it no more. */
void reddn_queues_unwatch(const struct reddn_session *s, int epoll);

/** Disconnect, destroy what there is, and the ids of the connections, and free the session. */
void reddn_queues_free(struct reddn_session *s);

/** Post a batch of `depth` receives. 0 or -errno. */
int reddn_post_receives(struct reddn_connection *k);

/** The wr_id of a SEND. */
static inline uint64_t reddn_send_id(const struct reddn_connection *k)
{
	return (uintptr_t)k | REDDN_SEND;
}

/** Post a SEND of the bytes at @n @places, none of which is empty, that stay as they are until it completes,
 * or its queue pair is destroyed. Only if @signaled its completion is in the CQ. 0 or -errno. */
int reddn_post_places(struct reddn_connection *k, struct ibv_sge *places, int n, bool signaled);

/** reddn_post_request() by ibv_post_send(). */
int reddn_post_request_wr(const struct reddn_session *s, struct reddn_connection *k, uint8_t *bytes,
	uint32_t len, const struct ibv_mr *mr, bool signaled);

/**
 * Post a SEND of the @len bytes at @bytes, in @mr, which stay as they are until it completes. Only if
 * @signaled its completion is in the CQ. 0 or -errno.
 */
static inline int reddn_post_request(const struct reddn_session *s, struct reddn_connection *k,
	uint8_t *bytes, uint32_t len, const struct ibv_mr *mr, bool signaled)
{
	struct ibv_qp_ex *qp = k->qp_ex;

	if (!qp)
		return reddn_post_request_wr(s, k, bytes, len, mr, signaled);
	ibv_wr_start(qp);
	qp->wr_id = reddn_send_id(k);
	qp->wr_flags = signaled ? IBV_SEND_SIGNALED : 0;
	ibv_wr_send(qp);
	if (len <= s->inline_max)
		ibv_wr_set_inline_data(qp, bytes, len);
	else
		ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)bytes, len);
	return -ibv_wr_complete(qp);
}

/** The same of one that is sent in the usual way (s->usual_key). 0 or errno. */
static inline int reddn_post_usual(
	const struct reddn_session *s, struct reddn_connection *k, uint8_t *bytes, bool signaled)
{
	struct ibv_qp_ex *qp = k->qp_ex;

	ibv_wr_start(qp);
	if (signaled)
		qp->wr_id = reddn_send_id(k);
	qp->wr_flags = signaled ? IBV_SEND_SIGNALED : 0;
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, bytes, s->info.request_len);
	return ibv_wr_complete(qp);
}

#endif
