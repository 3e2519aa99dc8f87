/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.h - memory that the caller has registered (reddn_register). It belongs to the handle, and is
 * registered for each of its sessions, each of which has a PD of its own.
 */
#ifndef LIBCLIENT_MEMORY_H
#define LIBCLIENT_MEMORY_H

#include "libclient/connection.h"

/** Register the memory of the handle for a session, and have its sink (into.h), as far as that is not done. A
 * session without REDDN_INTO needs none. -errno; reddn_queues_free gives back what there is. */
int reddn_memory_begin(const struct reddn *c, struct reddn_session *s);

/** Give back what is kept of the handle's memory, but for the registrations of sessions. */
void reddn_memory_deinit(struct reddn *c);

/** Find the memory that has @room bytes from @at on. -EFAULT: none has. */
int reddn_memory_find(const struct reddn *c, const uint8_t *at, size_t room);

#endif
