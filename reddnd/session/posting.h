/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * posting.h - how many requests a session may send: RECVs that are posted, and the limits in force.
 */
#ifndef SESSION_POSTING_H
#define SESSION_POSTING_H

#include "reddnd/session/session.h"

/** RECVs up to this number could be posted now: their instances are armed. */
uint64_t session_postable(const struct session *s);
/** Posts RECVs up to number @to; fewer than are posted already: does nothing. 0 or an error of the device,
 * logged. */
int session_post(struct session *s, uint64_t to);
/** A recycled session: the opcode by which section @section of its recycler posts RECVs, or a NOP if the
 * session is paced. */
uint8_t *session_recv_en(const struct session *s, unsigned section);
/** Decides who posts RECVs: session_post() alone, or session_rearm() and the NIC as well. */
void session_set_paced(struct session *s, bool paced);
/** A recycled session: asks for the event SESSION_REPLIES of its next reply. */
void session_arm_replies(struct session *s);

/** True if anything limits its requests. */
bool session_is_limited(const struct session *s);
/** Bytes that a request costs when its RECV is posted: the longest reply. */
uint64_t session_price(const struct session *s);

/** Sets full buckets: what the limits of its tenant allow each session. */
void session_init_limits(struct session *s, uint64_t now_us);
/** Changes the configured rate of requests. A throttle goes on. */
void session_limit_requests(struct session *s, uint64_t rate, uint64_t burst, uint64_t now_us);
/** Changes the rate of bytes of replies. */
void session_limit_bytes(struct session *s, uint64_t bytes_rate, uint64_t now_us);
/** At most @rate requests per second until @until_us. @rate and @until_us of 0 end a throttle. */
void session_throttle(struct session *s, uint64_t rate, uint64_t until_us, uint64_t now_us);

#endif
