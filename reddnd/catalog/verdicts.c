/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/catalog/verdicts.h"

#include "reddnd/util/text.h"

#include <errno.h>
#include <string.h>

enum { SECOND_US = 1000000 };

static const char *const kinds[] = {
	[VERDICT_STEP] = "step",
	[VERDICT_QUEUE] = "queue",
	[VERDICT_REQUEST] = "request",
	[VERDICT_RNR] = "rnr",
	[VERDICT_UNREACHABLE] = "unreachable",
	[VERDICT_TIME] = "time",
};

static const char *const actions[] = {
	[VERDICT_LOG] = "log", [VERDICT_TERMINATE] = "terminate", [VERDICT_BAN] = "ban"};

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

int verdict_policy_parse(const char *text, struct verdict_policy *policy)
{
	static const char ban[] = "ban:";
	uint64_t us;

	if (strcmp(text, actions[VERDICT_LOG]) == 0) {
		*policy = (struct verdict_policy){VERDICT_LOG, 0};
		return 0;
	}
	if (strcmp(text, actions[VERDICT_TERMINATE]) == 0) {
		*policy = (struct verdict_policy){VERDICT_TERMINATE, 0};
		return 0;
	}
	if (strncmp(text, ban, strlen(ban)) != 0 || text_parse_duration(text + strlen(ban), &us) < 0 ||
		us < SECOND_US)
		return -EINVAL;
	*policy = (struct verdict_policy){VERDICT_BAN, (uint32_t)((us + SECOND_US - 1) / SECOND_US)};
	return 0;
}
