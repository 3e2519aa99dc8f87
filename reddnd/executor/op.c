/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/executor/internal.h"

#include "mlx5/cqe.h"

#include <string.h>

/* A part of a word, which is read as one */
static void copy_part(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t off = (uintptr_t)from % sizeof(uint64_t);
	uint64_t word = memory_load(from - off);

	memory_copy_part(to, (const uint8_t *)&word + off, len);
}

static void copy_words_to_bytes(uint8_t *to, const uint8_t *from, size_t words)
{
	for (; words; words--, to += sizeof(uint64_t), from += sizeof(uint64_t)) {
		uint64_t word = memory_load(from);

		memcpy(to, &word, sizeof(word));
	}
}

static void copy_forward(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t head = -(uintptr_t)from % sizeof(uint64_t), words;

	if (head) {
		head = head < len ? head : len;
		copy_part(to, from, head);
		to += head;
		from += head;
		len -= head;
	}
	words = len / sizeof(uint64_t);
	if (memory_is_aligned(to))
		memory_copy_words(to, from, words * sizeof(uint64_t));
	else
		copy_words_to_bytes(to, from, words);
	words *= sizeof(uint64_t);
	if (len > words)
		copy_part(to + words, from + words, len - words);
}

void memory_copy(uint8_t *to, const uint8_t *from, size_t len)
{
	if (to + len <= from || from + len <= to)
		copy_forward(to, from, len);
	else
		memmove(to, from, len); /* of the chain's own, or of a region that it writes */
}

uint64_t memory_swap(
	uint8_t *target, uint64_t swap, uint64_t compare, uint64_t swap_mask, uint64_t compare_mask)
{
	uint64_t *word = (uint64_t *)(void *)target, old = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	while (((old ^ compare) & compare_mask) == 0)
		if (__atomic_compare_exchange_n(word, &old, (old & ~swap_mask) | (swap & swap_mask), false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			break;
	return old;
}

/* A carry out of a bit of @boundary is lost: without these bits nothing is carried out of a field, and each
 * of them is the sum of itself and of what comes in */
static uint64_t sum(uint64_t a, uint64_t b, uint64_t boundary)
{
	return ((a & ~boundary) + (b & ~boundary)) ^ ((a ^ b) & boundary);
}

uint64_t memory_add(uint8_t *target, uint64_t add, uint64_t boundary)
{
	uint64_t *word = (uint64_t *)(void *)target, old = __atomic_load_n(word, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(
		word, &old, sum(old, add, boundary), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
	return old;
}

enum { WORD = sizeof(uint64_t) };

static uint64_t control_of(const uint8_t *wqe)
{
	uint64_t control;

	memcpy(&control, wqe, sizeof(control));
	return control;
}

static bool fails(struct op_state *s, uint8_t syndrome)
{
	s->syndrome = syndrome;
	return false;
}

/* ---- what is written -------------------------------------------------------------------------- */

bool op_learn(struct op_state *s, uint64_t at, uint64_t len)
{
	uint64_t end = len < s->code - at ? at + len : s->code;
	bool news = false;

	for (uint64_t i = at; i < end; i++)
		if (s->marks[i] & OP_FIXED)
			return false;
	for (uint64_t i = at; i < end; i++) {
		news |= !s->marks[i];
		s->marks[i] |= OP_WRITTEN;
	}
	for (uint64_t i = 0; news && i < s->code / WQE_BB; i++)
		s->ops[i].control = 0;
	s->learned |= news;
	return true;
}

/* Before something is written to @p */
static bool may_write(struct op_state *s, const uint8_t *p, uint64_t len)
{
	uint64_t at = (uintptr_t)p - (uintptr_t)s->own;

	return at >= s->code || op_learn(s, at, len);
}

/* ---- places ----------------------------------------------------------------------------------- */

bool op_is_written(const struct op_state *s, const uint8_t *field, unsigned len)
{
	uint64_t at = (uintptr_t)field - (uintptr_t)s->own;

	if (at >= s->code) /* a copy, which nobody writes */
		return false;
	for (uint64_t i = at; i < at + len; i++)
		if (s->marks[i] & OP_WRITTEN)
			return true;
	return false;
}

static unsigned first_segment(uint8_t opcode)
{
	switch (opcode) {
	case WQE_OP_READ:
	case WQE_OP_WRITE:
	case WQE_OP_WRITE_IMM:
		return WQE_RDMA_SGE;
	case WQE_OP_SEND:
	case WQE_OP_SEND_IMM:
		return WQE_SEND_SGE;
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
	case WQE_OP_MASKED_FETCH_ADD:
		return WQE_ATOMIC + 16;
	case WQE_OP_MASKED_CAS:
		return WQE_ATOMIC + 32;
	}
	return 0;
}

/* A place of the WQE, if nothing changes it and it is right. What is written there is learned */
static uint8_t *settle(
	struct op_state *s, struct op *op, const uint8_t *key, const uint8_t *addr, uint64_t len, bool writes)
{
	const uint8_t *first = key < addr ? key : addr;
	unsigned bytes = op_ds(op->wqe) * WQE_DS;
	uintptr_t from;
	uint8_t *p;

	if (!len || op_is_written(s, first, 12))
		return NULL;
	p = memory_at(&s->memory, wqe_get32(key), wqe_get64(addr), len, writes);
	if (!p || !writes)
		return p;
	from = (uintptr_t)op->wqe;
	op->overlaps |= (uintptr_t)p < from + bytes && (uintptr_t)p + len > from;
	return may_write(s, p, len) ? p : NULL;
}

static bool is_in_slot(const struct op_state *s, const struct op *op, uint64_t len)
{
	return memory_has(
		&s->memory, MEMORY_SLOT, wqe_get32(op->wqe + WQE_RKEY), wqe_get64(op->wqe + WQE_RADDR), len);
}

/* ---- executing -------------------------------------------------------------------------------- */

static uint64_t length(const struct op *op)
{
	uint64_t bytes = 0;

	if (op->sized)
		return op->bytes;
	for (unsigned i = 0; i < op->nsegments; i++)
		bytes += wqe_get32(op->wqe + op->at + i * WQE_DS + WQE_SGE_LEN);
	return bytes;
}

/* Data segment @i, or NULL */
static uint8_t *segment(struct op_state *s, const struct op *op, unsigned i, bool writes, uint32_t *len)
{
	const uint8_t *w = op->wqe + op->at + i * WQE_DS;
	uint8_t *p = op->segment[i].mem;

	if (p) {
		*len = op->segment[i].len;
		return p;
	}
	*len = wqe_get32(w + WQE_SGE_LEN);
	if (*len)
		p = memory_at(
			&s->memory, wqe_get32(w + WQE_SGE_LKEY), wqe_get64(w + WQE_SGE_ADDR), *len, writes);
	if (!p || (writes && !may_write(s, p, *len))) {
		s->syndrome = CQE_SYND_LOCAL_PROT;
		return NULL;
	}
	return p;
}

/* What a queue of code reads, writes, or works on */
static uint8_t *remote(struct op_state *s, const struct op *op, uint64_t len, bool writes)
{
	uint8_t *p = op->remote;

	if (p)
		return p;
	if (op->queue != 0)
		p = memory_at(&s->memory, wqe_get32(op->wqe + WQE_RKEY), wqe_get64(op->wqe + WQE_RADDR), len,
			writes);
	if (!p || (writes && !may_write(s, p, len))) {
		s->syndrome = CQE_SYND_REMOTE_ACCESS;
		return NULL;
	}
	return p;
}

static bool execute_small_read(struct op_state *s, const struct op *op)
{
	const uint8_t *from = remote(s, op, op->bytes, false), *part;
	uint64_t whole[OP_WHOLE / WORD + 2];

	if (!from)
		return false;
	part = memory_read(whole, from, op->bytes);
	for (const struct op_segment *seg = op->segment, *end = seg + op->nsegments; seg < end; seg++) {
		const uint32_t len = seg->len;

		if (len == 1) /* most are an opcode or a flag */
			*seg->mem = *part;
		else if (len < WORD)
			memory_copy_part(seg->mem, part, len);
		else
			memcpy(seg->mem, part, len);
		part += len;
	}
	return true;
}

static bool execute_read(struct op_state *s, const struct op *op)
{
	_Alignas(8) uint8_t whole[OP_WHOLE];
	const uint64_t bytes = length(op);
	const uint8_t *from = remote(s, op, bytes, false);
	uint32_t len;

	if (!from)
		return false;
	if (op->nsegments > 1 && bytes <= OP_WHOLE) {
		memory_copy(whole, from, bytes);
		from = whole;
	}
	for (unsigned i = 0; i < op->nsegments; i++, from += len) {
		uint8_t *to = segment(s, op, i, true, &len);

		if (!to)
			return false;
		memory_copy(to, from, len);
	}
	return true;
}

/* All data segments to @to, which has room for them */
static bool gather(struct op_state *s, const struct op *op, uint8_t *to)
{
	uint32_t len;

	for (unsigned i = 0; i < op->nsegments; i++, to += len) {
		const uint8_t *from = segment(s, op, i, false, &len);

		if (!from)
			return false;
		memory_copy(to, from, len);
	}
	return true;
}

static bool send(struct op_state *s, const struct op *op)
{
	const uint8_t opcode = op->opcode;
	const bool writes = opcode == WQE_OP_WRITE || opcode == WQE_OP_WRITE_IMM;
	const uint64_t len = length(op), to = wqe_get64(op->wqe + WQE_RADDR);
	struct executor_message *m = &s->messages[s->nmessages];

	if (writes && !op->in_slot && !is_in_slot(s, op, len))
		return fails(s, CQE_SYND_REMOTE_ACCESS);
	if (len > s->data_size - s->data_used || s->nmessages == s->max_messages)
		return fails(s, CQE_SYND_LOCAL_LENGTH);
	*m = (struct executor_message){
		.opcode = opcode,
		.solicited = op->wqe[WQE_FLAGS] & WQE_SOLICITED,
		.slot_at = writes ? (uint32_t)(to - memory_address(MEMORY_SLOT)) : 0,
		.imm = wqe_get32(op->wqe + WQE_IMM),
		.from = s->data_used,
		.len = (uint32_t)len,
		.wqebb = op->wqebb,
	};
	if (!gather(s, op, s->data + s->data_used))
		return false;
	s->data_used += (uint32_t)len;
	s->nmessages++;
	return true;
}

enum { PACKET = 1024 /* bytes, with the smallest path MTU that is in use */ };

static bool execute_write(struct op_state *s, const struct op *op)
{
	_Alignas(8) uint8_t packet[PACKET];
	const uint64_t bytes = length(op);
	uint8_t *to = remote(s, op, bytes, true);

	if (!to)
		return false;
	if (op->nsegments == 1 || bytes > PACKET)
		return gather(s, op, to);
	/* a NIC has gathered a packet before it writes to where a segment of it may come from */
	if (!gather(s, op, packet))
		return false;
	memory_copy(to, packet, bytes);
	return true;
}

static bool is_calc(const struct op *op)
{
	return op->opcode == WQE_OP_WRITE && op->wqe[WQE_OPMOD];
}

static uint64_t combine(uint8_t opmod, uint64_t a, uint64_t b)
{
	switch (opmod) {
	case WQE_CALC_ADD:
		return a + b;
	case WQE_CALC_MAXLOC:
		return a > b ? a : b;
	case WQE_CALC_AND:
		return a & b;
	case WQE_CALC_OR:
		return a | b;
	default:
		return a ^ b;
	}
}

/* Of the result the number alone: what a device writes behind it is for nobody */
static bool execute_calc(struct op_state *s, const struct op *op)
{
	uint8_t *to = remote(s, op, WQE_CALC_OPERAND, true);
	uint64_t result = 0, operand;
	bool first = true;
	uint32_t len;

	if (!to)
		return false;
	for (unsigned i = 0; i < op->nsegments; i++) {
		const uint8_t *from = segment(s, op, i, false, &len);

		if (!from)
			return false;
		if (len % WQE_CALC_OPERAND)
			return fails(s, CQE_SYND_LOCAL_LENGTH);
		for (; len; len -= WQE_CALC_OPERAND, from += WQE_CALC_OPERAND) {
			operand = wqe_get64(from);
			result = first ? operand : combine(op->wqe[WQE_OPMOD], result, operand);
			first = false;
		}
	}
	if (first)
		return fails(s, CQE_SYND_LOCAL_LENGTH);
	wqe_put64(to, result);
	return true;
}

static bool is_masked(uint8_t opcode)
{
	return opcode == WQE_OP_MASKED_CAS || opcode == WQE_OP_MASKED_FETCH_ADD;
}

static bool operate(struct op_state *s, const struct op *op, uint8_t *target, uint8_t *to)
{
	const bool masked = is_masked(op->opcode);
	const uint8_t *operand = op->wqe + WQE_ATOMIC;
	uint64_t old;

	if (op->opcode == WQE_OP_FETCH_ADD || op->opcode == WQE_OP_MASKED_FETCH_ADD)
		old = memory_add(target, wqe_get64(operand), masked ? wqe_get64(operand + 8) : 0);
	else
		old = memory_swap(target, wqe_get64(operand), wqe_get64(operand + 8),
			masked ? wqe_get64(operand + 16) : UINT64_MAX,
			masked ? wqe_get64(operand + 24) : UINT64_MAX);
	if (s->swapped_old)
		old = __builtin_bswap64(old);
	memcpy(to, &old, sizeof(old));
	return true;
}

/* Both places stay, and are right */
static bool execute_settled_atomic(struct op_state *s, const struct op *op)
{
	return operate(s, op, op->remote, op->segment[0].mem);
}

static bool execute_atomic(struct op_state *s, const struct op *op)
{
	uint8_t *target, *to;
	uint32_t len;

	target = remote(s, op, WORD, true);
	if (!target)
		return false;
	if (!memory_is_aligned(target))
		return fails(s, CQE_SYND_REMOTE_INVAL);
	if (!op->nsegments)
		return fails(s, CQE_SYND_LOCAL_PROT);
	to = segment(s, op, 0, true, &len);
	if (!to)
		return false;
	return len < WORD ? fails(s, CQE_SYND_LOCAL_LENGTH) : operate(s, op, target, to);
}

static bool execute_nothing(struct op_state *s, const struct op *op)
{
	(void)op;
	return fails(s, CQE_SYND_LOCAL_QP_OP);
}

/* As it was when it was fetched */
static bool execute_overlapping(struct op_state *s, const struct op *op)
{
	uint8_t fetched[WQE_MAX_BBS * WQE_BB];

	memcpy(fetched, op->wqe, op_ds(op->wqe) * WQE_DS);
	return op_execute_copy(s, op, fetched);
}

/* ---- preparing -------------------------------------------------------------------------------- */

static bool is_settled_atomic(const struct op *op)
{
	return op->remote && memory_is_aligned(op->remote) && op->nsegments && op->segment[0].mem &&
	       op->segment[0].len >= WORD;
}

static bool is_small(const struct op_state *s, const struct op *op)
{
	if (op->opcode != WQE_OP_READ || !op->sized || op->bytes > OP_WHOLE || op->overlaps)
		return false;
	for (unsigned i = 0; i < op->nsegments; i++)
		if (!op->segment[i].mem || !memory_is_own(&s->memory, op->segment[i].mem))
			return false;
	return true;
}

static op_run *choose_atomic(const struct op *op)
{
	if (op_ds(op->wqe) * WQE_DS < op->at ||
		(is_masked(op->opcode) && op->wqe[WQE_OPMOD] != WQE_OPMOD_MASKED_8B))
		return execute_nothing;
	return is_settled_atomic(op) ? execute_settled_atomic : execute_atomic;
}

static op_run *choose(const struct op_state *s, const struct op *op)
{
	if (op->overlaps)
		return execute_overlapping;
	switch (op->opcode) {
	case WQE_OP_READ:
		return is_small(s, op) ? execute_small_read : execute_read;
	case WQE_OP_WRITE:
		if (is_calc(op))
			return op->queue != 0 && op->wqe[WQE_OPMOD] <= WQE_CALC_XOR &&
					       op->wqe[WQE_OPMOD] != WQE_CALC_ADD_F64
				       ? execute_calc
				       : execute_nothing;
		return op->queue == 0 ? send : execute_write;
	case WQE_OP_WRITE_IMM:
	case WQE_OP_SEND:
	case WQE_OP_SEND_IMM:
		return op->queue == 0 ? send : execute_nothing;
	case WQE_OP_CAS:
	case WQE_OP_FETCH_ADD:
	case WQE_OP_MASKED_CAS:
	case WQE_OP_MASKED_FETCH_ADD:
		return choose_atomic(op);
	}
	return execute_nothing;
}

void op_prepare(struct op_state *s, struct op *op, uint8_t opcode)
{
	const bool atomic = first_segment(opcode) > WQE_RDMA_SGE;
	const bool scatters = atomic || opcode == WQE_OP_READ;
	const unsigned bytes = op_ds(op->wqe) * WQE_DS;
	unsigned n;

	op->control = control_of(op->wqe);
	op->opcode = opcode;
	op->at = (uint8_t)first_segment(opcode);
	n = op->at && bytes > op->at ? (bytes - op->at) / WQE_DS : 0;
	op->nsegments = n <= op->room ? (uint8_t)n : 0;
	op->bytes = 0;
	op->sized = true;
	op->overlaps = false;
	op->remote = NULL;
	for (unsigned i = 0; i < op->nsegments; i++) {
		const uint8_t *w = op->wqe + op->at + i * WQE_DS;
		struct op_segment *seg = &op->segment[i];

		seg->len = wqe_get32(w + WQE_SGE_LEN);
		op->bytes += seg->len;
		op->sized &= !op_is_written(s, w + WQE_SGE_LEN, 4);
		seg->mem = op_is_written(s, w + WQE_SGE_LEN, 4)
				   ? NULL
				   : settle(s, op, w + WQE_SGE_LKEY, w + WQE_SGE_ADDR, seg->len, scatters);
	}
	if (op->queue != 0 && op->at >= WQE_RDMA_SGE && op->sized)
		op->remote = settle(s, op, op->wqe + WQE_RKEY, op->wqe + WQE_RADDR,
			atomic        ? WORD
			: is_calc(op) ? WQE_CALC_OPERAND
				      : op->bytes,
			opcode != WQE_OP_READ);
	op->in_slot = op->sized && !op_is_written(s, op->wqe + WQE_RADDR, 12) && is_in_slot(s, op, op->bytes);
	op->run = n <= op->room ? choose(s, op) : execute_nothing;
	op->settled = op->run == execute_small_read || op->run == execute_settled_atomic;
}

bool op_execute_copy(struct op_state *s, const struct op *op, const uint8_t *wqe)
{
	struct op_segment segments[WQE_MAX_DS];
	struct op copy = {
		.wqe = wqe, .segment = segments, .queue = op->queue, .wqebb = op->wqebb, .room = WQE_MAX_DS};

	op_prepare(s, &copy, wqe[WQE_OPCODE]);
	return copy.run(s, &copy);
}

bool op_execute(struct op_state *s, struct op *op)
{
	if (__builtin_expect(op->control != control_of(op->wqe), 0)) {
		if (op->wqe[WQE_OPCODE] == WQE_OP_NOP)
			return true;
		op_prepare(s, op, op->wqe[WQE_OPCODE]);
	}
	return op->run(s, op);
}

unsigned op_execute_row(struct op_state *s, struct op *const *ops, unsigned n)
{
	unsigned i = 0;

	while (i < n && op_execute(s, ops[i]))
		i++;
	return i;
}
