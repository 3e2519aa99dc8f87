/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limits.h - limits in force of a session, and whether its RECVs are paced for them (server/pacer.h).
 *
 * Thread rules: one thread.
 */
#ifndef SESSION_LIMITS_H
#define SESSION_LIMITS_H

#include "reddnd/session/session.h"

/** True if anything limits its requests. */
bool session_is_limited(const struct session *s);
/** Bytes that a request costs when its RECV is posted: the longest reply. */
uint64_t session_price(const struct session *s);
/** Decides who posts RECVs: the post() of its engine alone, or the engine as well. */
void session_set_paced(struct session *s, bool paced);

/** Sets full buckets: what the limits of its tenant allow each session. */
void session_init_limits(struct session *s, uint64_t now_us);
/** Changes the configured rate of requests. A throttle goes on. */
void session_limit_requests(struct session *s, uint64_t rate, uint64_t burst, uint64_t now_us);
/** Changes the rate of bytes of replies. */
void session_limit_bytes(struct session *s, uint64_t bytes_rate, uint64_t now_us);
/** At most @rate requests per second until @until_us. @rate and @until_us of 0 end a throttle. */
void session_throttle(struct session *s, uint64_t rate, uint64_t until_us, uint64_t now_us);

#endif
