/* SPDX-License-Identifier: BSD-2-Clause */
/* revive.h - brings a queue pair to RTS without the connection manager, so that its packets look like those
 * of another connection. */
#ifndef TESTS_HOSTILE_REVIVE_H
#define TESTS_HOSTILE_REVIVE_H

#include "tests/hostile/hostile.h"

/** The path and the numbers of a connection, while it is connected. */
struct ibv_qp_attr revive_path(const struct raw_client *c);

/** Brings the queue pair of @c from any state to RTS: over @path to queue pair @qpn, with few retries. */
void revive(struct raw_client *c, const struct ibv_qp_attr *path, uint32_t qpn);

#endif
