/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/programs/values.h"

#include "tests/programs/run.h"

#include <string.h>

uint64_t run_random(struct run *r, uint64_t below)
{
	return chain_rig_random(&r->c, below);
}

void run_fill(struct run *r, void *p, size_t n)
{
	chain_rig_fill(&r->c, p, n);
}

static unsigned arg_index(const struct run *r, const char *name)
{
	for (unsigned a = 0; a < r->p->nargs; a++)
		if (strcmp(r->p->args[a].name, name) == 0)
			return a;
	fail_msg("%s has no argument %s", r->o->name, name);
	return 0;
}

void run_arg(struct run *r, const char *name, uint64_t value)
{
	unsigned a = arg_index(r, name), bytes = r->p->args[a].bytes;

	for (unsigned i = 0; i < bytes; i++)
		r->arg[a][bytes - 1 - i] = (uint8_t)(value >> 8 * i);
}

void run_arg_bytes(struct run *r, const char *name, const void *bytes)
{
	unsigned a = arg_index(r, name);

	memcpy(r->arg[a], bytes, r->p->args[a].bytes);
}

/* ---- numbers ---------------------------------------------------------------------------------- */

void run_put_be(uint8_t *p, unsigned bytes, uint64_t v)
{
	while (bytes--) {
		p[bytes] = (uint8_t)v;
		v >>= 8;
	}
}

void run_put_le(uint8_t *p, unsigned bytes, uint64_t v)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

uint64_t run_get_be(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v = v << 8 | p[i];
	return v;
}

uint64_t run_get_le(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

uint64_t run_number(struct run *r, unsigned bytes)
{
	uint64_t v = run_random(r, 1u << 31) << 33 ^ run_random(r, 1u << 31) << 8 ^ run_random(r, 256);

	switch (run_random(r, 4)) {
	case 0:
		v = run_random(r, 3);
		break;
	case 1:
		v = (1ull << 8 * run_random(r, 8)) + run_random(r, 3) - 1;
		break;
	case 2:
		v = UINT64_MAX - run_random(r, 3);
		break;
	}
	return bytes < 8 ? v & ((1ull << 8 * bytes) - 1) : v;
}

uint64_t run_number_near(struct run *r, uint64_t v, unsigned bytes)
{
	switch (run_random(r, 4)) {
	case 0:
		return v;
	case 1:
		v = run_random(r, 2) ? v + 1 : v - 1;
		break;
	case 2:
		v ^= 1ull << run_random(r, 8 * bytes);
		break;
	default:
		return run_number(r, bytes);
	}
	return bytes < 8 ? v & ((1ull << 8 * bytes) - 1) : v;
}

void run_no_setup(struct run *r)
{
	(void)r;
}

/* ---- compiling -------------------------------------------------------------------------------- */
