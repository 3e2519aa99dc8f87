/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * syntax.h - a program as it is written: the result of parsing, from which the front end makes the checked
 * tree (ast.h). Names are words here. Everything lives in the pool.
 */
#ifndef PROGRAM_FRONT_SYNTAX_H
#define PROGRAM_FRONT_SYNTAX_H

#include "reddnd/program/front/ast.h"

struct lex_token;

/** A word of the text. */
struct syn_name {
	const char *word; /* NULL: not written */
	struct diag_pos pos;
};

enum syn_type_kind {
	SYN_TYPE_NONE,
	SYN_TYPE_NUMBER, /* u8, uN, beN, leN */
	SYN_TYPE_BYTES,
	SYN_TYPE_OFFSET,
	SYN_TYPE_STRUCT, /* `name` */
};

struct syn_type {
	uint8_t kind;
	uint8_t order; /* enum ast_order; u8, uN: AST_ANY */
	uint8_t bits;
	struct diag_pos pos;
	struct syn_expr *size; /* BYTES, OFFSET */
	struct syn_name name;  /* OFFSET: region */
};

enum syn_expr_kind {
	SYN_NUMBER,
	SYN_REF, /* name, name[i], name.field, name[i].field[j] */
	SYN_BINARY,
	SYN_NOT,
	SYN_SWAB,
	SYN_SIZEOF,
	SYN_AT,   /* left @ right */
	SYN_AS,   /* left as type */
	SYN_SLOT, /* slot; may be left of @ */
};

struct syn_expr {
	uint8_t kind;
	uint8_t op; /* BINARY: character, LEX_SHL or LEX_SHR */
	struct diag_pos pos;
	uint64_t number;
	struct syn_name name;   /* REF; SIZEOF: structure */
	struct syn_expr *index; /* REF, or NULL */
	struct syn_name field;  /* REF */
	struct syn_expr *field_index;
	struct syn_expr *left, *right;
	struct syn_type type; /* AS */
};

/** `name[count] : type`, of a structure or an argument. */
struct syn_field {
	struct syn_name name; /* "_": skipped */
	struct syn_expr *count;
	struct syn_type type;
};

/** `-> place`, perhaps of a field of a structure. */
struct syn_into {
	struct syn_name field;
	struct syn_expr *field_index;
	struct syn_expr *to;
};

struct syn_cond {
	uint8_t kind;     /* enum ast_cond_kind */
	uint8_t relation; /* COMPARE: enum ast_relation */
	struct syn_expr *left, *right;
	struct syn_cond *first, *second; /* AND, OR */
	struct diag_pos pos;             /* of the relation, or of && or || */
};

struct syn_verb {
	uint8_t kind; /* enum ast_verb_kind */
	uint8_t calc; /* enum ast_calc */
	bool fence, ahead;
	struct syn_expr *ahead_if; /* NULL: always */
	struct syn_name label;
	struct diag_pos pos;
	struct syn_expr *
		*source; /* READ: what is read; WRITE..: the list; MOV, CALC; CAS, ADD: the place acted on */
	unsigned nsources;
	struct syn_name as;    /* READ as STRUCT */
	struct syn_into *into; /* READ; WRITE.., MOV, CALC: the place */
	unsigned ninto;
	struct syn_expr *bytes, *least, *max, *imm;
	struct syn_expr *old, *swap, *mask; /* CAS */
	struct syn_name located;            /* CAS: the region that the new value is a locator of */
	struct syn_expr *by, *fields;       /* ADD */
	bool minus;                         /* ADD by -x */
	struct syn_expr *was;
	struct syn_name target; /* WAIT, ENABLE; word NULL: the request */
};

enum syn_kind {
	SYN_SHAPE,
	SYN_ENDLESS,
	SYN_PARAM,
	SYN_CONST,
	SYN_REGION,
	SYN_STRUCT,
	SYN_ARG,
	SYN_VAR,
	SYN_QUEUE,
	SYN_REPLY,
	SYN_PAYLOAD,
	SYN_VERB,
	SYN_IF,
	SYN_FOR,
	SYN_WHILE,
	SYN_LOOP,
	SYN_BREAK,
	SYN_ON,
};

struct syn_block {
	struct syn_stmt *stmt;
	unsigned n;
};

/** A declaration or a statement. */
struct syn_stmt {
	uint8_t kind;
	uint8_t shape;          /* SHAPE */
	bool writable, steered; /* REGION */
	struct diag_pos pos;
	struct syn_name name;   /* what is declared; FOR: its variable; ON: queue */
	struct syn_expr *value; /* PARAM: default; CONST; VAR: or NULL; REGION: size, or NULL; REPLY: offset;
				   PAYLOAD: its most bytes */
	struct syn_expr *lo, *hi; /* PARAM, FOR */
	struct syn_expr *count; /* ARG, VAR, QUEUE: [count], or NULL; ON: [index], or NULL; WHILE, LOOP: max,
				   or NULL */
	struct syn_name *names; /* REGION */
	unsigned nnames;
	struct syn_name of; /* REGION: its structure; PAYLOAD: its region */
	struct syn_type type;
	struct syn_field *field; /* STRUCT, ARG */
	unsigned nfields;
	struct syn_verb *verb;
	struct syn_cond *cond;            /* IF, WHILE */
	struct syn_block body, otherwise; /* IF, FOR, WHILE, LOOP; ON has no `else` */
};

struct syn_program {
	struct syn_name name;
	struct syn_block body;
};

/** The tree of @tokens. Errors go to @d; after one, the tree is of no use. */
struct syn_program *parse(struct pool *p, struct diag *d, const struct lex_token *tokens);

#endif
