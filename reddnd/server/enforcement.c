/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/server/enforcement.h"

#include "reddnd/policy/request.h"

#include <inttypes.h>
#include <stdio.h>

enum { SECOND_US = 1000000 };

bool enforcement_admits(
	struct enforcement *e, const uint8_t *address, uint64_t now, struct reddn_wire_rej *rej)
{
	const struct source of = source_of(address, e->source_bits);
	const struct ban *ban = bans_find(&e->banned, &of, now);
	uint64_t left;

	if (!ban)
		return true;
	left = (ban->until - now + SECOND_US - 1) / SECOND_US;
	return request_refuse(
		rej, REDDN_REJ_BANNED, (uint32_t)left, "refused for %" PRIu64 " s more: %s", left, ban->why);
}

void enforcement_begin(struct enforcement *e, const uint8_t *address, uint64_t now, struct action *action)
{
	const struct source of = source_of(address, e->source_bits);
	const struct ban *throttle = bans_find(&e->throttled, &of, now);

	*action = (struct action){0};
	if (!throttle)
		return;
	action->kind = ACTION_THROTTLE;
	action->rate = throttle->rate;
	action->until_us = throttle->until;
}

void enforcement_judge(struct enforcement *e, const struct verdict_policy *policy, const uint8_t *address,
	const struct verdict *v, uint64_t now, struct action *action)
{
	const struct source of = source_of(address, e->source_bits);
	uint64_t until = now + (uint64_t)policy->seconds * SECOND_US;

	*action = (struct action){0};
	if (policy->action == VERDICT_BAN)
		bans_add(&e->banned, &of, until, 0, v->text, now);
	if (policy->action == VERDICT_THROTTLE)
		bans_add(&e->throttled, &of, until, policy->rate, v->text, now);
	if (v->fatal || policy->action >= VERDICT_TERMINATE) {
		action->kind = ACTION_END;
		action->reason = end_reason_of_verdict(v->kind);
		snprintf(action->text, sizeof(action->text), "%s", v->text);
	} else if (policy->action == VERDICT_THROTTLE) {
		enforcement_begin(e, address, now, action);
	}
}
