/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * part.h - parts of an offload: other offloads of the same server, named after it (wire.h), that serve some
 * of the requests of its handle. To a handle a part is another handle, with a session of its own, that it
 * owns.
 *
 * The first request for a part makes its handle, which then connects, as after a loss: in steps of
 * reddn_poll(), while its requests wait. It connects only while it has requests, so that a session that ended
 * because nobody used it is made again when somebody does.
 */
#ifndef LIBCLIENT_PART_H
#define LIBCLIENT_PART_H

#include "libclient/connection.h"

/**
 * Find the handle for puts and deletes of @c: its part, or @c itself, if it is one of puts. 0. -EINVAL: it
 * takes none, or must not. -ENOMEM, -EMFILE and others: the part cannot be made.
 */
int reddn_part_of_puts(struct reddn *c, struct reddn **puts);

#endif
