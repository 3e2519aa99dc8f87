/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpu-replies.h - what the executor wants to be sent, as sends of a queue pair. Private to cpu*.c.
 */
#ifndef SESSION_CPU_REPLIES_H
#define SESSION_CPU_REPLIES_H

#include "reddnd/session/session.h"

/** Adds the messages of request @n, which was just executed. 0 or -errno. */
int cpu_replies_send(struct session *s, uint64_t n);

/** The WQEBB of the image's reply queue that failed, from the tag of a send and its syndrome. A message may
 * be two of them, of which the last one needs a RECV. */
uint32_t cpu_replies_failed(uint32_t tag, uint8_t syndrome);

#endif
