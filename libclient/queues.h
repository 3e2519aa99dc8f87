/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queues.h - the memory region and completion queue of a handle, and the queue pairs of its connections. One
 * thread at a time.
 */
#ifndef LIBCLIENT_QUEUES_H
#define LIBCLIENT_QUEUES_H

#include "libclient/connection.h"

/**
 * Make MR and CQ on the device of the first connection, whose id has one, and add the descriptors to
 * c->epoll. 0, or -errno and the reason in @err. reddn_queues_deinit frees what there is.
 */
int reddn_queues_init(struct reddn *c, char *err, size_t errlen);

/** Make the QP of a connection on the same device, and post its receives. The same. */
int reddn_queue_pair_init(struct reddn *c, struct reddn_connection *k, char *err, size_t errlen);

/** Disconnect, and destroy what there is, and the ids of the connections. */
void reddn_queues_deinit(struct reddn *c);

/** Post a batch of `depth` receives. 0 or -errno. */
int reddn_post_receives(struct reddn_connection *k);

/**
 * Post a SEND of the info.request_len bytes at @bytes, in c->area, which stay as they are until it completes.
 * Only if @signaled its completion, @wr_id, is in the CQ. 0 or -errno.
 */
int reddn_post_request(
	const struct reddn *c, struct reddn_connection *k, uint8_t *bytes, uint64_t wr_id, bool signaled);

#endif
