/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/control/share.h"

uint64_t share_wait(const struct share *s, uint64_t now)
{
	return now < s->until ? s->until - now : 0;
}

void share_took(struct share *s, uint64_t begin, uint64_t end)
{
	uint64_t took = end > begin ? end - begin : 1;

	s->until = end + (SHARE_OF - 1) * took;
}
