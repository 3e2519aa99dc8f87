/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/programs/generate.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAMES = 24, FIELDS = 4, DEEPEST = 4 };

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

struct gen {
	struct random *r;
	const struct generate_style *style;
	char *text;
	size_t size, len;
	struct structure structs[2];
	bool writable[4];
	unsigned nregions;
	struct name arg[NAMES], var[NAMES];
	unsigned nargs, nvars, nqueues, made, labels, names, depth, loops;
	bool endless, ahead; /* ahead: before the end of the loop without a bound, and so before the answer */
};

uint32_t random_next(struct random *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return (uint32_t)(r->state * 0x9e3779b97f4a7c15u >> 32);
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

static void put_number(struct gen *g, unsigned bytes)
{
	uint64_t v = (uint64_t)random_next(g->r) << 32 | random_next(g->r);

	if (chance(g, 50))
		v = below(g, 16);
	v &= UINT64_MAX >> (64 - 8 * (bytes < 8 ? bytes : 8));
	if (mistake(g))
		put(g, "(%llu + n * %u << %u)", (unsigned long long)v, below(g, 9), below(g, 70));
	else
		put(g, "%llu", (unsigned long long)v);
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

static void put_operand(struct gen *g, struct type t)
{
	const struct name *name = NULL;

	if (chance(g, 20) && put_sum(g, t))
		return;
	if (chance(g, 40))
		name = chance(g, 50) ? pick(g, g->arg, g->nargs, "ub", t.bytes)
				     : pick(g, g->var, g->nvars, (char[]){t.order, 0}, t.bytes);
	if (name)
		put(g, "%s", name->word);
	else
		put_number(g, t.bytes);
}

static void put_cond(struct gen *g)
{
	static const char *const RELATIONS[] = {"==", "==", "==", "!=", "<", ">", "<=", ">="};
	const struct name *v = pick(g, g->var, g->nvars, "lbs", 0);
	unsigned r;

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

/* -> slot @ 5; what cannot be in the slot yet goes to region 0 */
static void put_sink(struct gen *g, unsigned at)
{
	put(g, " -> %s @ %u", g->ahead && !mistake(g) ? "r0" : "slot", at);
}

static void label_write(struct gen *g, unsigned label, bool length)
{
	indent(g);
	put(g, "l%u: write r%u", label, below(g, g->nregions));
	put_sink(g, 8 * below(g, 9));
	put(g, ", %s%u%s\n", length ? "max " : "", 1 + below(g, 99), length ? "" : " bytes");
}

/* A READ whose fields patch the write after it, and perhaps go to a variable */
static void read_and_write(struct gen *g)
{
	unsigned st = below(g, 2), label = g->labels++, n = 0, vars = g->nvars;
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
		} else if (t.order == 'b' && !address && chance(g, 60)) {
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

static void move(struct gen *g)
{
	const struct name *to = need_var(g, chance(g, 50) ? "bl" : "lb", 1 + below(g, 8)), *from = NULL;
	unsigned region = below(g, g->nregions);

	if (!to)
		return;
	switch (below(g, 5)) {
	case 0:
		put(g, "mov ");
		put_number(g, to->type.bytes);
		put(g, " -> %s\n", to->word);
		return;
	case 1:
		from = pick(g, g->arg, g->nargs, (char[]){to->type.order, 'u', 0}, to->type.bytes);
		break;
	case 2:
		from = pick(g, g->var, g->nvars, (char[]){to->type.order, 0}, to->type.bytes);
		break;
	case 3:
		put(g, "mov ");
		put_place(g, region, 1);
		put(g, " as ");
		put_type(g, to->type);
		put(g, " -> %s\n", to->word);
		return;
	default:
		if (!g->writable[region] && !mistake(g))
			break;
		put(g, "mov %s -> ", to->word);
		put_place(g, region, 1);
		put(g, " as ");
		put_type(g, to->type);
		put(g, "\n");
		return;
	}
	if (!from)
		return;
	if (to->type.bytes > 1 && from->type.order != to->type.order && from->type.order != 'u' &&
		from->type.order != 'o')
		put(g, "mov swab(%s) -> %s\n", from->word, to->word);
	else
		put(g, "mov %s -> %s\n", from->word, to->word);
}

static void atomic(struct gen *g)
{
	static const struct type LE64 = {'l', 8, 0};
	const struct name *v = need_var(g, "l", 8);
	unsigned region = below(g, g->nregions);
	bool cas = chance(g, 50);

	if (!v)
		return;
	put(g, "%s%s ", chance(g, 10) && !g->endless ? "fence " : "", cas ? "cas" : "add");
	if (chance(g, 30) && (g->writable[region] || mistake(g))) {
		put_place(g, region, 8);
		put(g, " as le64");
	} else {
		put(g, "%s", v->word);
	}
	put(g, "%s", cas ? " : " : " by ");
	put_operand(g, LE64);
	if (cas) {
		put(g, " -> ");
		put_operand(g, LE64);
	}
	if (chance(g, 20))
		put(g, "%s", cas ? ", mask 0xff00" : ", fields 0x80");
	put(g, "\n");
}

static void branch(struct gen *g)
{
	if (chance(g, 30))
		need_var(g, "l", 1 + below(g, 8));
	put(g, "if ");
	put_cond(g);
	block(g);
	if (chance(g, 40)) {
		put(g, " else");
		block(g);
	}
	put(g, "\n");
}

static void loop(struct gen *g)
{
	unsigned which = below(g, 4);
	bool condition = false;

	if (g->loops == 2 && !mistake(g))
		return;
	g->loops++;
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
	unsigned deep = g->depth < DEEPEST ? 12 : 9;

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
		break;
	case 8:
		put(g, "%s\n", chance(g, 30) && !g->endless ? "wait request" : "nop # \xe2\x98\x83");
		break;
	case 9:
	case 10:
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
	statements(g);
	put(g, "  add c%u by 1\n  if c%u >= %u {\n    break\n  }\n", counter, counter, most);
	if (chance(g, 50))
		statements(g);
	g->depth = g->loops = 0;
	g->nvars = vars;
	put(g, "}\n");
	g->nargs = nargs;
	g->ahead = false;
}

/* A loop that answers, and goes on if it did not; some of its reads do not wait for that */
static void answers(struct gen *g)
{
	unsigned name = g->names++, vars = g->nvars;

	put(g, "for i%u in 0..%u {\n  var e%u : le32\n", name, 1 + below(g, 5), name);
	if (chance(g, 30))
		statements(g);
	put(g, "  %sread r%u @ %u + 4 * i%u -> e%u\n", chance(g, 70) ? "ahead " : "", below(g, g->nregions),
		below(g, 64), name, name);
	put(g, "  if e%u %s %u {\n", name, chance(g, 80) ? "==" : "<", below(g, 4));
	if (chance(g, 50))
		put(g, "    write e%u -> slot @ 8\n", name);
	put(g, "    %swrite_imm %s\n    break\n  }\n", chance(g, 80) ? "ahead " : "",
		chance(g, 50) ? "7 as be16, r0 -> slot @ 0, 24 bytes" : "2 as be64 -> slot");
	if (chance(g, 30))
		statements(g);
	g->nvars = vars;
	put(g, "} else {\n  write_imm 1 as be64 -> slot\n}\n");
	if (chance(g, 20))
		put(g, "nop\n");
}

static void declarations(struct gen *g)
{
	g->endless = chance(g, g->style->endless);
	put(g, "program at_random\n%sparam n = %u from 0 to 3\n", g->endless || mistake(g) ? "endless\n" : "",
		below(g, 4));
	for (unsigned s = 0; s < 2; s++) {
		put(g, "struct s%u { ", s);
		g->structs[s].n = 1 + below(g, FIELDS);
		for (unsigned f = 0; f < g->structs[s].n; f++) {
			g->structs[s].field[f] = some_type(g, "bbbbllls");
			put(g, "%sf%u : ", f ? ", " : "", f);
			put_type(g, g->structs[s].field[f]);
			if (chance(g, 20))
				put(g, ", _ : bytes %u", 1 + below(g, 9));
		}
		put(g, " }\n");
	}
	g->nregions = 1 + below(g, 4);
	for (unsigned i = 0; i < g->nregions; i++) {
		g->writable[i] = chance(g, 40) || (g->endless && i == 0);
		put(g, "region r%u%s%s%s\n", i,
			g->writable[i] ? chance(g, 80) ? " writable steered" : " writable" : "",
			chance(g, 30) ? " of s0" : "", chance(g, 50) ? " size 64K" : "");
	}
	g->nargs = below(g, 6);
	for (unsigned i = 0; i < g->nargs; i++) {
		g->arg[i].type = some_type(g, "uuuboos");
		snprintf(g->arg[i].word, sizeof(g->arg[i].word), "a%u", i);
		put(g, "arg a%u : ", i);
		put_type(g, g->arg[i].type);
		put(g, "\n");
	}
	if (chance(g, g->style->cut ? 90 : 30) && !g->endless) {
		g->nqueues = 1 + below(g, 3);
		put(g, "queue q[%u]\n", g->nqueues);
	}
	for (unsigned i = below(g, 4); i; i--)
		new_var(g, some_type(g, "bbllls"), true);
}

size_t generate(struct random *r, const struct generate_style *style, char *text, size_t size)
{
	struct gen g = {.r = r, .style = style, .text = text, .size = size};

	declarations(&g);
	if (g.endless)
		endless(&g);
	while (g.made < style->statements)
		statements(&g);
	/* one with several queues ends with an answer under no condition */
	if (!g.endless && chance(&g, style->cut && g.nqueues ? 5 : 30)) {
		answers(&g);
		return g.len;
	}
	put(&g, "write_imm %s\n", chance(&g, 50) ? "r0 -> slot @ 0, 64 bytes" : "1 as be64 -> slot");
	return g.len;
}
