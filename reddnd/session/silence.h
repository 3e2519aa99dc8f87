/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * silence.h - requests that are not answered, and clients that ask for nothing.
 */
#ifndef SESSION_SILENCE_H
#define SESSION_SILENCE_H

#include "reddnd/session/session.h"

/** True if its offload has a time budget or a loop budget. */
bool session_has_budgets(const struct session *s);

/** True if an accepted request is still unanswered, as far as completions have been counted. */
bool session_busy(const struct session *s);

/** Requests whose RECV has been used, answered or not, since the beginning. */
uint64_t session_received(const struct session *s);

/** Asks for one event of the next request. False: a request has come already. */
bool session_rest(struct session *s);

/** True once for a request that exceeds a budget; only the oldest one is looked at. @v names the budget. */
bool session_exceeds_budget(struct session *s, uint64_t now_us, struct verdict *v);

/** True if its client has asked for nothing for @limit_us (verdict.h). */
bool session_is_idle(struct session *s, uint64_t now_us, uint64_t limit_us);

#endif
