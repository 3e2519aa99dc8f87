/* SPDX-License-Identifier: BSD-2-Clause */
/* revive.h - a queue pair that is brought to life without the connection manager, as somebody's whose packets
 * look like those of another. */
#ifndef TESTS_HOSTILE_REVIVE_H
#define TESTS_HOSTILE_REVIVE_H

#include "tests/hostile/hostile.h"

/** The path and the numbers of a connection, while it is connected. */
struct ibv_qp_attr revive_path(const struct raw_client *c);

/** Brings the queue pair of @c to RTS, whatever it was: over @path to queue pair @qpn. It gives up soon. */
void revive(struct raw_client *c, const struct ibv_qp_attr *path, uint32_t qpn);

#endif
