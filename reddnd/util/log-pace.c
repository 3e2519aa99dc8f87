/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/util/log-pace.h"

#include <stddef.h>
#include <string.h>

enum { SECOND_US = 1000000 };

/* Two lines that have one place make each other begin anew: that lets too much pass, never too little */
static unsigned place_of(const char *file, int line)
{
	uint64_t h = ((uint64_t)(uintptr_t)file + (uint64_t)line) * 0x9e3779b97f4a7c15;

	return (unsigned)(h >> 56) % LOG_PACE_PLACES;
}

bool log_pace_allows(struct log_pace *p, const char *file, int line, uint64_t now, uint64_t *left_out)
{
	unsigned i = place_of(file, line);
	uint64_t brought;

	*left_out = 0;
	if (p->place[i].file != file || p->place[i].line != line) {
		memset(&p->place[i], 0, sizeof(p->place[i]));
		p->place[i].file = file;
		p->place[i].line = line;
		p->place[i].from_us = now;
	}
	brought = (now - p->place[i].from_us) * LOG_PACE_PER_SECOND / SECOND_US;
	if (brought >= p->place[i].taken) {
		p->place[i].from_us = now;
		p->place[i].taken = brought = 0;
	}
	if (p->place[i].taken - brought >= LOG_PACE_BURST) {
		p->place[i].left_out++;
		return false;
	}
	p->place[i].taken++;
	*left_out = p->place[i].left_out;
	p->place[i].left_out = 0;
	return true;
}
