/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/refusals.h"

#include <stdio.h>
#include <string.h>

static uint64_t burst(const struct refusals *r)
{
	return r->per_second > REFUSALS_BURST ? r->per_second : REFUSALS_BURST;
}

void refusals_limit(struct refusals *r, uint64_t per_second, uint64_t now)
{
	if (per_second == r->per_second)
		return;
	r->per_second = per_second;
	rate_init(&r->all, REFUSALS_SHARES * per_second, REFUSALS_SHARES * burst(r), now);
	for (unsigned i = 0; i < r->n; i++)
		rate_set(&r->of[i].rate, per_second, burst(r), now);
}

/* The place of a new source: that of the one that was silent for the longest time if there is no other */
static unsigned place(struct refusals *r)
{
	unsigned oldest = 0;

	if (r->n < REFUSALS_MAX)
		return r->n++;
	for (unsigned i = 1; i < REFUSALS_MAX; i++)
		if (r->last[i] < r->last[oldest])
			oldest = i;
	r->rest += r->of[oldest].more;
	return oldest;
}

static struct refusals_of *get(struct refusals *r, const struct source *s, uint64_t now)
{
	unsigned i = 0;

	while (i < r->n && memcmp(&r->source[i], s, sizeof(*s)) != 0)
		i++;
	if (i == r->n) {
		i = place(r);
		r->source[i] = *s;
		r->of[i] = (struct refusals_of){0};
		rate_init(&r->of[i].rate, r->per_second, burst(r), now);
	}
	r->last[i] = now;
	return &r->of[i];
}

bool refusals_allow(struct refusals *r, const struct source *s, uint64_t now)
{
	struct refusals_of *of = get(r, s, now);

	if (!rate_available(&of->rate, now) || !rate_available(&r->all, now))
		return false;
	rate_take(&of->rate, 1);
	rate_take(&r->all, 1);
	return true;
}

void refusals_count(struct refusals *r, const struct source *s, const char *why, uint64_t now)
{
	struct refusals_of *of = get(r, s, now);

	of->more++;
	r->pending++;
	snprintf(of->why, sizeof(of->why), "%s", why);
}

uint64_t refusals_take(struct refusals *r, struct source *s, char why[REFUSALS_WHY])
{
	for (unsigned tried = 0; tried < r->n && r->pending > r->rest; tried++) {
		unsigned i = r->next++ % r->n;
		uint64_t more = r->of[i].more;

		if (!more)
			continue;
		*s = r->source[i];
		memcpy(why, r->of[i].why, REFUSALS_WHY);
		r->of[i].more = 0;
		r->pending -= more;
		return more;
	}
	return 0;
}

uint64_t refusals_take_rest(struct refusals *r)
{
	uint64_t all = r->pending;

	for (unsigned i = 0; i < r->n; i++)
		r->of[i].more = 0;
	r->pending = r->rest = 0;
	return all;
}
