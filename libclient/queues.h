/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queues.h - the memory region, completion queue and queue pair of a connection. One thread at a time.
 */
#ifndef LIBCLIENT_QUEUES_H
#define LIBCLIENT_QUEUES_H

#include "libclient/connection.h"

/**
 * Make MR, CQ and QP on the device of c->id, post the receives, and add the descriptors to c->epoll. 0, or
 * -errno and the reason in @err. reddn_queues_deinit frees what there is.
 */
int reddn_queues_init(struct reddn *c, char *err, size_t errlen);

/** Disconnect, and destroy what reddn_queues_init made, also if that has failed. */
void reddn_queues_deinit(struct reddn *c);

/** Post a batch of `depth` receives. 0 or -errno. */
int reddn_post_receives(struct reddn *c);

/**
 * Post a SEND of the info.request_len bytes at @bytes, in c->area, which stay as they are until it completes.
 * Only if @signaled its completion, @wr_id, is in the CQ. 0 or -errno.
 */
int reddn_post_request(struct reddn *c, uint8_t *bytes, uint64_t wr_id, bool signaled);

#endif
