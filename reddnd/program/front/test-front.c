/* SPDX-License-Identifier: BSD-2-Clause */
/* What the front end makes of programs that are right; tests/programs/wrong has those that are not. */
#include "reddnd/program/front/front.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ANSWER "write_imm 1 as u8 -> slot\n"

/* Compiles @len bytes with one setting or none; fails with the compiler's words unless the result is @want */
static struct ast_program *front(const char *text, size_t len, const struct program_setting *set, int want)
{
	char *exact = malloc(len ? len : 1); /* so that reading behind the end shows */
	struct program_source src = {"test.rdn", exact, len};
	struct ast_program *p = NULL;
	struct diag *d;
	char *said;
	int r;

	assert_non_null(exact);
	memcpy(exact, text, len);
	d = diag_new(src.name, exact, len);
	assert_non_null(d);
	r = front_parse(&src, set, set ? 1 : 0, d, &p);
	said = diag_text(d);
	if (r != want)
		print_error("%s", said);
	assert_int_equal(r, want);
	assert_int_equal(*said != 0, want);
	free(said);
	diag_free(d);
	free(exact);
	return p;
}

static struct ast_program *good(const char *text)
{
	return front(text, strlen(text), NULL, 0);
}

static const struct ast_verb *verb(const struct ast_program *p, const char *name)
{
	for (unsigned i = 0; i < p->nverbs; i++) {
		if (p->verb[i]->name && !strcmp(p->verb[i]->name, name))
			return p->verb[i];
	}
	fail_msg("no verb is called %s", name);
	return NULL;
}

static const struct ast_var *var(const struct ast_program *p, const char *name)
{
	for (unsigned i = 0; i < p->nvars; i++) {
		if (!strcmp(p->var[i]->name, name))
			return p->var[i];
	}
	fail_msg("no variable is called %s", name);
	return NULL;
}

static const char HASH_GET[] =
	"program hash_get\n"
	"shape table\n"
	"param probes = 2 from 1 to 2\n"
	"region buckets, heap, live\n"
	"struct bucket { len : be24, _ : u8, off : be40, fp : le56 }\n"
	"arg probe[probes] { fp : u48, at : offset(2) in buckets }\n"
	"for p in 0..probes {\n"
	"  look: read buckets @ probe[p].at + 4 as bucket { fp -> seen, off -> hit.addr }\n"
	"  if seen == probe[p].fp + (0xa5 << 48) {\n"
	"    hit: write heap -> slot @ 64, 32 bytes\n"
	"  } else {\n"
	"    nop\n"
	"  }\n"
	"}\n"
	"write_imm live -> slot @ 0, 64 bytes\n";

static void test_tree(void **state)
{
	struct ast_program *p = good(HASH_GET);
	const struct ast_loop *loop;
	const struct ast_verb *look, *hit;
	const struct ast_cond *cond;

	(void)state;
	assert_string_equal(p->name, "hash_get");
	assert_int_equal(p->shape, PROGRAM_TABLE);
	assert_false(p->endless);
	assert_int_equal(p->nregions, 3);
	assert_int_equal(p->nargs, 4);
	assert_int_equal(p->arg_bytes, 16);
	assert_string_equal(p->arg[3]->name, "probe[1].at");
	assert_int_equal(p->arg[3]->type.kind, AST_OFFSET);
	assert_ptr_equal(p->arg[3]->type.window, p->region[0]);

	assert_int_equal(p->body.n, 2);
	loop = p->body.stmt[0].loop;
	assert_int_equal(loop->kind, AST_FOR);
	assert_int_equal(loop->niters, 2);
	assert_false(loop->breaks);

	/* the second iteration: its own label, variable and arguments; the bytes before the first field are
	 * not read */
	look = verb(p, "look[1]");
	hit = verb(p, "hit[1]");
	assert_int_equal(look->place->at, 4 + 4);
	assert_int_equal(look->place->nterms, 1);
	assert_ptr_equal(look->place->term[0].arg, p->arg[3]);
	assert_int_equal(look->npieces, 2);
	assert_ptr_equal(look->piece[0].to->verb, hit);
	assert_int_equal(look->piece[0].to->field, CHAIN_F_LOCAL_ADDR);
	assert_int_equal(look->piece[0].type.bytes, 5);
	assert_ptr_equal(look->piece[1].to->var, var(p, "seen[1]"));
	assert_int_equal(hit->patched, 1u << CHAIN_F_LOCAL_ADDR);
	assert_int_equal(hit->bytes, 32);
	assert_int_equal(hit->place->at, 64);

	cond = loop->iter[1].stmt[1].cond;
	assert_int_equal(cond->relation, AST_REL_EQ);
	assert_ptr_equal(cond->left.place->var, var(p, "seen[1]"));
	assert_ptr_equal(cond->right.arg, p->arg[2]);
	assert_int_equal(cond->right.value, 0xa5ull << 48);
	assert_int_equal(loop->iter[1].stmt[1].then.n, 1);
	assert_int_equal(loop->iter[1].stmt[1].otherwise.n, 1);
	ast_free(p);
}

/* The else of a loop belongs to what is around the loop; a param decides what is ahead */
static void test_otherwise(void **state)
{
	static const char text[] = "program p\n"
				   "param soon = 1 from 0 to 1\n"
				   "region r\n"
				   "arg x : u8\n"
				   "for i in 0..2 {\n"
				   "  ahead(soon) read r @ i as u8 -> seen\n"
				   "  if seen == x {\n"
				   "    ahead write_imm 1 as be16, r -> slot @ 0, 4 bytes\n"
				   "    break\n"
				   "  }\n"
				   "} else {\n"
				   "  last: write_imm 0 as u8 -> slot @ 0\n"
				   "}\n";
	static const struct program_setting late = {"soon", 0};
	struct ast_program *p = good(text);
	const struct ast_loop *loop = p->body.stmt[0].loop;

	(void)state;
	assert_int_equal(p->body.n, 1);
	assert_int_equal(loop->niters, 2);
	assert_int_equal(loop->otherwise.n, 1);
	assert_ptr_equal(loop->otherwise.stmt[0].verb, verb(p, "last"));
	assert_true(loop->iter[0].stmt[0].verb->ahead);
	assert_true(loop->iter[1].stmt[1].then.stmt[0].verb->ahead);
	assert_int_equal(loop->iter[1].stmt[1].then.stmt[0].verb->bytes, 4);
	assert_false(verb(p, "last")->ahead);
	ast_free(p);
	p = front(text, strlen(text), &late, 0);
	loop = p->body.stmt[0].loop;
	assert_false(loop->iter[0].stmt[0].verb->ahead);
	assert_true(loop->iter[0].stmt[1].then.stmt[0].verb->ahead);
	ast_free(p);
}

static void test_params(void **state)
{
	static const struct program_setting one = {"probes", 1}, three = {"probes", 3}, none = {"probe", 1};
	struct ast_program *p = front(HASH_GET, strlen(HASH_GET), &one, 0);

	(void)state;
	assert_int_equal(p->param[0].value, 1);
	assert_int_equal(p->param[0].by_default, 2);
	assert_int_equal(p->nargs, 2);
	assert_int_equal(p->body.stmt[0].loop->niters, 1);
	ast_free(p);
	front(HASH_GET, strlen(HASH_GET), &three, PROGRAM_REFUSED);
	front(HASH_GET, strlen(HASH_GET), &none, PROGRAM_REFUSED);
}

static void test_constants(void **state)
{
	struct ast_program *p = good("program c\n"
				     "const a = 1 + 2 * 3 << 1 & 0xff | 0b10000   # 30\n"
				     "const b = (a - 2) / 4 % 5 # 2\n"
				     "struct s { x : be16, _ : bytes 5, y[2] : u8 }\n"
				     "var v : le64 = ~0 >> 1\n"
				     "var w : le32 = 4K *\n"
				     "  (\n 2 + sizeof(s)\n )\n"
				     "var x : u8 = a\n"
				     "var y : u8 = b\n" ANSWER);

	(void)state;
	assert_int_equal(var(p, "v")->init, UINT64_MAX >> 1);
	assert_int_equal(var(p, "w")->init, 4096 * 11);
	assert_int_equal(var(p, "x")->init, 30);
	assert_int_equal(var(p, "y")->init, 2);
	ast_free(p);
}

/* An if between constants is the branch that is taken */
static void test_static_if(void **state)
{
	struct ast_program *p = good("program c\n"
				     "param n = 1 from 0 to 9\n"
				     "queue q[2]\n"
				     "if n > 3 {\n x: nop\n} else if n == 1 {\n on q[1] {\n  y: nop\n }\n} "
				     "else {\n z: nop\n}\n" ANSWER);

	(void)state;
	assert_int_equal(p->nverbs, 2);
	assert_string_equal(p->verb[0]->name, "y");
	assert_ptr_equal(p->verb[0]->queue, p->queue[1]);
	assert_null(p->verb[1]->queue);
	assert_int_equal(p->body.n, 2);
	ast_free(p);
}

static void test_loops(void **state)
{
	struct ast_program *p = good("program c\n"
				     "endless\n"
				     "var a : le32\n"
				     "while a < 7 max 3 {\n"
				     "  for i in 2..4 {\n"
				     "    x: add a by i\n"
				     "    if 5 > a {\n break\n }\n"
				     "  }\n"
				     "}\n"
				     "loop {\n  y: add a by -1\n break\n}\n");
	const struct ast_loop *outer = p->body.stmt[0].loop, *inner, *last = p->body.stmt[1].loop;

	(void)state;
	assert_int_equal(outer->niters, 3);
	assert_false(outer->breaks);
	assert_int_equal(outer->cond->relation, AST_REL_LT);
	inner = outer->iter[2].stmt[0].loop;
	assert_int_equal(inner->niters, 2);
	assert_true(inner->breaks);
	assert_int_equal(verb(p, "x[2][3]")->by.value, 3);
	/* a constant stands right */
	assert_int_equal(inner->iter[1].stmt[1].cond->relation, AST_REL_LT);
	assert_int_equal(inner->iter[1].stmt[1].cond->right.value, 5);
	assert_ptr_equal(inner->iter[1].stmt[1].then.stmt[0].loop, inner);
	assert_true(last->endless);
	assert_int_equal(last->niters, 1);
	assert_int_equal(verb(p, "y")->by.value, UINT32_MAX);
	ast_free(p);
}

static void test_verbs(void **state)
{
	struct ast_program *p = good("program c\n"
				     "struct s { a : be32, b[2] : le16 }\n"
				     "region r writable of s size 4K\n"
				     "arg o : offset(3) in r\n"
				     "arg g : be32\n"
				     "arg k : u64\n"
				     "var v : s\n"
				     "var i : be24\n"
				     "var x : le16\n"
				     "var w : le64\n"
				     "var y : be16\n"
				     "copy: read r @ o -> v\n"
				     "one: read r.b[1] @ o + i + 8 -> x\n"
				     "back: write v, 7 as be16 -> r @ 16\n"
				     "m: mov swab(x) -> y\n"
				     "swap: cas r @ 8 as le64 : k -> w, mask 0xff, was -> old\n"
				     "plus: fence add r @ 16 as le64 by k, fields 0x8080\n"
				     "mov old -> w\n"
				     "wait one\n"
				     "wait request\n"
				     "enable back\n"
				     "send g, v.a\n"
				     "end: write_imm r -> slot @ 8, max 64, imm g\n"
				     "mov 3 -> end.length\n");
	const struct ast_verb *v;

	(void)state;
	v = verb(p, "copy");
	assert_int_equal(v->npieces, 3);
	assert_ptr_equal(v->piece[2].to->var, var(p, "v.b[1]"));
	v = verb(p, "one");
	assert_int_equal(v->place->at, 8 + 6);
	assert_int_equal(v->place->nterms, 2);
	assert_ptr_equal(v->place->term[1].var, var(p, "i"));
	v = verb(p, "back");
	assert_int_equal(v->nsources, 4);
	assert_int_equal(v->source[3].value, 7);
	assert_int_equal(v->source[3].type.bytes, 2);
	v = verb(p, "m");
	assert_true(v->source[0].swab);
	assert_int_equal(v->source[0].type.order, AST_BE);
	v = verb(p, "swap");
	assert_int_equal(v->mask, 0xff);
	assert_ptr_equal(v->old.arg, p->arg[2]);
	assert_ptr_equal(v->swap.place->var, var(p, "w"));
	assert_ptr_equal(v->was[0]->var, var(p, "old"));
	v = verb(p, "plus");
	assert_true(v->fence);
	assert_int_equal(v->fields, 0x8080);
	assert_ptr_equal(p->verb[7]->target, verb(p, "one"));
	assert_null(p->verb[8]->target);
	v = verb(p, "end");
	assert_true(v->has_imm);
	assert_int_equal(v->max, 64);
	assert_int_equal(v->patched, 1u << CHAIN_F_LOCAL_LEN);
	ast_free(p);
}

/* Two loops may use the same names; what messages call them differs */
static void test_names_are_unique(void **state)
{
	struct ast_program *p =
		good("program c\nregion r\nstruct s { f : le16 }\n"
		     "for i in 0..1 {\n x: read r as s { f -> a }\n if a == 1 {\n nop\n }\n}\n"
		     "for i in 0..1 {\n x: read r as s { f -> a }\n if a == 1 {\n nop\n }\n}\n" ANSWER);

	(void)state;
	assert_non_null(verb(p, "x[0]"));
	assert_non_null(verb(p, "x[0].2"));
	assert_non_null(var(p, "a[0].2"));
	ast_free(p);
}

/* The words of the language are names of fields, and bytes of any kind stand in comments */
static void test_text(void **state)
{
	static const char ODD[] = "\xef\xbb\xbf# \xff\0\r\x1b\n\n \t\r\nprogram c # x\r\nstruct s {\n  next "
				  ": be32\n  read : u8,\n\n"
				  "  if : le16,\n}\r\nregion r of s # \xe2\x98\x83\r\nread r as s { read -> "
				  "x.addr,\n next -> x.length }\n"
				  "x:\n\n  write r ->\n slot @ 1,\n max 8\n" ANSWER "# the end";
	struct ast_program *p = front(ODD, sizeof(ODD) - 1, NULL, 0);

	(void)state;
	assert_int_equal(p->verb[0]->npieces, 2);
	ast_free(p);
}

static void test_large(void **state)
{
	char *text = malloc(PROGRAM_MAX_SOURCE + 2);
	size_t len;

	(void)state;
	assert_non_null(text);
	memset(text, '#', PROGRAM_MAX_SOURCE + 2);
	len = strlen(strcpy(text, "program large\n" ANSWER));
	text[len] = '#';
	ast_free(front(text, PROGRAM_MAX_SOURCE, NULL, 0));
	front(text, PROGRAM_MAX_SOURCE + 1, NULL, PROGRAM_REFUSED);
	/* as many tokens as there can be */
	memset(text, '(', PROGRAM_MAX_SOURCE);
	front(text, PROGRAM_MAX_SOURCE, NULL, PROGRAM_REFUSED);
	memset(text, '{', PROGRAM_MAX_SOURCE);
	front(text, PROGRAM_MAX_SOURCE, NULL, PROGRAM_REFUSED);
	len = strlen(strcpy(text, "program large\n"));
	while (len < PROGRAM_MAX_SOURCE - 4)
		len += strlen(strcpy(text + len, "nop\n"));
	front(text, len, NULL, PROGRAM_REFUSED);
	memset(text, 0, PROGRAM_MAX_SOURCE);
	front(text, PROGRAM_MAX_SOURCE, NULL, PROGRAM_REFUSED);
	front("", 0, NULL, PROGRAM_REFUSED);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_otherwise),
		cmocka_unit_test(test_params),
		cmocka_unit_test(test_constants),
		cmocka_unit_test(test_static_if),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_verbs),
		cmocka_unit_test(test_names_are_unique),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
