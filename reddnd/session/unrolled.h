/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unrolled.h - replies of unrolled sessions, which complete on CQs that many of them share (rnic/cq-pool.h).
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_UNROLLED_H
#define SESSION_UNROLLED_H

#include "reddnd/session/session.h"

/** Takes the CQE of a reply. 0; or positive: a fault of the session, which @v describes. */
int session_completed(struct session *s, const struct rnic_cqe *cqe, struct verdict *v);

#endif
