/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/executor/trace.h"

#include "reddnd/executor/trace-step.h"

#include <errno.h>
#include <stdlib.h>

enum {
	WORD = sizeof(uint64_t),
	/* Of a work request, on average; one that has more is executed by other means */
	STEPS = 2,
	PARTS = 8,
};

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
		t[i].run = trace_step_byte;
	}
	return op->nsegments;
}

static trace_run *make_read(struct trace *all, const struct op_state *s, struct trace_step *t)
{
	const struct op *op = t->op;
	unsigned at = (uintptr_t)op->remote % WORD;

	if (!op->settled || !op->bytes)
		return trace_step_any;
	if (!op->remote &&
		(op->queue == 0 || !find(s, t, op->wqe + WQE_RKEY, op->wqe + WQE_RADDR, op->bytes) ||
			memory_is_own(&s->memory, t->mem)))
		return trace_step_any;
	if (op->remote)
		t->from = op->remote - at;
	t->part = all->part + all->nparts;
	t->nwords = (uint32_t)(at + op->bytes + WORD - 1) / WORD;
	for (unsigned i = 0; i < op->nsegments; at += op->segment[i++].len)
		if (!add_parts(all, t, at, op->segment[i].mem, op->segment[i].len))
			return trace_step_any;
	all->part[all->nparts - 1].last = true;
	if (!op->remote)
		return trace_step_found_words;
	return memory_is_own(&s->memory, op->remote) ? trace_step_own_words : trace_step_words;
}

static trace_run *make_write(struct trace_step *t)
{
	const struct op *op = t->op;

	if (!op->remote || !op->sized || op->nsegments != 1 || !op->segment[0].mem)
		return trace_step_any;
	t->from = op->segment[0].mem;
	t->to = op->remote;
	t->len = op->segment[0].len;
	return trace_step_copy;
}

static trace_run *make_swap(const struct op_state *s, struct trace_step *t)
{
	const struct op *op = t->op;
	const uint8_t *operand = op->wqe + WQE_ATOMIC;
	const bool masked = op->opcode == WQE_OP_MASKED_CAS;

	if (!op->settled || s->swapped_old || !memory_is_own(&s->memory, op->remote) ||
		op_is_written(s, operand, WORD) || (masked && op_is_written(s, operand + 2 * WORD, 2 * WORD)))
		return trace_step_any;
	t->to = op->remote;
	t->mem = op->segment[0].mem;
	t->swap_mask = masked ? wqe_get64(operand + 2 * WORD) : UINT64_MAX;
	t->compare_mask = masked ? wqe_get64(operand + 3 * WORD) : UINT64_MAX;
	t->swap = wqe_get64(operand) & t->swap_mask;
	return trace_step_swap;
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
		return trace_step_any;
	t->message = (struct executor_message){
		.opcode = op->opcode, .solicited = op->wqe[WQE_FLAGS] & WQE_SOLICITED, .wqebb = op->wqebb};
	if (!find_slot(s, t, op->opcode == WQE_OP_WRITE || op->opcode == WQE_OP_WRITE_IMM))
		return trace_step_any;
	if (op->segment[0].mem && op->segment[0].len <= t->room) {
		t->from = op->segment[0].mem;
		t->len = op->segment[0].len;
		return trace_step_send;
	}
	return find(s, t, segment + WQE_SGE_LKEY, segment + WQE_SGE_ADDR, 0) ? trace_step_found_send
									     : trace_step_any;
}

static trace_run *choose(struct trace *all, const struct op_state *s, struct trace_step *t)
{
	if (t->op->overlaps)
		return trace_step_any;
	switch (t->op->opcode) {
	case WQE_OP_READ:
		return make_read(all, s, t);
	case WQE_OP_CAS:
	case WQE_OP_MASKED_CAS:
		return make_swap(s, t);
	case WQE_OP_WRITE:
		if (t->op->wqe[WQE_OPMOD]) /* CALC */
			return trace_step_any;
		return t->op->queue == 0 ? make_send(s, t) : make_write(t);
	case WQE_OP_WRITE_IMM:
	case WQE_OP_SEND:
	case WQE_OP_SEND_IMM:
		return t->op->queue == 0 ? make_send(s, t) : trace_step_any;
	}
	return trace_step_any;
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
	t->run = trace_step_any;
	if (opcode == WQE_OP_NOP)
		return 1;
	op_prepare(s, op, opcode);
	op->control = t->control;
	bytes = make_bytes(s, t, room);
	if (bytes)
		return bytes;
	t->run = choose(all, s, t);
	if (t->run != trace_step_any && op_is_written(s, op->wqe, sizeof(control))) {
		t->then = t->run;
		t->run = trace_step_if;
	}
	return 1;
}

void trace_make(struct trace *t, struct op_state *s, struct op *const *ops, unsigned n)
{
	struct trace_step *step = t->step, *end = step + t->step_room;

	t->nparts = 0;
	for (unsigned i = 0; i < n; i++)
		step += make_steps(t, s, step, ops[i], i, (unsigned)(end - step) - (n - 1 - i));
	*step = (struct trace_step){.run = trace_step_end, .number = n};
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
