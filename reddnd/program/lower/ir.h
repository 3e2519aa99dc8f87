/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ir.h - private to lowering: a program between its text and its steps.
 *
 *   flat.c    statements in one row, each under the conditions that guard it
 *   answer.c  that every request is answered, and once
 *   web.c     variables become webs: an assignment and the uses it reaches
 *   place.c   places, addresses, and the bytes that go from one to another
 *   arg.c     where the bytes of a request go
 *   verb.c    a statement becomes steps
 *   calc.c    those of a calculation
 *   loop-call.c  an endless loop: what is shared with it, how it is called, the head of an iteration
 *   cond.c    a condition becomes steps, once it is known what it guards
 *   cond-bytes.c  the bytes of the words in which it compares
 *   order.c   steps in the best order that means the same
 *   lower.c         all of it, and the description in the end
 */
#ifndef PROGRAM_LOWER_IR_H
#define PROGRAM_LOWER_IR_H

#include "reddnd/program/front/pool.h"
#include "reddnd/program/lower/lower.h"

#include <sys/queue.h>

enum { WORD = 8 }; /* bytes an atomic works on */

/** Of a program with an endless loop. The loop has WQEs and scratch of its own, which live as long as the
 * session does. */
enum section { PART_BEFORE, PART_LOOP, PART_AFTER };

enum {
	QUEUE_CALL = 2
}; /* of such a program, besides that of all its code: its CQEs start the loop, and say that it is over */

/* One more than a description may have: what is in no queue that the program names has the last. If all are
 * used, the description is refused */
enum { LOWER_QUEUES = CHAIN_MAX_QUEUES + 1 };

/** The condition under which a statement runs: the result of @test, and @up. NULL: always. A test has one
 * guard for each result, both with the @up that is the guard of the test. */
struct guard {
	struct test *test;
	bool otherwise; /* it did not hold */
	const struct guard *up;
	const struct guard *jump; /* one further up, so that any above is reached in logarithmic time */
	unsigned depth;           /* conditions, with this one */
};

/** Bytes of scratch. */
struct word {
	char *name;
	uint16_t size;
	uint8_t *init;   /* size bytes */
	struct word *in; /* it is part of that word, from byte @at */
	uint32_t at;
	bool in_loop;        /* scratch of the loop, or */
	bool shared, placed; /* from byte @at of what the loop and the rest share */
	struct word *next;
};

/** Bytes first.. of a value lie in @word, or in the control segment of @step, from byte @at. */
struct part {
	struct word *word;
	struct step *step;
	uint16_t at, first, len;
};

enum { MAX_PARTS = 16 };

enum web_kind {
	WEB_MEMORY,  /* bytes of scratch */
	WEB_TESTED,  /* those of the word in which it is tested, its only use */
	WEB_ADDRESS, /* the low bytes of an address in the WQE of its only use */
	WEB_UNUSED,
};

struct web {
	const struct ast_var *var;
	uint8_t kind; /* enum web_kind */
	unsigned nuses, ndefs;
	bool from_init;  /* the value before the first statement reaches a use */
	bool atomic;     /* needs a word of its own */
	bool written;    /* by a WRITE, which has one place: all of it lies together */
	bool calculated; /* by one of its assignments at least */
	bool shared;     /* it goes into the loop, out of it, or from one iteration to another */
	uint8_t parts;   /* bits of enum section in which it is */
	struct op *use, *def;
	const void *use_key;
	struct part part[MAX_PARTS]; /* MEMORY, TESTED: once it is known */
	unsigned nparts;
	struct web *same; /* union-find */
};

/** One use or assignment of a variable by an op. @key: the part of the tree that it is. */
struct var_access {
	const void *key;
	const struct ast_var *var;
	bool use, def, term, tested;
	unsigned op;               /* number of its statement */
	struct var_access *before; /* the assignment of the same variable before it; or NULL */
	struct web *web;
};

/** A statement, in the order of the text. */
struct op {
	const struct ast_verb *verb; /* or */
	struct test *test;
	const struct guard *guard;
	uint8_t queue; /* of the chain */
	uint8_t part;  /* enum section */
	struct step *main;
	struct word *operands; /* of a calculation, CHAIN_CALC_BYTES each; else NULL */
	struct var_access *access;
	unsigned naccesses;
};

/** Bytes that a step moves. In memory order; a reversed run becomes segments of one byte. */
struct place {
	uint8_t kind; /* enum chain_place_kind; SCRATCH: of a web or of a word */
	const struct web *web;
	struct word *word;
	uint8_t region;
	struct step *step; /* FIELD */
	uint8_t field, sge;
	bool reversed;
	bool in_bucket; /* as of chain_place */
	bool joins;     /* a source: it goes on where the one before it ends, in its data segment */
	uint32_t from, len, max, least;
};

/** A work request. */
struct step {
	TAILQ_ENTRY(step) link;
	uint8_t queue, verb, flags;
	unsigned line;
	const char *label; /* always there */
	const struct guard *guard;
	bool must;  /* be dormant unless its guard holds: it has an effect, or may fail */
	bool ahead; /* it must not, so that it can be done before the guard is decided */
	bool in_loop;
	bool pinned; /* by hand: nothing moves across it */
	struct place remote;
	struct place *local;
	unsigned nlocal;
	bool skips; /* local[0] is not in the text: it takes the bytes before those that are wanted */
	uint64_t swap, compare, swap_mask, compare_mask, add, boundary;
	uint32_t imm;
	struct step *until, *through;
	bool publishes, extent; /* CAS: as of chain_step */
	uint8_t located;        /* the same */
	bool in_bucket;
	bool request;          /* WAIT: for the request */
	struct test *lanes_of; /* it is the READ that copies this test's lanes */
	unsigned depth, index;
};

TAILQ_HEAD(steps, step);

struct step_list {
	struct step **v;
	unsigned n;
};

/** An `if`, or what decides whether a loop goes on. */
struct test {
	const struct ast_cond *cond;
	struct op *op;
	const struct guard *guard; /* it is itself under */
	int8_t assumed;            /* answer.c, at work: 1: it holds, -1: not; 0: it is open */
	bool loop;                 /* what it guards is the rest of a loop: worth to be skipped whole */
	struct step *after;        /* its steps are put after this one */
	struct step *load;         /* READ of an operand that lies in a region */
	struct web *value; /* of the left operand, if that is a variable used for nothing else; else NULL */
	struct test_word *word; /* in the order in which they are decided */
	unsigned nwords;
	struct step_list on, off; /* whose opcodes come from the last word's lanes, in this order: when it is
				     decided that the words match, and when not */
	struct step *copy;        /* the READ of the lanes */
};

/**
 * A word in which part of an operand is compared. Bytes in memory order; mirrored: the same from the other
 * end, but for the value. equal:  value, link, 0.., lanes        the link is 1 when all words before it
 * match; so is the one lane of a word that has carry:  link, value, carry, lanes..    a word after it direct:
 * the control segment of the only step it guards, of which the NIC ignores index and QPN; no lanes twice:
 * lanes (over the value), done   a match replaces all of it; a second CAS replaces what is not done
 */
struct test_word {
	struct word *word;
	uint8_t first, len; /* of the operand's bytes */
	bool link, carry, twice, mirrored;
	struct step *direct;
	uint8_t at;     /* of a direct one */
	uint8_t nlanes; /* of the last word: lanes; of a carry, the carry's byte is the first if that one is
			   dark at first */
	uint8_t lanes_at;
	struct step *add, *cas, *other; /* other: of `twice` */
	struct place
		*to; /* bytes of the right operand that go to the word's CAS or add, if it is a variable */
};

/** Bytes of the request go to @to. */
struct arg_use {
	const struct ast_arg *arg;
	struct place to;
	uint16_t first, len; /* of the big-endian form */
	bool reversed, inverted;
	struct arg_use *next;
};

struct lower {
	const struct ast_program *p;
	const struct program_target *target;
	bool dormant_end; /* lower_program() */
	struct diag *diag;
	struct pool *pool;
	struct op *op;
	unsigned nops;
	unsigned nvars; /* the program's, and those that lowering has made */
	struct web **web;
	unsigned nwebs;
	struct test **test;
	unsigned ntests;
	struct steps steps, loop; /* of an instance, and of an iteration */
	unsigned nappended;       /* so far, in both */
	const struct ast_loop *endless;
	unsigned loop_line;
	uint8_t part;              /* at work */
	const struct guard *leave; /* under which the endless loop ends */
	struct word *turn, *back;  /* shared: the CQE that starts it next; where it enables who called it */
	struct step *gate, *exit;
	uint32_t shared_bytes;
	struct word *words, **last_word;
	unsigned nwords;
	struct arg_use *uses, **last_use;
	struct { /* scratch in which an argument is, for those who read it there */
		struct word *word;
		bool reversed;
	} * arg_at;
	unsigned names;
	bool early;          /* an answer is ahead of what comes after it: all is in the order of the text */
	struct step *cursor; /* steps are put after it (NULL: first), if `inserting`, else at the end */
	bool inserting;
	bool by_hand; /* the author gave an order somewhere */
	bool used[LOWER_QUEUES];
};

/* flat.c */
/** Refuses labels of statements that are never reached: each that an op names has an op. */
void lower_flatten(struct lower *l);
const struct op *lower_op_of(const struct lower *l, const struct ast_verb *v);
bool lower_dominates(const struct guard *a, const struct guard *b); /* @b holds only if @a does */
bool lower_excludes(const struct guard *a, const struct guard *b);  /* never both */
/** @v copies a field of a WQE, or writes to it. Its own verb is none of these. */
bool lower_reads(const struct ast_verb *v, const struct ast_place *field);
bool lower_patches(const struct ast_verb *v, const struct ast_place *field);
/** The device has what calculates @v in this part of a program. Without, atomics do it, and conditions. */
bool lower_has_calc(const struct lower *l, const struct ast_verb *v, uint8_t part);
/** An order is tested by adding: the carry is the result. */
bool lower_is_carry(const struct ast_cond *c);

/* answer.c */
void lower_check_answers(struct lower *l); /* there is an answer */

/* loop-call.c */
/** True, or the errors are reported. */
bool lower_check_loop(struct lower *l);
/** Between the statements of the loop and those after it: how the one is called, and left. */
void lower_call(struct lower *l);
/** When all steps are there: what an iteration begins with. */
void lower_head(struct lower *l);

/* web.c */
void lower_webs(struct lower *l);
/** A mov that reverses bytes from one computed place in a region to another place in a region: it takes two
 * steps. */
bool lower_reversed_store(const struct ast_verb *v);
/** A mov of a number to a wider place. */
bool lower_is_narrower(const struct ast_verb *v);
struct web *lower_web_of(const struct op *op, const void *key);
/** Bytes before what a READ of @p wants that it reads as well: where a request or a variable gives the
 * address. */
uint32_t lower_skip(const struct ast_place *p);

/* place.c */
struct word *lower_word(struct lower *l, const char *name, uint16_t size);
struct word *lower_constant(struct lower *l, const struct ast_type *type, uint64_t value);
/** The bytes of @value, as one of @type, go to @p. */
void lower_put(uint8_t *p, const struct ast_type *type, uint64_t value);
/** True if the result of a calculation is @w as CALC leaves it: big-endian, with room before and behind it.
 */
bool lower_is_result(const struct web *w);
/** Gives a web of memory its bytes: those of the operand, if it is used for nothing but to calculate once. */
void lower_place_web(struct lower *l, struct web *w);
/** The low bytes of operand @i of a calculation; those above are 0. */
struct place lower_calc_bytes(const struct op *op, unsigned i, uint32_t bytes);
struct step *lower_step(struct lower *l, const struct op *op, enum chain_verb verb, const char *name);
struct steps *lower_list(struct lower *l, bool in_loop);
void lower_append(struct lower *l, struct step *s);
/** True, reported: lower_is_full(), or there are too many steps. Nothing takes a step away again that a
 * statement has: that is looked at before the rest, which takes time and memory with the square of their
 * number. */
bool lower_is_too_long(struct lower *l);
unsigned lower_max_sge(const struct lower *l); /* data segments of a WQE */
struct place *lower_local(struct lower *l, struct step *s);
struct place lower_scratch(struct word *w, uint32_t from, uint32_t len);
/** Bytes from.. of a value, all of them in that part. */
struct place lower_part(const struct part *part, uint32_t from, uint32_t len);
struct place lower_field(struct step *s, enum chain_field field, unsigned sge, uint32_t from, uint32_t len);
/** Appends a READ of @from to @to: both have the same length. */
struct step *lower_copy(
	struct lower *l, const struct op *op, struct place from, struct place to, const char *name);
struct step *lower_step_of(const struct lower *l, const struct ast_verb *v);
/** diag_error(), and false. */
#define lower_refuse(l, kind, at, ...)                                                                       \
	({                                                                                                   \
		diag_error((l)->diag, kind, (at), __VA_ARGS__);                                              \
		false;                                                                                       \
	})

/** True, reported: half of the pool is used. Asked before each statement and each condition: what one of them
 * takes has room in the other half. */
static inline bool lower_is_full(struct lower *l)
{
	if (pool_is_full(l->pool) && !diag_errors(l->diag))
		lower_refuse(l, LIMIT, l->p->pos, "the program is too large");
	return pool_is_full(l->pool);
}

/** Data segments that a place becomes, and 16-byte units of a step's WQE. */
unsigned lower_segments(const struct place *p);
unsigned lower_ds(const struct step *s);

/* arg.c */
void lower_use_arg(struct lower *l, const struct ast_arg *arg, struct place to, uint16_t first, uint16_t len,
	bool reversed, bool inverted);
/** Places that arguments can arrive at. */
unsigned lower_max_places(const struct lower *l);
/** Lets each argument arrive once, and copies it where several places use it. */
void lower_share_args(struct lower *l);

/* operand.c */
/** What an operand's bytes are, as a place to read from. Appends the steps that need to come before. */
struct place lower_source(
	struct lower *l, const struct op *op, struct step *user, unsigned sge, const struct ast_operand *o);
/** Makes @s's place (remote, or local[sge]) that of @p; appends what computes its address. */
struct place lower_region(struct lower *l, const struct op *op, struct step *s, int sge,
	const struct ast_place *p, uint64_t at);
/** The same for READ @s, whose place it sets; its first segment takes the bytes of lower_skip(). */
void lower_read_region(struct lower *l, const struct op *op, struct step *s, const struct ast_place *p);
/** A destination in scratch or in a WQE. */
struct place lower_target(struct lower *l, const struct op *op, const struct ast_place *p, uint32_t bytes);

/* verb.c */
/** Makes the statement's own step, which others may refer to. */
void lower_verb_begin(struct lower *l, struct op *op);
void lower_verb(struct lower *l, struct op *op);

/* calc.c */
void lower_calc_begin(struct lower *l, struct op *op);
void lower_calc(struct lower *l, struct op *op);

/* cond.c */
void lower_test_begin(struct lower *l, struct op *op);
void lower_tests(struct lower *l);

/* cond-bytes.c */
/** value > x: a carry comes out of value + ~x; value >= x: out of value + ~x + 1. */
bool lower_carry_in(const struct ast_cond *c);
/** Where in its word they are. */
unsigned lower_value_at(const struct test_word *w);
unsigned lower_link_at(const struct test_word *w);
unsigned lower_lanes_at(const struct test *t, const struct test_word *w);
/** Where the operand's bytes are: which words is known from the beginning, where in them in the end. */
void lower_place_value(struct lower *l, struct test *t);
/** Gives every word of a test its bytes, and every CAS its operands. */
void lower_finish_tests(struct lower *l);

/* order.c */
/** One of the two changes what the other one uses: they stay in their order. */
bool lower_conflict(const struct step *a, const struct step *b);
void lower_schedule(struct lower *l);
void lower_pair_lanes(struct lower *l);
void lower_tell(struct lower *l);

#endif
