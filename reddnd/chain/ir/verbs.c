/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/chain/ir/verbs.h"

#include "mlx5/wqe.h"

#include <stddef.h>

#define RDMA .class = CHAIN_CLASS_COPY, .remote = true, .data = true, .sge_at = WQE_RDMA_SGE
#define CALC .opcode = WQE_OP_WRITE, RDMA, .calc = true
#define ATOMIC(operands)                                                                                     \
	.class = CHAIN_CLASS_ATOMIC, .remote = true, .scatters = true, .data = true,                         \
	.sge_at = WQE_ATOMIC + (operands), .atomic_bytes = (operands)

static const struct chain_verb_info verbs[CHAIN_VERBS] = {
	[CHAIN_NOP] = {.name = "nop", .opcode = WQE_OP_NOP, .class = CHAIN_CLASS_COPY},
	[CHAIN_WRITE] = {.name = "write", .opcode = WQE_OP_WRITE, RDMA},
	[CHAIN_WRITE_IMM] = {.name = "write_imm", .opcode = WQE_OP_WRITE_IMM, .imm = true, RDMA},
	[CHAIN_SEND] = {.name = "send",
		.opcode = WQE_OP_SEND,
		.class = CHAIN_CLASS_COPY,
		.data = true,
		.sge_at = WQE_SEND_SGE},
	[CHAIN_READ] = {.name = "read", .opcode = WQE_OP_READ, .scatters = true, RDMA},
	[CHAIN_CAS] = {.name = "cas", .opcode = WQE_OP_CAS, ATOMIC(16)},
	[CHAIN_FETCH_ADD] = {.name = "fetch_add", .opcode = WQE_OP_FETCH_ADD, ATOMIC(16)},
	[CHAIN_MASKED_CAS] = {.name = "masked_cas",
		.opcode = WQE_OP_MASKED_CAS,
		.opmod = WQE_OPMOD_MASKED_8B,
		ATOMIC(32)},
	[CHAIN_MASKED_FETCH_ADD] = {.name = "masked_fetch_add",
		.opcode = WQE_OP_MASKED_FETCH_ADD,
		.opmod = WQE_OPMOD_MASKED_8B,
		ATOMIC(16)},
	[CHAIN_CALC_ADD] = {.name = "sum", .opmod = WQE_CALC_ADD, CALC},
	[CHAIN_CALC_MAX] = {.name = "max", .opmod = WQE_CALC_MAXLOC, CALC},
	[CHAIN_CALC_AND] = {.name = "and", .opmod = WQE_CALC_AND, CALC},
	[CHAIN_CALC_OR] = {.name = "or", .opmod = WQE_CALC_OR, CALC},
	[CHAIN_CALC_XOR] = {.name = "xor", .opmod = WQE_CALC_XOR, CALC},
	[CHAIN_WAIT] = {.name = "wait", .opcode = WQE_OP_WAIT, .class = CHAIN_CLASS_SYNC},
	[CHAIN_SEND_EN] = {.name = "send_en", .opcode = WQE_OP_SEND_EN, .class = CHAIN_CLASS_SYNC},
	[CHAIN_RECV_EN] = {.name = "recv_en", .opcode = WQE_OP_RECV_EN, .class = CHAIN_CLASS_SYNC},
};

static const char *const field_names[CHAIN_FIELDS] = {
	[CHAIN_F_OPCODE] = "opcode",
	[CHAIN_F_CTRL] = "ctrl",
	[CHAIN_F_IMM] = "imm",
	[CHAIN_F_REMOTE_ADDR] = "remote.addr",
	[CHAIN_F_REMOTE_KEY] = "remote.key",
	[CHAIN_F_LOCAL_ADDR] = "local.addr",
	[CHAIN_F_LOCAL_KEY] = "local.key",
	[CHAIN_F_LOCAL_LEN] = "local.length",
	[CHAIN_F_SWAP] = "swap",
	[CHAIN_F_COMPARE] = "compare",
	[CHAIN_F_SWAP_MASK] = "swap_mask",
	[CHAIN_F_COMPARE_MASK] = "compare_mask",
	[CHAIN_F_ADD] = "add",
	[CHAIN_F_BOUNDARY] = "boundary",
	[CHAIN_F_INDEX] = "index",
};

const struct chain_verb_info *chain_verb_info(enum chain_verb verb)
{
	return &verbs[verb];
}

enum chain_verb chain_verb_of(uint8_t opcode, uint8_t opmod)
{
	unsigned first = 0, v;

	while (first < CHAIN_VERBS && verbs[first].opcode != opcode)
		first++;
	for (v = first; v < CHAIN_VERBS; v++)
		if (verbs[v].opcode == opcode && verbs[v].opmod == opmod)
			return v;
	return first;
}

uint64_t chain_remote_bytes(const struct chain_verb_info *verb, uint64_t local)
{
	return verb->atomic_bytes ? 8 : verb->calc ? CHAIN_CALC_BYTES : local;
}

const char *chain_field_name(enum chain_field field)
{
	return field_names[field];
}

static int at(bool has, unsigned offset, unsigned bytes, unsigned *size)
{
	*size = bytes;
	return has ? (int)offset : -1;
}

int chain_field_at(enum chain_verb verb, enum chain_field field, unsigned sge, unsigned *size)
{
	const struct chain_verb_info *v = &verbs[verb];
	unsigned seg = v->sge_at + sge * WQE_DS;
	bool cas = verb == CHAIN_CAS || verb == CHAIN_MASKED_CAS, add = v->atomic_bytes && !cas;

	switch (field) {
	case CHAIN_F_OPCODE:
		return at(true, WQE_OPCODE, 1, size);
	case CHAIN_F_CTRL:
		return at(true, 0, 8, size);
	case CHAIN_F_IMM:
		return at(v->imm, WQE_IMM, 4, size);
	case CHAIN_F_REMOTE_ADDR:
		return at(v->remote, WQE_RADDR, 8, size);
	case CHAIN_F_REMOTE_KEY:
		return at(v->remote, WQE_RKEY, 4, size);
	case CHAIN_F_LOCAL_ADDR:
		return at(v->data, seg + WQE_SGE_ADDR, 8, size);
	case CHAIN_F_LOCAL_KEY:
		return at(v->data, seg + WQE_SGE_LKEY, 4, size);
	case CHAIN_F_LOCAL_LEN:
		return at(v->data, seg + WQE_SGE_LEN, 4, size);
	case CHAIN_F_SWAP:
		return at(cas, WQE_ATOMIC, 8, size);
	case CHAIN_F_COMPARE:
		return at(cas, WQE_ATOMIC + 8, 8, size);
	case CHAIN_F_SWAP_MASK:
		return at(verb == CHAIN_MASKED_CAS, WQE_ATOMIC + 16, 8, size);
	case CHAIN_F_COMPARE_MASK:
		return at(verb == CHAIN_MASKED_CAS, WQE_ATOMIC + 24, 8, size);
	case CHAIN_F_ADD:
		return at(add, WQE_ATOMIC, 8, size);
	case CHAIN_F_BOUNDARY:
		return at(verb == CHAIN_MASKED_FETCH_ADD, WQE_ATOMIC + 8, 8, size);
	case CHAIN_F_INDEX:
		return at(v->class == CHAIN_CLASS_SYNC, WQE_SYNC_INDEX, 4, size);
	case CHAIN_FIELDS:
		break;
	}
	return -1;
}

unsigned chain_wqe_ds(enum chain_verb verb, unsigned nsge)
{
	const struct chain_verb_info *v = &verbs[verb];

	if (v->class == CHAIN_CLASS_SYNC)
		return 2;
	return v->data ? v->sge_at / WQE_DS + nsge : 1;
}
