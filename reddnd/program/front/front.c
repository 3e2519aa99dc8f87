/* SPDX-License-Identifier: BSD-2-Clause */
#include "reddnd/program/front/front.h"

#include "reddnd/program/front/lex.h"
#include "reddnd/program/front/sema.h"

#include <errno.h>

int front_parse(const struct program_source *src, const struct program_setting *settings, unsigned nsettings,
	struct diag *d, struct ast_program **out)
{
	struct pool *pool;
	struct syn_program *syn;
	struct ast_program *prog;
	struct sema s = {.d = d, .setting = settings, .nsettings = nsettings, .suffix = ""};

	if (src->len > PROGRAM_MAX_SOURCE) {
		diag_error(d, LIMIT, (struct diag_pos){0},
			"the file has more than %d bytes, the most that a program may have",
			PROGRAM_MAX_SOURCE);
		return PROGRAM_REFUSED;
	}
	pool = pool_new();
	if (!pool)
		return -ENOMEM;
	prog = pool_alloc(pool, sizeof(*prog));
	prog->pool = pool;
	syn = parse(pool, d, lex(pool, d, src->text, src->len));
	if (!diag_errors(d)) {
		s.pool = pool;
		s.prog = prog;
		prog->name = syn->name.word;
		prog->pos = syn->name.pos;
		sema_body(&s, &syn->body);
	}
	if (diag_errors(d)) {
		ast_free(prog);
		return PROGRAM_REFUSED;
	}
	*out = prog;
	return 0;
}

void ast_free(struct ast_program *p)
{
	if (p)
		pool_free(p->pool);
}
