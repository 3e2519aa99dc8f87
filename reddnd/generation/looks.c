/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/generation/looks.h"

void looks_begins(struct looks *l)
{
	l->soon = LOOKS_SOON;
}

int looks_rest_ms(struct looks *l, bool answers)
{
	if (answers)
		l->soon = LOOKS_SOON;
	else if (l->soon)
		l->soon--;
	return !answers && l->soon ? LOOKS_SOON_MS : LOOKS_MS;
}
