/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs.h - the verbs of a chain: the layout of their WQEs and the places of their fields.
 */
#ifndef CHAIN_IR_VERBS_H
#define CHAIN_IR_VERBS_H

#include <stdbool.h>
#include <stdint.h>

enum chain_verb {
	CHAIN_NOP,
	CHAIN_WRITE,
	CHAIN_WRITE_IMM,
	CHAIN_SEND,
	CHAIN_READ,
	CHAIN_CAS,
	CHAIN_FETCH_ADD,
	CHAIN_MASKED_CAS,       /* 8-byte operands */
	CHAIN_MASKED_FETCH_ADD, /* 8-byte operands */
	CHAIN_CALC_ADD,         /* CALC: a WRITE of the sum, */
	CHAIN_CALC_MAX,         /* maximum, and so on, of big-endian operands: chain_remote_bytes() */
	CHAIN_CALC_AND,
	CHAIN_CALC_OR,
	CHAIN_CALC_XOR,
	CHAIN_WAIT,
	CHAIN_SEND_EN,
	CHAIN_RECV_EN,
	CHAIN_VERBS
};

/** Parts of a WQE that a chain or a request may read or write. */
enum chain_field {
	CHAIN_F_OPCODE,      /* 1 byte */
	CHAIN_F_CTRL,        /* first 8 bytes of the control segment: opmod, index, opcode, QPN, DS */
	CHAIN_F_IMM,         /* 4 bytes */
	CHAIN_F_REMOTE_ADDR, /* 8 bytes */
	CHAIN_F_REMOTE_KEY,  /* 4 bytes */
	CHAIN_F_LOCAL_ADDR,  /* 8 bytes, of one data segment */
	CHAIN_F_LOCAL_KEY,   /* 4 bytes */
	CHAIN_F_LOCAL_LEN,   /* 4 bytes */
	CHAIN_F_SWAP,        /* 8 bytes each */
	CHAIN_F_COMPARE,
	CHAIN_F_SWAP_MASK,
	CHAIN_F_COMPARE_MASK,
	CHAIN_F_ADD,
	CHAIN_F_BOUNDARY, /* field boundaries of a masked add */
	CHAIN_F_INDEX,    /* 4 bytes, of WAIT, SEND_EN and RECV_EN */
	CHAIN_FIELDS
};

/** Classes of work requests, as the paper counts them. */
enum chain_class { CHAIN_CLASS_COPY, CHAIN_CLASS_ATOMIC, CHAIN_CLASS_SYNC };

struct chain_verb_info {
	const char *name;
	uint8_t opcode, opmod;
	uint8_t class;
	bool remote; /* has a remote address segment */
	bool imm;
	bool scatters; /* writes to its local segments */
	bool data;     /* has data segments, after sge_at bytes */
	uint8_t sge_at;
	uint8_t atomic_bytes; /* of the operand segment */
	bool calc;            /* the local segments hold operands of CHAIN_CALC_BYTES */
};

/* Of an operand of CALC: a big-endian number of 8 bytes, and 8 bytes without meaning. The result has the same
 * form; whether the device writes its last 8 bytes, and what they are, is not known */
enum { CHAIN_CALC_BYTES = 16 };

const struct chain_verb_info *chain_verb_info(enum chain_verb verb);
/** The verb with that opcode and opmod; with an opmod that no verb has, the one that has the segments of that
 * opcode; or CHAIN_VERBS. */
enum chain_verb chain_verb_of(uint8_t opcode, uint8_t opmod);
/** Bytes that a step reads or writes at its remote place, whose data segments have @local bytes: a CALC may
 * write less. */
uint64_t chain_remote_bytes(const struct chain_verb_info *verb, uint64_t local);

const char *chain_field_name(enum chain_field field);
/** Offset of a field in the WQE of a verb and its bytes in @size; -1 if the verb has no such field. */
int chain_field_at(enum chain_verb verb, enum chain_field field, unsigned sge, unsigned *size);

/** 16-byte units of a WQE of that verb with @nsge data segments. */
unsigned chain_wqe_ds(enum chain_verb verb, unsigned nsge);

#endif
