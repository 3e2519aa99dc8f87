/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * turing.h - what conf/programs/turing.rdn runs on: the regions of a machine, and the machine in plain C.
 *
 * Rules in the usual notation: for each state those for 0 and for 1, "1RB1LC_..."; a state that is not there
 * halts.
 */
#ifndef TESTS_PROGRAMS_TURING_H
#define TESTS_PROGRAMS_TURING_H

#include <stddef.h>
#include <stdint.h>

enum {
	TURING_CELLS = 32768, /* at most */
	TURING_ONE = 16,      /* how a 1 stands on the tape */
	TURING_LINKS = 256,   /* bytes of region links for a cell */
	TURING_RULES = 65536, /* bytes of region rules, and of the tape */
};

struct turing_reference {
	uint8_t tape[TURING_CELLS];
	uint64_t steps;
	unsigned head, ones;
};

/** A machine that begins at cell @start of an empty tape; it ends when it halts, or after @most steps. */
void turing_refer(struct turing_reference *r, const char *rules, unsigned start, uint64_t most);

void turing_rules(uint8_t *region, const char *rules);
void turing_links(uint8_t *region, unsigned cells);
/** The argument of a request for a machine whose head begins at cell @start. */
uint32_t turing_from(unsigned start);

#endif
