/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/policy/unreachable.h"

#include <string.h>

void unreachable_add(struct unreachable *u, const uint8_t gid[16], uint64_t now)
{
	unsigned at = 0;

	for (unsigned i = 0; i < UNREACHABLE_MAX; i++) {
		if (memcmp(u->kept[i].gid, gid, 16) == 0) {
			at = i;
			break;
		}
		if (u->kept[i].until < u->kept[at].until)
			at = i;
	}
	memcpy(u->kept[at].gid, gid, 16);
	u->kept[at].until = now + UNREACHABLE_US;
}

bool unreachable_has(const struct unreachable *u, const uint8_t gid[16], uint64_t now)
{
	for (unsigned i = 0; i < UNREACHABLE_MAX; i++)
		if (now < u->kept[i].until && memcmp(u->kept[i].gid, gid, 16) == 0)
			return true;
	return false;
}
