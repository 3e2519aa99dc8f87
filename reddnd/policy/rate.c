/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/rate.h"

#include <assert.h>

enum { SECOND = 1000000, FILL_US = SECOND / 10 };

/* Tokens that fit into the bucket */
static uint64_t room(const struct rate *r)
{
	uint64_t most = r->burst + (r->awaited ? r->per_second : 0);

	return r->tokens < most ? most - r->tokens : 0;
}

static void fill(struct rate *r, uint64_t now_us)
{
	unsigned __int128 brought;

	if (now_us <= r->at)
		return;
	brought = (unsigned __int128)(now_us - r->at) * r->per_second + r->part;
	r->at = now_us;
	if (brought / SECOND < r->debt) {
		r->debt -= (uint64_t)(brought / SECOND);
		r->part = (uint64_t)(brought % SECOND);
		return;
	}
	brought -= (unsigned __int128)r->debt * SECOND;
	r->debt = 0;
	if (brought / SECOND >= room(r)) {
		r->tokens += room(r);
		r->part = 0;
		return;
	}
	r->tokens += (uint64_t)(brought / SECOND);
	r->part = (uint64_t)(brought % SECOND);
}

uint64_t rate_burst(uint64_t per_second, uint64_t least)
{
	uint64_t brought = per_second / (SECOND / FILL_US);

	return brought > least ? brought : least;
}

static uint64_t burst_of(uint64_t per_second, uint64_t burst)
{
	return burst ? burst : rate_burst(per_second, 1);
}

void rate_init(struct rate *r, uint64_t per_second, uint64_t burst, uint64_t now_us)
{
	burst = burst_of(per_second, burst);
	*r = (struct rate){.per_second = per_second, .burst = burst, .tokens = burst, .at = now_us};
}

void rate_set(struct rate *r, uint64_t per_second, uint64_t burst, uint64_t now_us)
{
	fill(r, now_us);
	r->per_second = per_second;
	r->burst = burst_of(per_second, burst);
	if (r->tokens > r->burst)
		r->tokens = r->burst;
	if (!per_second)
		r->debt = 0;
}

uint64_t rate_available(struct rate *r, uint64_t now_us)
{
	if (!r->per_second)
		return UINT64_MAX;
	fill(r, now_us);
	return r->tokens;
}

uint64_t rate_part(struct rate *r, struct rate_sharers *of, uint64_t now_us)
{
	unsigned sharers = of->turns ? of->turns : of->waiting;
	uint64_t n = rate_available(r, now_us);

	of->turns -= of->turns > 0;
	return n == UINT64_MAX || !sharers ? n : n / sharers + (n % sharers > 0);
}

void rate_take(struct rate *r, uint64_t n)
{
	if (!r->per_second)
		return;
	assert(n <= r->tokens);
	r->tokens -= n;
}

void rate_charge(struct rate *r, uint64_t n)
{
	if (!r->per_second)
		return;
	if (n <= r->tokens) {
		r->tokens -= n;
		return;
	}
	r->debt += n - r->tokens;
	r->tokens = 0;
}

void rate_give(struct rate *r, uint64_t n)
{
	uint64_t paid = n < r->debt ? n : r->debt;

	if (!r->per_second)
		return;
	r->debt -= paid;
	n -= paid;
	r->tokens += n < room(r) ? n : room(r);
}

void rate_await(struct rate *r, bool waits)
{
	assert(waits || r->awaited);
	r->awaited += waits ? 1 : -1u;
}

uint64_t rate_delay(struct rate *r, uint64_t n, uint64_t now_us)
{
	unsigned __int128 missing;

	if (!r->per_second)
		return 0;
	fill(r, now_us);
	if (n > r->burst)
		n = r->burst;
	if (n <= r->tokens)
		return 0;
	missing = ((unsigned __int128)(n - r->tokens) + r->debt) * SECOND - r->part;
	return (uint64_t)((missing + r->per_second - 1) / r->per_second);
}
