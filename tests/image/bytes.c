/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/image/bytes.h"

#include "mlx5/wqe.h"

#include <string.h>

enum {
	NONE = 0,
	ONE = 1, /* the sets of one value of the image */
	ANY = ONE + 256,
	OTHER = ANY + FROM_ALL + 1,
	SETS = 1 << 16,
	SLOTS = 2 * SETS,
};

struct set {
	uint64_t in[4];
	uint16_t n;
	uint8_t from, least, most;
	uint32_t slot;
};

static struct set sets[SETS];
static uint16_t slots[SLOTS]; /* numbers of sets, by hash */
static uint32_t nsets;

/* ---- sets ------------------------------------------------------------------------------------- */

static void add_value(uint64_t in[4], unsigned v)
{
	in[v / 64] |= 1ull << v % 64;
}

static bool has_value(const uint64_t in[4], unsigned v)
{
	return in[v / 64] >> v % 64 & 1;
}

static unsigned next_value(const uint64_t in[4], unsigned v)
{
	for (; v < 256; v = (v / 64 + 1) * 64)
		if (in[v / 64] >> v % 64)
			return v + (unsigned)__builtin_ctzll(in[v / 64] >> v % 64);
	return 256;
}

static uint32_t hash(const uint64_t in[4], uint8_t from)
{
	uint64_t h = from + 1u;

	for (unsigned i = 0; i < 4; i++)
		h = (h ^ in[i]) * 0x9e3779b97f4a7c15u ^ h >> 29;
	return (uint32_t)(h >> 32) % SLOTS;
}

static struct bytes number_of(const uint64_t in[4], uint8_t from)
{
	uint32_t slot = hash(in, from);
	struct set *s;

	for (; slots[slot]; slot = (slot + 1) % SLOTS) {
		s = &sets[slots[slot]];
		if (s->from == from && memcmp(s->in, in, sizeof(s->in)) == 0)
			return (struct bytes){slots[slot]};
	}
	if (nsets == SETS)
		return bytes_any(from);
	s = &sets[nsets];
	*s = (struct set){.from = from, .slot = slot};
	memcpy(s->in, in, sizeof(s->in));
	for (unsigned v = next_value(in, 0); v < 256; v = next_value(in, v + 1)) {
		s->least = s->n++ ? s->least : (uint8_t)v;
		s->most = (uint8_t)v;
	}
	slots[slot] = (uint16_t)nsets;
	return (struct bytes){(uint16_t)nsets++};
}

void bytes_reset(void)
{
	const uint64_t all[4] = {~0ull, ~0ull, ~0ull, ~0ull};

	while (nsets > OTHER)
		slots[sets[--nsets].slot] = 0;
	if (nsets)
		return;
	nsets = ONE;
	for (unsigned v = 0; v < 256; v++) {
		uint64_t in[4] = {0};

		add_value(in, v);
		number_of(in, 0);
	}
	for (uint8_t from = 0; from <= FROM_ALL; from++)
		number_of(all, from);
}

struct bytes bytes_one(uint8_t v)
{
	return (struct bytes){(uint16_t)(ONE + v)};
}

struct bytes bytes_any(uint8_t from)
{
	return (struct bytes){(uint16_t)(ANY + from)};
}

bool bytes_have(struct bytes b, uint8_t v)
{
	return has_value(sets[b.set].in, v);
}

bool bytes_only(struct bytes b, uint8_t v)
{
	return sets[b.set].n == 1 && sets[b.set].least == v;
}

bool bytes_const(struct bytes b, uint8_t *v)
{
	*v = sets[b.set].least;
	return sets[b.set].n == 1;
}

unsigned bytes_count(struct bytes b)
{
	return sets[b.set].n;
}

uint8_t bytes_most(struct bytes b)
{
	return sets[b.set].most;
}

unsigned bytes_next(struct bytes b, unsigned v)
{
	return next_value(sets[b.set].in, v);
}

uint8_t bytes_from(struct bytes b)
{
	return sets[b.set].from;
}

bool bytes_contain(struct bytes b, struct bytes in)
{
	const struct set *s = &sets[b.set], *t = &sets[in.set];

	if (b.set < ANY && in.set < ANY)
		return b.set == in.set || in.set == NONE;
	return !((t->in[0] & ~s->in[0]) | (t->in[1] & ~s->in[1]) | (t->in[2] & ~s->in[2]) |
		 (t->in[3] & ~s->in[3]) | (t->from & ~s->from));
}

/* ---- what is done to them --------------------------------------------------------------------- */

struct bytes bytes_join(struct bytes a, struct bytes b)
{
	uint64_t in[4];

	if (a.set == b.set || b.set == NONE)
		return a;
	if (a.set == NONE)
		return b;
	for (unsigned i = 0; i < 4; i++)
		in[i] = sets[a.set].in[i] | sets[b.set].in[i];
	return number_of(in, sets[a.set].from | sets[b.set].from);
}

struct bytes bytes_except(struct bytes b, uint8_t v, uint8_t mask)
{
	uint64_t in[4] = {0};

	for (unsigned i = bytes_next(b, 0); i < 256; i = bytes_next(b, i + 1))
		if ((i ^ v) & mask)
			add_value(in, i);
	return number_of(in, bytes_from(b));
}

/* The bits of @mask of all values */
static void project(struct bytes b, uint8_t mask, uint64_t in[4])
{
	memset(in, 0, 4 * sizeof(*in));
	for (unsigned i = bytes_next(b, 0); i < 256; i = bytes_next(b, i + 1))
		add_value(in, i & mask);
}

void bytes_compare(struct bytes a, struct bytes b, struct bytes mask, bool *equal, bool *differ)
{
	uint64_t x[4], y[4];
	unsigned first;
	uint8_t m;

	*equal = *differ = true;
	if (!bytes_const(mask, &m))
		return;
	project(a, m, x);
	project(b, m, y);
	first = next_value(x, 0);
	*differ = memcmp(x, y, sizeof(x)) != 0 || next_value(x, first + 1) < 256;
	*equal = x[0] & y[0] || x[1] & y[1] || x[2] & y[2] || x[3] & y[3];
}

struct bytes bytes_mix(struct bytes old, struct bytes swap, struct bytes mask)
{
	uint8_t from = bytes_from(old) | bytes_from(swap), m;
	uint64_t kept[4], brought[4], in[4] = {0};

	if (!bytes_const(mask, &m))
		return bytes_any(from | bytes_from(mask));
	if (m == 0 || m == 0xff)
		return m ? swap : old;
	project(old, (uint8_t)~m, kept);
	project(swap, m, brought);
	for (unsigned i = next_value(kept, 0); i < 256; i = next_value(kept, i + 1))
		for (unsigned k = next_value(brought, 0); k < 256; k = next_value(brought, k + 1))
			add_value(in, i | k);
	return number_of(in, from);
}

static unsigned combine(uint8_t calc, unsigned x, unsigned y)
{
	return calc == WQE_CALC_AND ? (x & y) : calc == WQE_CALC_OR ? (x | y) : x ^ y;
}

struct bytes bytes_calc(uint8_t calc, struct bytes a, struct bytes b)
{
	uint64_t in[4] = {0};

	if (calc == WQE_CALC_MAXLOC) /* the bytes above decide which of them it is */
		return bytes_join(a, b);
	for (unsigned x = bytes_next(a, 0); x < 256; x = bytes_next(a, x + 1))
		for (unsigned y = bytes_next(b, 0); y < 256; y = bytes_next(b, y + 1))
			add_value(in, combine(calc, x, y));
	return number_of(in, bytes_from(a) | bytes_from(b));
}

/* @set, each value made larger by @by, which may be 256 */
static void add_rotated(uint64_t in[4], const uint64_t set[4], unsigned by)
{
	unsigned words = by / 64, bits = by % 64;

	for (unsigned i = 0; i < 4; i++) {
		in[(i + words) % 4] |= set[i] << bits;
		if (bits)
			in[(i + words + 1) % 4] |= set[i] >> (64 - bits);
	}
}

/* Bit by bit */
static unsigned add_one(unsigned x, unsigned y, unsigned carry, uint8_t boundary, unsigned *out)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < 8; i++) {
		unsigned bits = (x >> i & 1) + (y >> i & 1) + carry;

		sum |= (bits & 1) << i;
		carry = boundary >> i & 1 ? 0 : bits >> 1;
	}
	*out = carry;
	return sum;
}

struct bytes bytes_add(struct bytes x, struct bytes y, uint8_t boundary, const bool in[2], bool out[2])
{
	const struct set *few = &sets[x.set], *many = &sets[y.set];
	uint64_t sum[4] = {0};

	if (few->n > many->n) {
		few = many;
		many = &sets[x.set];
	}
	out[0] = out[1] = false;
	for (unsigned i = next_value(few->in, 0); i < 256; i = next_value(few->in, i + 1))
		for (unsigned c = 0; c < 2; c++) {
			if (!in[c] || !many->n)
				continue;
			if ((boundary & 0x7f) == 0) {
				add_rotated(sum, many->in, i + c);
				out[0] |= boundary || i + c + many->least < 256;
				out[1] |= !boundary && i + c + many->most >= 256;
				continue;
			}
			for (unsigned k = next_value(many->in, 0); k < 256; k = next_value(many->in, k + 1)) {
				unsigned carry;

				add_value(sum, add_one(i, k, c, boundary, &carry));
				out[carry] = true;
			}
		}
	return number_of(sum, few->from | many->from);
}
