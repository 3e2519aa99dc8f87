/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/limits.h"

#include <assert.h>

bool session_is_limited(const struct session *s)
{
	const struct session_limits *l = &s->first->limits;

	return l->rate.per_second || s->tenant->rate.per_second || l->bytes.per_second ||
	       s->tenant->bytes.per_second;
}

uint64_t session_price(const struct session *s)
{
	return s->offload->outcome.longest;
}

void session_set_paced(struct session *s, bool paced)
{
	if (paced == session_is_paced(s))
		return;
	assert(paced || s->pacing.state == PACING_ON);
	s->pacing.state = paced ? PACING_ON : PACING_NONE;
	s->engine->pace(s, paced);
}

void session_init_limits(struct session *s, uint64_t now)
{
	const struct catalog_limits *l = &s->tenant->limits;

	s->limits.configured.rate = l->session_rate;
	s->limits.configured.burst = l->session_burst;
	rate_init(&s->limits.rate, l->session_rate, l->session_burst, now);
	rate_init(&s->limits.bytes, l->session_bytes_rate,
		rate_burst(l->session_bytes_rate, session_price(s)), now);
	tenant_expect_replies(s->tenant, session_price(s), now);
}

static void limits_apply(struct session *s, uint64_t now)
{
	struct session_limits *l = &s->limits;
	bool throttled =
		l->throttle.until > now && (!l->configured.rate || l->throttle.rate < l->configured.rate);

	if (throttled)
		rate_set(&l->rate, l->throttle.rate, 0, now);
	else
		rate_set(&l->rate, l->configured.rate, l->configured.burst, now);
}

void session_limit_requests(struct session *s, uint64_t rate, uint64_t burst, uint64_t now)
{
	s->limits.configured.rate = rate;
	s->limits.configured.burst = burst;
	limits_apply(s, now);
}

void session_limit_bytes(struct session *s, uint64_t bytes_rate, uint64_t now)
{
	rate_set(&s->limits.bytes, bytes_rate, rate_burst(bytes_rate, session_price(s)), now);
}

void session_throttle(struct session *s, uint64_t rate, uint64_t until, uint64_t now)
{
	s->limits.throttle.rate = rate;
	s->limits.throttle.until = until;
	limits_apply(s, now);
}
