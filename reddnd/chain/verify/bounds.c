/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/verify/bounds.h"

#include "mlx5/wqe.h"
#include "reddnd/chain/verify/machine.h"
#include "reddnd/chain/verify/trace.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct bounds {
	struct machine m; /* after it has run */
	struct chain_bounds needs;
};

/* ---- what may not come of it ------------------------------------------------------------ */

static struct chain_error_at here(const struct bounds *b)
{
	return layout_at(&b->m.l, b->m.s);
}

static unsigned writer(const struct cell *c)
{
	unsigned o = ORIGINS - 1;

	while (c->by[o] == NOBODY)
		o--;
	return c->by[o];
}

/* Bytes of regions and requests may not get into @n bytes at @c, which are the @what of the step */
static int check_ours(struct bounds *b, const struct cell *c, unsigned n, const char *what)
{
	const struct cell *data = cells_written_from(c, n, CLIENT);
	struct chain_error_at other;
	unsigned from = CLIENT;

	if (!data) {
		from = REGION;
		data = cells_written_from(c, n, REGION);
	}
	if (!data)
		return 0;
	other = layout_at(&b->m.l, data->by[from]);
	if (from == CLIENT)
		return layout_refuse(&b->m.l, FOREIGN_REQUEST, .at = here(b), .other = other, .name = what);
	return layout_refuse(&b->m.l, FOREIGN_REGION, .at = here(b), .other = other, .name = what);
}

static bool writes_byte(struct bounds *b, unsigned s, const struct layout_range *byte)
{
	const struct chain_step *st = &b->m.l.d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	struct layout_range r;

	for (unsigned i = 0; v->scatters && i < b->m.l.step[s].nsge; i++) {
		r = layout_place(&b->m.l, &st->local[i], st->local[i].len);
		if (layout_overlap(&r, byte))
			return true;
	}
	if (!v->remote || st->verb == CHAIN_READ)
		return false;
	r = layout_place(&b->m.l, &st->remote, layout_step_bytes(&b->m.l, s));
	return layout_overlap(&r, byte);
}

/* The CAS of @s replaces the control segment of step @to as a whole, with the opmod of its verb */
static bool replaces_control(struct bounds *b, unsigned s, unsigned to)
{
	const struct chain_step *st = &b->m.l.d->steps[s];
	const struct chain_verb_info *v = chain_verb_info(b->m.l.d->steps[to].verb);
	unsigned size;
	int at = chain_field_at(st->verb, CHAIN_F_SWAP, 0, &size);
	struct layout_range r;

	if (st->verb != CHAIN_CAS)
		return false;
	r = layout_place(&b->m.l, &st->remote, OPERAND_BYTES);
	return r.sym == CHAIN_SYM_QUEUE && r.index == b->m.l.d->steps[to].queue &&
	       r.offset == (uint64_t)b->m.l.step[to].at * CHAIN_WQEBB &&
	       cell_is_only(&machine_wqe(&b->m, s)[at + OPERAND_BYTES - 1 - WQE_OPMOD], v->opmod);
}

/*
 * The step has another opmod only while it is a NOP: what makes more of it replaces the opmod as well, and
 * nothing writes to that afterwards. In a loop there is no afterwards.
 */
static bool opmod_rests(struct bounds *b)
{
	const struct chain_step *st = &b->m.l.d->steps[b->m.s];
	struct layout_range mod = {.sym = CHAIN_SYM_QUEUE,
		.index = st->queue,
		.offset = (uint64_t)b->m.l.step[b->m.s].at * CHAIN_WQEBB + WQE_OPMOD,
		.len = 1};
	struct layout_range op = mod;
	bool replaced = false;

	op.offset += WQE_OPCODE - WQE_OPMOD;
	if (!(st->flags & CHAIN_DORMANT) || b->m.in_loop)
		return false;
	for (unsigned s = 0; s < b->m.l.d->nsteps; s++)
		if (replaces_control(b, s, b->m.s))
			replaced = true;
		else if (writes_byte(b, s, &op) || (replaced && writes_byte(b, s, &mod)))
			return false;
	return true;
}

/* An opmod is half of an opcode */
static int check_opmod(struct bounds *b)
{
	const struct chain_verb_info *v = chain_verb_info(b->m.l.d->steps[b->m.s].verb);
	const struct cell *c = &machine_wqe(&b->m, b->m.s)[WQE_OPMOD];
	unsigned mod = 0;

	if (cell_is_only(c, v->opmod) || opmod_rests(b))
		return 0;
	if (check_ours(b, c, 1, "opmod"))
		return CHAIN_REFUSED;
	while (mod == v->opmod || !cell_can_be(c, (uint8_t)mod))
		mod++;
	assert(mod < 256 && "or the byte would have its only value");
	return layout_refuse(&b->m.l, OPMOD, .at = here(b), .other = layout_at(&b->m.l, writer(c)),
		.number = {mod, v->opmod}, .what = v->name);
}

static int check_control(struct bounds *b)
{
	const struct chain_verb_info *v = chain_verb_info(b->m.l.d->steps[b->m.s].verb);
	const struct cell *c = machine_wqe(&b->m, b->m.s), *other = NULL;

	if (check_ours(b, &c[WQE_OPCODE], 1, "opcode"))
		return CHAIN_REFUSED;
	for (unsigned op = 0; op < 256; op++)
		if (cell_can_be(&c[WQE_OPCODE], (uint8_t)op) && op != WQE_OP_NOP && op != v->opcode)
			return layout_refuse(&b->m.l, OPCODE, .at = here(b),
				.other = layout_at(&b->m.l, writer(&c[WQE_OPCODE])), .number = {op},
				.what = v->name);
	if (check_opmod(b))
		return CHAIN_REFUSED;
	if (!cell_is_only(&c[WQE_DSCOUNT], b->m.l.step[b->m.s].ds))
		return layout_refuse(&b->m.l, WQE_SIZE, .at = here(b),
			.other = layout_at(&b->m.l, writer(&c[WQE_DSCOUNT])));
	for (unsigned i = 0; i < WQE_DSCOUNT; i++)
		if (i != WQE_OPCODE && c[i].written)
			other = &c[i];
	if (other && !b->m.l.d->ignores_index)
		return layout_refuse(
			&b->m.l, CONTROL, .at = here(b), .other = layout_at(&b->m.l, writer(other)));
	if (v->class == CHAIN_CLASS_SYNC)
		return check_ours(b, &c[WQE_SYNC_INDEX], 4, "index");
	return 0;
}

/* Only there a key spans the place and nothing else. What a loop and its caller share has the form of a
 * region, but holds variables and opcodes of both */
static bool is_bounded(const struct bounds *b, const struct chain_place *p)
{
	return p->kind == CHAIN_AT_REGION && !(b->m.shared && p->index == b->m.l.d->shared);
}

static const struct chain_region *region_of(const struct bounds *b, const struct chain_place *p)
{
	static const struct chain_region unknown = {.name = ""};

	return b->m.l.d->regions ? &b->m.l.d->regions[p->index] : &unknown;
}

/* Where a step reads or writes */
struct access_to {
	const struct chain_place *p;
	const struct cell *addr;
	uint64_t len;       /* at most */
	uint32_t posted;    /* the same, as described */
	bool writes, reads; /* an atomic does both */
	bool stretched;     /* a client influences how many bytes */
};

/* The place is never the one that is described */
static bool is_replaced(const struct cell *c, unsigned n)
{
	for (; n--; c++)
		if (c->replaced)
			return true;
	return false;
}

/* Only the address of a place in a region may be known outside: it is an offset that the program has made */
static bool is_secret(const struct bounds *b, const struct chain_place *p)
{
	const struct chain_place *addressed = layout_addressed(&b->m.l, p);

	return addressed && !is_bounded(b, addressed);
}

static int check_place(struct bounds *b, const struct access_to *a)
{
	const struct chain_place *p = a->p;
	const struct cell *addr = a->addr;
	const uint64_t len = a->len;
	const bool writes = a->writes;
	const struct cell *moved = cells_written(addr, ADDR_BYTES);
	const struct chain_region *region;
	uint64_t need;

	if (a->reads && p->kind == CHAIN_AT_FIELD &&
		(p->field == CHAIN_F_REMOTE_KEY || p->field == CHAIN_F_LOCAL_KEY))
		return layout_refuse(&b->m.l, READS_KEY, .at = here(b));
	if (a->reads && is_secret(b, p))
		return layout_refuse(&b->m.l, READS_ADDRESS, .at = here(b));
	if (p->kind != CHAIN_AT_REGION) {
		if (!moved)
			return 0;
		if (p->kind == CHAIN_AT_SLOT)
			return layout_refuse(&b->m.l, ADDRESS_SLOT, .at = here(b),
				.other = layout_at(&b->m.l, writer(moved)));
		return layout_refuse(
			&b->m.l, ADDRESS_OWN, .at = here(b), .other = layout_at(&b->m.l, writer(moved)));
	}
	region = region_of(b, p);
	if (moved && !is_bounded(b, p))
		return layout_refuse(
			&b->m.l, ADDRESS_SHARED, .at = here(b), .other = layout_at(&b->m.l, writer(moved)));
	if (b->m.l.d->loop && b->m.l.d->steps[b->m.s].queue == 0 && p->index == b->m.l.d->shared)
		return layout_refuse(&b->m.l, ANSWER_SHARED, .at = here(b));
	need = p->from + (moved ? a->posted : len);
	if (!is_replaced(addr, ADDR_BYTES) && need > b->needs.region[p->index])
		b->needs.region[p->index] = need;
	if (!moved && region->size && p->from + len > region->size)
		return layout_refuse(&b->m.l, REGION_END, .at = here(b), .name = region->name,
			.number = {p->from, p->from + len - 1, region->size});
	if (!writes)
		return 0;
	if (!(region->flags & CHAIN_WRITABLE))
		return layout_refuse(&b->m.l, NOT_WRITABLE, .at = here(b), .name = region->name);
	if ((a->stretched || cells_of_client(addr, ADDR_BYTES)) && !(region->flags & CHAIN_STEERED))
		return layout_refuse(&b->m.l, NOT_STEERED, .at = here(b), .name = region->name);
	return 0;
}

/* Inline data have their length in the same place, with the highest bit set */
static bool can_be_inline(const struct cell *len)
{
	for (unsigned v = 0x80; v < 0x100; v++)
		if (cell_can_be(len, (uint8_t)v))
			return true;
	return false;
}

/*
 * A client decides which of several lengths it is. Those in a region are taken at their word, if its writer
 * vouches for them; for those of the program there has to be a maximum.
 */
static bool is_chosen(const struct chain_place *p, const struct cell *len)
{
	return cells_of_client(len, LEN_BYTES) &&
	       (!cells_vouched(len) || (!p->max && !cells_written_from(len, LEN_BYTES, REGION)));
}

/* A data segment whose length is replaced, and @remote, what is on the other side of it */
static int check_length(struct bounds *b, const struct chain_place *p, const struct cell *len)
{
	const struct chain_step *st = &b->m.l.d->steps[b->m.s];
	const struct cell *data = cells_written(len, LEN_BYTES);

	if (!data)
		return 0;
	if (!is_bounded(b, p) || (st->queue != 0 && !is_bounded(b, &st->remote)))
		return layout_refuse(
			&b->m.l, LENGTH_BEYOND, .at = here(b), .other = layout_at(&b->m.l, writer(data)));
	if (cells_written_from(len, LEN_BYTES, CLIENT))
		data = cells_written_from(len, LEN_BYTES, CLIENT);
	else if (!is_chosen(p, len))
		data = NULL;
	if (data)
		return layout_refuse(
			&b->m.l, LENGTH_REQUEST, .at = here(b), .other = layout_at(&b->m.l, writer(data)));
	if (st->queue == 0 && !p->max)
		return layout_refuse(&b->m.l, LENGTH_UNKNOWN, .at = here(b));
	data = cells_written(len, LEN_BYTES);
	if (p->max && cells_most(len, LEN_BYTES) > p->max)
		return layout_refuse(&b->m.l, LENGTH_MAX, .at = here(b),
			.other = layout_at(&b->m.l, writer(data)),
			.number = {cells_most(len, LEN_BYTES), p->max});
	if (p->least && !cells_vouched(len))
		return layout_refuse(&b->m.l, LENGTH_UNVOUCHED, .at = here(b),
			.other = layout_at(&b->m.l, writer(cells_written_from(len, LEN_BYTES, REGION))),
			.number = {p->max});
	if (p->least && cells_longest(len) && (p->least > 1 || cells_longest(len) > p->max))
		return layout_refuse(&b->m.l, LENGTH_PUBLISHED, .at = here(b),
			.other = layout_at(&b->m.l, writer(cells_written_from(len, LEN_BYTES, REGION))),
			.number = {cells_longest(len), p->least, p->max});
	if (p->least > cells_least(len))
		return layout_refuse(&b->m.l, LENGTH_LEAST, .at = here(b),
			.other = layout_at(&b->m.l, writer(data)), .number = {cells_least(len), p->least});
	if (can_be_inline(len))
		return layout_refuse(
			&b->m.l, LENGTH_INLINE, .at = here(b), .other = layout_at(&b->m.l, writer(len)));
	return 0;
}

/* What a constant locator names is in its region, of every size that is accepted */
static int check_located(struct bounds *b)
{
	const struct chain_step *st = &b->m.l.d->steps[b->m.s];
	const struct chain_place named = {.kind = CHAIN_AT_REGION, .index = st->located};
	const struct chain_region *region = region_of(b, &named);
	const uint64_t from = chain_located_at(st->swap), len = chain_located_bytes(st->swap);

	if (!st->publishes || st->extent)
		return 0;
	if (!len)
		return layout_refuse(&b->m.l, PUBLISH_NOTHING, .at = here(b));
	if (region->size && from + len > region->size)
		return layout_refuse(&b->m.l, REGION_END, .at = here(b), .name = region->name,
			.number = {from, from + len - 1, region->size});
	if (from + len > b->needs.region[st->located])
		b->needs.region[st->located] = from + len;
	return 0;
}

/* The word that a publish replaces is the last one that was published there, or the server's: nobody else
 * stores in its region */
static int check_published(struct bounds *b)
{
	const struct chain_step *st = &b->m.l.d->steps[b->m.s];

	if (!st->publishes || !b->m.stored[st->remote.index].any.to)
		return 0;
	return layout_refuse(&b->m.l, PUBLISH_SHARED, .at = here(b), .name = region_of(b, &st->remote)->name);
}

/* A place in a region that is always the one that is described */
static bool is_constant(const struct bounds *b, const struct chain_place *p, const struct cell *addr)
{
	return is_bounded(b, p) && !cells_written(addr, ADDR_BYTES);
}

/* Between regions, or parts of one: @bytes in all, at most. A NIC would read what it has just written */
static int check_overlap(struct bounds *b, uint64_t bytes)
{
	const struct chain_step *st = &b->m.l.d->steps[b->m.s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	const struct cell *c = machine_wqe(&b->m, b->m.s);

	if (bytes <= CHAIN_PACKET || !is_constant(b, &st->remote, c + WQE_RADDR))
		return 0;
	for (unsigned i = 0; i < b->m.l.step[b->m.s].nsge; i++) {
		const struct chain_place *p = &st->local[i];
		const uint64_t len = p->max > p->len ? p->max : p->len;

		if (is_constant(b, p, c + v->sge_at + i * WQE_DS + WQE_SGE_ADDR) &&
			p->index == st->remote.index && p->from < st->remote.from + bytes &&
			st->remote.from < p->from + len)
			return layout_refuse(&b->m.l, COPY_OVERLAPS, .at = here(b),
				.name = region_of(b, p)->name, .number = {bytes, p->from, st->remote.from});
	}
	return 0;
}

static int check_data(struct bounds *b)
{
	const struct chain_step *st = &b->m.l.d->steps[b->m.s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	const struct cell *c = machine_wqe(&b->m, b->m.s);
	uint64_t bytes = 0;
	bool stretched = false;

	for (unsigned i = 0; i < b->m.l.step[b->m.s].nsge; i++) {
		const struct chain_place *p = &st->local[i];
		const struct cell *sge = c + v->sge_at + i * WQE_DS;
		struct access_to local = {.p = p,
			.addr = sge + WQE_SGE_ADDR,
			.len = p->max > p->len ? p->max : p->len,
			.posted = p->len,
			.writes = v->scatters,
			.reads = !v->scatters,
			.stretched = cells_of_client(sge + WQE_SGE_LEN, LEN_BYTES)};

		if (check_length(b, p, sge + WQE_SGE_LEN) || check_place(b, &local))
			return CHAIN_REFUSED;
		bytes += local.len;
		stretched |= local.stretched;
	}
	if (!v->remote)
		return 0;
	bytes = chain_remote_bytes(v, bytes);
	if (check_place(b, &(struct access_to){.p = &st->remote,
				   .addr = c + WQE_RADDR,
				   .len = bytes,
				   .posted = layout_step_bytes(&b->m.l, b->m.s),
				   .writes = st->verb != CHAIN_READ,
				   .reads = v->scatters,
				   .stretched = stretched}) ||
		check_overlap(b, bytes))
		return CHAIN_REFUSED;
	if (st->remote.kind != CHAIN_AT_SLOT || st->remote.from + bytes <= b->needs.reply)
		return 0;
	if (b->m.l.d->slot_size && st->remote.from + bytes > b->m.l.d->slot_size)
		return layout_refuse(&b->m.l, SLOT_END, .at = here(b),
			.number = {st->remote.from + bytes, b->m.l.d->slot_size});
	if (st->remote.from + bytes > UINT32_MAX)
		return layout_refuse(
			&b->m.l, REPLY_BYTES, .at = here(b), .number = {st->remote.from + bytes});
	b->needs.reply = (uint32_t)(st->remote.from + bytes);
	return 0;
}

/* ----------------------------------------------------------------------------------------- */

static void free_bounds(struct bounds **b)
{
	if (!*b)
		return;
	machine_free(&(*b)->m);
	free(*b);
}

static int check_steps(struct bounds *b)
{
	for (b->m.s = 0; b->m.s < b->m.l.d->nsteps; b->m.s++)
		if (check_control(b) || check_data(b) || check_located(b) || check_published(b))
			return CHAIN_REFUSED;
	return 0;
}

/* ---- a loop and who calls it -------------------------------------------------------------------- */

static int check_loop(struct bounds *b, const struct chain_desc *d, const struct chain_desc *loop)
{
	struct chain_step *steps = calloc(loop->nsteps + 2, sizeof(*steps));
	struct chain_desc as_chain;
	int r = -ENOMEM;

	if (!steps)
		return -ENOMEM;
	as_chain = layout_loop(loop, steps);
	as_chain.shared = d->shared;
	r = machine_begin(&b->m, &as_chain);
	b->m.in_loop = true;
	if (r == 0 && !machine_iterate(&b->m))
		r = layout_refuse(&b->m.l, LOOP_UNCLEAR);
	if (r == 0)
		r = check_steps(b);
	b->m.l.d = NULL;
	free(steps);
	return r;
}

/* What one of the two puts there the other finds there, and so again with both until neither is surprised */
static int check_both(struct bounds *b, const struct chain_desc *d)
{
	uint64_t before = 0, now = 1;
	int r = b->m.shared ? 0 : machine_share(&b->m, d);

	while (r == 0 && before != now) {
		before = now;
		r = machine_begin(&b->m, d);
		if (r)
			return r;
		machine_run(&b->m);
		r = check_loop(b, d, d->loop);
		now = machine_outside(&b->m);
	}
	return r;
}

static int check_all(struct bounds *b, const struct chain_desc *d)
{
	int r = d->loop ? check_both(b, d) : 0;

	if (r == 0)
		r = machine_begin(&b->m, d);
	if (r)
		return r;
	machine_run(&b->m);
	r = check_steps(b);
	return r ? r : trace_check(&b->m.l);
}

int chain_check_bounds(const struct chain_desc *d, struct chain_bounds *bounds, struct chain_error *err)
{
	__attribute__((cleanup(free_bounds))) struct bounds *b = calloc(1, sizeof(*b));
	uint64_t before, now = 0;
	int r;

	if (!b)
		return -ENOMEM;
	b->m.l.err = err;
	*err = (struct chain_error){0};
	for (unsigned i = 0; d->regions && i < d->nregions && i < CHAIN_MAX_WINDOWS; i++)
		b->m.stored[i] = d->regions[i].stored;
	do { /* what this request leaves in a region the next one finds there */
		before = now;
		r = check_all(b, d);
		now = machine_outside(&b->m);
	} while (r == 0 && now != before);
	if (r == 0 && bounds) {
		*bounds = b->needs;
		memcpy(bounds->stored, b->m.stored, sizeof(bounds->stored));
	}
	return r;
}
