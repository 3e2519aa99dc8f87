/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/executor/internal.h"

#include "mlx5/cqe.h"

#include <errno.h>
#include <stdlib.h>

enum {
	WORD = sizeof(uint64_t),
	/* Of a work request, on average; one that has more is executed by other means */
	STEPS = 2,
	PARTS = 8,
	/* Words that a small READ touches, at most: one more than it fills, if it is not aligned */
	WORDS = OP_WHOLE / sizeof(uint64_t) + 1,
};

/* ---- what steps do ---------------------------------------------------------------------------- */

static inline const struct trace_step *next(struct op_state *s, const struct trace_step *t)
{
	return t[1].run(s, t + 1);
}

static const struct trace_step *fails(struct op_state *s, const struct trace_step *t, uint8_t syndrome)
{
	s->syndrome = syndrome;
	return t;
}

static const struct trace_step *step_end(struct op_state *s, const struct trace_step *t)
{
	(void)s;
	return t;
}

/* Any work request, by op.c. Like what else is not inlined here, it is rare: steps need no stack without it
 */
static __attribute__((noinline)) const struct trace_step *step_any(
	struct op_state *s, const struct trace_step *t)
{
	if (!op_execute(s, t->op))
		return t;
	return s->learned ? t + 1 : next(s, t);
}

/* .then, if .control is that of the WQE; nothing, if it is a NOP */
static const struct trace_step *step_if(struct op_state *s, const struct trace_step *t)
{
	uint64_t control;

	memcpy(&control, t->wqe, sizeof(control));
	if (control == t->control)
		return t->then(s, t);
	return t->wqe[WQE_OPCODE] == WQE_OP_NOP ? next(s, t) : step_any(s, t);
}

/* One byte of own memory: an opcode, mostly */
static const struct trace_step *step_byte(struct op_state *s, const struct trace_step *t)
{
	*t->to = *t->from;
	return next(s, t);
}

/* ---- words ------------------------------------------------------------------------------------ */

static inline void put(const struct trace_part *p, uint64_t word)
{
	uint64_t *to = (uint64_t *)(void *)p->to;

	word = word << p->left | word >> (-p->left & 63);
	*to ^= (*to ^ word) & p->mask;
}

/* Up to .end from .part on, of the .nwords words at .from, in own memory. All of it is read before anything
 * is written */
static const struct trace_step *step_own_words(struct op_state *s, const struct trace_step *t)
{
	uint64_t words[WORDS];
	const struct trace_part *p = t->part;
	unsigned i = 0;

	do
		words[i] = memory_load(t->from + i * sizeof(*words));
	while (++i < t->nwords);
	do
		put(p, words[p->word]);
	while (++p < t->end);
	return next(s, t);
}

/* Of a region, in which nothing is written here */
static inline const struct trace_step *take_words(
	struct op_state *s, const struct trace_step *t, const uint8_t *from)
{
	for (const struct trace_part *p = t->part, *end = t->end; p < end; from += sizeof(uint64_t)) {
		const uint64_t word = memory_load(from);

		do
			put(p, word);
		while (!p++->last);
	}
	return next(s, t);
}

/* The words at .from in a region */
static const struct trace_step *step_words(struct op_state *s, const struct trace_step *t)
{
	return take_words(s, t, t->from);
}

/* The same at .address */
static const struct trace_step *step_found_words(struct op_state *s, const struct trace_step *t)
{
	const uint64_t at = wqe_get64(t->address) - t->first;
	const uint8_t *from;

	if (at > t->last)
		return fails(s, t, CQE_SYND_REMOTE_ACCESS);
	from = t->mem + at;
	return memory_is_aligned(from) ? take_words(s, t, from) : step_any(s, t);
}

/* .len bytes from .from to .to */
static const struct trace_step *step_copy(struct op_state *s, const struct trace_step *t)
{
	memory_copy(t->to, t->from, t->len);
	return next(s, t);
}

/* Compare-and-swap of .to; the old value goes to .mem. Nobody else is in own memory, so it need not be atomic
 */
static const struct trace_step *step_swap(struct op_state *s, const struct trace_step *t)
{
	uint64_t *to = (uint64_t *)(void *)t->to, old = *to;
	const uint64_t compare = wqe_get64(t->wqe + WQE_ATOMIC + 8);

	if (((old ^ compare) & t->compare_mask) == 0)
		*to = (old & ~t->swap_mask) | t->swap;
	memcpy(t->mem, &old, sizeof(old));
	return next(s, t);
}

/* ---- messages --------------------------------------------------------------------------------- */

static inline bool has_room(const struct op_state *s, uint32_t len)
{
	return len <= s->data_size - s->data_used && s->nmessages < s->max_messages;
}

static __attribute__((noinline)) const struct trace_step *copy_bytes(
	struct op_state *s, const struct trace_step *t, uint8_t *to, const uint8_t *from, uint32_t len)
{
	memory_copy(to, from, len);
	return next(s, t);
}

static inline const struct trace_step *send(
	struct op_state *s, const struct trace_step *t, const uint8_t *from, uint32_t len)
{
	struct executor_message *m = &s->messages[s->nmessages++];
	uint8_t *to = s->data + s->data_used;

	m->opcode = t->message.opcode;
	m->solicited = t->message.solicited;
	m->slot_at = t->message.slot_at;
	m->imm = wqe_get32(t->wqe + WQE_IMM);
	m->from = s->data_used;
	m->len = len;
	m->wqebb = t->message.wqebb;
	s->data_used += len;
	if (((uintptr_t)to | (uintptr_t)from | len) % sizeof(uint64_t))
		return copy_bytes(s, t, to, from, len);
	memory_copy_words(to, from, len);
	return next(s, t);
}

/* .message with the .len bytes at .from */
static const struct trace_step *step_send(struct op_state *s, const struct trace_step *t)
{
	return has_room(s, t->len) ? send(s, t, t->from, t->len) : fails(s, t, CQE_SYND_LOCAL_LENGTH);
}

/* The same with what the only data segment has, which is at .address and the field before it */
static const struct trace_step *step_found_send(struct op_state *s, const struct trace_step *t)
{
	const uint32_t len = wqe_get32(t->address - WQE_SGE_ADDR + WQE_SGE_LEN);
	const uint64_t at = wqe_get64(t->address) - t->first;

	if (len > t->room)
		return fails(s, t, CQE_SYND_REMOTE_ACCESS);
	if (!has_room(s, len))
		return fails(s, t, CQE_SYND_LOCAL_LENGTH);
	if (len == 0 || at > t->last || len > t->last - at)
		return fails(s, t, CQE_SYND_LOCAL_PROT);
	return send(s, t, t->mem + at, len);
}

/* ---- making them ------------------------------------------------------------------------------ */

int trace_init(struct trace *t, unsigned n)
{
	t->step_room = n * STEPS;
	t->step = calloc(t->step_room + 1, sizeof(*t->step));
	t->part_room = n * PARTS;
	t->part = calloc(t->part_room, sizeof(*t->part));
	return t->step && t->part ? 0 : -ENOMEM;
}

void trace_deinit(struct trace *t)
{
	free(t->step);
	free(t->part);
}

/* ---- places ----------------------------------------------------------------------------------- */

/* The place of @len bytes, or of any length if 0, that the WQE names at @address, if nothing changes in which
 * space it is */
static bool find(const struct op_state *s, struct trace_step *t, const uint8_t *key, const uint8_t *address,
	uint64_t len)
{
	const unsigned space = wqe_get32(key) - memory_key(0);
	const struct memory_space *in = &s->memory.space[space < MEMORY_SPACES ? space : 0];

	if (op_is_written(s, key, 4) || space >= MEMORY_SPACES || space == MEMORY_SLOT || len > in->size)
		return false;
	t->address = address;
	t->first = memory_address(space);
	t->last = in->size - len;
	t->mem = in->mem;
	return true;
}

static uint8_t left(unsigned from, unsigned to)
{
	const unsigned bytes = BYTE_ORDER == LITTLE_ENDIAN ? to - from : from - to;

	return (uint8_t)(bytes % WORD * 8);
}

/* Those of @len bytes to @to, which are behind @at bytes of the words that are read */
static bool add_parts(struct trace *all, struct trace_step *t, unsigned at, uint8_t *to, uint32_t len)
{
	while (len) {
		const unsigned from = at % WORD, off = (uintptr_t)to % WORD;
		unsigned n = WORD - (from > off ? from : off);
		struct trace_part *p = &all->part[all->nparts];
		uint8_t mask[WORD] = {0};

		if (all->nparts == all->part_room)
			return false;
		n = n < len ? n : len;
		memset(mask + off, 0xff, n);
		*p = (struct trace_part){.to = to - off,
			.left = left(from, off),
			.last = from + n == WORD,
			.word = (uint8_t)(at / WORD)};
		memcpy(&p->mask, mask, sizeof(p->mask));
		t->end = all->part + ++all->nparts;
		at += n;
		to += n;
		len -= n;
	}
	return true;
}

/* ---- work requests ---------------------------------------------------------------------------- */

/* A step for each byte, if it has only such, and none is written before it is read. Returns their number */
static unsigned make_bytes(const struct op_state *s, struct trace_step *t, unsigned room)
{
	const struct op *op = t->op;

	if (op->opcode != WQE_OP_READ || !op->settled || !op->remote || op->bytes != op->nsegments ||
		!memory_is_own(&s->memory, op->remote) || op_is_written(s, op->wqe, sizeof(t->control)) ||
		op->nsegments > room)
		return 0;
	for (unsigned i = 0; i < op->nsegments; i++)
		if (op->segment[i].mem - op->remote < (ptrdiff_t)op->bytes &&
			op->segment[i].mem >= op->remote)
			return 0;
	for (unsigned i = 0; i < op->nsegments; i++) {
		t[i] = *t;
		t[i].from = op->remote + i;
		t[i].to = op->segment[i].mem;
		t[i].run = step_byte;
	}
	return op->nsegments;
}

static trace_run *make_read(struct trace *all, const struct op_state *s, struct trace_step *t)
{
	const struct op *op = t->op;
	unsigned at = (uintptr_t)op->remote % WORD;

	if (!op->settled || !op->bytes)
		return step_any;
	if (!op->remote &&
		(op->queue == 0 || !find(s, t, op->wqe + WQE_RKEY, op->wqe + WQE_RADDR, op->bytes) ||
			memory_is_own(&s->memory, t->mem)))
		return step_any;
	if (op->remote)
		t->from = op->remote - at;
	t->part = all->part + all->nparts;
	t->nwords = (uint32_t)(at + op->bytes + WORD - 1) / WORD;
	for (unsigned i = 0; i < op->nsegments; at += op->segment[i++].len)
		if (!add_parts(all, t, at, op->segment[i].mem, op->segment[i].len))
			return step_any;
	all->part[all->nparts - 1].last = true;
	if (!op->remote)
		return step_found_words;
	return memory_is_own(&s->memory, op->remote) ? step_own_words : step_words;
}

static trace_run *make_write(struct trace_step *t)
{
	const struct op *op = t->op;

	if (!op->remote || !op->sized || op->nsegments != 1 || !op->segment[0].mem)
		return step_any;
	t->from = op->segment[0].mem;
	t->to = op->remote;
	t->len = op->segment[0].len;
	return step_copy;
}

static trace_run *make_swap(const struct op_state *s, struct trace_step *t)
{
	const struct op *op = t->op;
	const uint8_t *operand = op->wqe + WQE_ATOMIC;
	const bool masked = op->opcode == WQE_OP_MASKED_CAS;

	if (!op->settled || s->swapped_old || !memory_is_own(&s->memory, op->remote) ||
		op_is_written(s, operand, WORD) || (masked && op_is_written(s, operand + 2 * WORD, 2 * WORD)))
		return step_any;
	t->to = op->remote;
	t->mem = op->segment[0].mem;
	t->swap_mask = masked ? wqe_get64(operand + 2 * WORD) : UINT64_MAX;
	t->compare_mask = masked ? wqe_get64(operand + 3 * WORD) : UINT64_MAX;
	t->swap = wqe_get64(operand) & t->swap_mask;
	return step_swap;
}

/* How far the message may reach in the slot; false: its place there changes, or is wrong */
static bool find_slot(const struct op_state *s, struct trace_step *t, bool writes)
{
	const uint8_t *address = t->wqe + WQE_RADDR;
	const uint64_t at = wqe_get64(address) - memory_address(MEMORY_SLOT);

	t->room = UINT64_MAX;
	if (!writes)
		return true;
	if (op_is_written(s, address, 12) ||
		!memory_has(&s->memory, MEMORY_SLOT, wqe_get32(t->wqe + WQE_RKEY), wqe_get64(address), 0))
		return false;
	t->message.slot_at = (uint32_t)at;
	t->room = s->memory.space[MEMORY_SLOT].size - at;
	return true;
}

static trace_run *make_send(const struct op_state *s, struct trace_step *t)
{
	const struct op *op = t->op;
	const uint8_t *segment = op->wqe + op->at;

	if (op->nsegments != 1)
		return step_any;
	t->message = (struct executor_message){
		.opcode = op->opcode, .solicited = op->wqe[WQE_FLAGS] & WQE_SOLICITED, .wqebb = op->wqebb};
	if (!find_slot(s, t, op->opcode == WQE_OP_WRITE || op->opcode == WQE_OP_WRITE_IMM))
		return step_any;
	if (op->segment[0].mem && op->segment[0].len <= t->room) {
		t->from = op->segment[0].mem;
		t->len = op->segment[0].len;
		return step_send;
	}
	return find(s, t, segment + WQE_SGE_LKEY, segment + WQE_SGE_ADDR, 0) ? step_found_send : step_any;
}

static trace_run *choose(struct trace *all, const struct op_state *s, struct trace_step *t)
{
	if (t->op->overlaps)
		return step_any;
	switch (t->op->opcode) {
	case WQE_OP_READ:
		return make_read(all, s, t);
	case WQE_OP_CAS:
	case WQE_OP_MASKED_CAS:
		return make_swap(s, t);
	case WQE_OP_WRITE:
		if (t->op->wqe[WQE_OPMOD]) /* CALC */
			return step_any;
		return t->op->queue == 0 ? make_send(s, t) : make_write(t);
	case WQE_OP_WRITE_IMM:
	case WQE_OP_SEND:
	case WQE_OP_SEND_IMM:
		return t->op->queue == 0 ? make_send(s, t) : step_any;
	}
	return step_any;
}

/* Up to @room steps. A NOP becomes what its WQE may have later */
static unsigned make_steps(struct trace *all, struct op_state *s, struct trace_step *t, struct op *op,
	unsigned number, unsigned room)
{
	unsigned bytes;
	const uint8_t opcode = op->wqe[WQE_OPCODE] == WQE_OP_NOP ? op->opcode : op->wqe[WQE_OPCODE];
	uint8_t control[sizeof(t->control)];

	*t = (struct trace_step){.op = op, .number = number, .wqe = op->wqe};
	memcpy(control, op->wqe, sizeof(control));
	control[WQE_OPCODE] = opcode;
	memcpy(&t->control, control, sizeof(control));
	t->run = step_any;
	if (opcode == WQE_OP_NOP)
		return 1;
	op_prepare(s, op, opcode);
	op->control = t->control;
	bytes = make_bytes(s, t, room);
	if (bytes)
		return bytes;
	t->run = choose(all, s, t);
	if (t->run != step_any && op_is_written(s, op->wqe, sizeof(control))) {
		t->then = t->run;
		t->run = step_if;
	}
	return 1;
}

void trace_make(struct trace *t, struct op_state *s, struct op *const *ops, unsigned n)
{
	struct trace_step *step = t->step, *end = step + t->step_room;

	t->nparts = 0;
	for (unsigned i = 0; i < n; i++)
		step += make_steps(t, s, step, ops[i], i, (unsigned)(end - step) - (n - 1 - i));
	*step = (struct trace_step){.run = step_end, .number = n};
	t->nsteps = (unsigned)(step - t->step);
}

bool trace_shrink(struct trace *t)
{
	const uintptr_t was = (uintptr_t)t->part;
	const unsigned nparts = t->nparts ? t->nparts : 1;
	struct trace_step *step = realloc(t->step, (t->nsteps + 1) * sizeof(*step));
	struct trace_part *part = realloc(t->part, nparts * sizeof(*part));

	if (step) {
		t->step = step;
		t->step_room = t->nsteps;
	}
	if (part) {
		t->part = part;
		t->part_room = nparts;
	}
	return (uintptr_t)t->part != was; /* steps point to their parts */
}

bool trace_reads_found(const struct trace_step *t)
{
	return t->run == step_found_words;
}

bool trace_sends_found(const struct trace_step *t)
{
	return t->run == step_found_send || (t->run == step_if && t->then == step_found_send);
}
