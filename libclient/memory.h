/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory.h - memory that the caller has registered (reddn_register): values of gets go there (REDDN_INTO),
 * and those of puts are sent from there (request.c). It belongs to the handle, and is registered for each
 * session of the handle and its parts that uses it, each of which has a PD of its own.
 */
#ifndef LIBCLIENT_MEMORY_H
#define LIBCLIENT_MEMORY_H

#include "libclient/connection.h"

/** Register the memory of the handle for a session, and have its sink (REDDN_INTO), as far as that is not
 * done. One that neither has REDDN_INTO nor puts needs none, nor one without queues. -errno;
 * reddn_queues_free gives back what there is. */
int reddn_memory_begin(const struct reddn *c, struct reddn_session *s);

/** Give back what is kept of the handle's memory, but for the registrations of sessions. */
void reddn_memory_deinit(struct reddn *c);

/** Find the memory that has @len bytes from @at on: its index. -EFAULT: none has. */
int reddn_memory_find(const struct reddn *c, const uint8_t *at, size_t len);

#endif
