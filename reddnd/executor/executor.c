/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/executor/executor.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "reddnd/executor/internal.h"
#include "util/array.h"
#include "util/cleanup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- where the bytes of a request go, and what in the regions they alone decide to read ---- */

enum { RECEIVE_FOUR = 4 };

struct receive_move {
	uint8_t *to;
	uint32_t at; /* in the request */
};

/** A place in a region whose address ends with bytes from elsewhere, and is constant before them. */
struct receive_place {
	const uint8_t *mem; /* of the region */
	uint64_t first;     /* its offset if these bytes are zero */
	uint64_t last;      /* the last offset that is right */
	uint64_t mask;      /* of these bytes; 0: there is no such place */
	uint32_t at;        /* where they come from: of the eight that end with them */
};

/** A READ of a place that the request has, and the place of a message that has its address from what is read.
 */
struct receive_read {
	struct receive_place place, then;
};

struct receive {
	struct receive_move *moves; /* first four bytes each, then one each */
	unsigned nfours, nmoves;
	struct receive_read reads[EXECUTOR_READS];
	unsigned nreads;
};

/** NULL: it is not in the region. @from: the request, or what is read. */
static inline const uint8_t *receive_locate(const struct receive_place *p, const uint8_t *from)
{
	const uint64_t offset = p->first + (wqe_get64(from + p->at) & p->mask);

	return offset <= p->last ? p->mem + offset : NULL;
}

static inline void receive_scatter(const struct receive *r, const uint8_t *request)
{
	const struct receive_move *m = r->moves, *fours = m + r->nfours, *end = m + r->nmoves;

	for (; m < fours; m++)
		memcpy(m->to, request + m->at, RECEIVE_FOUR);
	for (; m < end; m++)
		*m->to = request[m->at];
}

enum { ADDRESS = sizeof(uint64_t), NOWHERE = UINT32_MAX };

/* @len bytes, from @at of the request to @to. No place of a request overlaps another. First all calls with
 * @fours, then all without. By fours that may overlap, or else by ones */
static void receive_add(struct receive *r, uint8_t *to, uint32_t at, uint32_t len, bool fours)
{
	const uint32_t bytes = fours ? RECEIVE_FOUR : 1;

	if ((len >= RECEIVE_FOUR) != fours)
		return;
	for (uint32_t i = 0; i < len; i += bytes) {
		uint32_t off = i + bytes <= len ? i : len - bytes;

		r->moves[r->nmoves++] = (struct receive_move){to + off, at + off};
	}
	r->nfours = fours ? r->nmoves : r->nfours;
}

/* What fills in an address: the request, or a READ of few bytes */
struct origin {
	const struct receive *request;
	const struct op *read;
};

static bool is_in(const uint8_t *p, const uint8_t *from, uint32_t len)
{
	return p >= from && p < from + len;
}

/* Which byte of that comes to @to */
static uint32_t source(const struct origin *o, const uint8_t *to)
{
	const struct receive *r = o->request;
	uint32_t at = 0;

	for (unsigned i = 0; r && i < r->nmoves; i++)
		if (is_in(to, r->moves[i].to, i < r->nfours ? RECEIVE_FOUR : 1))
			return r->moves[i].at + (uint32_t)(to - r->moves[i].to);
	for (unsigned i = 0; o->read && i < o->read->nsegments; at += o->read->segment[i++].len)
		if (is_in(to, o->read->segment[i].mem, o->read->segment[i].len))
			return at + (uint32_t)(to - o->read->segment[i].mem);
	return NOWHERE;
}

/* The place of @t; .mask 0: the end of its address is not from @o, or something else changes some of it, or
 * there are no eight bytes that end with it */
static struct receive_place find_place(
	const struct origin *o, const struct trace_step *t, const struct op_state *s)
{
	const struct receive_place none = {.mask = 0};
	struct receive_place place = {.mem = t->mem, .last = t->last};
	uint8_t address[ADDRESS];
	uint32_t end = 0;

	memcpy(address, t->address, sizeof(address));
	for (unsigned i = 0; i < ADDRESS; i++) {
		uint32_t at = source(o, t->address + i);

		if (at == NOWHERE ? place.mask || op_is_written(s, t->address + i, 1)
				  : place.mask && at != end)
			return none;
		if (at == NOWHERE)
			continue;
		end = at + 1;
		place.mask = place.mask << 8 | 0xff;
		address[i] = 0;
	}
	if (end < ADDRESS)
		return none;
	place.at = end - ADDRESS;
	place.first = wqe_get64(address) - t->first;
	return place;
}

/* Finds the READs of a trace that was just made; the WQEs are as in the image */
static void receive_find_reads(struct receive *r, const struct trace *t, const struct op_state *s)
{
	const struct origin request = {.request = r};

	r->nreads = 0;
	for (unsigned i = 0; i < t->nsteps && r->nreads < EXECUTOR_READS; i++) {
		const struct trace_step *step = &t->step[i];
		const struct origin read = {.read = step->op};
		struct receive_read *to = &r->reads[r->nreads];

		if (!trace_reads_found(step))
			continue;
		*to = (struct receive_read){.place = find_place(&request, step, s)};
		if (!to->place.mask)
			continue;
		r->nreads++;
		for (unsigned k = i + 1; k < t->nsteps && !to->then.mask; k++)
			if (trace_sends_found(&t->step[k]))
				to->then = find_place(&read, &t->step[k], s);
	}
}

/* ---- executor ---- */

/* Bytes that are restored at once: a segment of a WQE */
enum { UNIT = WQE_DS };

struct number {
	uint8_t *to;
	uint32_t addend;
};

struct executor {
	const struct program *p;
	struct schedule c;
	uint8_t *fresh; /* the image, armed, of which each request has a copy: c.s.own */
	uint64_t own_size;
	uint64_t progress; /* offset in its own memory, of a program with a loop */
	uint64_t scratch, cqe;
	uint32_t *units; /* places in the code of what is not as in the image when a request begins */
	unsigned nunits;
	struct number *numbers; /* where the number of the request is */
	unsigned nnumbers;
	struct receive receive;
	struct op_segment *segments;
	struct op **order;
};

/* ---- making ----------------------------------------------------------------------------------- */

/* Room for @size bytes in its own memory */
static uint64_t reserve(struct executor *x, uint64_t size)
{
	uint64_t at = x->own_size;

	x->own_size = (at + size + CHAIN_WQEBB - 1) / CHAIN_WQEBB * CHAIN_WQEBB;
	return at;
}

struct places {
	uint64_t queue[SCHEDULE_QUEUES], lanes, loop_scratch, shared;
};

static const uint64_t no_extents[2];

static void lay_out(struct executor *x, struct places *at)
{
	const struct chain_image *img = x->p->image;

	for (unsigned q = 0; q < img->nqueues; q++) {
		x->c.queue[q].wqebbs = img->queue[q].wqebbs;
		at->queue[q] = reserve(x, (uint64_t)img->queue[q].wqebbs * CHAIN_WQEBB);
	}
	x->c.s.code = x->own_size;
	x->scratch = reserve(x, img->scratch_size);
	if (img->payload.max)
		x->cqe = reserve(x, CQE_BYTES);
	if (!x->p->loop)
		return;
	x->c.queue[EXECUTOR_LOOP].wqebbs = x->p->loop_ring;
	at->queue[EXECUTOR_LOOP] = reserve(x, (uint64_t)x->p->loop_ring * CHAIN_WQEBB);
	at->lanes = reserve(x, x->p->loop_info.lanes);
	at->loop_scratch = reserve(x, x->p->loop_info.scratch + 8u);
	at->shared = reserve(x, x->p->shared_bytes);
	x->progress = at->lanes + x->p->loop_info.progress;
}

static void fill_env(struct executor *x, const struct places *at, struct chain_env *env)
{
	const struct chain_image *img = x->p->image;
	const uint64_t own = memory_address(MEMORY_OWN);
	const uint32_t key = memory_key(MEMORY_OWN);

	env->slots = 2; /* of which only the first is used */
	env->recv_cqn = SCHEDULE_RECVS;
	for (unsigned q = 0; q < img->nqueues; q++) {
		env->queue[q].qpn = env->queue[q].cqn = q;
		env->queue[q].iova = own + at->queue[q];
		env->queue[q].lkey = env->queue[q].rkey = key;
		env->queue[q].ring = x->fresh + at->queue[q];
		env->queue[q].ring_wqebbs = 2 * img->queue[q].wqebbs;
	}
	env->scratch.iova = own + x->scratch;
	env->scratch.lkey = env->scratch.rkey = key;
	env->scratch.mem = x->fresh + x->scratch;
	env->recv_cq.iova = own + x->cqe;
	env->recv_cq.rkey = key;
	env->extents.at = no_extents;
	env->slot_addr = memory_address(MEMORY_SLOT);
	env->slot_rkey = memory_key(MEMORY_SLOT);
	for (unsigned i = 0; i < img->nregions; i++) {
		env->region[i].iova = memory_address(MEMORY_REGIONS + i);
		env->region[i].lkey = env->region[i].rkey = memory_key(MEMORY_REGIONS + i);
	}
	if (!x->p->loop)
		return;
	env->region[img->nregions - 1].iova = own + at->shared;
	env->region[img->nregions - 1].lkey = env->region[img->nregions - 1].rkey = key;
}

static void write_loop(struct executor *x, const struct places *at, const struct chain_env *chain)
{
	const struct {
		uint64_t at;
		unsigned symbol;
	} own[] = {{at->queue[EXECUTOR_LOOP], RING_SELF}, {at->lanes, RING_LANES},
		{at->loop_scratch, RING_SCRATCH}};
	const struct program *p = x->p;
	struct ring_values v = {0};

	memcpy(x->fresh + at->shared, p->shared_init, p->shared_bytes);
	for (unsigned i = 0; i < p->image->nregions; i++) {
		v.of[RING_REGION + i].iova = chain->region[i].iova;
		v.of[RING_REGION + i].lkey = chain->region[i].lkey;
		v.of[RING_REGION + i].rkey = chain->region[i].rkey;
	}
	for (unsigned i = 0; i < COUNT(own); i++) {
		v.of[own[i].symbol].iova = memory_address(MEMORY_OWN) + own[i].at;
		v.of[own[i].symbol].lkey = v.of[own[i].symbol].rkey = memory_key(MEMORY_OWN);
		v.of[own[i].symbol].mem = x->fresh + own[i].at;
	}
	v.of[RING_SELF].qpn = v.of[RING_SELF].cqn = EXECUTOR_LOOP;
	v.of[CHAIN_LOOP_CALLER].qpn = v.of[CHAIN_LOOP_CALLER].cqn = p->image->nqueues - 1;
	v.of[RING_CREDITS].cqn = SCHEDULE_CREDITS;
	chain_loop_write(p->loop_image, p->loop, &p->loop_info, &v);
	x->c.loop_start = p->loop_info.start;
}

static int write_image(struct executor *x, const struct places *at)
{
	CLEANUP(cleanup_free) struct chain_env *env = calloc(1, sizeof(*env));

	if (!env)
		return -ENOMEM;
	fill_env(x, at, env);
	chain_arm(x->p->writer, env, 0, 1);
	if (x->p->loop)
		write_loop(x, at, env);
	return 0;
}

static void fill_memory(struct executor *x, const struct executor_parts *parts)
{
	struct memory *m = &x->c.s.memory;

	m->space[MEMORY_OWN] = (struct memory_space){x->c.s.own, x->own_size, true};
	m->space[MEMORY_SLOT] = (struct memory_space){NULL, parts->slot_size, true};
	for (unsigned i = 0; i < x->p->nregions; i++) {
		const struct executor_region *r = &parts->region[i];

		m->space[MEMORY_REGIONS + i] = (struct memory_space){r->mem, r->size, r->writable};
	}
}

/* WQEBBs up to where the next WQE begins */
static uint32_t wqebbs_at(const struct chain_queue *q, uint32_t at)
{
	uint32_t end = at + 1;

	while (end < q->wqebbs && end - at < WQE_MAX_BBS && !q->starts[end])
		end++;
	return end - at;
}

/* A WQE of the image at each place where one begins */
static void make_ops(struct executor *x, const struct places *at)
{
	const struct chain_image *img = x->p->image;

	for (unsigned q = 0; q < img->nqueues; q++)
		for (uint32_t w = 0; w < img->queue[q].wqebbs; w++) {
			uint64_t wqebb = at->queue[q] / WQE_BB + w;

			if (!img->queue[q].starts[w])
				continue;
			x->c.s.ops[wqebb] = (struct op){
				.wqe = x->c.s.own + wqebb * WQE_BB,
				.queue = (uint8_t)q,
				.wqebb = w,
				.room = (uint8_t)(wqebbs_at(&img->queue[q], w) * OP_SEGMENTS),
				.segment = x->segments + wqebb * OP_SEGMENTS,
			};
		}
}

static int make_queues(struct executor *x, const struct places *at)
{
	struct op_state *s = &x->c.s;
	const uint64_t wqebbs = s->code / WQE_BB;

	s->own = aligned_alloc(CHAIN_WQEBB, x->own_size);
	s->marks = calloc(s->code, 1);
	s->ops = calloc(wqebbs, sizeof(*s->ops));
	x->segments = calloc(wqebbs * OP_SEGMENTS, sizeof(*x->segments));
	x->order = calloc(wqebbs, sizeof(*x->order));
	x->units = calloc(s->code / UNIT, sizeof(*x->units));
	x->numbers = calloc(x->p->image->index_reloc - x->p->image->again_reloc, sizeof(*x->numbers));
	if (!s->own || !s->marks || !s->ops || !x->segments || !x->order || !x->units || !x->numbers)
		return -ENOMEM;
	for (unsigned q = 0; q < SCHEDULE_QUEUES; q++) {
		if (!x->c.queue[q].wqebbs)
			continue;
		x->c.queue[q].ring = s->own + at->queue[q];
		x->c.queue[q].ops = q == EXECUTOR_LOOP ? NULL : s->ops + at->queue[q] / WQE_BB;
		x->c.used[x->c.nused++] = (uint8_t)q;
	}
	make_ops(x, at);
	return 0;
}

static void learn_given(struct executor *x, const uint8_t *to, uint32_t len)
{
	uint64_t at = (uint64_t)(to - x->c.s.own);

	op_learn(&x->c.s, at, len);
	for (uint32_t i = 0; i < len; i++)
		x->c.s.marks[at + i] |= OP_GIVEN;
}

static uint8_t *place_of(const struct executor *x, const struct chain_recv_sge *r)
{
	return (r->sym == CHAIN_SYM_QUEUE ? x->c.queue[r->index].ring : x->c.s.own + x->scratch) + r->offset;
}

static uint8_t *locator_of(const struct executor *x)
{
	const struct chain_publish *p = &x->p->image->publish;

	return x->c.queue[p->queue].ring + p->offset + WQE_ATOMIC;
}

static void add_moves(struct executor *x, bool fours)
{
	const struct chain_image *img = x->p->image;

	for (uint32_t i = 0, at = 0; i < img->nrecv && at < img->arg_len; at += img->recv[i++].len)
		receive_add(&x->receive, place_of(x, &img->recv[i]), at, img->recv[i].len, fours);
}

static void learn_request(struct executor *x)
{
	const struct chain_image *img = x->p->image;

	add_moves(x, true);
	add_moves(x, false);
	for (unsigned i = 0; i < img->nrecv; i++)
		if (img->recv[i].sym == CHAIN_SYM_QUEUE)
			learn_given(x, place_of(x, &img->recv[i]), img->recv[i].len);
	for (unsigned i = img->again_reloc; i < img->index_reloc; i++) {
		const struct chain_reloc *r = &img->relocs[i];
		uint8_t *to = x->c.queue[r->where].ring + r->offset;

		if (r->kind != CHAIN_REL_SEQ32)
			continue;
		x->numbers[x->nnumbers++] = (struct number){to, (uint32_t)r->addend};
		learn_given(x, to, sizeof(uint32_t));
	}
	if (img->publish.extent)
		learn_given(x, locator_of(x), sizeof(uint64_t));
}

/* What patches a work request comes before it in the description */
static void learn_steps(struct executor *x)
{
	const struct chain_desc *d = x->p->desc;
	struct op *of[CHAIN_MAX_STEPS] = {0};

	for (unsigned i = 0; i < x->c.s.code / WQE_BB; i++) {
		struct op *op = &x->c.s.ops[i];
		unsigned s = op->wqe ? program_step_at(x->p, op->queue, op->wqebb) : d->nsteps;

		if (s < d->nsteps)
			of[s] = op;
	}
	for (unsigned s = 0; s < d->nsteps; s++)
		if (of[s])
			op_prepare(&x->c.s, of[s],
				of[s]->wqe[WQE_OPCODE] == WQE_OP_NOP
					? chain_verb_info(d->steps[s].verb)->opcode
					: of[s]->wqe[WQE_OPCODE]);
	for (unsigned i = 0; i < x->c.s.code / WQE_BB; i++)
		x->c.s.ops[i].control = 0;
}

static void note_units(struct executor *x)
{
	const struct op_state *s = &x->c.s;

	x->nunits = 0;
	for (uint32_t at = 0; at < s->code; at += UNIT) {
		bool changes = false;

		for (unsigned b = 0; b < UNIT; b++)
			changes |= (s->marks[at + b] & (OP_WRITTEN | OP_GIVEN)) == OP_WRITTEN;
		if (changes)
			x->units[x->nunits++] = at;
	}
}

/* Something was learned: before the next request, whose memory is as in the image then */
static void use_learned(struct executor *x)
{
	memcpy(x->c.s.own, x->fresh, x->own_size);
	do {
		x->c.s.learned = false;
		schedule_trace(&x->c);
	} while (x->c.s.learned);
	receive_find_reads(&x->receive, &x->c.trace, &x->c.s);
	note_units(x);
}

unsigned executor_max_messages(const struct program *p)
{
	const struct chain_desc *d = p->desc;
	unsigned n = 0;

	for (unsigned s = 0; s < d->nsteps; s++)
		n += d->steps[s].queue == 0 && d->steps[s].local[0].kind != CHAIN_AT_NONE;
	return n;
}

DEFINE_CLEANUP(struct executor *, executor_free)

int executor_new(struct executor **out, const struct program *p, const struct executor_parts *parts)
{
	CLEANUP(executor_freep) struct executor *x = calloc(1, sizeof(*x));
	struct places at = {0};
	int r;

	if (!x)
		return -ENOMEM;
	x->p = p;
	x->c.start_queue = chain_start_queue(p->image);
	x->c.start = chain_start_index(p->image);
	x->c.s.swapped_old = p->desc->swapped_old;
	x->c.s.data_size = parts->data_size;
	x->c.s.max_messages = executor_max_messages(p);
	lay_out(x, &at);
	x->receive.moves = calloc(p->image->arg_len + 1, sizeof(*x->receive.moves));
	x->c.s.messages = calloc(x->c.s.max_messages, sizeof(*x->c.s.messages));
	x->fresh = aligned_alloc(CHAIN_WQEBB, x->own_size);
	r = x->receive.moves && x->c.s.messages && x->fresh ? make_queues(x, &at) : -ENOMEM;
	if (r == 0) {
		memset(x->fresh, 0, x->own_size);
		fill_memory(x, parts);
		r = write_image(x, &at);
	}
	if (r < 0)
		return r;
	memcpy(x->c.s.own, x->fresh, x->own_size);
	learn_request(x);
	learn_steps(x);
	r = schedule_find(&x->c, x->order);
	if (r < 0)
		return r;
	use_learned(x);
	schedule_shrink(&x->c);
	*out = steal_ptr(&x);
	return 0;
}

void executor_free(struct executor *x)
{
	if (!x)
		return;
	free(x->receive.moves);
	free(x->c.s.messages);
	free(x->c.s.own);
	free(x->c.s.marks);
	free(x->c.s.ops);
	free(x->segments);
	free(x->order);
	trace_deinit(&x->c.trace);
	free(x->units);
	free(x->numbers);
	free(x->fresh);
	free(x);
}

uint64_t executor_bytes(const struct program *p)
{
	uint64_t bytes = 0;

	for (unsigned s = 0; s < p->desc->nsteps; s++)
		if (p->desc->steps[s].queue == 0)
			bytes += chain_step_most(&p->desc->steps[s]);
	return bytes;
}

/* ---- requests --------------------------------------------------------------------------------- */

/* As for the first request, but for what each request brings. A loop may have changed all of its ring */
static void restore(struct executor *x)
{
	uint8_t *own = x->c.s.own;

	for (const uint32_t *at = x->units, *end = at + x->nunits; at < end; at++)
		memcpy(own + *at, x->fresh + *at, UNIT);
	for (uint64_t at = x->c.s.code; at < x->own_size; at += CHAIN_WQEBB)
		memcpy(own + at, x->fresh + at, CHAIN_WQEBB);
}

void executor_begin(struct executor *x, uint64_t number, const uint8_t *request, uint8_t *data)
{
	struct op_state *s = &x->c.s;

	if (s->learned)
		use_learned(x);
	else
		restore(x);
	for (const struct number *n = x->numbers, *end = n + x->nnumbers; n < end; n++)
		wqe_put32(n->to, (uint32_t)number + n->addend);
	schedule_begin(&x->c);
	s->data = data;
	s->data_used = 0;
	s->nmessages = 0;
	receive_scatter(&x->receive, request);
}

void executor_payload(struct executor *x, uint64_t extent, uint32_t bytes)
{
	assert(x->p->image->payload.max && bytes <= x->p->image->arg_len + x->p->image->payload.max);
	wqe_put64(locator_of(x), chain_locator(extent, 0));
	wqe_put32(x->c.s.own + x->cqe + CQE_LENGTH, bytes);
}

struct chain_outcome executor_outcome(const struct executor *x)
{
	const struct chain_image *img = x->p->image;

	return chain_outcome(img, x->c.queue[img->publish.queue].ring, x->c.s.own + x->scratch);
}

unsigned executor_reads(const struct executor *x, const uint8_t *request, const uint8_t *at[EXECUTOR_READS])
{
	const struct receive_read *r = x->receive.reads, *end = r + x->receive.nreads;
	unsigned n = 0;

	for (; r < end; r++) {
		at[n] = receive_locate(&r->place, request);
		n += at[n] != NULL;
	}
	return n;
}

unsigned executor_reads_then(
	const struct executor *x, const uint8_t *request, const uint8_t *at[EXECUTOR_READS])
{
	const struct receive_read *r = x->receive.reads, *end = r + x->receive.nreads;
	unsigned n = 0;

	for (; r < end; r++) {
		const uint8_t *from = r->then.mask ? receive_locate(&r->place, request) : NULL;

		at[n] = from ? receive_locate(&r->then, from) : NULL;
		n += at[n] != NULL;
	}
	return n;
}

enum executor_result executor_run(struct executor *x, uint64_t wqes)
{
	return schedule_run(&x->c, wqes);
}

uint64_t executor_wqes(const struct executor *x)
{
	return x->c.wqes;
}

uint64_t executor_iterations(const struct executor *x)
{
	uint64_t n = 0;

	if (x->p->loop)
		memcpy(&n, x->c.s.own + x->progress, sizeof(n));
	return le64toh(n);
}

const uint8_t *executor_replies(const struct executor *x)
{
	return x->c.queue[0].ring;
}

const struct executor_message *executor_messages(const struct executor *x, unsigned *n)
{
	*n = x->c.s.nmessages;
	return x->c.s.messages;
}

const struct executor_fault *executor_fault(const struct executor *x)
{
	return &x->c.fault;
}
