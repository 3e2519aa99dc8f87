/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/programs/interpret.h"

#include "reddnd/chain/ir/image.h"
#include "reddnd/program/front/limits.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 8192, PATCHES = 512, ITERATIONS = 100 };
#define OFFSETS (1ull << 8 * PROGRAM_MAX_OFFSET) /* no region is larger */

/* What has been written to a field of a WQE, as the big-endian number that it is */
struct patch {
	const struct ast_verb *verb;
	uint8_t field, sge;
	uint64_t value, known; /* the bits of value that have been written */
};

struct machine {
	struct interpret *in;
	uint8_t **var;
	struct patch patch[PATCHES];
	unsigned npatches;
	const struct ast_loop *leaving;
	int result;
};

static void run_block(struct machine *m, const struct ast_block *b);

static bool is_le(const struct ast_type *t)
{
	return t->kind == AST_UINT && t->order == AST_LE;
}

static void reverse(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		uint8_t t = p[i];

		p[i] = p[n - 1 - i];
		p[n - 1 - i] = t;
	}
}

static uint64_t number(const uint8_t *p, unsigned n, bool le)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v = v << 8 | p[le ? n - 1 - i : i];
	return v;
}

static void put(uint8_t *p, unsigned n, bool le, uint64_t v)
{
	for (unsigned i = 0; i < n; i++)
		p[le ? i : n - 1 - i] = i < 8 ? (uint8_t)(v >> 8 * i) : 0;
}

static uint8_t *var_of(struct machine *m, const struct ast_var *v)
{
	return m->var[v->index];
}

/* ---- patches ---------------------------------------------------------------------------------- */

static struct patch *find_patch(struct machine *m, const struct ast_verb *v, unsigned field, unsigned sge)
{
	for (unsigned i = 0; i < m->npatches; i++)
		if (m->patch[i].verb == v && m->patch[i].field == field && m->patch[i].sge == sge)
			return &m->patch[i];
	return NULL;
}

static void patch_bits(struct machine *m, const struct ast_verb *v, unsigned field, unsigned sge,
	uint64_t value, uint64_t known)
{
	struct patch *k = find_patch(m, v, field, sge);

	if (!k) {
		if (m->npatches == PATCHES) {
			m->result = INTERPRET_CANNOT;
			return;
		}
		k = &m->patch[m->npatches++];
		*k = (struct patch){.verb = v, .field = (uint8_t)field, .sge = (uint8_t)sge};
	}
	k->value = (k->value & ~known) | (value & known);
	k->known |= known;
}

static uint64_t low_bytes(unsigned n)
{
	return n < 8 ? (1ull << 8 * n) - 1 : UINT64_MAX;
}

/* Where in the number the bytes are that a place names: of an address one, else the low ones */
static unsigned shift_of(const struct ast_place *p)
{
	return p->one_byte ? 8 * (7u - p->byte) : 0;
}

static void patch(struct machine *m, const struct ast_place *p, const uint8_t *bytes, unsigned n)
{
	patch_bits(m, p->verb, p->field, p->sge, number(bytes, n, false) << shift_of(p),
		low_bytes(n) << shift_of(p));
}

/* @posted with what has been patched */
static uint64_t patched(
	struct machine *m, const struct ast_verb *v, unsigned field, unsigned sge, uint64_t posted)
{
	const struct patch *k = find_patch(m, v, field, sge);

	return k ? (posted & ~k->known) | k->value : posted;
}

/* ---- places ----------------------------------------------------------------------------------- */

static uint64_t offset(
	struct machine *m, const struct ast_place *p, const struct ast_verb *v, unsigned field, unsigned sge)
{
	/* a patch is the address of the structure, which the first field wanted is a part of */
	uint32_t lead = v && v->kind == AST_READ && v->patched & 1u << CHAIN_F_REMOTE_ADDR ? v->lead : 0;
	uint64_t at = p->at - lead;

	for (unsigned i = 0; i < p->nterms; i++) {
		const struct ast_term *t = &p->term[i];
		at += t->arg ? number(m->in->arg[t->arg->index], t->arg->type.bytes, false)
			     : number(var_of(m, t->var), t->var->type.bytes, is_le(&t->var->type)) % OFFSETS;
	}
	if (p->nterms && at >= OFFSETS)
		m->result = INTERPRET_BEYOND;
	return (v ? patched(m, v, field, sge, at) : at) + lead;
}

static uint8_t *region_at(struct machine *m, const struct ast_place *p, uint64_t at, uint64_t n)
{
	uint32_t bytes = m->in->bytes[p->region->index];

	if (at > bytes || n > bytes - at) {
		m->result = INTERPRET_BEYOND;
		return NULL;
	}
	return m->in->region[p->region->index] + at;
}

static void load_arg(struct machine *m, const struct ast_arg *a, const struct ast_type *as, uint8_t *out)
{
	memcpy(out, m->in->arg[a->index], a->type.bytes);
	if (is_le(&a->type) || (a->type.kind == AST_UINT && a->type.order == AST_ANY && is_le(as)))
		reverse(out, a->type.bytes);
}

static uint64_t value(struct machine *m, const struct ast_operand *o);

/* An operand as it is posted: a variable comes there when the verb runs */
static uint64_t posted(struct machine *m, const struct ast_operand *o)
{
	return o->kind == AST_PLACE ? 0 : value(m, o);
}

static uint64_t length_posted(const struct ast_verb *v, const struct ast_operand *o)
{
	return o->type.kind != AST_NONE ? o->type.bytes : v->bytes ? v->bytes : v->least ? v->least : 1;
}

static uint64_t field_value(struct machine *m, const struct ast_place *p)
{
	const struct ast_verb *v = p->verb;
	uint64_t is = 0;

	switch (p->field) {
	case CHAIN_F_COMPARE:
		is = posted(m, &v->old);
		break;
	case CHAIN_F_SWAP:
		is = posted(m, &v->swap);
		break;
	case CHAIN_F_ADD:
		is = posted(m, &v->by);
		break;
	case CHAIN_F_IMM:
		is = !v->has_imm ? m->in->number : v->imm.kind == AST_CONST ? v->imm.value : 0;
		break;
	case CHAIN_F_LOCAL_LEN:
		is = v->kind == AST_READ ? v->piece[p->sge].type.bytes : length_posted(v, &v->source[p->sge]);
		break;
	case CHAIN_F_REMOTE_ADDR:
		is = v->place->at - (v->kind == AST_READ ? v->lead : 0);
		break;
	case CHAIN_F_LOCAL_ADDR:
		is = v->source[p->sge].place->at;
		break;
	}
	return patched(m, v, p->field, p->sge, is);
}

/* The bytes of an operand as they lie in memory; how many */
static unsigned load(struct machine *m, const struct ast_operand *o, const struct ast_type *as, uint8_t *out)
{
	uint8_t *p;
	unsigned n;

	switch ((enum ast_operand_kind)o->kind) {
	case AST_CONST:
		put(out, o->type.bytes, is_le(&o->type), o->value);
		return o->type.bytes;
	case AST_ARG:
		load_arg(m, o->arg, as, out);
		return o->arg->type.bytes;
	case AST_LOCATOR:
		put(out, 8, true, chain_locator(m->in->extent, m->in->request_bytes));
		return 8;
	case AST_PLACE:
		break;
	}
	n = o->place->type.bytes;
	if (o->place->kind == AST_AT_LENGTH) {
		put(out, n, false, m->in->request_bytes);
	} else if (o->place->kind == AST_AT_VAR) {
		n = o->place->var->type.bytes;
		memcpy(out, var_of(m, o->place->var), n);
	} else if (o->place->kind == AST_AT_FIELD) {
		n = o->type.bytes;
		put(out, n, false, field_value(m, o->place) >> shift_of(o->place));
	} else {
		p = region_at(m, o->place, offset(m, o->place, NULL, 0, 0), n);
		if (p)
			memcpy(out, p, n);
	}
	if (o->swab)
		reverse(out, n);
	return n;
}

static uint64_t value(struct machine *m, const struct ast_operand *o)
{
	uint8_t b[PROGRAM_MAX_BYTES];
	unsigned n;

	switch ((enum ast_operand_kind)o->kind) {
	case AST_CONST:
		return o->value;
	case AST_ARG:
		return number(m->in->arg[o->arg->index], o->arg->type.bytes, false) | o->value;
	case AST_LOCATOR:
	case AST_PLACE:
		break;
	}
	n = load(m, o, &o->type, b);
	return number(b, n, is_le(&o->type));
}

/* @bytes as they lie in memory, and what they are there */
static void store(
	struct machine *m, const struct ast_place *p, const struct ast_type *as, uint8_t *bytes, unsigned n)
{
	uint8_t *to;

	switch ((enum ast_place_kind)p->kind) {
	case AST_AT_VAR:
		memcpy(var_of(m, p->var), bytes, n);
		return;
	case AST_AT_FIELD:
		if (is_le(as))
			reverse(bytes, n);
		patch(m, p, bytes, n);
		return;
	case AST_AT_REGION:
		to = region_at(m, p, offset(m, p, NULL, 0, 0), n);
		if (to)
			memcpy(to, bytes, n);
		return;
	case AST_AT_SLOT:
	case AST_AT_LENGTH:
		break;
	}
	m->result = INTERPRET_CANNOT;
}

/* ---- verbs ------------------------------------------------------------------------------------ */

static void run_read(struct machine *m, const struct ast_verb *v)
{
	uint8_t bytes[LONGEST], *from = bytes;
	unsigned n = 0;

	for (unsigned i = 0; i < v->npieces; i++)
		n += v->piece[i].type.bytes;
	if (n > LONGEST) {
		m->result = INTERPRET_CANNOT;
		return;
	}
	if (v->place->kind == AST_AT_VAR) {
		n = v->place->var->type.bytes;
		from = var_of(m, v->place->var);
	} else if (v->place->kind == AST_AT_FIELD) {
		put(bytes, n, false, field_value(m, v->place) >> shift_of(v->place));
	} else {
		from = region_at(m, v->place, offset(m, v->place, v, CHAIN_F_REMOTE_ADDR, 0), n);
	}
	if (!from)
		return;
	memmove(bytes, from, n);
	for (unsigned i = 0, at = 0; i < v->npieces; at += v->piece[i++].type.bytes)
		if (v->piece[i].to)
			store(m, v->piece[i].to, &v->piece[i].type, bytes + at, v->piece[i].type.bytes);
}

static uint32_t immediate(struct machine *m, const struct ast_verb *v)
{
	const struct ast_place p = {.verb = (struct ast_verb *)v, .field = CHAIN_F_IMM};

	if (v->has_imm && v->imm.kind == AST_ARG)
		patch_bits(m, v, CHAIN_F_IMM, 0, value(m, &v->imm), low_bytes(v->imm.type.bytes));
	return (uint32_t)field_value(m, &p);
}

static void run_write(struct machine *m, const struct ast_verb *v)
{
	uint8_t bytes[2 * LONGEST], *p;
	uint64_t n = 0, at;

	for (unsigned i = 0; i < v->nsources && !m->result; i++) {
		const struct ast_operand *o = &v->source[i];
		uint64_t some;

		if (o->kind != AST_PLACE || o->place->kind != AST_AT_REGION) {
			n += load(m, o, &o->type, bytes + n);
			continue;
		}
		some = patched(m, v, CHAIN_F_LOCAL_LEN, i, length_posted(v, o));
		if (v->max && !v->least && (some == 0 || some > v->max))
			continue;
		if (some == 0 || some > LONGEST - n || (v->max && some > v->max)) {
			m->result = INTERPRET_BEYOND;
			return;
		}
		p = region_at(m, o->place, offset(m, o->place, v, CHAIN_F_LOCAL_ADDR, i), some);
		if (!p)
			return;
		memcpy(bytes + n, p, some);
		if (o->swab)
			reverse(bytes + n, some);
		n += some;
	}
	if (m->result)
		return;
	if (v->kind == AST_SEND) {
		m->result = n > m->in->slot_bytes ? INTERPRET_BEYOND : 0;
		m->in->sends = true;
		memcpy(m->in->inbox, bytes, m->result ? 0 : n);
	} else if (v->place->kind == AST_AT_SLOT) {
		if (v->place->at > m->in->slot_bytes || n > m->in->slot_bytes - v->place->at) {
			m->result = INTERPRET_BEYOND;
			return;
		}
		memcpy(m->in->slot + v->place->at, bytes, n);
		if (v->kind == AST_WRITE_IMM)
			m->in->imm = immediate(m, v);
	} else if (v->place->kind == AST_AT_REGION) {
		at = offset(m, v->place, v, CHAIN_F_REMOTE_ADDR, 0);
		p = region_at(m, v->place, at, n);
		if (p)
			memcpy(p, bytes, n);
	} else {
		store(m, v->place, &v->place->type, bytes, (unsigned)n);
	}
}

static void run_mov(struct machine *m, const struct ast_verb *v)
{
	const struct ast_type *from = &v->source[0].type, *to = &v->place->type;
	uint8_t bytes[PROGRAM_MAX_BYTES];
	unsigned n;

	if (v->place->kind != AST_AT_FIELD && from->kind == AST_UINT && from->bytes < to->bytes) {
		put(bytes, to->bytes, is_le(to), value(m, &v->source[0]));
		n = to->bytes;
	} else {
		n = load(m, &v->source[0], to, bytes);
	}
	if (!m->result)
		store(m, v->place, from, bytes, n);
}

static void run_calc(struct machine *m, const struct ast_verb *v)
{
	const uint64_t a = value(m, &v->source[0]), b = value(m, &v->source[1]);
	const struct ast_type *t = &v->place->type;
	uint8_t bytes[8];
	uint64_t is = 0;

	switch ((enum ast_calc)v->calc) {
	case AST_CALC_ADD:
		is = a + b;
		break;
	case AST_CALC_MAX:
		is = a > b ? a : b;
		break;
	case AST_CALC_MIN:
		is = a < b ? a : b;
		break;
	case AST_CALC_AND:
		is = a & b;
		break;
	case AST_CALC_OR:
		is = a | b;
		break;
	case AST_CALC_XOR:
		is = a ^ b;
		break;
	case AST_CALC_SUB:
		is = a - b;
		break;
	}
	put(bytes, t->bytes, is_le(t), is);
	if (!m->result)
		store(m, v->place, t, bytes, t->bytes);
}

/* An operand when the verb runs */
static uint64_t operand(
	struct machine *m, const struct ast_verb *v, unsigned field, const struct ast_operand *o, bool raw)
{
	struct ast_place p = {.verb = (struct ast_verb *)v, .field = (uint8_t)field};

	if (raw) /* of a field: in the order of its bytes, which nothing else names */
		return value(m, o);
	if (o->kind == AST_PLACE)
		patch_bits(m, v, field, 0, value(m, o), low_bytes(o->type.bytes));
	return field_value(m, &p);
}

static void run_atomic(struct machine *m, const struct ast_verb *v)
{
	const bool field = v->place->kind == AST_AT_FIELD;
	const unsigned width = v->place->kind == AST_AT_VAR ? v->place->var->type.bytes : 8;
	uint64_t old, at, compare, swap, by;
	uint8_t *p = NULL, bytes[8];

	if (v->place->kind == AST_AT_VAR) {
		p = var_of(m, v->place->var);
	} else if (v->place->kind == AST_AT_REGION) {
		at = offset(m, v->place, v, CHAIN_F_REMOTE_ADDR, 0);
		p = at % 8 ? NULL : region_at(m, v->place, at, 8);
		m->result = p ? m->result : INTERPRET_BEYOND;
	}
	if (!p && !field)
		return;
	old = field ? field_value(m, v->place) : number(p, width, true);
	if (v->kind == AST_CAS) {
		compare = operand(m, v, CHAIN_F_COMPARE, &v->old, field);
		swap = operand(m, v, CHAIN_F_SWAP, &v->swap, field);
		m->in->published |= v->swap.kind == AST_LOCATOR && old == compare;
		swap = (old ^ compare) & v->mask ? old : (old & ~v->mask) | (swap & v->mask);
		if (field)
			patch_bits(m, v->place->verb, v->place->field, v->place->sge, swap, UINT64_MAX);
		else
			put(p, width, true, swap);
	} else {
		uint64_t sum = 0, carry = 0;

		by = operand(m, v, CHAIN_F_ADD, &v->by, false);
		for (unsigned i = 0; i < 64; i++) {
			uint64_t bit = (old >> i & 1) + (by >> i & 1) + carry;

			sum |= (bit & 1) << i;
			carry = v->fields >> i & 1 ? 0 : bit >> 1;
		}
		put(p, width, true, sum);
	}
	if (v->nwas == 1) {
		put(var_of(m, v->was[0]->var), v->was[0]->type.bytes, is_le(&v->was[0]->type), old);
		return;
	}
	put(bytes, sizeof(bytes), true, old);
	for (unsigned i = 0, from = 0; i < v->nwas; from += v->was[i++]->type.bytes)
		memcpy(var_of(m, v->was[i]->var), bytes + from, v->was[i]->type.bytes);
}

static bool holds(struct machine *m, const struct ast_cond *c)
{
	uint8_t a[PROGRAM_MAX_BYTES], b[PROGRAM_MAX_BYTES];
	uint64_t x, y;

	if (c->kind == AST_AND)
		return holds(m, c->first) && holds(m, c->second);
	if (c->kind == AST_OR)
		return holds(m, c->first) || holds(m, c->second);
	if (c->left.type.kind == AST_BYTES) {
		unsigned n = load(m, &c->left, &c->left.type, a);

		load(m, &c->right, &c->left.type, b);
		return (memcmp(a, b, n) == 0) == (c->relation == AST_REL_EQ);
	}
	x = value(m, &c->left);
	y = value(m, &c->right);
	switch ((enum ast_relation)c->relation) {
	case AST_REL_EQ:
		return x == y;
	case AST_REL_NE:
		return x != y;
	case AST_REL_LT:
		return x < y;
	case AST_REL_GT:
		return x > y;
	case AST_REL_LE:
		return x <= y;
	case AST_REL_GE:
		return x >= y;
	}
	return false;
}

static void run_verb(struct machine *m, const struct ast_verb *v)
{
	switch ((enum ast_verb_kind)v->kind) {
	case AST_READ:
		run_read(m, v);
		return;
	case AST_WRITE:
	case AST_WRITE_IMM:
	case AST_SEND:
		run_write(m, v);
		return;
	case AST_MOV:
		run_mov(m, v);
		return;
	case AST_CALC:
		run_calc(m, v);
		return;
	case AST_CAS:
	case AST_ADD:
		run_atomic(m, v);
		return;
	case AST_NOP:
	case AST_WAIT:
	case AST_ENABLE:
		return;
	}
}

static void set_to_init(struct machine *m, const struct ast_var *v)
{
	memset(var_of(m, v), 0, v->type.bytes);
	if (v->type.kind == AST_UINT)
		put(var_of(m, v), v->type.bytes, is_le(&v->type), v->init);
}

/* One iteration stands for all, but for what is declared or patched in it */
static void run_endless(struct machine *m, const struct ast_loop *loop)
{
	unsigned npatches = m->npatches;

	for (unsigned n = 0; !m->result && !m->leaving; n++) {
		for (unsigned i = 0; i < m->in->p->nvars; i++)
			if (m->in->p->var[i]->each_iteration)
				set_to_init(m, m->in->p->var[i]);
		m->npatches = npatches;
		if (loop->kind == AST_WHILE && !holds(m, loop->cond))
			break;
		run_block(m, &loop->iter[0]);
		if (n == ITERATIONS)
			m->result = INTERPRET_BEYOND;
	}
}

static void run_loop(struct machine *m, const struct ast_loop *loop)
{
	if (loop->endless)
		run_endless(m, loop);
	for (unsigned i = 0; !loop->endless && i < loop->niters && !m->result && !m->leaving; i++) {
		if (loop->kind == AST_WHILE && !holds(m, loop->cond))
			break;
		run_block(m, &loop->iter[i]);
	}
	if (m->leaving == loop)
		m->leaving = NULL;
	else
		run_block(m, &loop->otherwise);
}

static void run_block(struct machine *m, const struct ast_block *b)
{
	for (unsigned i = 0; i < b->n && !m->result && !m->leaving; i++) {
		const struct ast_stmt *s = &b->stmt[i];

		switch ((enum ast_stmt_kind)s->kind) {
		case AST_VERB:
			run_verb(m, s->verb);
			break;
		case AST_IF:
			run_block(m, holds(m, s->cond) ? &s->then : &s->otherwise);
			break;
		case AST_LOOP:
			run_loop(m, s->loop);
			break;
		case AST_BREAK:
			m->leaving = s->loop;
			break;
		}
	}
}

/* ---- what can be interpreted ------------------------------------------------------------------ */

/* What is known of a field: of an address, the offset in its region */
static bool field_is_plain(const struct ast_place *p, unsigned bytes)
{
	const struct ast_verb *v = p->verb;

	switch (p->field) {
	case CHAIN_F_REMOTE_ADDR:
		return v->place && v->place->kind == AST_AT_REGION && bytes < 8;
	case CHAIN_F_LOCAL_ADDR:
		return v->kind != AST_READ && v->source[p->sge].kind == AST_PLACE &&
		       v->source[p->sge].place->kind == AST_AT_REGION && bytes < 8;
	case CHAIN_F_LOCAL_LEN:
		return v->kind != AST_READ && v->source[p->sge].kind == AST_PLACE &&
		       v->source[p->sge].place->kind == AST_AT_REGION;
	default:
		return true;
	}
}

static bool place_is_plain(const struct ast_place *p, unsigned bytes)
{
	return !p || p->kind != AST_AT_FIELD || field_is_plain(p, p->one_byte ? 1 : bytes);
}

static bool operand_is_plain(const struct ast_operand *o)
{
	return o->kind != AST_PLACE || place_is_plain(o->place, o->type.bytes);
}

static bool verb_is_plain(const struct ast_verb *v)
{
	for (unsigned i = 0; i < v->nsources; i++)
		if (!operand_is_plain(&v->source[i]))
			return false;
	for (unsigned i = 0; i < v->npieces; i++)
		if (!place_is_plain(v->piece[i].to, v->piece[i].type.bytes))
			return false;
	return place_is_plain(v->place, v->kind == AST_READ   ? v->place->type.bytes
					: v->kind == AST_MOV  ? v->source[0].type.bytes
					: v->kind == AST_CALC ? v->place->type.bytes
							      : 8);
}

bool interpret_can(const struct ast_program *p)
{
	for (unsigned i = 0; i < p->nverbs; i++)
		if (!verb_is_plain(p->verb[i]))
			return false;
	return true;
}

int interpret(struct interpret *in)
{
	struct machine *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		abort();
	m->in = in;
	in->published = false;
	m->var = calloc(in->p->nvars + 1, sizeof(*m->var));
	for (unsigned i = 0; i < in->p->nvars; i++) {
		const struct ast_var *v = in->p->var[i];

		m->var[i] = calloc(1, v->type.bytes + 8);
		set_to_init(m, v);
	}
	run_block(m, &in->p->body);
	r = m->result;
	for (unsigned i = 0; i < in->p->nvars; i++)
		free(m->var[i]);
	free(m->var);
	free(m);
	return r;
}
