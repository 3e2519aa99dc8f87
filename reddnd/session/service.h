/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * service.h - counts how long requests of a session took in the server (policy/service-times.h): of the
 * session, of its offload and of its tenant. The NIC writes the times, into the CQEs that the daemon looks at
 * anyway.
 */
#ifndef SESSION_SERVICE_H
#define SESSION_SERVICE_H

#include "reddnd/session/session.h"

/** Instance @n, which @reply completes. Without the CQE of its RECV, or a clock of the device, it is not
 * counted. */
void session_served(struct session *s, uint64_t n, const struct rnic_cqe *reply);
/** A recycled session has gone on from instance @from to progress.done: counts those whose CQEs are still
 * there. */
void session_served_since(struct session *s, uint64_t from);
/** The same of a session that the CPU serves, all of them. */
void session_served_by_cpu(struct session *s, uint64_t from);

#endif
