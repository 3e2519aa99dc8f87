/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sema.h - private to the front end: from the text's tree (syntax.h) to the checked one (ast.h).
 *
 * Functions that return false have reported why. A name whose declaration failed stays known as SYM_BAD, and
 * uses of it fail without another report.
 */
#ifndef PROGRAM_FRONT_SEMA_H
#define PROGRAM_FRONT_SEMA_H

#include "reddnd/program/front/front.h"
#include "reddnd/program/front/pool.h"
#include "reddnd/program/front/syntax.h"

struct sema_field {
	const char *name; /* NULL: skipped */
	struct ast_type type;
	uint32_t at;    /* bytes from the start of the structure */
	uint32_t count; /* of elements, each of type.bytes; 0: not an array */
};

struct sema_struct {
	const char *name;
	struct sema_field *field;
	unsigned nfields;
	uint32_t bytes;
};

/** SYM_OPEN: its declaration is being checked. */
enum sym_kind {
	SYM_BAD,
	SYM_OPEN,
	SYM_NUMBER,
	SYM_REGION,
	SYM_STRUCT,
	SYM_ARG,
	SYM_VAR,
	SYM_QUEUE,
	SYM_PAYLOAD,
	SYM_LABEL
};

struct sym {
	uint8_t kind;
	bool implied; /* VAR: declared by being the destination of a read */
	bool used;    /* VAR */
	const char *word;
	struct diag_pos pos;
	struct sym *next;
	uint64_t number;              /* NUMBER */
	struct ast_region *region;    /* REGION */
	const struct sema_struct *of; /* REGION: or NULL. STRUCT. ARG, VAR: its fields, or NULL */
	uint32_t count;               /* ARG, VAR, QUEUE: elements; 0: not an array */
	struct ast_arg *
		*arg; /* ARG, VAR: element by element, in each field by field, skipped ones left out */
	struct ast_var **var;
	struct ast_queue **queue;
	struct ast_verb *verb; /* LABEL */
};

struct scope {
	struct scope *up;
	struct sym *syms;
};

struct sema {
	struct pool *pool;
	struct diag *d;
	const struct program_setting *setting;
	unsigned nsettings;
	const struct syn_block *body; /* of the program, for hints */
	struct ast_program *prog;
	struct scope *scope;
	struct ast_loop *loop;         /* around the current statement */
	bool endless;                  /* and one of those around it has no bound */
	const struct ast_queue *queue; /* of the `on` around it */
	const char *suffix;            /* of names in the current iteration: "[1][0]" */
	unsigned statements;           /* made so far */
	unsigned decisions;            /* iterations and comparisons so far */
	bool given_up;                 /* a limit of the whole program was passed */
	const struct ast_under *under; /* the `if`s around the current statement */
	struct ast_verb *publish;      /* the cas that puts a locator somewhere; or NULL */
	struct sym **implied;          /* variables to be used at least once */
	unsigned nimplied;
	const struct ast_place **fields; /* places in WQEs, looked at when all verbs are known */
	unsigned nfields;
};

/** diag_error(), and false. */
#define sema_error(s, kind, at, ...)                                                                         \
	({                                                                                                   \
		diag_error((s)->d, kind, (at), __VA_ARGS__);                                                 \
		false;                                                                                       \
	})

/** A new statement at the end of @out. */
static inline struct ast_stmt *sema_add_stmt(
	struct sema *s, struct ast_block *out, enum ast_stmt_kind kind, struct diag_pos pos)
{
	pool_grow(s->pool, out->stmt, out->n);
	out->stmt[out->n] = (struct ast_stmt){.kind = kind, .pos = pos};
	return &out->stmt[out->n++];
}

/* ---- length.c: lengths that are patched -------------------------------------------------------- */

/** The statement @v, and around it the condition that a length which is patched needs. */
void sema_add_verb(struct sema *s, struct ast_block *out, struct ast_verb *v, struct diag_pos pos);
/** False: @p is a field of a verb with a `rest`, which is executed in its place when the length is 0 and
 * which would need the patch as well. */
bool sema_reaches_rest(const struct ast_place *p);

/* ---- scope.c: names --------------------------------------------------------------------------- */

void scope_enter(struct sema *s, struct scope *inner);
void scope_leave(struct sema *s);
/** A new name in the innermost scope; of kind SYM_BAD, without its error, if it is already taken. */
struct sym *scope_declare(struct sema *s, struct syn_name name, enum sym_kind kind);
/** NULL, without a report, if there is none. */
struct sym *scope_find(const struct sema *s, const char *word);
/** NULL, reported: there is no such name, or its declaration failed. */
struct sym *scope_need(struct sema *s, struct syn_name name);
/** The same of a name of that kind; @instead, the end of the message about another one, is what would be
 * right. */
struct sym *scope_need_kind(struct sema *s, struct syn_name name, enum sym_kind kind, const char *instead);
/** " (declared in line 7)" and what kind of thing it is. */
const char *scope_what(const struct sym *sym);
/** A name for messages and listings that no other verb, or variable, has. */
const char *scope_unique(struct sema *s, const char *name, bool verb);

/* ---- value.c: constants and types ------------------------------------------------------------- */

enum sema_constness { SEMA_CONST, SEMA_RUNTIME, SEMA_ERROR };

/** The value of @e if it is a constant. SEMA_RUNTIME: it depends on the request or on memory. SEMA_ERROR:
 * reported. */
enum sema_constness sema_eval(struct sema *s, const struct syn_expr *e, uint64_t *value);
/** A constant in [lo, hi]; @what for messages. */
bool sema_number(struct sema *s, const struct syn_expr *e, const char *what, uint64_t lo, uint64_t hi,
	uint64_t *value);
/** An index in a message's words: that of @e, or none (NULL), in an array of @count; 0 for what is no array.
 */
bool sema_index(struct sema *s, const struct syn_expr *e, struct diag_pos pos, const char *word,
	uint32_t count, uint32_t *index);
/** @t as a type that is not a structure. */
bool sema_type(struct sema *s, const struct syn_type *t, struct ast_type *type);
/** False, reported: a number of @t in memory has no byte order. */
bool sema_has_order(struct sema *s, struct diag_pos pos, const struct ast_type *t);
/** "le64", "bytes 12", "offset(4) in buckets". Static storage, four at a time. */
const char *sema_type_name(const struct ast_type *t);
bool sema_same_type(const struct ast_type *a, const struct ast_type *b);
bool sema_fits(const struct ast_type *t, uint64_t value);
/** The field of that name, and in it the element that @e names, as sema_index(); NULL, reported, if there is
 * none. */
const struct sema_field *sema_field(struct sema *s, const struct sema_struct *st, struct syn_name name,
	const struct syn_expr *e, uint32_t *index);
/** A field's place among the elements of all fields; @index in its array. */
unsigned sema_field_number(const struct sema_struct *st, const struct sema_field *f, uint32_t index);
/** Elements of all fields that are not skipped. */
unsigned sema_field_count(const struct sema_struct *st);

/* ---- place.c: places and operands ------------------------------------------------------------- */

/** The places that @e names: one, or all fields of a structure. Appended to *list. */
bool sema_places(struct sema *s, const struct syn_expr *e, struct ast_place ***list, unsigned *n);
/** The place that @e names; NULL, reported, if it is none. */
struct ast_place *sema_place(struct sema *s, const struct syn_expr *e);
/** False, reported: it is a place in a region whose type nobody has said. */
bool sema_has_type(struct sema *s, const struct ast_place *place);
/** True if @at can be the constant part of an offset in a region. */
bool sema_in_reach(struct sema *s, struct diag_pos pos, uint64_t at);
/** A value. @type: that of a constant which does not say its own; NULL: it has to. */
bool sema_operand(
	struct sema *s, const struct syn_expr *e, const struct ast_type *type, struct ast_operand *op);
/** True if a value of @type can be put into @to without conversion. */
bool sema_assignable(
	struct sema *s, const struct ast_type *type, const struct ast_place *to, struct diag_pos pos);
/* ---- cond.c ----------------------------------------------------------------------------------- */

/** A condition; SEMA_CONST: *holds is its value. */
enum sema_constness sema_cond(
	struct sema *s, const struct syn_cond *c, const struct ast_cond **cond, bool *holds);

/* ---- verb.c ----------------------------------------------------------------------------------- */

bool sema_verb(struct sema *s, const struct syn_verb *syn, struct ast_verb *v);
/** When all verbs are known: places in WQEs, and lengths. */
void sema_check_fields(struct sema *s);

/* ---- bucket.c: places in stores ---------------------------------------------------------------- */

/** What follows is executed only if @cond @holds; until s->under is set to what it was. */
void sema_go_under(struct sema *s, const struct ast_cond *cond, bool holds);
/** When all verbs are known: finds what is done only where a bucket is. */
void sema_find_buckets(struct sema *s);

/* ---- decl.c ----------------------------------------------------------------------------------- */

/** A declaration; @outermost: outside all blocks. */
void sema_declare(struct sema *s, const struct syn_stmt *st, bool outermost);
/** The variable that a read's destination declares. */
struct ast_var *sema_imply(struct sema *s, struct syn_name name, const struct ast_type *type);
/** One that the text does not name; NULL, reported: there are too many. */
struct ast_var *sema_new_var(
	struct sema *s, const char *name, const struct ast_type *type, struct diag_pos pos);
void sema_check_settings(struct sema *s);

/* ---- reply.c ---------------------------------------------------------------------------------- */

void sema_declare_reply(struct sema *s, const struct syn_stmt *st);
/** When all verbs are known: checks the fields of the reply that are declared, and derives the others. */
void sema_replies(struct sema *s);

/* ---- stmt.c ----------------------------------------------------------------------------------- */

/** The body of the program. */
void sema_body(struct sema *s, const struct syn_block *b);

#endif
