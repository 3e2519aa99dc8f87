/* SPDX-License-Identifier: BSD-2-Clause */
#include "memcached/pages.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t round_up(uint32_t n, uint32_t to)
{
	return (n + to - 1) / to * to;
}

int pages_init(struct pages *p, uint32_t count)
{
	*p = (struct pages){.runs = calloc(count, sizeof(*p->runs)), .count = count};
	return p->runs ? 0 : -ENOMEM;
}

void pages_deinit(struct pages *p)
{
	free(p->runs);
}

int64_t pages_take(struct pages *p, uint32_t run, uint32_t align)
{
	uint32_t at = p->first, begin = round_up(at, align); /* of the free pages before @at */

	while (at < p->count) {
		if (p->runs[at]) {
			at += p->runs[at];
			begin = round_up(at, align);
			continue;
		}
		at++;
		if (at < begin || at - begin < run)
			continue;
		p->runs[begin] = run;
		if (begin == p->first)
			p->first += run;
		return begin;
	}
	return -1;
}

int pages_give(struct pages *p, uint32_t page)
{
	if (page >= p->count || !p->runs[page])
		return -EINVAL;
	p->runs[page] = 0;
	if (page < p->first)
		p->first = page;
	return 0;
}
