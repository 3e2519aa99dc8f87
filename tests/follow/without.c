/* SPDX-License-Identifier: BSD-2-Clause */
/* Leaves out the rule of tools/reddn-follow/rules.h whose number is in REDDN_FOLLOW_WITHOUT. */
#include "tools/reddn-follow/rules.h"

#include <stdlib.h>

bool rule_kept(enum rule rule)
{
	const char *without = getenv("REDDN_FOLLOW_WITHOUT");

	return !without || (enum rule)atoi(without) != rule;
}
