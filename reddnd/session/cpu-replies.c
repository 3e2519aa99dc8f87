/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/session/cpu-replies.h"

#include "mlx5/cqe.h"
#include "mlx5/wqe.h"
#include "reddnd/session/cpu-state.h"

/* @m, number @i of its request, without its immediate, and then that */
static int send_number(struct session *s, uint64_t n, unsigned i, struct rnic_plain_send *m)
{
	struct session_cpu *c = s->cpu;
	struct rnic_plain_send number = *m;
	int r;

	number.opcode = WQE_OP_SEND;
	number.off = cpu_reply_at(s, n) + c->layout.data_size + 4ull * i;
	number.len = sizeof(number.imm);
	number.more_len = 0;
	wqe_put32(rnic_plain_memory(c->queue) + number.off, m->imm);
	m->opcode = WQE_OP_WRITE;
	m->solicited = false;
	r = rnic_plain_send(c->queue, m);
	return r == 0 ? rnic_plain_send(c->queue, &number) : r;
}

/* A WRITE and the WRITE with an immediate after it, beside each other in the slot: as one they do the same,
 * as the client looks at neither before it has the immediate */
static bool are_one(const struct executor_message *a, const struct executor_message *b)
{
	return a->opcode == WQE_OP_WRITE && b->opcode == WQE_OP_WRITE_IMM && a->len && b->len &&
	       (a->slot_at + a->len == b->slot_at || b->slot_at + b->len == a->slot_at);
}

int cpu_replies_send(struct session *s, uint64_t n)
{
	const struct chain_env *env = &s->queues.env;
	const uint64_t at = cpu_reply_at(s, n), slot = env->slot_addr + n % env->slot_count * env->slot_size;
	const struct executor_message *m;
	unsigned count, i = 0;
	int r = 0;

	m = executor_messages(s->cpu->executor, &count);
	while (i < count && r == 0) {
		const bool pair = i + 1 < count && are_one(&m[i], &m[i + 1]);
		const struct executor_message *low = &m[i], *high = &m[i + pair], *last = high;
		struct rnic_plain_send send = {.tag = m[i].wqebb | last->wqebb << 16, .rkey = env->slot_rkey};

		if (high->slot_at < low->slot_at) {
			low = high;
			high = &m[i];
		}
		send.opcode = last->opcode;
		send.solicited = last->solicited;
		send.imm = last->imm;
		send.off = at + low->from;
		send.len = low->len;
		send.remote = slot + low->slot_at;
		send.more_off = at + high->from;
		send.more_len = pair ? high->len : 0;
		r = s->sends && last->opcode == WQE_OP_WRITE_IMM ? send_number(s, n, i, &send)
								 : rnic_plain_send(s->cpu->queue, &send);
		i += 1u + pair;
	}
	return r;
}

uint32_t cpu_replies_failed(uint32_t tag, uint8_t syndrome)
{
	return syndrome == CQE_SYND_RNR_RETRY ? tag >> 16 : tag & 0xffff;
}
