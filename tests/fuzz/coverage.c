/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/inputs.h"

#include <stdlib.h>
#include <string.h>

/* Of clang: every edge of the program has a number, and calls this with it; but no edge of this itself */
#ifdef __clang__
#define NOT_COVERED __attribute__((no_sanitize("coverage")))
#else
#define NOT_COVERED
#endif
void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop);
void __sanitizer_cov_trace_pc_guard(uint32_t *guard);

enum { EDGES = 1 << 18, TOLD = 1 << 16 };

static uint8_t count[EDGES], seen[EDGES];
static uint8_t told[TOLD];
static uint32_t edges;
static uint64_t path;
static unsigned fresh;

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop)
{
	if (start < stop && !*start)
		for (uint32_t *g = start; g < stop; g++)
			*g = ++edges < EDGES ? edges : EDGES - 1;
}

NOT_COVERED void __sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
	if (count[*guard] < UINT8_MAX)
		count[*guard]++;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15;
	return h ^ h >> 29;
}

void coverage_begin(void)
{
	memset(count, 0, sizeof(count));
	path = 0;
	fresh = 0;
}

void inputs_feature(const char *text)
{
	uint64_t h = 1;

	for (; *text; text++)
		h = mix(h, (uint8_t)*text);
	path = mix(path, h);
	fresh += !told[h % TOLD];
	told[h % TOLD] = 1;
}

unsigned coverage_end(uint64_t *out)
{
	for (uint32_t e = 1; e < EDGES; e++) {
		uint8_t bit;

		if (!count[e])
			continue;
		/* 1, 2 to 3, 4 to 7... */
		bit = (uint8_t)(1 << (7 - __builtin_clz(count[e]) + 24));
		path = mix(path, e);
		fresh += !(seen[e] & bit);
		seen[e] |= bit;
	}
	*out = path;
	return fresh;
}
