/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/fuzz.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t fuzz_refusals;

/* libFuzzer reads this section as additional coverage. */
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t reasons[4096];

void fuzz_need(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "fuzz: %s\n", what);
	abort();
}

/* Messages that differ in numbers or quoted text only are one reason. */
void fuzz_refused(const char *why)
{
	uint32_t h = 2166136261; /* FNV-1a */
	bool quoted = false, number = false;

	fuzz_need(why && *why, "refused without a message");
	for (; *why && *why != '\n'; why++) {
		quoted ^= *why == '"';
		number = isdigit((unsigned char)*why) || (number && isalnum((unsigned char)*why));
		if (!quoted && !number && isalpha((unsigned char)*why))
			h = (h ^ (uint8_t)*why) * 16777619;
	}
	reasons[h % sizeof(reasons)] = 1;
	fuzz_refusals++;
}
