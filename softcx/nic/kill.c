/* SPDX-License-Identifier: BSD-2-Clause */
#include "softcx/nic/kill.h"

#include <errno.h>
#include <string.h>

int kills_add(struct kills *kills, const struct kill_fault *fault)
{
	if (kills->n == KILL_MAX)
		return -ENOSPC;
	kills->fault[kills->n++] = *fault;
	return 0;
}

unsigned kills_clear(struct kills *kills, uint32_t id)
{
	unsigned kept = 0, n = kills->n;

	for (unsigned i = 0; i < n; i++)
		if (id && kills->fault[i].id != id)
			kills->fault[kept++] = kills->fault[i];
	kills->n = kept;
	return n - kept;
}

static bool strikes(struct kill_fault *f, const char *program)
{
	if (f->program[0] && strcmp(f->program, program) != 0)
		return false;
	f->seen++;
	if (f->seen < f->at || (f->count && f->struck == f->count))
		return false;
	f->struck++;
	return true;
}

bool kills_meet(struct kills *kills, enum kill_moment moment, const char *program)
{
	bool strike = false;

	for (unsigned i = 0; i < kills->n; i++)
		if (kills->fault[i].moment == moment && strikes(&kills->fault[i], program))
			strike = true;
	return strike;
}
