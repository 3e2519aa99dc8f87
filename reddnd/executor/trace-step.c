/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/executor/trace-step.h"

#include "mlx5/cqe.h"

static inline const struct trace_step *next(struct op_state *s, const struct trace_step *t)
{
	return t[1].run(s, t + 1);
}

static const struct trace_step *fails(struct op_state *s, const struct trace_step *t, uint8_t syndrome)
{
	s->syndrome = syndrome;
	return t;
}

const struct trace_step *trace_step_end(struct op_state *s, const struct trace_step *t)
{
	(void)s;
	return t;
}

/* Like what else is not inlined here, it is rare: steps need no stack without it */
__attribute__((noinline)) const struct trace_step *trace_step_any(
	struct op_state *s, const struct trace_step *t)
{
	if (!op_execute(s, t->op))
		return t;
	return s->learned ? t + 1 : next(s, t);
}

const struct trace_step *trace_step_if(struct op_state *s, const struct trace_step *t)
{
	uint64_t control;

	memcpy(&control, t->wqe, sizeof(control));
	if (control == t->control)
		return t->then(s, t);
	return t->wqe[WQE_OPCODE] == WQE_OP_NOP ? next(s, t) : trace_step_any(s, t);
}

const struct trace_step *trace_step_byte(struct op_state *s, const struct trace_step *t)
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

/* All of it is read before anything is written */
const struct trace_step *trace_step_own_words(struct op_state *s, const struct trace_step *t)
{
	uint64_t words[TRACE_WORDS];
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

const struct trace_step *trace_step_words(struct op_state *s, const struct trace_step *t)
{
	return take_words(s, t, t->from);
}

const struct trace_step *trace_step_found_words(struct op_state *s, const struct trace_step *t)
{
	const uint64_t at = wqe_get64(t->address) - t->first;
	const uint8_t *from;

	if (at > t->last)
		return fails(s, t, CQE_SYND_REMOTE_ACCESS);
	from = t->mem + at;
	return memory_is_aligned(from) ? take_words(s, t, from) : trace_step_any(s, t);
}

const struct trace_step *trace_step_copy(struct op_state *s, const struct trace_step *t)
{
	memory_copy(t->to, t->from, t->len);
	return next(s, t);
}

/* Nobody else is in own memory, so it need not be atomic */
const struct trace_step *trace_step_swap(struct op_state *s, const struct trace_step *t)
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

const struct trace_step *trace_step_send(struct op_state *s, const struct trace_step *t)
{
	return has_room(s, t->len) ? send(s, t, t->from, t->len) : fails(s, t, CQE_SYND_LOCAL_LENGTH);
}

const struct trace_step *trace_step_found_send(struct op_state *s, const struct trace_step *t)
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
