/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/verdicts.h"

#include "util/number.h"

#include <errno.h>
#include <string.h>

enum { SECOND_US = 1000000, RATE_MAX = 1000000000 };

static const char *const kinds[] = {
	[VERDICT_STEP] = "step",
	[VERDICT_QUEUE] = "queue",
	[VERDICT_REQUEST] = "request",
	[VERDICT_RNR] = "rnr",
	[VERDICT_UNREACHABLE] = "unreachable",
	[VERDICT_TIME] = "time",
	[VERDICT_LOOP] = "loop",
};

static const char *const actions[] = {
	[VERDICT_LOG] = "log",
	[VERDICT_THROTTLE] = "throttle",
	[VERDICT_TERMINATE] = "terminate",
	[VERDICT_BAN] = "ban",
};

const char *verdict_kind_name(enum verdict_kind kind)
{
	return kinds[kind];
}

enum verdict_kind verdict_kind_named(const char *name)
{
	unsigned k = 0;

	while (k < VERDICT_KINDS && strcmp(name, kinds[k]) != 0)
		k++;
	return k;
}

const char *verdict_action_name(enum verdict_action action)
{
	return actions[action];
}

static int parse_time(const char *text, uint32_t *seconds)
{
	uint64_t us;

	if (number_parse_duration(text, &us) < 0 || us < SECOND_US)
		return -EINVAL;
	*seconds = (uint32_t)((us + SECOND_US - 1) / SECOND_US);
	return 0;
}

static int parse_throttle(const char *text, struct verdict_policy *policy)
{
	size_t digits = strcspn(text, ":");
	char number[24] = "";
	uint64_t rate;

	if (!text[digits] || digits >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, digits);
	if (number_parse_decimal(number, 1, RATE_MAX, &rate) < 0)
		return -EINVAL;
	*policy = (struct verdict_policy){.action = VERDICT_THROTTLE, .rate = rate};
	return parse_time(text + digits + 1, &policy->seconds);
}

int verdict_policy_parse(const char *text, struct verdict_policy *policy)
{
	static const char ban[] = "ban:", throttle[] = "throttle:";

	*policy = (struct verdict_policy){0};
	if (strcmp(text, actions[VERDICT_LOG]) == 0) {
		policy->action = VERDICT_LOG;
		return 0;
	}
	if (strcmp(text, actions[VERDICT_TERMINATE]) == 0) {
		policy->action = VERDICT_TERMINATE;
		return 0;
	}
	if (strncmp(text, throttle, strlen(throttle)) == 0)
		return parse_throttle(text + strlen(throttle), policy);
	if (strncmp(text, ban, strlen(ban)) != 0)
		return -EINVAL;
	policy->action = VERDICT_BAN;
	return parse_time(text + strlen(ban), &policy->seconds);
}
