/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/verify/machine.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROUNDS = 300, /* of a loop, until no byte can be anything new */
	RUNS = 64,    /* until what grows in a region is all of it */
};

/* ---- cells ------------------------------------------------------------------------------ */

enum { SET = 256 / 64 };

static bool set_has(const uint64_t set[SET], unsigned v)
{
	return set[v / 64] >> v % 64 & 1;
}

static void set_add(uint64_t set[SET], unsigned v)
{
	set[v / 64] |= 1ull << v % 64;
}

static bool set_is_empty(const uint64_t set[SET])
{
	return !(set[0] | set[1] | set[2] | set[3]);
}

static bool set_is_full(const uint64_t set[SET])
{
	return (set[0] & set[1] & set[2] & set[3]) == UINT64_MAX;
}

static unsigned set_list(const uint64_t set[SET], uint8_t of[256])
{
	unsigned n = 0;

	for (unsigned v = 0; v < 256; v++)
		if (set_has(set, v))
			of[n++] = (uint8_t)v;
	return n;
}

static void set_join(uint64_t to[SET], const uint64_t more[SET])
{
	for (unsigned i = 0; i < SET; i++)
		to[i] |= more[i];
}

static void all_ours(struct cell *c)
{
	memset(c->ours, 0xff, sizeof(c->ours));
	memset(c->live, 0xff, sizeof(c->live));
}

static void any_value(struct cell *c, enum origin from)
{
	memset(c->values, 0xff, sizeof(c->values));
	if (from == PROGRAM)
		all_ours(c);
	c->from |= (uint8_t)(1u << from);
}

static void one_value(struct cell *c, uint8_t v)
{
	memset(c->values, 0, sizeof(c->values));
	set_add(c->values, v);
	memcpy(c->ours, c->values, sizeof(c->ours));
	memcpy(c->live, c->values, sizeof(c->live));
	c->from = 1u << PROGRAM;
}

bool cell_is_only(const struct cell *c, uint8_t v)
{
	struct cell one = {0};

	one_value(&one, v);
	return memcmp(one.values, c->values, sizeof(one.values)) == 0;
}

bool cell_can_be(const struct cell *c, uint8_t v)
{
	return set_has(c->values, v);
}

static void join(struct machine *m, struct cell *to, const struct cell *from)
{
	set_join(to->values, from->values);
	set_join(to->ours, from->ours);
	set_join(to->live, from->live);
	to->influence |= from->influence;
	to->unvouched |= from->unvouched;
	to->longest = from->longest > to->longest ? from->longest : to->longest;
	to->digits |= from->digits;
	to->in_bucket |= from->in_bucket;
	for (unsigned o = 0; o < ORIGINS; o++)
		if (from->from >> o & 1 && to->by[o] == NOBODY) {
			to->from |= (uint8_t)(1u << o);
			to->by[o] = (uint16_t)m->s;
		}
	to->written = true;
}

static struct cell *cells(struct machine *m, const struct layout_range *r)
{
	if (r->sym == CHAIN_SYM_REGION)
		return m->shared + r->offset;
	return (r->sym == CHAIN_SYM_QUEUE ? m->queue[r->index] : m->scratch) + r->offset;
}

static bool is_ours(const struct machine *m, const struct layout_range *r)
{
	if (r->sym == CHAIN_SYM_REGION)
		return m->shared && r->index == m->l.d->shared && r->offset + r->len <= m->nshared;
	return r->sym == CHAIN_SYM_QUEUE || r->sym == CHAIN_SYM_SCRATCH;
}

uint64_t cells_most(const struct cell *c, unsigned n)
{
	uint64_t number = 0;

	for (; n--; c++) {
		unsigned least = 0, most = 255;

		while (!set_has(c->values, least))
			least++;
		while (most && !set_has(c->ours, most))
			most--;
		number = number << 8 | (most > least || !(c->from >> REGION & 1) ? most : least);
	}
	return number;
}

uint64_t cells_least(const struct cell *len)
{
	uint64_t number = 0;

	for (unsigned k = 0; k < LEN_BYTES; k++) {
		unsigned least = 0;

		if (set_is_empty(len[k].met))
			return UINT64_MAX;
		while (!set_has(len[k].met, least))
			least++;
		number = number << 8 | least;
	}
	return number;
}

uint32_t cells_longest(const struct cell *len)
{
	uint32_t longest = 0;

	for (unsigned k = 0; k < LEN_BYTES; k++)
		longest = len[k].longest > longest ? len[k].longest : longest;
	return longest;
}

/* What comes from a region has to be all of the length, as its writer stored it: by one store that brings its
 * lowest byte, too, and with nothing but 0 above it */
bool cells_vouched(const struct cell *len)
{
	const uint8_t all = (1u << LOCATED_BYTES) - 1;
	bool region = false;
	uint8_t digits = 0;

	for (unsigned k = 0; k < LEN_BYTES; k++) {
		const struct cell *above = k ? &len[k - 1] : NULL;

		if (region && !(len[k].from >> REGION & 1))
			return false;
		region |= len[k].from >> REGION & 1;
		if (len[k].digits & ~(k ? 1u << (k - 1) : 0)) /* of what is published, in another order */
			return false;
		digits |= len[k].digits;
		if (region && (len[k].unvouched || (above && above->apart && !cell_is_only(above, 0))))
			return false;
	}
	return !digits || digits == all;
}

const struct cell *cells_written(const struct cell *c, unsigned n)
{
	for (; n--; c++)
		if (c->written)
			return c;
	return NULL;
}

const struct cell *cells_written_from(const struct cell *c, unsigned n, enum origin from)
{
	for (; n--; c++)
		if (c->written && c->from >> from & 1)
			return c;
	return NULL;
}

bool cells_of_client(const struct cell *c, unsigned n)
{
	for (; n--; c++)
		if (c->influence || c->from >> CLIENT & 1)
			return true;
	return false;
}

/* ---- places ----------------------------------------------------------------------------- */

/** A place that a step names, and whether it is there, and there only. */
struct reach {
	struct layout_range r;
	bool moved;  /* somewhere in its region */
	bool picked; /* where a client wants it */
	bool bucket; /* wherever it is, a bucket begins at its byte */
	unsigned bucket_at;
};

/* The step is executed or not, depending on what a client sent */
static bool is_decided(struct machine *m)
{
	return m->decided || cells_of_client(&machine_wqe(m, m->s)[WQE_OPCODE], 1);
}

static struct reach reach(struct machine *m, const struct chain_place *p, uint32_t len, unsigned addr_at)
{
	const struct cell *addr = machine_wqe(m, m->s) + addr_at;

	return (struct reach){.r = layout_place(&m->l, p, len),
		.moved = cells_written(addr, ADDR_BYTES),
		.picked = cells_of_client(addr, ADDR_BYTES)};
}

static bool is_stored(const struct chain_span *stored, const struct reach *p, unsigned i)
{
	if (p->moved)
		return stored->to > 0;
	return p->r.offset + i >= stored->from && p->r.offset + i < stored->to;
}

/* Byte @i of a place in a region */
static void make_stored(struct chain_span *stored, const struct reach *p, unsigned i)
{
	struct chain_span more = {p->r.offset + i, p->r.offset + i + 1};

	if (p->moved)
		more = (struct chain_span){0, UINT64_MAX};
	chain_span_add(stored, &more);
}

static bool is_theirs(const struct machine *m, const struct reach *p, unsigned i)
{
	return is_stored(&m->stored[p->r.index].theirs, p, i);
}

/* Byte @i of a place where programs publish: one of a length, of which the client has decided how long that
 * is. All else of a bucket is a mark, made of a key of the client, or what only a server knows to be an
 * offset */
static void load_published(struct machine *m, const struct reach *p, unsigned i, struct cell *c)
{
	uint64_t at = p->bucket ? i - p->bucket_at : (p->r.offset + i) % CHAIN_BUCKET;

	if ((p->moved && !p->bucket) || at >= LOCATED_BYTES) {
		c->from |= 1u << CLIENT;
		return;
	}
	c->longest = m->stored[p->r.index].longest;
	c->digits = (uint8_t)(1u << at);
	c->influence |= DECIDED;
	c->in_bucket = p->moved;
}

static struct cell load(struct machine *m, const struct reach *p, unsigned i)
{
	bool ours = is_ours(m, &p->r);
	struct cell c = ours ? cells(m, &p->r)[i] : m->of_region;

	if (p->r.sym == CHAIN_SYM_CQE)
		return m->of_length[p->r.offset + i - CQE_LENGTH];
	if (c.owner && c.owner != m->l.d->steps[m->s].queue + 1)
		memcpy(c.live, c.ours, sizeof(c.live));
	if (c.in_bucket || (!ours && is_theirs(m, p, i)))
		c.from |= 1u << CLIENT;
	c.in_bucket = false;
	if (!ours)
		c.unvouched = is_stored(&m->stored[p->r.index].any, p, i);
	if (!ours && is_stored(&m->stored[p->r.index].located, p, i))
		load_published(m, p, i, &c);
	if (p->picked)
		c.influence |= PICKED;
	for (unsigned v = 0; c.settled != m->l.d->steps[m->s].queue + 1 && v < 256 / 64; v++)
		c.values[v] |= c.failed[v];
	return c;
}

/* The step, or the request, is executed, and leaves nothing of what was there */
static bool replaces(struct machine *m)
{
	const struct chain_step *st = &m->l.d->steps[m->s];

	return m->s == LAYOUT_NONE ||
	       (!(st->flags & CHAIN_DORMANT) && !chain_verb_info(st->verb)->atomic_bytes &&
		       !machine_wqe(m, m->s)[WQE_OPCODE].written);
}

static void replace_live(struct machine *m, struct cell *to)
{
	memset(to->live, 0, sizeof(to->live));
	to->owner = m->s == LAYOUT_NONE ? 0 : (uint8_t)(m->l.d->steps[m->s].queue + 1);
}

/* In what is ours, or in a region */
static void store(struct machine *m, const struct reach *p, unsigned i, const struct cell *c)
{
	struct cell in = *c;

	if (m->s != LAYOUT_NONE && is_decided(m))
		in.influence |= DECIDED;
	if (is_ours(m, &p->r)) {
		struct cell *to = cells(m, &p->r) + i;

		/* what a loop and its caller share is stored by two, in no order */
		if (replaces(m) && p->r.sym != CHAIN_SYM_REGION)
			replace_live(m, to);
		join(m, to, &in);
		to->replaced |= replaces(m);
		return;
	}
	make_stored(&m->stored[p->r.index].any, p, i);
	if (p->picked || cells_of_client(&in, 1))
		make_stored(&m->stored[p->r.index].theirs, p, i);
}

/* ---- the values of the description ---------------------------------------------------------- */

struct cell *machine_wqe(struct machine *m, unsigned s)
{
	return m->queue[m->l.d->steps[s].queue] + (size_t)m->l.step[s].at * CHAIN_WQEBB;
}

static void set_operand(struct machine *m, enum chain_field field, uint64_t v)
{
	unsigned size;
	int at = chain_field_at(m->l.d->steps[m->s].verb, field, 0, &size);

	for (unsigned i = 0; at >= 0 && i < size; i++)
		one_value(&machine_wqe(m, m->s)[at + i], (uint8_t)(v >> 8 * (size - 1 - i)));
}

static void set_lengths(struct machine *m)
{
	const struct chain_step *st = &m->l.d->steps[m->s];
	struct cell *len = machine_wqe(m, m->s) + chain_verb_info(st->verb)->sge_at + WQE_SGE_LEN;

	for (unsigned i = 0; i < m->l.step[m->s].nsge; i++, len += WQE_DS)
		for (unsigned k = 0; k < LEN_BYTES; k++)
			one_value(&len[k], (uint8_t)(st->local[i].len >> 8 * (LEN_BYTES - 1 - k)));
}

static void forget_writers(struct cell *c, size_t n)
{
	for (; n--; c++)
		for (unsigned o = 0; o < ORIGINS; o++)
			c->by[o] = NOBODY;
}

/* The RECV takes no more than arguments and payload */
static uint32_t longest_request(const struct machine *m)
{
	uint32_t most = m->l.d->payload.max;

	for (unsigned a = 0; a < m->l.d->nargs; a++)
		most += m->l.d->args[a].len;
	return most;
}

static void set_count(struct machine *m)
{
	const uint32_t most = longest_request(m);

	for (unsigned k = 0; k < LEN_BYTES; k++) {
		const uint32_t shifted = most >> 8 * (LEN_BYTES - 1 - k);

		for (unsigned v = 0; v < 256 && v <= shifted; v++)
			set_add(m->of_length[k].values, v);
		m->of_length[k].from = 1u << CLIENT;
	}
}

static int make_cells(struct machine *m)
{
	const struct layout *l = &m->l;

	for (unsigned q = 0; q < l->d->nqueues; q++) {
		size_t n = (size_t)l->wqebbs[q] * CHAIN_WQEBB;

		m->queue[q] = calloc(n, sizeof(*m->queue[q]));
		if (!m->queue[q])
			return -ENOMEM;
		for (size_t i = 0; i < n; i++)
			any_value(&m->queue[q][i], PROGRAM);
		forget_writers(m->queue[q], n);
	}
	m->scratch = calloc(l->scratch_size + 1, sizeof(*m->scratch));
	if (!m->scratch)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->scratch_size; i++)
		one_value(&m->scratch[i], 0);
	forget_writers(m->scratch, l->scratch_size);
	for (unsigned w = 0; w < l->d->nwords; w++)
		for (unsigned i = 0; l->d->words[w].init && i < l->d->words[w].size; i++)
			one_value(&m->scratch[l->word_at[w] + i], l->d->words[w].init[i]);
	for (m->s = 0; m->s < l->d->nsteps; m->s++) {
		const struct chain_step *st = &l->d->steps[m->s];

		set_lengths(m);
		one_value(&machine_wqe(m, m->s)[WQE_OPMOD], chain_verb_info(st->verb)->opmod);
		one_value(&machine_wqe(m, m->s)[WQE_DSCOUNT], l->step[m->s].ds);
		one_value(&machine_wqe(m, m->s)[WQE_OPCODE],
			st->flags & CHAIN_DORMANT ? WQE_OP_NOP : chain_verb_info(st->verb)->opcode);
		set_operand(m, CHAIN_F_SWAP, st->swap);
		set_operand(m, CHAIN_F_COMPARE, st->compare);
		set_operand(m, CHAIN_F_SWAP_MASK, st->swap_mask);
		set_operand(m, CHAIN_F_COMPARE_MASK, st->compare_mask);
		set_operand(m, CHAIN_F_ADD, st->add);
		set_operand(m, CHAIN_F_BOUNDARY, st->boundary);
	}
	any_value(&m->of_region, REGION);
	any_value(&m->of_client, CLIENT);
	set_count(m);
	return 0;
}

/* ---- what a step does to them ----------------------------------------------------------- */

static bool is_opcode(const struct chain_place *p)
{
	return p->kind == CHAIN_AT_FIELD && p->field == CHAIN_F_OPCODE;
}

/* A length that is replaced: on both sides the bytes are anywhere from there on */
static void stretch(struct machine *m, const struct chain_verb_info *v, struct reach *p)
{
	const struct cell *len = machine_wqe(m, m->s) + v->sge_at + WQE_SGE_LEN;

	for (unsigned i = 0; i < m->l.step[m->s].nsge; i++, len += WQE_DS) {
		p->moved |= cells_written(len, LEN_BYTES) != NULL;
		p->picked |= cells_of_client(len, LEN_BYTES);
	}
}

/* @n bytes of a place at @from on have come together, as far as anybody knows */
static bool is_whole(struct machine *m, const struct reach *p, unsigned from, unsigned n)
{
	for (; is_ours(m, &p->r) && n > 1; n--)
		if (cells(m, &p->r)[from++].apart)
			return false;
	return true;
}

/* Its @n bytes are stored without those around them */
static void part(struct machine *m, const struct layout_range *r, unsigned n)
{
	struct cell *c = cells(m, r);

	c[n - 1].apart = true;
	if (r->offset)
		c[-1].apart = true;
}

/* A READ may bring bytes that are next to each other to several places that are next to each other, in
 * reverse order too */
static void part_pieces(struct machine *m, const struct reach *remote)
{
	const struct chain_step *st = &m->l.d->steps[m->s];
	struct layout_range at[CHAIN_MAX_SGE];
	unsigned from[CHAIN_MAX_SGE + 1] = {0}, n = m->l.step[m->s].nsge;

	for (unsigned i = 0; i < n; i++) {
		at[i] = layout_place(&m->l, &st->local[i], st->local[i].len);
		from[i + 1] = from[i] + st->local[i].len;
	}
	for (unsigned i = 0; i < n; i++) {
		struct cell *c = is_ours(m, &at[i]) ? cells(m, &at[i]) : NULL;
		bool first = true, last = true;

		for (unsigned k = 1; c && k < at[i].len; k++)
			c[k - 1].apart |= !is_whole(m, remote, from[i] + k - 1, 2);
		for (unsigned j = 0; c && j < n; j++) {
			unsigned low = from[i < j ? i : j], high = from[(i < j ? j : i) + 1];

			if (at[j].sym != at[i].sym || at[j].index != at[i].index ||
				!is_whole(m, remote, low, high - low))
				continue;
			first &= at[j].offset + at[j].len != at[i].offset;
			last &= at[i].offset + at[i].len != at[j].offset;
		}
		if (c && last)
			c[at[i].len - 1].apart = true;
		if (c && first && at[i].offset)
			c[-1].apart = true;
	}
}

static bool is_region(const struct machine *m, const struct layout_range *r)
{
	return r->sym == CHAIN_SYM_REGION && !is_ours(m, r);
}

/* Bytes from @at on, at most @n, among which none of a span begins or ends */
static unsigned to_edge(const struct chain_span *s, uint64_t at, unsigned n)
{
	if (s->from > at && s->from - at < n)
		n = (unsigned)(s->from - at);
	if (s->to > at && s->to - at < n)
		n = (unsigned)(s->to - at);
	return n;
}

/* How many bytes of a region from byte @i on, at most @n, are as that one is. All bytes of what is published
 * are a client's, wherever in a bucket */
static unsigned alike(const struct chain_stored *s, const struct reach *p, unsigned i, unsigned n)
{
	const uint64_t at = p->r.offset + i;

	if (p->moved)
		return n;
	n = to_edge(&s->any, at, n);
	n = to_edge(&s->theirs, at, n);
	return to_edge(&s->located, at, n);
}

/* @n bytes, which may be many: of those that are alike the first and the last are looked at. What is stored
 * meanwhile in the region that they come from, if it is the same, the next run finds */
static void copy_between(struct machine *m, const struct reach *from, unsigned i, const struct reach *to,
	unsigned k, unsigned n)
{
	const struct chain_stored stored = m->stored[from->r.index];

	for (unsigned same; n; n -= same, i += same, k += same) {
		struct cell c = load(m, from, i);

		same = alike(&stored, from, i, n);
		store(m, to, k, &c);
		store(m, to, k + same - 1, &c);
	}
}

/*
 * A NIC writes the first packet of a long copy while it reads the next one, and two regions may be the same
 * file: then it may read what it has just written, and each byte of the source gets anywhere in the
 * destination, which is @n places.
 */
static void spread(struct machine *m, const struct reach *to, unsigned n)
{
	bool theirs = false;

	for (unsigned k = 0; k < 2 * n; k++) {
		const struct reach *p = &to[k % n];
		struct chain_span all = {p->r.offset, p->r.offset + p->r.len}, *stored;

		if (!is_region(m, &p->r))
			continue;
		if (p->moved)
			all = (struct chain_span){0, UINT64_MAX};
		stored = &m->stored[p->r.index].theirs;
		theirs |= stored->from < all.to && all.from < stored->to;
		if (theirs)
			chain_span_add(stored, &all);
	}
}

static void copy(struct machine *m)
{
	const struct chain_step *st = &m->l.d->steps[m->s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	struct reach remote = reach(m, &st->remote, layout_step_bytes(&m->l, m->s), WQE_RADDR);
	struct reach locals[CHAIN_MAX_SGE];
	unsigned at = 0;

	if (st->verb == CHAIN_READ)
		part_pieces(m, &remote);
	stretch(m, v, &remote);
	for (unsigned i = 0; i < m->l.step[m->s].nsge; i++) {
		struct reach local =
			reach(m, &st->local[i], st->local[i].len, v->sge_at + i * WQE_DS + WQE_SGE_ADDR);
		bool lanes = st->flags & CHAIN_LANES && is_opcode(&st->local[i]);

		stretch(m, v, &local);
		locals[i] = local;
		/* what the client gets is read by nothing here, and may be long */
		if (remote.r.sym == CHAIN_SYM_SLOT)
			continue;
		remote.bucket = st->verb == CHAIN_READ && st->local[i].in_bucket;
		remote.bucket_at = at;
		if (is_region(m, &local.r) && is_region(m, &remote.r)) {
			if (st->verb == CHAIN_READ)
				copy_between(m, &remote, at, &local, 0, local.r.len);
			else
				copy_between(m, &local, 0, &remote, at, local.r.len);
			at += local.r.len;
			continue;
		}
		for (unsigned k = 0; k < local.r.len; k++, at++) {
			struct cell c = st->verb == CHAIN_READ ? load(m, &remote, at) : load(m, &local, k);

			if (lanes) /* taken on trust, but for who decides them */
				cells(m, &local.r)[k].influence |=
					is_decided(m) || cells_of_client(&c, 1) ? DECIDED : 0;
			else if (st->verb == CHAIN_READ)
				store(m, &local, k, &c);
			else
				store(m, &remote, at, &c);
			if (st->verb != CHAIN_READ && is_ours(m, &remote.r))
				cells(m, &remote.r)[at].apart |= c.apart;
		}
		if (st->verb != CHAIN_READ && is_ours(m, &remote.r))
			part(m,
				&(struct layout_range){.sym = remote.r.sym,
					.index = remote.r.index,
					.offset = remote.r.offset + at - local.r.len,
					.len = local.r.len},
				local.r.len);
	}
	if (layout_step_bytes(&m->l, m->s) <= CHAIN_PACKET)
		return;
	if (st->verb == CHAIN_READ)
		spread(m, locals, m->l.step[m->s].nsge);
	else
		spread(m, &remote, 1);
}

/* Which bytes can come of byte @k of two operands: of a maximum, that of either. Of a sum there is a carry */
static void calc_sets(enum chain_verb verb, uint64_t to[SET], const uint64_t x[SET], const uint64_t y[SET])
{
	uint8_t of[256];
	unsigned n;

	if (verb == CHAIN_CALC_MAX) {
		set_join(to, x);
		set_join(to, y);
		return;
	}
	if (verb == CHAIN_CALC_ADD || (set_is_full(x) && set_is_full(y))) {
		memset(to, 0xff, SET * sizeof(*to));
		return;
	}
	n = set_list(y, of);
	for (unsigned i = 0; i < 256; i++)
		for (unsigned k = 0; k < n && set_has(x, i); k++) {
			if (verb == CHAIN_CALC_AND)
				set_add(to, i & of[k]);
			else if (verb == CHAIN_CALC_OR)
				set_add(to, i | of[k]);
			else
				set_add(to, i ^ of[k]);
		}
}

/* Byte @k of operand @n, of all */
static struct cell calc_operand(struct machine *m, unsigned n, unsigned k)
{
	const struct chain_step *st = &m->l.d->steps[m->s];
	unsigned i = 0, at = n * CHAIN_CALC_BYTES + k;
	struct reach local;

	for (; at >= st->local[i].len; i++)
		at -= st->local[i].len;
	local = reach(m, &st->local[i], st->local[i].len, WQE_RDMA_SGE + i * WQE_DS + WQE_SGE_ADDR);
	return load(m, &local, at);
}

/*
 * The number, and behind it 8 bytes of which only is known that they are no secret of a region: noise, an id,
 * or what was there. Which operand is the largest, a client has decided that has a part in one; the bits of
 * the lower bytes make the carries of the higher ones.
 */
static void calc(struct machine *m)
{
	const struct chain_step *st = &m->l.d->steps[m->s];
	struct reach to = reach(m, &st->remote, CHAIN_CALC_BYTES, WQE_RADDR);
	unsigned operands = 0;
	bool decided = false;

	for (unsigned i = 0; i < m->l.step[m->s].nsge; i++)
		operands += st->local[i].len / CHAIN_CALC_BYTES;
	for (unsigned n = 0; n < operands; n++)
		for (unsigned k = 0; k < CHAIN_CALC_BYTES; k++) {
			struct cell c = calc_operand(m, n, k);

			decided |= cells_of_client(&c, 1);
		}
	for (unsigned k = 0; k < CHAIN_CALC_BYTES; k++) {
		struct cell result = calc_operand(m, 0, k);

		for (unsigned n = 1; n < operands; n++) {
			struct cell next = calc_operand(m, n, k), both = result;

			both.from |= next.from;
			both.influence |= next.influence;
			memset(both.values, 0, sizeof(both.values));
			memset(both.ours, 0, sizeof(both.ours));
			memset(both.live, 0, sizeof(both.live));
			calc_sets(st->verb, both.values, result.values, next.values);
			calc_sets(st->verb, both.ours, result.ours, next.ours);
			calc_sets(st->verb, both.live, result.live, next.live);
			result = both;
		}
		if (k >= OPERAND_BYTES) {
			memset(result.values, 0xff, sizeof(result.values));
			all_ours(&result);
		}
		result.influence |= decided ? DECIDED : 0;
		result.unvouched = result.from >> REGION & 1;
		store(m, &to, k, &result);
		part(m,
			&(struct layout_range){
				.sym = to.r.sym, .index = to.r.index, .offset = to.r.offset + k, .len = 1},
			1);
	}
}

/* Byte @k, from the lowest, of the operand at @field; NULL if the verb has none */
static const struct cell *operand(struct machine *m, enum chain_field field, unsigned k)
{
	unsigned size;
	int at = chain_field_at(m->l.d->steps[m->s].verb, field, 0, &size);

	return at < 0 ? NULL : &machine_wqe(m, m->s)[at + (int)(OPERAND_BYTES - 1 - k)];
}

static bool is_operand_of_client(struct machine *m)
{
	const struct chain_verb_info *v = chain_verb_info(m->l.d->steps[m->s].verb);

	return cells_of_client(machine_wqe(m, m->s) + WQE_ATOMIC, v->atomic_bytes);
}

/* True if there is one value, which is then in @v */
static bool is_const(const struct cell *c, uint8_t *v)
{
	unsigned first = 0;

	while (first < 255 && !cell_can_be(c, (uint8_t)first))
		first++;
	if (!cell_is_only(c, (uint8_t)first))
		return false;
	*v = (uint8_t)first;
	return true;
}

/* A masked CAS that always runs, and looks at one byte only, replaces the value that it looks for */
static void replace_sought(struct machine *m, const struct layout_range *word)
{
	const struct chain_step *st = &m->l.d->steps[m->s];
	unsigned sought = OPERAND_BYTES;
	uint8_t v;
	struct cell *c;

	if (st->verb != CHAIN_MASKED_CAS || st->flags & CHAIN_DORMANT ||
		machine_wqe(m, m->s)[WQE_OPCODE].written)
		return;
	for (unsigned k = 0; k < OPERAND_BYTES; k++) {
		if (cell_is_only(operand(m, CHAIN_F_COMPARE_MASK, k), 0))
			continue;
		if (sought != OPERAND_BYTES || !cell_is_only(operand(m, CHAIN_F_COMPARE_MASK, k), 0xff))
			return;
		sought = k;
	}
	if (sought == OPERAND_BYTES || !cell_is_only(operand(m, CHAIN_F_SWAP_MASK, sought), 0xff) ||
		!is_const(operand(m, CHAIN_F_COMPARE, sought), &v))
		return;
	c = cells(m, word) + sought;
	for (unsigned i = 0; i < 256 / 64; i++) {
		if (c->settled != st->queue + 1)
			c->values[i] |= c->failed[i];
		c->failed[i] |= c->values[i];
	}
	c->settled = (uint8_t)(st->queue + 1);
	c->values[v / 64] &= ~(1ull << v % 64);
}

/* Those of @swap where @mask has bits, with those of @old elsewhere */
static void mix_sets(uint64_t to[SET], const uint64_t old[SET], const uint64_t swap[SET], uint8_t mask)
{
	uint64_t kept[SET] = {0}, brought[SET] = {0};
	uint8_t of[256];
	unsigned n;

	memset(to, 0, SET * sizeof(*to));
	for (unsigned v = 0; v < 256; v++) {
		if (set_has(old, v))
			set_add(kept, v & ~(unsigned)mask);
		if (set_has(swap, v))
			set_add(brought, v & mask);
	}
	n = set_list(kept, of);
	for (unsigned v = 0; v < 256; v++)
		for (unsigned k = 0; k < n && set_has(brought, v); k++)
			set_add(to, of[k] | v);
}

/* @swap where @mask has bits, and @old elsewhere; nobody computes masks */
static struct cell mix(const struct cell *old, const struct cell *swap, const struct cell *mask)
{
	struct cell mixed = *swap;
	uint8_t bits;

	mixed.from |= mask->from;
	mixed.influence |= mask->influence;
	if (!is_const(mask, &bits)) {
		memset(mixed.values, 0xff, sizeof(mixed.values));
		all_ours(&mixed);
	} else if (bits != 0xff) {
		mix_sets(mixed.values, old->values, swap->values, bits);
		mix_sets(mixed.ours, old->ours, swap->ours, bits);
		mix_sets(mixed.live, old->live, swap->live, bits);
	}
	return mixed;
}

/* An atomic changes byte @k of the word, and others or not */
static void part_byte(struct machine *m, const struct reach *word, unsigned k)
{
	struct layout_range byte = word->r;

	byte.offset += k;
	part(m, &byte, 1);
}

/* What is in the word afterwards shows what was compared */
static void compare_and_swap(struct machine *m, const struct reach *word)
{
	bool decided = is_decided(m) || cells_of_client(cells(m, &word->r), OPERAND_BYTES) ||
		       is_operand_of_client(m);

	replace_sought(m, &word->r);
	for (unsigned k = 0; k < OPERAND_BYTES; k++) {
		const struct cell *swap = operand(m, CHAIN_F_SWAP, k),
				  *given = operand(m, CHAIN_F_SWAP_MASK, k);
		struct cell all = {0}, old = load(m, word, k), now;
		const struct cell *mask = given ? given : &all;

		one_value(&all, 0xff);
		now = mix(&old, swap, mask);
		if (!cell_is_only(mask, 0)) {
			now.unvouched |= !cell_is_only(mask, 0xff) && (old.from | now.from) >> REGION & 1;
			store(m, word, k, &now);
			part_byte(m, word, k);
		}
		cells(m, &word->r)[k].influence |= decided ? DECIDED : 0;
	}
}

/* All sums of @x and @y, and of the carries that are possible: @in, and in @out those of the next byte. No
 * carry leaves a bit that is set in @boundary */
static void add_sets(uint64_t sum[SET], const uint64_t x[SET], const uint64_t y[SET], uint8_t boundary,
	const bool in[2], bool out[2])
{
	uint8_t more[256];
	unsigned n = set_list(y, more);

	out[0] = out[1] = false;
	for (unsigned i = 0; i < 256; i++)
		for (unsigned k = 0; k < n && set_has(x, i); k++)
			for (unsigned c = 0; c < 2; c++) {
				unsigned j = more[k];
				unsigned carries = (i & ~boundary & 0xff) + (j & ~boundary & 0xff) + c;

				if (!in[c])
					continue;
				set_add(sum, (carries ^ ((i ^ j) & boundary)) & 0xff);
				out[carries >> 8] = true;
			}
}

/* A carry is a decision, as that of a CAS is: the bytes that it came from do not count as a source. A
 * boundary stops it */
static void add(struct machine *m, const struct reach *word)
{
	bool carry[2] = {true, false}, decided = is_decided(m);

	for (unsigned k = 0; k < OPERAND_BYTES; k++) {
		const struct cell *more = operand(m, CHAIN_F_ADD, k);
		const struct cell *boundary = operand(m, CHAIN_F_BOUNDARY, k);
		struct cell now = load(m, word, k), sum = {.from = more->from | now.from,
							    .influence = more->influence | now.influence};
		uint8_t stops = 0;

		if (boundary)
			sum.from |= boundary->from;
		decided |= cells_of_client(&sum, 1);
		sum.influence |= decided ? DECIDED : 0;
		if (carry[1] || !cell_is_only(more, 0)) {
			sum.unvouched = sum.from >> REGION & 1;
			part_byte(m, word, k);
		}
		if (boundary && !is_const(boundary, &stops)) {
			memset(sum.values, 0xff, sizeof(sum.values));
			all_ours(&sum);
			carry[0] = carry[1] = true;
		} else if (m->shared && (carry[1] || !cell_is_only(more, 0))) {
			/* how often, with a loop nobody knows */
			memset(sum.values, 0xff, sizeof(sum.values));
			all_ours(&sum);
			carry[0] = true;
			carry[1] = !(stops & 0x80);
		} else {
			const bool in[2] = {carry[0], carry[1]};

			add_sets(sum.ours, now.ours, more->ours, stops, in, carry);
			add_sets(sum.live, now.live, more->live, stops, in, carry);
			add_sets(sum.values, now.values, more->values, stops, in, carry);
		}
		store(m, word, k, &sum);
	}
}

static void change_in_region(struct machine *m, const struct reach *word, unsigned k, bool theirs)
{
	struct cell now = m->of_region;

	now.influence |= theirs ? DECIDED : 0;
	store(m, word, k, &now);
}

/* What is compared decides about all that is swapped */
static void swap_in_region(struct machine *m, const struct reach *word)
{
	bool theirs = false;

	for (unsigned k = 0; k < OPERAND_BYTES; k++) {
		const struct cell *mask = operand(m, CHAIN_F_COMPARE_MASK, k);

		theirs |= is_theirs(m, word, k) && !(mask && cell_is_only(mask, 0));
	}
	for (unsigned k = 0; k < OPERAND_BYTES; k++) {
		const struct cell *mask = operand(m, CHAIN_F_SWAP_MASK, k);

		if (!mask || !cell_is_only(mask, 0))
			change_in_region(m, word, k, theirs);
	}
}

/* And what a carry comes from, about the bytes above */
static void add_to_region(struct machine *m, const struct reach *word)
{
	bool carry = false, theirs = false;

	for (unsigned k = 0; k < OPERAND_BYTES; k++) {
		const struct cell *more = operand(m, CHAIN_F_ADD, k);
		const struct cell *boundary = operand(m, CHAIN_F_BOUNDARY, k);
		uint8_t stops = 0;

		carry |= !cell_is_only(more, 0);
		if (carry) {
			change_in_region(m, word, k, theirs);
			theirs |= is_theirs(m, word, k);
		}
		if (boundary && is_const(boundary, &stops) && stops & 0x80)
			carry = theirs = false;
	}
}

/* A locator, for which trace.h vouches: a client only chooses where, when, and how long a message is */
static void publish(struct machine *m, const struct reach *word)
{
	const struct chain_step *st = &m->l.d->steps[m->s];
	struct chain_stored *stored = &m->stored[word->r.index];
	const uint32_t most = st->extent ? longest_request(m) : chain_located_bytes(st->swap);

	for (unsigned k = 0; k < CHAIN_BUCKET; k++)
		make_stored(&stored->located, word, k);
	stored->longest = most > stored->longest ? most : stored->longest;
}

static void atomic(struct machine *m)
{
	const struct chain_step *st = &m->l.d->steps[m->s];
	const struct chain_verb_info *v = chain_verb_info(st->verb);
	struct reach word = reach(m, &st->remote, OPERAND_BYTES, WQE_RADDR), old;

	if (m->l.step[m->s].nsge) {
		old = reach(m, &st->local[0], OPERAND_BYTES, v->sge_at + WQE_SGE_ADDR);
		for (unsigned k = 0; k < OPERAND_BYTES; k++) {
			struct cell c = load(m, &word, k);

			store(m, &old, m->l.d->swapped_old ? OPERAND_BYTES - 1 - k : k, &c);
			if (is_ours(m, &old.r))
				part_byte(m, &old, k);
		}
	}
	if (is_ours(m, &word.r)) {
		if (st->verb == CHAIN_CAS || st->verb == CHAIN_MASKED_CAS)
			compare_and_swap(m, &word);
		else
			add(m, &word);
		return;
	}
	if (st->publishes) {
		publish(m, &word);
		return;
	}
	word.picked |= is_operand_of_client(m);
	if (st->verb == CHAIN_CAS || st->verb == CHAIN_MASKED_CAS)
		swap_in_region(m, &word);
	else
		add_to_region(m, &word);
}

static void take_request(struct machine *m)
{
	m->s = LAYOUT_NONE;
	for (unsigned a = 0; a < m->l.d->nargs; a++) {
		struct reach to = {.r = layout_place(&m->l, &m->l.d->args[a], m->l.d->args[a].len)};

		for (unsigned k = 0; k < to.r.len; k++)
			store(m, &to, k, &m->of_client);
	}
	if (m->l.d->payload.max)
		m->stored[m->l.d->payload.region] =
			(struct chain_stored){.any = {0, UINT64_MAX}, .theirs = {0, UINT64_MAX}};
}

static void meet_lengths(struct machine *m, const struct chain_verb_info *v)
{
	struct cell *len = machine_wqe(m, m->s) + v->sge_at + WQE_SGE_LEN;

	for (unsigned i = 0; i < m->l.step[m->s].nsge; i++, len += WQE_DS)
		for (unsigned k = 0; k < LEN_BYTES; k++)
			set_join(len[k].met, len[k].live);
}

void machine_run(struct machine *m)
{
	struct chain_stored was[CHAIN_MAX_WINDOWS];

	memcpy(was, m->stored, sizeof(was));
	take_request(m);
	for (m->s = 0; m->s < m->l.d->nsteps; m->s++) {
		const struct chain_verb_info *v = chain_verb_info(m->l.d->steps[m->s].verb);

		if (v->class == CHAIN_CLASS_SYNC && is_decided(m))
			m->decided = true;
		meet_lengths(m, v);
		if (v->atomic_bytes)
			atomic(m);
		else if (v->calc)
			calc(m);
		else if (v->remote)
			copy(m);
	}
	if (++m->runs > RUNS)
		for (unsigned w = 0; w < CHAIN_MAX_WINDOWS; w++)
			chain_stored_widen(&m->stored[w], &was[w]);
}

/* ---- life -------------------------------------------------------------------------------- */

static void free_cells(struct machine *m)
{
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		free(m->queue[q]);
	free(m->scratch);
}

void machine_free(struct machine *m)
{
	free_cells(m);
	free(m->shared);
}

int machine_begin(struct machine *m, const struct chain_desc *d)
{
	struct machine old = *m;

	*m = (struct machine){
		.l = {.err = old.l.err}, .shared = old.shared, .nshared = old.nshared, .runs = old.runs};
	memcpy(m->stored, old.stored, sizeof(m->stored));
	free_cells(&old);
	for (uint32_t i = 0; i < m->nshared; i++)
		for (unsigned o = 0; o < ORIGINS; o++)
			if (m->shared[i].by[o] != NOBODY)
				m->shared[i].by[o] = BEYOND;
	if (layout_make(&m->l, d))
		return CHAIN_REFUSED;
	return make_cells(m);
}

int machine_share(struct machine *m, const struct chain_desc *d)
{
	uint32_t n = (uint32_t)d->regions[d->shared].size;

	m->shared = calloc(n + 1, sizeof(*m->shared));
	if (!m->shared)
		return -ENOMEM;
	m->nshared = n;
	for (uint32_t i = 0; i < m->nshared; i++)
		one_value(&m->shared[i], d->shared_init[i]);
	forget_writers(m->shared, m->nshared);
	return 0;
}

static void hash(uint64_t *h, const struct cell *c, size_t n)
{
	for (; n--; c++) {
		for (unsigned i = 0; i < SET; i++)
			*h = (*h ^ c->values[i] ^ c->ours[i] << 1 ^ c->live[i] << 2 ^ c->met[i] << 3) *
				     0x9e3779b97f4a7c15 +
			     (*h >> 29);
		*h = (*h ^ c->from ^ c->influence << 8 ^ c->unvouched << 16 ^ c->apart << 17 ^
			     (uint64_t)c->longest << 18 ^ (uint64_t)c->digits << 50 ^
			     (uint64_t)c->in_bucket << 58) *
			     0x9e3779b97f4a7c15 +
		     (*h >> 29);
	}
}

uint64_t machine_outside(const struct machine *m)
{
	uint64_t h = m->decided;

	hash(&h, m->shared, m->nshared);
	for (unsigned w = 0; w < CHAIN_MAX_WINDOWS; w++) {
		const struct chain_span *any = &m->stored[w].any, *theirs = &m->stored[w].theirs,
					*located = &m->stored[w].located;

		h = (h ^ any->from ^ any->to << 1) * 0x9e3779b97f4a7c15 + (h >> 29);
		h = (h ^ theirs->from ^ theirs->to << 1) * 0x9e3779b97f4a7c15 + (h >> 29);
		h = (h ^ located->from ^ located->to << 1) * 0x9e3779b97f4a7c15 + (h >> 29);
		h = (h ^ m->stored[w].longest) * 0x9e3779b97f4a7c15 + (h >> 29);
	}
	return h;
}

static uint64_t hash_all(const struct machine *m)
{
	uint64_t h = machine_outside(m);

	for (unsigned q = 0; q < m->l.d->nqueues; q++)
		hash(&h, m->queue[q], (size_t)m->l.wqebbs[q] * CHAIN_WQEBB);
	hash(&h, m->scratch, m->l.scratch_size);
	return h;
}

/* An iteration begins as the chain does, or as the one before it has ended */
static void each_iteration(struct machine *m, void (*f)(struct cell *c))
{
	for (unsigned q = 0; q < m->l.d->nqueues; q++)
		for (size_t i = 0; i < (size_t)m->l.wqebbs[q] * CHAIN_WQEBB; i++)
			f(&m->queue[q][i]);
	for (uint32_t i = 0; i < m->l.scratch_size; i++)
		f(&m->scratch[i]);
}

static void begins(struct cell *c)
{
	memcpy(c->head, c->live, sizeof(c->head));
}

static void ends(struct cell *c)
{
	set_join(c->live, c->head);
}

bool machine_iterate(struct machine *m)
{
	uint64_t before = 0, now = 1;

	for (unsigned i = 0; i < ROUNDS && before != now; i++) {
		before = now;
		each_iteration(m, begins);
		machine_run(m);
		each_iteration(m, ends);
		now = hash_all(m);
	}
	return before == now;
}
