/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/load/load-options.h"

#include "util/number.h"

#include <stdlib.h>

static bool seconds(const char *text, double *to)
{
	char *end;

	*to = strtod(text, &end);
	return end != text && !*end && *to > 0 && *to < 1e9;
}

static bool number(struct load_options *l, int letter, const char *text)
{
	static const uint64_t max[] = {['p'] = UINT16_MAX,
		['d'] = UINT16_MAX,
		['n'] = 65536,
		['c'] = UINT64_MAX,
		['R'] = UINT32_MAX};
	uint64_t v;

	if (number_parse(text, 1, max[letter], &v))
		return false;
	switch (letter) {
	case 'p':
		l->connect.port = (uint16_t)v;
		return true;
	case 'd':
		l->connect.depth = (uint16_t)v;
		return true;
	case 'n':
		l->clients = (unsigned)v;
		return true;
	case 'c':
		l->count = v;
		return true;
	default:
		l->rate = v;
		return true;
	}
}

bool load_set_option(struct load_options *l, int letter, const char *text)
{
	switch (letter) {
	case 'K':
		l->connect.token_file = text;
		return true;
	case 'j':
		l->json = true;
		return true;
	case 'k':
		l->keys = text;
		return true;
	case 'V':
		l->verify = true;
		return true;
	case 's':
		return seconds(text, &l->seconds);
	case 'S':
		return number_parse(text, 0, UINT64_MAX, &l->seed) == 0;
	case 'p':
	case 'd':
	case 'n':
	case 'c':
	case 'R':
		return number(l, letter, text);
	default:
		return false;
	}
}
