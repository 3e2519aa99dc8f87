/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ring/recycle-template.h"

#include "mlx5/wqe.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What has an address of its own; queues of the chain come first. In a template, part p is at (p + 1) <<
 * PART_SHIFT, in the order in which blocks of sessions have them. */
enum { RECYCLER = CHAIN_MAX_QUEUES, SCRATCH, LANES, PARTS, PART_SHIFT = 32 };

/* Of a template: numbers of queues, by part, and the key of everything. One key, as in a session: with two,
 * the proof would miss conflicts between accesses by one and the other. */
enum { QPN = 0x100, CQN = 0x200, KEY = 0x300 };

enum field { FIELD_SEGMENT, FIELD_REMOTE, FIELD_WQE_QPN, FIELD_QPN, FIELD_CQN, FIELDS };

struct place {
	uint32_t at; /* in the ring */
	uint8_t field, part;
};

/* Places of one field and part: writing them takes no decision for each */
struct run {
	const struct place *first, *end;
};

/* Bytes of the lanes that the recycler puts back: what is there when everything is armed */
struct back {
	uint32_t at, len; /* in the lanes */
	uint32_t from;    /* in the part */
	uint8_t part;
};

struct chain_template {
	unsigned slots;
	struct chain_recycle made;
	uint8_t *ring, *lanes;
	struct place *places;
	size_t nplaces, places_room;
	struct run runs[FIELDS * PARTS];
	unsigned nruns;
	struct back *backs;
	size_t nbacks, backs_room;
	bool nomem;
};

struct part {
	uint64_t iova;
	uint32_t lkey, rkey, qpn, cqn;
	const uint8_t *mem;
};

/* ---- the parts of a session ---- */

static void find_parts(const struct chain_env *env, struct part parts[PARTS])
{
	for (unsigned q = 0; q < CHAIN_MAX_QUEUES; q++)
		parts[q] = (struct part){.iova = env->queue[q].iova,
			.lkey = env->queue[q].lkey,
			.rkey = env->queue[q].rkey,
			.qpn = env->queue[q].qpn,
			.cqn = env->queue[q].cqn,
			.mem = env->queue[q].ring};
	parts[RECYCLER] = (struct part){.iova = env->recycler.iova,
		.lkey = env->recycler.lkey,
		.rkey = env->recycler.lkey,
		.qpn = env->recycler.qpn,
		.cqn = env->recycler.cqn,
		.mem = env->recycler.ring};
	parts[SCRATCH] = (struct part){.iova = env->scratch.iova,
		.lkey = env->scratch.lkey,
		.rkey = env->scratch.rkey,
		.mem = env->scratch.mem};
	parts[LANES] = (struct part){.iova = env->lanes.iova,
		.lkey = env->lanes.lkey,
		.rkey = env->lanes.rkey,
		.mem = env->lanes.mem};
}

static uint64_t base(unsigned part)
{
	return (uint64_t)(part + 1) << PART_SHIFT;
}

static unsigned part_of(uint64_t addr)
{
	unsigned part = (unsigned)(addr >> PART_SHIFT) - 1;

	assert(part < PARTS);
	return part;
}

/* ---- what is to be filled in ---- */

static void *more(struct chain_template *t, void *array, size_t n, size_t *room, size_t size)
{
	size_t want = *room ? 2 * *room : 1024;
	void *a;

	if (n < *room)
		return array;
	a = realloc(array, want * size);
	if (!a) {
		t->nomem = true;
		return array;
	}
	*room = want;
	return a;
}

/* The address in the template becomes the offset in the part */
static void note(struct chain_template *t, uint32_t at, enum field field, unsigned part)
{
	t->places = more(t, t->places, t->nplaces, &t->places_room, sizeof(*t->places));
	if (!t->nomem)
		t->places[t->nplaces++] =
			(struct place){.at = at, .field = (uint8_t)field, .part = (uint8_t)part};
}

static uint8_t *address_at(const struct chain_template *t, uint32_t at, enum field field)
{
	return t->ring + at + (field == FIELD_SEGMENT ? WQE_SGE_ADDR : 0);
}

static void note_address(struct chain_template *t, uint32_t at, enum field field)
{
	uint8_t *p = address_at(t, at, field);
	uint64_t addr = wqe_get64(p);

	note(t, at, field, part_of(addr));
	wqe_put64(p, addr - base(part_of(addr)));
}

static void note_object(struct chain_template *t, uint32_t at)
{
	uint32_t object = wqe_get32(t->ring + at);

	if (object >= CQN)
		note(t, at, FIELD_CQN, object - CQN);
	else
		note(t, at, FIELD_QPN, object - QPN);
}

static void note_wqe(struct chain_template *t, uint32_t at)
{
	const uint8_t *w = t->ring + at;
	const struct chain_verb_info *v = chain_verb_info(chain_verb_of(w[WQE_OPCODE], w[WQE_OPMOD]));
	unsigned end = w[WQE_DSCOUNT] * WQE_DS;

	note(t, at + WQE_QPN_DS, FIELD_WQE_QPN, RECYCLER);
	if (v->class == CHAIN_CLASS_SYNC && v->opcode != WQE_OP_NOP)
		note_object(t, at + WQE_SYNC_OBJECT);
	if (v->remote)
		note_address(t, at + WQE_RADDR, FIELD_REMOTE);
	for (unsigned s = v->sge_at; v->data && s < end; s += WQE_DS)
		note_address(t, at + s, FIELD_SEGMENT);
}

/* ---- what is put back ---- */

static void note_back(struct chain_template *t, uint32_t at, uint32_t len, unsigned part, uint32_t from)
{
	t->backs = more(t, t->backs, t->nbacks, &t->backs_room, sizeof(*t->backs));
	if (!t->nomem)
		t->backs[t->nbacks++] =
			(struct back){.at = at, .len = len, .from = from, .part = (uint8_t)part};
}

/* A READ of lanes, whose addresses are offsets by now; @p: its first place */
static void note_backs(struct chain_template *t, const struct place *p, const uint8_t *moves, uint8_t *done)
{
	const struct place *end = t->places + t->nplaces;
	uint32_t at = (uint32_t)wqe_get64(t->ring + p->at);

	while (++p < end && p->field == FIELD_SEGMENT) {
		uint32_t len = wqe_get32(t->ring + p->at + WQE_SGE_LEN);

		if (p->part != LANES && !moves[at] && !done[at])
			note_back(t, at, len, p->part,
				(uint32_t)wqe_get64(address_at(t, p->at, FIELD_SEGMENT)));
		for (uint32_t i = 0; i < len; i++)
			done[at + i] |= p->part != LANES;
		at += len;
	}
}

static uint8_t opcode_of(const struct chain_template *t, const struct place *remote)
{
	return t->ring[remote->at - WQE_RADDR + WQE_OPCODE];
}

/* What the WRITE with the remote address @p gathers */
static uint32_t gathered(const struct chain_template *t, const struct place *p)
{
	const struct place *end = t->places + t->nplaces;
	uint32_t len = 0;

	while (++p < end && p->field == FIELD_SEGMENT)
		len += wqe_get32(t->ring + p->at + WQE_SGE_LEN);
	return len;
}

/* By byte of the lanes: an atomic or a WRITE changes it */
static void find_moving(const struct chain_template *t, uint8_t *moves)
{
	for (const struct place *p = t->places; p < t->places + t->nplaces; p++)
		if (p->field == FIELD_REMOTE && p->part == LANES && opcode_of(t, p) != WQE_OP_READ)
			memset(moves + wqe_get64(t->ring + p->at), 1,
				opcode_of(t, p) == WQE_OP_WRITE ? gathered(t, p) : 8);
}

static int find_backs(struct chain_template *t)
{
	uint8_t *moves = calloc(t->made.lanes + 1, 1), *done = calloc(t->made.lanes + 1, 1);

	t->nomem |= !moves || !done;
	if (!t->nomem)
		find_moving(t, moves);
	for (const struct place *p = t->places; p < t->places + t->nplaces && !t->nomem; p++)
		if (p->field == FIELD_REMOTE && p->part == LANES && opcode_of(t, p) == WQE_OP_READ)
			note_backs(t, p, moves, done);
	free(moves);
	free(done);
	return t->nomem ? -ENOMEM : 0;
}

/* ---- runs ---- */

static int compare_places(const void *a, const void *b)
{
	const struct place *p = a, *q = b;

	if (p->field != q->field)
		return p->field < q->field ? -1 : 1;
	if (p->part != q->part)
		return p->part < q->part ? -1 : 1;
	return p->at < q->at ? -1 : p->at > q->at;
}

static void find_runs(struct chain_template *t)
{
	const struct place *p = t->places, *end = t->places + t->nplaces;

	qsort(t->places, t->nplaces, sizeof(*t->places), compare_places);
	while (p < end) {
		struct run *r = &t->runs[t->nruns++];

		r->first = p;
		while (p < end && p->field == r->first->field && p->part == r->first->part)
			p++;
		r->end = p;
	}
}

/* ---- making one ---- */

struct memory {
	uint8_t *bytes[PARTS], *rq;
};

static void free_memory(struct memory *m)
{
	for (unsigned i = 0; i < PARTS; i++)
		free(m->bytes[i]);
	free(m->rq);
}

static int allocate(struct memory *m, const struct chain_image *img, const struct chain_env *sizes,
	const struct chain_recycle *made)
{
	bool ok;

	for (unsigned q = 0; q < img->nqueues; q++)
		m->bytes[q] = calloc(sizes->queue[q].ring_wqebbs, CHAIN_WQEBB);
	m->bytes[RECYCLER] = calloc(made->ring_wqebbs, CHAIN_WQEBB);
	m->bytes[SCRATCH] = calloc(sizes->slots, (size_t)img->scratch_size + 1);
	m->bytes[LANES] = calloc(1, made->lanes);
	m->rq = calloc(sizes->slots, chain_rq_stride(img));
	ok = m->bytes[RECYCLER] && m->bytes[SCRATCH] && m->bytes[LANES] && m->rq;
	for (unsigned q = 0; q < img->nqueues; q++)
		ok &= m->bytes[q] != NULL;
	return ok ? 0 : -ENOMEM;
}

static void place_parts(struct chain_env *env, const struct memory *m, const struct chain_image *img,
	const struct chain_env *sizes, const struct chain_recycle *made)
{
	*env = (struct chain_env){
		.slots = sizes->slots, .slot_count = 1, .rq = m->rq, .rq_stride = chain_rq_stride(img)};
	for (unsigned q = 0; q < img->nqueues; q++) {
		env->queue[q].qpn = QPN + q;
		env->queue[q].cqn = CQN + q;
		env->queue[q].iova = base(q);
		env->queue[q].lkey = env->queue[q].rkey = KEY;
		env->queue[q].ring = m->bytes[q];
		env->queue[q].ring_wqebbs = sizes->queue[q].ring_wqebbs;
	}
	env->recycler.qpn = QPN + RECYCLER;
	env->recycler.cqn = CQN + RECYCLER;
	env->recycler.iova = base(RECYCLER);
	env->recycler.lkey = KEY;
	env->recycler.ring = m->bytes[RECYCLER];
	env->recycler.ring_wqebbs = made->ring_wqebbs;
	env->scratch.iova = base(SCRATCH);
	env->scratch.lkey = env->scratch.rkey = KEY;
	env->scratch.mem = m->bytes[SCRATCH];
	env->lanes.iova = base(LANES);
	env->lanes.lkey = env->lanes.rkey = KEY;
	env->lanes.mem = m->bytes[LANES];
	env->lanes.size = made->lanes;
}

static int fill(struct chain_template *t, const struct chain_image *img, const struct chain_env *sizes,
	struct memory *m)
{
	struct chain_env env;
	int r = allocate(m, img, sizes, &t->made);

	if (r < 0)
		return r;
	place_parts(&env, m, img, sizes, &t->made);
	r = chain_recycle(img, &env, &t->made);
	if (r < 0)
		return r;
	t->ring = m->bytes[RECYCLER];
	t->lanes = m->bytes[LANES];
	m->bytes[RECYCLER] = m->bytes[LANES] = NULL;
	for (uint32_t at = 0; at < t->made.ring_wqebbs * CHAIN_WQEBB && !t->nomem;) {
		uint32_t wqebbs = (t->ring[at + WQE_DSCOUNT] + 3u) / 4;

		note_wqe(t, at);
		at += wqebbs * CHAIN_WQEBB;
	}
	r = t->nomem ? -ENOMEM : find_backs(t);
	if (r == 0)
		find_runs(t);
	return r;
}

int chain_template_new(struct chain_template **out, const struct chain_image *img,
	const struct chain_env *sizes, const struct chain_recycle *made)
{
	struct chain_template *t = calloc(1, sizeof(*t));
	struct memory m = {0};
	int r;

	if (!t)
		return -ENOMEM;
	t->slots = sizes->slots;
	t->made = *made;
	r = fill(t, img, sizes, &m);
	free_memory(&m);
	if (r < 0)
		chain_template_free(t);
	else
		*out = t;
	return r;
}

void chain_template_free(struct chain_template *t)
{
	if (!t)
		return;
	free(t->ring);
	free(t->lanes);
	free(t->places);
	free(t->backs);
	free(t);
}

/* ---- writing one ---- */

static void write_addresses(
	const struct run *r, uint64_t iova, uint32_t key, uint8_t *ring, unsigned address_at, unsigned key_at)
{
	for (const struct place *p = r->first; p < r->end; p++) {
		uint8_t *f = ring + p->at;

		wqe_put64(f + address_at, iova + wqe_get64(f + address_at));
		wqe_put32(f + key_at, key);
	}
}

static void write_wqe_qpns(const struct run *r, uint32_t qpn, uint8_t *ring)
{
	for (const struct place *p = r->first; p < r->end; p++)
		wqe_put32(ring + p->at, qpn << 8 | ring[p->at + 3]);
}

static void write_objects(const struct run *r, uint32_t number, uint8_t *ring)
{
	for (const struct place *p = r->first; p < r->end; p++)
		wqe_put32(ring + p->at, number);
}

static void write_run(const struct run *r, const struct part *part, uint8_t *ring)
{
	switch ((enum field)r->first->field) {
	case FIELD_SEGMENT:
		write_addresses(r, part->iova, part->lkey, ring, WQE_SGE_ADDR, WQE_SGE_LKEY);
		break;
	case FIELD_REMOTE:
		write_addresses(r, part->iova, part->rkey, ring, 0, WQE_RKEY - WQE_RADDR);
		break;
	case FIELD_WQE_QPN:
		write_wqe_qpns(r, part->qpn, ring);
		break;
	case FIELD_QPN:
		write_objects(r, part->qpn, ring);
		break;
	case FIELD_CQN:
		write_objects(r, part->cqn, ring);
		break;
	case FIELDS:
		break;
	}
}

void chain_template_write(const struct chain_template *t, const struct chain_image *img,
	const struct chain_env *env, struct chain_recycle *made)
{
	struct part parts[PARTS];

	assert(env->slots == t->slots && env->first == 0 && env->slots % env->slot_count == 0 &&
		env->recycler.ring_wqebbs == t->made.ring_wqebbs && env->lanes.size >= t->made.lanes);
	chain_recycle_arm(img, env);
	find_parts(env, parts);
	memcpy(env->recycler.ring, t->ring, (size_t)t->made.ring_wqebbs * CHAIN_WQEBB);
	memcpy(env->lanes.mem, t->lanes, t->made.lanes);
	for (const struct run *r = t->runs; r < t->runs + t->nruns; r++)
		write_run(r, &parts[r->first->part], env->recycler.ring);
	for (size_t i = 0; i < t->nbacks; i++) {
		const struct back *b = &t->backs[i];

		memcpy(env->lanes.mem + b->at, parts[b->part].mem + b->from, b->len);
	}
	*made = t->made;
}
