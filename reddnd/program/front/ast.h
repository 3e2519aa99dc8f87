/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ast.h - a checked program, as the front end hands it to lowering.
 *
 * Nothing is left to look up: every name is a pointer to its object, every constant a number, every type
 * and range has been checked. Loops with a bound are unrolled: each iteration has statements, labels and
 * variables of its own. An `if` between constants is replaced by the branch taken. Order of statements is the
 * meaning: a program behaves as if they ran one after the other, for each request.
 *
 * Lowering decides what the front end does not know: which WRs a statement becomes, in which queue a
 * statement without `on` runs, where variables lie in scratch, how often an argument is repeated in a
 * request.
 *
 * The tree lives in a pool and is freed with it (ast_free). It is not changed after it is made.
 */
#ifndef PROGRAM_FRONT_AST_H
#define PROGRAM_FRONT_AST_H

#include "reddnd/chain/ir/verbs.h"
#include "reddnd/program/front/diag.h"
#include "reddnd/program/front/limits.h"
#include "reddnd/program/front/source.h"

#include <stdbool.h>
#include <stdint.h>

struct pool;
struct ast_block;
struct ast_region;
struct ast_verb;

/* ---- types ------------------------------------------------------------------------------------ */

enum ast_type_kind {
	AST_NONE,   /* none: a place whose length comes from elsewhere, as in `write heap -> ...` */
	AST_UINT,   /* u8, beN, leN: 1..8 bytes */
	AST_BYTES,  /* bytes N: no number; may be copied and tested for == and != */
	AST_OFFSET, /* offset(N) in REGION: 1..7 bytes, big-endian; only arguments have it */
};

/** Of an AST_UINT. The NIC moves raw bytes: fields of WQEs are big-endian, atomics work on little-endian
 * words. */
enum ast_order {
	AST_BE,
	AST_LE,
	AST_ANY, /* one byte; or an argument declared uN: sent in whatever order each of its uses wants */
};

struct ast_type {
	uint8_t kind;  /* enum ast_type_kind */
	uint8_t order; /* enum ast_order */
	uint32_t bytes;
	const struct ast_region *window; /* AST_OFFSET */
};

/* ---- declarations ----------------------------------------------------------------------------- */

struct ast_param {
	const char *name;
	uint64_t value, lo, hi, by_default; /* value: the one of this compilation */
	struct diag_pos pos;
};

struct ast_region {
	const char *name;
	unsigned index; /* 0.. in order of declaration */
	bool writable;
	bool steered;  /* and a client may choose where it is written */
	uint64_t size; /* bytes that it has at least, 0: not declared */
	struct diag_pos pos;
};

/** One number or string of bytes of the request. Elements of arrays and fields are arguments of their own. */
struct ast_arg {
	const char *name; /* "key", "probe[1].at" */
	unsigned index;   /* 0.. in wire order */
	struct ast_type type;
	struct diag_pos pos;
};

/** A scratch variable. Elements of arrays, fields of structures and each iteration's are variables of their
 * own. */
struct ast_var {
	const char *name;     /* "seen", "seen[1]"; unique */
	unsigned index;       /* 0.. */
	struct ast_type type; /* AST_UINT in BE or LE, or AST_BYTES */
	uint64_t init;        /* value before the first statement; of AST_BYTES: zero */
	bool each_iteration;  /* declared in an endless loop: it has that value before each */
	struct diag_pos pos;
};

/** A field of the reply, for clients, which know nothing of the program's other names. */
struct ast_reply {
	const char *name;     /* unique among them */
	uint32_t at;          /* bytes from the start of the slot */
	struct ast_type type; /* AST_UINT in BE or LE, or AST_BYTES */
	bool up_to;           /* AST_BYTES: the request decides how many of them are written */
	bool written;
	bool derived, mixed; /* from sources; of several names */
	struct diag_pos pos;
};

/** What a request has behind its arguments: in an extent of `region`, which the server has chosen. */
struct ast_payload {
	const char *name;
	const struct ast_region *region; /* not writable */
	uint32_t max;                    /* bytes */
	struct diag_pos pos;
};

struct ast_queue {
	const char *name; /* "look", "look[1]" */
	unsigned index;   /* 0.. in order of declaration; the reply queue is not among them */
	struct diag_pos pos;
};

/* ---- places and operands ---------------------------------------------------------------------- */

enum ast_place_kind {
	AST_AT_VAR,
	AST_AT_REGION,
	AST_AT_SLOT,   /* the client's reply slot: written, never read */
	AST_AT_FIELD,  /* part of a WQE: a patch when written */
	AST_AT_LENGTH, /* bytes of the request, payload included: the source of a MOV, a be32 */
};

/** Added to an address when the program runs. */
struct ast_term {
	const struct ast_arg *arg; /* type AST_OFFSET in that region, or NULL and */
	const struct ast_var *var; /* AST_UINT of at most 8 bytes */
	struct diag_pos pos;
};

struct ast_place {
	uint8_t kind; /* enum ast_place_kind */
	struct ast_type
		type; /* what lies there; AST_NONE if not said. AT_FIELD: AST_BE of the field's bytes */
	struct diag_pos pos;
	const struct ast_var *var; /* AT_VAR */

	const struct ast_region *region; /* AT_REGION */
	uint64_t at;                     /* AT_REGION, AT_SLOT: constant part of the byte offset */
	struct ast_term term[2];         /* AT_REGION: the rest of it */
	unsigned nterms;

	struct ast_verb *verb; /* AT_FIELD: whose WQE; .field and .sge exist in it */
	uint8_t field;         /* AT_FIELD: enum chain_field */
	uint8_t sge;           /* AT_FIELD, CHAIN_F_LOCAL_*: data segment, in order of the verb's list */
	bool one_byte;         /* AT_FIELD: of an address, that byte alone */
	uint8_t byte;
	bool patched; /* AT_FIELD: the verb that names it writes to it */
};

enum ast_operand_kind {
	AST_CONST,
	AST_ARG,
	AST_PLACE,
	AST_LOCATOR /* of the payload, its length included: `swap` of a CAS */
};

struct ast_operand {
	uint8_t kind; /* enum ast_operand_kind */
	bool swab;    /* of an AST_PLACE that is an AST_UINT: with its bytes reversed, which .type reflects */
	struct ast_type type; /* AST_CONST: that of where it goes, which it fits */
	uint64_t value; /* AST_CONST; AST_ARG on the right of a condition: what stands above its bytes */
	const struct ast_arg *arg;
	const struct ast_place *place; /* AT_VAR, AT_REGION with a type, or AT_FIELD */
	struct diag_pos pos;
};

enum ast_cond_kind { AST_COMPARE, AST_AND, AST_OR };

enum ast_relation { AST_REL_EQ, AST_REL_NE, AST_REL_LT, AST_REL_GT, AST_REL_LE, AST_REL_GE };

/**
 * AND, OR: `second` is looked at if `first` does not decide. COMPARE:
 * `left` is a variable, a region's place (to be read first), or an argument; `right` a constant, an argument
 * or a variable. An argument stands left only of a constant or an argument.
 *   - Equal sizes, but an argument or constant may be narrower than what it is compared with. The bytes above
 *     an argument are those of `right.value`.
 *   - < > <= >=: little-endian or one byte on the left; never AST_BYTES.
 *   - variables: both in the same byte order. An argument is a number of any order and, beside another
 * argument, width.
 */
struct ast_cond {
	uint8_t kind; /* enum ast_cond_kind */
	const struct ast_cond *first, *second;
	uint8_t relation; /* enum ast_relation */
	struct ast_operand left, right;
	const struct ast_queue *queue; /* of the `on` around it; NULL: the compiler's choice */
	struct diag_pos pos;
};

/* ---- verbs ------------------------------------------------------------------------------------ */

enum ast_verb_kind {
	AST_READ,
	AST_WRITE,
	AST_WRITE_IMM,
	AST_SEND,
	AST_CAS,
	AST_ADD,
	AST_NOP,
	AST_MOV,
	AST_CALC,
	AST_WAIT,   /* by hand */
	AST_ENABLE, /* by hand */
};

/** Of unsigned numbers. */
enum ast_calc {
	AST_CALC_ADD,
	AST_CALC_MAX,
	AST_CALC_MIN,
	AST_CALC_AND,
	AST_CALC_OR,
	AST_CALC_XOR,
	AST_CALC_SUB
};

/** The next `type.bytes` bytes of what a READ reads. */
struct ast_piece {
	const struct ast_place *to; /* AT_VAR of the same type, AT_FIELD; NULL: skipped. Not the last piece */
	bool in_bucket; /* to a length: used only if a bucket begins with it, whose tag this READ has brought
			 */
	struct ast_type
		type; /* for an AT_FIELD: big-endian and at most as wide, its low bytes are replaced */
};

/** A condition, and whether it has to hold. */
struct ast_under {
	const struct ast_cond *cond; /* NULL: it is wrong */
	bool holds;
	const struct ast_under *up; /* the next one around it; NULL: none */
};

struct ast_verb {
	uint8_t kind;                  /* enum ast_verb_kind */
	const struct ast_under *under; /* the `if`s around it, the innermost first */
	bool fence;                    /* by hand */
	bool ahead;       /* READ: of the conditions around it; WRITE_IMM, SEND: of what comes after it */
	const char *name; /* label: "hit", "hit[1]"; unique; NULL: none */
	struct diag_pos pos;
	const struct ast_queue *queue; /* of the `on` around it; NULL: the compiler's choice */
	uint32_t patched; /* 1 << enum chain_field for each that is written by some verb of the program, */
	uint32_t lengths; /* and 1 << data segment for those of CHAIN_F_LOCAL_LEN */

	/* READ: from `place` into the pieces. `place` is AT_REGION, AT_VAR or AT_FIELD */
	struct ast_piece *piece;
	unsigned npieces;
	uint32_t lead; /* READ of a structure: its bytes before the first piece, part of the offset in `place`
			*/

	/* WRITE, WRITE_IMM, SEND, MOV: the sources one after the other into `place` (not SEND). MOV has one
	   source. WRITE: `place` is AT_SLOT, AT_REGION (writable), AT_VAR or AT_FIELD; WRITE_IMM: AT_SLOT.
	   MOV: AT_VAR, AT_FIELD or AT_REGION (writable); both sides have a type, of equal size but for
	   AT_FIELD, and of the same byte order (an AST_OFFSET counts as big-endian). */
	struct ast_operand *source;
	unsigned nsources;
	/* If a source has no type, and there is at most one, its length is `bytes`, or else whatever is
	   patched into its length, at most `max`. If both are 0 the length is patched, and a bound is for the
	   verifier to find. `least`: the region's writer promises that it is at least that. Without such a
	   promise the verb stands under a condition, and `rest`, or nothing if that is NULL, takes its place
	   when the length is 0 or above `max`: it has the other sources. */
	uint64_t bytes, least, max;
	struct ast_verb *rest;
	bool has_imm; /* WRITE_IMM: `imm`, AST_CONST or AST_ARG of at most 4 bytes; else the request's number
		       */
	struct ast_operand imm;

	const struct ast_place *place;

	/* CAS, ADD: on the 8-byte aligned little-endian word at `place`: AT_VAR in LE, AT_REGION (writable,
	   le64), or AT_FIELD of 8 bytes (CAS only). `was`: where the old value goes, a variable of that type,
	   or those of a structure with as many bytes, one after the other */
	struct ast_operand old, swap; /* CAS: AST_CONST, AST_ARG or AST_PLACE AT_VAR */
	uint64_t mask;                /* CAS: bits that are compared and swapped; all ones: an ordinary one */
	/* CAS: `swap` is a locator of that region, the payload's or a constant. At most one of a program, in
	   a word of a region, of all its bits, and with `was` */
	const struct ast_region *located;
	bool in_bucket;        /* a CAS with .located: only if that READ has brought the tag of the bucket,
				  which brings what it compares */
	struct ast_operand by; /* ADD: likewise */
	uint64_t fields;       /* ADD: a 1 in each bit that no carry leaves; 0: an ordinary one */
	struct ast_place **was;
	unsigned nwas;

	/* CALC: of the two numbers in `source`, each AST_CONST, AST_ARG, or AST_PLACE at AT_VAR or AT_REGION,
	   and at most as wide as `place`: AT_VAR, AT_REGION (writable) or AT_FIELD. They may be of any byte
	   order. A sum or a difference loses what `place` has no room for. */
	uint8_t calc; /* enum ast_calc */

	/* WAIT: for that verb, or NULL: for the request. ENABLE: through that verb. READ.., not MOV or NOP
	 * alone */
	struct ast_verb *target;
};

/* ---- statements ------------------------------------------------------------------------------- */

struct ast_block {
	struct ast_stmt *stmt;
	unsigned n;
};

enum ast_stmt_kind { AST_VERB, AST_IF, AST_LOOP, AST_BREAK };

enum ast_loop_kind {
	AST_FOR,
	AST_WHILE,   /* cond is tested before each iteration */
	AST_FOREVER, /* loop */
};

struct ast_loop {
	uint8_t kind; /* enum ast_loop_kind */
	bool endless; /* no bound: to be recycled; one iteration stands for all */
	bool breaks; /* contains a break; without one and without cond, iterations simply follow each other */
	const struct ast_cond *cond;
	struct ast_block *iter; /* one block of statements for each iteration */
	unsigned niters;
	struct ast_block otherwise; /* FOR, FOREVER with a bound: when no break has left it */
};

struct ast_stmt {
	uint8_t kind; /* enum ast_stmt_kind */
	struct diag_pos pos;
	struct ast_verb *verb;       /* VERB */
	const struct ast_cond *cond; /* IF */
	struct ast_block then, otherwise;
	struct ast_loop *loop; /* LOOP: it; BREAK: the one it leaves */
};

struct ast_program {
	const char *name;
	uint8_t shape;       /* enum program_shape */
	bool endless;        /* loops without a bound are meant */
	struct diag_pos pos; /* of its name */

	struct ast_param *param;
	unsigned nparams;
	struct ast_region **region;
	unsigned nregions;
	struct ast_arg **arg;
	unsigned nargs;
	uint32_t arg_bytes;          /* sum over the arguments, each once */
	struct ast_payload *payload; /* NULL: none */
	struct ast_var **var;
	unsigned nvars;
	struct ast_queue **queue;
	unsigned nqueues;
	struct ast_reply *reply; /* declared, then derived; they do not overlap */
	unsigned nreplies;
	struct ast_verb **verb; /* all of them, in order of the text */
	unsigned nverbs;

	struct ast_block body;
	struct pool *pool; /* of all of the above */
};

void ast_free(struct ast_program *p); /* NULL is fine */

#endif
