/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/programs/turing.h"

#include <string.h>

enum { RIGHT = 8 };

struct rule {
	unsigned symbol, right, next;
};

static unsigned states(const char *rules)
{
	return (unsigned)(strlen(rules) + 1) / 7;
}

static struct rule rule_of(const char *rules, unsigned state, unsigned symbol)
{
	const char *rule = rules + state * 7 + symbol * 3;

	return (struct rule){(unsigned)(rule[0] - '0'), rule[1] == 'R', (unsigned)(rule[2] - 'A')};
}

void turing_refer(struct turing_reference *r, const char *rules, unsigned start, uint64_t most)
{
	unsigned state = 0;

	*r = (struct turing_reference){.head = start};
	while (state < states(rules) && r->steps < most) {
		struct rule rule = rule_of(rules, state, r->tape[r->head]);

		r->ones += rule.symbol - r->tape[r->head];
		r->tape[r->head] = (uint8_t)rule.symbol;
		r->head += rule.right ? 1u : -1u;
		state = rule.next;
		r->steps++;
	}
}

void turing_rules(uint8_t *region, const char *rules)
{
	for (unsigned q = 0; q < states(rules); q++)
		for (unsigned s = 0; s < 2; s++) {
			struct rule rule = rule_of(rules, q, s);
			uint8_t *e = region + (q << 8 | s * TURING_ONE);

			e[0] = (uint8_t)(rule.symbol * TURING_ONE);
			e[1] = rule.right ? RIGHT : 0;
			e[2] = (uint8_t)rule.next;
			e[3] = rule.next >= states(rules);
		}
}

static void put(uint8_t *p, unsigned cell)
{
	for (unsigned i = 0; i < 3; i++) {
		p[2 * i] = (uint8_t)(cell >> 8);
		p[2 * i + 1] = (uint8_t)cell;
	}
}

void turing_links(uint8_t *region, unsigned cells)
{
	for (unsigned x = 0; x < cells; x++) {
		put(region + (size_t)x * TURING_LINKS, (x ? x : cells) - 1);
		put(region + (size_t)x * TURING_LINKS + RIGHT, (x + 1) % cells);
	}
}

uint32_t turing_from(unsigned start)
{
	return (start - 1) * TURING_LINKS | RIGHT;
}
