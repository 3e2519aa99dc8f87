/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/programs/generate.h"

#include "reddnd/chain/ir/image.h"
#include "util/xorshift.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAMES = 24, ARGS = 80, FIELDS = 4, DEEPEST = 4, LABELS = 24 };
enum { MANY = 61 /* elements of an array of arguments: a WR copies 30 of them */ };
enum { MARK = 7 /* bytes, with the tag */ };
enum { STRUCTS = 3, WORD = 2 /* the structure whose fields have 8 bytes */ };

struct type {
	char order; /* 'b', 'l', 'u'; 's': a string of bytes; 'o': offset in region number `region` */
	unsigned bytes, region;
};

struct name {
	char word[16];
	struct type type;
};

struct structure {
	struct type field[FIELDS];
	unsigned n;
};

/* A verb that can be waited for, or a part of it read */
struct label {
	char word[16], field[16]; /* empty: none */
	unsigned bytes;           /* that the field has */
	unsigned loop;
};

/* How the program ends */
enum ending { ANSWER, ANSWER_IMM, ANSWER_PATCHED, SEND, TWO_ANSWERS, ANSWERS };

struct gen {
	struct random *r;
	const struct generate_style *style;
	char *text;
	size_t size, len;
	struct structure structs[STRUCTS];
	bool writable[4], steered[4], payload, published, many;
	const struct structure *of[4];    /* NULL: a region without a structure */
	unsigned nregions, buckets, heap; /* where something is published, and what: a payload */
	struct name arg[ARGS], var[NAMES];
	struct label label[LABELS];
	unsigned nargs, nvars, nlabels, nqueues, made, labels, names, depth, loops;
	unsigned loop; /* number of the innermost loop around this, 0: none */
	enum ending ending;
	bool endless, ahead; /* ahead: before the end of the loop without a bound, and so before the answer */
};

uint32_t random_next(struct random *r)
{
	return (uint32_t)(xorshift(&r->state) * 0x9e3779b97f4a7c15u >> 32);
}

unsigned random_below(struct random *r, unsigned n)
{
	return (unsigned)((uint64_t)random_next(r) * n >> 32);
}

static unsigned below(struct gen *g, unsigned n)
{
	return random_below(g->r, n);
}

static bool chance(struct gen *g, unsigned percent)
{
	return below(g, 100) < percent;
}

static bool mistake(struct gen *g)
{
	return below(g, 1000) < g->style->mistakes;
}

static void __attribute__((format(printf, 2, 3))) put(struct gen *g, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(g->text + g->len, g->size - g->len, fmt, ap);
	va_end(ap);
	if (n > 0 && g->len + (size_t)n < g->size)
		g->len += (size_t)n;
}

/* ---- types and values ------------------------------------------------------------------------- */

static struct type some_type(struct gen *g, const char *orders)
{
	static const unsigned BYTES[] = {1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 8};
	struct type t = {.order = orders[below(g, (unsigned)strlen(orders))]};

	t.bytes = BYTES[below(g, sizeof(BYTES) / sizeof(BYTES[0]))];
	if (t.order == 's')
		t.bytes = chance(g, 50) ? 12 : 16;
	if (t.order == 'o') {
		t.bytes = 1 + below(g, 4);
		t.region = below(g, g->nregions);
	}
	return t;
}

static void put_type(struct gen *g, struct type t)
{
	if (t.order == 's')
		put(g, "bytes %u", t.bytes);
	else if (t.order == 'o')
		put(g, "offset(%u) in r%u", t.bytes, t.region);
	else if (t.bytes == 1)
		put(g, "u8");
	else
		put(g, "%s%u", t.order == 'b' ? "be" : t.order == 'l' ? "le" : "u", 8 * t.bytes);
}

static uint64_t some_bits(struct gen *g, unsigned bytes)
{
	uint64_t v = (uint64_t)random_next(g->r) << 32 | random_next(g->r);

	return v & (UINT64_MAX >> (64 - 8 * (bytes < 8 ? bytes : 8)));
}

static void put_number(struct gen *g, unsigned bytes)
{
	uint64_t v = some_bits(g, bytes);

	if (chance(g, 50))
		v &= 15;
	if (mistake(g))
		put(g, "(%llu + n * %u << %u)", (unsigned long long)v, below(g, 9), below(g, 70));
	else
		put(g, "%llu", (unsigned long long)v);
}

/* Of whole bytes, of a few bits, of one bit, or any */
static void put_mask(struct gen *g, unsigned size)
{
	const unsigned bytes = size < 8 ? size : 8;
	uint64_t mask = some_bits(g, bytes);

	switch (below(g, 4)) {
	case 0:
		mask = 0;
		for (unsigned i = 0; i < bytes; i++)
			mask |= chance(g, 50) ? 0xffull << 8 * i : 0;
		break;
	case 1:
		mask = (1ull << below(g, 8 * bytes)) - 1;
		mask <<= below(g, 4);
		mask &= UINT64_MAX >> (64 - 8 * bytes);
		break;
	case 2:
		mask = 1ull << below(g, 8 * bytes);
		break;
	}
	put(g, "%#llx", (unsigned long long)(mask ? mask : 1));
}

/* A name of that order and size, or NULL */
static const struct name *pick(
	struct gen *g, const struct name *names, unsigned n, const char *orders, unsigned bytes)
{
	unsigned from = n ? below(g, n) : 0;

	for (unsigned i = 0; i < n; i++) {
		const struct name *name = &names[(from + i) % n];

		if (mistake(g) || ((strchr(orders, name->type.order) ||
					   (name->type.bytes == 1 && name->type.order != 'o')) &&
					  (!bytes || name->type.bytes == bytes)))
			return name;
	}
	return NULL;
}

static const struct name *new_var(struct gen *g, struct type t, bool declare)
{
	struct name *v;

	if (g->nvars == NAMES)
		return NULL;
	v = &g->var[g->nvars++];
	v->type = t;
	snprintf(v->word, sizeof(v->word), "v%u", g->names++);
	if (declare) {
		put(g, "var %s : ", v->word);
		put_type(g, t);
		if (t.order != 's' && chance(g, 30)) {
			put(g, " = ");
			put_number(g, t.bytes);
		}
		put(g, "\n");
	}
	return v;
}

/* An array, or structure @st. False: there are too many already */
static bool new_vars(struct gen *g, bool array, unsigned st)
{
	unsigned name = g->names++, n = array ? 2 : g->structs[st].n;
	struct type t = some_type(g, "bll");

	if (g->nvars + n > NAMES)
		return false;
	put(g, "var v%u", name);
	if (array) {
		put(g, "[%u] : ", n);
		put_type(g, t);
	} else {
		put(g, " : s%u", st);
	}
	put(g, "\n");
	for (unsigned i = 0; i < n; i++) {
		struct name *v = &g->var[g->nvars++];

		v->type = array ? t : g->structs[st].field[i];
		snprintf(v->word, sizeof(v->word), array ? "v%u[%u]" : "v%u.f%u", name, i);
	}
	return true;
}

static const struct name *need_var(struct gen *g, const char *orders, unsigned bytes)
{
	const struct name *v = pick(g, g->var, g->nvars, orders, bytes);
	struct type t = {orders[0], bytes ? bytes : 8, 0};

	return v ? v : new_var(g, t, true);
}

/* r2 @ a1 + 8 */
static void put_place(struct gen *g, unsigned region, unsigned align)
{
	put(g, "r%u", region);
	if (chance(g, 20))
		return;
	put(g, " @ %u", below(g, 16) * align);
	for (unsigned terms = below(g, 3); terms; terms--) {
		const struct name *name = NULL;

		if (chance(g, 60)) {
			for (unsigned i = 0; i < g->nargs && !name; i++) {
				if (g->arg[i].type.order == 'o' &&
					(g->arg[i].type.region == region || mistake(g)))
					name = &g->arg[i];
			}
		} else {
			name = pick(g, g->var, g->nvars, "b", 0);
		}
		if (name)
			put(g, " + %s", name->word);
	}
}

/* ---- statements ------------------------------------------------------------------------------- */

static void statements(struct gen *g);

static void indent(struct gen *g)
{
	for (unsigned i = 0; i < g->depth; i++)
		put(g, "  ");
}

static void block(struct gen *g)
{
	unsigned vars = g->nvars;

	put(g, " {\n");
	g->depth++;
	statements(g);
	g->depth--;
	g->nvars = vars;
	indent(g);
	put(g, "}");
}

/* An argument that is narrower than what it is compared with, and a constant above it */
static bool put_sum(struct gen *g, struct type t)
{
	unsigned bytes = t.bytes > 1 ? 1 + below(g, t.bytes - 1) : 0;
	const struct name *name = bytes ? pick(g, g->arg, g->nargs, "u", bytes) : NULL;

	if (!name)
		return false;
	put(g, "%s + (%u << %u)", name->word, 1 + below(g, 255), 8 * (mistake(g) ? below(g, 8) : bytes));
	return true;
}

/* An argument, a variable or a number */
static void put_value(struct gen *g, struct type t)
{
	const struct name *name = NULL;

	if (chance(g, 40))
		name = chance(g, 50) ? pick(g, g->arg, g->nargs, "ubl",
					       chance(g, 40) ? 1 + below(g, t.bytes) : t.bytes)
				     : pick(g, g->var, g->nvars, (char[]){t.order, 0}, t.bytes);
	if (name)
		put(g, "%s", name->word);
	else
		put_number(g, t.bytes);
}

/* What stands on the right of a condition */
static void put_operand(struct gen *g, struct type t)
{
	if (!chance(g, 20) || !put_sum(g, t))
		put_value(g, t);
}

/* A place in a region with a type */
static void put_typed(struct gen *g, unsigned region, struct type t)
{
	const struct structure *st = g->of[region];

	for (unsigned f = 0; st && f < st->n; f++)
		if (st->field[f].order == t.order && st->field[f].bytes == t.bytes) {
			put(g, "r%u.f%u @ %u", region, f, below(g, 64));
			return;
		}
	put_place(g, region, 1);
	put(g, " as ");
	put_type(g, t);
}

/* Of two arguments, or of a place in a region */
static void put_other_cond(struct gen *g)
{
	const struct name *a = pick(g, g->arg, g->nargs, "ubl", 0), *b = pick(g, g->arg, g->nargs, "ubl", 0);
	struct type t = some_type(g, "bll");

	if (a && b && chance(g, 50)) {
		put(g, "%s %s ", a->word, chance(g, 50) ? "==" : "<=");
		if (chance(g, 50))
			put(g, "%s", b->word);
		else
			put_number(g, a->type.bytes);
		return;
	}
	put_typed(g, below(g, g->nregions), t);
	put(g, " %s ", t.order == 'b' && t.bytes > 1 ? "!=" : "<");
	put_operand(g, t);
}

static void put_comparison(struct gen *g)
{
	static const char *const RELATIONS[] = {"==", "==", "==", "!=", "<", ">", "<=", ">="};
	const struct name *v = pick(g, g->var, g->nvars, "lbs", 0);
	unsigned r;

	if (chance(g, 15)) {
		put_other_cond(g);
		return;
	}

	if (!v) {
		put(g, "n < %u", below(g, 4));
		return;
	}
	r = below(g, v->type.order == 'l' || v->type.bytes == 1 ? 8 : 4);
	put(g, "%s %s ", v->word, RELATIONS[r]);
	if (v->type.order == 's') {
		const struct name *arg = pick(g, g->arg, g->nargs, "s", v->type.bytes);

		put(g, "%s", arg ? arg->word : v->word);
		return;
	}
	put_operand(g, v->type);
}

/* One comparison, or several */
static void put_cond(struct gen *g)
{
	const bool several = chance(g, 15), group = several && chance(g, 40);

	if (several) {
		put(g, "%s", group ? "(" : "");
		put_cond(g);
		put(g, " %s ", chance(g, 50) ? "&&" : "||");
	}
	put_comparison(g);
	if (group)
		put(g, ") %s ", chance(g, 50) ? "&&" : "||");
	if (group)
		put_comparison(g);
}

/* -> slot @ 5; what cannot be in the slot yet goes to region 0 */
static void put_sink(struct gen *g, unsigned at)
{
	put(g, " -> %s @ %u", g->ahead && !mistake(g) ? "r0" : "slot", at);
}

/* How much of a region, if the length is patched or not */
static void put_length(struct gen *g, bool patched, unsigned most)
{
	if (patched)
		put(g, ", %s %u\n", chance(g, 60) ? "max" : "1 to", most);
	else
		put(g, ", %u bytes\n", 1 + below(g, 99));
}

static void label_write(struct gen *g, unsigned label, bool length)
{
	indent(g);
	put(g, "l%u: write r%u", label, below(g, g->nregions));
	put_sink(g, 8 * below(g, 9));
	put_length(g, length, 1 + below(g, 99));
}

/* A READ whose fields patch the write after it, and perhaps go to a variable */
static void read_and_write(struct gen *g)
{
	unsigned st = below(g, STRUCTS), label = g->labels++, n = 0, vars = g->nvars;
	bool length = false, address = false;

	put(g, "read ");
	put_place(g, below(g, g->nregions), 8);
	put(g, " as s%u { ", st);
	for (unsigned f = 0; f < g->structs[st].n; f++) {
		struct type t = g->structs[st].field[f];

		if (chance(g, 30) && (n || f + 1 < g->structs[st].n))
			continue;
		put(g, "%sf%u -> ", n++ ? ", " : "", f);
		if (t.order == 'b' && t.bytes <= 3 && !length && chance(g, 70)) {
			length = true;
			put(g, "l%u.length", label);
		} else if (t.order == 'b' && (t.bytes < 8 || mistake(g)) && !address && chance(g, 60)) {
			address = true;
			put(g, "l%u.addr", label);
		} else {
			const struct name *v =
				chance(g, 50) ? pick(g, g->var, g->nvars, (char[]){t.order, 0}, t.bytes)
					      : NULL;

			v = v ? v : new_var(g, t, false);
			put(g, "%s", v ? v->word : "v0");
		}
	}
	put(g, " }\n");
	for (; vars < g->nvars; vars++) { /* what is declared by being read has to be used */
		indent(g);
		put(g, "write %s", g->var[vars].word);
		put_sink(g, below(g, 100));
		put(g, "\n");
	}
	indent(g);
	if (chance(g, 30)) {
		put(g, "if ");
		put_cond(g);
		put(g, " {\n");
		label_write(g, label, length);
		indent(g);
		put(g, "}\n");
	} else {
		label_write(g, label, length);
	}
}

/* ---- patches ---------------------------------------------------------------------------------- */

static void note_label(struct gen *g, const char *word, const char *field, unsigned bytes)
{
	struct label *l = &g->label[g->nlabels % LABELS];

	g->nlabels++;
	snprintf(l->word, sizeof(l->word), "%s", word);
	snprintf(l->field, sizeof(l->field), "%s", field);
	l->bytes = bytes;
	l->loop = g->loop;
}

/* One that is known here, or NULL */
static const struct label *some_label(struct gen *g)
{
	unsigned n = g->nlabels < LABELS ? g->nlabels : LABELS, from = n ? below(g, n) : 0;

	for (unsigned i = 0; i < n; i++)
		if (g->label[(from + i) % n].loop == g->loop || mistake(g))
			return &g->label[(from + i) % n];
	return NULL;
}

static void put_small(struct gen *g, unsigned bytes, bool small)
{
	if (small)
		put(g, "%u", 8 * below(g, bytes == 1 ? 32 : 60));
	else
		put_number(g, bytes);
}

/* Writes to @field, which takes numbers of at most @bytes; @whole: of all that it has; @small: mostly numbers
 * that do no harm */
static void put_patch(struct gen *g, const char *field, unsigned bytes, bool whole, bool small)
{
	unsigned some = 1 + below(g, bytes);
	const char order = bytes == 8 && whole && chance(g, 50) ? 'l' : 'b'; /* operands take either */
	const struct name *v = NULL;
	const struct label *other;

	switch (below(g, small ? 12 : 9)) {
	case 0:
		v = pick(g, g->arg, g->nargs, "ubo", some);
		break;
	case 1:
		v = pick(g, g->var, g->nvars, "b", some);
		break;
	case 2:
		v = pick(g, g->var, g->nvars, "l", some);
		if (v && v->type.bytes > 1) {
			put(g, order == 'l' ? "mov %s -> %s\n" : "mov swab(%s) -> %s\n", v->word, field);
			return;
		}
		break;
	case 3:
		put(g, "mov ");
		put_typed(g, below(g, g->nregions), (struct type){order, some, 0});
		put(g, " -> %s\n", field);
		return;
	case 4:
		/* it may run although its conditions are false, and fails outside of the region */
		if (g->depth && chance(g, 40)) {
			put(g, "ahead read r%u @ %u", below(g, g->nregions), 8 * below(g, 16));
		} else {
			put(g, "read ");
			put_place(g, below(g, g->nregions), 8);
		}
		put(g, " as ");
		put_type(g, (struct type){order, some, 0});
		put(g, " -> %s\n", field);
		return;
	case 5:
		if (!whole || bytes < 8 || (g->endless && g->loop && !mistake(g)))
			break;
		put(g, "cas %s : ", field);
		put_value(g, (struct type){'b', 8, 0});
		put(g, " -> ");
		put_value(g, (struct type){'b', 8, 0});
		if (chance(g, 50)) {
			put(g, ", mask ");
			put_mask(g, 8);
		}
		put(g, "\n");
		return;
	case 6:
		v = whole ? pick(g, g->var, g->nvars, "b", bytes) : NULL;
		if (!v || v->type.bytes != bytes)
			break;
		put(g, "write %s -> %s\n", v->word, field);
		return;
	case 7:
		other = some_label(g);
		if (!other || !*other->field || bytes != other->bytes)
			break;
		put(g, "mov %s.%s -> %s\n", other->word, other->field, field);
		return;
	}
	if (v && v->type.bytes <= bytes) {
		put(g, "mov %s -> %s\n", v->word, field);
		return;
	}
	put(g, "mov ");
	put_small(g, some, small);
	put(g, " as ");
	put_type(g, (struct type){'b', some, 0});
	put(g, " -> %s\n", field);
}

static void patch_field(struct gen *g, const char *field, unsigned bytes, bool whole, bool small)
{
	/* in a loop without a bound it would keep what an iteration long ago has put there */
	bool under = chance(g, 25) && (!(g->endless && g->loop) || mistake(g));

	indent(g);
	if (under) {
		put(g, "if ");
		put_cond(g);
		put(g, " {\n");
		indent(g);
	}
	put_patch(g, field, bytes, whole, small);
	if (under) {
		indent(g);
		put(g, "}\n");
	}
}

/* A field is copied, wherever that is: perhaps under other conditions than its verb, or before its patch */
static void copy_field(struct gen *g, const char *label, const char *field, unsigned bytes)
{
	const struct name *v = need_var(g, "b", bytes);

	indent(g);
	if (!v || v->type.order != 'b' || chance(g, 20)) {
		put(g, "write %s.%s", label, field);
		put_sink(g, 8 * below(g, 9));
		put(g, "\n");
		return;
	}
	put(g, "%s %s.%s -> %s\n",
		chance(g, 70)               ? "mov"
		: g->depth && chance(g, 50) ? "ahead read"
					    : "read",
		label, field, v->word);
	if (chance(g, 40)) {
		indent(g);
		put(g, "write %s", v->word);
		put_sink(g, 8 * below(g, 9));
		put(g, "\n");
	}
}

static void copy_some_field(struct gen *g)
{
	const struct label *l = some_label(g);

	if (l && *l->field)
		copy_field(g, l->word, l->field, l->bytes);
}

static void patch_address(struct gen *g, const char *label, const char *address)
{
	char field[32];

	snprintf(field, sizeof(field), "%s.%s", label, address);
	if (chance(g, 30) && strncmp(address, "local", 5) != 0) {
		snprintf(field, sizeof(field), "%s.%s[%u]", label, address, mistake(g) ? 0 : 6 + below(g, 2));
		patch_field(g, field, 1, true, true);
	} else {
		patch_field(g, field, mistake(g) ? 8 : 5, false, true);
	}
}

/* A verb and what patches it before */
static void patched_read(struct gen *g, const char *label)
{
	const struct name *v = need_var(g, "bl", 0);

	patch_address(g, label, "remote");
	indent(g);
	if (!v)
		return;
	put(g, "%s: %sread r%u @ %u as ", label, chance(g, 10) && !g->endless ? "fence " : "",
		below(g, g->nregions), 8 * below(g, 32));
	put_type(g, v->type);
	put(g, " -> %s\n", v->word);
	note_label(g, label, "", 0);
}

static void patched_write(struct gen *g, const char *label)
{
	unsigned from = below(g, g->nregions), to = below(g, g->nregions), sge = below(g, 2);
	bool length = chance(g, 60), typed = !length && chance(g, 50);
	char field[32];

	if (length) {
		snprintf(field, sizeof(field), sge ? "%s.local[1].length" : "%s.length", label);
		patch_field(g, field, chance(g, 70) ? 1 : 4, false, true);
	}
	if (chance(g, 60))
		patch_address(g, label, sge ? "local[1].addr" : "addr");
	indent(g);
	put(g, "%s: %swrite %sr%u", label, chance(g, 10) && !g->endless ? "fence " : "",
		sge ? "7 as be16, " : "", from);
	if (typed)
		put(g, " @ %u as bytes %u", below(g, 64), 1 + below(g, 40));
	if (g->writable[to] && chance(g, 40))
		put(g, " -> r%u @ %u", to, below(g, 300));
	else
		put_sink(g, 8 * below(g, 9));
	if (typed)
		put(g, "\n");
	else
		put_length(g, length, 480);
	note_label(g, label, !length ? "" : sge ? "local[1].length" : "length", 4);
}

static void patched_store(struct gen *g, const char *label)
{
	unsigned to = below(g, g->nregions);
	const struct name *v = need_var(g, "bl", 0);

	if (!v || (!g->writable[to] && !mistake(g)))
		return;
	patch_address(g, label, "remote");
	indent(g);
	put(g, "%s: write %s%s -> r%u @ %u\n", label, v->word, chance(g, 40) ? ", 7 as be16" : "", to,
		below(g, 300));
	note_label(g, label, "", 0);
}

static void patched_atomic(struct gen *g, const char *label)
{
	static const char *const CAS[] = {"compare", "swap"};
	unsigned region = below(g, g->nregions);
	bool cas = chance(g, 60), in_region = g->writable[region] && chance(g, 50);
	const struct name *v = in_region ? NULL : need_var(g, "l", 8);
	const char *name = cas ? CAS[below(g, 2)] : "add";
	char field[32];

	if (!v && !in_region)
		return;
	snprintf(field, sizeof(field), "%s.%s", label, name);
	if (chance(g, 8))
		copy_field(g, label, name, 8);
	for (unsigned n = 1 + below(g, 2); n; n--)
		patch_field(g, field, 8, true, false);
	if (chance(g, 15))
		copy_field(g, label, name, 8);
	if (in_region && chance(g, 30))
		patch_address(g, label, "remote");
	indent(g);
	put(g, "%s: %s ", label, cas ? "cas" : "add");
	if (in_region)
		put(g, "r%u @ %u as le64", region, 8 * below(g, 32));
	else
		put(g, "%s", v->word);
	put(g, cas ? " : " : " by ");
	put_number(g, 8);
	if (cas) {
		put(g, " -> ");
		put_number(g, 8);
	}
	if (chance(g, 50)) {
		put(g, cas ? ", mask " : ", fields ");
		put_mask(g, 8);
	}
	put(g, "\n");
	note_label(g, label, name, 8);
}

static void patched_verb(struct gen *g)
{
	char label[16];

	snprintf(label, sizeof(label), "l%u", g->labels++);
	switch (below(g, 4)) {
	case 0:
		patched_read(g, label);
		break;
	case 1:
		patched_write(g, label);
		break;
	case 2:
		patched_store(g, label);
		break;
	default:
		patched_atomic(g, label);
	}
}

/* Part of the answer, which is at the end */
static void patch_answer(struct gen *g)
{
	if (g->ending == ANSWER_PATCHED && (!g->loop || mistake(g)) && !(g->endless && g->ahead))
		put_patch(g, "done.imm", 4, true, false);
}

/* An order, which may have a label as well */
static void order(struct gen *g)
{
	const struct label *l = some_label(g);
	char label[16] = "";

	if ((g->endless || g->depth) && !mistake(g))
		return;
	if (chance(g, 40)) {
		snprintf(label, sizeof(label), "w%u", g->labels++);
		put(g, "%s: ", label);
	}
	if (chance(g, 30) && g->ending == ANSWER && !g->loop)
		put(g, "enable done\n");
	else if (l && chance(g, 80))
		put(g, "%s %s\n", chance(g, 80) ? "wait" : "enable", l->word);
	else
		put(g, "wait request\n");
	if (*label && mistake(g)) /* it is no WR */
		note_label(g, label, "", 0);
}

static void move(struct gen *g)
{
	const struct name *to = need_var(g, chance(g, 50) ? "bl" : "lb", 1 + below(g, 8)), *from = NULL;
	unsigned region = below(g, g->nregions), bytes;

	if (!to)
		return;
	bytes = to->type.order != 's' && chance(g, 20) ? 1 + below(g, to->type.bytes) : to->type.bytes;
	switch (below(g, 5)) {
	case 0:
		put(g, "mov ");
		put_number(g, to->type.bytes);
		put(g, " -> %s\n", to->word);
		return;
	case 1:
		from = pick(g, g->arg, g->nargs, (char[]){to->type.order, 'u', 0}, bytes);
		break;
	case 2:
		from = pick(g, g->var, g->nvars, (char[]){to->type.order, 0}, bytes);
		break;
	case 3:
		put(g, chance(g, 30) ? "read " : "mov ");
		put_typed(g, below(g, g->nregions), to->type);
		put(g, " -> %s\n", to->word);
		return;
	default:
		if (!g->writable[region] && !mistake(g))
			break;
		if (to->type.order != 's' && to->type.bytes > 1 && chance(g, 20)) {
			struct type turned = to->type;

			turned.order = to->type.order == 'b' ? 'l' : 'b';
			put(g, "mov swab(%s) -> ", to->word);
			put_place(g, region, 1);
			put(g, " as ");
			put_type(g, turned);
			put(g, "\n");
			return;
		}
		put(g, "mov %s -> ", to->word);
		put_typed(g, region,
			to->type.order != 's' && chance(g, 20) ? (struct type){to->type.order, 8, 0}
							       : to->type);
		put(g, "\n");
		return;
	}
	if (!from)
		return;
	if (from->type.bytes > 1 && from->type.order != to->type.order && from->type.order != 'u' &&
		from->type.order != 'o')
		put(g, "mov swab(%s) -> %s\n", from->word, to->word);
	else
		put(g, "mov %s -> %s\n", from->word, to->word);
}

/* What is done with an argument A: V is a little-endian variable that is as wide at least, W one that A can
 * be moved to, S where something is written to, N a number, B another argument, R the region of an offset */
static const struct {
	const char *orders, *text;
} USES[] = {
	{"ubl", "add V by A"},
	{"ubl", "cas V : A -> N"},
	{"ubl", "cas V : N -> A"},
	{"ubl", "if V < A {\nadd V by 1\n}"},
	{"ubl", "if A <= N {\nadd V by 1\n}"},
	{"ubl", "if V == A {\nadd V by 1\n}"},
	{"ubl", "if A <= B {\nadd V by 1\n}"},
	{"ubl", "xor A, V -> V"},
	{"ubls", "mov A -> W"},
	{"bls", "write AS"},
	{"o", "mov R @ A as le16 -> W"},
};

/* A variable that has room for that: a number may be wider */
static const struct name *need_room(struct gen *g, char order, unsigned bytes)
{
	const unsigned most = order == 's' ? bytes : 8, some = bytes + below(g, most + 1 - bytes);
	const struct name *v = chance(g, 50) ? new_var(g, (struct type){order, some, 0}, true)
					     : pick(g, g->var, g->nvars, (char[]){order, 0}, some);

	for (unsigned n = bytes; !v && n <= most; n++)
		v = pick(g, g->var, g->nvars, (char[]){order, 0}, n);
	return v ? v : new_var(g, (struct type){order, some, 0}, true);
}

static void use_arg(struct gen *g, const struct name *a)
{
	static const unsigned N = sizeof(USES) / sizeof(USES[0]);
	const bool offset = a->type.order == 'o';
	const struct name *v = NULL, *w = NULL, *b = pick(g, g->arg, g->nargs, "ubl", 0);
	unsigned use = below(g, N);

	while (!strchr(USES[use].orders, a->type.order))
		use = (use + 1) % N;
	if (strchr(USES[use].text, 'V') && !(v = need_room(g, 'l', a->type.bytes)))
		return;
	if (strchr(USES[use].text, 'W') &&
		!(w = need_room(g, offset || a->type.order == 'u' ? 'l' : a->type.order,
			  offset ? 2 : a->type.bytes)))
		return;
	indent(g);
	for (const char *c = USES[use].text; *c; c++)
		switch (*c) {
		case 'A':
			put(g, "%s", a->word);
			break;
		case 'B':
			put(g, "%s", b ? b->word : a->word);
			break;
		case 'V':
			put(g, "%s", v->word);
			break;
		case 'W':
			put(g, "%s", w->word);
			break;
		case 'N':
			put_number(g, a->type.bytes);
			break;
		case 'R':
			put(g, "r%u", a->type.region);
			break;
		case 'S':
			put_sink(g, below(g, 100));
			break;
		default:
			put(g, "%c", *c);
		}
	put(g, "\n");
}

/* Of one argument several times, or of all that there are */
static void use_args(struct gen *g, bool all)
{
	unsigned which = g->nargs ? below(g, g->nargs) : 0;

	for (unsigned n = !g->nargs ? 0 : all ? g->nargs : 2 + below(g, 3); n; n--, g->made++)
		use_arg(g, &g->arg[all ? n - 1 : which]);
}

/* A number of at most @bytes, in whatever order */
static void calc_operand(struct gen *g, unsigned bytes)
{
	const struct name *from = NULL;
	struct type t = {"bl"[below(g, 2)], 1 + below(g, mistake(g) ? 8 : bytes), 0};

	if (chance(g, 30))
		from = pick(g, g->arg, g->nargs, mistake(g) ? "os" : "blu", t.bytes);
	else if (chance(g, 60))
		from = pick(g, g->var, g->nvars, "bl", t.bytes);
	if (from)
		put(g, "%s", from->word);
	else if (chance(g, 30))
		put_number(g, t.bytes);
	else
		put_typed(g, below(g, g->nregions), t);
}

static void calc(struct gen *g)
{
	static const char *const words[] = {"add", "max", "min", "and", "or", "xor", "sub"};
	const struct name *to = need_var(g, "bl", 1 + below(g, 8));
	unsigned region = below(g, g->nregions);
	struct type t;

	if (!to)
		return;
	t = to->type;
	put(g, "%s ", words[below(g, 7)]);
	calc_operand(g, t.bytes);
	put(g, ", ");
	if (chance(g, 50))
		put(g, "%s", to->word);
	else
		calc_operand(g, t.bytes);
	put(g, " -> ");
	if (chance(g, 70) || (!g->writable[region] && !mistake(g))) {
		put(g, "%s\n", to->word);
		return;
	}
	put_place(g, region, 1);
	put(g, " as ");
	put_type(g, t);
	put(g, "\n");
}

static void atomic(struct gen *g)
{
	unsigned region = below(g, g->nregions), label = g->labels++;
	bool cas = chance(g, 50), in_region = chance(g, 30) && (g->writable[region] || mistake(g)), minus;
	const struct name *v = need_var(g, "l", chance(g, 70) ? 8 : 0), *was = NULL;
	const bool keeps = chance(g, 30);
	struct type t = {'l', 8, 0};
	char word[16], fields[16] = "";

	if (!v)
		return;
	t = in_region ? t : v->type;
	if (keeps && t.bytes == 8 && chance(g, 40) && new_vars(g, false, WORD))
		snprintf(fields, sizeof(fields), "v%u", g->names - 1);
	if (chance(g, 20)) {
		snprintf(word, sizeof(word), "l%u", label);
		note_label(g, word, cas ? "compare" : "add", 8);
		put(g, "%s: ", word);
	}
	put(g, "%s%s ", chance(g, 10) && !g->endless ? "fence " : "", cas ? "cas" : "add");
	if (in_region) {
		put_place(g, region, 8);
		put(g, " as le64");
	} else {
		put(g, "%s", v->word);
	}
	put(g, "%s", cas ? " : " : " by ");
	minus = !cas && chance(g, 15);
	if (minus) {
		put(g, "-");
		put_number(g, t.bytes);
	} else {
		put_value(g, t);
	}
	if (cas) {
		put(g, " -> ");
		put_value(g, t);
	}
	if (chance(g, 50)) {
		put(g, cas ? ", mask " : ", fields ");
		put_mask(g, t.bytes);
	}
	if (keeps && !*fields && chance(g, 30))
		was = pick(g, g->var, g->nvars, "l", t.bytes);
	if (keeps && !*fields && !was)
		was = new_var(g, t, false);
	if (*fields || was) {
		put(g, ", was -> %s\n  write %s", was ? was->word : fields, was ? was->word : fields);
		put_sink(g, below(g, 100));
	}
	put(g, "\n");
}

static void branch(struct gen *g)
{
	if (chance(g, 30))
		need_var(g, "l", 1 + below(g, 8));
	put(g, "if ");
	put_cond(g);
	block(g);
	if (chance(g, 10)) {
		put(g, " else if ");
		put_cond(g);
		block(g);
	}
	if (chance(g, 40)) {
		put(g, " else");
		block(g);
	}
	put(g, "\n");
}

static void loop(struct gen *g)
{
	unsigned which = below(g, 4), outer = g->loop;
	bool condition = false;

	if (g->loops == 2 && !mistake(g))
		return;
	g->loops++;
	g->loop = ++g->names;
	if (which == 0) {
		put(g, "loop max %u", 1 + below(g, 4));
	} else if (which == 1 && need_var(g, "l", 8)) {
		put(g, "while ");
		put_cond(g);
		put(g, " max %u", 1 + below(g, 4));
		condition = true;
	} else {
		put(g, "for i%u in %u..%s", g->names++, below(g, 2), chance(g, 50) ? "n + 1" : "3");
	}
	block(g);
	g->loops--;
	g->loop = outer;
	if ((!condition || mistake(g)) && chance(g, 25)) {
		put(g, " else");
		block(g);
	}
	put(g, "\n");
}

static void write(struct gen *g)
{
	unsigned region = below(g, g->nregions);
	const struct name *v = g->nvars ? &g->var[below(g, g->nvars)] : NULL;

	put(g, "write ");
	if (v && chance(g, 60))
		put(g, "%s%s", v->word, chance(g, 40) ? ", 7 as be16" : "");
	else if ((v = pick(g, g->arg, g->nargs, "bls", 0)) && chance(g, 40))
		put(g, "%s, n as be16", v->word);
	else
		put(g, "r%u @ %u as bytes %u", region, below(g, 64), 1 + below(g, 64));
	region = below(g, g->nregions);
	if (g->writable[region] && chance(g, 40)) {
		put(g, " -> ");
		put_place(g, region, 1);
		put(g, "\n");
	} else {
		put_sink(g, below(g, 100));
		put(g, "\n");
	}
}

static void on_queue(struct gen *g)
{
	put(g, "on q[%u]", below(g, g->nqueues));
	block(g);
	put(g, "\n");
}

static void statement(struct gen *g)
{
	unsigned deep = g->depth < DEEPEST ? 14 : 11;

	indent(g);
	if (g->style->cut && g->nqueues && !g->depth && chance(g, 40)) {
		on_queue(g);
		return;
	}
	switch (below(g, deep)) {
	case 0:
	case 1:
		read_and_write(g);
		break;
	case 2:
	case 3:
		move(g);
		break;
	case 4:
		if (chance(g, 30))
			calc(g);
		else
			atomic(g);
		break;
	case 5:
		write(g);
		break;
	case 6:
		if (g->nvars < NAMES)
			new_var(g, some_type(g, "bbbllls"), true);
		break;
	case 7:
		if (g->loops)
			put(g, "break\n");
		else
			use_args(g, false);
		break;
	case 8:
		if (!g->depth && chance(g, 70))
			order(g);
		else
			put(g, "%snop # \xe2\x98\x83\n", chance(g, 20) && !g->endless ? "fence " : "");
		break;
	case 9:
		if (chance(g, 70))
			patched_verb(g);
		else
			copy_some_field(g);
		break;
	case 10:
		if (chance(g, 60))
			patch_answer(g);
		else
			new_vars(g, chance(g, 50), below(g, STRUCTS));
		break;
	case 11:
	case 12:
		branch(g);
		break;
	default:
		if (g->nqueues && chance(g, 40))
			on_queue(g);
		else
			loop(g);
	}
}

static void statements(struct gen *g)
{
	unsigned n = 1 + below(g, 4);

	if (chance(g, 3))
		put(g, "# a comment\r\n");
	for (unsigned i = 0; i < n && g->made < g->style->statements; i++) {
		g->made++;
		statement(g);
		if (g->len && g->text[g->len - 1] != '\n')
			put(g, "\n");
	}
}

/* What leads to the loop, and the loop, which ends in the end, unless something else ends it */
static void endless(struct gen *g)
{
	unsigned nargs = g->nargs, counter = g->names++, most = 1 + below(g, 6), vars;

	g->ahead = true;
	put(g, "var c%u : le64\n", counter);
	if (chance(g, 60))
		statements(g);
	if (!mistake(g))
		g->nargs = 0; /* they are for what is done once */
	vars = g->nvars;
	if (chance(g, 50)) {
		put(g, "while c%u < %u {\n", counter, most);
	} else {
		put(g, "loop {\n");
	}
	g->depth = g->loops = 1;
	g->loop = ++g->names;
	statements(g);
	put(g, "  add c%u by 1\n  if c%u >= %u {\n    break\n  }\n", counter, counter, most);
	if (chance(g, 50))
		statements(g);
	g->depth = g->loops = g->loop = 0;
	g->nvars = vars;
	put(g, "}\n");
	g->nargs = nargs;
	g->ahead = false;
}

/* A loop that answers, and goes on if it did not; some of its reads do not wait for that */
static void answers(struct gen *g)
{
	unsigned name = g->names++, vars = g->nvars, outer = g->loop;

	g->loop = name + 1;

	put(g, "for i%u in 0..%u {\n  var e%u : le32\n", name, 1 + below(g, 5), name);
	if (chance(g, 30))
		statements(g);
	put(g, "  %sread r%u @ %u + 4 * i%u -> e%u\n", chance(g, 70) ? "ahead " : "", below(g, g->nregions),
		below(g, 64), name, name);
	put(g, "  if e%u %s %u", name, chance(g, 80) ? "==" : "<", below(g, 4));
	if (chance(g, 15)) {
		put(g, " %s ", chance(g, 50) ? "&&" : "||");
		put_cond(g);
	}
	put(g, " {\n");
	if (chance(g, 50))
		put(g, "    write e%u -> slot @ 8\n", name);
	put(g, "    %swrite_imm %s\n    break\n  }\n", chance(g, 80) ? "ahead " : "",
		chance(g, 50) ? "7 as be16, r0 -> slot @ 0, 24 bytes" : "2 as be64 -> slot");
	if (chance(g, 30))
		statements(g);
	g->nvars = vars;
	g->loop = outer;
	put(g, "} else {\n  write_imm 1 as be64 -> slot\n}\n");
	if (chance(g, 20))
		put(g, "nop\n");
}

/* In a region that the program reads, and of which a part comes to a word of one that it writes */
static void declare_payload(struct gen *g)
{
	const unsigned bytes = chance(g, 70) ? MARK - 1 : 1 + below(g, MARK - 1);
	unsigned in = below(g, g->nregions);

	g->buckets = below(g, g->nregions);
	for (unsigned i = 0; i < g->nregions && g->writable[in]; i++)
		in = (in + 1) % g->nregions;
	for (unsigned i = 0; i < g->nregions && !g->writable[g->buckets]; i++)
		g->buckets = (g->buckets + 1) % g->nregions;
	g->payload = g->writable[g->buckets] && !g->writable[in] && !g->endless && chance(g, 30);
	if (!g->payload && !mistake(g))
		return;
	if (g->payload)
		g->writable[g->buckets] = mistake(g); /* for anything else */
	g->heap = in;
	g->arg[g->nargs++] = (struct name){"fp", {'u', bytes, 0}};
	put(g, "arg fp : ");
	put_type(g, g->arg[0].type);
	put(g, "\npayload pl : max %u in r%u\n", 1 + below(g, 100), in);
}

/* A part of a bucket, of whose mark this has the last @bytes: down to the tag alone */
static void put_mark(struct gen *g, unsigned bytes)
{
	if (bytes < MARK)
		put(g, ", _ : bytes %u", MARK - bytes);
	put(g, ", tag : ");
	put_type(g, (struct type){'l', bytes, 0});
	put(g, " }\n");
}

/* What is compared with them. Of a locator with the length of the message that has to be all */
static void put_tag(struct gen *g, unsigned bytes, const char *relation)
{
	const struct name *fp = NULL;

	if (bytes == MARK && g->payload)
		fp = &g->arg[0];
	else if (bytes > 1 && chance(g, 50))
		fp = pick(g, g->arg, g->nargs, "ubl", 1 + below(g, bytes - 1));
	put(g, " %s ", relation);
	if (fp)
		put(g, "%s + ", fp->word);
	put(g, "(%u << %u)", CHAIN_TAG - mistake(g), 8 * (bytes - 1));
}

/* The record of a bucket */
static void get(struct gen *g, const char *bucket, unsigned heap, unsigned name, unsigned bytes)
{
	put(g, "struct g%u { len : be24, off : be40", name);
	put_mark(g, bytes);
	put(g, "read %s as g%u { len -> get.length, off -> get.addr, tag -> t%u }\nif t%u", bucket, name,
		name, name);
	put_tag(g, bytes, "==");
	put(g, " {\nget: write r%u -> slot @ 1000, 1 to 480\n}\n", heap);
}

/* A locator is read and, if it is still there and in a bucket, replaced by that of the payload, or by a
 * constant */
static void publish(struct gen *g)
{
	const bool direct = chance(g, 50), branch = chance(g, 40), turned = chance(g, 30),
		   counts = g->payload && chance(g, 30);
	const unsigned name = g->names++, heap = g->payload ? g->heap : below(g, g->nregions);
	const unsigned bytes = chance(g, g->payload ? 85 : 40) ? MARK
			       : chance(g, 60)                 ? 1
							       : 1 + below(g, MARK);
	const unsigned region = g->buckets;
	char bucket[32];

	snprintf(bucket, sizeof(bucket), "r%u @ %u", region, mistake(g) ? 8 : CHAIN_BUCKET * below(g, 16));
	for (unsigned i = 0; g->steered[region] && i < g->nargs; i++)
		if (g->arg[i].type.order == 'o' && g->arg[i].type.region == region)
			snprintf(bucket, sizeof(bucket), "r%u @ %s", region, g->arg[i].word);
	g->published = true;
	if (chance(g, 30))
		get(g, bucket, heap, name, chance(g, 50) ? bytes : 1);
	if (counts)
		put(g, "var n%u : be32\nmov pl.length -> n%u\n", name, name);
	put(g, "struct p%u { loc : le64", name);
	put_mark(g, bytes);
	put(g, "var y%u : le64\nread %s as p%u { loc -> ", name, bucket, name);
	if (direct)
		put(g, "pub.compare");
	else
		put(g, "x%u", name);
	put(g, ", tag -> z%u }\n", name);
	if (branch) {
		put(g, "if ");
		put_cond(g);
		put(g, " {\n");
	}
	put(g, "if z%u", name);
	put_tag(g, bytes, turned ? "!=" : "==");
	if (counts)
		put(g, " %s n%u %s %u", turned ? "||" : "&&", name, turned ? "==" : "!=", below(g, 3));
	put(g, " {\n%spub: cas %s as le64 : ", turned ? "nop\n} else {\n" : "", bucket);
	if (direct)
		put(g, "0");
	else
		put(g, "x%u", name);
	if (g->payload)
		put(g, " -> pl");
	else
		put(g, " -> 0x080000 in r%u", heap);
	put(g, ", was -> y%u\n}\n%swrite y%u -> slot @ 104\n", name, branch ? "}\n" : "", name);
}

/* Of 8 bytes without gaps, or any */
static void declare_struct(struct gen *g, unsigned which)
{
	struct structure *s = &g->structs[which];
	const bool word = which == WORD;

	put(g, "struct s%u { ", which);
	s->n = word ? 2 + below(g, FIELDS - 1) : 1 + below(g, FIELDS);
	for (unsigned f = 0, left = 8; f < s->n; left -= s->field[f++].bytes) {
		const bool last = f + 1 == s->n;

		s->field[f] = some_type(g, word ? "bl" : "bbbbllls");
		if (word)
			s->field[f].bytes = last ? left : 1 + below(g, left - (s->n - 1 - f));
		put(g, "%sf%u : ", f ? ", " : "", f);
		put_type(g, s->field[f]);
		if (!word && chance(g, 20))
			put(g, ", _ : bytes %u", 1 + below(g, 9));
	}
	put(g, " }\n");
}

/* An argument, or an array of @n, of structures now and then */
static void declare_args(struct gen *g, unsigned n)
{
	const unsigned name = g->names++, fields = 1 + chance(g, n ? 40 : 5);
	struct type t[2];

	put(g, "arg a%u", name);
	if (n)
		put(g, "[%u]", n / fields);
	for (unsigned f = 0; f < fields; f++) {
		t[f] = some_type(g, n > 2 ? "uuubloo" : "uuubloos");
		if (g->payload && n > 2 && t[f].bytes > 3)
			t[f].bytes = 3; /* an extent has a header for them */
		put(g, fields == 1 ? " : " : f ? ", f1 : " : " { f0 : ");
		put_type(g, t[f]);
	}
	put(g, fields > 1 ? " }\n" : "\n");
	for (unsigned i = 0; i < (n ? n / fields : 1) * fields; i++) {
		struct name *a = &g->arg[g->nargs++];
		int len = snprintf(a->word, sizeof(a->word), "a%u", name);

		a->type = t[i % fields];
		if (n)
			len += snprintf(a->word + len, sizeof(a->word) - len, "[%u]", i / fields);
		if (fields > 1)
			snprintf(a->word + len, sizeof(a->word) - len, ".f%u", i % fields);
	}
}

static void declarations(struct gen *g)
{
	g->endless = chance(g, g->style->endless);
	put(g, "program at_random\n%sparam n = %u from 0 to 3\n", g->endless || mistake(g) ? "endless\n" : "",
		below(g, 4));
	for (unsigned s = 0; s < STRUCTS; s++)
		declare_struct(g, s);
	g->nregions = 1 + below(g, 4);
	for (unsigned i = 0; i < g->nregions; i++) {
		g->writable[i] = chance(g, 40) || (g->endless && i == 0);
		g->steered[i] = chance(g, 80);
		put(g, "region r%u%s", i,
			g->writable[i] ? g->steered[i] ? " writable steered" : " writable" : "");
		if (chance(g, 30)) {
			const unsigned st = below(g, STRUCTS);

			g->of[i] = &g->structs[st];
			put(g, " of s%u", st);
		}
		put(g, chance(g, 50) ? " size 64K\n" : "\n");
	}
	declare_payload(g);
	for (unsigned n = below(g, 6); n; n--)
		declare_args(g, 0);
	if (chance(g, 15))
		declare_args(g, 2);
	g->many = chance(g, 2);
	if (g->many)
		declare_args(g, 16 + below(g, MANY - 15));
	if (chance(g, g->style->cut ? 90 : 30) && !g->endless) {
		g->nqueues = 1 + below(g, 3);
		put(g, "queue q[%u]\n", g->nqueues);
	}
	for (unsigned i = below(g, 4); i; i--)
		new_var(g, some_type(g, "bbllls"), true);
}

static void answer(struct gen *g)
{
	static const char *const WHAT[] = {"r0 -> slot @ 0, 64 bytes", "1 as be64 -> slot"};
	const char *what = WHAT[below(g, 2)];
	const struct name *a = pick(g, g->arg, g->nargs, "ub", 1 + below(g, 4));

	switch (g->ending) {
	case ANSWER:
		put(g, "done: write_imm %s\n", what);
		break;
	case ANSWER_IMM:
		put(g, "done: write_imm %s, imm ", what);
		if (a)
			put(g, "%s\n", a->word);
		else
			put(g, "%u\n", random_next(g->r));
		break;
	case ANSWER_PATCHED:
		put_patch(g, "done.imm", 4, true, false);
		put(g, "done: write_imm %s%s\n", what, chance(g, 50) ? ", imm 0x12345678" : "");
		break;
	case SEND:
		put(g, "done: send %s\n", chance(g, 50) ? "r0 @ 8 as bytes 24, 7 as be16" : "1 as be64");
		break;
	case TWO_ANSWERS:
		put(g, "if ");
		put_cond(g);
		put(g, " {\n  write_imm %s\n} else {\n  write_imm 3 as u8 -> slot @ 9, imm 9\n}\n", what);
		break;
	case ANSWERS:
		answers(g);
		break;
	}
}

size_t generate(struct random *r, const struct generate_style *style, char *text, size_t size)
{
	static const enum ending ENDINGS[] = {ANSWER, ANSWER, ANSWER, ANSWER_IMM, ANSWER_PATCHED, SEND,
		TWO_ANSWERS, ANSWERS, ANSWERS, ANSWERS};
	struct gen g = {.r = r, .style = style, .text = text, .size = size};

	declarations(&g);
	g.ending = ENDINGS[below(&g, sizeof(ENDINGS) / sizeof(ENDINGS[0]))];
	/* with several queues, one under no condition; after a loop without a bound, not from a loop */
	if ((g.nqueues && (g.ending > SEND) && !mistake(&g)) || (g.endless && g.ending == ANSWERS))
		g.ending = ANSWER + below(&g, SEND + 1);
	if (g.endless)
		endless(&g);
	while (g.made < style->statements) {
		statements(&g);
		if (g.payload && !g.published && chance(&g, 30))
			publish(&g);
	}
	if (g.many)
		use_args(&g, true);
	if (g.payload ? !g.published || mistake(&g) : g.writable[g.buckets] && chance(&g, 5))
		publish(&g);
	answer(&g);
	return g.len;
}
